"""Which code a run of a bench is about."""

import pytest
from bench.figures.measured import files_of


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        pytest.param("pipeline", ["pace.py", "pipeline.py"], id="itself and the pace"),
        pytest.param("stream", ["pace.py", "pipeline.py", "stream.py", "usage.py"], id="what it imports"),
        pytest.param("offline.check", ["offline/check.py", "pace.py", "usage.py"], id="in a room"),
        pytest.param(
            "cluster.latency",
            ["cluster/latency.py", "cluster/worker.py", "pace.py", "rounds.py", "usage.py"],
            id="and what that imports, but no other bench",
        ),
    ],
)
def test_a_run_is_about_the_bench_and_what_it_imports(module: str, expected: list[str]) -> None:
    assert files_of(module) == expected
