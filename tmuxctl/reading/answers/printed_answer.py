r"""What a program wrote in a turn, byte for byte: its output without echo, prompt and continuation prompts.

Where shell marks say what is output, that is taken. Else the echo of what was typed is followed through the stretch to
the newline that accepted each line, and the prompt that ends the stretch is cut off, once: output that only looks like
it stays. Line editors say much of this themselves: nearly all switch bracketed paste off when they accept a line and on
before they draw the next prompt.

`text` is all that the program printed but its last newline: `a\n` and `a` both are `a`, and what printed nothing or
only a newline is empty. Blanks and tabs stay as they are, colours and titles go, `\r\n` is `\n`; a line written over
(progress bars) is given as it stood in the end, a stretch drawn all over the screen as it was last seen. What a program
asks at the end is output like the rest. Blank rows it prints before its prompt are taken for output, too, unless the
profile's `answer.strip` holds a pattern that an empty line matches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tmuxctl.reading.answers.prompts import Prompts
from tmuxctl.reading.text.echo import strip_invisible, text_before
from tmuxctl.reading.text.escapes import QUIET, strip_escapes
from tmuxctl.reading.text.lines import Lines
from tmuxctl.reading.text.marks import ShellMark, find_marks
from tmuxctl.vocabulary import Detail, InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import AnswerRules, Profile


class TypedInput(NamedTuple):
    """What was typed, as one text without its last Enter; where the cursor stood then, counted from 0; the terminal's
    size; who echoes: `tty` (the terminal), `editor` (the program) or `none`; and the version of tmux, None if unknown."""

    typed: bytes
    x: int
    y: int
    cols: int
    rows: int
    echo: str
    tmux: tuple[int, int] | None = None


class TurnEnd(NamedTuple):
    """What the program waits for behind its output, as a state's kind and detail: a prompt, more of the same input, or an
    answer to what it asks, which is output like the rest."""

    kind: InputKind | None
    detail: str | None = None


LINE = re.compile(r"^[^\n]*$", re.MULTILINE)

UNRUN = TurnEnd(InputKind.CONTINUATION, Detail.SHELL)
"""A shell that wants more of a command has run nothing of it."""


class PrintedAnswer(NamedTuple):
    """The text; `complete` is False where more was written, or will be, than it holds: the program keeps it in the
    alternate screen, the command still runs, or not even an echo is there yet. `status` is the shell command's exit
    status where marks told it, `source` is `marks` or `screen`."""

    text: str
    complete: bool
    status: int | None
    source: str


def cut_answer(
    data: bytes,
    last_input: TypedInput,
    *,
    prompt_before: str | None,
    token: str | None = None,
    profile: Profile | None = None,
    end: TurnEnd | None = None,
    raw: bool = False,
) -> PrintedAnswer:
    """What was written in answer to an input.

    `data` is all that was printed from just before the input until the turn ended; `prompt_before` what stood left of
    the cursor then, None if unknown; `token` that of the session's shell marks; `end` what it waits for now, None if
    unknown. With `raw` the text is all of `data` as it came, echo, prompts and escape sequences too.
    """
    prompts = Prompts(prompt_before, profile, end.kind if end else None)
    shell_marks = find_marks(data, token) if token else []
    if any(mark.letter in "CD" for mark in shell_marks):
        pieces, complete, status = _cut_by_marks(data, shell_marks, last_input, prompts)
        complete, source = complete or (end is not None and not prompts.asks), "marks"
    elif end == UNRUN and b"\n" not in last_input.typed:
        pieces, complete, status, source = [], True, None, "screen"
    else:
        unseen = not data and last_input.typed and last_input.echo != "none"
        pieces, complete, status = _cut_by_echo(data, last_input, prompts), not unseen, None
        source = "screen"
    if raw:
        return PrintedAnswer(data.decode("utf-8", "replace"), complete, status, source)
    texts = [
        strip_escapes(piece, last_input.cols, last_input.rows, y=last_input.y, tmux=last_input.tmux) for piece in pieces
    ]
    text = "".join(text.text for text in texts).removesuffix("\n")
    if profile:
        text = _apply_rules(text, profile.answer)
    return PrintedAnswer(text, complete and all(text.whole for text in texts), status, source)


def _cut_by_marks(
    data: bytes, shell_marks: list[ShellMark], last_input: TypedInput, prompts: Prompts
) -> tuple[list[bytes], bool, int | None]:
    """The stretches between C and D, whether the last command has ended, and its exit status."""
    pieces: list[bytes] = []
    status: int | None = None
    begin: int | None = None
    behind = 0
    for mark in shell_marks:
        if mark.letter == "C":
            begin = mark.end
        elif mark.letter == "D":
            if begin is None:
                # The shell could not read the line, and said so, or a program it ran before has ended now.
                pieces += _cut_by_echo(data[behind : mark.start], last_input, None)
            else:
                # zsh tells of the end only behind its sign of a missing newline
                pieces.append(SIGN.sub(b"", data[begin : mark.start]))
            begin, status = None, mark.status
        behind = mark.end
    if begin is None:
        return pieces, True, status
    kept = _remove_prompt(data[begin:], last_input, prompts)
    return [*pieces, kept], len(kept) < len(data) - begin, None


def _apply_rules(text: str, rules: AnswerRules) -> str:
    """The text between what the profile names as its beginning and its end, without the lines it names."""
    if rules.begin and (found := re.search(rules.begin, text, re.MULTILINE)):
        text = text[found.end() :]
    if rules.until and rules.until != "prompt" and (found := re.search(rules.until, text, re.MULTILINE)):
        text = text[: found.start()]
    for pattern in rules.strip:
        strip = re.compile(pattern)
        if strip.search(""):
            text = text.rstrip("\n")
        kept = ""
        # line by line: a list of all would take many times what the text takes
        for line in LINE.finditer(text):
            if not line[0] or not strip.search(line[0]):
                kept += "\n" + line[0]
        text = kept[1:]
    return text


# Following the echo

ON, OFF = b"\x1b[?2004h", b"\x1b[?2004l"

NEWLINE = re.compile(rb"\r*\n")
MODES = re.compile(rb"(?:\x1b\[[?>=](?!2004|47[hl]|104[79])[0-9;]*[a-zA-Z]|\x1b[=>]|\r)*")
ACCEPTED = re.compile(rb"\n\r*(?:\x1b\[[0-9;:<=>?]*[ -/]*[@-~]|\x1b[=>]|[\r\x0f])*\Z")
UPWARDS = re.compile(rb"\x1b\[[0-9]*[AF]|\x1bM|\x1b\[[0-9;]*[Hfd]")

FISH = re.compile(rb"\n(?:\x1b\[[0-9;]*m\x0f?)+\x1b\]0;[^\x07\n]*\x07(?:\x1b\[[0-9;]*m\x0f?)+\r")
"""What fish prints between the line it accepted and the command's output: a title, then the plain colours."""

