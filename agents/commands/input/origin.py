"""The options that say where the state is that is judged: files, a live cluster, a worker or a configuration."""

from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.output.help import INPUT

TokenFileOption = Annotated[
    Path | None,
    typer.Option(
        "--token-file", metavar="FILE", help="Holds the token that the worker asks for.", rich_help_panel=INPUT
    ),
]
CaFileOption = Annotated[
    Path | None,
    typer.Option(
        "--ca-file", metavar="FILE", help="Certificates that the worker's is checked against.", rich_help_panel=INPUT
    ),
]


class Worker(NamedTuple):
    """A worker that is asked what it has, in the topics' place (`server.py` asks it)."""

    server: Annotated[
        str | None,
        typer.Option("--server", metavar="URL", help="Ask a worker, instead of the topics.", rich_help_panel=INPUT),
    ] = None
    token_file: TokenFileOption = None
    ca_file: CaFileOption = None


class From(NamedTuple):
    """Where the state is that is judged (`sources.py` reads it)."""

    files: Annotated[
        list[str] | None,
        typer.Option(
            "--filename",
            "-f",
            metavar="FILE",
            help="Dump or manifest, directory, or - for stdin (repeatable).",
            rich_help_panel=INPUT,
        ),
    ] = None
    inventory: Annotated[
        str | None,
        typer.Option(
            "--inventory",
            metavar="FILE",
            help="The vSphere side (underhost inventory writes it).",
            rich_help_panel=INPUT,
        ),
    ] = None
    host_label: Annotated[
        str | None,
        typer.Option(
            "--host-label",
            metavar="KEY",
            help="Node label that names the host, in the place of vSphere.",
            rich_help_panel=INPUT,
        ),
    ] = None
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig", metavar="FILE", help="A live cluster's; absent, kubectl's.", rich_help_panel=INPUT
        ),
    ] = None
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            metavar="NAME",
            help="The kubeconfig's context.",
            autocompletion=values.contexts,
            rich_help_panel=INPUT,
        ),
    ] = None
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="URL",
            help="A worker of the running pipeline: its picture is judged.",
            rich_help_panel=INPUT,
        ),
    ] = None
    token_file: TokenFileOption = None
    ca_file: CaFileOption = None
    site: Annotated[
        str | None, typer.Option("--site", metavar="NAME", help="Which of the worker's sites.", rich_help_panel=INPUT)
    ] = None
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A worker's configuration: its cluster and its vCenter are read.",
            rich_help_panel=INPUT,
        ),
    ] = None
