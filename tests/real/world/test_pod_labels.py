"""Host labels of running pods on real parts: a vMotion, and the pods' labels follow; what somebody selects by is left.

kube-apiserver, which copies the labels of a Binding, KWOK and vcsim; `underhost run` on the embedded default.
"""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support.processes.kwok import HOST_LABEL, kwok_pod
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import running
from support.processes.world import World, eventually, world

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]

SPACES = ("moving", "kept", "quiet")
FREE = "esx-free.example"


def pods(here: World) -> dict[str, Any]:
    """The pods by `namespace/name`."""
    found = [each for space in SPACES for each in here.api.ask("GET", f"/api/v1/namespaces/{space}/pods")["items"]]
    return {f"{each['metadata']['namespace']}/{each['metadata']['name']}": each for each in found}


def told(here: World) -> dict[str, str]:
    """The host that each pod's label names."""
    return {name: each["metadata"].get("labels", {}).get(HOST_LABEL, "") for name, each in pods(here).items()}


def outcomes(topics: Listener) -> dict[str, tuple[str, str]]:
    """The newest result and reason for the labels of each pod."""
    heard = [record.value for record in topics.records("underhost.outcomes")]
    return {one["target"]: (one["result"], one["reason"]) for one in heard if one["kind"] == "pod-label"}


def label_writes(here: World) -> list[str]:
    """The paths of pods that a label was written to, each as often as the API server's log has it."""
    plain = [f"/api/v1/namespaces/{name.replace('/', '/pods/')}" for name in pods(here)]
    return [
        path for verb, path, code in here.audit.product_writes() if (verb, code) == ("patch", 200) and path in plain
    ]


def test_labels_of_pods_follow_a_vmotion_and_none_is_written_twice(parts: Path, tmp_path: Path) -> None:
    with world(tmp_path, parts) as here:
        kafka = {"embedded": str(tmp_path / "topics.db")}
        config = here.config(kafka, free_ports(1)[0])
        tree = json.loads(config.read_text())
        config.write_text(json.dumps({**tree, "sinks": {"bindings": True, "podLabels": True}}))
        topics, node = Listener(kafka), "node-2"
        for space in SPACES:
            here.api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": space}})
            for name in ("db-0", "db-1"):
                pod = kwok_pod(name, "underhost", nodeSelector={"kubernetes.io/hostname": node})
                here.api.ask("POST", f"/api/v1/namespaces/{space}/pods", pod)
        with running(config, tmp_path / "underhost.log") as pipeline:
            home = here.vcenter.host_of(here.vm_of[node])
            everybody = ["kept/db-0", "kept/db-1", "moving/db-0", "moving/db-1", "quiet/db-0", "quiet/db-1"]
            eventually("bindings tell all pods their host", lambda: told(here) == dict.fromkeys(everybody, home))

            service = {"metadata": {"name": "web"}, "spec": {"selector": {HOST_LABEL: home}, "ports": [{"port": 80}]}}
            here.api.ask("POST", "/api/v1/namespaces/kept/services", service)
            off = {"metadata": {"labels": {"underhost.io/host-label": "false"}}}
            here.api.ask("PATCH", "/api/v1/namespaces/quiet", off)
            eventually("the Service is seen", lambda: seen(topics, "prod-a/service/kept/web"))
            eventually("the namespace is seen", lambda: seen(topics, "prod-a/namespace//quiet", b"host-label"))

            there = next(host for host in sorted(here.vcenter.hosts) if host != home)
            here.vcenter.move(here.vm_of[node], there)
            moved = {name: there if name.startswith("moving/") else home for name in everybody}
            eventually("the pods' labels follow", lambda: told(here) == moved)
            stays = ("refused", f"label {HOST_LABEL} stays: Service/kept/web selects by it")
            wrote = ("applied", f"set {HOST_LABEL}={there}")
            expected = {f"pod/moving/db-{at}": wrote for at in (0, 1)} | {f"pod/kept/db-{at}": stays for at in (0, 1)}
            eventually("each is told of", lambda: outcomes(topics) == expected)
            pipeline.end(signal.SIGKILL)
            pipeline.start()
            # It decides again: what is left to the Service is told anew, and nothing is written.
            eventually("it has decided after its start", lambda: len(refusals(topics)) >= 4)
            assert pipeline.end(signal.SIGTERM) == 0
        assert told(here) == moved
        assert sorted(label_writes(here)) == [f"/api/v1/namespaces/moving/pods/db-{at}" for at in (0, 1)]
        managers = [each["manager"] for each in pods(here)["moving/db-0"]["metadata"]["managedFields"]]
        assert "underhost" in managers


def seen(topics: Listener, key: str, part: bytes = b"") -> bool:
    """Whether the newest record of the object holds this."""
    heard = [
        value
        for topic in ("services", "namespaces")
        for at, value, _ in topics.raw(f"underhost.{topic}")
        if at == key.encode()
    ]
    return bool(heard) and part in (heard[-1] or b"")


def refusals(topics: Listener) -> list[str]:
    heard = [record.value for record in topics.records("underhost.outcomes")]
    return [one["target"] for one in heard if (one["kind"], one["result"]) == ("pod-label", "refused")]
