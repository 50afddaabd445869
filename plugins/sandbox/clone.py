"""The private copy of a repository that a program in a sandbox commits to, and how its commits come back.

No folder of the repository itself can be written in the sandbox: git appends to its logs through links, waits for a FIFO
among its references, and runs what its settings name, so that whatever a program may put there reaches the git of its owner.
Where git keeps a working tree's facts the program finds a repository of its own instead. It borrows the objects of the real
one for reading, and begins with the same references, index and settings.

What was committed comes back as a list of references and a pack. Git of ours never runs beside a program's files: the pack
is made in one sandbox, of the copy, and unpacked and checked in another one, in which only the repository can be written.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple

from tmuxctl.errors import Conflict, Failed, TmuxctlError
from tmuxctl.model import SessionSpec
from tmuxctl.state_files import take_lock, write_record
from tmuxctl.untrusted import JSON_LIMIT, parse_record, read_file, remove_tree

from . import bubblewrap
from .repository import Repository, find_unfinished
from .view import Access, Part, View, machine_view, state_folder

QUERY_SECONDS, MAKE_SECONDS, SYNC_SECONDS, LOCK_SECONDS = 10.0, 60.0, 60.0, 30.0
MOST_REFERENCES, MOST_LIST_BYTES, MOST_PACK_BYTES = 1000, 1 << 26, 1 << 30
"""What comes back at most: references that differ, bytes of their list, bytes of the pack."""

PLACE = "/tmp/tmuxctl"
"""Where our own commands find what they work on: below it nothing is a program's."""

REFERENCE = re.compile(r"refs/(heads|tags)/[^\x00-\x20\x7f~^:?*\[\\]{1,200}|refs/stash")
SPECIAL = re.compile(r"-|@|[A-Z_]*HEAD$|[0-9a-fA-F]{4,64}$|(refs|heads|tags|remotes|sandbox|stash)(/|$)")
"""Names of branches and tags that mean something else where one is typed."""
OBJECT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")

GIT = """\
set -u
umask 077
export GIT_TERMINAL_PROMPT=0 GIT_ASKPASS= GIT_NO_LAZY_FETCH=1 GIT_NO_REPLACE_OBJECTS=1 LC_ALL=C
git() {
    command git -c core.fsmonitor=false -c core.hooksPath=/dev/null -c gc.auto=0 -c maintenance.auto=false \\
        -c protocol.allow=never -c core.packedGitLimit=1g -c core.packedGitWindowSize=32m -c safe.directory='*' "$@"
}
"""

MAKE = """\
cd "$1" || exit
from=$GIT_DIR common=$1/common to=$1/copy
mkdir -p "$to/objects/info" "$to/objects/pack" "$to/refs/heads" "$to/refs/tags" "$to/info" "$to/logs/refs" \\
    "$to/borrowed" "$to/hooks" "$to/modules" || exit
echo ../borrowed >"$to/objects/info/alternates"
for name in HEAD ORIG_HEAD FETCH_HEAD MERGE_HEAD MERGE_MSG MERGE_MODE AUTO_MERGE SQUASH_MSG CHERRY_PICK_HEAD REVERT_HEAD \\
    config.worktree index info/sparse-checkout logs/HEAD; do
    [ -f "$from/$name" ] && cp "$from/$name" "$to/$name"
done
for name in "$from"/sharedindex.*; do
    [ -f "$name" ] && cp "$name" "$to/"
done
for name in config shallow info/exclude info/attributes logs/refs/stash; do
    [ -f "$common/$name" ] && cp "$common/$name" "$to/$name"
done
command git config --file "$to/config" core.bare false || exit
[ "$from" = "$common" ] || command git config --file "$to/config" --unset core.worktree
git for-each-ref --format='%(objectname) %(refname) %(symref)'
"""
"""Makes the copy, and prints the references."""

REGULAR = """\
find "$GIT_DIR" ! -type f ! -type d -delete
"""
"""Git would follow the links that a program put into its copy, and wait for the FIFOs."""

HEADS = """\
cd "$1" || exit
git symbolic-ref -q HEAD || git rev-parse -q --verify HEAD || echo
for name in MERGE_HEAD CHERRY_PICK_HEAD REVERT_HEAD; do
    [ -e "$GIT_DIR/$name" ] && echo "under way: $name"
done
git for-each-ref --format='%(objectname) %(refname)%(if)%(worktreepath)%(then) %(worktreepath)%(end)'
"""

PACK = """\
git pack-objects --revs --thin --stdout --delta-base-offset -q
"""

