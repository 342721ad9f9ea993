"""The table of command kinds: its rows name settings that there are, and say what stops which kind."""

import pytest

from underhost.agents.sinks.registry import COMMANDS, host_based, must_be_wanted
from underhost.schemas import commands
from underhost.streams.settings.model import LimitSettings, Settings, SinkSettings


def test_every_kind_that_writes_has_a_row_a_switch_and_a_limit() -> None:
    settings = {row.setting for row in commands.WRITTEN.values()}
    assert list(COMMANDS) == list(commands.WRITTEN)
    assert settings == set(SinkSettings.model_fields) == set(LimitSettings.model_fields)


def test_nothing_is_written_unless_it_is_enabled_by_name() -> None:
    assert [kind for kind, row in COMMANDS.items() if row.enabled(Settings())] == []


@pytest.mark.parametrize(
    ("switch", "expected"),
    [
        pytest.param("labels", [commands.LABEL], id="labels"),
        pytest.param("pod_labels", [commands.POD_LABEL], id="labels of pods"),
        pytest.param("bindings", [commands.BIND], id="bindings, without Events"),
        pytest.param("events", [commands.EVENT], id="Events"),
        pytest.param("drs_rules", [commands.DRS_RULE], id="DRS rules"),
        pytest.param("moves", [commands.MOVE], id="moves"),
        pytest.param("maintenance", [commands.MAINTENANCE], id="maintenance"),
        pytest.param("reports", [commands.REPORT], id="reports"),
    ],
)
def test_a_switch_enables_its_own_kind(switch: str, expected: list[str]) -> None:
    settings = Settings(sinks=SinkSettings(**{switch: True}))
    assert [kind for kind, row in COMMANDS.items() if row.enabled(settings)] == expected


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        pytest.param([commands.LABEL, commands.POD_LABEL], True, id="labels name the host"),
        pytest.param([commands.DRS_RULE, commands.MOVE, commands.MAINTENANCE], True, id="vSphere's kinds do"),
        pytest.param([commands.EVICT], True, id="an eviction does"),
        pytest.param([commands.BIND], False, id="a binding does not, where hosts are preferred"),
        pytest.param([commands.EVENT, commands.REPORT], False, id="what tells people does not"),
    ],
)
def test_the_kinds_that_rest_on_hosts(kinds: list[str], expected: bool) -> None:
    assert [kind in host_based(Settings()) for kind in kinds] == [expected] * len(kinds)


def test_a_binding_rests_on_hosts_where_they_are_required() -> None:
    assert host_based(Settings(physical_host="required")) == host_based(Settings()) | {commands.BIND}


@pytest.mark.parametrize(
    ("roles", "expected"),
    [
        pytest.param({"binder"}, set(), id="bindings are the evaluator's to decide, which runs elsewhere"),
        pytest.param({"binder", "evaluator"}, {commands.BIND}, id="and here"),
        pytest.param({"labeller", "events"}, {commands.LABEL}, id="an Event of the past stays true"),
    ],
)
def test_a_worker_carries_out_what_it_decides_only_while_that_stands(roles: set[str], expected: set[str]) -> None:
    assert must_be_wanted(roles) == expected
