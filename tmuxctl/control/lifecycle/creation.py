"""Starting a session: from the request, through the plugins, to one tmux command list."""

from __future__ import annotations

import os
import re
import shlex
import threading
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from tmuxctl.control.secret_values import without_secrets
from tmuxctl.control.sessions import capacity, finding, kept_environment, records, summaries
from tmuxctl.errors import Conflict, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import (
    Session,
    SessionSpec,
    State,
    check_name,
    check_owner,
    check_tag,
    parse_seconds,
    parse_size,
    with_status,
)
from tmuxctl.program_profile import Profile, to_json
from tmuxctl.terminal.launch import hooks, launch
from tmuxctl.terminal.tmux import layout, server
from tmuxctl.terminal.tmux.journal import Journal
from tmuxctl.terminal.tmux.timeline import Moment, Timeline
from tmuxctl.transport.base import check_environment, format_control_line
from tmuxctl.untrusted import parse_json
from tmuxctl.value import changed
from tmuxctl.vocabulary import MomentKind

if TYPE_CHECKING:
    from tmuxctl.control.foreground import KnownProfiles
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
    owner: str | None = None
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
"""Fields that a record keeps as they became, or that count for the first start only."""


def request_again(asked: Mapping[str, Any], spec: Mapping[str, Any]) -> SessionRequest:
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


def new(machine: Machine, request: SessionRequest) -> Session:
    """Start the program and return its session; every step before tmux is undone if a later one fails."""
    request = with_profile(machine, request, machine.known)
    while True:
        try:
            return _create_session(machine, request)
        except Conflict as error:
            # another process took the name that was chosen here
            if error.reason != "exists" or request.name is not None:
                raise


def _create_session(machine: Machine, request: SessionRequest) -> Session:
    taken = _taken_names(machine)
    name, reused = _choose_name(machine, request, taken)
    if reused:
        return summaries.describe_session(machine, reused)
    living = sum(not one.dead for name, one in taken.items() if not name.startswith("_"))
    capacity.check_capacity(machine, living)
    made = prepare_session(machine, request, name)
    try:
        write_files(machine, made)
        pane = start_session(machine, made)
    except BaseException as error:
        undo(machine, made, error)
        raise
    _archive_namesakes(machine, made, taken)
    return with_status(summaries.summarize(pane, finding.cursor_at(pane, 0)), state=State.STARTING)


def _archive_namesakes(machine: Machine, made: PreparedSession, taken: Mapping[str, server.NameOwner]) -> None:
    """Archive lost sessions of this name: what they printed stays readable by their id until `prune`. Launchers that starts
    left behind when they were cut short are removed, too."""
    from tmuxctl.control.lifecycle import ending

    folders = machine.transport.files(f"{machine.transport.home}/{layout.SESSIONS}")
    before = machine.clock.wall() - machine.timing.session.unfinished_seconds
    for session_id in folders.keys() - {made.id} - {one.id for one in taken.values()}:
        ending.remove_launcher(machine, session_id, before=before)
        # a folder without a started session may be that of another `new` under way, which will find the name taken
        started = layout.was_started(machine.transport.files(records.session_folder(machine, session_id)))
        if started and records.read_spec(machine, session_id).get("spec", {}).get("name") == made.spec.name:
            # its plugins do not clean up here: what they made may be in use again; `prune` lets them decide
            ending.write_ended_record(machine, session_id, {})
            ending.move_to_ended(machine, session_id)


def plugin_words(flags: Mapping[str, str | None], lifetime: str | None, idle_kill: float | None) -> list[str]:
    """The words `NAME=VALUE` of plugins that have flags of their own, and of the timeouts of `--lifetime` and the settings."""
    for name, value in flags.items():
        if value == "":
            hint = f"leave --{name} out if you do not want it"
            raise Usage(f"{name}: no value was given", reason="bad_option", hint=hint)
    plugins = [f"{name}={value}" for name, value in flags.items() if value is not None]
    try:
        seconds = parse_seconds(lifetime)
    except Usage as error:
        raise Usage(f"lifetime: {error.message}", reason=error.reason, hint=error.hint) from None
    plugins += [f"timeout={seconds:g}"] if seconds is not None else []
    return plugins + ([f"timeout:idle={idle_kill:g}"] if idle_kill else [])


