"""Ask whether what is locked has known weaknesses: `pip-audit` over run.txt and dev.txt, each package by its version.

In: the lock files, and a service that knows (options of pip-audit choose it: `-s osv`). Out: a line for each weakness.
Exit code 0: every package was asked about, and none is known; 1: some are; 3: not every package was answered for, which
says nothing. pip-audit itself ends with 0 where the service knows no package at all.
"""

import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
LOCKS = tuple(f"--requirement={HERE / name}.txt" for name in ("run", "dev"))
FLAGS = ("--require-hashes", "--disable-pip", "--format=json", "--progress-spinner=off", "--desc=off")
CLEAN, WEAK, UNKNOWN = 0, 1, 3


def main(arguments: list[str]) -> int:
    """Ask, say what is known, and give the exit code."""
    locks = () if any(one.startswith(("-r", "--requirement")) for one in arguments) else LOCKS
    command = [sys.executable, "-m", "pip_audit", *FLAGS, *locks, *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        why = said[-1].rpartition("(Caused by ")[2].rstrip(")\"'") if said else f"exit code {done.returncode}"
        print(f"error: nothing was audited, as the service did not answer: {why}", file=sys.stderr)
        return UNKNOWN
    weak = [f"{one['name']} {one['version']}: {_said(each)}" for one in packages for each in one.get("vulns", ())]
    skipped = sorted({one["name"] for one in packages if "skip_reason" in one})
    print("\n".join(sorted(set(weak))), end="\n" if weak else "")
    if skipped:
        few = ", ".join(skipped[:3]) + (" …" if len(skipped) > 3 else "")
        print(f"error: of {len(skipped)} packages the service knows nothing: {few}", file=sys.stderr)
    if weak:
        return WEAK
    if skipped or not packages:
        return UNKNOWN
    print(f"no weakness is known of {len({one['name'] for one in packages})} packages")
    return CLEAN


def _said(weakness: dict[str, list[str] | str]) -> str:
    """Its id, and the versions that are without it."""
    fixed = ", ".join(weakness["fix_versions"])
    return f"{weakness['id']}" + (f", not in {fixed}" if fixed else ", in every version so far")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
