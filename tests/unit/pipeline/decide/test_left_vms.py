"""A VM that the mover leaves to a person is named in a finding, for as long as something on it is broken."""

from dataclasses import replace

import pytest
from support.build import HOST, a_pod, a_site, nodes, term

from underhost.agents.evaluate.check import check
from underhost.agents.pipeline.decide.left_vms import LeftVms
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.schemas.records import Finding, Outcome

LEFT = "2 moves of it failed or were undone, at last: no: it is left to a person"


def a_pair(**on: str) -> Snapshot:
    """Two replicas that must not share a host, on n1 and n2."""
    pods = [a_pod(f"db-{at}").labels(app="db").apart(term(HOST, {"app": "db"})).on(f"n{at}") for at in (1, 2)]
    return a_site(*nodes("n1", "n2"), *pods, on=on)


BROKEN, WHOLE = a_pair(n1="h1", n2="h1"), a_pair(n1="h1", n2="h2")


def told(left: LeftVms, site: Snapshot) -> list[Finding]:
    return left.findings(site, check(site, Options()).findings)


def said(*outcomes: tuple[str, str, str]) -> LeftVms:
    left = LeftVms("s")
    for kind, result, reason in outcomes:
        left.observe(Outcome("1", kind, "vm/vm-n1", result, reason))
    return left


def test_the_finding_names_the_vm_its_node_and_what_became_of_its_moves() -> None:
    [finding] = told(said(("move", "refused", LEFT)), BROKEN)
    assert finding == Finding(
        id=finding.id,
        severity="unsatisfiable",
        rule="Move",
        reason="a VM is left to a person",
        message=f"VM n1: {LEFT}.",
        node="n1",
        object="VirtualMachine/n1",
    )


@pytest.mark.parametrize(
    ("left", "site"),
    [
        pytest.param(said(("move", "refused", LEFT)), WHOLE, id="once nothing on it is broken"),
        pytest.param(said(("move", "refused", LEFT), ("move", "applied", "")), BROKEN, id="once it is moved after all"),
        pytest.param(said(("move", "refused", "it is powered off")), BROKEN, id="for another refusal"),
        pytest.param(said(("evict", "refused", LEFT)), BROKEN, id="for a command of another kind"),
        pytest.param(said(("move", "refused", LEFT)), replace(BROKEN, node_hosts={}), id="once no node runs on it"),
    ],
)
def test_there_is_none(left: LeftVms, site: Snapshot) -> None:
    assert told(left, site) == []


def test_it_comes_back_with_what_is_broken() -> None:
    left = said(("move", "refused", LEFT))
    assert [len(told(left, site)) for site in (BROKEN, WHOLE, BROKEN)] == [1, 0, 1]
