"""Whatever is sent, half of it wrong: a whole worker answers, never with a 500, and goes on."""

import select
import socket
from collections.abc import Iterator
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st
from support.sites.shown import LiveDemo

from underhost.agents.http.openapi import OPERATIONS

ANSWERS = {200, 304, 400, 403, 404, 405, 408, 411, 413, 415, 417, 421, 422, 429, 499, 501, 503}
"""501: a transfer coding that nobody knows."""
FRAMING = {b"Content-Length", b"Transfer-Encoding", b"Expect", b"Upgrade"}
"""Headers that say how much follows: with a wrong one the worker may wait for more."""
REST = 0.2
"""Seconds for which an answer is waited for where the worker may wait, too."""
PATHS = [one.path.replace("{namespace}", "default").replace("{name}", "a") for one in OPERATIONS]
NAMES = ["steps", "each", "ha", "site", "add", "drain", "fail", "Pod", "Nodes", "NodeNames", "metadata", "name", "spec"]
NAMES += [
    "namespace",
    "items",
    "kind",
    "apiVersion",
    "labels",
    "affinity",
    "containers",
    "uid",
    "PodUID",
    "Node",
    "podUID",
]

POD = b'%s{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","labels":{"a":"%s"}}}%s'

texts = st.text(alphabet=st.characters(max_codepoint=0x2FFFF), max_size=30) | st.sampled_from(
    ["", "9" * 400 + "d", "9" * 5000, "1e999", "NaN", "\x00", "\ud800", "../..", "%", "demo", "pod/a/b", "0s", "-1"]
)
escaped = texts.map(lambda text: quote(text, safe="", errors="surrogatepass"))
queries = st.lists(
    st.tuples(st.sampled_from(["site", "at", "subject", "since", "x", "site[]"]) | escaped, escaped), max_size=3
).map(lambda pairs: "&".join(f"{name}={value}" for name, value in pairs))
paths = (
    st.sampled_from(PATHS)
    | st.sampled_from(PATHS).map(str)
    | st.builds("{}/{}".format, st.sampled_from(PATHS), escaped)
)
lines = st.text(alphabet=[chr(code) for code in range(32, 127)], max_size=60).map(str.encode)
headers = st.lists(
    st.tuples(
        st.sampled_from(
            [
                *(b"Origin", b"Referer", b"Cookie", b"Accept", b"If-None-Match", b"Last-Event-ID", b"Range", b"Expect"),
                *(b"Sec-Fetch-Site", b"Sec-Fetch-Mode", b"Content-Encoding", b"Transfer-Encoding", b"Upgrade", b"Host"),
                *(b"Content-Length", b"Connection", b"Authorization", b"If-Modified-Since", b"Accept-Encoding", b"X"),
            ]
        ),
        lines | st.sampled_from([b"http://[::1", b"cross-site", b"gzip", b"chunked", b"-1", b"bytes=9-1", b'"', b"5"]),
    ),
    max_size=4,
)
json_like = st.recursive(
    st.sampled_from(["null", "1e999", "-0", '"\\ud800"', '"n1"', "NaN", "9" * 400, '"\\u0000"', "true", "{", "]"]),
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda parts: f"[{','.join(parts)}]")
        | st.lists(st.tuples(st.sampled_from(NAMES), inner), max_size=4).map(
            lambda pairs: "{" + ",".join(f'"{name}":{value}' for name, value in pairs) + "}"
        )
    ),
    max_leaves=12,
).map(str.encode)
bodies = st.binary(max_size=200) | json_like


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


@settings(max_examples=300, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(["GET", "GET", "GET", "POST", "POST", "HEAD", "OPTIONS", "get"]), paths, queries, headers, bodies
)
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
    target = f"{path}?{query}".encode("utf-8", "replace")
    given_headers = [(b"Host", b"127.0.0.1"), (b"Content-Type", b"application/json"), *more]
    if not FRAMING & {name for name, _ in more}:
        given_headers.append((b"Content-Length", str(len(body)).encode()))
    head = b"".join(name + b": " + value + b"\r\n" for name, value in given_headers)
    asked = method.encode() + b" " + target + b" HTTP/1.1\r\n" + head + b"\r\n" + body
    status = sent(worker, asked, whole=not FRAMING & {name for name, _ in more})
    event(f"{status}")
    assert status in {*ANSWERS, None}


@settings(max_examples=60, deadline=None, derandomize=True, database=None, suppress_health_check=list(HealthCheck))
@given(st.binary(max_size=300))
def test_no_bytes_at_all_are_answered_with_a_500(worker: LiveDemo, data: bytes) -> None:
    assert sent(worker, data + b"\r\n\r\n", whole=False) in {*ANSWERS, None}


def test_the_worker_goes_on(worker: LiveDemo) -> None:
    assert sent(worker, b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") == 200
