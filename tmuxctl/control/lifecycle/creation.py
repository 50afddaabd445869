"""Starting a session: from what was asked, through the plugins, to one tmux command list."""

from __future__ import annotations

import os
import re
import shlex
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tmuxctl.control.secret_values import without_secrets
from tmuxctl.control.sessions import capacity, finding, kept_environment, records, summaries
from tmuxctl.errors import Conflict, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import Session, SessionSpec, State, check_name, check_tag, parse_seconds, parse_size, with_status
from tmuxctl.program_profile import Profile, to_json
from tmuxctl.terminal.launch import hooks, launch
from tmuxctl.terminal.tmux import layout, server
from tmuxctl.transport.base import check_environment, format_control_line
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.plugin import AppliedPlugin, Plugin
    from tmuxctl.results import Plan


SHELLS = ("bash", "zsh", "fish", "sh", "dash", "ksh", "mksh", "ash")


class SessionRequest(NamedTuple):
    """What the caller asked for, before defaults and plugins."""

    name: str | None = None
    command: tuple[str, ...] = ()
    cwd: str | None = None
    env: Mapping[str, str] = {}
    size: str | None = None
    history: int | None = None
    profile: str = "auto"
    clean_env: bool = False
    login: bool = False
    shell_marks: bool = True
    if_exists: str = "error"
    plugins: Sequence[str | tuple[str, Mapping[str, Any]]] = ()
    """As they are written on a command line, or each a name with its options."""
    tags: tuple[str, ...] = ()
    linger: bool = False
    """Keep the terminal 30 ms longer than the program, so that none of its output is lost."""
    resolved: Profile | None = None
    """The profile that was found for it, by `with_profile`."""
    base: Mapping[str, str] | None = None
    """The environment it gets, before the profile's and `env`, instead of this process's."""
    also: Mapping[str, Any] = {}
    """What else its spec keeps of how it came to be: the `candidates` it was chosen from, what it stands in for."""

    def kept(self) -> dict[str, Any]:
        """What a session's record keeps as it was asked for: every field that is not among `NOT_AS_ASKED`."""
        return {name: value for name, value in self._asdict().items() if name not in NOT_AS_ASKED}


NOT_AS_ASKED = frozenset(
    {"name", "command", "cwd", "env", "size", "history", "profile", "plugins", "resolved", "also"}
    | {"if_exists", "linger", "base"}
)
"""What is kept as it became instead, or goes for the first start only."""


def wanted_again(asked: Mapping[str, Any], spec: Mapping[str, Any]) -> SessionRequest:
    """What was asked for, from the record of a session, for its next life."""
    kept = {name: asked[name] for name in SessionRequest._fields if name in asked and name not in NOT_AS_ASKED}
    place = {"cwd": asked["cwd"], "size": spec["size"], "history": spec["history"]}
    return SessionRequest(spec["name"], tuple(asked["argv"]), **place, **kept)


class PreparedSession(NamedTuple):
    """Everything a session is made from."""

    spec: SessionSpec
    id: str
    incarnation: str
    folder: str
    asked: dict[str, Any]
    files: dict[str, bytes]
    applied: tuple[AppliedPlugin, ...]
    token: str


def new(machine: Machine, wanted: SessionRequest) -> Session:
    """Start the program and return its session; every step before tmux is undone if a later one fails."""
    wanted = with_profile(wanted)
    while True:
        try:
            return _new(machine, wanted)
        except Conflict as error:
            # a name of our own choosing that another process took meanwhile
            if error.reason != "exists" or wanted.name is not None:
                raise


def _new(machine: Machine, wanted: SessionRequest) -> Session:
    taken = _taken(machine)
    name, reused = _name(machine, wanted, taken)
    if reused:
        return summaries.describe(machine, reused)
    living = sum(not one.dead for name, one in taken.items() if not name.startswith("_"))
    capacity.check(machine, living)
    made = prepare(machine, wanted, name)
    try:
        put(machine, made)
        pane = start(machine, made)
    except BaseException as error:
        undo(machine, made, error)
        raise
    _bury_namesakes(machine, made, taken)
    return with_status(summaries.summary(pane, finding.cursor(pane, 0)), state=State.STARTING)


