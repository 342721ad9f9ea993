"""Runs the image as the pod of compose/kubernetes/underhost.yaml: pod.py PARTS STATE, with DOCKER_HOST and PYTHONPATH.

A kubelet is what is missing here: the container gets from this file what it would get from there, but on the network of
this machine, at a free port. The API server is a real one with RBAC; the worker finds it as in any pod, by the token of
its account. Fails where something is not so. PYTHONPATH names tests.
"""

import json
import os
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from support.processes.kube import Kube, start_kube
from support.processes.manifests import NAMESPACES, PLAIN, apply, objects, token_of
from support.processes.ports import free_ports
from support.processes.world import KubeApi, eventually

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
NAME = "underhost-pod"


def files(kube: Kube, folder: Path) -> dict[str, str]:
    """What is mounted, by place: the configuration, both tokens, and a volume for the embedded log."""
    config = next(one for one in objects(PLAIN) if one["kind"] == "ConfigMap")
    for name in ("config", "web", "account", "data"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name, text in config["data"].items():
        (folder / "config" / name).write_text(text)
    (folder / "web" / "token").write_text("token-of-the-page-of-the-stack")
    (folder / "account" / "token").write_text(token_of(KubeApi(kube), f"{NAMESPACES[PLAIN]}/underhost-worker"))
    (folder / "account" / "ca.crt").write_text(kube.ca.read_text())
    (folder / "account" / "namespace").write_text(NAMESPACES[PLAIN])
    return {
        "/etc/underhost/config": f"{folder / 'config'}:ro",
        "/etc/underhost/web": f"{folder / 'web'}:ro",
        "/var/lib/underhost": str(folder / "data"),
        str(ACCOUNT): f"{folder / 'account'}:ro",
    }


def command(spec: dict[str, Any], mounts: dict[str, str], kube: Kube, listen: str) -> list[str]:
    """`docker run` as the pod's spec has it."""
    (container,) = spec["containers"]
    mine, pods = container["securityContext"], spec["securityContext"]
    assert {one["mountPath"] for one in container["volumeMounts"]} <= {*mounts, "/tmp"}
    host, _, port = kube.server.removeprefix("https://").partition(":")
    flags = [f"--user={pods['runAsUser']}:{pods['runAsGroup']}", "--tmpfs=/tmp", "--network=host"]
    flags += [f"--cap-drop={name}" for name in mine["capabilities"]["drop"]]
    flags += ["--read-only"] if mine["readOnlyRootFilesystem"] else []
    flags += [] if mine["allowPrivilegeEscalation"] else ["--security-opt=no-new-privileges:true"]
    flags += [f"--env=KUBERNETES_SERVICE_HOST={host}", f"--env=KUBERNETES_SERVICE_PORT={port}"]
    for place, source in mounts.items():
        path, _, mode = source.partition(":")
        flags.append(f"--volume={path}:{place}{':' + mode if mode else ''}")
    return [
        "docker",
        "run",
        "--detach",
        f"--name={NAME}",
        *flags,
        container["image"],
        *container["args"],
        f"--listen={listen}",
    ]


def ask(url: str) -> tuple[int, Any] | None:
    """(code, decoded answer); None while there is none."""
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status, json.load(answer)
    except OSError:
        return None


def watched(url: str) -> dict[str, Any] | None:
    """The site as the page has it, once there is what was made for it."""
    _, seen = ask(f"{url}/api/v1/sites") or (0, {"sites": []})
    return next((site for site in seen["sites"] if (site["nodes"], site["pods"]) == (1, 1)), None)


def docker(*words: str) -> str:
    return subprocess.run(["docker", *words], check=True, capture_output=True, text=True).stdout.strip()


def main(parts: Path, folder: Path) -> None:
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    with start_kube(folder / "kube", parts) as kube:
        apply(kube, PLAIN)
        KubeApi(kube).add_node("node-1", "7dc847e3-ffa0-55fc-9c65-18f9246b4527")
        KubeApi(kube).add_replica("db-0")
        worker = next(one for one in objects(PLAIN) if one["kind"] == "StatefulSet")
        spec = worker["spec"]["template"]["spec"]
        mounts = files(kube, folder)
        os.chown(folder / "data", 0, spec["securityContext"]["fsGroup"])
        (folder / "data").chmod(0o2770)
        [port] = free_ports(1)
        subprocess.run(command(spec, mounts, kube, f"127.0.0.1:{port}"), check=True, capture_output=True)
        try:
            for name in ("startupProbe", "livenessProbe", "readinessProbe"):
                path = spec["containers"][0][name]["httpGet"]["path"]
                print(f"  {name}, {path}: {eventually(path, partial(ask, f'http://127.0.0.1:{port}{path}'))[0]}")
            site = eventually("the worker sees the node and the pod", lambda: watched(f"http://127.0.0.1:{port}"))
            print(f"  it sees {site['nodes']} node and {site['pods']} pod of site {site['site']}")
            docker("stop", f"--time={spec['terminationGracePeriodSeconds']}", NAME)
            code = docker("inspect", "--format", "{{.State.ExitCode}}", NAME)
            print(f"  its exit code: {code}")
            said = subprocess.run(["docker", "logs", NAME], capture_output=True, text=True)
            if code != "0" or "403" in said.stderr:
                sys.exit(f"it is not so:\n{said.stderr}")
        finally:
            docker("rm", "--force", NAME)


main(Path(sys.argv[1]), Path(sys.argv[2]))
