"""What a cluster is given: the committed manifests, which are the chart's own output, and the chart's schema."""

import base64
import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from support.processes.helm import CHART, RELEASE, helm, template

from underhost.agents.pipeline import roles
from underhost.streams.kubernetes.kinds import KINDS
from underhost.streams.settings.labels import CAPV_HOST_KEY
from underhost.streams.settings.load import load
from underhost.streams.settings.sinks import SinkSettings

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data" / "kubernetes"
PLAIN, SINKS, SPLIT = ROOT / "compose" / "kubernetes" / "underhost.yaml", DATA / "sinks.yaml", DATA / "split.yaml"
EVERY_SINK = DATA / "sinks-values.yaml"
RENDERED = {
    PLAIN: ("--set", "web.secretName=underhost-web"),
    SINKS: ("--values", EVERY_SINK),
    SPLIT: ("--values", CHART / "values-split.yaml", "--values", EVERY_SINK, "--values", DATA / "split-values.yaml"),
}
FILES = pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.stem)
HEADER = "# Written by `make manifests` from the chart: do not edit.\n"


def objects(path: Path, *kinds: str) -> list[dict[str, Any]]:
    """The objects of a file, of these kinds if any are named."""
    read = [one for one in yaml.safe_load_all(path.read_text()) if one]
    return [one for one in read if not kinds or one["kind"] in kinds]


def workers(path: Path) -> dict[str, dict[str, Any]]:
    """Deployments and StatefulSets by name."""
    return {one["metadata"]["name"]: one for one in objects(path, "Deployment", "StatefulSet")}


def pods(path: Path) -> Iterator[dict[str, Any]]:
    """The pod spec of each worker."""
    for worker in workers(path).values():
        yield worker["spec"]["template"]["spec"]


@FILES
def test_the_committed_manifests_are_what_the_chart_says_today(path: Path) -> None:
    assert path.read_text() == HEADER + template(*RENDERED[path]), "run: make manifests"


@pytest.mark.parametrize("values", [(), ("--values", str(CHART / "values-split.yaml"))], ids=["default", "split"])
def test_helm_has_nothing_to_say_against_the_chart(values: tuple[str, ...]) -> None:
    said = helm("lint", "--strict", "--quiet", CHART, *values)
    assert (said.returncode, said.stdout) == (0, "")


@pytest.mark.parametrize(
    ("values", "why"),
    [
        pytest.param(
            "workers[0].replicas=2", "workers: the embedded log is one process's", id="two on an embedded log"
        ),
        pytest.param(
            "config.vsphere.url=https://vc/sdk", "vcenter.secretName: a Secret with the key", id="no password"
        ),
        pytest.param("workers[0].agents={labeller}", "workers: one must run the agent `evaluator`", id="no evaluator"),
        pytest.param("config.sinks.evict=true", "evict", id="a sink that there is not"),
    ],
)
def test_the_chart_refuses(values: str, why: str) -> None:
    first = "workers[0].name=worker,workers[0].replicas=1,"
    said = helm("template", "underhost", CHART, *RELEASE, "--set", first + values)
    assert said.returncode == 1
    assert why in said.stderr


@FILES
def test_a_pod_has_nothing_that_it_does_not_need(path: Path) -> None:
    for pod in pods(path):
        assert pod["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": 10001,
            "runAsGroup": 10001,
            "fsGroup": 10001,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        (container,) = pod["containers"]
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod)
        assert all(set(volume) & {"configMap", "secret", "emptyDir"} for volume in pod["volumes"])


@FILES
def test_a_pod_says_how_it_is_and_what_it_takes(path: Path) -> None:
    for pod in pods(path):
        (container,) = pod["containers"]
        asked = {name: container[name]["httpGet"]["path"] for name in container if name.endswith("Probe")}
        assert asked == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
        assert container["resources"] == {
            "requests": {"cpu": "200m", "memory": "256Mi"},
            "limits": {"memory": "1Gi"},
        }


@FILES
def test_each_worker_has_an_account_and_a_budget_of_its_own_and_spreads_over_hosts(path: Path) -> None:
    accounts = {one["metadata"]["name"]: one for one in objects(path, "ServiceAccount")}
    budgets = {one["metadata"]["name"]: one["spec"] for one in objects(path, "PodDisruptionBudget")}
    assert set(accounts) == set(budgets) == set(workers(path))
    assert all(account["automountServiceAccountToken"] is False for account in accounts.values())
    for name, worker in workers(path).items():
        selector, pod = worker["spec"]["selector"], worker["spec"]["template"]
        assert pod["spec"]["serviceAccountName"] == name
        assert selector["matchLabels"].items() <= pod["metadata"]["labels"].items()
        assert (budgets[name]["selector"], budgets[name]["maxUnavailable"]) == (selector, 1)
        spread = pod["spec"]["topologySpreadConstraints"]
        assert [one["topologyKey"] for one in spread] == [CAPV_HOST_KEY, "kubernetes.io/hostname"]
        assert all(one["labelSelector"] == selector for one in spread)


