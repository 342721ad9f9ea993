"""The options of every command that judges a state, and the snapshot they make.

In: where the state is (`sources.py`), `--host-key`, `--physical-host`. Out: a snapshot and the evaluator's options.
Used by check, explain, schedule, lint and the what-if commands; imports nothing heavy, so that help pages stay quick.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

if TYPE_CHECKING:
    from underhost.agents.commands.sources import From
    from underhost.agents.engine.snapshot import Options, Snapshot
    from underhost.streams.files import Objects

FilesOption = Annotated[
    list[str] | None,
    typer.Option("--filename", "-f", metavar="FILE", help="Dump or manifest, directory, or - for stdin (repeatable)."),
]
InventoryOption = Annotated[
    str | None, typer.Option("--inventory", metavar="FILE", help="The vSphere side (underhost inventory writes it).")
]
NamespaceOption = Annotated[str | None, typer.Option("--namespace", "-n", help="Only pods of this namespace.")]
AllOption = Annotated[bool, typer.Option("--all-namespaces", "-A", help="Pods of all namespaces: the default.")]
SelectorOption = Annotated[
    str | None,
    typer.Option("--selector", "-l", metavar="LABELS", help="Only pods with these labels (kubectl's syntax)."),
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option("--kubeconfig", metavar="FILE", help="A live cluster's; absent, kubectl's."),
]
ContextOption = Annotated[str | None, typer.Option("--context", metavar="NAME", help="The kubeconfig's context.")]
ServerOption = Annotated[
    str | None, typer.Option("--server", metavar="URL", help="A worker of the running pipeline: its picture is judged.")
]
SiteOption = Annotated[str | None, typer.Option("--site", metavar="NAME", help="Which of the worker's sites.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="As run has it: its cluster and its vCenter are read.")
]
HostKeyOption = Annotated[
    list[str] | None,
    typer.Option("--host-key", metavar="KEY", help="Node label that means the ESXi host (repeatable: its aliases)."),
]
PhysicalHostOption = Annotated[
    str | None,
    typer.Option("--physical-host", help="preferred|required: avoid, or refuse, a shared host."),
]
SchedulerOption = Annotated[
    list[str] | None,
    typer.Option("--scheduler-name", metavar="NAME", help="Place pods of this scheduler (repeatable)."),
]


class Site(NamedTuple):
    """What was read. `objects` tells which file an object is from."""

    snapshot: "Snapshot"
    options: "Options"
    objects: "Objects"


def read_site(
    source: "From",
    *,
    manifests: bool,
    host_keys: list[str] | None = None,
    physical_host: str | None = None,
    scheduler_names: list[str] | None = None,
    drift: bool = False,
) -> Site:
    """Read the state; what was read otherwise than it may look is said on standard error, once.

    A worker, or a configuration, says how its site is judged; the options come before it. Raises InputError with every
    fault, each naming file, object and field; BackendError.
    """
    from underhost.agents.commands.plain import one_of
    from underhost.agents.commands.sources import read
    from underhost.agents.engine.snapshot import Options
    from underhost.agents.load import snapshot_of

    if physical_host is not None:
        one_of("--physical-host", physical_host, ("preferred", "required"))
    found = read(source)
    objects = found.objects
    with faults_named(objects):
        snapshot, notes = snapshot_of(objects, found.site, manifests=manifests)
    gc.freeze()  # what was read lives as long as the command: no collection need look at it again
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    defaults = Options()
    options = Options(
        host_keys=tuple(host_keys) if host_keys else found.host_keys or defaults.host_keys,
        physical_host=physical_host or found.physical_host or defaults.physical_host,
        drift=drift,
        scheduler_names=tuple(scheduler_names) if scheduler_names else defaults.scheduler_names,
    )
    return Site(snapshot, options, objects)


@contextmanager
def faults_named(*read: "Objects") -> Iterator[None]:
    """A fault that the engine finds in an object is raised with the name of its file; the last that holds it counts."""
    from underhost.schemas.errors import BadObjectError

    try:
        yield
    except BadObjectError as fault:
        label = fault.object.replace(" ", "/", 1)
        holding = [objects for objects in read if objects.holds(label)]
        raise (holding or read)[-1 if holding else 0].within(fault) from None


class Scope:
    """Which pods `-n`, `-A` and `-l` mean. Raises InputError for a selector that kubectl would refuse."""

    def __init__(self, snapshot: "Snapshot", namespace: str | None, everywhere: bool, selector: str | None) -> None:
        from underhost.agents.engine.terms import labels
        from underhost.schemas.errors import InputError

        if namespace is not None and everywhere:
            raise InputError("--namespace and --all-namespaces: only one of them can be meant")
        self.limited = namespace is not None or selector is not None
        self.namespace = namespace
        self._snapshot, self._labels = snapshot, labels
        self._requirements = () if selector is None else parse_selector(selector)

    def has(self, pod: str) -> bool:
        """Whether a pod (`namespace/name`) is meant; one that the input lacks is judged by its namespace alone."""
        from underhost.agents.engine.selectors import matches

        if self.namespace is not None and pod.partition("/")[0] != self.namespace:
            return False
        found = self._snapshot.pods.get(pod)
        if not self._requirements or found is None:
            return not self._requirements
        return matches(self._requirements, self._labels(bytes(found.metadata.labels)))

    def pod(self, name: str) -> str:
        """The full name of a POD argument. Raises InputError for a bare name without `-n`."""
        return full_name(name, self.namespace)


def full_name(name: str, namespace: str | None) -> str:
    """`namespace/name` of a POD argument. Raises InputError for a bare name without a namespace."""
    from underhost.schemas.errors import InputError

    given, slash, rest = name.removeprefix("pod/").rpartition("/")
    if slash:
        return f"{given}/{rest}"
    if namespace is None:
        raise InputError(f"pod {name}: give its namespace, as NAMESPACE/{name} or with -n")
    return f"{namespace}/{rest}"


def parse_selector(text: str) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """The requirements of a selector as kubectl's `-l` takes it: `a=b,c!=d,e in (f,g),h notin (i),j,!k`.

    Raises InputError.
    """
    import re

    from underhost.agents.engine import selectors
    from underhost.schemas.errors import InputError

    name = r"(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)"
    forms = (
        (rf"{name}\s+in\s*\((?P<values>[^()]*)\)", selectors.IN),
        (rf"{name}\s+notin\s*\((?P<values>[^()]*)\)", selectors.NOT_IN),
        (rf"{name}\s*==?\s*(?P<values>[-A-Za-z0-9_.]*)", selectors.IN),
        (rf"{name}\s*!=\s*(?P<values>[-A-Za-z0-9_.]*)", selectors.NOT_IN),
        (rf"!\s*{name}", selectors.DOES_NOT_EXIST),
        (name, selectors.EXISTS),
    )
    found = []
    for part in re.split(r",(?![^()]*\))", text):
        for form, operator in forms:
            met = re.fullmatch(form, part.strip())
            if met is not None:
                values = met.groupdict().get("values")
                listed = () if values is None else tuple(value.strip() for value in values.split(","))
                found.append((met["key"], operator, listed))
                break
        else:
            raise InputError(f"--selector {text}: {part.strip()!r} is no requirement on labels")
    return tuple(found)
