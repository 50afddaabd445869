"""Secrets leave no trace: whatever they are called and however they were given, they are where the program is and nowhere else."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import crash_server
from faults.command import Command
from programs import LINES

from tmuxctl.control import Control
from tmuxctl.control.secret_values import looks_secret
from tmuxctl.terminal.processes.process import SessionTarget, find_processes

pytestmark = pytest.mark.on("tmux")

RANDOM = f"k{os.urandom(5).hex()}Q"
"""Stands in every value, to find it by, so that no value is known by being in a list of what is secret."""

NAMES = """
OPENAI_KEY OPENAI_API_KEY GITHUB_PAT GH_TOKEN JWT SSHPASS AUTH COOKIE SIGNING_KEY DB_PWD SENTRY_DSN AWS_SECRET_ACCESS_KEY
AWS_ACCESS_KEY_ID PGPASSWORD MYSQL_PWD REDIS_PASS npm_config__authToken NPM_CONFIG__AUTH DJANGO_SECRET SESSION_SECRET
STRIPE_WEBHOOK TWILIO_SID VAULT_CRED SMTP_PW ENCRYPTION_SALT WALLET_SEED BEARER OAUTH_CLIENT KUBECONFIG_DATA_PEM
githubPat HMAC LC_GITHUB_TOKEN XDG_LICENSE_KEY
"""
"""Names that tell; the value could be anything."""

INNOCENT = {
    "MYCONN": f"postgres://shop:{RANDOM}-pw@db.example.org/shop",
    "UPSTREAM": f"https://x{RANDOM}abcdefghij@git.example.org/shop.git",
    "BROKER": f"Endpoint=sb://x;SharedAccessKeyName=root;SharedAccessKey={RANDOM}+0aB/==",
    "ODBC": f"Server=db;User Id=sa;Password={RANDOM}!;",
    "HEADER": f"Authorization: Bearer {RANDOM}-abc",
    "LETTER": f"-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1r{RANDOM}\n-----END OPENSSH PRIVATE KEY-----\n",
    "THING": f"9f86d081884c7d659a2feaa0c55ad015{RANDOM}",
    "BLOB": f"wJalrXUtnFEMI/K7MDENG/bPxRfiCY{RANDOM}",
    "CONTACT": f"ghp_{RANDOM}abcdefghijkl",
    "ANSWER": f"eyJhbGciOiJIUzI1NiJ9.eyJ{RANDOM}dWIiOiIxIn0.abc",
    "LC_COLOUR": f"sk-proj-{RANDOM}abcdefgh",
    "XDG_PLACE": f"$6$rounds=5000${RANDOM}$abc",
}
"""Values that tell, whatever they are called."""

SECRETS = {name: f"{RANDOM}-{name.lower()}" for name in NAMES.split()} | INNOCENT


def test_what_is_a_secret_is_known_by_its_name_or_its_value() -> None:
    assert len(SECRETS) >= 40
    assert [name for name, value in SECRETS.items() if not looks_secret(name, value)] == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODE", "special"), ("KEYMAP", "us"), ("MONKEY", "chunky"), ("AUTHOR", "Ann"), ("PATTERN", "a*b"),
        ("PAGER", "less -R"), ("LEVEL", "3"), ("TOKEN_FILE", "/run/secrets/token"), ("SSH_AUTH_SOCK", "/tmp/ssh-Xa/agent.1"),
        ("UPSTREAM", "ssh://git@example.org/shop/shop.git"), ("STORE", "postgres://localhost:5432/shop"),
        ("BRANCH", "a-long-name-of-a-branch-2024"), ("VIEW", "ThisIsAConfigValue"), ("AT", "2026-11-22T17:37:35Z"),
        ("JAVA_OPTS", "-Xmx2g -Dfile.encoding=UTF-8"), ("LIBRARY", "/usr/lib/python3.11/site-packages:/opt/node-v20.1.0-linux-x64"),
        ("EMPTY_TOKEN", ""),
    ],
)  # fmt: skip
def test_what_is_no_secret_is_kept(name: str, value: str) -> None:
    assert not looks_secret(name, value)


@pytest.fixture
def before() -> float:
    return time.time() - 5


def files_with(needle: bytes, before: float, *places: str) -> list[str]:
    """The files below these places that hold this, of those that were changed since."""
    return [path for place in places for path in _changed(place, before) if needle in _contents(path)]


def _changed(place: str, before: float) -> Iterator[str]:
    for folder, _, names in os.walk(place):
        for path in (os.path.join(folder, name) for name in names):
            try:
                about = os.lstat(path)
            except OSError:
                continue
            if about.st_mtime >= before and os.path.isfile(path) and about.st_size < 1 << 26:
                yield path


def _contents(path: str | Path) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""


def processes_with(needle: bytes, what: str, *, but: set[int]) -> list[tuple[str, bytes]]:
    """The processes that hold this among their arguments (`cmdline`) or variables (`environ`)."""
    pids = [one.name for one in Path("/proc").glob("[0-9]*") if int(one.name) not in but]
    found = [pid for pid in pids if needle in _contents(f"/proc/{pid}/{what}")]
    return [(pid, _contents(f"/proc/{pid}/cmdline")) for pid in found]


def tmux(*words: str) -> bytes:
    return subprocess.run(["tmux", "-L", "t", *words], capture_output=True, check=False).stdout


ASKED = (
    ("show-options", "-A", "-g"), ("show-options", "-s"), ("show-options", "-g", "-w"), ("show-options", "-t", "=t:"),
    ("show-options", "-p", "-t", "=t:"), ("show-environment", "-g"), ("show-environment", "-g", "-h"),
    ("show-environment", "-t", "=t"), ("show-environment", "-h", "-t", "=t"), ("list-buffers",), ("show-hooks", "-g"),
    ("show-hooks", "-t", "=t:"), ("show-messages",), ("list-panes", "-a", "-F", "#{pane_start_command} #{@tmuxctl_spec}"),
)  # fmt: skip


def tree(control: Control) -> set[int]:
    """The processes of the session and those of this test: they have what they were given."""
    made = control.show("t")
    target = SessionTarget(made.id, f"{control.machine.transport.home}/sessions/{made.id}")
    mine = {os.getpid(), os.getppid()}
    return mine | {row.pid for row in find_processes(control.machine.transport, [target])[made.id]} | {made.pid or 0}


def assert_no_trace(control: Control, place: Path, before: float, *, known: tuple[str, ...] = ()) -> None:
    """The secrets are in the variables of the session's processes and nowhere else that can be looked at."""
    needle = RANDOM.encode()
    found = files_with(needle, before, str(place), "/tmp", "/dev/shm", "/var/tmp", "/run")
    assert sorted(set(found)) == sorted(known)
    running = any(one.name == "t" for one in control.ls().sessions)
    assert processes_with(needle, "cmdline", but=set()) == []
    assert processes_with(needle, "environ", but=tree(control) if running else {os.getpid(), os.getppid()}) == []
    for words in ASKED:
        assert needle not in tmux(*words), words


