"""The rules about waiting: which program waits for the terminal, how, and for what kind of input.

From what is certain (no thread waits, a blocked read) over event loops, which listen while they work too, to what is
guessed from text where the kernel tells nothing of the program.
"""

from __future__ import annotations

from tmuxctl.evidence import Look
from tmuxctl.model import Confidence
from tmuxctl.reading.evidence import programs, tty_waits
from tmuxctl.reading.evidence.activity import ANIMATED, SETTLED, WINDOW, count_updates_while
from tmuxctl.reading.evidence.tty_waits import NOT_WAITING, POLLING, READING, RUNNING, UNREADABLE, Foreground, TtyWait
from tmuxctl.reading.state import event_loops, input_kinds, ps_signs
from tmuxctl.reading.state.screen_rules import find_busy_match, is_turn_over
from tmuxctl.reading.state.situation import Situation, Verdict, idle, unknown
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
PS_QUIET = 0.2
TEXT_QUIET = 0.5
SCREEN_QUIET = 1.0

UNMOVED = 0.02
"""Seconds between two looks, nothing having happened between them, that stand for any of those where a prompt shows and only
input can end the wait: whatever else was on its way has come."""

COMPUTES = 0.5
"""Of one processor: a program that uses so much of it while it listens is at work."""

MOVES = 0.05
"""The same for a program that cannot be inspected: what waits uses none."""


def judge_not_waiting(situation: Situation) -> Verdict | None:
    """No thread waits for the terminal: the program works, whatever the screen shows."""
    foreground = situation.foreground
    if foreground is None or foreground.wait not in (RUNNING, NOT_WAITING):
        return None
    may_wait = foreground.may_wait and situation.quiet >= UNREADABLE_QUIET
    if may_wait and (verdict := _guess_from_text(situation, foreground)):
        return verdict
    match = find_busy_match(situation)
    detail = (match and match[1]) or situation.busy_detail
    confidence = SURE if foreground.certain and not situation.one_look else LIKELY
    return situation.busy(f"{_describe_work(foreground)}, no process reads the terminal", detail, confidence=confidence)


def _guess_from_text(situation: Situation, foreground: Foreground) -> Verdict | None:
    """The verdict on a thread that sleeps where waiting for the terminal sleeps, too: a question with plain answers, or the
    prompt of a program that is alone there, is then more likely read than not."""
    left = situation.text.left
    if patterns.names_answers(left) and (question := input_kinds.find_question_by_text(situation)):
        return input_kinds.judge_question(question, "the program may be reading its answer", GUESS)
    if patterns.asks_for_name(left) or (len(foreground.programs) == 1 and patterns.is_likely_prompt(left)):
        return input_kinds.judge_idle(situation, "the program may be reading", by=EvidenceKind.PROMPT, confidence=GUESS)
    return None


def _describe_work(foreground: Foreground) -> str:
    if foreground.wait is RUNNING:
        return f"{foreground.running[0]} running"
    for program in reversed(foreground.programs):
        for thread in program.threads:
            where = tty_waits.sleep_place(thread)
            if thread.state == "S" and where not in ("wait4", "waitid", "do_wait"):
                return f"{program.name} in {where}"
    return foreground.name


def judge_reading(situation: Situation) -> Verdict | None:
    """A thread is blocked in a read of the terminal: nothing but input ends that."""
    foreground = situation.foreground
    if foreground is None or foreground.wait is not READING:
        return None
    return (
        _judge_not_yet_reading(situation, foreground)
        or _judge_editor_command(situation, foreground)
        or _judge_work_while_reading(situation, foreground)
        or input_kinds.judge_waiting(situation, _read_confidence(situation, foreground))
    )


def _judge_editor_command(situation: Situation, foreground: Foreground) -> Verdict | None:
    """An editor listens for the key that stops the command it waits for."""
    name = event_loops.find_editor_command(situation, foreground)
    return situation.busy(f"{foreground.name} runs {name}", confidence=LIKELY) if name else None


