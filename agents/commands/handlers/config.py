"""`underhost config`: the settings that a worker would run with, and the schema of the file.

In: a configuration file and the environment. Out: YAML of every setting with its value, secrets left out; or JSON
Schema. Nothing is connected to. Exit 0; 2 with every fault when the configuration is wrong.
"""

import json
from typing import Any

import typer
import yaml

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.streams.settings.alerting import public
from underhost.streams.settings.model import Settings


def print_settings(where: Topics) -> None:
    """The settings that file, environment and flags make, defaults included."""
    settings = settings_of(where)
    # A password is in it only where the environment gave one, and is never shown, nor are whole URLs of webhooks;
    # the rest can be fed back.
    tree = settings.model_dump(mode="json", by_alias=True, exclude={"vsphere": {"password"}})
    for hook in tree["alerting"]["webhooks"]:
        hook["url"] = public(hook["url"])
    tree["alerting"]["alertmanagers"] = [_nameless(url) for url in tree["alerting"]["alertmanagers"]]
    ordered = {"apiVersion": tree.pop("apiVersion"), "kind": tree.pop("kind"), **_without_nothing(tree)}
    typer.echo(yaml.safe_dump(ordered, sort_keys=False, allow_unicode=True), nl=False)


def print_schema() -> None:
    """The JSON Schema of the configuration file."""
    typer.echo(json.dumps(Settings.model_json_schema(by_alias=True), indent=2, ensure_ascii=False))


def _nameless(url: str) -> str:
    """Without user and password."""
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    return f"{scheme}://{place.rpartition('@')[2]}{slash}{path}"


def _without_nothing(tree: dict[str, Any]) -> dict[str, Any]:
    """The settings that have a value: absent means the same as null."""
    return {
        key: _without_nothing(value) if isinstance(value, dict) else value
        for key, value in tree.items()
        if value is not None
    }
