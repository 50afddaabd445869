"""The resident client answers as a spawned tmux would, and nobody's screen text is taken for tmux's own words."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmuxctl.errors import Failed, NotFound, Unreachable
from tmuxctl.transport.control_mode import ControlChannel, NeedsSpawn

NUMBERS = itertools.count()


def until(true: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.005)


class Server:
    """A tmux server of this test's own."""

    def __init__(self) -> None:
        self.socket = f"tmuxctl-test-{os.getpid()}-{next(NUMBERS)}"

    def __call__(self, *words: str) -> bytes:
        return subprocess.run(
            ["tmux", "-L", self.socket, "-f", "/dev/null", *words], capture_output=True, timeout=20
        ).stdout

    def end(self) -> None:
        pid = int(self("display-message", "-p", "#{pid}"))
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    folder = tempfile.mkdtemp(prefix="tt-", dir="/tmp")
    for name in ("HOME", "TMUX_TMPDIR"):
        monkeypatch.setenv(name, folder)
    monkeypatch.delenv("TMUX", raising=False)
    made = Server()
    made("new-session", "-d", "-s", "db", "-x", "80", "-y", "24", "sh", "-c", "exec sleep 600", ";",
         "set", "-g", "exit-empty", "off", ";", "set", "-g", "remain-on-exit", "on")  # fmt: skip
    yield made
    for socket in (made.socket, made.socket + "-other"):
        subprocess.run(["tmux", "-L", socket, "kill-server"], stderr=subprocess.DEVNULL, timeout=20)
    shutil.rmtree(folder)


@pytest.fixture
def channel(server: Server) -> Iterator[ControlChannel]:
    opened = ControlChannel(server.socket)
    yield opened
    opened.close()


def say(text: str) -> tuple[str, ...]:
    return ("display-message", "-p", text)


def test_a_list_prints_what_a_spawned_tmux_prints(server: Server, channel: ControlChannel) -> None:
    channel.run([("set-option", "-g", "@long", "x" * 300_000)])
    lists: list[list[tuple[str, ...]]] = [
        [say("a"), say("ü #{pid}"), say("")],
        [say("a"), ("if-shell", "-F", "1", "display-message -p b ; display-message -p c", "no"), say("e")],
        [("capture-pane", "-p", "-t", "=db:"), say("#{history_size}")],
        [("show-options", "-gv", "@long")],
        [("list-sessions", "-F", "#{session_name}"), ("set-option", "-g", "@x", ";"), say("z")],
    ]
    for commands in lists:
        words: list[str] = []
        for command in commands:
            words += [";"] * bool(words) + [word.replace(";", "\\;") if word == ";" else word for word in command]
        assert channel.run(commands) == server(*words)


HOSTILE_ROWS = r"""
    printf '\033[31mred\033[0m \\033[31m \\\\ \\\\\\\\ $HOME ${HOME} $1 \\$HOME \\\\$HOME \\n \\s %% ü 漢字 ✌️ "\n'
    printf '\016lqqk\017 ~ \\\\016 %%end 1 2 1\n%%end 1 2 1\n\n'
"""


def test_a_screen_is_what_a_spawned_tmux_prints_of_it(server: Server, channel: ControlChannel) -> None:
    server(
        "new-session",
        "-d",
        "-s",
        "rows",
        "-x",
        "80",
        "-y",
        "24",
        "sh",
        "-c",
        f"{HOSTILE_ROWS} echo ready; exec sleep 600",
    )
    until(lambda: b"ready" in server("capture-pane", "-p", "-t", "=rows:"))
    for options in ((), ("-e",), ("-e", "-N"), ("-J",), ("-e", "-S", "-", "-E", "-1"), ("-S", "0", "-E", "0")):
        command = ("capture-pane", "-p", *options, "-t", "=rows:")
        assert channel.run([command]) == server(*command), options
        # a screen that is empty ends nowhere else than one that is not
        empty = ("capture-pane", "-p", *options, "-t", "=db:")
        assert channel.run([say("a"), command, empty, say("b"), command]) == b"".join(
            (b"a\n", server(*command), server(*empty), b"b\n", server(*command))
        )
    assert server("list-buffers") == b""


def test_a_screen_of_any_size_is_whole(server: Server, channel: ControlChannel) -> None:
    command = ("capture-pane", "-p", "-t", "=size:")
    for size in (975, 976, 977, 1999, 2000, 2001, 4047, 4048, 4049):
        # with the line end of its row, and those of 59 that are empty
        server("new-session", "-d", "-s", "size", "-x", str(size), "-y", "60", "sh", "-c",
               f"printf '%0{size - 60}d' 1; exec sleep 600")  # fmt: skip
        until(lambda: b"1\n" in server(*command))
        assert channel.run([command]) == server(*command) == b"%0*d" % (size - 60, 1) + b"\n" * 60
        server("kill-session", "-t", "=size")


def test_no_commands_print_nothing(channel: ControlChannel) -> None:
    assert channel.run([]) == b""
    assert channel.run([say("still there")]) == b"still there\n"


