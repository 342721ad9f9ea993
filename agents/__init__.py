"""Topics to tables to decisions to the outside world: Faust agents, the evaluator, sinks, the command line."""

if __name__ != "underhost.agents":
    raise ImportError("import underhost.agents; 'agents' is only the name of the folder")
