"""Checks of what containers ask for: amounts that are none.

In: a view. Out: complaints; `CHECKS` is the table. Only what a person wrote is looked at: the API server has
refused the rest.
"""

from collections.abc import Iterator

from underhost.agents.lint.checks import Check
from underhost.agents.lint.subjects import Complaint
from underhost.agents.lint.view import View
from underhost.agents.site.fault import Fault
from underhost.agents.site.requests import request_of
from underhost.schemas.severities import UNSATISFIABLE


def unreadable(view: View) -> Iterator[Complaint]:
    """A request or limit that the API server refuses."""
    for key, pod in view.snapshot.pods.items():
        subject = None if pod.metadata.uid else view.subject_of.get(key)
        if subject is None:
            continue
        try:
            request_of(pod)
        except Fault as fault:
            part = fault.field.removeprefix("spec.")
            message = f"{subject.name} asks for what the API server refuses: {fault.message}: correct the amount."
            yield subject.complaint(part, message, "NodeResourcesFit")


_QUANTITY = "staging/src/k8s.io/apimachinery/pkg/api/resource/quantity.go (ParseQuantity)"
CHECKS = (
    Check("quantity-unreadable", UNSATISFIABLE, "an amount is no quantity", _QUANTITY, None, unreadable),
)  # fmt: skip
