"""What deciders and sinks are, and what they need: real clients, the simulated site and fakes fit."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from underhost.agents.site.snapshot import Snapshot
from underhost.schemas.records import Action, Outcome, Placement
from underhost.schemas.shares import Capped
from underhost.schemas.vsphere import DrsRule
from underhost.streams.ports import LiveHost, LiveLabels, LiveVm, PodState


class KubernetesWriter(Protocol):
    """Writes to one Kubernetes cluster. Every method raises Gone, Conflict, Refused, Retry or Unreachable."""

    async def node_labels(self, node: str) -> tuple[str, dict[str, str], dict[str, str]]:
        """The live node: (uid, labels, field manager by label key).

        Of several managers of a label: one that is neither we nor a person before a person, and a person before us.
        """

    async def apply_node_labels(
        self, node: str, uid: str, labels: Mapping[str, str | None], *, force: bool = True
    ) -> None:
        """Make the node carry these labels (None removes one), as field manager `underhost`.

        Conflict: another uid; and, unless forced, a label that somebody else has set to another value.
        """

    async def node_taints(self, node: str) -> tuple[str, Sequence[Mapping[str, object]]]:
        """The live node: (uid, taints)."""

    async def replace_taints(
        self, node: str, uid: str, before: Sequence[Mapping[str, object]], after: Sequence[Mapping[str, object]]
    ) -> None:
        """Make this the whole list of taints. Conflict: it is not `before` any more, or the node is another one."""

    async def pod_node(self, namespace: str, name: str) -> tuple[str, str]:
        """The live pod: (uid, node name, "" while it is not bound)."""

    async def pod_scheduler(self, namespace: str, name: str) -> str:
        """`spec.schedulerName` of the live pod."""

    async def bind_pod(
        self, namespace: str, name: str, uid: str, node: str, labels: Mapping[str, str] | None = None
    ) -> None:
        """Bind the pod, with its uid as a precondition, and hand over labels. Conflict: bound already, or another uid.

        An API server before Kubernetes 1.35 drops the labels.
        """

    async def pod_labels(self, namespace: str, name: str) -> LiveLabels:
        """The live pod's labels."""

    async def merge_pod_labels(
        self, namespace: str, name: str, uid: str, version: str, labels: Mapping[str, str | None]
    ) -> None:
        """Set labels of the pod (None removes one). Conflict: it is not this version of this pod any more."""

    async def pod_end(self, namespace: str, name: str) -> tuple[str, bool]:
        """The live pod: (uid, whether it is being deleted)."""

    async def request_eviction(self, namespace: str, name: str, uid: str) -> None:
        """Ask the Eviction API to end the pod, with its uid as a precondition.

        Conflict: another uid. Retry: a disruption budget allows none now. Refused: several budgets cover the pod.
        """


class EventWriter(Protocol):
    """Tells people in one Kubernetes cluster. Every method raises Gone, Conflict, Refused, Retry or Unreachable."""

    async def create_event(self, namespace: str, event: Mapping[str, object]) -> None:
        """Create an events.k8s.io/v1 Event. Conflict: one of this name is there."""

    async def event(self, namespace: str, name: str, annotation: str) -> tuple[int, str]:
        """The live Event: (how often it was told, what it carries under the annotation)."""

    async def change_event(self, namespace: str, name: str, changes: Mapping[str, object]) -> None:
        """Merge the changes, in core/v1, into the Event. Gone: it is not there any more."""

    async def uid(self, kind: str, namespace: str, name: str) -> str:
        """The uid of a live Pod or Node."""

    async def pod_condition(self, namespace: str, name: str, type_: str) -> PodState:
        """The live pod and its condition of this type."""

    async def set_pod_condition(self, namespace: str, name: str, pod: PodState, condition: Mapping[str, str]) -> None:
        """Set one condition in the pod's status, if the pod is still as it was read; else Conflict."""


class HeldReport(NamedTuple):
    """A report that is there: its uid, and the digest of its content that it carries."""

    uid: str
    digest: str


class ReportWriter(Protocol):
    """Writes reports to one Kubernetes cluster; "" is the namespace of a ClusterReport.

    Every method raises Gone, Conflict, Refused, Retry or Unreachable.
    """

    async def reports(self, label: str, value: str, annotation: str) -> dict[str, HeldReport]:
        """All reports with this label, by `NAMESPACE/NAME`, the digest being under the annotation.

        Gone: the API serves none.
        """

    async def has_report(self, namespace: str, name: str) -> bool:
        """Whether there is one of this name, whoever's it is."""

    async def apply_report(self, namespace: str, name: str, report: Mapping[str, object]) -> str:
        """Make the report be this, by server-side apply as field manager `underhost`; its uid."""

    async def delete_report(self, namespace: str, name: str, uid: str) -> None:
        """Delete the report with this uid. Gone: it is not there; Conflict: it is another one."""


