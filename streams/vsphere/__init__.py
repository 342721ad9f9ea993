"""vSphere: connection, PropertyCollector, change records."""
