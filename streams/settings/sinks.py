"""Settings of what may be written to the clusters: which sinks, how much a minute, and which pods may be evicted."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from pydantic import Field, create_model

from underhost.schemas.commands import WRITTEN, Written
from underhost.schemas.severities import GRAVE, REPAIRABLE
from underhost.streams.settings.group import SettingsGroup

if TYPE_CHECKING:
    RepairableName: TypeAlias = str
else:  # what the table holds: a type checker cannot read it, pydantic can
    RepairableName = Literal[REPAIRABLE]


class _Switches(SettingsGroup):
    """Which sinks may write; every other one is a dry run."""


class _Limits(SettingsGroup):
    """Writes of each kind in any minute, of the whole site, at most: a fence against what nobody has thought of."""


def _frequent_first() -> list[Written]:
    """The kinds that write by the hundred, then those whose writes are few."""
    return sorted(WRITTEN.values(), key=lambda row: row.per_minute < 1000)


if TYPE_CHECKING:

    class SinkSettings(_Switches):
        """One switch for each kind of commands, from the table."""

        def __init__(self, **_: bool) -> None: ...
        def __getattr__(self, name: str) -> bool: ...

    class LimitSettings(_Limits):
        """One limit for each kind of commands, from the table."""

        def __init__(self, **_: int) -> None: ...
        def __getattr__(self, name: str) -> int: ...

else:
    SinkSettings = create_model(
        "SinkSettings",
        __base__=_Switches,
        __module__=__name__,
        __doc__=_Switches.__doc__,
        **{row.setting: (bool, False) for row in WRITTEN.values()},
    )
    LimitSettings = create_model(
        "LimitSettings",
        __base__=_Limits,
        __module__=__name__,
        __doc__=_Limits.__doc__,
        **{row.setting: (int, Field(default=row.per_minute, ge=1)) for row in _frequent_first()},
    )


class DrsRuleSettings(SettingsGroup):
    """How DRS rules are written."""

    mandatory: bool = False
    """Must instead of should: vCenter then refuses to start a VM, after a host failure too, where it breaks a rule."""
    edits_per_minute: int = Field(default=2, ge=1)
    """Rules changed in a vSphere cluster in one minute: each may move VMs."""


class MoveSettings(SettingsGroup):
    """Which vMotions the mover may make, and how many at once; it makes none unless `sinks.moves` is true."""

    automatic: bool = True
    """Repair by itself. Otherwise only where a person says so (`underhost repair --apply`)."""
    wait: float = Field(default=60.0, ge=0)
    """Seconds that a finding must have stood: DRS, or a rollout, may end it."""
    per_host: int = Field(default=2, ge=1)
    """vMotions under way from or to one host."""
    per_cluster: int = Field(default=4, ge=1)
    """vMotions under way in one vSphere cluster."""
    per_minute: int = Field(default=4, ge=1)
    """vMotions begun in any minute, of the whole site."""
    headroom: int = Field(default=0, ge=0, le=99)
    """Percent of each host's memory and CPU that stays free."""
    admission: bool = False
    """As much of each host stays free as HA's admission control keeps of its cluster."""
    reserved: bool = False
    """A VM counts with the memory that is reserved for it, not with all of its own."""


class MaintenanceSettings(SettingsGroup):
    """How hosts have their turn (`underhost maintain --apply`); none has one unless `sinks.maintenance` is true."""

    max_hosts: int = Field(default=1, ge=1)
    """Hosts that are emptied, or in maintenance mode, at a time; of the whole site."""
    timeout: int = Field(default=1800, ge=1, le=6000)
    """Seconds after which vSphere gives up a change of a host's mode, and leaves the host as it was."""


class EvictionSettings(SettingsGroup):
    """Which pods the evictor may end, and how many at once; it ends none unless `sinks.evictions` is true."""

    severities: tuple[RepairableName, ...] = GRAVE
    """Findings that are repaired. Co-located replicas break no rule, so that they are left alone unless asked for."""
    wait: float = Field(default=60.0, ge=0)
    """Seconds that a finding must have stood: DRS, a rollout or its owner may end it without an eviction."""
    per_owner: int = Field(default=1, ge=1)
    """Replicas of one workload that may be missing at once; never more than `share` of it either."""
    share: int = Field(default=10, ge=1, le=100)
    """Percent of a workload's replicas that may be missing at once; one always may."""
    per_node: int = Field(default=1, ge=1)
    """Evictions under way on one node."""
    per_host: int = Field(default=2, ge=1)
    """Evictions under way on one physical host; never on two hosts at a time."""
    per_minute: int = Field(default=4, ge=1)
    """Evictions in any minute, of the whole site."""
    tries: int = Field(default=3, ge=1, le=3)
    """Evictions for one finding of a workload that may fail to end it, before it is left to a person."""
    pause: float = Field(default=600.0, ge=0)
    """Seconds before the next eviction of a workload after one that did not help."""
    owners: tuple[str, ...] = (
        "ReplicaSet",
        "StatefulSet",
        "ReplicationController",
        "VirtualMachineInstanceReplicaSet",
    )
    """Kinds of controllers that make another pod at once. A Job is none of them: it counts an eviction as a failure."""
    schedulers: tuple[str, ...] = ("default-scheduler",)
    """Schedulers that are there to place the next pod; `underhost` is one where `sinks.bindings` is true."""
    empty_dir: bool = False
    """End pods with an emptyDir volume, too: what is in it is lost, as with `kubectl drain --delete-emptydir-data`."""
    volumes: bool = False
    """End pods with volume claims, too: where a volume can be attached is not watched."""
    except_namespaces: tuple[str, ...] = ("kube-system",)
    """Namespaces whose pods are never ended."""
