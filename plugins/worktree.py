"""Start in a git worktree of a branch, and remove the worktree at the end if nothing in it would be lost.

It lies outside the repository, in `$XDG_STATE_HOME/tmuxctl/worktrees/REPOSITORY/BRANCH` of the session's machine; beside it a
record says whose it is and what was put into it. Git is never asked by way of the worktree's own files: a program may have
rewritten them.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from tmuxctl.errors import Conflict, Denied, Failed, NotFound, Usage
from tmuxctl.model import SessionSpec
from tmuxctl.plugin_machine import CommandResult, PluginMachine, last_lines, printable_lines

KIND = "cwd"
DEADLINE = 3000.0
"""More than all the deadlines below together."""

KEEP = ("auto", "always")
INCLUDE = ".worktreeinclude"
MOST_FILES, MOST_BYTES = 10_000, 1 << 30
"""What may be copied into a new worktree."""

QUERY_SECONDS, CHECKOUT_SECONDS, SETUP_SECONDS = 20.0, 600.0, 900.0

UNSAVED_SECONDS = 5.0
"""How long git may take over all questions whether something would be lost: a program may have put a FIFO where git reads
a file. The worktree is kept then."""

LOCK_SECONDS = 5.0
"""How long somebody else's lock is waited for."""

START_SECONDS = 60.0
"""How long a session may take from here until its folder exists."""

LOCKED = re.compile(r"(lock'|config file [^\n]*): File exists|failed to read [^\n]*/commondir")
"""What git says while another git is at work: it stumbles over a worktree that is just being made, too."""

LOCATION = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_CONFIG",
)
"""Variables that lead git to another repository than the one of its folder."""

