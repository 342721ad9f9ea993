"""Settings of the two clusters of a site, Kubernetes and the vSphere below it, and the source that each asks for.

A new source is its module, and here its setting and its row.
"""

from pathlib import Path
from typing import NamedTuple, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from underhost.streams.settings.group import SettingsGroup


class KubernetesSettings(SettingsGroup):
    """The Kubernetes cluster of the site: a live one, dumps in files, or the simulated one."""

    kubeconfig: Path | None = None
    context: str | None = None
    files: tuple[Path, ...] = ()
    simulated: str | None = None
    stale_after: float = Field(default=60.0, ge=2)
    """Seconds of the API's silence after which nothing at all is written, and the extender gives no answer."""

    @property
    def probe_interval(self) -> float:
        """Seconds between two questions whether the API still answers: a watch is silent for a minute at a time."""
        return self.stale_after / 4

    @property
    def sign_of_life(self) -> float:
        """Seconds between two markers that say that the watcher still hears from the API."""
        return self.stale_after / 2


class VSphereSettings(SettingsGroup):
    """The vCenter under the cluster; absent when nothing is given."""

    url: str | None = None
    username: str | None = None
    password_file: Path | None = None
    password: SecretStr | None = None
    """Only from the environment (UNDERHOST_VSPHERE__PASSWORD); a file is re-read when the password is rotated."""
    ca_file: Path | None = None
    clusters: tuple[str, ...] = ()
    """vSphere clusters to watch; empty means all that hold a node's VM."""
    insecure: bool = False
    """Skip the check of the certificate; never set for anybody by default, loopback included."""
    join_by_name: bool = False
    """Let a node that has no uuid be the vCenter's VM of its name, or else of its guest hostname: whoever may name a VM
    can then give such a node a host. An inventory file may always be asked by name."""
    tags: bool | None = None
    """Read the tags of hosts, clusters, folders and datacenters, which takes a second login at the REST API; absent:
    where a derived label asks for one."""
    inventory: Path | None = None
    simulated: str | None = None
    poll_interval: float = Field(default=30.0, gt=0)
    """Seconds between re-reads of rules and maintenance mode, which vCenter does not announce."""
    stale_after: float | None = Field(default=None, gt=0)
    """Seconds of vCenter's silence after which nothing is written that rests on where VMs run; at least two poll
    intervals, and 30 s unless it is set."""

    @field_validator("url")
    @classmethod
    def _public(cls, url: str | None) -> str | None:
        # The settings, the log and messages repeat it. No vCenter's URL has an @ elsewhere.
        if url is not None and "@" in url:
            raise ValueError("holds credentials; use username and passwordFile")
        return url

    @model_validator(mode="after")
    def _patient(self) -> Self:
        if self.stale_after is not None and self.stale_after < 2 * self.poll_interval:
            raise ValueError(f"staleAfter must be at least two poll intervals ({2 * self.poll_interval:g} s)")
        return self

    @property
    def stale_bound(self) -> float:
        """Seconds after which the vSphere data is too old to act on."""
        return self.stale_after or max(2 * self.poll_interval, 30.0)

    @property
    def sign_of_life(self) -> float:
        """Seconds between two markers that say that the watcher still hears from vCenter."""
        return max(self.poll_interval, min(10.0, self.stale_bound / 2))

    @property
    def joins_by_name(self) -> bool:
        """Whether VM names and guest hostnames may say which VM a node is."""
        return self.join_by_name or bool(self.inventory or self.simulated)

    @property
    def configured(self) -> bool:
        """Whether the site has a vSphere side at all."""
        return bool(self.simulated or self.watched)

    @property
    def watched(self) -> str:
        """What is watched, as its setting names it; "" where nothing is, or a simulated site."""
        named = (getattr(self, row.setting) for row in SOURCES if row.side == "vsphere")
        return str(next((value for value in named if value), ""))


class SourceKind(NamedTuple):
    """One way to watch one side of a site.

    Attributes:
        side: `kubernetes` or `vsphere`: the group of settings, and the name of the source.
        setting: the setting of the group that asks for it; "" for what is watched where nothing else is asked for.
        factory: `module:name` of what makes it of (site, the group, publisher, reader). A source's client takes longer
            to import than the rest of a worker, so that only the sources asked for are imported.
    """

    side: str
    setting: str
    factory: str


SOURCES = (
    SourceKind("kubernetes", "files", "underhost.streams.files.source:dump_source"),
    SourceKind("kubernetes", "", "underhost.streams.kubernetes.watcher:KubernetesSource"),
    SourceKind("vsphere", "inventory", "underhost.streams.files.source:inventory_source"),
    SourceKind("vsphere", "url", "underhost.streams.vsphere.watcher:VSphereSource"),
)
"""The first row of a side whose setting is given is what watches it."""