@FILES
def test_only_a_worker_that_asks_the_api_has_a_token(path: Path) -> None:
    bound = {one["subjects"][0]["name"] for one in objects(path, "ClusterRoleBinding", "RoleBinding")}
    tokens = {
        name for name, one in workers(path).items() if one["spec"]["template"]["spec"]["automountServiceAccountToken"]
    }
    assert tokens == bound


def test_only_workers_that_need_a_secret_have_it_and_every_one_that_of_its_door() -> None:
    holding = {
        name: [
            volume["secret"]["secretName"]
            for volume in worker["spec"]["template"]["spec"]["volumes"]
            if "secret" in volume
        ]
        for name, worker in workers(SPLIT).items()
    }
    assert {secrets.pop(0) for secrets in holding.values()} == {"underhost-web"}
    assert holding == {
        **{name: ["underhost-kafka"] for name in holding},
        "underhost-watcher": ["underhost-vcenter", "underhost-kafka"],
        "underhost-drs": ["underhost-vcenter", "underhost-kafka"],
        "underhost-mover": ["underhost-vcenter", "underhost-kafka"],
        "underhost-alerts": ["underhost-alerting", "underhost-kafka"],
        "underhost-evictor": ["underhost-kafka-evictor"],
    }


@FILES
def test_no_secret_is_written_down(path: Path) -> None:
    assert {one["kind"] for one in objects(path)} == {
        "ClusterRole",
        "ClusterRoleBinding",
        "ConfigMap",
        "Deployment" if path is SPLIT else "StatefulSet",
        "NetworkPolicy",
        "PodDisruptionBudget",
        "Role",
        "RoleBinding",
        "Service",
        "ServiceAccount",
    }
    assert "password:" not in path.read_text()


@FILES
def test_the_configuration_is_one_that_we_accept(path: Path, tmp_path: Path) -> None:
    (config,) = objects(path, "ConfigMap")
    (tmp_path / "underhost.yaml").write_text(config["data"]["underhost.yaml"])
    for pod in pods(path):
        (container,) = pod["containers"]
        environ = {one["name"]: one["value"] for one in container.get("env", ())}
        settings = load(tmp_path / "underhost.yaml", environ=environ)
        assert settings.web.listen == "0.0.0.0:8080"
        assert (str(settings.web.token_file), settings.web.open_to_read) == ("/etc/underhost/web/token", False)
        assert {"name": "web", "mountPath": "/etc/underhost/web", "readOnly": True} in container["volumeMounts"]
        assert set(settings.sinks.model_dump().values()) == {path is not PLAIN}
        assert (settings.kafka.bootstrap_servers is None) == (path is not SPLIT)


@FILES
def test_the_service_leads_to_who_has_the_page(path: Path) -> None:
    (service,) = objects(path, "Service")
    selected = [
        name
        for name, worker in workers(path).items()
        if service["spec"]["selector"].items() <= worker["spec"]["template"]["metadata"]["labels"].items()
    ]
    assert selected == ["underhost-evaluator" if path is SPLIT else "underhost-worker"]


@FILES
def test_only_pods_of_the_namespace_reach_the_port_of_any_worker(path: Path) -> None:
    (policy,) = (one["spec"] for one in objects(path, "NetworkPolicy") if one["spec"]["policyTypes"] == ["Ingress"])
    assert policy["ingress"] == [{"ports": [{"port": "http"}], "from": [{"podSelector": {}}]}]
    chosen = policy["podSelector"]["matchLabels"].items()
    labels = [worker["spec"]["template"]["metadata"]["labels"] for worker in workers(path).values()]
    assert [one for one in labels if not chosen <= one.items()] == []


@FILES
def test_every_agent_runs_in_one_worker(path: Path) -> None:
    named = [
        argument.removeprefix("--agents=").split(",")
        for pod in pods(path)
        for argument in pod["containers"][0]["args"]
        if argument.startswith("--agents=")
    ]
    if path is not SPLIT:
        assert named == []  # all of them
    else:
        # `web` answers the probes of each.
        assert sorted(name for names in named for name in names if name != "web") == sorted({*roles.ALL} - {roles.WEB})
        assert all("web" in names for names in named)


