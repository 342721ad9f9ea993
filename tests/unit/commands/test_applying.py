"""`underhost repair --apply`: what is shown, what is asked, what is told meanwhile, and the exit code."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.build import a_node, a_pod, a_site
from support.sites.shop import a_shop
from support.sites.shown import ShownSite
from typer.testing import CliRunner, Result

from underhost.agents.commands.application import build
from underhost.agents.commands.handlers import applying
from underhost.agents.evaluate.check import check
from underhost.agents.http.doors.door import Door
from underhost.agents.http.doors.token import TokenFile
from underhost.agents.planner.terms import RepairTerms
from underhost.agents.sinks.moves.campaign import Campaign, Campaigns
from underhost.agents.site.snapshot import Options
from underhost.schemas.documents import RepairDone
from underhost.schemas.errors import InputError, Refused, Unreachable

TOKEN = "correct-horse-battery-staple"
SHOP, WHOLE = a_shop(), a_site(a_node("n1"), a_pod("db-0").on("n1"), site="prod")
FINDING = check(SHOP, Options()).findings[0]


def ordered(campaign: Campaign) -> None:
    campaign.order(RepairDone("1", "move", "esx-h1", "esx-h2", "ordered", vm="n1"))


def applied(campaign: Campaign) -> None:
    campaign.say("1", "applied", "moved from host esx-h1 to host esx-h2")


def ended(campaign: Campaign) -> None:
    campaign.end(())


def stays(campaign: Campaign) -> None:
    campaign.end([FINDING], "the evictor comes no further")


class Repairs:
    """Implements `Repairing`: at each look one more of these things has happened."""

    def __init__(self, *happens: Callable[[Campaign], None]) -> None:
        self.campaigns, self._happens = Campaigns(), list(happens)
        self.refuses, self.begun, self.forgets = "", 0, False

    def begin_repair(self, site: str, terms: RepairTerms) -> Campaign:
        if self.refuses:
            raise Unreachable(self.refuses)
        self.begun += 1
        return self.campaigns.add(Campaign("prod", terms))

    def repair(self, id_: str) -> Campaign | None:
        if self.forgets:
            self.forgets, self.campaigns = False, Campaigns()
        campaign = self.campaigns.find(id_, Campaign)
        if campaign is not None and self._happens:
            self._happens.pop(0)(campaign)
        return campaign


class Desk:
    """A worker, and somebody at a terminal who is no terminal."""

    def __init__(self, shown: ShownSite, token: Path) -> None:
        self.shown, self._token = shown, token

    def happens(self, *happens: Callable[[Campaign], None]) -> Repairs:
        self.shown.repairing = repairs = Repairs(*happens)
        return repairs

    def apply(self, *arguments: str, **more: Any) -> Result:
        command = ["repair", "--apply", "--server", self.shown.address, "--token-file", str(self._token)]
        return CliRunner().invoke(build(), [*command, *arguments], **more)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Desk]:
    monkeypatch.setattr(applying, "LOOK", 0.0)
    token = tmp_path / "token"
    token.write_text(TOKEN)
    with ShownSite(Door(TokenFile(token))) as shown:
        shown.put(SHOP)
        yield Desk(shown, token)


def test_the_plan_is_shown_and_each_step_is_told_as_it_is_done(desk: Desk) -> None:
    desk.happens(ordered, applied, ended)
    done = desk.apply("--yes")
    assert (done.exit_code, done.exception) == (0, None)
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["STEP", "WAVE", "KIND", "WHAT", "FROM", "TO", "BECAUSE", "OF"]
    assert lines[-3:] == [
        "VM n1: esx-h1 to esx-h2",
        "VM n1: esx-h1 to esx-h2: applied (moved from host esx-h1 to host esx-h2)",
        "nothing left",
    ]


def test_where_something_stays_the_exit_code_is_1_and_it_is_said_why(desk: Desk) -> None:
    desk.happens(ordered, stays)
    done = desk.apply("--yes")
    assert done.exit_code == 1
    assert done.stdout.splitlines()[-1] == "1 finding left: the evictor comes no further"
    desk.happens(stays)
    assert desk.apply("--yes", "--fail-on", "never").exit_code == 0


def test_for_programs_its_end_is_one_document(desk: Desk) -> None:
    desk.happens(ordered, applied, ended)
    told = json.loads(desk.apply("--yes", "-o", "json").stdout)
    assert (told["kind"], told["state"], told["leftFindings"]) == ("RepairProgress", "ended", [])
    assert [(step["vm"], step["state"]) for step in told["steps"]] == [("n1", "applied")]


def test_where_nothing_is_broken_nothing_is_begun(desk: Desk) -> None:
    desk.shown.put(WHOLE)
    repairs = desk.happens()
    done = desk.apply("--yes")
    assert (done.exit_code, repairs.begun) == (0, 0)
    assert done.stdout.splitlines()[-1] == "nothing left"


def test_a_worker_that_has_begun_anew_is_asked_again(desk: Desk) -> None:
    repairs = desk.happens(ordered, applied, ended)
    repairs.forgets = True
    assert (desk.apply("--yes").exit_code, repairs.begun) == (0, 2)


def test_a_worker_that_may_not_move_vms_says_why(desk: Desk) -> None:
    desk.happens().refuses = "this worker moves no VMs"
    error = desk.apply("--yes").exception
    assert isinstance(error, Unreachable)
    assert str(error).endswith("this worker moves no VMs")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        pytest.param([], "--apply: nobody can be asked here; --yes says that it shall be done", id="nobody to ask"),
        pytest.param(["--yes", "-o", "name"], "--output name: table, wide, json or yaml is expected", id="names"),
        pytest.param(["--yes", "--for", "f0"], "finding f0: not there, or no move ends it", id="no such finding"),
        pytest.param(["--yes", "--only", "shopp"], "namespace shopp is not there; did you mean shop?", id="namespace"),
        pytest.param(["--yes", "--site", "other"], "no site 'other' here; there is: prod", id="site"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(desk: Desk, arguments: list[str], why: str) -> None:
    repairs = desk.happens()
    error = desk.apply(*arguments).exception
    assert isinstance(error, InputError)
    assert why in str(error)
    assert repairs.begun == 0


def test_without_a_worker_there_is_nobody_to_carry_it_out() -> None:
    error = CliRunner().invoke(build(), ["repair", "--apply", "--yes", "-f", "x.json"]).exception
    assert isinstance(error, InputError)
    assert str(error).startswith("--apply: --server is missing")


def test_the_token_is_asked_for(desk: Desk, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("wrong-horse-battery-staple")
    repairs = desk.happens()
    error = CliRunner().invoke(
        build(), ["repair", "--apply", "--yes", "--server", desk.shown.address, "--token-file", str(wrong)]
    )
    assert isinstance(error.exception, Refused)
    assert repairs.begun == 0