COLOURS = rb"(?:\x1b\[[0-9;]*m\x0f?)"
EDGE = COLOURS + rb"+[^\s\x1b]{1,4}" + COLOURS + rb"+ {8,}\r[^\n\r ]{0,4} *\r"
SIGN = re.compile(EDGE + rb"\r*\Z")
DRAWN = re.compile(
    rb"(?:" + EDGE + rb"|\r)\r*" + COLOURS + rb"{2,}\x1b\[J(?=(?:[^\n]*\n){0,4}[^\n]*\Z)"
    rb"|" + EDGE + rb"(?=(?:[^\n]*\n){0,4}[^\n]*\Z)"
    rb"|\x1b\[1G\x1b\[0?J(?=[^\n]*\Z)"
)
"""What a line editor prints before its prompt, right behind the output: zsh and fish their sign of a missing newline,
blanks to the edge that wrap if there is one, and back; zsh then its reset, node its erasure of the row."""

LONGEST_ROW = 1 << 16
"""Bytes of a row's end that are looked at for a prompt."""

ROWS = 64
"""Rows in which an echo is looked for; a few more for each row the typed text takes."""

MISSED = 8
"""Typed lines without an echo (a program read them as its input) after which the rest is not looked for."""


def _cut_by_echo(data: bytes, last_input: TypedInput, prompts: Prompts | None) -> list[bytes]:
    """The stretches of output between the echoes of the typed lines and the last prompt; None: there is none."""
    lines = re.split(r"\r\n|\r|\n", last_input.typed.decode("utf-8", "replace"))
    if last_input.echo == "none":
        return [_remove_prompt(data, last_input, prompts)]
    straight = _find_plain_echo_end(data, lines[0])
    if (off := _find_switch_off(data, straight)) is not None:
        return _cut_bracketed(data, off, lines, last_input, prompts)
    return _cut_line_by_line(data, straight, lines, last_input, prompts)


