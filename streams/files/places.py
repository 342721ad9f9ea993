"""Which kind of objects a bundle keeps in a file, by the file's place: some bundles leave `kind` out of the objects.

In: a path inside a folder or an archive, or the list's own address. Out: a kind, "" where that tells none. Insights has
`config/node/NAME.json`, Sonobuoy `resources/ns/NAME/Pods.json`, a support bundle `cluster-resources/pods/NAME.json`.
"""

from pathlib import PurePosixPath

from underhost.streams.files.kinds import GROUPS

_DEEPEST = 3
_SHORT = {"pdbs": "PodDisruptionBudget", "pvcs": "PersistentVolumeClaim", "pvs": "PersistentVolume"}
_KINDS = {kind.lower(): kind for kind in GROUPS}
_KINDS |= {f"{name}{'es' if name.endswith('s') else 's'}": kind for name, kind in _KINDS.items()} | _SHORT


def kind_told(path: PurePosixPath) -> str:
    """The kind that the file's name, or else the nearest of the folders above it, is the plural or singular of."""
    name = path.name.partition(".")[0]
    names = [name, name.rpartition("_")[2], *(folder.name for folder in list(path.parents)[:_DEEPEST])]
    for one in names:
        kind = _KINDS.get(one.lower().replace("-", ""))
        if kind is not None:
            return kind
    return ""


def kind_addressed(link: str) -> str:
    """The kind of a list by its own address (`selfLink`): `/api/v1/namespaces/shop/pods` is of Pods."""
    return _KINDS.get(link.rpartition("/")[2], "")
