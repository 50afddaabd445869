"""A profile tried on the program that is installed: what fits, what does not, and what could not be seen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from control.agent import PROFILE, PROGRAM
from programs import program

from tmuxctl import results
from tmuxctl.control import Control
from tmuxctl.errors import Failed, NotFound, Usage
from tmuxctl.results import ProfileChecked
from tmuxctl.surfaces.cli.printing import show
from tmuxctl.surfaces.cli.printing.output import Options
from tmuxctl.timing import ProfileTiming, Timing

pytestmark = pytest.mark.on("tmux")


def own(place: Path, name: str, *lines: str) -> None:
    file = place / f".config/tmuxctl/profiles/{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(["schema: tmuxctl/profile@1", *lines]) + "\n")


def checks(found: ProfileChecked) -> dict[str, bool | None]:
    return {one.name: one.ok for one in found.checks}


def told(found: ProfileChecked, name: str) -> str:
    return next(one.found for one in found.checks if one.name == name)


@pytest.mark.parametrize(
    ("name", "program"),
    [("python", "python3"), ("bash", "bash"), ("sqlite3", "sqlite3"), ("gdb", "gdb"), ("sh", "sh"), ("lua", "lua")],
)
def test_a_profile_that_fits_says_its_version_its_prompt_and_how_it_is_left(
    control: Control, needs: Callable[..., None], name: str, program: str
) -> None:
    needs(program)
    found = control.profile_check(name, (program,))
    assert found.ok, found
    assert (checks(found)["ready"], checks(found)["exit"], checks(found)["saved screens"]) == (True, True, True)
    assert any(one.name.startswith("prompt: ") and one.ok for one in found.checks)
    assert found.version is None or any(character.isdigit() for character in found.version)
    assert control.ls().sessions == ()


def test_nothing_is_left_in_the_folder_of_the_caller(control: Control, place: Path) -> None:
    before = sorted(one.name for one in place.iterdir())
    control.profile_check("sh", ("sh",))
    left = [
        *place.glob("state/tmuxctl/*/check-*"),
        *({one.name for one in place.iterdir()} - {*before, "state", "tmux-0"}),
    ]
    assert left == []


def test_a_prompt_that_no_rule_fits_is_told_with_what_stands_there(control: Control, place: Path) -> None:
    own(place, "old", "prompt: {id: prompt, re: '^old>', where: cursor-line, detail: repl}")
    found = control.profile_check("old", ("sh",))
    assert (found.ok, checks(found)["prompt"]) == (False, False)
    assert "'$'" in told(found, "prompt")
    assert results.exit_status(found) == 1


def test_a_program_that_asks_first_is_told_with_its_question(control: Control, place: Path) -> None:
    own(
        place,
        "shy",
        "prompt: {id: prompt, re: '^shy>'}",
        "asking: {id: trust, kind: trust, re: '^Do you trust this folder', options: {allow: [y, Enter], deny: [n, Enter]}}",
    )
    found = control.profile_check("shy", ("sh", "-c", "printf 'Do you trust this folder? '; read -r answer"))
    assert (found.ok, checks(found)["ready"]) == (False, False)
    assert "it asks first (trust): Do you trust this folder" in told(found, "ready")
    assert "exit" not in checks(found)


def test_a_program_that_ends_at_once_is_told_with_its_last_words(control: Control, place: Path) -> None:
    own(place, "brief", "prompt: {id: prompt, re: '^brief>'}")
    found = control.profile_check("brief", ("sh", "-c", "echo no key for this model; exit 3"))
    assert (found.ok, checks(found)["ready"]) == (False, False)
    assert "status 3: no key for this model" in told(found, "ready")


def test_a_program_that_is_not_installed_is_an_error_with_how_to_install_it(control: Control, place: Path) -> None:
    own(place, "gone", "command: nosuch-program", "install: get-it now")
    with pytest.raises(Failed) as error:
        control.profile_check("gone")
    assert (error.value.reason, error.value.hint, error.value.exit) == ("not_installed", "install it: get-it now", 1)


def test_a_profile_for_no_program_wants_a_command(control: Control, place: Path) -> None:
    own(place, "any", "detect: {argv0: ['any-*']}")
    with pytest.raises(Usage, match="names no command"):
        control.profile_check("any")
    with pytest.raises(NotFound):
        control.profile_check("nosuch")


@pytest.mark.night
def test_keys_that_do_not_end_it_are_told(control: Control, another: Callable[..., Control], place: Path) -> None:
    hasty = another(timing=Timing(profile=ProfileTiming(exit_seconds=1.0)))
    own(place, "stays", "prompt: {id: prompt, re: '^[^ ]*>', where: cursor-line}", "exit: {keys: Up}")
    found = hasty.profile_check("stays", program("chat", "answers", "a"))
    assert (found.ok, checks(found)["exit"]) == (False, False)


@pytest.mark.night
def test_the_input_box_of_an_agent_program_is_looked_at(control: Control, place: Path) -> None:
    own(place, "agent", *PROFILE.read_text().partition("hooks:")[0].splitlines()[1:])
    found = control.profile_check("agent", (PROGRAM,))
    assert (found.ok, told(found, "submit: input box")) == (True, "empty, with the cursor in it")
    drafted = control.profile_check("agent", (PROGRAM, "--draft", "left behind"))
    assert told(drafted, "submit: input box") == "there is text in it"


def test_the_command_prints_each_rule_and_exits_with_1_where_one_does_not_fit(
    control: Control, place: Path, capfd
) -> None:
    own(place, "old", "notes: tried with 1.0", "prompt: {id: prompt, re: '^old>', where: cursor-line, detail: repl}")
    found = control.profile_check("old", ("sh",))
    assert show.Printer(Options()).show(found) == 1
    out = capfd.readouterr().out
    assert out.splitlines()[-1] == "does not fit: prompt"
    assert "tried with 1.0" in out.splitlines()[0]
    show.Printer(Options(json=True)).show(found)
    assert json.loads(capfd.readouterr().out)["checks"][0]["name"] == "ready"
