"""The evaluator's tables as polars frames: the columns, types and meaning of each. Column names live only here.

In: nothing; this is data. Out: a `FrameSchema` for each table, which makes frames and refuses one that does not match.
The frames of a compiled site are made by `agents/evaluate/tables.py`, the N+1 table by
`agents/whatif/each.py`. docs/reference/frames.md is written from here.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from underhost.schemas.severities import SEVERITIES

if TYPE_CHECKING:
    import polars as pl


def use_one_thread() -> None:
    """Have polars and numpy work in one thread unless the environment says otherwise; to be called before their import.

    The frames are small: with 150,000 pods a second thread saves no time, but every thread keeps memory of its own
    (12 MiB for the second one), and polars would start one for each processor. Nothing here multiplies matrices, for
    which numpy would start as many, and have them wait in a loop.
    """
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@dataclass(frozen=True)
class Column:
    """A column. `type_name` is a polars type by its name, `List(String)` for a list; `optional`: it may hold nulls."""

    name: str
    type_name: str
    meaning: str
    optional: bool = False

    @property
    def polars_type(self) -> "pl.DataType | type[pl.DataType]":
        """The polars type itself."""
        import polars as pl  # 0.2 s: commands that print a usage message do not wait for it

        outer, _, inner = self.type_name.removesuffix(")").partition("(")
        found: type[pl.DataType] = getattr(pl, outer)
        return pl.List(getattr(pl, inner)) if inner else found


@dataclass(frozen=True)
class FrameSchema:
    """A table: its name, what a row is, and its columns in their order."""

    name: str
    meaning: str
    columns: tuple[Column, ...]

    @cached_property
    def polars_schema(self) -> "pl.Schema":
        """The columns as polars knows them."""
        import polars as pl  # as above

        return pl.Schema({column.name: column.polars_type for column in self.columns})

    def frame(self, columns: Mapping[str, Any]) -> "pl.DataFrame":
        """A frame of these columns. A numpy array of the column's type is not copied: it must not change afterwards.

        Raises ValueError where a column is missing, unknown, or holds a null that it must not hold.
        """
        import polars as pl  # as above

        if columns.keys() != self.polars_schema.keys():
            raise ValueError(f"{self.name}: columns {sorted(columns)}, not {sorted(self.polars_schema)}")
        return self.checked(pl.DataFrame(columns, schema=self.polars_schema))

    def rows(self, rows: Sequence[tuple[object, ...]]) -> "pl.DataFrame":
        """A frame of these rows. Raises ValueError as `frame` does."""
        import polars as pl  # as above

        return self.checked(pl.DataFrame(rows, schema=self.polars_schema, orient="row"))

    def checked(self, frame: "pl.DataFrame") -> "pl.DataFrame":
        """The frame itself. Raises ValueError that names every difference from this schema."""
        wanted, given = self.polars_schema, frame.schema
        faults = [f"column {name} is missing" for name in wanted if name not in given]
        faults += [f"column {name} is unknown" for name in given if name not in wanted]
        faults += [
            f"column {name} is {given[name]}, not {type_}"
            for name, type_ in wanted.items()
            if name in given and given[name] != type_
        ]
        faults += [
            f"column {column.name} holds nulls"
            for column in self.columns
            if not column.optional and column.name in given and frame[column.name].null_count()
        ]
        if not faults and list(given) != list(wanted):
            faults.append(f"columns are in the order {', '.join(given)}, not {', '.join(wanted)}")
        if faults:
            raise ValueError(f"{self.name}: {'; '.join(faults)}")
        return frame


NAME, CLASS, REQUEST, POD, NODE, HOST, VM = "name", "class", "request", "pod", "node", "host", "vm"
ID, CLUSTER, STATE, POWER, CPUS, CPU_MHZ, MEMORY_MIB = (
    "id",
    "cluster",
    "state",
    "power",
    "cpus",
    "cpu_mhz",
    "memory_mib",
)
UNSCHEDULABLE, CPU, MEMORY, STORAGE, MAX_PODS = "unschedulable", "cpu", "memory", "ephemeral_storage", "max_pods"
RULE, KEY, SEPARATION, OWNER, MATCH = "rule", "key", "separation", "owner", "match"
EXPECTED, CURRENT, DESIRED, ALLOWED = "expected", "current", "desired", "allowed"
SEVERITY, REASON, MESSAGE, PEERS, SOURCE, PODS_COUNT = "severity", "reason", "message", "peers", "source", "pods"
DOMAIN_KEY, DOMAIN_VALUE, OBJECT, FIELD = "domain_key", "domain_value", "object", "field"

TARGET, NODES_LOST, VM_MOVES, MOVES, PENDING = "target", "nodes", "vm_moves", "moves", "pending"

STRING, INTEGER, BOOLEAN, STRINGS = "String", "Int64", "Boolean", "List(String)"

PODS = FrameSchema(
    "pods",
    "A pod on a node of the site that has not finished.",
    (
        Column(NAME, STRING, "`namespace/name`"),
        Column(CLASS, INTEGER, "number of its class: pods of one class are equal for every rule"),
        Column(REQUEST, INTEGER, "number of its resource request"),
        Column(NODE, INTEGER, "row of its node in `nodes`"),
    ),
)
NODES = FrameSchema(
    "nodes",
    "A node, sorted by name.",
    (
        Column(NAME, STRING, "the node's name"),
        Column(UNSCHEDULABLE, BOOLEAN, "cordoned: `spec.unschedulable`"),
        Column(CPU, INTEGER, "allocatable CPU in thousandths of a core"),
        Column(MEMORY, INTEGER, "allocatable memory in bytes"),
        Column(STORAGE, INTEGER, "allocatable ephemeral storage in bytes"),
        Column(MAX_PODS, INTEGER, "allocatable number of pods"),
        Column(
            VM, STRING, "`id` of its virtual machine in `vms`; null where no VM was found for the node", optional=True
        ),
        Column(HOST, STRING, "`id` of the ESXi host below it in `hosts`; null while it is unknown", optional=True),
    ),
)
HOSTS = FrameSchema(
    "hosts",
    "An ESXi host of the inventory.",
    (
        Column(ID, STRING, "managed object id (`host-12`), or the name where an inventory has no ids"),
        Column(NAME, STRING, "the host's name"),
        Column(CLUSTER, STRING, "name of its vSphere cluster, or empty"),
        Column(STATE, STRING, "`connected`, `maintenance` or `disconnected`"),
        Column(CPU_MHZ, INTEGER, "CPU in MHz, 0 where it is unknown"),
        Column(MEMORY_MIB, INTEGER, "memory in MiB, 0 where it is unknown"),
    ),
)
VMS = FrameSchema(
    "vms",
    "A virtual machine of the inventory.",
    (
        Column(ID, STRING, "managed object id (`vm-7`), or the name where an inventory has no ids"),
        Column(NAME, STRING, "the VM's name"),
        Column(HOST, STRING, "`id` of the host it runs on in `hosts`, or empty while it is unknown"),
        Column(POWER, STRING, "`on` or `off`"),
        Column(CPUS, INTEGER, "number of virtual CPUs, 0 where it is unknown"),
        Column(MEMORY_MIB, INTEGER, "memory in MiB, 0 where it is unknown"),
    ),
)
SEPARATIONS = FrameSchema(
    "separations",
    "A class of pods in a separation: every owner must be apart from every other pod that matches.",
    (
        Column(SEPARATION, INTEGER, "number of the separation"),
        Column(RULE, STRING, "`InterPodAffinity` or `PodTopologySpread`"),
        Column(KEY, STRING, "the topology key whose values must differ"),
        Column(CLASS, INTEGER, "number of the class"),
        Column(OWNER, BOOLEAN, "its pods carry the term"),
        Column(MATCH, BOOLEAN, "the term selects its pods"),
    ),
)
BUDGETS = FrameSchema(
    "budgets",
    "A disruption budget with its figures as the disruption controller computes them, sorted by name.",
    (
        Column(NAME, STRING, "`namespace/name`"),
        Column(EXPECTED, INTEGER, "pods that it counts on"),
        Column(CURRENT, INTEGER, "healthy pods"),
        Column(DESIRED, INTEGER, "pods that must stay healthy"),
        Column(ALLOWED, INTEGER, "evictions that it allows now"),
    ),
)
FINDINGS = FrameSchema(
    "findings",
    "Something that is wrong now, worst first: what `underhost check -o json` lists, in the same order.",
    (
        Column(ID, STRING, "stable name of the finding"),
        Column(SEVERITY, STRING, "`violation` … `unknown-host`"),
        Column(RULE, STRING, "the rule that finds it"),
        Column(REASON, STRING, "which of the rule's reasons"),
        Column(MESSAGE, STRING, "one sentence for people"),
        Column(
            POD, STRING, "`namespace/name`, the smallest of the group; null where it is about no pod", optional=True
        ),
        Column(NODE, STRING, "name of the pod's node, or of the node it is about", optional=True),
        Column(PEERS, STRINGS, "the other pods of the group, sorted"),
        Column(DOMAIN_KEY, STRING, "key of the topology domain that the group shares", optional=True),
        Column(DOMAIN_VALUE, STRING, "value of that key", optional=True),
        Column(SOURCE, STRING, "the rule that the finding stems from, or the check of lint", optional=True),
        Column(PODS_COUNT, INTEGER, "how many pods of a node it counts", optional=True),
        Column(OBJECT, STRING, "`Kind/namespace/name`, where it is about an object", optional=True),
        Column(FIELD, STRING, "the object's field", optional=True),
    ),
)

TARGETS = FrameSchema(
    "targets",
    "A host or a node that fails alone, the worst first: `underhost fail --each host`, the N+1 table.",
    (
        Column(TARGET, STRING, "`host/NAME` or `node/NAME`"),
        Column(NODES_LOST, STRINGS, "the nodes on it, sorted"),
        Column(PODS_COUNT, INTEGER, "pods on these nodes, without DaemonSets' and mirror pods"),
        Column(VM_MOVES, INTEGER, "virtual machines that HA restarts, or cannot restart, elsewhere"),
        Column(MOVES, INTEGER, "pods that find another node"),
        Column(PENDING, INTEGER, "pods that stay pending"),
        *(Column(severity, INTEGER, f"new findings of severity `{severity}`") for severity in SEVERITIES),
    ),
)

PUBLISHED = (PODS, NODES, HOSTS, VMS, SEPARATIONS, BUDGETS, FINDINGS, TARGETS)
"""In the order of docs/reference/frames.md."""

# --------------------------------------------------------------------------------------------- the evaluator's own
ROW, DOMAIN, VALUE, COUNT = "row", "domain", "value", "count"
OWNERS, MATCHED, BOTH, LEAST, MOST = "owners", "matched", "both", "least", "most"

_ROW, _CODE = "UInt32", "Int32"  # half as wide as in the published tables: joins take 10 to 30 % less
_POD = Column(POD, _ROW, "row of the pod in `pods`")
_CLASS = Column(CLASS, _ROW, "number of its class")
_SEPARATION = Column(SEPARATION, _ROW, "number of the separation")
_DOMAIN = Column(DOMAIN, _CODE, "code of the topology domain")
_VALUE = Column(VALUE, _CODE, "code of the separation's own key, which is the domain where that key itself is judged")
_OWNER = Column(OWNER, BOOLEAN, "it carries the term")
_MATCH = Column(MATCH, BOOLEAN, "the term selects it")

PLACED = FrameSchema("placed", "A running pod in a topology domain.", (_POD, _CLASS, _DOMAIN, _VALUE))
SIDES = FrameSchema("sides", "A class in a separation.", (_SEPARATION, _CLASS, _OWNER, _MATCH))
MET = FrameSchema(
    "met",
    "A pod in a separation and domain that hold pods which the separation keeps apart.",
    (_SEPARATION, _DOMAIN, _VALUE, _POD, _OWNER, _MATCH),
)
