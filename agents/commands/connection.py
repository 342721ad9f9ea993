"""The options by which every command that reads the topics is told where they are, and the settings they make.

In: `--config`, `--bootstrap-servers`, `--embedded`. Out: Settings. Used by the operators' commands; imports nothing
heavy, so that help pages stay quick.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from underhost.streams.settings import Settings

ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Configuration file (underhost config schema).")
]
ServersOption = Annotated[
    str | None,
    typer.Option("--bootstrap-servers", metavar="HOST:PORT,…", help="Apache Kafka; absent: the embedded log."),
]
EmbeddedOption = Annotated[
    Path | None, typer.Option("--embedded", metavar="FILE", help="File of the embedded log (underhost.db).")
]


def settings_of(
    config: Path | None, bootstrap_servers: str | None, embedded: Path | None, **groups: dict[str, Any]
) -> "Settings":
    """Settings of file, environment and these flags. Raises InputError that names every fault.

    An embedded log that is named by flag wins over bootstrap servers from file or environment.
    """
    from underhost.schemas.errors import InputError
    from underhost.streams.settings import load

    if bootstrap_servers and embedded:
        raise InputError("--bootstrap-servers and --embedded: only one of them can be where the topics are")
    kafka: dict[str, Any] = {}
    if bootstrap_servers:
        kafka["bootstrap_servers"] = bootstrap_servers
    if embedded:
        kafka |= {"embedded": str(embedded), "bootstrap_servers": None}
    return load(config, {"kafka": kafka, **groups} if kafka else dict(groups))
