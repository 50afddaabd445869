"""Let the program write only to its folder; it sees neither your home nor any tmux.

On Linux bubblewrap gives it a view of the machine of its own, and a filter of system calls closes what such a view
leaves open. It commits to a private copy of your repository, and what it committed is brought back. On macOS a profile
for sandbox-exec says the same, but for the repository, which is read-only there. Where neither works, nothing is started.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import replace
from typing import Annotated, Any

from tmuxctl.errors import Failed, Usage
from tmuxctl.model import SessionSpec

from . import bubblewrap, clone, macos, repository, view
from .seccomp import MACHINES
from .view import READ, WRITE, Access, Part, View, access, hidden

KIND = "wrap"
ORDER = 10
CLEAN_ENV = True
CONFINES = True
DEADLINE = 300.0
RUN_SECONDS = 3600.0
"""A program can stop the first process of its sandbox, which then never ends: `run` does not wait for it for ever."""

LEVELS = ("read-only", "workspace", "workspace+net")
NETWORK = LEVELS[2]

POINTERS = re.compile(
    r"SSH_AUTH_SOCK|SSH_AGENT_PID|GPG_AGENT_INFO|DBUS_\w+|XDG_RUNTIME_DIR|XDG_SE\w+|XDG_VTNR|DISPLAY|WAYLAND_\w+|"
    r"XAUTHORITY|ICEAUTHORITY|SESSION_MANAGER|KRB5CCNAME|TMPDIR"
)
"""Variables that name what is hidden; kept where what they name was given with `bind`."""

LOADED = re.compile(r"LD_\w+|GCONV_PATH|GLIBC_TUNABLES|LOCPATH|NLSPATH|MALLOC_\w+|BASH_ENV|ENV|SHELLOPTS|PS4|PERL\w*")
"""Variables by which a program loads or runs files: they are set inside only, or what the program left in its folder could
run outside while the next sandbox is made."""

CARRIER = "TMUXCTL_INSIDE_"
"""How a variable is called on its way to the inside: its value stands in no list of arguments."""


def transform(
    spec: SessionSpec,
    *,
    level: Annotated[str, "read-only, workspace (it writes in its folder) or workspace+net"] = "workspace",
    bind: Annotated[tuple[str, ...], "one more path it may write, or ro:PATH to read; may be repeated"] = (),
) -> SessionSpec:
    """Wrap the program. Usage for a level, folder or path that cannot be; Failed if the program itself would be hidden."""
    if level not in LEVELS:
        hint = f"one of {', '.join(LEVELS)}"
        raise Usage(f"{ascii(level[:40])} is not a level of a sandbox", reason="bad_option", hint=hint)
    if spec.machine:
        why = "what it shows of a machine is checked on that machine itself, by Python"
        raise Usage(
            f"a sandbox is made on this machine only: {why}", reason="bad_option", hint="start without it there"
        )
    if not spec.notes.get("dry_run"):  # what is remembered there is hidden from the first time on
        os.makedirs(view.state_folder(), mode=0o700, exist_ok=True)
    spec = replace(spec, cwd=view.resolve_links(spec.cwd))
    found = repository.find(spec.cwd)
    if found and found.top in (*view.private_folders(), *view.home_folders()):
        found = None  # it is hidden with the home that it keeps
    seen = _make_view(spec, found, level, bind)
    _refuse_hidden_program(spec, seen)
    env, inside = _split_environment(spec, seen)
    env = {**(found.author() if found else {}), **env}
    if sys.platform == "darwin":
        return replace(spec, argv=macos.command(spec, seen, level == NETWORK, inside), env=env)
    if not spec.notes.get("dry_run"):
        view.remember_written(seen)
    # last, as it is the only step that leaves something behind
    if found and level != LEVELS[0]:
        spec = replace(spec, notes={**spec.notes, "sandbox": clone.describe_copy(found, spec)})
        seen |= clone.prepare(found, spec)
    carried = {f"{CARRIER}{number}": value for number, value in enumerate(inside.values())}
    variables = dict(zip(inside, carried, strict=True))
    argv = bubblewrap.command(seen, spec.cwd, spec.argv, network=level == NETWORK, variables=variables)
    return replace(spec, argv=argv, env={**env, **carried})


def check() -> str | None:
    """Why no sandbox can be made here: found out by making one."""
    if sys.platform == "darwin":
        return None if os.path.exists(macos.SANDBOX_EXEC) else f"there is no {macos.SANDBOX_EXEC}"
    if not sys.platform.startswith("linux"):
        return f"no sandbox is known for {sys.platform}"
    if os.uname().machine not in MACHINES:
        return f"no filter of system calls is known for {os.uname().machine}"
    if what := bubblewrap.find_missing():
        return what
    said = bubblewrap.try_sandbox()
    return f"bubblewrap cannot make a sandbox: {said}" if said else None


def sync(spec: SessionSpec) -> str | None:
    """Bring what was committed in the sandbox to the repository; in words what was brought, and what was not."""
    about = spec.notes.get("sandbox")
    return clone.bring_back(about, spec) if about else None


def cleanup(spec: SessionSpec, ended: Any) -> str | None:
    """Bring what was committed to the repository, and remove the private copy once nothing of it would be lost."""
    about = spec.notes.get("sandbox")
    return clone.end_copy(about, spec, force=ended.force) if about else None


def _make_view(spec: SessionSpec, found: repository.Repository | None, level: str, bind: tuple[str, ...]) -> View:
    """Everything that differs from reading the machine as it is, but for the private copy of the repository."""
    workspace, hiding, kept = spec.cwd, list(view.home_folders()), view.secret_view(spec)
    seen = view.machine_view(spec)
    if reason := view.refuse_reason(workspace, [*view.private_folders(), *hiding], kept):
        hint = "work in a folder of its own: --cwd DIR"
        raise Usage(f"{ascii(workspace)} cannot be the folder of a sandbox: {reason}", reason="bad_cwd", hint=hint)
    if found:
        if level == LEVELS[0] or sys.platform == "darwin":
            seen[found.common] = READ
        seen[found.top] = READ
    seen[workspace] = READ if level == LEVELS[0] else WRITE
    seen |= {view.resolve_links(path): WRITE for path in spec.notes.get("binds", ())}
    for text in bind:
        path, part = view.parse_bind(text, spec)
        if reason := view.refuse_reason(path, hiding, kept):
            hint = "bind the part of it that is needed"
            raise Usage(f"{ascii(text)} is not given to a sandbox: {reason}", reason="bad_option", hint=hint)
        seen[path] = part
    if level != LEVELS[0]:
        for path in [path for path, part in seen.items() if part == WRITE]:
            seen |= {place: part for place, part in repository.guarded_view(path, found).items() if place not in seen}
    resolver = os.path.realpath("/etc/resolv.conf")
    if level == NETWORK and hidden(seen, resolver):
        seen[resolver] = Part(Access.READ, optional=True)
    seen |= view.home_inside(spec, seen) | kept
    seen |= view.socket_view(seen)
    return seen | _session_view(spec, seen)


def _session_view(spec: SessionSpec, seen: View) -> View:
    """What the program has of its session's folder: the events that it writes, and what its shell reads."""
    folder = spec.notes.get("folder")
    if not folder:
        return {}
    real = os.path.realpath(folder)
    place = folder if hidden(seen, folder) else real
    return {
        f"{place}/events": Part(Access.WRITE, f"{real}/events", optional=True),
        f"{place}/shell": Part(Access.READ, f"{real}/shell", optional=True),
    }


