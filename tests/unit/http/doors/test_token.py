"""The token of a file: read again when it changes, and what it signs."""

import os
import stat
import subprocess
from pathlib import Path

import pytest
from support.sites.doors import TOKEN

from underhost.agents.http.doors.token import SESSION_SECONDS, TokenFile
from underhost.schemas.errors import InputError

GUIDE = Path(__file__).parents[4] / "docs" / "how-to" / "lock-the-doors.md"


def write(file: Path, text: str, at: int = 1) -> None:
    """The text, as of a time of its own."""
    file.write_text(text)
    os.utime(file, ns=(at, at))


def test_a_line_break_at_its_end_is_not_part_of_the_token(tmp_path: Path) -> None:
    write(tmp_path / "token", f"{TOKEN}\n")
    token = TokenFile(tmp_path / "token")
    assert [token.is_it(shown) for shown in (TOKEN, f"{TOKEN}\n", TOKEN[:-1], "", "ö", "\udcff")] == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]


def test_the_command_of_the_guide_makes_a_token_that_nobody_else_can_read(tmp_path: Path) -> None:
    [line] = [line for line in GUIDE.read_text().splitlines() if "openssl rand" in line]
    subprocess.run(["bash", "-c", line], cwd=tmp_path, check=True)
    made = (tmp_path / "token").read_text().strip()
    assert (len(made), TokenFile(tmp_path / "token").is_it(made)) == (64, True)
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_a_rotated_token_is_used_at_once_and_half_a_rotation_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "token"
    write(file, TOKEN, 1)
    token = TokenFile(file)
    write(file, "the-next-token-of-all", 2)
    assert (token.is_it(TOKEN), token.is_it("the-next-token-of-all")) == (False, True)
    write(file, "", 3)
    assert token.is_it("the-next-token-of-all")
    file.unlink()
    assert token.is_it("the-next-token-of-all")
    write(file, "and-one-more-token-after", 4)
    assert (token.is_it("the-next-token-of-all"), token.is_it("and-one-more-token-after")) == (False, True)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param(None, "No such file or directory", id="no file"),
        pytest.param(b"", "a token of 16 characters at least is expected", id="nothing"),
        pytest.param(b"fifteen-letters\n", "a token of 16 characters at least is expected", id="too short"),
        pytest.param(b"two tokens of two lines", "one token without spaces is expected", id="spaces"),
        pytest.param(b"first-token-of-all\nsecond-token", "one token without spaces is expected", id="two lines"),
        pytest.param(b"\xff" * 20, "not ASCII text", id="no text"),
    ],
)
def test_a_file_that_holds_no_token_is_one_clear_line(tmp_path: Path, content: bytes | None, why: str) -> None:
    file = tmp_path / "token"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        TokenFile(file)
    assert str(caught.value) == f"web.tokenFile: {file}: {why}"


def test_a_session_lasts_thirty_days_and_as_long_as_the_token(tmp_path: Path) -> None:
    file, now = tmp_path / "token", [1000.0]
    write(file, TOKEN, 1)
    token = TokenFile(file, lambda: now[0])
    made = token.new_session()
    assert TOKEN not in made and token.is_session(made)
    now[0] += SESSION_SECONDS - 1
    assert token.is_session(made)
    now[0] += 2
    assert not token.is_session(made)
    fresh = token.new_session()
    assert (fresh != made, token.is_session(fresh)) == (True, True)
    write(file, "the-next-token-of-all", 2)
    assert not token.is_session(fresh)


@pytest.mark.parametrize("forged", ["", ".", "x", "9999999999.aa.", "9999999999.aa.bb", "\udcff.é", "9" * 5000])
def test_what_we_have_not_signed_is_no_session(tmp_path: Path, forged: str) -> None:
    write(tmp_path / "token", TOKEN)
    assert not TokenFile(tmp_path / "token").is_session(forged)


def test_a_session_whose_end_was_put_off_is_none(tmp_path: Path) -> None:
    write(tmp_path / "token", TOKEN)
    token = TokenFile(tmp_path / "token")
    ends, rest = token.new_session().split(".", 1)
    assert not token.is_session(f"{int(ends) + 1}.{rest}")


def test_workers_with_different_tokens_on_one_machine_do_not_share_a_cookie(tmp_path: Path) -> None:
    write(tmp_path / "one", TOKEN)
    write(tmp_path / "two", TOKEN + "2")
    assert TokenFile(tmp_path / "one").cookie != TokenFile(tmp_path / "two").cookie
