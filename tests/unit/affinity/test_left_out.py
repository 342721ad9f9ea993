"""What a check says of quorums beside its findings: hosts that are unknown, and annotations that say nothing."""

import pytest
from support.build import a_node, a_pod, a_site, a_workload
from support.sites.quorate import ANNOTATION, ROLE

from underhost.agents.affinity.left_out import left_out_of
from underhost.agents.site.snapshot import Snapshot

RUNS = a_pod("web-0").on("n1")


def masters(*names: str):
    return [a_node(name).labels({f"{ROLE}control-plane": ""}) for name in names]


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        pytest.param(
            a_site(*masters("n1", "n2", "n3"), RUNS),
            [("PhysicalHost", "no inventory"), ("Quorum on the hosts of 3 nodes", "no inventory")],
            id="no inventory",
        ),
        pytest.param(
            a_site(*masters("n1", "n2", "n3"), RUNS, on={"n1": "h1", "n2": "h2", "n3": ""}),
            [
                ("PhysicalHost on 1 node", "their hosts are not known"),
                ("Quorum on the hosts of 1 node", "their hosts are not known"),
            ],
            id="the host of one member",
        ),
        pytest.param(a_site(*masters("n1"), RUNS), [("PhysicalHost", "no inventory")], id="one member is never right"),
        pytest.param(
            a_site(
                a_node("n1"),
                RUNS,
                a_workload("StatefulSet", "db").metadata(annotations={ANNOTATION: "-1"}),
                on={"n1": "h1"},
            ),
            [("Quorum of 1 object", "annotation underhost.io/quorum is not readable")],
            id="an annotation that says nothing",
        ),
    ],
)
def test_what_is_left_out_is_said(picture: Snapshot, expected: list[tuple[str, str]]) -> None:
    assert [(one.what, one.why) for one in left_out_of(picture)] == expected