def _refuse_hidden_program(spec: SessionSpec, seen: View) -> None:
    """Failed if the program lies where the sandbox hides it: better said here than by a screen that ends at once."""
    word = spec.argv[0]
    found = os.path.join(spec.cwd, word) if "/" in word else shutil.which(word, path=spec.env.get("PATH")) or ""
    for place in (os.path.normpath(found), os.path.realpath(found)):
        if found and hidden(seen, place):
            hint = f"let it read what it needs: --with sandbox:bind=ro:{os.path.dirname(place)}"
            raise Failed(f"{ascii(word)} is {ascii(place)}, which the sandbox hides", reason="hidden", hint=hint)


def _split_environment(spec: SessionSpec, seen: View) -> tuple[dict[str, str], dict[str, str]]:
    """The variables, without those that name what is hidden; and those that are set inside only."""
    env = {
        name: value
        for name, value in spec.env.items()
        if not POINTERS.fullmatch(name) or access(seen, value) is Access.WRITE
    }
    inside = {name: env.pop(name) for name in list(env) if LOADED.fullmatch(name)}
    if "PATH" in env:
        entries = env["PATH"].split(":")
        safe = [entry for entry in entries if os.path.isabs(entry) and not _is_writable_inside(seen, entry)]
        if safe != entries:
            inside["PATH"], env["PATH"] = env["PATH"], ":".join(safe) or os.defpath
    return env, inside


def _is_writable_inside(seen: View, folder: str) -> bool:
    """True for a folder into which the program could put one that is then run outside."""
    return any(access(seen, path) is Access.WRITE for path in (os.path.normpath(folder), os.path.realpath(folder)))
