"""Leases as an API server keeps them, without one: versions, conflicts, and answers that are to fail."""

from dataclasses import dataclass, field

from underhost.schemas.errors import Conflict, UnderhostError
from underhost.streams.kubernetes.leases import Lease


@dataclass
class FakeLeases:
    """Implements `LeaseApi`. While `fails` is set every call raises it; `asked` and `written` are the calls made."""

    held: dict[str, Lease] = field(default_factory=dict)
    fails: UnderhostError | None = None
    asked: list[str] = field(default_factory=list)
    written: list[tuple[str, Lease]] = field(default_factory=list)
    version: int = 0

    async def get(self, name: str) -> Lease | None:
        """See `LeaseApi`."""
        self.asked.append(name)
        self._fail()
        return self.held.get(name)

    async def put(self, name: str, lease: Lease) -> Lease:
        """See `LeaseApi`."""
        self._fail()
        return self.write(name, lease)

    def write(self, name: str, lease: Lease) -> Lease:
        """As `put`, by whoever."""
        there = self.held.get(name)
        if there is not None and there.version != lease.version:
            raise Conflict(name)  # where there is none it is created, whatever version it names: a real server does
        self.version += 1
        self.held[name] = lease._replace(version=str(self.version))
        self.written.append((name, self.held[name]))
        return self.held[name]

    def give(self, name: str, holder: str, *, seconds: int = 15) -> None:
        """Another worker takes the lease, or changes its own, as if it had the right to."""
        there = self.held.get(name, Lease("", 0, seconds))
        self.write(name, there._replace(holder=holder, term=there.term + (holder != there.holder), seconds=seconds))

    def _fail(self) -> None:
        if self.fails is not None:
            raise self.fails
