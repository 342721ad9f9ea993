"""Functions of libraries that the product stands for or relies upon: whether their source is still the same."""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest

Parts = Mapping[str, Sequence[tuple[Callable[..., Any], str]]]
"""By the module of ours that has to do with it: the function, and the first digits of its source's SHA-256."""


def cases(parts: Parts) -> list[Any]:
    """(module, function, digest) of each, as the parameters of a test."""
    return [
        pytest.param(module, part, digest, id=f"{module}: {part.__qualname__}")
        for module, some in parts.items()
        for part, digest in some
    ]


def digest_of(part: Callable[..., Any]) -> str:
    """The first digits of the SHA-256 of its source."""
    return hashlib.sha256(inspect.getsource(part).encode()).hexdigest()[:12]
