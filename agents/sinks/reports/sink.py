"""Reports: the write of one, the removal of one, and a look at all that are ours.

In: `report` commands, which this worker has decided itself. Out: objects of openreports.io by server-side apply as the
field manager `underhost`, and outcomes. What has the content already is not written again: what is there is listed
once, and again with each look at all, and where there is one that we do not know. An object of that name that does not
carry our label is left alone.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

import msgspec

from underhost.agents.sinks.orders import APPLIED, FAILED, NOOP, REFUSED, answer, desired_of
from underhost.agents.sinks.ports import HeldReport, ReportWriter, Sink
from underhost.agents.sinks.reports.contents import DIGEST, SITE_LABEL
from underhost.agents.sinks.reports.decider import SWEEPS
from underhost.schemas.commands import REPORT
from underhost.schemas.errors import Gone
from underhost.schemas.records import Action, Outcome

ABSENT = "no reports are served: install the CRDs of openreports.io"


class _Wanted(msgspec.Struct):
    """`report` is the whole object, null where it is to go; `keep`, of a look at all, the digests by `NAMESPACE/NAME`.

    "" is the digest of what may be under way.
    """

    report: dict[str, Any] | None = None
    keep: dict[str, str] | None = None


class ReportSink(Sink):
    """Writes the reports of one site."""

    kind = REPORT

    def __init__(self, writer: ReportWriter, site: str) -> None:
        self._writer, self._site = writer, site
        self._held: dict[str, HeldReport] | None = None
        self._listing = asyncio.Lock()

    async def apply(self, action: Action) -> Outcome:
        """Write what differs, and say what happened."""
        return await answer(action, self._carry_out(action))

    async def _carry_out(self, action: Action) -> tuple[str, str]:
        wanted = desired_of(action, _Wanted, "a report command")
        if wanted.keep is not None and action.target == f"{SWEEPS}{self._site}":
            return await self._sweep(wanted.keep)
        key = action.target.partition("/")[2]
        held = await self._known()
        return await (self._remove(held, key) if wanted.report is None else self._write(held, key, wanted.report))

    async def _write(self, held: dict[str, HeldReport], key: str, report: Mapping[str, Any]) -> tuple[str, str]:
        namespace, _, name = key.partition("/")
        digest, count = report["metadata"]["annotations"][DIGEST], report["summary"]["fail"]
        if key not in held and await self._writer.has_report(namespace, name):
            self._held = None
            held = await self._known()
            if key not in held:  # else a write of ours that got no answer has made it
                return REFUSED, f"{name} is somebody else's"
        if key in held and held[key].digest == digest:
            return NOOP, f"{name} says so already"
        uid = await self._writer.apply_report(namespace, name, report)
        held[key] = HeldReport(uid, digest)
        return APPLIED, f"{name} tells of {count} {'finding' if count == 1 else 'findings'}"

    async def _remove(self, held: dict[str, HeldReport], key: str) -> tuple[str, str]:
        namespace, _, name = key.partition("/")
        there = held.get(key)
        if there is None:
            return NOOP, f"{name} is not there"
        try:
            await self._writer.delete_report(namespace, name, there.uid)
        except Gone:
            held.pop(key, None)
            return NOOP, f"{name} was gone already"
        held.pop(key, None)
        return APPLIED, f"{name} is removed: its findings are resolved"

    async def _sweep(self, keep: Mapping[str, str]) -> tuple[str, str]:
        self._held = None
        held = await self._known()
        gone = [key for key in held if key not in keep]
        for key in gone:
            await self._remove(held, key)
        differing = [key for key, digest in keep.items() if digest and (key not in held or held[key].digest != digest)]
        if differing:
            one = len(differing) == 1
            return (
                FAILED,
                f"{len(differing)} {'report is not as it was' if one else 'reports are not as they were'} written",
            )
        return (
            (APPLIED, f"{len(gone)} reports that nobody needs are removed")
            if gone
            else (NOOP, "all are as they should be")
        )

    async def _known(self) -> dict[str, HeldReport]:
        """Our reports by `NAMESPACE/NAME`."""
        async with self._listing:
            if self._held is None:
                try:
                    self._held = await self._writer.reports(SITE_LABEL, self._site, DIGEST)
                except Gone:
                    raise Gone(ABSENT) from None
            return self._held
