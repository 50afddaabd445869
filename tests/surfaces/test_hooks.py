"""`tmuxctl hooks`: a program's own settings with our hooks in them, and all else in them as it was, to the letter."""

from __future__ import annotations

import json
import os
import random
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.errors import Failed
from tmuxctl.surfaces.cli.editing import settings_file

PROGRAMS: dict[str, tuple[str, str, dict[str, Any], Sequence[str]]] = {
    "claude": (
        "CLAUDE_CONFIG_DIR",
        "settings.json",
        {"timeout": 10},
        ["UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure"],
    ),
    "gemini": (
        "GEMINI_CLI_HOME",
        ".gemini/settings.json",
        {"name": "tmuxctl", "timeout": 10000},
        ["BeforeAgent", "Notification", "AfterAgent"],
    ),
}
"""The variable and the file of each program's settings, what its hooks have beside the command, and its events."""

Command = Callable[..., "subprocess.CompletedProcess[str]"]

HOOKS: Mapping[str, Mapping[str, Any]] = {
    one: {"type": "command", "command": f"tmuxctl hook {one} || :"} for one in ("Stop", "Start")
}


def put(text: str) -> str:
    return settings_file.with_hooks(text, HOOKS, "FILE")


def taken(text: str) -> str:
    return settings_file.without_hooks(text, "FILE")


def commands(text: str, event: str) -> list[str]:
    return [one.get("command", "") for group in json.loads(text)["hooks"][event] for one in group["hooks"]]


# The text


SETTINGS = [
    "{}",
    "{ }\n",
    '{"model": "x"}',
    '{\n  "model": "x",\n  "list": [1,2,\n3]\n}\n',
    '{\n\t"a": {"b": []},\n\t"hooks": {\n\t\t"Other": [{"hooks": [{"type": "command", "command": "x"}]}]\n\t}\n}',
    '{\n    "hooks": {"Stop": [{"matcher": "a", "hooks": [{"type": "command", "command": "say \\"done\\""}]}]},\n    "z": 1\n}\n',
    '\ufeff{\r\n  "é\\u00e9": "\\ud83d\\ude00 🚀",\r\n  "n": 1.50e3\r\n}\r\n',
    '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}, {"type": "prompt", "prompt": "{]"}]}]}, "b": "}"}',
]  # fmt: skip


@pytest.mark.parametrize("text", SETTINGS)
def test_what_was_put_in_and_taken_out_again_leaves_the_text_as_it_was(text: str) -> None:
    changed = put(text)
    assert put(changed) == changed
    for event in HOOKS:
        assert commands(changed.lstrip("\ufeff"), event)[-1] == f"tmuxctl hook {event} || :"
    assert taken(changed).replace("{ }", "{}") == text.replace("{ }", "{}")
    assert taken(text) == text


def test_it_is_written_as_the_rest_is() -> None:
    changed = put('{\n    "model": "x"\n}\n')
    assert changed.startswith('{\n    "model": "x",\n    "hooks": {\n        "Stop": [\n            {\n')
    assert changed.endswith("    }\n}\n")
    assert put('{"a": 1}').count("\n") == 0
    windows = put('{\r\n\t"a": 1\r\n}')
    assert windows.count("\r\n") == windows.count("\n")
    assert '\r\n\t"hooks": {\r\n\t\t"Stop": [\r\n' in windows


def test_an_empty_file_becomes_settings() -> None:
    assert list(json.loads(put(""))["hooks"]) == list(HOOKS)
    assert put(" \n").endswith("}\n")


def test_hooks_of_others_stay_before_ours_and_in_their_order() -> None:
    text = SETTINGS[5]
    changed = put(text)
    assert commands(changed, "Stop") == ['say "done"', "tmuxctl hook Stop || :"]
    assert list(json.loads(changed)) == ["hooks", "z"]
    assert changed.startswith(text[: text.index("}]}]}") + 3])
    assert changed.endswith(text[text.index(',\n    "z"') :])


def test_one_of_ours_that_somebody_changed_is_enough_and_stays() -> None:
    text = (
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "cd / && tmuxctl hook Stop; notify-send x"}]}]}}'
    )
    changed = put(text)
    assert commands(changed, "Stop") == ["cd / && tmuxctl hook Stop; notify-send x"]
    assert taken(changed) == text


