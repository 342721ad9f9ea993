"""Sinks: decision to one idempotent write, dry-run unless enabled by name."""
