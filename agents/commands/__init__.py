"""The command line, one module a command; `application.py` lists them."""
