"""A live cluster and a vCenter, read as the options or a configuration say.

In: the options. Out: their objects, in the reading of the command, and the configuration.
"""

import asyncio
import os
from typing import Any

from underhost.agents.commands.input.origin import From
from underhost.agents.commands.output import progress
from underhost.schemas.errors import InputError
from underhost.streams.files.reader import InputReader
from underhost.streams.kubernetes.dump import read_cluster
from underhost.streams.kubernetes.kubeconfig import find
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
from underhost.streams.settings.load import load
from underhost.streams.settings.model import Settings


def read_config(reading: InputReader, given: From) -> Settings:
    """The Kubernetes side of the configuration, unless files are given; its vSphere side, unless an inventory is."""
    settings = _settings(given)
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
    return settings


def read_named_cluster(reading: InputReader, given: From) -> None:
    """Read the cluster that kubectl would ask.

    Raises InputError where there is none, with what else could be meant, and BackendError.
    """
    settings = _settings(given).kubernetes
    try:
        find(settings, os.environ)
    except InputError as error:
        if given.kubeconfig is not None or given.context is not None:
            raise
        raise InputError(f"{error}; name a dump with -f, or a worker with --server URL") from None
    _read_live(reading, settings, None)


def _settings(given: From) -> Settings:
    """Of the configuration file, the environment and the flags; without a file, of the flags alone."""
    flags: dict[str, Any] = {}
    if given.kubeconfig is not None:
        flags["kubeconfig"] = str(given.kubeconfig)
    if given.context is not None:
        flags["context"] = given.context
    hosts = {} if given.host_label is None else {"label": given.host_label}
    return load(given.config, {"kubernetes": flags, "hosts": hosts}, None if given.config is not None else {})


def _read_live(reading: InputReader, kubernetes: KubernetesSettings | None, vsphere: VSphereSettings | None) -> None:
    """A cluster and a vCenter, at the same time; either may be None."""
    size = 0

    def take(data: bytes, place: str) -> None:
        nonlocal size
        size += len(data)
        progress.say(f"reading the cluster: {size / 1e6:,.1f} MB")
        reading.read_text(data, place)

    async def cluster(settings: KubernetesSettings) -> None:
        for note in await read_cluster(settings, take):
            reading.note(note)

    async def vcenter(settings: VSphereSettings) -> None:
        # pyVmomi: 0.5 s, which a cluster alone does not need
        from underhost.streams.vsphere.inventory import read_inventory

        reading.use_inventory(await read_inventory(settings))

    async def both() -> None:
        asked = [*([cluster(kubernetes)] if kubernetes else []), *([vcenter(vsphere)] if vsphere else [])]
        await asyncio.gather(*asked)

    progress.say("asking " + " and ".join(["the cluster"] * bool(kubernetes) + ["the vCenter"] * bool(vsphere)))
    asyncio.run(both())