def _bury_namesakes(machine: Machine, made: PreparedSession, taken: Mapping[str, server.NameOwner]) -> None:
    """A lost session of this name gives way to the new one; what it printed stays readable by its id until `prune`. A
    launcher that was left by a start that was cut short goes, too."""
    from tmuxctl.control.lifecycle import ending

    folders = machine.transport.files(f"{machine.transport.home}/{layout.SESSIONS}")
    before = time.time() - machine.timing.session.unfinished_seconds
    for session_id in folders.keys() - {made.id} - {one.id for one in taken.values()}:
        ending.remove_launcher(machine, session_id, before=before)
        # what never started may be on its way to lose against us
        started = layout.was_started(machine.transport.files(records.folder(machine, session_id)))
        if started and records.spec(machine, session_id).get("spec", {}).get("name") == made.spec.name:
            # what its plugins made may be in use again by now: `prune` lets them look
            ending.write_end(machine, session_id, {})
            ending.move(machine, session_id)


def flagged(flags: Mapping[str, str | None], lifetime: str | None, idle_kill: float | None) -> list[str]:
    """The plugins that have options of their own, as `NAME=VALUE`, and the timeouts of `--lifetime` and the settings."""
    for name, value in flags.items():
        if value == "":
            hint = f"leave --{name} out if you do not want it"
            raise Usage(f"{name}: nothing was given", reason="bad_option", hint=hint)
    plugins = [f"{name}={value}" for name, value in flags.items() if value is not None]
    try:
        seconds = parse_seconds(lifetime)
    except Usage as error:
        raise Usage(f"lifetime: {error.message}", reason=error.reason, hint=error.hint) from None
    plugins += [f"timeout={seconds:g}"] if seconds is not None else []
    return plugins + ([f"timeout:idle={idle_kill:g}"] if idle_kill else [])


def plan(machine: Machine, wanted: SessionRequest) -> Plan:
    """What `new` would do; nothing is written and nothing starts."""
    from tmuxctl.results import Plan

    wanted = with_profile(wanted)
    name = _default_name(wanted) if wanted.name is None else check_name(wanted.name)
    made = prepare(machine, wanted, name, dry_run=True)
    undo_plugins(made)
    commands = _commands(made)
    return Plan(
        name=name,
        profile=wanted.resolved.name if wanted.resolved else None,
        argv=made.spec.argv,
        cwd=made.spec.cwd,
        size=str(made.spec.size),
        history=made.spec.history,
        env=tuple(sorted(made.spec.env)),
        plugins=tuple(one.name for one in made.applied),
        files=tuple(sorted((*made.files, layout.LAUNCHER))),
        tmux=tuple(format_control_line([command]) for command in commands),
    )


def with_profile(wanted: SessionRequest) -> SessionRequest:
    """What is wanted together with its profile, and with the profile's command where none was given."""
    if wanted.profile == "none":
        return wanted
    from tmuxctl.control.sessions import chosen_profile

    found = chosen_profile.chosen(wanted.profile, wanted.command or (_shell(),))
    named = found.command if found and wanted.profile != "auto" else ()
    return wanted._replace(resolved=found, command=wanted.command or named)


