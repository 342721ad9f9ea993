"""What travels: records, topics, keys and errors. No I/O; imports nothing of ours."""

if __name__ != "underhost.schemas":
    raise ImportError("import underhost.schemas; 'schemas' is only the name of the folder")
