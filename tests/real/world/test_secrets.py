"""No secret in what anybody can read: logs, errors, the page and its API, metrics, topics, what commands print.

The secrets are those that work on a real API server and a webhook, and wrong ones of a vCenter, too (vcsim's own
password is a word like any other): each is nowhere else, and is looked for in every byte that comes out.
"""

import asyncio
import json
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from support.fakes.receiver import Receiver
from support.processes.kube import ADMIN_TOKEN, Kube
from support.processes.underhost import UNDERHOST, config_of
from support.processes.vcsim import Vcsim
from support.processes.world import KubeApi

pytestmark = [pytest.mark.real, pytest.mark.timeout(300)]

OTHER_PASSWORD, WRONG_PASSWORD, WRONG_TOKEN = "canary-password", "canary-wrong-password", "canary-wrong-token"
URL, HEADER, USER = "canary-in-the-url", "canary-in-the-header", "canary-user"
SECRETS = (ADMIN_TOKEN, "canary")
PATHS = (
    "", "readyz", "healthz", "metrics", "api/v1/sites", "api/v1/map", "api/v1/findings", "api/v1/activity",
    "api/v1/history", "extender/readyz",
)  # fmt: skip


@pytest.fixture(scope="module")
def watched(kube: Kube) -> Kube:
    """The cluster, with a node whose VM nobody has."""
    KubeApi(kube).add_node("nobody-knows", "00000000-0000-4000-8000-000000000000")
    return kube


def with_secrets(folder: Path, kube: Kube, vcsim: Vcsim, webhook: str = "http://127.0.0.1:9") -> dict[str, Any]:
    """A configuration that works and has a secret wherever one can be."""
    (folder / "headers").write_text(f"Authorization: Bearer {HEADER}\n")
    return {
        **config_of(folder, kube, vcsim),
        "alerting": {
            "alertmanagers": [webhook.replace("://", f"://{USER}:{URL}@")],
            "plainSecrets": True,
            "webhooks": [
                {
                    "url": f"{webhook}/{URL}?key={URL}",
                    "headersFile": str(folder / "headers"),
                    "plainSecrets": True,
                }
            ],
        },
    }


def written(folder: Path, config: dict[str, Any]) -> Path:
    path = folder / "underhost.yaml"
    path.write_text(json.dumps(config))
    return path


def said(*arguments: str) -> tuple[int, str]:
    """(exit code, everything that a command prints)."""
    done = subprocess.run([UNDERHOST, *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


def leaks(text: str) -> list[str]:
    """The lines that hold a secret."""
    return [line for line in text.splitlines() if any(secret in line for secret in SECRETS)]


async def test_a_worker_that_is_refused_by_its_webhook_tells_no_secret(
    watched: Kube, vcsim: Vcsim, tmp_path: Path
) -> None:
    async with Receiver(*[500] * 100) as receiver:
        config = with_secrets(tmp_path, watched, vcsim, receiver.url)
        command = [UNDERHOST, "run", "-vv", "--config", str(written(tmp_path, config))]
        with (tmp_path / "underhost.log").open("wb") as out:
            process = await asyncio.create_subprocess_exec(*command, stdout=out, stderr=out)
        try:
            await receiver.requested(4)
            answers = await asyncio.to_thread(ask_everything, config["web"]["listen"])
        finally:
            process.terminate()
            code = await process.wait()
    log, topics = left_behind(tmp_path)
    assert (code, "a webhook is called again" in log, b"nobody-knows" in topics) == (0, True, True), log
    sent = str(receiver.requests)
    assert all(secret in sent for secret in (URL, HEADER)), "they are where they belong"
    assert leaks(log) == []
    assert {path: leaks(text) for path, text in answers.items() if leaks(text)} == {}
    assert [secret for secret in SECRETS if secret.encode() in topics] == []


def left_behind(folder: Path) -> tuple[str, bytes]:
    """What was logged, and every byte of the topics."""
    topics = b"".join(file.read_bytes() for file in folder.glob("underhost.db*"))
    return (folder / "underhost.log").read_text(), topics


def ask_everything(listen: str) -> dict[str, str]:
    """What the worker says at each path."""
    said = {}
    for path in PATHS:
        try:
            with urllib.request.urlopen(f"http://{listen}/{path}", timeout=20) as answer:
                said[path] = answer.read().decode() + str(answer.headers)
        except urllib.error.HTTPError as error:
            said[path] = error.read().decode() + str(error.headers)
    return said


@pytest.mark.parametrize("verbose", [pytest.param([], id="quiet"), pytest.param(["-vv"], id="all")])
def test_a_token_or_a_password_that_is_refused_is_not_repeated(
    watched: Kube, vcsim: Vcsim, tmp_path: Path, verbose: list[str]
) -> None:
    config = with_secrets(tmp_path, watched, vcsim)
    config["kubernetes"]["kubeconfig"] = str(watched.kubeconfig_of(WRONG_TOKEN))
    code, text = said("run", *verbose, "--config", str(written(tmp_path, config)))
    assert (code, "401" in text or "Unauthorized" in text, leaks(text)) == (3, True, [])
    config["kubernetes"]["kubeconfig"] = str(watched.kubeconfig)
    (tmp_path / "password").write_text(WRONG_PASSWORD)
    code, text = said("run", *verbose, "--config", str(written(tmp_path, config)))
    assert (code, "wrong user name or password" in text, leaks(text)) == (3, True, [])


def test_what_the_configuration_holds_is_printed_without_its_secrets(
    watched: Kube, vcsim: Vcsim, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDERHOST_VSPHERE__PASSWORD", OTHER_PASSWORD)
    code, text = said("config", "print", "--config", str(written(tmp_path, with_secrets(tmp_path, watched, vcsim))))
    assert (code, "http://127.0.0.1:9" in text, leaks(text)) == (0, True, [])
    code, text = said("config", "print", "--config", str(tmp_path / "underhost.yaml"), "--listen", "nowhere")
    assert leaks(text) == []
