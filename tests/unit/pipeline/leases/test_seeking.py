"""A worker seeks the lease of a role only while it has what the role rests on."""

import pytest

from underhost.agents.pipeline.leases.seeking import Seeking
from underhost.streams.faust.membership import Membership

ALL_IN_ONE = frozenset({"kubernetes", "vsphere", "evaluator", "labeller", "binder"})
HANDS = frozenset({"labeller", "binder"})


class Standing:
    """How a worker stands, as a test says: the leases of which sources it has, and what it knows of the site."""

    def __init__(self, roles: frozenset[str], *, embedded: bool, ours: set[str]) -> None:
        self.ours, self.silent, self.unready = ours, set[str](), "nothing has been listed"
        self.seeking = Seeking(
            roles,
            Membership(),
            is_log_ours=embedded,
            is_ours=lambda name: name in self.ours,
            silent=lambda: self.silent,
            unready=lambda: self.unready or None,
        )
        self.seeking.owns_site = True

    def sought(self) -> set[str]:
        """The roles whose leases are sought now, of three."""
        return {role for role in ("kubernetes", "vsphere", "labeller") if self.seeking.may_seek(role)}


def test_vsphere_is_watched_where_kubernetes_is_and_labels_are_where_both_are() -> None:
    one = Standing(ALL_IN_ONE, embedded=True, ours=set())
    assert one.sought() == {"kubernetes"}
    one.ours = {"kubernetes"}
    assert one.sought() == {"kubernetes", "vsphere"}
    one.ours = {"kubernetes", "vsphere"}
    assert one.sought() == {"kubernetes", "vsphere", "labeller"}


def test_who_only_labels_waits_until_all_is_listed() -> None:
    hands = Standing(HANDS, embedded=False, ours=set())
    assert "labeller" not in hands.sought()
    hands.unready = ""
    assert "labeller" in hands.sought()


@pytest.mark.parametrize(
    ("embedded", "silent", "sought"),
    [
        pytest.param(True, set(), {"kubernetes"}, id="a log of its own: no record comes any more"),
        pytest.param(False, set(), {"kubernetes", "labeller"}, id="another worker publishes on the same Kafka"),
        pytest.param(False, {"kubernetes"}, {"kubernetes"}, id="another worker publishes elsewhere"),
    ],
)
def test_who_lost_the_sources_writes_as_long_as_their_records_come(
    embedded: bool, silent: set[str], sought: set[str]
) -> None:
    one = Standing(ALL_IN_ONE, embedded=embedded, ours={"kubernetes", "vsphere"})
    one.unready = ""
    assert "labeller" in one.sought()
    one.ours, one.silent = set(), silent
    assert one.sought() == sought


def test_sources_that_are_silent_here_are_no_reason_to_give_a_lease_up() -> None:
    one = Standing(ALL_IN_ONE, embedded=True, ours={"kubernetes", "vsphere"})
    one.silent = {"kubernetes"}
    assert "labeller" in one.sought()


def test_a_rebalance_that_moves_other_partitions_gives_no_lease_away() -> None:
    hands = Standing(HANDS, embedded=False, ours=set())
    hands.unready = ""
    assert "labeller" in hands.sought()
    hands.unready = "the site's partition is not held"
    assert "labeller" in hands.sought()
    hands.seeking.owns_site = False
    assert hands.sought() == set()
    hands.seeking.owns_site = True
    assert "labeller" not in hands.sought()


def test_who_only_watches_vsphere_needs_nothing_else() -> None:
    assert Standing(frozenset({"vsphere"}), embedded=False, ours=set()).sought() == {"kubernetes", "vsphere"}
