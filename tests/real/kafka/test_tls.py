"""A real Kafka that wants TLS and a user: every client gets in with both, and says in one line why it does not."""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from support.processes.authority import Authority
from support.processes.kafka import KafkaProcess, Secured
from support.processes.underhost import UNDERHOST

from underhost.schemas.errors import BackendError, Refused
from underhost.streams.publish import KafkaPublisher
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings

pytestmark = pytest.mark.real
PASSWORD = "correct-horse-7"


class Site(NamedTuple):
    """A broker with TLS and SCRAM, and what a configuration needs for it."""

    address: str
    folder: Path

    def kafka(self, **changes: Any) -> dict[str, Any]:
        """Settings that work, but for these changes."""
        sasl = {"mechanism": "SCRAM-SHA-512", "username": "underhost", "passwordFile": str(self.folder / "password")}
        tls = {"caFile": str(self.folder / "ca.pem")}
        return {"bootstrapServers": self.address, "tls": tls, "sasl": sasl, **changes}


@pytest.fixture(scope="module")
def site(parts: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A broker of this module's own."""
    folder = tmp_path_factory.mktemp("secured")
    certificate = Authority(folder, "ca").certificate("broker", "IP:127.0.0.1")
    Authority(folder, "other-ca")
    (folder / "password").write_text(f"{PASSWORD}\n")
    (folder / "wrong").write_text("wrong-horse-8")
    broker = KafkaProcess(folder / "kafka", parts, Secured(certificate.both, "underhost", PASSWORD))
    broker.start()
    yield Site(broker.address, folder)
    broker.kill()


def environment(kafka: Mapping[str, Any]) -> dict[str, str]:
    """The settings as variables: those of `underhost demo`, which takes no file."""
    return {
        "UNDERHOST_KAFKA__BOOTSTRAP_SERVERS": kafka["bootstrapServers"],
        "UNDERHOST_KAFKA__TLS__CA_FILE": kafka["tls"]["caFile"],
        "UNDERHOST_KAFKA__SASL__MECHANISM": kafka["sasl"]["mechanism"],
        "UNDERHOST_KAFKA__SASL__USERNAME": kafka["sasl"]["username"],
        "UNDERHOST_KAFKA__SASL__PASSWORD_FILE": kafka["sasl"]["passwordFile"],
    }


def run(*arguments: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    everything = {**os.environ, "NO_COLOR": "1", **(env or {})}
    done = subprocess.run(
        [UNDERHOST, *arguments], capture_output=True, text=True, timeout=120, check=False, env=everything
    )
    assert PASSWORD not in done.stdout + done.stderr
    return done


def configured(folder: Path, kafka: Mapping[str, Any]) -> str:
    path = folder / "underhost.yaml"
    path.write_text(json.dumps({"kafka": kafka, "kubernetes": {"simulated": "story"}}))
    return str(path)


def test_the_story_is_told_and_read_over_tls_by_a_user_with_a_password(site: Site) -> None:
    env = environment(site.kafka())
    told = run("demo", "--once", "--bootstrap-servers", site.address, env=env)
    assert (told.returncode, told.stderr) == (0, "")
    assert "The finding is resolved: " in told.stdout.splitlines()[-3]
    left = run("violations", "-o", "json", env=env)
    assert (left.stderr, json.loads(left.stdout)["violations"]) == ("", [])


def changed(site: Site, part: str, **changes: str) -> dict[str, Any]:
    kafka = site.kafka()
    return {**kafka, part: {**kafka[part], **changes}}


async def test_what_a_broker_has_against_us_is_one_line_that_names_the_setting(site: Site) -> None:
    port = site.address.partition(":")[2]
    said = {}
    for case, kafka in {
        "wrong password": changed(site, "sasl", passwordFile=str(site.folder / "wrong")),
        "no such user": changed(site, "sasl", username="nobody"),
        "another mechanism": changed(site, "sasl", mechanism="PLAIN"),
        "unknown CA": changed(site, "tls", caFile=str(site.folder / "other-ca.pem")),
        "another name": site.kafka(bootstrapServers=f"localhost:{port}"),
        "no TLS": {"bootstrapServers": site.address},
    }.items():
        with pytest.raises(BackendError) as raised:
            await open_reader(KafkaSettings.model_validate(kafka)).check()
        said[case] = str(raised.value).replace(f":{port}", "")
    trust = "certificate not trusted: "
    assert said == {
        "wrong password": "Kafka at 127.0.0.1: wrong user name or password (kafka.sasl)",
        "no such user": "Kafka at 127.0.0.1: wrong user name or password (kafka.sasl)",
        "another mechanism": "Kafka at 127.0.0.1: does not take PLAIN (kafka.sasl.mechanism)",
        "unknown CA": f"Kafka at 127.0.0.1: {trust}self-signed certificate in certificate chain (kafka.tls.caFile)",
        "another name": f"Kafka at localhost: {trust}Hostname mismatch, certificate is not valid for 'localhost'"
        " (kafka.bootstrapServers)",
        "no TLS": "Kafka at 127.0.0.1: closes the connection: it may want kafka.tls or kafka.sasl",
    }


async def test_a_publisher_is_told_the_same_as_a_reader(site: Site) -> None:
    kafka = KafkaSettings.model_validate(changed(site, "sasl", passwordFile=str(site.folder / "wrong")))
    with pytest.raises(Refused, match=r"wrong user name or password \(kafka.sasl\)"):
        async with KafkaPublisher(kafka, 8):
            pytest.fail("it was let in")


def test_a_command_that_does_not_trust_the_broker_says_one_line_and_ends_with_3(site: Site, tmp_path: Path) -> None:
    kafka = changed(site, "tls", caFile=str(site.folder / "other-ca.pem"))
    done = run("violations", "--config", configured(tmp_path, kafka))
    said = "certificate not trusted: self-signed certificate in certificate chain (kafka.tls.caFile)"
    assert (done.returncode, done.stdout, done.stderr) == (3, "", f"error: Kafka at {site.address}: {said}\n")


def test_a_worker_that_kafka_refuses_ends_with_that_line(site: Site, tmp_path: Path) -> None:
    kafka = changed(site, "sasl", passwordFile=str(site.folder / "wrong"))
    done = run("run", "-vv", "--config", configured(tmp_path, kafka))
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert (done.returncode, lines) == (
        3,
        [f"error: Kafka at {site.address}: wrong user name or password (kafka.sasl)"],
    )
