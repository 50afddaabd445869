"""The questions programs ask: what they are, how each answer is given, and that a question keeps its id."""

from __future__ import annotations

import pytest
from reading.looks import KEYS, LINES, evidence, kernel, look, program, recorded, steady, thread

from tmuxctl.evidence import Tty
from tmuxctl.model import State
from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.state.judging import judge
from tmuxctl.results import Asking

READS_LINES = kernel(program("setup", "read"), tty=LINES)
READS_KEYS = kernel(program("setup", "read"), tty=KEYS)
LISTENS = kernel(program("setup", thread("epoll_wait")), tty=KEYS)


def asked(screen: str, seen: object = READS_LINES, **known: object) -> Asking:
    verdict = judge(steady(screen, seen, **known))  # type: ignore[arg-type]
    assert verdict.state is State.ASKING, verdict
    assert verdict.asking is not None
    assert verdict.kind == verdict.asking.kind
    return verdict.asking


def keys(found: Asking) -> dict[str, tuple[str, ...]]:
    return {one.id: one.keys for one in found.options}


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("Overwrite file? [y/N] ", "no"),
        ("Do you want to continue? [Y/n] ", "yes"),
        ("Continue? (y/n) ", None),
        ("Continue? (y/n): ", None),
        ("Quit anyway? (y or n) ", None),
        ("Make breakpoint pending? (y or [n]) ", "no"),
        ("Use it? ([y] or n) ", "yes"),
        ("Really? y/n ", None),
        ("Is this ok [y/N]: ", "no"),
        ("Proceed ([y]/n)? ", "yes"),
        ("Use the cache? (y/n) [n]: ", "no"),
        ("Delete everything? [N/y] ", "no"),
        ("really delete all? [n/y]: ", None),
        ("Overwrite it <n/y> ", None),
        ("Really? n/y ", None),
    ],
)
def test_yes_or_no_is_answered_with_a_letter_and_enter(text: str, default: str | None) -> None:
    found = asked(text)
    assert (found.kind, found.default) == ("confirm", default)
    assert keys(found) == {"yes": ("y", "Enter"), "no": ("n", "Enter")}
    assert found.question == text.strip()


@pytest.mark.parametrize(
    ("text", "default"),
    [
        ("Continue? [y/n] (n) ", "no"),
        ("Overwrite (y/n) [n]? ", "no"),
        ("Go on (y/n, default y)? ", "yes"),
        ("Really quit? [y/n] [default: no] ", "no"),
        ("Proceed (y)? ", "yes"),
        ("Install it? [N] ", "no"),
    ],
)
def test_the_answer_that_enter_alone_gives_is_told(text: str, default: str) -> None:
    found = asked(text)
    assert (found.kind, found.default) == ("confirm", default)
    assert keys(found) == {"yes": ("y", "Enter"), "no": ("n", "Enter")}


@pytest.mark.parametrize(
    ("text", "default"), [("Is this OK? (yes) ", "yes"), ("Is CN=me correct?\n  [no]:  ", "no"), ("Go (yes)? ", "yes")]
)
def test_an_answer_offered_as_a_word_is_typed_as_one(text: str, default: str) -> None:
    found = asked(text)
    assert (found.kind, found.default) == ("confirm", default)
    assert keys(found) == {"yes": ("y", "e", "s", "Enter"), "no": ("n", "o", "Enter")}


@pytest.mark.parametrize("text", ["Computing (yes) ", "Your name [me]: ", "Try it (y) or not: ", "[n]: "])
def test_a_default_alone_is_no_question_for_yes_or_no(text: str) -> None:
    assert judge(steady(text, READS_LINES)).state is State.IDLE


def test_words_are_typed_as_they_are_wanted_and_a_text_of_ones_own_is_no_option() -> None:
    found = asked("Are you sure you want to continue connecting (yes/no/[fingerprint])? ")
    assert keys(found) == {"yes": ("y", "e", "s", "Enter"), "no": ("n", "o", "Enter")}
    assert found.default is None


