"""Inputs that nobody would write: dumps, manifests and inventories of the tests, changed at random.

In: a seed. Out: a file's name and bytes, and the command line that reads it; always the same for the same seed.
"""

import gzip
import io
import json
import tarfile
from copy import deepcopy
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import yaml

ROOT = Path(__file__).parents[3]
SOURCES = ("tests/data/kubevirt/dump.json", "docs/examples/cluster.yaml", "tests/trust/inputs/manifests.yaml")
OLD = "tests/data/cluster_info/dump.txt"
INVENTORIES = ("tests/data/kubevirt/inventory.json", "docs/examples/inventory.yaml")
COMMANDS = (
    ("check",),
    ("check", "--drift", "-o", "json"),
    ("check", "-o", "sarif"),
    ("explain",),
    ("schedule", "-o", "yaml"),
    ("lint",),
    ("drain", "worker-1"),
    ("fail", "--each", "node"),
)
TOKENS = (
    b"{{", b"}}", b"null", b"- ", b"&a ", b"*a", b"<<: *a\n", b"\t", b"\x00", b"\n---\n", b"1e999", b'"', b"[", b"]",
    b"{", b"}", b",", b":", b"!!int x", b"\xff", b"\xef\xbb\xbf", b"\r\n", b"# ", b"|\n", b"? ", b"=", b"\x1b[31m",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1e308, 2**70, "", "x" * 300, "1.5GB", "9e99", "-5", "🙂", [], {}, [None], [[]], {"": None},
    {"a": {"b": {"c": []}}}, ["kubernetes.io/hostname"], "2026-13-45T99:00:00Z", "100%", "Exists",
)  # fmt: skip
MANY = 30_000
"""Copies of an item that some inputs have."""


class Mutant(NamedTuple):
    """What one command is given; `{file}` in the words stands for the file."""

    name: str
    content: bytes
    words: tuple[str, ...]


def case_of(seed: int) -> Mutant:
    """The case of a number."""
    rng = Random(seed)
    inventory = rng.random() < 0.2
    source = rng.choice(INVENTORIES if inventory else (*SOURCES, OLD))
    tree = json.loads(_json(source))
    for _ in range(rng.choice((0, 1, 1, 2, 5))):
        tree = _changed(rng, tree)
    text = _written(tree, 0 if source == OLD else rng.randrange(4))
    for _ in range(rng.choice((0, 0, 1, 1, 3))):
        text = _broken(rng, text)
    name, content = _packed(rng, text)
    given = ("-f", "docs/examples/cluster.yaml", "--inventory", "{file}") if inventory else ("-f", "{file}")
    return Mutant(name, content, (*rng.choice(COMMANDS), *given))


@cache
def _json(source: str) -> str:
    text = (ROOT / source).read_bytes()
    if source == OLD:  # lists in JSON, one after another, then a log
        lists = text.partition(b"====")[0].replace(b"\n}\n{", b"\n},\n{")
        return json.dumps({"items": json.loads(b"[" + lists + b"]")})
    documents = list(yaml.load_all(text, yaml.CSafeLoader))
    return json.dumps(documents[0] if len(documents) == 1 else {"kind": "List", "items": documents}, default=str)


def _written(tree: Any, form: int) -> bytes:
    """The tree as a text in one of the forms that are read."""
    if form == 0 and isinstance(tree, dict) and isinstance(tree.get("items"), list):
        return b"".join(json.dumps(one).encode() + b"\n" for one in tree["items"])
    if form == 1 and len(json.dumps(tree, default=str)) < 200_000:
        return yaml.dump(tree, Dumper=yaml.CSafeDumper).encode()
    return json.dumps(tree, indent=1 if form == 2 else None).encode()


def _changed(rng: Random, tree: Any) -> Any:
    """One change somewhere below the root: another value, a key that is gone or misspelled, an item many times."""
    around, key = None, None
    part = tree
    for _ in range(rng.randrange(1, 12)):
        if isinstance(part, dict) and part:
            around, key = part, rng.choice(list(part))
        elif isinstance(part, list) and part:
            around, key = part, rng.randrange(len(part))
        else:
            break
        part = around[key]
    if around is None:
        return _value(rng)
    kind = rng.randrange(6)
    if kind == 0:
        del around[key]
    elif kind == 1 and isinstance(around, dict):
        around[rng.choice((key.upper(), key + "s", key[:-1], key + "\n"))] = around.pop(key)
    elif kind == 2 and isinstance(around, list):
        around.extend([part] * rng.choice((1, 50)))
    elif kind == 3:
        around[key] = [_value(rng)] * rng.choice((3, MANY))
    elif kind == 4:
        nested: Any = _value(rng)
        for _ in range(rng.choice((5, 250))):
            nested = {"a": nested} if rng.random() < 0.5 else [nested]
        around[key] = nested
    else:
        around[key] = _value(rng)
    return tree


def _value(rng: Random) -> Any:
    """One of the values, of its own: what is put into it must not be in a later case's."""
    return deepcopy(rng.choice(VALUES))


def _broken(rng: Random, text: bytes) -> bytes:
    """One change of the bytes."""
    at = rng.randrange(len(text) + 1)
    end = min(len(text), at + rng.choice((1, 3, 40, 2000)))
    kind = rng.randrange(6)
    if kind == 0:
        return text[:at]
    if kind == 1:
        return text[:at] + text[end:]
    if kind == 2:
        return text[:at] + text[at:end] * rng.choice((2, 200)) + text[end:]
    if kind == 3:
        return text[:at] + bytes(rng.randrange(256) for _ in range(end - at)) + text[end:]
    if kind == 4:
        return text[:at] + rng.choice(TOKENS) * rng.choice((1, 1, 1000)) + text[at:]
    return text[:at] + rng.choice(TOKENS) + text[end:]


def _packed(rng: Random, text: bytes) -> tuple[str, bytes]:
    form = rng.randrange(12)
    if form == 0:
        return "input.json.gz", gzip.compress(text, 1, mtime=0)
    if form == 1:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name in ("a/pods.json", "b/nodes.yaml"):
                member = tarfile.TarInfo(name)
                member.size = len(text)
                archive.addfile(member, io.BytesIO(text))
        content = gzip.compress(packed.getvalue(), 1, mtime=0)
        return "bundle.tar.gz", _broken(rng, content) if rng.random() < 0.5 else content
    return rng.choice(("input.yaml", "input.json")), text
