"""Kubernetes: connection, list and watch, change records."""
