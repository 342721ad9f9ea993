"""Who reads Events of a namespace learns nothing of other namespaces, hosts and vSphere: word by word."""

from typing import Any

import pytest

from underhost.agents.sinks.events.messages import EventMessages
from underhost.schemas.records import Action, Domain, FindingEvent, Outcome

NODES = {"shop/db-0": "n1", "shop/db-1": "n2", "pay/vault-0": "n3", "pay/vault-1": "n1", "default/web": "n1"}
HOST = Domain(key="host", value="esx-1")
ZONE = Domain(key="topology.kubernetes.io/zone", value="scu")
SECRETS = ("esx-1", "C0", "vm-7", "scu", "n3")
"""What the whole message names and who reads Events of one namespace must not see: host, vSphere, another's node."""


def finding(pods: list[str], severity: str, reason: str, count: int | None = None, **more: Any) -> FindingEvent:
    """A finding whose message names all there is."""
    said = f"{' and '.join(pods)} on n3, ESXi host esx-1, VM vm-7, vSphere cluster C0, zone scu"
    first, *peers = pods or [None]
    given = {"rule": "InterPodAffinity", "state": "opened", "message": said, "peers": peers, **more}
    return FindingEvent(
        id="f1", site="prod", severity=severity, reason=reason, first_seen="0", updated_at="1", snapshot={}, pod=first,
        pods=count, **given,
    )  # fmt: skip


def told(row: FindingEvent) -> dict[str, str]:
    """The note by object."""
    actions = EventMessages(lambda pod: NODES.get(pod, "")).of_finding(row)
    return notes(actions)


def notes(actions: list[Action]) -> dict[str, str]:
    found = {}
    for action in actions:
        desired: Any = action.desired
        about = desired["regarding"]
        found["/".join(filter(None, (about["kind"], about["namespace"], about["name"])))] = desired["note"]
    return found


SHARED = "pods that a rule keeps apart share a host"
APART = "node(s) didn't satisfy existing pods anti-affinity rules"


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        pytest.param(
            finding(
                ["pay/vault-0", "shop/db-0", "shop/db-1"], "physical", SHARED, rule="PhysicalHost", domain=HOST,
                source="InterPodAffinity",
            ),
            {
                "Pod/pay/vault-0": "pay/vault-0 on n3 and 2 pods of other namespaces: "
                f"{SHARED} (PhysicalHost, InterPodAffinity). Finding f1.",
                "Pod/shop/db-0": "shop/db-0 on n1, shop/db-1 on n2 and 1 pod of another namespace: "
                f"{SHARED} (PhysicalHost, InterPodAffinity). Finding f1.",
                "Pod/shop/db-1": "shop/db-0 on n1, shop/db-1 on n2 and 1 pod of another namespace: "
                f"{SHARED} (PhysicalHost, InterPodAffinity). Finding f1.",
                **{
                    f"Node/{node}": f"3 pods: {SHARED} (PhysicalHost, InterPodAffinity, host=esx-1). Finding f1."
                    for node in ("n3", "n1", "n2")
                },
            },
            id="three pods of two namespaces on a host",
        ),
        pytest.param(
            finding(["pay/vault-1", "shop/db-0"], "violation", APART, domain=ZONE),
            {
                "Pod/pay/vault-1": "pay/vault-1 on n1 and 1 pod of another namespace: "
                f"{APART} (InterPodAffinity, topology.kubernetes.io/zone). Finding f1.",
                "Pod/shop/db-0": "shop/db-0 on n1 and 1 pod of another namespace: "
                f"{APART} (InterPodAffinity, topology.kubernetes.io/zone). Finding f1.",
                "Node/n1": f"2 pods: {APART} (InterPodAffinity, topology.kubernetes.io/zone=scu). Finding f1.",
            },
            id="two tenants in a zone",
        ),
        pytest.param(
            finding(["default/web", "shop/db-0"], "co-located", "all on one host", rule="CoLocated", domain=HOST),
            {
                "Pod/default/web": "default/web on n1 and 1 pod of another namespace: "
                "all on one host (CoLocated). Finding f1.",
                "Pod/shop/db-0": "shop/db-0 on n1 and 1 pod of another namespace: "
                "all on one host (CoLocated). Finding f1.",
                "Node/n1": "default/web on n1 and 1 pod of another namespace: "
                "all on one host (CoLocated, host=esx-1). Finding f1.",
            },
            id="a node's Events lie in the namespace default, whose pods their reader may see",
        ),
        pytest.param(
            finding([], "drift", "node(s) were unschedulable", rule="NodeUnschedulable", node="n1", count=4,
                    domain=Domain(key="node", value="n1")),
            {"Node/n1": "4 pods: node(s) were unschedulable (NodeUnschedulable, node=n1). Finding f1."},
            id="a cordoned node says how many pods, and not which",
        ),
    ],
)  # fmt: skip
def test_a_finding_names_pods_of_the_readers_namespace_and_counts_the_others(
    row: FindingEvent, expected: dict[str, str]
) -> None:
    assert told(row) == expected


