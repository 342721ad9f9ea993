"""Errors named by what the caller can do about them; adapters translate third-party exceptions into these.

A rejection by a rule is a value, never one of these.
"""


class UnderhostError(Exception):
    """Base of all errors of this project; its text is one line for a person."""


class InputError(UnderhostError):
    """Bad usage, file or configuration: exit code 2.

    Attributes:
        faults: every fault found, each one line; the message joins them.
    """

    def __init__(self, *faults: str) -> None:
        self.faults = faults
        super().__init__("\n".join(faults))


class BadObjectError(InputError):
    """An object of the input breaks the API's rules; names file, object and field."""

    def __init__(self, message: str, *, object_: str = "", field: str = "", file: str = "") -> None:
        self.message, self.object, self.field, self.file = message, object_, field, file
        super().__init__(": ".join(part for part in (file, object_, field, message) if part))

    def within(self, file: str) -> "BadObjectError":
        """The same fault with the file named."""
        return BadObjectError(self.message, object_=self.object, field=self.field, file=self.file or file)


class BackendError(UnderhostError):
    """A backend (Kafka, Kubernetes, vCenter) is unreachable, refuses us or is stale: exit code 3."""


class Unreachable(BackendError):
    """Nothing answers at the address: retrying later may help."""


class KafkaAway(Unreachable):
    """Kafka has answered at the start and does not now: a worker tries again for ever."""


class Refused(BackendError):
    """The backend said no (password, certificate, permission, validation): retrying as is will not help."""


class Forbidden(Refused):
    """The backend knows the account, and lets it not do this: a right is missing (403)."""


class Unready(UnderhostError):
    """No answer can be given now (starting, not ours, not listed, not trusted): asking later, or elsewhere, helps."""


class Gone(UnderhostError):
    """The object, or the watch position, no longer exists."""


class Conflict(UnderhostError):
    """The object changed since the decision (uid, resourceVersion, already bound elsewhere): decide again."""


class Retry(UnderhostError):
    """The backend asks to come back later.

    Attributes:
        after: seconds to wait.
    """

    def __init__(self, message: str, after: float) -> None:
        self.after = after
        super().__init__(message)


class BadEvent(UnderhostError):
    """A record of a topic cannot be read: it goes to dead-letters and the stream goes on."""


class LateRecord(BadEvent):
    """A record came after newer ones of the same object or of a newer publisher: it is left out.

    Attributes:
        why: `term`, `version` or `uid`: what shows that it is late.
    """

    def __init__(self, why: str, message: str) -> None:
        self.why = why
        super().__init__(message)
