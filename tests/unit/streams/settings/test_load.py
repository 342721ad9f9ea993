"""Configuration: file, then environment, then flags; every fault at once."""

from pathlib import Path

import pytest

from underhost.schemas.errors import InputError
from underhost.streams.settings.alerting import public
from underhost.streams.settings.load import load
from underhost.streams.settings.model import Settings


def written(folder: Path, text: str) -> Path:
    path = folder / "underhost.yaml"
    path.write_text(text)
    return path


def faults(*args: object, **kwargs: object) -> list[str]:
    with pytest.raises(InputError) as raised:
        load(*args, **kwargs)  # type: ignore[arg-type]
    return list(raised.value.faults)


def test_without_anything_the_embedded_default_runs_and_every_sink_is_a_dry_run() -> None:
    settings = load(environ={})
    assert settings == Settings()
    assert settings.kafka.bootstrap_servers is None
    assert settings.sinks.model_dump() == dict.fromkeys(
        (
            "labels",
            "pod_labels",
            "bindings",
            "drs_rules",
            "moves",
            "maintenance",
            "evictions",
            "events",
            "reports",
        ),
        False,
    )


def test_flags_override_the_environment_and_the_environment_the_file(tmp_path: Path) -> None:
    path = written(
        tmp_path, "site: from-file\nkafka: {bootstrapServers: 'file:1', partitions: 4}\nweb: {listen: '[::1]:1'}\n"
    )
    environ = {"UNDERHOST_KAFKA__BOOTSTRAP_SERVERS": "environment:2", "UNDERHOST_SITE": "from-environment"}
    settings = load(path, {"site": "from-flag"}, environ)
    assert (settings.site, settings.kafka.bootstrap_servers) == ("from-flag", "environment:2")
    assert (settings.kafka.partitions, settings.web.listen) == (4, "[::1]:1")


def test_the_contracts_example_is_read(tmp_path: Path) -> None:
    text = """
apiVersion: underhost/v1
kind: Config
site: prod-a
kafka: {bootstrapServers: "127.0.0.1:19092"}
kubernetes: {kubeconfig: ./kubeconfig, context: c}
vsphere: {url: "https://vcenter/sdk", username: u, passwordFile: ./password, caFile: ./ca.pem, clusters: [C0]}
hostLabel: {key: node.cluster.x-k8s.io/esxi-host, mode: auto, aliases: [alpha.cna.vmware.com/host], derived: []}
physicalHost: preferred
sinks: {labels: true, bindings: true, drsRules: true, evictions: false}
web: {listen: "127.0.0.1:8080", tls: {certFile: c, keyFile: k, clientCaFile: ca}, tokenFile: t, anonymousRead: true}
extender: {listen: "127.0.0.1:8443", tls: {certFile: c, keyFile: k, clientCaFile: ca}}
"""
    settings = load(written(tmp_path, text), environ={})
    assert (settings.site, settings.vsphere.clusters, settings.sinks.drs_rules) == ("prod-a", ("C0",), True)
    assert settings.vsphere.configured


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://u:canary@vc/sdk", id="user and password"),
        pytest.param("https://canary@vc/sdk", id="one of them"),
        pytest.param("u:canary@vc", id="no scheme"),
        pytest.param("https://u:canary/more@vc/sdk", id="a password that ends the host"),
        pytest.param("https://u:canary@[vc/sdk", id="no URL"),
    ],
)
def test_a_password_in_the_vcenters_url_is_refused_before_anything_repeats_it(tmp_path: Path, url: str) -> None:
    path = written(tmp_path, f"vsphere: {{url: '{url}'}}")
    refused = "holds credentials; use username and passwordFile"
    assert faults(path, environ={}) == [f"{path}: vsphere.url: {refused}"]
    assert faults(environ={"UNDERHOST_VSPHERE__URL": url}) == [f"UNDERHOST_VSPHERE__URL: {refused}"]
    assert faults(flags={"vsphere": {"url": url}}, environ={}) == [f"configuration: vsphere.url: {refused}"]