UNPACK = """\
cd "$1" || exit
git index-pack --stdin --fix-thin --strict --max-input-size="$2" >/dev/null || exit
shift 2
printf '%s\\n' "$@" | git rev-list --objects --stdin --not --all --quiet
"""

TAKE = """\
cd "$1" || exit
shift
failed=
while [ $# -gt 0 ]; do
    case $failed$1 in
    *reference)
        [ -z "$4" ] || git merge-base --is-ancestor "$4" "$3" || echo "rewritten $2"
        git update-ref --create-reflog -m 'tmuxctl: from the sandbox' "$2" "$3" "$4" || { echo "$2"; failed=failed-; } ;;
    branch) git symbolic-ref -m 'tmuxctl: from the sandbox' HEAD "$2" || echo HEAD ;;
    commit) git update-ref --no-deref -m 'tmuxctl: from the sandbox' HEAD "$2" || echo HEAD ;;
    index) git read-tree -i -m "$2" "$3" || echo index ;;
    first) git read-tree "$2" || echo index ;;
    finished) rm -f "$GIT_DIR/$2" "$GIT_DIR/MERGE_MSG" "$GIT_DIR/MERGE_MODE" "$GIT_DIR/AUTO_MERGE" ;;
    esac
    case $1 in reference) shift 4 ;; index) shift 3 ;; *) shift 2 ;; esac
done
"""
"""Does what its arguments say, and prints what could not be done. What is checked out stays where a reference failed."""


class Heads(NamedTuple):
    """What is checked out (`refs/heads/...` or an object), what is under way, the references with their objects, and where
    each branch is checked out."""

    head: str
    under_way: tuple[str, ...]
    references: Mapping[str, str]
    places: Mapping[str, str]


def describe_copy(repository: Repository, spec: SessionSpec) -> dict[str, Any]:
    """Where the copy is and what it is a copy of, as notes of a spec."""
    base = re.sub(r"[^A-Za-z0-9_-]+", "-", os.path.basename(repository.top))[:60] or "top"
    name = f"{base}~{hashlib.sha256(os.fsencode(repository.top)).hexdigest()[:12]}"
    return {
        "copy": f"{state_folder()}/clones/{name}",
        "top": repository.top,
        "folder": repository.folder,
        "common": repository.common,
        "parked": f"refs/sandbox/{spec.name or 'unnamed'}-{os.path.basename(spec.notes.get('folder', ''))[:8] or 'x'}",
    }


def prepare(repository: Repository, spec: SessionSpec) -> View:
    """Make the copy, or take the one that another session in the same working tree commits to; what the program sees of it.

    Raises Failed `under_way` in the middle of a rebase, whose end could not be brought back, and `git` where git fails.
    """
    known = spec.notes["sandbox"]
    copy, folder, common = known["copy"], repository.folder, repository.common
    with _lock(copy):
        record = _read_record(copy)
        users = [user for user in record.get("users", ()) if os.path.isdir(user)]
        if record and not users:
            # what a session that died left is brought back first; what cannot be stays as it is, and is gone on with
            with suppress(TmuxctlError):
                _bring_back(record, spec)
                record = _remove_copy(copy)
        if not record:
            record = _make_copy(repository, copy, known, spec)
        own = [spec.notes["folder"]] if "folder" in spec.notes else []
        write_record(f"{copy}.json", {**record, "users": list(dict.fromkeys([*users, *own]))})
    borrowed = {f"{folder}/borrowed": Part(Access.READ, f"{common}/objects")}
    for name in ("hooks", "modules"):
        if os.path.isdir(f"{common}/{name}") and not os.path.islink(f"{common}/{name}"):
            borrowed[f"{folder}/{name}"] = Part(Access.READ, f"{common}/{name}")
    return {folder: Part(Access.WRITE, copy), **borrowed}


def bring_back(known: Mapping[str, Any], spec: SessionSpec) -> str | None:
    """Bring what was committed to the repository; in words what was brought, and what was not. Failed if that fails."""
    with _lock(known["copy"]):
        record = _read_record(known["copy"])
        told: list[str] = _bring_back(record, spec) if record else []
        return "; ".join(told) or None


def end_copy(known: Mapping[str, Any], spec: SessionSpec, *, force: bool) -> str | None:
    """Bring what was committed to the repository, and remove the copy unless another session uses it; in words what was not
    brought, or why the copy is kept."""
    copy, own = known["copy"], spec.notes.get("folder")
    try:
        with _lock(copy):
            record = _read_record(copy)
            if not record:
                return None
            users = [entry for entry in record.get("users", ()) if entry != own and os.path.isdir(entry)]
            try:
                told = _bring_back(record, spec)
            except TmuxctlError as error:
                if not force:
                    raise
                told = [error.message]
            if users:
                write_record(f"{copy}.json", {**_read_record(copy), "users": users})
            else:
                _remove_copy(copy)
            return "; ".join(entry for entry in told if not entry.startswith("brought")) or None
    except (TmuxctlError, OSError) as error:
        return f"what was committed in the sandbox is kept in {copy}: {getattr(error, 'message', error)}"


