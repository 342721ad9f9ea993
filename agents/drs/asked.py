"""What each party of a site asks DRS for: what must be apart because of its pods, and what together.

In: the classes of a model, to which more may come. Out: separations and gatherings by party, and whom a new class
concerns. A party is a namespace, or, where terms act across namespaces, the site as a whole: what one asks for changes
nobody else's rules.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from underhost.agents.affinity.gathering import Gathering, gatherings
from underhost.agents.affinity.reach import ACT, TermReach
from underhost.agents.affinity.separation import Separation, SeparationId, separation_of, sides_of
from underhost.agents.compiled.classes import PodClass
from underhost.agents.compiled.model import Model
from underhost.agents.site.snapshot import Options


class AskedByParty:
    """What the classes of one model ask for; those that come are asked, and nobody else anew.

    Attributes:
        keys: the topologyKeys of all separations.
    """

    def __init__(self, model: Model, options: Options) -> None:
        self._model, self._options = model, options
        self._reach = TermReach(model.classes, options)
        self._ids: defaultdict[str, set[SeparationId]] = defaultdict(set)
        self._apart: dict[str, list[Separation]] = {}
        self._near: dict[str, list[Gathering]] = {}
        self._gathered: list[PodClass] = []
        self._known = 0
        self._concerned = set[int]()
        self.keys = set[str]()

    def party_of(self, namespace: str) -> str:
        """The party that a namespace is of."""
        return "" if self._options.cross_namespace == ACT else namespace

    def party_of_class(self, cls: int) -> str:
        """The party that the pods of a class are of."""
        return self.party_of(self._model.classes[cls].namespace)

    def concerns(self, cls: int) -> bool:
        """Whether pods of the class must be apart from some, or together with some."""
        return cls in self._concerned

    def apart(self, party: str) -> Sequence[Separation]:
        """What the party wants apart, sorted."""
        return self._apart.get(party, ())

    def near(self, party: str) -> Sequence[Gathering]:
        """What the party wants together, sorted."""
        return self._near.get(party, ())

    def learn(self) -> tuple[set[int], set[int]]:
        """Ask the classes that have come: (classes of which something else is asked now, those concerned anew)."""
        new = self._model.classes[self._known :]
        self._known += len(new)
        parties = set[str]()
        for cls in new:
            for side in sides_of(cls):
                party = self.party_of(side.namespace)
                self._ids[party].add(side.id)
                self.keys.add(side.key)
                parties.add(party)
        changed: set[Separation | Gathering] = set()
        for party in parties:
            changed.update(set(self._apart.get(party, ())).symmetric_difference(self._learn_apart(party)))
        changed.update(self._learn_near(new))
        classes = {cls for one in changed for cls in _classes_of(one)}
        fresh = classes - self._concerned
        self._concerned |= fresh
        return classes, fresh

    def _learn_apart(self, party: str) -> Sequence[Separation]:
        found = {separation_of(self._model.selectors, at) for at in self._ids[party]}
        self._apart[party] = self._reach.separations(one for one in found if one.matched)
        return self._apart[party]

    def _learn_near(self, new: Iterable[PodClass]) -> set[Gathering]:
        """What has changed in what must be together."""
        keys = self._options.host_keys
        self._gathered += [cls for cls in new if any(term.key in keys for term in cls.required_affinity)]
        if not self._gathered:
            return set()
        before = {one for near in self._near.values() for one in near}
        found: defaultdict[str, list[Gathering]] = defaultdict(list)
        for one in self._reach.gatherings(gatherings(self._gathered, keys)):
            found[self.party_of_class(one.owner)].append(one)
        self._near = found
        return before.symmetric_difference(one for near in found.values() for one in near)


def _classes_of(one: Separation | Gathering) -> Iterable[int]:
    return (*one.owners, *one.matched) if isinstance(one, Separation) else (one.owner, *one.matched)
