"""What can stand where the cursor is: the values that options and arguments offer to a shell's completion.

In: the parsed part of a command line. Out: values; the shell's request chooses those that begin right. Names of nodes,
pods and hosts are read where the command would read them: from the files, the cluster or the worker that the line
names. A completion never fails and never waits long: then it offers nothing.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from underhost.streams.files.reader import Objects

Offer = Callable[[typer.Context], list[str]]


def one_of(values: Sequence[str]) -> Offer:
    """These and no others."""

    def offer(_: typer.Context) -> list[str]:
        return list(values)

    return offer


def listed(values: Callable[[], Iterable[str]]) -> Callable[[typer.Context, str], list[str]]:
    """Some of these with commas between them, each once."""

    def offer(_: typer.Context, incomplete: str) -> list[str]:
        before, comma, _begun = incomplete.rpartition(",")
        taken = before.split(",")
        return [f"{before}{comma}{value}" for value in values() if value not in taken]

    return offer


def severities(_: typer.Context) -> list[str]:
    """Of `--fail-on`."""
    from underhost.schemas.severities import SEVERITIES

    return [*SEVERITIES, "never"]


def contexts(context: typer.Context) -> list[str]:
    """Of the kubeconfig that the line, or the environment, names."""
    import os
    from pathlib import Path

    import yaml

    named = context.params.get("kubeconfig")
    files = [str(named)] if named else os.environ.get("KUBECONFIG", str(Path("~/.kube/config"))).split(os.pathsep)
    found = []
    for file in files:
        try:
            tree = yaml.safe_load(Path(file).expanduser().read_text(encoding="utf-8"))
            found += [str(one["name"]) for one in tree["contexts"]]
        except (OSError, UnicodeDecodeError, yaml.YAMLError, TypeError, KeyError):
            continue  # a completion offers what it can
    return found


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
    from underhost.agents.commands.input.options import From
    from underhost.agents.commands.input.sources import read
    from underhost.schemas.errors import UnderhostError
    from underhost.streams.files.reader import STDIN, Objects

    given = From(**{name: context.params.get(name) for name in From._fields})
    if STDIN in (given.files or ()):
        return Objects()  # what comes there is the command's own
    try:
        return read(given).objects
    except UnderhostError:
        return Objects()


def topics(_: typer.Context) -> list[str]:
    """All topics, by their short names."""
    from underhost.schemas.topics import TOPICS

    return [topic.short for topic in TOPICS]


def scenarios(_: typer.Context) -> list[str]:
    """The simulated sites."""
    from underhost.streams.simulated.scenarios import SCENARIOS

    return sorted(SCENARIOS)


def roles() -> Iterable[str]:
    """Of `--agents`."""
    from underhost.agents.pipeline.roles import ALL

    return ALL


def sinks() -> Iterable[str]:
    """Of `--enable`."""
    from underhost.agents.commands.run import SINKS

    return SINKS
