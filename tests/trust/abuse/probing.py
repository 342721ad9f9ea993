"""What a probe sees of a worker that is abused, from a process of its own: `python -m trust.abuse.probing PORT FILE`.

In: the port of the worker on loopback. Out: a line of the file for each question of `/healthz`, with the seconds until
its answer; `inf` where there was none. It goes on until it is ended, so that the clients of the abuse cannot slow it.
"""

import socket
import sys
import time
from pathlib import Path

EVERY, GIVE_UP = 0.1, 5.0
"""Seconds between two questions, and until one counts as not answered."""
QUESTION = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"


def seconds(port: int) -> float:
    """How long one answer takes, its connection included; infinity where there is none, or another one."""
    began = time.perf_counter()
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=GIVE_UP) as line:
            line.sendall(QUESTION)
            answer = line.makefile("rb").readline()
    except OSError:
        return float("inf")
    return time.perf_counter() - began if b" 200 " in answer else float("inf")


def main(port: int, file: Path) -> None:
    """Ask for ever."""
    with file.open("w", buffering=1) as out:
        while True:
            print(seconds(port), file=out)
            time.sleep(EVERY)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
