"""`underhost run`: the pipeline, until SIGTERM or Ctrl-C.

In: a configuration file, environment and flags. Out: a running worker; nothing is printed, what happens is logged. Exit
codes: 0 after a signal, 2 for a bad configuration, 3 where a backend is unreachable or refuses before it has answered
once.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from underhost.agents.commands.input import values
from underhost.agents.commands.input.options import Topics, grouped
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output import progress
from underhost.agents.commands.output.errors import leave

if TYPE_CHECKING:
    import asyncio
    import threading

    from underhost.schemas.errors import UnderhostError
    from underhost.streams.settings.model import Settings

END_WITHIN = 9.0
"""Seconds from a signal to the end of the process, whatever hangs."""
LEAVE_WITHIN = 2.0
"""Seconds that the event loop may take to end after the worker has failed."""
SINKS = {"labels": "labels", "bindings": "bindings", "drs-rules": "drs_rules", "events": "events"}

AgentsOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Only these: kubernetes, vsphere, evaluator, labeller, binder, drs, evictor, events, alerts, web.",
        autocompletion=values.listed(values.roles),
    ),
]
EnableOption = Annotated[
    str | None,
    typer.Option(
        metavar="A,B",
        help="Sinks that may write: labels, bindings, drs-rules, events.",
        autocompletion=values.listed(SINKS.keys),
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""

    @app.command(short_help="Run the pipeline: watch, evaluate, act.")
    @grouped
    def run(
        *,
        where: Topics,
        site: Annotated[str | None, typer.Option(metavar="NAME", help="The site's name.")] = None,
        kubeconfig: Annotated[Path | None, typer.Option(metavar="FILE", help="Kubeconfig of the cluster.")] = None,
        context: Annotated[
            str | None, typer.Option(metavar="NAME", help="Context of the kubeconfig.", autocompletion=values.contexts)
        ] = None,
        files: Annotated[
            list[Path] | None, typer.Option("-f", "--filename", metavar="FILE", help="Dump, in the cluster's place.")
        ] = None,
        vsphere_url: Annotated[str | None, typer.Option(metavar="URL", help="vCenter: https://HOST/sdk.")] = None,
        vsphere_username: Annotated[str | None, typer.Option(metavar="NAME", help="vCenter user.")] = None,
        vsphere_password_file: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Holds the password; read again when it changes.")
        ] = None,
        vsphere_ca_file: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Certificates that vCenter's is checked against.")
        ] = None,
        vsphere_insecure: Annotated[
            bool | None, typer.Option("--vsphere-insecure", help="Do not check vCenter's certificate.")
        ] = None,
        inventory: Annotated[
            Path | None, typer.Option(metavar="FILE", help="Inventory file, in the vCenter's place.")
        ] = None,
        agents: AgentsOption = None,
        enable: EnableOption = None,
        listen: Annotated[
            str | None,
            typer.Option("--listen", "--web", metavar="HOST:PORT", help="Page, API, metrics (127.0.0.1:8080)."),
        ] = None,
        verbose: Annotated[
            int, typer.Option("-v", "--verbose", count=True, show_default=False, help="Log more; twice for all.")
        ] = 0,
    ) -> None:
        """Run the pipeline: watch, evaluate, act (dry run unless a sink is enabled by name)."""
        groups: dict[str, dict[str, Any]] = {
            "kubernetes": {"kubeconfig": kubeconfig, "context": context, "files": files or None},
            "vsphere": {
                "url": vsphere_url,
                "username": vsphere_username,
                "password_file": vsphere_password_file,
                "ca_file": vsphere_ca_file,
                "insecure": vsphere_insecure,
                "inventory": inventory,
            },
            "sinks": {name: True for name in enabled(enable)},
            "web": {"listen": listen},
        }
        given: dict[str, Any] = {name: _given(group) for name, group in groups.items() if _given(group)}
        if site is not None:
            given["site"] = site
        _run(settings_of(where, **given), agents, verbose)


def enabled(names: str | None) -> list[str]:
    """The settings' names of the sinks that `--enable` lists. Raises InputError for an unknown one."""
    from underhost.schemas.errors import InputError
    from underhost.schemas.near import did_you_mean

    listed = [name.strip() for name in (names or "").split(",") if name.strip()]
    unknown = [name for name in listed if name not in SINKS]
    if unknown:
        raise InputError(
            *(
                f"--enable: no sink {name!r}; there is: {', '.join(SINKS)}{did_you_mean(name, SINKS)}"
                for name in unknown
            )
        )
    return [SINKS[name] for name in listed]


def _given(group: dict[str, Any]) -> dict[str, Any]:
    """Without the flags that were not given; paths as text, as a file would have them."""
    return {
        name: [str(item) for item in value]
        if isinstance(value, list)
        else str(value)
        if isinstance(value, Path)
        else value
        for name, value in group.items()
        if value is not None
    }


async def _end_anyway(stop: "asyncio.Event") -> None:
    """A thread of a library that hangs in a dead connection would keep the process: a told end is one within 10 s.

    What is left undone then is what a kill leaves undone: the next start does it.
    """
    import os
    import threading

    from underhost.agents.pipeline import logs

    await stop.wait()
    logs.hush()
    timer = threading.Timer(END_WITHIN, os._exit, [0])
    timer.daemon = True
    timer.start()


def _leave_anyway(error: "UnderhostError") -> "threading.Timer":
    """What the worker failed of is said, and the process ended, though a task or thread of a library goes on."""
    import threading

    timer = threading.Timer(LEAVE_WITHIN, leave, [error])
    timer.daemon = True
    timer.start()
    return timer


def _say_waiting(reasons: Mapping[str, str]) -> None:
    """What the start waits for, on a terminal; nothing means that all is ready."""
    from underhost.agents.pipeline import event_loop

    if reasons:
        progress.say("waiting: " + "; ".join(f"{what}: {why}" for what, why in reasons.items()))
    else:
        progress.end()
        event_loop.settle()


def _run(settings: "Settings", agents: str | None, verbosity: int) -> None:
    import asyncio
    import threading

    from underhost.agents.pipeline import event_loop, logs
    from underhost.agents.pipeline.roles import parse_roles
    from underhost.agents.worker import run_worker
    from underhost.schemas.errors import UnderhostError

    names = [name.strip() for name in agents.split(",") if name.strip()] if agents is not None else None
    roles = parse_roles(names)
    progress.say("starting")  # before the log is set up: its lines go above the one that waits
    logs.configure(verbosity)

    leaving: list[threading.Timer] = []

    async def until_stopped() -> None:
        stop = asyncio.Event()
        guard = asyncio.ensure_future(_end_anyway(stop))
        try:
            await run_worker(settings, roles=roles, stop=stop, on_waiting=_say_waiting)
        except UnderhostError as error:
            leaving.append(_leave_anyway(error))
            raise
        finally:
            guard.cancel()

    try:
        event_loop.run(until_stopped())
    finally:
        progress.end()
        for timer in leaving:
            timer.cancel()
