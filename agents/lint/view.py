"""What the checks of `lint` look at: subjects with their rules, the nodes they may use, the pods that rules select.

In: a snapshot, options and the manifests. Out: one `View`, read by every check and changed by none. Everything is
worked out for distinct templates, selectors and label sets, never for pods × nodes. Nodes are judged by lasting taints
only: a cordon, or a node that is not ready for a moment, is no manifest's fault.
"""

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from functools import cached_property

import msgspec
import numpy as np

from underhost.agents.compiled.classes import PodClass, RawClass
from underhost.agents.compiled.domains import BoolArray, IndexArray, Topology
from underhost.agents.compiled.matching import affinity_mask, term_mask, untolerated_mask
from underhost.agents.compiled.model import Model, compile
from underhost.agents.compiled.state import State
from underhost.agents.evaluate.disruption import Covered, cover
from underhost.agents.lint.collecting import subjects_of
from underhost.agents.lint.parsing import RuleParser
from underhost.agents.lint.subjects import DAEMON_SET, Matched, PodRule, Subject
from underhost.agents.site import terms
from underhost.agents.site.fault import faults_of
from underhost.agents.site.owners import FINISHED
from underhost.agents.site.selectors import Namespaces, SelectorTable, matches
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas import kubernetes as k8s
from underhost.schemas.kubernetes import Node
from underhost.schemas.manifests import Manifest

_MOST_MASKS = 4096  # that are kept for the next template
ADDED = frozenset(
    {
        "pod-template-hash", "controller-revision-hash", "pod-template-generation", "controller-uid", "job-name",
        "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index", "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-completion-index", "batch.kubernetes.io/job-name", "vm.kubevirt.io/name",
        "kubevirt.io/created-by", "kubevirt.io/nodeName",
    }
)  # fmt: skip
"""Labels that controllers add: a template without them may yet make pods that have them."""


class Reach:
    """The nodes that some pods may use.

    Attributes:
        selected: bool[N], by nodeSelector and required node affinity. tolerated: bool[N], by lasting taints.
        eligible: bool[N], by both. some: whether there is any.
    """

    def __init__(self, topology: Topology, selected: BoolArray, tolerated: BoolArray) -> None:
        self._topology = topology
        self.selected, self.tolerated, self.eligible = selected, tolerated, selected & tolerated
        self.some = bool(self.eligible.any())
        self._domains: dict[str, tuple[int, int]] = {}

    def domains(self, key: str) -> int:
        """How many domains of a topologyKey the eligible nodes have."""
        return self._counts(key)[0]

    def without(self, key: str) -> int:
        """How many eligible nodes lack the key."""
        return self._counts(key)[1]

    def _counts(self, key: str) -> tuple[int, int]:
        found = self._domains.get(key)
        if found is None:
            codes = self._topology.of(key).codes[self.eligible]
            missing = int((codes < 0).sum())
            found = self._domains[key] = len(np.unique(codes)) - (missing > 0), missing
        return found


