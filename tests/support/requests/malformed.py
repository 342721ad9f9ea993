"""Requests that are wrong in half of what they say, as hypothesis makes them.

In: nothing. Out: strategies for the parts of a request, and its bytes.
"""

from urllib.parse import quote

from hypothesis import strategies as st

from underhost.agents.http.openapi import OPERATIONS

METHODS = ["GET", "GET", "GET", "POST", "POST", "HEAD", "OPTIONS", "get"]
FRAMING = {b"Content-Length", b"Transfer-Encoding", b"Expect", b"Upgrade"}
"""Headers that say how much follows: with a wrong one the worker may wait for more."""
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
PARTS = st.sampled_from(METHODS), paths, queries, headers, bodies
"""Those of `asked`."""


def is_whole(more: list[tuple[bytes, bytes]]) -> bool:
    """Whether the worker can know where a request with these headers ends."""
    return not FRAMING & {name for name, _ in more}


def asked(method: str, path: str, query: str, more: list[tuple[bytes, bytes]], body: bytes) -> bytes:
    """The request as it is sent."""
    target = f"{path}?{query}".encode("utf-8", "replace")
    given = [(b"Host", b"127.0.0.1"), (b"Content-Type", b"application/json"), *more]
    if is_whole(more):
        given.append((b"Content-Length", str(len(body)).encode()))
    head = b"".join(name + b": " + value + b"\r\n" for name, value in given)
    return method.encode() + b" " + target + b" HTTP/1.1\r\n" + head + b"\r\n" + body
