"""Where the commands' state comes from: files, a live cluster, a running pipeline, a configuration's vSphere side."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web
from support.build import a_node, a_site
from support.fakes.kube import FakeKube
from support.workers.pipeline import running, settings_in
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.agents.pipeline import roles as role
from underhost.agents.pipeline.connections import connect
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.snapshots.dump import documents
from underhost.agents.snapshots.load import snapshot_of
from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.schemas.page import OPTIONS, SITE
from underhost.streams.files.reader import load_files
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
from underhost.streams.settings.model import Settings, WebSettings

DATA = Path(__file__).parents[3] / "data" / "kubevirt"
DUMP, INVENTORY = DATA / "dump.json", DATA / "inventory.json"
PLURALS = {
    "Node": "nodes",
    "Pod": "pods",
    "Namespace": "namespaces",
    "ReplicaSet": "replicasets",
    "Deployment": "deployments",
    "PodDisruptionBudget": "poddisruptionbudgets",
    "Service": "services",
    "VirtualMachineInstanceReplicaSet": "virtualmachineinstancereplicasets",
}


async def run(*arguments: str) -> Result:
    """A command, in a thread: the servers that it asks live in this loop."""
    return await asyncio.to_thread(CliRunner().invoke, build(), list(arguments))


@pytest.fixture(autouse=True)
def nobodys_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No cluster but the one that is named."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def kube() -> AsyncIterator[FakeKube]:
    """The seeds' cluster, live."""
    async with FakeKube().serving() as server:
        from underhost.streams.kubernetes.kinds import KINDS

        server.served = {kind.plural: kind for kind in KINDS}
        for item in json.loads(DUMP.read_text(encoding="utf-8"))["items"]:
            server.seed(PLURALS[item["kind"]], item)
        yield server


COMMANDS = [
    pytest.param(["check"], id="check"),
    pytest.param(["explain"], id="explain"),
    pytest.param(["schedule"], id="schedule"),
    pytest.param(["lint"], id="lint"),
    pytest.param(["drain", "kni-worker"], id="drain"),
    pytest.param(["fail", "--each", "host"], id="fail"),
    pytest.param(["maintain", "host/esx-1"], id="maintain"),
    pytest.param(["maintain", "--all-hosts"], id="maintain in turn"),
    pytest.param(["whatif", "--uncordon", "kni-worker2"], id="whatif"),
    pytest.param(["repair"], id="repair"),
]


@pytest.mark.parametrize("command", COMMANDS)
async def test_a_live_cluster_is_judged_as_its_dump(kube: FakeKube, tmp_path: Path, command: list[str]) -> None:
    kubeconfig = str(kube.settings(tmp_path).kubeconfig)
    inventory = ["--inventory", str(INVENTORY), "-o", "json"]
    live = await run(*command, "--kubeconfig", kubeconfig, *inventory)
    dump = await run(*command, "-f", str(DUMP), *inventory)
    assert live.stdout == dump.stdout
    assert live.exit_code == dump.exit_code


async def test_without_f_and_server_it_is_the_cluster_that_kubectl_would_ask(
    kube: FakeKube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kube.settings(tmp_path).kubeconfig))
    assert len((await run("explain", "-o", "name")).stdout.splitlines()) == 1
    monkeypatch.delenv("KUBECONFIG")
    home = tmp_path / "home" / ".kube"
    home.mkdir(parents=True)
    kube.settings(home).kubeconfig.rename(home / "config")  # type: ignore[union-attr]
    assert len((await run("explain", "-o", "name")).stdout.splitlines()) == 1
    assert kube.count("version") == 2


async def test_a_context_is_chosen(kube: FakeKube, tmp_path: Path) -> None:
    kubeconfig = str(kube.settings(tmp_path).kubeconfig)
    assert (await run("explain", "--kubeconfig", kubeconfig, "--context", "fake")).exit_code == 0
    wrong = await run("explain", "--kubeconfig", kubeconfig, "--context", "other")
    assert isinstance(wrong.exception, InputError)
    assert str(wrong.exception) == f"{kubeconfig}: no context other; it has fake"