UNATTENDED = {"GIT_TERMINAL_PROMPT": "0", "GIT_ASKPASS": "", "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}

UNDER_WAY = {
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
}
"""What git leaves in a worktree's own folder while something is not finished."""

OUTSIDE = 124
"""How xargs(1) ends after a command that ended with 255."""

SEARCH_SECONDS = 20.0
"""How long repositories are looked for in a worktree before it is kept unseen."""

LOG_BYTES = 16 << 20

LOGGED = re.compile(rb"^[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t\n]*(?:\t(.*))?$", re.MULTILINE)
"""An entry of a log of git's: the commit from then on, and what made it so."""

STEP = re.compile(rb"rebase|pull\b[^:]*\(")
"""Commits that a rebase makes on its way; those it ends with are on the branch."""

SETUP = r"""
exec env -i sh -c 'exec 2>&1; eval "$(cat)"; exec sh -c "$1" </dev/null' sh "$1"
"""
"""Runs a command with the variables that standard input sets, and no others: their values stand in no list of arguments."""

SIZES = """
cd -- "$1" && xargs -0 ls -ldnq -- | { total=0; while read -r mode links user group size rest; do
  total=$((total + size)); done; printf %s "$total"; }
"""
"""The bytes of the files whose names are on standard input."""

COPY = r"""
top=$(cd -P -- "$1" && pwd -P) tree=$(cd -P -- "$2" && pwd -P) || exit 255; shift 2
say() { printf %s "$1" >&2; exit 255; }
for one do
  source=$top/$one target=$tree/$one folder=$tree
  case $one in */*) folder=$tree/${one%/*} ;; esac
  at=$folder
  until real=$(cd -P -- "$at" 2>/dev/null && pwd -P); do
    [ ! -L "$at" ] || say "$folder"
    at=${at%/*}
  done
  case $real/ in "$tree"/*) ;; *) say "$folder" ;; esac
  # the branch may have a file of its own there, or where a folder of this path would be
  mkdir -p -- "$folder" 2>/dev/null && [ ! -e "$target" ] && [ ! -L "$target" ] || continue
  if [ -L "$source" ]; then
    to=$(readlink -- "$source"; echo .); to=${to%??}
    case $to in /*) continue ;; esac
    leads=${source%/*}/$to
    if ! real=$(cd -P -- "$leads" 2>/dev/null && pwd -P); then
      real=$(cd -P -- "${leads%/*}" 2>/dev/null && pwd -P) || continue
      real=$real/${leads##*/}
      [ ! -L "$real" ] || continue
    fi
    case $real/ in "$top"/*) ln -s -- "$to" "$target" || exit 1 ;; *) continue ;; esac
  elif [ -f "$source" ]; then (umask 077; cp -p -- "$source" "$target") || exit 1
  else continue; fi
  printf '%s\0' "$one"
done
"""
"""Copies files, and links that stay within the repository, from one checkout to another; prints the names of those that were not
there before. Ends with 255 and a folder's name where that leads out of the worktree."""

STAMPS = r"""
cd -- "$1" || exit
if stat -c %f / >/dev/null 2>&1; then exec xargs -0 stat -c '%s %Z %z/%n/' -- 2>/dev/null
else exec xargs -0 stat -f '%z %c %Fc/%N/' -- 2>/dev/null; fi
"""

REPOSITORIES = r"""
[ -d "$1" ] || exit 0
exec find "$1" -name objects -exec sh -c '
  there() { [ -e "$1" ] || [ -L "$1" ]; }
  for one do
    at=${one%/*} held=
    there "$at/HEAD" && there "$at/refs" && [ -d "$one" ] || continue
    { [ -r "$one" ] && [ -x "$one" ]; } || held=unknown
    for entry in "$one"/* "$one"/.[!.]*; do
      case ${entry##*/} in info | pack) ;; *) ! there "$entry" || held=yes ;; esac
    done
    for entry in "$one"/pack/*; do ! there "$entry" || held=yes; done
    [ -z "$held" ] || printf "%s\0" "$at"
  done' sh {} +
"""
"""The folders below one that are repositories with something in them; links are not followed, and no file is opened."""

Record = dict[str, Any]


class Git(NamedTuple):
    """Git at a folder of a machine; `variables` say which repository and tree are meant where it shall not look for itself."""

    machine: PluginMachine
    folder: str
    variables: Mapping[str, str] = {}
    until: float = math.inf
    """The moment by the monotonic clock at which all of its questions are to be answered."""

    def ask(self, *words: str, stdin: str = "", seconds: float = QUERY_SECONDS) -> CommandResult:
        """Run it, and again for a moment while somebody else holds one of git's locks."""
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            command = ("git", "-c", "core.fsmonitor=false", *words)
            left = min(seconds, max(0.1, self.until - time.monotonic()))
            variables = {**UNATTENDED, **self.variables}
            ran = self.machine.run(
                command, self.folder, stdin=stdin, seconds=left, variables=variables, without=LOCATION
            )
            if not ran.status or not LOCKED.search(ran.error) or time.monotonic() > deadline:
                return ran
            time.sleep(0.1)

    def __call__(self, *words: str, stdin: str = "", seconds: float = QUERY_SECONDS) -> str:
        """What it prints, without the last newline; Failed with its own words."""
        ran = self.ask(*words, stdin=stdin, seconds=seconds)
        if ran.status:
            hint = "look at it: git worktree list"
            raise Failed(f"git {words[0]}: {_error_words(ran) or f'status {ran.status}'}", reason="git", hint=hint)
        return ran.out.removesuffix("\n")


class Checkout(NamedTuple):
    """The repository of a folder: its common git folder, the top of this checkout (none in a bare one), and the folder's
    way down from there."""

    machine: PluginMachine
    common: str
    top: str | None
    inside: str

    @property
    def git(self) -> Git:
        return _common_git(self.machine, self.common)


class Start(NamedTuple):
    """The commit that a new branch begins at, and the remote's branch that it follows, if any."""

    commit: str
    upstream: str


class WorktreePaths(NamedTuple):
    """Where a branch's worktree lies if nobody says otherwise, its record, and the lock for both."""

    tree: str
    record: str
    lock: str


def transform(
    spec: SessionSpec,
    machine: PluginMachine,
    *,
    branch: Annotated[str, "the branch: an existing one, one that a remote has, or a new one"],
    base: Annotated[str, "where a new branch starts (default: HEAD)"] = "",
    keep: Annotated[str, "auto: removed at the end if nothing would be lost; always: kept"] = "auto",
    setup: Annotated[str, "a shell command to run once in a new worktree, as `npm ci`"] = "",
    path: Annotated[str, "where to make it (default: in tmuxctl's state folder)"] = "",
) -> SessionSpec:
    """Use the worktree of the branch, or make it; start in the same folder of it."""
    if keep not in KEEP:
        raise Usage(f"keep: {ascii(keep[:40])} is none of {', '.join(KEEP)}", reason="bad_option", hint="keep=always")
    spec = replace(spec, env={name: value for name, value in spec.env.items() if name not in LOCATION})
    repository = _find_checkout(machine, spec.cwd)
    _check_branch(branch, repository)
    files = _make_paths(repository, branch)
    if spec.notes.get("dry_run"):
        where = machine.expand(path, spec.cwd) if path else files.tree
        return replace(spec, cwd=os.path.normpath(os.path.join(where, repository.inside)))
    with _lock(machine, files.lock):
        record = _read_record(machine, files.record)
        if record and not record["ready"]:  # whoever made it died over it: nothing was ever started there
            _undo_worktree(repository.git, record, files.record)
            record = {}
        _refuse_used(machine, record, spec)
        where = machine.expand(path, spec.cwd) if path else record.get("path", files.tree)
        made = not _is_there(repository, branch, where, record, files, spec)
        if made:
            record = _make_worktree(repository, branch, base, where, setup, spec, files)
        cwd = _find_start_folder(where, repository)
        owner = _new_owner(machine, spec, record, made)
        machine.write_record(files.record, {**record, "owner": owner}, durable=True)
    about = {"path": where, "branch": branch, "repository": repository.common, "keep": keep, "record": files.record}
    return replace(spec, cwd=cwd, notes={**spec.notes, "worktree": about})


def check(machine: PluginMachine) -> str | None:
    """Why it cannot work there, or None."""
    return None if machine.which("git") else "git is not installed"


def example(folder: str, machine: PluginMachine) -> dict[str, str]:
    """Make the folder a repository; the options `plugin test` tries it with."""
    git, who = Git(machine, folder), ("-c", "user.name=example", "-c", "user.email=example@localhost")
    git("init", "--quiet")
    git(*who, "commit", "--quiet", "--no-gpg-sign", "--allow-empty", "--message=Begin")
    return {"branch": "example"}


def cleanup(spec: SessionSpec, ended: Any, machine: PluginMachine) -> str | None:
    """Remove the worktree if nothing in it would be lost, and never the branch, but for one that was made for a session
    that did not start. Else what is kept and why."""
    about = spec.notes.get("worktree")
    if not about:
        return None
    path, record_file = about["path"], about["record"]
    kept = f"worktree {path} of branch {about['branch']} kept"
    try:
        with _lock(machine, record_file.removesuffix(".json") + ".lock"):
            unsaved = _remove_unless_lost(machine, about, record_file, spec.notes["folder"], ended)
    except (Conflict, Denied, Failed, NotFound) as error:
        return f"{kept}: {error.message}" if machine.exists(path) else None
    return f"{kept}: {', '.join(unsaved)}" if unsaved else None


def _remove_unless_lost(
    machine: PluginMachine, about: Mapping[str, Any], record_file: str, folder: str, ended: Any
) -> list[str]:
    """What holds the worktree back, nothing if it is gone or is not for this session to remove."""
    path, record = about["path"], _read_record(machine, record_file)
    owner = record.get("owner") or {}
    if owner and owner["folder"] != folder:
        return []
    undone = ended.exit_status is None and not ended.kept and _is_starting(machine, owner, machine.pid)
    if undone and not owner["made"]:  # it was there before, perhaps as that of a session which is lost still
        still = owner if machine.is_folder(folder) else None
        machine.write_record(record_file, {**record, "owner": still}, durable=True)
        return []
    if record:
        machine.write_record(record_file, {**record, "owner": None}, durable=True)
    if machine.exists(path) and not ended.force:
        if about["keep"] == "always" and not undone:
            return []
        if unsaved := _list_unsaved(machine, about, record):
            return unsaved
    _remove_worktree(machine, about["repository"], path, force=ended.force)
    if undone:
        _drop_branch(_common_git(machine, about["repository"]), record)
    machine.remove(record_file)
    return []


# the repository and its names


def _common_git(machine: PluginMachine, common: str) -> Git:
    """Git for a repository, by its common folder."""
    return Git(machine, common, {"GIT_DIR": common})


def _find_checkout(machine: PluginMachine, folder: str) -> Checkout:
    git = Git(machine, folder)
    ran = git.ask("rev-parse", "--is-bare-repository", "--is-inside-work-tree")
    if ran.status and "not a git repository" in ran.error:
        hint = "start in one with --cwd, or make it one: git init"
        raise Failed(f"{ascii(folder)} is not in a git repository", reason="no_repository", hint=hint)
    if ran.status:
        hint = "its owner can do this" if "dubious ownership" in ran.error else "look at it: git status"
        raise Failed(f"git: {_error_words(ran)}", reason="git", hint=hint)
    bare, inside = ran.out.split()
    if "true" not in (bare, inside):
        raise Failed(f"{ascii(folder)} is inside a .git folder", reason="no_repository", hint="start in the checkout")
    common, real = _resolve(machine, os.path.join(folder, git("rev-parse", "--git-common-dir")), folder)
    if bare == "true" and inside != "true":
        return Checkout(machine, common, None, ".")
    top = git("rev-parse", "--show-toplevel")
    return Checkout(machine, common, top, os.path.relpath(real, top))


def _check_branch(branch: str, repository: Checkout) -> None:
    plain = branch.isprintable() and not branch.startswith(("-", "refs/")) and len(branch.encode()) <= 200
    if plain and branch not in ("HEAD", "@"):
        ran = repository.git.ask("check-ref-format", "--branch", branch)
        if not ran.status and ran.out == f"{branch}\n":
            return
    hint = "write it as for `git branch`, as in fix-1 or feature/login"
    raise Usage(f"{ascii(branch[:60])} is not a valid name for a branch", reason="bad_branch", hint=hint)


def _make_paths(repository: Checkout, branch: str) -> WorktreePaths:
    """The paths for a branch, in a folder of the repository's that is there, is ours and lies outside of it."""
    machine = repository.machine
    state = os.path.dirname(machine.state_folder)
    work = os.path.dirname(repository.common) if os.path.basename(repository.common) == ".git" else repository.common
    for tree in (work, repository.top):
        if tree and _is_within(machine.resolve(state), tree):
            message = f"{state} lies in the repository {tree}, which is no place for worktrees"
            raise Failed(message, reason="bad_path", hint="set XDG_STATE_HOME to a folder outside of it")
    made = os.path.join(machine.state_folder, "worktrees")
    folder = os.path.join(made, _folder_name(os.path.basename(work), repository.common))
    machine.make_private_folders(machine.state_folder, made, folder)
    tree = os.path.join(folder, _folder_name(branch))
    return WorktreePaths(tree, f"{tree}.json", f"{tree}.lock")


def _folder_name(text: str, key: str = "") -> str:
    """A folder's name that tells the text, and only it: what had to be changed is told apart by its hash."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:60]
    if plain == text and not key:
        return text
    # no branch may have a tilde in its name, so no plain one can be mistaken for this
    return f"{plain}~{hashlib.sha256((key or text).encode(errors='surrogateescape')).hexdigest()[:10]}"


def _resolve(machine: PluginMachine, *paths: str) -> list[str]:
    """The paths without links on the way to them."""
    return [found.real for found in machine.look(*paths)]


def _is_within(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder


# the record, and who may work on it


def _lock(machine: PluginMachine, lock: str) -> AbstractContextManager[None]:
    """Nobody else makes, takes or removes this worktree meanwhile. The lock's file goes away with it."""
    busy = f"another tmuxctl is making or removing the worktree {lock.removesuffix('.lock')}"
    return machine.lock(lock, busy, "try again when it is done, or take another branch", LOCK_SECONDS)


def _read_record(machine: PluginMachine, path: str) -> Record:
    try:
        record = machine.read_record(path)
        return {"path": str(record["path"]), "ready": bool(record["ready"]), **record}
    except NotFound:
        return {}
    except (Denied, ValueError, TypeError, KeyError) as error:
        hint = f"look at the worktree beside it, then remove the file: rm {path}"
        raise Failed(f"{path} cannot be read: {error}", reason="bad_record", hint=hint) from None


def _new_owner(machine: PluginMachine, spec: SessionSpec, record: Record, made: bool) -> Record:
    """Whose the worktree is from now on, and whether it is there for this session's start alone."""
    folder, before = spec.notes["folder"], record.get("owner") or {}
    again = before.get("folder") == folder and before["made"] and not machine.is_folder(folder)
    about = {"folder": folder, "session": spec.name, "made": made or again}
    return {**about, "pid": machine.pid, "since": machine.wall()}


def _refuse_used(machine: PluginMachine, record: Record, spec: SessionSpec) -> None:
    owner = record.get("owner")
    if not owner or owner["folder"] == spec.notes["folder"]:
        return
    pid = owner["pid"]
    starting = _is_starting(machine, owner, pid) and (pid is None or machine.is_running(pid))
    if starting or machine.is_folder(owner["folder"]):
        name = owner["session"]
        hint = f"end it: tmuxctl kill {name}; or bring it back if tmux is gone: tmuxctl restore; or take another branch"
        message = f"branch {record['branch']} has a worktree that is in use by the session {name}: {record['path']}"
        raise Conflict(message, reason="in_use", hint=hint)


def _is_starting(machine: PluginMachine, owner: Record, pid: int | None) -> bool:
    """True if this process gave the worktree away a moment ago."""
    return bool(owner) and owner["pid"] == pid and abs(machine.wall() - owner["since"]) < START_SECONDS


# what is there, and what has to be made


def _is_there(
    repository: Checkout, branch: str, where: str, record: Record, files: WorktreePaths, spec: SessionSpec
) -> bool:
    """True if the branch has its worktree at this place, False if one can be made; else why neither is so."""
    machine, checked_out = repository.machine, _find_worktree(repository, branch)
    found = machine.look(where)[0]
    same = bool(checked_out) and found.real == machine.resolve(checked_out or "")
    if not found.kind:
        if same:  # somebody removed it by hand
            repository.git("worktree", "remove", "--force", where)
        elif checked_out:
            raise _checked_out_elsewhere(machine, branch, checked_out)
        return False
    ours = found.kind != "link" and where in (record.get("path"), files.tree)
    mine = (record.get("owner") or {}).get("folder") == spec.notes["folder"]
    if ours and (same or mine):
        _git_folder(machine, where, repository.common)
        return True
    if checked_out and found.kind != "link":
        raise _checked_out_elsewhere(machine, branch, checked_out)
    if found.kind == "folder" and not machine.names(where):
        return False
    raise Failed(f"{where} is in the way", reason="exists", hint="look at it, then move it or choose another: path=DIR")


def _find_worktree(repository: Checkout, branch: str) -> str | None:
    """Where the branch is checked out: "" if nowhere, None if there is no such branch."""
    ref = f"refs/heads/{branch}"
    name, _, path = repository.git("for-each-ref", "--format=%(refname)%00%(worktreepath)", ref).partition("\0")
    return path if name == ref else None


def _checked_out_elsewhere(machine: PluginMachine, branch: str, path: str) -> Conflict:
    hint = f"take another branch, or start there: --cwd {path}"
    if not machine.exists(path):
        hint = "if it does not exist any more: git worktree prune"
    return Conflict(f"branch {branch} is checked out at {path}", reason="checked_out", hint=hint)


def _git_folder(machine: PluginMachine, tree: str, common: str) -> str:
    """The folder git keeps for this worktree; Failed unless it, the worktree and the repository name each other."""
    with suppress(Denied, NotFound):
        word, _, path = _first_line(machine, f"{tree}/.git").partition(": ")
        own = machine.resolve(os.path.join(tree, path))
        gitdir, commondir = (_first_line(machine, f"{own}/{name}") for name in ("gitdir", "commondir"))
        there = _resolve(machine, os.path.join(own, gitdir), os.path.join(own, commondir), tree)
        leads = (os.path.dirname(own), *there[:2])
        if word == "gitdir" and leads == (f"{common}/worktrees", f"{there[2]}/.git", common):
            return own
    hint = "if git moved it: git worktree repair; if a program changed it, look at it before you use it"
    raise Failed(f"{tree}/.git does not lead to the repository {common}", reason="bad_worktree", hint=hint)


def _first_line(machine: PluginMachine, path: str) -> str:
    return os.fsdecode(machine.read(path, 8192)).removesuffix("\n")


def _make_worktree(
    repository: Checkout, branch: str, base: str, where: str, setup: str, spec: SessionSpec, files: WorktreePaths
) -> Record:
    """A new worktree, ready; nothing of it is left if that fails."""
    machine = repository.machine
    above, place = machine.look(os.path.dirname(where), where)
    if not above.is_folder or _is_within(place.real, repository.common):
        hint = "give a folder that does not exist yet, in one that does"
        raise Usage(f"path: no worktree can be made at {ascii(where)}", reason="bad_path", hint=hint)
    record: Record = {"path": where, "branch": branch, "ready": False, "owner": None, "start": None, "stamps": {}}
    start = _find_start(repository, branch, base, Git(machine, spec.cwd))
    if machine.shell('rmdir -- "$1" 2>/dev/null; mkdir -m 700 -- "$1"', where)[0]:
        raise Failed(f"{where} cannot be made", reason="io", hint=f"look at it: ls -ld {os.path.dirname(where)}")
    try:
        machine.write_record(files.record, record, durable=True)
        if start:
            _make_branch(repository, branch, start)
            machine.write_record(files.record, record := {**record, "start": start.commit}, durable=True)
            if start.upstream:
                repository.git("branch", f"--set-upstream-to={start.upstream}", "--", branch)
        repository.git("worktree", "add", "--", where, branch, seconds=CHECKOUT_SECONDS)
        copied = _copy_ignored(repository, where)
        cwd = _find_start_folder(where, repository)
        if setup:
            _run_setup(machine, setup, cwd, spec.env)
        tree = _worktree_git(machine, where, repository.common)
        stamps = _stamp_files(machine, where, [*copied, *_list_changes(tree)])
        record |= {"ready": True, "stamps": stamps, "copied": copied}
        machine.write_record(files.record, record, durable=True)
    except BaseException:
        # what cannot be taken back now is by the next `new` of this branch: the record says that it is not ready
        with suppress(Failed, Denied):
            _undo_worktree(repository.git, record, files.record)
        raise
    return record


def _find_start(repository: Checkout, branch: str, base: str, here: Git) -> Start | None:
    """Where a new branch begins; None if there is one of this name."""
    if _find_worktree(repository, branch) is not None:
        return None
    upstream = "" if base else _find_upstream(repository, branch)
    commit = f"{upstream or base or 'HEAD'}^{{commit}}"
    ran = here.ask("rev-parse", "--verify", "--quiet", "--end-of-options", commit)
    if not ran.status:
        return Start(ran.out.strip(), upstream)
    if base:
        raise Usage(f"base: {ascii(base[:60])} is not a commit here", reason="bad_base", hint="git log --oneline --all")
    hint = "make one: git commit --allow-empty -m 'Begin'"
    raise Failed("the repository has no commit to start a branch from", reason="no_commit", hint=hint)


def _find_upstream(repository: Checkout, branch: str) -> str:
    """The ref of the only remote that has the branch; "" if none has."""
    refs = [f"refs/remotes/{name}/{branch}" for name in repository.git("remote").split("\n") if name]
    found = [ref for ref in refs if not repository.git.ask("show-ref", "--verify", "--quiet", ref).status]
    if len(found) > 1:
        names = " and ".join(ref.removeprefix("refs/remotes/") for ref in found)
        raise Failed(f"{names} are two branches", reason="ambiguous", hint="say which: base=REMOTE/BRANCH")
    return "".join(found)


def _make_branch(repository: Checkout, branch: str, start: Start) -> None:
    try:
        repository.git("branch", "--no-track", "--", branch, start.commit)
    except Failed as error:
        raise Conflict(error.message, reason="git", hint="look at them: git branch --list; or take another") from None


def _worktree_git(machine: PluginMachine, path: str, common: str) -> Git:
    """Git for a worktree, by the folder that git itself keeps for it."""
    own = _git_folder(machine, path, common)
    return Git(machine, path, {"GIT_DIR": own, "GIT_COMMON_DIR": common, "GIT_WORK_TREE": path})


def _find_start_folder(tree: str, repository: Checkout) -> str:
    folder = os.path.normpath(os.path.join(tree, repository.inside))
    found, top = repository.machine.look(folder, tree)
    if found.is_folder and _is_within(found.real, top.real):
        return folder
    hint = f"start at the top of the repository: --cwd {repository.top}"
    raise Failed(f"the branch has no folder {ascii(repository.inside)}", reason="bad_cwd", hint=hint)


def _run_setup(machine: PluginMachine, command: str, cwd: str, env: Mapping[str, str]) -> None:
    variables = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in env.items())
    try:
        ran = machine.run(("sh", "-c", SETUP, "sh", command), cwd, stdin=variables, seconds=SETUP_SECONDS)
        message = f"ended with status {ran.status}; its last lines: {last_lines(ran.out)}" if ran.status else ""
    except Failed as error:
        message = error.message.removeprefix("sh ")
    if message:
        raise Failed(
            f"setup {ascii(command[:60])} {message}", reason="setup", hint="try it in another checkout first"
        ) from None


