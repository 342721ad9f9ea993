"""The outside world to topics, and topics to whoever reads them. Of ours it imports `schemas` only.

In the order of the flow: `settings/`; the sources `kubernetes/`, `vsphere/`, `files/` and `simulated/`, which share
`watching/`; `publish.py` and `reader.py` for the topics, `admin.py` to make them; below these the two transports
`kafka/` and `embedded/`, and the Faust application over either, `faust/`. `ports.py` is what the agents rely on.
"""

if __name__ != "underhost.streams":
    raise ImportError("import underhost.streams; 'streams' is only the name of the folder")
