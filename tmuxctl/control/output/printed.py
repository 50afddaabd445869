"""What a session printed since a point: `read` and `log`."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from tmuxctl.control.sessions import finding, records
from tmuxctl.errors import Conflict, Exited, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.operations import Call, current
from tmuxctl.results import Output, Pieces
from tmuxctl.terminal.input.paste import LastInput
from tmuxctl.terminal.tmux import layout, options, server
from tmuxctl.terminal.tmux import screen as screens
from tmuxctl.terminal.tmux.journal import Journal, JournalSlice, parse_cursor
from tmuxctl.terminal.tmux.server import Pane
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine


ECHO_BYTES = 1 << 14
"""Bytes of the output after an input searched for its echo."""

PART = 1 << 20
"""Bytes of a journal that are read at once."""

DATA_PART = 1 << 18
"""The same for a reader that is given them as they are."""


def read(machine: Machine, session: str, *, since: str | None, follow: bool, raw: bool) -> Output | Iterator[Output]:
    """Output after a cursor, or after the last input and its echo; of a program with an input box the last turn's answer."""
    pane, journal = find_with_journal(machine, session, since)
    if since is None and not follow and not raw:
        from tmuxctl.control.output import agent_answer

        if answer := agent_answer.read_last_answer(machine, pane):
            return answer
    start = 0 if since == "screen" else offset_of(pane, since)
    if start is None:
        last_input = read_last_input(machine, pane)
        if last_input and not (follow or raw):
            return _read_behind_echo(machine, pane, journal, last_input)
        start = last_input.offset if last_input else 0
    return _output(machine, pane, journal, start, follow=follow, raw=raw)


def read_since_input(machine: Machine, session: str) -> tuple[str, Output]:
    """The id of the last input, empty if nothing was ever typed, and what was printed since, without its echo. The cursor is
    behind all that was looked at."""
    pane, journal = find_with_journal(machine, session, None)
    last_input = read_last_input(machine, pane)
    end = finding.cursor_at(pane, journal.end())
    if last_input is None:
        output = _output(machine, pane, journal, 0, follow=False, raw=False)
        assert isinstance(output, Output)
        return "", output
    output = _read_behind_echo(machine, pane, journal, last_input)
    assert isinstance(output, Output)
    return last_input.id, changed(output, cursor=end) if journal.streams else output


def _read_behind_echo(
    machine: Machine, pane: Pane, journal: Journal, last_input: LastInput
) -> Output | Iterator[Output]:
    """What was printed since an input, without its echo. Where that has only begun nothing is told, and the cursor stays before
    it."""
    start = last_input.offset
    if journal.streams and not last_input.alternate:
        part = journal.read(start, ECHO_BYTES)
        count = 0 if part.truncated else _count_echo(pane, journal, last_input, part.data)
        if count and count == len(part.data):
            # what is printed by now may be the rest of the echo
            found = Output(pane.name, "", finding.cursor_at(pane, start + count if b"\n" in part.data else start))
            return Pieces(iter((found,))) if current().pieces else found
        start += count
    return _output(machine, pane, journal, start, follow=False, raw=False)


def _count_echo(pane: Pane, journal: Journal, last_input: LastInput, printed: bytes) -> int:
    """Bytes at the beginning of what was printed since an input that only show what was typed."""
    from tmuxctl.reading.answers import printed_answer

    token = pane.spec.get("marks", "")
    marked = token if token and finding.was_at_prompt(journal, token, last_input.offset) else None
    typed = printed_answer.TypedInput(
        last_input.typed, last_input.x, last_input.y, last_input.cols, last_input.rows, last_input.echo
    )
    return printed_answer.find_output_start(printed, typed, marked)


def log(
    machine: Machine, session: str, *, tail: int | None, follow: bool, raw: bool, stamped: bool = False
) -> Output | Iterator[Output]:
    """The whole journal, or the last lines of it; `stamped`: each line behind the time of day when it was printed."""
    if tail is not None and tail < 0:
        raise Usage(f"{tail} lines cannot be shown", reason="bad_number", hint="--tail 100")
    pane, journal = find_with_journal(machine, session, None)
    start = journal.start() if tail is None else _offset_of_last_lines(journal, tail)
    if stamped:
        from tmuxctl.control.output import timestamps

        found = timestamps.stamp_output(machine, pane, journal, start, follow=follow)
        return found if follow else Pieces(found) if current().pieces else join_pieces(found)
    return _output(machine, pane, journal, start, follow=follow, raw=raw)


def find_with_journal(machine: Machine, session: str, since: str | None) -> tuple[Pane, Journal]:
    """A session and its journal; one that was lost or killed still has its journal."""
    try:
        pane = finding.find_session(machine, session)
        return pane, finding.open_journal(machine, pane)
    except (NotFound, Unreachable, Exited) as error:
        if error.reason not in ("no_session", *finding.GONE):
            raise
        ended = _find_ended(machine, session, since)
        if ended is None:
            raise
        return ended


