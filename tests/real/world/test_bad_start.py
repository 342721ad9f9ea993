"""What `underhost run` says of a world that is not as configured: one clear line, the contract's code, no traceback."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.processes.kube import ADMIN_TOKEN, Kube
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST, config_of
from support.processes.vcsim import Vcsim

pytestmark = pytest.mark.real


@pytest.fixture
def config(kube: Kube, vcsim: Vcsim, tmp_path: Path) -> dict[str, Any]:
    return config_of(tmp_path, kube, vcsim)


def run(config: dict[str, Any], folder: Path) -> tuple[int, list[str]]:
    """(exit code, the lines of errors) of a run that is expected to end by itself."""
    path = folder / "underhost.yaml"
    path.write_text(json.dumps(config))
    command = [UNDERHOST, "run", "--config", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, "NO_COLOR": "1"})
    assert "Traceback" not in done.stderr
    return done.returncode, [line for line in done.stderr.splitlines() if line.startswith("error:")]


def test_no_broker(config: dict[str, Any], tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    config["kafka"] = {"bootstrapServers": address}
    code, [line] = run(config, tmp_path)
    assert (code, address in line) == (3, True)


def test_no_kubeconfig(config: dict[str, Any], tmp_path: Path) -> None:
    config["kubernetes"]["kubeconfig"] = str(tmp_path / "nowhere")
    assert run(config, tmp_path) == (2, [f"error: {tmp_path / 'nowhere'}: no such file"])


def test_a_token_that_the_api_server_does_not_know(config: dict[str, Any], kube: Kube, tmp_path: Path) -> None:
    config["kubernetes"]["kubeconfig"] = str(kube.kubeconfig_of(ADMIN_TOKEN[::-1]))
    code, [line] = run(config, tmp_path)
    assert (code, kube.server in line, "401" in line or "Unauthorized" in line) == (3, True, True), line


def test_a_wrong_vcenter_password(config: dict[str, Any], vcsim: Vcsim, tmp_path: Path) -> None:
    (tmp_path / "password").write_text("wrong")
    assert run(config, tmp_path) == (3, [f"error: vCenter 127.0.0.1:{vcsim.port}: wrong user name or password"])


def test_a_vcenter_certificate_that_nobody_vouches_for(config: dict[str, Any], vcsim: Vcsim, tmp_path: Path) -> None:
    del config["vsphere"]["caFile"]
    said = f"error: vCenter 127.0.0.1:{vcsim.port}: certificate not trusted: self-signed certificate"
    assert run(config, tmp_path) == (3, [said])


def test_unknown_keys_and_bad_values_are_told_together(config: dict[str, Any], tmp_path: Path) -> None:
    config["kafkaa"], config["sinks"], config["site"] = {}, {"label": True}, "Prod A"
    code, lines = run(config, tmp_path)
    assert code == 2
    assert [line.split(": ")[2] for line in lines] == ["site", "sinks.label", "kafkaa"]


def test_a_broken_dump_in_the_clusters_place(config: dict[str, Any], tmp_path: Path) -> None:
    dump = tmp_path / "dump.json"
    dump.write_text('{"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": "a"')
    config["kubernetes"] = {"files": [str(dump)]}
    code, [line] = run(config, tmp_path)
    assert (code, line.startswith(f"error: {dump}: not valid JSON")) == (2, True), line