class View:
    """An input, ready to be linted.

    Attributes:
        snapshot, options: as given. subjects: sorted by object. rules: every rule between pods of the subjects.
        misspelled: fields of specs that were not read for their capitals, by object.
        budgets: by name, with their pods and figures.
        model: the nodes of the input, compiled without pods; topology means live hosts where these are known.
        whole: whether the input is a cluster (nodes and pods in it), so that what it lacks is not there.
        telling: whether what the input lacks may be held against it: it is whole, or nothing in it makes unknown pods.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        options: Options,
        manifests: Mapping[str, Manifest],
        misspelled: Mapping[str, Sequence[str]],
        makers: Set[str],
    ) -> None:
        """Raises BadObjectError for a part that the API server would refuse for its shape."""
        self.snapshot, self.options, self.misspelled = snapshot, options, misspelled
        self.budgets: dict[str, Covered] = cover(snapshot)
        self.subjects = subjects_of(snapshot, manifests)
        self.whole = bool(snapshot.nodes) and any(pod.spec.node_name for pod in snapshot.pods.values())
        self.telling = self.whole or not makers
        self.model: Model = compile(
            replace(snapshot, nodes=_lasting(snapshot.nodes), pods={}, namespaces={}, services={}, workloads={}),
            options,
        )
        self._state = State(self.model)
        parser = RuleParser()
        for subject in self.subjects:
            subject.rules = parser.parse(subject)
        self.rules = [rule for subject in self.subjects for rule in subject.rules.between_pods]
        self._reach: dict[tuple[bytes, bytes, bytes, bool], Reach] = {}
        self._distinct: dict[tuple[bytes, bytes], Reach] = {}
        self._match()

    @cached_property
    def subject_of(self) -> dict[str, Subject]:
        """The subject of a pod, by the pod's name."""
        return {pod: subject for subject in self.subjects for pod in subject.pods}

    # ------------------------------------------------------------------------------------------------- nodes
    def reach(self, subject: Subject) -> Reach:
        """The nodes that a subject's pods may use; the same object for subjects that may use them by equal rules."""
        rules, parts, daemon = subject.rules, subject.parts, subject.kind == DAEMON_SET
        key = (parts.node_selector, rules.node_key, b"" if daemon else parts.tolerations, daemon)
        found = self._reach.get(key)
        if found is None:
            one = PodClass(0, _RAW, {})
            one.node_selector, one.node_terms = rules.node_selector, rules.node_terms
            one.node_key = (parts.node_selector, rules.node_key)
            one.tolerations, one.tolerations_key = rules.tolerations, parts.tolerations
            every = np.ones(len(self.model.nodes), bool)
            selected = affinity_mask(self._state, one)
            refused = None if daemon else untolerated_mask(self._state, one)
            selected = every if selected is None else selected
            tolerated = every if refused is None else ~refused
            same = (selected.tobytes(), tolerated.tobytes())
            if same not in self._distinct:
                self._distinct[same] = Reach(self.model.topology, selected, tolerated)
            found = self._reach[key] = self._distinct[same]
            if len(self._state.memo) > _MOST_MASKS:
                self._state.memo.clear()
        return found

    def is_met(self, term: terms.NodeSelectorTerm) -> bool:
        """Whether some node matches a term of node affinity that is neither empty nor wrong."""
        mask = term_mask(self._state, term)
        return mask is not None and bool(mask.any())

    def codes(self, key: str) -> IndexArray:
        """intp[N]: each node's domain of a topologyKey, -1 where it has none."""
        return self.model.topology.of(key).codes

    def names(self, mask: BoolArray) -> list[str]:
        """The names of nodes, sorted."""
        return [self.model.nodes.names[at] for at in np.flatnonzero(mask)]

    # -------------------------------------------------------------------------------------------------- pods
    def _match(self) -> None:
        """Match the selector of every rule to the pods of the input, and to the templates that have none."""
        exact, loose = SelectorTable(), SelectorTable()
        for rule in self.rules:
            if rule.requirements is not None:
                namespaces = self._namespaces(rule)
                rule.exact = exact.add(namespaces, rule.requirements)
                rule.loose = loose.add(namespaces, tuple(r for r in rule.requirements if r[0] not in ADDED))
        used = {name for table in (exact, loose) for one in table.selectors for name, _, _ in one.requirements}
        pods, templates = _Labels(used), _Labels(used)
        for pod in self.snapshot.pods.values() if exact.selectors else ():
            if pod.status.phase not in FINISHED:
                pods.add(pod.metadata.namespace, bytes(pod.metadata.labels), pod.metadata.name)
        for subject in self.subjects:
            if subject.template_labels is not None:
                templates.add(subject.namespace, subject.template_labels, subject.name)
        for table, labels in ((exact, pods), (loose, templates)):
            table.match(labels.sets)
        matched = {one: frozenset(one.classes) for table in (exact, loose) for one in table.selectors}
        for rule in self.rules:
            if rule.exact is not None and rule.loose is not None:
                rule.selected = Matched(matched[rule.exact], matched[rule.loose])
        for subject in self.subjects:
            of_template = () if subject.template_labels is None else (subject.template_labels,)
            subject.own = Matched(
                frozenset(pods.at(subject.namespace, raw) for raw in subject.labels),
                frozenset(templates.at(subject.namespace, raw) for raw in of_template),
            )

    def _namespaces(self, rule: PodRule) -> Namespaces:
        """The namespaces of a term; every one where the input does not say what labels they have."""
        if rule.spaces is None:
            return frozenset(rule.namespaces or (rule.subject.namespace,))
        if not rule.spaces or not self.snapshot.namespaces:
            return None
        selected = (name for name, labels in self._namespace_labels.items() if matches(rule.spaces, labels))
        return frozenset((*rule.namespaces, *selected))

    @cached_property
    def _namespace_labels(self) -> dict[str, dict[str, str]]:
        return {name: terms.labels(bytes(one.metadata.labels)) for name, one in self.snapshot.namespaces.items()}


class _Labels:
    """Distinct (namespace, labels), with the labels that some selector reads."""

    def __init__(self, used: set[str]) -> None:
        self._used = used
        self._raw: dict[tuple[str, bytes], int] = {}
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], int] = {}
        self.sets: list[tuple[str, dict[str, str]]] = []

    def add(self, namespace: str, raw: bytes, name: str) -> None:
        """Remember the labels of a pod. Raises BadObjectError."""
        if (namespace, raw) in self._raw:
            return
        with faults_of(f"Pod {namespace}/{name}"):
            labels = terms.labels(raw)
        kept = {key: labels[key] for key in sorted(self._used & labels.keys())}
        number = self._known.setdefault((namespace, tuple(kept.items())), len(self.sets))
        if number == len(self.sets):
            self.sets.append((namespace, kept))
        self._raw[(namespace, raw)] = number

    def at(self, namespace: str, raw: bytes) -> int:
        """The number of a label set, -1 if no selector was to be matched at all."""
        return self._raw.get((namespace, raw), -1)


_RAW = RawClass("", b"", b"", b"", b"", b"", (), 0, (), (), None, True, ())


def _lasting(nodes: Mapping[str, Node]) -> dict[str, Node]:
    """The nodes without the taints that come and go."""
    found = {}
    decoder, passing = msgspec.json.Decoder(list[dict[str, object]] | None), terms.PASSING_TAINTS
    for name, node in nodes.items():
        raw = bytes(node.spec.taints)
        if any(one.encode() in raw for one in passing):
            kept = [one for one in decoder.decode(raw) or () if not str(one.get("key", "")).startswith(passing)]
            spec = msgspec.structs.replace(node.spec, taints=k8s.raw(kept))
            node = msgspec.structs.replace(node, spec=spec)
        found[name] = node
    return found
