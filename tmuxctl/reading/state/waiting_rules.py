"""The rules about waiting: who waits for the terminal, how, and what kind of input that is.

From what is certain (nobody listens, a blocked read) over event loops, which listen while they work too, to what is
guessed from text where the kernel tells nothing of the program.
"""

from __future__ import annotations

from tmuxctl.evidence import Look
from tmuxctl.model import Confidence
from tmuxctl.reading.evidence import programs, tty_waits
from tmuxctl.reading.evidence.activity import ANIMATED, SETTLED, WINDOW, updates_between
from tmuxctl.reading.evidence.tty_waits import NOBODY, POLLS, READS, RUNS, UNREADABLE, Says
from tmuxctl.reading.state import event_loops, input_kinds
from tmuxctl.reading.state.screen_rules import busy_match, over
from tmuxctl.reading.state.situation import Scene, Verdict, busy, idle, unknown
from tmuxctl.reading.text import patterns
from tmuxctl.vocabulary import Detail, EvidenceKind, InputKind

SURE, LIKELY, GUESS = Confidence.SURE, Confidence.LIKELY, Confidence.GUESS

SETTLE_UNKNOWN = 3.0
"""Seconds of quiet after which a program of which nothing tells anything is of unknown state, and no longer busy."""

# Seconds of quiet that each kind of evidence needs beside it
READ_ONCE = 0.05
READ_BY_PLACE = 0.1
SHELL_QUIET = ALONE_QUIET = 0.06
SHELL_ODD_QUIET = 1.5
PROMPT_QUIET = 0.12
LABEL_QUIET = 0.35
RAW_QUIET = 0.5
ONE_LOOK_QUIET = 0.5
CARRIED_QUIET = 0.4
UNREADABLE_QUIET = 0.5
TEXT_QUIET = 0.5
SCREEN_QUIET = 1.0

COMPUTES = 0.5
"""Of one processor: a program that uses so much of it while it listens is at work."""

MOVES = 0.05
"""The same for a program that cannot be looked into: what waits uses none."""


def nobody_waits(seen: Scene) -> Verdict | None:
    """Nobody listens to the terminal: the program works, whatever the screen shows."""
    now = seen.now
    if now is None or now.word not in (RUNS, NOBODY):
        return None
    if now.maybe and seen.activity.quiet >= UNREADABLE_QUIET and (found := _may_wait(seen, now)):
        return found
    match = busy_match(seen)
    detail = (match and match[1]) or seen.doing
    confidence = SURE if now.certain and not seen.one_look else LIKELY
    return busy(seen, detail, f"{_at_work(now)}, nobody reads the terminal", confidence=confidence)


def _may_wait(seen: Scene, now: Says) -> Verdict | None:
    """Where it sleeps, waiting for the terminal sleeps, too: plain answers on offer, or a prompt of a program without any
    other beside it, are then more likely read than not."""
    left = seen.text.left
    if patterns.plain_question(left) and (question := input_kinds.question_alone(seen)):
        return input_kinds.asks(question, "its answer may be read", GUESS)
    if now.maybe and patterns.a_name(left):
        return input_kinds.idle_now(seen, "it may be read", by=EvidenceKind.PROMPT, confidence=GUESS)
    if len(now.programs) == 1 and patterns.alone_a_prompt(left):
        return input_kinds.idle_now(seen, "it may be read", by=EvidenceKind.PROMPT, confidence=GUESS)
    return None


def _at_work(now: Says) -> str:
    if now.word == RUNS:
        return f"{now.running[0]} running"
    for program in reversed(now.programs):
        for thread in program.threads:
            where = tty_waits.place(thread)
            if thread.state == "S" and where not in ("wait4", "waitid", "do_wait"):
                return f"{program.name} in {where}"
    return now.name


def reads(seen: Scene) -> Verdict | None:
    """Somebody is blocked in a read of the terminal: nothing but input ends that."""
    now = seen.now
    if now is None or now.word != READS:
        return None
    return (
        _not_yet_read(seen, now)
        or _runs_command(seen, now)
        or _reads_and_works(seen, now)
        or input_kinds.waiting(seen, _read_confidence(seen, now))
    )


