"""Which kind of input a waiting program takes: a decision, or the next line, text or key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tmuxctl.model import Confidence
from tmuxctl.program_profile import is_named
from tmuxctl.reading.evidence import programs
from tmuxctl.reading.evidence.tty_waits import READING
from tmuxctl.reading.questions import questions
from tmuxctl.reading.questions.questions import InputMode
from tmuxctl.reading.state.situation import Situation, Verdict, asking, idle
from tmuxctl.reading.text import patterns
from tmuxctl.value import changed
from tmuxctl.vocabulary import Detail, EvidenceKind, InputKind

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile
    from tmuxctl.results import Asking


EDITOR_ROWS = 3
"""Rows at the bottom in which editors ask."""


def judge_waiting(situation: Situation, confidence: Confidence) -> Verdict:
    """The verdict on a program that waits: what for."""
    question = find_question(situation)
    if question is not None and situation.hides_input:
        return asking(question, "echo off", by=EvidenceKind.KERNEL, confidence=confidence)
    if question is not None:
        return asking(question, situation.wait_description, confidence=confidence)
    by = EvidenceKind.PROMPT if situation.at_prompt else EvidenceKind.KERNEL
    return judge_idle(situation, situation.wait_description, by=by, confidence=confidence)


def judge_question(question: Asking, how: str, confidence: Confidence) -> Verdict:
    """The verdict on a question told by its text."""
    return asking(question, how, confidence=confidence)


def find_question(situation: Situation) -> Asking | None:
    """The question a waiting program asks, or None if it waits for the next line or key."""
    name = situation.foreground.name if situation.foreground else ""
    mode = _find_input_mode(situation)
    if mode.hides_input:
        # a shell at its prompt whose echo was switched off (`stty -echo`) asks for nothing
        return None if situation.prompt and programs.is_shell(name) else _find_question_at_cursor(situation, mode)
    if programs.is_editor(name):
        return _find_editor_question(situation, mode)
    if situation.at_prompt or _is_at_prompt(situation, name):
        return None
    if match := patterns.find_match(situation.profile.asking, situation.text) if situation.profile else None:
        return questions.build_rule_question(match, situation.text)
    # an agent that asks shows its question in the place of its prompt
    heard = not _profile_knows_dialogs(situation) or draws_input(situation)
    dialog = _find_dialog(situation, name) if mode.raw and not mode.pager and heard else None
    return dialog or _find_question_at_cursor(situation, mode)


def _find_editor_question(situation: Situation, mode: InputMode) -> Asking | None:
    """A question an editor asks on its last rows, below the text: with its answers spelled out, or each with its key on
    the rows below."""
    left = situation.text.left.rstrip()
    spelled = _is_on_last_rows(situation) and patterns.SPELLED.search(left)
    # above its last row is the text that is edited
    if spelled or (situation.look.y == situation.look.rows - 1 and patterns.CONFIRM.search(left)):
        return _find_question_at_cursor(situation, changed(mode, raw=True, single=True, line=False))
    return _find_legend_question(situation)


def _is_on_last_rows(situation: Situation) -> bool:
    return situation.look.y >= situation.look.rows - EDITOR_ROWS


def _find_legend_question(situation: Situation) -> Asking | None:
    return questions.find_question_with_legend(situation.text) if _is_on_last_rows(situation) else None


def find_question_by_text(situation: Situation) -> Asking | None:
    """The same where nothing but the text tells that it waits."""
    if _is_at_prompt(situation, ""):
        return None
    if patterns.is_likely_question(situation.text.left):
        question = _find_question_at_cursor(situation, changed(_find_input_mode(situation), raw=True))
        if question is not None:
            return question
    return None if situation.raw is False else _find_dialog(situation, "") or _find_legend_question(situation)


def _find_question_at_cursor(situation: Situation, mode: InputMode) -> Asking | None:
    return questions.find_question_at_cursor(situation.text, mode)


def _find_input_mode(situation: Situation) -> InputMode:
    foreground, raw = situation.foreground, situation.raw
    reads_keys = bool(raw) and foreground is not None and foreground.wait is READING and not foreground.remote_wrapper
    pager = foreground is not None and programs.is_pager(foreground.name)
    return InputMode(
        single=reads_keys,
        raw=raw is not False,
        pager=pager,
        hides_input=situation.hides_input,
        line=not situation.full_screen,
    )


def _is_at_prompt(situation: Situation, name: str) -> bool:
    """A command line is being written: what it says is no question."""
    left = situation.text.left
    if programs.is_shell(name):
        return bool(situation.raw) and (patterns.ends_like_prompt(left) or patterns.has_text_behind_prompt(left))
    # without a line editor the program itself wrote what names answers behind its prompt
    if situation.raw is False and patterns.names_answers(left):
        return False
    return patterns.has_text_behind_prompt(left) and bool(patterns.REPL.search(patterns.extract_prompt(left) or ""))


def _find_dialog(situation: Situation, name: str) -> Asking | None:
    """A menu or buttons on the screen of a program that reads keys."""
    look = situation.look
    if programs.is_shell(name):
        return None
    from tmuxctl.reading.questions import dialogs, menus

    if look.visible and patterns.ends_like_prompt(situation.text.left):
        return menus.find_menu_below_cursor(situation.text, (look.x, look.y))
    return dialogs.find_dialog(situation.text, (look.x, look.y), visible=look.visible, hides=situation.evidence.hides)


def _profile_knows_dialogs(situation: Situation) -> bool:
    """A profile knows this program's dialogs: what else looks like one may be quoted in an answer."""
    profile = situation.profile
    return profile is not None and bool(profile.prompt) and is_for_foreground(situation) and not is_interpreter(profile)


