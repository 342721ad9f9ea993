"""How nodes join VMs: each line of docs/vsphere.md is held against the code, and no line is left out."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest
from support.build import a_node

from underhost.agents.site.join import join
from underhost.schemas.kubernetes import Node
from underhost.schemas.uuids import swapped
from underhost.schemas.vsphere import Vm

PAGE = Path(__file__).parents[3] / "docs" / "vsphere.md"
SECTION = PAGE.read_text().partition("## How nodes join VMs\n")[2].partition("\n## ")[0]
ROWS = [re.split(r" *\| *", line)[1:4] for line in SECTION.splitlines() if line.startswith("|")][2:]
RULES = [line.removeprefix("- ") for line in SECTION.splitlines() if line.startswith("- ")]

UUID, OTHER = "4217d9a3-5b1c-8f2e-9d00-a1b2c3d4e5f6", "42170000-0000-0000-0000-000000000001"
REVERSED = swapped(UUID.replace("-", ""))
OLD, NEW = "2026-01-01T00:00:00Z", "2026-02-01T00:00:00Z"


class Case(NamedTuple):
    """Nodes and VMs, and who joins whom by what; `by_name`: as `vsphere.joinByName`."""

    nodes: Sequence[Node]
    vms: Sequence[Vm]
    joined: dict[str, tuple[str, str]]
    by_name: bool = True


def node(name: str = "n1", provider: str = "", system: str = "", hostname: str = "", since: str | None = None) -> Node:
    status = {"addresses": [{"type": "Hostname", "address": hostname}], "nodeInfo": {"systemUUID": system}}
    made = a_node(name).spec(providerID=provider).metadata(creationTimestamp=since)
    return made.put("status", value=status).build()


def vm(id_: str = "vm-1", name: str = "some-vm", uuid: str = "", hostname: str = "", power: str = "on") -> Vm:
    return Vm(id=id_, name=name, uuid=uuid, host="host-1", hostname=hostname, power=power)


def provided(uuid: str, name: str = "n1", since: str | None = None) -> Node:
    return node(name, provider=f"vsphere://{uuid}", since=since)


IN_ORDER = [
    Case([provided(UUID)], [vm(uuid=UUID)], {"n1": ("vm-1", "providerID")}),
    Case([node(system=UUID)], [vm(uuid=REVERSED)], {"n1": ("vm-1", "systemUUID")}),
    Case([node()], [vm(name="n1", uuid=UUID)], {"n1": ("vm-1", "name")}),
    Case([node(hostname="n1.example")], [vm(hostname="n1.example", uuid=UUID)], {"n1": ("vm-1", "hostname")}),
]
"""One for each row of the table."""

REFUSED = [
    Case([provided(UUID)], [vm(uuid=REVERSED)], {}),
    Case([node(provider=f"vsphere://{UUID}", system=OTHER)], [vm(uuid=OTHER)], {}),
    Case([provided(UUID)], [vm(name="n1", uuid=OTHER)], {}),
    Case([provided(UUID)], [vm(hostname="n1", uuid=OTHER)], {}),
]
"""One for each row: what its last words leave out."""

TRUE_OF = {
    "A node with a uuid never joins a VM with another uuid, whatever the VM or its guest is called.": [
        Case([node(system=UUID)], [vm(name="n1", hostname="n1", uuid=OTHER)], {}),
        Case([node(system=UUID)], [vm(name="n1")], {"n1": ("vm-1", "name")}),
    ],
    "A `providerID` of another cloud is no answer; a `vsphere://` that no uuid follows is one that no VM has.": [
        Case([node(provider="aws:///a/i-0", system=UUID)], [vm(uuid=UUID)], {"n1": ("vm-1", "systemUUID")}),
        Case([node(provider="vsphere://n1", system=UUID)], [vm(name="n1", uuid=UUID)], {}),
    ],
    "Of a live vCenter names are asked only with `vsphere.joinByName: true`.": [
        Case([node()], [vm(name="n1")], {}, by_name=False),
        Case([node()], [vm(hostname="n1")], {}, by_name=False),
        Case([provided(UUID)], [vm(uuid=UUID)], {"n1": ("vm-1", "providerID")}, by_name=False),
    ],
    "If several VMs have what the node says, it joins the one that is on.": [
        Case([provided(UUID)], [vm(uuid=UUID, power="off"), vm("vm-2", uuid=UUID)], {"n1": ("vm-2", "providerID")}),
        Case([node()], [vm(name="n1", power="off"), vm("vm-2", name="n1")], {"n1": ("vm-2", "name")}),
    ],
    "If several of them are on, or none is, the node joins none.": [
        Case([provided(UUID)], [vm(uuid=UUID), vm("vm-2", uuid=UUID)], {}),
        Case([provided(UUID)], [vm(uuid=UUID, power="off"), vm("vm-2", uuid=UUID, power="off")], {}),
    ],
    "If several nodes claim one VM by its uuid, the oldest of them joins it.": [
        Case([provided(UUID, "n1", NEW), provided(UUID, "n2", OLD)], [vm(uuid=UUID)], {"n2": ("vm-1", "providerID")}),
    ],
    "Of nodes of one age the one with a `providerID` joins it, then the one with the smallest name.": [
        Case(
            [node("n1", system=UUID, since=OLD), provided(UUID, "n2", OLD)],
            [vm(uuid=UUID)],
            {"n2": ("vm-1", "providerID")},
        ),
        Case([provided(UUID, "n2", OLD), provided(UUID, "n1", OLD)], [vm(uuid=UUID)], {"n1": ("vm-1", "providerID")}),
    ],
    "A node that claims a VM by its uuid comes before one that claims it by its name, and that before one by its "
    "guest's name.": [
        Case(
            [node("n1", since=OLD), provided(UUID, "n2", NEW)],
            [vm(name="n1", uuid=UUID)],
            {"n2": ("vm-1", "providerID")},
        ),
        Case([node("n1", since=OLD), node("n2", since=NEW)], [vm(name="n2", hostname="n1")], {"n2": ("vm-1", "name")}),
    ],
}


def joined(case: Case) -> dict[str, tuple[str, str]]:
    found = join(case.nodes, case.vms, [], by_name=case.by_name)
    return {name: (row.vm, row.joined_by) for name, row in found.items()}


@pytest.mark.parametrize("at", range(4))
def test_a_row_says_by_what_a_node_joins(at: int) -> None:
    assert joined(IN_ORDER[at]) == IN_ORDER[at].joined
    assert [by for _, by in IN_ORDER[at].joined.values()] == [ROWS[at][2].strip("`")]
    assert joined(REFUSED[at]) == REFUSED[at].joined


def test_the_rows_are_asked_in_their_order() -> None:
    says = node(provider=f"vsphere://{UUID}", system=OTHER, hostname="h")
    vms = [vm(uuid=UUID), vm("vm-2", uuid=OTHER), vm("vm-3", name="n1"), vm("vm-4", hostname="h")]
    found = []
    while row := joined(Case([says], vms, {})).get("n1"):
        found.append(row[1])
        vms = [one for one in vms if one.ref != row[0]]
        if row[1] == "providerID":
            says = node(system=OTHER, hostname="h")
    assert found == [by.strip("`") for _, _, by in ROWS]


@pytest.mark.parametrize("rule", RULES)
def test_a_sentence_is_true(rule: str) -> None:
    assert [joined(case) for case in TRUE_OF[rule]] == [case.joined for case in TRUE_OF[rule]]


def test_no_sentence_is_left_out() -> None:
    assert list(TRUE_OF) == RULES
    assert len(ROWS) == len(IN_ORDER) == len(REFUSED)
