"""`python -m trust.simulation --seeds A:B`: replay seeds, each as one line of JSON; `--loud` says all that happens.

In: ranges of seeds. Out: a `Verdict` for each; exit code 1 where one is violated. The process does nothing else,
because its clocks are the simulation's.
"""

import argparse
import logging
import os
import sys
import warnings

import msgspec
import structlog
from trust.simulation import clock


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
    # Imported here: the pipeline keeps the machine's clocks as default arguments, so they have to be replaced before.
    from trust.simulation.mutants import MUTANTS
    from trust.simulation.seed import run_seed

    if asked.mutant is not None:
        MUTANTS[asked.mutant].bring_back()
    good = True
    for given in asked.seeds:
        first, _, end = given.partition(":")
        for seed in range(int(first), int(end or int(first) + 1)):
            verdict = run_seed(seed, loud=asked.loud)
            good = good and not verdict.violations
            print(msgspec.json.encode(verdict).decode(), flush=True)
            if verdict.violations and asked.first:
                sys.exit(1)
    sys.exit(0 if good else 1)


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


if __name__ == "__main__":
    main()