def _undo_worktree(git: Git, record: Record, record_file: str) -> None:
    _remove_worktree(git.machine, git.folder, record["path"], force=True)
    _drop_branch(git, record)
    git.machine.remove(record_file)


def _remove_worktree(machine: PluginMachine, common: str, path: str, *, force: bool) -> None:
    """Take a worktree away, from git's list too; `force`: also one that git does not take for its own."""
    words = ("worktree", "remove", "--force", "--force", "--", path)
    git = _common_git(machine, common)
    ran = git.ask(*words, seconds=CHECKOUT_SECONDS) if machine.is_folder(common) else None
    if not machine.exists(path):
        return
    if not force:
        message = f"git worktree remove: {_error_words(ran)}" if ran else f"its repository {common} is gone"
        raise Failed(message, reason="git")
    if machine.shell('exec rm -rf -- "$1"', path, timeout=CHECKOUT_SECONDS)[0]:
        raise Failed(f"{path} cannot be removed", reason="io", hint=f"look at it: ls -ld {path}")
    if ran:
        git.ask(*words)


def _drop_branch(git: Git, record: Record) -> None:
    """Delete the branch that was made for the worktree, if it still is where it began."""
    begun, branch = record.get("start"), record.get("branch")
    if begun and not git.ask("update-ref", "-d", f"refs/heads/{branch}", begun).status:
        git.ask("config", "--remove-section", f"branch.{branch}")


