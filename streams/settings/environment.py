"""Settings that stand in the environment: `UNDERHOST_KAFKA__BOOTSTRAP_SERVERS=v` is `kafka.bootstrapServers`.

In: the environment. Out: a tree as a file would have it, and which variable each of its values is from.
"""

import re
from collections.abc import Mapping
from inspect import isclass
from typing import Any, get_args, get_origin

from pydantic import BaseModel
from pydantic.alias_generators import to_camel

from underhost.schemas.errors import InputError
from underhost.streams.settings.model import Settings

PREFIX = "UNDERHOST_"
_SERVICE_LINK = re.compile(r"UNDERHOST_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)")
"""What Kubernetes puts into a container for Services named `underhost…` in its namespace: no settings of ours."""

Place = tuple[str | int, ...]
"""Where a setting is, in the file's spelling, as a fault has it: `("kafka", "bootstrapServers")`."""


def from_environment(environ: Mapping[str, str]) -> tuple[dict[str, Any], dict[Place, str]]:
    """The settings as a tree, lists split at their commas, and the variable of each place.

    Raises InputError for two variables of which one says what the other is in.
    """
    tree: dict[str, Any] = {}
    names: dict[Place, str] = {}
    for name in sorted(environ):
        if not name.startswith(PREFIX) or _SERVICE_LINK.match(name):
            continue
        place = tuple(to_camel(part) if "_" in part else part for part in name[len(PREFIX) :].lower().split("__"))
        for other, known in names.items():
            if all(one == another for one, another in zip(other, place, strict=False)):
                raise InputError(f"{known} and {name}: only one of them can be set")
        names[place] = name
        here = tree
        for part in place[:-1]:
            here = here.setdefault(part, {})
        value = environ[name]
        here[place[-1]] = [item for item in value.split(",") if item] if _is_list(place) else value
    return tree, names


def _is_list(place: Place) -> bool:
    """Whether the model has a list of texts there."""
    model: type[BaseModel] | None = Settings
    kind: Any = None
    for part in place:
        fields = model.model_fields.values() if model is not None else ()
        kind = next((field.annotation for field in fields if field.alias == part), None)
        model = _group(kind)
    return get_origin(kind) is tuple and model is None


def _group(kind: Any) -> type[BaseModel] | None:
    """The group of settings that a field is, may be, or is a list of."""
    return next((one for one in (kind, *get_args(kind)) if isclass(one) and issubclass(one, BaseModel)), None)
