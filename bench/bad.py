"""Bad input of every kind: an error object, the documented exit status, a hint, never a traceback, others unharmed."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from place import HERE, Done, Place, Row, counted, tmuxctl

from tmuxctl.control import Control

STATUS = {
    "failed": 1,
    "usage": 2,
    "not_found": 3,
    "conflict": 4,
    "exited": 5,
    "asking": 6,
    "unreachable": 7,
    "denied": 8,
    "timeout": 124,
}
LONG = "x" * 5000
TARGETING = ("show", "screen", "read", "log", "kill")


class Case(NamedTuple):
    """A bad call: its words and input, the error's code (or some), its reasons that are right, and settings in config.toml."""

    words: tuple[str | bytes, ...]
    code: str
    reasons: tuple[str, ...] = ()
    stdin: bytes = b""
    config: str = ""


TEXT = (
    Case(("send", "raw", "--paste", "--", "a\x1b[201~b"), "usage", ("bad_text",)),
    Case(("send", "raw", "--", b"\xff\xfe"), "usage", ("bad_text",)),
    Case(("send", "raw", b"\xed\xa0\x80"), "usage", ("bad_text",)),
    Case(("send", "cooked", "--", LONG), "usage", ("line_too_long",)),
    Case(("send", "cooked", "-"), "usage", ("line_too_long",), LONG.encode()),
    Case(("send", "raw", "-", "--multiline"), "usage", ("too_large",), bytes(17 << 20)),
    Case(("send", "raw", "one\ntwo"), "usage", ("multiline",)),
    Case(("send", "raw", "-R"), "usage", ("bad_option",)),
    Case(("send", "raw", "--nosuch"), "usage", ("bad_option",)),
    Case(("send",), "usage"),
    Case(("send", "raw", "a", "b"), "usage"),
    Case(("send", "raw", "x", "--id", "short"), "usage", ("bad_id",)),
    Case(("send", "cooked", "--secret-from-env", "NO_SUCH_VARIABLE"), "usage", ("no_secret",)),
    Case(("send", "cooked", "--secret-from-file", "/no/such/file"), "usage", ("no_secret",)),
    Case(("send", "raw", "--secret-from-env", "HOME"), "conflict", ("echo_on",)),
    Case(("keys", "raw", "Nosuch"), "usage", ("bad_key",)),
    Case(("keys", "raw", "a", "Return2", "Enter"), "usage", ("bad_key",)),
    Case(("keys", "raw", ""), "usage", ("bad_key",)),
    Case(("keys", "raw", "#{pid}"), "usage", ("bad_key",)),
    Case(("keys", "raw", "a", "--repeat", "0"), "usage", ("bad_number",)),
    Case(("keys", "raw", "a", "--repeat", "x"), "usage"),
    Case(("send", "ended", "x"), "exited", ("exited",)),
    Case(("keys", "ended", "C-c"), "exited", ("exited",)),
    Case(("exec", "raw", "--", "true"), "conflict", ("busy",)),
    Case(("exec", "cooked"), "usage"),
)  # fmt: skip

NAMES = (
    *(
        Case(("new", name, "--", "cat"), "usage", ("bad_name",))
        for name in ("#(touch pwned)", "#{pid}", "a.b", "a:b", "..", "a\x1bb", "a\nb", LONG, "é", "%1", "=a", "a*", "a b", "_a", "")
    ),
    Case(("new", "--", "-x"), "usage"),
    Case(("new", "-x", "--", "cat"), "usage", ("bad_option",)),
    Case(("new", "raw", "--", "cat"), "conflict", ("exists",)),
    Case(("new", "n1", "--cwd", "/no/such", "--", "cat"), "usage", ("bad_cwd",)),
    Case(("new", "n1", "--cwd", "#(touch pwned)", "--", "cat"), "usage", ("bad_cwd",)),
    Case(("new", "n1", "-e", "novalue", "--", "cat"), "usage", ("bad_env",)),
    Case(("new", "n1", "-e", "A B=1", "--", "cat"), "usage", ("bad_env",)),
    Case(("new", "n1", "--size", "0x0", "--", "cat"), "usage", ("bad_size",)),
    Case(("new", "n1", "--size", "#{pid}", "--", "cat"), "usage", ("bad_size",)),
    Case(("new", "n1", "--history", "-1", "--", "cat"), "usage"),
    Case(("new", "n1", "--if-exists", "maybe", "--", "cat"), "usage"),
    Case(("new", "n1", "--with", "../evil", "--", "cat"), "usage"),
    Case(("new", "n1", "--with", "nosuch", "--", "cat"), "not_found"),
    Case(("new", "n1", "--lifetime", "soon", "--", "cat"), "usage"),
    Case(("new", "n1", "--env-file", "/no/such", "--", "cat"), ""),
    Case(("new", "n1", "--", "/no/such/program"), "failed", ("command_not_found",)),
    *(Case((verb, name), "not_found", ("no_session",)) for verb in TARGETING for name in ("ra", "r*")),
    *(Case((verb, name), "not_found usage") for verb in TARGETING for name in ("=raw", "raw:", "%0", "$0", "#{pid}", "../raw")),
    Case(("rename", "raw", "a:b"), "usage", ("bad_name",)),
    Case(("rename", "raw", "cooked"), "conflict", ("exists",)),
    Case(("rename", "none", "n2"), "not_found", ("no_session",)),
    Case(("resize", "raw", "big"), "usage", ("bad_size",)),
    Case(("kill",), "usage"),
    Case(("kill", "raw", "--signal", "NOSUCH"), "usage", ("bad_signal",)),
    Case(("kill", "raw", "none"), "not_found", ("no_session",)),
    Case(("ls", "--state", "sleepy"), "usage"),
    Case(("nosuch",), "usage"),
    Case((), "usage"),
)  # fmt: skip

