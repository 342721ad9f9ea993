"""Which VMs bring their vSphere cluster in: those that may be joined to a node of the site."""

import pytest
from support.build import Built, a_node

from underhost.schemas.kubernetes import encode
from underhost.streams.vsphere.scope import identities, may_be_node

UUID = "4217d9a3-5b1c-8f2e-9d00-a1b2c3d4e5f6"
SWAPPED = "a3d91742-1c5b-2e8f-9d00-a1b2c3d4e5f6"
OTHER = "42170000-0000-0000-0000-000000000001"
BY_PROVIDER = a_node("n1").spec(providerID=f"vsphere://{UUID}")
BY_SYSTEM = a_node("n1").put("status", "nodeInfo", value={"systemUUID": UUID})


@pytest.mark.parametrize(
    ("node", "vm", "expected"),
    [
        pytest.param(BY_PROVIDER, {"config.uuid": UUID.upper()}, True, id="the uuid of a providerID"),
        pytest.param(BY_PROVIDER, {"config.uuid": SWAPPED}, False, id="a providerID is never byte-swapped"),
        pytest.param(BY_SYSTEM, {"config.uuid": UUID}, True, id="a systemUUID"),
        pytest.param(BY_SYSTEM, {"config.uuid": SWAPPED}, True, id="a systemUUID in its other byte order"),
        pytest.param(BY_PROVIDER, {"name": "n1", "config.uuid": OTHER}, False, id="the name of a node with a uuid"),
        pytest.param(
            BY_SYSTEM, {"guest.hostName": "n1", "config.uuid": OTHER}, False, id="the hostname of a node with a uuid"
        ),
        pytest.param(a_node("n1"), {"name": "n1", "config.uuid": OTHER}, True, id="the name of a node without a uuid"),
        pytest.param(
            a_node("n1"), {"guest.hostName": "N1.", "config.uuid": OTHER}, True, id="its hostname, whatever its case"
        ),
    ],
)
def test_a_vm_may_be_a_nodes_only_where_it_may_be_joined_to_it(node: Built, vm: dict[str, str], expected: bool) -> None:
    assert may_be_node(vm, identities([encode(node.build())], by_name=True)) is expected


def test_where_names_are_not_asked_no_name_brings_a_cluster_in() -> None:
    known = identities([encode(a_node("n1").build()), encode(BY_PROVIDER.build())], by_name=False)
    assert known == {"4217d9a35b1c8f2e9d00a1b2c3d4e5f6"}