def test_a_program_that_reads_single_keys_gets_no_enter() -> None:
    assert keys(asked("Delete it? [y/n] ", READS_KEYS)) == {"yes": ("y",), "no": ("n",)}
    assert keys(asked("Delete it? [y/n] ", LISTENS)) == {"yes": ("y", "Enter"), "no": ("n", "Enter")}


def test_an_answer_that_allows_everything_is_an_option_and_no_default() -> None:
    found = asked("Allow? [y/n/A] ")
    assert (found.kind, found.default) == ("confirm", None)
    assert keys(found) == {"yes": ("y", "Enter"), "no": ("n", "Enter"), "a": ("A", "Enter")}
    assert keys(asked("Continue? Y/n/q: ")) == {"yes": ("y", "Enter"), "no": ("n", "Enter"), "q": ("q", "Enter")}


@pytest.mark.parametrize("text", ["rm a b?...", "echo a ?..."])
def test_a_command_that_is_to_be_confirmed_wants_yes_or_no(text: str) -> None:
    found = asked(text)
    assert (found.kind, keys(found)) == ("confirm", {"yes": ("y", "Enter"), "no": ("n", "Enter")})


@pytest.mark.parametrize("text", ["Are you sure you want to delete 11 items?", "Really quit? [n/y]"])
def test_a_full_screen_program_asks_on_its_last_row(text: str) -> None:
    reads = kernel(program("mailer", thread("read")), tty=KEYS)
    screen = "\n".join(f"item {row}" for row in range(39)) + "\n" + text
    assert judge(steady(screen, reads, alternate=True)).state is State.ASKING
    listens = kernel(program("mailer", thread("poll", alone=True)), tty=KEYS)
    assert judge(steady(screen, listens, alternate=True)).state is State.ASKING
    # elsewhere its cursor may stand behind anybody's text
    above = f"Subject: it\n{text}\n" + "\n".join(f"item {row}" for row in range(38))
    kind = judge(steady(above, reads, alternate=True, x=len(text), y=1)).kind
    assert kind == ("confirm" if "[" in text else "tui")


def test_a_secret_that_shows_stars_is_a_password() -> None:
    for typed in ("", "********", " ••••"):
        for reader in (READS_KEYS, LISTENS):
            found = asked(f"Password: {typed}", reader)
            assert (found.kind, found.question) == ("password", "Password:")
    assert judge(steady("Rating: ****", READS_LINES)).state is State.IDLE


def test_spelled_answers_are_chosen_by_the_letter_in_brackets() -> None:
    found = asked("Add file to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: ")
    assert keys(found) == {"yes": ("y", "Enter"), "no": ("n", "Enter"), "dont-ask-again": ("d", "Enter")}
    assert found.default == "yes"


SWAP = "[O]pen Read-Only, (E)dit anyway, (Q)uit, (A)bort:"


def test_an_editor_asks_on_its_last_rows_only() -> None:
    at_work = kernel(program("vim", thread("pselect6", tty=True)), tty=KEYS)
    found = judge(steady("\n" * 39 + SWAP, at_work, alternate=True)).asking
    assert found is not None
    assert keys(found) == {"open-read-only": ("o",), "edit-anyway": ("e",), "quit": ("q",), "abort": ("a",)}
    assert judge(steady(SWAP, at_work, alternate=True)).state is State.IDLE


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        (
            "micro",
            "Save changes to notes.txt before closing? (y,n,esc)",
            {"yes": ("y",), "no": ("n",), "esc": ("Escape",)},
        ),
        ("joe", "Lose changes to this file (y,n,^C)? ", {"yes": ("y",), "no": ("n",)}),
        (
            "emacs",
            "Save file /tmp/notes.txt? (y, n, !, ., q, C-r, C-f, d or C-h) ",
            {"yes": ("y",), "no": ("n",), "q": ("q",), "d": ("d",)},
        ),
        ("mg", "Save file notes.txt? (y or n)", {"yes": ("y",), "no": ("n",)}),
    ],
)
def test_an_editor_asks_for_yes_or_no_on_its_last_row(name: str, text: str, told: dict[str, tuple[str, ...]]) -> None:
    waits = kernel(program(name, thread("pselect6", tty=True)), tty=KEYS)
    found = judge(steady("\n" * 39 + text, waits, alternate=True)).asking
    assert found is not None
    assert (found.kind, keys(found)) == ("confirm", told)
    assert judge(steady("\n" * 20 + text, waits, alternate=True)).state is State.IDLE


