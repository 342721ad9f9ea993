"""Host labels of running pods, which follow their node's VM: which are wrong by now, and the write."""
