"""vSphere objects as they travel and as the inventory file holds them (docs: the inventory list is one of these)."""

from msgspec import Struct, field

HOST_STATES = CONNECTED, MAINTENANCE, DISCONNECTED = ("connected", "maintenance", "disconnected")
"""Only a connected host takes VMs; of a disconnected one vCenter hears nothing."""


class _VSphereObject(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Base: frozen, camelCase on the wire, defaults left out."""


class Host(_VSphereObject, frozen=True):
    """An ESXi host. `id` is its moref (`host-12`); `state` is connected, maintenance or disconnected.

    `datastores` and `networks` are the morefs (or names) of those that it reaches; where none is named, nobody knows.
    """

    name: str
    id: str = ""
    cluster: str = ""
    state: str = CONNECTED
    cpu_mhz: int = 0
    memory_mib: int = field(default=0, name="memoryMiB")
    labels: dict[str, str] = {}
    datastores: list[str] = []
    networks: list[str] = []
    uid: str = ""
    resource_version: str = ""

    @property
    def ref(self) -> str:
        """What VMs name it by: the moref, or the name where a hand-written inventory has no ids."""
        return self.id or self.name


class Vm(_VSphereObject, frozen=True):
    """A virtual machine. `host` is the moref (or name) of the host it runs on, "" while unknown; `power` is on or off.

    `uuid` is the BIOS uuid (config.uuid), lower case with dashes. `reserved_mib` is the memory that is reserved for it.
    `datastores` and `networks` are those that it uses, as hosts name them; `pinned` says which device of its host it
    cannot leave.
    """

    name: str
    id: str = ""
    uuid: str = ""
    host: str = ""
    hostname: str = ""
    cpus: int = 0
    memory_mib: int = field(default=0, name="memoryMiB")
    power: str = "on"
    reserved_mib: int = field(default=0, name="reservedMiB")
    datastores: list[str] = []
    networks: list[str] = []
    pinned: str = ""
    uid: str = ""
    resource_version: str = ""

    @property
    def ref(self) -> str:
        """The moref, or the name where a hand-written inventory has no ids."""
        return self.id or self.name


class DrsRule(_VSphereObject, frozen=True):
    """A DRS rule of one vSphere cluster. `vms` are morefs, sorted; `key` is the server's, 0 before it is written.

    `type` is anti-affinity, affinity, vm-host (`vms` run on `hosts` alone) or other. Only VM-VM rules are ever written.
    """

    name: str
    type: str
    vms: list[str] = []
    hosts: list[str] = []
    enabled: bool = True
    mandatory: bool = False
    cluster: str = ""
    key: int = 0
    uid: str = ""
    resource_version: str = ""


ANTI_AFFINITY, AFFINITY, VM_HOST, OTHER = RULE_TYPES = ("anti-affinity", "affinity", "vm-host", "other")
"""The types of rules: VMs apart, VMs together, VMs on hosts, and whatever else vSphere knows."""
VM_RULES = (ANTI_AFFINITY, AFFINITY)
"""Those between VMs: only such may be ours."""

FULLY_AUTOMATED, PARTIALLY_AUTOMATED, MANUAL, DISABLED = "fullyAutomated", "partiallyAutomated", "manual", "disabled"
AUTOMATION = (FULLY_AUTOMATED, PARTIALLY_AUTOMATED, MANUAL)
"""What DRS may do by itself in a cluster; for one VM it may be `disabled` as well."""


class Admission(_VSphereObject, frozen=True):
    """What HA's admission control keeps free for the failure of hosts.

    One of these: room for the failure of so many `hosts`, shares of the cluster's memory and CPU, or `failover_hosts`
    (morefs), which run nothing as long as no host has failed.
    """

    hosts: int = 0
    memory_percent: int = 0
    cpu_percent: int = 0
    failover_hosts: list[str] = []


class Cluster(_VSphereObject, frozen=True):
    """A vSphere cluster, with its rules in an inventory file; in a topic the rules are records of their own.

    `automation` is what DRS may do in it by itself; `overrides`, by VM, where it is something else for one. `admission`
    is None where HA's admission control is off, or is not known.
    """

    name: str
    id: str = ""
    drs: bool = True
    ha: bool = True
    automation: str = FULLY_AUTOMATED
    overrides: dict[str, str] = {}
    admission: Admission | None = None
    rules: list[DrsRule] = []
    uid: str = ""
    resource_version: str = ""


class Inventory(_VSphereObject, frozen=True):
    """What `underhost inventory` writes and `--inventory` reads."""

    kind: str = "Inventory"
    api_version: str = "underhost/v1"
    hosts: list[Host] = []
    vms: list[Vm] = []
    clusters: list[Cluster] = []
