"""`kafka.tls` and `kafka.sasl`: what a client is made with, and what is wrong with the files."""

import ssl
import subprocess
from pathlib import Path
from typing import Any

import faust
import pytest
from aiokafka.errors import IllegalSaslStateError, KafkaConnectionError

from underhost.schemas.errors import InputError
from underhost.streams.faust.app import build_app
from underhost.streams.kafka.security import against, client_arguments, credentials
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.load import load
from underhost.streams.settings.model import Settings


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two certificates with their keys, a password, and files that are none of it."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("ours", "other"):
        new = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", f"/CN={name}"]
        files = ["-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")]
        subprocess.run(["openssl", "req", *new, *files], check=True, capture_output=True)
    (folder / "password").write_text("  p:ss wörd \r\n", encoding="utf-8")
    (folder / "empty").write_text("\n")
    (folder / "binary").write_bytes(b"\xff\xfe")
    return folder


def kafka(folder: Path, **parts: dict[str, str]) -> KafkaSettings:
    """Settings whose values that end in File are files of the folder."""
    tree: dict[str, Any] = {
        part: {key: str(folder / value) if key.endswith("File") else value for key, value in values.items()}
        for part, values in parts.items()
    }
    return KafkaSettings.model_validate({"bootstrapServers": "broker.example:9093", **tree})


SASL = {"mechanism": "SCRAM-SHA-512", "username": "underhost", "passwordFile": "password"}


@pytest.mark.parametrize(
    ("parts", "protocol"),
    [
        pytest.param({}, "PLAINTEXT", id="neither"),
        pytest.param({"tls": {}}, "SSL", id="TLS, with the system's CAs"),
        pytest.param({"tls": {"caFile": "ours.pem"}}, "SSL", id="TLS"),
        pytest.param({"sasl": SASL}, "SASL_PLAINTEXT", id="a user"),
        pytest.param({"tls": {"caFile": "ours.pem"}, "sasl": SASL}, "SASL_SSL", id="both"),
    ],
)
def test_faust_and_our_own_clients_are_made_alike(folder: Path, parts: dict[str, Any], protocol: str) -> None:
    settings = kafka(folder, **parts)
    made, faust_made = client_arguments(settings), credentials(settings)
    assert (made["bootstrap_servers"], made["security_protocol"]) == ("broker.example:9093", protocol)
    assert protocol == (faust_made.protocol.value if faust_made is not None else "PLAINTEXT")
    if "sasl" in parts:
        assert isinstance(faust_made, faust.SASLCredentials)
        of_faust = (faust_made.mechanism.value, faust_made.username, faust_made.password)
        of_ours = (made["sasl_mechanism"], made["sasl_plain_username"], made["sasl_plain_password"])
        assert of_faust == of_ours == ("SCRAM-SHA-512", "underhost", "  p:ss wörd ")
    if "tls" in parts:
        context = made["ssl_context"]
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    if parts.get("tls"):
        assert [dict(pair for (pair,) in ca["subject"]) for ca in context.get_ca_certs()] == [{"commonName": "ours"}]


def test_the_worker_gives_them_to_its_clients(folder: Path) -> None:
    app = build_app(Settings(kafka=kafka(folder, tls={"caFile": "ours.pem"}, sasl=SASL)), app_id="t")
    assert app.conf.broker_credentials.protocol.value == "SASL_SSL"
    assert app.producer.credentials.username == "underhost"


