"""The worker's metrics, in a registry of their own.

No label holds a name out of a cluster (a pod, a node): the number of series stays bounded.
"""

from collections import Counter as Count
from functools import cache, partial
from operator import attrgetter

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from underhost.agents.pipeline.decisions import Decisions
from underhost.schemas.records import Outcome
from underhost.schemas.severities import SEVERITIES

EQUAL, DIFFERENT, FAILED = "equal", "different", "failed"
"""Results of a self-check."""
_severity = attrgetter("severity")
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """What a worker counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, gauge = partial(Counter, registry=self.registry), partial(Gauge, registry=self.registry)
        self.evaluations = Histogram(
            "underhost_evaluation_seconds", "Time of one evaluation.", ["site"], buckets=BUCKETS, registry=self.registry
        )
        self.findings = gauge("underhost_findings", "Open findings.", ["site", "severity"])
        self.objects = gauge("underhost_objects", "Objects of a site.", ["site", "topic"])
        self.rows = gauge("underhost_table_rows", "Rows that a topic's table holds in this worker.", ["topic"])
        self.tasks = gauge("underhost_tasks", "Asynchronous tasks of the worker.")
        self.ready = gauge("underhost_site_ready", "1 when the site is decided for.", ["site"])
        text = "Seconds since the newest record that the picture of a site is made from."
        self.age = gauge("underhost_picture_age_seconds", text, ["site"])
        text = "Records of a topic that are not dealt with yet, in the partitions held here."
        self.lag = gauge("underhost_consumer_lag_records", text, ["topic"])
        text = "Seconds since a source last heard from its server, of anything."
        self.silence = gauge("underhost_source_silence_seconds", text, ["source"])
        self.published = counter("underhost_records_published", "Records published by the agents.", ["topic"])
        text = "Seconds that the oldest record which is not acknowledged has waited."
        self.unacknowledged = gauge("underhost_publish_wait_seconds", text)
        self.unpublishable = gauge("underhost_publishing_stopped", "1 while nothing can be published.")
        text = "Topics of Kafka that are other than they should be: lost or stopped with one broker, compacted early."
        self.topics = gauge("underhost_topics_deviating", text, ["why"])
        text = "1 where others may read or answer what is asked of this server: plain http, an unchecked certificate."
        self.insecure = gauge("underhost_insecure_connection", text, ["to"])
        self.dead_letters = counter("underhost_dead_letters", "Records that could not be processed.", ["stage"])
        text = "Records left out because newer ones came first, by what shows it: term, version or uid."
        self.late = counter("underhost_late_records", text, ["topic", "why"])
        self.outcomes = counter("underhost_outcomes", "Commands by what became of them.", ["kind", "result"])
        self._outcomes_of = cache(self.outcomes.labels)  # asked for each binding, among a few
        text = "Messages to those who are alerted: sent, refused, failed (and repeated), dropped."
        self.alerts = counter("underhost_alert_messages", text, ["receiver", "result"])
        self.sources = counter("underhost_source_records", "Records published by the watchers.", ["source"])
        text = "1 while a source is stale, or does not believe what it lists."
        self.doubts = gauge("underhost_source_doubted", text, ["source", "why"])
        text = "Seconds that the clock of the worker that watches is behind this worker's; negative: ahead of it."
        self.skew = gauge("underhost_source_clock_skew_seconds", text, ["site", "source"])
        text = "1 while writes stop: an inventory is not believed (shrunk), or data is too old (stale)."
        self.stopped = gauge("underhost_writes_stopped", text, ["site", "why"])
        text = "Writes of ours that no source has shown for over a minute."
        self.unseen = gauge("underhost_own_writes_unseen", text, ["site"])
        self.leases = gauge("underhost_lease_held", "1 while this worker holds the lease of a role.", ["role"])
        text = "Comparisons of the kept findings of a site with a full evaluation: equal, different, failed."
        self.self_checks = counter("underhost_self_check_results", text, ["site", "result"])
        self.self_check_seconds = gauge("underhost_self_check_seconds", "Time of the last comparison.", ["site"])
        self.restarts = counter("underhost_source_restarts", "Watchers started again after a fault.", ["source"])

    def decided(self, site: str, decisions: Decisions, seconds: float) -> None:
        """One evaluation is published."""
        self.evaluations.labels(site).observe(seconds)
        self.unseen.labels(site).set(decisions.unseen)
        for result in (EQUAL, DIFFERENT, FAILED):  # a series has to be there before its first increase
            self.self_checks.labels(site, result)
        if decisions.findings is not None:
            now = Count(map(_severity, decisions.findings.open.values()))
            for severity in SEVERITIES:
                self.findings.labels(site, severity).set(now.get(severity, 0))

    def refused(self, topic: str, why: str) -> None:
        """A late record of a topic was left out."""
        self.late.labels(topic, why).inc()

    def alerted(self, receiver: str, result: str) -> None:
        """A message to someone who is alerted was sent, or was not."""
        self.alerts.labels(receiver, result).inc()

    def answered(self, outcome: Outcome) -> None:
        """A sink has answered a command."""
        self._outcomes_of(outcome.kind, outcome.result).inc()