# files that git ignores, and the worktree needs


def _copy_ignored(repository: Checkout, tree: str) -> list[str]:
    """Copy what `.worktreeinclude` names and git ignores; their paths in the tree."""
    machine, top = repository.machine, repository.top
    if top is None or machine.shell('[ -f "$1" ]', f"{top}/{INCLUDE}")[0]:
        return []
    git = Git(machine, top)
    named = git("ls-files", "--others", "--ignored", f"--exclude-from={INCLUDE}", "-z")
    ignored = git.ask("check-ignore", "-z", "--stdin", stdin=named)
    if ignored.status > 1:
        raise Failed(f"git check-ignore: {_error_words(ignored)}", reason="git", hint=f"look at {top}/{INCLUDE}")
    paths = [path for path in ignored.out.split("\0") if path and not path.endswith("/")]
    if not paths:
        return []
    size = int(_run_script(machine, SIZES, top, paths=paths[: MOST_FILES + 1]).out or 0)
    if len(paths) > MOST_FILES or size > MOST_BYTES:
        message = (
            f"{INCLUDE} names {len(paths)} files, {size >> 20} MiB; {MOST_FILES} and {MOST_BYTES >> 20} are allowed"
        )
        raise Failed(message, reason="too_large", hint="narrow its patterns, or fetch them with setup=COMMAND")
    ran = _run_script(machine, 'exec xargs -0 sh -c "$3" sh "$1" "$2"', top, tree, COPY, paths=paths)
    if ran.status == OUTSIDE:
        hint = f"look at what {INCLUDE} names on the branch"
        raise Failed(f"{ran.error.splitlines()[0]} leads out of the worktree", reason="bad_path", hint=hint)
    if ran.status:
        raise Failed(f"copying: {_error_words(ran)}", reason="io", hint=f"look at {top}/{INCLUDE}")
    return [path for path in ran.out.split("\0") if path]