def _runs_command(seen: Scene, now: Says) -> Verdict | None:
    """An editor listens for the key that stops the command it waits for."""
    name = event_loops.command_of_editor(seen, now)
    return busy(seen, seen.doing, f"{now.name} runs {name}", confidence=LIKELY) if name else None


def _read_confidence(seen: Scene, now: Says) -> Confidence:
    if seen.one_look and not (seen.activity.told and seen.activity.quiet >= READ_ONCE):
        return LIKELY
    return SURE if now.certain else LIKELY


def _not_yet_read(seen: Scene, now: Says) -> Verdict | None:
    quiet, told = seen.activity.quiet, seen.activity.told
    if (told and quiet < READ_ONCE) if seen.one_look else not _read_before(seen):
        return busy(seen, seen.doing, "seen to read the terminal for the first time")
    drawn = seen.look.alternate or seen.own_quiet >= READ_BY_PLACE
    if not now.certain and (not drawn or not (told or not seen.one_look)):
        return busy(seen, seen.doing, "where it sleeps is also where writing waits")
    # output that a person stopped with C-s looks the same from there
    if not now.certain and not now.password and programs.is_shell(now.name) and not seen.text.bare:
        return busy(seen, seen.doing, "a shell that waits in its terminal without a prompt", confidence=GUESS)
    return None


def _read_before(seen: Scene) -> bool:
    """The look before saw it read, too; on a screen of its own, one of those before: it wakes to draw."""
    before = seen.before if seen.look.alternate else seen.before[:1]
    return seen.blinked or any(one is not None and one.word == READS for one in before)


def _reads_and_works(seen: Scene, now: Says) -> Verdict | None:
    """One thread listens while the others work, or reads are so short that work is done between them."""
    name = now.name
    draws = _updates(seen, READS) >= ANIMATED * WINDOW or _draws_under_its_prompt(seen)
    if seen.activity.animated and draws:
        return busy(seen, Detail.PRINTING, _pace(seen), by=EvidenceKind.ACTIVITY, confidence=LIKELY)
    known = programs.is_shell(name) or programs.is_pager(name) or programs.is_editor(name)
    if known or now.password or _prompt_like(seen):
        return None
    return _works_beside(seen, now)


def _works_beside(seen: Scene, now: Says) -> Verdict | None:
    # on a screen of its own the main thread may sleep from one tick to the next
    if tty_waits.works_beside(now) and not (seen.look.alternate and not now.running):
        return busy(seen, seen.doing, f"{now.name} works beside the thread that reads the terminal", confidence=LIKELY)
    if now.waiters and seen.computes(now.waiters[0].program.pid, COMPUTES):
        return busy(
            seen, Detail.COMPUTING, f"{now.name} computes while it listens", by=EvidenceKind.ACTIVITY, confidence=LIKELY
        )
    return None


def _updates(seen: Scene, word: str) -> int:
    """Updates of the last two seconds that came while the program was seen waiting in the same way."""

    def waits(look: Look) -> bool:
        found = tty_waits.says(look.kernel)
        return found is not None and found.word == word

    return updates_between(seen.looks, waits)


def _pace(seen: Scene) -> str:
    return f"{seen.activity.rate:.1f} updates a second"


def _prompt_like(seen: Scene) -> bool:
    """The text left of the cursor ends like a prompt or question, or is one with something typed behind it."""
    if seen.prompt or seen.continuation:
        return True
    left = seen.text.left
    asked = (
        patterns.ends_like_prompt(left) or patterns.typed_behind_prompt(left) or input_kinds.question(seen) is not None
    )
    return asked or (patterns.a_label(left) and not patterns.DOING.search(left.strip()))


def unreadable(seen: Scene) -> Verdict | None:
    """Processes of which the kernel tells this user nothing but their time on the processor (setuid, another user's)."""
    now = seen.now
    if now is None or now.word != UNREADABLE:
        return None
    if now.password:
        return input_kinds.waiting(seen, LIKELY)
    if seen.share() > MOVES:
        return busy(seen, Detail.COMPUTING, f"{now.name} uses the processor", confidence=LIKELY)
    return _by_text(seen, UNREADABLE_QUIET, f"{now.name} cannot be looked into")