def test_the_answers_to_an_editors_question_stand_below_it() -> None:
    save = judge(recorded("nano-save"))
    assert (save.state, save.kind) == (State.ASKING, "confirm")
    assert save.asking is not None
    assert save.asking.question == "Save modified buffer?"
    assert keys(save.asking) == {"yes": ("y",), "no": ("n",), "cancel": ("C-c",)}
    replace = judge(recorded("nano-replace")).asking
    assert replace is not None
    assert keys(replace) == {"yes": ("y",), "all": ("a",), "no": ("n",), "cancel": ("C-c",)}
    assert judge(recorded("nano-edits")).state is State.IDLE
    screen = "old\n" * 21 + "Save modified buffer?\n Y Yes\n N No           ^C Cancel"
    assert judge(steady(screen, None, x=22, y=21, rows=24)).kind == "confirm"


def test_single_letters_are_an_approval() -> None:
    found = asked("+40\n(1/2) Stage this hunk [y,n,q,a,d,j,J,g,/,e,?]? ")
    assert found.kind == "approval"
    assert keys(found)["y"] == ("y", "Enter")
    assert keys(found)["/"] == ("/", "Enter")
    assert len(found.options) == 11
    changed = asked("What would you like to do (Y/I/N/O/D/Z) [default=N] ? ")
    assert (keys(changed)["O"], changed.default) == (("O", "Enter"), "N")


def test_a_question_that_wraps_is_told_whole() -> None:
    text = "Are you sure " + "that you really want this " * 5 + "(yes/no)? "
    rows = "\n".join(text[at : at + 80] for at in range(0, len(text), 80))
    assert asked(rows, cols=80).question == text.strip()


def test_a_short_question_brings_the_row_above() -> None:
    assert asked("The following will be removed: vim\n[y/N] ").question == "The following will be removed: vim [y/N]"


@pytest.mark.parametrize(
    "row",
    [
        "$ ./setup",
        "root@vm:~# read -p 'OK? [y/N] ' x",
        "me@vm ~> ./setup",
        "vm% ./setup",
        ">>> ask()",
        "(Pdb) clear",
        "> ask",
    ],
)
def test_the_command_line_above_a_short_question_is_no_part_of_it(row: str) -> None:
    assert asked(f"{row}\nOK? [y/N] ").question == "OK? [y/N]"
    assert asked(f"Remove vim\n{row}\n\nOK? [y/N] ").question == "OK? [y/N]"


def test_what_was_typed_behind_a_question_is_no_part_of_it() -> None:
    first, second = asked("Overwrite? [y/N] "), asked("Overwrite? [y/N] y")
    assert first.id == second.id
    assert second.question == "Overwrite? [y/N]"


def test_a_password_has_no_options() -> None:
    found = asked("Enter passphrase: ", kernel(program("gpg", "read"), tty=Tty(True, False, 0)))
    assert (found.kind, found.options, found.question) == ("password", (), "Enter passphrase:")


@pytest.mark.parametrize(
    "text", ["Press any key to continue", "Press ENTER to continue", "Hit return to go on ", "-- Press RETURN --"]
)
def test_press_any_key_is_answered_with_enter(text: str) -> None:
    found = asked(text)
    assert (found.kind, keys(found)) == ("keys", {"continue": ("Enter",)})


@pytest.mark.parametrize("row", [":", "(END)", "--More--", "lines 1-39", "--More--(12%)"])
def test_a_pager_goes_on_with_space_and_ends_with_q(row: str) -> None:
    found = asked(f"text\n{row}", READS_KEYS)
    assert (found.kind, keys(found)) == ("pager", {"more": ("Space",), "quit": ("q",)})