def _read_confidence(situation: Situation, foreground: Foreground) -> Confidence:
    if situation.one_look and not (situation.quiet_known and situation.quiet >= READ_ONCE):
        return LIKELY
    return SURE if foreground.certain else LIKELY


def _judge_not_yet_reading(situation: Situation, foreground: Foreground) -> Verdict | None:
    quiet, told = situation.quiet, situation.quiet_known
    if (told and quiet < READ_ONCE) if situation.one_look else not _was_reading(situation):
        return situation.busy("seen to read the terminal for the first time")
    drawn = situation.look.alternate or situation.waiter_quiet >= READ_BY_PLACE
    if not foreground.certain and (not drawn or not (told or not situation.one_look)):
        return situation.busy("it may be writing: it sleeps where writes wait, too")
    # output that a person stopped with C-s looks the same from there
    unclear = not foreground.certain and not foreground.hides_input
    if unclear and programs.is_shell(foreground.name) and not situation.text.bare:
        return situation.busy("a shell that waits in its terminal without a prompt", confidence=GUESS)
    return None


def _was_reading(situation: Situation) -> bool:
    """The look before saw it read, too; on the alternate screen one of those before, since it wakes to draw."""
    before = situation.earlier_foregrounds if situation.look.alternate else situation.earlier_foregrounds[:1]
    return situation.blinked or any(foreground is not None and foreground.wait is READING for foreground in before)


def _judge_work_while_reading(situation: Situation, foreground: Foreground) -> Verdict | None:
    """One thread listens while the others work, or reads are so short that work is done between them."""
    name = foreground.name
    draws = _count_updates(situation, READING) >= ANIMATED * WINDOW or _draws_under_its_prompt(situation)
    if situation.activity.animated and draws:
        return _busy_by_pace(situation)
    known = programs.is_shell(name) or programs.is_pager(name) or programs.is_editor(name)
    if known or foreground.hides_input or _looks_like_prompt(situation):
        return None
    return _judge_work_beside(situation, foreground)


def _judge_work_beside(situation: Situation, foreground: Foreground) -> Verdict | None:
    # on the alternate screen the main thread may sleep from one tick to the next
    if tty_waits.main_thread_works(foreground) and not (situation.look.alternate and not foreground.running):
        return situation.busy(f"{foreground.name} works beside the thread that reads the terminal", confidence=LIKELY)
    return _judge_computing(situation, foreground)


def _judge_computing(situation: Situation, foreground: Foreground) -> Verdict | None:
    if not foreground.waiters or not situation.computes(foreground.waiters[0].program.pid, COMPUTES):
        return None
    why = f"{foreground.name} computes while it listens"
    return situation.busy(why, Detail.COMPUTING, by=EvidenceKind.ACTIVITY, confidence=LIKELY)


def _count_updates(situation: Situation, wait: TtyWait) -> int:
    """Updates of the last two seconds that came while the program was seen waiting in the same way."""

    def waits(look: Look) -> bool:
        foreground = tty_waits.assess_foreground(look.kernel)
        return foreground is not None and foreground.wait is wait

    return count_updates_while(situation.looks, waits)


def _describe_pace(situation: Situation) -> str:
    return f"{situation.activity.rate:.1f} updates a second"


def _busy_by_pace(situation: Situation) -> Verdict:
    return situation.busy(_describe_pace(situation), Detail.PRINTING, by=EvidenceKind.ACTIVITY, confidence=LIKELY)


def _looks_like_prompt(situation: Situation) -> bool:
    """The text left of the cursor ends like a prompt or question, or is one with something typed behind it."""
    if situation.at_prompt:
        return True
    left = situation.text.left
    prompt = patterns.ends_like_prompt(left) or patterns.has_text_behind_prompt(left)
    return (
        prompt
        or input_kinds.find_question(situation) is not None
        or (patterns.ends_like_label(left) and not patterns.DOING.search(left.strip()))
    )


