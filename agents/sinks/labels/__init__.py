"""Host labels on nodes, and the taint that keeps pods off a node until it has them."""
