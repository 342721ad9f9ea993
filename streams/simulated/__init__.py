"""A Kubernetes and a vSphere cluster in memory, publishing the same change events."""