def _run_script(machine: PluginMachine, script: str, *words: str, paths: list[str]) -> CommandResult:
    """Run a script that reads these paths from its standard input."""
    command, listed = ("sh", "-c", script, "sh", *words), "".join(f"{path}\0" for path in paths)
    return machine.run(command, "/", stdin=listed, seconds=CHECKOUT_SECONDS)


# what would be lost


def _list_unsaved(machine: PluginMachine, about: Mapping[str, Any], record: Record) -> list[str]:
    """What speaks against removing the worktree, each in words."""
    git = _worktree_git(machine, about["path"], about["repository"])
    git = git._replace(until=time.monotonic() + UNSAVED_SECONDS)
    own = git.variables["GIT_DIR"]
    changed, stamps, copied = _list_changes(git), record.get("stamps", {}), record.get("copied", ())
    now = _stamp_files(machine, about["path"], [path for path in {*changed, *copied} if path in stamps])
    touched = {path for path in changed if stamps.get(path, "") != now.get(path)}
    copies = [path for path in copied if now.get(path) not in (None, stamps.get(path))]
    *under_way, locked = machine.look(*(f"{own}/{name}" for name in (*UNDER_WAY, "locked")))
    return [
        *_count_phrase(sum(changed[path] for path in touched), "changed file", "not committed"),
        *_count_phrase(sum(not changed[path] for path in touched), "new file", "not committed"),
        *_count_phrase(len(copies), "copied file", "changed"),
        *_count_phrase(_count_own_commits(git, about["branch"]), "commit", "on no remote and no other branch"),
        *_count_phrase(_count_logged_commits(git), "commit", "known only to its own log (git reflog)"),
        *(f"{what} is not finished" for what, found in zip(UNDER_WAY.values(), under_way, strict=True) if found.kind),
        *_count_phrase(_count_submodules(git), "submodule", "checked out in it"),
        *(f"{name} is a repository of its own" for name in _list_repositories(machine, about["path"], own)),
        *(["it is locked"] if locked.kind else []),
    ]


