"""Requests as the OpenAPI document tells them, and as it does not, as schemathesis makes them.

In: an operation of the document. Out: a strategy for its requests.
"""

import json
from functools import cache

import schemathesis
from hypothesis.strategies import SearchStrategy
from schemathesis import GenerationMode
from schemathesis.schemas import BaseSchema

from underhost.agents.http.openapi import OPERATIONS, Operation, document

DOCUMENT = document("0")
FOLLOWED = "/api/v1/events"
"""It has no end, so no program that reads whole answers can ask it."""
ASKED = [one for one in OPERATIONS if one.path != FOLLOWED]
MAY_BE_WRONG = [one for one in ASKED if one.body is not None or any(each.place == "query" for each in one.parameters)]
"""Any text is a part of a path."""

QUESTIONS = [(one, GenerationMode.POSITIVE) for one in ASKED] + [(one, GenerationMode.NEGATIVE) for one in MAY_BE_WRONG]
"""What is asked: each operation as it is told, and wrongly."""


@cache
def _told() -> BaseSchema:
    return schemathesis.openapi.from_dict(json.loads(json.dumps(DOCUMENT)))


def as_told(operation: Operation, mode: GenerationMode) -> SearchStrategy[schemathesis.Case]:
    """Requests of one operation: right ones, or wrong ones (`NEGATIVE`)."""
    return _told()[operation.path][operation.method.upper()].as_strategy(generation_mode=mode)