def carried(seen: Scene) -> Verdict | None:
    """A carrier of a terminal elsewhere listens all the time: only text tells what the program there does."""
    if seen.now is None or seen.now.opaque is None:
        return None
    if seen.now.password and seen.now.waiters:
        return input_kinds.waiting(seen, LIKELY)
    return _by_text(seen, CARRIED_QUIET, seen.how)


def shell_polls(seen: Scene) -> Verdict | None:
    """A shell's line editor listens: to nothing else, or behind its prompt. A script that waits a moment for a key does
    neither."""
    now = seen.now
    if now is None or now.word != POLLS or not seen.raw or not _edits_a_line(seen, now):
        return None
    quiet = seen.own_quiet
    if not now.alone and quiet == seen.activity.quiet and _draws_while_waiting(seen):
        return None
    if not _polled_before(seen) or quiet < SHELL_QUIET:
        return busy(seen, seen.doing, "the shell has only just printed")
    return input_kinds.waiting(seen, _poll_confidence(seen, now))


def _edits_a_line(seen: Scene, now: Says) -> bool:
    """Whether who polls is a shell's line editor: it stands at a prompt, or listens to the terminal alone for a while."""
    left = seen.text.left
    if not programs.is_shell(now.name) or (seen.look.alternate and not patterns.ends_like_prompt(left)):
        return False
    # a line editor waits without a timeout: who has one is the `read` of a script
    if now.certain and event_loops.step_seconds(seen, now):
        return False
    at_prompt = patterns.ends_like_prompt(left) or patterns.typed_behind_prompt(left) or seen.prompt is not None
    # where it cannot be told whether it waits for something else, too, less quiet must do
    needed = SHELL_ODD_QUIET if now.certain else RAW_QUIET
    return now.alone or at_prompt or input_kinds.continued(seen) or seen.own_quiet >= needed


def _draws_while_waiting(seen: Scene) -> bool:
    """It is animated, and not only because of what it printed before it began to wait."""
    return seen.activity.animated and _updates(seen, POLLS) >= ANIMATED * WINDOW


def _draws_under_its_prompt(seen: Scene) -> bool:
    """A program that draws its own input goes on drawing while that shows: it is at work, whatever sign it has for that.
    A look that comes right behind a drawing finds it running as often as waiting, so only the pace counts."""
    profile, now = seen.profile, seen.now
    if profile is None or now is None or now.alone or not input_kinds.draws_input(seen) or not seen.activity.animated:
        return False
    # where a sign of work is known its absence says that the pause at the end is no part of the animation
    return seen.activity.quiet < SETTLED or not (profile.busy or profile.title_busy)


def _poll_confidence(seen: Scene, now: Says) -> Confidence:
    return SURE if now.alone and now.certain and not seen.one_look else LIKELY


def _polled_before(seen: Scene) -> bool:
    return seen.one_look or seen.blinked or any(one is not None and one.waits for one in seen.before)


def animated(seen: Scene) -> Verdict | None:
    """An event loop that listens and draws at the pace of a spinner or of output works."""
    now = seen.now
    if now is None or now.word != POLLS or not seen.activity.animated or over(seen):
        return None
    # what was printed before it began to wait is over: a program that waits for input alone does not draw
    if (now.alone or seen.prompt) and not (_draws_while_waiting(seen) or _draws_under_its_prompt(seen)):
        return None
    return busy(seen, Detail.PRINTING, _pace(seen), by=EvidenceKind.ACTIVITY, confidence=LIKELY)


