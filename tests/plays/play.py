"""Plays: what is typed into a real program, and what is true of it after each step.

A file `NAME.yaml` beside this one is a list of plays of the programs that the profile NAME is for (docs/profiles.md, "A play
for a real program", says what it may hold). A screen that a play saves is one of tests/screens/NAME/.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tmuxctl.control import Control
from tmuxctl.control.observation.explaining import evidence_of_screen
from tmuxctl.model import Session
from tmuxctl.profile_files import library
from tmuxctl.reading.text import patterns
from tools.states.scenarios import filled

HERE = Path(__file__).resolve().parent
SCREENS = HERE.parent / "screens"

KEYS = {"name", "command", "profile", "needs", "service", "person", "root", "env", "size", "files", "before", "steps"}
STEPS = {"is", "ask", "answer", "send", "keys", "decide", "secret", "text", "gone", "insecure"}
FACTS = {"state", "kind", "detail", "by", "question", "options", "default", "risk", "error", "exit_status"}

NAME = "play"
"""The session a play is played in."""

ELSEWHERE = "/home/ada/projects/shop/checkout/tests"
"""Stands in saved screens for the folder of the play, cut to its length: columns stay."""


class Play(NamedTuple):
    """One play of a file, as it is written."""

    profile: str
    written: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What it is called: `profile-name`."""
        return f"{self.profile}-{self.written['name']}"

    def lacks(self) -> str | None:
        """What this machine has not got for it, or None."""
        missing = [one for one in self.written.get("needs", ()) if not shutil.which(one)]
        if missing:
            return f"{', '.join(missing)} not installed"
        wants_root = self.written.get("root") or self.written.get("person")
        return "only root may do this" if wants_root and os.getuid() else None


class Saved(NamedTuple):
    """A screen of a play, and what it is as `tests:` of a profile say it."""

    file: str
    text: str
    case: Mapping[str, Any]


def plays() -> Iterator[Play]:
    """Every play there is; a key nobody knows is an error."""
    for path in sorted(HERE.glob("*.yaml")):
        for written in yaml.safe_load(path.read_text()):
            assert set(written) <= KEYS, f"{path.name}: {set(written) - KEYS}"
            for step in written["steps"]:
                assert set(step) <= STEPS, f"{path.name} {written['name']}: {set(step) - STEPS}"
                assert set(step.get("is", ())) <= FACTS | {"rule", "save", "title"}, f"{path.name}: {step}"
            yield Play(path.stem, written)


def play(control: Control, one: Play, folder: Path, places: Mapping[str, str]) -> Iterator[Saved]:
    """Start the program in `folder` and do the steps; gives the screens it is told to save, as they come.

    `places` are what stands for `{WORD}` in everything that is written. AssertionError where a step is not true.
    """
    written = filled(one.written, {"F": str(folder), **places})
    for name, text in written.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    env = {name: str(value) for name, value in written.get("env", {}).items()}
    if "before" in written:
        subprocess.run(["sh", "-euc", written["before"]], cwd=folder, env=os.environ | env, check=True)
    made = control.new(NAME, tuple(written["command"]), cwd=str(folder), env=env, size=written.get("size", "80x24"))
    assert made.profile == written.get("profile", one.profile)
    for number, step in enumerate(written["steps"], 1):
        try:
            if "is" in step:
                yield from _is(control, step["is"], folder, one.profile)
            else:
                _do(control, step)
        except Exception as error:
            error.add_note(f"in step {number} of {one.name}: {step}")
            raise


def _do(control: Control, step: Mapping[str, Any]) -> None:
    if "ask" in step:
        answered = control.ask(NAME, step["ask"].encode())
        if "answer" in step:
            assert answered.answer == step["answer"], answered
    elif "send" in step:
        control.send(NAME, step["send"].encode(), insecure=step.get("insecure", False))
    elif "keys" in step:
        control.keys(NAME, tuple(step["keys"]), insecure=step.get("insecure", False))
    elif "decide" in step:
        control.decide(NAME, step["decide"])
    elif "secret" in step:
        _answer_secretly(control, step["secret"])
    elif "text" in step:
        waited = control.wait(NAME, text=step["text"], since="screen")
        assert waited.matched == "text", waited
    elif "gone" in step:
        assert control.wait(NAME, gone=step["gone"]).matched == "gone"


