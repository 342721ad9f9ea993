"""`make bench`: run benches of the table, keep their runs, and write docs/performance.md anew.

In: names of benches, or `all`; without any they are listed. Out: the figures as they come, each run kept in
docs/performance.jsonl with its commit, and the page. A bench that has enough runs at this commit is not run again.
"""

import argparse
import os
import re
import resource
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bench.figures.measured import measured
from bench.figures.page import PAGE, amount, page, verdict
from bench.figures.runs import ENOUGH, Run, load, newest, save, with_run
from bench.figures.table import BENCHES, BROKER, CHROMIUM, GO, PARTS, ROUNDS, Bench
from bench.pace import pace
from bench.rounds import read
from bench.usage import machine
from support.commits import ROOT
from support.processes.kafka import KafkaProcess
from support.processes.parts import built_parts
from support.processes.programs import end_on_term, ran

ALL = "all"


def main() -> None:
    """Run the named benches. Without a name: list them."""
    parser = argparse.ArgumentParser(prog="make bench")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*BENCHES, ALL)))
    parser.add_argument("--runs", type=int, default=ENOUGH, help="how many runs each is to have at this commit")
    parser.add_argument("--anew", action="store_true", help="leave out what was run at this commit before")
    asked = parser.parse_args()
    end_on_term()
    for name in asked.names:
        if name not in (*BENCHES, ALL):
            parser.error(f"no bench {name!r}; there is: {', '.join((*BENCHES, ALL))}")
    runs = load()
    if not asked.names:
        _list(runs)
        return
    _compile()
    for name in _names(asked.names):
        commit = measured(BENCHES[name].module)
        if asked.anew:
            runs = [run for run in runs if (run.bench, run.commit) != (name, commit)]
        runs = _measure(name, runs, commit, asked.runs)
    PAGE.write_text(page(runs), encoding="utf-8")


def _names(asked: Sequence[str]) -> list[str]:
    return list(BENCHES) if ALL in asked else list(asked)


def _list(runs: Sequence[Run]) -> None:
    for name, bench in BENCHES.items():
        commit = measured(bench.module)
        made = sum(run.commit == commit for run in newest(runs, name))
        print(f"{name:<24} {made} of {ENOUGH} runs at {commit}: {bench.what}")
    print(f"to run one: make bench ARGS=NAME; all of them: make bench ARGS={ALL}")


def _measure(name: str, runs: list[Run], commit: str, enough: int) -> list[Run]:
    """The runs with those that this bench is short of; each is kept as soon as it is made."""
    bench, missing = BENCHES[name], _missing(BENCHES[name])
    if missing:
        print(f"{name}: left out, {missing}", flush=True)
        return runs
    made = sum(run.commit == commit for run in newest(runs, name))
    if made >= enough:
        print(f"{name}: has {made} runs at {commit}", flush=True)
    while made < enough:
        rounds = enough - made if ROUNDS in bench.arguments else 1
        told = f"{made + 1}" if rounds == 1 else f"{made + 1} to {enough}"
        print(f"{name}, run {told} of {enough}: {bench.what}", flush=True)
        for run in _run(name, bench, commit, rounds):
            runs = with_run(runs, run)
            _tell(bench, run)
        save(runs)
        made += rounds
    return runs


def _missing(bench: Bench) -> str:
    """Why the bench cannot run here, "" where it can."""
    if bench.needs == GO and shutil.which("go") is None:
        return "the upstream scheduler's plugins need Go to be built"
    if bench.needs == CHROMIUM and shutil.which("chromium") is None:
        return "there is no Chromium"
    if {PARTS, BROKER} & set(bench.arguments):
        return built_parts()[1]
    return ""


def _run(name: str, bench: Bench, commit: str, rounds: int) -> list[Run]:
    """So many runs of one process."""
    began = time.monotonic()
    with _arguments(bench, rounds) as arguments:
        before = pace()
        busy, spent = machine(), _spent()
        done = ran([sys.executable, "-m", f"bench.{bench.module}", *arguments])
        now, used = machine(), _spent() - spent
        paces = (before, pace())
    if done.returncode != 0:
        sys.exit(f"{name} failed:\n{done.stderr[-3000:]}")
    found = read(done.stdout)
    if len(found) != rounds:
        sys.exit(f"{name}: {len(found)} runs were printed of {rounds}")
    others = max(0.0, (now[0] - busy[0] - used) / max(now[1] - busy[1], 0.01))
    day = f"{datetime.now(UTC):%Y-%m-%d}"
    quick, taken = round(sum(paces) / 2, 2), round((time.monotonic() - began) / rounds, 1)
    return [Run(name, commit, day, values, round(others, 3), _machine(), quick, taken) for values in found]


@contextmanager
def _arguments(bench: Bench, rounds: int) -> Iterator[list[str]]:
    """The bench's arguments, with an Apache Kafka that runs meanwhile where they want one."""
    parts, _ = built_parts() if {PARTS, BROKER} & set(bench.arguments) else (None, "")
    given = {PARTS: str(parts), ROUNDS: str(rounds)}
    if BROKER not in bench.arguments or parts is None:
        yield [given.get(argument, argument) for argument in bench.arguments]
        return
    with tempfile.TemporaryDirectory() as folder:
        broker = KafkaProcess(Path(folder), parts)
        broker.start()
        try:
            given[BROKER] = broker.address
            yield [given.get(argument, argument) for argument in bench.arguments]
        finally:
            broker.kill()


def _spent() -> float:
    """CPU seconds of this process, of the children that have ended, and of theirs."""
    return sum(
        used.ru_utime + used.ru_stime
        for used in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )


def _machine() -> str:
    """`2 processors (AMD EPYC), 24 GB, Python 3.11`."""
    models = re.findall(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"{os.cpu_count()} processors ({models[0].strip() if models else 'unknown'}), {memory:.0f} GB, Python {version}"
    )


def _tell(bench: Bench, run: Run) -> None:
    judged = {figure.line: figure for figure in bench.figures}
    for line, value in run.values.items():
        figure = judged.get(line)
        told = "" if figure is None else verdict(figure, value, figure.at_pace_1(value, run.pace or 1.0))
        print(f"    {line:<60} {amount(value):>10}  {told}")
    print(f"    {'pace of the machine':<60} {amount(run.pace or 1.0):>10}")
    print(f"    {'taken by others':<60} {run.others or 0:>10.0%}", flush=True)


def _compile() -> None:
    """Bytecode of all that is imported, as installing it makes: without it a command takes a second more to start."""
    folders = [sysconfig.get_path("purelib"), *(str(ROOT / name) for name in ("schemas", "streams", "agents"))]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "compileall", "-q", *folders]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)  # some packages hold Python 2


if __name__ == "__main__":
    main()
