"""The options that say where the state is that is judged: files, a live cluster, a worker or a configuration."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from underhost.agents.commands.input import values


class From(NamedTuple):
    """Where the state is that is judged (`sources.py` reads it)."""

    files: Annotated[
        list[str] | None,
        typer.Option(
            "--filename", "-f", metavar="FILE", help="Dump or manifest, directory, or - for stdin (repeatable)."
        ),
    ] = None
    inventory: Annotated[
        str | None,
        typer.Option("--inventory", metavar="FILE", help="The vSphere side (underhost inventory writes it)."),
    ] = None
    host_label: Annotated[
        str | None,
        typer.Option("--host-label", metavar="KEY", help="Node label that names the host, in the place of vSphere."),
    ] = None
    kubeconfig: Annotated[
        Path | None, typer.Option("--kubeconfig", metavar="FILE", help="A live cluster's; absent, kubectl's.")
    ] = None
    context: Annotated[
        str | None,
        typer.Option("--context", metavar="NAME", help="The kubeconfig's context.", autocompletion=values.contexts),
    ] = None
    server: Annotated[
        str | None,
        typer.Option("--server", metavar="URL", help="A worker of the running pipeline: its picture is judged."),
    ] = None
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="Holds the token that the worker asks for.")
    ] = None
    ca_file: Annotated[
        Path | None,
        typer.Option("--ca-file", metavar="FILE", help="Certificates that the worker's is checked against."),
    ] = None
    site: Annotated[str | None, typer.Option("--site", metavar="NAME", help="Which of the worker's sites.")] = None
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="As run has it: its cluster and its vCenter are read."),
    ] = None
