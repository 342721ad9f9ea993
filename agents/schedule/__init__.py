"""Where pods go: the sequential loop, nominations, and why a pod is there or nowhere."""
