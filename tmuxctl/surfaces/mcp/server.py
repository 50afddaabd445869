"""The MCP server on standard input and output, in both eras of the protocol: the SDK speaks it, `tools` says what it offers."""

from __future__ import annotations

import contextvars
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from tmuxctl import __version__, config
from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Exited, NotFound, TmuxctlError, Usage
from tmuxctl.operations import Cancellation
from tmuxctl.surfaces.mcp import calls, prompts, resources
from tmuxctl.surfaces.mcp.arguments import check_arguments
from tmuxctl.surfaces.mcp.calls import Arguments, ToolCall
from tmuxctl.surfaces.mcp.client import ClientSettings, read_settings
from tmuxctl.surfaces.mcp.messages import AnsweredMessages
from tmuxctl.surfaces.mcp.replies import Reply, describe_question, password_hint
from tmuxctl.surfaces.mcp.tools import CHANGE, END, INSTRUCTIONS, READ, TOOLS, TYPE, ToolRow

Context = ServerRequestContext[Any, Any]

T = TypeVar("T")

CALL_LIMIT = 128
"""Calls under way at once. Each has a thread that sleeps; one more call is refused."""

MESSAGE_CHARS = 1000
"""Characters of an error's message and of its hint: both may repeat what the client gave."""

HINTS = {
    READ: types.ToolAnnotations(read_only_hint=True),
    TYPE: types.ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True),
    CHANGE: types.ToolAnnotations(read_only_hint=False, destructive_hint=False),
    END: types.ToolAnnotations(read_only_hint=False, destructive_hint=True),
}


def serve(socket: str | None = None) -> None:
    """Serve the sessions of this tmux server (None: that of the settings) until standard input ends."""
    client = read_settings(os.environ)
    with Control(settings=config.load({"tmux.socket": socket}), resident=True) as control:
        # a context of its own: the command that serves takes its own result in pieces, and a client takes each whole
        contextvars.Context().run(anyio.run, _run, ToolServer(control, client))


def make_protocol_server(tools: ToolServer) -> Server[Any]:
    """The SDK's server with these tools, resources and prompts."""
    return Server(
        "tmuxctl",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=tools.list_tools,
        on_call_tool=tools.call_tool,
        on_list_resources=tools.list_resources,
        on_list_resource_templates=tools.list_resource_templates,
        on_read_resource=tools.read_resource,
        on_list_prompts=tools.list_prompts,
        on_get_prompt=tools.get_prompt,
    )


async def _run(tools: ToolServer) -> None:
    server = make_protocol_server(tools)
    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as group:
        group.start_soon(tools.end_on_signals)
        if tools.client.idle_ms is not None:
            group.start_soon(tools.end_idle_sessions, tools.client.idle_ms / 1000)
        messages: Any = AnsweredMessages(incoming, outgoing)
        await server.run(messages, outgoing, server.create_initialization_options())
        group.cancel_scope.cancel()