GIVEN: dict[str, Callable[[Path], list[str]]] = {
    "inherited": lambda place: [],
    "with -e": lambda place: [word for name, value in SECRETS.items() for word in ("-e", f"{name}={value}")],
    "set": lambda place: [
        word for name, value in SECRETS.items() for word in ("--with", f"env:set={name}={value}".replace(",", "\\,"))
    ],
    "from a file": lambda place: ["--with", f"env={place}/vars"],
    "by reference": lambda place: [
        "--with",
        f"env:secret=FIRST=file:{place}/vars,secret=JWT=dotenv:{place}/vars,secret=OTHER=env:OPENAI_KEY"
        f",secret=MADE=command:cat {place}/vars",
    ],
    "in a sandbox": lambda place: ["--sandbox", *(word for one in SECRETS.items() for word in ("-e", "=".join(one)))],
}


@pytest.mark.night
@pytest.mark.parametrize("how", GIVEN)
def test_forty_kinds_of_secrets_are_in_the_programs_variables_and_nowhere_else(
    how: str, control: Control, place: Path, before: float, monkeypatch: pytest.MonkeyPatch, needs: Any, until: Any
) -> None:
    if how == "in a sandbox":
        needs("bwrap")
    (place / "work").mkdir()
    known: tuple[str, ...] = ()
    if how in ("from a file", "by reference"):
        (place / "vars").write_text("".join(f"{name}='{value}'\n" for name, value in SECRETS.items()))
        known = (str(place / "vars"),)
    if how in ("inherited", "by reference"):
        for name, value in SECRETS.items():
            monkeypatch.setenv(name, value)
    done = Command()("-v", "new", "t", "--cwd", str(place / "work"), *GIVEN[how](place), "--", *LINES)
    assert done.reason == ""
    made = control.show("t")
    until(lambda: RANDOM in str(_contents(f"/proc/{made.pid}/environ")))
    for words in (("show", "t"), ("ls",), ("screen", "t"), ("log", "t"), ("explain", "t")):
        done = Command()("-v", *words)
        assert RANDOM not in done.output + done.errors
    if how == "inherited":
        for name in SECRETS:
            monkeypatch.delenv(name)
    assert_no_trace(control, place, before, known=known)
    assert Command()("kill", "t").reason == ""
    assert_no_trace(control, place, before, known=known)


