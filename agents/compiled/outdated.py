"""The signal that a compiled site cannot follow a change."""


class Outdated(Exception):
    """What is compiled cannot be extended to the change: compile the site anew."""
