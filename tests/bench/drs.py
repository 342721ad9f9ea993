"""What do DRS rules cost beside an evaluation? Each change: judged, then the rules that the site needs; CPU times.

`bench.drs [NODES APPS ROUNDS]`. Prints `name<TAB>value` lines. The decider gets the evaluator's compiled site: with
rules or without, the site is compiled once, and only the rules of namespaces are thought through again whose pods or
VMs changed.
"""

import gc
import sys
import time

from bench.resident import Site
from support.sites.large import LargeSite

from underhost.agents.drs.cover import RulesByCluster
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.pipeline.event_loop import COLLECT
from underhost.agents.site.snapshot import Options


def main() -> None:
    """Measure and print."""
    nodes, apps, rounds = [int(argument) for argument in sys.argv[1:]] or (5_000, 7_500, 20)
    made, options = Site(LargeSite.of(nodes, apps)), Options()
    evaluator, rules = Evaluator(options), RulesByCluster(options)
    gc.freeze()
    gc.set_threshold(*COLLECT)  # as a worker does
    evaluator.update(made.snapshot)
    begin = time.process_time()
    needed = rules.of(made.snapshot, evaluator.state(made.snapshot).model)
    print(f"rules\t{len(needed)}")
    print(f"all rules at first, s\t{time.process_time() - begin:.2f}")
    for change in (made.pod_unready, made.pod_moved, made.pod_added, made.pod_removed, made.node_moved):
        judged, thought = [], []
        for _ in range(rounds):
            before = made.snapshot  # freeing its references is not what is measured
            snapshot = change()
            begin = time.process_time()
            evaluator.update(snapshot)
            judged.append(time.process_time() - begin)
            begin = time.process_time()
            rules.of(snapshot, evaluator.state(snapshot).model)
            thought.append(time.process_time() - begin)
            del before
        name = change.__name__.replace("_", " ")
        print(f"{name}, judged, p50 ms\t{sorted(judged)[rounds // 2] * 1e3:.2f}")
        print(f"{name}, DRS rules, p50 ms\t{sorted(thought)[rounds // 2] * 1e3:.2f}")
    print(f"site compiled\t{evaluator.rebuilt}")


if __name__ == "__main__":
    main()