def test_an_error_ends_its_list_and_not_the_channel(channel: ControlChannel) -> None:
    with pytest.raises(NotFound) as caught:
        channel.run([say("before"), ("kill-session", "-t", "=nothing"), ("set-option", "-g", "@after", "1")])
    assert caught.value.message == "tmux: can't find session: nothing"
    with pytest.raises(Failed):
        channel.run([say("before"), ("no-such-command",)])
    assert channel.run([("show-options", "-gqv", "@after"), say("alive")]) == b"alive\n"


BUFFERS = [
    b"x",
    b"-R",
    b"~/x",
    b"%if",
    bytes(range(1, 256)) * 50,
    b"$HOME `id` \" ' \\ \\101 #{x} ;",
    b"\n\n",
    "ü👩‍👩".encode() * 1000,
]


def test_a_buffer_is_exact(server: Server, channel: ControlChannel) -> None:
    for data in BUFFERS:
        channel.run([("set-option", "-g", "@done", "1")], buffer=("b x", data))
        assert server("save-buffer", "-b", "b x", "-") == data


def test_what_cannot_go_over_it_is_refused_before_anything_is_sent(server: Server, channel: ControlChannel) -> None:
    for data in (b"a\0b", b"x" * 17_000):
        with pytest.raises(NeedsSpawn):
            channel.run([("set-option", "-g", "@sent", "1")], buffer=("b", data))
    for command in (("run-shell", "true"), ("kill-server",), ("load-buffer", "-"), ("new-session",), ("wait-for", "x")):
        with pytest.raises(NeedsSpawn):
            channel.run([("set-option", "-g", "@sent", "1"), command])
    assert server("show-options", "-gqv", "@sent") == b""
    assert channel.run([say("alive")]) == b"alive\n"


def test_notifications_and_hooks_are_no_answers(server: Server, channel: ControlChannel) -> None:
    server("set-hook", "-g", "after-set-option", "display-message -p hooked")
    server("new-session", "-d", "-s", "other")
    server("kill-session", "-t", "=other")
    assert channel.run([say("a"), ("set-option", "-g", "@x", "1"), say("b")]) == b"a\nb\n"
    assert channel.run([("rename-window", "-t", "=db:", "new"), say("c")]) == b"c\n"


def test_it_sits_in_a_hidden_session_and_changes_no_size(server: Server, channel: ControlChannel) -> None:
    shown = server("list-clients", "-F", "#{client_session},#{client_flags}").strip().split(b",")
    assert shown[0] == b"_tmuxctl"
    assert {b"no-output", b"ignore-size", b"control-mode", b"UTF-8"} <= set(shown)
    size = ("display-message", "-p", "-t", "=db:", "#{window_width}x#{window_height}")
    before = server(*size)
    # tmux 3.2a makes it a row smaller than asked for
    assert before in (b"80x24\n", b"80x23\n")
    second = ControlChannel(server.socket)
    assert server(*size) == before
    assert second.run([say("two")]) == channel.run([say("two")]) == b"two\n"
    second.close()
    assert sorted(server("list-sessions", "-F", "#{session_name}").split()) == [b"_tmuxctl", b"db"]


def test_opening_never_starts_a_server(server: Server) -> None:
    with pytest.raises(Unreachable) as caught:
        ControlChannel(server.socket + "-other")
    assert caught.value.reason == "no_server"
    with pytest.raises(Unreachable) as missing:
        ControlChannel(server.socket, tmux="tmuxctl-no-such-tmux")
    assert missing.value.reason == "no_tmux"


def gone(pid: int) -> bool:
    """Ended and waited for: not even a zombie is left."""
    return not Path(f"/proc/{pid}").exists()


