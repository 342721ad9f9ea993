"""The worker's metrics, in a registry of their own.

No label holds a name out of a cluster (a pod, a node): the number of series stays bounded.
"""

from collections import Counter as Count

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from underhost.agents.pipeline.decisions import Decisions
from underhost.schemas.records import Outcome
from underhost.schemas.severities import SEVERITIES

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """What a worker counts."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.evaluations = Histogram(
            "underhost_evaluation_seconds", "Time of one evaluation.", ["site"], buckets=BUCKETS, registry=self.registry
        )
        self.findings = Gauge("underhost_findings", "Open findings.", ["site", "severity"], registry=self.registry)
        self.objects = Gauge("underhost_objects", "Objects of a site.", ["site", "topic"], registry=self.registry)
        self.ready = Gauge("underhost_site_ready", "1 when the site is decided for.", ["site"], registry=self.registry)
        self.age = Gauge(
            "underhost_picture_age_seconds",
            "Seconds since the newest record that the picture of a site is made from.",
            ["site"],
            registry=self.registry,
        )
        self.lag = Gauge(
            "underhost_consumer_lag_records",
            "Records of a topic that are not dealt with yet, in the partitions held here.",
            ["topic"],
            registry=self.registry,
        )
        self.silence = Gauge(
            "underhost_source_silence_seconds",
            "Seconds since a source last heard from its server, of anything.",
            ["source"],
            registry=self.registry,
        )
        self.published = Counter(
            "underhost_records_published", "Records published by the agents.", ["topic"], registry=self.registry
        )
        self.dead_letters = Counter(
            "underhost_dead_letters", "Records that could not be processed.", ["stage"], registry=self.registry
        )
        self.outcomes = Counter(
            "underhost_outcomes", "Commands by what became of them.", ["kind", "result"], registry=self.registry
        )
        self.alerts = Counter(
            "underhost_alert_messages",
            "Messages to those who are alerted: sent, refused, failed (and repeated), dropped.",
            ["receiver", "result"],
            registry=self.registry,
        )
        self.sources = Counter(
            "underhost_source_records", "Records published by the watchers.", ["source"], registry=self.registry
        )
        self.doubts = Gauge(
            "underhost_source_doubted",
            "1 while a source is stale, or does not believe what it lists.",
            ["source", "why"],
            registry=self.registry,
        )
        self.stopped = Gauge(
            "underhost_writes_stopped",
            "1 while nothing is written (shrunk), or nothing that rests on hosts (stale).",
            ["site", "why"],
            registry=self.registry,
        )
        self.restarts = Counter(
            "underhost_source_restarts", "Watchers started again after a fault.", ["source"], registry=self.registry
        )

    def decided(self, site: str, decisions: Decisions, seconds: float) -> None:
        """One evaluation is published."""
        self.evaluations.labels(site).observe(seconds)
        if decisions.findings is not None:
            now = Count(finding.severity for finding in decisions.findings.open.values())
            for severity in SEVERITIES:
                self.findings.labels(site, severity).set(now.get(severity, 0))

    def alerted(self, receiver: str, result: str) -> None:
        """A message to someone who is alerted was sent, or was not."""
        self.alerts.labels(receiver, result).inc()

    def answered(self, outcome: Outcome) -> None:
        """A sink has answered a command."""
        self.outcomes.labels(outcome.kind, outcome.result).inc()