def _count_phrase(number: int, noun: str, what: str) -> list[str]:
    return [f"{number} {noun}{' is' if number == 1 else 's are'} {what}"] if number else []


def _list_changes(tree: Git) -> dict[str, bool]:
    """What differs from the last commit, with whether git knows the file. Submodules are not entered: git would follow
    what their own files say."""
    words = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty")
    entries = tree("status", *words).split("\0")
    return {entry[3:]: not entry.startswith("?") for entry in entries if entry}


def _stamp_files(machine: PluginMachine, tree: str, paths: list[str]) -> dict[str, list[int] | None]:
    """How files are: their size and the moment of their last change, None for what is not there. What nobody touched since the
    program started is nobody's work."""
    paths = [path for path in paths if not path.endswith("/")][:MOST_FILES]
    printed = _run_script(machine, STAMPS, tree, paths=paths).out if paths else ""
    stamps: dict[str, list[int] | None] = {}
    for path in paths:
        found = re.compile(rf"(\d+) (\d+) ([^/\n]*)/{re.escape(path)}/\n").match(printed)
        stamps[path] = None
        if found:
            fraction = re.search(r"\.(\d+)", found[3])
            stamps[path] = [
                int(found[1]),
                int(found[2]) * 10**9 + int(fraction[1][:9].ljust(9, "0") if fraction else 0),
            ]
            printed = printed[found.end() :]
    return stamps


