"""Everybody who is alerted to findings: the Alertmanagers and webhooks of the settings, each with a task of its own.

In: the open findings as the tables hold them, then every record of `violations`. Out: what the receivers are sent. An
Alertmanager forgets what it is not told again, so it needs only what is open; a webhook is told of every change, and a
record is held until all webhooks have dealt with it: a pager is closed even if the worker was restarted meanwhile.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from msgspec import Struct

from underhost.agents.alerts.alertmanager import Alertmanager
from underhost.agents.alerts.shares import AlertShares
from underhost.agents.alerts.webhook import Done, Webhook
from underhost.agents.evaluate.findings import INVENTORY
from underhost.schemas.records import FindingEvent
from underhost.schemas.severities import at_or_above
from underhost.streams.authorities import trusted_by
from underhost.streams.settings.alerting import AlertingSettings

Counted = Callable[[str, str], None]
"""Is told (receiver: alertmanager or webhook, result)."""


class Alerting:
    """Not begun. `failed` is told of what a task raises, which is a bug. Raises InputError for a `caFile` of no use."""

    def __init__(
        self, settings: AlertingSettings, counted: Counted, failed: Callable[[BaseException], None], share: int
    ) -> None:
        """`share`: findings of one namespace that fire at a receiver at one time."""
        self._share = share
        self._managers_share = AlertShares(share)
        self._settings, self._counted, self._failed = settings, counted, failed
        self._trusted = _trusted("alerting.caFile", settings.ca_file)
        self._hooks_trust = [
            _trusted(f"alerting.webhooks.{number}.caFile", hook.ca_file)
            for number, hook in enumerate(settings.webhooks)
        ]
        self._managers: list[Alertmanager] = []
        self._webhooks: list[tuple[str, Webhook, AlertShares]] = []
        """Each with the severity from which on it is told; that writes stop it is always told."""
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, findings: Iterable[FindingEvent]) -> None:
        """The partitions are held; `findings` are those of the table."""
        settings = self._settings
        for url in settings.alertmanagers:
            manager = Alertmanager(
                url,
                repeat=settings.repeat,
                link=settings.link,
                runbooks=settings.runbooks,
                headers_file=settings.headers_file,
                counted=partial(self._counted, "alertmanager"),
                trusted=self._trusted,
            )
            self._managers.append(manager)
        for hook, trusted in zip(settings.webhooks, self._hooks_trust, strict=True):
            counted = partial(self._counted, "webhook")
            webhook = Webhook(hook.url, headers_file=hook.headers_file, counted=counted, trusted=trusted)
            self._webhooks.append((hook.severity, webhook, AlertShares(self._share)))
        for event in findings:
            self.observe(event.site, event)
            self.deliver(event, lambda: lambda: None)
        for running in [*(one.run() for one in self._managers), *(one.run() for _, one, _ in self._webhooks)]:
            task = asyncio.get_running_loop().create_task(running, name="alerting")
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    @property
    def delivers(self) -> bool:
        """Whether anybody has to be told of every single change."""
        return bool(self._settings.webhooks)

    def observe(self, site: str, record: Struct) -> None:
        """A live record of `violations`, for Alertmanagers; a `Watcher` of the tables."""
        if isinstance(record, FindingEvent) and _concerns(record, self._settings.severity):
            for event in self._managers_share.admit(record):
                for manager in self._managers:
                    manager.observe(event)

    def deliver(self, event: FindingEvent, hold: Callable[[], Done]) -> None:
        """A record of `violations`, for webhooks; each that is told holds it until it has dealt with it."""
        if not self._webhooks:
            hold()  # the partitions may move: their next owner reads it again
        for floor, webhook, share in self._webhooks:
            if not _concerns(event, floor):
                continue
            told = share.admit(event)
            if not told:
                hold()()  # it waits for its turn, and is open: a restart tells of it anew
            for one in told:
                webhook.observe(one, hold())

    async def stop(self) -> None:
        """The partitions may move: their next owner tells what is open."""
        tasks, self._tasks, self._managers, self._webhooks = self._tasks, [], [], []
        self._managers_share = AlertShares(self._share)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)


def _trusted(setting: str, ca_file: Path | None) -> ssl.SSLContext | None:
    return None if ca_file is None else trusted_by(setting, ca_file)


def _concerns(event: FindingEvent, floor: str) -> bool:
    return event.rule == INVENTORY or at_or_above(event.severity, floor)
