"""The options of a list on the screen, as a profile's rule chooses among them, and where rules look."""

from __future__ import annotations

from typing import Any

import pytest
from reading.looks import KEYS, evidence, kernel, look, program, steady, thread

from tmuxctl.evidence import NONE
from tmuxctl.model import Confidence, State
from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.questions import choices
from tmuxctl.reading.questions.menus import make_decision_ids
from tmuxctl.reading.state.judging import Verdict, judge
from tmuxctl.reading.text import patterns
from tmuxctl.results import Asking

LINE = "─" * 20
AGENT = kernel(program("agent", thread("epoll_wait")), tty=KEYS)

DIALOG = f"""\
● Of course.
{LINE}
 Bash command

   rm -r build
   Remove what was built

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don't ask again for rm
   3. No, and tell me what to do
      differently (esc)

 Esc to cancel"""


def asked(screen: str, **said: Any) -> Asking:
    rule = Rule(**{"id": "tool", "re": "Esc to cancel|Yes", "begin": "^─{10,}", "kind": "approval", **said})
    found = judge(steady(screen, AGENT, visible=False), Profile("agent", asking=(rule,))).asking
    assert found is not None
    return found


def keys(found: Asking) -> dict[str, tuple[str, ...]]:
    return {one.id: one.keys for one in found.options}


# What the options of a list are, and the keys for each


def test_a_number_answers_at_once_or_with_enter() -> None:
    assert keys(asked(DIALOG, menu="digits")) == {"allow": ("1",), "always": ("2",), "deny": ("3",)}
    assert keys(asked(DIALOG, menu="numbers"))["always"] == ("2", "Enter")


def test_an_option_is_reached_from_the_marked_one() -> None:
    found = keys(asked(DIALOG, menu="arrows"))
    assert found == {"allow": ("Enter",), "always": ("Down", "Enter"), "deny": ("Down", "Down", "Enter")}


def test_options_without_numbers_are_reached_from_the_marked_one() -> None:
    screen = DIALOG.replace(" ❯ 1. Yes", " ❯ Yes").replace("   2. Yes", "   Yes").replace("   3. No", "   No")
    screen = screen.replace("\n      differently (esc)", "")
    found = asked(screen, menu="arrows")
    assert keys(found) == {"allow": ("Enter",), "always": ("Down", "Enter"), "deny": ("Down", "Down", "Enter")}
    assert found.question == "Bash command — rm -r build Remove what was built — Do you want to proceed?"


def test_an_option_names_its_own_key_also_in_its_second_row() -> None:
    screen = DIALOG.replace("1. Yes", "1. Yes (y)").replace("for rm", "for rm (p)")
    found = asked(screen, menu="letters")
    assert keys(found) == {"allow": ("y",), "always": ("p",), "deny": ("Escape",)}
    assert [one.label for one in found.options] == [
        "Yes",
        "Yes, and don't ask again for rm",
        "No, and tell me what to do differently",
    ]


def test_a_rule_may_know_other_keys_for_an_option() -> None:
    assert keys(asked(DIALOG, menu="digits", options={"deny": ("Escape",)}))["deny"] == ("Escape",)


def test_without_a_list_the_options_of_the_rule_count() -> None:
    screen = f"{LINE}\n Really? Yes or no"
    assert keys(asked(screen, menu="digits", options={"allow": ("y",), "deny": ("n",)})) == {
        "allow": ("y",),
        "deny": ("n",),
    }


def test_a_list_in_a_box_and_the_last_of_two_lists_is_read() -> None:
    box = f"{LINE}\n│ 1. first step │\n│ 2. second step │\n│              │\n│ ● 1. Allow once │\n│   2. No (esc) │\n╰───╯ Yes"
    assert keys(asked(box, menu="digits")) == {"allow": ("1",), "deny": ("2",)}


def test_words_with_a_letter_in_brackets_are_typed() -> None:
    screen = f"{LINE}\nmake clean\nRun it? Yes (Y)es/(N)o/(D)on't ask again [Yes]:"
    found = asked(screen, menu="typed")
    assert keys(found) == {"allow": ("y", "Enter"), "deny": ("n", "Enter"), "dont-ask-again": ("d", "Enter")}
    assert found.default == "allow"
    assert found.question.startswith("make clean")


