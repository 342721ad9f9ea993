"""Who meets whom, all over a site at once: by sorting the pods, and by joins where each takes part in much."""

import subprocess
import sys
from collections.abc import Sequence
from random import Random

import pytest
from support.build import HOST, RACK, ZONE, PodBuilder, a_node, a_pod, a_site, term

from underhost.agents.compiled.model import compile
from underhost.agents.evaluate import sweep as swept
from underhost.agents.evaluate.marks import Relations
from underhost.agents.evaluate.sweep import sweep
from underhost.agents.site.snapshot import Options, Snapshot

DB, WEB = {"app": "db"}, {"app": "web"}
NODES = {"n1": "h1", "n2": "h1", "n3": "h2"}
ZONES = {"n1": "a", "n2": "b", "n3": "b"}
SORTED, JOINED = 1_000, -1


def a_site_of(pods: Sequence[PodBuilder]) -> Snapshot:
    return a_site(*(a_node(name).labels({ZONE: ZONES[name]}) for name in NODES), *pods, on=NODES)


def db(number: int, node: str, key: str = HOST) -> PodBuilder:
    """A pod that shares its domain with no other of its application."""
    return a_pod(f"db-{number}").on(node).labels(DB).apart(term(key, DB))


def met(site: Snapshot, key: str, across: bool) -> list[tuple[str, list[list[str]]]]:
    """The domains in which pods refuse one another by terms of the key, and the pods."""
    model = compile(site, Options())
    relations, topology = Relations(model.selectors), model.topology
    apart = [relations.separation(at) for at in relations.every() if at.key == key]
    domains = topology.of(key) if not across or topology.hosts is None else topology.hosts
    names = model.running.keys
    return [
        (domains.ids[one.domain], [sorted(names[pod].removeprefix("shop/") for pod in group) for group in one.groups])
        for one in sweep(model, domains, topology.of(key) if across else None, apart)
    ]


@pytest.mark.parametrize("few", [SORTED, JOINED], ids=["sorted", "joined"])
@pytest.mark.parametrize(
    ("pods", "key", "across", "expected"),
    [
        pytest.param([], HOST, False, [], id="no pod"),
        pytest.param([db(0, "n1", RACK), db(1, "n1", RACK)], RACK, False, [], id="no node has the key"),
        pytest.param([db(0, "n1"), db(1, "n2"), db(2, "n3")], HOST, False, [], id="each is alone"),
        pytest.param(
            [db(0, "n1"), db(1, "n1"), db(2, "n2")], HOST, False, [("n1", [["db-0", "db-1"]])], id="two of one"
        ),
        pytest.param(
            [db(0, "n2", ZONE), db(1, "n3", ZONE), db(2, "n1", ZONE)],
            ZONE,
            False,
            [("b", [["db-0", "db-1"]])],
            id="on two nodes of a zone",
        ),
        pytest.param(
            [a_pod("web-0").on("n1").labels(WEB), a_pod("web-1").on("n1").labels(WEB), db(0, "n1")],
            HOST,
            False,
            [],
            id="the term selects neither",
        ),
        pytest.param(
            [a_pod("web-0").on("n1").labels(WEB), a_pod("cache").on("n1").apart(term(HOST, WEB)), db(0, "n1")],
            HOST,
            False,
            [("n1", [["cache", "web-0"]])],
            id="one carries the term, it selects the other",
        ),
        pytest.param(
            [
                *(a_pod(f"web-{at}").on("n1").labels(WEB) for at in (0, 1)),
                a_pod("cache").on("n2").apart(term(HOST, WEB)),
            ],
            HOST,
            False,
            [],
            id="who carries the term is elsewhere",
        ),
        pytest.param(
            [a_pod(f"c-{at}").on("n1").apart(term(HOST, WEB)) for at in (0, 1)], HOST, False, [], id="carriers"
        ),
        pytest.param([db(0, "n1"), db(1, "n2")], HOST, True, [("h1", [["db-0", "db-1"]])], id="two nodes of a host"),
        pytest.param([db(0, "n1"), db(1, "n1"), db(2, "n3")], HOST, True, [], id="one node of a host"),
    ],
)
def test_pods_meet_where_a_separation_keeps_them_apart(
    pods: list[PodBuilder],
    key: str,
    across: bool,
    expected: list[tuple[str, list[list[str]]]],
    few: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(swept, "_FEW_SIDES", few)
    assert met(a_site_of(pods), key, across) == expected


@pytest.mark.parametrize("across", [False, True], ids=["in a domain", "on a host"])
@pytest.mark.parametrize("seed", range(12))
def test_sorting_and_joining_find_the_same(seed: int, across: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    random = Random(seed)
    pods = []
    for at in range(40):
        pod = a_pod(f"p-{at}").on(random.choice(sorted(NODES))).labels(app=f"a{random.randrange(12)}")
        apart = [
            term(random.choice((HOST, ZONE)), {"app": f"a{random.randrange(12)}"}) for _ in range(random.randrange(3))
        ]
        pods.append(pod.apart(*apart) if apart else pod)
    found = []
    for few in (SORTED, JOINED):
        monkeypatch.setattr(swept, "_FEW_SIDES", few)
        found.append([met(a_site_of(pods), key, across) for key in (HOST, ZONE)])
    assert found[0] == found[1]
    assert found[0][0]


def test_a_check_of_replicas_that_must_be_apart_waits_for_no_import_of_polars() -> None:
    script = """
import sys
from underhost.agents.cli import main
sys.argv = ["underhost", "check", "-f", "docs/examples"]
try:
    main()
except SystemExit as end:
    assert end.code == 1
print("polars" in sys.modules, file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "both run on ESXi host esx-1" in done.stdout
    assert done.stderr.splitlines()[-1] == "False", done.stderr
