"""The settings of a run: a YAML file, then `UNDERHOST_KAFKA__BOOTSTRAP_SERVERS`-style environment, then flags.

In: a path, flags, the environment. Out: one frozen `Settings`, or an InputError with every fault.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from underhost.schemas.errors import InputError
from underhost.streams.settings.environment import from_environment
from underhost.streams.settings.faults import fault
from underhost.streams.settings.file import read
from underhost.streams.settings.model import Settings


def load(
    path: Path | None = None, flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of file, environment and flags, each overriding the one before.

    `flags` is nested like the model, in snake_case, without the flags that were not given.
    Raises InputError that names every fault by its place, or by the variable that it is from.
    """
    tree: dict[str, Any] = {}
    if path is not None:
        _merge(tree, _camel_keys(read(path)))
    environment, variables = from_environment(os.environ if environ is None else environ)
    _merge(tree, environment)
    flagged = _camel_keys(dict(flags or {}))
    _merge(tree, flagged)
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        where = str(path) if path is not None else "configuration"
        told = []
        for item in error.errors():
            place = item["loc"]
            given = next((place[:end] for end in range(1, len(place) + 1) if place[:end] in variables), None)
            if given is None or _has(flagged, given):
                told.append(fault(where, dict(item), Settings))
            else:
                told.append(fault(variables[given], dict(item), Settings, len(given)))
        raise InputError(*told) from None


def _camel_keys(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {to_camel(key) if "_" in str(key) else key: _camel_keys(value) for key, value in tree.items()}
    return tree


def _merge(into: dict[str, Any], tree: Mapping[str, Any]) -> None:
    for key, value in tree.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value


def _has(tree: Any, place: Sequence[str | int]) -> bool:
    for part in place:
        if not isinstance(tree, dict) or part not in tree:
            return False
        tree = tree[part]
    return True