def _count_own_commits(tree: Git, branch: str) -> int:
    """How many commits of the branch, and of whatever is checked out now, nothing but these holds."""
    head = tree.ask("symbolic-ref", "--quiet", "HEAD").out.removesuffix("\n").removeprefix("refs/heads/")
    refs = [ref for ref in ("HEAD", f"refs/heads/{branch}") if not tree.ask("rev-parse", "--verify", "-q", ref).status]
    others = [f"--exclude={name}" for name in (branch, head) if name]
    return int(tree("rev-list", "--count", *refs, "--not", "--remotes", *others, "--branches")) if refs else 0


def _count_logged_commits(tree: Git) -> int:
    """How many commits only the worktree's own log knows, which goes with it: made on a HEAD that was detached, or on a branch
    that is deleted. What a branch was before, as before `commit --amend`, is in the log of the branch, which stays."""
    logged = dict.fromkeys(_read_log(tree.machine, f"{tree.variables['GIT_DIR']}/logs/HEAD"))
    known = tree.ask("rev-list", "--walk-reflogs", "--branches").out.split()
    commits = "\n".join((*logged, *(f"^{commit}" for commit in known)))
    own = ("worktree", "bisect", "rewritten")
    others = ("--not", *(f"--exclude=refs/{name}/*" for name in own), "--all")
    words = ("--count", "--ignore-missing", "--glob=refs/worktree", "--stdin", *others)
    return int(tree("rev-list", *words, stdin=f"{commits}\n"))


