"""Who is ended with the nursery: its own workers, and no process that has got the pid of one."""

import json
import signal
import subprocess
import sys

from support.processes.programs import TESTS

FORKED = """
import json, os, signal
from trust.sieve.nursery import Workers, is_alive
workers = Workers()
ended = workers.fork()
if not ended:
    os._exit(0)
while is_alive(ended):
    pass
stays = workers.fork()
if not stays:
    signal.pause()
known = workers.pids == {stays}
workers.kill()
print(json.dumps({"known": known, "ended by": os.waitpid(stays, 0)[1]}))
"""


def test_a_worker_that_has_ended_is_forgotten_and_one_that_runs_is_killed() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKED], cwd=TESTS, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"known": True, "ended by": signal.SIGKILL}
