"""What is wrong with a configuration, in one line a fault, with the setting that was probably meant.

In: what pydantic says, and the model. Out: lines that name file and setting.
"""

import inspect
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from underhost.schemas.near import did_you_mean

_NUMBER, _SWITCH = "a number is expected", "true or false is expected"
_WORDS = {
    "missing": "is missing",
    "int_parsing": "a whole number is expected",
    "int_type": "a whole number is expected",
    "int_from_float": "a whole number is expected",
    "float_parsing": _NUMBER,
    "float_type": _NUMBER,
    "finite_number": _NUMBER,
    "bool_parsing": _SWITCH,
    "bool_type": _SWITCH,
    "string_type": "text is expected",
    "string_sub_type": "text is expected",
    "path_type": "a path is expected",
    "tuple_type": "a list is expected",
    "list_type": "a list is expected",
    "dict_type": "a mapping is expected",
    "model_type": "a mapping is expected",
    "model_attributes_type": "a mapping is expected",
    "greater_than": "more than {gt} is expected",
    "greater_than_equal": "at least {ge} is expected",
    "less_than": "less than {lt} is expected",
    "less_than_equal": "at most {le} is expected",
}
"""What is expected, by pydantic's type of the error; `ctx` has the bounds."""
_MOST_SHOWN = 60


def fault(where: str, item: Mapping[str, Any], model: type[BaseModel], told: int = 0) -> str:
    """One fault; `where` is the file, or a variable, which tells that many parts of the setting's place itself."""
    place: Sequence[str | int] = item["loc"]
    said = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        said = f"unknown key{did_you_mean(str(place[-1]), _keys_beside(model, place))}"
    elif item["type"] == "literal_error":
        allowed = re.findall("'([^']*)'", str(item["ctx"]["expected"]))
        said = f"{'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)} is expected"
        said += did_you_mean(str(item["input"]), allowed) if len(allowed) > 1 else ""
    elif item["type"] in _WORDS:
        said = _WORDS[item["type"]].format(**item.get("ctx", {}))
        secret = "password" in str(place[-1]).lower()
        said += "" if item["type"] == "missing" or secret else f", not {_shown(item['input'])}"
    named = f"{'.'.join(map(str, place[told:]))}: " if place[told:] else ""  # several groups together name themselves
    return f"{where}: {named}{said}"


def _keys_beside(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The keys that a mistyped one stands among."""
    for part in place[:-1]:
        if isinstance(part, str):
            field = next(field for name, field in model.model_fields.items() if part in (name, field.alias))
            kinds = (field.annotation, *get_args(field.annotation))
            model = next(kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseModel))
    return [field.alias or name for name, field in model.model_fields.items()]


def _shown(value: Any) -> str:
    """A value as the file has it, or the beginning of it."""
    if isinstance(value, (Mapping, list)):
        return "a mapping" if isinstance(value, Mapping) else "a list"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}…"
