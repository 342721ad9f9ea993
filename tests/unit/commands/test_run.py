"""`underhost run`: its flags, its exit codes, its clean end, what it logs."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from underhost.agents.commands.run import enabled
from underhost.schemas.errors import InputError

CONFIG = """
apiVersion: underhost/v1
kind: Config
site: sim
kafka: {embedded: log.db}
kubernetes: {simulated: kubevirt}
vsphere: {simulated: kubevirt}
web: {listen: "127.0.0.1:0"}
"""


def command(
    folder: Path, *arguments: str, code: str = "from underhost.agents.cli import main; main()"
) -> "subprocess.Popen[str]":
    """`underhost run` in the folder, its standard error to be read."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("UNDERHOST_", "KUBE"))}
    return subprocess.Popen(
        [sys.executable, "-c", code, "run", *arguments],
        cwd=folder,
        env=environment | {"HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def failing(folder: Path, error: str) -> "subprocess.Popen[str]":
    """`underhost run` whose worker raises this while a task of it goes on, however often it is cancelled."""
    lines = [
        "import asyncio",
        "from underhost.agents import cli",
        "from underhost.agents.commands.handlers import run",
        "from underhost.schemas.errors import Refused",
        "async def stay():",
        "    while True:",
        "        try: await asyncio.sleep(3600)",
        "        except asyncio.CancelledError: pass",
        "async def fail(*_, **__):",
        "    fail.task = asyncio.ensure_future(stay())",
        "    await asyncio.sleep(0)",
        f"    raise {error}",
        "run.run_worker = fail",
        "cli.main()",
    ]
    return command(folder, "--config", "config.yaml", code="\n".join(lines))


def said(process: "subprocess.Popen[str]") -> tuple[int, list[str]]:
    """Exit code and lines of a command that ends by itself."""
    _, errors = process.communicate(timeout=60)
    return process.returncode, errors.splitlines()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_signal_ends_it_with_0(tmp_path: Path, number: signal.Signals) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    process = command(tmp_path, "--config", "config.yaml")
    assert process.stderr is not None
    events: list[dict[str, Any]] = []
    for line in process.stderr:
        events.append(json.loads(line))
        if "open findings" in events[-1]["event"]:
            break
    process.send_signal(number)
    _, rest = process.communicate(timeout=30)
    assert process.returncode == 0
    events += [json.loads(line) for line in rest.splitlines()]
    told = [re.sub(r":\d+/$", ":PORT/", event["event"]) for event in events]
    assert told == [
        "site sim: kubernetes, vsphere, evaluator, labeller, pod-labeller, binder, drs, mover, evictor, events, "
        "reporter, alerts, web begins",
        "site sim: topics in log.db, Kubernetes: simulated (kubevirt), vSphere: simulated (kubevirt)",
        "site sim: dry run: nothing is written to any cluster (sinks: labels, podLabels, bindings, drsRules, moves,"
        " maintenance, evictions, events, reports; all are off)",
        "site sim: volumes of claims are not judged here, only in dumps",
        "the page: http://127.0.0.1:PORT/",
        "ready",
        "site sim: pods 32, nodes 7, hosts 4; open findings 0",
        "site sim: ended",
    ]


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        pytest.param("Refused('vCenter: wrong password')", 3, "error: vCenter: wrong password", id="told"),
        pytest.param("ZeroDivisionError('a bug')", 1, "ZeroDivisionError: a bug", id="a bug"),
    ],
)
def test_a_worker_that_fails_ends_though_a_task_of_it_goes_on(tmp_path: Path, error: str, code: int, line: str) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    ended, lines = said(failing(tmp_path, error))
    assert (ended, lines[-1]) == (code, line)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        pytest.param(["--config", "none.yaml"], 2, "none.yaml: No such file or directory", id="no such file"),
        pytest.param(["--agents", "binders"], 2, "--agents: no agent 'binders'", id="unknown agent"),
        pytest.param(["--enable", "evictions"], 2, "--enable: no sink 'evictions'", id="unknown sink"),
        pytest.param(["--kubeconfig", "none"], 2, "none: no such file", id="no kubeconfig"),
        pytest.param(
            ["--listen", "here", "--bootstrap-servers", "127.0.0.1:1"],
            2,
            "configuration: web.listen: HOST:PORT is expected, not 'here'",
            id="no address, before anybody is asked",
        ),
        pytest.param(
            ["--listen", "0.0.0.0:0"],
            2,
            "configuration: web: listen 0.0.0.0:0 is not loopback: it needs tokenFile or tls.clientCaFile",
            id="a door that anybody could open",
        ),
        pytest.param(["--bootstrap-servers", "127.0.0.1:1"], 3, "Kafka at 127.0.0.1:1", id="no broker"),
        pytest.param(
            ["-f", "none.json", "--listen", "127.0.0.1:0"],
            2,
            "none.json: No such file or directory",
            id="no dump",
            marks=pytest.mark.timeout(60),
        ),
    ],
)
def test_what_cannot_begin_is_one_line_and_the_exit_code(
    tmp_path: Path, arguments: list[str], code: int, message: str
) -> None:
    returned, lines = said(command(tmp_path, *arguments))
    errors = [line for line in lines if not line.startswith("{")]
    assert (returned, len(errors)) == (code, 1), lines
    assert errors[0].startswith(f"error: {message}")


DOORS = """
apiVersion: underhost/v1
kind: Config
kafka: {{bootstrapServers: "127.0.0.1:1"}}
web: {{listen: "{web}", tls: {{certFile: cert.pem, clientCaFile: ca.pem}}}}
extender: {{listen: "{extender}", tls: {{certFile: cert.pem, clientCaFile: ca.pem}}}}
"""


@pytest.mark.parametrize("setting", ["web", "extender"])
@pytest.mark.parametrize(
    ("host", "why"),
    [
        pytest.param("127.0.0.1", "address already in use", id="taken"),
        pytest.param("192.0.2.1", "cannot assign requested address", id="of another machine"),
    ],
)
def test_an_address_that_cannot_be_had_is_told_before_a_broker_is_asked(
    tmp_path: Path, setting: str, host: str, why: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        wrong = f"{host}:{other.getsockname()[1]}"
        text = DOORS.format(**{"web": "127.0.0.1:0", "extender": "127.0.0.1:0", setting: wrong})
        (tmp_path / "config.yaml").write_text(text)
        assert said(command(tmp_path, "--config", "config.yaml")) == (2, [f"error: {setting}.listen {wrong}: {why}"])


def test_the_sinks_that_may_write_are_named_as_in_the_settings() -> None:
    assert enabled("labels, drs-rules") == ["labels", "drs_rules"]
    assert enabled(None) == []
    with pytest.raises(InputError):
        enabled("labels,everything")
