"""A worker that moves VMs in a world of its own: what the stories of a repair and of a maintenance share.

It reaches the vCenter through a proxy, which sees every relocation, and may hold or refuse it.
"""

import json
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from support.fakes.soap_proxy import SoapProxy
from support.processes.listener import Listener
from support.processes.ports import free_ports
from support.processes.underhost import UNDERHOST
from support.processes.world import World
from support.processes.world import eventually as soon_or_later

TOKEN = "correct-horse-battery-staple"
PATIENCE = 300.0
"""Seconds that anything is waited for: a machine may be busy."""


def eventually(what: str, ask: Callable[[], object]) -> None:
    """Until `ask` answers something true."""
    soon_or_later(what, lambda: ask() or None, within=PATIENCE)


@dataclass
class Moving:
    """A world and the configuration of its worker; `proxy` is how the product reaches the vCenter."""

    here: World
    proxy: SoapProxy
    topics: Listener
    config: Path
    port: int
    log: Path

    def where(self) -> dict[str, str]:
        """The host of each VM."""
        return {vm: self.here.vcenter.host_of(vm) for vm in self.here.vcenter.vms}

    def outcomes(self, kind: str) -> list[tuple[str, str]]:
        """Result and reason of each command of this kind."""
        heard = [record.value for record in self.topics.records("underhost.outcomes")]
        return [(one["result"], one["reason"]) for one in heard if one["kind"] == kind]

    def command(self, *words: str) -> list[str]:
        """`underhost WORDS`, asked of the worker with its token."""
        token = str(self.config.with_name("token"))
        return [UNDERHOST, *words, "--server", f"http://127.0.0.1:{self.port}", "--token-file", token]

    def ask(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """It, to its end."""
        return subprocess.run(self.command(*words), capture_output=True, text=True, timeout=PATIENCE, check=False)

    def set(self, **settings: Any) -> None:
        """Change top-level settings of the configuration."""
        self.config.write_text(json.dumps(json.loads(self.config.read_text()) | settings))


Story = TypeVar("Story", bound=Moving)


@contextmanager
def moving(kind: type[Story], here: World, kafka: Mapping[str, str], folder: Path, **sinks: bool) -> Iterator[Story]:
    """A configuration that labels, binds and moves, and has the other `sinks`; VMs move only where a person asks."""
    port = free_ports(1)[0]
    story = kind(
        here, SoapProxy(here.vcsim, folder), Listener(kafka), here.config(kafka, port), port, folder / "underhost.log"
    )
    (folder / "token").write_text(TOKEN)
    with story.proxy.running():
        tree = json.loads(story.config.read_text())
        story.set(
            vsphere=tree["vsphere"] | {"url": story.proxy.url, "caFile": str(story.proxy.ca)},
            web=tree["web"] | {"tokenFile": str(folder / "token")},
            sinks={"labels": True, "bindings": True, "moves": True, **sinks},
            moves={"automatic": False, "perMinute": 60},
        )
        yield story
