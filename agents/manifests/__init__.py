"""Manifests become the objects that the API server and its controllers would make of them."""