def plan(machine: Machine, request: SessionRequest) -> Plan:
    """What `new` would do; nothing is written and nothing starts."""
    from tmuxctl.results import Plan

    request = with_profile(machine, request)
    name = _default_name(machine, request) if request.name is None else check_name(request.name)
    made = prepare_session(machine, request, name, dry_run=True)
    undo_plugins(machine, made)
    commands = _tmux_commands(machine, made)
    return Plan(
        name=name,
        profile=request.resolved.name if request.resolved else None,
        argv=made.spec.argv,
        cwd=made.spec.cwd,
        size=str(made.spec.size),
        history=made.spec.history,
        env=tuple(sorted(made.spec.env)),
        plugins=tuple(one.name for one in made.applied),
        files=tuple(sorted((*made.files, layout.LAUNCHER))),
        tmux=tuple(format_control_line([command]) for command in commands),
    )


def with_profile(machine: Machine, request: SessionRequest, known: KnownProfiles | None = None) -> SessionRequest:
    """What is wanted together with its profile, and with the profile's command where none was given; `known` as
    `choose_profile`."""
    if request.profile == "none":
        return request
    from tmuxctl.control.sessions import chosen_profile

    found = chosen_profile.choose_profile(request.profile, request.command or (_user_shell(machine),), known)
    named = found.command if found and request.profile != "auto" else ()
    return request._replace(resolved=found, command=request.command or named)


def prepare_session(machine: Machine, request: SessionRequest, name: str, *, dry_run: bool = False) -> PreparedSession:
    """Defaults, checks, plugins and shell marks: the session as it will be, nothing written yet; `dry_run` tells plugins
    that it will not be."""
    settings, profile = machine.settings, request.resolved or Profile("")
    plugins = _load_plugins(request.plugins)
    clean = request.clean_env or any(one.clean_env for one, _ in plugins)
    place = machine.transport.starting_place()
    base = launch.select_environment(place.environment, clean=clean) if request.base is None else request.base
    env = {**base, **profile.env, **request.env}
    check_environment(request.env)
    request = request._replace(
        command=request.command or (place.user_shell,),
        cwd=place.expand(request.cwd or ""),
        size=request.size or profile.size or str(settings.tmux_size),
        history=settings.tmux_history if request.history is None else request.history,
        tags=tuple(check_tag(tag) for tag in dict.fromkeys(request.tags)),
        owner=request.owner if request.owner is None else check_owner(request.owner),
    )
    notes = {"linger": request.linger, "dry_run": dry_run, "given": sorted({*profile.env, *request.env})}
    spec = build_spec(machine, request._replace(name=name), env, notes)
    asked = {
        **request._replace(clean_env=clean).kept(),
        "argv": list(request.command),
        "cwd": spec.cwd,
        "env": sorted(request.env),
        "profile": profile.name or None,
        "plain": request.profile == "none",
        **request.also,
    }
    session_id = str(uuid.uuid4())
    chosen = [(one.name, options) for one, options in plugins]
    inherited = base.keys() - {*profile.env, *request.env}
    places = dict.fromkeys(profile.env.keys() - request.env.keys(), kept_environment.PROFILE)
    made = assemble(machine, spec, session_id, 1, asked, chosen, request.resolved, inherited=inherited, places=places)
    made.files[layout.PROFILE] = to_json(without_secrets(request.resolved))
    return made


