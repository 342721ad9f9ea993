from typing import Any

import pytest
from support.answers.rules import refused
from support.build import a_pod, a_site, nodes

from underhost.agents.rules.node_ports import NAME, REASON_PORTS_TAKEN


def port(number: int, protocol: str = "TCP", ip: str = "") -> dict[str, Any]:
    return {"containerPort": 80, "hostPort": number, "protocol": protocol, **({"hostIP": ip} if ip else {})}


@pytest.mark.parametrize(
    ("wanted", "taken", "conflict"),
    [
        pytest.param(port(80), port(80), True, id="the same port is taken"),
        pytest.param(port(80), port(81), False, id="another port is free"),
        pytest.param(port(53, "UDP"), port(53), False, id="another protocol is free"),
        pytest.param(port(80, ip="10.0.0.1"), port(80, ip="10.0.0.2"), False, id="another address is free"),
        pytest.param(port(80, ip="10.0.0.1"), port(80), True, id="a port on every address is taken on each"),
        pytest.param(port(80), port(80, ip="10.0.0.1"), True, id="every address is not free where one is taken"),
        pytest.param({"containerPort": 80}, port(80), False, id="a container port is no host port"),
    ],
)
def test_a_port_on_n1(wanted: dict[str, Any], taken: dict[str, Any], conflict: bool) -> None:
    snapshot = a_site(*nodes("n1", "n2"), a_pod("there").ports(taken).on("n1"), a_pod("new").ports(wanted))
    assert refused(snapshot, "new", NAME) == ({"n1": [REASON_PORTS_TAKEN]} if conflict else {})


def test_sidecars_take_ports_and_ordinary_init_containers_do_not() -> None:
    sidecar = {"name": "s", "image": "i", "restartPolicy": "Always", "ports": [port(80)]}
    once = {"name": "o", "image": "i", "ports": [port(90)]}
    there = a_pod("there").spec(initContainers=[sidecar, once]).on("n1")
    snapshot = a_site(*nodes("n1", "n2"), there, a_pod("p80").ports(port(80)), a_pod("p90").ports(port(90)))
    assert refused(snapshot, "p80", NAME) == {"n1": [REASON_PORTS_TAKEN]}
    assert refused(snapshot, "p90", NAME) == {}


def test_a_running_pod_does_not_take_its_own_port_from_itself() -> None:
    snapshot = a_site(*nodes("n1", "n2"), a_pod("there").ports(port(80)).on("n1"))
    assert refused(snapshot, "there", NAME) == {}