async def test_what_is_about_to_be_applied_is_tried_on_what_is_there(kube: FakeKube, tmp_path: Path) -> None:
    manifest = tmp_path / "api.yaml"
    manifest.write_text(
        "{kind: Pod, apiVersion: v1, metadata: {name: api}, spec: {containers: [{name: c}], nodeSelector: "
        "{kubernetes.io/hostname: kni-worker5}}}",
        encoding="utf-8",
    )
    kubeconfig = str(kube.settings(tmp_path).kubeconfig)
    found = await run("schedule", "-f", str(manifest), "--kubeconfig", kubeconfig, "-o", "json")
    assert json.loads(found.stdout)["placements"]["default/api"] == "kni-worker5"
    assert kube.count("list", "pods") == 1


async def test_a_configuration_names_cluster_inventory_and_how_to_judge(kube: FakeKube, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(
        yaml.safe_dump(
            {
                "site": "prod-a",
                "kubernetes": {"kubeconfig": str(kube.settings(tmp_path).kubeconfig)},
                "vsphere": {"inventory": str(INVENTORY)},
                "physicalHost": "required",
            }
        ),
        encoding="utf-8",
    )
    found = json.loads((await run("check", "--config", str(config), "-o", "json")).stdout)
    plain = json.loads((await run("check", "-f", str(DUMP), "--inventory", str(INVENTORY), "-o", "json")).stdout)
    assert found["summary"] == plain["summary"]
    assert [one["id"] for one in found["findings"]] != [one["id"] for one in plain["findings"]]  # another site's
    # the only place without a shared host is gone, and `required` comes from the file
    steps = [
        "whatif",
        "--cordon",
        "kni-worker6",
        "--cordon",
        "kni-control-plane",
        "--drain",
        "kni-worker",
        "-o",
        "json",
    ]
    strict = json.loads((await run(*steps, "--config", str(config))).stdout)
    lax = json.loads((await run(*steps, "--config", str(config), "--physical-host", "preferred")).stdout)
    assert (strict["moves"], bool(strict["pending"])) == ([], True)
    assert len(lax["moves"]) == 1
    files = await run("check", "--config", str(config), "-f", str(DUMP), "-o", "json")
    assert json.loads(files.stdout)["summary"] == plain["summary"]
    assert kube.count("list", "pods") == 3


@pytest.fixture
async def worker() -> AsyncIterator[str]:
    """A worker that hands out the seeds' site as its own, `prod`."""
    snapshot, _ = snapshot_of(load_files([DUMP], inventory=INVENTORY), "prod", manifests=False)
    async with handing_out(snapshot) as address:
        yield address


@asynccontextmanager
async def handing_out(snapshot: Snapshot, **judged: Any) -> AsyncIterator[str]:
    """The address of a worker with this picture, which judges it so."""
    data = b"".join(documents(snapshot))
    judging = json.dumps({"hostKeys": ["node.cluster.x-k8s.io/esxi-host"], "physicalHost": "preferred", **judged})

    async def answer(request: web.Request) -> web.Response:
        if request.query.get("site", "prod") != "prod":
            return web.json_response({"error": "no such site here"}, status=404)
        return web.Response(body=data, headers={SITE: "prod", OPTIONS: judging})

    app = web.Application()
    app.router.add_get("/api/v1/snapshot", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield "http://{}:{}".format(*runner.addresses[0])
    await runner.cleanup()


@pytest.mark.parametrize("join_by_name", [True, False])
async def test_a_worker_says_whether_names_may_join_its_nodes(join_by_name: bool) -> None:
    site = a_site(a_node("n1"), on={"n1": "h1"})
    async with handing_out(site, joinByName=join_by_name) as address:
        report = json.loads((await run("check", "--server", address, "-o", "json")).stdout)
    assert [one["severity"] for one in report["findings"]] == ([] if join_by_name else ["unknown-host"])


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.id != "lint"])
async def test_a_running_pipeline_is_judged_as_its_dump(worker: str, command: list[str]) -> None:
    there = await run(*command, "--server", worker, "-o", "json")
    dump = await run(*command, "-f", str(DUMP), "--inventory", str(INVENTORY), "-o", "json")

    def without_ids(result: Result) -> object:
        tree = json.loads(result.stdout)
        for item in (tree, *tree.get("items", ())):
            for part in ("findings", "newFindings", "resolvedFindings"):
                for finding in item.get(part, ()):
                    del finding["id"]  # of another site
            for step in item.get("steps", ()):
                del step["because"]  # ids as well
        return tree

    assert without_ids(there) == without_ids(dump)
    assert there.exit_code == dump.exit_code
    assert there.stderr == dump.stderr


