"""Everybody who is alerted to findings: the Alertmanagers and webhooks of the settings, each with a task of its own.

In: the open findings as the tables hold them, then every live record of `violations`. Out: what the receivers are sent.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial

from msgspec import Struct

from underhost.agents.alerts.alertmanager import Alertmanager
from underhost.agents.alerts.webhook import Webhook
from underhost.agents.evaluate.findings import INVENTORY
from underhost.schemas.records import FindingEvent
from underhost.schemas.severities import at_or_above
from underhost.streams.settings.alerting import AlertingSettings

Counted = Callable[[str, str], None]
"""Is told (receiver: alertmanager or webhook, result)."""


class Alerting:
    """Not begun. `failed` is told of what a task raises, which is a bug."""

    def __init__(self, settings: AlertingSettings, counted: Counted, failed: Callable[[BaseException], None]) -> None:
        self._settings, self._counted, self._failed = settings, counted, failed
        self._receivers: list[tuple[str, Alertmanager | Webhook]] = []
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
            )
            self._receivers.append((settings.severity, manager))
        for hook in settings.webhooks:
            counted = partial(self._counted, "webhook")
            self._receivers.append((hook.severity, Webhook(hook.url, headers_file=hook.headers_file, counted=counted)))
        for event in findings:
            self._tell(event)
        for _, receiver in self._receivers:
            task = asyncio.get_running_loop().create_task(receiver.run(), name="alerting")
            task.add_done_callback(self._ended)
            self._tasks.append(task)

    def observe(self, site: str, record: Struct) -> None:
        """A live record of `violations`; implements `tables.Watcher`."""
        if isinstance(record, FindingEvent):
            self._tell(record)

    async def stop(self) -> None:
        """The partitions may move: their next owner tells what is open."""
        tasks, self._tasks, self._receivers = self._tasks, [], []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tell(self, event: FindingEvent) -> None:
        for floor, receiver in self._receivers:
            if event.rule == INVENTORY or at_or_above(event.severity, floor):
                receiver.observe(event)

    def _ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self._failed(error)
