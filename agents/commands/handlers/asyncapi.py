"""`underhost topics -o asyncapi`: the interface to the topics as an AsyncAPI document; nothing is connected to."""

from importlib.metadata import version

import yaml

from underhost.schemas import asyncapi
from underhost.schemas.errors import InputError


def asyncapi_text(name: str | None = None) -> str:
    """The AsyncAPI document of all topics, as YAML; nothing is connected to."""
    if name is not None:
        raise InputError("--output asyncapi: the document is of all topics, so no NAME is expected")
    return yaml.safe_dump(asyncapi.document(version("underhost")), sort_keys=False, allow_unicode=True, width=120)
