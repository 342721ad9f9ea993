"""Where the state comes from that a command judges: files, a live cluster, or a running pipeline; and the vSphere side.

In: the options. Out: what was read, of which site, and how it is to be judged. Files beside a cluster or a pipeline are
added to it: what is about to be applied can be tried on what is there.
"""

import os
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output import progress
from underhost.schemas.errors import InputError
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import STDIN, InputReader

if TYPE_CHECKING:
    from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
    from underhost.streams.settings.model import Settings


class Found(NamedTuple):
    """What there is. `host_keys` and `physical_host` are None where nothing says how it is to be judged."""

    objects: Objects
    site: str = "default"
    host_keys: tuple[str, ...] | None = None
    physical_host: str | None = None


def read(given: From) -> Found:
    """Read what the options mean.

    Raises InputError with every fault of the files, or for options that exclude one another; BackendError where a
    cluster, a vCenter or a worker is unreachable, refuses, or has no complete picture.
    """
    _check(given)
    reading = InputReader(sys.stdin.buffer)
    if given.server is not None:
        found = _from_server(reading, given.server, given.site)
    elif given.config is not None:
        found = _from_config(reading, given, _settings(given))
    else:
        found = Found(Objects())
        if not given.files or given.kubeconfig or given.context:
            _read_live(reading, _named_cluster(given), None)
    for path in given.files or ():
        progress.say(f"reading {'standard input' if path == STDIN else path}")
        reading.read(path)
    if given.inventory is not None:
        reading.read_inventory_file(given.inventory)
    return found._replace(objects=reading.result())


def _check(given: From) -> None:
    for option, value in (("--kubeconfig", given.kubeconfig), ("--context", given.context), ("--config", given.config)):
        if given.server is not None and value is not None:
            raise InputError(f"--server and {option}: only one of them can be where the state is")
    if given.site is not None and given.server is None:
        raise InputError("--site: which site of --server URL; other sources have only one")


def _settings(given: From) -> "Settings":
    """Of the configuration file, the environment and the flags; without a file, of the flags alone."""
    from underhost.streams.settings.load import load

    flags: dict[str, Any] = {}
    if given.kubeconfig is not None:
        flags["kubeconfig"] = str(given.kubeconfig)
    if given.context is not None:
        flags["context"] = given.context
    return load(given.config, {"kubernetes": flags}, None if given.config is not None else {})


def _named_cluster(given: From) -> "KubernetesSettings":
    """The cluster that kubectl would ask. Raises InputError where there is none, with what else could be meant."""
    from underhost.streams.kubernetes.kubeconfig import find

    settings = _settings(given).kubernetes
    try:
        find(settings, os.environ)
    except InputError as error:
        if given.kubeconfig is not None or given.context is not None:
            raise
        raise InputError(f"{error}; name a dump with -f, or a worker with --server URL") from None
    return settings


def _from_server(reading: InputReader, server: str, site: str | None) -> Found:
    import asyncio

    from underhost.agents.commands.input.server import fetch

    progress.say(f"reading the picture of {server}")
    picture = asyncio.run(fetch(server, site))
    reading.read_text(picture.data, picture.place)
    judging = picture.judging
    return Found(Objects(), picture.site, tuple(judging.host_keys), judging.physical_host)


def _from_config(reading: InputReader, given: From, settings: "Settings") -> Found:
    """The Kubernetes side of the configuration, unless files are given; its vSphere side, unless an inventory is."""
    kubernetes, vsphere = settings.kubernetes, settings.vsphere
    if kubernetes.simulated or vsphere.simulated:
        raise InputError(f"{given.config}: a simulated site lives in its worker; name that with --server")
    if vsphere.inventory is not None:
        reading.read_inventory_file(vsphere.inventory)
    named = given.kubeconfig is not None or given.context is not None
    for path in kubernetes.files if not named and not given.files else ():
        reading.read(path)
    live = kubernetes if named or not (given.files or kubernetes.files) else None
    _read_live(reading, live, vsphere if vsphere.url and given.inventory is None else None)
    keys = (settings.host_label.key, *settings.host_label.aliases)
    return Found(Objects(), settings.site, keys, settings.physical_host)


def _read_live(
    reading: InputReader, kubernetes: "KubernetesSettings | None", vsphere: "VSphereSettings | None"
) -> None:
    """A cluster and a vCenter, at the same time; either may be None."""
    import asyncio

    size = 0

    def take(data: bytes, place: str) -> None:
        nonlocal size
        size += len(data)
        progress.say(f"reading the cluster: {size / 1e6:,.1f} MB")
        reading.read_text(data, place)

    async def cluster(settings: "KubernetesSettings") -> None:
        from underhost.streams.kubernetes.dump import read_cluster

        for note in await read_cluster(settings, take):
            reading.note(note)

    async def vcenter(settings: "VSphereSettings") -> None:
        from underhost.streams.vsphere.inventory import read_inventory

        reading.use_inventory(await read_inventory(settings))

    async def both() -> None:
        asked = [*([cluster(kubernetes)] if kubernetes else []), *([vcenter(vsphere)] if vsphere else [])]
        await asyncio.gather(*asked)

    progress.say("asking " + " and ".join(["the cluster"] * bool(kubernetes) + ["the vCenter"] * bool(vsphere)))
    asyncio.run(both())
