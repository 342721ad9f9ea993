"""The configuration file, as a tree.

In: a path. Out: a mapping, or an InputError that names the file and the line.
"""

from pathlib import Path
from typing import Any

import yaml

from underhost.schemas.errors import InputError


def read(path: Path) -> dict[str, Any]:
    """What the file holds; an empty one holds nothing. Raises InputError."""
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 (byte {error.start + 1})") from error
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    try:
        tree = yaml.load(text, _OneOfEach)
    except yaml.YAMLError as error:
        raise InputError(f"{path}: not YAML: {worded(error)}") from error
    except RecursionError as error:
        raise InputError(f"{path}: not YAML: nested too deeply") from error
    except (LookupError, AttributeError, TypeError, ValueError, OverflowError) as error:  # PyYAML's own, for `!!int ""`
        raise InputError(f"{path}: not YAML: a value does not fit its tag: {error}") from error
    if tree is None:
        return {}
    if not isinstance(tree, dict):
        raise InputError(f"{path}: a mapping is expected, this is a {type(tree).__name__}")
    return tree


def worded(error: yaml.YAMLError) -> str:
    """What is wrong with a text and where, in one line without the text itself: it may hold a password."""
    if isinstance(error, yaml.reader.ReaderError):
        return f"{error.reason} (character {error.position + 1})"
    if not isinstance(error, yaml.MarkedYAMLError):
        return type(error).__name__
    mark = error.problem_mark or error.context_mark
    place = f" (line {mark.line + 1}, column {mark.column + 1})" if mark else ""
    return " ".join(part for part in (error.context, error.problem) if part) + place


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
