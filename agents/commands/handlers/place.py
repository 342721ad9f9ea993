"""`underhost topics --place SITE,…`: which sites lie in one partition, and what other counts of partitions would do.

In: names of sites, and `kafka.partitions`. Out: two tables or a document; nothing is asked of Kafka. Exit 0; 2 where no
site is named, or something that is none.

One worker runs all sites of a partition, so sites in one partition cannot be given to two. The count is chosen once: a
start against topics with another one is refused.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise

import typer

from underhost.agents.commands.input.options import Topics
from underhost.agents.commands.input.topics import settings_of
from underhost.agents.commands.output.columns import Table
from underhost.agents.commands.output.documents import show_tables, versioned
from underhost.schemas.errors import InputError
from underhost.streams.partition import partition_of
from underhost.streams.publish import SITE
from underhost.streams.settings.kafka import MOST_PARTITIONS

DOUBLED, FOR_EACH = 3, 2
"""How often the count is doubled in the answer at least; and on, until there are so many partitions for each site."""
Placed = dict[int, list[str]]
"""The sites of each partition that has any, in order."""


def handle(topic: str | None, sites: str, output: str, where: Topics) -> None:
    """Print the partition of each site, and how the sites would lie among more partitions. Raises InputError."""
    if topic is not None:
        raise InputError("--place is of all topics: leave TOPIC out")
    names = _names(sites)
    now = settings_of(where).kafka.partitions
    placed = {count: place(names, count) for count in _counts(names, now)}
    if output == "table":
        show_tables([_sites(names, placed[now]), _others(placed, now)])
        return
    content = {
        "partitions": now,
        "sites": [{"site": site, "partition": at, "with": near} for site, at, near in _rows(names, placed[now])],
        "counts": [{"partitions": count, "most": _most(of), "alone": _alone(of)} for count, of in placed.items()],
    }
    typer.echo(versioned("Places", content, output), nl=False)


def place(sites: Sequence[str], count: int) -> Placed:
    """The sites by partition, among so many partitions."""
    found: defaultdict[int, list[str]] = defaultdict(list)
    for site in sites:
        found[partition_of(site, count)].append(site)
    return dict(sorted(found.items()))


def _names(sites: str) -> list[str]:
    """The sites that are named, sorted. Raises InputError: a slip of the pen would be judged as a site more or less."""
    names = sorted(each.strip() for each in sites.split(","))
    if not any(names):
        raise InputError("--place: no site is named")
    for before, name in pairwise(["", *names]):
        if not name:
            raise InputError("--place: a name is empty")
        if not SITE.fullmatch(name):
            raise InputError(f"--place: {name!r} is no name of a site")
        if name == before:
            raise InputError(f"--place: {name} is named more than once")
    return names


def _counts(sites: Sequence[str], now: int) -> list[int]:
    """The count there is, the same doubled, and the least beyond it in which each site is alone, if there is one."""
    least = max(now << DOUBLED, FOR_EACH * len(sites))
    times = range(1, MOST_PARTITIONS.bit_length())
    doubled = [count for at in times if now << (at - 1) < least and (count := now << at) <= MOST_PARTITIONS]
    enough = next((count for count in range(now, MOST_PARTITIONS + 1) if len(place(sites, count)) == len(sites)), now)
    return sorted({now, *doubled, enough})


def _rows(sites: Sequence[str], placed: Placed) -> list[tuple[str, int, list[str]]]:
    """Each site, its partition, and who else is there."""
    at = {site: partition for partition, of in placed.items() for site in of}
    return [(site, at[site], [other for other in placed[at[site]] if other != site]) for site in sites]


def _most(placed: Placed) -> int:
    return max(map(len, placed.values()))


def _alone(placed: Placed) -> int:
    return sum(len(sites) == 1 for sites in placed.values())


def _sites(sites: Sequence[str], placed: Placed) -> Table:
    rows = [(site, str(at), ", ".join(near) or "-") for site, at, near in _rows(sites, placed)]
    return Table(("SITE", "PARTITION", "TOGETHER WITH"), rows)


def _others(placed: dict[int, Placed], now: int) -> Table:
    rows = [
        (f"{count} (configured)" if count == now else str(count), str(_most(of)), str(_alone(of)))
        for count, of in placed.items()
    ]
    return Table(("PARTITIONS", "MOST SITES IN ONE", "SITES ALONE"), rows)
