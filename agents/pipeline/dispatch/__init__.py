"""Commands to the sinks, and their outcomes back to the topics."""
