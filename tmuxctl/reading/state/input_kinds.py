"""Which kind of input a waiting program takes: a decision, or the next line, text or key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.model import Confidence
from tmuxctl.reading.evidence import programs
from tmuxctl.reading.evidence.tty_waits import READS
from tmuxctl.reading.questions.questions import Tells
from tmuxctl.reading.state.situation import Scene, Verdict, asking, idle
from tmuxctl.reading.text import patterns
from tmuxctl.reading.text.lazy_pattern import Pattern
from tmuxctl.value import changed
from tmuxctl.vocabulary import Detail, EvidenceKind, InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile
    from tmuxctl.results import Asking


EDITOR_ROWS = 3
"""Rows at the bottom in which editors ask."""

SHELL_END = Pattern(r"[$#%❯➜λ]$")


def waiting(seen: Scene, confidence: Confidence) -> Verdict:
    """The verdict on a program that waits: what for."""
    found = question(seen)
    if found is not None:
        by = EvidenceKind.KERNEL if seen.secret else EvidenceKind.ASKING_MARK
        return asking(found, _how(seen), by=by, confidence=confidence)
    by = EvidenceKind.PROMPT if seen.prompt or seen.continuation else EvidenceKind.KERNEL
    return idle_now(seen, seen.how, by=by, confidence=confidence)


def asks(found: Asking, how: str, confidence: Confidence) -> Verdict:
    """The verdict on a question told by its text."""
    return asking(found, how, confidence=confidence)


def _how(seen: Scene) -> str:
    return "echo off" if seen.secret else seen.how


def question(seen: Scene) -> Asking | None:
    """The question a waiting program asks, or None if it waits for the next line or key."""
    name = seen.now.name if seen.now else ""
    tells = _tells(seen)
    if tells.secret:
        # a shell at its prompt whose echo was switched off (`stty -echo`) asks for nothing
        return None if seen.prompt and programs.is_shell(name) else _at_cursor(seen, tells)
    if programs.is_editor(name):
        return _of_editor(seen, tells)
    if seen.prompt or seen.continuation or _at_prompt(seen, name):
        return None
    if match := patterns.first(seen.profile.asking, seen.text) if seen.profile else None:
        from tmuxctl.reading.questions import questions

        return questions.by_rule(match, seen.text)
    # an agent that asks shows its question in the place of its prompt
    heard = not _profiled(seen) or draws_input(seen)
    dialog = _dialog(seen, name) if tells.raw and not tells.pager and heard else None
    return dialog or _at_cursor(seen, tells)


def _of_editor(seen: Scene, tells: Tells) -> Asking | None:
    """A question an editor asks on its last rows, below the text: with its answers spelled out, or each with its key on
    the rows below."""
    left = seen.text.left.rstrip()
    spelled = _on_last_rows(seen) and patterns.SPELLED.search(left)
    # above its last row text of anybody's may stand
    if spelled or (seen.look.y == seen.look.rows - 1 and patterns.CONFIRM.search(left)):
        return _at_cursor(seen, changed(tells, raw=True, single=True, line=False))
    return _with_legend(seen)


def _on_last_rows(seen: Scene) -> bool:
    return seen.look.y >= seen.look.rows - EDITOR_ROWS


def _with_legend(seen: Scene) -> Asking | None:
    from tmuxctl.reading.questions import questions

    return questions.with_legend(seen.text) if _on_last_rows(seen) else None


def question_alone(seen: Scene) -> Asking | None:
    """The same where nothing but the text tells that it waits."""
    if _at_prompt(seen, ""):
        return None
    if patterns.alone_a_question(seen.text.left):
        found = _at_cursor(seen, changed(_tells(seen), raw=True))
        if found is not None:
            return found
    return None if seen.raw is False else _dialog(seen, "") or _with_legend(seen)


def _at_cursor(seen: Scene, tells: Tells) -> Asking | None:
    from tmuxctl.reading.questions import questions

    return questions.at_cursor(seen.text, tells)


def _tells(seen: Scene) -> Tells:
    now, raw = seen.now, seen.raw
    reads_keys = bool(raw) and now is not None and now.word == READS and not now.opaque
    pager = now is not None and programs.is_pager(now.name)
    return Tells(single=reads_keys, raw=raw is not False, pager=pager, secret=seen.secret, line=not seen.full_screen)


def _at_prompt(seen: Scene, name: str) -> bool:
    """A command line is being written: what it says is no question."""
    left = seen.text.left
    if programs.is_shell(name):
        return bool(seen.raw) and (patterns.ends_like_prompt(left) or patterns.typed_behind_prompt(left))
    # without a line editor the program itself wrote what names answers behind its prompt
    if seen.raw is False and patterns.plain_question(left):
        return False
    return patterns.typed_behind_prompt(left) and bool(patterns.REPL.search(patterns.prompt_of(left) or ""))


def _dialog(seen: Scene, name: str) -> Asking | None:
    """A menu or buttons on the screen of a program that reads keys."""
    look = seen.look
    if programs.is_shell(name):
        return None
    from tmuxctl.reading.questions import dialogs, menus

    if look.visible and patterns.ends_like_prompt(seen.text.left):
        return menus.below_cursor(seen.text, (look.x, look.y))
    return dialogs.on_screen(seen.text, (look.x, look.y), visible=look.visible, hides=seen.evidence.hides)


def _profiled(seen: Scene) -> bool:
    """A profile knows this program's dialogs: what else looks like one may be quoted in an answer."""
    profile = seen.profile
    return profile is not None and bool(profile.prompt) and meant(seen) and not of_interpreter(profile)