def prepare(machine: Machine, wanted: SessionRequest, name: str, *, dry_run: bool = False) -> PreparedSession:
    """Defaults, checks, plugins and shell marks: the session as it will be, nothing written yet; `dry_run` tells plugins
    that it will not be."""
    settings, profile = machine.settings, wanted.resolved or Profile("")
    plugins = _plugins(wanted.plugins)
    clean = wanted.clean_env or any(one.clean_env for one, _ in plugins)
    base = launch.select_environment(os.environ, clean=clean) if wanted.base is None else wanted.base
    env = {**base, **profile.env, **wanted.env}
    check_environment(wanted.env)
    wanted = wanted._replace(
        command=wanted.command or (_shell(),),
        cwd=os.path.join(os.getcwd(), os.path.expanduser(wanted.cwd or "")).rstrip("/") or "/",
        size=wanted.size or profile.size or str(settings.tmux_size),
        history=settings.tmux_history if wanted.history is None else wanted.history,
        tags=tuple(check_tag(tag) for tag in dict.fromkeys(wanted.tags)),
    )
    notes = {"linger": wanted.linger, "dry_run": dry_run, "given": sorted({*profile.env, *wanted.env})}
    spec = specified(machine, wanted._replace(name=name), env, notes)
    asked = {
        **wanted._replace(clean_env=clean).kept(),
        "argv": list(wanted.command),
        "cwd": spec.cwd,
        "env": sorted(wanted.env),
        "profile": profile.name or None,
        "plain": wanted.profile == "none",
        **wanted.also,
    }
    session_id = str(uuid.uuid4())
    chosen = [(one.name, options) for one, options in plugins]
    inherited = base.keys() - {*profile.env, *wanted.env}
    places = dict.fromkeys(profile.env.keys() - wanted.env.keys(), kept_environment.PROFILE)
    made = assemble(machine, spec, session_id, 1, asked, chosen, wanted.resolved, inherited=inherited, places=places)
    made.files[layout.PROFILE] = to_json(without_secrets(wanted.resolved))
    return made


def specified(
    machine: Machine, wanted: SessionRequest, env: Mapping[str, str], notes: Mapping[str, Any], *more: str
) -> SessionSpec:
    """What is wanted, all of it known by now, as the spec of a session: in its first life and in each that follows, with
    `more` words behind its command."""
    command = (*wanted.command, *more)
    spec = SessionSpec(
        argv=login(command) if wanted.login else command,
        cwd=str(wanted.cwd),
        env=env,
        size=parse_size(str(wanted.size)),
        name=str(wanted.name),
        machine=machine.transport.machine,
        history=int(wanted.history or 0),
        notes={name: note for name, note in notes.items() if note},
    )
    check(machine, spec)
    return spec


def assemble(
    machine: Machine,
    spec: SessionSpec,
    session_id: str,
    life: int,
    asked: Mapping[str, Any],
    plugins: Sequence[Any],
    profile: Profile | None,
    *,
    inherited: Collection[str],
    places: Mapping[str, str],
) -> PreparedSession:
    """A session from its spec, in its `life`-th life (1: a new one): the marks of its shell, the hooks of its program, its
    plugins, its files.

    `plugins` are names with their options; `inherited` and `places` as `kept_environment.keep`. Nothing is written, but
    plugins may have acted: `undo` takes that back.
    """
    folder = f"{machine.transport.home}/{layout.SESSIONS}/{session_id}"
    incarnation = f"{session_id[:8]}.{life}"
    token = ""
    extra: dict[str, bytes] = {}
    before = spec.env
    if asked["shell_marks"]:
        spec, token, extra = _marked(spec, f"{folder}/{layout.SHELL}")
    if profile and profile.hooks:
        from tmuxctl.control.observation import hook_launch

        spec, told = hook_launch.with_hooks(spec, profile, folder)
        extra |= told
    marked = spec.env
    spec = replace(spec, notes={**spec.notes, "folder": folder})
    given: list[tuple[Plugin, SessionSpec]] = []
    applied: tuple[AppliedPlugin, ...] = ()
    if plugins:
        from tmuxctl import plugin

        spec, applied = plugin.apply(spec, plugins, watch=lambda one, spec: given.append((one, spec)))
    about = {
        **asked,
        "plugins": list(dict.fromkeys([*asked.get("plugins", ()), *(one.name for one in applied)])),
        "applied": [one._asdict() for one in applied],
        "confined": any(one.confines for one, _ in given),
        "marks": token,
    }
    # wrappers change the environment for themselves, and will again when the session is restored
    made = next((bare.env for one, bare in given if one.traits.wraps), spec.env)
    variables = _kept(spec.notes, before, marked, made, inherited, places)
    files = launch.make_files(spec, about, folder, session_id, incarnation, machine.settings.journal_limit, variables)
    files |= {f"{layout.SHELL}/{name}": data for name, data in extra.items()}
    files[f"{layout.EVENTS}/{hooks.FILE}"] = hooks.SCRIPT.encode()
    return PreparedSession(spec, session_id, incarnation, folder, about, files, applied, token)


