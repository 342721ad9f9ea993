"""The worker: sources, topics, tables, evaluation, deciders, gates and sinks, wired in the order of the flow."""
