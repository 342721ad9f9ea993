"""Objects of files that no topic carries: manifests to expand into pods, and the priority classes that these name.

What the volume rules read is in `storage.py`.
"""

from msgspec import Raw, Struct

from underhost.schemas.kubernetes import EMPTY_OBJECT, Metadata

NULL = Raw(b"null")


class Manifest(Struct, frozen=True, omit_defaults=True, rename="camel", gc=False):
    """An object as its file holds it: the raw parts are in the API's own shape, absent ones are null.

    `value`, `global_default` and `preemption_policy` are a PriorityClass's.
    """

    kind: str
    metadata: Metadata
    api_version: str = ""
    spec: Raw = EMPTY_OBJECT
    status: Raw = EMPTY_OBJECT
    value: Raw = NULL
    global_default: Raw = NULL
    preemption_policy: Raw = NULL
