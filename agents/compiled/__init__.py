"""The compiled site: classes of equal pods, nodes, topology domains and counters, kept in step."""
