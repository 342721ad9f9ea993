"""Who a worker is to a lease: the same after a restart, never the same as another one that lives."""

import socket
import subprocess
import sys
from pathlib import Path

from underhost.agents.pipeline.leases.identity import identify

PROGRAM = """
import sys
from pathlib import Path
from underhost.agents.pipeline.leases.identity import identify
print(identify(sys.argv[2], Path(sys.argv[1])).name, flush=True)
sys.stdin.read()
"""


def worker(folder: Path, job: str = "prod /var/lib/prod.db") -> tuple["subprocess.Popen[str]", str]:
    """A process that lives until it is killed, and its name."""
    command = [sys.executable, "-c", PROGRAM, str(folder), job]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def test_two_workers_of_a_host_have_two_names_and_a_killed_one_its_own_again(tmp_path: Path) -> None:
    first, name = worker(tmp_path / "locks")
    second, other = worker(tmp_path / "locks")
    first.kill()
    first.wait()
    third, again = worker(tmp_path / "locks")
    for process in (second, third):
        process.kill()
        process.wait()
    assert name.startswith(f"{socket.gethostname()}_")
    assert name != other
    assert again == name


def test_a_killed_one_has_its_own_name_again_though_one_of_another_site_has_ended(tmp_path: Path) -> None:
    other, _ = worker(tmp_path / "locks", "test /var/lib/test.db")
    killed, name = worker(tmp_path / "locks")
    for process in (other, killed):
        process.kill()
        process.wait()
    again, its_name = worker(tmp_path / "locks")
    again.kill()
    again.wait()
    assert its_name == name


def test_two_in_one_process_have_two_names(tmp_path: Path) -> None:
    one, two = identify("prod", tmp_path), identify("prod", tmp_path)
    assert one.name != two.name
    one.close()
    three = identify("prod", tmp_path)
    assert three.name == one.name
    two.close()
    three.close()


def test_another_folder_is_another_worker_as_in_two_pods_of_one_host(tmp_path: Path) -> None:
    one, two = identify("prod", tmp_path / "one"), identify("prod", tmp_path / "two")
    assert one.name != two.name
    one.close()
    two.close()


def test_where_others_may_write_nothing_is_locked_and_each_start_is_another_worker(tmp_path: Path) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(0o777)
    one, two = identify("prod", place), identify("prod", place)
    assert (one.lock, two.lock) == (None, None)
    assert one.name != two.name
    assert list(place.iterdir()) == []