def build_spec(
    machine: Machine, request: SessionRequest, env: Mapping[str, str], notes: Mapping[str, Any], *more: str
) -> SessionSpec:
    """The spec of a session from a complete request, in its first life and in each that follows; `more` words follow its
    command."""
    command = (*request.command, *more)
    spec = SessionSpec(
        argv=as_login_shell(command) if request.login else command,
        cwd=str(request.cwd),
        env=env,
        size=parse_size(str(request.size)),
        name=str(request.name),
        machine=machine.transport.machine,
        history=int(request.history or 0),
        notes={name: note for name, note in notes.items() if note},
    )
    check_startable(machine, spec)
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
        spec, token, extra = _add_shell_marks(spec, f"{folder}/{layout.SHELL}")
    if profile and profile.hooks:
        from tmuxctl.control.observation import hook_launch

        spec, told = hook_launch.with_hooks(spec, profile, folder)
        extra |= told
    marked = spec.env
    spec = changed(spec, notes={**spec.notes, "folder": folder})
    given: list[tuple[Plugin, SessionSpec]] = []
    applied: tuple[AppliedPlugin, ...] = ()
    if plugins:
        from tmuxctl import plugin

        spec, applied = plugin.apply(
            spec, plugins, machine=machine.for_plugins, watch=lambda one, spec: given.append((one, spec))
        )
    about = {
        **asked,
        "plugins": list(dict.fromkeys([*asked.get("plugins", ()), *(one.name for one in applied)])),
        "applied": [one._asdict() for one in applied],
        "confined": any(one.confines for one, _ in given),
        "marks": token,
    }
    # wrappers change the environment for themselves, and will again when the session is restored
    made = next((bare.env for one, bare in given if one.traits.wraps), spec.env)
    variables = _keep_environment(spec.notes, before, marked, made, inherited, places)
    files = launch.make_files(spec, about, session_id, incarnation, machine.settings.journal_limit, variables)
    files |= {f"{layout.SHELL}/{name}": data for name, data in extra.items()}
    files[f"{layout.EVENTS}/{hooks.FILE}"] = hooks.SCRIPT.encode()
    return PreparedSession(spec, session_id, incarnation, folder, about, files, applied, token)


def _keep_environment(
    notes: Mapping[str, Any],
    before: Mapping[str, str],
    marked: Mapping[str, str],
    made: Mapping[str, str],
    inherited: Collection[str],
    places: Mapping[str, str],
) -> dict[str, Any]:
    """What the record keeps of the variables: those that plugins `made` of the `marked` ones, without the marks. A variable
    that a plugin set counts as given."""
    variables = {name: before.get(name) if value == marked.get(name) else value for name, value in made.items()}
    known = {name: value for name, value in variables.items() if value is not None}
    altered = {name for name in inherited if name in known and known[name] != before.get(name)}
    taken_away = {name for name in inherited if name in before and name not in known}
    inherited_still = set(inherited) - altered - taken_away - set(notes.get("given", ()))
    places = {**places, **notes.get("places", {})}
    return kept_environment.keep_variables(known, inherited_still, places, notes.get("secrets", {}))


def _load_plugins(written: Sequence[str | tuple[str, Mapping[str, Any]]]) -> list[tuple[Plugin, Any]]:
    """The plugins that were asked for as `NAME`, `NAME=ARG` or `NAME:option=value`, read, each with its options."""
    if not written:
        return []
    from tmuxctl import plugin

    pairs = [plugin.parse_with(word) if isinstance(word, str) else word for word in written]
    return [(plugin.load(name), options) for name, options in pairs]


def run_seconds(request: SessionRequest) -> float | None:
    """How many seconds `run` waits if the caller sets no timeout: the least that one of its plugins names; None for ever."""
    limits = [plugin.run_seconds for plugin, _ in _load_plugins(request.plugins)]
    return min((seconds for seconds in limits if seconds is not None), default=None)


def _adopted_names(machine: Machine) -> Sequence[str]:
    """The names of what is adopted."""
    if not machine.transport.files(f"{machine.transport.home}/{layout.ADOPTED}"):
        return ()
    from tmuxctl.control.lifecycle import adopting

    return adopting.list_names(machine)


def _taken_names(machine: Machine) -> dict[str, server.NameOwner]:
    try:
        return server.list_names(machine.io)
    except Unreachable as error:
        if error.reason != "no_server":
            raise
        return {}


def _choose_name(
    machine: Machine, request: SessionRequest, taken: Mapping[str, server.NameOwner]
) -> tuple[str, server.Pane | None]:
    """The name to take, or the session to reuse instead."""
    if request.name is None:
        first = _default_name(machine, request)
        names = (first, *(f"{first}-{number}" for number in range(2, 10_000)))
        adopted = _adopted_names(machine)
        return next(name for name in names if name not in taken and name not in adopted), None
    name = check_name(request.name)
    if name not in taken:
        if name in _adopted_names(machine):
            raise Conflict(f"{name} is adopted", reason="exists", hint=f"stop driving it first: tmuxctl release {name}")
        return name, None
    existing = finding.find_session(machine, name, whole=request.if_exists != "replace")
    if request.if_exists == "replace" or (request.if_exists == "reuse" and existing.dead):
        from tmuxctl.control.lifecycle import ending

        ending.end_sessions(machine, [existing])
        return name, None
    if request.if_exists == "reuse":
        return name, existing
    raise exists_error(name, existing.dead, request.command)


