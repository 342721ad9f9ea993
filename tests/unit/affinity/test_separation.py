"""The decision about separations, told from two pods, from the numbers of a place, and from its pods as groups."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.build import HOST, ZONE, a_node, a_pod, a_site, app, spread, term

from underhost.agents.affinity.separation import Row, pairs, refuse, refusing, separations, sides_of, some_refuse
from underhost.agents.compiled.model import compile
from underhost.agents.site.snapshot import Options

ONE_OF_BOTH = st.sampled_from([(True, False), (False, True), (True, True)])
PLACES = st.lists(st.tuples(st.integers(-1, 2), ONE_OF_BOTH), max_size=6).map(
    lambda pods: [Row(value, at, *sides) for at, (value, sides) in enumerate(pods)]
)
BOTH = Row(0, 0, owner=True, match=True)


@pytest.mark.parametrize(
    ("other", "in_domain", "on_host"),
    [
        pytest.param(Row(1, 1, True, False), True, True, id="one that carries the term"),
        pytest.param(Row(1, 1, False, True), True, True, id="one that it selects"),
        pytest.param(Row(0, 1, False, True), True, False, id="on one host but in the same domain of the key"),
        pytest.param(Row(-1, 1, True, True), False, False, id="a node without the key is in no domain"),
    ],
)
def test_who_is_refused_by_a_pod_that_carries_a_term_which_selects_itself(
    other: Row, in_domain: bool, on_host: bool
) -> None:
    assert (refuse(BOTH, other, across=False), refuse(BOTH, other, across=True)) == (in_domain, on_host)
    assert (refuse(other, BOTH, across=False), refuse(other, BOTH, across=True)) == (in_domain, on_host)


def test_two_pods_that_only_carry_the_term_do_not_refuse_one_another() -> None:
    assert not refuse(Row(0, 0, True, False), Row(1, 1, True, False), across=True)


@given(PLACES, st.booleans())
def test_groups_are_the_pods_that_any_two_of_them_refuse_connected(rows: list[Row], across: bool) -> None:
    apart = list(pairs(rows, across))
    assert apart == [(a.pod, b.pod) for a, b in combinations(rows, 2) if refuse(a, b, across)]
    groups = refusing(rows, across)
    assert {pod for group in groups for pod in group} == {pod for pair in apart for pod in pair}
    group_of = {pod: at for at, group in enumerate(groups) for pod in group}
    assert all(group_of[one] == group_of[other] for one, other in apart)
    assert sum(map(len, groups)) == len(group_of)


@given(PLACES, st.booleans())
def test_numbers_alone_tell_whether_any_two_pods_of_a_place_refuse_one_another(rows: list[Row], across: bool) -> None:
    rows = [row for row in rows if row.value >= 0]
    values = [row.value for row in rows] or [0]
    owners, matched = sum(row.owner for row in rows), sum(row.match for row in rows)
    found = some_refuse(owners, matched, len(rows), min(values), max(values), across)
    assert found == any(refuse(one, other, across) for one, other in combinations(rows, 2))


def test_a_class_sees_the_terms_it_carries_and_those_that_select_it() -> None:
    pods = [
        a_pod("db").labels(app="db").apart(term(HOST, app("db")), term(ZONE, app("web"))).on("n1"),
        a_pod("web").labels(app="web").spreads(spread(ZONE, app("web"))).on("n1"),
        a_pod("alone").labels(app="alone").on("n1"),
    ]
    model = compile(a_site(a_node("n1"), *pods), Options())
    db, web, alone = (model.classes[cls] for cls in model.running.classes.tolist())
    seen = [
        {(side.rule, side.key, tuple(side.mine), tuple(side.theirs)) for side in sides_of(cls)}
        for cls in (db, web, alone)
    ]
    assert seen == [
        {("InterPodAffinity", HOST, (db.id,), (db.id,)), ("InterPodAffinity", ZONE, (web.id,), ())},
        {("InterPodAffinity", ZONE, (), (db.id,)), ("PodTopologySpread", ZONE, (web.id,), (web.id,))},
        set(),
    ]
    assert [tuple(one) for one in separations(model.selectors)] == [
        ("InterPodAffinity", HOST, (db.id,), (db.id,)),
        ("InterPodAffinity", ZONE, (db.id,), (web.id,)),
        ("PodTopologySpread", ZONE, (web.id,), (web.id,)),
    ]