def test_the_options_of_a_choice_are_its_numbers_and_what_describes_them_is_left_out() -> None:
    screen = f"{LINE}\nWhich colour?\n\n❯ 1. Red\n     warm, Yes\n  2. Blue\n     cold\n{LINE}\n  3. Chat about it"
    found = asked(screen, kind="choice", menu="digits", begin="^Which")
    assert [(one.id, one.label) for one in found.options] == [("1", "Red"), ("2", "Blue"), ("3", "Chat about it")]
    assert (found.question, found.default) == ("Which colour?", "1")


def test_the_options_of_a_confirmation_are_yes_and_no_and_their_words_else() -> None:
    listed = f"{LINE}\nGo on?\n❯ 1. Yes\n  2. No, and say why\n  3. …"
    assert list(keys(asked(listed, kind="confirm", menu="digits"))) == ["yes", "no", "3"]
    twice = f"{LINE}\nGo on?\n❯ 1. Yes\n  2. Yes, always"
    assert list(keys(asked(twice, kind="confirm", menu="digits"))) == ["yes", "yes-always"]
    plain = f"{LINE}\nYes?\n❯ Red\n  Dark blue\n  other"
    assert list(keys(asked(plain, kind="choice", menu="arrows"))) == ["red", "dark-blue", "other"]


def test_only_words_below_the_marked_ones_are_options() -> None:
    screen = f"{LINE}\nYes\nnone\n  one\n❯ two\n  three\n further\n"
    assert keys(asked(screen, kind="choice", menu="arrows")) == {
        "one": ("Up", "Enter"),
        "two": ("Enter",),
        "three": ("Down", "Enter"),
    }
    # one option is no list
    assert asked(f"{LINE}\nYes\n❯ two\n further", kind="choice", menu="arrows").options == ()
    assert asked(f"{LINE}\nYes\n  two", kind="choice", menu="arrows").options == ()


def test_a_list_counts_from_one_without_a_gap() -> None:
    assert asked(f"{LINE}\nYes\n  1. one\n  3. three", kind="choice", menu="digits").options == ()
    assert asked(f"{LINE}\nYes\n  2. two\n  3. three", kind="choice", menu="digits").options == ()
    again = asked(f"{LINE}\nYes\n  1. one\n  2. two\n  1. uno\n  2. due\n  3. tre", kind="choice", menu="numbers")
    assert keys(again) == {"1": ("1", "Enter"), "2": ("2", "Enter"), "3": ("3", "Enter")}
    assert [one.label for one in again.options] == ["uno", "due", "tre"]
    many = "\n".join(f"  {number}. option {number}" for number in range(1, 60))
    found = asked(f"{LINE}\nYes\n{many}", kind="choice", menu="numbers")
    assert len(found.options) == 40
    assert keys(found)["12"] == ("1", "2", "Enter")


@pytest.mark.parametrize(
    ("named", "key"),
    [("(Esc)", "Escape"), ("(enter)", "Enter"), ("(Shift+Tab)", "BTab"), ("(tab)", "Tab"), ("(x)", "x"), ("(X)", "X")],
)
def test_an_option_may_name_any_key(named: str, key: str) -> None:
    screen = f"{LINE}\nYes\n  1. one {named}\n❯ 2. two"
    assert keys(asked(screen, kind="choice", menu="letters")) == {"1": (key,), "2": ("Enter",)}
    assert asked(screen, kind="choice", menu="letters").options[0].label == "one"


def test_words_with_a_letter_in_brackets_stand_in_the_last_row() -> None:
    screen = f"{LINE}\n(A)ll/(N)one:\nYes (y)es/[n]o/(m)ore words\n\n"
    found = asked(screen, menu="typed")
    assert keys(found) == {"allow": ("y", "Enter"), "deny": ("n", "Enter"), "more-words": ("m", "Enter")}
    assert found.default is None
    assert asked(f"{LINE}\n(A)ll/(N)one:\nYes", menu="typed").options == ()


