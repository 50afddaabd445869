"""A first profile for a program that has none: the program is started once, and its screen becomes a file to edit."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tmuxctl.config import config_folder
from tmuxctl.control.output import captured
from tmuxctl.control.sessions import finding
from tmuxctl.control.waiting import waits
from tmuxctl.errors import Conflict, Denied, Exited, Failed, NotFound, Timeout, Unreachable, Usage
from tmuxctl.model import NAME
from tmuxctl.operations import current
from tmuxctl.ownership import make_parents
from tmuxctl.profile_files import resolved
from tmuxctl.profile_files.library import detect, program_name, script_name
from tmuxctl.profile_files.schema import ASKING_KINDS, PROGRAM, SCHEMA, parse
from tmuxctl.results import ProfileFile, Screen
from tmuxctl.terminal.input.keys import tmux_keys
from tmuxctl.vocabulary import WaitCondition

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine

KEPT_ROWS = 12
"""How many rows of the screen become its first test."""

COMMON = ("", "-", "__main__", "app", "cli", "index", "main", "run", "server", "start", "test")
"""Names that scripts of many programs have: a profile found by one of them would apply to unrelated programs."""

FILE = """\
schema: {schema}
name: {name}
notes: {notes}

# Which commands this is for (`tmuxctl new -- CMD` then finds it); * and ? match anything, as in python3*. Of a program
# that an interpreter runs (`python3 mush.py`), `script` names it: {{script: [mush.py]}}.
{detect}
# What the screen shows when it takes input: any of these patterns (Python's, ^ and $ match at lines). Spaces at the end
# of a row are never there. `where`: cursor-line, last-line, bottom:6, screen or title.
{prompt}
# when a line of input is not complete yet
# continuation: {{id: more, re: '^\\.\\.\\.', where: cursor-line}}

# what it shows while it works
# busy: {{id: spinner, re: 'esc to interrupt', where: bottom:3}}

# Questions it asks. kind: {kinds}; options: what one may answer, and
# the keys that do it.
# asking:
#   - id: overwrite
#     kind: confirm
#     re: 'Overwrite .+\\?'
#     where: last-line
#     question: '(?P<q>Overwrite .+)'
#     options: {{'yes': [y, Enter], 'no': [n, Enter]}}
#     risk: high

# which keys interrupt it, and how to leave it
interrupt: C-c
exit: {{keys: C-d}}

# Saved screens and what they are: `tmuxctl profile test {name}` judges them. Add one of every state.
{tests}"""

DETECT = """\
detect: {{argv0: [{program}], foreground: [{program}]}}
"""

DETECT_SCRIPT = """\
detect: {{script: [{program}]}}
"""

NO_DETECT = """\
# detect: {script: [NAME]}
"""

PROMPT = """\
prompt:
  - {{id: prompt, re: {pattern}, where: cursor-line}}
"""

NO_PROMPT = """\
# prompt: {id: prompt, re: '^> ', where: cursor-line}
"""

TEST = """\
tests:
  - screen: {screen}
    cursor: {x},{y}
    state: idle
    kind: prompt
"""

NO_TEST = """\
# tests:
#   - {screen_file: screens/menu.txt, state: asking, kind: choice}
"""


def make_profile(
    machine: Machine, name: str, command: Sequence[str], *, timeout: float, print_only: bool, force: bool
) -> ProfileFile:
    """Start the command, wait until it is quiet, and write a profile of what it shows into the user's folder.

    `timeout` is in seconds. Conflict `exists` if there is such a file and not `force`; Exited if the command ends at once.
    """
    if not NAME.fullmatch(name):
        hint = "a name, not a path: letters, digits, _ and -"
        raise Usage(f"{ascii(name[:80])} is not a valid profile name", reason="bad_name", hint=hint)
    path = os.path.join(config_folder(), "profiles", f"{name}.yaml")
    if os.path.exists(path) and not force and not print_only:
        hint = f"overwrite it with --force, or print it with --stdout: tmuxctl profile new {name} --force -- CMD"
        raise Conflict(f"the profile {ascii(path)} exists already", reason="exists", hint=hint)
    text = write_profile_text(name, command, _observe_command(machine, command, timeout))
    document = parse(text.encode(), ascii(path), name, keys=tmux_keys)
    notes = _make_notes(name, command, document.given.get("detect", {}))
    if not print_only:
        _write_file(path, text)
    made = resolved.to_document(resolved.build_profile(document.given))
    return ProfileFile(name, "new", None if print_only else path, text, made, notes)


def write_profile_text(name: str, command: Sequence[str], screen: Screen) -> str:
    """The text of a first profile for the program that showed this screen."""
    left_text = _text_left_of_cursor(screen)
    pattern = None if screen.alt else guess_prompt(left_text)
    notes = _quote(f"first seen as: {' '.join(command)[:100]}")
    fill = {"name": name, "detect": _format_detect(command), "notes": notes}
    prompt = PROMPT.format(pattern=_quote(pattern)) if pattern else NO_PROMPT
    fill |= {"schema": SCHEMA, "kinds": " ".join(ASKING_KINDS)}
    return FILE.format(prompt=prompt, tests=_format_test(screen) if pattern else NO_TEST, **fill)


def _format_detect(command: Sequence[str]) -> str:
    """The rule of which commands the profile is for: this program's, never all that an interpreter or ssh may run."""
    from tmuxctl.profile_files.interpreters import is_interpreter
    from tmuxctl.reading.evidence import programs

    program, script = program_name(command), script_name(command)
    shared = is_interpreter(program) or programs.is_shell(program) or programs.is_remote_wrapper(program)
    name, form = (script, DETECT_SCRIPT) if shared else (program, DETECT)
    usable = PROGRAM.fullmatch(name) and name.partition(".")[0] not in COMMON
    return form.format(program=_quote(name)) if usable else NO_DETECT


