"""Roles of a worker: what each reads, and which workers share a group."""

from pathlib import Path

import pytest
from support.fakes.pipeline import FakeCluster

from underhost.agents.pipeline.roles import (
    ALL,
    app_id,
    changelog_topics,
    consumes,
    derived_topics,
    leased,
    only_site,
    parse_roles,
    publish_without_lease,
    state_topics,
)
from underhost.agents.sinks.ports import Writers
from underhost.schemas.errors import InputError
from underhost.schemas.topics import SOURCE_TOPICS
from underhost.streams.faust.app import build_app
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.model import Settings


def names(topics: tuple[object, ...]) -> list[str]:
    return [topic.short for topic in topics]  # type: ignore[attr-defined]


def test_without_names_a_worker_has_every_role() -> None:
    assert parse_roles(None) == set(ALL)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        pytest.param({}, ["kubernetes"], id="a dry run without vSphere: what it publishes"),
        pytest.param(
            {"vsphere": {"url": "https://vc/sdk"}, "sinks": {"labels": True, "bindings": True}},
            ["kubernetes", "vsphere", "labeller", "binder"],
            id="labels and bindings, and no Events unless they are asked for",
        ),
        pytest.param({"sinks": {"events": True}}, ["kubernetes", "events"], id="Events"),
        pytest.param(
            {"sinks": {"drsRules": True, "evictions": True}},
            ["kubernetes", "evictor"],
            id="no vCenter, no rules of it",
        ),
    ],
)
def test_a_role_takes_a_lease_where_it_publishes_a_source_or_writes(
    settings: dict[str, object], expected: list[str]
) -> None:
    cluster = FakeCluster()
    writers = Writers(cluster, events=cluster)  # type: ignore[arg-type]
    assert leased(ALL, Settings.model_validate(settings), writers) == expected
    assert leased(["evaluator", "alerts", "web"], Settings.model_validate(settings), writers) == []


@pytest.mark.parametrize(
    ("roles", "kafka", "expected"),
    [
        pytest.param(ALL, None, {"kubernetes", "vsphere"}, id="the log is the worker's alone"),
        pytest.param(("kubernetes",), None, {"kubernetes", "vsphere"}, id="the log of who only watches, too"),
        pytest.param(ALL, "k:9092", {"kubernetes", "vsphere"}, id="a group gives the site to one process"),
        pytest.param(("kubernetes", "vsphere", "web"), "k:9092", set(), id="who only watches has no group"),
    ],
)
def test_a_source_is_published_without_a_lease_only_where_one_process_owns_the_site(
    roles: tuple[str, ...], kafka: str | None, expected: set[str]
) -> None:
    settings = Settings(kafka=KafkaSettings(bootstrap_servers=kafka))
    assert publish_without_lease(roles, settings) == expected


def test_every_unknown_role_is_named() -> None:
    with pytest.raises(InputError) as error:
        parse_roles(["evaluator", "binders", "labels"])
    known = ", ".join(ALL)
    assert known.startswith("kubernetes, vsphere, evaluator, labeller, pod-labeller, binder, drs, mover, evictor, ")
    assert error.value.faults == (
        f"--agents: no agent 'binders'; there is: {known}; did you mean binder?",
        f"--agents: no agent 'labels'; there is: {known}; did you mean labeller?",
    )


@pytest.mark.parametrize(
    ("roles", "id_"),
    [
        pytest.param(ALL, "underhost-prod-a", id="all"),
        pytest.param({*ALL} - {"web"}, "underhost-prod-a", id="all but the page: it reads nothing"),
        pytest.param({"drs", "binder"}, "underhost-binder_drs_prod-a", id="sinks of one site"),
        pytest.param({"evaluator"}, "underhost-evaluator_prod-a", id="evaluators judge by their own site's settings"),
        pytest.param({"evaluator", "web"}, "underhost-evaluator_prod-a", id="with a page as well"),
        pytest.param({"alerts"}, "underhost-alerts", id="alerts of every site"),
        pytest.param({"kubernetes", "evaluator"}, "underhost-evaluator_kubernetes_prod-a", id="with a watcher"),
    ],
)
def test_workers_of_one_group_can_do_the_same_work(roles: set[str], id_: str) -> None:
    assert app_id(roles, "prod-a") == id_


def test_evaluators_whose_settings_name_no_site_share_all_sites() -> None:
    site = Settings().site
    assert app_id({"evaluator"}, site) == "underhost-evaluator"
    assert only_site({"evaluator"}, site) is None


def test_the_evaluator_reads_everything_and_remembers_what_it_published() -> None:
    assert state_topics({"evaluator"}) == SOURCE_TOPICS
    assert names(derived_topics({"evaluator"})) == ["node-hosts", "placements", "violations", "outcomes"]


def test_a_labeller_reads_what_the_join_needs_and_no_pods() -> None:
    assert names(state_topics({"labeller"})) == ["nodes", "vms", "hosts"]
    assert names(derived_topics({"labeller"})) == ["actions", "outcomes"]


def test_a_binder_reads_what_tells_it_whether_anything_may_be_written_and_no_pods() -> None:
    assert names(state_topics({"binder"})) == ["nodes", "hosts"]
    assert names(derived_topics({"binder"})) == ["outcomes"]


def test_who_tells_reads_whom_it_tells_of_and_what_it_tells() -> None:
    assert names(state_topics({"events"})) == ["nodes", "pods", "hosts"]
    assert names(derived_topics({"events"})) == ["node-hosts", "violations", "actions", "outcomes"]


@pytest.mark.parametrize(
    ("roles", "reads", "only"),
    [
        pytest.param({"kubernetes", "vsphere"}, False, "prod-a", id="watchers"),
        pytest.param({"web"}, False, None, id="the page"),
        pytest.param({"alerts"}, True, None, id="alerts"),
        pytest.param({"evaluator"}, True, "prod-a", id="the evaluator"),
        pytest.param({"binder"}, True, "prod-a", id="the binder"),
    ],
)
def test_who_reads_topics_and_who_is_limited_to_a_site(roles: set[str], reads: bool, only: str | None) -> None:
    assert consumes(roles) is reads
    assert only_site(roles, "prod-a") == only


def test_changelogs_have_the_names_that_faust_gives_them_and_are_compacted_soon() -> None:
    made = changelog_topics({"binder"}, "prod")
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "600000",
        "segment.bytes": "67108864",
        "min.cleanable.dirty.ratio": "0.2",
        "max.compaction.lag.ms": "21600000",
    }
    assert [(topic.name, topic.config) for topic in made] == [
        (f"underhost-binder_prod-{name}-changelog", config) for name in ("nodes", "hosts", "outcomes")
    ]
    settings = Settings(kafka=KafkaSettings(embedded=Path("never-opened.db")))
    app = build_app(settings, app_id=app_id({"binder"}, "prod"))
    assert app.Table("outcomes").changelog_topic_name == made[2].name