def judge_by_ps(situation: Situation) -> Verdict | None:
    """Processes of which only `ps` tells: who is in the foreground, what it started, and whether it uses the processor."""
    foreground = situation.foreground
    if foreground is None or foreground.wait is not UNREADABLE or not foreground.by_ps:
        return None
    if name := ps_signs.find_working(situation, foreground):
        return situation.busy(f"{name} uses the processor", Detail.COMPUTING, confidence=LIKELY)
    if foreground.hides_input and situation.text.bare:
        return input_kinds.judge_waiting(situation, LIKELY)
    if name := ps_signs.find_begun(situation, foreground):
        return situation.busy(f"{name} began after the last output and goes on", confidence=LIKELY)
    prompt = event_loops.shows_prompt_or_question(situation) or patterns.has_text_behind_prompt(situation.text.left)
    quiet_needed = PS_QUIET if prompt else max(RAW_QUIET, situation.activity.overdue)
    if situation.raw and ps_signs.is_lone_shell(foreground) and situation.quiet >= quiet_needed:
        return input_kinds.judge_waiting(situation, LIKELY)
    return _judge_by_text(situation, PS_QUIET, situation.wait_description)


def judge_unreadable(situation: Situation) -> Verdict | None:
    """Processes of which the kernel tells this user nothing but their time on the processor (setuid, another user's)."""
    foreground = situation.foreground
    if foreground is None or foreground.wait is not UNREADABLE:
        return None
    if foreground.hides_input:
        return input_kinds.judge_waiting(situation, LIKELY)
    if situation.processor_share() > MOVES:
        return situation.busy(f"{foreground.name} uses the processor", Detail.COMPUTING, confidence=LIKELY)
    if name := ps_signs.find_begun(situation, foreground):
        return situation.busy(f"{name} began after the last output and goes on", confidence=LIKELY)
    return _judge_by_text(situation, UNREADABLE_QUIET, f"{foreground.name} cannot be inspected")


def judge_remote_wrapper(situation: Situation) -> Verdict | None:
    """A remote wrapper listens all the time: only text tells what the program behind it does."""
    foreground = situation.foreground
    if foreground is None or foreground.remote_wrapper is None:
        return None
    if foreground.hides_input and foreground.waiters:
        return input_kinds.judge_waiting(situation, LIKELY)
    return _judge_by_text(situation, CARRIED_QUIET, situation.wait_description)


def judge_shell_polling(situation: Situation) -> Verdict | None:
    """A shell's line editor listens: to nothing else, or behind its prompt. A script that waits a moment for a key does
    neither."""
    foreground, quiet = situation.foreground, situation.waiter_quiet
    if foreground is None or foreground.wait is not POLLING or not situation.raw:
        return None
    if not _is_line_editor(situation, foreground):
        return None
    if not foreground.alone and quiet == situation.quiet and _draws_while_waiting(situation):
        return None
    if not _was_waiting(situation) or (quiet < SHELL_QUIET and not _rests_at_prompt(situation, foreground)):
        return situation.busy("the shell has only just printed")
    return input_kinds.judge_waiting(situation, _poll_confidence(situation, foreground))


def _is_line_editor(situation: Situation, foreground: Foreground) -> bool:
    """Whether the program that polls is a shell's line editor: it is at a prompt, or listens to the terminal alone for a while."""
    left = situation.text.left
    if not programs.is_shell(foreground.name) or (situation.look.alternate and not patterns.ends_like_prompt(left)):
        return False
    # a line editor waits without a timeout: the `read` of a script has one
    if foreground.certain and event_loops.step_seconds(situation, foreground):
        return False
    at_prompt = patterns.ends_like_prompt(left) or patterns.has_text_behind_prompt(left) or situation.prompt is not None
    # where it cannot be told whether it waits for something else, too, less quiet must do
    needed = SHELL_ODD_QUIET if foreground.certain else RAW_QUIET
    return foreground.alone or at_prompt or input_kinds.is_continued(situation) or situation.waiter_quiet >= needed


