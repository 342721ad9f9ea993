"""A site in memory, a Kubernetes cluster over a vSphere cluster, that publishes the same records as a live one."""
