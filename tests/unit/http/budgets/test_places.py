"""So much of one kind for all, and for one client."""

from types import SimpleNamespace
from typing import Any

import pytest

from underhost.agents.http.budgets.places import ClientPlaces, client_of
from underhost.agents.http.guard import RequestRefused


def asked(address: str | None) -> Any:
    return SimpleNamespace(remote=address)


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("10.1.2.3", "10.1.2.3"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("2001:db8::9:9:9:9", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("somewhere", "somewhere"),
        (None, ""),
    ],
)
def test_a_client_is_an_address_or_the_network_of_a_machine(address: str | None, client: str) -> None:
    assert client_of(address) == client


def test_one_client_cannot_take_all_places() -> None:
    places = ClientPlaces(3, 2, "plans are being tried")
    with places.place(asked("a")), places.place(asked("a")):
        with pytest.raises(RequestRefused, match="plans are being tried, 2 of them for you; ask again") as refused:
            places.place(asked("a")).__enter__()
        assert refused.value.status == 429
        with places.place(asked("b")):
            with pytest.raises(RequestRefused, match=r"^plans are being tried; ask again$") as refused:
                places.place(asked("c")).__enter__()
            assert refused.value.status == 503


def test_a_place_is_given_back_whatever_becomes_of_the_work() -> None:
    places = ClientPlaces(1, 1, "busy")
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"), places.place(asked("a")):
            raise ValueError("broken")
    assert not places._taken
