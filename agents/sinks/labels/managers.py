"""Whose a label is: the field managers that the API server names for it.

In: names out of `metadata.managedFields`. Out: whether one is a person's tool, and which of several decides. What is
written because of it is left to the sink.
"""

from collections.abc import Iterable

FIELD_MANAGER = "underhost"
"""Our own name."""
KUBECTL = "kubectl"
"""A person's tool: kubectl, and its verbs as `kubectl-label`, `kubectl-edit`, `kubectl-client-side-apply`.

Nothing else is known to be a person's: an in-house controller calls itself `python`, `curl`, `unknown` or
`openapi-generator`, whatever its client library makes of its name, and a label of its own is not ours to overwrite.
"""


def is_person(manager: str) -> bool:
    """Whether a person has set by hand what this field manager owns."""
    return manager == KUBECTL or manager.startswith(f"{KUBECTL}-")


def foremost(managers: Iterable[str]) -> str:
    """Of several managers of one label the one that decides: who is neither we nor a person, then a person, then we."""
    return min(managers, key=lambda name: (name == FIELD_MANAGER, is_person(name), name))
