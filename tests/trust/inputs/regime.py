"""The regime `inputs`: thousands of inputs changed at random, each read by a command within bounds.

A case is lost where the command says a traceback, ends with another exit code than 0 to 3, takes more than 5 s of a
processor, or more memory above its start than ten times the input or 64 MiB.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from trust.inputs.mutations import ROOT, Mutant, case_of
from trust.regime import Tally, load, save

CASES = 2000
MOST_SECONDS, MOST_TIMES, ALWAYS_MIB = 5.0, 10, 64.0


class Reader:
    """The process that carries commands out, in a folder with the input of the case."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process = subprocess.Popen(
            [sys.executable, "-m", "trust.inputs.reading"], cwd=ROOT / "tests",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def __enter__(self) -> "Reader":
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def try_(self, case: Mutant) -> dict[str, Any]:
        """What became of a case."""
        file = self._folder / case.name
        file.write_bytes(case.content)
        words = [str(ROOT / word) if word.startswith("docs/") else word.format(file=file) for word in case.words]
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return dict(json.loads(self._process.stdout.readline()))


def wrong(case: Mutant, found: dict[str, Any]) -> str:
    """What is wrong with the outcome, "" where nothing is."""
    most = max(ALWAYS_MIB, MOST_TIMES * len(case.content) / 2**20)
    if "Traceback" in found["said"] or found["code"] not in (0, 1, 2, 3):
        return f"exit code {found['code']}: {found['said'].strip()[-300:]}"
    if found["code"] == 2 and not found["said"].strip():
        return "exit code 2 without a word"
    if found["seconds"] > MOST_SECONDS:
        return f"{found['seconds']:.1f} s of a processor"
    if found["memory"] > most:
        return f"{found['memory']:.0f} MiB for {len(case.content) / 2**20:.1f} MiB of input"
    return ""


def run(until: float, state: Path, cases: int = CASES) -> Tally:
    """Try the seeds that are left."""
    progress = load(state)
    slowest, most = 0.0, 0.0
    with Reader(state) as reader:
        while progress.next < cases and time.monotonic() < until:
            seed = progress.next
            found = reader.try_(case := case_of(seed))
            slowest, most = max(slowest, found["seconds"]), max(most, found["memory"])
            if why := wrong(case, found):
                progress.lost += 1
                replay_by = f"cd tests && python -m trust.inputs.regime {seed}"
                progress.failures.append(f"seed {seed}: {' '.join(case.words)}: {why} — replay: {replay_by}")
            progress.next += 1
            save(state, progress)
    figures = f"the slowest {slowest:.1f} s of a processor, at most {most:.0f} MiB above the start"
    return Tally(progress.next, progress.lost, figures, progress.failures, complete=progress.next >= cases)


def replay(seed: int) -> None:
    """Write the input of a seed where it can be looked at, and say what becomes of it."""
    folder = ROOT / "build" / "trust" / "inputs"
    folder.mkdir(parents=True, exist_ok=True)
    with Reader(folder) as reader:
        found = reader.try_(case := case_of(seed))
    print(folder / case.name, " ".join(case.words), json.dumps(found, indent=1), wrong(case, found), sep="\n")


if __name__ == "__main__":
    replay(int(sys.argv[1]))
