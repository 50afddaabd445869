"""Share a folder with the other sessions of a group: each finds it as `.scratchpad` and in $TMUXCTL_SCRATCHPAD.

It lies in `$XDG_STATE_HOME/tmuxctl/scratchpads/NAME` of the session's machine, and stays when its sessions are gone; beside it
is noted which of them have a link to it, and where.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from tmuxctl.errors import Conflict, Denied, Failed, NotFound, Usage
from tmuxctl.model import NAME, SessionSpec
from tmuxctl.plugin_machine import CommandResult, PluginMachine, printable_lines

KIND = "cwd"
DEADLINE = 120.0
ORDER = 90
"""Behind a worktree: the link belongs into the folder where the program starts."""

LINK = ".scratchpad"
LOCATION = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)
"""Variables that lead git to another repository than the one of its folder."""

UNATTENDED = {"GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

GIT_SECONDS = LOCK_SECONDS = 20.0
START_SECONDS = 60.0
"""How long a session may take from here until its folder exists."""

ADD_LINE = r"""
umask 022; mkdir -p -- "${1%/*}" || exit 73
[ ! -L "$1" ] && { [ ! -e "$1" ] || [ -f "$1" ]; } || exit 79
[ -e "$1" ] || : >"$1" || exit 73
! grep -qxF -e "$2" -- "$1" || exit 0
[ -z "$(tail -c 1 -- "$1")" ] || set -- "$1" "
$2"
printf '%s\n' "$2" >>"$1" || exit 73
"""
"""Adds a line to a file that has it not yet."""


class Group(NamedTuple):
    """What the sessions of a group share, and the folder with a note of each that does."""

    folder: str
    users: str


def transform(
    spec: SessionSpec,
    machine: PluginMachine,
    *,
    name: Annotated[str, "the group: its sessions see each other's files"] = "shared",
) -> SessionSpec:
    """Make the group's folder if it is not there, and show it to the program."""
    if not NAME.fullmatch(name):
        hint = "use letters, digits, _ and -, starting with a letter or digit, at most 63 characters"
        raise Usage(f"{ascii(name[:40])} is not a valid name for a scratchpad", reason="bad_name", hint=hint)
    group, link = _make_group(machine, name), os.path.join(spec.cwd, LINK)
    if spec.notes.get("dry_run"):
        return replace(spec, env={**spec.env, "TMUXCTL_SCRATCHPAD": group.folder})
    with _lock(machine, group):
        made = _make_link(machine, group, link)
        try:
            _hide_from_git(machine, spec.cwd)
            _write_note(machine, group, link, spec)
        except BaseException:
            if made:
                machine.remove(link)
            raise
    binds = [path for path in spec.notes.get("binds", ()) if path != group.folder]
    about = {"name": name, "path": group.folder, "users": group.users, "link": link}
    return replace(
        spec,
        env={**spec.env, "TMUXCTL_SCRATCHPAD": group.folder},
        notes={**spec.notes, "binds": [*binds, group.folder], "scratchpad": about},
    )


def example(folder: str) -> dict[str, str]:
    """The options `plugin test` tries it with."""
    return {"name": "example"}


def cleanup(spec: SessionSpec, ended: Any, machine: PluginMachine) -> str | None:
    """Remove the link once no session of the group has this folder; what is in the scratchpad stays."""
    about = spec.notes.get("scratchpad")
    if not about:
        return None
    group, link = Group(about["path"], about["users"]), about["link"]
    try:
        with _lock(machine, group):
            machine.remove(_note_path(group, spec))
            if not _is_used(machine, group, link):
                _remove_link(machine, group, link)
    except NotFound:  # somebody removed the scratchpad, and the notes with it
        _remove_link(machine, group, link)
    except (Conflict, Denied, Failed) as error:
        return f"{link} stays: {error.message}"
    return None


# the group's folder


def _make_group(machine: PluginMachine, name: str) -> Group:
    pads = os.path.join(machine.state_folder, "scratchpads")
    # no group may have a tilde in its name
    group = Group(os.path.join(pads, name), os.path.join(pads, f"{name}~users"))
    machine.make_private_folders(machine.state_folder, pads, *group)
    return group


def _lock(machine: PluginMachine, group: Group) -> AbstractContextManager[None]:
    """Nobody else makes or removes a link to this scratchpad meanwhile."""
    busy = f"another tmuxctl is busy with {group.folder}"
    return machine.lock(f"{group.users}/.lock", busy, "try again", LOCK_SECONDS)


