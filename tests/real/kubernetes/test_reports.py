"""Reports on a real API server with the definitions of openreports.io: written, left alone, removed, of bounded size.

The many findings go through decider, sink and writer as the pipeline has them; the few through a whole worker.
"""

import asyncio
import json
import signal
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.build import a_node, a_pod, a_site
from support.processes.kube import Kube
from support.processes.kwok import HOST_LABEL, kwok_node, kwok_pod, uuid_of
from support.processes.ports import free_ports
from support.processes.underhost import running
from support.processes.world import KubeApi, eventually

from underhost.agents.sinks.orders import APPLIED, NOOP
from underhost.agents.sinks.reports.decider import ReportDecider
from underhost.agents.sinks.reports.sink import ReportSink
from underhost.agents.sinks.reports.writer import KubernetesReports
from underhost.schemas.records import FindingEvent, Outcome
from underhost.streams.kubernetes.client import connect
from underhost.streams.settings.clusters import KubernetesSettings

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

DEFINITIONS = Path(__file__).parents[2] / "data" / "openreports"
GROUP = "/apis/openreports.io/v1alpha1"
OWNERS, EACH = 250, 40
KIB = 1024


@pytest.fixture(scope="module")
def api(kube: Kube) -> KubeApi:
    """The cluster, which serves reports."""
    api = KubeApi(kube)
    for file in sorted(DEFINITIONS.glob("*.yaml")):
        api.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", yaml.safe_load(file.read_text()))
    eventually("reports are served", lambda: is_served(api))
    return api


def is_served(api: KubeApi) -> bool:
    """Whether both kinds can be listed: 404 before the server knows them, 429 while it makes room for them."""
    try:
        return reports(api) == []
    except OSError:
        return False


def reports(api: KubeApi) -> list[Any]:
    return [one for plural in ("reports", "clusterreports") for one in api.ask("GET", f"{GROUP}/{plural}")["items"]]


def test_ten_thousand_findings_of_250_owners_are_few_objects_of_bounded_size(api: KubeApi, kube: Kube) -> None:
    pods = [
        a_pod(f"{owner}-{replica}", f"ns-{owner % 10}").owned_by(f"StatefulSet/app-{owner}").on("n1")
        for owner in range(OWNERS)
        for replica in range(2)
    ]
    site = a_site(a_node("n1"), *pods)
    open_ = {
        f"{owner:03}{at:03}": a_finding(f"{owner:03}{at:03}", *(f"ns-{owner % 10}/{owner}-{n}" for n in (0, 1)))
        for owner in range(OWNERS)
        for at in range(EACH)
    }
    for number in range(10):
        api.ask("POST", "/api/v1/namespaces", {"metadata": {"name": f"ns-{number}"}})

    async def round_of(findings: dict[str, FindingEvent]) -> list[Outcome]:
        """What a worker that has just started does: it knows nothing of an earlier one."""
        client = await connect(KubernetesSettings(kubeconfig=kube.kubeconfig))
        async with client:
            sink = ReportSink(KubernetesReports(client), "prod")
            return [await sink.apply(action) for action in ReportDecider("prod", lambda: findings).decide(site, 0.0)]

    first = asyncio.run(round_of(open_))
    assert [one.result for one in first[:-1]] == [APPLIED] * OWNERS
    there = reports(api)
    assert len(there) == OWNERS
    assert sum(one["summary"]["fail"] for one in there) == OWNERS * EACH
    assert max(len(json.dumps(one, separators=(",", ":"))) for one in there) <= 256 * KIB
    assert {entry["manager"] for one in there for entry in one["metadata"]["managedFields"]} == {"underhost"}

    again = asyncio.run(round_of(open_))
    assert {one.result for one in again} == {NOOP}
    versions = {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in there}
    assert {one["metadata"]["uid"]: one["metadata"]["resourceVersion"] for one in reports(api)} == versions

    asyncio.run(round_of({}))  # all was resolved while no worker ran
    assert reports(api) == []


def a_finding(id_: str, *pods: str) -> FindingEvent:
    message = f"Pod {pods[0]} and pod {pods[1]} run on host esx-1, though a required anti-affinity keeps them apart."
    times = {"first_seen": "2026-01-05T08:00:00Z", "updated_at": "2026-01-05T08:00:00Z"}
    about = {"severity": "physical", "rule": "PhysicalHost", "reason": "pods share a host", "message": message}
    return FindingEvent(
        id=id_, state="opened", site="prod", snapshot={}, pod=pods[0], peers=[*pods[1:]], **times, **about
    )


def test_a_report_comes_with_its_finding_and_goes_with_it(api: KubeApi, kube: Kube, tmp_path: Path) -> None:
    for number in (1, 2):
        api.ask("POST", "/api/v1/nodes", kwok_node(f"node-{number}", uuid_of(number), host=f"esx-{number}"))
        api.ask("POST", "/api/v1/namespaces/default/pods", kwok_pod(f"db-{number}", "default-scheduler", app="db"))
        api.bind(f"db-{number}", f"node-{number}")
    config = tmp_path / "underhost.yaml"
    config.write_text(
        json.dumps(
            {
                "site": "prod",
                "kafka": {"embedded": str(tmp_path / "underhost.db")},
                "kubernetes": {"kubeconfig": str(kube.kubeconfig)},
                "hosts": {"label": HOST_LABEL},
                "sinks": {"reports": True},
                "web": {"listen": f"127.0.0.1:{free_ports(1)[0]}"},
            }
        )
    )

    def told() -> list[Any]:
        """The report of the pods, which nothing owns; nobody keeps the nodes ready, which is reported of them."""
        return [one for one in reports(api) if one["kind"] == "Report"]

    with running(config, tmp_path / "underhost.log") as worker:
        eventually("the nodes' drift is reported", lambda: {one["kind"] for one in reports(api)} == {"ClusterReport"})
        move(api, "node-2", "esx-1")
        [found] = eventually("the shared host is reported", lambda: told() or None)
        assert found["metadata"]["namespace"] == "default"
        assert [(one["policy"], one["rule"], one["result"]) for one in found["results"]] == [
            ("InterPodAffinity", "violation", "fail")
        ]
        assert [one["name"] for one in found["results"][0]["resources"]] == ["db-1", "db-2"]
        move(api, "node-2", "esx-2")
        eventually("the report is gone", lambda: not told())
        assert worker.end(signal.SIGTERM) == 0


def move(api: KubeApi, node: str, host: str) -> None:
    api.ask("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {HOST_LABEL: host}}})