def _make_notes(name: str, command: Sequence[str], detected: Mapping[str, Any]) -> tuple[str, ...]:
    """What the author of a profile should know of the commands it is for."""
    if "script" in detected:
        return (
            f"the profile is used for commands that run {detected['script'][0]}; for others: tmuxctl new --profile {name} -- CMD",
        )
    if not detected and program_name(command) != name:
        return (f"the profile is not used by itself: tmuxctl new --profile {name} -- CMD",)
    before = _known_profile(command)
    return (f"{program_name(command)} used the profile {before} until now",) if before not in (None, name) else ()


def _known_profile(command: Sequence[str]) -> str | None:
    with suppress(Usage, Denied):
        return detect(command, keys=tmux_keys)
    return None


def guess_prompt(left: str) -> str | None:
    """A pattern for the prompt left of the cursor, which matches other numbers, paths and hosts in it too."""
    found = re.fullmatch(r"\s*(.*?)([^\w\s]{0,20})\s*", left)
    if not found or not found[1] + found[2]:
        return None
    body = ""
    for part in re.split(r"(\S+@\S+|[~/]\S*|\d+)", found[1]):
        changing = re.fullmatch(r"\S+@\S+|[~/]\S*", part)
        body += r"\S+" if changing else r"\d+" if part.isdigit() else re.escape(part).replace("\\ ", " ")
    return rf"^\s*{body}{re.escape(found[2])}(?:\s|$)"


def _text_left_of_cursor(screen: Screen) -> str:
    from tmuxctl.control.observation.explaining import evidence_of_screen

    return evidence_of_screen(screen.text, cursor=(screen.cursor.x, screen.cursor.y)).last.left


def _observe_command(machine: Machine, command: Sequence[str], timeout: float) -> Screen:
    """The screen of the command once it is quiet; its session is ended afterwards, whatever happens."""
    from tmuxctl.control.lifecycle import creation, ending

    name = f"profile-{os.urandom(4).hex()}"
    request = creation.SessionRequest(name=name, command=tuple(command), profile="none", shell_marks=False)
    session = creation.new(machine, request)
    try:
        return _await_quiet(machine, session.name, timeout)
    finally:
        with suppress(NotFound, Unreachable, Timeout):
            ending.end_sessions(machine, [finding.find_session(machine, session.id)])


def _await_quiet(machine: Machine, session: str, timeout: float) -> Screen:
    deadline = time.monotonic() + (current().left(timeout) or 0.0)
    while True:
        left = max(0.1, deadline - time.monotonic())
        ended = waits.wait(
            machine, session, waits.Conditions(exit=True, settle=machine.timing.profile.quiet_seconds), timeout=left
        )
        screen = captured.screen(machine, session)
        if ended.matched is WaitCondition.EXIT:
            hint = "give a command that keeps running: tmuxctl profile new NAME -- CMD"
            raise Exited(f"the command ended at once: {screen.text[-300:]}", reason="ended", hint=hint)
        if screen.alt or _text_left_of_cursor(screen).strip():
            return screen
        if time.monotonic() >= deadline:
            if screen.text.strip():
                return screen
            raise Failed("the command printed nothing", reason="nothing_shown", hint="look: tmuxctl new -- CMD")


def _format_test(screen: Screen) -> str:
    rows = screen.text.split("\n")
    rows += [""] * (screen.cursor.y + 1 - len(rows))
    start = max(0, len(rows) - KEPT_ROWS)
    y = screen.cursor.y - start
    return TEST.format(screen=_format_block(rows[start:]), x=screen.cursor.x, y=y)


def _format_block(rows: Sequence[str]) -> str:
    """Rows as a block of YAML, or in quotes if they hold what a block cannot."""
    if all(row.isprintable() for row in rows):
        return "|2-\n" + "\n".join(f"      {row}" if row else "" for row in rows)
    return json.dumps("\n".join(rows), ensure_ascii=False)


def _quote(text: str) -> str:
    """A text as a quoted scalar of YAML."""
    return "'" + text.replace("'", "''") + "'" if text.isprintable() else json.dumps(text, ensure_ascii=False)


def _write_file(path: str, text: str) -> None:
    """The whole file or none of it."""
    temporary = f"{path}.{os.getpid()}.new"
    try:
        make_parents(path)
        with open(temporary, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError as error:
        raise Failed(f"{ascii(path)}: {error.strerror}", reason="bad_file", hint="--stdout prints it") from None
    finally:
        with suppress(OSError):
            os.unlink(temporary)
