"""The settings of every command that reads the topics.

In: `--config`, `--bootstrap-servers`, `--embedded`. Out: Settings.
"""

import logging
from typing import Any

from underhost.agents.commands.input.options import Topics
from underhost.schemas.errors import InputError
from underhost.streams.settings.load import load
from underhost.streams.settings.model import Settings


def settings_of(given: Topics, **groups: Any) -> Settings:
    """Settings of file, environment and these flags. Raises InputError that names every fault.

    An embedded log that is named by flag wins over bootstrap servers from file or environment.
    """
    config, bootstrap_servers, embedded = given
    if bootstrap_servers and embedded:
        raise InputError("--bootstrap-servers and --embedded: only one of them can be where the topics are")
    logging.getLogger("aiokafka").setLevel(logging.CRITICAL)  # what it cannot reach is said by us, in one line
    kafka: dict[str, Any] = {}
    if bootstrap_servers:
        kafka["bootstrap_servers"] = bootstrap_servers
    if embedded:
        kafka |= {"embedded": str(embedded), "bootstrap_servers": None}
    return load(config, {"kafka": kafka, **groups} if kafka else dict(groups))
