"""A quiet cluster is not a silent one: when a kind counts as heard of."""

import pytest

from underhost.streams.kubernetes.contact import Contact


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def contact(clock: Clock) -> Contact:
    """Pods and nodes are listed, and their watches are open."""
    made = Contact(clock)
    for kind in ("nodes", "pods"):
        made.hear(kind)
        made.opened(kind)
    return made


def test_before_the_first_list_nothing_is_silent(clock: Clock) -> None:
    contact = Contact(clock)
    clock.now += 1000.0
    assert (contact.since, contact.silent(60.0)) == (None, "")


def test_a_quiet_cluster_whose_server_answers_is_never_silent(contact: Contact, clock: Clock) -> None:
    for _ in range(100):
        clock.now += 15.0
        contact.answered()
        assert contact.silent(15.1) == ""


def test_a_server_that_gives_no_answer_is_silent_until_it_does(contact: Contact, clock: Clock) -> None:
    clock.now += 59.9
    assert contact.silent(60.0) == ""
    clock.now += 0.1
    assert contact.silent(60.0) == "the Kubernetes API has not answered for over 60 s"
    assert contact.since == 100.0
    contact.answered()
    assert contact.silent(60.0) == ""


def test_a_kind_that_is_refused_is_silent_though_the_server_answers(contact: Contact, clock: Clock) -> None:
    clock.now += 50.0
    contact.answered()
    contact.ended("pods")  # it was heard of until now
    for _ in range(4):
        clock.now += 15.0
        contact.answered()
    assert contact.silent(60.0) == "nothing has been heard of pods for over 60 s"
    contact.opened("pods")
    assert contact.silent(60.0) == ""


def test_a_kind_that_is_not_there_and_need_not_be_is_not_waited_for(contact: Contact, clock: Clock) -> None:
    contact.ended("pods")
    contact.absent("pods")
    clock.now += 59.0
    contact.answered()
    clock.now += 59.0
    assert contact.silent(60.0) == ""


def test_a_long_list_is_heard_of_page_by_page(contact: Contact, clock: Clock) -> None:
    contact.ended("pods")
    for _ in range(10):
        clock.now += 30.0
        contact.answered()
        contact.hear("pods")
        assert contact.silent(60.0) == ""
