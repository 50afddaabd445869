"""AgentPTY's API at the root of the server: each message that is posted is a turn of a session, and its answer the reply.

What the API needs to know of a session is kept with the session, for the next server: that a turn of it timed out is a tag,
and the hash of the key with which its hooks report is its owner. Only the newest turn of each session is told from memory.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import secrets
import shlex
import signal
import uuid
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse

from tmuxctl.control.observation import hook_events
from tmuxctl.control.sessions import finding, records
from tmuxctl.errors import Conflict, Denied, Exited, Failed, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.model import Session, State, check_name, parse_seconds
from tmuxctl.operations import parse_input, to_json
from tmuxctl.surfaces.server.logs import format_time
from tmuxctl.surfaces.server.routes import error_response, make_request, parse_body
from tmuxctl.terminal.launch import hooks
from tmuxctl.terminal.tmux import layout
from tmuxctl.terminal.tmux.journal import Cursor, format_cursor, parse_cursor
from tmuxctl.untrusted import parse_json
from tmuxctl.value import Value, changed
from tmuxctl.vocabulary import InputKind

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.results import Answer, Output
    from tmuxctl.surfaces.server import calls
    from tmuxctl.surfaces.server.app import Served

NEEDS_RECOVERY = "needs-recovery"
"""The tag of a session of which a turn timed out: it takes no other until it is deleted and made anew."""

OWNER = "agentpty:"
"""What stands before the hash of a session's key in its owner."""

SESSION_NAMES = ("TMUXCTL_SESSION", "tmuxctl_session", "AGENTPTY_SESSION_ID", "agentpty_session_id")
"""Under these names what a hook posts says which session it is about; the first that is there counts."""

EVENTS = ("UserPromptSubmit", "Stop", "StopFailure")
"""Claude Code's names of the events. What is posted says its own: a script may post all of them to one address."""

PASSED = re.compile(r"(?:ANTHROPIC|CLAUDE)_\w+|(?i:https?_proxy|no_proxy)|NODE_EXTRA_CA_CERTS")
"""Variables of the server's that a program gets too, beside the short list that every one gets: Claude Code's own."""

TURNS = 1000
"""Sessions of which the newest turn is remembered."""

TAIL_BYTES = 16 << 10
EVENTS_TOLD, EVENT_BYTES = 20, 16 << 10
"""How much `/debug` tells: of the output, how many events, and of each how much."""


class AgentPtySettings(Value):
    """AgentPTY's variables, as far as they mean something here. `hook_url` is where programs reach the server, empty where that
    is the address at which a session was asked for; `trusts`: a folder is trusted without a question."""

    command: tuple[str, ...] = ("claude",)
    ask_timeout: float | None = None
    trusts: bool = False
    hook_url: str = ""
    hook_event: str = ""

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> AgentPtySettings:
        """The settings in these variables; Usage `bad_config` for one that cannot be used."""
        words, seconds = environment.get("AGENTPTY_COMMAND", ""), environment.get("AGENTPTY_ASK_TIMEOUT", "")
        try:
            command = tuple(shlex.split(words)) or ("claude",)
            timeout = parse_seconds(seconds) if seconds else None
        except (ValueError, Usage) as error:
            hint = "AGENTPTY_COMMAND='claude --model sonnet' AGENTPTY_ASK_TIMEOUT=120"
            raise Usage(f"AGENTPTY_COMMAND or AGENTPTY_ASK_TIMEOUT: {error}", reason="bad_config", hint=hint) from None
        trusts = environment.get("AGENTPTY_AUTO_TRUST_WORKSPACE", "").lower() in ("1", "true", "yes", "on")
        url, event = environment.get("AGENTPTY_HOOK_URL", ""), environment.get("AGENTPTY_HOOK_EVENT", "")
        return cls(command, timeout, trusts, url, event)


class LastTurn(Value):
    """How the newest turn of a session ended: the event of its reply, or `failed` if there was none, with the error."""

    status: str
    error: str | None
    time: str