def test_ours_goes_out_of_a_group_that_others_use() -> None:
    ours = {"type": "command", "command": "/opt/bin/tmuxctl hook Stop"}
    theirs = {"type": "command", "command": "mytmuxctl hook Stop"}
    for hooks in ([ours, theirs], [theirs, ours], [ours, theirs, ours]):
        text = json.dumps({"hooks": {"Stop": [{"matcher": "", "hooks": hooks}]}}, indent=1)
        assert json.loads(taken(text)) == {"hooks": {"Stop": [{"matcher": "", "hooks": [theirs]}]}}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{\n  "a": 1,\n}', "FILE: line 3, column 1: "),
        ("{'a': 1}", "FILE: line 1, column 2: "),
        ('{"a": 1} x', "FILE: line 1, column 10: "),
        ("// mine\n{}", "FILE: line 1, column 1: "),
        ("[]", "FILE: expected an object, not a list"),
        ('{"a": 1, "a": 2}', "FILE: the key 'a' occurs twice in one object"),
        ('{"a": NaN}', "FILE: NaN is not JSON"),
        ('{"hooks": []}', "FILE: line 1, column 11: hooks is a list; expected an object"),
        ('{"hooks": {\n "Stop": "x"}}', "FILE: line 2, column 10: Stop is a text; expected a list"),
        ('{"a":' * 99999, "FILE: "),
    ],
)
def test_what_is_not_understood_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(Failed) as refused:
        put(text)
    assert refused.value.message.startswith(said)
    assert refused.value.reason == "bad_settings"


