"""Each tenant's share of a cluster's DRS rules: whose a rule is, and which are left out.

In: the rules of one vSphere cluster, named after the applications they are for (`cover.py`). Out: those within the
shares, and who asked for more. A namespace has no dot in its name, so that a rule's label tells it.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from underhost.agents.drs.names import label_of, rule_name
from underhost.schemas.shares import Capped, Shares
from underhost.schemas.vsphere import DrsRule

TOGETHER, QUORUM_RULE = ".together", ".quorum"
"""How labels of rules end that are not for a separation."""
_NUMBER = re.compile(r"\.\d+$")


class LeftOut(NamedTuple):
    """Rules that are not made: in which cluster, a name of a rule for all of them, and whose they are."""

    cluster: str
    rule: str
    capped: Capped


class Tenant(NamedTuple):
    """Whose a rule is."""

    namespace: str
    owner: str


def tenant_of(site: str, name: str) -> Tenant:
    """Whose a rule of the site is, by its name; a namespace that was cut stands for all that begin like it."""
    namespace, _, owner = label_of(site, name).partition(".")
    return Tenant(namespace.partition("~")[0], _NUMBER.sub("", owner).removesuffix(TOGETHER).removesuffix(QUORUM_RULE))


class OwnedRule(NamedTuple):
    """A rule, and whose it is."""

    rule: DrsRule
    tenant: Tenant


def owned(site: str, rules: Iterable[DrsRule]) -> list[OwnedRule]:
    """Whose each rule is."""
    return [OwnedRule(rule, tenant_of(site, rule.name)) for rule in rules]


def within_shares(site: str, rules: Sequence[OwnedRule], shares: Shares) -> tuple[list[DrsRule], list[LeftOut]]:
    """The rules of a cluster that are made, in their order: of each owner and namespace the first ones."""
    left: list[LeftOut] = []
    of_owner = shares.of_owner(shares.drs_rules)
    if max(Counter(one.tenant.namespace for one in rules).values(), default=0) > of_owner:
        for most, whose in ((of_owner, lambda one: one), (shares.drs_rules, lambda one: one._replace(owner=""))):
            rules = list(_first(site, rules, most, whose, left))
    return [one.rule for one in rules], left


def _first(
    site: str, rules: Iterable[OwnedRule], most: int, whose: Callable[[Tenant], Tenant], left: list[LeftOut]
) -> Iterable[OwnedRule]:
    counts: Counter[Tenant] = Counter()
    for one in rules:
        rule, tenant = one.rule, whose(one.tenant)
        counts[tenant] += 1
        if counts[tenant] <= most:
            yield one
        elif counts[tenant] == most + 1:
            # The same words however many more come: what changes all the time would be told all the time.
            told = f"of the DRS rules that it asks for in vSphere cluster {rule.cluster} the first {most} are made"
            name = rule_name(site, f"{tenant.namespace}.{tenant.owner}.share")
            left.append(LeftOut(rule.cluster, name, Capped("drsRules", *tenant, told)))
