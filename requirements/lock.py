"""Resolve pyproject.toml into requirements/{run,dev}.txt, with hashes and without any index address. Needs uv."""

import subprocess
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
FLAGS = ("--quiet", "--universal", "--python-version=3.11", "--generate-hashes", "--no-emit-index-url", "--no-header")


def main() -> None:
    """Write the two input files from pyproject.toml and lock both, the smaller one constrained by the larger."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())
    build = project["build-system"]["requires"]
    run = [*project["project"]["dependencies"], *build]
    (HERE / "run.in").write_text("\n".join(run) + "\n")
    (HERE / "dev.in").write_text("\n".join([*run, *project["dependency-groups"]["dev"]]) + "\n")
    for name, extra in (("dev", []), ("run", ["-c", "requirements/dev.txt"])):
        files = [f"requirements/{name}.in", "-o", f"requirements/{name}.txt"]
        command = ["uv", "pip", "compile", *FLAGS, "--no-emit-find-links", *files, *extra]
        subprocess.run(command, cwd=HERE.parent, check=True)


if __name__ == "__main__":
    main()
