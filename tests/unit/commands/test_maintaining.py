"""`underhost maintain --apply`: what is shown, what is asked, what is told meanwhile, and the exit code."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.build import a_node, a_pod, a_site
from support.sites.shown import ShownSite
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.agents.commands.handlers import applying
from underhost.agents.http.doors.door import Door
from underhost.agents.http.doors.token import TokenFile
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.maintenance.run import MaintenanceRun, MaintenanceTerms
from underhost.agents.sinks.moves.campaign import Campaign, Campaigns
from underhost.schemas.documents import RepairDone
from underhost.schemas.errors import InputError, Unreachable
from underhost.schemas.vsphere import Host

TOKEN = "correct-horse-battery-staple"


def a_fleet(hosts: int = 2) -> Any:
    """Hosts of which the first has a node."""
    there = [Host(id=f"h{at}", name=f"esx-{at}", cluster="C0") for at in range(1, hosts + 1)]
    return a_site(a_node("n1"), a_pod("db-0").on("n1"), site="prod", on={"n1": "h1"}, hosts=there)


Happens = Callable[[MaintenanceRun], None]


def planned(run: MaintenanceRun) -> None:
    run.plan(["esx-1", "esx-2"])


def emptying(run: MaintenanceRun) -> None:
    run.host("esx-1", "emptying")
    run.order(RepairDone("1", "move", "esx-1", "esx-2", "ordered", vm="n1"))


def entered(run: MaintenanceRun) -> None:
    run.say("1", "applied", "moved from host esx-1 to host esx-2")
    run.host("esx-1", "maintenance")
    run.wait("a person or vLCM, to take esx-1 out of maintenance mode")


def had(run: MaintenanceRun) -> None:
    run.host("esx-1", "done")
    run.host("esx-2", "done")
    run.end()


def surprised(run: MaintenanceRun) -> None:
    run.end("host esx-2 is disconnected, and was not; host esx-1 is in maintenance mode; esx-2 was not begun")


class Worker:
    """Implements `Repairing`: at each look one more of these things has happened."""

    def __init__(self, *happens: Happens) -> None:
        self.campaigns, self._happens = Campaigns(), list(happens)
        self.refuses, self.begun, self.forgets = "", list[MaintenanceTerms](), False

    def begin_repair(self, site: str, terms: RepairTerms) -> Campaign:
        raise AssertionError("nobody has asked for a repair")

    def repair(self, id_: str) -> Campaign | None:
        raise AssertionError("nobody has asked for a repair")

    def begin_maintenance(self, site: str, terms: MaintenanceTerms) -> MaintenanceRun:
        if self.refuses:
            raise Unreachable(self.refuses)
        self.begun.append(terms)
        run = self.campaigns.add(MaintenanceRun(site, terms))
        planned(run)
        return run

    def maintenance(self, id_: str = "") -> MaintenanceRun | None:
        run = self.campaigns.find(id_, MaintenanceRun)
        if run is not None and self._happens:
            self._happens.pop(0)(run)
        elif self.forgets:
            return None
        return run


class Desk:
    """A worker, and somebody at a terminal who is no terminal."""

    def __init__(self, shown: ShownSite, token: Path) -> None:
        self.shown, self._token = shown, token

    def happens(self, *happens: Happens) -> Worker:
        self.shown.repairing = worker = Worker(*happens)
        return worker

    def apply(self, *arguments: str) -> Result:
        command = ["maintain", "--apply", "--server", self.shown.address, "--token-file", str(self._token)]
        return CliRunner().invoke(build(), [*command, *arguments])


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(applying, "LOOK", 0.0)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with ShownSite(Door(TokenFile(token))) as shown:
        shown.put(a_fleet())
        yield Desk(shown, token)


def test_the_plan_is_shown_and_each_step_is_told_as_it_is_done(desk: Desk) -> None:
    worker = desk.happens(emptying, entered, had)
    done = desk.apply("--all-hosts", "--yes")
    assert (done.exit_code, done.exception) == (0, None)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["WAVE", "VMS", "MOVE", "HOSTS"]
    assert lines[-8:] == [
        "host esx-1: is being emptied",
        "VM n1: esx-1 to esx-2",
        "VM n1: esx-1 to esx-2: applied (moved from host esx-1 to host esx-2)",
        "host esx-1: is in maintenance mode",
        "waiting for a person or vLCM, to take esx-1 out of maintenance mode",
        "host esx-1: done",
        "host esx-2: done",
        "2 hosts done",
    ]
    assert [(terms.chosen.all, terms.out) for terms in worker.begun] == [(True, False)]


def test_what_stops_it_is_the_last_line_and_the_exit_code_is_1(desk: Desk) -> None:
    worker = desk.happens(emptying, entered, surprised)
    done = desk.apply("host/esx-1", "host/esx-2", "--rolling", "--exit", "--at-once", "1", "--yes")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == (
        "stopped: host esx-2 is disconnected, and was not; host esx-1 is in maintenance mode; esx-2 was not begun"
    )
    [terms] = worker.begun
    assert (terms.chosen.hosts, terms.chosen.at_once, terms.out) == (("esx-1", "esx-2"), 1, True)


def test_for_programs_its_end_is_one_document(desk: Desk) -> None:
    desk.happens(emptying, entered, had)
    told = json.loads(desk.apply("--cluster", "C0", "--yes", "-o", "json").stdout)
    assert (told["kind"], told["state"], told["done"]) == ("MaintenanceProgress", "ended", True)
    assert told["hosts"] == [{"host": "esx-1", "state": "done"}, {"host": "esx-2", "state": "done"}]


def test_a_worker_that_has_begun_anew_does_not_go_on_and_that_is_said(desk: Desk) -> None:
    worker = desk.happens(emptying)
    worker.forgets = True
    done = desk.apply("--all-hosts", "--yes")
    assert (done.exit_code, len(worker.begun)) == (1, 1)
    assert done.stdout.splitlines()[-1] == (
        "stopped: the worker that carried it out has ended, or has lost the site, and nobody goes on with it;"
        " esx-1 may be in maintenance mode; esx-2 had no turn"
    )


def test_hosts_that_cannot_be_emptied_are_told_and_nothing_is_begun(desk: Desk) -> None:
    desk.shown.put(a_fleet(hosts=1))
    worker = desk.happens()
    done = desk.apply("host/esx-1", "--rolling", "--yes")
    assert (done.exit_code, worker.begun) == (1, [])
    assert done.stdout.splitlines()[-1].startswith("stopped: esx-1 cannot be emptied (")


def test_each_host_that_cannot_be_emptied_is_told_with_its_own_reason(desk: Desk) -> None:
    lost = [Host(id=f"h{at}", name=f"esx-{at}", cluster="C0", state="disconnected") for at in (2, 3)]
    alone = Host(id="h1", name="esx-1", cluster="C0")
    desk.shown.put(a_site(a_node("n1"), a_pod("db-0").on("n1"), site="prod", on={"n1": "h1"}, hosts=[alone, *lost]))
    worker = desk.happens()
    done = desk.apply("--all-hosts", "--yes")
    assert (done.exit_code, worker.begun) == (1, [])
    assert done.stdout.splitlines()[-1] == (
        "stopped: esx-2, esx-3 cannot be emptied (it is not connected); "
        "esx-1 cannot be emptied (no other host of its cluster has room); name the others"
    )


def test_a_worker_that_may_not_move_vms_says_why(desk: Desk) -> None:
    desk.happens().refuses = "this worker moves no VMs"
    error = desk.apply("--all-hosts", "--yes").exception
    assert isinstance(error, Unreachable)
    assert str(error).endswith("this worker moves no VMs")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param(["--all-hosts"], "--apply: nobody can be asked here; --yes says that it shall be done", id="ask"),
        pytest.param(["--all-hosts", "--yes", "-o", "name"], "--output name: table, wide, json or yaml", id="names"),
        pytest.param(["host/esx-1", "--yes"], "--apply: only a plan (--all-hosts, --cluster, --rolling)", id="one"),
        pytest.param(["host/esx-9", "--rolling", "--yes"], "host esx-9: not there", id="no such host"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(desk: Desk, arguments: list[str], why: str) -> None:
    worker = desk.happens()
    error = desk.apply(*arguments).exception
    assert isinstance(error, InputError)
    assert why in str(error)
    assert worker.begun == []


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param(["--all-hosts", "--apply", "--yes"], "--apply: --server is missing", id="no worker"),
        pytest.param(["--all-hosts", "--exit"], "--exit: --apply is missing", id="exit"),
        pytest.param(["--all-hosts", "--yes"], "--yes: --apply is missing", id="yes"),
    ],
)
def test_options_that_make_no_sense_together_are_refused(arguments: list[str], why: str) -> None:
    error = CliRunner().invoke(build(), ["maintain", "-f", "x.json", *arguments]).exception
    assert isinstance(error, InputError)
    assert str(error).startswith(why)