def add_routes(app: FastAPI, served: Served) -> None:
    """Add AgentPTY's routes to a server."""
    pty = AgentPty(served, AgentPtySettings.read(os.environ))
    text, command = {"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}
    turn = {"message": text, "timeout": {"type": ["number", "string"]}}
    made = {"session_id": text, "command": command}
    routes: tuple[tuple[str, str, Callable[..., Any], str, Mapping[str, Any]], ...] = (
        ("POST", "/ask", pty.ask, "Ask a session, which is started if there is none", made | turn),
        ("POST", "/sessions", pty.start, "Start a session, unless there is one of this id", made),
        ("GET", "/sessions", pty.list_sessions, "List the sessions", {}),
        ("GET", "/sessions/{session_id}", pty.show, "Show a session", {}),
        (
            "GET",
            "/sessions/{session_id}/debug",
            pty.debug,
            "What a session printed last, and how its last turn ended",
            {},
        ),
        ("POST", "/sessions/{session_id}/ask", pty.ask_existing, "Ask a session", turn),
        ("DELETE", "/sessions/{session_id}", pty.delete, "End a session", {}),
        ("POST", "/hooks/claude-prompt-submit", pty.note_event("UserPromptSubmit"), "A turn began", {}),
        ("POST", "/hooks/claude-stop", pty.note_event("Stop"), "A turn ended", {}),
        ("POST", "/hooks/claude-stop-failure", pty.note_event("StopFailure"), "A turn failed", {}),
    )
    for method, path, endpoint, summary, fields in routes:
        name = f"agentpty {method} {path}"
        app.add_api_route(
            path,
            endpoint,
            methods=[method],
            name=name,
            operation_id=re.sub(r"\W+", "_", name).strip("_").lower(),
            tags=["AgentPTY"],
            summary=summary,
            response_class=JSONResponse,
            openapi_extra=_describe(fields),
        )


def _describe(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the OpenAPI document on a body with these fields."""
    described: dict[str, Any] = {"responses": {str(status): error_response() for status in (400, 403, 404, 409, 422)}}
    if fields:
        required = {"required": ["message"]} if "message" in fields else {}
        schema = {"type": "object", "properties": dict(fields), "additionalProperties": False, **required}
        described["requestBody"] = {"required": bool(required), "content": {"application/json": {"schema": schema}}}
    return described


class AgentPty:
    """The routes. `asked` are the names of sessions that have a turn, `turns` the newest one of each by the session's id."""

    def __init__(self, served: Served, settings: AgentPtySettings) -> None:
        self.calls, self.settings = served.calls, settings
        self.operate = served.calls.operate
        self.asked: set[str] = set()
        self.turns: dict[str, LastTurn] = {}

    async def ask(self, request: Request) -> JSONResponse:
        """A turn of a session. Without an id, or with one that is not known, the session is started."""
        wanted = await _read_fields(request, "session_id", "message", "timeout", "command")
        call, message, timeout = make_request(request), _read_message(wanted), self._read_timeout(wanted)
        command, session_id = _read_command(wanted), _read_session_id(wanted)
        session = await self._find(call, session_id) if session_id is not None else None
        if session is not None:
            _refuse_command(session, command)
        name = session.name if session else _new_name(session_id)
        _check_meant(call, name)
        with self._only_turn(name):
            session = session or await self._start(call, request, name, command)
            return JSONResponse(await self._take_turn(call, session, message, timeout))

    async def ask_existing(self, request: Request, session_id: str) -> JSONResponse:
        """A turn of a session that is there."""
        wanted = await _read_fields(request, "message", "timeout")
        call, message, timeout = make_request(request), _read_message(wanted), self._read_timeout(wanted)
        session: Session = await self.operate(call, "show", {"session": session_id})
        with self._only_turn(session.name):
            return JSONResponse(await self._take_turn(call, session, message, timeout))

    async def start(self, request: Request) -> JSONResponse:
        """Start a session. One of this id that is there is the reply, unless a command says that another is meant."""
        wanted = await _read_fields(request, "session_id", "command")
        call, command, session_id = make_request(request), _read_command(wanted), _read_session_id(wanted)
        session = await self._find(call, session_id) if session_id is not None else None
        if session is not None:
            _refuse_command(session, command)
        else:
            session = await self._start(call, request, _new_name(session_id), command)
        return JSONResponse(self._describe(session))

    async def list_sessions(self, request: Request) -> JSONResponse:
        """All sessions that the caller may know of."""
        access = make_request(request).access
        access.demand("read", "sessions")
        listed = await self.calls.in_thread(lambda: self.calls.control.ls().sessions)
        return JSONResponse({"sessions": [self._describe(session) for session in access.select(listed)]})

    async def show(self, request: Request, session_id: str) -> JSONResponse:
        """One session."""
        return JSONResponse(self._describe(await self.operate(make_request(request), "show", {"session": session_id})))

    async def debug(self, request: Request, session_id: str) -> JSONResponse:
        """One session with the end of its output, its newest turn, and the newest events of its hooks."""
        call = make_request(request)
        session: Session = await self.operate(call, "show", {"session": session_id})
        output: Output = await self.operate(
            call, "read", {"session": session.id, "since": _cursor_before(session), "raw": True}
        )
        events = await self.calls.in_thread(partial(self._read_events, session))
        turn = self.turns.get(session.id)
        known = turn.status if turn else "timeout" if NEEDS_RECOVERY in session.tags else None
        about = {
            "raw_tail": output.data[-TAIL_BYTES:].decode("utf-8", "replace"),
            "cleaned_tail": output.text[-TAIL_BYTES:],
            "last_turn_status": known,
            "last_turn_error": turn.error if turn else None,
            "last_turn_time": turn.time if turn else None,
            "recent_hook_events": events,
        }
        return JSONResponse(self._describe(session) | about)

    async def delete(self, request: Request, session_id: str) -> JSONResponse:
        """End a session with all its processes."""
        killed = await self.operate(make_request(request), "kill", {"session": [session_id]})
        reply: dict[str, Any] = {"session_id": session_id, "closed": True, "returncode": None}
        for end in killed.killed:
            self.turns.pop(end.id, None)
            reply |= {"session_id": end.session, "returncode": _returncode(end.exit_status, end.signal)}
        return JSONResponse(reply)

    def note_event(self, event: str) -> Callable[[Request], Awaitable[JSONResponse]]:
        """Makes the route that keeps what a session's hook reports, as `tmuxctl hook` does; who has the session's key may."""

        async def note(request: Request) -> JSONResponse:
            body = await request.body()
            posted = _read_posted(body)
            named = (posted.get(name) for name in SESSION_NAMES)
            session = next((one for one in named if isinstance(one, str)), request.query_params.get("session", ""))
            own = posted.get("hook_event_name")
            kind = own if isinstance(own, str) and own in EVENTS else event
            key = request.query_params.get("key", "")
            await self.calls.in_thread(partial(_write_event, self.calls.control.machine, session, key, kind, body))
            # what a hook's address replies may steer the program (Claude Code reads it): nothing is said
            return JSONResponse({})

        return note

    async def _find(self, call: calls.Request, session_id: str) -> Session | None:
        """The session of this name or id, if there is one that the caller may know of."""
        try:
            found: Session = await self.operate(call, "show", {"session": session_id})
        except NotFound:
            return None
        return found

    async def _start(
        self, call: calls.Request, request: Request, name: str, command: tuple[str, ...] | None
    ) -> Session:
        """Start a session, and wait until its program is ready. Another caller may have started it meanwhile."""
        url = self.settings.hook_url or _own_address(request)
        key = secrets.token_urlsafe(32)
        env = {one: value for one, value in os.environ.items() if PASSED.fullmatch(one)}
        env |= {"AGENTPTY_SESSION_ID": name} | ({"AGENTPTY_HOOK_URL": _with_key(url, name, key)} if url else {})
        env |= {"AGENTPTY_HOOK_EVENT": self.settings.hook_event} if self.settings.hook_event else {}
        arguments = {"name": name, "command": list(command or self.settings.command), "env": env, "clean_env": True}
        try:
            made: Session = await self.operate(call, "new", arguments | {"owner": OWNER + _hash(key)})
        except Conflict as error:
            if error.reason != "exists":
                raise
            made = await self.operate(call, "show", {"session": name})
            _refuse_command(made, command)
            return made
        question = made.status.asking
        if not (
            self.settings.trusts and question and question.kind is InputKind.TRUST and "write" in call.access.rights
        ):
            return made
        # behind its question Claude Code starts for some seconds, in which it would take no message
        trusted = {"session": made.id, "option": "allow", "id": question.id, "wait": True}
        await self.operate(call, "decide", trusted)
        ready: Session = await self.operate(call, "show", {"session": made.id})
        return ready

    @contextmanager
    def _only_turn(self, name: str) -> Iterator[None]:
        """Conflict `busy` while another caller has a turn of this session, from its start on."""
        if name in self.asked:
            raise Conflict(f"a turn is under way in {name}", reason="busy", hint="ask again once it has ended")
        self.asked.add(name)
        try:
            yield
        finally:
            self.asked.discard(name)

    async def _take_turn(
        self, call: calls.Request, session: Session, message: bytes, timeout: float | None
    ) -> dict[str, Any]:
        """Ask, and reply as AgentPTY does. A turn that does not end in time is the session's last."""
        if NEEDS_RECOVERY in session.tags:
            hint = f"DELETE /sessions/{session.name}, then start it again"
            about = f"a turn of {session.name} timed out: it needs recovery"
            raise Conflict(about, reason="needs_recovery", hint=hint)
        arguments: dict[str, Any] = {"session": session.id, "text": message, "timeout": timeout}
        if self.settings.trusts:
            # the question may have come late
            arguments["decide"] = ["trust=allow"]
        try:
            answer: Answer = await self.operate(call, "ask", arguments)
        except TmuxctlError as error:
            self._remember(session, "failed", error.message)
            raise
        event = _event_of(answer)
        if event == "timeout":
            # the caller may be gone by now, and the mark is made all the same
            await self.operate(changed(call, gone=None), "tag", {"session": session.id, "tags": [NEEDS_RECOVERY]})
        self._remember(session, event, answer.error)
        ended = answer.state is State.EXITED
        return {
            "session_id": answer.session,
            "event": event,
            "text": answer.answer or answer.error or (answer.status.asking.question if answer.status.asking else ""),
            "prompt_submitted": answer.submitted.ok,
            "duration_seconds": answer.elapsed,
            "output_tokens": answer.usage.get("output_tokens"),
            "returncode": _returncode(answer.exit_status, answer.signal) if ended else None,
        }

    def _remember(self, session: Session, status: str, error: str | None) -> None:
        self.turns.pop(session.id, None)
        self.turns[session.id] = LastTurn(status, error, format_time())
        while len(self.turns) > TURNS:
            self.turns.pop(next(iter(self.turns)))

    def _read_timeout(self, wanted: Mapping[str, Any]) -> float | None:
        """How long a turn may take: as asked for, else as set; None leaves it to the setting wait.ask_timeout."""
        given = wanted.get("timeout")
        return self.settings.ask_timeout if given is None else parse_seconds(given)

    def _describe(self, session: Session) -> dict[str, Any]:
        """A session as it is told."""
        ended = session.state in (State.EXITED, State.LOST)
        question = session.status.asking
        return {
            "session_id": session.name,
            "id": session.id,
            "command": list(session.argv),
            "cwd": session.cwd,
            "created": session.created,
            "state": session.state.value,
            "question": to_json(question) if question else None,
            "alive": not ended,
            "busy": session.state in (State.BUSY, State.STARTING) or session.name in self.asked,
            "needs_recovery": NEEDS_RECOVERY in session.tags,
            "returncode": _returncode(session.exit_status, session.signal) if ended else None,
        }

    def _read_events(self, session: Session) -> list[dict[str, Any]]:
        """The newest events that hooks of a session reported, oldest first."""
        service, _ = self.calls.control.reach(session.name)
        transport = service.machine.transport
        folder = f"{records.session_folder(service.machine, session.id)}/{layout.EVENTS}"
        named = ((file.modified, name) for name, file in transport.files(folder).items())
        newest = sorted(one for one in named if hook_events.NAME.fullmatch(one[1]))[-EVENTS_TOLD:]
        found = []
        for at, name in newest:
            try:
                posted = parse_json(transport.read(f"{folder}/{name}", 0, EVENT_BYTES))
            except (TmuxctlError, ValueError, OSError):
                # no JSON, longer than is told, or gone
                posted = None
            moment = datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds")
            found.append({"event": name.partition(".")[0], "time": moment, "payload": posted})
        return found


def _read_posted(body: bytes) -> dict[str, Any]:
    """The JSON object that a hook posts."""
    try:
        posted = parse_json(body)
    except ValueError:
        posted = None
    if not isinstance(posted, dict):
        raise Usage("what a hook posts is a JSON object", reason="bad_json", hint="post what the hook was given")
    return posted


async def _read_fields(request: Request, *known: str) -> dict[str, Any]:
    """The fields of a JSON body; Usage for one that is not known."""
    wanted = parse_body(await request.body(), request.headers.get("content-type", "").partition(";")[0].strip().lower())
    if wrong := wanted.keys() - set(known):
        hint = f"it takes {', '.join(known)}"
        raise Usage(f"there is no field {ascii(min(wrong))[:40]} here", reason="bad_parameter", hint=hint)
    return wanted


def _read_message(wanted: Mapping[str, Any]) -> bytes:
    message = parse_input(wanted.get("message", ""))
    if not message.strip():
        raise Usage("there is no message", reason="missing", hint='{"message": "Say hello."}')
    return message


def _read_session_id(wanted: Mapping[str, Any]) -> str | None:
    given = wanted.get("session_id")
    if given is not None and not isinstance(given, str):
        raise Usage(f"session_id: {ascii(given)[:40]} is not text", reason="bad_type", hint='{"session_id": "demo"}')
    return given


def _new_name(session_id: str | None) -> str:
    """What a session that is started is called."""
    return str(uuid.uuid4()) if session_id is None else check_name(session_id)


def _read_command(wanted: Mapping[str, Any]) -> tuple[str, ...] | None:
    given = wanted.get("command")
    if given is None:
        return None
    if not isinstance(given, list) or not given or not all(isinstance(word, str) for word in given):
        hint = '{"command": ["claude", "--model", "sonnet"]}'
        raise Usage("command is a list of words", reason="bad_type", hint=hint)
    return tuple(given)


def _refuse_command(session: Session, command: tuple[str, ...] | None) -> None:
    """Conflict `exists` where a session that is there was to be started with a command of its own."""
    if command is not None:
        hint = f"leave command out, or DELETE /sessions/{session.name} first"
        raise Conflict(f"there is a session {session.name}, with a command of its own", reason="exists", hint=hint)


def _check_meant(call: calls.Request, name: str) -> None:
    """NotFound for a session that the caller's token is not for, before anything is told of its turns."""
    if not call.access.means(name):
        hint = f"this token is for: {', '.join(call.access.sessions)}"
        raise NotFound(f"no session {ascii(name)[:60]}", reason="no_session", hint=hint)


def _event_of(answer: Answer) -> str:
    """The word for how a turn ended."""
    if answer.state is State.EXITED:
        return "exited"
    if answer.timed_out or not answer.submitted.ok:
        return "timeout"
    if answer.state is State.ASKING:
        return "asking"
    return "stop" if answer.error is None else "stop_failure"


def _returncode(status: int | None, signal_name: str | None) -> int | None:
    """How a program ended, as Python's subprocess tells it: a signal is its number below zero."""
    if signal_name:
        number = getattr(signal, f"SIG{signal_name}", None)
        return -int(number) if number is not None else None
    return status


def _cursor_before(session: Session) -> str:
    """A point in a session's output, so far before its end as `/debug` tells of it."""
    if session.cursor is None:
        return "screen"
    end = parse_cursor(session.cursor)
    return format_cursor(Cursor(end.incarnation, max(0, end.offset - TAIL_BYTES)))


def _own_address(request: Request) -> str:
    """Where a program of this machine reaches the server: at the address that a caller on TCP used; empty for others."""
    host, port = request.scope.get("server") or ("", None)
    if port is None:
        return ""
    return f"{request.scope['scheme']}://{f'[{host}]' if ':' in host else host}:{port}/hooks/claude-stop"


def _with_key(url: str, name: str, key: str) -> str:
    """The address with the session's name and key in its query. AgentPTY's hook script knows nothing but the address."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query=urlencode([*parse_qsl(parts.query), ("session", name), ("key", key)])))


def _hash(key: str) -> str:
    # 48 characters, which an owner may have, of a hash that needs no salt: the key has 256 random bits
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()[:48]


def _write_event(machine: Machine, session: str, key: str, event: str, payload: bytes) -> None:
    """Write an event into a session's folder. Denied `hook_key` for another key than the session's, in the same words whether
    there is such a session or not."""
    owner = folder = ""
    try:
        pane = finding.find_session(machine, check_name(session), whole=False)
        owner, folder = str(pane.spec.get("owner") or ""), f"{records.session_folder(machine, pane.id)}/{layout.EVENTS}"
    except (Usage, NotFound, Unreachable, Exited, Failed) as error:
        if error.reason == "backend_timeout":
            raise
    if not hmac.compare_digest(owner.encode(), (OWNER + _hash(key)).encode()):
        hint = "post to the AGENTPTY_HOOK_URL that the session was given"
        raise Denied("this is not the key of that session", reason="hook_key", hint=hint)
    if not hooks.is_events_folder(folder):
        raise Denied("the folder of the session's events is not safe", reason="unsafe_file", hint="start it anew")
    try:
        hooks.write_event(folder, event, payload)
    except OSError as error:
        raise Failed(f"the event cannot be written: {error.strerror}", reason="disk", hint="tmuxctl doctor") from None
