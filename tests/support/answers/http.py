"""Small documents of the worker's HTTP, as a program reads them."""

from typing import Any


def an_error(why: str) -> dict[str, Any]:
    """What every route says instead of its answer."""
    return {"apiVersion": "underhost/v1", "error": why, "kind": "Error"}
