"""Do two checkouts answer alike? Every offline command over the same documents, output and exit code byte by byte.

    python tests/oracle/same.py --against OTHER/.venv/bin/python [--documents 200] [--seed 1]

For a change that must change nothing that a user sees: the documents are the fixed cases, the examples of the docs, the
dump of `tests/data`, and generated ones, each with an inventory that puts two nodes on a host. Exit code 0 when all is
equal, 1 when something differs; each difference names the document and the command, and keeps both outputs.
"""

import argparse
import contextlib
import importlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE.parent))

ANSWER = "--answer"
COMMANDS = (
    ("check", "-o", "json"),
    ("check", "-o", "yaml", "--drift"),
    ("check", "-o", "sarif"),
    ("check", "-o", "junit"),
    ("check", "-o", "wide", "--physical-host", "required"),
    ("explain", "-A", "-o", "json"),
    ("schedule", "-o", "json"),
    ("schedule", "-o", "json", "--physical-host", "required"),
    ("lint", "-o", "json"),
    ("drain", "{node}", "-o", "json"),
    ("fail", "{host}", "-o", "json"),
    ("fail", "--each", "host", "-o", "json"),
    ("maintain", "{host}", "-o", "json"),
    ("whatif", "--cordon", "{node}", "--fail", "{host}", "-o", "json"),
    ("whatif", "--taint", "{node}=k=v:NoExecute", "-o", "table"),
)
"""`{node}` and `{host}` are the first of the document."""


