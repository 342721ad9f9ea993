"""Snapshots from files, and from the topics at any moment of the past; snapshots as documents."""
