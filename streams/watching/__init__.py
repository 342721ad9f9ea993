"""Keeping topics equal to what a server or a file shows: list, compare, watch; doubts about what has vanished."""
