"""A first profile for a program that has none: the program is started once, and what it shows becomes a file to go on from."""

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
"""Names that scripts of many programs have: a profile found by one of them would take over what it knows nothing of."""

FILE = """\
schema: {schema}
name: {name}
notes: {notes}

# Which commands this is for (`tmuxctl new -- CMD` then finds it); * and ? stand for anything, as in python3*. Of a program
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

# which keys stop what it does, and how it is left
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


def new(
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
        hint = f"--force writes it anew, --stdout prints it: tmuxctl profile new {name} --force -- CMD"
        raise Conflict(f"there is a profile {ascii(path)}", reason="exists", hint=hint)
    text = written(name, command, _shown(machine, command, timeout))
    document = parse(text.encode(), ascii(path), name, keys=tmux_keys)
    notes = _notes(name, command, document.given.get("detect", {}))
    if not print_only:
        _write(path, text)
    made = resolved.to_document(resolved.build_profile(document.given))
    return ProfileFile(name, "new", None if print_only else path, text, made, notes)


def written(name: str, command: Sequence[str], screen: Screen) -> str:
    """The text of a first profile for the program that showed this screen."""
    left = _left(screen)
    pattern = None if screen.alt else guessed(left)
    fill = {"name": name, "detect": _detect(command), "notes": _quoted(f"first seen as: {' '.join(command)[:100]}")}
    prompt = PROMPT.format(pattern=_quoted(pattern)) if pattern else NO_PROMPT
    fill |= {"schema": SCHEMA, "kinds": " ".join(ASKING_KINDS)}
    return FILE.format(prompt=prompt, tests=_test(screen) if pattern else NO_TEST, **fill)


def _detect(command: Sequence[str]) -> str:
    """Which commands a first profile is for: those of this program, but never all that an interpreter or ssh may run."""
    from tmuxctl.profile_files.interpreters import is_interpreter
    from tmuxctl.reading.evidence import programs

    program, script = program_name(command), script_name(command)
    shared = is_interpreter(program) or programs.is_shell(program) or programs.is_remote_wrapper(program)
    name, form = (script, DETECT_SCRIPT) if shared else (program, DETECT)
    usable = PROGRAM.fullmatch(name) and name.partition(".")[0] not in COMMON
    return form.format(program=_quoted(name)) if usable else NO_DETECT


def _notes(name: str, command: Sequence[str], detected: Mapping[str, Any]) -> tuple[str, ...]:
    """What the maker of a profile should know of the commands it is for."""
    if "script" in detected:
        return (
            f"it is for commands that run {detected['script'][0]}; for others: tmuxctl new --profile {name} -- CMD",
        )
    if not detected and program_name(command) != name:
        return (f"no command finds it by itself: tmuxctl new --profile {name} -- CMD",)
    before = _known(command)
    return (f"{program_name(command)} had the profile {before} until now",) if before not in (None, name) else ()


def _known(command: Sequence[str]) -> str | None:
    with suppress(Usage, Denied):
        return detect(command, keys=tmux_keys)
    return None


def guessed(left: str) -> str | None:
    """A pattern for the prompt that stands left of the cursor, without what is another the next time: numbers, paths, hosts."""
    found = re.fullmatch(r"\s*(.*?)([^\w\s]{0,20})\s*", left)
    if not found or not found[1] + found[2]:
        return None
    body = ""
    for part in re.split(r"(\S+@\S+|[~/]\S*|\d+)", found[1]):
        changing = re.fullmatch(r"\S+@\S+|[~/]\S*", part)
        body += r"\S+" if changing else r"\d+" if part.isdigit() else re.escape(part).replace("\\ ", " ")
    return rf"^\s*{body}{re.escape(found[2])}(?:\s|$)"


def _left(screen: Screen) -> str:
    from tmuxctl.control.observation.explaining import evidence_of_screen

    return evidence_of_screen(screen.text, cursor=(screen.cursor.x, screen.cursor.y)).last.left


def _shown(machine: Machine, command: Sequence[str], timeout: float) -> Screen:
    """What the command shows when it has become quiet; its session is gone afterwards, whatever happens."""
    from tmuxctl.control.lifecycle import creation, ending
    from tmuxctl.control.sessions import finding

    name = f"profile-{os.urandom(4).hex()}"
    wanted = creation.SessionRequest(name=name, command=tuple(command), profile="none", shell_marks=False)
    session = creation.new(machine, wanted)
    try:
        return _quiet(machine, session.name, timeout)
    finally:
        with suppress(NotFound, Unreachable, Timeout):
            ending.end(machine, [finding.find(machine, session.id)])


def _quiet(machine: Machine, session: str, timeout: float) -> Screen:
    deadline = time.monotonic() + (current().left(timeout) or 0.0)
    while True:
        left = max(0.1, deadline - time.monotonic())
        ended = waits.wait(
            machine, session, waits.Conditions(exit=True, settle=machine.timing.profile.quiet_seconds), timeout=left
        )
        screen = captured.screen(machine, session)
        if ended.matched is WaitCondition.EXIT:
            hint = "give a command that stays: tmuxctl profile new NAME -- CMD"
            raise Exited(f"the command ended at once: {screen.text[-300:]}", reason="ended", hint=hint)
        if screen.alt or _left(screen).strip():
            return screen
        if time.monotonic() >= deadline:
            if screen.text.strip():
                return screen
            raise Failed("the command showed nothing", reason="nothing_shown", hint="look: tmuxctl new -- CMD")


def _test(screen: Screen) -> str:
    rows = screen.text.split("\n")
    rows += [""] * (screen.cursor.y + 1 - len(rows))
    start = max(0, len(rows) - KEPT_ROWS)
    y = screen.cursor.y - start
    return TEST.format(screen=_block(rows[start:]), x=screen.cursor.x, y=y)


def _block(rows: Sequence[str]) -> str:
    """Rows as a block of YAML, or in quotes if they hold what a block cannot."""
    if all(row.isprintable() for row in rows):
        return "|2-\n" + "\n".join(f"      {row}" if row else "" for row in rows)
    return json.dumps("\n".join(rows), ensure_ascii=False)


def _quoted(text: str) -> str:
    """A text as YAML takes it without meaning anything else by it."""
    return "'" + text.replace("'", "''") + "'" if text.isprintable() else json.dumps(text, ensure_ascii=False)


def _write(path: str, text: str) -> None:
    """The whole file or none of it."""
    beside = f"{path}.{os.getpid()}.new"
    try:
        make_parents(path)
        with open(beside, "x", encoding="utf-8") as file:
            file.write(text)
        os.replace(beside, path)
    except OSError as error:
        raise Failed(f"{ascii(path)}: {error.strerror}", reason="bad_file", hint="--stdout prints it") from None
    finally:
        with suppress(OSError):
            os.unlink(beside)
