"""Every setting there is, as one frozen model of groups. Reading them is left to `load.py`."""

from typing import Literal, Self

from pydantic import Field, model_validator
from pydantic.alias_generators import to_camel

from underhost.schemas.commands import WRITTEN
from underhost.streams.settings.alerting import AlertingSettings
from underhost.streams.settings.clusters import KubernetesSettings, VSphereSettings
from underhost.streams.settings.group import SettingsGroup
from underhost.streams.settings.kafka import KafkaSettings
from underhost.streams.settings.labels import HostLabelSettings, HostsSettings
from underhost.streams.settings.self_check import SelfCheckSettings
from underhost.streams.settings.shares import ShareSettings
from underhost.streams.settings.sinks import (
    DrsRuleSettings,
    EvictionSettings,
    LimitSettings,
    MaintenanceSettings,
    MoveSettings,
    SinkSettings,
)
from underhost.streams.settings.web import ExtenderSettings, WebSettings, extender_fault

UNNAMED = "default"
"""The site of settings that name none."""


class LeaseSettings(SettingsGroup):
    """The leases that leave one worker of a site to act in each role, where Kubernetes is a live cluster."""

    namespace: str | None = Field(default=None, pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    """Absent: the pod's own, else that of the kubeconfig's context, else `default`. All workers of a site name one."""
    seconds: int = Field(default=15, ge=3, le=3600)
    """Seconds after which another worker takes over from one that has died."""


class Settings(SettingsGroup):
    """Everything a worker needs to know, read once at its start."""

    api_version: Literal["underhost/v1"] = "underhost/v1"
    kind: Literal["Config"] = "Config"
    site: str = Field(default=UNNAMED, pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    kafka: KafkaSettings = KafkaSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    vsphere: VSphereSettings = VSphereSettings()
    hosts: HostsSettings = HostsSettings()
    host_label: HostLabelSettings = HostLabelSettings()
    physical_host: Literal["preferred", "required"] = "preferred"
    cross_namespace: Literal["report", "act"] = "report"
    """`act`: a pod's terms evict, close hosts and make DRS rules for pods of other namespaces; else only its own."""
    sinks: SinkSettings = SinkSettings()
    drs_rules: DrsRuleSettings = DrsRuleSettings()
    moves: MoveSettings = MoveSettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    evictions: EvictionSettings = EvictionSettings()
    limits: LimitSettings = LimitSettings()
    shares: ShareSettings = ShareSettings()
    web: WebSettings = WebSettings()
    extender: ExtenderSettings = ExtenderSettings()
    lease: LeaseSettings = LeaseSettings()
    alerting: AlertingSettings = AlertingSettings()
    self_check: SelfCheckSettings = SelfCheckSettings()

    @model_validator(mode="after")
    def _one_truth(self) -> Self:
        if self.hosts.label is None:
            return self
        if self.vsphere.configured:
            raise ValueError("hosts.label beside vsphere: only one of them can say which host a node is on")
        if self.sinks.labels and self.hosts.label in self.host_label.written:
            key = self.hosts.label
            raise ValueError(f"hosts.label: sinks.labels writes {key} (hostLabel), and would read back its own word")
        for row in WRITTEN.values():
            if row.to_vsphere and getattr(self.sinks, row.setting):
                what = f"sinks.{to_camel(row.setting)} needs vSphere"
                raise ValueError(f"{what}: with hosts.label only the names of hosts are known, and no VM")
        return self

    @model_validator(mode="after")
    def _no_open_door(self) -> Self:
        if (fault := extender_fault(self.web, self.extender)) is not None:
            raise ValueError(fault)
        return self