@pytest.mark.night
def test_a_secret_that_was_given_to_a_profile_is_in_no_file_but_that(
    control: Control, place: Path, before: float, until: Any
) -> None:
    folder = place / ".config" / "tmuxctl" / "profiles"
    folder.mkdir(parents=True, mode=0o700)
    file = folder / "shop.yaml"
    file.write_text(
        f"schema: tmuxctl/profile@1\nname: shop\ncommand: [cat]\ndetect: {{foreground: [cat]}}\nenv: {{SHOP_TOKEN: {RANDOM}}}\n"
    )
    made = control.new("t", profile="shop")
    until(lambda: RANDOM.encode() in _contents(f"/proc/{made.pid}/environ"))
    assert_no_trace(control, place, before, known=(str(file),))
    crash_server(control)
    assert [one.outcome for one in control.restore().sessions] == ["relaunched"]
    pid = control.show("t").pid
    until(lambda: RANDOM.encode() in _contents(f"/proc/{pid}/environ"))
    assert_no_trace(control, place, before, known=(str(file),))


def test_a_secret_does_not_stay_where_a_start_was_cut_short(control: Control, place: Path, before: float) -> None:
    """tmuxctl is killed at the moment when the program's variables are in a file and tmux has not started it."""
    control.new("other", LINES)
    real = shutil.which("tmux")
    (place / "bin").mkdir()
    (place / "bin" / "tmux").write_text(
        f'#!/bin/sh\ncase "$*" in *new-session*) kill -9 $PPID; exit 1 ;; esac\nexec {real} "$@"\n'
    )
    (place / "bin" / "tmux").chmod(0o755)
    path = f"{place}/bin:{os.environ['PATH']}"
    words = Command().argv("new", "t", "-e", f"MODE_KEY={RANDOM}", "--", *LINES)
    done = subprocess.run(words, env={**os.environ, "PATH": path}, capture_output=True)
    assert done.returncode == -9
    (left,) = files_with(RANDOM.encode(), before, str(place))
    os.utime(os.path.dirname(left), (1, 1))
    os.utime(left, (1, 1))
    control.new("another", LINES)
    assert files_with(RANDOM.encode(), 0, str(place)) == []


def test_a_secret_does_not_stay_with_a_session_that_was_lost_before_it_began(
    control: Control, place: Path, before: float
) -> None:
    made = control.new("t", LINES)
    launcher = Path(control.machine.transport.home) / "sessions" / made.id / "launch.sh"
    crash_server(control)
    # as it stands there when the server dies between taking the session and starting its program
    launcher.write_text(f"export MODE_KEY={RANDOM}\n")
    assert Command()("kill", "t").reason == ""
    assert files_with(RANDOM.encode(), before, str(place)) == []
