"""The worker's HTTP: a module for each group of routes; `routes.py` lists them, `server.py` serves them all."""