def _find_ended(machine: Machine, session: str, since: str | None) -> tuple[Pane, Journal] | None:
    """The newest session of this name that is lost or was killed; by its cursor if one is given."""
    incarnation = parse_cursor(since).incarnation if since not in (None, "screen") and since else ""
    home = machine.transport.home
    found = []
    for parent in (layout.SESSIONS, layout.ENDED_SESSIONS):
        for session_id, file in machine.transport.files(f"{home}/{parent}").items():
            spec = records.read_spec(machine, session_id, parent)
            if session in (spec.get("spec", {}).get("name"), session_id) and session_id.startswith(
                incarnation.partition(".")[0]
            ):
                found.append((file.modified, parent, session_id))
    if not found:
        return None
    _, parent, session_id = max(found)
    cols, rows = machine.settings.tmux_size.cols, machine.settings.tmux_size.rows
    facts = {"session_name": session, options.ID: session_id, options.INCARNATION: session_id[:8] + ".1"}
    values = facts | {"pane_dead": "1", "pane_width": str(cols), "pane_height": str(rows)}
    pane = server.parse_pane([values.get(field, "") for field in server.FIELDS])
    return server.require_pane(pane, session), Journal(machine.transport, f"{home}/{parent}/{session_id}")


def offset_of(pane: Pane, since: str | None) -> int | None:
    """The offset a cursor means in this session; Conflict `cursor_lost` for one of another life of it."""
    if since is None or since == "screen":
        return None
    cursor = parse_cursor(since)
    if cursor.incarnation != pane.incarnation:
        raise Conflict(
            f"the cursor {since} belongs to an earlier run of {pane.name}",
            reason="cursor_lost",
            hint=f"read without it: tmuxctl read {pane.name}",
        )
    return cursor.offset


def read_last_input(machine: Machine, pane: Pane) -> LastInput | None:
    """The last input of a session, whichever process sent it."""
    try:
        (remembered,) = machine.io.look(pane.name, (options.INPUT,)).values
    except TmuxctlError as error:
        if error.reason not in ("no_session", "no_server"):
            raise
        return None
    return LastInput.parse(remembered)


def _output(
    machine: Machine, pane: Pane, journal: Journal, start: int, *, follow: bool, raw: bool
) -> Output | Iterator[Output]:
    pieces = current().pieces
    if follow and raw and pieces == "data":
        return _follow_data(machine, pane, journal, start, current())
    if follow:
        return follow_output(machine, pane, journal, start, raw, current())
    if pieces:
        return Pieces(_read_pieces(pane, journal, start, text=not raw or pieces == "text", data=raw))
    found = join_pieces(_read_pieces(pane, journal, start, text=True, data=False))
    data = journal.read(start, parse_cursor(found.cursor).offset - start).data if raw else b""
    return changed(found, data=data)


def join_pieces(pieces: Iterator[Output]) -> Output:
    """One output of many: their texts one after the other, and the last cursor."""
    session, text, truncated, missing, cursor = "", "", False, 0, ""
    for piece in pieces:
        # CPython lengthens a string in place that nothing else refers to: there is never a second one of this size
        text += piece.text
        session, truncated, cursor = piece.session, truncated or piece.truncated, piece.cursor
        missing += piece.missing_bytes
    return Output(session, text, cursor, truncated, missing_bytes=missing)


def _read_pieces(pane: Pane, journal: Journal, start: int, *, text: bool, data: bool) -> Iterator[Output]:
    """The output from an offset to the present end, in pieces; the last piece is what is left in the line filter."""
    from tmuxctl.reading.text.lines import Lines

    pieces: list[str] = []
    lines = Lines(pane.cols, pane.rows, sink=pieces.append, tmux=pane.tmux)
    cursor, position = "", start
    for part in read_parts(journal, start):
        if text:
            lines.feed(part.data)
        cursor = finding.cursor_at(pane, part.end)
        shown = screens.strip_escapes("".join(pieces))
        pieces.clear()
        missing, position = count_missing(journal, part, position), part.end
        yield Output(pane.name, shown, cursor, part.truncated, missing_bytes=missing, data=part.data if data else b"")
    lines.finish()
    yield Output(pane.name, screens.strip_escapes("".join(pieces)), cursor)


def read_parts(journal: Journal, start: int) -> Iterator[JournalSlice]:
    """The journal from an offset to its present end, in slices of at most PART bytes; at least one slice."""
    if not journal.streams:
        yield journal.read(start)
        return
    stop = journal.end()
    while True:
        part = journal.read(start, max(0, min(PART, stop - start)))
        yield part
        start = part.end
        if not part.data or start >= stop:
            return


