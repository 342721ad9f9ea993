"""Label values of ESXi hosts."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from underhost.agents.sinks.labels.values import label_value, label_values

VALID = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("esx-1", "esx-1", id="a short name"),
        pytest.param("esx-1.dc.example.com", "esx-1.dc.example.com", id="a DNS name that fits"),
        pytest.param("10.0.0.7", "10.0.0.7", id="an IPv4 address"),
        pytest.param("fd00::17", "fd00--17.ipv6-literal", id="an IPv6 address"),
        pytest.param("[fd00::17]", "fd00--17.ipv6-literal", id="an IPv6 address in brackets"),
        pytest.param("::1", "0--1.ipv6-literal", id="an IPv6 address that begins with a colon"),
        pytest.param("fd00::", "fd00--0.ipv6-literal", id="an IPv6 address that ends in a colon"),
        pytest.param("fe80::1%vmk0", "fe80--1svmk0.ipv6-literal", id="an IPv6 address with its zone"),
        pytest.param(
            "esx-1.rack-17.hall-3.frankfurt.germany.datacenters.example.com",
            "esx-1.rack-17.hall-3.frankfurt.germany.datacenters.example.com",
            id="a DNS name of 62 characters",
        ),
        pytest.param(
            "esx-1.rack-17.hall-3.frankfurt.germany.europe.datacenters.example.com",
            "esx-1.rack-17.hall-3.frankfurt.germany.europe.datacenters",
            id="a longer DNS name is cut at a dot",
        ),
        pytest.param("my host/3", "my-host-3", id="characters that a label cannot hold"),
        pytest.param("-esx-", "esx", id="ends that a label cannot have"),
        pytest.param("", "", id="no name"),
        pytest.param(" ", "", id="a blank name"),
        pytest.param("…", "", id="nothing usable"),
    ],
)
def test_the_value_of_a_host(name: str, expected: str) -> None:
    assert label_value(name) == expected


def test_a_first_part_that_is_too_long_is_cut_and_told_apart_by_a_hash() -> None:
    one, two = label_value("a" * 70 + "1"), label_value("a" * 70 + "2")
    assert one == "a" * 54 + "-51c804f1"
    assert two == "a" * 54 + "-6a0d144d"


def test_hosts_whose_names_differ_only_where_they_are_cut_get_different_values() -> None:
    tail = ".rack-17.hall-3.frankfurt.germany.europe.datacenters"
    values = label_values({"host-1": f"esx-1{tail}.example.com", "host-2": f"esx-1{tail}.example.org"})
    assert values == {
        "host-1": "esx-1.rack-17.hall-3.frankfurt.germany.europe.datacenters"[:54] + "-" + values["host-1"][-8:],
        "host-2": "esx-1.rack-17.hall-3.frankfurt.germany.europe.datacenters"[:54] + "-" + values["host-2"][-8:],
    }
    assert values["host-1"] != values["host-2"]


def test_two_hosts_of_one_name_get_different_values() -> None:
    values = label_values({"host-1": "localhost", "host-2": "localhost", "host-3": "esx-3"})
    assert values["host-3"] == "esx-3"
    assert values["host-1"] != values["host-2"]
    assert all(values[ref].startswith("localhost-") for ref in ("host-1", "host-2"))


def test_an_unknown_host_has_no_value() -> None:
    assert label_values({"host-1": "", "host-2": "esx-2"}) == {"host-2": "esx-2"}


NAMES = st.one_of(st.text(max_size=90), st.from_regex(r"[a-z0-9.-]{1,90}", fullmatch=True), st.ip_addresses().map(str))


@given(st.dictionaries(st.from_regex(r"host-[0-9]{1,3}", fullmatch=True), NAMES, max_size=8))
def test_values_are_valid_and_never_shared_and_do_not_depend_on_the_order(hosts: dict[str, str]) -> None:
    values = label_values(hosts)
    assert all(VALID.fullmatch(value) for value in values.values())
    assert len(set(values.values())) == len(values)
    assert label_values(dict(reversed(list(hosts.items())))) == values
    assert {ref for ref in hosts if label_value(hosts[ref])} == values.keys()
