"""What counts as harm that a tenant has caused."""

from dataclasses import replace

import pytest
from trust.tenant.verdict import GROWTH, Seen, Waited, faults

FINE = Seen(opened=[Waited(0.3)], resolved=[Waited(0.4)], memory=[1.0, 2.0], tenants=["namespace evil ..."])


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(FINE, [], id="none"),
        pytest.param(
            replace(FINE, writes=[("create", "/api/v1/namespaces/shop/pods/db-0/eviction", 201)]),
            ["create /api/v1/namespaces/shop/pods/db-0/eviction (201)"],
            id="an eviction",
        ),
        pytest.param(
            replace(FINE, writes=[("create", "/api/v1/namespaces/shop/pods/db-0/binding", 201)]),
            ["create /api/v1/namespaces/shop/pods/db-0/binding (201)"],
            id="a binding",
        ),
        pytest.param(
            replace(FINE, writes=[("patch", "/api/v1/nodes/n1", 200)]), ["patch /api/v1/nodes/n1 (200)"], id="a label"
        ),
        pytest.param(
            replace(FINE, writes=[("patch", "/api/v1/namespaces/shop/pods/db-0", 200)]),
            ["patch /api/v1/namespaces/shop/pods/db-0 (200)"],
            id="a pod's label",
        ),
        pytest.param(
            replace(
                FINE,
                writes=[("patch", "/api/v1/namespaces/shop/pods/db-0", 200), ("patch", "/api/v1/nodes/n1", 200)],
                followed={"/api/v1/namespaces/shop/pods/db-0", "/api/v1/nodes/n1"},
            ),
            [],
            id="labels that follow a vMotion",
        ),
        pytest.param(
            replace(
                FINE,
                writes=[("create", "/api/v1/namespaces/shop/pods/db-0/eviction", 201)],
                followed={"/api/v1/namespaces/shop/pods/db-0"},
            ),
            ["create /api/v1/namespaces/shop/pods/db-0/eviction (201)"],
            id="an eviction after a vMotion",
        ),
        pytest.param(
            replace(FINE, together=["db-0 and db-1 on esx-1"]),
            ["after a vMotion: db-0 and db-1 on esx-1"],
            id="a vMotion that breaks the victim's rule",
        ),
        pytest.param(replace(FINE, vmotions=61), ["61 vMotions, and 60 are the tenant's share"], id="many vMotions"),
        pytest.param(
            replace(FINE, writes=[("create", "/apis/events.k8s.io/v1/namespaces/shop/events", 201)]), [], id="an Event"
        ),
        pytest.param(
            replace(FINE, rules=({"r": (True, ["a"])}, {"r": (True, ["a", "b"])})),
            ["DRS rule r: (True, ['a']) → (True, ['a', 'b'])"],
            id="a rule that changed",
        ),
        pytest.param(
            replace(FINE, opened=[Waited(2.1)]),
            ["a finding opened after 2.1 s (0.0 s of them without a processor)"],
            id="a late finding",
        ),
        pytest.param(
            replace(FINE, resolved=[Waited(2.1, 1.9)]),
            ["a finding was resolved after 2.1 s (1.9 s of them without a processor)"],
            id="a late end, though the machine was busy",
        ),
        pytest.param(replace(FINE, resolved=[]), ["1 findings opened and 0 were resolved"], id="no end"),
        pytest.param(
            replace(FINE, memory=[0.0, GROWTH + 1.0, 5.0]), ["memory grew by 400 MiB"], id="memory at its highest"
        ),
        pytest.param(replace(FINE, tenants=[]), ["no finding names the tenant"], id="nobody is named"),
        pytest.param(replace(FINE, answers=False), ["the worker does not answer any more"], id="a worker that is gone"),
    ],
)
def test_each_harm_is_a_line(seen: Seen, expected: list[str]) -> None:
    assert faults(seen, "shop") == expected