@pytest.mark.parametrize(
    ("row", "object_"),
    [
        pytest.param(
            finding(["shop/db-0"], "violation", "Insufficient cpu", rule="NodeResourcesFit", node="n1"),
            "Pod/shop/db-0", id="a pod that does not fit",
        ),
        pytest.param(
            finding(["shop/db-0", "shop/db-1"], "budget", "never", rule="PodDisruptionBudget"),
            "Pod/shop/db-1", id="a budget's pods, which are of one namespace",
        ),
        pytest.param(
            finding([], "label-stale", "names another host", node="n1", domain=Domain(key="host", value="esx-2")),
            "Node/n1", id="a node without its pods",
        ),
    ],
)  # fmt: skip
def test_a_finding_of_nobody_elses_is_told_in_its_own_words(row: FindingEvent, object_: str) -> None:
    assert told(row)[object_] == row.message


def test_no_pods_event_names_a_host_or_what_is_of_another_namespace() -> None:
    pods = ["pay/vault-0", "shop/db-0", "shop/db-1"]
    for state in ("opened", "resolved"):
        for severity in ("violation", "physical", "unsatisfiable", "co-located"):
            heard = told(finding(pods, severity, "r", domain=HOST, state=state))
            assert [word for word in (*SECRETS, "pay/") if word in heard["Pod/shop/db-0"]] == []
            assert [pod for pod in pods for note in (heard["Node/n1"], heard["Node/n2"]) if pod in note] == []


EVICTED = "evicted from n1; the next one fits on n2"
WHOLE = "pay/vault-0: it has an emptyDir; shop/db-0: it belongs to its node"
OWN = "shop/db-0: it belongs to its node; of 1 pod of another namespace nothing is said here"


@pytest.mark.parametrize(
    ("result", "reason", "desired", "expected"),
    [
        pytest.param(
            "applied", EVICTED, {"node": "n1"},
            {"Pod/shop/db-0": EVICTED, "Node/n1": f"1 pod of another namespace: {EVICTED}"},
            id="the node is not told which pod",
        ),
        pytest.param(
            "refused", WHOLE, {"refuse": WHOLE, "tell": OWN}, {"Pod/shop/db-0": OWN},
            id="why no pod of the finding can be evicted, as far as they are of its namespace",
        ),
        pytest.param(
            "refused", WHOLE, None, {"Pod/shop/db-0": "it is not evicted; the outcome o1 says why"},
            id="a refusal whose command is not known",
        ),
        pytest.param(
            "refused", "(403) not allowed", {"refuse": "", "node": "n1"}, {"Pod/shop/db-0": "(403) not allowed"},
            id="what the API server says of the pod itself",
        ),
    ],
)  # fmt: skip
def test_an_eviction_names_no_pod_of_another_namespace(
    result: str, reason: str, desired: dict[str, object] | None, expected: dict[str, str]
) -> None:
    row = Outcome("o1", "evict", "pod/shop/db-0", result, reason)
    action = None if desired is None else Action("o1", "evict", row.target, desired, "", {})
    messages = EventMessages(lambda pod: NODES.get(pod, ""))
    assert notes(messages.of_outcome(row, action, lambda vms: [])) == expected