def _draws_while_waiting(situation: Situation) -> bool:
    """It is animated, and not only because of what it printed before it began to wait."""
    return situation.activity.animated and _count_updates(situation, POLLING) >= ANIMATED * WINDOW


def _draws_under_its_prompt(situation: Situation) -> bool:
    """A program that draws its own input goes on drawing while that shows: it is at work, whatever sign it has for that.
    A look that comes right behind a drawing finds it running as often as waiting, so only the pace counts."""
    profile, foreground = situation.profile, situation.foreground
    if profile is None or foreground is None or foreground.alone or not situation.activity.animated:
        return False
    if not input_kinds.draws_input(situation):
        return False
    # where a sign of work is known its absence says that the pause at the end is no part of the animation
    return situation.quiet < SETTLED or not (profile.busy or profile.title_busy)


def _poll_confidence(situation: Situation, foreground: Foreground) -> Confidence:
    return SURE if foreground.alone and foreground.certain and not situation.one_look else LIKELY


def _was_waiting(situation: Situation) -> bool:
    earlier = situation.earlier_foregrounds
    return situation.one_look or situation.blinked or any(found is not None and found.waits for found in earlier)


def _rests_at_prompt(situation: Situation, foreground: Foreground) -> bool:
    """The program waits behind its prompt for what only input can end, and has done nothing since an earlier look."""
    ends = foreground.certain and (
        foreground.alone or (situation.at_prompt and event_loops.only_input_wakes(foreground))
    )
    return ends and patterns.ends_like_prompt(situation.text.left) and situation.unmoved >= UNMOVED


def judge_animated(situation: Situation) -> Verdict | None:
    """An event loop that listens and draws at the pace of a spinner or of output works."""
    foreground = situation.foreground
    if (
        foreground is None
        or foreground.wait is not POLLING
        or not situation.activity.animated
        or is_turn_over(situation)
    ):
        return None
    # what was printed before it began to wait is over: a program that waits for input alone does not draw
    draws = _draws_while_waiting(situation) or _draws_under_its_prompt(situation)
    if (foreground.alone or situation.prompt) and not draws:
        return None
    return _busy_by_pace(situation)


def judge_polling(situation: Situation) -> Verdict | None:
    """A thread listens with poll, select or epoll. An event loop does so while it works, too; a thread that waits for the
    terminal alone does not."""
    foreground = situation.foreground
    if foreground is None or foreground.wait is not POLLING:
        return None
    if foreground.hides_input:
        return input_kinds.judge_waiting(situation, LIKELY)
    early = _judge_not_yet_polling(situation, foreground) or _judge_editor_command(situation, foreground)
    if early:
        return early
    rests = _rests_at_prompt(situation, foreground)
    if foreground.alone and (rests or situation.waiter_quiet >= max(ALONE_QUIET, situation.settle)):
        work = None if _looks_like_prompt(situation) else _judge_work_beside(situation, foreground)
        return work or input_kinds.judge_waiting(situation, _poll_confidence(situation, foreground))
    return _judge_event_loop(situation, foreground)


def _judge_not_yet_polling(situation: Situation, foreground: Foreground) -> Verdict | None:
    quiet = situation.quiet
    if not _was_waiting(situation):
        return situation.busy("seen to listen to the terminal for the first time")
    if situation.one_look and not foreground.alone and not (situation.quiet_known and quiet >= ONE_LOOK_QUIET):
        return situation.busy("an event loop, seen only once")
    if foreground.alone and situation.waiter_quiet < ALONE_QUIET and not _rests_at_prompt(situation, foreground):
        return situation.busy(f"printed {quiet:.2f} s ago", Detail.PRINTING)
    if quiet < situation.settle:
        why = f"printed {quiet:.1f} s ago, its profile asks for {situation.settle:g} s of quiet"
        return situation.busy(why, by=EvidenceKind.ACTIVITY)
    return None


