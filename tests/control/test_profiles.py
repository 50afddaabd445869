"""Profiles in use: a session gets one, their saved screens hold, and a first one is made for a program that has none."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest

from tmuxctl.control import Control
from tmuxctl.control.observation.explaining import evidence_of_screen
from tmuxctl.control.setup import profiles
from tmuxctl.control.setup.first_profile import guess_prompt
from tmuxctl.errors import Conflict, Exited, NotFound, Usage
from tmuxctl.model import Confidence, State
from tmuxctl.profile_files import library, schema
from tmuxctl.profile_files.yaml_tree import parse_yaml
from tmuxctl.program_profile import Profile, from_json
from tmuxctl.reading.state.judging import judge
from tmuxctl.terminal.input.keys import tmux_keys
from tools.agents.programs import SHIPPED as PROGRAMS

SCREENS = Path(__file__).resolve().parent.parent / "screens"
PROGRAM = Path(__file__).resolve().parent.parent / "programs" / "typed.py"
HEAD = "schema: tmuxctl/profile@1\n"


def cases():
    for file in sorted(SCREENS.glob("*/expected.yaml")):
        lines = parse_yaml(file.read_bytes(), str(file))
        for case in schema.NodeReader(str(file), None).tests(lines):
            yield pytest.param(file.parent, case, id=f"{file.parent.name}-{case.file}")


def own(place: Path, name: str, text: str) -> Path:
    path = place / ".config/tmuxctl/profiles" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + text)
    return path


def kept(place: Path, session) -> Profile | None:
    [path] = place.glob(f"state/**/sessions/{session.id}/profile.json")
    return from_json(path.read_bytes())


def kept_profile(place: Path, session) -> Profile:
    profile = kept(place, session)
    assert profile
    return profile


@pytest.mark.parametrize(("folder", "case"), list(cases()))
def test_a_real_screen_is_taken_for_what_it_is(place, folder, case):
    profile = library.load(folder.name, keys=tmux_keys)
    tested = profiles.run_test(case, profile, f"{folder.name}/expected.yaml", str(folder))
    assert tested.ok, f"{case.file}: {tested.expected}; judged {tested.judged}: {tested.why}\n{tested.screen}"


@pytest.mark.parametrize(("folder", "case"), [one for one in cases() if "idle" not in (one.values[1].state or "")])
def test_without_its_profile_no_screen_is_surely_idle_that_is_not(place, folder, case):
    """What a screen alone tells is a guess at most, whatever it looks like."""
    seen = evidence_of_screen((folder / case.file).read_text(), title=case.title, cursor=case.cursor)
    verdict = judge(seen, None)
    assert verdict.state is not State.IDLE or verdict.confidence is Confidence.GUESS, verdict


@pytest.mark.parametrize(
    "folder", sorted(path.parent for path in SCREENS.glob("*/expected.yaml")), ids=lambda path: path.name
)
def test_a_profile_has_three_real_screens_of_each_state_it_knows(place, folder):
    root = parse_yaml((folder / "expected.yaml").read_bytes(), folder.name)
    listed = schema.NodeReader(folder.name, None).tests(root)
    states = [case.state or "busy" for case in listed]
    profile = library.load(folder.name, keys=tmux_keys)
    known = {"idle": profile.prompt or profile.continuation, "asking": profile.asking, "busy": profile.busy}
    assert {state: states.count(state) for state, rules in known.items() if rules and states.count(state) < 3} == {}


def test_every_profile_of_ours_is_played_against_its_program():
    shipped = {path.stem for path in (SCREENS.parent.parent / "profiles").glob("*.yaml")}
    # agents need a model to talk to: tools/agents drives them
    assert shipped == {path.stem for path in (SCREENS.parent / "plays").glob("*.yaml")} | set(PROGRAMS)
    assert shipped == {path.parent.name for path in SCREENS.glob("*/expected.yaml")}


@pytest.mark.on("tmux", "pipe")
def test_a_session_keeps_the_profile_of_its_command(control: Control, place: Path):
    session = control.new("t", ("python3", "-q"))
    assert session.profile == "python"
    assert control.show("t").profile == "python"
    assert kept(place, session) == library.load("python")


@pytest.mark.on("tmux")
def test_a_session_keeps_its_profile_when_the_file_changes(control: Control, place: Path):
    path = own(place, "shop", "interrupt: Escape")
    session = control.new("t", ("cat",), profile="shop")
    path.unlink()
    assert kept_profile(place, session).interrupt == ("Escape",)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_session_gets_the_profile_that_its_command_has_now(control: Control, place: Path):
    """What was found for an earlier session is kept, and is not taken for what the files say now."""
    folder = place / ".config/tmuxctl/profiles"
    folder.mkdir(parents=True)
    text = "schema: tmuxctl/profile@1\ndetect: {argv0: [cat]}\n"
    assert control.new("a", ("cat",)).profile is None
    (folder / "mine.yaml").write_text(text)
    assert Control().new("b", ("cat",)).profile == "mine"
    assert Control().new("c", ("cat",)).profile == "mine"
    (folder / "mine.yaml").write_text(text + "size: 91x31\n")
    screen = Control().screen(Control().new("d", ("cat",)).name)
    assert (screen.cols, screen.rows) == (91, 31)
    (folder / "mine.yaml").rename(folder / "yours.yaml")
    assert Control().new("e", ("cat",)).profile == "yours"
    assert Control().new("f", ("env", "X=1", "cat")).profile == "yours"
    assert Control().new("g", ("tail", "-f", "/dev/null")).profile is None
    (folder / "yours.yaml").unlink()
    assert Control().new("h", ("cat",)).profile is None


@pytest.mark.on("tmux")
def test_a_profile_with_a_secret_is_kept_by_no_one(control: Control, place: Path):
    folder = place / ".config/tmuxctl/profiles"
    folder.mkdir(parents=True)
    text = "schema: tmuxctl/profile@1\ndetect: {argv0: [cat]}\nenv: {API_TOKEN: hush-hush}\n"
    (folder / "mine.yaml").write_text(text)
    for name in ("a", "b"):
        assert Control().new(name, ("cat",)).profile == "mine"
    home = Path(control.machine.transport.home)
    assert not [path for path in home.glob("*.json") if "hush-hush" in path.read_text()]


@pytest.mark.on("tmux")
def test_a_session_without_profile_has_none(control: Control, place: Path):
    bare = control.new("bare", ("python3", "-q"), profile="none")
    other = control.new("other", ("cat",))
    assert (bare.profile, other.profile) == (None, None)
    assert kept(place, bare) is None
    assert kept(place, other) is None


@pytest.mark.on("tmux")
def test_a_shell_that_nobody_named_gets_its_profile(control: Control):
    assert control.new("t").profile == "sh"


@pytest.mark.on("tmux")
def test_a_profile_gives_command_size_and_variables(control: Control, place: Path, until):
    own(place, "shop", "command: [sh, -c, 'echo $A-$B; cat']\nsize: 90x20\nenv: {A: '1', B: '2'}")
    session = control.new(None, profile="shop", env={"B": "3"})
    assert (session.name, session.cols, session.rows) == ("sh", 90, 20)
    until(lambda: "1-3" in control.screen("sh").text)
    mine = control.new("mine", ("cat",), profile="shop", size="70x20")
    assert (mine.argv, mine.cols) == (("cat",), 70)


@pytest.mark.on("tmux")
def test_a_file_can_be_the_profile(control: Control, place: Path):
    (place / "mine.yaml").write_text(f"{HEAD}interrupt: Escape\n")
    assert kept_profile(place, control.new("t", ("cat",), profile="./mine.yaml")).interrupt == ("Escape",)


@pytest.mark.on("tmux")
def test_a_broken_profile_is_an_error_before_anything_starts(control: Control, place: Path):
    own(place, "cat", "interrupt: Escpae")
    with pytest.raises(Usage, match=r"cat\.yaml' line 2: .*Escpae") as caught:
        control.new("t", ("cat",))
    assert "--profile none" in caught.value.hint
    assert control.ls().sessions == ()
    assert control.new("t", ("cat",), profile="none").name == "t"


@pytest.mark.on("tmux")
def test_a_dry_run_finds_what_is_wrong_with_a_profile(control: Control, place: Path):
    own(place, "cat", "nmae: x")
    with pytest.raises(Usage, match="nmae"):
        control.new("t", ("cat",), dry_run=True)


@pytest.mark.on("memory")
def test_profiles_are_listed_with_what_is_wrong_with_them(control: Control, place: Path):
    own(place, "shop", "notes: the shop's console")
    own(place, "wrong", "promt: x")
    listed = {one.name: one for one in control.profile_ls().profiles}
    assert (listed["shop"].source, listed["shop"].description, listed["shop"].problem) == (
        "user",
        "the shop's console",
        None,
    )
    assert "no key 'promt'" in (listed["wrong"].problem or "")
    assert listed["bash"].source == "shipped"
    assert "bash" in listed["bash"].programs


@pytest.mark.on("memory")
def test_a_profile_is_shown_with_what_it_extends(control: Control, place: Path):
    own(place, "shop", "extends: sqlite3\ninterrupt: Escape")
    shown = control.profile_show("shop")
    assert ".quit" in shown.text
    assert shown.profile["interrupt"] == ["Escape"]
    assert json.dumps(shown.profile)
    with pytest.raises(NotFound, match="no profile named 'shpo'"):
        control.profile_show("shpo")


@pytest.mark.on("memory")
def test_the_tests_of_every_profile_of_ours_hold(control: Control):
    tested = control.profile_test()
    assert tested.ok, [one for one in tested.tests if not one.ok]
    assert tested.passed == len(tested.tests) > 30


@pytest.mark.on("memory")
def test_a_screen_that_is_taken_for_something_else_fails_its_profile(control: Control, place: Path):
    own(place, "shop", "prompt: {id: p, re: '^shop>', where: cursor-line}\n"
        "asking: {id: sure, re: '^Sure', kind: confirm}\ntests:\n  - {screen: 'shop>', state: idle}\n"
        "  - {screen: 'shop>', state: asking, asking: nothing}\n  - {screen_file: menu.txt, state: idle}\n"
        "  - {screen: 'shop>', not: idle}\n  - {screen_file: gone.txt, state: idle}\n"
        "  - {screen: 'Sure?', asking: sure, state: asking}\n  - {screen: 'Sure?', state: asking, asking: other}")  # fmt: skip
    (place / ".config/tmuxctl/profiles/menu.txt").write_text("welcome\nshop>\n")
    tested = control.profile_test(("shop",))
    assert [one.ok for one in tested.tests] == [True, False, True, False, False, True, False]
    assert (tested.ok, tested.passed, tested.failed) == (False, 3, 4)
    assert [one.line for one in tested.tests] == [5, 6, 7, 8, 9, 10, 11]
    assert tested.tests[1].screen == "shop>"
    assert tested.tests[1].judged.startswith("idle prompt")
    assert "gone.txt" in tested.tests[4].why


@pytest.mark.on("memory")
def test_a_profile_that_cannot_be_read_fails_its_test(control: Control, place: Path):
    own(place, "shop", "promt: x")
    tested = control.profile_test(("shop",))
    assert not tested.ok
    assert "no key 'promt'" in tested.tests[0].why


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_first_profile_is_made_by_looking_at_the_program(control: Control, place: Path, needs):
    needs("sqlite3")
    made = control.profile_new("shop", ("sqlite3",))
    assert made.path == str(place / ".config/tmuxctl/profiles/shop.yaml")
    assert Path(made.path).read_text() == made.text
    assert made.profile["prompt"][0]["re"] == r"^\s*sqlite>(?:\s|$)"
    assert made.profile["detect"]["argv0"] == ["sqlite3"]
    assert control.profile_test(("shop",)).ok
    assert control.new("t", ("sqlite3",)).profile == "shop"
    assert [one.name for one in control.ls().sessions] == ["t"]


MUSH = "while True:\n    input('mush> ')\n"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_first_profile_of_a_script_leaves_its_interpreter_alone(control: Control, place: Path):
    (place / "mush.py").write_text(MUSH)
    made = control.profile_new("mush", ("python3", "mush.py"))
    assert made.profile["detect"] == {"script": ["mush.py"]}
    assert made.notes == (
        "the profile is used for commands that run mush.py; for others: tmuxctl new --profile mush -- CMD",
    )
    assert control.profile_test(("mush",)).ok
    assert control.new("game", ("python3", str(place / "mush.py"))).profile == "mush"
    assert control.wait("game").matched == "idle"
    assert control.show("game").profile == "mush"
    assert control.new("py", ("python3", "-q")).profile == "python"
    control.new("shell", ("bash",))
    control.send("shell", b"python3 -q")
    control.wait("shell", text=">>>")
    assert control.explain("shell").profile == "python"


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize(
    "words", ["bash --norc -i", "sh -c 'printf \"shop> \"; exec cat'", "python3 main.py", "python3 -m main"]
)
def test_a_first_profile_of_what_has_no_name_of_its_own_is_found_by_no_command(control: Control, place: Path, words):
    (place / "main.py").write_text(MUSH)
    command = tuple(shlex.split(words))
    before = library.detect(command)
    made = control.profile_new("shop", command)
    assert made.path
    assert "detect" not in Path(made.path).read_text().replace("# detect", "")
    assert made.notes == ("the profile is not used by itself: tmuxctl new --profile shop -- CMD",)
    assert library.detect(command) == before != "shop"
    assert control.new("t", command, profile="shop").profile == "shop"


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_first_profile_says_whose_place_it_takes(control: Control, place: Path, needs):
    needs("sqlite3")
    assert control.profile_new("shop", ("sqlite3",)).notes == ("sqlite3 used the profile sqlite3 until now",)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_with_a_space_in_its_name_gets_a_profile(control: Control, place: Path):
    program = place / "my shop"
    program.write_text("#!/bin/sh\nprintf 'shop> '; exec cat\n")
    program.chmod(0o755)
    assert control.profile_new("shop", (str(program),)).notes[0].startswith("the profile is not used by itself")


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_first_profile_is_not_written_over_another(control: Control, place: Path):
    path = own(place, "shop", "notes: mine")
    program = ("sh", "-c", "printf 'shop> '; exec cat")
    with pytest.raises(Conflict, match="exists already") as caught:
        control.profile_new("shop", program)
    assert "--force" in caught.value.hint
    printed = control.profile_new("shop", program, stdout=True)
    assert printed.path is None
    assert "shop>" in printed.text
    assert "mine" in path.read_text()
    control.profile_new("shop", program, force=True)
    assert "mine" not in path.read_text()
    assert os.listdir(path.parent) == ["shop.yaml"]


@pytest.mark.on("tmux")
def test_a_program_that_ends_at_once_gets_no_profile(control: Control, place: Path):
    with pytest.raises(Exited, match="no such table"):
        control.profile_new("shop", ("sh", "-c", "echo no such table"))
    assert not (place / ".config").exists()
    assert control.ls().sessions == ()


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_program_without_prompt_gets_a_profile_to_fill_in(control: Control, place: Path, needs):
    needs("less")
    (place / "text").write_text("".join(f"{number}\n" for number in range(100)))
    made = control.profile_new("pages", ("less", "text"))
    assert "prompt" not in made.profile
    assert "# prompt:" in made.text


@pytest.mark.parametrize(
    ("left", "fits", "not_"),
    [
        ("sqlite> ", ["sqlite>", "sqlite> select"], ["sqlite", "select sqlite>"]),
        ("(gdb) ", ["(gdb)"], ["gdb"]),
        (">>> ", [">>>", ">>> 1"], [">>", ">>>>"]),
        ("In [1]: ", ["In [1]:", "In [27]: x"], ["In []:"]),
        ("me@vm:~/src/shop$ ", ["me@vm:~/src/shop$", "you@far:/$"], ["$", "me@vm"]),
        ("Name: ", ["Name:"], ["Names"]),
        ("login", ["login"], ["logins"]),
    ],
)
def test_a_prompt_is_guessed_without_what_changes(left, fits, not_):
    pattern = guess_prompt(left)
    assert pattern
    assert [text for text in fits if not re.search(pattern, text)] == []
    assert [text for text in not_ if re.search(pattern, text)] == []


def test_nothing_left_of_the_cursor_is_no_prompt():
    assert guess_prompt("   ") is None
