"""A turn against the model's log, which no screen can contradict: the promises that it breaks."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from .model import Request, sha256
from .turn import Turn

ADDED = {"aider": "\n\n"}
"""What stands between a prompt and the text that a program adds behind it before it goes to the model."""

WRAPPED = {"claude": '<pasted_content id="{id}">\n{prompt}\n</pasted_content id="{id}">'}
"""What a program may put around a prompt that was pasted (Claude Code 2.1.330, one of eight lines, measured)."""

UNWRITTEN = {"gemini": re.compile("[\u200b-\u200f\ufeff]")}
"""What a program takes out of an answer before it writes it down (Gemini: characters without width, joiners too; on the screen
they are)."""

EARLIER = 0.005
"""Seconds by which a moment may seem to be before another that it followed: the log is rounded to milliseconds."""

ATTEMPT = 60.0
"""Seconds that a program waits at most before it tries again (Gemini up to 39, measured)."""

DELAY = 2.0
"""Seconds after which the end of a turn must have been told."""


def broken(turn: Turn) -> tuple[str, ...]:
    """The promises that this turn breaks, in words; empty if it breaks none."""
    return tuple(_broken(turn))


def _broken(turn: Turn) -> Iterator[str]:
    if turn.error:
        yield f"failed: {turn.error}"
    yield from submission(turn)
    if end := premature(turn):
        yield end
    if turn.delay is not None and turn.delay > DELAY and not turn.error:
        yield f"late: told {turn.delay:.2f} s after the end stood on the screen"
    yield from decisions(turn)
    yield from failing(turn)
    if turn.stopped is False:
        yield "not interrupted: the model gave its whole answer to the turn before"
    if not turn.error:
        yield from answered(turn)


# submitted once, byte by byte


def submission(turn: Turn) -> Iterator[str]:
    """Given to the model exactly once, byte by byte, and said to have been."""
    first = [one for one in turn.requests if not one.auxiliary and not one.results]
    if not first:
        yield "not submitted: the model never saw it"
        return
    if not all(equal(turn, one) for one in first):
        yield f"not equal: the model saw {first[0].length} characters, ends with {first[0].user[-60:]!r}"
    if (times := sum(one.outcome == "done" for one in first)) > 1:
        yield f"submitted {times} times"
    if not turn.submitted and not turn.error:
        yield f"submitted, but told not to be: {turn.evidence}"


def equal(turn: Turn, one: Request) -> bool:
    """True if the model saw this very prompt, and around it at most what the program is known to add."""
    if one.sha256 == sha256(turn.prompt):
        return True
    if (wrapped := WRAPPED.get(turn.program)) and (known := re.search(r'id="([0-9a-f]+)">\s*\Z', one.user)):
        return one.sha256 == sha256(wrapped.format(id=known[1], prompt=turn.prompt))
    between = ADDED.get(turn.program)
    last = turn.prompt.rstrip().rpartition("\n")[2]
    _, found, added = one.user.rpartition(last + between) if between else ("", "", "")
    return bool(found) and one.sha256 == sha256(f"{turn.prompt.rstrip()}{between}{added}")


# not ended before the model's last byte


def premature(turn: Turn) -> str:
    """How much too early the turn was told to have ended, in words; empty if it was not."""
    if turn.state not in ("idle", "unknown", "exited"):
        return ""
    for one in turn.requests:
        if one.auxiliary:
            continue
        if one.end is None:
            return "premature: the model is still answering"
        if one.end > turn.returned + EARLIER:
            return f"premature: told {one.end - turn.returned:.3f} s before the model's last byte"
    return ""


# nothing is decided by itself


def decisions(turn: Turn) -> Iterator[str]:
    """Nothing ran before it was decided, what was denied never did, and what was allowed was run."""
    if turn.shape not in ("allow", "deny"):
        if turn.state == "asking":
            yield f"asks ({turn.kind}) where no question was"
        return
    if turn.early:
        yield "undecided: the command was run before the decision"
    if turn.shape == "deny" and turn.ran:
        yield "denied, and run"
    if turn.shape == "allow" and not turn.ran:
        yield "allowed, and not run"
    if not turn.decided and not turn.error:
        yield f"never asked: the turn ended {turn.state}"
    elif turn.state != "idle" and not turn.error:
        yield f"after the decision it is {turn.state}"


# the answer


def answered(turn: Turn) -> Iterator[str]:
    """The answer is the model's text: verbatim from a hook or transcript, every line of it and no more from the screen."""
    if turn.wanted is None:
        return
    if turn.state != "idle":
        yield f"ended {turn.state}, not idle"
    if turn.shape in ("allow", "deny") and not turn.policy:
        # what `ask` gave was the question
        return
    if turn.source in ("hook", "transcript"):
        wanted = turn.wanted.strip()
        if turn.source == "transcript" and turn.program in UNWRITTEN:
            wanted = UNWRITTEN[turn.program].sub("", wanted)
        if turn.answer.strip() != wanted:
            yield f"answer ({turn.source}) differs: {difference(turn.answer.strip(), wanted)}"
        if not turn.complete:
            yield f"incomplete: the {turn.source} gives the whole answer, and it is told not to be whole"
        return
    got, wanted = bare(turn.answer), bare(turn.wanted)
    if not drawn(turn) and not undrawn(turn):
        said = "" if turn.complete else ", and said to be incomplete"
        yield f"answer (screen) differs{said}: {difference(got, wanted)}"
    yield from (f"code block not intact: {line!r}" for line in torn(turn))