def some(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(7 if depth else 4)
    if kind < 4:
        return chance.choice([None, True, -1, 2.5, "", 'a "b" \\ {[,:]}\n', "é"])
    if kind == 4:
        return [some(chance, depth - 1) for _ in range(chance.randrange(4))]
    return {f"k{n}": some(chance, depth - 1) for n in range(chance.randrange(4))}


@pytest.mark.parametrize("seed", range(200))
def test_in_any_settings_only_ours_changes(seed: int) -> None:
    chance = random.Random(seed)
    value = {f"key{n}": some(chance, 3) for n in range(chance.randrange(4))}
    if chance.random() < 0.7:
        theirs = [
            {"matcher": "m", "hooks": [{"type": "command", "command": f"x{n}"}]} for n in range(chance.randrange(3))
        ]
        value["hooks"] = {event: theirs for event in ("Stop", "Other") if chance.random() < 0.6}
    indent = chance.choice([None, 0, 1, 2, 4, "\t"])
    text = json.dumps(value, indent=indent, ensure_ascii=chance.random() < 0.5)
    changed = put(text)
    wanted = json.loads(text)
    for event, hook in HOOKS.items():
        wanted.setdefault("hooks", {}).setdefault(event, []).append({"hooks": [hook]})
    assert json.loads(changed) == wanted
    assert json.dumps(json.loads(changed)) == json.dumps(wanted)
    assert full(json.loads(taken(changed))) == full(value)


def full(value: dict[str, Any]) -> dict[str, Any]:
    """Settings without lists of hooks that hold nothing: whether there is such a one is all the same."""
    hooks = {event: groups for event, groups in value.get("hooks", {}).items() if groups}
    return {name: one for name, one in {**value, "hooks": hooks}.items() if name != "hooks" or one}


# The command


@pytest.fixture
def tmuxctl(place: Path) -> Command:
    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        found = subprocess.run(
            [sys.executable, "-m", "tmuxctl", *words],
            capture_output=True,
            text=True,
            timeout=60,
            env={**os.environ, **environment},
        )
        assert "Traceback" not in found.stderr
        return found

    return run


@pytest.fixture
def settings(place: Path) -> Path:
    made = place / ".claude" / "settings.json"
    made.parent.mkdir()
    made.write_text('{\n  "model": "x"\n}\n')
    made.chmod(0o640)
    return made


def test_install_shows_and_makes_the_change_and_keeps_a_copy(tmuxctl: Command, settings: Path) -> None:
    before = settings.read_text()
    shown = tmuxctl("hooks", "install", "claude", "--dry-run")
    assert (settings.read_text(), len(list(settings.parent.iterdir()))) == (before, 1)
    done = tmuxctl("hooks", "install", "claude")
    assert done.stdout == shown.stdout
    assert {line for line in done.stdout.splitlines() if line[:1] == "-"} == {'-  "model": "x"', f"--- {settings}"}
    assert list(json.loads(settings.read_text())["hooks"]) == PROGRAMS["claude"][3]
    assert stat.S_IMODE(settings.stat().st_mode) == 0o640
    (copy,) = set(settings.parent.iterdir()) - {settings}
    assert copy.name.startswith("settings.json.2")
    assert copy.read_text() == before
    assert f"as it was: {copy}" in done.stderr

    at = settings.stat().st_mtime_ns
    again = json.loads(tmuxctl("hooks", "install", "claude", "--json").stdout)
    assert again == {
        "program": "claude", "file": str(settings), "changed": False, "diff": "", "backup": None, "dry_run": False,
    }  # fmt: skip
    assert (settings.stat().st_mtime_ns, len(list(settings.parent.iterdir()))) == (at, 2)

    assert tmuxctl("hooks", "uninstall", "claude").returncode == 0
    assert settings.read_text() == before
    assert "nothing to do" in tmuxctl("hooks", "uninstall", "claude").stderr


def test_settings_that_are_not_there_are_made(tmuxctl: Command, place: Path) -> None:
    assert tmuxctl("hooks", "uninstall", "claude").returncode == 0
    assert not list(place.iterdir())
    assert tmuxctl("hooks", "install", "claude").returncode == 0
    made = place / ".claude" / "settings.json"
    assert [path.name for path in made.parent.iterdir()] == [made.name]
    assert (stat.S_IMODE(made.stat().st_mode), stat.S_IMODE(made.parent.stat().st_mode)) == (0o600, 0o700)


@pytest.mark.parametrize("program", PROGRAMS)
def test_every_program_is_set_up_the_same_way(tmuxctl: Command, place: Path, program: str) -> None:
    variable, file, more, events = PROGRAMS[program]
    elsewhere = place / "else where"
    assert tmuxctl("hooks", "install", program, **{variable: str(elsewhere)}).returncode == 0
    found = json.loads((elsewhere / file).read_text())
    for event in events:
        ((hook,),) = (group["hooks"] for group in found["hooks"][event])
        assert hook == {"type": "command", "command": f"tmuxctl hook {event} || :", **more}
    assert tmuxctl("hooks", "install", program, "--settings", "~/mine.json").returncode == 0
    assert json.loads((place / "mine.json").read_text()) == found


def test_a_link_stays_and_what_it_leads_to_is_written(tmuxctl: Command, settings: Path, place: Path) -> None:
    kept = place / "dotfiles"
    kept.mkdir()
    settings.rename(kept / "claude.json")
    settings.symlink_to("../dotfiles/claude.json")
    assert tmuxctl("hooks", "install", "claude").returncode == 0
    assert settings.is_symlink()
    assert "hooks" in json.loads((kept / "claude.json").read_text())
    assert [path.name for path in kept.iterdir()] == ["claude.json"]
    assert len(list(settings.parent.iterdir())) == 2


def test_what_is_no_json_is_refused_and_stays(tmuxctl: Command, settings: Path) -> None:
    for text in ('{\n  "model": "x",,\n}\n', "\udcff{}"):
        settings.write_bytes(text.encode("utf-8", "surrogateescape"))
        for verb in ("install", "uninstall"):
            done = tmuxctl("hooks", verb, "claude", "--json")
            error = json.loads(done.stderr)["error"]
            assert (done.returncode, error["reason"]) == (1, "bad_settings")
            assert error["message"].startswith(f"{settings}: {'line 2, column 16: ' if 'model' in text else 'byte 1 '}")
        assert settings.read_bytes() == text.encode("utf-8", "surrogateescape")
    assert len(list(settings.parent.iterdir())) == 1


def test_a_program_that_is_not_known_is_an_error_that_names_those_there_are(tmuxctl: Command) -> None:
    done = tmuxctl("hooks", "install", "cluade")
    assert done.returncode == 3
    assert "there are: claude, gemini" in done.stderr


def test_the_deny_list_is_printed_and_nothing_is_written(tmuxctl: Command, place: Path) -> None:
    done = tmuxctl("hooks", "install", "claude", "--deny-list")
    rules = json.loads(done.stdout)["permissions"]["deny"]
    assert {"Read(~/.ssh/**)", "Read(**/.env)", "Bash(sudo *)", "Bash(rm -rf /)", "Bash(git push --force*)"} <= set(
        rules
    )
    assert len(rules) == len(set(rules))
    assert not list(place.iterdir())
    assert tmuxctl("hooks", "install", "gemini", "--deny-list").returncode == 2


def test_a_program_of_your_own_is_set_up_by_what_its_profile_says(tmuxctl: Command, place: Path) -> None:
    folder = place / ".config/tmuxctl/profiles"
    folder.mkdir(parents=True)
    (folder / "shop.yaml").write_text(
        "schema: tmuxctl/profile@1\nhooks:\n  events: {on: Sold, is: stop}\n"
        "  settings: {folder: ~/.shop, file: s.json}\n"
    )
    assert tmuxctl("hooks", "install", "shop").returncode == 0
    assert commands((place / ".shop/s.json").read_text(), "Sold") == ["tmuxctl hook Sold || :"]
    assert tmuxctl("hooks", "uninstall", "shop").returncode == 0
    assert "tmuxctl hook" not in (place / ".shop/s.json").read_text()
    assert "there are: claude, gemini, shop" in tmuxctl("hooks", "install", "shpo").stderr
