"""The outside world to topics: settings, transports, watchers, publishing. Imports only `schemas` of ours."""

if __name__ != "underhost.streams":
    raise ImportError("import underhost.streams; 'streams' is only the name of the folder")
