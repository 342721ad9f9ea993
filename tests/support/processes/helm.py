"""The real helm, where it is there: what it makes of the chart."""

import shutil
import subprocess
from pathlib import Path

import pytest

CHART = Path(__file__).parents[3] / "compose" / "kubernetes" / "chart"
RELEASE = ("--namespace", "underhost", "--kube-version", "1.36.0")


def helm(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    """What the real helm says; without it the test is skipped."""
    program = shutil.which("helm")
    if program is None:
        pytest.skip("needs helm 3, which Debian does not have: go install helm.sh/helm/v3/cmd/helm@v3.18.6")
    return subprocess.run([program, *arguments], capture_output=True, text=True)


def template(*flags: str | Path) -> str:
    """The chart rendered with these flags."""
    said = helm("template", "underhost", CHART, *RELEASE, *flags)
    assert said.returncode == 0, said.stderr
    return said.stdout