def polls(seen: Scene) -> Verdict | None:
    """Somebody listens with poll, select or epoll. An event loop does so while it works, too: what waits for the terminal
    alone does not."""
    now = seen.now
    if now is None or now.word != POLLS:
        return None
    if now.password:
        return input_kinds.waiting(seen, LIKELY)
    early = _not_yet_polled(seen, now) or _runs_command(seen, now)
    if early:
        return early
    if now.alone and seen.own_quiet >= max(ALONE_QUIET, seen.settle):
        return (None if _prompt_like(seen) else _works_beside(seen, now)) or input_kinds.waiting(
            seen, _poll_confidence(seen, now)
        )
    return _event_loop(seen, now)


def _not_yet_polled(seen: Scene, now: Says) -> Verdict | None:
    quiet = seen.activity.quiet
    if not _polled_before(seen):
        return busy(seen, seen.doing, "seen to listen to the terminal for the first time")
    if seen.one_look and not now.alone and not (seen.activity.told and quiet >= ONE_LOOK_QUIET):
        return busy(seen, seen.doing, "an event loop, seen only once")
    if now.alone and seen.own_quiet < ALONE_QUIET:
        return busy(seen, Detail.PRINTING, f"printed {quiet:.2f} s ago")
    if quiet < seen.settle:
        return busy(
            seen,
            seen.doing,
            f"printed {quiet:.1f} s ago, its profile waits for {seen.settle:g} s",
            by=EvidenceKind.ACTIVITY,
        )
    return None


def _event_loop(seen: Scene, now: Says) -> Verdict:
    return (
        _prints_or_computes(seen, now)
        or _works_though_it_listens(seen, now)
        or _prompt_missing(seen)
        or _listens_at_rest(seen, now)
    )


def _prints_or_computes(seen: Scene, now: Says) -> Verdict | None:
    """It draws a whole screen, or its own process uses the processor."""
    laid_out = seen.full_screen or any(row.strip() for row in seen.text.below())
    if seen.activity.beginning and laid_out and not programs.is_editor(now.name) and not over(seen):
        return busy(seen, Detail.PRINTING, "began to print", by=EvidenceKind.ACTIVITY)
    if now.waiters and seen.computes(now.waiters[0].program.pid, COMPUTES):
        return busy(
            seen, Detail.COMPUTING, f"{now.name} computes while it listens", by=EvidenceKind.ACTIVITY, confidence=LIKELY
        )
    return None


def _listens_at_rest(seen: Scene, now: Says) -> Verdict:
    """An event loop of which nothing says that it works waits once it was quiet behind text that asks for input."""
    quiet, step = seen.activity.quiet, event_loops.step_seconds(seen, now)
    if seen.full_screen or (quiet >= PROMPT_QUIET and event_loops.nothing_else(now)):
        return input_kinds.waiting(seen, LIKELY)
    known = seen.text.bare or seen.prompt or seen.continuation
    if not known and not (quiet >= max(RAW_QUIET, step) and input_kinds.question(seen)):
        return busy(seen, seen.doing, f"{now.name} listens, but nothing stands left of the cursor")
    needed = _quiet_needed(seen)
    if needed is None and seen.raw and quiet >= SETTLE_UNKNOWN:
        return unknown(f"{now.name} listens, quiet for {quiet:.0f} s behind what is no prompt")
    if needed is None:
        return busy(seen, seen.doing, "no prompt stands left of the cursor")
    if quiet < max(needed, step) and not event_loops.prompt_redrawn(seen):
        return busy(seen, Detail.PRINTING, f"printed {quiet:.2f} s ago")
    return input_kinds.waiting(seen, LIKELY)


def _works_though_it_listens(seen: Scene, now: Says) -> Verdict | None:
    """Another process of the foreground works, or output comes step by step."""
    if name := event_loops.computes_beside(seen, now):
        return busy(seen, Detail.COMPUTING, f"{name} uses the processor", by=EvidenceKind.ACTIVITY, confidence=LIKELY)
    if name := event_loops.sleeps_beside(now):
        return busy(seen, seen.doing, f"{now.name} may wait for {name}", confidence=LIKELY)
    if seen.full_screen or seen.prompt or seen.continuation:
        return None
    if event_loops.steps(seen):
        return busy(seen, Detail.PRINTING, "prints about once a second", by=EvidenceKind.ACTIVITY, confidence=LIKELY)
    if event_loops.asks_plainly(seen):
        return None
    if name := event_loops.begun_since(seen, now):
        return busy(seen, seen.doing, f"{name} began after the last output and goes on", confidence=LIKELY)
    if event_loops.idles_beside(seen, now):
        return busy(seen, seen.doing, f"{now.name} looks for a key while another thread of it sleeps")
    return None


