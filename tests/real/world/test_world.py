"""The world of real parts is what the stories believe it is."""

from pathlib import Path

import pytest
from support.processes.world import FOREIGN_RULE, NODES, eventually, world

pytestmark = pytest.mark.real


def test_seven_ready_nodes_stand_on_seven_hosts(tmp_path: Path, parts: Path) -> None:
    with world(tmp_path, parts) as here:

        def ready() -> bool:
            nodes = here.api.ask("GET", "/api/v1/nodes")["items"]
            return sorted(NODES) == sorted(
                node["metadata"]["name"]
                for node in nodes
                for condition in node["status"].get("conditions", [])
                if condition["type"] == "Ready" and condition["status"] == "True"
            )

        eventually("KWOK has made the nodes ready", ready)
        hosts = {vm: here.vcenter.host_of(vm) for vm in here.vm_of.values()}
        assert sorted(hosts.values()) == sorted(here.vcenter.hosts)
        assert here.vcenter.rules() == {FOREIGN_RULE: (False, sorted(hosts)[:2])}
