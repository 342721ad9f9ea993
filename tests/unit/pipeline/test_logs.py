"""What a worker logs, and how loud it is."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from underhost.agents.pipeline import logs


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        """It is."""
        return True


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Logging is the process's: the test gives it back as it found it."""
    root = logging.getLogger()
    names = ("underhost", *logs.ALWAYS, *logs.LIBRARIES)
    before = list(root.handlers), root.level, {name: logging.getLogger(name).level for name in names}
    yield
    root.handlers[:], root.level = before[0], before[1]
    for name, level in before[2].items():
        logging.getLogger(name).setLevel(level)
    structlog.reset_defaults()


def lines(verbosity: int) -> list[tuple[str, str]]:
    """(logger, event) of what comes out at this verbosity."""
    stream = io.StringIO()
    logs.configure(verbosity, stream)
    for name in (logs.ALWAYS[0], "underhost.agents.pipeline.decide.cycle", "faust.app", "aiokafka.cluster"):
        logger = logging.getLogger(name)
        logger.debug("debug")
        logger.info("info")
        logger.warning("warning")
    structlog.get_logger("underhost.kubernetes").warning("listed", site="prod")
    events = [json.loads(line) for line in stream.getvalue().splitlines()]
    return [(event["logger"], event["event"]) for event in events]


def test_it_is_quiet_unless_asked() -> None:
    assert lines(0) == [
        (logs.ALWAYS[0], "info"),
        (logs.ALWAYS[0], "warning"),
        ("underhost.agents.pipeline.decide.cycle", "warning"),
        ("underhost.kubernetes", "listed"),
    ]


def test_once_the_worker_ends_its_libraries_are_silent_unless_all_is_asked_for() -> None:
    stream = io.StringIO()
    logs.configure(0, stream)
    logs.hush()
    logging.getLogger("faust.app").error("an agent was cancelled")
    assert stream.getvalue() == ""
    logs.configure(2, stream)
    logs.hush()
    logging.getLogger("faust.app").error("an agent was cancelled")
    assert json.loads(stream.getvalue())["event"] == "an agent was cancelled"


def test_once_says_what_underhost_does_and_twice_what_its_libraries_do() -> None:
    assert ("underhost.agents.pipeline.decide.cycle", "info") in lines(1)
    assert ("faust.app", "info") not in lines(1)
    assert {
        ("faust.app", "info"),
        ("aiokafka.cluster", "info"),
        ("underhost.agents.pipeline.decide.cycle", "debug"),
    } <= set(lines(2))


def test_off_a_terminal_each_event_is_one_json_object_even_with_a_traceback() -> None:
    stream = io.StringIO()
    logs.configure(0, stream)
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError:
        logging.getLogger("underhost.x").exception("it failed", extra={})
    [line] = stream.getvalue().splitlines()
    event = json.loads(line)
    assert (event["event"], event["level"]) == ("it failed", "error")
    assert event["exception"].endswith("ZeroDivisionError: a bug")


def test_on_a_terminal_names_from_a_cluster_cannot_write_control_characters() -> None:
    stream = Terminal()
    logs.configure(0, stream)
    structlog.get_logger("underhost.x").warning("pod \x1b[2Jevil", pod="a\x07b")
    assert "\x1b[2J" not in stream.getvalue()
    assert "\x07" not in stream.getvalue()
    assert "evil" in stream.getvalue()


def test_a_traceback_on_a_terminal_shows_no_variables_and_no_control_characters() -> None:
    stream = Terminal()
    logs.configure(0, stream)
    password = "s3" + "cret"
    try:
        raise ValueError(f"refused a user with {len(password)} letters\x1b[31m")
    except ValueError:
        structlog.get_logger("underhost.vsphere").exception("login failed")
    said = stream.getvalue()
    assert "ValueError: refused a user with 6 letters?[31m" in said
    assert "s3cret" not in said
