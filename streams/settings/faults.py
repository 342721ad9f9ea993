"""What is wrong with a configuration, in one line a fault, with the setting that was probably meant.

In: what pydantic says, and the model. Out: lines that name file and setting.
"""

import inspect
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from pydantic import BaseModel

from underhost.schemas.near import did_you_mean


def fault(where: str, item: Mapping[str, Any], model: type[BaseModel]) -> str:
    """One fault; `where` is the file."""
    place: Sequence[str | int] = item["loc"]
    said = str(item["msg"]).removeprefix("Value error, ")
    if item["type"] == "extra_forbidden":
        said = f"unknown key{did_you_mean(str(place[-1]), _keys_beside(model, place))}"
    elif item["type"] == "literal_error":
        allowed = re.findall("'([^']*)'", str(item["ctx"]["expected"]))
        said = f"{'one of ' if len(allowed) > 1 else ''}{', '.join(allowed)} is expected"
        said += did_you_mean(str(item["input"]), allowed) if len(allowed) > 1 else ""
    named = f"{'.'.join(map(str, place))}: " if place else ""  # several groups together name themselves
    return f"{where}: {named}{said}"


def _keys_beside(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """The keys that a mistyped one stands among."""
    for part in place[:-1]:
        if isinstance(part, str):
            field = next(field for name, field in model.model_fields.items() if part in (name, field.alias))
            kinds = (field.annotation, *get_args(field.annotation))
            model = next(kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, BaseModel))
    return [field.alias or name for name, field in model.model_fields.items()]
