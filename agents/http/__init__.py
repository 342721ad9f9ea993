"""The worker's HTTP, one module a room: each gives its routes, `server.py` assembles them behind one guard."""
