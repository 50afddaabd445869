"""Start in a git worktree of a branch, and remove the worktree at the end if nothing in it would be lost.

It lies outside the repository, in `$XDG_STATE_HOME/tmuxctl/worktrees/REPOSITORY/BRANCH`; beside it a record says whose it is
and what was put into it. Git is never asked by way of the worktree's own files: a program may have rewritten them.
"""

from __future__ import annotations

import fcntl
import hashlib
import math
import os
import re
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from tmuxctl.errors import Conflict, Denied, Failed, Usage
from tmuxctl.model import SessionSpec
from tmuxctl.state_files import is_running, make_private_folder, state_home, write_record
from tmuxctl.untrusted import JSON_LIMIT, open_file, parse_record, read_file, remove_tree

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

LOCATION = re.compile(
    r"GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|ALTERNATE_OBJECT_DIRECTORIES|NAMESPACE|PREFIX|"
    r"IMPLICIT_WORK_TREE|GRAFT_FILE|SHALLOW_FILE|CONFIG)"
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

SEARCH_SECONDS = 20.0
"""How long repositories are looked for in a worktree before it is kept unseen."""

LOG_BYTES = 16 << 20

LOGGED = re.compile(rb"^[0-9a-f]{40,64} ([0-9a-f]{40,64}) [^\t\n]*(?:\t(.*))?$", re.MULTILINE)
"""An entry of a log of git's: the commit from then on, and what made it so."""

STEP = re.compile(rb"rebase|pull\b[^:]*\(")
"""Commits that a rebase makes on its way; those it ends with are on the branch."""

Record = dict[str, Any]


class CommandResult(NamedTuple):
    """How a command ended, and what it wrote."""

    status: int
    out: str
    error: str


class Git(NamedTuple):
    """Git at a folder; `variables` say which repository and tree are meant where it shall not look for itself."""

    folder: str
    variables: Mapping[str, str] = {}
    until: float = math.inf
    """The moment by the monotonic clock at which all of its questions are to be answered."""

    def ask(self, *words: str, stdin: str = "", seconds: float = QUERY_SECONDS) -> CommandResult:
        """Run it, and again for a moment while somebody else holds one of git's locks."""
        env = {name: value for name, value in os.environ.items() if not LOCATION.fullmatch(name)}
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            command = ("git", "-c", "core.fsmonitor=false", *words)
            left = min(seconds, max(0.1, self.until - time.monotonic()))
            ran = _run_command(command, self.folder, {**env, **UNATTENDED, **self.variables}, stdin=stdin, seconds=left)
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

    common: str
    top: str | None
    inside: str

    @property
    def git(self) -> Git:
        return Git(self.common, {"GIT_DIR": self.common})


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
    if spec.machine:
        raise Usage("a worktree can be made on this machine only", reason="bad_option", hint="start without it")
    spec = replace(spec, env={name: value for name, value in spec.env.items() if not LOCATION.fullmatch(name)})
    repository = _find_checkout(spec.cwd)
    _check_branch(branch, repository)
    files = _make_paths(repository, branch)
    if spec.notes.get("dry_run"):
        where = _absolute_path(path, spec.cwd) if path else files.tree
        return replace(spec, cwd=os.path.normpath(os.path.join(where, repository.inside)))
    with _lock(files.lock):
        record = _read_record(files.record)
        if record and not record["ready"]:  # whoever made it died over it: nothing was ever started there
            _undo_worktree(repository.git, record, files.record)
            record = {}
        _refuse_used(record, spec)
        where = _absolute_path(path, spec.cwd) if path else record.get("path", files.tree)
        made = not _is_there(repository, branch, where, record, files, spec)
        if made:
            record = _make_worktree(repository, branch, base, where, setup, spec, files)
        cwd = _find_start_folder(where, repository)
        write_record(files.record, {**record, "owner": _new_owner(spec, record, made)}, durable=True)
    about = {"path": where, "branch": branch, "repository": repository.common, "keep": keep, "record": files.record}
    return replace(spec, cwd=cwd, notes={**spec.notes, "worktree": about})


def check() -> str | None:
    """Why it cannot work here, or None."""
    return None if shutil.which("git") else "git is not installed"


def example(folder: str) -> dict[str, str]:
    """Make the folder a repository; the options `plugin test` tries it with."""
    git, who = Git(folder), ("-c", "user.name=example", "-c", "user.email=example@localhost")
    git("init", "--quiet")
    git(*who, "commit", "--quiet", "--no-gpg-sign", "--allow-empty", "--message=Begin")
    return {"branch": "example"}


def cleanup(spec: SessionSpec, ended: Any) -> str | None:
    """Remove the worktree if nothing in it would be lost, and never the branch, but for one that was made for a session
    that did not start. Else what is kept and why."""
    about = spec.notes.get("worktree")
    if not about:
        return None
    path, record_file = about["path"], about["record"]
    kept = f"worktree {path} of branch {about['branch']} kept"
    try:
        with _lock(record_file.removesuffix(".json") + ".lock"):
            unsaved = _remove_unless_lost(about, record_file, spec.notes["folder"], ended)
    except (Conflict, Denied, Failed, OSError) as error:
        return f"{kept}: {getattr(error, 'message', error)}" if os.path.lexists(path) else None
    return f"{kept}: {', '.join(unsaved)}" if unsaved else None


def _remove_unless_lost(about: Mapping[str, Any], record_file: str, folder: str, ended: Any) -> list[str]:
    """What holds the worktree back, nothing if it is gone or is not for this session to remove."""
    path, record = about["path"], _read_record(record_file)
    owner = record.get("owner") or {}
    if owner and owner["folder"] != folder:
        return []
    undone = ended.exit_status is None and not ended.kept and _is_starting(owner, os.getpid())
    if undone and not owner["made"]:  # it was there before, perhaps as that of a session which is lost still
        write_record(record_file, {**record, "owner": owner if os.path.isdir(folder) else None}, durable=True)
        return []
    if record:
        write_record(record_file, {**record, "owner": None}, durable=True)
    if os.path.lexists(path) and not ended.force:
        if about["keep"] == "always" and not undone:
            return []
        if unsaved := _list_unsaved(about, record):
            return unsaved
    _remove_worktree(about["repository"], path, force=ended.force)
    if undone:
        _drop_branch(about["repository"], record)
    with suppress(FileNotFoundError):
        os.unlink(record_file)
    return []


# the repository and its names


def _find_checkout(folder: str) -> Checkout:
    git = Git(folder)
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
    common = os.path.realpath(os.path.join(folder, git("rev-parse", "--git-common-dir")))
    if bare == "true" and inside != "true":
        return Checkout(common, None, ".")
    top = git("rev-parse", "--show-toplevel")
    return Checkout(common, top, os.path.relpath(os.path.realpath(folder), top))


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
    state = state_home()
    work = os.path.dirname(repository.common) if os.path.basename(repository.common) == ".git" else repository.common
    for tree in (work, repository.top):
        if tree and _is_within(os.path.realpath(state), tree):
            message = f"{state} lies in the repository {tree}, which is no place for worktrees"
            raise Failed(message, reason="bad_path", hint="set XDG_STATE_HOME to a folder outside of it")
    os.makedirs(state, mode=0o700, exist_ok=True)
    folder = state
    for name in ("tmuxctl", "worktrees", _folder_name(os.path.basename(work), repository.common)):
        folder = os.path.join(folder, name)
        make_private_folder(folder)
    tree = os.path.join(folder, _folder_name(branch))
    return WorktreePaths(tree, f"{tree}.json", f"{tree}.lock")


def _folder_name(text: str, key: str = "") -> str:
    """A folder's name that tells the text, and only it: what had to be changed is told apart by its hash."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:60]
    if plain == text and not key:
        return text
    # no branch may have a tilde in its name, so no plain one can be mistaken for this
    return f"{plain}~{hashlib.sha256((key or text).encode(errors='surrogateescape')).hexdigest()[:10]}"


def _absolute_path(path: str, folder: str) -> str:
    return os.path.normpath(os.path.join(folder, os.path.expanduser(path)))


def _is_within(path: str, folder: str) -> bool:
    return os.path.commonpath((path, folder)) == folder


# the record, and who may work on it


@contextmanager
def _lock(lock: str) -> Iterator[None]:
    """Nobody else makes, takes or removes this worktree meanwhile. The lock's file goes away with it."""
    deadline = time.monotonic() + LOCK_SECONDS
    while (handle := _try_lock(lock)) is None:
        if time.monotonic() > deadline:
            message = f"another tmuxctl is making or removing the worktree {lock.removesuffix('.lock')}"
            raise Conflict(message, reason="busy", hint="try again when it is done, or take another branch")
        time.sleep(0.05)
    try:
        yield
    finally:
        with suppress(FileNotFoundError):
            os.unlink(lock)
        os.close(handle)


def _try_lock(lock: str) -> int | None:
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise Denied(f"{lock}: {error.strerror}", reason="bad_lock", hint=f"look at it: ls -ld {lock}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # the file that was locked may be one that its last holder has just removed
        if os.fstat(handle).st_ino == os.stat(lock, follow_symlinks=False).st_ino:
            return handle
    except (BlockingIOError, FileNotFoundError):
        pass
    os.close(handle)
    return None


def _read_record(path: str) -> Record:
    try:
        record = parse_record(read_file(path, JSON_LIMIT + 1), path)
        return {"path": str(record["path"]), "ready": bool(record["ready"]), **record}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, KeyError) as error:
        hint = f"look at the worktree beside it, then remove the file: rm {path}"
        raise Failed(f"{path} cannot be read: {error}", reason="bad_record", hint=hint) from None


def _new_owner(spec: SessionSpec, record: Record, made: bool) -> Record:
    """Whose the worktree is from now on, and whether it is there for this session's start alone."""
    folder, before = spec.notes["folder"], record.get("owner") or {}
    again = before.get("folder") == folder and before["made"] and not os.path.isdir(folder)
    about = {"folder": folder, "session": spec.name, "made": made or again}
    return {**about, "pid": os.getpid(), "since": time.time()}


def _refuse_used(record: Record, spec: SessionSpec) -> None:
    owner = record.get("owner")
    if not owner or owner["folder"] == spec.notes["folder"]:
        return
    if os.path.isdir(owner["folder"]) or (_is_starting(owner, owner["pid"]) and is_running(owner["pid"])):
        name = owner["session"]
        hint = f"end it: tmuxctl kill {name}; or bring it back if tmux is gone: tmuxctl restore; or take another branch"
        message = f"branch {record['branch']} has a worktree that is in use by the session {name}: {record['path']}"
        raise Conflict(message, reason="in_use", hint=hint)


def _is_starting(owner: Record, pid: int) -> bool:
    """True if this process gave the worktree away a moment ago."""
    return bool(owner) and owner["pid"] == pid and abs(time.time() - owner["since"]) < START_SECONDS


# what is there, and what has to be made


def _is_there(
    repository: Checkout, branch: str, where: str, record: Record, files: WorktreePaths, spec: SessionSpec
) -> bool:
    """True if the branch has its worktree at this place, False if one can be made; else why neither is so."""
    checked_out = _find_worktree(repository, branch)
    same = bool(checked_out) and os.path.realpath(where) == os.path.realpath(checked_out or "")
    if not os.path.lexists(where):
        if same:  # somebody removed it by hand
            repository.git("worktree", "remove", "--force", where)
        elif checked_out:
            raise _checked_out_elsewhere(branch, checked_out)
        return False
    ours = not os.path.islink(where) and where in (record.get("path"), files.tree)
    mine = (record.get("owner") or {}).get("folder") == spec.notes["folder"]
    if ours and (same or mine):
        _git_folder(where, repository.common)
        return True
    if checked_out and not os.path.islink(where):
        raise _checked_out_elsewhere(branch, checked_out)
    if not os.path.islink(where) and os.path.isdir(where) and not os.listdir(where):
        return False
    raise Failed(f"{where} is in the way", reason="exists", hint="look at it, then move it or choose another: path=DIR")


def _find_worktree(repository: Checkout, branch: str) -> str | None:
    """Where the branch is checked out: "" if nowhere, None if there is no such branch."""
    ref = f"refs/heads/{branch}"
    name, _, path = repository.git("for-each-ref", "--format=%(refname)%00%(worktreepath)", ref).partition("\0")
    return path if name == ref else None


def _checked_out_elsewhere(branch: str, path: str) -> Conflict:
    hint = f"take another branch, or start there: --cwd {path}"
    if not os.path.lexists(path):
        hint = "if it does not exist any more: git worktree prune"
    return Conflict(f"branch {branch} is checked out at {path}", reason="checked_out", hint=hint)


def _git_folder(tree: str, common: str) -> str:
    """The folder git keeps for this worktree; Failed unless it, the worktree and the repository name each other."""
    with suppress(OSError, ValueError):
        word, _, path = _first_line(f"{tree}/.git").partition(": ")
        own = os.path.realpath(os.path.join(tree, path))
        leads = {
            os.path.dirname(own): f"{common}/worktrees",
            os.path.realpath(os.path.join(own, _first_line(f"{own}/gitdir"))): f"{os.path.realpath(tree)}/.git",
            os.path.realpath(os.path.join(own, _first_line(f"{own}/commondir"))): common,
        }
        if word == "gitdir" and all(there == right for there, right in leads.items()):
            return own
    hint = "if git moved it: git worktree repair; if a program changed it, look at it before you use it"
    raise Failed(f"{tree}/.git does not lead to the repository {common}", reason="bad_worktree", hint=hint)


def _first_line(path: str) -> str:
    return os.fsdecode(read_file(path, 8192)).removesuffix("\n")


def _make_worktree(
    repository: Checkout, branch: str, base: str, where: str, setup: str, spec: SessionSpec, files: WorktreePaths
) -> Record:
    """A new worktree, ready; nothing of it is left if that fails."""
    if not os.path.isdir(os.path.dirname(where)) or _is_within(os.path.realpath(where), repository.common):
        hint = "give a folder that does not exist yet, in one that does"
        raise Usage(f"path: no worktree can be made at {ascii(where)}", reason="bad_path", hint=hint)
    record: Record = {"path": where, "branch": branch, "ready": False, "owner": None, "start": None, "stamps": {}}
    start = _find_start(repository, branch, base, Git(spec.cwd))
    with suppress(FileNotFoundError):
        os.rmdir(where)
    os.mkdir(where, 0o700)
    try:
        write_record(files.record, record, durable=True)
        if start:
            _make_branch(repository, branch, start)
            write_record(files.record, record := {**record, "start": start.commit}, durable=True)
            if start.upstream:
                repository.git("branch", f"--set-upstream-to={start.upstream}", "--", branch)
        repository.git("worktree", "add", "--", where, branch, seconds=CHECKOUT_SECONDS)
        copied = _copy_ignored(repository, where)
        cwd = _find_start_folder(where, repository)
        if setup:
            _run_setup(setup, cwd, spec.env)
        tree = _worktree_git(where, repository.common)
        record |= {"ready": True, "stamps": _stamp_files(where, [*copied, *_list_changes(tree)]), "copied": copied}
        write_record(files.record, record, durable=True)
    except BaseException:
        # what cannot be taken back now is by the next `new` of this branch: the record says that it is not ready
        with suppress(Failed, OSError):
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


def _worktree_git(path: str, common: str) -> Git:
    """Git for a worktree, by the folder that git itself keeps for it."""
    own = _git_folder(path, common)
    return Git(path, {"GIT_DIR": own, "GIT_COMMON_DIR": common, "GIT_WORK_TREE": path})


def _find_start_folder(tree: str, repository: Checkout) -> str:
    folder = os.path.normpath(os.path.join(tree, repository.inside))
    if os.path.isdir(folder) and _is_within(os.path.realpath(folder), os.path.realpath(tree)):
        return folder
    hint = f"start at the top of the repository: --cwd {repository.top}"
    raise Failed(f"the branch has no folder {ascii(repository.inside)}", reason="bad_cwd", hint=hint)


def _run_setup(command: str, cwd: str, env: Mapping[str, str]) -> None:
    try:
        ran = _run_command(("sh", "-c", f"exec 2>&1\n{command}"), cwd, env, seconds=SETUP_SECONDS)
        message = f"ended with status {ran.status}; its last lines: {_last_lines(ran.out)}" if ran.status else ""
    except Failed as error:
        message = error.message.removeprefix("sh ")
    if message:
        raise Failed(
            f"setup {ascii(command[:60])} {message}", reason="setup", hint="try it in another checkout first"
        ) from None


def _undo_worktree(git: Git, record: Record, record_file: str) -> None:
    _remove_worktree(git.folder, record["path"], force=True)
    _drop_branch(git.folder, record)
    with suppress(FileNotFoundError):
        os.unlink(record_file)


def _remove_worktree(common: str, path: str, *, force: bool) -> None:
    """Take a worktree away, from git's list too; `force`: also one that git does not take for its own."""
    words = ("worktree", "remove", "--force", "--force", "--", path)
    ran = Git(common, {"GIT_DIR": common}).ask(*words, seconds=CHECKOUT_SECONDS) if os.path.isdir(common) else None
    if not os.path.lexists(path):
        return
    if not force:
        message = f"git worktree remove: {_error_words(ran)}" if ran else f"its repository {common} is gone"
        raise Failed(message, reason="git")
    remove_tree(path)
    if ran:
        Git(common, {"GIT_DIR": common}).ask(*words)


def _drop_branch(common: str, record: Record) -> None:
    """Delete the branch that was made for the worktree, if it still is where it began."""
    if record.get("start"):
        git = Git(common, {"GIT_DIR": common})
        if not git.ask("update-ref", "-d", f"refs/heads/{record['branch']}", record["start"]).status:
            git.ask("config", "--remove-section", f"branch.{record['branch']}")


# files that git ignores, and the worktree needs


def _copy_ignored(repository: Checkout, tree: str) -> list[str]:
    """Copy what `.worktreeinclude` names and git ignores; their paths in the tree."""
    top = repository.top
    if top is None or not os.path.isfile(f"{top}/{INCLUDE}"):
        return []
    named = Git(top)("ls-files", "--others", "--ignored", f"--exclude-from={INCLUDE}", "-z")
    ignored = Git(top).ask("check-ignore", "-z", "--stdin", stdin=named)
    if ignored.status > 1:
        raise Failed(f"git check-ignore: {_error_words(ignored)}", reason="git", hint=f"look at {top}/{INCLUDE}")
    paths = [path for path in ignored.out.split("\0") if path and not path.endswith("/")]
    size = sum(os.lstat(f"{top}/{path}").st_size for path in paths[: MOST_FILES + 1])
    if len(paths) > MOST_FILES or size > MOST_BYTES:
        message = (
            f"{INCLUDE} names {len(paths)} files, {size >> 20} MiB; {MOST_FILES} and {MOST_BYTES >> 20} are allowed"
        )
        raise Failed(message, reason="too_large", hint="narrow its patterns, or fetch them with setup=COMMAND")
    return [path for path in paths if _copy_file(top, tree, path)]


def _copy_file(top: str, tree: str, path: str) -> bool:
    """Copy a file or a link that stays within the repository; True if it is there now and was not before."""
    source, target = os.path.join(top, path), os.path.join(tree, path)
    folder = os.path.dirname(target)
    if not _is_within(os.path.realpath(folder), os.path.realpath(tree)):
        raise Failed(f"{folder} leads out of the worktree", reason="bad_path", hint=f"look at {path} on the branch")
    # the branch may have a file of its own there, or where a folder of this path would be
    with suppress(FileExistsError, NotADirectoryError):
        os.makedirs(folder, exist_ok=True)
        if os.path.islink(source):
            return _copy_link(top, source, target)
        if not stat.S_ISREG(os.lstat(source).st_mode):
            return False
        with open(open_file(source), "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as copy:
                shutil.copyfileobj(file, copy)
                os.fchmod(copy.fileno(), stat.S_IMODE(mode))
        return True
    return False


def _copy_link(top: str, source: str, target: str) -> bool:
    to = os.readlink(source)
    if os.path.isabs(to) or not _is_within(os.path.realpath(source), os.path.realpath(top)):
        return False
    os.symlink(to, target)
    return True


# what would be lost


def _list_unsaved(about: Mapping[str, Any], record: Record) -> list[str]:
    """What speaks against removing the worktree, each in words."""
    git = _worktree_git(about["path"], about["repository"])._replace(until=time.monotonic() + UNSAVED_SECONDS)
    own = git.variables["GIT_DIR"]
    changed, stamps = _list_changes(git), record.get("stamps", {})
    touched = {path for path, known in changed.items() if stamps.get(path, "") != _stamp_file(about["path"], path)}
    copied = {path: _stamp_file(about["path"], path) for path in record.get("copied", ())}
    copies = [path for path, stamp in copied.items() if stamp not in (None, stamps.get(path))]
    return [
        *_count_phrase(sum(changed[path] for path in touched), "changed file", "not committed"),
        *_count_phrase(sum(not changed[path] for path in touched), "new file", "not committed"),
        *_count_phrase(len(copies), "copied file", "changed"),
        *_count_phrase(_count_own_commits(git, about["branch"]), "commit", "on no remote and no other branch"),
        *_count_phrase(_count_logged_commits(git), "commit", "known only to its own log (git reflog)"),
        *(f"{what} is not finished" for name, what in UNDER_WAY.items() if os.path.lexists(f"{own}/{name}")),
        *_count_phrase(_count_submodules(git), "submodule", "checked out in it"),
        *(f"{name} is a repository of its own" for name in _list_repositories(about["path"], own)),
        *(["it is locked"] if os.path.lexists(f"{own}/locked") else []),
    ]


def _count_phrase(number: int, noun: str, what: str) -> list[str]:
    return [f"{number} {noun}{' is' if number == 1 else 's are'} {what}"] if number else []


def _list_changes(tree: Git) -> dict[str, bool]:
    """What differs from the last commit, with whether git knows the file. Submodules are not entered: git would follow
    what their own files say."""
    words = ("--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty")
    entries = tree("status", *words).split("\0")
    return {entry[3:]: not entry.startswith("?") for entry in entries if entry}


def _stamp_files(tree: str, paths: list[str]) -> dict[str, list[int] | None]:
    """How files were before the program started: what nobody touched since is nobody's work."""
    return {path: _stamp_file(tree, path) for path in paths[:MOST_FILES] if not path.endswith("/")}


def _stamp_file(tree: str, path: str) -> list[int] | None:
    try:
        found = os.lstat(os.path.join(tree, path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return [found.st_size, found.st_ctime_ns]


def _count_own_commits(tree: Git, branch: str) -> int:
    """How many commits of the branch, and of whatever is checked out now, nothing but these holds."""
    head = tree.ask("symbolic-ref", "--quiet", "HEAD").out.removesuffix("\n").removeprefix("refs/heads/")
    refs = [ref for ref in ("HEAD", f"refs/heads/{branch}") if not tree.ask("rev-parse", "--verify", "-q", ref).status]
    others = [f"--exclude={name}" for name in (branch, head) if name]
    return int(tree("rev-list", "--count", *refs, "--not", "--remotes", *others, "--branches")) if refs else 0


def _count_logged_commits(tree: Git) -> int:
    """How many commits only the worktree's own log knows, which goes with it: made on a HEAD that was detached, or on a branch
    that is deleted. What a branch was before, as before `commit --amend`, is in the log of the branch, which stays."""
    logged = dict.fromkeys(_read_log(f"{tree.variables['GIT_DIR']}/logs/HEAD"))
    known = tree.ask("rev-list", "--walk-reflogs", "--branches").out.split()
    commits = "\n".join((*logged, *(f"^{commit}" for commit in known)))
    own = ("worktree", "bisect", "rewritten")
    others = ("--not", *(f"--exclude=refs/{name}/*" for name in own), "--all")
    words = ("--count", "--ignore-missing", "--glob=refs/worktree", "--stdin", *others)
    return int(tree("rev-list", *words, stdin=f"{commits}\n"))


def _read_log(path: str) -> Iterator[str]:
    """The commits of a log, none if there is no log."""
    try:
        text = read_file(path, LOG_BYTES + 1)
    except FileNotFoundError:
        return
    if len(text) > LOG_BYTES:
        raise Failed(f"{path} is larger than {LOG_BYTES >> 20} MiB", reason="too_large")
    for commit, message in LOGGED.findall(text):
        if not STEP.match(message):
            yield commit.decode()


def _list_repositories(tree: str, own: str) -> list[str]:
    """Where repositories lie that would go with the worktree, whether git ignores the folder or not, and those of submodules.
    They are known by their shape: git would do what their settings say."""
    deadline = time.monotonic() + SEARCH_SECONDS
    inside = [os.path.relpath(path, tree).removesuffix("/.git") for path in _find_git_folders(tree, deadline)]
    modules = f"{own}/modules"
    return [*inside, *(f"submodule {os.path.relpath(path, modules)}" for path in _find_git_folders(modules, deadline))]


def _find_git_folders(top: str, deadline: float) -> Iterator[str]:
    """The folders below that are repositories with something in them; links are not followed, and no file is opened."""
    folders = [top]
    while folders:
        if time.monotonic() > deadline:
            message = f"it has too many folders to look for repositories in {SEARCH_SECONDS:g} s"
            raise Failed(message, reason="timeout")
        folder = folders.pop()
        try:
            with os.scandir(folder) as found:
                entries = {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
        except (FileNotFoundError, NotADirectoryError):
            continue
        if {"HEAD", "objects", "refs"} <= entries.keys() and _has_objects(f"{folder}/objects"):
            yield folder
        else:
            folders += [f"{folder}/{name}" for name, is_folder in entries.items() if is_folder]


def _has_objects(folder: str) -> bool:
    try:
        return bool({*os.listdir(folder)} - {"info", "pack"} or os.listdir(f"{folder}/pack"))
    except OSError:
        return True


def _count_submodules(tree: Git) -> int:
    entries = (entry.partition("\t") for entry in tree("ls-files", "--stage", "-z").split("\0"))
    paths = [path for about, _, path in entries if about.startswith("160000 ")]
    return sum(os.path.lexists(os.path.join(tree.folder, path, ".git")) for path in paths)


# running


def _run_command(
    command: tuple[str, ...], cwd: str, env: Mapping[str, str], *, stdin: str = "", seconds: float
) -> CommandResult:
    """Run a command without a terminal, with all that it starts, and end it all when its time is over."""
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as error:
        given.write(stdin.encode(errors="surrogateescape"))
        given.seek(0)
        process = subprocess.Popen(
            command, cwd=cwd, env=dict(env), stdin=given, stdout=out, stderr=error, start_new_session=True
        )
        try:
            status = process.wait(seconds)
        except BaseException as reason:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(reason, subprocess.TimeoutExpired):
                raise
            said = "; its last lines: " + _last_lines(_read_text(out)) if os.fstat(out.fileno()).st_size else ""
            message = f"did not end within {seconds:.3g} s{said}"
            hint = "is the disk or the network slow, or is there a FIFO where git reads a file? find DIR -type p"
            raise Failed(f"{command[0]} {message}", reason="timeout", hint=hint) from None
        return CommandResult(status, _read_text(out), _read_text(error))


def _read_text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode(errors="surrogateescape"))


def _error_words(ran: CommandResult) -> str:
    """What git complained of, in one line fit to be shown."""
    return " ".join(_printable_lines(ran.error))[:1000]


def _last_lines(text: str) -> str:
    return " | ".join(line[:300] for line in _printable_lines(text)[-10:])


def _printable_lines(text: str) -> list[str]:
    lines = (line.strip() for line in text.splitlines())
    return ["".join(letter if letter.isprintable() else "?" for letter in line) for line in lines if line]