def test_what_a_person_writes_looks_like_a_menu_only_where_the_cursor_is_elsewhere() -> None:
    rows = ["❯ 1. one", "  2. two", "", "footer"]
    for x, y, visible, menu in (
        (8, 0, True, False),
        (9, 1, True, False),
        (7, 1, True, True),
        (0, 2, True, True),
        (9, 1, False, False),
        (6, 3, False, True),
        (5, 3, False, True),
    ):
        screen = patterns.read_screen(look("\n".join(["above", *rows]), x=x, y=y + 1))
        assert choices.is_menu(rows, screen, visible=visible) is menu, (x, y, visible)
    screen = patterns.read_screen(look("\n".join(rows), x=0, y=2))
    assert not choices.is_menu(["❯ 1. one", "  3. three"], screen, visible=True)
    assert not choices.is_menu(["❯ 1. one"], screen, visible=True)
    assert not choices.is_menu(["❯ one", "1. two", "2. three"], screen, visible=True)


# What is asked, and what of it is a default


def test_the_rows_above_the_list_are_the_question_and_tell_its_risk() -> None:
    found = asked(DIALOG, menu="digits")
    assert found.question == "Bash command — rm -r build Remove what was built — Do you want to proceed?"
    assert (found.default, found.risk) == ("allow", "high")
    assert asked(DIALOG.replace("rm -r build", "ls").replace("Remove", "Look at"), menu="digits").risk == "unknown"


@pytest.mark.parametrize("menu", ["digits", "arrows"])
def test_what_widens_a_permission_is_no_default_though_it_is_marked(menu: str) -> None:
    moved = DIALOG.replace("❯ 1", "  1").replace("  2", "❯ 2")
    assert asked(moved, menu=menu).default is None
    assert asked(DIALOG.replace("❯ 1", "  1").replace("  3", "❯ 3"), menu=menu).default == "deny"


def test_trust_has_no_default() -> None:
    screen = f"{LINE}\nDo you trust the files here?\n❯ 1. Yes, I trust this folder\n  2. No, exit"
    found = asked(screen, kind="trust", menu="digits")
    assert (keys(found), found.default) == ({"allow": ("1",), "deny": ("2",)}, None)
    # nor where no profile knows the program
    known = judge(steady(screen, AGENT, visible=False)).asking
    assert known is not None
    assert (known.kind, known.default, [one.id for one in known.options]) == ("trust", None, ["allow", "deny"])


@pytest.mark.parametrize(
    ("labels", "ids"),
    [
        (["Yes", "No"], ["allow", "deny"]),
        (["Allow once", "Allow for this session", "Allow always", "No"], ["allow", "always", "allow-always", "deny"]),
        (["Trust folder", "Trust parent folder", "Don't trust"], ["allow", "always", "deny"]),
        (
            ["Yes, and auto-accept edits", "Yes, and manually approve edits", "No, keep planning"],
            ["always", "allow", "deny"],
        ),
        (
            ["Yes", "All", "No", "Skip all", "Don't ask again"],
            ["allow", "always", "deny", "skip-all", "dont-ask-again"],
        ),
        (["Run", "Edit the command", "Reject", "Cancel"], ["allow", "edit-the-command", "deny", "cancel"]),
        (["Approve", "Approve"], ["allow", "approve"]),
    ],
)
def test_an_option_of_an_approval_is_called_by_what_it_means(labels: list[str], ids: list[str]) -> None:
    assert make_decision_ids(labels) == ids


def test_options_of_one_name_have_an_id_each() -> None:
    assert len(set(make_decision_ids(["Maybe", "Maybe", "Maybe", "Yes", "Yes", "Yes"]))) == 6


# Where a rule looks


def fits(rule: Rule, screen: str, title: str = "") -> bool:
    return patterns.find_match([rule], patterns.read_screen(look(screen, title=title))) is not None


def test_a_rule_looks_from_the_last_row_on_that_its_beginning_fits() -> None:
    rule = Rule("busy", "working", begin="^=")
    assert fits(rule, "=\nnothing\n=\nworking")
    assert not fits(rule, "=\nworking\n=\nnothing")
    assert not fits(rule, "working")