def _read_log(machine: PluginMachine, path: str) -> Iterator[str]:
    """The commits of a log, none if there is no log."""
    try:
        text = machine.read(path, LOG_BYTES + 1)
    except NotFound:
        return
    if len(text) > LOG_BYTES:
        raise Failed(f"{path} is larger than {LOG_BYTES >> 20} MiB", reason="too_large")
    for commit, message in LOGGED.findall(text):
        if not STEP.match(message):
            yield commit.decode()


def _list_repositories(machine: PluginMachine, tree: str, own: str) -> list[str]:
    """Where repositories lie that would go with the worktree, whether git ignores the folder or not, and those of submodules.
    They are known by their shape: git would do what their settings say."""
    until, modules = time.monotonic() + SEARCH_SECONDS, f"{own}/modules"
    inside = [os.path.relpath(path, tree).removesuffix("/.git") for path in _find_git_folders(machine, tree, until)]
    below = (os.path.relpath(path, modules) for path in _find_git_folders(machine, modules, until))
    return [*inside, *(f"submodule {path}" for path in below)]


def _find_git_folders(machine: PluginMachine, top: str, until: float) -> list[str]:
    """The folders below that are repositories with something in them, but for those within others."""
    try:
        ran = machine.run(("sh", "-c", REPOSITORIES, "sh", top), "/", seconds=until - time.monotonic())
    except Failed as error:
        message = f"it has too many folders to look for repositories in {SEARCH_SECONDS:g} s"
        raise Failed(message if error.reason == "timeout" else error.message, reason=error.reason) from None
    if ran.status:
        raise Failed(f"repositories cannot be looked for: {_error_words(ran)}", reason="io")
    outermost: list[str] = []
    for path in sorted(path for path in ran.out.split("\0") if path):
        if not outermost or not _is_within(path, outermost[-1]):
            outermost.append(path)
    return outermost


def _count_submodules(tree: Git) -> int:
    entries = (entry.partition("\t") for entry in tree("ls-files", "--stage", "-z").split("\0"))
    paths = [path for about, _, path in entries if about.startswith("160000 ")]
    return sum(bool(found.kind) for found in tree.machine.look(*(f"{tree.folder}/{path}/.git" for path in paths)))


def _error_words(ran: CommandResult) -> str:
    """What git complained of, in one line fit to be shown."""
    return " ".join(printable_lines(ran.error))[:1000]