PARSERS = (
    Case(("wait", "raw", "--text", "("), "usage", ("bad_pattern",)),
    Case(("wait", "raw", "--text", "a**"), "usage", ("bad_pattern",)),
    Case(("wait", "raw", "--text", "(" * 3000), "usage", ("bad_pattern",)),
    Case(("wait", "bomb", "--text", "(a+)+$", "--since", "screen", "--timeout", "3"), "timeout", ("pattern_timeout", "timeout")),
    Case(("wait", "raw", "--exit", "--timeout", "soon"), "usage", ("bad_duration",)),
    Case(("wait", "raw", "--exit", "--timeout", "-1"), "usage"),
    Case(("wait", "raw", "--exit", "--timeout", "1e9999"), "usage", ("bad_duration",)),
    Case(("wait",), "usage"),
    Case(("wait", "raw", "--text", "x", "--since", "nonsense"), "usage", ("bad_cursor",)),
    Case(("read", "raw", "--since", "c1:zz.9:0"), "conflict", ("cursor_lost",)),
    Case(("read", "raw", "--since", "c1:" + "9" * 400), "usage", ("bad_cursor",)),
    Case(("log", "raw", "--tail", "-3"), "usage"),
    Case(("log", "raw", "--tail", "9" * 40), "usage"),
    Case(("screen", "raw", "--scrollback", "-1"), "usage"),
    Case(("exec", "raw", "--max-bytes", "many", "--", "true"), "usage"),
    Case(("ls",), "usage", (), b"", "[tmux"),
    Case(("ls",), "usage", (), b"", "[tmux]\nsocket = 7\n"),
    Case(("ls",), "usage", (), b"", "[tmux]\nsocket = '../evil'\n"),
    Case(("ls",), "usage", (), b"", "[wait]\ntimeout = 'soon'\n"),
    Case(("ls",), "usage", (), b"", "[nosuch]\nx = 1\n"),
    Case(("ls",), "usage", (), b"", "[tmux]\nsokket = 'x'\n"),
    Case(("ls",), "usage", (), b"", "a = " + "[" * 3000),
    Case(("ls",), "usage", (), b"", "[tmux]\nsocket = 'a'\nsocket = 'b'\n"),
)  # fmt: skip


def measure(place: Place) -> list[Row]:
    rows = []
    with place.control() as control:
        control.new("raw", (sys.executable, str(HERE / "recorder.py"), str(place.folder / "raw.typed")))
        control.new("cooked", ("cat",))
        control.new("ended", ("true",))
        control.new("bomb", ("sh", "-c", "printf '%s!' aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; exec cat"))
        control.wait("ended", exit=True)
        control.wait("raw", text="READY", since="screen", timeout=20)
        for what, cases in (("text", TEXT), ("names", NAMES), ("patterns, cursors, numbers, settings", PARSERS)):
            rows.append(_kind(place, what, cases))
        typed = (place.folder / "raw.typed").read_bytes()
        names = sorted(one.name for one in control.ls().sessions)
        unharmed = names == ["bomb", "cooked", "ended", "raw"] and not typed and _answers(control)
    pwned = place.files_named("pwned")
    told = f"{', '.join(names)}; {len(typed)} bytes typed; {len(pwned)} commands ran"
    return [*rows, Row("after all that the sessions are as before and answer", "yes", told, unharmed and not pwned)]


def _kind(place: Place, what: str, cases: tuple[Case, ...]) -> Row:
    with ThreadPoolExecutor(3) as pool:
        wrong = [fault for fault in pool.map(lambda one: _wrong(place, *one), enumerate(cases)) if fault]
    return counted(f"bad {what}: error object, exit status, hint, no traceback", wrong, len(cases))


def _wrong(place: Place, number: int, case: Case) -> str:
    """What was not as documented; empty if all was."""
    env = None
    if case.config:
        file = Path(place.folder / f"config-{number}.toml")
        file.write_text(case.config)
        env = {**os.environ, "TMUXCTL_CONFIG": str(file)}
    done = tmuxctl("--json", *case.words, stdin=case.stdin, env=env)
    fault = _fault(case, done)
    return (
        f"{ascii(b' '.join(_bytes(word)[:40] for word in case.words))[1:]} {case.config[:20]!r}: {fault}"
        if fault
        else ""
    )


def _bytes(word: str | bytes) -> bytes:
    return word if isinstance(word, bytes) else word.encode(errors="surrogateescape")


def _fault(case: Case, done: Done) -> str:
    error = done.error
    if b"Traceback" in done.stderr or b"Traceback" in done.stdout:
        return "traceback: " + done.stderr.decode(errors="replace").strip().splitlines()[-1][:100]
    if not error:
        return f"no error object, status {done.status}"
    missing = [key for key in ("code", "reason", "message", "hint") if key not in error]
    if missing or not error["message"]:
        return f"without {', '.join(missing) or 'message'}"
    said = f"{error['code']} {error['reason']} ({error['message'][:60]})"
    if error["reason"] == "internal" or (case.code and error["code"] not in case.code.split()):
        return said
    if case.reasons and error["reason"] not in case.reasons:
        return said
    status = 125 if case.words[:1] == ("exec",) and error["code"] not in ("usage", "timeout") else STATUS[error["code"]]
    if done.status != status:
        return f"status {done.status} for {said}"
    return "" if error["hint"] else f"no hint: {said}"


def _answers(control: Control) -> bool:
    control.send("cooked", b"still here")
    return control.wait("cooked", text="(?m)^still here$", timeout=10).matched == "text"
