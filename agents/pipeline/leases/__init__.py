"""One writer, one publisher: the Kubernetes lease of each role that writes to a cluster or publishes a source."""
