"""The self-check: now and then, one site's kept findings are compared with a full evaluation of the same snapshot.

In: the newest decisions of the sites that are held. Out: nothing as long as both agree. Where they differ: a metric, an
error in the log with the few objects that show it, these as files where a folder is configured, and an evaluator made
anew. The kept evaluator follows changes; a change that it followed wrongly would stay for as long as it runs.

It runs in a thread of the lowest priority. That thread computes what the first evaluation computes, and lets the event
loop have the interpreter as often.
"""

import asyncio
import logging
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from underhost.agents.pipeline.decide import reproduction
from underhost.agents.pipeline.decide.evaluator import PipelineEvaluator
from underhost.agents.pipeline.latest import LatestDecisions
from underhost.agents.pipeline.metrics import DIFFERENT, EQUAL, FAILED, Metrics
from underhost.agents.site.snapshot import Options, Snapshot
from underhost.agents.snapshots.dump import documents
from underhost.schemas.documents import Report
from underhost.streams.background import in_background
from underhost.streams.settings.self_check import SelfCheckSettings

log = logging.getLogger(__name__)

TOLD = 5
"""Findings and objects that the log names."""
KEPT = 20
"""Files that are kept in the folder; the oldest go."""


class SelfCheck:
    """Checks the sites in turn.

    `failure` tells why the last evaluation of a site came to nothing, `renew` has its evaluator made anew; `make` makes
    one for a reproduction.
    """

    def __init__(
        self,
        settings: SelfCheckSettings,
        options: Options,
        latest: LatestDecisions,
        metrics: Metrics,
        *,
        failure: Callable[[str], str | None],
        renew: Callable[[str], None],
        make: Callable[[Options], PipelineEvaluator],
    ) -> None:
        self._settings, self._options, self._latest, self._metrics = settings, options, latest, metrics
        self._failure, self._renew, self._make = failure, renew, make
        self._last = ""
        self._task: asyncio.Task[None] | None = None

    def start(self, ended: Callable[["asyncio.Task[None]"], None]) -> None:
        """Begin; nothing where the settings want no check. `ended` is called with the task once it has ended."""
        if self._settings.interval:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="self-check")
            self._task.add_done_callback(ended)

    async def stop(self) -> None:
        """End; what the thread computes then is of no interest."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._settings.interval)
            sites = self._latest.sites()
            if sites:
                self._last = next((site for site in sites if site > self._last), sites[0])
                await self.look(self._last)

    async def look(self, site: str) -> str | None:
        """Check one site; `equal`, `different` or `failed`, None where nothing is decided for it now."""
        for last in (False, True):  # a difference counts if the next look finds one, too: decisions may be new
            decided = self._latest.of(site)
            if decided is None or decided.report is None or self._failure(site) is not None:
                return None
            begun = time.monotonic()
            try:
                differing, full = await in_background(
                    partial(self._compare, decided.snapshot, decided.report), "self-check"
                )
            except Exception:
                log.exception("site %s: the self-check came to nothing", site)
                return self._count(site, FAILED)
            self._metrics.self_check_seconds.labels(site).set(time.monotonic() - begun)
            if not differing and decided.report.budgets == full.budgets:
                return self._count(site, EQUAL)
            if last:
                await self._tell(site, decided.snapshot, differing)
        self._renew(site)
        return self._count(site, DIFFERENT)

    def _count(self, site: str, result: str) -> str:
        self._metrics.self_checks.labels(site, result).inc()
        return result

    def _compare(self, snapshot: Snapshot, kept: Report) -> tuple[reproduction.Difference, Report]:
        full = self._full(snapshot)
        return reproduction.difference(kept, full), full

    def _full(self, snapshot: Snapshot) -> Report:
        from underhost.agents.evaluate.check import check  # heavy: see decide/evaluator.py

        return check(snapshot, self._options)

    def _follow(self, before: Snapshot, after: Snapshot) -> Report:
        evaluator = self._make(self._options)
        evaluator.update(before)
        return evaluator.update(after)

    async def _tell(self, site: str, snapshot: Snapshot, differing: reproduction.Difference) -> None:
        work = partial(reproduction.reproduce, snapshot, differing, self._follow, self._full)
        found = await in_background(work, "self-check")
        where = await asyncio.to_thread(self._write, site, found) if self._settings.folder is not None else ""
        log.error(
            "site %s: the self-check found a difference, the evaluator is made anew; lacking: %s; wrong: %s; %s: %s%s",
            site,
            _listed([f"{each.severity} {each.id} ({each.message})" for each in differing.lacks]),
            _listed([f"{each.severity} {each.id} ({each.message})" for each in differing.alone]),
            "it is shown by" if found.replays else "no single step shows it; it is about",
            _listed(found.objects),
            where,
        )

    def _write(self, site: str, found: reproduction.Reproduction) -> str:
        """Write both snapshots of the reproduction; where they are, for the log."""
        folder = self._settings.folder
        assert folder is not None
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for what, snapshot in (("before", found.before), ("after", found.after)):
                _write_file(folder / f"self-check-{site}-{stamp}-{what}.json", b"".join(documents(snapshot)))
            for old in sorted(folder.glob(f"self-check-{site}-*.json"))[:-KEPT]:
                old.unlink(missing_ok=True)
        except OSError as error:
            return f"; not written: {error}"
        return f"; written to {folder}/self-check-{site}-{stamp}-before.json and -after.json"


def _write_file(path: Path, data: bytes) -> None:
    """Names of pods and nodes are not for everybody."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(data)


def _listed(names: list[str]) -> str:
    more = [f"{len(names) - TOLD} more"] if len(names) > TOLD else []
    return ", ".join([*names[:TOLD], *more]) or "nothing"
