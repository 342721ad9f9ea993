"""Change topics into tables: the objects of each site that this worker holds."""
