"""Settings of the node labels that name the physical host, and of the taint that waits for them."""

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from underhost.streams.settings.group import SettingsGroup

CAPV_HOST_KEY = "node.cluster.x-k8s.io/esxi-host"
_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KEY = rf"({_PART}(\.{_PART})*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{{0,61}}[A-Za-z0-9])?"


def _label_key(key: str) -> str:
    if not re.fullmatch(_KEY, key) or len(key) > 317:
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

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        keys = [self.key, *(derived.key for derived in self.derived)]
        if twice := sorted({key for key in keys if keys.count(key) > 1}):
            raise ValueError(f"label {', '.join(twice)} cannot have two sources")
        return self
