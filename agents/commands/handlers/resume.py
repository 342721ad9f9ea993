"""`underhost resume SITE`: a person says that an inventory that shrank is right, and the site's writes go on.

In: the site. Out: a command to the workers that watch it, over Kafka or the embedded log's letter-box, and what they
answer. Exit 0 where they have resumed, or were not stopped; 3 where none answers, or where the word is refused.
"""

import asyncio
import getpass
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import typer

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.columns import clean
from underhost.agents.pipeline.gates.resume import record_of, word
from underhost.agents.sinks.orders import FAILURES
from underhost.schemas.errors import InputError, Refused, Unreachable
from underhost.schemas.records import Action, Outcome
from underhost.schemas.topics import OUTCOMES
from underhost.streams.embedded import inbox
from underhost.streams.kafka import connect as kafka
from underhost.streams.ports import TopicReader
from underhost.streams.publish import SITE, KafkaPublisher
from underhost.streams.reader import open_reader
from underhost.streams.settings.kafka import KafkaSettings

ANSWER_WITHIN = 10.0
"""Seconds in which a worker must have answered."""
OTHERS_WITHIN = 2.0
"""Seconds in which another worker may say more than the one that was not stopped."""


def handle(site: str, where: Topics) -> None:
    """Accept an inventory that shrank by more than 40 %, and let the site's writes go on."""
    if not SITE.fullmatch(site):
        raise InputError(f"{site!r} is no name of a site")
    settings = settings_of(where)
    typer.echo(asyncio.run(_resume(site, settings.kafka)), nl=False)


async def _resume(site: str, settings: KafkaSettings) -> str:
    action = word(site, f"underhost resume, by {_user()}")
    begun, answers = asyncio.Event(), asyncio.Queue[Outcome]()
    listening = asyncio.create_task(_listen(open_reader(settings), action.id, begun, answers))
    try:
        waiting = asyncio.ensure_future(begun.wait())
        await asyncio.wait([waiting, listening], return_when=asyncio.FIRST_COMPLETED)
        if listening.done():
            listening.result()
        async with _sent(action, site, settings):
            answer = await _first_answer(answers)
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
    if answer is None:
        raise Unreachable(f"no worker of site {site} answered within {ANSWER_WITHIN:.0f} s: it has to be running")
    if answer.result in FAILURES:
        raise Refused(f"site {site} does not go on: {answer.reason}")
    if answer.result != "applied":
        return f"Site {site} was not stopped.\n"
    return f"Site {site} goes on. Accepted:\n" + "".join(f"  {clean(line)}\n" for line in answer.reason.split("; "))


async def _listen(reader: TopicReader, id_: str, begun: asyncio.Event, answers: asyncio.Queue[Outcome]) -> None:
    async for record in reader.follow([OUTCOMES], begun=begun):
        if record.value is not None and id_.encode() in record.value:
            answers.put_nowait(msgspec.json.decode(record.value, type=Outcome))


async def _first_answer(answers: asyncio.Queue[Outcome]) -> Outcome | None:
    """The answer of a worker that was stopped, else of one that was not, else None."""
    answer: Outcome | None = None
    try:
        async with asyncio.timeout(ANSWER_WITHIN) as patience:
            while answer is None or answer.result != "applied":
                answer = await answers.get()
                patience.reschedule(asyncio.get_running_loop().time() + OTHERS_WITHIN)
    except TimeoutError:
        pass
    return answer


@asynccontextmanager
async def _sent(action: Action, site: str, settings: KafkaSettings) -> AsyncIterator[None]:
    """The command is on its way; a letter that nobody has collected is taken back."""
    record = record_of(action, site)
    if settings.bootstrap_servers:
        servers = settings.bootstrap_servers
        async with kafka.admin(settings) as admin:
            counts = await kafka.answered(servers, lambda: kafka.partition_counts(admin))
            partitions = counts.get(record.topic.name)
        if partitions is None:
            raise Unreachable(f"Kafka at {servers}: no topic {record.topic.name}; `underhost run` makes it")
        async with KafkaPublisher(settings, partitions) as publisher:
            await publisher.publish(record)
        yield
        return

    letter = inbox.post(settings.embedded, action.id, record.value or b"")
    try:
        yield
    finally:
        inbox.withdraw(letter)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "somebody"
