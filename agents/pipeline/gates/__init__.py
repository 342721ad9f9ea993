"""May this worker write? Doubts, stale data, membership and limits."""
