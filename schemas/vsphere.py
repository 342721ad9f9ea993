"""vSphere objects as they travel and as the inventory file holds them (docs: the inventory list is one of these)."""

from msgspec import Struct, field


class _VSphereObject(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Base: frozen, camelCase on the wire, defaults left out."""


class Host(_VSphereObject, frozen=True):
    """An ESXi host. `id` is its moref (`host-12`); `state` is connected, maintenance or disconnected."""

    name: str
    id: str = ""
    cluster: str = ""
    state: str = "connected"
    cpu_mhz: int = 0
    memory_mib: int = field(default=0, name="memoryMiB")
    labels: dict[str, str] = {}
    uid: str = ""
    resource_version: str = ""

    @property
    def ref(self) -> str:
        """What VMs name it by: the moref, or the name where a hand-written inventory has no ids."""
        return self.id or self.name


class Vm(_VSphereObject, frozen=True):
    """A virtual machine. `host` is the moref (or name) of the host it runs on, "" while unknown; `power` is on or off.

    `uuid` is the BIOS uuid (config.uuid), lower case with dashes.
    """

    name: str
    id: str = ""
    uuid: str = ""
    host: str = ""
    hostname: str = ""
    cpus: int = 0
    memory_mib: int = field(default=0, name="memoryMiB")
    power: str = "on"
    uid: str = ""
    resource_version: str = ""

    @property
    def ref(self) -> str:
        """The moref, or the name where a hand-written inventory has no ids."""
        return self.id or self.name


class DrsRule(_VSphereObject, frozen=True):
    """A VM-VM rule of one vSphere cluster. `vms` are morefs, sorted; `key` is the server's, 0 before it is written.

    `type` is anti-affinity, affinity or other (a rule of a kind we never touch, VM-Host rules among them).
    """

    name: str
    type: str
    vms: list[str] = []
    enabled: bool = True
    mandatory: bool = False
    cluster: str = ""
    key: int = 0
    uid: str = ""
    resource_version: str = ""


class Cluster(_VSphereObject, frozen=True):
    """A vSphere cluster, with its rules in an inventory file; in a topic the rules are records of their own."""

    name: str
    id: str = ""
    drs: bool = True
    ha: bool = True
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
