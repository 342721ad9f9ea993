"""Whatever is sent, half of it wrong: a whole worker answers, never with a 500, and goes on."""

import select
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from support.requests.malformed import PARTS, asked, is_whole
from support.sites.shown import LiveDemo

ANSWERS = {200, 304, 400, 403, 404, 405, 408, 411, 413, 415, 417, 421, 422, 429, 499, 501, 503}
"""501: a transfer coding that nobody knows."""
REST = 0.2
"""Seconds for which an answer is waited for where the worker may wait, too."""
POD = b'%s{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","labels":{"a":"%s"}}}%s'


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveDemo]:
    with LiveDemo(tmp_path_factory.mktemp("malformed")) as demo:
        yield demo


def sent(worker: LiveDemo, data: bytes, *, whole: bool = True) -> int | None:
    """The status of the answer; None where the worker closes without one, or waits for the rest."""
    address = urlsplit(worker.address)
    with socket.create_connection((address.hostname, address.port), timeout=60) as line:
        line.sendall(data)
        if not whole and not select.select([line], [], [], REST)[0]:
            return None
        try:
            first = line.makefile("rb").readline()
        except ConnectionError:
            return None
    return int(first.split()[1]) if first else None


@settings(max_examples=300, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(*PARTS)
@example("GET", "/api/v1/map", "at=" + "9" * 30 + "d", [], b"")
@example("GET", "/api/v1/map", "at=0001-01-01T00:00:00%2B23:59", [], b"")
@example("POST", "/api/v1/whatif", "", [(b"Origin", b"http://[::1")], b"{}")
@example("POST", "/api/v1/whatif", "", [], b'{"steps":[{"drain":"\\ud800"}]}')
@example("POST", "/api/v1/whatif", "", [], b'{"steps":[{"add":[{"name":1e999}]}]}')
@example("POST", "/api/v1/whatif", "", [], b'{"\xd9":1}')
@example("POST", "/api/v1/whatif", "", [], POD % (b'{"steps":[{"add":[', b"\xd9", b"]}]}"))
@example("POST", "/extender/filter", "", [], POD % (b'{"NodeNames":["a"],"Pod":', b"\xd9", b"}"))
@example("GET", "/api/v1/activity", "site=%ED%A0%80", [], b"")
@example("GET", "/api/v1/activity", "subject=%ED%A0%80", [], b"")
def test_no_request_is_answered_with_a_500(
    worker: LiveDemo, method: str, path: str, query: str, more: list[tuple[bytes, bytes]], body: bytes
) -> None:
    status = sent(worker, asked(method, path, query, more, body), whole=is_whole(more))
    event(f"{status}")
    assert status in {*ANSWERS, None}


@settings(max_examples=60, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300))
def test_no_bytes_at_all_are_answered_with_a_500(worker: LiveDemo, data: bytes) -> None:
    assert sent(worker, data + b"\r\n\r\n", whole=False) in {*ANSWERS, None}


def test_the_worker_goes_on(worker: LiveDemo) -> None:
    assert sent(worker, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") == 200
