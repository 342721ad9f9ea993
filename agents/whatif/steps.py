"""The steps of a what-if plan, and how each is written: as on the command line, and so in JSON, too.

In: an option's name and its text. Out: a step, frozen. Whether a node, pod or host of that name is there is found when
the step is taken: an earlier step may have added it.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from underhost.agents.manifests.allowance import Allowance
from underhost.agents.site.snapshot import Snapshot
from underhost.agents.site.terms import EFFECTS
from underhost.schemas.errors import InputError
from underhost.schemas.kubernetes import is_label_key, is_label_value
from underhost.schemas.manifests import Manifest

NODE, HOST = "node", "host"


class Delete(NamedTuple):
    """A pod is deleted (`namespace/name`); its owner makes another."""

    pod: str


class Drain(NamedTuple):
    """Nodes are cordoned, all of them first, and then drained one after another."""

    nodes: tuple[str, ...]


class Fail(NamedTuple):
    """Nodes and hosts (`node/NAME`, `host/NAME`) fail at once; without `ha` no VM of a host is restarted."""

    targets: tuple[str, ...]
    ha: bool = True


class Maintain(NamedTuple):
    """A host enters maintenance mode."""

    host: str


class Cordon(NamedTuple):
    """A node is cordoned, or opened again."""

    node: str
    closed: bool = True


class TaintNode(NamedTuple):
    """A node gets a taint; with `remove` it loses those of the key (and of the effect, where one is named)."""

    node: str
    key: str
    value: str = ""
    effect: str = ""
    remove: bool = False


class Label(NamedTuple):
    """A node gets a label; None removes it."""

    node: str
    key: str
    value: str | None


class Add(NamedTuple):
    """Objects come to the site: the snapshot that they make by themselves, and the manifests among them.

    `allowance` bounds the pods that the manifests make; it may be that of several steps.
    """

    objects: Snapshot
    others: Mapping[str, Manifest] = MappingProxyType({})
    allowance: Allowance | None = None


Step = Delete | Drain | Fail | Maintain | Cordon | TaintNode | Label | Add


def node_name(text: str) -> str:
    """The node that `n1` or `node/n1` names. Raises InputError."""
    return _name(text, (NODE, "nodes", "no"), "a node is expected, as NODE or node/NODE")


def host_name(text: str) -> str:
    """The host that `h1` or `host/h1` names. Raises InputError."""
    return _name(text, (HOST,), "a host is expected, as HOST or host/HOST")


def _name(text: str, kinds: tuple[str, ...], expected: str) -> str:
    kind, slash, name = text.rpartition("/")
    if slash and kind not in kinds:
        raise InputError(f"{text}: {expected}")
    return name


KINDS_OF_TARGETS = "what fails is named node/NODE or host/HOST"


def target(text: str) -> str:
    """`node/NAME` or `host/NAME`; a bare name is left to the site, which knows what was meant. Raises InputError."""
    kind, slash, name = text.partition("/")
    if not text or (slash and (not name or kind not in (NODE, HOST))):
        raise InputError(f"{text}: {KINDS_OF_TARGETS}")
    return text


def _taint(text: str) -> TaintNode:
    """`NODE=KEY[=VALUE]:EFFECT`, or as kubectl removes one: `NODE=KEY[:EFFECT]-`. Raises InputError."""
    node, _, rest = text.partition("=")
    remove = (rest.endswith("-") and ":" not in rest) or rest.endswith(tuple(f":{effect}-" for effect in EFFECTS))
    body, colon, effect = rest.removesuffix("-" if remove else "").partition(":")
    key, _, value = body.partition("=")
    if not node or not key or (not colon and not remove):
        raise InputError(f"taint {text}: NODE=KEY=VALUE:EFFECT is expected, or NODE=KEY:EFFECT- to remove one")
    if colon and effect not in EFFECTS:
        raise InputError(f"taint {text}: effect {effect!r} is none of {', '.join(EFFECTS)}")
    _check(f"taint {text}", key, value)
    return TaintNode(node_name(node), key, value, effect, remove)


def _label(text: str) -> Label:
    """`NODE=KEY=VALUE`, or as kubectl removes one: `NODE=KEY-`. Raises InputError."""
    node, _, rest = text.partition("=")
    key, equals, value = rest.partition("=")
    if not equals and key.endswith("-"):
        key, given = key[:-1], None
    elif equals:
        given = value
    else:
        raise InputError(f"label {text}: NODE=KEY=VALUE is expected, or NODE=KEY- to remove one")
    _check(f"label {text}", key, given or "")
    return Label(node_name(node), key, given)


def _check(where: str, key: str, value: str) -> None:
    if not is_label_key(key):
        raise InputError(f"{where}: {key!r} is no key that a label or taint may have")
    if not is_label_value(value):
        raise InputError(f"{where}: {value!r} is no value that a label or taint may have")


def _pod(text: str) -> str:
    name = text.removeprefix("pod/")
    if name.count("/") != 1 or not all(name.split("/")):
        raise InputError(f"pod {text}: NAMESPACE/NAME is expected")
    return name


def described(steps: Sequence[Step]) -> list[str]:
    """Each numbered step in a few words: a drain of several nodes is several steps."""
    found: list[str] = []
    for step in steps:
        match step:
            case Delete(pod):
                found.append(f"delete pod {pod}")
            case Drain(nodes):
                found += [f"drain {node}" for node in nodes]
            case Fail(targets, ha):
                found.append(f"{', '.join(targets)} fail{'s' if len(targets) == 1 else ''}{'' if ha else ', no HA'}")
            case Maintain(host):
                found.append(f"maintain host/{host}")
            case Cordon(node, closed):
                found.append(f"{'cordon' if closed else 'uncordon'} {node}")
            case TaintNode(node, key, value, effect, remove):
                what = f"{key}={value}" if value else key
                found.append(f"taint {node} {what}{':' if effect else ''}{effect}{'-' if remove else ''}")
            case Label(node, key, given):
                found.append(f"label {node} {f'{key}-' if given is None else f'{key}={given}'}")
            case Add():
                found.append("add objects")
    return found


_PARSERS: Mapping[str, Callable[[str], Step]] = {
    "delete": lambda text: Delete(_pod(text)),
    "drain": lambda text: Drain((node_name(text),)),
    "fail": lambda text: Fail((target(text),)),
    "maintain": lambda text: Maintain(host_name(text)),
    "cordon": lambda text: Cordon(node_name(text)),
    "uncordon": lambda text: Cordon(node_name(text), closed=False),
    "taint": _taint,
    "label": _label,
}
STEPS = (*_PARSERS, "add")
"""The names of the steps, as options and in JSON."""


def parse(name: str, text: str, *, ha: bool = True) -> Step:
    """The step that an option (`delete drain fail maintain cordon uncordon taint label`) means. Raises InputError."""
    if not text:
        raise InputError(f"{name}: names nothing")
    if name not in _PARSERS:
        raise InputError(f"{name}: no such step; one of {', '.join(STEPS)} is expected")
    step = _PARSERS[name](text)
    return step._replace(ha=ha) if isinstance(step, Fail) else step