def test_all_faults_are_told_with_their_places(tmp_path: Path) -> None:
    path = written(tmp_path, "kafkaa: {}\nsite: Prod A\nsinks: {label: true}\nhostLabel: {mode: sometimes}\n")
    assert faults(path, environ={}) == [
        f"{path}: site: String should match pattern '^[a-z0-9]([-a-z0-9]{{0,61}}[a-z0-9])?$'",
        f"{path}: hostLabel.mode: one of own, observe, auto is expected",
        f"{path}: sinks.label: unknown key; did you mean labels?",
        f"{path}: kafkaa: unknown key; did you mean kafka?",
    ]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(
            "hostLabel: {key: 'a b'}",
            "hostLabel.key: not the key of a label: [PREFIX/]NAME is expected",
            id="a key that no label can have",
        ),
        pytest.param(
            "hostLabel: {startupTaint: example.com/}",
            "hostLabel.startupTaint: not the key of a label: [PREFIX/]NAME is expected",
            id="a key that no taint can have",
        ),
        pytest.param(
            "hostLabel: {key: rack, derived: [{key: rack, from: folder}]}",
            "hostLabel: label rack cannot have two sources",
            id="two sources of one label",
        ),
        pytest.param(
            "vsphere: {pollInterval: 60, staleAfter: 60}",
            "vsphere: staleAfter must be at least two poll intervals (120 s)",
            id="stale before two polls",
        ),
        pytest.param("kafka: {bootstrapServers: ', '}", "kafka.bootstrapServers: names no server", id="no broker"),
        pytest.param(
            "kafka: {bootstrapServers: 'ops:canary@kafka:9092'}",
            "kafka.bootstrapServers: holds credentials; use kafka.sasl",
            id="a broker's address with a password",
        ),
        pytest.param("web: {listen: here}", "web.listen: HOST:PORT is expected, not 'here'", id="no address"),
        pytest.param("web: {listen: ':²'}", "web.listen: HOST:PORT is expected, not ':²'", id="no port"),
        pytest.param(
            "{web: {tokenFile: t}, extender: {listen: '10.0.0.1:65536'}}",
            "extender.listen: HOST:PORT is expected, not '10.0.0.1:65536'",
            id="a port beyond the last one",
        ),
        pytest.param(
            "web: {listen: '0.0.0.0:8080'}",
            "web: listen 0.0.0.0:8080 is not loopback: it needs tokenFile or tls.clientCaFile",
            id="a page that anybody may use",
        ),
        pytest.param(
            "web: {listen: ':8080', tls: {certFile: c}}",
            "web: listen :8080 is not loopback: it needs tokenFile or tls.clientCaFile",
            id="a page that is only encrypted",
        ),
        pytest.param(
            "web: {listen: 'worker:8080', anonymousRead: true}",
            "web: listen worker:8080 is not loopback: it needs tokenFile or tls.clientCaFile",
            id="a name that may be anything",
        ),
        pytest.param(
            "web: {anonymousRead: false}",
            "web: anonymousRead: false needs tokenFile or tls.clientCaFile, or nobody could read",
            id="a page that nobody may read",
        ),
        pytest.param(
            "extender: {listen: '10.0.0.1:8443', tls: {certFile: c}}",
            "extender.listen 10.0.0.1:8443 is not loopback: it needs extender.tls.clientCaFile or web.tokenFile",
            id="an extender that trusts anybody",
        ),
        pytest.param(
            "web: {tls: }", "web.tls: nothing in it: leave the key out where there is none", id="no certificate"
        ),
        pytest.param(
            "web: {tokenFile: }", "web.tokenFile: nothing in it: leave the key out where there is none", id="no token"
        ),
        pytest.param(
            "extender: {listen: '127.0.0.1:1', tls: }",
            "extender.tls: nothing in it: leave the key out where there is none",
            id="no certificate of the extender",
        ),
        pytest.param(
            "{hosts: {label: example.com/host}, vsphere: {inventory: i}}",
            "hosts.label beside vsphere: only one of them can say which host a node is on",
            id="two that say where nodes run",
        ),
        pytest.param(
            "{hosts: {label: node.cluster.x-k8s.io/esxi-host}, sinks: {labels: true}}",
            "hosts.label: sinks.labels writes node.cluster.x-k8s.io/esxi-host (hostLabel), "
            "and would read back its own word",
            id="a label of our own that says where nodes run",
        ),
        pytest.param(
            "{hosts: {label: a/b}, hostLabel: {derived: [{key: a/b, from: folder}]}, sinks: {labels: true}}",
            "hosts.label: sinks.labels writes a/b (hostLabel), and would read back its own word",
            id="a derived label of our own that says where nodes run",
        ),
        pytest.param(
            "{hosts: {label: example.com/host}, sinks: {drsRules: true}}",
            "sinks.drsRules needs vSphere: with hosts.label only the names of hosts are known, and no VM",
            id="DRS rules without a vSphere",
        ),
        pytest.param(
            "hosts: {label: 'a host'}",
            "hosts.label: not the key of a label: [PREFIX/]NAME is expected",
            id="a label that no node can have",
        ),
        pytest.param(
            "extender: {tls: {certFile: c}}",
            "extender.tls without extender.listen: the questions are asked at web.listen, by web.tls",
            id="a certificate of no listener",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path: Path, text: str, fault: str) -> None:
    path = written(tmp_path, text)
    assert faults(path, environ={}) == [f"{path}: {fault}"]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("hosts: {label: node.cluster.x-k8s.io/esxi-host}", id="nobody of us writes labels"),
        pytest.param(
            "{hosts: {label: node.cluster.x-k8s.io/esxi-host}, hostLabel: {mode: observe}, sinks: {labels: true}}",
            id="we write others",
        ),
        pytest.param("{hosts: {label: example.com/host}, sinks: {labels: true}}", id="we copy it into ours"),
    ],
)
def test_a_label_of_somebody_else_may_say_where_nodes_run(tmp_path: Path, text: str) -> None:
    assert load(written(tmp_path, text), environ={}).hosts.label