def count_missing(journal: Journal, part: JournalSlice, position: int) -> int:
    """How many bytes are missing of those that were asked for from a position on; 0 where that is not known."""
    # what stands in for a journal counts rows
    return part.count_missing(position) if journal.streams else 0


def printed_text(data: bytes, pane: Pane) -> str:
    """A stretch of output as the lines that a terminal showed, without control characters."""
    from tmuxctl.reading.text.lines import Lines

    lines = Lines(pane.cols, pane.rows, tmux=pane.tmux)
    lines.feed(data)
    return screens.strip_escapes(lines.text())


def follow_output(
    machine: Machine, pane: Pane, journal: Journal, start: int, raw: bool, call: Call
) -> Iterator[Output]:
    """Output as it comes, by whole lines, until the program ends, the session is gone, or the call is cancelled."""
    from tmuxctl.reading.text.lines import Lines

    pieces: list[str] = []
    position = start
    lines = Lines(pane.cols, pane.rows, sink=pieces.append, tmux=pane.tmux)
    with closing(_follow_slices(machine, pane, journal, start, call, PART)) as slices:
        for part, last in slices:
            missing, position = count_missing(journal, part, position), part.end
            cut = len(part.data) if raw else part.data.rfind(b"\n") + 1
            lines.feed(part.data[:cut])
            if cut or last:
                lines.finish()
                lines = Lines(pane.cols, pane.rows, sink=pieces.append, tmux=pane.tmux).go_on(lines)
            if cut or pieces or part.truncated:
                # a line without end comes in pieces, each without what may still change
                text = screens.strip_escapes("".join(pieces))
                pieces.clear()
                yield Output(
                    pane.name,
                    text + "\n" if text and part.data[:cut].endswith(b"\n") else text,
                    finding.cursor_at(pane, part.end - (len(part.data) - cut)),
                    part.truncated,
                    complete=False,
                    missing_bytes=missing,
                    data=part.data if raw else b"",
                )
            lines.feed(part.data[cut:])


def _follow_data(machine: Machine, pane: Pane, journal: Journal, start: int, call: Call) -> Iterator[Output]:
    """The bytes of the output as they come, without their text, which takes most of the time, and in parts of which many may
    be held for slow readers."""
    position = start
    with closing(_follow_slices(machine, pane, journal, start, call, DATA_PART)) as slices:
        for part, _ in slices:
            missing, position = count_missing(journal, part, position), part.end
            if part.data or part.truncated:
                cursor = finding.cursor_at(pane, part.end)
                yield Output(
                    pane.name, "", cursor, part.truncated, complete=False, missing_bytes=missing, data=part.data
                )


def _follow_slices(
    machine: Machine, pane: Pane, journal: Journal, start: int, call: Call, most: int
) -> Generator[tuple[JournalSlice, bool], None, None]:
    """The journal from an offset on, and on as it grows, in slices of at most so many bytes, each with whether it is the last;
    that one is empty. Without a last one if the session is gone; the caller's giving up is raised."""
    with closing(machine.transport.watch([journal.folder], pane.pid or None)) as watch:
        while True:
            finished = journal.finished() or (pane.dead and not pane.pid)
            part = journal.read(start, most)
            start = part.end
            last = finished and not part.data
            yield part, last
            if last:
                return
            # also where there is more: who has gone away would have the rest of 64 MB made into text
            call.check()
            if part.data:
                continue
            if not watch.wait(machine.timing.wait.follow_seconds) and _is_gone(machine, pane):
                return


def _is_gone(machine: Machine, pane: Pane) -> bool:
    try:
        if server.read_pane(machine.io, pane.name).id == pane.id:
            return False
    except (NotFound, Unreachable) as error:
        if error.reason == "backend_timeout":
            raise
    # it may have another name by now
    return all(one.id != pane.id for one in finding.list_panes(machine))


def _offset_of_last_lines(journal: Journal, count: int) -> int:
    """The offset at which the last `count` lines begin, as far as they are kept."""
    extent = journal.extent()
    if not journal.streams:
        from tmuxctl.terminal.panes.screen_journal import ROW

        return max(0, extent.end // ROW - count + 1) * ROW
    position, ended, left = extent.end, False, count
    while position > extent.start:
        begin = max(extent.start, position - PART)
        part = journal.read(begin, position - begin)
        # where bytes are missing the journal reads as many behind the position, and these were searched before
        size = len(part.data) - max(0, part.end - position)
        data = part.data[:size] if ended else part.data[:size].rstrip(b"\r\n")
        ended = ended or bool(data)
        if ended and not count:
            return position - size + len(data)
        at = len(data)
        while left and (at := data.rfind(b"\n", 0, at)) >= 0:
            left -= 1
        if at >= 0 and ended:
            return position - size + at + 1
        position = begin
    return extent.start
