"""Whatever a server does to its watches, the topics end up as the server is."""

import asyncio
import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from support.build import a_pod
from support.fakes.kube import FakeKube, Fault
from support.fakes.topics import FakeTopics

from underhost.schemas.topics import DEAD_LETTERS, PODS
from underhost.streams.kubernetes.watcher import KubernetesSource
from underhost.streams.timing import Timing

NAMES = st.sampled_from([f"p{number}" for number in range(6)])
CHANGES = st.one_of(
    st.tuples(st.just("put"), NAMES, st.sampled_from(["", "n1", "n2"])),
    st.tuples(st.just("delete"), NAMES, st.just("")),
    st.tuples(st.just("expire"), st.just(""), st.just("")),
    st.tuples(st.just("bookmark"), st.just(""), st.just("")),
    st.tuples(st.just("pause"), st.just(""), st.just("")),
)
FAULTS = st.lists(
    st.one_of(
        st.builds(Fault, st.just("watch"), st.just("pods"), drop=st.integers(0, 3)),
        st.builds(Fault, st.just("watch"), st.just("pods"), error=st.sampled_from([410, 429, 500])),
        st.builds(Fault, st.just("watch"), st.just("pods"), status=st.sampled_from([410, 429, 500, 503, 401, 403])),
        st.builds(Fault, st.just("watch"), st.just("pods"), lines=st.just((b"garbage", b'{"type": 1}'))),
        st.builds(Fault, st.just("watch"), st.just("pods"), silent=st.just(True)),
    ),
    max_size=6,
)


async def soon(seconds: float) -> None:
    """Long waits are cut short, so that a fault does not take as long as in life."""
    await asyncio.sleep(min(seconds, 0.002))


async def converges(changes: list[tuple[str, str, str]], faults: list[Fault], folder: Path) -> None:
    topics, server = FakeTopics(), FakeKube()
    server.seed("namespaces", {"metadata": {"name": "shop"}})
    server.seed("nodes", {"metadata": {"name": "n1"}})
    server.seed("pods", a_pod("stays"), a_pod("p0"))
    async with server.serving():
        timing = Timing(sleep=soon, inactivity=0.1)
        source = KubernetesSource("s", server.settings(folder), topics, topics, timing=timing)
        run = asyncio.create_task(source.run())
        try:
            await asyncio.wait_for(source.ready.wait(), 20)
            server.faults = list(faults)
            for what, name, node in changes:
                if what == "put":
                    await server.put("pods", a_pod(name).on(node))
                elif what == "delete" and server.has("pods", name, "shop"):
                    await server.delete("pods", name, "shop")
                elif what == "expire":
                    server.compact()
                elif what == "bookmark":
                    await server.bookmark("pods")
                else:
                    await asyncio.sleep(0.002)
            await server.put("pods", a_pod("last"))
            expected = {
                f"s/pod/shop/{name}": obj["spec"].get("nodeName", "") for (_, name), obj in server.all("pods").items()
            }
            await topics.until(lambda t: nodes_of(t) == expected)
        finally:
            run.cancel()
            await asyncio.gather(run, return_exceptions=True)
    # Nothing is said twice: every record of a pod differs from the one before it.
    previous: dict[str, object] = {}
    for record in topics.records:
        if record.topic is PODS and "/listed/" not in record.key:
            now = record.value and {**json.loads(record.value), "metadata": None}
            assert previous.get(record.key, ...) != now or now is None
            previous[record.key] = now
    assert all(record.value for record in topics.records if record.topic is DEAD_LETTERS)


def nodes_of(topics: FakeTopics) -> dict[str, str]:
    live = topics.live.get(PODS.name, {})
    return {key: json.loads(live[key])["spec"].get("nodeName", "") for key in topics.keys(PODS)}


@settings(max_examples=40)
@given(changes=st.lists(CHANGES, max_size=20), faults=FAULTS)
def test_the_topics_end_up_as_the_server_is(changes: list[tuple[str, str, str]], faults: list[Fault]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(converges(changes, faults, Path(folder)))
