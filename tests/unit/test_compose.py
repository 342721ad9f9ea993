"""The compose stack as far as it can be read without a container engine."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from underhost.streams.settings import load

COMPOSE = Path(__file__).parents[2] / "compose"
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


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_says_when_it_is_healthy(name: str) -> None:
    assert SERVICES[name]["healthcheck"]["test"][0] == "CMD"


def test_the_pipeline_waits_for_what_it_needs() -> None:
    assert SERVICES["underhost"]["depends_on"] == {
        "kafka": {"condition": "service_healthy"},
        "vcsim": {"condition": "service_healthy"},
    }


@pytest.mark.parametrize("name", ["underhost", "vcsim"])
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
    for folder in ("schemas", "streams", "agents"):
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