def _judge_event_loop(situation: Situation, foreground: Foreground) -> Verdict:
    return (
        _judge_printing_or_computing(situation, foreground)
        or _judge_work_though_listening(situation, foreground)
        or _judge_missing_prompt(situation)
        or _judge_event_loop_at_rest(situation, foreground)
    )


def _judge_printing_or_computing(situation: Situation, foreground: Foreground) -> Verdict | None:
    """It draws a whole screen, or its own process uses the processor."""
    laid_out = situation.full_screen or any(row.strip() for row in situation.text.below())
    begins = situation.activity.beginning and laid_out and not programs.is_editor(foreground.name)
    if begins and not is_turn_over(situation):
        return situation.busy("began to print", Detail.PRINTING, by=EvidenceKind.ACTIVITY)
    return _judge_computing(situation, foreground)


def _judge_event_loop_at_rest(situation: Situation, foreground: Foreground) -> Verdict:
    """An event loop of which nothing says that it works waits once it was quiet behind text that asks for input."""
    quiet, step = situation.quiet, event_loops.step_seconds(situation, foreground)
    rests = quiet >= PROMPT_QUIET or _rests_at_prompt(situation, foreground)
    if situation.full_screen or (rests and event_loops.only_input_wakes(foreground)):
        return input_kinds.judge_waiting(situation, LIKELY)
    known = situation.text.bare or situation.at_prompt
    if not known and not (quiet >= max(RAW_QUIET, step) and input_kinds.find_question(situation)):
        return situation.busy(f"{foreground.name} listens, but there is no text left of the cursor")
    needed = _find_quiet_needed(situation)
    if needed is None and situation.raw and quiet >= SETTLE_UNKNOWN:
        return unknown(f"{foreground.name} listens, quiet for {quiet:.0f} s after text that is not a prompt")
    if needed is None:
        return situation.busy("there is no prompt left of the cursor")
    if quiet < max(needed, step) and not event_loops.is_prompt_redrawn(situation):
        return situation.busy(f"printed {quiet:.2f} s ago", Detail.PRINTING)
    return input_kinds.judge_waiting(situation, LIKELY)


def _judge_work_though_listening(situation: Situation, foreground: Foreground) -> Verdict | None:
    """Another process of the foreground works, or output comes step by step."""
    if name := event_loops.find_computing_program(situation, foreground):
        why = f"{name} uses the processor"
        return situation.busy(why, Detail.COMPUTING, by=EvidenceKind.ACTIVITY, confidence=LIKELY)
    if name := event_loops.find_sleeping_child(foreground):
        return situation.busy(f"{foreground.name} may wait for {name}", confidence=LIKELY)
    if situation.full_screen or situation.at_prompt:
        return None
    if event_loops.prints_in_steps(situation):
        why = "prints about once a second"
        return situation.busy(why, Detail.PRINTING, by=EvidenceKind.ACTIVITY, confidence=LIKELY)
    if event_loops.shows_prompt_or_question(situation):
        return None
    if name := event_loops.find_new_program(situation, foreground):
        return situation.busy(f"{name} began after the last output and goes on", confidence=LIKELY)
    if event_loops.has_sleeping_thread(situation, foreground):
        return situation.busy(f"{foreground.name} looks for a key while another thread of it sleeps")
    return None


