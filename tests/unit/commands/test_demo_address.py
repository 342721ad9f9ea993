"""Where the demo's page is: the usual address, and a free port where somebody else has it."""

import socket

import pytest

from underhost.agents.commands.handlers import demo


def test_a_second_demo_takes_a_free_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = taken.getsockname()
        monkeypatch.setattr(demo, "USUAL", place)
        taken.listen()
        assert demo._free() == "127.0.0.1:0"
    assert demo._free() == f"127.0.0.1:{place[1]}"