def _prompt_missing(seen: Scene) -> Verdict | None:
    """A profile knows the program's prompt, and it does not show: an event loop that listens is not idle then.

    A program the profile is not meant for may have a prompt of its own, as may one whose profile tells no busy signs.
    """
    profile = seen.profile
    if profile is None or not profile.prompt or seen.prompt or seen.continuation or not input_kinds.meant(seen):
        return None
    # one screen of an editor or a list is known by its prompts, another is not: that says nothing
    if input_kinds.question(seen) is not None or all(
        one.kind not in (None, InputKind.PROMPT) for one in profile.prompt
    ):
        return None
    knows_busy = profile.busy or profile.title_busy
    if not knows_busy and patterns.alone_a_prompt(seen.text.left):
        return None
    if input_kinds.of_interpreter(profile) and not _weak(seen):
        return None
    quiet = seen.activity.quiet
    if quiet >= SETTLE_UNKNOWN:
        timer = ", a timer of it runs" if seen.now is not None and seen.now.timeout is not None else ""
        return unknown(f"quiet for {quiet:.0f} s without a prompt of profile {profile.name}{timer}")
    return busy(seen, seen.doing, f"no prompt of profile {profile.name}", by=EvidenceKind.PROMPT)


def _weak(seen: Scene) -> bool:
    """What stands left of the cursor is no more than a label, which work may leave there, too."""
    now, left = seen.now, seen.text.left
    if seen.full_screen or patterns.library_question(left):
        return False
    # node keeps timers of its own, for connections that it might use again: behind the label of a field they are no work
    if (
        now is not None
        and seen.raw
        and patterns.asks_for(left)
        and seen.own_quiet >= RAW_QUIET
        and event_loops.no_work(now)
    ):
        return False
    return now is None or not (programs.is_shell(now.name) or event_loops.nothing_else(now))


def _quiet_needed(seen: Scene) -> float | None:
    """How long an event loop must be quiet behind this text, in seconds; None: no silence makes it a prompt."""
    left = seen.text.left
    if seen.prompt or seen.continuation or patterns.ends_like_prompt(left) or input_kinds.question(seen) is not None:
        return PROMPT_QUIET
    if patterns.typed_behind_prompt(left) or patterns.boxed(seen.text):
        return PROMPT_QUIET
    if patterns.a_label(left):
        return LABEL_QUIET
    drawn = seen.raw and (patterns.framed(seen.text) or (seen.now is not None and programs.is_editor(seen.now.name)))
    return RAW_QUIET if drawn else None


def text_alone(seen: Scene) -> Verdict:
    """Nothing tells of the program but what it prints."""
    if seen.kernel_lost:
        return busy(seen, seen.doing, "its processes are ending")
    if seen.secret and seen.activity.quiet >= PROMPT_QUIET:
        return input_kinds.waiting(seen, LIKELY)
    return _by_text(seen, TEXT_QUIET, "no kernel to ask")


def _by_text(seen: Scene, quiet_needed: float, how: str) -> Verdict:
    """A guess from the text left of the cursor, after some quiet; a profile's prompt makes it more than a guess."""
    shown = f"{how}, quiet for {seen.activity.quiet:.1f} s"
    return (
        _by_pace(seen, quiet_needed, how)
        or _printed_just_now(seen, quiet_needed, how)
        or _by_prompt_or_question(seen, shown)
        or _by_text_without_rule(seen, shown, how)
    )


