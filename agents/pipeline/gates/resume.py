"""A person's word that a doubted inventory is right: `underhost resume SITE`, as it reaches the workers.

In: commands of kind `resume` on `actions`, and letters in the embedded log's letter-box (the log itself is this
process's alone). Out: the site's sources accept what is missing; an outcome that says what was settled by that. Runs in
every worker that watches, beside the watchers; what is not running when the word is given does not hear it later. The
word lifts the strongest stop that there is, so it passes gates as a write does: its id is its content's, it is young, a
member of the group hears it, and not too often.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import aclosing
from datetime import datetime
from pathlib import Path

import msgspec

from underhost.agents.pipeline.gates.may_write import Gate, refusal
from underhost.agents.sinks.orders import APPLIED, DONE, NOOP, REFUSED, forged, order, outcome
from underhost.agents.site.objects import decode_record
from underhost.schemas.commands import RESUME
from underhost.schemas.errors import BackendError, BadEvent, Refused
from underhost.schemas.keys import site_of
from underhost.schemas.records import Action, Outcome
from underhost.schemas.topics import ACTIONS, OUTCOMES
from underhost.streams.derived import outgoing, rfc3339, target_key
from underhost.streams.embedded import inbox
from underhost.streams.ports import Outgoing, Publisher, Record, TopicReader
from underhost.streams.publish import publish_until_taken

log = logging.getLogger(__name__)

LOOK = 0.5
"""Seconds between two looks into the letter-box."""
HEARD = 1000
"""Commands that are remembered: each comes twice where it came as a letter."""
STANDS = 300.0
"""Seconds for which the word holds, by the clocks of both; an old record that is published again lifts nothing."""
PER_MINUTE = 6
"""Words that are heard in a minute."""
RETRY = 5.0
"""Seconds after which a broker that has gone is asked again."""


def word(site: str, because: str) -> Action:
    """The command. Each is one of its own: what is accepted is what is missing at that moment."""
    return order(RESUME, f"site/{site}", {"at": rfc3339(time.time())}, because, {})


def record_of(action: Action, site: str) -> Outgoing:
    """The command as a record of `actions`."""
    return outgoing(ACTIONS, target_key(site, action.target), action)


class Resumes:
    """Listens for one site. `accept` settles what the sources doubt and returns the lines; `gates` come before that.

    `log_file` is the embedded log, None where the topics are on Kafka. `ended` is called with the task once it has
    ended; `wall` is the time in seconds since 1970.
    """

    def __init__(
        self,
        site: str,
        accept: Callable[[], list[str]],
        reader: TopicReader,
        publisher: Publisher,
        log_file: Path | None,
        ended: Callable[["asyncio.Task[None]"], None],
        *,
        gates: Iterable[Gate],
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._site, self._accept, self._reader, self._publisher = site, accept, reader, publisher
        self._gates, self._wall = tuple(gates), wall
        self._log_file = log_file
        self._ended = ended
        self._task: asyncio.Task[None] | None = None
        self._heard: deque[str] = deque(maxlen=HEARD)

    def start(self) -> None:
        """Begin to listen."""
        self._task = asyncio.get_running_loop().create_task(self.run(), name="resumes")
        self._task.add_done_callback(self._ended)

    async def stop(self) -> None:
        """Listen no more."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow(), name="resume commands")
            if self._log_file is not None:
                tasks.create_task(self._empty_letter_box(self._log_file), name="resume letters")

    async def _follow(self) -> None:
        while True:
            try:
                async with aclosing(self._reader.follow([ACTIONS])) as records:
                    async for record in records:
                        await self._hear(record)
            except BackendError as error:
                log.warning("commands to resume are not heard: %s", error)
            await asyncio.sleep(RETRY)

    async def _hear(self, record: Record) -> None:
        if site_of((record.key or b"").decode("utf-8", "replace")) != self._site:
            return
        try:
            action = decode_record(ACTIONS, record.value)
        except BadEvent:
            return  # the agent of the sinks puts it into dead-letters
        if isinstance(action, Action):
            await self._carry_out(action)

    async def _empty_letter_box(self, log_file: Path) -> None:
        said = ""
        while True:
            try:
                letters = await asyncio.to_thread(inbox.collect, log_file)
            except Refused as error:
                letters = []
                if str(error) != said:
                    said = str(error)
                    log.error("letters to resume are not heard: %s", error)
            for letter in letters:
                try:
                    action = msgspec.json.decode(letter, type=Action)
                except msgspec.DecodeError as error:
                    log.warning("a letter in %s is no command: %s", inbox.folder_of(log_file), error)
                    continue
                if action.target == f"site/{self._site}" and action.kind == RESUME:
                    await self._publish(record_of(action, self._site))
                    await self._carry_out(action)
            await asyncio.sleep(LOOK)

    async def _carry_out(self, action: Action) -> None:
        if action.kind != RESUME or action.id in self._heard:
            return
        self._heard.append(action.id)
        answer = self._refused(action) or await refusal(self._gates, action) or self._settle(action)
        if answer.result not in DONE:
            log.error(
                "a word to go on with site %s is not followed (%s): %s", self._site, action.because, answer.reason
            )
        await self._publish(outgoing(OUTCOMES, target_key(self._site, action.target), answer))

    def _refused(self, action: Action) -> Outcome | None:
        """What is said of a word that nobody can have given just now."""
        if action.target != f"site/{self._site}":
            return outcome(action, REFUSED, f"it names {action.target}, and came for site {self._site}")
        if why := forged(action):
            return outcome(action, REFUSED, why)
        try:
            age = self._wall() - datetime.fromisoformat(str(action.desired.get("at"))).timestamp()
        except (ValueError, OverflowError):
            return outcome(action, REFUSED, "it does not say when it was given")
        if abs(age) > STANDS:
            return outcome(action, REFUSED, f"it was given {age:.0f} s ago by this worker's clock")
        return None

    def _settle(self, action: Action) -> Outcome:
        settled = self._accept()
        if settled:
            log.warning("site %s goes on, by hand (%s): %s", self._site, action.because, "; ".join(settled))
        return outcome(action, *((APPLIED, "; ".join(settled)) if settled else (NOOP, "it was not stopped")))

    async def _publish(self, record: Outgoing) -> None:
        await publish_until_taken(self._publisher, [record], record.topic.name)
