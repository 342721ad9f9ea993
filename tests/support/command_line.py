"""The command line, called as a shell calls it, in the process of the test."""

import sys

import pytest

from underhost.agents import cli


def run(monkeypatch: pytest.MonkeyPatch, *words: str, program: str = "/usr/bin/underhost") -> object:
    """The exit code of these words."""
    monkeypatch.setattr(cli.os, "_exit", sys.exit)  # a command that has read a site ends the process at once
    monkeypatch.setattr(sys, "argv", [program, *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return ended.value.code