async def test_lint_of_a_running_pipeline_says_nothing_of_missing_templates(worker: str) -> None:
    assert (await run("lint", "--server", worker)).stderr == ""


@pytest.mark.parametrize(
    ("arguments", "error", "why"),
    [
        (["--server", "http://127.0.0.1:1"], Unreachable, "http://127.0.0.1:1: "),
        (["--server", "127.0.0.1:8080"], InputError, "the address of a worker is expected, as http://HOST:PORT"),
        (["--server", "http://x", "--context", "c"], InputError, "--server and --context: only one of them"),
        (["--site", "prod", "-f", str(DUMP)], InputError, "--site: which site of --server URL"),
        (["--token-file", "t", "-f", str(DUMP)], InputError, "--token-file: for --server URL; other sources do not"),
        (["--ca-file", "c", "-f", str(DUMP)], InputError, "--ca-file: for --server URL; other sources do not ask"),
        (["--server", "http://x", "--token-file", "/nowhere"], InputError, "--token-file: /nowhere: No such file"),
        (["--server", "http://x", "--token-file", "/dev/null"], InputError, "--token-file: /dev/null: one token is"),
        (["--server", "http://x", "--ca-file", "/nowhere"], InputError, "--ca-file: /nowhere: No such file"),
        (["--server", "http://x", "--ca-file", __file__], InputError, "no PEM certificate in it"),
        (["--kubeconfig", "/nowhere"], InputError, "/nowhere: no such file"),
        ([], InputError, "name a dump with -f, or a worker with --server URL"),
    ],
)
async def test_a_source_that_cannot_be_used_is_one_line(arguments: list[str], error: type[Exception], why: str) -> None:
    result = await run("check", *arguments)
    assert isinstance(result.exception, error)
    assert why in str(result.exception)
    assert "\n" not in str(result.exception)


async def test_an_unknown_site_of_a_worker_is_bad_usage(worker: str) -> None:
    result = await run("check", "--server", worker, "--site", "other")
    assert isinstance(result.exception, InputError)
    assert str(result.exception) == f"{worker}: no such site here"


async def test_wrong_credentials_are_refused(kube: FakeKube, tmp_path: Path) -> None:
    kube.token = "right"
    result = await run("check", "--kubeconfig", str(kube.settings(tmp_path, token="wrong").kubeconfig))
    assert isinstance(result.exception, Refused)


async def test_a_simulated_site_is_asked_of_its_worker(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text("kubernetes: {simulated: kubevirt}\nvsphere: {simulated: kubevirt}\n", encoding="utf-8")
    result = await run("check", "--config", str(config))
    assert isinstance(result.exception, InputError)
    assert "a simulated site lives in its worker; name that with --server" in str(result.exception)


async def test_a_plan_is_tried_on_the_picture_of_a_pipeline_that_runs(tmp_path: Path) -> None:
    """The simulated site, its watchers, the embedded log, the tables, the latest and the room that hands it out."""
    settings = settings_in(tmp_path, sinks=False)
    simulated = Settings(
        site="demo",
        kafka=settings.kafka,
        kubernetes=KubernetesSettings(simulated="kubevirt"),
        vsphere=VSphereSettings(simulated="kubevirt"),
        web=WebSettings(listen="127.0.0.1:0"),
    )
    latest, addresses = LatestDecisions(), list[str]()
    connections = await connect(simulated, frozenset(role.ALL))
    async with running(simulated, connections, latest=latest, on_listening=addresses.append) as worker:
        await worker.until(lambda: bool(addresses) and latest.of("demo") is not None)
        result = await run("fail", "host/esx-1", "--server", addresses[0], "-o", "json")
        wrong = await run("drain", "kni-wroker", "--server", addresses[0])
    found = json.loads(result.stdout)
    assert {(one["vm"], one["from"]) for one in found["vmMoves"]} == {("kni-worker", "esx-1"), ("kni-worker2", "esx-1")}
    assert found["moves"] == []
    assert str(wrong.exception) == "node kni-wroker: not there; did you mean kni-worker?"
