from support.answers.rules import refused
from support.build import a_pod, a_site, nodes

from underhost.agents.rules.node_name import NAME, REASON_OTHER_NODE


def test_a_pending_pod_names_no_node_and_may_go_to_any() -> None:
    assert refused(a_site(*nodes("n1", "n2"), a_pod("web")), "web", NAME) == {}


def test_a_pod_bound_to_a_node_that_the_input_lacks_fits_none() -> None:
    snapshot = a_site(*nodes("n1", "n2"), a_pod("web").on("gone"))
    assert refused(snapshot, "web", NAME) == {"n1": [REASON_OTHER_NODE], "n2": [REASON_OTHER_NODE]}


def test_a_running_pod_is_judged_as_if_taken_out_and_may_go_to_any() -> None:
    assert refused(a_site(*nodes("n1", "n2"), a_pod("web").on("n1")), "web", NAME) == {}
