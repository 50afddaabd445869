"""A client that knows only ptyai 0.1.1: its nine tools, their parameters and the fields of their results.

Each behaviour of sessions and keys that its own suite asserts, but for what README.md lists as changed.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from mcp_clients.clients import Connection

RAW = r"""
import os, tty
tty.setraw(0)
os.write(1, b"ready\r\n")
while True:
    os.write(1, b"<" + os.read(0, 64).hex().encode() + b">\r\n")
"""
"""A program that shows each read from its terminal as hexadecimal digits."""

KEYS = {
    "ctrl+c": "03", "enter": "0d", "up": "1b5b41", "down": "1b5b42", "right": "1b5b43", "left": "1b5b44", "CTRL+C": "03",
    "Enter": "0d", "escape": "1b", "esc": "1b", "tab": "09", "shift+tab": "1b5b5a", "ctrl+z": "1a", "ctrl+d": "04",
}  # fmt: skip


@pytest.fixture(params=["npm", "python-handshake"])
def ptyai(request: pytest.FixtureRequest, connect: Callable[..., Connection]) -> Connection:
    """A client of the era that ptyai speaks."""
    return connect(request.param)


def create(ptyai: Connection, **more: Any) -> str:
    """A shell, as most behaviours need one."""
    made = ptyai.fields("pty_create", shell="/bin/sh", env={"PS1": "$ "}, **more)
    session = str(made["session_id"])
    assert ptyai.fields("pty_wait", session_id=session, pattern=r"\$")["matched"] is True
    return session


@pytest.mark.night
def test_session_1_a_session_has_an_id_a_pid_and_the_size_that_was_given(ptyai: Connection) -> None:
    made = ptyai.fields("pty_create", shell="/bin/sh", cols=100, rows=30)
    assert re.fullmatch("[0-9a-f-]{36}", made["session_id"])
    assert made["pid"] > 0
    assert (made["cols"], made["rows"], made["shell"]) == (100, 30, "/bin/sh")
    assert made["cwd"]


def test_session_2_what_is_waited_for_is_told_with_the_screen(ptyai: Connection) -> None:
    session = create(ptyai)
    waited = ptyai.fields("pty_write", session_id=session, input="echo HEL''LO\\r", wait_for="HELLO")
    assert (waited["matched"], waited["match_text"], waited["timed_out"], waited["exited"]) == (
        *(True, "HELLO"),
        *(False, False),
    )
    assert "HELLO" in waited["screen"]
    assert waited["bytes_written"] == len("echo HEL''LO\r")
    again = ptyai.fields("pty_wait", session_id=session, pattern="HELLO")
    assert (again["matched"], again["match_text"]) == (True, "HELLO")
    assert "HELLO" in again["screen"]


@pytest.mark.night
def test_session_3_ctrl_c_is_echoed(ptyai: Connection) -> None:
    session = create(ptyai)
    ptyai.fields("pty_write", session_id=session, input="cat; echo o''ver\\r")
    assert ptyai.fields("pty_sendkey", session_id=session, key="ctrl+c")["key_sent"] == "ctrl+c"
    assert ptyai.fields("pty_wait", session_id=session, pattern=r"\^C")["matched"] is True


def test_session_4_a_resize_is_seen_in_the_list(ptyai: Connection) -> None:
    session = create(ptyai)
    assert ptyai.fields("pty_resize", session_id=session, cols=90, rows=20) == {"cols": 90, "rows": 20}
    (listed,) = ptyai.fields("pty_list")["sessions"]
    assert (listed["sessionId"], listed["cols"], listed["rows"]) == (session, 90, 20)
    assert listed["pid"] > 0


@pytest.mark.night
def test_session_5_a_read_tells_the_size_and_the_cursor(ptyai: Connection) -> None:
    session = create(ptyai, cols=90, rows=20)
    read = ptyai.fields("pty_read", session_id=session)
    assert (read["cols"], read["rows"], read["cursor_col"], read["alt_screen"]) == (90, 20, 2, False)
    assert read["cursor_row"] in range(20)
    assert "$" in read["screen"]


@pytest.mark.night
def test_session_6_a_pattern_that_does_not_come_settles_only_if_that_is_asked_for(ptyai: Connection) -> None:
    session = create(ptyai)
    settled = ptyai.fields("pty_wait", session_id=session, pattern="never", settle_ms=300, timeout_ms=20_000)
    assert (settled["matched"], settled["timed_out"]) == (False, False)
    waited = ptyai.fields("pty_wait", session_id=session, pattern="never", timeout_ms=600)
    assert (waited["matched"], waited["timed_out"]) == (False, True)


@pytest.mark.night
def test_session_7_output_without_end_times_out(ptyai: Connection) -> None:
    session = create(ptyai)
    ptyai.fields("pty_write", session_id=session, input="while :; do echo x; sleep 0.1; done\\r")
    waited = ptyai.fields("pty_wait", session_id=session, pattern="never", timeout_ms=600, settle_ms=1000)
    assert (waited["matched"], waited["timed_out"]) == (False, True)


def test_session_8_what_left_the_screen_is_in_the_scrollback_without_escapes(ptyai: Connection) -> None:
    session = create(ptyai, rows=10)
    ptyai.fields(
        "pty_write",
        session_id=session,
        input=r"printf '\\033[31mline%s\\033[m\\n' $(seq 40); echo e''nd\r",
        wait_for="end",
    )
    read = ptyai.fields("pty_read", session_id=session, include_scrollback=True, scrollback_lines=50)
    assert "line1" in read["scrollback"]
    assert "\x1b" not in "".join(read["scrollback"])


@pytest.mark.night
def test_the_scrollback_forgets_the_oldest_lines_first_and_gives_the_newest(ptyai: Connection) -> None:
    session = create(ptyai, rows=10, scrollback=20)
    ptyai.fields("pty_write", session_id=session, input=r"printf 'line%s\n' $(seq 100); echo e''nd\r", wait_for="end")
    kept = ptyai.fields("pty_read", session_id=session, include_scrollback=True)["scrollback"]
    assert len(kept) <= 20
    assert "line1" not in kept
    numbers = [int(line.removeprefix("line")) for line in kept if line.startswith("line")]
    assert numbers == sorted(numbers)
    last = ptyai.fields("pty_read", session_id=session, include_scrollback=True, scrollback_lines=5)["scrollback"]
    assert last == kept[-5:]


@pytest.mark.night
def test_session_9_an_unknown_key_is_an_error(ptyai: Connection) -> None:
    session = create(ptyai)
    told = ptyai.failure("pty_sendkey", session_id=session, key="hyper+q")
    assert 'Unknown key: "hyper+q"' in told
    assert "Either key or keys must be provided" in ptyai.failure("pty_sendkey", session_id=session)


@pytest.mark.night
def test_session_10_a_killed_session_is_gone(ptyai: Connection) -> None:
    session = create(ptyai)
    killed = ptyai.fields("pty_kill", session_id=session)
    assert (killed["killed"], killed["session_id"]) == (True, session)
    assert f"Session not found: {session}" in ptyai.failure("pty_kill", session_id=session)
    assert ptyai.fields("pty_list") == {"sessions": []}


@pytest.mark.night
def test_session_11_output_raises_the_generation(ptyai: Connection) -> None:
    session = create(ptyai)
    before = ptyai.fields("pty_read", session_id=session)["generation"]
    ptyai.fields("pty_write", session_id=session, input="echo m''ore\\r", wait_for="more")
    assert ptyai.fields("pty_read", session_id=session)["generation"] > before


@pytest.mark.night
def test_session_12_a_read_tells_when_the_screen_changed(ptyai: Connection) -> None:
    read = ptyai.fields("pty_read", session_id=create(ptyai))
    assert read["generation"] > 0
    assert datetime.fromisoformat(read["last_modified"])


@pytest.mark.night
def test_session_13_a_wait_ends_with_the_program(ptyai: Connection) -> None:
    session = create(ptyai)
    ptyai.fields("pty_write", session_id=session, input="exit 3\\r")
    waited = ptyai.fields("pty_wait", session_id=session, pattern="never", timeout_ms=20_000)
    assert (waited["exited"], waited["matched"], waited["timed_out"]) == (True, False, False)


@pytest.mark.night
def test_session_14_what_was_seen_before_a_generation_does_not_match(ptyai: Connection) -> None:
    session = create(ptyai)
    ptyai.fields("pty_write", session_id=session, input="echo to''ken\\r", wait_for=r"token\s+\$")
    since = ptyai.fields("pty_read", session_id=session)["generation"]
    waited = ptyai.fields("pty_wait", session_id=session, pattern="token", since_generation=since, settle_ms=300)
    assert (waited["matched"], waited["timed_out"]) == (False, False)


@pytest.mark.night
def test_session_15_what_comes_after_a_generation_matches(ptyai: Connection) -> None:
    session = create(ptyai)
    since = ptyai.fields("pty_read", session_id=session)["generation"]
    assert ptyai.fields("pty_write", session_id=session, input="echo to''ken\\r")["bytes_written"] > 0
    waited = ptyai.fields("pty_wait", session_id=session, pattern="token", since_generation=since)
    assert waited["matched"] is True
    assert waited["generation"] > since


def test_keys_1_to_10_are_the_bytes_that_ptyai_sent(ptyai: Connection) -> None:
    made = ptyai.fields("pty_create", shell="python3", args=["-c", RAW])
    session = made["session_id"]
    since = ptyai.fields("pty_wait", session_id=session, pattern="ready")["generation"]
    for key, wanted in KEYS.items():
        ptyai.fields("pty_sendkey", session_id=session, key=key)
        waited = ptyai.fields("pty_wait", session_id=session, pattern="<[0-9a-f]+>", since_generation=since)
        assert (key, waited["match_text"]) == (key, f"<{wanted}>")
        since = waited["generation"]
    assert "Unknown key" in ptyai.failure("pty_sendkey", session_id=session, key="")
    names = [f"f{number}" for number in range(1, 13)]
    assert ptyai.fields("pty_sendkey", session_id=session, keys=names)["keys_sent"] == names


def test_keys_11_are_listed(ptyai: Connection) -> None:
    keys = ptyai.fields("pty_list_keys")["keys"]
    assert len(keys) > 20
    assert keys == sorted(keys)
    assert {"ctrl+c", "enter", "up", "f12", "shift+tab", "page_down", "alt+enter"} <= set(keys)
