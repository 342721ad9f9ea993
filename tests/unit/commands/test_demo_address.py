"""Where the demo's page is: the usual address, and a free port where somebody else has it."""

import socket
from pathlib import Path

import pytest

from underhost.agents.commands.handlers import demo
from underhost.agents.commands.output.invocation import typed


def test_a_second_demo_takes_a_free_port_and_has_a_sentence_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        place = taken.getsockname()
        monkeypatch.setattr(demo, "USUAL", place)
        taken.listen()
        sentence = f"127.0.0.1:{place[1]} is taken by another program, so the page gets a free port."
        assert demo._free() == ("127.0.0.1:0", sentence)
    assert demo._free() == (f"127.0.0.1:{place[1]}", None)


@pytest.mark.parametrize(
    ("on_path", "active", "typed_as"),
    [
        pytest.param(True, False, "underhost", id="on PATH everywhere"),
        pytest.param(False, False, "{bin}/underhost", id="not on PATH"),
        pytest.param(True, True, "{bin}/underhost", id="on PATH of this terminal only: a virtual environment"),
    ],
)
def test_a_command_is_written_as_another_terminal_takes_it(
    tmp_path: Path, on_path: bool, active: bool, typed_as: str
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "underhost"
    program.write_text("")
    program.chmod(0o755)
    environment = {"PATH": f"/usr/bin:{folder}" if on_path else "/usr/bin"}
    if active:
        environment["VIRTUAL_ENV"] = str(tmp_path)
    assert typed(str(program), environment) == typed_as.format(bin=folder)
