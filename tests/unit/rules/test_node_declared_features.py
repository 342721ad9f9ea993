"""NodeDeclaredFeatures: pods that need a feature of the kubelet, and nodes that declare it or do not."""

from typing import Any

import pytest
from support.answers.rules import refused, verdict
from support.build import NodeBuilder, a_node, a_pod, a_site

from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.rules.node_declared_features import NAME, REASON_NOT_DECLARED
from underhost.agents.site.snapshot import Options
from underhost.schemas.documents import Because

USERS, RESTART = "UserNamespacesHostNetworkSupport", "RestartAllContainersOnContainerExits"
RULES = {"restartPolicyRules": [{"action": "Restart"}, {"action": "RestartAllContainers"}]}
ISOLATED = {"hostNetwork": True, "hostUsers": False}
WHY = [REASON_NOT_DECLARED]


def declaring(name: str, *features: str) -> NodeBuilder:
    return a_node(name).put("status", "declaredFeatures", value=list(features))


NODES = [a_node("none"), declaring("users", USERS), declaring("both", "OfLater", RESTART, USERS)]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({}, {}, id="a pod that needs nothing"),
        pytest.param(ISOLATED, {"none": WHY}, id="user namespaces on the host's network"),
        pytest.param({"hostNetwork": True}, {}, id="the host's network alone"),
        pytest.param({"hostNetwork": True, "hostUsers": True}, {}, id="the host's users, too"),
        pytest.param({"hostUsers": False}, {}, id="user namespaces alone"),
        pytest.param(
            {"containers": [{"name": "c", **RULES}]}, {"none": WHY, "users": WHY}, id="an exit that restarts all"
        ),
        pytest.param(
            {"initContainers": [{"name": "i", **RULES}]}, {"none": WHY, "users": WHY}, id="that of an init container"
        ),
        pytest.param(
            {"containers": [{"name": "c", "restartPolicyRules": [{"action": "Restart"}]}]}, {}, id="another rule"
        ),
        pytest.param(
            {"containers": [{"name": "c", **RULES}], **ISOLATED}, {"none": WHY, "users": WHY}, id="both features"
        ),
    ],
)
def test_nodes_that_do_not_declare_what_a_pod_needs_are_refused(spec: Any, expected: dict[str, list[str]]) -> None:
    assert refused(a_site(*NODES, a_pod("new").spec(**spec)), "new", NAME) == expected


def test_the_missing_features_are_named_and_no_eviction_helps() -> None:
    pod = a_pod("new").spec(containers=[{"name": "c", **RULES}], **ISOLATED)
    found = verdict(a_site(*NODES, pod), "new").nodes
    assert found["none"].code == {NAME: "UnschedulableAndUnresolvable"}
    assert found["users"].because == {NAME: [Because(selector=f"status.declaredFeatures in ({RESTART})", has=None)]}
    assert isinstance(found["none"].because, dict) and len(found["none"].because[NAME]) == 2


def test_a_kubelet_that_declares_a_feature_later_takes_the_pod() -> None:
    options = Options(scheduler_names=("default-scheduler",))
    evaluator, pod = Evaluator(options), a_pod("new").spec(**ISOLATED)
    before, after = a_site(a_node("n1"), pod), a_site(declaring("n1", USERS), pod)
    for site, node in ((before, None), (after, "n1"), (before, None)):
        evaluator.update(site)
        assert [one.node for one in evaluator.decide(site)] == [node]
    assert evaluator.rebuilt == 1


def test_pods_of_one_owner_that_differ_in_their_users_are_not_taken_for_equal() -> None:
    pods = [a_pod(f"p-{at}").owned_by("ReplicaSet/p").spec(hostNetwork=True, hostUsers=at > 0) for at in range(2)]
    site = a_site(a_node("n1"), *pods)
    assert (refused(site, "p-0", NAME), refused(site, "p-1", NAME)) == ({"n1": WHY}, {})
