"""Where the demo's page is: the usual address, and a free port where somebody else has it."""

from pathlib import Path

import pytest
from support.processes.ports import free_ports
from typer.testing import CliRunner

from underhost.agents.commands.application import build
from underhost.agents.commands.handlers import demo
from underhost.agents.commands.output.invocation import typed


def test_a_second_demo_takes_a_free_port_and_has_a_sentence_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    [port] = free_ports(1)
    monkeypatch.setattr(demo, "USUAL", ("127.0.0.1", port))
    with demo._a_page(None) as (address, first, words):
        assert first is not None
        assert (address, words) == (f"127.0.0.1:{port}", None)
        with demo._a_page(None) as (another, second, words):  # though no page is served at the first one yet
            assert second is not None
            assert another == f"127.0.0.1:{second.getsockname()[1]}" != address
            assert words == f"{address} is taken by another program, so the page gets a free port."
    with demo._a_page(None) as (again, _, words):
        assert (again, words) == (address, None)


def test_an_address_that_was_asked_for_is_left_to_the_worker() -> None:
    with demo._a_page("127.0.0.1:9") as page:
        assert page == ("127.0.0.1:9", None, None)


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


def test_the_help_does_not_name_the_log_of_a_worker_as_that_of_the_demo() -> None:
    said = " ".join(CliRunner().invoke(build(), ["demo", "--help"]).stdout.split())
    assert "--embedded FILE File of the embedded log; absent: a temporary one." in said
