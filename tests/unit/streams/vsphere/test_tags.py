"""Tags over the REST API: what is read, and what a server that misbehaves costs."""

import base64
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from aiohttp import web
from pydantic import SecretStr

from underhost.schemas.errors import Refused, Unreachable
from underhost.streams.settings.clusters import VSphereSettings
from underhost.streams.vsphere import tags as module
from underhost.streams.vsphere.collector import inherited
from underhost.streams.vsphere.tags import TagReader

HOSTS = {"host-1": "HostSystem", "host-2": "HostSystem", "domain-1": "ClusterComputeResource"}


class FakeRest:
    """The REST API with one category `rack`; `attached` are names of tags by moref."""

    def __init__(self) -> None:
        self.attached: dict[str, list[str]] = {}
        self.names: dict[str, str] = {}
        self.sessions: set[str] = set()
        self.status = 200
        self.body: bytes | None = None
        self.asked: Counter[str] = Counter()
        self.url = ""

    async def __aenter__(self) -> "FakeRest":
        app = web.Application()
        app.router.add_route("*", "/rest/com/vmware/cis/{tail:.*}", self._answer)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/sdk"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        what = request.match_info["tail"].partition(":")[0]
        self.asked[f"{request.method} {what}"] += 1
        if self.status != 200:
            return web.Response(status=self.status)
        if self.body is not None:
            return web.Response(body=self.body)
        if what == "session":
            return self._session(request)
        if request.headers.get("vmware-api-session-id") not in self.sessions:
            return web.Response(status=401)
        if what == "tagging/tag-association":
            objects = (await request.json())["object_ids"]
            return self._value(
                [
                    {"object_id": each, "tag_ids": [f"urn:tag:{name}" for name in self.attached.get(each["id"], [])]}
                    for each in objects
                ]
            )
        name = request.match_info["tail"].rpartition(":")[2]
        if what == "tagging/category/id":
            return self._value({"id": name, "name": "rack", "cardinality": "SINGLE"})
        return self._value({"name": self.names.get(name, name), "category_id": "urn:category:1", "used_by": []})

    def _session(self, request: web.Request) -> web.Response:
        if request.method == "DELETE":
            self.sessions.discard(request.headers["vmware-api-session-id"])
            return self._value(None)
        wanted = base64.b64encode("ünder:pass".encode()).decode()
        if request.headers["Authorization"] != f"Basic {wanted}":
            return web.Response(status=401)
        self.sessions.add(session := f"canary-{self.asked['POST session']}")
        return self._value(session)

    def _value(self, value: Any) -> web.Response:
        return web.json_response({"value": value})


@pytest.fixture
async def rest() -> AsyncIterator[FakeRest]:
    async with FakeRest() as server:
        yield server


@pytest.fixture
async def reader(rest: FakeRest) -> AsyncIterator[TagReader]:
    one = TagReader(settings(rest))
    yield one
    await one.close()


def settings(rest: FakeRest, password: str = "pass") -> VSphereSettings:
    return VSphereSettings(url=rest.url, username="ünder", password=SecretStr(password), insecure=True)


async def test_the_tag_of_each_category_is_read_with_one_login_and_names_are_remembered(
    rest: FakeRest, reader: TagReader
) -> None:
    rest.attached = {"host-1": ["r7"], "host-2": ["r7"]}
    for _ in range(3):
        assert await reader.read_now(HOSTS) == {"host-1": {"rack": "r7"}, "host-2": {"rack": "r7"}}
    assert rest.asked == {
        "POST session": 1,
        "POST tagging/tag-association": 3,
        "GET tagging/tag/id": 1,
        "GET tagging/category/id": 1,
    }
    await reader.close()
    assert rest.sessions == set()