def _by_pace(seen: Scene, quiet_needed: float, how: str) -> Verdict | None:
    """What is drawn anew again and again: output, or a full screen that waits for keys all the same."""
    if seen.activity.animated:
        return busy(seen, Detail.PRINTING, _pace(seen), by=EvidenceKind.ACTIVITY, confidence=LIKELY)
    sign = _screen_sign(seen)
    if sign and seen.activity.known >= WINDOW:
        return idle(seen, sign, None, f"{how}, {_pace(seen)}", by=EvidenceKind.PROMPT, confidence=GUESS)
    if not _drawn_anew(seen) or input_kinds.draws_input(seen):
        return None
    if seen.activity.quiet >= quiet_needed and (found := input_kinds.question_alone(seen)):
        return input_kinds.asks(found, f"{how}, quiet for {seen.activity.quiet:.1f} s", GUESS)
    return idle(seen, InputKind.TUI, None, f"{how}, {_pace(seen)}", by=EvidenceKind.PROMPT, confidence=GUESS)


def _screen_sign(seen: Scene) -> InputKind | None:
    """What kind of full screen the text shows by itself; None of a program that draws its own input."""
    screen = (seen.full_screen or seen.raw) and not input_kinds.draws_input(seen)
    return patterns.full_screen_sign(seen.text) if screen else None


def _printed_just_now(seen: Scene, quiet_needed: float, how: str) -> Verdict | None:
    quiet = seen.activity.quiet
    if not seen.activity.told and quiet < SETTLE_UNKNOWN:
        return busy(seen, seen.doing, f"{how}, its last output is of unknown age")
    if quiet < max(quiet_needed, seen.settle):
        return busy(seen, Detail.PRINTING, f"{how}, printed {quiet:.1f} s ago", by=EvidenceKind.ACTIVITY)
    return None


def _by_prompt_or_question(seen: Scene, shown: str) -> Verdict | None:
    """A prompt that the profile knows, or a question; a program that draws its own input needs one of them."""
    own_input = input_kinds.draws_input(seen)
    if (seen.prompt or seen.continuation) and (own_input or not patterns.PROGRESS.search(seen.text.bare)):
        return input_kinds.idle_now(seen, shown, by=EvidenceKind.PROMPT, confidence=LIKELY)
    if found := input_kinds.question_alone(seen):
        return input_kinds.asks(found, shown, GUESS)
    return _input_missing(seen, shown) if own_input else None


def _by_text_without_rule(seen: Scene, shown: str, how: str) -> Verdict:
    """What stands left of the cursor looks like a prompt, the screen like one that waits for keys, or neither."""
    quiet, left, sign = seen.activity.quiet, seen.text.left, _screen_sign(seen)
    if patterns.alone_a_prompt(left) or patterns.alone_a_command_line(left) or patterns.alone_a_question(left):
        return input_kinds.idle_now(seen, shown, by=EvidenceKind.PROMPT, confidence=GUESS)
    if sign and quiet >= (SCREEN_QUIET if sign == "tui" else 0.0):
        return idle(seen, sign, None, shown, by=EvidenceKind.PROMPT, confidence=GUESS)
    if quiet >= SETTLE_UNKNOWN and _may_stand(seen):
        return unknown(f"{how}, quiet for {quiet:.0f} s behind what is no prompt")
    return busy(seen, seen.doing, f"{how}, no prompt left of the cursor")


def _input_missing(seen: Scene, how: str) -> Verdict:
    """A program that draws its own input does not show it: what stands left of the cursor is part of an answer."""
    if seen.activity.quiet >= SETTLE_UNKNOWN:
        return unknown(f"{how}, its own prompt does not show")
    return busy(seen, seen.doing, f"{how}, its own prompt does not show", by=EvidenceKind.PROMPT)


def _drawn_anew(seen: Scene) -> bool:
    """A whole screen around a hidden cursor, drawn anew now and then for as long as it has been watched."""
    return not seen.look.visible and len(seen.text.rows) >= seen.look.rows - 1 and seen.activity.known >= WINDOW


def _may_stand(seen: Scene) -> bool:
    """The screen could be one that waits: text left of the cursor, or a whole screen around it. A cursor at the beginning
    of a line below all other text (but a status line) is what a command that runs leaves."""
    return bool(seen.text.bare) or not seen.look.visible or any(row.strip() for row in seen.text.below()[:-1])
