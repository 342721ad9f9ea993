"""Configuration: a YAML file, then `UNDERHOST_KAFKA__BOOTSTRAP_SERVERS`-style environment, then flags.

One frozen model, read once; unknown keys are refused and all faults are reported at once.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self, TypeAlias
from urllib.parse import urlsplit

import yaml
from pydantic import AfterValidator, Field, SecretStr, ValidationError, model_validator
from pydantic.alias_generators import to_camel

from underhost.schemas.errors import InputError
from underhost.schemas.severities import CO_LOCATED, GRAVE, LEAST, REPAIRABLE, SEVERITIES
from underhost.streams.settings.faults import fault
from underhost.streams.settings.group import Group
from underhost.streams.settings.kafka import KafkaSettings as KafkaSettings

ENV_PREFIX = "UNDERHOST_"
_SERVICE_LINK = re.compile(r"UNDERHOST_([A-Z0-9_]+_)?(SERVICE_HOST|SERVICE_PORT|PORT)(_|$)")
"""What Kubernetes puts into a container for Services named `underhost…` in its namespace: no settings of ours."""
_LISTS = {"files", "clusters", "aliases", "hosts", "severities", "owners", "schedulers", "except_namespaces"}
CAPV_HOST_KEY = "node.cluster.x-k8s.io/esxi-host"

if TYPE_CHECKING:
    SeverityName: TypeAlias = str
    RepairableName: TypeAlias = str
else:  # what the table holds: a type checker cannot read it, pydantic can
    SeverityName, RepairableName = Literal[SEVERITIES], Literal[REPAIRABLE]


def _label_key(key: str) -> str:
    if not re.fullmatch(_KEY, key) or len(key) > 317:
        raise ValueError("not the key of a label: [PREFIX/]NAME is expected")
    return key


class KubernetesSettings(Group):
    """The Kubernetes cluster of the site: a live one, dumps in files, or the simulated one."""

    kubeconfig: Path | None = None
    context: str | None = None
    files: tuple[Path, ...] = ()
    simulated: str | None = None


class VSphereSettings(Group):
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


_PART = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_KEY = rf"({_PART}(\.{_PART})*/)?[A-Za-z0-9]([-_.A-Za-z0-9]{{0,61}}[A-Za-z0-9])?"
LabelKey = Annotated[str, AfterValidator(_label_key)]
"""The key of a label or taint, as the API server takes it."""


class DerivedLabel(Group):
    """A further node label taken from the host.

    `from` names the entry of the host's labels: `folder`, `datacenter`, `attribute:NAME` or `tag:CATEGORY`.
    """

    key: LabelKey
    source: str = Field(alias="from", min_length=1)


class HostLabelSettings(Group):
    """The node label that carries the physical host."""

    key: LabelKey = CAPV_HOST_KEY
    mode: Literal["own", "observe", "auto"] = "auto"
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


class DrsRuleSettings(Group):
    """How DRS rules are written."""

    mandatory: bool = False
    """Must instead of should: vCenter then refuses to start a VM, after a host failure too, where it breaks a rule."""
    edits_per_minute: int = Field(default=2, ge=1)
    """Rules changed in a vSphere cluster in one minute: each may move VMs."""


class SinkSettings(Group):
    """Which sinks may write; every other one is a dry run."""

    labels: bool = False
    bindings: bool = False
    drs_rules: bool = False
    evictions: bool = False
    events: bool = False
    """Kubernetes Events on pods and nodes for findings and what is done about them. What becomes of the binder's pods
    is told where `bindings` is true, too."""


class LimitSettings(Group):
    """Writes of each kind in any minute, of the whole site, at most: a fence against what nobody has thought of."""

    labels: int = Field(default=6000, ge=1)
    bindings: int = Field(default=30_000, ge=1)
    events: int = Field(default=3000, ge=1)
    drs_rules: int = Field(default=20, ge=1)
    evictions: int = Field(default=20, ge=1)


class EvictionSettings(Group):
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


class WebSettings(Group):
    """The HTTP listener."""

    listen: str = "127.0.0.1:8080"
    hosts: tuple[str, ...] = ()
    """Public names that the page is called by; addresses, names without a dot and a cluster's own are always served."""


