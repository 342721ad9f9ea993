"""JSON Schemas of our structs, for documents that other programs read.

In: struct types. Out: schemas by name. msgspec's own generator cannot say the default of a `Raw` field, which most
Kubernetes structs have: such a part is the API server's own JSON, so any JSON is its schema.
"""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import NODEFAULT, Raw, Struct
from msgspec import inspect as types

REF = "#/components/schemas/"
_PLAIN: dict[type[types.Type], dict[str, Any]] = {
    types.StrType: {"type": "string"},
    types.IntType: {"type": "integer"},
    types.FloatType: {"type": "number"},
    types.BoolType: {"type": "boolean"},
    types.NoneType: {"type": "null"},
    types.AnyType: {},
    types.RawType: {},
}


def schemas_of(structs: Iterable[type[Struct]]) -> dict[str, dict[str, Any]]:
    """The schema of each struct, and of every struct within them, by name; references are `REF` and the name.

    Raises TypeError for a type that our records have not had so far.
    """
    found: dict[str, dict[str, Any]] = {}
    for struct in structs:
        _schema(types.type_info(struct), found)
    return dict(sorted(found.items()))


def _schema(kind: types.Type, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    if type(kind) in _PLAIN:
        return {**_PLAIN[type(kind)], **_bounds(kind)}
    if isinstance(kind, types.UnionType):
        return {"anyOf": [_schema(each, found) for each in kind.types]}
    if isinstance(kind, types.ListType | types.VarTupleType):
        return {"type": "array", "items": _schema(kind.item_type, found), **_bounds(kind)}
    if isinstance(kind, types.DictType):
        return {"type": "object", "additionalProperties": _schema(kind.value_type, found)}
    if isinstance(kind, types.StructType):
        if kind.cls.__name__ not in found:
            found[kind.cls.__name__] = {}  # before its fields: a struct may hold itself
            found[kind.cls.__name__].update(_struct(kind, found))
        return {"$ref": REF + kind.cls.__name__}
    if isinstance(kind, types.CustomType) and kind.cls is object:
        return {}
    raise TypeError(f"no JSON schema for {kind}")


def _bounds(kind: types.Type) -> dict[str, int]:
    """How large a value may be, where that is said."""
    items = isinstance(kind, types.ListType)
    names = {"ge": "minimum", "le": "maximum", "max_length": "maxItems" if items else "maxLength"}
    found = {name: getattr(kind, ours, None) for ours, name in names.items()}
    return {name: value for name, value in found.items() if value is not None}


def _struct(kind: types.StructType, found: dict[str, dict[str, Any]]) -> dict[str, Any]:
    properties = {}
    for field in kind.fields:
        schema = _schema(field.type, found)
        default = field.default if field.default_factory is NODEFAULT else field.default_factory()
        if default is not NODEFAULT and "$ref" not in schema:
            schema["default"] = _plain(default)
        properties[field.encode_name] = schema
    return {
        "type": "object",
        "description": " ".join((kind.cls.__doc__ or "").split()),
        "properties": properties,
        "required": [field.encode_name for field in kind.fields if field.required],
        **({"additionalProperties": False} if kind.forbid_unknown_fields else {}),
    }


def _plain(value: Any) -> Any:
    return msgspec.json.decode(bytes(value)) if isinstance(value, Raw) else msgspec.to_builtins(value)
