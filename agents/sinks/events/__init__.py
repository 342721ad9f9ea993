"""Kubernetes Events and pod conditions: what people are told where they look."""