def exists_error(name: str, dead: bool, command: Sequence[str]) -> Conflict:
    """The error for a name that is taken; `command` is what was to run there, none for the user's shell."""
    use = f"its output: tmuxctl log {name}" if dead else f"use it: tmuxctl attach {name}"
    replace = f"tmuxctl new {name} --if-exists replace" + (f" -- {shlex.join(command)}" if command else "")
    state = " (its program has ended)" if dead else ""
    return Conflict(f"a session named {name} exists{state}", reason="exists", hint=f"{use}; or replace it: {replace}")


def _default_name(machine: Machine, request: SessionRequest) -> str:
    program = os.path.basename(request.command[0] if request.command else _user_shell(machine))
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", program).strip("-_")[:50]
    return plain or "session"


def _user_shell(machine: Machine) -> str:
    return machine.transport.starting_place().user_shell


def as_login_shell(command: tuple[str, ...]) -> tuple[str, ...]:
    """The words that start a shell as a login shell; Usage for anything else."""
    if os.path.basename(command[0]) not in SHELLS:
        raise Usage(
            f"--login is for shells, not for {ascii(command[0])}",
            reason="bad_option",
            hint="tmuxctl new NAME --login -- bash",
        )
    return (command[0], "-l", *command[1:])


def _add_shell_marks(spec: SessionSpec, folder: str) -> tuple[SessionSpec, str, dict[str, bytes]]:
    from tmuxctl.terminal.launch import shells

    token = os.urandom(8).hex()
    found = shells.integrate_shell(spec.argv, folder, spec.env, token)
    if found is None:
        return spec, "", {}
    files = {name: text.encode() for name, text in found.files.items()}
    return changed(spec, argv=found.argv, env={**spec.env, **found.env}), token, files


def check_startable(machine: Machine, spec: SessionSpec) -> None:
    """Usage or Failed if the spec cannot be started here: no such program or folder, or words that no program can take."""
    if any("\0" in word or not isinstance(word, str) for word in spec.argv) or not spec.argv[0]:
        raise Usage(
            "the words of a command have to be text without NUL, the first one not empty",
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
            f"history {spec.history} is not between 0 and 10,000,000 lines", reason="bad_number", hint="--history 2000"
        )
    if not machine.transport.which(spec.argv[0], spec.env.get("PATH", os.defpath), spec.cwd):
        raise _not_startable_error(machine, spec)
    if "/" in spec.argv[0] and machine.transport.which(spec.argv[0] + "/.", "", spec.cwd):
        raise _not_executable_error(spec, "is a folder, not a program", "name the program in it")


def _not_startable_error(machine: Machine, spec: SessionSpec) -> Failed:
    """The error for a command that is not there, or there but no program."""
    if "/" in spec.argv[0]:
        status, _ = machine.transport.shell('cd "$1" && test -e "$2"', spec.cwd, spec.argv[0])
        if status == 0:
            return _not_executable_error(
                spec, "is not executable", f"if it is a program: chmod +x {shlex.quote(spec.argv[0])}"
            )
    return Failed(
        f"{ascii(spec.argv[0])} was not found",
        reason="command_not_found",
        hint="is it installed and in PATH?",
        argv=list(spec.argv),
    )


def _not_executable_error(spec: SessionSpec, what: str, hint: str) -> Failed:
    return Failed(f"{ascii(spec.argv[0])} {what}", reason="not_executable", hint=hint, argv=list(spec.argv))


