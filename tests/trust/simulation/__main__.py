"""`python -m trust.simulation --seeds A:B`: replay seeds, each as one line of JSON; `--loud` says all that happens.

In: ranges of seeds. Out: a `Verdict` for each; exit code 1 where one is violated. The process does nothing else,
because its clocks are the simulation's.
"""

import argparse
import importlib
import logging
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import structlog
from trust.simulation import clock, running

OF_ONE_PROCESS = 7
"""Seeds of one process: each leaves 25 MB behind."""
IMPORTED_BEFORE = (
    "trust.simulation.seed",
    "polars",
    "underhost.agents.sinks.drs.decider",
    "underhost.agents.sinks.evictions.decider",
    "underhost.agents.sinks.labels.decider",
    "highspy",
    "underhost.agents.planner.plan",
    "underhost.agents.sinks.moves.decider",
)
"""What these processes need not each import anew."""


def main() -> None:
    """Run the seeds of the command line."""
    parser = argparse.ArgumentParser(prog="python -m trust.simulation")
    parser.add_argument("--seeds", nargs="+", required=True, metavar="A:B", help="from A to before B; one of them: A")
    parser.add_argument("--mutant", help="with one old defect brought back (mutants.py)")
    parser.add_argument("--first", action="store_true", help="end with the first seed that shows a defect")
    parser.add_argument("--loud", action="store_true", help="say all that happens, on standard error")
    asked = parser.parse_args()
    _fix_hashes()
    _hush()
    clock.install()
    running.install()
    # Imported here: the pipeline keeps the machine's clocks as default arguments, so they have to be replaced before.
    from trust.simulation.mutants import MUTANTS

    from underhost.schemas.frames import use_one_thread

    _hush_faust()
    if asked.mutant is not None:
        MUTANTS[asked.mutant].bring_back()
    use_one_thread()
    for name in IMPORTED_BEFORE:
        importlib.import_module(name)
    seeds = [seed for given in asked.seeds for seed in _range_of(given)]
    good = True
    for begin in range(0, len(seeds), OF_ONE_PROCESS):
        good = _fork(partial(_play, seeds[begin : begin + OF_ONE_PROCESS], asked)) and good
        if asked.first and not good:
            break
    sys.exit(0 if good else 1)


def _range_of(given: str) -> range:
    first, _, end = given.partition(":")
    return range(int(first), int(end or int(first) + 1))


def _play(seeds: Sequence[int], asked: argparse.Namespace) -> bool:
    """Whether these seeds show no defect; with `--first`, until one does."""
    from trust.simulation.seed import run_seed  # as in `main`

    good = True
    for seed in seeds:
        verdict = run_seed(seed, loud=asked.loud)
        print(msgspec.json.encode(verdict).decode(), flush=True)
        good = good and not verdict.violations
        if asked.first and not good:
            break
    return good


def _fork(play: Callable[[], bool]) -> bool:
    """What `play` answers in a process of its own, which ends with all that its seeds leave behind.

    That is killed programs, whose tasks wait for ever: to collect them would run what they have left to do, and take a
    third of a seed's time.
    """
    if not (child := os.fork()):
        status = 2
        try:
            status = 0 if play() else 1
        except BaseException:  # noqa: BLE001 - this process ends here, whatever it is
            traceback.print_exc()
        os._exit(status)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status not in (0, 1):
        sys.exit(2)
    return status == 0


def _fix_hashes() -> None:
    """Begin again in this process with a fixed hash of strings: sets of them are iterated over in the order of it."""
    if sys.flags.hash_randomization:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})


def _hush() -> None:
    """No logs: a seed has hundreds of faults, and each is told. What killed programs leave behind is of no use."""
    logging.disable(logging.CRITICAL)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda ignored: None


def _hush_faust() -> None:
    """Nothing is made that nobody reads.

    Faust formats what it would say, tables of offsets among it, before it asks whether anybody listens. It notes where
    the code of each agent is, for a discovery of agents that is off, and which settings were read, for a warning.
    """
    from faust.types.settings.base import SettingsRegistry  # as in `main`
    from faust.utils import terminal, venusian
    from mode.utils.logging import CompositeLogger

    CompositeLogger.log = lambda self, *args, **options: None
    terminal.logtable = lambda *args, **options: ""
    venusian.attach = lambda *args, **options: None
    del SettingsRegistry.__getattribute__


if __name__ == "__main__":
    main()