def find_output_start(data: bytes, last_input: TypedInput, token: str | None = None) -> int:
    """How many of the bytes printed since an input of one line are its echo; 0 where that is not plain to see.

    `token` is that of the shell's marks, if the input was given to a shell that marks its commands.
    """
    if token and (begun := next((mark for mark in find_marks(data, token) if mark.letter == "C"), None)):
        return begun.end
    line = last_input.typed.decode("utf-8", "replace")
    if not line or last_input.echo == "none" or re.search(r"[\r\n]", line):
        return 0
    # whoever writes the journal may have been behind when the line was typed
    late = _find_late_prompt_end(data, line, last_input)
    straight = _find_plain_echo_end(data, line, late)
    off = _find_switch_off(data, straight)
    if off is not None:
        return _find_output_behind(data, 0, off)
    if straight is not None:
        return straight
    is_begun = _is_begun_echo(data, line, last_input) or _is_begun_behind_prompt(data, line, last_input)
    return len(data) if is_begun else 0


def _find_late_prompt_end(data: bytes, line: str, last_input: TypedInput) -> int:
    """Where the line begins if the prompt is there, too, in whose row it was typed, which its width tells; 0 where it is not."""
    at = data.find(line.encode())
    if at <= 0 or not last_input.x:
        return 0
    prompt = Lines(last_input.cols, last_input.rows, tmux=last_input.tmux)
    prompt.feed(data[data.rfind(b"\n", 0, at) + 1 : at])
    return at if prompt.column == last_input.x else 0


def _is_begun_echo(data: bytes, line: str, last_input: TypedInput) -> bool:
    """Whether all that is there yet is the typed line or its beginning: an editor draws it before it takes the Enter."""
    if b"\n" in data:
        return False
    lines = Lines(last_input.cols, last_input.rows, x=last_input.x, y=last_input.y, tmux=last_input.tmux)
    lines.feed(data)
    return strip_invisible(line).startswith(strip_invisible(lines.text()))


def _is_begun_behind_prompt(data: bytes, line: str, last_input: TypedInput) -> bool:
    """The same, with the prompt before it."""
    shown = Lines(last_input.cols, last_input.rows, tmux=last_input.tmux)
    shown.feed(data[data.rfind(b"\n") + 1 :])
    begun = shown.text()[last_input.x :]
    return bool(last_input.x and begun) and strip_invisible(line).startswith(strip_invisible(begun))


def _find_switch_off(data: bytes, straight: int | None) -> int | None:
    """Where the editor that took the input switched bracketed paste off; None where the echo is a plain one."""
    on, off = data.find(ON), data.find(OFF)
    edited = off >= 0 and not 0 <= on < off
    return off if edited and (straight is None or straight >= off or _only_modes_between(data, straight, off)) else None


def _find_plain_echo_end(data: bytes, line: str, at: int = 0) -> int | None:
    """Where output begins if the echo is nothing but the line itself, from there on, and a newline."""
    end = _match_row(data, at, line)
    if end is None:
        return None
    following = data.find(b"\n", end)
    # node shows what a line would give below it, goes back up, and may not have accepted it yet
    return None if UPWARDS.search(data, end, following if following >= 0 else len(data)) else end