def public(url: str) -> str:
    """Where a URL leads, without what in it may be a secret: user and password, path and query.

    Who knows the whole URL of a chat's webhook may write there.
    """
    parts = urlsplit(url)
    rest = "/…" if parts.path.strip("/") or parts.query else ""
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{rest}"


class WebhookSettings(Group):
    """A URL that is called for every change of a finding, with a CloudEvent."""

    url: str = Field(pattern=r"^https?://")
    severity: SeverityName = LEAST
    """Only findings of this severity and above."""
    headers_file: Path | None = None
    """Lines of `Name: value`, a token among them; read again at every call."""


class AlertingSettings(Group):
    """Who is alerted to findings; nobody unless given."""

    alertmanagers: tuple[Annotated[str, Field(pattern=r"^https?://")], ...] = ()
    severity: SeverityName = CO_LOCATED
    """Alertmanagers are told of findings of this severity and above."""
    repeat: float = Field(default=60.0, gt=0)
    """Seconds between repetitions. An alert that is not repeated for four of them counts as resolved."""
    headers_file: Path | None = None
    link: str = ""
    """Where people reach the page, for links in alerts: `https://underhost.example`."""
    runbooks: str = "docs/runbooks"
    """Where docs/runbooks can be read, for links in alerts."""
    webhooks: tuple[WebhookSettings, ...] = ()


class Settings(Group):
    """Everything a worker needs to know, read once at its start."""

    api_version: Literal["underhost/v1"] = "underhost/v1"
    kind: Literal["Config"] = "Config"
    site: str = Field(default="default", pattern=r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$")
    kafka: KafkaSettings = KafkaSettings()
    kubernetes: KubernetesSettings = KubernetesSettings()
    vsphere: VSphereSettings = VSphereSettings()
    host_label: HostLabelSettings = HostLabelSettings()
    physical_host: Literal["preferred", "required"] = "preferred"
    sinks: SinkSettings = SinkSettings()
    drs_rules: DrsRuleSettings = DrsRuleSettings()
    evictions: EvictionSettings = EvictionSettings()
    limits: LimitSettings = LimitSettings()
    web: WebSettings = WebSettings()
    alerting: AlertingSettings = AlertingSettings()


def load(
    path: Path | None = None, flags: Mapping[str, Any] | None = None, environ: Mapping[str, str] | None = None
) -> Settings:
    """The settings of file, environment and flags, each overriding the one before.

    `flags` is nested like the model, in snake_case, without the flags that were not given.
    Raises InputError that names every fault by its place.
    """
    tree: dict[str, Any] = {}
    if path is not None:
        _merge(tree, _camel_keys(_read(path)))
    _merge(tree, _camel_keys(_from_environment(os.environ if environ is None else environ)))
    _merge(tree, _camel_keys(dict(flags or {})))
    try:
        return Settings.model_validate(tree)
    except ValidationError as error:
        where = str(path) if path is not None else "configuration"
        raise InputError(*(fault(where, dict(item), Settings) for item in error.errors())) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {getattr(error, 'strerror', None) or error}") from error
    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML: {' '.join(str(error).split())}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a mapping is expected, this is a {type(tree).__name__}")
    return tree


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    """`UNDERHOST_A_B__C_D=v` as {a_b: {c_d: v}}; lists are split at commas."""
    tree: dict[str, Any] = {}
    for name in sorted(environ):
        if not name.startswith(ENV_PREFIX) or _SERVICE_LINK.match(name):
            continue
        parts = name[len(ENV_PREFIX) :].lower().split("__")
        here = tree
        for part in parts[:-1]:
            here = here.setdefault(part, {})
        value: Any = environ[name]
        if parts[-1] in _LISTS:
            value = [item for item in value.split(",") if item]
        here[parts[-1]] = value
    return tree


def _camel_keys(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {to_camel(key) if "_" in str(key) else key: _camel_keys(value) for key, value in tree.items()}
    return tree


def _merge(into: dict[str, Any], tree: Mapping[str, Any]) -> None:
    for key, value in tree.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