async def test_a_tag_that_was_renamed_is_read_again_after_a_while(
    rest: FakeRest, reader: TagReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    rest.attached = {"host-1": ["r7"]}
    await reader.read_now(HOSTS)
    rest.names["r7"] = "row-7"
    assert await reader.read_now(HOSTS) == {"host-1": {"rack": "r7"}}
    monkeypatch.setattr(module, "LIFE", -1.0)
    assert await reader.read_now(HOSTS) == {"host-1": {"rack": "row-7"}}


async def test_two_tags_of_one_category_are_no_value_and_said_once(rest: FakeRest, reader: TagReader) -> None:
    rest.attached = {"host-1": ["r7", "r8"], "host-2": ["r9"]}
    with structlog.testing.capture_logs() as logs:
        for _ in range(2):
            assert await reader.read_now(HOSTS) == {"host-1": {}, "host-2": {"rack": "r9"}}
    assert [(entry["object"], entry["category"], entry["reason"]) for entry in logs] == [
        ("host-1", "rack", "it has 2 of them")
    ]


async def test_more_objects_than_one_question_takes_are_asked_for_in_several(
    rest: FakeRest, reader: TagReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AT_ONCE", 2)
    rest.attached = {"host-1": ["r7"], "host-2": ["r8"]}
    assert await reader.read_now(HOSTS) == {"host-1": {"rack": "r7"}, "host-2": {"rack": "r8"}}
    assert rest.asked["POST tagging/tag-association"] == 2


async def test_a_session_that_has_ended_is_replaced(rest: FakeRest, reader: TagReader) -> None:
    rest.attached = {"host-1": ["r7"]}
    await reader.read_now(HOSTS)
    rest.sessions.clear()
    assert await reader.read_now(HOSTS) == {"host-1": {"rack": "r7"}}
    assert rest.asked["POST session"] == 2


@pytest.mark.parametrize(
    ("status", "body", "error", "reason"),
    [
        pytest.param(503, None, Unreachable, "tags: 503", id="the service starts"),
        pytest.param(404, None, Refused, "tags: no login at the REST API (404)", id="no such API"),
        pytest.param(200, b"<html>", Refused, "tags: not an answer of the REST API", id="another server"),
    ],
)
async def test_an_api_that_does_not_answer_as_it_should_is_said_in_one_line(
    rest: FakeRest, reader: TagReader, status: int, body: bytes | None, error: type[Exception], reason: str
) -> None:
    rest.status, rest.body = status, body
    with pytest.raises(error) as caught:
        await reader.read_now(HOSTS)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "canary" not in str(caught.value)


async def test_a_wrong_password_is_refused_and_nowhere_in_the_error(rest: FakeRest) -> None:
    reader = TagReader(settings(rest, "canary-wrong"))
    with pytest.raises(Refused, match="tags: wrong user name or password") as caught:
        await reader.read_now(HOSTS)
    assert "canary" not in repr(caught.value)
    await reader.close()


async def test_a_password_that_was_refused_is_not_tried_at_each_reading(rest: FakeRest, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("canary-old")
    reader = TagReader(settings(rest).model_copy(update={"password": None, "password_file": file}))
    for _ in range(3):
        assert await reader.read(HOSTS) is None
    assert rest.asked == {"POST session": 1}
    file.write_text("pass")
    assert await reader.read(HOSTS) == {}
    await reader.close()


async def test_while_tags_cannot_be_read_the_last_ones_stand_and_it_is_said_once(
    rest: FakeRest, reader: TagReader
) -> None:
    rest.attached = {"host-1": ["r7"]}
    assert await reader.read(HOSTS) == {"host-1": {"rack": "r7"}}
    rest.status = 503
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert await reader.read(HOSTS) == {"host-1": {"rack": "r7"}}
    assert [entry["event"] for entry in logs] == ["tags not read"]
    rest.status, rest.attached = 200, {}
    assert await reader.read(HOSTS) == {}


async def test_before_tags_were_read_once_nothing_is_said_of_them(rest: FakeRest, reader: TagReader) -> None:
    rest.status = 503
    assert await reader.read(HOSTS) is None
    rest.status, rest.attached = 200, {"host-1": ["r7"]}
    assert await reader.read(HOSTS) == {"host-1": {"rack": "r7"}}


def test_a_cluster_has_the_tags_of_what_lies_above_it_the_nearest_of_each_category() -> None:
    tags = {
        "host-1": {"rack": "r1"},
        "domain-1": {"zone": "a"},
        "group-1": {"zone": "b", "row": "7"},
        "datacenter-1": {"zone": "c", "row": "8", "region": "eu"},
    }
    above = [("domain-1", "ClusterComputeResource"), ("group-1", "Folder"), ("datacenter-1", "Datacenter")]
    found = inherited(tags, {"domain-1": above, "domain-2": [("domain-2", "ClusterComputeResource")]})
    assert found["domain-1"] == {"zone": "a", "row": "7", "region": "eu"}
    assert found["domain-2"] == {}
    assert found["host-1"] == {"rack": "r1"}
