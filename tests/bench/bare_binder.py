"""A worker that only watches pods and binds them, node after node: what that takes without a decision or a record.

Called by `bench.binder`, in whose run it takes the place of `underhost run`: the same event loop, client, connections
and as many bindings at once. It has no topics and no tables, reads no hosts, and keeps no limits, leases or Events.

Arguments: a kubeconfig, the name that pods ask for it by, and the nodes.
"""

import sys

import aiohttp
import msgspec

from underhost.agents.pipeline.dispatch.lanes import Lanes
from underhost.agents.pipeline.event_loop import run
from underhost.agents.sinks.kubernetes_writer import KubernetesApiWriter
from underhost.agents.sinks.registry import COMMANDS
from underhost.schemas.commands import BIND
from underhost.streams.kubernetes.client import connect
from underhost.streams.settings.clusters import KubernetesSettings


class Metadata(msgspec.Struct):
    """Whose change it is."""

    name: str = ""
    namespace: str = ""
    uid: str = ""


class Spec(msgspec.Struct, rename="camel"):
    """Who places the pod, and where it runs."""

    scheduler_name: str = ""
    node_name: str = ""


class Pod(msgspec.Struct):
    """As much of a pod as a binding takes."""

    metadata: Metadata
    spec: Spec = msgspec.field(default_factory=Spec)


class Change(msgspec.Struct):
    """A line of the watch."""

    type: str
    object: Pod


async def bind(kubeconfig: str, name: str, nodes: list[str]) -> None:
    """Until it is ended."""
    changes, bound = msgspec.json.Decoder(Change), 0
    query = [("watch", "1"), ("resourceVersion", "0")]
    endless = aiohttp.ClientTimeout(total=None)
    async with await connect(KubernetesSettings(kubeconfig=kubeconfig)) as client:
        writer = KubernetesApiWriter(client)

        async def write(order: tuple[Metadata, str]) -> None:
            pod, node = order
            await writer.bind_pod(pod.namespace, pod.name, pod.uid, node)

        lanes = Lanes("bind", COMMANDS[BIND].lanes, write, lambda lane: lane.result())
        async with client.open("GET", "/api/v1/pods", query=query, timeout=endless) as response:
            rest = b""
            async for piece in response.content.iter_any():
                *lines, rest = (rest + piece).split(b"\n")
                for change in map(changes.decode, lines):
                    if change.type == "ADDED" and change.object.spec == Spec(name, ""):
                        lanes.put((change.object.metadata, nodes[bound % len(nodes)]))
                        bound += 1


if __name__ == "__main__":
    run(bind(sys.argv[1], sys.argv[2], sys.argv[3:]))
