"""What a client reads by its address, without a tool: the sessions, a session's screen and log, a profile."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from io import StringIO

from tmuxctl.errors import NotFound
from tmuxctl.surfaces.mcp.calls import ToolCall, describe_session
from tmuxctl.surfaces.mcp.replies import UNTRUSTED, cut
from tmuxctl.value import Value

SCHEME = "tmuxctl://"

LOG_LINES = 1000
"""Lines of a log that one reading has, the last ones."""

LOG_CHARS = 100_000

CAST_BYTES = 200_000
"""Bytes of the output that a recording has, the last ones."""

JSON, TEXT, YAML, CAST = "application/json", "text/plain", "application/yaml", "application/x-asciicast"


class ResourceRow(Value):
    """A kind of resources: their address with one name in it, and what reads the one of that name."""

    template: str
    about: str
    media_type: str
    read: Callable[[ToolCall, str], str]

    @property
    def name(self) -> str:
        """What it is called among the kinds."""
        return self.template.removeprefix(SCHEME)

    @property
    def fixed(self) -> bool:
        """Whether there is one of this kind alone."""
        return "{" not in self.template

    def match(self, uri: str) -> str | None:
        """The name in an address of this kind, empty if the kind has none; None for any other address."""
        before, _, after = self.template.partition("{")
        behind = after.partition("}")[2]
        # a name of ours holds nothing that means anything in an address, or in a path
        name = r"([A-Za-z0-9][A-Za-z0-9_-]{0,62})" if after else "()"
        found = re.fullmatch(re.escape(before) + name + re.escape(behind), uri, re.ASCII)
        return found and found[1]


class ListedResource(Value):
    """A resource that exists now."""

    uri: str
    name: str
    about: str
    media_type: str


def read_resource(call: ToolCall, uri: str) -> tuple[str, str]:
    """The text at an address, and its media type; NotFound."""
    for row in RESOURCES:
        if (name := row.match(uri)) is not None:
            return row.read(call, name), row.media_type
    hint = ", ".join(row.template for row in RESOURCES)
    raise NotFound(f"no resource {ascii(uri[:80])}", reason="no_resource", hint=hint)


def list_resources(call: ToolCall) -> Iterator[ListedResource]:
    """The resources that there are now: those of one kind, and those of each session."""
    names = [session.name for session in call.operate("ls").sessions]
    for row in RESOURCES:
        if row.fixed:
            yield ListedResource(row.template, row.name, row.about, row.media_type)
        elif "{id}" in row.template:
            what = row.template.rpartition("/")[2]
            for name in names:
                yield ListedResource(row.template.replace("{id}", name), f"{name} {what}", row.about, row.media_type)


def _read_sessions(call: ToolCall, _name: str) -> str:
    described = [describe_session(session, call.client) for session in call.operate("ls").sessions]
    return json.dumps({"sessions": described, "note": UNTRUSTED}, ensure_ascii=False)


def _read_screen(call: ToolCall, name: str) -> str:
    return _mark(call.operate("screen", session=name, state=False).text)


def _read_log(call: ToolCall, name: str) -> str:
    return _mark(cut(call.operate("log", session=name, tail=LOG_LINES).text, LOG_CHARS)[0])


def _read_cast(call: ToolCall, name: str) -> str:
    from tmuxctl.control.recordings import casts, played

    # nothing is read of a session that the client may not look at
    call.operate("show", session=name)
    service, called = call.control.reach(name)
    file = StringIO()
    recording = played.record(service.machine, called, since=None, until=None, last_bytes=CAST_BYTES)
    casts.write_cast(recording, recording.events(), file)
    return file.getvalue()


def _read_profile(call: ToolCall, name: str) -> str:
    text: str = call.operate("profile_show", name=name).text
    return text


def _mark(printed: str) -> str:
    return f"{UNTRUSTED}\n\n{printed}"


RESOURCES: tuple[ResourceRow, ...] = (
    ResourceRow("tmuxctl://sessions", "All sessions with state and open question.", JSON, _read_sessions),
    ResourceRow("tmuxctl://sessions/{id}/screen", "What a person would see now.", TEXT, _read_screen),
    ResourceRow(
        "tmuxctl://sessions/{id}/log", f"The last {LOG_LINES} lines that the program printed.", TEXT, _read_log
    ),
    ResourceRow(
        "tmuxctl://sessions/{id}/cast", "What it printed last, as a recording (asciicast 3).", CAST, _read_cast
    ),
    ResourceRow("tmuxctl://profiles/{name}", "What is known of a program: prompts, questions.", YAML, _read_profile),
)