@pytest.mark.night
def test_a_server_that_does_not_answer_closes_the_channel(server: Server, channel: ControlChannel) -> None:
    pid = int(server("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable) as caught:
            channel.run([say("a")], timeout=0.2)
        with pytest.raises(Unreachable) as opening:
            ControlChannel(server.socket, timeout=0.2)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert caught.value.reason == opening.value.reason == "backend_timeout"
    assert channel.closed
    assert gone(channel.pid)
    with pytest.raises(NeedsSpawn):
        channel.run([say("a")])
    again = ControlChannel(server.socket)
    assert again.run([say("again")]) == b"again\n"
    again.close()


def test_more_than_a_stopped_server_takes_is_given_up_too(server: Server, channel: ControlChannel) -> None:
    pid = int(server("display-message", "-p", "#{pid}"))
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(Unreachable) as caught:
            channel.run([("set-option", "-g", "@long", "x" * 250_000)], timeout=0.2)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert caught.value.reason == "backend_timeout"


def test_a_killed_server_is_told(server: Server, channel: ControlChannel) -> None:
    server.end()
    with pytest.raises((Unreachable, NeedsSpawn)) as caught:
        channel.run([say("a")])
    assert getattr(caught.value, "reason", "no_server") == "no_server"
    assert channel.closed
    assert gone(channel.pid)


def test_a_server_killed_during_a_call_is_told(server: Server, channel: ControlChannel) -> None:

    def end_once_asked() -> None:
        until(lambda: b"1" in server("show", "-gqv", "@now"))
        server.end()

    later = threading.Thread(target=end_once_asked)
    later.start()
    with pytest.raises(Unreachable) as caught:
        channel.run([("set-option", "-g", "@now", "1"), ("if-shell", "sleep 20", "", "")])
    later.join()
    assert caught.value.reason == "no_server"


def test_a_lost_hidden_session_only_sends_the_caller_elsewhere(server: Server, channel: ControlChannel) -> None:
    server("kill-session", "-t", "=_tmuxctl")
    until(lambda: b"_tmuxctl" not in server("list-clients", "-F", "#{client_session}"))
    with pytest.raises((NeedsSpawn, Unreachable)):
        channel.run([say("a")])
    assert channel.closed
    again = ControlChannel(server.socket)
    assert again.run([say("again")]) == b"again\n"
    again.close()


def test_threads_get_their_own_answers(channel: ControlChannel) -> None:
    wrong: list[bytes] = []

    def ask(number: int) -> None:
        for turn in range(50):
            answer = channel.run([say(f"{number}"), say(f"{turn}")])
            if answer != f"{number}\n{turn}\n".encode():
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_closing_ends_the_client_and_may_be_done_twice(server: Server) -> None:
    opened = ControlChannel(server.socket)
    opened.close()
    opened.close()
    assert opened.closed
    assert gone(opened.pid)
    assert server("list-sessions", "-F", "#{session_name}").split() == [b"_tmuxctl", b"db"]


FORGER = r"""#!/bin/sh
# answers as tmux would that shows a screen on which a program has guessed the coming guards
number=0
block() { number=$((number + 1)); printf '%%begin 7 %s 1\n%s%%end 7 %s 1\n' "$number" "$1" "$number"; }
screen() {
  this=$((number + 1)) next=$((number + 2)) before=$((number - 1))
  block "real
%end 7 $this 1
%begin 7 $next 1
forged
%end 7 $next 1
%error 7 $next 1
%end 7 $before 1
"
}
printf '%%begin 7 0 0\n%%end 7 0 0\n%%session-changed $0 _tmuxctl\n'
while IFS= read -r line; do
  printf '%%window-renamed @1 %%end 7 1 1\n'
  while :; do
    first=${line%% ; *}
    case $first in display-message*) block "${first##* }
" ;; capture-pane*) screen ;; *) block "" ;; esac
    case $line in *" ; "*) line=${line#* ; } ;; *) break ;; esac
  done
done
"""


def forged(number: int) -> bytes:
    after = f"7 {number + 1} 1\n"
    lines = ["real\n", f"%end 7 {number} 1\n", "%begin ", after, "forged\n%end ", after, "%error ", after]
    return "".join([*lines, f"%end 7 {number - 2} 1\n"]).encode()


def test_a_screen_that_forges_guards_is_shown_as_it_is(tmp_path: Path) -> None:
    fake = tmp_path / "tmux"
    fake.write_text(FORGER)
    fake.chmod(0o755)
    channel = ControlChannel("any", tmux=str(fake))
    capture, fact = ("capture-pane", "-p"), say("fact")
    try:
        assert channel.run([capture, fact]) == forged(3) + b"fact\n"
        # where the forged error was seen first, the end of the list was asked for: one block more
        told = channel.run([fact, capture, capture, fact])
        assert told in [b"fact\n" + forged(first) + forged(first + 2) + b"fact\n" for first in (9, 10)]
        assert channel.run([fact]) == b"fact\n"
    finally:
        channel.close()


def test_a_screen_that_looks_like_guards_is_shown_as_it_is(server: Server, channel: ControlChannel) -> None:
    lines = "%%end 1 2 1\\n%%begin 1 2 1\\n%%error 1 2 1\\n%%exit\\n"
    server("new-session", "-d", "-s", "hostile", f"printf '{lines}'; exec sleep 600")
    until(lambda: b"%exit" in server("capture-pane", "-p", "-t", "=hostile:"))
    shown = channel.run([("capture-pane", "-p", "-t", "=hostile:"), say("fact")])
    assert shown.splitlines()[:4] == [b"%end 1 2 1", b"%begin 1 2 1", b"%error 1 2 1", b"%exit"]
    assert shown.endswith(b"\nfact\n")


def test_an_error_behind_a_screen_that_shows_one_ends_the_list(server: Server, channel: ControlChannel) -> None:
    lines = "%%error 1 2 1\\n" * 3
    server("new-session", "-d", "-s", "hostile", f"printf '{lines}'; exec sleep 600")
    until(lambda: server("capture-pane", "-p", "-t", "=hostile:").count(b"%error") == 3)
    shown, missing = ("capture-pane", "-p", "-t", "=hostile:"), ("capture-pane", "-p", "-t", "=none:")
    for number in range(20):
        with pytest.raises(NotFound):
            channel.run([shown, missing, say("never")])
        assert channel.run([say(f"fact {number}")]) == f"fact {number}\n".encode()
        assert channel.run([shown, say("fact")]).count(b"%error 1 2 1\n") == 3