def _kept(
    notes: Mapping[str, Any],
    before: Mapping[str, str],
    marked: Mapping[str, str],
    made: Mapping[str, str],
    inherited: Collection[str],
    places: Mapping[str, str],
) -> dict[str, Any]:
    """What is kept of the variables that plugins made of the marked ones, without the marks. What a plugin set is given."""
    variables = {name: before.get(name) if value == marked.get(name) else value for name, value in made.items()}
    known = {name: value for name, value in variables.items() if value is not None}
    changed_ones = {name for name in inherited if name in known and known[name] != before.get(name)}
    taken_away = {name for name in inherited if name in before and name not in known}
    along = set(inherited) - changed_ones - taken_away - set(notes.get("given", ()))
    return kept_environment.keep(known, along, {**places, **notes.get("places", {})}, notes.get("secrets", {}))


def _plugins(given: Sequence[str | tuple[str, Mapping[str, Any]]]) -> list[tuple[Plugin, Any]]:
    """The plugins that were asked for as `NAME`, `NAME=ARG` or `NAME:option=value`, read, each with its options."""
    if not given:
        return []
    from tmuxctl import plugin

    pairs = [plugin.parse_with(one) if isinstance(one, str) else one for one in given]
    return [(plugin.load(name), options) for name, options in pairs]


def run_seconds(wanted: SessionRequest) -> float | None:
    """How long `run` waits for the program where the caller says nothing: as long as the most careful of its plugins does."""
    limits = [plugin.run_seconds for plugin, _ in _plugins(wanted.plugins)]
    return min((seconds for seconds in limits if seconds is not None), default=None)


def _refuse_adopted(machine: Machine, name: str) -> None:
    """Conflict if what is adopted is called so."""
    if name in _adopted(machine):
        raise Conflict(f"{name} is adopted", reason="exists", hint=f"give it back first: tmuxctl release {name}")


def _adopted(machine: Machine) -> Sequence[str]:
    """The names of what is adopted."""
    if not machine.transport.files(f"{machine.transport.home}/{layout.ADOPTED}"):
        return ()
    from tmuxctl.control.lifecycle import adopting

    return adopting.names(machine)


def _taken(machine: Machine) -> dict[str, server.NameOwner]:
    try:
        return server.list_names(machine.transport)
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        return {}


def _name(
    machine: Machine, wanted: SessionRequest, taken: Mapping[str, server.NameOwner]
) -> tuple[str, server.Pane | None]:
    """The name to take, or the session to reuse instead."""
    if wanted.name is None:
        first = _default_name(wanted)
        names = (first, *(f"{first}-{number}" for number in range(2, 10_000)))
        adopted = _adopted(machine)
        return next(name for name in names if name not in taken and name not in adopted), None
    name = check_name(wanted.name)
    if name not in taken:
        _refuse_adopted(machine, name)
        return name, None
    there = finding.find(machine, name, whole=wanted.if_exists != "replace")
    if wanted.if_exists == "replace" or (wanted.if_exists == "reuse" and there.dead):
        from tmuxctl.control.lifecycle import ending

        ending.end(machine, [there])
        return name, None
    if wanted.if_exists == "reuse":
        return name, there
    raise exists(name, there.dead, wanted.command)


def exists(name: str, dead: bool, command: Sequence[str]) -> Conflict:
    """The error for a name that is taken; `command` is what was to run there, none for the user's shell."""
    use = f"its output: tmuxctl log {name}" if dead else f"use it: tmuxctl attach {name}"
    replace = f"tmuxctl new {name} --if-exists replace" + (f" -- {shlex.join(command)}" if command else "")
    state = " (its program has ended)" if dead else ""
    return Conflict(f"a session named {name} exists{state}", reason="exists", hint=f"{use}; or replace it: {replace}")


