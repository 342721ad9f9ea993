"""How long is a check? A small one beside an import of polars; a large one with its parts; memory.

Prints `name<TAB>value` lines. The large one is `support.sites.large`: 5,000 nodes on 512 hosts, 150,000 pods.
"""

import sys
import tempfile
import time
from pathlib import Path

from bench.usage import usage_of
from support.processes.underhost import UNDERHOST
from support.sites.large import LargeSite

DATA = Path(__file__).parents[2] / "data" / "kubevirt"
ROUNDS = 7


def main() -> None:
    """Measure and print."""
    small = [UNDERHOST, "check", "-f", str(DATA / "dump.json"), "--inventory", str(DATA / "inventory.json")]
    polars = [sys.executable, "-c", "import polars"]
    pairs = [(usage_of(small).cpu, usage_of(polars).cpu) for _ in range(ROUNDS)][1:]
    ratios = sorted(one / other for one, other in pairs)
    print(f"7 nodes: CPU of check / of importing polars\t{ratios[len(ratios) // 2]:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        dump, inventory = LargeSite().write(Path(folder))
        whole = [UNDERHOST, "check", "-f", str(dump), "--inventory", str(inventory), "-o", "json"]
        wall, cpu, memory = min(usage_of(whole) for _ in range(2))
        print(f"150,000 pods: whole command, CPU s\t{cpu:.2f}")
        print(f"150,000 pods: whole command, s\t{wall:.2f}")
        print(f"150,000 pods: memory, MiB\t{memory:.0f}")
        for name, seconds in _parts(dump, inventory).items():
            print(f"150,000 pods: {name}, CPU s\t{seconds:.3f}")


def _parts(dump: Path, inventory: Path) -> dict[str, float]:
    from underhost.agents.compiled.model import compile
    from underhost.agents.evaluate.check import check
    from underhost.agents.site.snapshot import Options
    from underhost.agents.snapshots.load import snapshot_of
    from underhost.streams.files.reader import load_files

    found: dict[str, float] = {}
    begin = time.process_time()
    objects = load_files([dump], inventory=inventory)
    found["read"], begin = time.process_time() - begin, time.process_time()
    snapshot, _ = snapshot_of(objects, manifests=False)
    model = compile(snapshot, Options())
    found["compile"], begin = time.process_time() - begin, time.process_time()
    check(snapshot, Options(), model)
    found["check, cold"], begin = time.process_time() - begin, time.process_time()
    check(snapshot, Options(), model)
    found["check, warm"] = time.process_time() - begin
    return found


if __name__ == "__main__":
    main()
