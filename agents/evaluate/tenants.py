"""Who asks for more than a share: findings of rule `Tenant`, which name the namespace and what was left out.

In: the classes of a site and whether any pod is of them; or what somebody else has capped. Out: findings.
"""

from collections.abc import Callable

from underhost.agents.compiled.classes import PodClass
from underhost.agents.evaluate import findings as f
from underhost.agents.evaluate.store import FindingStore
from underhost.schemas.records import Finding
from underhost.schemas.severities import UNSATISFIABLE
from underhost.schemas.shares import Capped, Shares

RULE = "Tenant"
REASON = "a tenant asks for more than its share"


class UncountedTerms:
    """Namespaces with pods whose terms do not all count."""

    def __init__(self, store: FindingStore, site: str, shares: Shares) -> None:
        self._store, self._site, self._most = store, site, shares.terms
        self._classes: list[PodClass] = []

    def add_class(self, cls: PodClass) -> None:
        """A class is new."""
        if cls.uncounted:
            self._classes.append(cls)

    def judge(self, is_used: Callable[[int], object]) -> None:
        """The findings; `is_used` tells whether any pod is of a class."""
        if self._classes:
            told = f"of a pod's terms between pods and spread constraints the first {self._most} count"
            names = sorted({cls.namespace for cls in self._classes if is_used(cls.id)})
            found = [tenant_finding(self._site, Capped("terms", name, "", told)) for name in names]
            self._store.put(("tenants",), found)


def tenant_finding(site: str, said: Capped) -> Finding:
    """The finding that says it."""
    return Finding(
        id=f.finding_id(site, UNSATISFIABLE, RULE, said.setting, said.owner, said.namespace),
        severity=UNSATISFIABLE,
        rule=RULE,
        reason=REASON,
        message=f"{said}." if said.owner else f"N{str(said)[1:]}.",
        object=f"Namespace/{said.namespace}",
    )
