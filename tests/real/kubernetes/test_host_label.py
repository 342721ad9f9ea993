"""Hosts from a node label on a real API server: another controller writes it, and there is no vSphere anywhere."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support.processes.kube import Kube
from support.processes.kwok import HOST_LABEL, kwok_node, kwok_pod, uuid_of
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import running
from support.processes.world import KubeApi, eventually

from underhost.schemas.errors import Unreachable

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]


class CloudController:
    """Writes the host of a node into its label, under its own name, as a cloud controller does after a migration."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    def move(self, node: str, host: str) -> str:
        """The time that the API server has put down for it."""
        labels = {"metadata": {"labels": {HOST_LABEL: host}}}
        written = self._api.ask("PATCH", f"/api/v1/nodes/{node}?fieldManager=cloud-controller-manager", labels)
        [entry] = [one for one in written["metadata"]["managedFields"] if one["manager"] == "cloud-controller-manager"]
        return str(entry["time"])


def newest(listener: Listener) -> dict[str, Any]:
    """Where each node runs, as it was told last; nothing before the worker has made its log."""
    try:
        told = listener.records("underhost.node-hosts")
    except Unreachable:
        return {}
    return {one.value["node"]: one.value for one in told if one.value is not None}


def violations(listener: Listener) -> list[Any]:
    """The open ones; that nobody keeps these nodes ready is another matter."""
    return [one for one in listener.open_findings().values() if one["severity"] == "violation"]


def test_findings_follow_the_label_and_hosts_are_dated_by_who_wrote_it(kube: Kube, tmp_path: Path) -> None:
    api, kafka = KubeApi(kube), {"embedded": str(tmp_path / "underhost.db")}
    eventually("the default namespace is there", lambda: api.ask("GET", "/api/v1/namespaces")["items"])
    controller = CloudController(api)
    for number in (1, 2):
        api.ask("POST", "/api/v1/nodes", kwok_node(f"node-{number}", uuid_of(number)))
        controller.move(f"node-{number}", f"pve-{number}")
        api.ask("POST", "/api/v1/namespaces/default/pods", kwok_pod(f"db-{number}", "default-scheduler", app="db"))
        api.bind(f"db-{number}", f"node-{number}")
    config = tmp_path / "underhost.yaml"
    config.write_text(
        json.dumps(
            {
                "site": "prod",
                "kafka": kafka,
                "kubernetes": {"kubeconfig": str(kube.kubeconfig)},
                "hosts": {"label": HOST_LABEL},
                "web": {"listen": f"127.0.0.1:{free_ports(1)[0]}"},
            }
        )
    )
    listener = Listener(kafka)
    with running(config, tmp_path / "underhost.log") as worker:
        eventually("both hosts are known", lambda: len(newest(listener)) == 2)
        assert violations(listener) == []
        since = controller.move("node-2", "pve-1")
        found = eventually("the shared host is found", lambda: violations(listener) or None)
        assert [(one["severity"], one["pod"], one["peers"]) for one in found] == [
            ("violation", "default/db-1", ["default/db-2"])
        ]
        assert "both on host pve-1" in found[0]["message"]
        row = newest(listener)["node-2"]
        assert (row["host"], row["vm"], row["joinedBy"], row["since"]) == ("pve-1", "", "label", since)
        controller.move("node-2", "pve-2")
        eventually("the finding is resolved", lambda: not violations(listener))
        assert worker.end(signal.SIGTERM) == 0