def is_agent(profile: Profile) -> bool:
    """Whether it is an agent's profile: such a program draws its own input, whatever it is written in."""
    return any(rule.detail == Detail.AGENT for rule in profile.prompt)


def draws_input(seen: Scene) -> bool:
    """The program draws its own input, and its profile knows it: nothing else is one."""
    return seen.profile is not None and is_agent(seen.profile) and meant(seen)


def of_interpreter(profile: Profile) -> bool:
    """Whether a profile knows no more than the prompt of a shell or interpreter: what a script of it shows is its own."""
    knows_busy = profile.busy or profile.title_busy
    return not knows_busy and all(rule.detail in (Detail.SHELL, Detail.REPL) for rule in profile.prompt)


def meant(seen: Scene) -> bool:
    """Whether the profile is meant for the program in the foreground."""
    profile, now = seen.profile, seen.now
    if profile is None or now is None or not profile.foreground:
        return profile is not None
    if is_agent(profile):
        return not (programs.is_pager(now.name) or programs.is_editor(now.name))
    from fnmatch import fnmatchcase

    return any(fnmatchcase(now.name, pattern) for pattern in profile.foreground)


def idle_now(seen: Scene, how: str, *, by: EvidenceKind, confidence: Confidence) -> Verdict:
    """The verdict on a program that takes input: of which kind."""
    kind, detail = idle_kind(seen)
    return idle(seen, kind, detail, how, by=by, confidence=confidence)


def idle_kind(seen: Scene) -> tuple[InputKind, Detail | None]:
    """The kind of an idle program, and for a prompt whose it is."""
    now = seen.now
    name = now.name if now is not None and not now.opaque else ""
    told = InputKind.of(seen.prompt.rule.kind) if seen.prompt else None
    if told not in (None, InputKind.PROMPT):
        return told, None
    if programs.is_editor(name):
        return InputKind.EDITOR, None
    if seen.prompt is not None:
        return InputKind.PROMPT, Detail.of(seen.prompt.rule.detail) or _whose(seen, name)
    if seen.continuation is not None:
        return InputKind.CONTINUATION, Detail.of(seen.continuation.rule.detail)
    # the alternate screen of a multiplexer is none of the shell's in it
    if programs.is_shell(name) and (not seen.look.alternate or patterns.ends_like_prompt(seen.text.left)):
        return _of_shell(seen, name)
    if name and (seen.full_screen or (seen.raw and _laid_out(seen))):
        asks_for_line = not seen.look.alternate and patterns.asks_above(seen.text)
        return (InputKind.LINE if asks_for_line else InputKind.TUI), None
    if patterns.continued(seen.text, shell=not name):
        return InputKind.CONTINUATION, None
    return _of_text(seen, name)


def _laid_out(seen: Scene) -> bool:
    """The cursor stands in a box, or in no prompt below one."""
    left = seen.text.left
    prompt = patterns.ends_like_prompt(left) or patterns.typed_behind_prompt(left)
    return patterns.boxed(seen.text) or (patterns.framed(seen.text) and not prompt)


def _of_shell(seen: Scene, name: str) -> tuple[InputKind, Detail | None]:
    reads_here = seen.now is not None and seen.now.word == READS
    prompt = patterns.ends_like_prompt(seen.text.left) or patterns.typed_behind_prompt(seen.text.left)
    if seen.raw:
        # bash edits its command line in pselect: what it blocks for is `read`
        line = reads_here and programs.bare(name) in ("bash", "rbash") and not prompt
    else:
        line = not SHELL_END.search(seen.text.bare) and not continued(seen)
        line = line or (programs.edits_lines(name) and not patterns.alone_a_prompt(seen.text.left))
    if line:
        return InputKind.LINE, None
    return (InputKind.CONTINUATION if continued(seen) else InputKind.PROMPT), Detail.SHELL


def continued(seen: Scene) -> bool:
    """A shell wants more of the same input: behind a second prompt, or below the first one."""
    prompts = seen.profile.prompt if seen.profile else ()
    return patterns.continued(seen.text, shell=True) or patterns.indented(seen.text, prompts)


def _of_text(seen: Scene, name: str) -> tuple[InputKind, Detail | None]:
    prompt = patterns.prompt_of(seen.text.left) or ""
    if patterns.library_question(seen.text.left):
        return InputKind.LINE, None
    if patterns.REPL.search(prompt) or (name and patterns.ENDS.search(prompt)):
        return InputKind.PROMPT, Detail.REPL
    if SHELL_END.search(prompt) or (not name and patterns.ENDS.search(prompt)):
        return InputKind.PROMPT, Detail.SHELL
    return InputKind.LINE, None


def _whose(seen: Scene, name: str) -> Detail:
    if programs.is_shell(name):
        return Detail.SHELL
    return _of_text(seen, name)[1] or Detail.REPL