def _judge_missing_prompt(situation: Situation) -> Verdict | None:
    """A profile knows the program's prompt, and it does not show: an event loop that listens is not idle then.

    A program the profile is not meant for may have a prompt of its own, as may one whose profile tells no busy signs.
    """
    profile, foreground, quiet = situation.profile, situation.foreground, situation.quiet
    if profile is None or situation.at_prompt or not input_kinds.is_for_foreground(situation):
        return None
    # one screen of an editor or a list is known by its prompts, another is not: that says nothing
    has_prompt = any(rule.kind in (None, InputKind.PROMPT) for rule in profile.prompt)
    if not has_prompt or input_kinds.find_question(situation) is not None:
        return None
    knows_busy = profile.busy or profile.title_busy
    if not knows_busy and patterns.is_likely_prompt(situation.text.left):
        return None
    if input_kinds.is_interpreter(profile) and not _is_only_a_label(situation):
        return None
    if quiet >= SETTLE_UNKNOWN:
        timer = ", a timer of it runs" if foreground is not None and foreground.timeout is not None else ""
        return unknown(f"quiet for {quiet:.0f} s without a prompt of profile {profile.name}{timer}")
    return situation.busy(f"no prompt of profile {profile.name}", by=EvidenceKind.PROMPT)


def _is_only_a_label(situation: Situation) -> bool:
    """What stands left of the cursor is no more than a label, which work may leave there, too."""
    foreground, left = situation.foreground, situation.text.left
    if situation.full_screen or patterns.is_library_question(left):
        return False
    # node keeps timers of its own, for connections that it might use again: behind the label of a field they are no work
    quiet_field = situation.raw and patterns.asks_for(left) and situation.waiter_quiet >= RAW_QUIET
    if foreground is not None and quiet_field and event_loops.only_input_or_timer_wakes(foreground):
        return False
    return foreground is None or not (programs.is_shell(foreground.name) or event_loops.only_input_wakes(foreground))


def _find_quiet_needed(situation: Situation) -> float | None:
    """How long an event loop must be quiet behind this text, in seconds; None: no silence makes it a prompt."""
    left, foreground = situation.text.left, situation.foreground
    if situation.at_prompt or patterns.ends_like_prompt(left) or input_kinds.find_question(situation) is not None:
        return PROMPT_QUIET
    if patterns.has_text_behind_prompt(left) or patterns.is_boxed(situation.text):
        return PROMPT_QUIET
    if patterns.ends_like_label(left):
        return LABEL_QUIET
    drawn = patterns.is_framed(situation.text) or (foreground is not None and programs.is_editor(foreground.name))
    return RAW_QUIET if situation.raw and drawn else None


def judge_by_text_alone(situation: Situation) -> Verdict:
    """Nothing tells of the program but what it prints."""
    if situation.kernel_lost:
        return situation.busy("its processes are ending")
    if situation.hides_input and situation.quiet >= PROMPT_QUIET:
        return input_kinds.judge_waiting(situation, LIKELY)
    return _judge_by_text(situation, TEXT_QUIET, "no evidence from the kernel")


def _judge_by_text(situation: Situation, quiet_needed: float, how: str) -> Verdict:
    """A guess from the text left of the cursor, after some quiet; a profile's prompt makes it more than a guess."""
    shown = f"{how}, quiet for {situation.quiet:.1f} s"
    return (
        _judge_by_pace(situation, quiet_needed, how)
        or _judge_by_lines(situation, how)
        or _judge_recent_output(situation, quiet_needed, how)
        or _judge_by_prompt_or_question(situation, shown)
        or _judge_by_text_without_rule(situation, shown, how)
    )


def _judge_by_pace(situation: Situation, quiet_needed: float, how: str) -> Verdict | None:
    """What is drawn anew again and again: output, or a full screen that waits for keys all the same."""
    if situation.activity.animated:
        return _busy_by_pace(situation)
    sign, shown = _find_screen_sign(situation), f"{how}, {_describe_pace(situation)}"
    if sign and situation.activity.history >= WINDOW:
        return _judge_screen(situation, sign, shown)
    if not _is_redrawn(situation) or input_kinds.draws_input(situation):
        return None
    if situation.quiet >= quiet_needed and (question := input_kinds.find_question_by_text(situation)):
        return input_kinds.judge_question(question, f"{how}, quiet for {situation.quiet:.1f} s", GUESS)
    return _judge_screen(situation, InputKind.TUI, shown)


