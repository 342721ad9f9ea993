"""Several runs over one set-up are read apart."""

import pytest
from bench.rounds import read, tell


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        pytest.param("check, s\t1.5\nmemory\t1,024 MiB\n", [{"check, s": 1.5, "memory": 1024.0}], id="one run"),
        pytest.param(
            "objects, MB\t836\nrun\ncheck, s\t1.5\nrun\ncheck, s\t2.5 (1-3)\n",
            [{"objects, MB": 836.0, "check, s": 1.5}, {"objects, MB": 836.0, "check, s": 2.5}],
            id="two runs over one set-up",
        ),
        pytest.param("a note\nhow\tno number\n", [{}], id="no value"),
    ],
)
def test_the_runs_of_a_bench_are_read_apart(printed: str, expected: list[dict[str, float]]) -> None:
    assert read(printed) == expected


def test_runs_are_read_as_they_were_told(capsys: pytest.CaptureFixture[str]) -> None:
    runs = [{"CPU, s": 0.0002, "pods/s": 631.25}, {"CPU, s": 12.5, "pods/s": 1_234_567.0}]
    tell(runs)
    assert read(capsys.readouterr().out) == runs
