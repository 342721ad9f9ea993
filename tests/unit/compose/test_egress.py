"""What workers may connect to: the egress policies of the committed manifests, and those of the chart's settings."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from support.processes.helm import CHART, template

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "kubernetes"
PLAIN, SINKS, SPLIT = ROOT / "compose" / "kubernetes" / "underhost.yaml", DATA / "sinks.yaml", DATA / "split.yaml"


def egress(documents: str) -> dict[str, list[dict[str, Any]]]:
    """The egress rules of each worker, by component; each worker has one policy, which says nothing else."""
    found = {}
    for one in yaml.safe_load_all(documents):
        if one and one["kind"] == "NetworkPolicy" and "Egress" in one["spec"]["policyTypes"]:
            assert one["spec"]["policyTypes"] == ["Egress"]
            found[one["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/component"]] = one["spec"]["egress"]
    return found


def reached(documents: str) -> dict[str, list[list[int]]]:
    """The TCP ports of each rule, by worker; UDP is for DNS alone."""
    every = {}
    for worker, rules in egress(documents).items():
        for rule in rules:
            udp = [port["port"] for port in rule["ports"] if port["protocol"] == "UDP"]
            assert udp in ([], [port["port"] for port in rule["ports"] if port["protocol"] == "TCP" and udp])
        every[worker] = [[port["port"] for port in rule["ports"] if port["protocol"] == "TCP"] for rule in rules]
    return every


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(PLAIN, {"worker": [[53], [443, 6443]]}, id="an embedded log and no vCenter"),
        pytest.param(SINKS, {"worker": [[53], [443, 6443]]}, id="with every sink"),
        pytest.param(
            SPLIT,
            {
                "watcher": [[53], [443, 6443], [9092], [443]],
                "evaluator": [[53], [9092]],
                "labeller": [[53], [443, 6443], [9092]],
                "pod-labeller": [[53], [443, 6443], [9092]],
                "binder": [[53], [443, 6443], [9092]],
                "drs": [[53], [443, 6443], [9092], [443]],
                "mover": [[53], [443, 6443], [9092], [443]],
                "evictor": [[53], [443, 6443], [9092]],
                "events": [[53], [443, 6443], [9092]],
                "reporter": [[53], [443, 6443], [9092]],
                "alerts": [[53], [9092], [9093]],
            },
            id="apart: DNS, the API server, Kafka, vCenter, receivers",
        ),
    ],
)
def test_a_worker_may_connect_to_what_its_agents_need(path: Path, expected: dict[str, list[list[int]]]) -> None:
    assert reached(path.read_text()) == expected


@pytest.mark.parametrize("path", [PLAIN, SINKS, SPLIT], ids=lambda path: path.stem)
def test_every_worker_has_an_egress_policy(path: Path) -> None:
    documents = [one for one in yaml.safe_load_all(path.read_text()) if one]
    templates = [one["spec"]["template"] for one in documents if one["kind"] in ("Deployment", "StatefulSet")]
    components = [template["metadata"]["labels"]["app.kubernetes.io/component"] for template in templates]
    assert sorted(egress(path.read_text())) == sorted(components)


ONE = "workers[0].name=worker,workers[0].replicas=1"
VSPHERE = "config.vsphere.url={},vcenter.secretName=s"
BROKERS = r"config.kafka.bootstrapServers=k-1:9093\,k-2:9094\, k-3"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(BROKERS, [[53], [443, 6443], [9093, 9094, 9092]], id="the ports of the brokers, 9092 unless said"),
        pytest.param(
            f"{BROKERS},networkPolicy.to.kafka.ports={{9095}}", [[53], [443, 6443], [9095]],
            id="the ports that brokers advertise, as a person says",
        ),
        pytest.param(VSPHERE.format("https://vc:8443/sdk"), [[53], [443, 6443], [8443]], id="a vCenter's own port"),
        pytest.param(VSPHERE.format("https://[2001:db8::1]/sdk"), [[53], [443, 6443], [443]], id="an address of IPv6"),
        pytest.param(
            "config.alerting.alertmanagers={http://a:9093,http://b},config.alerting.webhooks[0].url=https://c/x",
            [[53], [443, 6443], [9093, 80, 443]],
            id="receivers' ports, or those of their schemes",
        ),
        pytest.param("networkPolicy.to.kubernetes.ports={8443}", [[53], [8443]], id="an API server elsewhere"),
        pytest.param("networkPolicy.to.dns.ports={5353}", [[5353], [443, 6443]], id="DNS elsewhere"),
        pytest.param(
            r"config.kafka.bootstrapServers=k:9092,workers[0].agents={evaluator}", [[53], [9092]],
            id="who asks the API server nothing",
        ),
        pytest.param("networkPolicy.enabled=false", None, id="no policy"),
    ],
)  # fmt: skip
def test_the_ports_are_those_of_the_configuration_unless_said(values: str, expected: list[list[int]] | None) -> None:
    assert reached(template("--set", f"{ONE},{values}")).get("worker") == expected


def test_peers_bound_a_destination_to_addresses() -> None:
    peer = {"ipBlock": {"cidr": "192.0.2.7/32"}}
    values = "networkPolicy.to.kubernetes.peers[0].ipBlock.cidr=192.0.2.7/32"
    dns, api = egress(template("--set", values))["worker"]
    assert (dns.get("to"), api["to"]) == (None, [peer])


@pytest.mark.parametrize(
    ("to", "is_valid"),
    [
        pytest.param({"kafka": {"ports": [9093], "peers": [{"podSelector": {}}]}}, True, id="ports and peers"),
        pytest.param({"broker": {"ports": [9093]}}, False, id="an unknown destination"),
        pytest.param({"kafka": {"ports": [0]}}, False, id="no port"),
        pytest.param({"kafka": {"port": 9093}}, False, id="a mistyped key"),
        pytest.param({"kafka": {"peers": [{"cidr": "192.0.2.7/32"}]}}, False, id="a peer that is none"),
        pytest.param({"dns": {"ports": []}}, False, id="no port of DNS"),
    ],
)
def test_the_schema_knows_destinations(to: dict[str, Any], is_valid: bool) -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    values["networkPolicy"]["to"].update(to)
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    assert jsonschema.Draft7Validator(schema).is_valid(values) is is_valid
