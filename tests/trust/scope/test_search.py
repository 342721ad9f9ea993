"""The search through all orders finds a run without end and a bad end; the real deciders come to neither."""

import pytest
from trust.scope.actors import Actors, Badness, Step
from trust.scope.search import accounted, explored
from trust.scope.stories import HOSTS, NODES, PODS, STORIES
from trust.scope.world import Load, Story, World, beginnings


def world(number: int) -> World:
    return World((number,), ())


class Plan:
    """Actors that follow a plan: (from, to, whether we write); a world is as bad as its number over ten."""

    def __init__(self, *steps: tuple[int, int, bool]) -> None:
        self._steps = steps

    def steps(self, at: World) -> list[Step]:
        return [Step(ours, "", world(to)) for begin, to, ours in self._steps if world(begin) == at]

    def badness(self, at: World) -> Badness:
        return (at.hosts[0] // 10,)


@pytest.mark.parametrize(
    ("steps", "endless", "worse"),
    [
        ([(0, 1, True), (1, 2, False)], 0, 0),
        ([(0, 1, True), (1, 2, False), (2, 1, True)], 1, 0),
        ([(0, 0, True)], 1, 0),
        ([(0, 1, False), (1, 0, False)], 0, 0),
        ([(0, 10, True)], 0, 1),
        ([(0, 10, True), (10, 1, True)], 0, 0),
        ([(0, 10, True), (0, 1, False)], 0, 1),
        ([(0, 1, True), (1, 0, True), (1, 10, False)], 1, 1),
    ],
    ids=[
        "comes to rest",
        "goes round",
        "writes what is there",
        "others go round without us",
        "ends worse",
        "is worse on the way only",
        "ends worse in one order",
        "goes round, and may end worse",
    ],
)
def test_a_search_tells_what_it_comes_to(steps: list[tuple[int, int, bool]], endless: int, worse: int) -> None:
    found = accounted(Plan(*steps), [world(0)])
    assert (len(found.endless), len(found.worse)) == (endless, worse)


def test_beginnings_that_differ_in_names_only_are_one() -> None:
    story = Story(2, 2, (Load(2, "apart by node"),), 2, ours=True, drs=False)
    shown = {(begin.hosts, begin.pods) for begin in beginnings(story)}
    assert len(shown) == 4, "two hosts or one, both pods on one node or each on its own"


def test_the_stories_are_every_cluster_up_to_the_largest() -> None:
    assert {(story.hosts, story.nodes) for story in STORIES} == {
        (hosts, nodes) for hosts in range(1, HOSTS + 1) for nodes in range(1, NODES + 1)
    }
    assert {sum(load.replicas for load in story.loads) for story in STORIES} == set(range(2, PODS + 1))


FOUND = {
    "a DRS rule for VMs that are too many broke what held": Story(
        2, 4, (Load(2, "free"), Load(2, "apart from a by host")), 2, ours=True, drs=True
    ),
    "a DRS rule parted the lesser of two pairs": Story(
        2, 4, (Load(3, "apart by node"), Load(2, "apart by node")), 2, ours=False, drs=True
    ),
    "one of two evicted pods took the only place of the other": Story(
        2, 4, (Load(2, "apart by node"), Load(3, "apart from a by node")), 5, ours=False, drs=False
    ),
}
"""What the search has found, and what was mended since."""


@pytest.mark.parametrize("story", FOUND.values(), ids=FOUND)
def test_what_was_found_and_mended_does_not_come_back(story: Story) -> None:
    account = explored(story)
    assert (account.endless, account.worse) == ([], [])


@pytest.mark.parametrize("at", range(0, len(STORIES) // 2, 211), ids=lambda at: str(STORIES[at]))
def test_a_tiny_cluster_comes_to_rest_and_is_no_worse_than_before(at: int) -> None:
    account = explored(STORIES[at])
    assert account.worlds > 0
    assert (account.endless, account.worse) == ([], [])


def test_only_pairs_that_a_rule_is_about_count_and_pods_of_one_node_need_no_hosts() -> None:
    story = Story(2, 3, (Load(3, "free"), Load(1, "apart from a by host")), 5, ours=True, drs=True)
    four_on_a_host = World((0, 0, 1), ((0, 0, 1), (1,)))
    assert Actors(story).badness(four_on_a_host)[:3] == (0, 3, 0)
    alone = Story(2, 3, (Load(3, "spread over nodes"),), 5, ours=True, drs=True)
    two_of_one_node_and_a_third = World((0, 0, 1), ((0, 0, 1),))
    assert Actors(alone).badness(two_of_one_node_and_a_third)[2] == 2
