"""`python -m trust.sieve` in the folder `tests`: plays plans against the real parts, and says which were not survived.

Plays the plans A to B-1, all of them without it, several at once. Plans that the state file has a verdict of are not
played again: a run can be ended and taken up. Prints a line for each plan that the product does not survive, and at the
end one JSON document. Exit codes: 0 when all plans were survived, 1 otherwise, 2 for bad usage or without the real
parts.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

from support.processes.parts import built_parts
from trust.sieve.mutants import MUTANTS
from trust.sieve.plans import PLANS
from trust.sieve.plays import find_all, play_all, summary


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m trust.sieve", description="Sieve's three kinds of faults.")
    parser.add_argument("--plans", default=f"0:{len(PLANS)}", metavar="A:B", help="these plans (all)")
    parser.add_argument("--state", type=Path, metavar="FILE", help="verdicts so far; a plan in it is not played again")
    parser.add_argument("--lanes", type=int, default=4, metavar="N", help="plans at once (4)")
    parser.add_argument("--minutes", type=float, default=30.0, metavar="N", help="begin no plan after so long (30)")
    parser.add_argument("--mutant", default="", choices=["", *MUTANTS], metavar="NAME", help="with this fault planted")
    parser.add_argument("--find", action="store_true", help="plant every fault in turn; which plan finds it?")
    parser.add_argument(
        "--folder", type=Path, metavar="DIR", help="keep what workers and parts have said in this folder"
    )
    given = parser.parse_args()
    first, _, last = given.plans.partition(":")
    parts, why = built_parts()
    if parts is None:
        print(f"error: {why}", file=sys.stderr)
        return 2
    plans = PLANS[int(first or 0) : int(last or len(PLANS))]
    seconds = given.minutes * 60
    if given.folder is not None:
        given.folder.mkdir(parents=True)
    with nullcontext(given.folder) if given.folder else tempfile.TemporaryDirectory(prefix="sieve-") as folder:
        if given.find:
            names = [name for name in MUTANTS if given.mutant in {"", name}]
            found = asyncio.run(find_all(names, plans, Path(folder), parts, lanes=given.lanes, seconds=seconds))
            by = {name: verdict and {"plan": verdict.plan, "wrong": verdict.wrong} for name, verdict in found.items()}
            print(json.dumps({"found": sum(map(bool, by.values())), "of": len(names), "by": by}, indent=2))
            return 0 if all(by.values()) else 1
        verdicts = asyncio.run(
            play_all(
                plans,
                Path(folder),
                parts,
                lanes=given.lanes,
                mutant=given.mutant,
                state=given.state,
                seconds=seconds,
            )
        )
    told = summary(plans, verdicts)
    print(json.dumps(told, indent=2, sort_keys=True))
    return 1 if told["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
