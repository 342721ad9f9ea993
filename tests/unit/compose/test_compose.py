"""The compose stack as far as it can be read without a container engine."""

import json
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from underhost.agents.http.doors.token import TokenFile
from underhost.streams.settings.load import load

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "compose"
STACK: dict[str, Any] = yaml.safe_load((COMPOSE / "compose.yaml").read_text())
SERVICES: dict[str, Any] = STACK["services"]
DOCKERFILES = sorted(COMPOSE.glob("*Dockerfile"))


def documents() -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((COMPOSE / "site" / "cluster.yaml").read_text()))


@pytest.mark.parametrize("name", SERVICES)
def test_every_image_has_a_version(name: str) -> None:
    assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", SERVICES[name]["image"])


@pytest.mark.parametrize("path", DOCKERFILES, ids=lambda path: path.name)
def test_every_base_image_has_a_version_and_the_last_stage_runs_without_rights(path: Path) -> None:
    lines = path.read_text().splitlines()
    bases = [line.split()[1] for line in lines if line.startswith("FROM ")]
    assert all(re.search(r":[\w.-]+$", base) and not base.endswith(":latest") for base in bases)
    last = lines[max(at for at, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert [line for line in last if line.startswith("USER ")] == ["USER 10001:10001"]


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"token"}))
def test_every_service_that_stays_says_when_it_is_healthy(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


def test_the_pipeline_waits_for_what_it_needs() -> None:
    assert SERVICES["underhost"]["depends_on"] == {
        "token": {"condition": "service_completed_successfully"},
        "kafka": {"condition": "service_healthy"},
        "vcsim": {"condition": "service_healthy"},
    }


def test_the_token_is_made_once_and_read_by_those_whose_door_it_is(tmp_path: Path) -> None:
    *_, program = SERVICES["token"]["entrypoint"]
    made = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", program.replace("/run/underhost", str(tmp_path))], check=True)
        made.append((tmp_path / "token").read_text())
    assert made[0] == made[1]
    assert TokenFile(tmp_path / "token").is_it(made[0])
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o400
    mounted = {name: one["volumes"] for name, one in SERVICES.items() if "token" in str(one.get("volumes"))}
    assert {name: [each for each in volumes if each.startswith("token:")] for name, volumes in mounted.items()} == {
        "token": ["token:/run/underhost"],
        "underhost": ["token:/run/underhost:ro"],
        "demo": ["token:/run/underhost:ro"],
    }
    assert "/run/underhost" in (COMPOSE / "Dockerfile").read_text()  # a volume is as who owns its place in the image


def test_the_demo_of_the_stack_has_a_door_that_can_be_opened() -> None:
    listen = SERVICES["demo"]["command"][-1]
    settings = load(flags={"web": {"listen": listen}}, environ=SERVICES["demo"]["environment"])
    assert (str(settings.web.token_file), settings.web.open_to_read) == ("/run/underhost/token", True)


@pytest.mark.parametrize("name", ["underhost", "vcsim", "token"])
def test_what_we_build_runs_with_nothing_it_does_not_need(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_nothing_is_published_beyond_this_machine() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len({port.split(":")[1] for port in ports}) == len(ports) == 7


def test_the_image_holds_every_folder_of_the_package() -> None:
    dockerfile = (COMPOSE / "Dockerfile").read_text()
    ignored = (COMPOSE / "Dockerfile.dockerignore").read_text().splitlines()
    for folder in ("schemas", "streams", "agents", "docs/runbooks"):
        assert f"COPY {folder} {folder}" in dockerfile
        assert f"!{folder}" in ignored


def test_its_configuration_is_one_that_we_accept_and_writes_nothing() -> None:
    settings = load(COMPOSE / "site" / "underhost.yaml", environ={})
    assert settings.kafka.bootstrap_servers == "kafka:9092"
    assert str(settings.vsphere.password_file) == "/run/secrets/vcenter-password"
    assert not any(settings.sinks.model_dump().values())


def test_there_are_more_replicas_that_want_a_host_each_than_hosts() -> None:
    replicas = [one for one in documents() if one["kind"] == "Pod"]
    nodes = [one for one in documents() if one["kind"] == "Node"]
    command = SERVICES["vcsim"]["command"]
    assert (command[0], command[2]) == ("-host", "-vm")
    assert len(replicas) == len(nodes) == int(command[3]) > int(command[1])
    assert sorted(pod["spec"]["nodeName"] for pod in replicas) == sorted(node["metadata"]["name"] for node in nodes)


def test_what_is_asked_for_by_name_is_not_in_the_way_of_who_only_looks() -> None:
    assert {name: one["profiles"] for name, one in SERVICES.items() if "profiles" in one} == {
        "demo": ["demo"],
        "grafana": ["extras"],
        "kafka-ui": ["extras"],
    }


def test_every_file_that_the_stack_names_is_there() -> None:
    mounted = [one.split(":")[0] for service in SERVICES.values() for one in service.get("volumes", [])]
    built = [service["build"] for service in SERVICES.values() if "build" in service]
    wanted = [path for path in mounted if path.startswith(".")]
    wanted += [str(Path(one["context"]) / one["dockerfile"]) for one in built]
    wanted += [secret["file"] for secret in STACK["secrets"].values()]
    assert len(wanted) == 10
    assert [path for path in wanted if not (COMPOSE / path).exists()] == []
    assert {path for path in mounted if not path.startswith(".")} == set(STACK["volumes"])


def test_grafana_is_given_a_source_and_the_dashboard_that_asks_it() -> None:
    grafana, folder = SERVICES["grafana"], COMPOSE / "grafana"
    mounts = dict(reversed(one.removesuffix(":ro").split(":")) for one in grafana["volumes"])
    assert mounts == {
        "/etc/grafana/provisioning": "./grafana/provisioning",
        "/var/lib/grafana/dashboards": "./grafana/dashboards",
    }
    (source,) = yaml.safe_load((folder / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    assert (source["type"], source["url"]) == ("prometheus", "http://prometheus:9090")
    (provider,) = yaml.safe_load((folder / "provisioning/dashboards/underhost.yml").read_text())["providers"]
    assert (provider["type"], provider["options"]["path"]) == ("file", "/var/lib/grafana/dashboards")
    home = Path(grafana["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    dashboard = json.loads((folder / "dashboards" / home.name).read_text())
    asked = {panel["datasource"]["uid"] for panel in dashboard["panels"] if "datasource" in panel}
    variables = {f"${{{one['name']}}}" for one in dashboard["templating"]["list"] if one["type"] == "datasource"}
    assert asked <= {source["uid"], *variables}


def test_the_kafka_ui_looks_at_the_stacks_kafka_and_changes_nothing() -> None:
    told = SERVICES["kafka-ui"]["environment"]
    assert told == {
        "KAFKA_CLUSTERS_0_NAME": "underhost",
        "KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS": "kafka:9092",
        "KAFKA_CLUSTERS_0_READONLY": "true",
    }
    advertised = SERVICES["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"].split(",")
    assert f"STACK://{told['KAFKA_CLUSTERS_0_BOOTSTRAPSERVERS']}" in advertised


def test_prometheus_and_alertmanager_are_found_where_the_stack_has_them() -> None:
    prometheus = yaml.safe_load((COMPOSE / "prometheus" / "prometheus.yml").read_text())
    targets = {one["job_name"]: one["static_configs"][0]["targets"] for one in prometheus["scrape_configs"]}
    assert targets == {"underhost": ["underhost:8080"], "prometheus": ["127.0.0.1:9090"]}
    (alerting,) = prometheus["alerting"]["alertmanagers"]
    settings = load(COMPOSE / "site" / "underhost.yaml", environ={})
    assert alerting["static_configs"] == [{"targets": ["alertmanager:9093"]}]
    assert settings.alerting.alertmanagers == ("http://alertmanager:9093",)


def test_the_stack_that_is_run_for_real_has_an_image_for_all_but_the_extras() -> None:
    script = (ROOT / "tests" / "compose" / "stack.sh").read_text()
    made = set(re.findall(r"^stand_in (\S+)", script, re.M)) | set(re.findall(r"-t (underhost:\S+) -", script))
    assert made == {one["image"] for one in SERVICES.values() if one.get("profiles") != ["extras"]}
