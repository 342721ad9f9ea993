"""The embedded default: a durable, single-process Faust transport on SQLite."""