def write_files(machine: Machine, made: PreparedSession) -> None:
    """Write a session's files. They hold its spec before tmux knows the session: nothing runs that a restore would miss."""
    transport = machine.transport
    try:
        parse_json(made.files[layout.SPEC])
    except ValueError as error:
        hint = "make it smaller: fewer variables, shorter arguments"
        raise Failed(
            f"the record of {made.spec.name} cannot be stored: {error}", reason="too_large", hint=hint
        ) from None
    transport.make_folder(f"{transport.home}/{layout.SESSIONS}")
    for folder in (made.folder, *(f"{made.folder}/{part}" for part in (layout.JOURNAL, layout.EVENTS, layout.SHELL))):
        transport.make_folder(folder)
    for name, data in made.files.items():
        transport.put(f"{made.folder}/{name}", data)
    # a session that is restored goes on with its journal
    offset, size = Journal(transport, made.folder).end(), made.spec.size
    Timeline(transport, made.folder).add(
        Moment(MomentKind.SIZE, offset, machine.clock.wall(), cols=size.cols, rows=size.rows)
    )
    script = launch.launcher_script(
        made.spec, made.folder, made.id, socket=transport.socket, descriptors=transport.starting_place().descriptors
    )
    transport.put(f"{made.folder}/{layout.LAUNCHER}", script.encode(errors="surrogateescape"))


def start_session(machine: Machine, made: PreparedSession) -> server.Pane:
    """Start the session, while its spec is synced to the disk: that may take as long as tmux takes for the session."""
    path, spec = f"{made.folder}/{layout.SPEC}", made.files[layout.SPEC]
    with _run_beside(lambda: machine.transport.put(path, spec, durable=True)):
        pane = _create_in_tmux(machine, made)
        # this file tells that the session was started, even if the server dies before the launcher runs
        machine.transport.put(f"{made.folder}/{layout.SERVER}", _record_server(machine, pane))
        return pane


def _record_server(machine: Machine, pane: server.Pane) -> bytes:
    """The record of the server that made a session; written here if the process that started the server died before that."""
    path = f"{machine.transport.home}/{layout.SERVER}"
    record = records.read_short_file(machine, path)
    if record.startswith(b"%d " % pane.server):
        return record
    machine.transport.record_server(pane.server)
    return records.read_short_file(machine, path)


@contextmanager
def _run_beside(work: Callable[[], None]) -> Iterator[None]:
    """Do the work in a thread during the `with` block, and wait for it at the end; its error is raised there."""
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
        # no thread can be started: do the work before the block
        work()
        yield
        return
    try:
        yield
    finally:
        thread.join()
    if errors:
        raise errors[0]


def _tmux_commands(machine: Machine, made: PreparedSession) -> list[Any]:
    about = launch.format_facts(made.spec, made.asked)
    return launch.creation_commands(
        made.spec,
        made.folder,
        made.id,
        incarnation=made.incarnation,
        created=machine.clock.wall(),
        about=about,
        tags=made.asked["tags"],
    )


def _create_in_tmux(machine: Machine, made: PreparedSession) -> server.Pane:
    try:
        reply = machine.transport.create(_tmux_commands(machine, made))
    except Conflict as error:
        if error.reason == "exists":
            raise exists_error(made.spec.name, False, made.spec.argv) from None
        raise
    return server.require_pane(
        server.parse_pane(reply.decode(errors="replace").rstrip("\n").split("\t")), made.spec.name
    )


def undo(machine: Machine, made: PreparedSession, error: BaseException | None) -> None:
    """Take back a session that was not made: plugins, folder, and a half-made tmux session, if it is this one."""
    if error is not None:
        undo_start(machine, made, error)
    with suppress(NotFound):
        machine.transport.remove(made.folder)
    undo_plugins(machine, made)


def undo_start(machine: Machine, made: PreparedSession, error: BaseException) -> None:
    """Take back what tmux may have made of a session that was not made; another one of its name is left alone."""
    if not isinstance(error, Conflict):
        with suppress(TmuxctlError):
            pane = server.read_pane(machine.io, made.spec.name)
            if pane.id == made.id:
                machine.transport.run([("kill-session", "-t", "=" + made.spec.name)])
    # the launcher holds the environment, secrets too
    machine.transport.remove(f"{made.folder}/{layout.LAUNCHER}")


def undo_plugins(machine: Machine, made: PreparedSession) -> None:
    """Let the plugins of a session that was not started take back what they made for it."""
    if made.applied:
        from tmuxctl import plugin

        ended = plugin.SessionEnd(None, kept=False)
        plugin.cleanup(made.spec, made.applied, ended, machine=machine.for_plugins)
