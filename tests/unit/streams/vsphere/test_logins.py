"""A password that vCenter has refused is not tried again and again: vCenter would lock its account for everybody."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fakes.soap import FakeSoap, envelope

from underhost.schemas.errors import Refused, Unreachable
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere import logins
from underhost.streams.vsphere.client import Session, connect
from underhost.streams.vsphere.kept_session import KeptSession

INVALID_LOGIN = envelope(
    "<soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>Cannot complete login</faultstring>"
    '<detail><InvalidLoginFault xmlns="urn:vim25" xsi:type="InvalidLogin"/></detail></soapenv:Fault>'
)


@pytest.fixture
def server() -> Iterator[FakeSoap]:
    with FakeSoap().serving() as one:
        one.pages["Login"] = 500, INVALID_LOGIN
        yield one


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "password"
    path.write_text("canary-old\n")
    return path


def settings(server: FakeSoap, file: Path) -> VSphereSettings:
    return server.settings.model_copy(update={"password": None, "password_file": file})


def rotate(file: Path) -> None:
    file.write_text("canary-new\n")


async def nothing(session: Session) -> None:
    """What is done with a session."""


async def refusal(given: VSphereSettings) -> str:
    with pytest.raises(Refused) as caught:
        await connect(given)
    return str(caught.value)


async def test_whoever_logs_in_a_refused_password_is_tried_once(server: FakeSoap, file: Path) -> None:
    given = settings(server, file)
    said = [await refusal(given) for _ in range(3)]
    for kept in (KeptSession(given, connect), KeptSession(given, connect)):
        with pytest.raises(Refused, match="wrong user name or password"):
            await kept.use(nothing)
    wrong = f"vCenter {(server.settings.url or '')[7:-4]}: wrong user name or password"
    again = f"{wrong}; that one is not tried again within 5 minutes, as vCenter locks accounts"
    assert said == [wrong, again, again]
    assert server.calls.count("Login") == 1


async def test_logins_at_the_same_time_try_a_refused_password_once(server: FakeSoap, file: Path) -> None:
    answers = await asyncio.gather(*(connect(settings(server, file)) for _ in range(4)), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Refused] * 4
    assert server.calls.count("Login") == 1


async def test_a_new_password_in_the_file_is_tried_at_once(server: FakeSoap, file: Path) -> None:
    await refusal(settings(server, file))
    rotate(file)
    del server.pages["Login"]
    await (await connect(settings(server, file))).close()
    assert server.calls.count("Login") == 2


async def test_after_a_good_pause_a_refused_password_is_tried_again(
    server: FakeSoap, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await refusal(settings(server, file))
    monkeypatch.setattr(logins, "PAUSE", 0.0)
    del server.pages["Login"]
    await (await connect(settings(server, file))).close()
    assert server.calls.count("Login") == 2


async def test_a_login_that_got_no_answer_is_tried_again(server: FakeSoap, file: Path) -> None:
    server.pages["Login"] = 503, "busy"
    for _ in range(2):
        with pytest.raises(Unreachable):
            await connect(settings(server, file))
    assert server.calls.count("Login") == 2


async def test_each_account_and_each_vcenter_has_refusals_of_its_own(server: FakeSoap, file: Path) -> None:
    given = settings(server, file)
    await refusal(given)
    await refusal(given.model_copy(update={"username": "v"}))
    with FakeSoap().serving() as another:
        await (await connect(settings(another, file))).close()
    assert server.calls.count("Login") == 2
