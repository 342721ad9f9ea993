"""The values that options and arguments offer to a shell's completion, where we know them all; and the
check of those that are keys of labels.

In: the parsed part of a command line. Out: values; the shell's request chooses those that begin right. Names out of a
site are offered by `names.py`.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import typer

from underhost.schemas.errors import InputError
from underhost.schemas.severities import SEVERITIES

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
    return [*SEVERITIES, "never"]


def contexts(context: typer.Context) -> list[str]:
    """Of the kubeconfig that the line, or the environment, names."""
    import yaml  # 20 ms, which only this needs

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


def topics(_: typer.Context) -> list[str]:
    """All topics, by their short names."""
    from underhost.schemas.topics import TOPICS  # heavy: only this completion needs it

    return [topic.short for topic in TOPICS]


def scenarios(_: typer.Context) -> list[str]:
    """The simulated sites."""
    from underhost.streams.simulated.scenarios import SCENARIOS  # heavy: only this completion needs it

    return sorted(SCENARIOS)


def roles() -> Iterable[str]:
    """Of `--agents`."""
    from underhost.agents.pipeline.roles import ALL  # heavy: only this completion needs it

    return ALL


def label_key(option: str, value: str) -> None:
    """Raises InputError unless the API server takes the value as the key of a label."""
    from underhost.schemas.kubernetes import is_label_key  # heavy: only what takes a key needs it

    if not is_label_key(value):
        raise InputError(f"{option} {value}: not the key of a label: [PREFIX/]NAME is expected")
