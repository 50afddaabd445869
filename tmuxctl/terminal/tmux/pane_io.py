"""The narrow way to a pane: observe it, keep options of ours for it, type into it.

Everything else in here asks for fields and gives values; only this module, and that of panes of other servers
(`terminal/panes/foreign`), know by which commands of tmux that is done.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from enum import Enum
from functools import lru_cache, reduce
from typing import TYPE_CHECKING

from tmuxctl.errors import Failed, NotFound, Unreachable
from tmuxctl.terminal.tmux import layout, options
from tmuxctl.terminal.tmux.journal import Journal
from tmuxctl.terminal.tmux.timeline import Timeline
from tmuxctl.timing import TIMING
from tmuxctl.transport.base import Command, Guard, GuardRefused, Transport
from tmuxctl.value import NamedTuple, Value, changed

if TYPE_CHECKING:
    from tmuxctl.terminal.tmux.server import Pane

READS_HISTORY = "person_reads_history"
"""The field that tells whether a person may be reading the history."""


def session_target(name: str) -> str:
    """How tmux is told exactly this session's pane: `=NAME:` (facts: a bare name matches by prefix)."""
    return f"={name}:"


@lru_cache(maxsize=256)
def field_format(field: str) -> str:
    """The format that asks for a field of a session of ours."""
    # tmux 3.2a dies of a time that belongs to no session, as when the target is missing (format_find, measured)
    return f"#{{?session_name,#{{{field}}},0}}" if field.endswith("_activity") else f"#{{{field}}}"


class Comparison(Enum):
    """How a field is compared with a value, as the operator of tmux's formats; TRUE: it is neither empty nor 0, LACKS: it does
    not hold the value."""

    TRUE, DIFFERS, HOLDS, LACKS, ABOVE = "", "!=", "m", "?m", "e|>"


class FieldTest(Value):
    """One comparison of a field with a value of ours, in which nothing needs quoting in a format."""

    field: str
    comparison: Comparison = Comparison.TRUE
    value: str = ""

    def format(self, field: str) -> str:
        """The tmux condition; `field` is the format that asks for the field."""
        if self.comparison is Comparison.TRUE:
            return field
        if self.comparison is Comparison.HOLDS:
            return f"#{{m:*{self.value}*,{field}}}"
        if self.comparison is Comparison.LACKS:
            return f"#{{?#{{m:*{self.value}*,{field}}},0,1}}"
        return f"#{{{self.comparison.value}:{field},{self.value}}}"

    def holds(self, text: str) -> bool:
        """Whether the field holds it, where its value is known: `text`."""
        if self.comparison is Comparison.ABOVE:
            return text.isdecimal() and int(text) > int(self.value)
        if self.comparison in (Comparison.HOLDS, Comparison.LACKS):
            return (self.value in text) is (self.comparison is Comparison.HOLDS)
        return text != self.value if self.comparison is Comparison.DIFFERS else text not in ("", "0")


Condition = Sequence[FieldTest]
"""Holds if every test does."""

Reasons = Mapping[str, Condition]
"""What forbids a change: conditions by the words for them."""


class Looked(NamedTuple):
    """What one look showed: the values of fields, and the rows that each capture printed, all from one instant."""

    values: list[str]
    captures: list[bytes]


class Changed(Value):
    """What became of a change: the reasons against it, and the values of the fields that were asked for, from the moment
    before anything was typed; none of a change that was not made. `offset` is how far the journal had come then."""

    reasons: Collection[str]
    values: Sequence[str]
    offset: int | None = None


