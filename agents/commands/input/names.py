"""Names of nodes, pods and hosts for a shell's completion, out of the site that the command line is about.

In: the parsed part of a command line. Out: names, read where the command would read them: from the files, the cluster
or the worker that the line names. A completion never fails and never waits long: then it offers nothing.
"""

from typing import TYPE_CHECKING

import typer

from underhost.agents.commands.input.origin import From
from underhost.schemas.errors import UnderhostError

if TYPE_CHECKING:
    from underhost.streams.files.objects import Objects


def nodes(context: typer.Context) -> list[str]:
    """All nodes."""
    return list(_state(context).nodes)


def pods(context: typer.Context) -> list[str]:
    """`namespace/name`; of the namespace that `-n` names, the names."""
    namespace = context.params.get("namespace")
    found = _state(context).pods
    return [one.partition("/")[2] for one in found if one.startswith(f"{namespace}/")] if namespace else list(found)


def namespaces(context: typer.Context) -> list[str]:
    """Those of the pods, and those that are read as objects."""
    found = _state(context)
    return list({*found.namespaces, *(name.partition("/")[0] for name in found.pods)})


def hosts(context: typer.Context) -> list[str]:
    """`host/NAME` of the inventory."""
    found = _state(context).inventory
    return [] if found is None else [f"host/{one.name}" for one in found.hosts]


def targets(context: typer.Context) -> list[str]:
    """What can fail: `node/NAME`, `host/NAME`."""
    return [*(f"node/{name}" for name in nodes(context)), *hosts(context)]


def _state(context: typer.Context) -> "Objects":
    """What the command would read. Nothing where it would fail."""
    from underhost.agents.commands.input.sources import read  # heavy: only this completion needs it
    from underhost.streams.files.objects import Objects
    from underhost.streams.files.reader import STDIN

    given = From(**{name: context.params.get(name) for name in From._fields})
    if STDIN in (given.files or ()):
        return Objects()  # what comes there is the command's own
    try:
        return read(given).objects
    except UnderhostError:
        return Objects()
