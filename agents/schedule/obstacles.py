"""What stands in the way of a pod, in words: nodes that are refused for equal reasons are one group.

In: the verdicts on a pod's nodes, with what stands in the way. Out: groups of nodes with a text each, for tables,
Events and the extender's answers. Decides nothing: what is in the way, the rules have said.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec import structs

from underhost.agents.compiled.occupants import MOST
from underhost.agents.rules import inter_pod_affinity
from underhost.agents.site import quantity
from underhost.schemas.documents import Because, NodeVerdict

STRANGER = "a pod of another namespace"
NAMED = 3
"""Pods, or values, that a text names."""
_ON = ("host", "esxi-host", "hostname", "node")
"""Last parts of topologyKeys whose domains pods are on; in others they are in."""
_PER_NODE = ("kubernetes.io/hostname", "node")
"""Keys by which every node is refused for pods of its own: such nodes are one group all the same."""

_REASON = "reason"
_Key = tuple[str, ...]
_Keys = tuple[tuple[str, _Key], ...]
_Because = Sequence[Because]
_Seen = list[tuple[str, Because]]


class RefusedNodes(NamedTuple):
    """Nodes, by name, that are refused for equal reasons."""

    nodes: list[str]
    text: str


def grouped(pod: str, nodes: Mapping[str, NodeVerdict]) -> list[RefusedNodes]:
    """The nodes that refuse the pod (`namespace/name`), the largest group first; pods of its namespace go by name."""
    return [RefusedNodes(names, _text(pod, names, nodes)) for _, names in _alike(nodes)]


def sentence(pod: str, nodes: Mapping[str, NodeVerdict], longest: int) -> str:
    """The groups in one line of at most `longest` characters, without the names of other namespaces' pods.

    "" where nothing can be named, or not even the largest group fits.
    """
    groups = [names for keys, names in _alike(nodes) if any(key[0] != _REASON for _, key in keys)]
    left, line = sum(map(len, groups)), ""
    for names in groups:
        text = f"{len(names)} node{'s' if len(names) > 1 else ''}: {_text(pod, names, nodes, to_its_namespace)}"
        longer = f"{line}; {text}" if line else text
        rest = left - len(names)
        if len(_with_rest(longer, rest)) > longest:
            break
        line, left = longer, rest
    return _with_rest(line, left) if line else ""


def _with_rest(line: str, left: int) -> str:
    return f"{line}; {left} more." if left else f"{line}."


def to_its_namespace(pod: str, because: Sequence[Because]) -> Sequence[Because]:
    """The same without the names of other namespaces' pods: what is told to whoever may read the pod."""
    mine = f"{pod.partition('/')[0]}/"
    strangers = (
        structs.replace(one, pod=STRANGER) if isinstance(one.pod, str) and not one.pod.startswith(mine) else one
        for one in because
    )
    return list(dict.fromkeys(strangers))


def said(pod: str, because: Sequence[Because], rule: str = "") -> str:
    """What one rule names on one node, in words."""
    by_key: defaultdict[_Key, _Seen] = defaultdict(list)
    for one in because:
        by_key[_key(one)].append(("", one))
    return ", ".join(_part(pod, rule, key, seen) for key, seen in by_key.items())


def _alike(nodes: Mapping[str, NodeVerdict]) -> list[tuple[_Keys, list[str]]]:
    """The nodes that refuse, by what makes them equal; the largest group first."""
    alike: defaultdict[_Keys, list[str]] = defaultdict(list)
    for name, one in sorted(nodes.items()):
        if not one.feasible:
            alike[tuple(dict.fromkeys(_keys(one)))].append(name)
    return sorted(alike.items(), key=lambda item: (-len(item[1]), item[1]))


def _keys(verdict: NodeVerdict) -> Iterable[tuple[str, _Key]]:
    """What makes nodes equal: the rules that refuse, and what each names, but for what differs from node to node."""
    for rule, reasons in verdict.failing.items():
        named = (verdict.because or {}).get(rule, ())
        yield from ((rule, _key(one)) for one in named)
        if not named:
            yield rule, (_REASON, *reasons)


def _key(one: Because) -> _Key:
    if isinstance(one.resource, str):
        return "resource", one.resource, str(one.asked)
    if isinstance(one.taint, str):
        return "taint", one.taint
    if isinstance(one.selector, str):
        return "selector", one.selector, "" if one.has is None else "other"
    if isinstance(one.port, str):
        return "port", one.port
    if one.key in _PER_NODE:
        return "each", str(one.key)
    return "pods", str(one.key), str(one.value)


