"""Settings of the node labels that name the physical host: those we write, with the taint that waits for them, and the
one that somebody else writes and we read."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from underhost.schemas.kubernetes import is_label_key
from underhost.streams.settings.group import SettingsGroup

CAPV_HOST_KEY = "node.cluster.x-k8s.io/esxi-host"


def _label_key(key: str) -> str:
    if not is_label_key(key):
        raise ValueError("not the key of a label: [PREFIX/]NAME is expected")
    return key


LabelKey = Annotated[str, AfterValidator(_label_key)]
"""The key of a label or taint, as the API server takes it."""


class DerivedLabel(SettingsGroup):
    """A further node label taken from the host.

    `from` names the entry of the host's labels: `folder`, `datacenter`, `attribute:NAME` or `tag:CATEGORY`.
    """

    key: LabelKey
    source: str = Field(alias="from", min_length=1)


class HostLabelSettings(SettingsGroup):
    """The node label that carries the physical host."""

    key: LabelKey = CAPV_HOST_KEY
    mode: Literal["own", "observe", "auto"] = "auto"
    """Whose label is overwritten: `own` everybody's, `observe` nobody's, `auto` ours and a person's (field managers
    `kubectl` and `kubectl-…`)."""
    aliases: tuple[LabelKey, ...] = ("alpha.cna.vmware.com/host",)
    derived: tuple[DerivedLabel, ...] = ()
    startup_taint: LabelKey | None = None
    """Key of a taint that the kubelet sets (`--register-with-taints`); removed once a node carries all its labels."""

    @property
    def written(self) -> tuple[str, ...]:
        """The keys that the labels' sink may write."""
        own = () if self.mode == "observe" else (self.key,)
        return (*own, *(derived.key for derived in self.derived))

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        keys = [self.key, *(derived.key for derived in self.derived)]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise ValueError(f"label {', '.join(twice)} cannot have two sources")
        return self


class HostsSettings(SettingsGroup):
    """Where the nodes' physical hosts are read from, where there is no vSphere to ask."""

    label: LabelKey | None = None
    """Key of a node label whose value names the host, written by another controller (or a person) after each move."""