def main() -> int:
    """Let both checkouts answer, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, required=True, help="the Python of the other checkout's .venv")
    parser.add_argument("--documents", type=int, default=200, help="how many generated ones")
    parser.add_argument("--seed", type=int, default=1, help="of the first generated document")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        documents = Path(folder) / "documents"
        documents.mkdir()
        count = 0
        for name, files in _documents(options.documents, options.seed):
            place = documents / name
            place.mkdir()
            for file, content in files.items():
                (place / file).write_bytes(content)
            count += 1
        answers = []
        for side, python in (("ours", Path(sys.executable)), ("theirs", options.against)):
            where = Path(folder) / side
            where.mkdir()
            subprocess.run([str(python), __file__, ANSWER, str(documents), str(where)], check=True)
            answers.append(where)
        return _compare(count, *answers)


def _compare(count: int, ours: Path, theirs: Path) -> int:
    different = 0
    names = sorted(path.name for path in ours.iterdir())
    assert names == sorted(path.name for path in theirs.iterdir())
    for name in names:
        if (ours / name).read_bytes() != (theirs / name).read_bytes():
            different += 1
            kept = Path(tempfile.gettempdir()) / "underhost-different"
            kept.mkdir(exist_ok=True)
            for side in (ours, theirs):
                (kept / f"{name}.{side.name}").write_bytes((side / name).read_bytes())
            if different <= 20:
                print(f"{name} differs: {kept / name}.{{ours,theirs}}")
    print(f"{count} documents, {len(names)} answers, {different} differ")
    return 1 if different else 0


def _documents(count: int, seed: int) -> Iterator[tuple[str, dict[str, bytes]]]:
    from oracle import generate

    for path in sorted((HERE / "cases").glob("*.json")):
        yield f"case-{path.stem}", _with_inventory(json.loads(path.read_bytes()), 1)
    dump = ROOT / "tests/data/kubevirt"
    yield (
        "kubevirt",
        {"dump.json": (dump / "dump.json").read_bytes(), "inventory.json": (dump / "inventory.json").read_bytes()},
    )
    examples = ROOT / "docs/examples"
    yield (
        "example",
        {
            "dump.yaml": (examples / "cluster.yaml").read_bytes(),
            "inventory.yaml": (examples / "inventory.yaml").read_bytes(),
        },
    )
    for number in range(seed, seed + count):
        yield f"seed-{number:06}", _with_inventory(generate.document(number, 0.3, number % 4 != 0), number)


def _with_inventory(document: dict[str, Any], seed: int) -> dict[str, bytes]:
    chance = random.Random(seed)
    names = sorted(item["metadata"]["name"] for item in document["items"] if item["kind"] == "Node")
    hosts = max(2, (len(names) + 1) // 2)
    inventory = {
        "kind": "Inventory",
        "hosts": [{"name": f"esx-{at}", "id": f"h{at}", "cluster": f"C{at % 2}"} for at in range(hosts)],
        "vms": [
            {"name": name, "id": f"vm-{at}", "host": f"h{chance.randrange(hosts)}"}
            for at, name in enumerate(names)
            if chance.random() < 0.95
        ],
    }
    return {"dump.json": json.dumps(document).encode(), "inventory.json": json.dumps(inventory).encode()}


# ----------------------------------------------------------------------------------- in the checkout that answers
def answer(documents: Path, where: Path) -> None:
    """Write what every command says of every document: standard output, standard error, exit code."""
    from underhost.agents import cli  # the checkout's own, whose Python this is

    _import_what_they_need(cli, documents, where)
    workers = [_share(cli, documents, where, at) for at in range(2)]
    failed = [os.waitpid(worker, 0)[1] for worker in workers]
    if any(failed):
        raise SystemExit("a worker failed")


def _import_what_they_need(cli: Any, documents: Path, where: Path) -> None:
    """Once, for all the processes to come; but polars has threads, and those are lost in a fork."""
    place = documents / "example"
    for words in _commands(place):
        _run(cli, words, place, where / "modules", tell=True)
        for name in (where / "modules.imported").read_text().split():
            if not name.startswith(("polars", "_polars", "__main")):
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
    for path in where.glob("modules.*"):
        path.unlink()


def _share(cli: Any, documents: Path, where: Path, at: int) -> int:
    """Every second document, in a process of its own."""
    worker = os.fork()
    if worker:
        return worker
    for place in sorted(documents.iterdir())[at::2]:
        for number, words in enumerate(_commands(place)):
            _run(cli, words, place, where / f"{place.name}.{number:02}-{words[0]}")
    os._exit(0)


def _commands(place: Path) -> Iterator[list[str]]:
    dump, inventory = (next(place.glob(f"{name}.*")) for name in ("dump", "inventory"))
    node, host = _first(dump), "host/esx-0" if place.name.startswith(("seed", "case")) else "host/esx-1"
    for words in COMMANDS:
        filled = [word.format(node=node, host=host) for word in words]
        given = ["-f", dump.name] + (["--inventory", inventory.name] if words[0] != "explain" or _is_even(node) else [])
        yield [*filled, *given]


def _is_even(node: str) -> bool:
    """Half of the explanations are asked without a vSphere side."""
    return len(node) % 2 == 0


def _first(dump: Path) -> str:
    if dump.suffix == ".json":
        return min(
            item["metadata"]["name"] for item in json.loads(dump.read_bytes())["items"] if item["kind"] == "Node"
        )
    return "worker-1"


def _run(cli: Any, words: list[str], place: Path, into: Path, tell: bool = False) -> None:
    """One command in a process of its own: nothing is left over from the one before."""
    child = os.fork()
    if child == 0:
        os.chdir(place)
        for number in (1, 2):
            os.dup2(os.open(f"{into}.{number}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
        sys.argv = ["underhost", *words]
        code = 70
        with contextlib.suppress(BaseException):
            try:
                cli.main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 71
            sys.stdout.flush()
        if tell:
            Path(f"{into}.imported").write_text("\n".join(name for name in sys.modules if "polars" not in name))
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    Path(f"{into}.code").write_text(f"{code}\n")


if __name__ == "__main__":
    if sys.argv[1:2] == [ANSWER]:
        answer(Path(sys.argv[2]).resolve(), Path(sys.argv[3]).resolve())
        sys.exit(0)
    sys.exit(main())