# the link, and who has it


def _make_link(machine: PluginMachine, group: Group, link: str) -> bool:
    """Have the link lead to the group's folder; True if it was made now."""
    there = machine.look(link)[0].target
    if there == group.folder:
        return False
    if there and os.path.dirname(there) == os.path.dirname(group.folder):
        other = Group(there, f"{there}~users")
        if _is_used(machine, other, link):
            message = f"{link} leads to the scratchpad {os.path.basename(there)} of other sessions here"
            raise Conflict(message, reason="in_use", hint=f"join them: --with scratchpad={os.path.basename(there)}")
        machine.remove(link)
    if not machine.shell('[ ! -d "$2" ] && ln -s -- "$1" "$2"', group.folder, link)[0]:
        return True
    if machine.exists(link):
        message = f"{link} is in the way of the scratchpad"
        raise Failed(message, reason="exists", hint="look at it, then rename it")
    raise Failed(f"{link} cannot be made", reason="bad_cwd", hint="start in a folder you may write to: --cwd DIR")


def _remove_link(machine: PluginMachine, group: Group, link: str) -> None:
    if machine.look(link)[0].target == group.folder:
        machine.remove(link)


def _note_path(group: Group, spec: SessionSpec) -> str:
    return os.path.join(group.users, os.path.basename(spec.notes["folder"]))


def _write_note(machine: PluginMachine, group: Group, link: str, spec: SessionSpec) -> None:
    workspace = machine.resolve(os.path.dirname(link))
    note = {"workspace": workspace, "folder": spec.notes["folder"], "pid": machine.pid, "since": machine.wall()}
    machine.write_record(_note_path(group, spec), note)


def _is_used(machine: PluginMachine, group: Group, link: str) -> bool:
    """True if a session of the group that lives, or is about to, has this link. Notes of others are dropped."""
    here, used = machine.resolve(os.path.dirname(link)), False
    for name in machine.names(group.users):
        path = os.path.join(group.users, name)
        if name.startswith("."):
            continue
        note = _read_note(machine, path)
        if not _is_living(machine, note):
            with suppress(Denied):
                machine.remove(path)
        elif note["workspace"] == here:
            used = True
    return used


def _read_note(machine: PluginMachine, path: str) -> dict[str, Any]:
    with suppress(Denied, NotFound, ValueError):
        note = machine.read_record(path)
        if {"workspace", "folder", "pid", "since"} <= note.keys():
            return note
    return {}


def _is_living(machine: PluginMachine, note: dict[str, Any]) -> bool:
    if not note:
        return False
    recent, pid = abs(machine.wall() - note["since"]) < START_SECONDS, note["pid"]
    starting = recent and (pid is None or machine.is_running(pid))
    return starting or machine.is_folder(note["folder"])


# git


def _hide_from_git(machine: PluginMachine, folder: str) -> None:
    """Have git overlook the link, by the repository's own list that is never committed."""
    if not machine.which("git"):
        return
    inside = _run_git(machine, folder, "rev-parse", "--is-inside-work-tree")
    if "not a git repository" in inside.error or inside.out == "false\n":
        return
    if inside.status:
        raise _git_failed(inside.error)
    ignored = _run_git(machine, folder, "check-ignore", "--quiet", "--no-index", LINK)
    if ignored.status == 1:
        path = _run_git(machine, folder, "rev-parse", "--git-path", "info/exclude").out.removesuffix("\n")
        _add_to_exclude(machine, os.path.join(folder, path))
    elif ignored.status:
        raise _git_failed(ignored.error)


def _add_to_exclude(machine: PluginMachine, path: str) -> None:
    if machine.shell(ADD_LINE, path, LINK)[0]:
        hint = f"add {LINK} to another ignore list of git, such as .gitignore"
        raise Failed(f"{path} cannot be added to", reason="bad_exclude", hint=hint)


def _run_git(machine: PluginMachine, folder: str, *words: str) -> CommandResult:
    command = ("git", "-c", "core.fsmonitor=false", *words)
    return machine.run(command, folder, seconds=GIT_SECONDS, variables=UNATTENDED, without=LOCATION)


def _git_failed(said: str) -> Failed:
    return Failed(f"git: {' '.join(printable_lines(said))[:1000]}", reason="git", hint="look at it: git status")
