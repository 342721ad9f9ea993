"""The page signs in with the token once, and has a cookie from then on."""

from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from pathlib import Path

import pytest
from support.answers.http import an_error
from support.sites.doors import TOKEN, Answer, knock, listening

from underhost.agents.http.listeners import Listeners
from underhost.streams.settings.model import Settings
from underhost.streams.settings.web import WebSettings

SESSION = "/api/v1/session"
PLAN = "POST /api/v1/whatif"


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Listeners]:
    (tmp_path / "token").write_text(TOKEN)
    settings = Settings(web=WebSettings(listen="127.0.0.1:0", token_file=tmp_path / "token", anonymous_read=False))
    async with listening(settings) as made:
        yield made


def standing(*, signed_in: bool) -> dict[str, object]:
    return {"apiVersion": "underhost/v1", "kind": "Session", "needed": True, "reads": False, "signedIn": signed_in}


def cookie_of(answer: Answer) -> SimpleCookie:
    return SimpleCookie(answer.headers["Set-Cookie"])


def sent(answer: Answer) -> dict[str, str]:
    """What a browser sends from then on."""
    return {"Cookie": "; ".join(f"{name}={morsel.value}" for name, morsel in cookie_of(answer).items())}


async def test_who_signs_in_with_the_token_may_do_everything_from_then_on(opened: Listeners) -> None:
    assert (await knock(opened.address, f"GET {SESSION}"))[:2] == (200, standing(signed_in=False))
    assert (await knock(opened.address, PLAN)).status == 401
    answer = await knock(opened.address, f"POST {SESSION}", body={"token": TOKEN})
    assert answer[:2] == (200, standing(signed_in=True))
    cookie = sent(answer)
    assert (await knock(opened.address, f"GET {SESSION}", **cookie))[:2] == (200, standing(signed_in=True))
    assert (await knock(opened.address, PLAN, **cookie)).status == 200
    assert (await knock(opened.address, "GET /api/v1/map", **cookie)).status == 200


async def test_the_cookie_is_kept_from_scripts_and_other_sites_and_is_not_the_token(opened: Listeners) -> None:
    answer = await knock(opened.address, f"POST {SESSION}", body={"token": TOKEN})
    [morsel] = cookie_of(answer).values()
    assert (morsel["httponly"], morsel["samesite"], morsel["path"], morsel["secure"]) == (True, "Strict", "/", "")
    assert morsel["max-age"] == str(30 * 24 * 3600)
    assert TOKEN not in answer.headers["Set-Cookie"]


async def test_a_cookie_is_no_credential_of_kube_scheduler(opened: Listeners) -> None:
    cookie = sent(await knock(opened.address, f"POST {SESSION}", body={"token": TOKEN}))
    assert (await knock(opened.address, "POST /extender/bind", **cookie)).status == 401


async def test_signing_out_takes_the_cookie_away(opened: Listeners) -> None:
    answer = await knock(opened.address, f"DELETE {SESSION}")
    [morsel] = cookie_of(answer).values()
    assert (answer.body, morsel.value, morsel["max-age"]) == (standing(signed_in=False), "", "0")


@pytest.mark.parametrize(
    ("body", "status", "why"),
    [
        pytest.param({"token": "wrong"}, 403, "that is not the token", id="another token"),
        pytest.param({"token": ""}, 403, "that is not the token", id="nothing in it"),
        pytest.param({"token": 1}, 422, "Expected `str`, got `int` - at `$.token`", id="a number"),
        pytest.param({"user": "x"}, 422, "Object contains unknown field `user`", id="another field"),
        pytest.param([], 422, "Expected `object`, got `array`", id="a list"),
        pytest.param({"token": "x" * 5000}, 413, "the body is too large", id="a long one"),
    ],
)
async def test_who_shows_something_else_is_not_signed_in(
    opened: Listeners, body: object, status: int, why: str
) -> None:
    answer = await knock(opened.address, f"POST {SESSION}", body=body)
    assert answer[:2] == (status, an_error(why))
    assert "Set-Cookie" not in answer.headers


async def test_a_page_of_another_site_cannot_sign_anybody_in(opened: Listeners) -> None:
    body = {"token": TOKEN}
    assert (await knock(opened.address, f"POST {SESSION}", body=body, Origin="http://evil.example")).status == 403


async def test_without_a_token_nobody_needs_to_sign_in() -> None:
    async with listening(Settings(web=WebSettings(listen="127.0.0.1:0"))) as opened:
        nothing = {**standing(signed_in=False), "needed": False, "reads": True}
        assert (await knock(opened.address, f"GET {SESSION}"))[:2] == (200, nothing)
        answer = await knock(opened.address, f"POST {SESSION}", body={"token": "x"})
        assert (answer.status, answer.body, "Set-Cookie" in answer.headers) == (200, nothing, False)