@pytest.mark.parametrize(
    ("text", "anonymous"),
    [
        pytest.param("web: {}", True, id="as it comes"),
        pytest.param("web: {tokenFile: t}", True, id="loopback with a token"),
        pytest.param("web: {tokenFile: t, anonymousRead: false}", False, id="loopback, and it is said"),
        pytest.param("web: {listen: ':8080', tokenFile: t}", False, id="everywhere with a token"),
        pytest.param("web: {listen: '[::]:1', tls: {certFile: c, clientCaFile: a}}", False, id="with certificates"),
        pytest.param(
            "web: {listen: ':8080', tokenFile: t, anonymousRead: true}", True, id="everywhere, and it is said"
        ),
        pytest.param("web: {listen: 'localhost:1'}", True, id="loopback by its name"),
    ],
)
def test_reading_is_open_on_loopback_or_where_it_is_said(tmp_path: Path, text: str, anonymous: bool) -> None:
    assert load(written(tmp_path, text), environ={}).web.open_to_read is anonymous


def test_an_unknown_name_in_the_environment_is_refused() -> None:
    fault = "UNDERHOST_WEB__LISTENN: unknown key; did you mean listen?"
    assert faults(environ={"UNDERHOST_WEB__LISTENN": "x"}) == [fault]


@pytest.mark.parametrize(
    "name",
    [
        "UNDERHOST_SERVICE_HOST",
        "UNDERHOST_SERVICE_PORT_HTTP",
        "UNDERHOST_PORT",
        "UNDERHOST_PORT_8080_TCP_ADDR",
        "UNDERHOST_EXTENDER_SERVICE_HOST",
    ],
)
def test_what_kubernetes_says_of_services_of_our_name_is_no_setting(name: str) -> None:
    assert load(environ={name: "tcp://10.0.0.1:8080"}) == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param(
            b"a: [",
            "not YAML: while parsing a flow node expected the node content, but found '<stream end>'"
            " (line 1, column 5)",
            id="broken",
        ),
        pytest.param(b"- a\n- b\n", "a mapping is expected, this is a list", id="a list"),
        pytest.param(b"site: \xb4\n", "not UTF-8 (byte 7)", id="bytes"),
        pytest.param(
            b"site: \x01\n", "not YAML: special characters are not allowed (character 7)", id="a control character"
        ),
        pytest.param(
            b"site: a\n---\nsite: b\n",
            "not YAML: expected a single document in the stream but found another document (line 2, column 1)",
            id="two",
        ),
        pytest.param(
            b"[a]: b\n",
            "not YAML: while constructing a mapping found unhashable key (line 1, column 1)",
            id="a list as key",
        ),
        pytest.param(b"a: " + b"[" * 3000, "not YAML: nested too deeply", id="deep"),
        pytest.param(
            b"site: 2026-13-45\n", "not YAML: a value does not fit its tag: month must be in 1..12", id="no date"
        ),
        pytest.param(
            b"site: a\nkafka: {}\nsite: b\n", "not YAML: the key 'site' is given twice (line 3, column 1)", id="twice"
        ),
        pytest.param(
            b"kafka: {partitions: 1, partitions: 2}\n",
            "not YAML: the key 'partitions' is given twice (line 1, column 24)",
            id="twice in a group",
        ),
    ],
)
def test_a_file_that_is_no_configuration(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "underhost.yaml"
    path.write_bytes(text)
    assert faults(path, environ={}) == [f"{path}: {said}"]


def test_what_is_merged_into_a_group_may_be_overridden_there(tmp_path: Path) -> None:
    text = "kafka: &k {partitions: 4}\nweb: {listen: 127.0.0.1:1}\n"
    merged = "extender: {<<: &l {listen: '127.0.0.1:2'}, listen: '127.0.0.1:3'}\n"
    assert load(written(tmp_path, text + merged), environ={}).extender.listen == "127.0.0.1:3"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    assert faults(tmp_path / "no.yaml", environ={}) == [f"{tmp_path / 'no.yaml'}: No such file or directory"]


def test_an_empty_file_is_every_default(tmp_path: Path) -> None:
    assert load(written(tmp_path, ""), environ={}) == Settings()


def test_a_password_is_in_no_text_of_the_settings() -> None:
    settings = load(environ={"UNDERHOST_VSPHERE__PASSWORD": "hunter2"})
    assert settings.vsphere.password is not None
    assert "hunter2" not in f"{settings!r} {settings} {settings.model_dump_json()}"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        pytest.param("https://hooks.example/services/T0/B0/x7", "https://hooks.example/…", id="a secret path"),
        pytest.param("https://hooks.example/?key=x7", "https://hooks.example/…", id="a secret query"),
        pytest.param("http://me:x7@am:9093", "http://am:9093", id="user and password"),
        pytest.param("http://am:9093/", "http://am:9093", id="nothing to hide"),
    ],
)
def test_of_a_url_only_where_it_leads_is_shown(url: str, shown: str) -> None:
    assert public(url) == shown