def is_agent(profile: Profile) -> bool:
    """Whether it is an agent's profile: such a program draws its own input, whatever it is written in."""
    return any(rule.detail == Detail.AGENT for rule in profile.prompt)


def draws_input(situation: Situation) -> bool:
    """The program draws its own input, and its profile knows it: nothing else is one."""
    return situation.profile is not None and is_agent(situation.profile) and is_for_foreground(situation)


def is_interpreter(profile: Profile) -> bool:
    """Whether a profile knows no more than the prompt of a shell or interpreter: what a script of it shows is its own."""
    knows_busy = profile.busy or profile.title_busy
    return not knows_busy and all(rule.detail in (Detail.SHELL, Detail.REPL) for rule in profile.prompt)


def is_for_foreground(situation: Situation) -> bool:
    """Whether the profile is meant for the program in the foreground."""
    profile, foreground = situation.profile, situation.foreground
    if profile is None or foreground is None or not profile.foreground:
        return profile is not None
    if is_agent(profile):
        return not (programs.is_pager(foreground.name) or programs.is_editor(foreground.name))
    return is_named(foreground.name, profile.foreground)


def judge_idle(situation: Situation, how: str, *, by: EvidenceKind, confidence: Confidence) -> Verdict:
    """The verdict on a program that takes input: of which kind."""
    kind, detail = find_idle_kind(situation)
    return idle(situation, kind, detail, how, by=by, confidence=confidence)


def find_idle_kind(situation: Situation) -> tuple[InputKind, Detail | None]:
    """The kind of an idle program, and for a prompt whose it is."""
    foreground = situation.foreground
    name = foreground.name if foreground is not None and not foreground.remote_wrapper else ""
    rule_kind = InputKind.of(situation.prompt.rule.kind) if situation.prompt else None
    if rule_kind not in (None, InputKind.PROMPT):
        return rule_kind, None
    if programs.is_editor(name):
        return InputKind.EDITOR, None
    if situation.prompt is not None:
        return InputKind.PROMPT, Detail.of(situation.prompt.rule.detail) or _find_prompt_owner(situation, name)
    if situation.continuation is not None:
        return InputKind.CONTINUATION, Detail.of(situation.continuation.rule.detail)
    # the alternate screen of a multiplexer is none of the shell's in it
    if programs.is_shell(name) and (not situation.look.alternate or patterns.ends_like_prompt(situation.text.left)):
        return _find_shell_kind(situation, name)
    if name and (situation.full_screen or (situation.raw and _is_laid_out(situation))):
        asks_for_line = not situation.look.alternate and patterns.has_question_at_bottom(situation.text)
        return (InputKind.LINE if asks_for_line else InputKind.TUI), None
    if patterns.is_continued(situation.text, shell=not name):
        return InputKind.CONTINUATION, None
    return _find_kind_by_text(situation, name)


def _is_laid_out(situation: Situation) -> bool:
    """The cursor stands in a box, or in no prompt below one."""
    left = situation.text.left
    prompt = patterns.ends_like_prompt(left) or patterns.has_text_behind_prompt(left)
    return patterns.is_boxed(situation.text) or (patterns.is_framed(situation.text) and not prompt)


def _find_shell_kind(situation: Situation, name: str) -> tuple[InputKind, Detail | None]:
    reads_here = situation.foreground is not None and situation.foreground.wait is READING
    prompt = patterns.ends_like_prompt(situation.text.left) or patterns.has_text_behind_prompt(situation.text.left)
    if situation.raw:
        # bash edits its command line in pselect: what it blocks for is `read`
        line = reads_here and programs.base_name(name) in ("bash", "rbash") and not prompt
    else:
        line = not patterns.SHELL_PROMPT.search(situation.text.bare) and not is_continued(situation)
        line = line or (programs.edits_lines(name) and not patterns.is_likely_prompt(situation.text.left))
    if line:
        return InputKind.LINE, None
    return (InputKind.CONTINUATION if is_continued(situation) else InputKind.PROMPT), Detail.SHELL


def is_continued(situation: Situation) -> bool:
    """A shell wants more of the same input: behind a second prompt, or below the first one."""
    prompts = situation.profile.prompt if situation.profile else ()
    return patterns.is_continued(situation.text, shell=True) or patterns.is_indented_below_prompt(
        situation.text, prompts
    )


def _find_kind_by_text(situation: Situation, name: str) -> tuple[InputKind, Detail | None]:
    prompt = patterns.extract_prompt(situation.text.left) or ""
    if patterns.is_library_question(situation.text.left):
        return InputKind.LINE, None
    if patterns.REPL.search(prompt) or (name and patterns.ENDS.search(prompt)):
        return InputKind.PROMPT, Detail.REPL
    if patterns.SHELL_PROMPT.search(prompt) or (not name and patterns.ENDS.search(prompt)):
        return InputKind.PROMPT, Detail.SHELL
    return InputKind.LINE, None


def _find_prompt_owner(situation: Situation, name: str) -> Detail:
    if programs.is_shell(name):
        return Detail.SHELL
    return _find_kind_by_text(situation, name)[1] or Detail.REPL
