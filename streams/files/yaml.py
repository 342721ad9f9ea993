"""YAML and KYAML as the Kubernetes tools read them, each document turned into JSON.

Dates stay text, keys may not be given twice, and nothing is nested or aliased without bounds.
"""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
import yaml

from underhost.streams.files.text import BadText, OtherText

MAX_DEPTH = 200
_TEMPLATE = "a chart template ({{ … }}), not a manifest: render it first, e.g. with helm template"
_ALIAS_GROWTH = 1_000_000  # values beyond the text's own length that aliases may expand to
MOST_MERGED = 100_000  # entries that the merge keys (<<) of a file may add
_MERGE, _VALUE = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:value"
_PRINTED = re.compile(rb"(?:NAMESPACE +)?NAME {2,}[A-Z][-A-Z]+")
_DEEP_LINE = re.compile(rb"^[ \-?:]{%d,}" % MAX_DEPTH, re.MULTILINE)


def documents(data: bytes) -> Iterator[bytes]:
    """Each YAML or KYAML document as JSON; empty ones are left out.

    Values are what kubectl makes of them: a date stays text, `yes` is a boolean, a key given twice is a fault.
    Raises BadText.
    """
    if _PRINTED.match(data):
        raise BadText("the table that kubectl get prints, without the objects: use `kubectl get … -o json`")
    _refuse_depth(data)
    try:
        for document in yaml.load_all(data, _Loader):
            if document is None:
                continue
            _refuse_aliases(document, len(data))
            yield msgspec.json.encode(document)
    except yaml.MarkedYAMLError as error:
        raise _fault_of_yaml(error, data) from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        raise BadText("not valid YAML: " + " ".join(str(error).split())) from error
    except RecursionError as error:
        raise BadText(f"nested deeper than {MAX_DEPTH} levels") from error
    except (LookupError, AttributeError) as error:  # what PyYAML itself raises for `!!int ""` or `!!timestamp x`
        raise BadText("not valid YAML: a value does not fit its tag") from error
    except (TypeError, ValueError, OverflowError) as error:  # a key or number that JSON has no form for
        raise OtherText(_TEMPLATE) if b"{{" in data else BadText(f"not usable as JSON: {error}") from error


def _fault_of_yaml(error: yaml.MarkedYAMLError, data: bytes) -> BadText:
    mark = error.problem_mark or error.context_mark
    place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    if b"{{" in data:
        return OtherText(f"{_TEMPLATE}{place}")
    return BadText(f"not valid YAML: {error.problem or error.context}{place}")


def _refuse_depth(data: bytes) -> None:
    """Refuse deep nesting before libyaml's composer recurses: it has no limit and would crash the interpreter."""
    if data.count(b"[") + data.count(b"{") <= MAX_DEPTH and _DEEP_LINE.search(data) is None:
        return
    depth = 0
    try:
        for event in yaml.parse(data, yaml.CSafeLoader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    place = f" (line {event.start_mark.line + 1})" if event.start_mark else ""
                    raise BadText(f"nested deeper than {MAX_DEPTH} levels{place}")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.MarkedYAMLError as error:
        raise _fault_of_yaml(error, data) from error
    except yaml.YAMLError as error:
        raise BadText("not valid YAML: " + " ".join(str(error).split())) from error


def _refuse_aliases(document: Any, written: int) -> None:
    """Refuse aliases that expand too far, or into themselves: as JSON they would fill the memory."""
    sizes: dict[int, int] = {}

    def size(value: Any) -> int:
        if not isinstance(value, (dict, list)):
            return 1
        known = sizes.get(id(value))
        if known is not None:
            if known < 0:
                raise BadText("an anchor that holds itself")
            return known
        sizes[id(value)] = -1
        children = value.values() if isinstance(value, dict) else value
        total = 1 + sum(size(child) for child in children)
        sizes[id(value)] = total
        return total

    if size(document) > _ALIAS_GROWTH + written:
        raise BadText("aliases that expand to far more than the file holds")


class _Loader(yaml.CSafeLoader):
    """YAML as the Kubernetes tools read it: no dates, no base-60 numbers, no key twice, and bounded merge keys.

    Attributes:
        merges: entries that merge keys may still add; each mapping that merges others repeats all of theirs.
    """

    merges = MOST_MERGED

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            if key.tag != _MERGE:
                continue
            for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if isinstance(one, yaml.MappingNode):  # else PyYAML refuses it below
                    self.flatten_mapping(one)
                    self.merges -= len(one.value)
            if self.merges < 0:  # before they are added: each step can double them
                problem = f"merge keys (<<) that add more than {MOST_MERGED} entries"
                raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        super().flatten_mapping(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                if key.value in seen:
                    problem = f"the key {key.value[:60]!r} is given twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if all(type(key) is str for key in mapping):
            return mapping
        return {_key(key): value for key, value in mapping.items()}


def _key(key: Any) -> Any:
    """A key as JSON has it: YAML takes a bare `on` for a boolean and `1` for a number."""
    return str(key).lower() if isinstance(key, bool) else "null" if key is None else str(key)


def _number_resolvers() -> dict[str, list[tuple[str, re.Pattern[str]]]]:
    """The scalars that are not text: PyYAML's own without dates and `=`, and numbers in base ten, two, eight, 16."""
    resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}
    replaced = (_VALUE, "tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:int", "tag:yaml.org,2002:float")
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items():
        resolvers[first] = [pair for pair in pairs if pair[0] not in replaced]
    integer = re.compile(r"[-+]?(?:0|[1-9][0-9]*|0b[01]+|0o?[0-7]+|0x[0-9a-fA-F]+)$")
    number = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?$|[-+]?[0-9]+[eE][-+]?[0-9]+$")
    for first in "-+0123456789.":
        resolvers.setdefault(first, []).extend(
            [("tag:yaml.org,2002:int", integer), ("tag:yaml.org,2002:float", number)]
        )
    return resolvers


_Loader.yaml_implicit_resolvers = _number_resolvers()
