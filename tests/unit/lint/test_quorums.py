"""Quorums that no placement can keep, and annotations that ask for nothing."""

import pytest
from support.answers.lint import report_of
from support.build import a_manifest, a_node, a_pod, a_site, a_workload
from support.sites.quorate import ANNOTATION, ROLE

from underhost.agents.lint.report import lint
from underhost.agents.site.snapshot import Options

ON = {"n1": "h1", "n2": "h2", "n3": "h2"}


def masters(*names: str):
    return [a_node(name).labels({f"{ROLE}control-plane": ""}) for name in names]


def asking(text: str, replicas: int):
    pods = [a_pod(f"db-{at}").owned_by("StatefulSet/db").on(f"n{at % 3 + 1}") for at in range(replicas)]
    return [a_workload("StatefulSet", "db", replicas).metadata(annotations={ANNOTATION: text}), *pods]


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param(
            masters("n1"),
            [
                (
                    "drift",
                    "Node/n1",
                    "Of the 1 member of the control plane 1 must stay: whatever host fails takes too many; run 3 "
                    "members.",
                )
            ],
            id="one control-plane node, once and as advice",
        ),
        pytest.param(
            masters("n1", "n2", "n3"),
            [
                (
                    "unsatisfiable",
                    "Node/n1",
                    "Of the 3 members of the control plane a host may hold 1: that takes 3 hosts, and there are 2; "
                    "add a host.",
                )
            ],
            id="two hosts for three members",
        ),
        pytest.param(
            [*map(a_node, ON), *asking("true", 2)],
            [
                (
                    "unsatisfiable",
                    "StatefulSet/shop/db",
                    "Of the 2 members of StatefulSet shop/db 2 must stay: whatever host fails takes too many; run 3 "
                    "members, or say in underhost.io/quorum how many must stay.",
                )
            ],
            id="a workload of two",
        ),
        pytest.param([*map(a_node, ON), *asking("3", 6)], [], id="three of six on two hosts"),
        pytest.param(
            [*map(a_node, ON), *asking("most", 3)],
            [
                (
                    "unsatisfiable",
                    "StatefulSet/shop/db",
                    "StatefulSet/shop/db says 'most' in underhost.io/quorum: say true, false, or how many members must "
                    "stay.",
                )
            ],
            id="neither true, false nor a number",
        ),
    ],
)
def test_what_is_said_of_a_quorum(objects: list[object], expected: list[tuple[str, str, str]]) -> None:
    report = lint(a_site(*objects, on=ON), Options(), {})
    assert [(one.severity, one.object, one.message) for one in report.findings if one.rule == "Quorum"] == expected


def test_a_manifest_asks_by_its_template() -> None:
    manifest = a_manifest("Deployment", "zk", 2).put(
        "spec", "template", "metadata", "annotations", value={ANNOTATION: "true"}
    )
    [one] = [found for found in report_of([manifest]).findings if found.rule == "Quorum"]
    assert (one.severity, one.object) == ("unsatisfiable", "Deployment/shop/zk")