class DrsWriter(Protocol):
    """Edits the VM-VM rules of vSphere clusters. Methods raise as those of `VCenterTasks`."""

    async def rules(self, cluster: str) -> Sequence[DrsRule]:
        """Every rule of the cluster as the server holds it now (rules of other kinds have type `other`)."""

    async def add_rule(self, cluster: str, rule: DrsRule) -> None:
        """Add a rule, enabled. Conflict: the name is taken."""

    async def edit_rule(self, cluster: str, rule: DrsRule) -> None:
        """Change members or flags in place; `rule.key` names it. Gone: no such rule."""

    async def remove_rule(self, cluster: str, rule: DrsRule) -> None:
        """Remove the rule with this key."""


class VCenterTasks(Protocol):
    """What has been begun in one vCenter.

    Methods raise Gone, Refused, Conflict or Unreachable, and InputError where the password's file is gone.
    """

    async def is_done(self, task: str) -> bool:
        """Whether the task has ended well. Refused: it has failed."""


class VmMover(VCenterTasks, Protocol):
    """Moves VMs of one vCenter. Methods raise as those of `VCenterTasks`."""

    async def live_vm(self, vm: str) -> LiveVm:
        """The live VM. Gone: there is none."""

    async def relocate(self, vm: str, host: str) -> str:
        """Begin to move the VM to the host; the task."""


class HostMaintainer(VCenterTasks, Protocol):
    """Puts hosts of one vCenter into maintenance mode, and takes them out. Methods raise as those of `VCenterTasks`."""

    async def live_host(self, host: str) -> LiveHost:
        """The live host. Gone: there is none."""

    async def enter_maintenance(self, host: str, within: int) -> str:
        """Begin to put the host into maintenance mode; the task, which ends within so many seconds."""

    async def exit_maintenance(self, host: str, within: int) -> str:
        """Begin to take the host out of it; the task, which ends within so many seconds."""


@dataclass(frozen=True)
class Writers:
    """Who writes to the clusters of a site. Where one is missing, its sinks and deciders do not run in this worker."""

    kubernetes: KubernetesWriter | None = None
    drs: DrsWriter | None = None
    events: EventWriter | None = None
    reports: ReportWriter | None = None
    moves: VmMover | None = None
    maintenance: HostMaintainer | None = None


class PendingPods(Protocol):
    """The pods that the evaluator places.

    Attributes:
        waiting: every pod that the last evaluation found no node for, with the reasons that are published of it.
        seated: pods that were seen bound by an order of this run, oldest first; whoever reads them takes them away.
    """

    waiting: dict[str, Placement]
    seated: deque[Placement]

    def uid_of(self, pod: str) -> str | None:
        """The uid of the pod that a binding is under way for."""


class Decider(ABC):
    """Turns a snapshot into commands; level-triggered, so a lost command is ordered again.

    Attributes:
        kind: of its commands.
        due: when to ask it again though nothing has changed, monotonic seconds; None if nothing waits.
    """

    kind: str
    due: float | None = None

    @property
    def capped(self) -> Sequence[Capped]:
        """Who asked for more than a share, as far as no outcome says so."""
        return ()

    @property
    def hears(self) -> Collection[str]:
        """The kinds of commands whose outcomes it is told."""
        return (self.kind,)

    def wait_until(self, at: float) -> None:
        """Ask it again at this time, or earlier where something else is due; never for infinity."""
        if at < float("inf"):
            self.due = at if self.due is None else min(self.due, at)

    @abstractmethod
    def decide(self, snapshot: Snapshot, now: float) -> list[Action]:
        """The commands that are missing. `now` is monotonic seconds; pure but for the memory of what was ordered."""

    @abstractmethod
    def observe(self, outcome: Outcome, now: float) -> None:
        """What became of a command."""

    def stand_still(self, why: str, now: float) -> None:
        """It is not asked now, as nothing of its kind may be ordered; for who must not go on later as if nothing had
        been."""
        return


class Sink(ABC):
    """Carries out commands of one kind, each idempotent: it writes once, and says what happened."""

    kind: str

    @abstractmethod
    async def apply(self, action: Action) -> Outcome:
        """Never raises for what a cluster can answer: a refusal is an outcome with its reason."""

    async def again(self, action: Action) -> Outcome:
        """The same for a command that may have been carried out before a restart."""
        return await self.apply(action)

    async def told(self, action: Action) -> Outcome:
        """The same for a command of which this worker knows nothing but that a topic holds it.

        Another worker has decided it, or whoever could write there: the object itself has to bear it out.
        """
        return await self.again(action)