def _text(
    pod: str,
    names: Sequence[str],
    nodes: Mapping[str, NodeVerdict],
    shown: "Callable[[str, _Because], _Because] | None" = None,
) -> str:
    seen: defaultdict[tuple[str, _Key], _Seen] = defaultdict(list)
    for name in names:
        for rule, because in (nodes[name].because or {}).items():
            for one in because if shown is None else shown(pod, because):
                seen[rule, _key(one)].append((name, one))
    parts: dict[str, list[str]] = {}
    for rule, key in dict.fromkeys(_keys(nodes[names[0]])):
        parts.setdefault(rule, []).append(_part(pod, rule, key, seen[rule, key]))
    return "; ".join(f"{rule}: {', '.join(each)}" for rule, each in parts.items())


def _part(pod: str, rule: str, key: _Key, seen: _Seen) -> str:
    """One thing that is in the way on some nodes."""
    kind, *rest = key
    if kind == _REASON:
        return ", ".join(rest)
    if kind == "taint":
        return f"taint {rest[0]}"
    parts: dict[str, Callable[[], str]] = {
        "resource": lambda: _short(seen),
        "selector": lambda: _unmet(rule, rest[0], [one.has for _, one in seen if isinstance(one.has, str)]),
        "port": lambda: f"{_pods(pod, seen)} {_verb(seen, 'holds', 'hold')} port {rest[0]}",
        "pods": lambda: f"{_pods(pod, seen)} {_verb(seen, 'is', 'are')} {place(rest[0], rest[1])}",
        "each": lambda: _each(pod, rest[0], seen),
    }
    return parts[kind]()


def place(key: str, value: str) -> str:
    """`on esx-1`, `in zone a`."""
    last = key.rpartition("/")[2]
    return f"on {_shown(value)}" if last in _ON else f"in {last} {_shown(value)}"


def _shown(value: str) -> str:
    """The value of a label, which may be empty."""
    return value or "''"


def _short(seen: _Seen) -> str:
    """Of several nodes the one with the most left."""
    name, one = max(reversed(seen), key=lambda item: quantity.milli_value(str(item[1].free)))
    several = len({(each.free, each.allocatable) for _, each in seen}) > 1
    most, where = ("at most ", f" (on {name})") if several else ("", "")
    return f"asks for {one.asked} {one.resource}, {most}{one.free} of {one.allocatable} is free{where}"


def _unmet(rule: str, selector: str, has: Sequence[str]) -> str:
    if has:
        return f"asks for {selector}, not {listing([_shown(one) for one in has], 'or')}"
    if rule == inter_pod_affinity.NAME and " " in selector:
        return f"no pod with {selector} is there"
    return f"asks for {selector}, which is missing" if " " in selector else f"label {selector} is missing"


def _each(pod: str, key: str, seen: _Seen) -> str:
    """`db-0 is on n1, db-1 on n2 and 3 more`."""
    pairs = list(dict.fromkeys((_short_name(pod, str(one.pod)), place(key, str(one.value))) for _, one in seen))
    if len({where for _, where in pairs}) == 1:
        return f"{_pods(pod, seen)} {_verb(seen, 'is', 'are')} {pairs[0][1]}"
    (first, where), *others = pairs
    return listing([f"{first} is {where}", *(f"{name} {there}" for name, there in others)])


def _pods(pod: str, seen: _Seen) -> str:
    names = list(dict.fromkeys(_short_name(pod, str(one.pod)) for _, one in seen))
    return listing(names)


def _verb(seen: _Seen, one: str, many: str) -> str:
    return one if len({each.pod for _, each in seen}) == 1 else many


def _short_name(pod: str, other: str) -> str:
    return other.removeprefix(f"{pod.partition('/')[0]}/")


def listing(names: Sequence[str], last: str = "and") -> str:
    """`a, b and c`; `a, b, c and 4 more`, or `and others` where the rules may not have named all of them."""
    names = list(dict.fromkeys(names))
    if not names:
        return ""
    if len(names) > NAMED:
        rest = len(names) - NAMED
        more = f"{rest} more" if len(names) != MOST else "others"
        return f"{', '.join(names[:NAMED])} and {more}"
    return f" {last} ".join(filter(None, (", ".join(names[:-1]), names[-1])))
