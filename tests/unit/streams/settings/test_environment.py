"""Settings from the environment: lists, and faults that name the variable."""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_origin

import pytest
from pydantic import BaseModel

from underhost.schemas.errors import InputError
from underhost.streams.settings.load import load
from underhost.streams.settings.model import Settings


def faults(environ: dict[str, str], path: Path | None = None, **flags: object) -> list[str]:
    with pytest.raises(InputError) as raised:
        load(path, flags, environ)
    return list(raised.value.faults)


def lists(model: type[BaseModel], place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every setting that is a list of texts."""
    for name, field in model.model_fields.items():
        inner = [kind for kind in (field.annotation, *get_args(field.annotation)) if isinstance(kind, type)]
        groups = [kind for kind in inner if issubclass(kind, BaseModel)]
        if get_origin(field.annotation) is not tuple:
            for group in groups:
                yield from lists(group, (*place, name))
        elif not groups:
            yield (*place, name)


LISTS = {
    "UNDERHOST_ALERTING__ALERTMANAGERS": "http://a:9093,http://b:9093",
    "UNDERHOST_EVICTIONS__EXCEPT_NAMESPACES": "a,b",
    "UNDERHOST_EVICTIONS__OWNERS": "a,b",
    "UNDERHOST_EVICTIONS__SCHEDULERS": "a,b",
    "UNDERHOST_EVICTIONS__SEVERITIES": "violation,physical",
    "UNDERHOST_HOST_LABEL__ALIASES": "a/b,c/d",
    "UNDERHOST_KUBERNETES__FILES": "a,b",
    "UNDERHOST_VSPHERE__CLUSTERS": "a,b",
    "UNDERHOST_WEB__HOSTS": "a,b",
}


def test_the_lists_are_all_that_the_model_has() -> None:
    assert sorted("UNDERHOST_" + "__".join(place).upper() for place in lists(Settings)) == sorted(LISTS)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_split_at_its_commas(name: str) -> None:
    setting: object = load(environ={name: LISTS[name]})
    for part in name.removeprefix("UNDERHOST_").lower().split("__"):
        setting = getattr(setting, part)
    assert [str(item) for item in setting] == LISTS[name].split(",")  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("environ", "told"),
    [
        pytest.param({"UNDERHOST_FOO": "1"}, "UNDERHOST_FOO: unknown key", id="no setting"),
        pytest.param(
            {"UNDERHOST_WEB__LISTENN": "x"}, "UNDERHOST_WEB__LISTENN: unknown key; did you mean listen?", id="a slip"
        ),
        pytest.param(
            {"UNDERHOST_KAFKA": "x"}, 'UNDERHOST_KAFKA: a mapping is expected, not "x"', id="the name of a group"
        ),
        pytest.param(
            {"UNDERHOST_HOST_LABEL__ALIASES": "a/b,a b"},
            "UNDERHOST_HOST_LABEL__ALIASES: 1: not the key of a label: [PREFIX/]NAME is expected",
            id="an item of a list",
        ),
        pytest.param(
            {"UNDERHOST_KAFKA": "x", "UNDERHOST_KAFKA__EMBEDDED": "y"},
            "UNDERHOST_KAFKA and UNDERHOST_KAFKA__EMBEDDED: only one of them can be set",
            id="a group, and a setting in it",
        ),
        pytest.param(
            {"UNDERHOST_SITE": "x", "UNDERHOST_site": "y"},
            "UNDERHOST_SITE and UNDERHOST_site: only one of them can be set",
            id="two spellings of one",
        ),
    ],
)
def test_a_fault_of_the_environment_names_its_variable(environ: dict[str, str], told: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("site: prod\n")
    assert faults(environ) == faults(environ, file) == [told]


def test_a_fault_of_a_flag_is_not_told_of_the_variable_that_it_replaces() -> None:
    assert faults({"UNDERHOST_WEB__LISTEN": "127.0.0.1:1"}, web={"listen": 7}) == [
        "configuration: web.listen: text is expected, not 7"
    ]
