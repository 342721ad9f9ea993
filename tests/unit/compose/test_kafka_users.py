"""Who each worker of the chart is at Kafka: a user of its own, which has no other's password."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.processes.helm import CHART, RELEASE, helm, template
from typer.testing import CliRunner

from underhost.agents.commands.application import build
from underhost.streams.settings.load import load

SPLIT = Path(__file__).parents[2] / "data" / "kubernetes" / "split.yaml"
PASSWORD, CA = "/etc/underhost/kafka/{}", "/etc/underhost/kafka/ca.pem"
FIRST = "workers[0].name=worker,workers[0].replicas=1"
USER = "workers[0].kafka.username=u,workers[0].kafka.passwordKey=p"
KAFKA = "config.kafka.bootstrapServers=k:9092"
SCRAM = f"{KAFKA},config.kafka.sasl.mechanism=SCRAM-SHA-512"


def workers(text: str) -> dict[str, dict[str, Any]]:
    """The pod spec of each worker, without the release's name."""
    return {
        one["metadata"]["name"].removeprefix("underhost-"): one["spec"]["template"]["spec"]
        for one in yaml.safe_load_all(text)
        if one and one["kind"] in ("Deployment", "StatefulSet")
    }


def environ(pod: dict[str, Any]) -> dict[str, str]:
    """The variables that the worker is given."""
    return {one["name"]: one["value"] for one in pod["containers"][0].get("env", ())}


def given(pod: dict[str, Any]) -> tuple[str, list[str]] | None:
    """The Secret of Kafka that is mounted, and the keys of it: none named is all of them."""
    for volume in pod["volumes"]:
        if volume["name"] == "kafka":
            secret = volume["secret"]
            assert all(item["key"] == item["path"] for item in secret.get("items", ()))
            return secret["secretName"], [item["key"] for item in secret.get("items", ())]
    return None


def test_each_worker_is_a_user_of_its_own_and_has_no_others_password(tmp_path: Path) -> None:
    text = SPLIT.read_text()
    (config,) = (one for one in yaml.safe_load_all(text) if one and one["kind"] == "ConfigMap")
    (tmp_path / "underhost.yaml").write_text(config["data"]["underhost.yaml"])
    pods = workers(text)
    users = {name: load(tmp_path / "underhost.yaml", environ=environ(pod)).kafka.sasl for name, pod in pods.items()}
    keys = {name: "password" if name == "evictor" else name for name in pods}
    assert {name: (one.username, str(one.password_file)) for name, one in users.items() if one is not None} == {
        name: (f"underhost-{name}", PASSWORD.format(key)) for name, key in keys.items()
    }
    assert {name: given(pod) for name, pod in pods.items()} == {
        name: ("underhost-kafka-evictor" if name == "evictor" else "underhost-kafka", [key, "ca.pem"])
        for name, key in keys.items()
    }


@pytest.mark.parametrize("name", sorted(workers(SPLIT.read_text())))
def test_the_rights_of_each_worker_are_printed_for_its_user(name: str) -> None:
    """As docs/how-to/deploy.md says: with the agents that the worker is given, `web` among them."""
    pod = workers(SPLIT.read_text())[name]
    (agents,) = (one.removeprefix("--agents=") for one in pod["containers"][0]["args"] if one.startswith("--agents="))
    principal = f"User:{environ(pod)['UNDERHOST_KAFKA__SASL__USERNAME']}"
    flags = ["--site", "prod-a", "--agents", agents, "--principal", principal]
    said = CliRunner().invoke(build(), ["topics", "--acls", *flags])
    assert said.exception is None
    lines = [line for line in said.output.splitlines() if not line.startswith("#")]
    assert lines and all(f"--allow-principal {principal} " in line for line in lines)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(f"{KAFKA},kafka.secretName=s", (("s", []), {}), id="one Secret for all of them, whole"),
        pytest.param(
            f"{SCRAM},{USER},kafka.secretName=s,config.kafka.tls.caFile={CA}",
            (("s", ["p", "ca.pem"]), {"USERNAME": "u", "PASSWORD_FILE": PASSWORD.format("p")}),
            id="its key of it, and the files of config.kafka.tls",
        ),
        pytest.param(
            f"{KAFKA},kafka.secretName=s,workers[0].kafka.secretName=own",
            (("own", []), {}),
            id="a Secret of its own, of which it has all: a certificate",
        ),
        pytest.param(
            f"{SCRAM},workers[0].kafka.username=u,kafka.secretName=s,config.kafka.sasl.passwordFile={CA}",
            (("s", []), {"USERNAME": "u"}),
            id="a user of its own with everybody's password",
        ),
        pytest.param(KAFKA, (None, {}), id="nothing"),
    ],
)
def test_a_worker_is_given_what_the_values_say(values: str, expected: object) -> None:
    pod = workers(template("--set", f"{FIRST},{values}"))["worker"]
    prefix = "UNDERHOST_KAFKA__SASL__"
    assert (given(pod), {name.removeprefix(prefix): value for name, value in environ(pod).items()}) == expected


@pytest.mark.parametrize(
    ("values", "why"),
    [
        pytest.param(
            f"{KAFKA},{USER},kafka.secretName=s", "config.kafka.sasl.mechanism is needed", id="no mechanism for a user"
        ),
        pytest.param(f"{SCRAM},{USER}", "kafka.secretName is needed", id="a key of no Secret"),
        pytest.param(f"{SCRAM},workers[0].kafka.password=x", "password", id="a password in the values"),
        pytest.param(f"{SCRAM},workers[0].kafka.passwordKey=../x", "passwordKey", id="a key that is a path"),
    ],
)
def test_the_chart_refuses_a_user_that_cannot_be_one(values: str, why: str) -> None:
    said = helm("template", "underhost", CHART, *RELEASE, "--set", f"{FIRST},{values}")
    assert said.returncode == 1
    assert why in said.stderr