def _match_row(data: bytes, at: int, line: str) -> int | None:
    """Where the next row begins, if this one is exactly the line."""
    begin = line.encode()
    found = NEWLINE.match(data, at + len(begin)) if data.startswith(begin, at) else None
    return found.end() if found else None


def _only_modes_between(data: bytes, begin: int, end: int) -> bool:
    """Whether nothing but switches of the terminal stands between two points."""
    found = MODES.match(data, begin, end)
    return found is not None and found.end() == end


# Editors that switch bracketed paste off and on


def _cut_bracketed(
    data: bytes, off: int, lines: list[str], last_input: TypedInput, prompts: Prompts | None
) -> list[bytes]:
    pieces: list[bytes] = []
    begin = scan = _find_output_behind(data, 0, off)
    lines_left = lines[1:]
    while lines_left:
        on = data.find(ON, scan)
        off = data.find(OFF, on)
        if on < 0 or off < 0:
            break
        scan = off + len(OFF)
        if _ends_with_typed(data[on:off], lines_left[0], last_input):
            pieces.append(_remove_drawn_prompt(data[begin:on]))
            begin = scan = _find_output_behind(data, on, off)
            del lines_left[0]
    return [*pieces, _remove_prompt(data[begin:], last_input, prompts)]


def _find_output_behind(data: bytes, start: int, off: int) -> int:
    """Where output begins behind the switch at `off`; the newline of the accepted line comes before or behind it."""
    at = off + len(OFF)
    if ACCEPTED.search(data, max(start, off - 200), off):
        found = MODES.match(data, at)
    else:
        found = re.compile(MODES.pattern + rb"\n").match(data, at)
    return found.end() if found else at


def _ends_with_typed(stretch: bytes, line: str, last_input: TypedInput) -> bool:
    """Whether a stretch, drawn by an editor, ends with the typed line."""
    lines = Lines(last_input.cols, last_input.rows, tmux=last_input.tmux)
    lines.feed(stretch)
    return _ends_with(lines.text(), strip_invisible(line))


def _remove_drawn_prompt(data: bytes) -> bytes:
    """Output without the prompt an editor drew behind it, as far as the editor's own signs tell."""
    found = [one.start() for one in DRAWN.finditer(data, max(0, len(data) - 4096))]
    while len(found) > 1 and data[found[-2] : found[-1]] == data[found[-1] :]:
        # after a new size it is drawn again
        del found[-1]
    return data[: found[-1]] if found else data


# Others: line by line


def _cut_line_by_line(
    data: bytes, at: int | None, lines: list[str], last_input: TypedInput, prompts: Prompts | None
) -> list[bytes]:
    if at is None:
        at = _find_echo_end(data, lines[0], last_input)
    shapes = prompts or Prompts(None, None)
    pieces: list[bytes] = []
    owed = missed = 0
    for line in lines[1:]:
        typed_ahead = _match_row(data, at, line) if last_input.echo == "tty" else None
        if typed_ahead:
            # the terminal echoes all that is typed at once, before the program has asked for the second line
            owed, at = owed + 1, typed_ahead
            continue
        echo = _find_next_echo(data, at, line, shapes, last_input)
        if echo is None:
            missed += 1
            if missed > MISSED:
                break
            continue
        pieces.append(data[at : echo.start] + echo.kept.encode())
        at = echo.end
    last = _remove_prompt(data[at:], last_input, prompts)
    if owed:
        last = shapes.remove_prompts(last.decode("utf-8", "surrogateescape"), owed).encode("utf-8", "surrogateescape")
    return [*pieces, last]