def _default_name(wanted: SessionRequest) -> str:
    program = os.path.basename(wanted.command[0] if wanted.command else _shell())
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", program).strip("-_")[:50]
    return plain or "session"


def _shell() -> str:
    return os.environ.get("SHELL") or "/bin/sh"


def login(command: tuple[str, ...]) -> tuple[str, ...]:
    """The words that start a shell as a login shell; Usage for anything else."""
    if os.path.basename(command[0]) not in SHELLS:
        raise Usage(
            f"--login is for shells, not for {ascii(command[0])}",
            reason="bad_option",
            hint="tmuxctl new NAME --login -- bash",
        )
    return (command[0], "-l", *command[1:])


def _marked(spec: SessionSpec, folder: str) -> tuple[SessionSpec, str, dict[str, bytes]]:
    from tmuxctl.terminal.launch import shells

    token = os.urandom(8).hex()
    found = shells.integrate_shell(spec.argv, folder, spec.env, token)
    if found is None:
        return spec, "", {}
    files = {name: text.encode() for name, text in found.files.items()}
    return replace(spec, argv=found.argv, env={**spec.env, **found.env}), token, files


def check(machine: Machine, spec: SessionSpec) -> None:
    """Usage or Failed if this cannot be started here: no such program or folder, words that no program can be given."""
    if any("\0" in word or not isinstance(word, str) for word in spec.argv) or not spec.argv[0]:
        raise Usage(
            "a command's words are text without NUL, the first not empty",
            reason="bad_command",
            hint="tmuxctl new NAME -- CMD",
        )
    if spec.argv[0].startswith("-"):
        raise Usage(
            f"{ascii(spec.argv[0])} is not a program",
            reason="bad_command",
            hint="options come before --, the command after it",
        )
    if "\0" in spec.cwd or not machine.transport.which(spec.cwd + "/.", "", "/"):
        raise Usage(f"there is no folder {ascii(spec.cwd)} to start in", reason="bad_cwd", hint="give --cwd DIR")
    if not 0 <= spec.history <= 10_000_000:
        raise Usage(
            f"history {spec.history} is not between 0 and 10,000,000 lines", reason="bad_number", hint="--history 20000"
        )
    if not machine.transport.which(spec.argv[0], spec.env.get("PATH", os.defpath), spec.cwd):
        raise _not_startable(machine, spec)
    if "/" in spec.argv[0] and machine.transport.which(spec.argv[0] + "/.", "", spec.cwd):
        raise _not_executable(spec, "is a folder, not a program", "name the program in it")


def _not_startable(machine: Machine, spec: SessionSpec) -> Failed:
    """The error for a command that is not there, or there but no program."""
    if "/" in spec.argv[0]:
        status, _ = machine.transport.shell('cd "$1" && test -e "$2"', spec.cwd, spec.argv[0])
        if status == 0:
            return _not_executable(
                spec, "is not executable", f"if it is a program: chmod +x {shlex.quote(spec.argv[0])}"
            )
    return Failed(
        f"{ascii(spec.argv[0])} was not found",
        reason="command_not_found",
        hint="is it installed and in PATH?",
        argv=list(spec.argv),
    )


def _not_executable(spec: SessionSpec, what: str, hint: str) -> Failed:
    return Failed(f"{ascii(spec.argv[0])} {what}", reason="not_executable", hint=hint, argv=list(spec.argv))


