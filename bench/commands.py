"""`exec`: a command's exact output and status, in bash, zsh, fish and sh."""

from __future__ import annotations

import shlex
import shutil
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from place import Place, Row, counted, until

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tmuxctl.results import Ran

EACH = 50
SHELLS = ("bash", "zsh", "fish", "sh")
LARGE = 5_000_000
PATTERN = bytes(range(256)) + b"\n"
PRODUCE = f"import sys;d=(bytes(range(256))+b'\\n')*{LARGE // len(PATTERN) + 1};sys.stdout.buffer.write(d[:{LARGE}])"
MARKERS = "printf 'a\\033]133;D;7\\007b\\033]133;A\\007c\\033]133;C;token=x\\007d\\n'"


class Case(NamedTuple):
    """A command, and what it must print and end with."""

    name: str
    command: tuple[str, ...]
    output: bytes
    status: int | None
    ends_shell: bool = False


def cases(shell: str, number: int) -> Case:
    """One of the kinds of command, in turn."""
    status = "status" if shell == "fish" else "?"
    kinds: tuple[Callable[[], Case], ...] = (
        lambda: Case("echo", (f"echo line {number}",), f"line {number}\n".encode(), 0),
        lambda: Case("no newline", (f"printf end{number}",), f"end{number}".encode(), 0),
        lambda: Case("failing", (f"sh -c 'echo out; exit {number % 256}'",), b"out\n", number % 256),
        lambda: Case("several lines", ("echo one\necho two\n\necho three",), b"one\ntwo\nthree\n", 0),
        lambda: Case("markers", (MARKERS,), b"a\x1b]133;D;7\x07b\x1b]133;A\x07c\x1b]133;C;token=x\x07d\n", 0),
        lambda: Case(
            "words", ("printf", "%s|", "a b", "$HOME", "'q'", "*", "", ";", "`x`"), b"a b|$HOME|'q'|*||;|`x`|", 0
        ),
        lambda: Case("nothing", ("true",), b"", 0),
        lambda: Case("status kept", (f"false; echo ${status}",), b"1\n", 0),
        lambda: Case("lines", ("seq 1 3000",), "".join(f"{one}\n" for one in range(1, 3001)).encode(), 0),
        lambda: Case("binary", ("printf 'a\\000b\\377\\r\\033[31mc'",), b"a\0b\xff\r\x1b[31mc", 0),
        lambda: Case("not found", ("sh -c no-such-command 2>/dev/null",), b"", 127),
        lambda: Case("last line empty", ("printf 'x\\n\\n\\n'",), b"x\n\n\n", 0),
    )
    return kinds[number % len(kinds)]()


def measure(place: Place) -> list[Row]:
    shells = [shell for shell in SHELLS if shutil.which(shell)]
    wrong: list[str] = []
    with place.control() as control:
        for shell in shells:
            wrong += [f"{shell} {what}" for what in _shell(control, shell)]
    wrong += [f"{shell} is not installed" for shell in SHELLS if shell not in shells for _ in range(EACH)]
    what = "`exec` in bash, zsh, fish, sh exact: output and status; no newline, 5 MB, markers, `exit`, Ctrl-C"
    return [counted(what, wrong, EACH * len(SHELLS))]


def _shell(control: Control, shell: str) -> list[str]:
    """Fifty commands in one shell; what was wrong."""
    wrong = []
    _start(control, shell)
    for number in range(EACH):
        case = cases(shell, number)
        if number in (20, 45):
            case = Case(
                "5 MB", (f"python3 -c {shlex.quote(PRODUCE)}",), (PATTERN * (LARGE // len(PATTERN) + 1))[:LARGE], 0
            )
        if number % 12 == 11:
            case = Case("exit", (f"echo bye; exit {number}",), b"bye\n", number, ends_shell=True)
        call = _interrupted if number % 12 == 5 else _plain
        if call is _interrupted:
            case = Case(
                "Ctrl-C",
                ("echo before; sleep 60; true" if shell != "fish" else "echo before; sleep 60",),
                b"before\n",
                130,
            )
        try:
            ran = call(control, shell, case)
        except TmuxctlError as error:
            wrong.append(f"{case.name}: {error.code} {error.reason}")
            _start(control, shell)
            continue
        if not _right(case, ran):
            wrong.append(f"{case.name}: status {ran.exit_status}, {len(ran.data)} bytes {ascii(ran.data[:60])}")
        if case.ends_shell:
            _start(control, shell)
    return wrong


def _start(control: Control, shell: str) -> None:
    control.new(shell, (shell,), if_exists="replace")


def _plain(control: Control, shell: str, case: Case) -> Ran:
    return control.exec(shell, case.command, timeout=60, max_bytes=LARGE + 1000)


def _interrupted(control: Control, shell: str, case: Case) -> Ran:
    """The command, while another caller presses C-c once it has printed."""

    def press() -> None:
        with Control(resident=False) as other:
            until(lambda: "before" in (other.screen(shell).text.rsplit("exec-", 1)[-1]), 10)
            time.sleep(0.2)
            other.keys(shell, ("C-c",))

    pressing = threading.Thread(target=press)
    pressing.start()
    try:
        return control.exec(shell, case.command, timeout=20)
    finally:
        pressing.join()


def _right(case: Case, ran: Ran) -> bool:
    # the terminal shows the pressed key as ^C: that is output of the terminal while the command ran
    data = ran.data.replace(b"^C", b"").rstrip(b"\r\n") + b"\n" if case.name == "Ctrl-C" else ran.data
    return data == case.output and ran.exit_status == case.status and not ran.timed_out and not ran.truncated
