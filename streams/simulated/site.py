"""The simulated site: a Kubernetes cluster and the vSphere cluster below it, in memory, decided by a seed.

In: the name of a scenario, a seed, a clock; then what people and the sinks do to its clusters. Out: two sources that
publish what happens, and the writers. It holds nothing over a restart: a new site begins anew, and the topics are
reconciled with it.
"""

import random
from collections.abc import Sequence

from underhost.schemas.errors import InputError
from underhost.schemas.near import did_you_mean
from underhost.schemas.topics import KUBERNETES, VSPHERE
from underhost.streams.ports import Publisher, Source, TopicReader
from underhost.streams.simulated.controllers import Controllers
from underhost.streams.simulated.drs import Drs
from underhost.streams.simulated.events import SimulatedEvents
from underhost.streams.simulated.kubernetes import SimulatedKubernetes
from underhost.streams.simulated.scenarios import SCENARIOS
from underhost.streams.simulated.sources import SimulatedSource
from underhost.streams.simulated.timeline import Clock, Timeline
from underhost.streams.simulated.vsphere import SimulatedVSphere

AGE_OF_THE_CLUSTER = 3600.0
"""Seconds that the clusters' own pods have been running when somebody first looks."""


class SimulatedSite:
    """One site, alive while a source of it runs.

    Args:
        scenario: a name of SCENARIOS.
        seed: decides every generated name and uid.
        clock: the real time unless given.
        vmotion: seconds that a VM takes to move.
        drs_interval: seconds between two runs of DRS.

    Attributes:
        kubernetes: the API server; a KubernetesWriter. events: its Events; an EventWriter.
        vsphere: the vCenter; a DrsWriter.
        controllers: owners, scheduler, kubelets.
        drs: keeps the rules, as `drs_type` does.

    Raises InputError for an unknown scenario.
    """

    drs_type = Drs

    def __init__(
        self,
        scenario: str,
        *,
        seed: int = 0,
        clock: Clock | None = None,
        vmotion: float = 1.5,
        drs_interval: float = 5.0,
    ) -> None:
        if scenario not in SCENARIOS:
            known = ", ".join(sorted(SCENARIOS))
            meant = did_you_mean(scenario, SCENARIOS)
            raise InputError(f"no simulated site {scenario!r}; there is: {known}{meant}")
        self.scenario = SCENARIOS[scenario]
        source = random.Random(seed)
        self.timeline = Timeline(clock or Clock())
        self.kubernetes = SimulatedKubernetes(self.timeline, source)
        self.events = SimulatedEvents(self.kubernetes)
        self.controllers = Controllers(self.kubernetes, self.timeline, source)
        self.vsphere = SimulatedVSphere(self.timeline, self.scenario.vsphere_cluster, vmotion=vmotion)
        self.drs = self.drs_type(self.timeline, self.vsphere, source, interval=drs_interval)
        with self.timeline.at(self.timeline.now() - AGE_OF_THE_CLUSTER):
            self.scenario.system(self.kubernetes, self.controllers, self.vsphere, source)
        self.timeline.run_due()
        self.scenario.workload(self.kubernetes, self.controllers)
        self.drs.start()
        self.timeline.run_due()

    def sources(self, site: str, publisher: Publisher, reader: TopicReader) -> Sequence[Source]:
        """The watchers of both clusters, for the site's name in the topics."""
        stores = {KUBERNETES: self.kubernetes.store, VSPHERE: self.vsphere.store}
        return [SimulatedSource(name, site, store, self.timeline, publisher, reader) for name, store in stores.items()]
