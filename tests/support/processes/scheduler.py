"""A real kube-scheduler under a name of its own, as docs/extender.md configures it or without an extender."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from support.processes.kube import Kube

GUIDE = Path(__file__).parents[3] / "docs" / "extender.md"


def documented() -> dict[str, Any]:
    """The KubeSchedulerConfiguration of the guide."""
    [text] = re.findall(r"```yaml\n(apiVersion: kubescheduler.*?)```", GUIDE.read_text(), re.DOTALL)
    tree: dict[str, Any] = yaml.safe_load(text)
    return tree


@contextmanager
def kube_scheduler(kube: Kube, parts: Path, name: str, extender: Mapping[str, Any] | None = None) -> Iterator[None]:
    """kube-scheduler for pods of this `schedulerName`; `extender` overrides fields of the guide; None: no extender."""
    tree = documented()
    tree["clientConnection"] = {"kubeconfig": str(kube.kubeconfig)}
    tree["leaderElection"] = {"leaderElect": False}
    tree["profiles"] = [{"schedulerName": name}]
    tree["extenders"] = [] if extender is None else [{**tree["extenders"][0], **extender}]
    config = kube.folder / f"scheduler-{name}.json"
    config.write_text(json.dumps(tree))
    access = f"kubeconfig={kube.kubeconfig}"
    flags = [f"--config={config}", f"--authentication-{access}", f"--authorization-{access}", "--secure-port=0", "-v=2"]
    with (kube.folder / f"scheduler-{name}.log").open("wb") as out:
        process = subprocess.Popen([str(parts / "kube-scheduler"), *flags], stdout=out, stderr=out, cwd=kube.folder)
    try:
        yield
    finally:
        process.kill()
        process.wait()
