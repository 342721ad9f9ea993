"""Does the evaluator say what the upstream scheduler says? Over N random documents, part by part, with the agreement.

    python tests/oracle/parity.py --documents 500 --seed 1 [--parts explain,schedule] [--file documents.jsonl]

Exit code 0 when everything agrees, 1 when something differs, 2 when upstream cannot be asked. Each difference names the
document's seed, the pod, the node, the rule, and both answers.
"""

import argparse
import json
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from oracle import compare, generate, upstream

PARTS = ("explain", "running", "schedule", "check")


def main(arguments: list[str] | None = None) -> int:
    """Run the comparison and print it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=100, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the first document; document i has seed + i")
    parser.add_argument("--parts", default=",".join(PARTS), help=f"of {', '.join(PARTS)}")
    parser.add_argument("--file", type=Path, help="List documents, one a line, instead of generated ones")
    parser.add_argument("--storage", type=float, default=0.3, help="share of documents with claims and volumes")
    parser.add_argument("--manifests", action="store_true", help="pods as written: defaulting is compared, too")
    parser.add_argument("--show", type=int, default=10, help="differences that are printed")
    options = parser.parse_args(arguments)
    parts = frozenset(options.parts.split(","))
    if not parts <= set(PARTS):
        parser.error(f"--parts: of {', '.join(PARTS)}")
    try:
        binary = upstream.build()
        flags = ("-running", "-both", *(["-as-created"] if options.manifests else []))
        return _run(binary, flags, dict(_documents(options)), parts, options.show)
    except upstream.NoOracle as error:
        print(error, file=sys.stderr)
        return 2


def _documents(options: argparse.Namespace) -> Iterator[tuple[int, bytes]]:
    if options.file is not None:
        yield from enumerate(options.file.read_bytes().splitlines())
        return
    for seed in range(options.seed, options.seed + options.documents):
        yield seed, json.dumps(generate.document(seed, options.storage, not options.manifests)).encode()


def _run(binary: Path, flags: tuple[str, ...], documents: dict[int, bytes], parts: frozenset[str], show: int) -> int:
    started = time.monotonic()
    judged: Counter[str] = Counter()
    different: Counter[str] = Counter()
    by_rule: Counter[str] = Counter()
    shown = 0
    answers = upstream.ask(binary, documents.values(), *flags)
    for (seed, document), answer in zip(documents.items(), answers, strict=True):
        for part in parts:
            judged[part] += _size(part, answer)
        try:
            found = compare.compare(document, answer, parts)
        except Exception:  # noqa: BLE001 - a crash of the evaluator is a finding of this tool, named by its document
            found = [compare.Difference("crash", "", "", "", traceback.format_exc(limit=-4), "")]
        for difference in found:
            different[difference.part] += 1
            by_rule[f"{difference.part} {difference.rule}"] += 1
            if shown < show:
                shown += 1
                print(f"document {seed}: {difference}")
    print(f"{len(documents)} documents, {time.monotonic() - started:.0f} s")
    for part in (*(one for one in PARTS if one in parts), *(["crash"] if different["crash"] else [])):
        total = max(judged[part], 1)
        share = 100 * (total - min(different[part], total)) / total
        print(f"{part:9} {judged[part]:8} verdicts, {different[part]:6} differences, {share:.3f} % agree")
    for rule, count in by_rule.most_common(20):
        print(f"  {rule}: {count}")
    return 1 if different else 0


def _size(part: str, answer: dict[str, dict[str, dict[str, object]]]) -> int:
    """How many verdicts a document asks for: pod and node pairs, or pods."""
    if part == "schedule":
        return len(answer["simulate"]["placements"])
    if part == "check":
        return len(answer.get("running") or {})
    pods = answer["pods"] if part == "explain" else answer.get("running") or {}
    return sum(len(verdict["nodes"]) for verdict in pods.values())  # type: ignore[misc, arg-type]


if __name__ == "__main__":
    sys.exit(main())