class PaneIO:
    """The sessions of one tmux server, as far as `transport` reaches it. A field is a variable of tmux (tmux(1), FORMATS) or
    an option of ours."""

    formats: Mapping[str, str] = {READS_HISTORY: "#{&&:#{pane_in_mode},#{session_attached}}"}
    """The formats that ask for fields with a meaning of their own."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport
        self.listed: dict[tuple[str, ...], Pane | None] = {}
        """The panes as they were last listed, by the values of `server.FIELDS` they were read from."""

    def read_known(self) -> Mapping[str, str]:
        """The fields whose values are known without tmux."""
        return {}

    def target(self, name: str) -> str:
        """How tmux is told a session's pane."""
        return session_target(name)

    def format_field(self, field: str) -> str:
        """The format that asks for a field."""
        return self.format_fields([field])[0]

    def format_fields(self, fields: Iterable[str]) -> list[str]:
        """The formats that ask for these fields."""
        own = self.formats
        return [own[field] if field in own else field_format(field) for field in fields]

    def list_values(self, fields: Sequence[str]) -> list[list[str]]:
        """The values of these fields for every pane of the server."""
        end = self.transport.word()
        listing = ("list-panes", "-a", "-F", "".join(self.format_field(field) + end for field in fields))
        try:
            printed = self.transport.run([listing]).decode(errors="replace")
        except NotFound as error:
            if error.reason != "no_sessions":
                raise
            return []
        return [row.split(end) for row in printed.split(f"{end}\n")[:-1]]

    def look(
        self, name: str, fields: Sequence[str], captures: Sequence[Sequence[str]] = (), *, timeout: float = 8.0
    ) -> Looked:
        """The values of these fields of a session, and its rows by the flags of each `capture-pane`: one command list. The
        values are empty if there is no such session, unless rows are asked for: then NotFound."""
        query, target = FieldQuery(self, fields), self.target(name)
        commands, end = [query.command(target)], ("display-message", "-p", query.end)
        for number, flags in enumerate(captures):
            commands += [*([end] if number else []), ("capture-pane", "-p", *flags, "-t", target)]
        told, *rows = self.transport.run(commands, timeout=timeout).split(f"{query.end}\n".encode())
        return Looked(query.read(told), rows if captures else [])

    def change(
        self,
        name: str,
        values: Mapping[str, str | None],
        *,
        unless: Reasons | None = None,
    ) -> Collection[str]:
        """Set options of a session, or else return the reasons against it, as `change_and_look`."""
        return self.change_and_look(name, values, unless=unless).reasons

    def change_and_look(
        self,
        name: str,
        values: Mapping[str, str | None],
        typing: Sequence[Command] = (),
        *,
        fields: Sequence[str] = (),
        buffer: tuple[str, bytes] | None = None,
        unless: Reasons | Callable[[], Reasons] | None = None,
        clear: Mapping[str, str] | None = None,
        journal: Journal | None = None,
        timeout: float = 8.0,
    ) -> Changed:
        """Set options of a session and type into it, or else tell the reasons against it; then nothing is done.

        `fields` are asked for in the same list, before anything is typed. A value is a format
        (`paste.LastInput.remember`), None unsets the option; an id is added to those acknowledged before. The commands that
        type stand without their target, and `buffer` as of `Transport.run`. Where fields have the values of `clear` there
        is no reason: one comparison, a third of the time that testing each takes. Reasons that a function gives are made
        only where they are tested. With a `journal` its end is told, and stands in the values where `segments.END` does.
        """
        target = self.target(name)
        commands: list[Command] = []
        for option, value in values.items():
            kept = f"#{{=-240:{option}}} {value}" if option == options.ACKNOWLEDGED else value
            rest = ("-u", "-t", target, option) if kept is None else ("-F", "-t", target, option, kept)
            commands.append(("set-option", *rest))
        query = FieldQuery(self, fields) if fields else None
        if query:
            commands.append(query.command(target))
        # typing last, as the program wakes at once and takes the processor
        commands += [(verb, "-t", target, *words) for verb, *words in typing]

        def run(commands: Sequence[Command]) -> Changed:
            if journal is None:
                return read_change(query, self.transport.run(commands, buffer=buffer, timeout=timeout))
            end, printed = self.transport.run_at_end(journal.folder, commands, buffer=buffer, timeout=timeout)
            return changed(read_change(query, printed), offset=end)

        if clear is not None:
            found = " ".join(self.format_fields(clear))
            is_clear = Guard(target, f"#{{==:{found},{' '.join(clear.values())}}}")
            try:
                return run([is_clear, *commands])
            except GuardRefused:
                pass
        if callable(unless):
            unless = unless()
        if unless and typing:
            # no person reads the history (else it is refused): leave copy mode, which would swallow the input
            commands.insert(0, ("copy-mode", "-q", "-t", target))
        if unless:
            commands.insert(0, self.make_guard(name, unless))
        try:
            return run(commands)
        except GuardRefused as refused:
            return Changed(self.take_back(buffer, refused, timeout), ())

    def take_back(self, buffer: tuple[str, bytes] | None, refused: GuardRefused, timeout: float) -> Collection[str]:
        """Remove what was to be typed from the paste buffers, and return the reasons against it."""
        if buffer:
            self.transport.run([("delete-buffer", "-b", buffer[0])], timeout=timeout)
        return {word.removesuffix("=1") for word in refused.answer.split() if word.endswith("=1")}

    def open_journal(self, pane: Pane, folder: str) -> Journal:
        """What the pane of the session in `folder` printed."""
        return Journal(self.transport, folder)

    def open_timeline(self, pane: Pane) -> Timeline:
        """When what happened in the session of a pane."""
        return Timeline(self.transport, f"{self.transport.home}/{layout.SESSIONS}/{pane.id}")

    def nudge(self) -> None:
        """Make tmux look which programs have ended: 3.3a overlooks an end now and then, until another process of its own
        ends (measured). It may overlook the end of that one too, so that `run-shell` is never answered; the next call
        makes it see both."""
        try:
            self.transport.run([("run-shell", "true")], timeout=TIMING.tmux.nudge_seconds)
        except Unreachable as error:
            if error.reason != "backend_timeout":
                raise

    def make_guard(self, name: str, unless: Reasons) -> Guard:
        """The guard that ends a list if a reason holds, and answers which."""
        known = self.read_known()
        conditions = {
            reason: _join("&&", [self._format_test(test, known) for test in tests]) for reason, tests in unless.items()
        }
        answer = " ".join(f"{reason}=#{{?{condition},1,0}}" for reason, condition in conditions.items())
        return Guard(self.target(name), f"#{{?{_join('||', conditions.values())},0,1}}", answer)

    def _format_test(self, test: FieldTest, known: Mapping[str, str]) -> str:
        if test.field in known:
            # a bare 1 would be taken for the name of a variable
            return f"#{{==:{test.holds(known[test.field]):d},1}}"
        return test.format(self.format_field(test.field))