def test_a_numbered_list_is_answered_with_its_numbers() -> None:
    found = asked("1) red\n2) green\n3) blue\n#? ", kernel(program("bash", "read")))
    assert (found.kind, keys(found)) == ("choice", {"1": ("1", "Enter"), "2": ("2", "Enter"), "3": ("3", "Enter")})
    assert [one.label for one in found.options] == ["red", "green", "blue"]
    assert [one.id for one in asked("1) red    2) green\n#? ").options] == ["1", "2"]
    assert asked("  1. Debian\n  2. Ubuntu\nEnter your choice: ").kind == "choice"


def test_the_row_above_a_numbered_list_says_what_is_chosen() -> None:
    found = asked("$ ./setup\nWhich system?\n  1. Debian ✔\n  2. Ubuntu\n[2]: ")
    assert (found.question, found.default) == ("Which system? [2]:", "2")
    assert [one.label for one in found.options] == ["Debian", "Ubuntu"]
    assert asked("Pick a colour\n1) red\n2) green\n#? ").question == "Pick a colour"
    assert asked("$ select x in red green; do :; done\n1) red\n2) green\n#? ").question == "#?"


def test_a_numbered_list_in_columns_is_read_in_its_order() -> None:
    found = asked("1) red     3) blue\n2) green   4) black\n#? ")
    assert [one.label for one in found.options] == ["red", "green", "blue", "black"]
    from_nothing = asked("1) red\n2) green\n0) none\nYour choice [0-2]: ")
    assert [one.id for one in from_nothing.options] == ["0", "1", "2"]


MENU = "● Bash(make)\n\nDo you want to proceed?\n❯ 1. Yes\n  2. Yes, and don't ask again\n  3. No, and tell me (esc)\n"


def test_a_menu_is_answered_from_the_marked_option_on() -> None:
    found = asked(MENU, LISTENS, visible=False)
    assert (found.kind, found.question, found.default) == ("approval", "Do you want to proceed?", "allow")
    assert keys(found) == {"allow": ("Enter",), "always": ("Down", "Enter"), "deny": ("Down", "Down", "Enter")}
    assert found.risk == "unknown"
    moved = MENU.replace("❯ 1", "  1").replace("  2", "❯ 2")
    found = asked(moved, LISTENS, visible=False)
    assert keys(found) == {"allow": ("Up", "Enter"), "always": ("Enter",), "deny": ("Down", "Enter")}
    # what widens a permission is no default
    assert found.default is None


def test_options_without_numbers_go_by_their_words() -> None:
    found = asked("? Pick a framework (Use arrow keys)\n » react\n   vue\n   svelte", LISTENS, visible=False)
    assert (found.kind, list(keys(found))) == ("choice", ["react", "vue", "svelte"])
    assert found.question == "? Pick a framework (Use arrow keys)"


def test_a_menu_in_a_box_loses_its_frame() -> None:
    rows = ["╭──────────────╮", "│ Trust it?    │", "│ ❯ 1. Trust   │", "│   2. Exit    │", "╰──────────────╯"]
    found = asked("\n".join(rows), LISTENS, visible=False)
    assert (found.kind, found.question) == ("trust", "Trust it?")
    assert [one.label for one in found.options] == ["Trust", "Exit"]


def test_options_of_several_rows_are_one() -> None:
    rows = "Choose:\n❯ 1. Alpha\n     the first\n  2. Beta\n     the second"
    assert [one.label for one in asked(rows, LISTENS, visible=False).options] == ["Alpha", "Beta"]


def test_a_prompt_that_looks_like_a_marked_option_is_no_menu() -> None:
    zsh = kernel(program("zsh", "read"), tty=KEYS)
    assert judge(steady("  one\n  two\n❯ git st", zsh)).state is State.IDLE
    assert judge(steady("> first\n  second\n> ", LISTENS)).state is State.IDLE


def test_what_is_drawn_around_an_option_is_none_of_its_words() -> None:
    rows = "? Which part?\n » ● docs\n   ○ wheel\n   [ ] tests ✔"
    found = asked(rows, LISTENS, visible=False)
    assert [one.label for one in found.options] == ["docs", "wheel", "tests"]


