"""What has to hold of a site that has calmed down, whatever has gone wrong before.

In: the pipeline that runs now, the simulated site, and the log. Out: one line for each thing that is not as it has to
be. The truth is the simulated site itself, judged in full by a new evaluator.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar

import msgspec
from support.simulation.operated import OperatedSite
from trust.simulation.memory import MemoryFile
from trust.simulation.town import vm_of

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.pipeline.decide.label_stale import StalePods
from underhost.agents.pipeline.decide.left_vms import LeftVms
from underhost.agents.pipeline.decide.restored import options_of
from underhost.agents.pipeline.run import Pipeline
from underhost.agents.pipeline.tables.node_hosts import NodeHosts
from underhost.agents.planner.plan import planned
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.labels.values import label_values
from underhost.agents.sinks.moves.sink import VAIN
from underhost.agents.sinks.moves.vain import desired_move
from underhost.agents.site.objects import SiteState, read_key
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.commands import MOVE
from underhost.schemas.keys import object_key
from underhost.schemas.kubernetes import encode
from underhost.schemas.records import OPENED, RESOLVED, Action, FindingEvent, NodeHost, Outcome
from underhost.schemas.topics import (
    ACTIONS,
    BY_NAME,
    DEAD_LETTERS,
    NODE_HOSTS,
    OUTCOMES,
    SOURCE_TOPICS,
    VIOLATIONS,
    Topic,
)
from underhost.streams.settings.model import Settings
from underhost.streams.simulated.objects import labels_of
from underhost.streams.simulated.sources import TOPICS_OF
from underhost.streams.watching.records import differs

R = TypeVar("R", bound=msgspec.Struct)
MOST = 5
"""Lines of one kind: what is wrong of many is told of the first."""
_LIFE = ("state", "first_seen", "updated_at", "snapshot", "site")
_CONTENT = tuple(name for name in FindingEvent.__struct_fields__ if name not in _LIFE)


def violations(pipeline: Pipeline, site: OperatedSite, file: MemoryFile, *, contended: bool) -> list[str]:
    """One line for each invariant's breach, at most `MOST` of each.

    Where leases are `contended`, a command may be another worker's to answer, and the rival never answers.
    """
    truth = _truth(site)
    settings = pipeline._state.settings
    records, picture = file.records(), snapshot_of(truth)
    checks = (
        _unready(pipeline),
        _tables_differ(pipeline, truth),
        _findings_differ(settings, picture, records),
        _hosts_differ(picture, records),
        _pods_wait(settings, picture),
        _vms_wait(settings, picture, records),
        _labels_differ(settings, site),
        lives_of_findings(records),
        _order(records),
        _unanswered(records) if not contended else (),
        _dead_letters(records),
    )
    return [line for check in checks for line, _ in zip(check, range(MOST), strict=False)]


Truth = dict[str, dict[str, Any]]
Records = list[tuple[str, bytes | None, bytes | None]]
"""See `MemoryFile.records`."""


def _truth(site: OperatedSite) -> Truth:
    """What the sources would list now: objects by topic and key."""
    found: Truth = {topic.name: {} for topic in SOURCE_TOPICS}
    for name, store in (("kubernetes", site.kubernetes.store), ("vsphere", site.vsphere.store)):
        of = {kind: topic for topic in TOPICS_OF[name] for kind in topic.kinds}
        for change in store.watch()[0]:
            kind, namespace, called = change.key
            if kind in of:
                found[of[kind].name][object_key("town", kind, called, namespace)] = change.value
    return found


def _unready(pipeline: Pipeline) -> Iterator[str]:
    for what, why in pipeline.readiness.unready().items():
        yield f"not ready: {what}: {why}"


def _tables_differ(pipeline: Pipeline, truth: Truth) -> Iterator[str]:
    for name, objects in truth.items():
        topic = BY_NAME[name]
        rows = {key.decode(): value for key, value in pipeline.tables.rows(topic) if b"/listed/" not in key}
        for key in sorted(rows.keys() ^ objects.keys()):
            yield f"table {topic.short}: {key} is {'there but gone' if key in rows else 'missing'}"
        for key in sorted(rows.keys() & objects.keys()):
            if differs(objects[key], rows[key]):
                yield f"table {topic.short}: {key} is {rows[key]!r}, but {encode(objects[key])!r}"


def snapshot_of(truth: Truth) -> Snapshot:
    """The picture of the truth, with the host of each node."""
    state = SiteState("town", SOURCE_TOPICS)
    for name, objects in truth.items():
        for key, value in objects.items():
            state.put(BY_NAME[name], read_key(key.encode()), msgspec.json.decode(encode(value), type=type(value)))
    bare = state.snapshot(vsphere=True, offsets={})
    found = NodeHosts("town", ()).update(bare, "2026-01-01T00:00:00.000Z")
    return replace(bare, node_hosts=found.node_hosts, rivals=found.rivals)


def _newest(records: Records, topic: Topic, record: type[R]) -> dict[str, R]:
    """The live records of a topic by key."""
    rows: dict[str, R] = {}
    for name, key, value in records:
        if name == topic.name and key is not None:
            if value is None:
                rows.pop(key.decode(), None)
            else:
                rows[key.decode()] = msgspec.json.decode(value, type=record)
    return rows


def _hosts_differ(picture: Snapshot, records: Records) -> Iterator[str]:
    found = {row.node: (row.vm, row.host) for row in _newest(records, NODE_HOSTS, NodeHost).values()}
    wanted = {name: (row.vm, row.host) for name, row in picture.node_hosts.items()}
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            yield f"node-hosts: node {name} is on {found.get(name)}, not on {wanted.get(name)}"


def _pods_wait(settings: Settings, picture: Snapshot) -> Iterator[str]:
    """A pod that waits though there is a node for it has been forgotten."""
    for decision in Evaluator(options_of(settings)).decide(picture, {}):
        if decision.node is not None:
            yield f"pod {decision.pod} waits, though it could be on {decision.node}"


def _vms_wait(settings: Settings, picture: Snapshot, records: Records) -> Iterator[str]:
    """A VM that stays where a move would mend something was forgotten: no move was in vain, and DRS is not first."""
    if not settings.sinks.moves or settings.sinks.drs_rules or _moved_in_vain(records):
        return
    options = replace(options_of(settings), scheduler_names=Options().scheduler_names)
    for move in planned(picture, options, RepairTerms(evictions=None)).moves:
        yield f"VM {move.vm} stays on {move.from_}, though its move to {move.to} would mend {', '.join(move.because)}"


def _moved_in_vain(records: Records) -> bool:
    """Whether a move has failed in vCenter, or was undone."""
    for topic, _, value in records:
        if topic == ACTIONS.name and value is not None:
            desired = desired_move(msgspec.json.decode(value, type=Action))
            if desired is not None and (desired.vain or desired.refuse):
                return True
        if topic == OUTCOMES.name and value is not None:
            outcome = msgspec.json.decode(value, type=Outcome)
            if outcome.kind == MOVE and outcome.reason.startswith(VAIN):
                return True
    return False


def _findings_differ(settings: Settings, picture: Snapshot, records: Records) -> Iterator[str]:
    options = options_of(settings)
    report = Evaluator(options).update(picture)
    left = LeftVms("town")
    for topic, _, value in records:
        if topic == OUTCOMES.name and value is not None:
            left.observe(msgspec.json.decode(value, type=Outcome))
    beside = (*StalePods(options).findings(picture), *left.findings(picture, report.findings))
    wanted = {finding.id: finding for finding in (*report.findings, *beside)}
    found = {row.id: row for row in _newest(records, VIOLATIONS, FindingEvent).values()}
    for id_ in sorted(found.keys() ^ wanted.keys()):
        what = found.get(id_) or wanted[id_]
        yield f"finding {id_} is {'open without a cause' if id_ in found else 'missing'}: {what.message}"
    for id_ in sorted(found.keys() & wanted.keys()):
        for name in _CONTENT:
            if getattr(found[id_], name) != getattr(wanted[id_], name):
                yield f"finding {id_}: {name} is {getattr(found[id_], name)!r}, not {getattr(wanted[id_], name)!r}"


def _labels_differ(settings: Settings, site: OperatedSite) -> Iterator[str]:
    values = label_values({ref: host.name for ref, host in site.vsphere.hosts().items()})
    key = settings.host_label.key
    for name, node in sorted(site.kubernetes.nodes().items()):
        wanted, labels = values[vm_of(site, node).host], labels_of(node.metadata)
        if labels.get(key) != wanted:
            yield f"node {name} is labelled {labels.get(key)!r}, but runs on {wanted!r}"


def lives_of_findings(records: Records) -> Iterator[str]:
    """A finding opens, may be updated, and resolves; a record that comes again as it was has been sent twice.

    Or the finding has opened again in the very same words, as of a silence that was taken to be over: after an opening
    that comes again, the finding may be open or not. Where the end of one life and the opening of the next were sent
    together, and twice, the end comes again after the opening, and then the opening.
    """
    seen: set[tuple[bytes, bytes]] = set()
    open_, either, ended = set[bytes](), set[bytes](), dict[bytes, str]()
    for topic, key, value in records:
        if topic != VIOLATIONS.name or key is None:
            continue
        if value is None:
            if key in open_:
                ended[key] = f"finding {key.decode()} is deleted before it is resolved"
            continue
        state = msgspec.json.decode(value, type=FindingEvent).state
        if key in ended and (state != OPENED or (key, value) not in seen):
            yield ended[key]
        ended.pop(key, None)
        if (key, value) in seen:
            if state == OPENED and key not in open_:
                either.add(key)
            continue
        seen.add((key, value))
        if (state == OPENED) == (key in open_) and key not in either:
            yield f"finding {key.decode()} is {state} {'twice' if state == OPENED else 'before it is opened'}"
        either.discard(key)
        (open_.discard if state == RESOLVED else open_.add)(key)
    yield from ended.values()


def _order(records: Records) -> Iterator[str]:
    """Of one object, versions come in their order; a version that comes again was sent twice."""
    newest: dict[tuple[str, bytes], int] = {}
    seen: set[tuple[str, bytes, int]] = set()
    of_kubernetes = {topic.name for topic in SOURCE_TOPICS if topic.source == "kubernetes"}
    for topic, key, value in records:
        if topic not in of_kubernetes or key is None or value is None or b"/listed/" in key:
            continue
        version = int(msgspec.json.decode(value)["metadata"]["resourceVersion"])
        if (topic, key, version) not in seen and version < newest.get((topic, key), 0):
            yield f"{topic} {key.decode()}: version {version} comes after {newest[topic, key]}"
        seen.add((topic, key, version))
        newest[topic, key] = max(version, newest.get((topic, key), 0))


def _unanswered(records: Records) -> Iterator[str]:
    """The newest command of each target has its outcome."""
    values = (value for topic, _, value in records if topic == OUTCOMES.name and value is not None)
    answered = {msgspec.json.decode(value, type=Outcome).id for value in values}
    for action in _newest(records, ACTIONS, Action).values():
        if action.id not in answered:
            yield f"command {action.id} for {action.target} has no outcome: {action.because}"


def _dead_letters(records: Records) -> Iterator[str]:
    """Everything that is written can be read, and no sink raises."""
    for topic, key, value in records:
        if topic == DEAD_LETTERS.name:
            yield f"dead letter: {key!r} {value!r}"