def _find_echo_end(data: bytes, line: str, last_input: TypedInput) -> int:
    """Where output begins: behind the newline that was written when the cursor stood right behind the typed line. 0 if
    the line is not seen.

    An editor may write a newline there and come back (node's previews, fish's wrapped lines): the last one counts.
    """
    if found := FISH.search(data, 0, 65536):
        return found.end()
    wanted = strip_invisible(line)
    lines = Lines(last_input.cols, last_input.rows, x=last_input.x, y=last_input.y, tmux=last_input.tmux)
    end = at = loose = 0
    for number in range(ROWS + 8 * (len(line) // last_input.cols)):
        following = data.find(b"\n", at)
        if following < 0 or (end and not UPWARDS.search(data, at, following)):
            break
        lines.feed(data[at:following].rstrip(b"\r"))
        if _ends_with(lines.left(last_input.y), wanted):
            end = following + 1
        elif not number and _ends_with(lines.text(), wanted):
            loose = following + 1
        lines.feed(b"\r\n")
        at = following + 1
    return end or loose


class _Echo(NamedTuple):
    """A later line's echo: its row begins at `start`, `kept` is output on that row before the prompt, output goes on at
    `end`."""

    start: int
    end: int
    kept: str


def _find_next_echo(data: bytes, begin: int, line: str, prompts: Prompts, last_input: TypedInput) -> _Echo | None:
    """The first row from `begin` on that is a prompt and the typed line."""
    wanted, exact = strip_invisible(line), line.encode()
    at = begin
    while (following := data.find(b"\n", at)) >= 0:
        row = data[at:following].rstrip(b"\r")
        if exact in row or b"\x1b" in row or b"\r" in row:
            text = strip_escapes(row, last_input.cols, last_input.rows, tmux=last_input.tmux).text
            if _ends_with(text, wanted):
                kept = prompts.find_output_before_echo(_text_before(text, line))
                if kept is not None:
                    return _Echo(at, following + 1, kept)
        at = following + 1
    return None


def _text_before(text: str, line: str) -> str:
    """What stands before the typed line, blanks not counted where editors show them in their own way."""
    if text.endswith(line):
        return text[: len(text) - len(line)]
    return text_before(text, len(strip_invisible(line)))


def _remove_prompt(data: bytes, last_input: TypedInput, prompts: Prompts | None) -> bytes:
    """Output without the prompt that ends it."""
    if prompts is None:
        return data
    if prompts.asks:
        return _remove_last_prompt(data, len(data), last_input, prompts)
    on = data.rfind(ON)
    waiting = on >= 0 and data.find(OFF, on) < 0
    end = on if waiting else len(data)
    kept = _remove_drawn_prompt(data[:end])
    if len(kept) < end or (
        waiting and strip_escapes(data[on:], last_input.cols, last_input.rows, tmux=last_input.tmux).text.strip()
    ):
        return kept
    return _remove_last_prompt(data, end, last_input, prompts)


def _remove_last_prompt(data: bytes, end: int, last_input: TypedInput, prompts: Prompts) -> bytes:
    """Output up to the prompt that its last row ends with; drawn again, as after a new size, it is the same prompt."""
    row = data.rfind(b"\n", 0, end) + 1
    # a row may be as long as all of the output: no prompt is
    row = max(row, _find_character_start(data, end - LONGEST_ROW))
    tail = QUIET.sub(b"", data[row:end]).decode("utf-8", "replace").lstrip("\r")
    if "\x1b" in tail:
        tail = strip_escapes(data[row:end], last_input.cols, last_input.rows, tmux=last_input.tmux).text
    before = prompts.find_output_before(tail)
    while before and before.endswith("\r") and (again := prompts.find_output_before(before.rstrip("\r"))) is not None:
        before = again
    return data[:end] if before is None else data[:row] + before.encode()


def _find_character_start(data: bytes, at: int) -> int:
    """The first character that begins at this offset or behind it."""
    while 0 < at < len(data) and 0x80 <= data[at] < 0xC0:
        at += 1
    return at


def _ends_with(text: str, bare: str) -> bool:
    """Whether the text, without blanks, ends so. It may be long, and its end is enough mostly."""
    size = 2 * len(bare) + 256
    while len(found := strip_invisible(text[-size:])) < len(bare) and size < len(text):
        size *= 4
    return found.endswith(bare)
