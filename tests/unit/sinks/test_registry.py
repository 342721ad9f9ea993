"""The table of command kinds: its rows name settings that there are, and say what stops which kind."""

import pytest

from underhost.agents.sinks.registry import COMMANDS, host_based, must_be_wanted
from underhost.schemas import commands
from underhost.streams.settings.model import LimitSettings, Settings, SinkSettings


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_kind_is_enabled_and_limited_by_settings_that_there_are(kind: str) -> None:
    row = COMMANDS[kind]
    assert set(row.enabled_by) <= set(SinkSettings.model_fields)
    assert row.limit in LimitSettings.model_fields


def test_every_setting_of_a_sink_enables_the_kind_that_it_limits() -> None:
    assert {row.limit for row in COMMANDS.values()} == set(SinkSettings.model_fields) == set(LimitSettings.model_fields)


def test_a_binding_rests_on_hosts_only_where_they_are_required() -> None:
    hosts = {commands.LABEL, commands.DRS_RULE, commands.EVICT}
    assert host_based(Settings()) == hosts
    assert host_based(Settings(physical_host="required")) == hosts | {commands.BIND}


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