@FILES
def test_what_is_watched_may_be_listed_and_watched(path: Path) -> None:
    granted = {
        (group, resource)
        for role in objects(path, "ClusterRole")
        for rule in role["rules"]
        if rule["verbs"] == ["list", "watch"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    assert granted == {
        ("" if kind.api_version == "v1" else kind.api_version.partition("/")[0], kind.plural) for kind in KINDS
    }


LOOKED_AT = [("nodes", "get"), ("pods", "get")]
EVENTS = [("events", "get"), ("events", "patch"), ("events.events.k8s.io", "create")]
REPORTS = [
    (f"{plural}.openreports.io", verb)
    for plural in ("clusterreports", "reports")
    for verb in ("create", "delete", "get", "list", "patch")
]


@pytest.mark.parametrize(
    ("sinks", "expected"),
    [
        pytest.param("", [], id="every sink a dry run"),
        pytest.param("labels", [("nodes", "patch")], id="labels"),
        pytest.param("bindings", [("pods/binding", "create")], id="bindings without Events: no pod's status"),
        pytest.param("drsRules", [], id="DRS rules, which are vCenter's"),
        pytest.param("evictions", [("pods/eviction", "create")], id="evictions"),
        pytest.param("events", EVENTS, id="Events without bindings: no pod's status"),
        pytest.param("reports", REPORTS, id="reports"),
        pytest.param(
            "bindings,events", [*EVENTS, ("pods/binding", "create"), ("pods/status", "patch")],
            id="why a pod of ours waits is in its status",
        ),
    ],
)  # fmt: skip
def test_the_rights_to_write_come_with_their_sinks(sinks: str, expected: list[tuple[str, str]]) -> None:
    flags = [flag for name in filter(None, sinks.split(",")) for flag in ("--set", f"config.sinks.{name}=true")]
    (role,) = (one for one in yaml.safe_load_all(template(*flags)) if one and one["kind"] == "ClusterRole")
    granted = {
        (f"{resource}.{group}" if group else resource, verb)
        for rule in role["rules"]
        if rule["verbs"] != ["list", "watch"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }
    assert sorted(granted) == sorted([*LOOKED_AT, *expected])


@FILES
def test_a_worker_may_take_the_leases_of_what_it_acts_in_and_no_others(path: Path) -> None:
    taken = {}
    for one in objects(path, "Role"):
        creating, holding = one["rules"]
        assert (
            (creating["resources"], creating["verbs"]) == (holding["resources"], ["create"]) == (["leases"], ["create"])
        )
        assert holding["verbs"] == ["get", "update"]
        taken[one["metadata"]["name"].removeprefix("underhost-")] = holding["resourceNames"]
    assert taken == LEASES[path]


LEASES = {
    # A dry run writes nothing, so that it takes no lease of those who do.
    PLAIN: {"worker": ["underhost-default-kubernetes", "underhost-default-vsphere"]},
    SINKS: {
        "worker": [
            f"underhost-default-{role}"
            for role in ("kubernetes", "vsphere", "labeller", "pod-labeller", "binder", "evictor", "events", "reporter")
        ]
    },
    SPLIT: {
        "watcher": ["underhost-prod-a-kubernetes", "underhost-prod-a-vsphere"],
        **{
            role: [f"underhost-prod-a-{role}"]
            for role in ("labeller", "pod-labeller", "binder", "drs", "mover", "evictor", "events", "reporter")
        },
    },
}
"""The leases of each worker: those of its sources, and of its sinks that write."""


@pytest.mark.parametrize(
    ("sink", "role"),
    [
        ("labels", "labeller"),
        ("podLabels", "pod-labeller"),
        ("bindings", "binder"),
        ("evictions", "evictor"),
        ("events", "events"),
        ("reports", "reporter"),
    ],
)
def test_a_sink_brings_the_lease_of_its_own_role_alone(sink: str, role: str) -> None:
    said = template("--set", f"config.sinks.{sink}=true")
    (one,) = (one for one in yaml.safe_load_all(said) if one and one["kind"] == "Role")
    sources = ["underhost-default-kubernetes", "underhost-default-vsphere"]
    assert one["rules"][1]["resourceNames"] == [*sources, f"underhost-default-{role}"]


def test_the_leases_lie_where_the_configuration_says() -> None:
    said = template("--set", "config.lease.namespace=elsewhere")
    found = [one for one in yaml.safe_load_all(said) if one and one["kind"] in ("Role", "RoleBinding")]
    assert [one["metadata"]["namespace"] for one in found] == ["elsewhere", "elsewhere"]
    assert found[1]["subjects"][0]["namespace"] == "underhost"


def test_a_token_is_made_where_none_is_given_another_for_each_release() -> None:
    tokens = set()
    for _ in range(2):
        said = helm("template", "underhost", CHART, *RELEASE)
        (secret,) = [one for one in yaml.safe_load_all(said.stdout) if one and one["kind"] == "Secret"]
        assert secret["metadata"]["name"] == "underhost-web"
        tokens.add(base64.b64decode(secret["data"]["token"]).decode())
    assert [len(token) for token in tokens] == [48, 48]


def test_certificates_that_are_given_reach_the_listeners_and_the_probes(tmp_path: Path) -> None:
    values = "web.tlsSecretName=page,extender.tlsSecretName=ask,podMonitor.enabled=true"
    said = helm("template", "underhost", CHART, *RELEASE, "--set", values)
    found = {one["kind"]: one for one in yaml.safe_load_all(said.stdout) if one}
    (tmp_path / "underhost.yaml").write_text(found["ConfigMap"]["data"]["underhost.yaml"])
    settings = load(tmp_path / "underhost.yaml", environ={})
    assert (settings.web.tls is not None, settings.extender.listen) == (True, "0.0.0.0:8443")
    pod = found["StatefulSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    probes = {container[name]["httpGet"]["scheme"] for name in container if name.endswith("Probe")}
    assert (probes, found["PodMonitor"]["spec"]["podMetricsEndpoints"][0]["scheme"]) == ({"HTTPS"}, "https")
    ports = [port["name"] for port in found["Service"]["spec"]["ports"]]
    assert ports == [port["name"] for port in container["ports"]] == ["http", "extender"]
    assert [port["port"] for port in found["NetworkPolicy"]["spec"]["ingress"][0]["ports"]] == ["http", "extender"]
    mounted = {one["mountPath"] for one in container["volumeMounts"]}
    assert {"/etc/underhost/web-tls", "/etc/underhost/extender-tls"} <= mounted
    named = {one["secret"]["secretName"] for one in pod["volumes"] if "secret" in one}
    assert named == {"underhost-web", "page", "ask"}


def test_image_and_chart_have_the_version_of_the_project() -> None:
    version = (ROOT / "pyproject.toml").read_text().partition('\nversion = "')[2].partition('"')[0]
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (version, version)
    assert {pod["containers"][0]["image"] for path in RENDERED for pod in pods(path)} == {f"underhost:{version}"}


# ------------------------------------------------------------------------------------------------- the chart's schema
def _values() -> dict[str, Any]:
    return dict(yaml.safe_load((CHART / "values.yaml").read_text()))


def _schema() -> dict[str, Any]:
    return dict(yaml.safe_load((CHART / "values.schema.json").read_text()))


def _set(values: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(values)
    *folders, last = path.split(".")
    place = changed
    for name in folders:
        place = place.setdefault(name, {})
    place[last] = value
    return changed


def test_the_schema_takes_the_values_that_we_ship() -> None:
    split = yaml.safe_load((CHART / "values-split.yaml").read_text())
    for values in (_values(), {**_values(), **split}):
        jsonschema.Draft7Validator(_schema()).validate(values)
    agents = [name for worker in split["workers"] for name in worker["agents"]]
    assert sorted(agents) == sorted({*roles.ALL} - {roles.WEB})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        pytest.param("imagee", {}, id="an unknown value"),
        pytest.param("image.tag", "latest", id="an image that is another one tomorrow"),
        pytest.param("config.site", "Prod_A", id="a site that is no name"),
        pytest.param("config.sinks.evict", True, id="a sink that there is not"),
        pytest.param("config.vsphere.password", "secret", id="a password in the ConfigMap"),
        pytest.param("config.vsphere.passwordFile", "/elsewhere", id="a password's file that is no Secret"),
        pytest.param("config.web.tokenFile", "/elsewhere", id="a token that is in no Secret"),
        pytest.param("config.extender", {"listen": ":1"}, id="an extender that no Service leads to"),
        pytest.param("workers", [], id="no worker"),
        pytest.param("workers", [{"name": "a", "replicas": 1, "agents": ["labels"]}], id="an agent that there is not"),
        pytest.param("service.port", 80, id="a port that only root may have"),
    ],
)
def test_the_schema_refuses(path: str, value: Any) -> None:
    assert not jsonschema.Draft7Validator(_schema()).is_valid(_set(_values(), path, value))


def test_the_schema_knows_the_agents_and_sinks_that_there_are() -> None:
    schema = _schema()["properties"]
    assert schema["workers"]["items"]["properties"]["agents"]["items"]["enum"] == list(roles.ALL)
    sinks = [field.alias or name for name, field in SinkSettings.model_fields.items()]
    assert list(schema["config"]["properties"]["sinks"]["properties"]) == sinks