# making it


def _make_copy(repository: Repository, copy: str, known: Mapping[str, Any], spec: SessionSpec) -> dict[str, Any]:
    if what := find_unfinished(repository):
        hint = "finish it or abort it first, or work in a worktree: --worktree BRANCH"
        raise Failed(f"{what} is under way in {repository.top}", reason="under_way", hint=hint)
    _remove_copy(copy)
    os.makedirs(copy, mode=0o700)
    seen = machine_view(spec) | {
        f"{PLACE}/common": Part(Access.READ, repository.common),
        f"{PLACE}/copy": Part(Access.WRITE, copy),
    }
    try:
        ran = _run_git(seen, GIT + MAKE, MAKE_SECONDS, folder=_relative_folder(known), most=MOST_LIST_BYTES)
        references, lines = {}, []
        for line in ran.out.decode(errors="surrogateescape").splitlines():
            oid, name, symbolic = line.split(" ", 2)
            if symbolic:
                _write_file(copy, name, f"ref: {symbolic}\n")
            else:
                references[name] = oid
                lines.append(f"{oid} {name}\n")
        _write_file(copy, "packed-refs", "# pack-refs with: sorted \n" + "".join(lines))
        _write_file(os.path.dirname(copy), os.path.basename(copy) + ".refs", "".join(lines))
        head = read_file(f"{copy}/HEAD", 4096).decode(errors="replace").strip().removeprefix("ref: ")
    except BaseException:
        remove_tree(copy)
        raise
    return {**known, "head": head, "users": []}


def _write_file(folder: str, name: str, text: str) -> None:
    """Write a file of the copy before any program can see it."""
    path = os.path.join(folder, name)
    if not re.fullmatch(r"[^\0]+", name) or ".." in name.split("/") or name.startswith("/"):
        raise Failed(f"{ascii(name)} is not a reference", reason="git")
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(text.encode(errors="surrogateescape"))


# bringing back


def _bring_back(record: Mapping[str, Any], spec: SessionSpec) -> list[str]:
    """Bring what is new in the copy to the repository; in words what was brought, and what could not be.

    The branch that was checked out moves to where the program moved it, and new branches and tags are made. Whatever else
    it changed (another branch, one that moved outside too, the stash) is kept under a name that nobody else uses.
    """
    copy, base = record["copy"], _read_base(record["copy"])
    if not os.path.isdir(copy):
        return []
    _run_git(_copy_view(record, spec, Access.WRITE), REGULAR, QUERY_SECONDS, most=1 << 20)
    new = _read_heads(_copy_view(record, spec))
    changed = {name: oid for name, oid in new.references.items() if REFERENCE.fullmatch(name) and base.get(name) != oid}
    if not changed and new.head == record["head"]:
        return []
    real = _read_heads(_repository_view(record, spec, Access.READ), _relative_folder(record))
    changed = {name: oid for name, oid in changed.items() if real.references.get(name) != oid}
    detached = new.head if OBJECT.fullmatch(new.head) and new.head != record["head"] else ""
    if len(changed) > MOST_REFERENCES:
        raise Failed(f"{len(changed)} references changed; {MOST_REFERENCES} come back", reason="too_large")
    tips = [*changed.values(), *([detached] if detached else [])]
    if tips:
        _fetch_objects(record, spec, base, tips)
    taken = {name: oid for name, oid in changed.items() if _may_move(name, record, base, real)}
    # a tag and a branch of one name: git would take the tag for the branch
    taken = {name: oid for name, oid in taken.items() if f"refs/heads/{_short_name(name)[4:]}" not in taken}
    parked = {name: oid for name, oid in changed.items() if name not in taken}
    words, moved, told = _take_orders(record, base, real, new, taken, detached)
    if detached and not moved:
        parked["HEAD"] = detached
    for name, oid in parked.items():
        place = f"{record['parked']}/{name.removeprefix('refs/')}"
        words += ["reference", place, oid, real.references.get(place, "")]
    lines = _run_orders(record, spec, words) if words else []
    rewritten = {line.removeprefix("rewritten ") for line in lines if line.startswith("rewritten ")}
    failed = [line for line in lines if not line.startswith("rewritten ")]
    told += [
        f"brought {_short_name(name)}" + (f", rewritten: it was {base[name][:12]}" if name in rewritten else "")
        for name in taken
        if name not in failed
    ]
    told += [f"{_short_name(name)} is kept as {record['parked']}/{name.removeprefix('refs/')}" for name in parked]
    told += [f"{_short_name(name)} could not be written" for name in failed]
    if not failed:
        kept_lines = "".join(f"{oid} {name}\n" for name, oid in {**base, **changed}.items())
        _write_file(os.path.dirname(copy), os.path.basename(copy) + ".refs", kept_lines)
        write_record(f"{copy}.json", {**record, "head": new.head if moved else record["head"]})
        return told
    raise Failed("; ".join(told), reason="git", hint="look at it: git status; then tmuxctl sync")


