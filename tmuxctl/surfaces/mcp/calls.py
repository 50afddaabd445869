"""What each tool does: arguments in ptyai's words, one or two operations of `Control`, a reply in ptyai's fields."""

from __future__ import annotations

import re
import shlex
import threading
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tmuxctl.errors import Conflict, DecisionNeeded, Exited, NotFound, Timeout, TmuxctlError, Usage
from tmuxctl.model import State
from tmuxctl.operations import to_json
from tmuxctl.surfaces.mcp.arguments import unescape
from tmuxctl.surfaces.mcp.replies import Reply, cut, describe_question, generation, reply
from tmuxctl.terminal.input.keys import key_names
from tmuxctl.vocabulary import WaitCondition

if TYPE_CHECKING:
    from tmuxctl import results
    from tmuxctl.control import Control
    from tmuxctl.model import Session
    from tmuxctl.surfaces.mcp.client import ClientSettings

Arguments = Mapping[str, Any]

WAIT_LIMIT_MS = 50_000
"""How long one call waits at most: clients give up after a minute."""

TURN_MS = 45_000
"""How long `pty_ask` and `pty_exec` wait unless they are told."""


CREATING = threading.Lock()
"""Held by the one call that may start a session, where their number is limited."""

PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")


class ToolCall:
    """One call of a tool. Setting `cancelled` ends its wait, not the program."""

    def __init__(self, control: Control, client: ClientSettings, cancelled: threading.Event) -> None:
        self.control, self.client, self.cancelled = control, client, cancelled

    def operate(self, operation: str, **arguments: Any) -> Any:
        """Call an operation of `Control` as the client, with what it may."""
        client = self.client
        return self.control.call(
            operation, arguments, rights=client.rights, cancelled=self.cancelled, caller=client.caller
        )

    def seconds(self, arguments: Arguments, default_ms: int) -> float:
        """How long this call may wait."""
        return float(min(arguments.get("timeout_ms", default_ms), WAIT_LIMIT_MS)) / 1000