def put(machine: Machine, made: PreparedSession) -> None:
    """Write a session's files. Its spec is among them before tmux knows of it: nothing runs that a restore would miss."""
    transport = machine.transport
    try:
        parse_json(made.files[layout.SPEC])
    except ValueError as error:
        hint = "give it less: a smaller environment, fewer words"
        raise Failed(f"what is to be kept of {made.spec.name}: {error}", reason="too_large", hint=hint) from None
    transport.make_folder(f"{transport.home}/{layout.SESSIONS}")
    for folder in (made.folder, *(f"{made.folder}/{part}" for part in (layout.JOURNAL, layout.EVENTS, layout.SHELL))):
        transport.make_folder(folder)
    for name, data in made.files.items():
        transport.put(f"{made.folder}/{name}", data)
    script = launch.launcher_script(
        made.spec, made.folder, made.id, socket=transport.socket, descriptors=_descriptors()
    )
    transport.put(f"{made.folder}/{layout.LAUNCHER}", script.encode(errors="surrogateescape"))


def start(machine: Machine, made: PreparedSession) -> server.Pane:
    """Start what was put there, while its spec goes to the disk: that may take as long as tmux for the whole session."""
    with _meanwhile(lambda: _keep_spec(machine, made)):
        pane = _create(machine, made)
        # that it was started at all: if the server dies before the launcher comes to run, the session was there all the same
        machine.transport.put(f"{made.folder}/{layout.SERVER}", _record(machine, pane))
        return pane


def _record(machine: Machine, pane: server.Pane) -> bytes:
    """What is written down of the server that made a session; made good if who started it died before it could say so."""
    path = f"{machine.transport.home}/{layout.SERVER}"
    record = records.record(machine, path)
    if record.startswith(b"%d " % pane.server):
        return record
    machine.transport.record_server(pane.server)
    return records.record(machine, path)


def _keep_spec(machine: Machine, made: PreparedSession) -> None:
    machine.transport.put(f"{made.folder}/{layout.SPEC}", made.files[layout.SPEC], durable=True)


@contextmanager
def _meanwhile(work: Callable[[], None]) -> Iterator[None]:
    """Do the work beside what is done inside, and wait for it; its error is raised at the end."""
    errors: list[BaseException] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=attempt)
    try:
        thread.start()
    except RuntimeError:
        # no more threads may be started here: then before it
        work()
        yield
        return
    try:
        yield
    finally:
        thread.join()
    if errors:
        raise errors[0]


def _descriptors() -> int | None:
    import resource

    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return soft if soft != resource.RLIM_INFINITY else None


def _commands(made: PreparedSession) -> list[Any]:
    about = launch.format_facts(made.spec, made.asked)
    return launch.creation_commands(
        made.spec,
        made.folder,
        made.id,
        incarnation=made.incarnation,
        created=time.time(),
        about=about,
        tags=made.asked["tags"],
    )


def _create(machine: Machine, made: PreparedSession) -> server.Pane:
    try:
        reply = machine.transport.create(_commands(made))
    except Conflict as error:
        if error.reason == "exists":
            raise exists(made.spec.name, False, made.spec.argv) from None
        raise
    return server.require_pane(server.parse_pane(reply.decode(errors="replace").rstrip("\n")), made.spec.name)


def undo(machine: Machine, made: PreparedSession, error: BaseException | None) -> None:
    """Take back a session that was not made: plugins, folder, and a half-made tmux session, if it is this one."""
    if error is not None:
        undo_start(machine, made, error)
    with suppress(NotFound):
        machine.transport.remove(made.folder)
    undo_plugins(made)


def undo_start(machine: Machine, made: PreparedSession, error: BaseException) -> None:
    """Take back what tmux may have made of a session that was not made; another one of its name is left alone."""
    if not isinstance(error, Conflict):
        with suppress(TmuxctlError):
            pane = server.read_pane(machine.transport, made.spec.name)
            if pane.id == made.id:
                machine.transport.run([("kill-session", "-t", "=" + made.spec.name)])
    # it holds the environment, secrets too
    machine.transport.remove(f"{made.folder}/{layout.LAUNCHER}")


def undo_plugins(made: PreparedSession) -> None:
    """Let the plugins of a session that was not started take back what they made for it."""
    if made.applied:
        from tmuxctl import plugin

        plugin.cleanup(made.spec, made.applied, plugin.SessionEnd(None, kept=False))
