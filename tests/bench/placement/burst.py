"""Pods that arrive in bursts: what does one cycle of the resident evaluator cost, judged and decided?

`bench.placement.burst NODES APPS [CYCLES]`. Prints `name<TAB>value` lines. In each cycle 200 pods of ten applications
come (half of these are new, with their workload), and the 200 that were decided in the last cycle are seen on their
nodes. CPU times, of the update and of the decision; the last cycle's report and decisions are compared with those of an
evaluator that starts anew.
"""

import gc
import json
import sys
import time
from dataclasses import replace
from typing import Any

import msgspec
from bench.resident import Site
from support.sites.large import LargeSite, pod, spec_of

from underhost.agents.evaluate.check import check
from underhost.agents.evaluate.evaluator import Evaluator
from underhost.agents.pipeline.event_loop import COLLECT
from underhost.agents.schedule.pending import PodDecision, decide
from underhost.agents.site.snapshot import Options
from underhost.schemas import kubernetes as k8s

APPS, REPLICAS, NEW = 10, 20, 1_000_000
Pods = dict[str, k8s.Pod]


class Bursts:
    """A site, and the pods of one cycle after another."""

    def __init__(self, size: LargeSite) -> None:
        self.made = Site(size)
        self._apps = size.apps
        self._number = 0

    def arrive(self) -> tuple[Pods, dict[str, k8s.Workload]]:
        """200 pods without a node, and the workloads of the new applications."""
        pods: Pods = {}
        workloads: dict[str, k8s.Workload] = {}
        for at in range(APPS):
            app = NEW + self._number if at % 2 else self.made.pick.randrange(self._apps)
            spec = spec_of(app)
            for _ in range(REPLICAS):
                self._number += 1
                made: k8s.Pod = _read(pod(app, NEW + self._number, "", spec), k8s.Pod)
                pods[f"{made.metadata.namespace}/{made.metadata.name}"] = made
            if app >= NEW:
                workloads[f"StatefulSet/team-{app % 40}/app-{app}"] = _workload(app)
        return pods, workloads


def _read(built: dict[str, Any], kind: type[Any]) -> Any:
    return k8s.decode(json.dumps(built).encode(), kind)


def _workload(app: int) -> k8s.Workload:
    selector = {"matchLabels": {"app": f"app-{app}"}}
    metadata = {"namespace": f"team-{app % 40}", "name": f"app-{app}"}
    built = {"kind": "StatefulSet", "metadata": metadata, "spec": {"replicas": REPLICAS, "selector": selector}}
    found: k8s.Workload = _read(built, k8s.Workload)
    return found


def _bound(waiting: Pods, decided: list[PodDecision]) -> Pods:
    """The pods that were placed, on their nodes."""
    placed = {}
    for one in decided:
        if one.node is not None and one.pod in waiting:
            pod = waiting[one.pod]
            spec = msgspec.structs.replace(pod.spec, node_name=one.node)
            placed[one.pod] = msgspec.structs.replace(pod, spec=spec)
    return placed


def main() -> None:
    """Measure and print."""
    size = LargeSite.of(int(sys.argv[1]), int(sys.argv[2]))
    cycles = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    bursts, options = Bursts(size), Options()
    made, resident = bursts.made, Evaluator(options)
    resident.update(made.snapshot)
    gc.freeze()
    gc.set_threshold(*COLLECT)  # as a worker does
    times: list[tuple[float, float]] = []
    waiting: Pods = {}
    decided: list[PodDecision] = []
    for _ in range(cycles):
        fresh, workloads = bursts.arrive()
        placed = _bound(waiting, decided)
        before = made.snapshot  # freeing its references is not what is measured
        snapshot = made.apply(pods={**placed, **fresh}, workloads=workloads)
        begin = time.process_time()
        report = resident.update(snapshot)
        updated = time.process_time()
        decided = resident.decide(snapshot)
        times.append((updated - begin, time.process_time() - updated))
        waiting = {**{key: pod for key, pod in waiting.items() if key not in placed}, **fresh}
        del before
    print(f"pods\t{len(made.snapshot.pods)}")
    print(f"of the last cycle, placed\t{sum(one.node is not None for one in decided)}")
    updates, decisions = zip(*times[1:], strict=True)
    cycle = [sum(both) for both in times[1:]]
    for name, spent in (("update", updates), ("decide", decisions), ("cycle", cycle)):
        ordered = sorted(spent)
        print(f"burst, {name}, p50 ms\t{ordered[len(ordered) // 2] * 1e3:.1f}")
        print(f"burst, {name}, p99 ms\t{ordered[int(len(ordered) * 0.99)] * 1e3:.1f}")
    print(f"compiled anew\t{resident.rebuilt - 1}")
    if report != check(replace(made.snapshot), options) or decided != decide(replace(made.snapshot), options):
        sys.exit("the resident evaluator and one that starts anew disagree")


if __name__ == "__main__":
    main()
