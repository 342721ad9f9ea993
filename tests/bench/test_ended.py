"""What is run by hand ends the programs that it has started where it is told to end, as by `kill`."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes.programs import TESTS

HOLD = """
import subprocess, sys
def hold(*_, **__):
    with open({fifo!r}, "w") as told, subprocess.Popen(["sleep", "600"], stdout=told) as child:
        try:
            print("begun", file=told, flush=True)
            child.wait()
        finally:
            child.kill()
"""
BESIDE = """
from bench import beside
beside.WORKS["check"] = hold
sys.argv[1:] = ["check", "--against", "other"]
beside.main()
"""
BENCH = """
from bench import run
run._compile = lambda: None
run._measure = lambda *_: run.ran([sys.executable, "-c", {hold!r}])
sys.argv[1:] = ["check"]
run.main()
"""
TRUST = """
from trust import run
run.run = hold
sys.argv[1:] = ["inputs"]
run.main()
"""


@pytest.mark.parametrize("program", [BESIDE, BENCH, TRUST], ids=["make beside", "make bench", "make trust"])
def test_what_is_told_to_end_leaves_nothing_running(program: str, tmp_path: Path) -> None:
    fifo = tmp_path / "held"
    os.mkfifo(fifo)
    hold = HOLD.format(fifo=str(fifo))
    code = hold + program.format(hold=f"{hold}hold()\n")
    with subprocess.Popen([sys.executable, "-c", code], cwd=TESTS) as running, fifo.open() as held:
        assert held.readline() == "begun\n"
        running.send_signal(signal.SIGTERM)
        assert held.read() == "", "it ends once nobody holds it any more"
    assert running.returncode == 128 + signal.SIGTERM