def _may_move(name: str, record: Mapping[str, Any], base: Mapping[str, str], real: Heads) -> bool:
    """True for a reference that the program may move: what it had checked out, and what nobody else has made."""
    if name == record["head"]:
        return real.references.get(name) == base.get(name) and not _is_checked_out_elsewhere(name, record, real)
    return name not in base and _is_new_and_plain(name, real)


def _is_new_and_plain(name: str, real: Heads) -> bool:
    """True for a new branch or tag whose short name means nothing yet: git looks for tags before branches, and some names
    are revisions or options (gitrevisions(7))."""
    short = re.sub(r"^refs/(heads|tags)/", "", name)
    if SPECIAL.match(short) or name == "refs/stash":
        return False
    first = short.partition("/")[0]
    places = ("refs", "refs/heads", "refs/tags", "refs/remotes")
    known = {f"{place}/{short}" for place in places} | {f"refs/remotes/{short}/HEAD"}
    remotes = {reference.split("/")[2] for reference in real.references if reference.startswith("refs/remotes/")}
    return not known & real.references.keys() and first not in remotes


def _is_checked_out_elsewhere(name: str, record: Mapping[str, Any], real: Heads) -> bool:
    """True for a branch that another working tree has checked out. The one that the repository was made with stands there
    as the folder in which our git found it."""
    own = record["top"] if record["folder"] != record["common"] else f"{PLACE}/common"
    return real.places.get(name, "") not in ("", own)


def _take_orders(
    record: Mapping[str, Any],
    base: Mapping[str, str],
    real: Heads,
    new: Heads,
    taken: Mapping[str, str],
    detached: str,
) -> tuple[list[str], bool, list[str]]:
    """The words for TAKE, whether what is checked out moves, and what there is to say of it."""
    words: list[str] = []
    for name, oid in taken.items():
        words += ["reference", name, oid, base.get(name, "")]
    before, told = record["head"], list[str]()
    if real.head != before:
        return words, False, ["something else is checked out in it now"] if new.head != before else []
    branch = new.head if REFERENCE.fullmatch(new.head) else ""
    same = branch in new.references and real.references.get(branch) == new.references[branch]
    there = branch in taken or same
    elsewhere = _is_checked_out_elsewhere(branch, record, real)
    if new.head != before and (detached or (there and not elsewhere)):
        words += ["commit", detached] if detached else ["branch", branch]
    elif new.head != before:
        what = _short_name(branch) or "nothing"
        return words, False, [f"{what} is checked out in the sandbox, and not in the repository"]
    old = base.get(before, "") if before.startswith("refs/") else before
    now = detached or new.references.get(branch, "")
    if now and now != old and (detached or there):
        finished = [name for name in real.under_way if name not in new.under_way]
        # the index of a merge that was not finished holds what was in conflict
        words += ["index", old, now] if old and not finished else ["first", now]
        words += [word for name in finished for word in ("finished", name)]
    told += [f"{name} is not finished" for name in new.under_way if name not in real.under_way]
    return words, True, told


def _read_heads(seen: View, folder: str = ".") -> Heads:
    ran = _run_git(seen, GIT + HEADS, QUERY_SECONDS, folder=folder, most=MOST_LIST_BYTES)
    lines = ran.out.decode(errors="surrogateescape").splitlines()
    head, *rest = lines or [""]
    under_way = tuple(line.removeprefix("under way: ") for line in rest if line.startswith("under way: "))
    references, places = {}, {}
    for line in rest:
        oid, _, about_it = line.partition(" ")
        name, _, place = about_it.partition(" ")
        if OBJECT.fullmatch(oid) and name:
            references[name] = oid
            places[name] = place
    return Heads(head.strip(), under_way, references, places)


