"""Where the state comes from that a command judges: files, a live cluster, or a running pipeline; and the vSphere side.

In: the options. Out: what was read, of which site, and how it is to be judged. Files beside a cluster or a pipeline are
added to it: what is about to be applied can be tried on what is there.
"""

import sys
from typing import BinaryIO, NamedTuple

from underhost.agents.commands.input.origin import From
from underhost.agents.commands.input.values import label_key
from underhost.agents.commands.output import progress
from underhost.agents.site.snapshot import BY_VM, Joining
from underhost.schemas.errors import InputError
from underhost.streams.files.objects import Objects
from underhost.streams.files.reader import STDIN, InputReader


class Found(NamedTuple):
    """What there is. `host_keys`, `physical_host` and `cross_namespace` are None where nothing says."""

    objects: Objects
    site: str = "default"
    host_keys: tuple[str, ...] | None = None
    physical_host: str | None = None
    joining: Joining = BY_VM
    cross_namespace: str | None = None


def read(given: From) -> Found:
    """Read what the options mean.

    Raises InputError with every fault of the files, or for options that exclude one another; BackendError where a
    cluster, a vCenter or a worker is unreachable, refuses, or has no complete picture.
    """
    _check(given)
    reading = InputReader(stdin())
    found = Found(Objects(), joining=Joining(label=given.host_label or ""))
    # Clients of a worker, a cluster and a vCenter take up to a second to import, which files need not wait for.
    if given.server is not None:
        from underhost.agents.commands.input.server import read_worker

        snapshot = read_worker(given.server, given.site, given.token_file, given.ca_file)
        reading.read_text(snapshot.data, snapshot.place)
        judging = snapshot.judging
        keys = tuple(judging.host_keys)
        found = Found(
            Objects(),
            snapshot.site,
            keys,
            judging.physical_host,
            Joining(judging.join_by_name, given.host_label or judging.host_label),
            judging.cross_namespace,
        )
    elif given.config is not None:
        from underhost.agents.commands.input.live import read_config

        settings = read_config(reading, given)
        keys = (settings.host_label.key, *settings.host_label.aliases)
        by_name = settings.vsphere.joins_by_name or not settings.vsphere.url or given.inventory is not None
        joining = Joining(by_name, settings.hosts.label or "")
        found = Found(Objects(), settings.site, keys, settings.physical_host, joining, settings.cross_namespace)
    elif not given.files or given.kubeconfig or given.context:
        from underhost.agents.commands.input.live import read_named_cluster

        read_named_cluster(reading, given)
    for path in given.files or ():
        progress.say(f"reading {'standard input' if path == STDIN else path}")
        reading.read(path)
    if given.inventory is not None:
        reading.read_inventory_file(given.inventory)
    objects = reading.result()
    if found.joining.label and objects.inventory is not None:
        told = f"{'hosts.label' if given.host_label is None else '--host-label'} {found.joining.label}"
        raise InputError(f"{told}, and a vSphere inventory: only one of them can say which host a node is on")
    return found._replace(objects=objects)


def stdin() -> BinaryIO | None:
    """Standard input; None where whoever started us has closed it."""
    return sys.stdin.buffer if sys.stdin is not None else None


def _check(given: From) -> None:
    for option, value in (("--kubeconfig", given.kubeconfig), ("--context", given.context), ("--config", given.config)):
        if given.server is not None and value is not None:
            raise InputError(f"--server and {option}: only one of them can be where the state is")
    if given.site is not None and given.server is None:
        raise InputError("--site: which site of --server URL; other sources have only one")
    if given.host_label is not None:
        label_key("--host-label", given.host_label)
    for option, file in (("--token-file", given.token_file), ("--ca-file", given.ca_file)):
        if given.server is None and file is not None:
            raise InputError(f"{option}: for --server URL; other sources do not ask for it")
