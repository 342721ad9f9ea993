"""The options that several commands share, each spelled once, and how a command takes a group of them.

In: a command's function that has a group (`From`, `Among`, `Judged`, `Answered`, `Topics`) among its parameters. Out:
the function as typer wants it, with the options of the group in its place.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_type_hints

import typer

from underhost.agents.commands.input import names, values
from underhost.agents.commands.output import help as panels
from underhost.agents.commands.output.formats import FORMATS, NEVER, TABLE
from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean
from underhost.schemas.severities import QUORUM, SEVERITIES


def one_of(option: str, value: str, allowed: Sequence[str]) -> None:
    """Raises InputError unless the value is one of these."""
    if value not in allowed:
        known = ", ".join(allowed)
        raise InputError(f"{option} {value}: one of {known} is expected{did_you_mean(value, allowed)}")


def output_option(formats: Sequence[str]) -> Any:
    """`-o`, of these formats."""
    return typer.Option(
        "--output",
        "-o",
        metavar="FORMAT",
        help="|".join(formats),
        autocompletion=values.one_of(formats),
        rich_help_panel=panels.ANSWER,
    )


def fail_on_option(what: str) -> Any:
    """`--fail-on`, with the severities in their order."""
    return typer.Option(
        "--fail-on",
        metavar="SEVERITY",
        help=f"Exit 1 for {what} of this severity or a graver one. From the gravest: {', '.join(SEVERITIES)}; {NEVER}.",
        autocompletion=values.severities,
        rich_help_panel=panels.ANSWER,
    )


class Among(NamedTuple):
    """Which pods are meant (`offline.Scope`)."""

    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace",
            "-n",
            metavar="NAME",
            help="Only pods of this namespace.",
            autocompletion=names.namespaces,
            rich_help_panel=panels.PODS,
        ),
    ] = None
    all_namespaces: Annotated[
        bool,
        typer.Option(
            "--all-namespaces", "-A", help="Pods of all namespaces: the default.", rich_help_panel=panels.PODS
        ),
    ] = False
    selector: Annotated[
        str | None,
        typer.Option(
            "--selector",
            "-l",
            metavar="LABELS",
            help="Only pods with these labels (kubectl's syntax).",
            rich_help_panel=panels.PODS,
        ),
    ] = None


HostKeyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--host-key",
        metavar="KEY",
        help="Node label that means the host (repeatable: its aliases).",
        rich_help_panel=panels.JUDGING,
    ),
]


class Judged(NamedTuple):
    """How placements are judged, in the place of what a worker or a configuration says."""

    host_key: HostKeyOption = None
    physical_host: Annotated[
        str | None,
        typer.Option(
            "--physical-host",
            metavar="HOW",
            help="preferred|required: avoid, or refuse, a shared host.",
            autocompletion=values.one_of(("preferred", "required")),
            rich_help_panel=panels.JUDGING,
        ),
    ] = None
    scheduler_name: Annotated[
        list[str] | None,
        typer.Option(
            "--scheduler-name",
            metavar="NAME",
            help="Place pods of this scheduler (repeatable).",
            rich_help_panel=panels.JUDGING,
        ),
    ] = None


class Answered(NamedTuple):
    """How a plan's answer is printed, and what of it is exit code 1."""

    output: Annotated[str, output_option(FORMATS)] = TABLE
    fail_on: Annotated[str, fail_on_option("a new finding")] = QUORUM

    def check(self) -> None:
        """Refuse what could not be printed before anything is read. Raises InputError."""
        one_of("--output", self.output, FORMATS)
        one_of("--fail-on", self.fail_on, (*SEVERITIES, NEVER))


NoHaOption = Annotated[bool, typer.Option("--no-ha", help="No VM of a failed host is restarted: its nodes are lost.")]
ConfigOption = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Configuration file (underhost config schema).", rich_help_panel=panels.TOPICS
    ),
]
ServersOption = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-servers",
        metavar="HOST:PORT,…",
        help="Apache Kafka; absent: the embedded log.",
        rich_help_panel=panels.TOPICS,
    ),
]
EmbeddedOption = Annotated[
    Path | None,
    typer.Option(
        "--embedded", metavar="FILE", help="File of the embedded log (underhost.db).", rich_help_panel=panels.TOPICS
    ),
]


class Topics(NamedTuple):
    """Where the topics are (`connection.settings_of`)."""

    config: ConfigOption = None
    bootstrap_servers: ServersOption = None
    embedded: EmbeddedOption = None


FailOnOption = Annotated[str, fail_on_option("a finding")]
WatchOption = Annotated[
    bool,
    typer.Option(
        "--watch",
        "-w",
        help="Look again every 2 seconds; print when it is different.",
        show_default=False,
        rich_help_panel=panels.ANSWER,
    ),
]
FollowOption = Annotated[
    bool,
    typer.Option(
        "--follow",
        "--watch",
        "-w",
        help="Go on with what comes, until Ctrl-C.",
        show_default=False,
        rich_help_panel=panels.ANSWER,
    ),
]


def given(flags: dict[str, Any]) -> dict[str, Any]:
    """Settings without the flags that were not given; paths as text, as a file would have them."""
    return {
        name: [str(item) for item in value]
        if isinstance(value, list)
        else str(value)
        if isinstance(value, Path)
        else value
        for name, value in flags.items()
        if value is not None
    }


def grouped(function: Callable[..., None]) -> Callable[..., None]:
    """The function with every parameter that is a group of options replaced by these, in their order."""
    signature = inspect.signature(function)
    shown: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        group = parameter.annotation
        if not hasattr(group, "_fields"):
            shown.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
            continue
        groups[parameter.name] = group
        hints = get_type_hints(group, include_extras=True)
        shown += [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=group._field_defaults[name], annotation=hints[name]
            )
            for name in group._fields
        ]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        made = {name: group(**{field: given.pop(field) for field in group._fields}) for name, group in groups.items()}
        function(**given, **made)

    command.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return command