class ToolServer:
    """The tools of one client. It keeps nothing of a session: another server can go on at any time."""

    def __init__(self, control: Control, client: ClientSettings) -> None:
        self.control, self.client = control, client
        # a program may not have it connect to any host that it names
        control.machine.listed_only = True
        self.timing = control.machine.timing.serving
        self.rows = {row.name: row for row in TOOLS if row.effect == READ or client.tools != "read"}
        self.listed = [_describe_tool(row) for row in self.rows.values()]
        self.running: set[Cancellation] = set()
        """The calls that have a thread, those too whose client does not want them any more, by what cancels each."""
        # calls are refused before there are so many
        self.threads = anyio.CapacityLimiter(2 * CALL_LIMIT)

    async def list_tools(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """The tools that the client may call."""
        return types.ListToolsResult(tools=self.listed)

    async def call_tool(self, context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
        """Call a tool in a thread. Whoever cancels the call ends its wait; the program goes on."""
        row = self.rows.get(params.name)
        arguments = params.arguments or {}
        if row is None:
            return _fail(Usage(f"no tool {ascii(params.name[:40])}", reason="no_tool", hint=", ".join(self.rows)), {})
        try:
            self._check_room()
        except Conflict as error:
            return _fail(error, arguments)
        if (context.meta or {}).get("progress_token") is None:
            return await self._in_thread(partial(_answer, row=row, arguments=arguments))
        async with anyio.create_task_group() as group:
            group.start_soon(_tell_progress, context, row.name, self.timing.progress_seconds)
            result = await self._in_thread(partial(_answer, row=row, arguments=arguments))
            group.cancel_scope.cancel()
        return result

    async def list_resources(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """The resources that there are now."""
        listed = await self._look(lambda call: list(resources.list_resources(call)))
        return types.ListResourcesResult(
            resources=[
                types.Resource(uri=one.uri, name=one.name, description=one.about, mime_type=one.media_type)
                for one in listed
            ]
        )

    async def list_resource_templates(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        """The kinds of resources of which there are several."""
        rows = [row for row in resources.RESOURCES if not row.fixed]
        return types.ListResourceTemplatesResult(
            resource_templates=[
                types.ResourceTemplate(
                    uri_template=row.template, name=row.name, description=row.about, mime_type=row.media_type
                )
                for row in rows
            ]
        )

    async def read_resource(
        self, _context: Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """The text of a resource."""
        text, media_type = await self._look(lambda call: resources.read_resource(call, params.uri))
        contents = types.TextResourceContents(uri=params.uri, mime_type=media_type, text=text)
        return types.ReadResourceResult(contents=[contents])

    async def list_prompts(
        self, _context: Context, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        """The prompts that a person may choose."""
        return types.ListPromptsResult(prompts=[_describe_prompt(row) for row in prompts.PROMPTS])

    async def get_prompt(self, _context: Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """The text of a prompt."""
        text = await self._look(lambda call: prompts.fill_prompt(call, params.name, params.arguments or {}))
        message = types.PromptMessage(role="user", content=types.TextContent(text=text))
        return types.GetPromptResult(messages=[message])

    async def end_on_signals(self) -> None:
        """End this process at SIGINT and SIGTERM: the SDK reads standard input in a thread that no signal wakes."""
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as received:
            async for number in received:
                for cancelled in list(self.running):
                    cancelled.set()
                with anyio.move_on_after(self.timing.close_seconds):
                    await anyio.to_thread.run_sync(self.control.close, abandon_on_cancel=True)
                os._exit(128 + number)

    async def end_idle_sessions(self, idle_seconds: float) -> None:
        """End this client's sessions to which nothing has happened for so long, again and again."""
        while True:
            await anyio.sleep(min(idle_seconds, self.timing.sweep_seconds))
            # a tmux server that does not answer now is asked again
            with suppress(TmuxctlError):
                await self._in_thread(partial(calls.end_idle_sessions, idle_seconds=idle_seconds))

    async def _look(self, look: Callable[[ToolCall], T]) -> T:
        """What a function gives that only looks; its failure is an error of the protocol."""
        try:
            self._check_room()
            return await self._in_thread(look)
        except TmuxctlError as error:
            wrong = isinstance(error, (NotFound, Usage))
            raise MCPError(types.INVALID_PARAMS if wrong else types.INTERNAL_ERROR, _tell(error, error.hint)) from None

    def _check_room(self) -> None:
        if len(self.running) >= CALL_LIMIT:
            raise Conflict(f"{CALL_LIMIT} calls are under way", reason="busy", hint="wait for one of them to end")

    async def _in_thread(self, run: Callable[[ToolCall], T]) -> T:
        cancelled, begun = Cancellation(), False

        def work() -> T:
            nonlocal begun
            begun = True
            try:
                return run(ToolCall(self.control, self.client, cancelled))
            finally:
                self.running.discard(cancelled)

        self.running.add(cancelled)
        try:
            return await anyio.to_thread.run_sync(work, abandon_on_cancel=True, limiter=self.threads)
        finally:
            cancelled.set()
            if not begun:
                self.running.discard(cancelled)


async def _tell_progress(context: Context, tool: str, every_seconds: float) -> None:
    """Tell the client, if it asked for that, that the call goes on."""
    began = time.monotonic()
    while True:
        await anyio.sleep(every_seconds)
        elapsed = round(time.monotonic() - began, 1)
        await context.session.report_progress(elapsed, None, f"{tool}: waiting for {elapsed:g} s")


def _describe_prompt(row: prompts.PromptRow) -> types.Prompt:
    arguments = [
        types.PromptArgument(name=name, description=about, required=True) for name, about in row.parameters.items()
    ]
    return types.Prompt(name=row.name, description=row.about, arguments=arguments)


def _describe_tool(row: ToolRow) -> types.Tool:
    return types.Tool(
        name=row.name,
        description=row.about,
        input_schema=row.input_schema(),
        output_schema=row.output_schema(),
        annotations=HINTS[row.effect],
    )


def _answer(call: ToolCall, row: ToolRow, arguments: Arguments) -> types.CallToolResult:
    try:
        check_arguments(row.name, arguments, row.parameters, row.required)
        reply: Reply = row.run(call, arguments)
    except TmuxctlError as error:
        return _fail(error, arguments)
    content: list[Any] = [types.TextContent(text=text) for text in reply.texts()]
    return types.CallToolResult(content=content, structured_content=dict(reply.fields))


def _fail(error: TmuxctlError, arguments: Arguments) -> types.CallToolResult:
    """An error as text: ptyai's sentence first where it has one, then `code: message. hint`."""
    told = _tell(error, _hint(error, arguments))
    text = "\n".join(filter(None, (_in_ptyai_words(error, arguments), told)))
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


def _tell(error: TmuxctlError, hint: str) -> str:
    return f"{error.code}: {error.message[:MESSAGE_CHARS]}. {hint[:MESSAGE_CHARS]}".rstrip(" .") + "."


def _hint(error: TmuxctlError, arguments: Arguments) -> str:
    session = str(arguments.get("session_id"))
    question = describe_question(session, error.details.get("asking"))
    if error.reason in ("secret_wanted", "no_secret") or (question and "answer" in question):
        return password_hint(session)
    if error.reason == "not_owner":
        return f"ask the user to run: tmuxctl kill {session}; TMUXCTL_MCP_TOOLS=all lets you"
    return error.hint


def _in_ptyai_words(error: TmuxctlError, arguments: Arguments) -> str:
    given = arguments.get("session_id")
    session = ascii(given)[1:81].rstrip("'")
    if isinstance(given, list):
        return ""
    if isinstance(error, NotFound) and error.reason == "no_session":
        return f"Session not found: {session}"
    if isinstance(error, Exited):
        return f"Session {session} has exited"
    if error.reason == "bad_key":
        names = [arguments["key"]] if "key" in arguments else arguments.get("keys", [])
        wrong = next((name for name in names if ascii(name[:40]) in error.message), "")
        return f'Unknown key: "{wrong[:40]}". Use pty_list_keys to see valid key names.'
    if error.reason == "session_limit":
        return f"{error.message}. Kill an existing session first."
    if isinstance(error, Usage) and error.message == "Either key or keys must be provided.":
        return error.message
    return ""