def _judge_screen(situation: Situation, kind: InputKind, shown: str) -> Verdict | None:
    """A whole screen as programs draw it that take keys: they may work, too, where their processes are not known."""
    if situation.foreground is None:
        return unknown(f"{shown} on a whole screen")
    if not _takes_keys(situation):
        return None
    return idle(situation, kind, None, shown, by=EvidenceKind.PROMPT, confidence=GUESS)


def _find_screen_sign(situation: Situation) -> InputKind | None:
    """What kind of full screen the text shows by itself; None of a program that draws its own input."""
    screen = (situation.full_screen or situation.raw) and not input_kinds.draws_input(situation)
    return patterns.find_full_screen_sign(situation.text) if screen else None


def _takes_keys(situation: Situation) -> bool:
    """Whether a program that draws a whole screen may be taken to wait for keys: its processes are known, and by ps it runs
    none that it may be waiting for."""
    foreground = situation.foreground
    if foreground is None or not foreground.listed:
        return foreground is not None
    return bool(situation.raw) and not _says_what_it_does(situation) and not ps_signs.list_helpers(foreground)


def _says_what_it_does(situation: Situation) -> bool:
    """`Working`, `Computing the answer:` stand left of the cursor."""
    return bool(patterns.DOING.search(situation.text.bare))


def _judge_by_lines(situation: Situation, how: str) -> Verdict | None:
    """The terminal takes whole lines: no program on it reads single keys, though it drew a screen or asked for one before."""
    foreground = situation.foreground
    if situation.raw is not False or not (foreground is None or foreground.listed):
        return None
    if situation.look.alternate and not situation.hides_input:
        return situation.busy(f"{how}, a whole screen without keys", confidence=LIKELY)
    pause = foreground is None and situation.quiet >= SETTLE_UNKNOWN and patterns.is_pause(situation.text.left)
    return unknown(f"{how}, takes no single key") if pause else None


def _judge_recent_output(situation: Situation, quiet_needed: float, how: str) -> Verdict | None:
    quiet = situation.quiet
    if not situation.quiet_known and quiet < SETTLE_UNKNOWN:
        return situation.busy(f"{how}, its last output is of unknown age")
    if quiet < _find_quiet_without_prompt(situation) or (
        quiet < max(quiet_needed, situation.settle) and not event_loops.is_prompt_redrawn(situation)
    ):
        return situation.busy(f"{how}, printed {quiet:.1f} s ago", Detail.PRINTING, by=EvidenceKind.ACTIVITY)
    return None


def _find_quiet_without_prompt(situation: Situation) -> float:
    """Seconds of quiet after which text that may be a prompt, by itself, is more likely one than not: where the processes
    are not known, or `ps` shows them.

    A program that takes whole lines may have left what looks like a question, and work: one that was answered beforehand
    (`yes | program`). Nor is a shell's prompt one of the program that the shell runs.
    """
    foreground, left = situation.foreground, situation.text.left
    started = situation.evidence.program
    # a shell that edits its lines takes keys at its prompt
    known = situation.at_prompt and not (situation.raw is False and programs.edits_lines(started))
    if known or ps_signs.is_lone_shell(foreground) or (foreground is not None and not foreground.listed):
        return 0.0
    in_shell = programs.is_shell(started) and not situation.full_screen
    if foreground is not None and in_shell and ps_signs.lacks_shell(foreground) and patterns.is_shell_prompt(left):
        return SETTLE_UNKNOWN
    if situation.raw is not False or (foreground is not None and not foreground.by_ps):
        return 0.0
    if foreground is None or patterns.wants_yes_or_no(left):
        return SETTLE_UNKNOWN
    # a terminal that a program reads for itself, and passes nothing on to: what it shows is of that
    if situation.look.kernel and situation.look.kernel.inner:
        return SETTLE_UNKNOWN
    return situation.activity.overdue


