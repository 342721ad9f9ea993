"""Settings of the two clusters of a site: Kubernetes, and the vSphere below it."""

from pathlib import Path
from typing import Self

from pydantic import Field, SecretStr, model_validator

from underhost.streams.settings.group import SettingsGroup


class KubernetesSettings(SettingsGroup):
    """The Kubernetes cluster of the site: a live one, dumps in files, or the simulated one."""

    kubeconfig: Path | None = None
    context: str | None = None
    files: tuple[Path, ...] = ()
    simulated: str | None = None


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
    def configured(self) -> bool:
        """Whether the site has a vSphere side at all."""
        return bool(self.url or self.inventory or self.simulated)
