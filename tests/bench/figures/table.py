"""The table of benches: what each runs, and the figures of docs/performance.md that it prints.

A bench is a module that prints `name<TAB>value` lines. A figure is one of these lines, with its target, the peer that
was measured in the same run, and, where it is missed, what limits it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

PARTS, BROKER, ROUNDS = "{parts}", "{broker}", "{rounds}"
"""Arguments that stand for the folder of the real parts, for the address of an Apache Kafka that is started, and for
how many runs the bench makes over one set-up."""
A_SECOND = " a second"
GO, CHROMIUM = "go", "chromium"
"""Programs without which a bench is left out."""


@dataclass(frozen=True)
class Figure:
    """A row of the page.

    Attributes:
        what: its words. line: the name that the bench prints. unit: of the value, as it is written behind it.
        most, least: the target; a figure without any is told for comparison.
        beside: words, line and unit of the peer in the same run.
        limit: what limits it, told where it is missed.
        computing: whether it grows with the pace of the machine: seconds that are work, not waiting, or work a second.
    """

    what: str
    line: str
    unit: str = ""
    most: float | None = None
    least: float | None = None
    beside: tuple[str, str, str] | None = None
    limit: str = ""
    computing: bool = False

    def met(self, value: float) -> bool | None:
        """Whether the value reaches the target; None where there is none."""
        if self.most is None and self.least is None:
            return None
        return (self.most is None or value <= self.most) and (self.least is None or value >= self.least)

    def at_pace_1(self, value: float, pace: float) -> float:
        """What this value, measured at that pace, would be at pace 1."""
        if not self.computing:
            return value
        return value * pace if self.unit == A_SECOND else value / pace


@dataclass(frozen=True)
class Bench:
    """A bench: its section of the page, its module under `bench` with arguments, what one run of it is, its figures."""

    section: str
    module: str
    what: str
    figures: tuple[Figure, ...]
    arguments: tuple[str, ...] = ()
    needs: str = ""


work = partial(Figure, computing=True)
"""A figure that is all computing."""

PERF = ("basic", "anti-affinity", "affinity", "namespace selector", "spreading", "mixed")
"""Workloads of `bench.placement.scheduler_perf`."""
FLEETS = (1, 2, 4)
"""Workers of `bench.fleet`."""
PLACING, CHANGES, OFFLINE = "Deciding where pods go", "A running worker", "Commands over files"
WRITES, ASKED = "Writing to clusters", "Being asked"


def _page(size: str, drawn: float, wire: float | None = None, *arguments: str) -> Bench:
    until = "median and worst of 7"
    return Bench(
        ASKED,
        "page",
        f"the page in Chromium, 1440×900: {size}",
        (
            work(
                "from the address to the drawn map",
                f"from the address to the drawn map, ms, {until}",
                " ms",
                most=drawn,
            ),
            work("CPU of the page's process until then", f"processor time of the page until then, ms, {until}", " ms"),
            Figure("on the wire until then, compressed", f"on the wire until then, KiB, {until}", " KiB", most=wire),
            work("the first search", f"a search, from the key to the frame, ms, {until}", " ms"),
            Figure("memory of its script", f"memory of the page's script, MiB, {until}", " MiB"),
        ),
        arguments,
        CHROMIUM,
    )


def _schedule(nodes: int, workload: str, whole: float | None, loop: float, pods: str) -> Bench:
    title = f"{nodes} nodes, {workload}"
    upstream = ("upstream's loop", f"{title}: upstream's loop, s", " s")
    return Bench(
        PLACING,
        "placement.schedule",
        f"`underhost schedule` of {pods} on {nodes:,} nodes beside kube-scheduler's own loop over all nodes",
        (
            Figure(
                f"{nodes:,} nodes, {workload}: whole command",
                f"{title}: times as fast",
                "×",
                least=whole,
                beside=upstream,
            ),
            Figure(f"{nodes:,} nodes, {workload}: loop alone", f"{title}: loop, times as fast", "×", least=loop),
            Figure(f"{nodes:,} nodes, {workload}: memory", f"{title}: memory, MiB", " MiB"),
        ),
        (str(nodes), workload),
        GO,
    )


def _decided(workload: str) -> tuple[Figure, ...]:
    defaults, whole = f"{workload}, kube-scheduler's defaults", f"{workload}, all nodes"
    return (
        Figure(
            f"{workload}: deciding, beside kube-scheduler's defaults",
            f"{defaults}: loop, times as fast",
            "×",
            least=10,
            beside=("its loop", f"{defaults}: upstream's loop, s", " s"),
        ),
        Figure(
            "the same, beside a loop over all nodes",
            f"{whole}: loop, times as fast",
            "×",
            beside=("its loop", f"{whole}: upstream's loop, s", " s"),
        ),
        Figure(
            "the whole command, beside its defaults",
            f"{defaults}: whole command, times as fast",
            "×",
            beside=("it", f"{workload}: underhost schedule, s", " s"),
        ),
    )


def _fleet(workers: int) -> tuple[Figure, ...]:
    many = "1 worker" if workers == 1 else f"{workers} workers"
    share = Figure(
        f"{many}: CPU off a share in proportion to its sites, at most",
        f"{workers} workers: a worker's CPU off its share of the sites, %",
        " %",
        most=15,
        beside=("most sites of one", f"{workers} workers: sites of the one with most", ""),
    )
    cost = work(f"{many}: CPU of all for a change", f"{workers} workers: CPU of all for a change, ms", " ms")
    return (cost,) if workers == 1 else (cost, share)


def _pipeline(transport: str, argument: str) -> Bench:
    return Bench(
        CHANGES,
        "pipeline",
        f"changes from this worker's sources to findings: 1,000 nodes, 10,000 pods, on {transport}",
        (
            work(f"changes published, read and judged, {transport}", "changes per second", " a second"),
            Figure(f"one change to its finding, {transport}, p50", "change to finding p50, ms", " ms"),
            Figure(f"the same, p99, {transport}", "change to finding p99, ms", " ms", most=60),
            Figure(f"memory of that worker, {transport}", "largest memory, MiB", " MiB"),
        ),
        (argument,),
    )


def _latency(size: str, most: float) -> tuple[Figure, ...]:
    line, answer = "100 writes a second: to the finding", "100 writes a second: the API server's answer"
    halves, tails = (("the server's answer to it", f"{answer}, {at}, ms", " ms") for at in ("p50", "p99"))
    return (
        Figure(f"write to finding, 100 a second, {size}, p50", f"{line}, p50, ms", " ms", beside=halves),
        Figure(f"the same, {size}, p99", f"{line}, p99, ms", " ms", most=most, beside=tails, limit=SERVER),
        Figure(f"processors of that worker, {size}", "100 writes a second: processors of the worker", ""),
    )


def _label(transport: str, argument: str) -> Bench:
    return Bench(
        WRITES,
        "label",
        f"from a real vMotion to the label on the Node: kube-apiserver, vcsim, {transport}",
        (
            Figure(f"vMotion to label, p50, {transport}", "move to label p50, ms", " ms"),
            Figure(f"the same, worst of 28, {transport}", "move to label, worst, ms", " ms", most=2_000),
        ),
        (PARTS, argument, "28"),
    )


def _burst(nodes: int, apps: int, limit: str) -> Bench:
    what = f"200 new pods judged and decided, {nodes:,} nodes"
    return Bench(
        PLACING,
        "placement.burst",
        f"200 new pods judged and decided, 200 others seen bound: {nodes:,} nodes, {apps * 20:,} pods; CPU",
        (
            work(f"{what}, p50", "burst, cycle, p50 ms", " ms", most=30, limit=limit),
            work(f"{what}, p99", "burst, cycle, p99 ms", " ms"),
        ),
        (str(nodes), str(apps)),
    )


def _extender(rate: int) -> Bench:
    meanwhile = f"{rate} other changes a second" if rate else "no other changes"
    return Bench(
        ASKED,
        "extender",
        f"kube-scheduler's questions over HTTP by node name: 5,000 nodes, 50,000 pods, {meanwhile}",
        (
            Figure(f"filter, p99, {meanwhile}", "filter p99, ms", " ms", most=20),
            Figure(f"prioritize, p99, {meanwhile}", "prioritize p99, ms", " ms", most=20),
            Figure(f"memory of that worker, {meanwhile}", "worker's memory, MiB", " MiB"),
        ),
        ("5000", "50000", "500", str(rate)),
    )


def _resident(kind: str, most: float) -> Figure:
    return work(f"{kind}, judged again, p50", f"{kind}, p50 ms", " ms", most=most)


def _grown(what: str, line: str, unit: str) -> Figure:
    return work(f"{what}, 16×", line.format(16), unit, beside=("4×", line.format(4), unit))


def _bound(title: str, least: float) -> tuple[Figure, ...]:
    def peer(line: str, unit: str) -> tuple[str, str, str]:
        return "kube-scheduler", f"{title}: kube-scheduler, {line}", unit

    return (
        Figure(f"pods bound a second, {title}", f"{title}: underhost, pods/s", "", beside=peer("pods/s", "")),
        Figure(f"the same, beside kube-scheduler, {title}", f"{title}: ratio", "×", least=least, limit=RATE),
        work(
            f"own CPU a pod, {title}",
            f"{title}: underhost, its own CPU, ms a pod",
            " ms",
            most=0.5,
            beside=peer("its own CPU, ms a pod", " ms"),
            limit=FOUR_RECORDS,
        ),
        Figure(
            f"the same, beside kube-scheduler's, {title}",
            f"{title}: ratio of own CPU",
            "×",
            most=0.2,
            limit=FOUR_RECORDS,
        ),
        Figure(
            f"Events told by the last binding (ours come 20 a second), {title}",
            f"{title}: underhost, events",
            "",
            beside=peer("events", ""),
        ),
    )


RATE = "API server and etcd take as much of the two processors for each pod as the binder itself"
FOUR_RECORDS = (
    "a binding makes four records (pod, placement, outcome, pod), delivered six times: each goes through publishing, "
    "log, stream and table; the watch and the one request are what the bare worker takes"
)

MILLION = "reading and checking the JSON is over a third of its CPU"
CEILING = "a bare loop of confluent-kafka"
EACH_RECORD = "Faust's step for each record: its queues, its acknowledgement, its event"
SERVER = (
    "the API server's own answer, which stands beside it; on a large site evictions for all findings, too, "
    "which are thought through once a minute"
)
UNDER_WAY = "a change waits for the evaluation under way and its rest (four times that, 200 ms at most)"
FIRST_START = "a third is the way of a record to its table, a quarter publishing, a fifth the list"
RESTART = "a quarter is the list over TLS, a quarter the rows of the tables: each is decoded once"
ONE_AFTER_ANOTHER = "the list begins when the tables are there: both want a processor of their own"
AT_100, AT_1000 = "100 changes a second: to the finding", "1000 changes a second: to the finding"

BENCHES: Mapping[str, Bench] = {
    "schedule-1000": _schedule(1_000, "uniform", 20, 40, "1,000 pods"),
    "schedule-1000-mixed": _schedule(1_000, "mixed", None, 40, "1,000 pods"),
    "schedule-1000-different": _schedule(1_000, "different", None, 20, "1,000 pods"),
    "schedule-5000": _schedule(5_000, "uniform", 60, 100, "2,000 pods"),
    "schedule-5000-mixed": _schedule(5_000, "mixed", None, 100, "2,000 pods"),
    "schedule-5000-different": _schedule(5_000, "different", None, 20, "2,000 pods"),
    "scheduler-perf": Bench(
        PLACING,
        "placement.scheduler_perf",
        "workloads of upstream's scheduler_perf on 5,000 nodes, beside kube-scheduler's defaults and all nodes scored",
        tuple(figure for workload in PERF for figure in _decided(workload)),
        needs=GO,
    ),
    "burst-1000": _burst(1_000, 150, "the shares of judging and deciding are about equal"),
    "burst-5000": _burst(5_000, 7_500, "deciding takes three fifths: each class asks all 5,000 nodes"),
    "resident": Bench(
        CHANGES,
        "resident",
        "one change judged by the resident evaluator: 5,000 nodes, 150,000 pods on 512 hosts; CPU",
        (
            _resident("pod moved", 1),
            _resident("pod added", 1),
            _resident("pod removed", 1),
            _resident("pod unready", 1),
            _resident("pod of new application", 1),
            _resident("node moved", 10),
            _resident("node cordoned", 10),
            _resident("node added", 10),
            _resident("node lost", 10),
            work("the first report", "first report, s", " s", beside=("a full check", "full check, s", " s")),
            Figure("memory of that process, with the site as it was made", "memory, MiB", " MiB"),
        ),
    ),
    "drs": Bench(
        CHANGES,
        "drs",
        "the DRS rules of that site, thought through again after a change; CPU",
        (
            work(
                "DRS rules after a pod moved, p50",
                "pod moved, DRS rules, p50 ms",
                " ms",
                beside=("the evaluation", "pod moved, judged, p50 ms", " ms"),
            ),
            work(
                "DRS rules after a node's VM moved, p50",
                "node moved, DRS rules, p50 ms",
                " ms",
                beside=("the evaluation", "node moved, judged, p50 ms", " ms"),
            ),
        ),
    ),
    "stream": Bench(
        CHANGES,
        "stream",
        "records on an Apache Kafka topic to findings, by a worker that reads and decides: 1,000 nodes, 10,000 pods",
        (
            work(
                "changes from the topic to the finding",
                "changes per second",
                " a second",
                least=8_000,
                beside=("a bare loop of confluent-kafka", f"{CEILING}: records per second", " a second"),
                limit=EACH_RECORD,
            ),
            work(
                "CPU of the worker for each",
                "CPU of the worker for each, ms",
                " ms",
                most=0.12,
                beside=("a bare loop of confluent-kafka", f"{CEILING}: CPU for each, ms", " ms"),
                limit=EACH_RECORD,
            ),
            work(
                "a bare loop of its driver, aiokafka",
                "a bare loop of aiokafka: records per second",
                " a second",
                beside=("CPU for each", "a bare loop of aiokafka: CPU for each, ms", " ms"),
            ),
            Figure("record to finding at 100 changes a second, p50", f"{AT_100}, p50, ms", " ms"),
            Figure("the same, p99", f"{AT_100}, p99, ms", " ms", most=60, limit=UNDER_WAY),
            Figure("record to finding at 1,000 changes a second, p50", f"{AT_1000}, p50, ms", " ms"),
            Figure("the same, p99", f"{AT_1000}, p99, ms", " ms", most=250, limit=UNDER_WAY),
            Figure("memory of that worker", "memory of the worker, MiB", " MiB"),
        ),
        (BROKER,),
    ),
    "stream-large": Bench(
        CHANGES,
        "stream",
        "the same with 5,000 nodes and 150,000 pods",
        (
            work("changes from the topic to the finding, large", "changes per second", " a second"),
            work("CPU of the worker for each, large", "CPU of the worker for each, ms", " ms"),
            Figure("record to finding at 100 changes a second, large, p50", f"{AT_100}, p50, ms", " ms"),
            Figure("the same, p99", f"{AT_100}, p99, ms", " ms", most=120, limit=UNDER_WAY),
            Figure("record to finding at 1,000 changes a second, large, p50", f"{AT_1000}, p50, ms", " ms"),
            Figure("the same, p99", f"{AT_1000}, p99, ms", " ms", most=400, limit=UNDER_WAY),
            Figure("memory of that worker", "memory of the worker, MiB", " MiB"),
        ),
        (BROKER, "5000", "150000", "40000"),
    ),
    "latency": Bench(
        CHANGES,
        "cluster.latency",
        "100 pods of 5.8 KB patched a second at a real API server, findings read from Apache Kafka: 1,000 nodes",
        _latency("1,000 nodes, 10,000 pods", 60),
        (PARTS, BROKER, "1000", "500", "96", ROUNDS),
    ),
    "large": Bench(
        CHANGES,
        "cluster.large",
        "5,000 nodes and 150,000 pods of 5.8 KB in a real API server, topics on Apache Kafka: starts, then 100 patches "
        "a second",
        (
            work(
                "first start of a large site: CPU", "a large site: first start, CPU s", " s", most=30, limit=FIRST_START
            ),
            work("the same, on the clock", "a large site: first start, s", " s"),
            Figure("its memory, at most", "a large site: first start, memory, MiB", " MiB", most=1_229),
            work("restart of it after a kill -9: CPU", "a large site: restart, CPU s", " s", most=15, limit=RESTART),
            work("the same, on the clock, restart", "a large site: restart, s", " s", most=30, limit=ONE_AFTER_ANOTHER),
            Figure("its memory, at most, restart", "a large site: restart, memory, MiB", " MiB", most=1_229),
            work(
                "restart after a day of 5 million changes: CPU",
                "a large site: restart after a day, CPU s",
                " s",
                most=15,
                limit=RESTART,
            ),
            work(
                "the same, on the clock, after a day",
                "a large site: restart after a day, s",
                " s",
                most=30,
                limit=ONE_AFTER_ANOTHER,
            ),
            Figure(
                "its memory, at most, after a day", "a large site: restart after a day, memory, MiB", " MiB", most=1_229
            ),
            Figure(
                "records that its table's changelog has then",
                "a day: records of the changelog then",
                beside=("changes", "a day: changes", ""),
            ),
            *_latency("5,000 nodes, 150,000 pods", 120),
        ),
        (PARTS, BROKER, "5000", "7500", "512", "5000000", ROUNDS),
    ),
    "fleet": Bench(
        CHANGES,
        "fleet",
        "eight sites of 200 nodes and 2,000 pods on one Apache Kafka, over one, two and four workers",
        (
            *(figure for workers in FLEETS for figure in _fleet(workers)),
            Figure(
                "one of four killed: beyond the session's 10 s until a finding of its site",
                "a worker killed: beyond the session's timeout, s",
                " s",
                most=5,
            ),
        ),
        (BROKER,),
    ),
    "pipeline-embedded": _pipeline("the embedded log", "embedded"),
    "pipeline-kafka": _pipeline("Apache Kafka", BROKER),
    "check": Bench(
        OFFLINE,
        "offline.check",
        "a check of 7 nodes, and of 5,000 nodes with 150,000 pods on 512 hosts",
        (
            Figure("7 nodes: CPU beside `import polars`", "7 nodes: CPU of check / of importing polars", "×", most=2.5),
            work(
                "150,000 pods: whole command",
                "150,000 pods: whole command, s",
                " s",
                most=1.5,
                limit="reading and checking the JSON is over a third of its CPU",
            ),
            work(
                "150,000 pods: its CPU",
                "150,000 pods: whole command, CPU s",
                " s",
                beside=("of it reading", "150,000 pods: read, CPU s", " s"),
            ),
            Figure(
                "150,000 pods: its memory",
                "150,000 pods: memory, MiB",
                " MiB",
                most=400,
                limit="the 129 MB of JSON are read into memory whole, and every pod is an object",
            ),
        ),
    ),
    "million": Bench(
        OFFLINE,
        "offline.million",
        "a million pods of 0.8 KB on 20,000 nodes: a check of them, and a resident evaluator's change",
        (
            work("a million pods: whole command", "a million pods: check, s", " s", most=10, limit=MILLION),
            work("a million pods: its CPU", "a million pods: check, CPU s", " s"),
            Figure("a million pods: its memory", "a million pods: check, memory, MiB", " MiB", most=2_048),
            work("a pod moved among them, judged again, p50", "a million pods: a pod moved, p50 ms", " ms", most=1),
        ),
        (ROUNDS,),
    ),
    "curve": Bench(
        OFFLINE,
        "offline.curve",
        "how cost grows from a quarter of that site to all of it; a slope of 1 is in proportion to the site",
        (
            _grown("check", "check at {}×: CPU s", " s"),
            Figure("its slope from 4× to 16×", "check: slope from 4× to 16×", "", most=1.1),
            _grown("a pod moved, judged again", "a pod moved at {}×: p50 ms", " ms"),
            Figure("its slope from 4× to 16×, judged again", "a pod moved: slope from 4× to 16×", ""),
        ),
    ),
    "whatif": Bench(
        OFFLINE,
        "offline.whatif",
        "plans over the same site with 750 budgets, beside a check of the same files",
        (
            work(
                "drain of a node",
                "drain of a node: CPU s",
                " s",
                beside=("check", "check: whole command, CPU s", " s"),
            ),
            work(
                "each of 1,250 hosts failing alone",
                "each of 1,250 hosts with HA: CPU s",
                " s",
                most=10,
                beside=("check", "check: whole command, CPU s", " s"),
                limit="10 ms of a processor for each host",
            ),
            Figure("memory of that", "each of 1,250 hosts with HA: memory, MiB", " MiB"),
        ),
        (ROUNDS,),
    ),
    "repair": Bench(
        OFFLINE,
        "offline.repair",
        "the fewest moves: 12 planted findings on 200 VMs, 300 on 5,000 VMs of 1,250 hosts",
        (
            work("12 planted findings, 200 VMs", "200 VMs, 6,000 pods, 12 findings: s after loading", " s", most=1),
            work("300 planted, 5,000 VMs", "5,000 VMs, 150,000 pods, 300 findings: s after loading", " s", most=30),
            Figure(
                "its vMotions beside the fewest",
                "5,000 VMs, 150,000 pods, 300 findings: vMotions / the fewest",
                "×",
                most=1.05,
            ),
            Figure(
                "vMotions of ProxLB's idea beside it, 200 VMs",
                "200 VMs, 6,000 pods, 12 findings: vMotions of a balancer / ours",
                "×",
                least=1,
            ),
            Figure(
                "the same, 500 small random sites on which it leaves no more broken",
                "500 random sites: vMotions of a balancer / ours, on the others",
                "×",
                least=1,
            ),
        ),
    ),
    "tables": Bench(
        OFFLINE,
        "offline.tables",
        "one question in polars and in numpy: why rules ask numpy ([decision 7](decisions/0007-polars-and-numpy.md))",
        (
            work(
                "all pods at once: who meets its like, numpy",
                "all pods: who meets its like: numpy, µs",
                " µs",
                beside=("polars", "all pods: who meets its like: polars, µs", " µs"),
            ),
            work(
                "one pod: who meets it, numpy",
                "a pod moved: who meets it: numpy, µs",
                " µs",
                beside=("polars", "a pod moved: who meets it: polars, µs", " µs"),
            ),
        ),
    ),
    "label-embedded": _label("the embedded log", "embedded"),
    "label-kafka": _label("Apache Kafka", BROKER),
    "labels": Bench(
        WRITES,
        "labels",
        "fifty different nodes of 600 move every second, for 30 s, each a real vMotion in vcsim",
        (
            Figure("50 moves a second: vMotion to label, p50", "move to label p50, ms", " ms"),
            Figure("the same, p99", "move to label p99, ms", " ms", most=2_000),
            work(
                "CPU of a label",
                "CPU of underhost, ms a label",
                " ms",
                beside=("kube-apiserver and etcd", "CPU of kube-apiserver and etcd, ms a label", " ms"),
            ),
            Figure("labels that are wrong at the end", "labels that are wrong at the end", "", most=0),
        ),
        (PARTS, "30", "50"),
    ),
    "binder": Bench(
        WRITES,
        "binder",
        "3,000 pods bound on 1,000 nodes beside the real kube-scheduler 1.36, its QPS lifted, one API server",
        (
            *_bound("plain", 1.8),
            *_bound("host anti-affinity", 3),
            work(
                "own CPU a pod of a worker of ours that only watches and binds, plain",
                "plain: a bare binder, its own CPU, ms a pod",
                " ms",
            ),
        ),
        (PARTS, "1000", "3000", ROUNDS),
    ),
    "extender": _extender(50),
    "extender-quiet": _extender(0),
    "page": _page("1,000 nodes, 20,000 pods, 100 findings", 2_000),
    "page-large": _page("5,000 nodes, 150,000 pods on 512 hosts, 6,347 findings", 1_000, 977, "large"),
    "first-finding": Bench(
        ASKED,
        "first_finding",
        "from a fresh clone, with a warm package cache, to the first finding on the page",
        (
            Figure("a fresh clone to the first finding seen", "until the first finding is seen, s", " s", most=90),
            work("CPU of all that", "CPU time of all that, s", " s"),
        ),
        needs=CHROMIUM,
    ),
}