def _judge_by_prompt_or_question(situation: Situation, shown: str) -> Verdict | None:
    """A prompt that the profile knows, or a question; a program that draws its own input needs one of them."""
    own_input = input_kinds.draws_input(situation)
    if situation.at_prompt and (own_input or not patterns.PROGRESS.search(situation.text.bare)):
        return input_kinds.judge_idle(situation, shown, by=EvidenceKind.PROMPT, confidence=LIKELY)
    if question := input_kinds.find_question_by_text(situation):
        return input_kinds.judge_question(question, shown, GUESS)
    return _judge_missing_input(situation, shown) if own_input else None


def _judge_by_text_without_rule(situation: Situation, shown: str, how: str) -> Verdict:
    """What stands left of the cursor looks like a prompt, the screen like one that waits for keys, or neither."""
    quiet, left, sign = situation.quiet, situation.text.left, _find_screen_sign(situation)
    if patterns.is_likely_prompt(left) or patterns.is_likely_command_line(left) or patterns.is_likely_question(left):
        return input_kinds.judge_idle(situation, shown, by=EvidenceKind.PROMPT, confidence=GUESS)
    if _is_field_or_screen(situation):
        return input_kinds.judge_waiting(situation, GUESS)
    if sign and quiet >= (SCREEN_QUIET if sign == "tui" else 0.0) and _takes_keys(situation):
        return idle(situation, sign, None, shown, by=EvidenceKind.PROMPT, confidence=GUESS)
    if quiet >= SETTLE_UNKNOWN and _may_be_waiting(situation):
        return unknown(f"{how}, quiet for {quiet:.0f} s after text that is not a prompt")
    return situation.busy(f"{how}, no prompt left of the cursor")


def _is_field_or_screen(situation: Situation) -> bool:
    """By ps: a program that takes keys, or a shell without a command, stands behind a label, or on a screen that rests."""
    foreground = situation.foreground
    if foreground is None or not foreground.by_ps or foreground.remote_wrapper or _says_what_it_does(situation):
        return False
    if situation.full_screen or programs.is_editor(foreground.name):
        return situation.quiet >= max(TEXT_QUIET, situation.activity.overdue) and _takes_keys(situation)
    left = situation.text.bare
    label = left.endswith((":", "?")) or patterns.is_library_question(left) or patterns.asks_for(left)
    takes = bool(situation.raw) or ps_signs.is_lone_shell(foreground)
    return label and takes and situation.quiet >= max(LABEL_QUIET, situation.activity.overdue)


def _judge_missing_input(situation: Situation, how: str) -> Verdict:
    """A program that draws its own input does not show it: what stands left of the cursor is part of an answer."""
    if situation.quiet >= SETTLE_UNKNOWN:
        return unknown(f"{how}, its own prompt does not show")
    return situation.busy(f"{how}, its own prompt does not show", by=EvidenceKind.PROMPT)


def _is_redrawn(situation: Situation) -> bool:
    """A whole screen around a hidden cursor, drawn anew now and then for as long as it has been watched."""
    whole = len(situation.text.rows) >= situation.look.rows - 1
    return whole and not situation.look.visible and situation.activity.history >= WINDOW


def _may_be_waiting(situation: Situation) -> bool:
    """The screen could be one that waits: text left of the cursor, or a whole screen around it. A cursor at the beginning
    of a line below all other text (but a status line) is what a command that runs leaves."""
    foreground = situation.foreground
    local = foreground is None or (foreground.listed and foreground.remote_wrapper is None)
    screen = not situation.look.visible or (situation.look.alternate and local)
    around = screen or any(row.strip() for row in situation.text.below()[:-1])
    return around or bool(situation.text.bare)
