"""The settings of a run: a YAML file, then `UNDERHOST_KAFKA__BOOTSTRAP_SERVERS`-style environment, then flags.

In: a path, flags, the environment. Out: one frozen `Settings`, or an InputError with every fault.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic.alias_generators import to_camel

from underhost.schemas.errors import InputError
from underhost.streams.settings.faults import fault
from underhost.streams.settings.model import Settings

ENV_PREFIX = "UNDERHOST_"
_SERVICE_LINK = re.compile(r"UNDERHOST_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)")
"""What Kubernetes puts into a container for Services named `underhost…` in its namespace: no settings of ours."""
_LISTS = {"files", "clusters", "aliases", "hosts", "severities", "owners", "schedulers", "except_namespaces"}


def load(
    path: Path | None = None, flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of file, environment and flags, each overriding the one before.

    `flags` is nested like the model, in snake_case, without the flags that were not given.
    Raises InputError that names every fault by its place.
    """
    tree: dict[str, Any] = {}
    if path is not None:
        _merge(tree, _camel_keys(_read(path)))
    _merge(tree, _camel_keys(_from_environment(os.environ if environ is None else environ)))
    _merge(tree, _camel_keys(dict(flags or {})))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        where = str(path) if path is not None else "configuration"
        raise InputError(*(fault(where, dict(item), Settings) for item in error.errors())) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a mapping is expected, this is a {type(tree).__name__}")
    return tree


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """`UNDERHOST_A_B__C_D=v` as {a_b: {c_d: v}}; lists are split at commas."""
    tree: dict[str, Any] = {}
    for name in sorted(environ):
        if not name.startswith(ENV_PREFIX) or _SERVICE_LINK.match(name):
            continue
        parts = name[len(ENV_PREFIX) :].lower().split("__")
        here = tree
        for part in parts[:-1]:
            here = here.setdefault(part, {})
        value: Any = environ[name]
        if parts[-1] in _LISTS:
            value = [item for item in value.split(",") if item]
        here[parts[-1]] = value
    return tree


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