def trying(turn: Turn) -> bool:
    """True if the program has not given up, and is told to be at work: Gemini begins anew after each series of attempts."""
    return turn.state == "busy" and bool(turn.requests) and turn.requests[-1].time > turn.returned - ATTEMPT


def failing(turn: Turn) -> Iterator[str]:
    """A turn that failed is told to have failed, and no other is."""
    if turn.shape == "failed" and not turn.failure and not turn.error and not trying(turn):
        yield f"failure not told: it ended {turn.state}, with {turn.answer[-80:]!r} for an answer"
    if turn.shape == "failed" and turn.complete:
        yield "failure told as a complete answer"
    if turn.shape not in ("failed", "lost") and turn.failure:
        yield f"told to have failed: {turn.failure}"


CHROME = re.compile(r"[\s`|│┃─━═╌┄┌┐└┘├┤┬┴┼╭╮╰╯┏┓┗┛┡┩╇╈┳┻╋╪╞╡•●*-]")
"""What a terminal program may draw markdown with or leave out of it: spaces, fences, tables, bullets."""

CONTROL = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]|\x9b[0-?]*[ -/]*[@-~]|[\x00-\x09\x0b-\x1f\x7f-\x9f]"
)
"""Escape sequences and control characters, which no answer from a screen can have."""


SINGLE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


def drawn(turn: Turn) -> bool:
    """True if this is the model's text as a terminal shows it: every line, and no more.

    Of an escape sequence in the text a program may show nothing, the printable rest, or also its control character spelled
    (`\\u001b`).
    """
    got, wanted = bare(turn.answer), turn.wanted or ""
    most = SINGLE.sub(lambda found: f"\\u{ord(found[0]):04x}", wanted)
    return within(bare(wanted), got) and within(got, bare(most))


BEYOND = re.compile(r"[\x80-\x9f]")


def undrawn(turn: Turn) -> bool:
    """True if the program itself never printed the whole of the model's text, and the answer is what it did print."""
    if turn.source != "screen" or not turn.wanted or not turn.printed or drawn(turn):
        return False
    got = bare(turn.answer)
    # of a control character beyond ASCII a terminal shows nothing, and all that stands behind it
    for printed in (turn.printed, BEYOND.sub("", turn.printed)):
        whole = bare(printed.replace("\r", "\n"))
        # before its first line stands the input, and what the program draws again of earlier turns
        begin = max(0, whole.find(bare(turn.wanted.strip().split("\n")[0])))
        if got and got in whole and not within(bare(turn.wanted), whole[begin:]):
            return True
    return False


def within(part: str, whole: str) -> bool:
    """True if all characters of one text are in the other, in this order."""
    rest = iter(whole)
    return all(one in rest for one in part)


def bare(text: str) -> str:
    """What must be the same in a text and in its drawing: all but control characters, spaces and drawn markdown."""
    lines = [line for line in CONTROL.sub("", text).splitlines() if not line.strip().startswith("```")]
    return CHROME.sub("", unicodedata.normalize("NFC", "".join(lines)))


def difference(got: str, wanted: str) -> str:
    """Where two texts part, in few words."""
    if not got:
        return "it is empty"
    at = next((i for i, (a, b) in enumerate(zip(got, wanted, strict=False)) if a != b), min(len(got), len(wanted)))
    return f"{len(got)} for {len(wanted)} characters, at {at}: {got[at : at + 40]!r} for {wanted[at : at + 40]!r}"


def torn(turn: Turn) -> list[str]:
    """Lines of fenced code that are not in the answer as they are: in order, indented as they are to each other."""
    lost = []
    for block in re.findall(r"^```\w*\n(.*?)^```$", turn.wanted or "", re.S | re.M):
        lines = [line.rstrip() for line in block.splitlines()]
        if len(lines) < 2 or bare(block) not in bare(turn.answer):
            continue
        seen = [line.rstrip() for line in turn.answer.splitlines()]
        if not any(_same(seen[at : at + len(lines)], lines) for at in range(len(seen))):
            lost.append(lines[0])
    return lost


def _same(seen: list[str], lines: list[str]) -> bool:
    """True if these are the lines, all indented by the same."""
    if len(seen) != len(lines):
        return False
    by = {
        len(one) - len(one.lstrip()) - (len(line) - len(line.lstrip())) if one.strip() == line.strip() else None
        for one, line in zip(seen, lines, strict=True)
        if one.strip() or line.strip()
    }
    return len(by) == 1 and None not in by