def _fetch_objects(record: Mapping[str, Any], spec: SessionSpec, base: Mapping[str, str], tips: list[str]) -> None:
    """Put the objects of these commits into the repository, after git has checked them and that none is missing."""
    with tempfile.TemporaryFile() as wanted, tempfile.TemporaryFile() as pack:
        wanted.write("".join([*(f"{tip}\n" for tip in tips), *(f"^{oid}\n" for oid in set(base.values()))]).encode())
        made = _run_git(_copy_view(record, spec), GIT + PACK, SYNC_SECONDS, stdin=wanted, most=MOST_PACK_BYTES)
        pack.write(made.out)
        _run_git(
            _repository_view(record, spec, Access.WRITE),
            GIT + UNPACK, SYNC_SECONDS, str(MOST_PACK_BYTES), *tips, stdin=pack, most=MOST_PACK_BYTES,
        )  # fmt: skip


def _run_orders(record: Mapping[str, Any], spec: SessionSpec, words: list[str]) -> list[str]:
    seen = _repository_view(record, spec, Access.WRITE)
    ran = _run_git(seen, GIT + TAKE, SYNC_SECONDS, *words, folder=_relative_folder(record), most=1 << 20)
    return ran.out.decode(errors="surrogateescape").splitlines()


def _relative_folder(known: Mapping[str, Any]) -> str:
    """The way from the repository to the folder of the working tree's facts."""
    return str(os.path.relpath(known["folder"], known["common"]))


def _repository_view(record: Mapping[str, Any], spec: SessionSpec, access: Access) -> View:
    """The view of a command that works on the repository itself."""
    return machine_view(spec) | {f"{PLACE}/common": Part(access, record["common"])}


def _copy_view(record: Mapping[str, Any], spec: SessionSpec, access: Access = Access.READ) -> View:
    """The view of a command that works on the copy."""
    return machine_view(spec) | {
        f"{PLACE}/common": Part(access, record["copy"]),
        f"{PLACE}/objects": Part(Access.READ, f"{record['common']}/objects"),
    }


def _run_git(
    seen: View, script: str, seconds: float, *words: str, folder: str = ".", **how: Any
) -> bubblewrap.SandboxedResult:
    """Run a script with git in a sandbox, in a repository's `folder` of a working tree's facts; Failed `git` with its words."""
    env = {
        "PATH": bubblewrap.SYSTEM,
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DIR": os.path.normpath(f"{PLACE}/common/{folder}"),
        "GIT_COMMITTER_NAME": "tmuxctl",
        "GIT_COMMITTER_EMAIL": "tmuxctl@localhost",
    }
    if f"{PLACE}/objects" in seen:
        env["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f"{PLACE}/objects"
    ran = bubblewrap.run(seen, ("/bin/sh", "-c", script, "sh", PLACE, *words), env=env, seconds=seconds, **how)
    if ran.status:
        said = " ".join(ran.error.split())[:500] or f"status {ran.status}"
        plain = "".join(letter if letter.isprintable() else "?" for letter in said)
        raise Failed(f"git: {plain}", reason="git", hint="look at the repository: git fsck")
    return ran


def _short_name(name: str) -> str:
    """A reference as it is told."""
    return re.sub(r"^refs/heads/", "", re.sub(r"^refs/tags/", "tag ", name))


# what is known of it


def _read_base(copy: str) -> dict[str, str]:
    """The references that the copy began with, or that came back since."""
    lines = read_file(copy + ".refs", MOST_LIST_BYTES).decode(errors="surrogateescape").splitlines()
    return {name: oid for oid, _, name in (line.partition(" ") for line in lines)}


def _read_record(copy: str) -> dict[str, Any]:
    try:
        return parse_record(read_file(copy + ".json", JSON_LIMIT), copy + ".json")
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError) as error:
        hint = f"look at the copy beside it, then remove the file: rm {copy}.json"
        raise Failed(f"{copy}.json cannot be read: {error}", reason="bad_record", hint=hint) from None


def _remove_copy(copy: str) -> dict[str, Any]:
    """Remove the copy and what is known of it; no record."""
    with suppress(FileNotFoundError):
        remove_tree(copy)
    for suffix in (".json", ".refs"):
        with suppress(FileNotFoundError):
            os.unlink(copy + suffix)
    return {}


@contextmanager
def _lock(copy: str) -> Iterator[None]:
    """Nobody else makes, reads or removes this copy meanwhile."""
    os.makedirs(os.path.dirname(copy), mode=0o700, exist_ok=True)
    handle = os.open(copy + ".lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        what = f"another tmuxctl is at work on {copy}"
        take_lock(handle, LOCK_SECONDS, lambda: Conflict(what, reason="busy", hint="try again when it is done"))
        yield
    finally:
        os.close(handle)
