"""One command for several sessions, of one machine or of many."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from machines.conftest import tmuxctl

from tmuxctl.control import Control

pytestmark = pytest.mark.usefixtures("boxes")


@pytest.fixture
def boxes(site: Path) -> Iterator[None]:
    """Two machines with a shell each, in a group, and a shell here."""
    (site / "config/tmuxctl").mkdir(parents=True)
    lines = ["[groups]", 'both = ["one", "two"]', "none = []"]
    for name in ("one", "two"):
        (site / name).mkdir()
        lines += [
            f"[{name}]",
            f'command = ["env", "-u", "XDG_STATE_HOME", "HOME={site / name}", "sh"]',
            f'socket = "{name}"',
        ]
    (site / "config/tmuxctl/machines.toml").write_text("\n".join(lines))
    names = ["sh", "one/sh", "two/sh"]
    with Control() as control:
        for name in names:
            control.new(name, ("bash", "--norc"))
        yield
        control.kill(tuple(names), signal="KILL")


def lines_of(output: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.night
def test_what_each_gave_stands_below_its_name_in_the_order_that_was_given():
    ran = tmuxctl("exec", "two/sh,sh,one/sh", "--", "sh", "-c", 'echo "in ${HOME##*/}"')
    assert (ran.status, ran.errors) == (0, "")
    two, here, one = ran.output.split("==> ")[1:]
    assert two == "two/sh <==\nin two\n"
    assert one == "one/sh <==\nin one\n"
    assert here.startswith("sh <==\nin ")


def test_a_group_is_a_session_of_each_of_its_machines():
    ran = tmuxctl("exec", "@both/sh,sh,one/sh", "--json", "--limit", "1", "--", "echo", "hi")
    assert [(one["target"], one["output"]) for one in lines_of(ran.output)] == [
        ("one/sh", "hi\n"),
        ("two/sh", "hi\n"),
        ("sh", "hi\n"),
    ]


@pytest.mark.night
def test_the_status_is_that_of_the_first_that_failed():
    tmuxctl("exec", "@both/sh", "--", "export", "S=4")
    tmuxctl("exec", "two/sh", "--", "export", "S=3")
    assert tmuxctl("exec", "sh,two/sh,one/sh", "--", 'exit_with() { return "${S:-0}"; }; exit_with').status == 3
    assert tmuxctl("exec", "sh,one/sh,two/sh", "--", "exit_with").status == 4


def test_a_session_that_is_not_there_harms_no_other():
    ran = tmuxctl("exec", "one/sh,one/none,nowhere-at-all/sh", "--json", "--", "echo", "hi")
    done, missing, unreached = lines_of(ran.output)
    assert (done["output"], missing["target"], unreached["target"]) == ("hi\n", "one/none", "nowhere-at-all/sh")
    assert missing["error"]["code"] == "not_found"  # type: ignore[index]
    assert unreached["error"]["code"] == "unreachable"  # type: ignore[index]
    assert ran.status == 125
    ran = tmuxctl("send", "sh,one/none", "true")
    assert (ran.status, ran.output) == (3, "==> sh <==\n==> one/none <==\n")
    assert "none" in ran.errors


@pytest.mark.night
def test_all_are_waited_for_and_asked():
    assert tmuxctl("send", "@both/sh", "sleep 0.3; echo done-$((40+2))").status == 0
    ran = tmuxctl("wait", "@both/sh", "--text", "done-42", "--json")
    assert [(one["target"], one["matched"]) for one in lines_of(ran.output)] == [("one/sh", "text"), ("two/sh", "text")]
    ran = tmuxctl("ask", "@both/sh", "echo $((6*7))")
    assert ran.output == "==> one/sh <==\n42\n==> two/sh <==\n42\n"


@pytest.mark.night
@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (("exec", "@nobody/sh", "true"), 3, "no_group"),
        (("exec", "@none/sh", "true"), 3, "no_group"),
        (("exec", "@both", "true"), 2, "bad_target"),
        (("exec", "sh,", "true"), 2, "bad_target"),
        (("exec", "@both/sh", "--limit", "0", "true"), 2, "bad_number"),
        (("exec", "@both/sh", "--stdin", "-", "true"), 2, "bad_usage"),
        (("machine", "add", "groups"), 2, "bad_machine"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_done(words: tuple[str, ...], status: int, reason: str):
    ran = tmuxctl(*words, "--json")
    assert (ran.status, ran.error["reason"], ran.output) == (status, reason, "")