def test_a_rule_does_not_count_where_its_exception_is() -> None:
    rule = Rule("input", "^>", begin="^>", unless="Esc to cancel")
    assert fits(rule, "Esc to cancel\n> hello")
    assert not fits(rule, "> 1. Yes\n  2. No\nEsc to cancel")


def test_a_rule_counts_only_under_its_title() -> None:
    rule = Rule("input", "^>", title="^ready")
    assert fits(rule, ">", "ready")
    assert not fits(rule, ">", "at work")


# An agent program, whose input is its own


def alone(screen: str, profile: Profile, quiet: float = 2.0) -> Verdict:
    return judge(evidence(look(screen, quiet=quiet), proc=NONE), profile)


CHAT = Profile("chat", prompt=(Rule("input", "^❯", begin="^❯", unless=r"^[^\s❯─]", detail="agent"),))


def test_what_looks_like_a_prompt_in_the_answer_of_an_agent_is_none() -> None:
    for answer in ("$ ", "> quoted", "user@host:~$ ", "Password:"):
        verdict = alone(f"❯ hello\n● It says:\n{answer}", CHAT)
        assert verdict.state is not State.IDLE, (answer, verdict)
        later = alone(f"❯ hello\n● It says:\n{answer}", CHAT, quiet=9.0)
        assert later.state is not State.IDLE, (answer, later)


def test_what_is_written_in_its_input_may_look_like_progress() -> None:
    verdict = alone(f"{LINE}\n❯ make it 50%", CHAT)
    assert (verdict.state, verdict.detail, verdict.confidence) == (State.IDLE, "agent", Confidence.LIKELY)


def test_a_dialog_that_its_profile_does_not_know_is_found_where_its_input_was() -> None:
    screen = f"❯ hello\n● Hi.\n{LINE}\nPick a theme\n❯ 1. Dark\n  2. Light"
    verdict = judge(steady(screen, AGENT, visible=False, quiet=2.0), CHAT)
    assert (verdict.state, verdict.kind) == (State.ASKING, "choice")


def test_a_list_that_a_person_writes_into_its_input_is_no_menu() -> None:
    screen = f"{LINE}\n❯ 1. tidy up\n  2. run the tests"
    assert alone(screen, CHAT).state is State.IDLE
    assert judge(evidence(look(screen, x=0, y=1, visible=False), proc=NONE), CHAT).state is State.ASKING


def test_a_limit_is_told_with_the_words_for_when_it_is_over() -> None:
    limit = Rule("limit", r"limit reached, resets (?P<until>.+)", begin="^!", detail="limited")
    profile = Profile("chat", prompt=CHAT.prompt, errors=(limit,))
    verdict = alone(f"! limit reached, resets 3pm\n{LINE}\n❯ ", profile)
    assert (verdict.state, verdict.detail, verdict.until) == (State.IDLE, "limited", "3pm")
    assert alone(f"{LINE}\n❯ ", profile).until is None


# Where no profile knows the program


def test_a_busy_sign_around_a_framed_input_counts_and_one_above_a_shells_prompt_does_not() -> None:
    sign = "· Pondering… (3s · esc to interrupt)"
    framed = look(f"{sign}\n{LINE}\n❯ \n{LINE}\n  ? for help", x=2, y=2)
    assert judge(evidence(framed, proc=NONE)).state is State.BUSY
    assert judge(evidence(look(f"{sign}\nuser@host:~$ "), proc=NONE)).state is State.IDLE


def test_a_menu_on_a_screen_without_a_cursor_is_guessed_to_ask() -> None:
    screen = "\n" * 18 + "Allow this?\n❯ 1. Yes\n  2. No\n\nEsc to cancel"
    seen = [look(screen, at=at, quiet=at, visible=False, x=0, y=0, rows=24) for at in (1.0, 2.0, 3.0, 4.0)]
    verdict = judge(evidence(*seen, proc=NONE))
    assert (verdict.state, verdict.kind, verdict.confidence) == (State.ASKING, "approval", Confidence.GUESS)