def create(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_create`."""
    client = call.client
    profile = arguments.get("profile", "auto")
    if not PROFILE_NAME.fullmatch(profile):
        # a path would be read by us, not by the client's own program
        raise Usage(f"profile: {ascii(profile[:40])} is no name", reason="bad_name", hint="auto, none or a name")
    command = _command(arguments, client.shell)
    scrollback = arguments.get("scrollback", client.scrollback)
    # two calls at once would count the same sessions
    with CREATING if client.sessions is not None else nullcontext():
        _check_room(call)
        session: Session = call.operate(
            "new",
            name=arguments.get("name"),
            command=command,
            cwd=arguments.get("cwd"),
            env=arguments.get("env", {}),
            size=f"{arguments.get('cols', client.cols)}x{arguments.get('rows', client.rows)}",
            profile=profile,
            if_exists=arguments.get("if_exists", "error"),
            with_=arguments.get("plugins", []),
            owner=client.owner,
            clean_env=True,
            **({} if scrollback is None else {"history": scrollback}),
        )
    screen: results.Screen = call.operate("screen", session=session.lasting_address, state=False)
    text, truncated = cut(screen.text)
    fields = {
        "session_id": session.lasting_address,
        "name": session.address,
        "shell": session.argv[0] if session.argv else None,
        "cwd": session.cwd,
        "cols": session.cols,
        "rows": session.rows,
        "pid": session.pid,
        **_state_fields(session),
        "screen": text,
        "truncated": truncated or None,
        "generation": generation(screen.position),
        "cursor": screen.position,
    }
    return reply(text, fields)


def _check_room(call: ToolCall) -> None:
    limit = call.client.sessions
    if limit is None:
        return
    own = [one for one in call.operate("ls").sessions if one.owner == call.client.owner and one.exit_status is None]
    if len(own) >= limit:
        raise Conflict(f"Maximum session limit ({limit}) reached", reason="session_limit")


def _command(arguments: Arguments, shell: str) -> list[str]:
    """The command and its arguments. A text is split into words as a shell does, and no shell runs it."""
    command = arguments.get("command")
    if command is not None and not command:
        raise Usage("command: empty", reason="bad_command", hint="leave it out for a shell")
    if command is None:
        return [arguments.get("shell", shell), *arguments.get("args", [])]
    if isinstance(command, list):
        return [*command, *arguments.get("args", [])]
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    # to a shell # begins a comment only where a word begins, and here nothing is one
    words.commenters = ""
    try:
        found = list(words)
    except ValueError as error:
        raise Usage(f"command: {error}", reason="bad_command", hint="give a list of words") from None
    if strange := next((word for word in found if set(word) <= set("();<>|&")), None):
        hint = 'give ["sh", "-c", TEXT], or create a shell and use pty_exec'
        raise Usage(f"command: no shell runs it, so {strange} means nothing", reason="bad_command", hint=hint)
    return [*found, *arguments.get("args", [])]


def write(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_write`."""
    data = unescape(arguments["input"])
    # Enter at the end is pressed as the program's profile says
    enter = data[-1:] in (b"\r", b"\n") and b"\x1b" not in data
    text = data[:-1] if enter else data
    if enter and not text:
        pressed = {"session": arguments["session_id"], "keys": ["Enter"]}
        return _type(call, arguments, "keys", pressed, {"bytes_written": len(data)})
    given = {"session": arguments["session_id"], "text": text, "enter": enter, "multiline": True}
    return _type(call, arguments, "send", given, {"bytes_written": len(data)})


def press(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_sendkey`."""
    if ("key" in arguments) == ("keys" in arguments):
        raise Usage("Either key or keys must be provided.", reason="missing")
    keys = [arguments["key"]] if "key" in arguments else arguments["keys"]
    sent = {"key_sent": arguments["key"]} if "key" in arguments else {"keys_sent": keys}
    return _type(call, arguments, "keys", {"session": arguments["session_id"], "keys": keys}, sent)


def _type(call: ToolCall, arguments: Arguments, operation: str, given: dict[str, Any], sent: dict[str, Any]) -> Reply:
    """Type, and where the caller asks for one wait and look: in the same operation where it waits for a text alone."""
    session, pattern = arguments["session_id"], arguments.get("wait_for")
    look = arguments.get("include_screen", True)
    sent = {"session_id": session, **sent}
    limit = call.seconds(arguments, call.client.wait_ms)
    if pattern is not None and "settle_ms" not in arguments:
        try:
            written: results.Written = call.operate(operation, **given, wait_text=pattern, screen=look, timeout=limit)
        except (Exited, DecisionNeeded) as error:
            if "written" not in error.details:
                raise
            return _reply_to_end(call, session, error, look, sent)
        return _reply_to_wait(call, session, written.wait, written.screen, sent)
    written = call.operate(operation, **given)
    if pattern is None and not {"settle_ms", "timeout_ms"} & arguments.keys():
        return reply(None, sent | {"generation": generation(written.cursor), "cursor": written.cursor})
    return _wait(call, session, _conditions(call, {"pattern": pattern, **arguments}), limit, look, sent)


def wait(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_wait`, for one session or several."""
    given, wanted = arguments["session_id"], _conditions(call, arguments)
    limit, look = call.seconds(arguments, call.client.wait_ms), arguments.get("include_screen", True)
    since = arguments.get("since_generation")
    if isinstance(given, str):
        if since is not None:
            wanted["since"] = str(since)
        return _wait(call, given, wanted, limit, look, {"session_id": given})
    if since is not None:
        raise Usage("since_generation belongs to one session", reason="bad_option", hint="leave it out")
    ended: results.Waits = call.operate("wait", any=given, timeout=limit, **wanted)
    if not ended.ok:
        living = [one.session for one in ended.waits]
        fields = {"session_id": living[0], "matched": False, "timed_out": True, "waiting": living}
        return reply(None, fields | {"ended": [name for name in given if name not in living] or None})
    first = ended.waits[0]
    screen = call.operate("screen", session=first.session, state=False) if look else None
    return _reply_to_wait(call, first.session, first, screen, {"session_id": first.session})


def _conditions(call: ToolCall, arguments: Arguments) -> dict[str, Any]:
    """The options of `wait`. Without a text or a state it is for silence, as ptyai's was."""
    until, pattern, settle = arguments.get("until", []), arguments.get("pattern"), arguments.get("settle_ms")
    wanted: dict[str, Any] = dict.fromkeys([until] if isinstance(until, str) else until, True)
    if pattern is not None:
        wanted["text"] = pattern
    if settle is None and not wanted:
        settle = call.client.settle_ms
    if settle is not None:
        wanted["settle"] = settle / 1000
    return wanted


def _wait(
    call: ToolCall, session: str, wanted: dict[str, Any], limit: float, look: bool, sent: dict[str, Any]
) -> Reply:
    try:
        ended: results.Wait = call.operate("wait", session=session, timeout=limit, **wanted)
    except (Exited, DecisionNeeded) as error:
        return _reply_to_end(call, session, error, look, sent)
    screen = None
    if look:
        with suppress(NotFound):
            screen = call.operate("screen", session=session, state=False)
    return _reply_to_wait(call, session, ended, screen, sent)


def _reply_to_wait(
    call: ToolCall, session: str, ended: results.Wait | None, screen: results.Screen | None, sent: dict[str, Any]
) -> Reply:
    """How a wait ended, with the screen. A state is judged only if no text matched: `show` takes 30 ms, all the rest 7."""
    assert ended is not None
    status: Any = ended
    if ended.state is None and ended.matched is not WaitCondition.TEXT:
        with suppress(NotFound):
            status = call.operate("show", session=session)
    fields = {
        **sent,
        "matched": ended.matched not in (None, WaitCondition.SETTLE),
        "condition": ended.matched.value if ended.matched else None,
        "match_text": ended.text if ended.matched is WaitCondition.TEXT else None,
        "groups": to_json(ended.groups) or None,
        "timed_out": ended.timed_out,
        "settled": True if ended.matched is WaitCondition.SETTLE else None,
        **_state_fields(status),
        "exited": any(one is not None for one in (ended.exit_status, ended.signal, status.exit_status, status.signal)),
        "elapsed": ended.elapsed,
        "generation": generation(ended.cursor),
        "cursor": ended.cursor,
    }
    return _with_screen(fields, screen)


def _reply_to_end(call: ToolCall, session: str, error: TmuxctlError, look: bool, sent: dict[str, Any]) -> Reply:
    """The reply to a wait before whose condition the program ended, or asked."""
    status: Any = None
    screen: results.Screen | None = None
    with suppress(NotFound):
        status = call.operate("show", session=session)
        screen = call.operate("screen", session=session, state=False) if look else None
    asks = isinstance(error, DecisionNeeded)
    fields = {
        **sent,
        "matched": False,
        "timed_out": False,
        "exited": not asks,
        **(_state_fields(status) if status else {"state": "exited"}),
        "cursor": screen.position if screen else None,
        "generation": generation(screen.position) if screen else None,
    }
    if asks:
        fields |= {"state": "asking", "asking": describe_question(session, error.details.get("asking"))}
    return _with_screen(fields, screen)


def _with_screen(fields: dict[str, Any], screen: results.Screen | None) -> Reply:
    if screen is None:
        # the text that matched, and a question, are the program's too
        return reply("" if fields.get("match_text") or fields.get("asking") else None, fields)
    text, truncated = cut(screen.text)
    return reply(text, fields | {"screen": text, "truncated": truncated or None})


def _state_fields(status: Any) -> dict[str, Any]:
    session = getattr(status, "name", None) or status.session
    return {
        "state": status.state.value if status.state else None,
        "kind": to_json(status.kind),
        "asking": describe_question(session, status.asking),
        "exit_status": status.exit_status,
        "signal": getattr(status, "signal", None),
    }


def ask(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_ask`."""
    session = arguments["session_id"]
    answer: results.Answer = call.operate(
        "ask", session=session, text=arguments["text"], timeout=call.seconds(arguments, TURN_MS)
    )
    text, truncated = cut(answer.answer, arguments.get("max_chars"))
    fields = {
        "session_id": session,
        "answer": text,
        **_state_fields(answer),
        "complete": answer.complete,
        "timed_out": answer.timed_out,
        "truncated": truncated or answer.truncated,
        "error": answer.error,
        "elapsed": answer.elapsed,
        "cursor": answer.cursor,
    }
    return reply(text, fields)


def execute(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_exec`."""
    session = arguments["session_id"]
    limit = call.seconds(arguments, TURN_MS)
    try:
        ran: results.Ran = call.operate("exec", session=session, command=[arguments["command"]], timeout=limit)
        fields = to_json(ran)
    except (DecisionNeeded, Timeout) as error:
        fields = {
            "output": "",
            **error.details,
            "timed_out": isinstance(error, Timeout),
            "asking": describe_question(session, error.details.get("asking")),
        }
    text, truncated = cut(str(fields["output"]), arguments.get("max_chars"))
    told = {name: fields.get(name) for name in ("exit_status", "signal", "timed_out", "elapsed", "cursor", "asking")}
    return reply(
        text, {"session_id": session, "output": text, **told, "truncated": truncated or bool(fields.get("truncated"))}
    )


def read(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_read`."""
    session, limit = arguments["session_id"], arguments.get("max_chars")
    if (since := arguments.get("since")) is not None:
        output: results.Output = call.operate("read", session=session, since=since)
        text, truncated = cut(output.text, limit)
        told = {"output": text, "truncated": truncated or output.truncated, "cursor": output.cursor}
        return reply(text, {"session_id": session, **told, "generation": generation(output.cursor)})
    more: dict[str, Any] = {"ansi": True} if arguments.get("format") == "ansi" else {}
    if arguments.get("include_scrollback"):
        more["scrollback"] = arguments.get("scrollback_lines", 0)
    screen: results.Screen = call.operate("screen", session=session, state=False, **more)
    about: Session = call.operate("show", session=session)
    text, truncated = cut(screen.ansi if screen.ansi is not None else screen.text, limit)
    scrollback = list(screen.scrollback) if screen.scrollback is not None else None
    while scrollback and sum(map(len, scrollback)) > (limit or 8000):
        scrollback, truncated = scrollback[len(scrollback) // 4 + 1 :], True
    fields = {
        "session_id": session,
        "screen": text,
        "cursor_col": screen.cursor.x,
        "cursor_row": screen.cursor.y,
        "cols": screen.cols,
        "rows": screen.rows,
        "alt_screen": screen.alt,
        "generation": generation(screen.position),
        "last_modified": about.active,
        "scrollback": scrollback,
        "title": screen.title or None,
        **_state_fields(about),
        "truncated": truncated or None,
        "cursor": screen.position,
    }
    return reply("\n".join([*(scrollback or []), text]) if scrollback else text, fields)


def decide(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_decide`: choose an option of the question that stands, and wait for what follows."""
    session = arguments["session_id"]
    decided: results.Decided = call.operate(
        "decide",
        session=session,
        option=arguments["option"],
        id=arguments.get("id"),
        wait=True,
        timeout=call.seconds(arguments, call.client.wait_ms),
    )
    fields = {
        "session_id": session,
        "option": decided.option,
        "timed_out": decided.timed_out,
        **_state_fields(decided),
        "exited": decided.state is State.EXITED,
    }
    screen = call.operate("screen", session=session, state=False)
    return _with_screen(fields | {"cursor": screen.position}, screen)


def list_sessions(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_list`: every session, or those in one state."""
    found = call.operate("ls", **arguments).sessions
    lines = [f"{one.address}  {one.state.value}  {one.profile or '-'}  {one.cwd or '-'}" for one in found]
    described = [describe_session(one, call.client) for one in found]
    return Reply(None, {"sessions": described}, "\n".join(lines) or "no sessions")


def describe_session(session: Session, client: ClientSettings) -> dict[str, Any]:
    """A session among others: ptyai's names, in its spelling, and ours. `own`: this client started it."""
    described = {
        "sessionId": session.lasting_address,
        "name": session.address,
        **_state_fields(session),
        "profile": session.profile,
        "own": session.owner == client.owner,
        "shell": session.argv[0] if session.argv else None,
        "cwd": session.cwd,
        "cols": session.cols,
        "rows": session.rows,
        "pid": session.pid,
        "createdAt": session.created,
        "lastActivityAt": session.active,
    }
    return {name: value for name, value in described.items() if value is not None}


def resize(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_resize`."""
    size = f"{arguments['cols']}x{arguments['rows']}"
    session: Session = call.operate("resize", session=arguments["session_id"], size=size)
    return reply(None, {"cols": session.cols, "rows": session.rows})


def kill(call: ToolCall, arguments: Arguments) -> Reply:
    """`pty_kill`: end a session that this client started, or any with TMUXCTL_MCP_TOOLS=all."""
    session = arguments["session_id"]
    signal = arguments.get("signal", "SIGTERM").removeprefix("SIG")
    killed: results.Killed = call.operate("kill", session=[session], signal=signal)
    end = killed.killed[0]
    return reply(None, {"killed": True, "session_id": session, "exit_status": end.exit_status, "signal": end.signal})


def end_idle_sessions(call: ToolCall, idle_seconds: float) -> None:
    """End the sessions of this client, ended ones too, to which nothing has happened for so long."""
    now = datetime.now(UTC)
    own = [session for session in call.operate("ls").sessions if session.owner == call.client.owner and session.active]
    for session in own:
        if (now - datetime.fromisoformat(session.active)).total_seconds() > idle_seconds:
            with suppress(NotFound):
                call.operate("kill", session=[session.id])


def list_keys(_call: ToolCall, _arguments: Arguments) -> Reply:
    """`pty_list_keys`."""
    return reply(None, {"keys": list(key_names())}, " ".join(key_names()))