def _answer_secretly(control: Control, secret: str) -> None:
    """Answer a question for a password with what a pipe holds: no command line or variable ever does."""
    given, taken = os.pipe()
    try:
        os.write(taken, secret.encode())
        os.close(taken)
        control.decide(NAME, secret_from_fd=given)
    finally:
        os.close(given)


def _is(control: Control, wanted: Mapping[str, Any], folder: Path, profile: str) -> Iterator[Saved]:
    """Wait until the program is in that state; then everything else told of it must be so."""
    session = _reached(control, wanted["state"])
    asking = session.asking
    told = {
        "state": session.state.value,
        "kind": session.kind,
        "detail": session.detail,
        "by": session.by,
        "exit_status": session.exit_status,
        "question": asking.question if asking else None,
        "options": [one.id for one in asking.options] if asking else [],
        "default": asking.default if asking else None,
        "risk": asking.risk if asking else None,
        "error": _error(control, profile) if "error" in wanted else None,
    }
    facts = {name: value for name, value in wanted.items() if name in FACTS}
    assert {name: told[name] for name in facts} == facts, told
    if "save" in wanted:
        yield _saved(control, wanted, folder)


def _error(control: Control, profile: str) -> str | None:
    """The id of the profile's rule for an error that the screen shows."""
    screen = control.screen(NAME)
    seen = evidence_of_screen(screen.text, cursor=(screen.cursor.x, screen.cursor.y)).last
    found = patterns.find_match(library.load(profile).errors, patterns.read_screen(seen))
    return found.rule.id if found else None


def _reached(control: Control, state: str) -> Session:
    if state in ("idle", "asking"):
        for _ in range(2):
            waited = control.wait(NAME, idle=True, asking=True)
            assert waited.matched == state, f"{waited.why} ({waited.state})"
            session = control.show(NAME)
            # apt draws its progress anew while dpkg asks
            if session.by != "activity":
                break
        return session
    if state == "exited":
        control.wait(NAME, exit=True)
    else:
        for event in control.watch((NAME,)):
            if event.state is not None and event.state.value == state:
                break
    return control.show(NAME)


def _saved(control: Control, wanted: Mapping[str, Any], folder: Path) -> Saved:
    screen = control.screen(NAME)
    busy = wanted["state"] in ("busy", "unknown")
    # a silent program cannot be told from a waiting one by its screen
    case: dict[str, Any] = {"screen_file": f"{wanted['save']}.txt", "cursor": f"{screen.cursor.x},{screen.cursor.y}"}
    case |= {"title": wanted["title"]} if "title" in wanted else {}
    case |= {"not": ["idle", "asking"]} if busy else {"state": wanted["state"]}
    case |= {name: wanted[name] for name in ("kind", "detail") if name in wanted and not busy}
    case |= {"asking": wanted["rule"]} if "rule" in wanted else {}
    return Saved(f"{wanted['save']}.txt", _anywhere(screen.text, folder), case)


def _anywhere(text: str, folder: Path) -> str:
    """A screen that names neither this machine nor this folder; as wide as it was."""
    here, host = str(folder), socket.gethostname()
    text = text.replace(here, ELSEWHERE[: len(here)].ljust(len(here), "x"))
    return text.replace(host, "shop-server-01-of-many"[: len(host)].ljust(len(host), "x")) if len(host) > 3 else text


def save(profile: str, saved: Saved) -> None:
    """Keep a screen in tests/screens, and what it is in the list beside it; one of the same name is replaced."""
    folder = SCREENS / profile
    folder.mkdir(exist_ok=True)
    (folder / saved.file).write_text(saved.text + "\n")
    listed = folder / "expected.yaml"
    head = (
        "# What each screen is, as `tests:` of a profile says it. Captured from the real program; cursor: column,row.\n"
    )
    lines = listed.read_text().splitlines(keepends=True) if listed.exists() else [head]
    kept = [line for line in lines if f"screen_file: {saved.file}," not in line]
    written = yaml.safe_dump(dict(saved.case), default_flow_style=True, sort_keys=False, width=1000, allow_unicode=True)
    listed.write_text("".join([*kept, f"- {written.strip()}\n"]))
