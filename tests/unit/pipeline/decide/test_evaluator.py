"""The evaluator of a worker is loaded by its first evaluation, wholly."""

import subprocess
import sys

SCRIPT = """
import sys
from underhost.agents.pipeline.decide.evaluator import LazyEvaluator
from underhost.agents.site.snapshot import Options, Snapshot

evaluator = LazyEvaluator(Options())
print("polars" in sys.modules)
evaluator.update(Snapshot(site="prod"))
print("polars" in sys.modules)
"""


def test_the_first_pods_that_must_be_apart_do_not_wait_for_polars_to_be_imported() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"], done.stderr