def test_a_rotated_password_is_read_for_the_next_client(folder: Path, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("before")
    settings = kafka(folder, sasl={**SASL, "passwordFile": str(password)})
    assert client_arguments(settings)["sasl_plain_password"] == "before"
    password.write_text("after")
    assert client_arguments(settings)["sasl_plain_password"] == "after"


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"tls": {"caFile": "no"}}, "kafka.tls.caFile: {}/no: No such file or directory"),
        ({"tls": {"caFile": "password"}}, "kafka.tls.caFile: {}/password: no PEM certificate in it"),
        ({"tls": {"certFile": "no"}}, "kafka.tls.certFile: {}/no: No such file or directory"),
        (
            {"tls": {"certFile": "ours.pem", "keyFile": "no"}},
            "kafka.tls.keyFile: {}/no: No such file or directory",
        ),
        (
            {"tls": {"certFile": "ours.pem", "keyFile": "other.key"}},
            "kafka.tls.keyFile: {}/other.key: not the key of this certificate",
        ),
        (
            {"tls": {"certFile": "ours.pem"}},
            "kafka.tls.certFile: {}/ours.pem: no PEM certificate with its key, without a passphrase",
        ),
        ({"sasl": SASL | {"passwordFile": "no"}}, "kafka.sasl.passwordFile: {}/no: No such file or directory"),
        ({"sasl": SASL | {"passwordFile": "empty"}}, "kafka.sasl.passwordFile: {}/empty: empty"),
        ({"sasl": SASL | {"passwordFile": "binary"}}, "kafka.sasl.passwordFile: {}/binary: not UTF-8 text"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_setting(folder: Path, parts: dict[str, Any], said: str) -> None:
    for make in (client_arguments, credentials):
        with pytest.raises(InputError) as raised:
            make(kafka(folder, **parts))
        assert str(raised.value) == said.format(folder)


def test_a_certificate_of_ours_with_its_key_is_taken(folder: Path) -> None:
    settings = kafka(folder, tls={"certFile": "ours.pem", "keyFile": "ours.key"})
    assert client_arguments(settings)["security_protocol"] == "SSL"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tls:", "kafka.tls: nothing in it: {} is TLS with the system's CAs, and no key at all is no TLS"),
        ("tls: {insecure: true}", "kafka.tls.insecure: unknown key"),
        ("tls: {keyFile: k}", "kafka.tls: keyFile without certFile: both make our certificate"),
        ("sasl: {mechanism: SCRAM-SHA-512, username: u}", "kafka.sasl.passwordFile: is missing"),
        (
            "sasl: {mechanism: SCRAM-SHA-1, username: u, passwordFile: p}",
            "kafka.sasl.mechanism: one of PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 is expected; did you mean SCRAM-SHA-512?",
        ),
        (
            "sasl: {mechanism: PLAIN, username: u, passwordFile: p}",
            "kafka: sasl.mechanism PLAIN sends the password itself: it needs kafka.tls, SCRAM does not",
        ),
    ],
)
def test_settings_that_would_be_less_safe_than_they_look_are_refused(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "underhost.yaml"
    path.write_text(f"kafka:\n  {text}\n")
    with pytest.raises(InputError) as raised:
        load(path, environ={})
    assert str(raised.value) == f"{path}: {said}"


def test_the_environment_sets_them_too() -> None:
    environ = {
        "UNDERHOST_KAFKA__TLS__CA_FILE": "/ca.pem",
        "UNDERHOST_KAFKA__SASL__MECHANISM": "PLAIN",
        "UNDERHOST_KAFKA__SASL__USERNAME": "u",
        "UNDERHOST_KAFKA__SASL__PASSWORD_FILE": "/password",
    }
    settings = load(environ=environ).kafka
    assert settings.tls is not None
    assert settings.sasl is not None
    assert (settings.tls.ca_file, settings.sasl.mechanism) == (Path("/ca.pem"), "PLAIN")


def ssl_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, reason)
    error.reason = reason
    return error


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        (ssl.SSLEOFError(), "closes the connection as TLS begins: is TLS spoken there (kafka.tls)?"),
        (ssl_error("WRONG_VERSION_NUMBER"), "no TLS that we can talk (WRONG_VERSION_NUMBER; kafka.tls)"),
        (
            ssl_error("TLSV13_ALERT_CERTIFICATE_REQUIRED"),
            "asks for a certificate of ours that it trusts (kafka.tls.certFile)",
        ),
        (IllegalSaslStateError(), "takes no user and password there (kafka.sasl)"),
    ],
)
def test_what_a_broker_has_against_us_is_found_below_what_aiokafka_makes_of_it(cause: Exception, said: str) -> None:
    error = KafkaConnectionError("Connection at b:1 closed")
    error.__cause__ = cause
    assert str(against(error, "b:1", KafkaSettings(bootstrap_servers="b:1"))) == f"Kafka at b:1: {said}"


def test_where_nobody_answers_nothing_is_made_up() -> None:
    assert against(ConnectionRefusedError(), "b:1", KafkaSettings(bootstrap_servers="b:1")) is None