def test_circles_are_options_and_their_legend_is_none() -> None:
    rows = "◆  Which template?\n│  ● Plain\n│  ○ With tests\n│  ↑/↓ to navigate • Enter: confirm\n└"
    found = asked(rows, LISTENS, visible=False)
    assert (found.kind, found.question, found.default) == ("choice", "◆  Which template?", "plain")
    assert keys(found) == {"plain": ("Enter",), "with-tests": ("Down", "Enter")}
    told = "● I looked at the folder.\n● It holds three files.\n"
    assert judge(steady(told, LISTENS, visible=False)).state is not State.ASKING


def test_a_list_of_which_the_marked_option_shows_by_colour_alone_has_no_keys() -> None:
    found = asked("? What to build ›\n◯   docs\n◯   wheel", LISTENS, visible=False)
    assert (found.kind, found.options, found.default) == ("choice", (), None)
    assert "What to build" in found.question


def test_yes_and_no_beside_each_other_are_chosen_with_the_arrows() -> None:
    found = asked("◆  Install dependencies?\n│  ● Yes / ○ No\n└", LISTENS, visible=False)
    assert (found.kind, found.question, found.default) == ("confirm", "◆  Install dependencies?", "yes")
    assert keys(found) == {"yes": ("Enter",), "no": ("Right", "Enter")}
    other = asked("? Upload? › no / yes", LISTENS, visible=False)
    assert (other.kind, other.question, other.default) == ("confirm", "? Upload?", None)
    assert keys(other) == {"no": ("Left", "Enter"), "yes": ("Right", "Enter")}


def test_a_list_below_what_is_searched_for_is_a_choice() -> None:
    rows = "? Which host\n❯   3/3\n❯ alpha\n  beta\n  gamma"
    found = asked(rows, LISTENS, x=2, y=1)
    assert (found.kind, found.question) == ("choice", "? Which host")
    assert keys(found) == {"alpha": ("Enter",), "beta": ("Down", "Enter"), "gamma": ("Down", "Down", "Enter")}
    # what a prompt offers to complete is no question
    assert judge(steady(rows.replace("? Which host", "ready"), LISTENS, x=2, y=1)).state is State.IDLE


def test_dots_behind_a_question_mark_want_yes_or_no() -> None:
    found = asked("rm a b?...", kernel(program("xargs", "read")))
    assert (found.kind, keys(found)) == ("confirm", {"yes": ("y", "Enter"), "no": ("n", "Enter")})


def test_a_question_drawn_without_a_cursor_is_written_to_on_a_line() -> None:
    verdict = judge(steady("◆  Project name?\n│  thing\n└", LISTENS, visible=False))
    assert (verdict.state, verdict.kind) == (State.IDLE, "line")
    assert judge(steady("ready\n╭────╮\n│ >  │\n╰────╯", LISTENS, visible=False)).kind == "tui"


@pytest.mark.parametrize("text", ["? Package name ", "? Your PIN ‣ "])
def test_what_libraries_ask_is_a_line(text: str) -> None:
    verdict = judge(steady(text, LISTENS))
    assert (verdict.state, verdict.kind) == (State.IDLE, "line")


def test_buttons_are_reached_from_the_one_that_has_the_cursor() -> None:
    box = "┌──────────────┐\n│ Go on?       │\n│ <Yes>   <No> │\n└──────────────┘"
    first = asked(box, LISTENS, x=3, y=2)
    assert (first.kind, first.question, first.default) == ("approval", "Go on?", "yes")
    assert keys(first) == {"yes": ("Enter",), "no": ("Tab", "Enter")}
    second = asked(box, LISTENS, x=11, y=2)
    assert (second.default, keys(second)) == ("no", {"yes": ("BTab", "Enter"), "no": ("Enter",)})
    unseen = asked(box, LISTENS, x=0, y=3, visible=False)
    assert (unseen.default, keys(unseen)) == (None, {"yes": ("Enter",), "no": ("Escape",)})


def test_a_question_without_answers_takes_any_text() -> None:
    found = asked("Are you sure you want to delete all files? ")
    assert (found.kind, found.options) == ("question", ())
    assert judge(steady("How old are you? ", READS_LINES)).kind == "line"


