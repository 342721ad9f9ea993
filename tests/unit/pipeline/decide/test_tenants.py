"""Who asks for more than a share is named in a finding, for as long as that is said."""

import pytest

from underhost.agents.evaluate.findings import REASON_SHARE
from underhost.agents.pipeline.decide.tenants import KEPT, Tenants
from underhost.agents.sinks.orders import APPLIED, REFUSED
from underhost.schemas.records import Finding, Outcome
from underhost.schemas.shares import Capped

TOLD = "of the DRS rules that it asks for in vSphere cluster C0 the first 3 are made"
CAPPED = Capped("drsRules", "evil", "", TOLD)
OWNER = Capped("drsRules", "evil", "web", TOLD)


def outcome(reason: str, result: str = REFUSED) -> Outcome:
    return Outcome("1", "drs-rule", "drs-rule/C0/x", result, reason)


def told(tenants: Tenants, now: float) -> list[str]:
    return [finding.message for finding in tenants.findings(now)]


def test_a_refusal_that_names_a_tenant_is_a_finding_of_its_namespace() -> None:
    tenants = Tenants("s")
    tenants.observe(outcome(str(CAPPED)), 0.0)
    [finding] = tenants.findings(1.0)
    assert finding == Finding(
        id=finding.id,
        severity="unsatisfiable",
        rule="Tenant",
        reason=REASON_SHARE,
        message=f"Namespace evil has its share (shares.drsRules): {TOLD}.",
        object="Namespace/evil",
    )


def test_an_owner_is_named_with_its_namespace() -> None:
    tenants = Tenants("s")
    tenants.observe(outcome(str(OWNER)), 0.0)
    assert told(tenants, 1.0) == [f"web of namespace evil has its share (shares.drsRules): {TOLD}."]


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(outcome("rule x is not one of site s's own"), id="another refusal"),
        pytest.param(outcome(str(CAPPED), APPLIED), id="no refusal"),
    ],
)
def test_nothing_else_names_a_tenant(other: Outcome) -> None:
    tenants = Tenants("s")
    tenants.observe(other, 0.0)
    assert (told(tenants, 1.0), tenants.due) == ([], None)


def test_what_is_said_no_more_is_forgotten_and_looked_at_then() -> None:
    tenants = Tenants("s")
    tenants.observe(outcome(str(CAPPED)), 0.0)
    tenants.observe(outcome(str(CAPPED)), 600.0)
    assert len(told(tenants, KEPT + 599.0)) == 1
    assert tenants.due == KEPT + 600.0
    assert told(tenants, KEPT + 600.0) == []
    assert tenants.due is None


def test_what_the_evaluation_itself_has_capped_is_named_beside_it() -> None:
    tenants = Tenants("s")
    tenants.observe(outcome(str(CAPPED)), 0.0)
    assert [one.message[-4:] for one in tenants.findings(1.0, [CAPPED, OWNER])] == ["ade.", "ade."]


def test_whom_a_decider_has_capped_is_named_as_long_as_it_says_so() -> None:
    tenants = Tenants("s")
    tenants.cap([CAPPED], 5.0)
    assert tenants.due == 5.0
    assert len(told(tenants, 5.0)) == 1
    tenants.cap([CAPPED], 6.0)
    assert tenants.due is None
    tenants.cap([], 7.0)
    assert tenants.due == 7.0
    assert told(tenants, 7.0) == []