class FieldQuery:
    """The question for some fields of a pane, one command of a list, and its answer."""

    def __init__(self, io: PaneIO, fields: Sequence[str]) -> None:
        # a program chooses its title, and others the options: only what they cannot guess may stand between values
        self.end = io.transport.word()
        self._io, self._fields, self._known = io, fields, io.read_known()

    def command(self, target: str) -> Command:
        """The command that asks tmux for those that it alone knows."""
        asked = self._io.format_fields([field for field in self._fields if field not in self._known])
        return ("display-message", "-p", "-t", target, self.end.join(asked) + self.end)

    def read(self, told: bytes) -> list[str]:
        """The values, from what was printed up to the last `end`."""
        values = iter(told.decode(errors="replace").split(self.end))
        return [self._known[field] if field in self._known else next(values, "") for field in self._fields]


def read_change(query: FieldQuery | None, printed: bytes) -> Changed:
    """What became of a change that was made, from all that its list printed. Failed if that is more than was asked for."""
    told, _, rest = printed.partition(f"{query.end}\n".encode()) if query else (b"", b"", printed)
    refuse_output(rest)
    return Changed((), query.read(told) if query else ())


def _join(operator: str, conditions: Iterable[str]) -> str:
    return reduce(lambda first, second: f"#{{{operator}:{first},{second}}}", conditions)


def refuse_output(printed: bytes) -> None:
    """Failed if tmux answered something to a list that prints nothing."""
    if printed.strip():
        name = ascii(printed[:80].decode(errors="replace"))
        raise Failed(f"tmux answered {name} to a write", reason="tmux")
