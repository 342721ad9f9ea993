"""What every command that judges a state does first: the snapshot, the evaluator's options, the pods that are meant.

In: the groups of `options.py`. Out: a snapshot and the evaluator's options.
"""

import gc
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

import typer

from underhost.agents.commands.input.memory import kept
from underhost.agents.commands.input.options import Among, Judged, one_of
from underhost.agents.commands.input.origin import From
from underhost.agents.commands.input.sources import read
from underhost.agents.commands.input.values import label_key
from underhost.agents.commands.output import errors, progress
from underhost.agents.manifests.written import as_written
from underhost.agents.schedule.progress import listen
from underhost.agents.site import selectors
from underhost.agents.site.selectors import matches
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.site.terms import labels
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.errors import BadObjectError, InputError, UnderhostError
from underhost.schemas.kubernetes import is_label_value
from underhost.schemas.near import did_you_mean
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import STDIN

if TYPE_CHECKING:
    from underhost.agents.compiled.model import Model

LOOK_AGAIN = 2.0
"""Seconds between two looks of `--watch`."""


@dataclass
class Site:
    """What was read. `objects` tells which file an object is from."""

    snapshot: Snapshot
    options: Options
    objects: Objects

    @cached_property
    def model(self) -> "Model":
        """Compiled once for all that a command asks. Raises BadObjectError."""
        from underhost.agents.compiled.model import compile  # numpy: `underhost inventory` goes without

        return compile(self.snapshot, self.options)


_last: list[Site] = []  # held, so that it is not taken apart pod by pod when the command returns: the process ends then


def read_site(source: From, judged: Judged, *, manifests: bool, drift: bool = False, notes: bool = True) -> Site:
    """Read the state; what was read otherwise than it may look is said on standard error, once.

    A worker, or a configuration, says how its site is judged; the options come before it. Raises InputError with every
    fault, each naming file, object and field; BackendError.
    """
    if judged.physical_host is not None:
        one_of("--physical-host", judged.physical_host, ("preferred", "required"))
    for key in judged.host_key or ():
        label_key("--host-key", key)
    with kept():
        found = read(source)
        objects = found.objects
        listen(progress.say)
        progress.say(f"judging {len(objects.pods):,} pods on {len(objects.nodes):,} nodes")
        with faults_named(objects):
            snapshot, said = snapshot_of(objects, found.site, manifests=manifests, joining=found.joining)
    for note in said if notes else ():
        errors.note(note)
    _refuse_nothing(objects)
    defaults = Options()
    options = Options(
        host_keys=found.joining.host_keys(judged.host_key or found.host_keys or defaults.host_keys),
        physical_host=judged.physical_host or found.physical_host or defaults.physical_host,
        cross_namespace=found.cross_namespace or defaults.cross_namespace,
        drift=drift,
        scheduler_names=tuple(judged.scheduler_name) if judged.scheduler_name else defaults.scheduler_names,
    )
    site = Site(snapshot, options, objects)
    _last[:] = [site]
    return site


def _refuse_nothing(objects: Objects) -> None:
    """Nothing to judge is no good news. A budget alone can be judged, too: lint looks at it. Raises InputError."""
    if not (objects.nodes or objects.pods or objects.workloads or objects.others or objects.budgets):
        raise InputError("the input holds neither nodes, pods nor workloads: there is nothing to judge")


def read_sites(source: From, judged: Judged, *, manifests: bool, watch: bool, drift: bool = False) -> Iterator[Site]:
    """The site as `read_site` reads it; with `watch` again and again, until Ctrl-C.

    What fails later is said, and tried again. Raises as `read_site`.
    """
    if watch and STDIN in (source.files or ()):
        raise InputError("--watch: standard input can be read only once")
    yield read_site(source, judged, manifests=manifests, drift=drift)
    while watch:
        time.sleep(LOOK_AGAIN)
        gc.unfreeze()
        gc.collect()  # what an earlier look made
        try:
            found = read_site(source, judged, manifests=manifests, drift=drift, notes=False)
        except UnderhostError as error:
            errors.note(f"{error}; looking again")
        else:
            yield found


def say_changed(output: str) -> None:
    """Between two answers of a watch, for people."""
    if output in ("table", "wide"):
        typer.echo(f"\nChanged at {datetime.now(UTC):%H:%M:%SZ}:")


@contextmanager
def faults_named(*read: Objects) -> Iterator[None]:
    """A fault that the engine finds in an object is raised with the name of its file; the last that holds it counts."""
    try:
        yield
    except BadObjectError as fault:
        for objects in reversed(read):
            named = as_written(objects.labelled(fault), objects.pods, objects.others)
            if objects.holds(named.object):
                raise objects.within(named) from None
        raise read[0].within(fault) from None


class Scope:
    """Which pods `-n`, `-A` and `-l` mean. Raises InputError for a selector that kubectl would refuse."""

    def __init__(self, snapshot: Snapshot, among: Among) -> None:
        namespace, selector = among.namespace, among.selector
        if namespace is not None and among.all_namespaces:
            raise InputError("--namespace and --all-namespaces: only one of them can be meant")
        self.limited = namespace is not None or selector is not None
        self.namespace = namespace
        self._snapshot = snapshot
        self._requirements = () if selector is None else parse_selector(selector)
        if namespace is not None:
            _look_for(namespace, snapshot)

    def has(self, pod: str) -> bool:
        """Whether a pod (`namespace/name`) is meant; one that the input lacks is judged by its namespace alone."""
        if self.namespace is not None and pod.partition("/")[0] != self.namespace:
            return False
        found = self._snapshot.pods.get(pod)
        if not self._requirements or found is None:
            return not self._requirements
        return matches(self._requirements, labels(bytes(found.metadata.labels)))


def _look_for(namespace: str, snapshot: Snapshot) -> None:
    """Say where a namespace has no pod. Raises InputError where it is not there at all."""
    spaces = {name.partition("/")[0] for name in snapshot.pods}
    if namespace in spaces:
        return
    others = (*snapshot.services, *snapshot.budgets)
    spaces.update(snapshot.namespaces, (name.partition("/")[0] for name in others))
    spaces.update(owner.metadata.namespace for owner in snapshot.workloads.values())
    if namespace not in spaces:
        raise InputError(f"namespace {namespace} is not there{did_you_mean(namespace, spaces)}")
    errors.note(f"no pod in namespace {namespace}")


def full_name(name: str, namespace: str | None) -> str:
    """`namespace/name` of a POD argument. Raises InputError for a bare name without a namespace."""
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
    name, value = r"(?P<key>[A-Za-z0-9][-A-Za-z0-9_./]*)", r"(?P<values>[-A-Za-z0-9_.]*)"
    forms = (
        (rf"{name}\s+in\s*\((?P<values>[^()]*)\)", selectors.IN),
        (rf"{name}\s+notin\s*\((?P<values>[^()]*)\)", selectors.NOT_IN),
        (rf"{name}\s*==?\s*{value}", selectors.IN),
        (rf"{name}\s*!=\s*{value}", selectors.NOT_IN),
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
                label_key(f"--selector {text}:", met["key"])
                _check_values(text, listed)
                found.append((met["key"], operator, listed))
                break
        else:
            known = "key=value, key!=value, key in (a,b), key notin (a,b), key, !key"
            raise InputError(f"--selector {text}: {part.strip()!r} is none of kubectl's forms: {known}")
    return tuple(found)


def _check_values(selector: str, values: Sequence[str]) -> None:
    """Raises InputError for what no label can have: it would only match nothing."""
    for value in values:
        if not is_label_value(value):
            raise InputError(f"--selector {selector}: {value!r} is not the value of a label")
