"""Where the cluster's configuration is looked for, and what is said of a wrong one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from underhost.schemas.errors import InputError
from underhost.streams.kubernetes import kubeconfig
from underhost.streams.kubernetes.kubeconfig import NotConfigured, Origin, find, load, namespace
from underhost.streams.settings.clusters import KubernetesSettings

CONFIG: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
    "users": [{"name": "u", "user": {"token": "secret"}}],
    "contexts": [
        {"name": "one", "context": {"cluster": "c", "user": "u"}},
        {"name": "two", "context": {"cluster": "c", "user": "u"}},
    ],
    "current-context": "one",
}


def written(folder: Path, tree: object, name: str = "kubeconfig") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tree if isinstance(tree, str) else json.dumps(tree))
    return path


def test_the_places_are_tried_in_order(tmp_path: Path) -> None:
    given, listed = written(tmp_path, CONFIG, "given"), written(tmp_path, CONFIG, "listed")
    home = written(tmp_path, CONFIG, "home/.kube/config")
    environ = {"KUBECONFIG": str(listed), "HOME": str(tmp_path / "home"), "KUBERNETES_SERVICE_HOST": "10.96.0.1"}
    settings = KubernetesSettings(kubeconfig=given, context="two")
    assert find(settings, environ) == Origin((given,), "two")
    assert find(KubernetesSettings(), environ) == Origin((listed,), None)
    del environ["KUBECONFIG"]
    assert find(KubernetesSettings(), environ) == Origin((home,), None)
    environ["HOME"] = str(tmp_path)
    assert find(KubernetesSettings(), environ) == Origin((), None)


def test_kubeconfig_in_the_environment_may_list_files_of_which_some_are_missing(tmp_path: Path) -> None:
    one, two = written(tmp_path, CONFIG, "one"), written(tmp_path, CONFIG, "two")
    environ = {"KUBECONFIG": f"{one}:{tmp_path / 'missing'}:{two}"}
    assert find(KubernetesSettings(), environ) == Origin((one, two), None)


@pytest.mark.parametrize(
    ("settings", "environ", "expected"),
    [
        pytest.param({"kubeconfig": "DIR/none"}, {}, "DIR/none: no such file", id="the given file is missing"),
        pytest.param({}, {"KUBECONFIG": "DIR/a:DIR/b"}, "$KUBECONFIG: DIR/a:DIR/b: no such file", id="no listed file"),
        pytest.param(
            {},
            {"HOME": "DIR"},
            "no Kubernetes cluster is configured: no kubeconfig given, no $KUBECONFIG, no DIR/.kube/config, "
            "not in a pod",
            id="nothing anywhere",
        ),
        pytest.param(
            {"context": "two"},
            {"HOME": "DIR", "KUBERNETES_SERVICE_HOST": "10.96.0.1"},
            "context two: there is no kubeconfig to find it in, only the pod's account",
            id="a context in a pod",
        ),
    ],
)
def test_what_is_not_there_is_named(
    settings: Mapping[str, str], environ: Mapping[str, str], expected: str, tmp_path: Path
) -> None:
    def here(text: str) -> str:
        return text.replace("DIR", str(tmp_path))

    with pytest.raises(InputError) as caught:
        find(
            KubernetesSettings.model_validate({key: here(value) for key, value in settings.items()}),
            {key: here(value) for key, value in environ.items()},
        )
    assert str(caught.value) == here(expected)


@pytest.mark.parametrize(
    ("tree", "context", "expected"),
    [
        pytest.param("{a: [", None, "FILE: not YAML: while parsing", id="not YAML"),
        pytest.param(
            '{clusters: [], users: [{name: u, user: {token: "canary}}]}',
            None,
            "FILE: not YAML: while scanning a quoted scalar found unexpected end of stream (line 1, column 59)",
            id="not YAML beside a token",
        ),
        pytest.param(
            "users: [{name: u, user: {password: *canary}}]",
            None,
            "FILE: not YAML: found undefined alias (line 1, column 36)",
            id="a password like an alias",
        ),
        pytest.param(
            "users: [{name: u, user: {password: !canary }}]",
            None,
            "FILE: not YAML: could not determine a constructor for the tag (line 1, column 36)",
            id="a password like a tag",
        ),
        pytest.param(
            "users: [{name: u, user: {password: !can!ary }}]",
            None,
            "FILE: not YAML: while parsing a node found undefined tag handle (line 1, column 36)",
            id="a password like the handle of a tag",
        ),
        pytest.param("[" * 3000, None, "FILE: not YAML: nested too deeply", id="deep"),
        pytest.param("just text", None, "FILE: not a kubeconfig", id="a text file"),
        pytest.param({"kind": "List", "items": []}, None, "FILE: not a kubeconfig", id="a dump"),
        pytest.param(CONFIG, "on", "FILE: no context on; it has one, two; did you mean one?", id="a mistyped context"),
        pytest.param(CONFIG, "three", "FILE: no context three; it has one, two", id="an unknown context"),
        pytest.param(
            {**CONFIG, "current-context": ""},
            None,
            "FILE: no current-context; --context takes one of one, two",
            id="no current context",
        ),
        pytest.param({**CONFIG, "clusters": []}, None, "FILE: Invalid kube-config", id="no such cluster"),
        pytest.param(
            {**CONFIG, "clusters": [{"name": "c", "cluster": {"server": "nonsense"}}]},
            None,
            "FILE: server 'nonsense' is not an http or https URL",
            id="a server that is no URL",
        ),
        pytest.param(
            {**CONFIG, "clusters": [{"name": "c", "cluster": {"server": "https://ops:canary@kube.example"}}]},
            None,
            "FILE: the server's URL holds credentials; their place is a user of the kubeconfig",
            id="a password in the server's URL",
        ),
        pytest.param(
            {**CONFIG, "clusters": [{"name": "c", "cluster": {"server": "ops:canary@kube.example"}}]},
            None,
            "FILE: the server's URL holds credentials; their place is a user of the kubeconfig",
            id="a password in what is no URL",
        ),
        pytest.param(
            {**CONFIG, "clusters": [{"name": "c", "cluster": None}]}, None, "FILE: ", id="a cluster of the wrong shape"
        ),
        pytest.param(
            {
                **CONFIG,
                "clusters": [{"name": "c", "cluster": {"server": "https://x", "certificate-authority": "missing.pem"}}],
            },
            None,
            "FILE: File does not exists: DIR/missing.pem",
            id="a CA file that is missing",
        ),
        pytest.param(
            {
                **CONFIG,
                "clusters": [
                    {"name": "c", "cluster": {"server": "https://x", "certificate-authority-data": "bm90IGEgY2VydA=="}}
                ],
            },
            None,
            "FILE: certificates cannot be used: ",
            id="a CA that is no certificate",
        ),
        pytest.param(
            {**CONFIG, "users": [{"name": "u", "user": {"exec": {"apiVersion": "v1", "command": "DIR/no-plugin"}}}]},
            None,
            "DIR/no-plugin, which FILE names: No such file or directory (a credentials plugin must be installed, ",
            id="an exec plugin that is missing",
        ),
        pytest.param(
            {**CONFIG, "users": [{"name": "u", "user": {"tokenFile": "DIR/no-token"}}]},
            None,
            "DIR/no-token, which FILE names: No such file or directory",
            id="a token file that is missing",
        ),
        pytest.param(
            {**CONFIG, "users": [{"name": "u", "user": {"token": "canary\ncanary"}}]},
            None,
            "FILE: the user's token holds a line break, or another character that no token has",
            id="a token of two lines",
        ),
        pytest.param(
            {**CONFIG, "users": [{"name": "u", "user": {"exec": {"apiVersion": "v1", "command": "false"}}}]},
            None,
            "the credentials plugin that FILE names failed: process returned 1",
            id="an exec plugin that fails",
        ),
    ],
)
async def test_a_wrong_kubeconfig_is_one_line_that_names_the_file(
    tree: object, context: str | None, expected: str, tmp_path: Path
) -> None:
    text = (tree if isinstance(tree, str) else json.dumps(tree)).replace("DIR", str(tmp_path))
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        await load(find(KubernetesSettings(kubeconfig=path, context=context), {}))
    said = str(caught.value)
    assert said.startswith(expected.replace("FILE", str(path)).replace("DIR", str(tmp_path)))
    assert "\n" not in said
    assert "canary" not in said


async def test_a_token_file_may_end_with_a_line_break_as_for_kubectl(tmp_path: Path) -> None:
    token = written(tmp_path, "of-the-file\n", "token")
    path = written(tmp_path, {**CONFIG, "users": [{"name": "u", "user": {"tokenFile": str(token)}}]})
    api, headers = await load(Origin((path,), None)), dict[str, str]()
    await kubeconfig.authorize(api, headers)
    await api.close()
    assert headers == {"authorization": "Bearer of-the-file"}


async def test_a_binary_file_is_said_to_be_no_text(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        await load(Origin((path,), None))


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        pytest.param(None, "ops", id="the current context's"),
        pytest.param("two", "default", id="a context without one"),
    ],
)
def test_the_namespace_is_that_of_the_context(tmp_path: Path, context: str | None, expected: str) -> None:
    one = {"name": "one", "context": {"cluster": "c", "user": "u", "namespace": "ops"}}
    path = written(tmp_path, {**CONFIG, "contexts": [one, CONFIG["contexts"][1]]})
    assert namespace(Origin((path,), context)) == expected


def test_in_a_pod_the_namespace_is_the_pods(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig, "POD_NAMESPACE", written(tmp_path, "underhost\n", "namespace"))
    assert namespace(Origin((), None)) == "underhost"


def test_that_nothing_is_configured_can_be_told_from_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(NotConfigured):
        find(KubernetesSettings(), {"HOME": str(tmp_path)})
    with pytest.raises(InputError) as wrong:
        find(KubernetesSettings(kubeconfig=tmp_path / "none"), {})
    assert not isinstance(wrong.value, NotConfigured)


async def test_the_chosen_context_decides_the_server(tmp_path: Path) -> None:
    tree = {
        **CONFIG,
        "clusters": [*CONFIG["clusters"], {"name": "d", "cluster": {"server": "http://127.0.0.1:2"}}],
        "contexts": [*CONFIG["contexts"], {"name": "other", "context": {"cluster": "d", "user": "u"}}],
    }
    api = await load(Origin((written(tmp_path, tree),), "other"))
    await api.close()
    assert api.configuration.host == "http://127.0.0.1:2"


async def test_of_several_files_the_first_current_context_counts_as_for_kubectl(tmp_path: Path) -> None:
    second = {
        **CONFIG,
        "clusters": [{"name": "d", "cluster": {"server": "http://127.0.0.1:2"}}],
        "contexts": [{"name": "other", "context": {"cluster": "d", "user": "u"}}],
        "current-context": "other",
    }
    files = written(tmp_path, CONFIG, "one"), written(tmp_path, second, "two")
    for origin, server in ((Origin(files, None), "http://127.0.0.1:1"), (Origin(files, "other"), "http://127.0.0.1:2")):
        api = await load(origin)
        await api.close()
        assert api.configuration.host == server


async def test_reading_a_kubeconfig_does_not_write_to_it(tmp_path: Path) -> None:
    path = written(tmp_path, CONFIG)
    before = path.stat().st_mtime_ns, path.read_text()
    await (await load(Origin((path,), None))).close()
    assert (path.stat().st_mtime_ns, path.read_text()) == before


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        pytest.param({"server": "https://10.0.0.1:6443"}, "", id="https with a certificate that is checked"),
        pytest.param(
            {"server": "https://10.0.0.1:6443", "insecure-skip-tls-verify": True},
            "the certificate of https://10.0.0.1:6443 is not checked (insecure-skip-tls-verify)",
            id="insecure-skip-tls-verify",
        ),
        pytest.param(
            {"server": "http://10.0.0.1:8080"},
            "http://10.0.0.1:8080 is http: nothing is encrypted, and whoever is on the way can answer in its place",
            id="http",
        ),
    ],
)
async def test_what_is_insecure_about_a_server_is_said_and_not_refused(
    cluster: dict[str, object], said: str, tmp_path: Path
) -> None:
    path = written(tmp_path, {**CONFIG, "clusters": [{"name": "c", "cluster": cluster}]})
    api = await load(Origin((path,), None))
    try:
        assert kubeconfig.insecure(api.configuration) == said
    finally:
        await api.close()


@pytest.mark.parametrize(
    ("server", "environ", "expected"),
    [
        pytest.param("https://kube.example:6443", {}, None, id="no proxy"),
        pytest.param(
            "https://kube.example", {"HTTPS_PROXY": "http://p.example:3128"}, "http://p.example:3128", id="https"
        ),
        pytest.param(
            "https://kube.example", {"https_proxy": "p.example:3128"}, "http://p.example:3128", id="without http"
        ),
        pytest.param("https://kube.example", {"HTTP_PROXY": "http://p.example"}, None, id="another protocol's"),
        pytest.param(
            "https://kube.example:6443", {"HTTPS_PROXY": "p.example", "NO_PROXY": "other,.example"}, None, id="NO_PROXY"
        ),
        pytest.param("https://127.0.0.1:6443", {"HTTPS_PROXY": "p.example"}, None, id="an address of the loopback"),
        pytest.param("https://localhost:6443", {"HTTPS_PROXY": "p.example"}, None, id="localhost"),
    ],
)
async def test_the_proxy_of_the_environment_is_the_one_that_kubectl_takes(
    server: str, environ: Mapping[str, str], expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    api = await load(Origin((written(tmp_path, with_cluster({"server": server})),), None))
    await api.close()
    assert api.rest_client.proxy == expected


async def test_the_proxy_of_a_kubeconfig_comes_before_the_environments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://other.example")
    cluster = {"server": "https://kube.example", "proxy-url": "http://own.example"}
    api = await load(Origin((written(tmp_path, with_cluster(cluster)),), None))
    await api.close()
    assert api.rest_client.proxy == "http://own.example"


def with_cluster(cluster: Mapping[str, str]) -> dict[str, Any]:
    """The configuration with another cluster."""
    return {**CONFIG, "clusters": [{"name": "c", "cluster": dict(cluster)}]}
