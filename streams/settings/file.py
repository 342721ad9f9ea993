"""The configuration file, as a tree; and what is wrong with a file that is no YAML, a kubeconfig too.

In: a path. Out: a mapping, or an InputError that names the file and the line.
"""

import re
from pathlib import Path
from typing import Any

import yaml

from underhost.schemas.errors import InputError

_QUOTED = re.compile(r"(alias|tag|handle) (['\"]).*\2")
"""A password that begins with `*` or `!` is one of these to YAML, and its errors quote it."""


def read(path: Path) -> dict[str, Any]:
    """What the file holds; an empty one holds nothing. Raises InputError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start + 1})") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    tree = parsed(path, text, _OneOfEach)
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a mapping is expected, this is a {type(tree).__name__}")
    return tree


def parsed(path: Path, text: str, loader: type[yaml.SafeLoader] = yaml.SafeLoader) -> Any:
    """What the text of a file says. Raises InputError with the place, not the line: there may be a secret in it."""
    try:
        return yaml.load(text, loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
        said = _QUOTED.sub(r"\1", " ".join(part for part in (error.context, error.problem) if part))
        raise InputError(f"{path}: not YAML: {said}{place}") from error
    except yaml.reader.ReaderError as error:
        raise InputError(f"{path}: not YAML: {error.reason} (character {error.position + 1})") from error
    except RecursionError as error:
        raise InputError(f"{path}: not YAML: nested too deeply") from error
    except (LookupError, AttributeError, TypeError, ValueError, OverflowError) as error:  # PyYAML's own, for `!!int ""`
        raise InputError(f"{path}: not YAML: a value does not fit its tag: {error}") from error


class _OneOfEach(yaml.SafeLoader):
    """PyYAML's, which takes the last of several equal keys and says nothing; here they are a fault, as with `-f`."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    problem = f"the key {key.value[:60]!r} is given twice"
                    raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
                seen.add(key.value)
        return node
