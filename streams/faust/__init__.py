"""The Faust application and what both transports need of it: fetches, tables, membership in the consumer group."""