@pytest.mark.parametrize(
    ("text", "risk"),
    [
        ("Delete all 40 files? [y/N] ", "high"),
        ("rm: remove regular file 'notes'? (y/n) ", "high"),
        ("Format /dev/sda? [y/N] ", "high"),
        ("Permanently erase the disk? [y/N] ", "high"),
        ("Install vim? [Y/n] ", "unknown"),
    ],
)
def test_words_of_destruction_are_a_hint(text: str, risk: str) -> None:
    assert asked(text).risk == risk


def test_the_risk_of_a_menu_counts_what_stands_above_it() -> None:
    assert asked(MENU.replace("make", "rm -rf build"), LISTENS, visible=False).risk == "high"


def test_the_same_question_for_another_thing_is_another_question() -> None:
    first, second = (asked(f"@@ -{n} @@\n+line {n}\nStage this hunk [y,n,q]? ") for n in (1, 2))
    assert first.question == second.question
    assert first.id != second.id
    assert len(first.id) == 8
    assert int(first.id, 16) >= 0


def test_a_question_keeps_its_id_while_a_clock_or_spinner_goes_on() -> None:
    one, other = (asked(f"⠋ 12:00:0{n} ({n}s)\nOverwrite? [y/N] ") for n in (1, 2))
    assert one.id == other.id


def test_a_line_being_typed_at_a_prompt_is_no_question() -> None:
    bash = kernel(program("bash", thread("pselect6", alone=True)), tty=KEYS)
    assert judge(steady('user@host:~$ echo "really? [y/n] ', bash)).state is State.IDLE
    python = kernel(program("python3", thread("pselect6", alone=True)), tty=KEYS)
    assert judge(steady(">>> if token:", python)).state is State.IDLE


# By a profile's rules


RULES = Profile(
    name="agent",
    prompt=(Rule("p", "^> ?$", "cursor-line"),),
    asking=(
        Rule(
            "tool",
            "Do you want to proceed",
            "bottom:8",
            kind="approval",
            question=r"(?m)^● (?P<q>.+)$",
            options={"allow": ("1",), "deny": ("Escape",)},
            default="deny",
            risk="high",
        ),
        Rule("free", r"^What next\?", "cursor-line"),
    ),
)


def by_rule(screen: str) -> Asking:
    found = judge(steady(screen, LISTENS, visible=False), RULES).asking
    assert found is not None
    return found


def test_a_rule_tells_kind_question_options_default_and_risk() -> None:
    found = by_rule(MENU)
    assert (found.kind, found.question, found.default, found.risk) == ("approval", "Bash(make)", "deny", "high")
    assert keys(found) == {"allow": ("1",), "deny": ("Escape",)}


def test_a_rule_without_a_question_pattern_tells_the_row_that_fits() -> None:
    found = by_rule("thinking done\nWhat next? ")
    assert (found.kind, found.question, found.options, found.risk) == ("question", "What next?", (), "unknown")


def test_a_rules_question_has_an_id_of_its_own_for_each_thing_it_asks_about() -> None:
    assert by_rule(MENU).id != by_rule(MENU.replace("make", "ls")).id
    assert by_rule(MENU).id == by_rule(MENU).id


CHOICE = Profile(name="bash", asking=(Rule("select", r"^[#?]{2}", "cursor-line", kind="choice"),))


@pytest.mark.parametrize(("name", "count"), [("bash-select", 3), ("zsh-select", 3), ("bash-select-columns", 18)])
def test_a_rule_for_a_choice_without_options_takes_the_numbers_above(name: str, count: int) -> None:
    verdict = judge(recorded(name), CHOICE)
    assert (verdict.kind, verdict.rule) == ("choice", "select")
    assert verdict.asking is not None
    assert [one.id for one in verdict.asking.options] == [f"{one}" for one in range(1, count + 1)]
    assert verdict.asking.options[2].keys == ("3", "Enter")


def test_what_an_answer_quotes_is_no_question_of_a_program_with_a_profile() -> None:
    quoted = "It shows:\n❯ 1. Yes\n  2. No\n\n> "
    assert judge(steady(quoted, LISTENS), RULES).state is State.IDLE
    assert judge(evidence(look("❯ 1. Yes\n  2. No\nworking\n", LISTENS)), RULES).state is State.BUSY
