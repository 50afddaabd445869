"""Secrets: typed only where nothing shows them, and kept nowhere."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import LINES, program

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Usage
from tmuxctl.operations import to_json

SECRET = "s3cret-but-long"


@pytest.fixture
def asking(control: Control) -> Control:
    """A session `login` that asks for a password."""
    control.new("login", program("secret"))
    assert control.wait("login", text="password:", since="screen").matched
    return control


def test_a_secret_is_typed_from_the_environment(asking: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", SECRET)
    written = asking.send("login", secret_from_env="PASSWORD")
    assert asking.wait("login", text=r"it has (\d+) bytes").groups == (str(len(SECRET)),)
    assert SECRET not in repr(written) + repr(to_json(written))


@pytest.mark.on("memory", "tmux")
def test_a_secret_is_typed_from_a_files_first_line(asking: Control, place: Path) -> None:
    (place / "password").write_text(SECRET + "\nnot this\n")
    asking.send("login", secret_from_file="~/password")
    assert asking.wait("login", text=r"it has (\d+) bytes").groups == (str(len(SECRET)),)


@pytest.mark.on("memory", "tmux")
def test_a_secret_is_typed_from_a_descriptor(asking: Control) -> None:
    reader, writer = os.pipe()
    os.write(writer, SECRET.encode() + b"\n")
    os.close(writer)
    asking.send("login", secret_from_fd=reader)
    os.close(reader)
    assert asking.wait("login", text=r"it has (\d+) bytes").groups == (str(len(SECRET)),)


def test_a_secret_is_kept_nowhere(asking: Control, monkeypatch: pytest.MonkeyPatch, backend: str, place: Path) -> None:
    monkeypatch.setenv("PASSWORD", SECRET)
    asking.send("login", secret_from_env="PASSWORD")
    assert asking.wait("login", text="it has").matched
    options = asking.machine.transport.run(
        [("display-message", "-p", "-t", "=login:", "#{@tmuxctl_input} #{@tmuxctl_spec}")]
    )
    assert SECRET.encode() not in options
    assert SECRET.encode().hex().encode() not in options
    assert SECRET not in asking.log("login").text + asking.screen("login", scrollback=0).text
    if backend != "memory":
        kept = [one for one in place.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]
        assert not kept
        assert asking.machine.transport.run([("list-buffers",)]) == b""
    asking.kill(("login",), signal="KILL")
    if backend != "memory":
        assert not [one for one in place.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]


def test_a_secret_is_not_typed_where_it_would_show(control: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PASSWORD", SECRET)
    for name, argv in (("cooked", LINES), ("raw", program("typed"))):
        control.new(name, argv)
        if name == "raw":
            assert control.wait(name, text="ready", since="screen").matched
        with pytest.raises(Conflict) as refused:
            control.send(name, secret_from_env="PASSWORD")
        assert refused.value.reason == "echo_on"
        assert SECRET not in str(refused.value) + repr(refused.value.to_json())


@pytest.mark.on("tmux", "pipe", "resident")
def test_a_text_is_not_typed_where_a_password_is_asked_for(asking: Control, place: Path) -> None:
    before = asking.log("login").text
    tries: tuple[Callable[[], object], ...] = (
        lambda: asking.send("login", SECRET.encode()),
        lambda: asking.send("login", SECRET.encode(), enter=False),
        lambda: asking.keys("login", ("s", "3", "Enter")),
        lambda: asking.keys("login", ("Space",)),
    )
    for typed in tries:
        with pytest.raises(Conflict) as refused:
            typed()
        assert refused.value.reason == "secret_wanted"
        assert SECRET not in str(refused.value) + repr(refused.value.to_json())
        assert "--secret-from-env" in str(refused.value.hint)
        assert "--insecure" in str(refused.value.hint)
    assert asking.log("login").text == before
    assert not [one for one in place.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]
    asking.keys("login", ("C-c",))
    assert asking.wait("login", exit=True).matched


@pytest.mark.on("tmux", "pipe", "resident")
def test_a_text_is_typed_for_a_password_if_that_is_said(asking: Control, place: Path) -> None:
    asking.send("login", SECRET.encode(), insecure=True)
    assert asking.wait("login", text=r"it has (\d+) bytes").groups == (str(len(SECRET)),)
    kept = asking.machine.transport.run([("display-message", "-p", "-t", "=login:", "#{@tmuxctl_input}")])
    assert SECRET.encode().hex().encode() not in kept
    assert not [one for one in place.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]


@pytest.mark.on("tmux")
def test_a_text_is_typed_where_only_the_echo_is_off(control: Control, needs: Callable[..., None]) -> None:
    needs("bash")
    control.new("t", ("bash", "--norc", "--noediting"))
    control.send("t", b"stty -echo")
    assert control.wait("t", prompt=True).matched
    control.send("t", b"echo it is $((6 * 7))")
    assert control.wait("t", text="it is 42").matched


@pytest.mark.on("memory")
def test_a_secret_that_is_none_is_refused(asking: Control, monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    (place / "empty").write_text("\n")
    monkeypatch.setenv("TWO", "a\nb")
    wrong: tuple[dict[str, Any], ...] = (
        {"secret_from_env": "NOT_THERE"}, {"secret_from_file": "nowhere"}, {"secret_from_fd": 999}, {"secret_from_env": "TWO"},
        {"secret_from_file": "empty"}, {"secret_from_env": "HOME", "secret_from_file": "empty"},
        {"secret_from_env": "HOME", "text": b"and text"},
    )  # fmt: skip
    for options in wrong:
        with pytest.raises(Usage):
            asking.send("login", **options)


@pytest.mark.on("tmux")
def test_values_that_look_secret_are_in_no_file(control: Control, place: Path) -> None:
    control.new("t", LINES, env={"API_KEY": SECRET, "DB_PASSWORD": SECRET, "GH_TOKEN": SECRET})
    control.send("t", b"up")
    assert control.wait("t", text="up").matched
    assert not [one for one in place.rglob("*") if one.is_file() and SECRET.encode() in one.read_bytes()]


BOXES = [
    ("whiptail", "--passwordbox", "API token"),
    ("whiptail", "--passwordbox", "Word"),
    ("dialog", "--passwordbox", "API token"),
    ("dialog", "--insecure", "--passwordbox", "API token"),
]
"""Boxes whose field hides what is typed, whatever stands above it."""


@pytest.mark.night
@pytest.mark.on("tmux")
@pytest.mark.parametrize("words", BOXES, ids=" ".join)
def test_a_secret_is_typed_into_the_field_of_a_box_that_hides_it(
    control: Control, monkeypatch: pytest.MonkeyPatch, needs: Callable[..., None], place: Path, words: tuple[str, ...]
) -> None:
    needs(words[0])
    monkeypatch.setenv("TOKEN", SECRET)
    (place / "box").write_text(
        '#!/bin/sh\n"$@" 8 40 2>typed; echo "it has $(wc -c <typed) bytes"; rm typed; exec cat\n'
    )
    for name, command in (("own", words), ("of-a-script", ("sh", f"{place}/box", *words))):
        size = ("8", "40") if name == "own" else ()
        control.new(name, (*command, *size))
        assert control.wait(name, asking=True).matched
        found = control.decide(name).asked
        assert (found.kind, found.question, found.hidden) == ("password", words[-1], True)
        assert control.decide(name, secret_from_env="TOKEN").option == "secret"
        if name == "of-a-script":
            assert control.wait(name, text=r"it has (\d+) bytes", since="screen").groups == (str(len(SECRET)),)
            assert SECRET not in control.log(name).text


@pytest.mark.on("tmux")
@pytest.mark.parametrize("program", ["whiptail", "dialog"])
def test_a_secret_is_not_typed_into_a_field_that_shows_it(
    control: Control, monkeypatch: pytest.MonkeyPatch, needs: Callable[..., None], program: str
) -> None:
    needs(program)
    monkeypatch.setenv("TOKEN", SECRET)
    control.new("box", (program, "--inputbox", "API token", "8", "40"))
    assert control.wait("box", asking=True).matched
    with pytest.raises(Conflict) as refused:
        control.decide("box", secret_from_env="TOKEN")
    assert refused.value.reason == "secret_wanted"
    assert SECRET not in control.log("box").text + control.screen("box").text
    # what may be shown is answered like any other field
    assert control.decide("box").asked.kind == "question"
    control.decide("box", "public")
    assert control.wait("box", text="public", since="screen").matched


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_secret_is_not_typed_where_nothing_says_that_keys_are_hidden(
    control: Control, monkeypatch: pytest.MonkeyPatch, needs: Callable[..., None], place: Path
) -> None:
    """A box of a program without a profile, one with several fields, and a question of a program that reads keys."""
    needs("dialog")
    monkeypatch.setenv("TOKEN", SECRET)
    both = ("dialog", "--passwordbox", "Password", "8", "40", "--and-widget", "--inputbox", "Token", "8", "40")
    other = ("sh", "-c", "stty -icanon -echo; printf 'Password: '; exec cat")
    plain = ("dialog", "--passwordbox", "Password", "8", "40")
    for name, command, profile in (("both", both, "auto"), ("other", other, "auto"), ("plain", plain, "none")):
        control.new(name, command, profile=profile)
        assert control.wait(name, asking=True).matched
        assert control.decide(name).asked.kind == "password"
        with pytest.raises(Conflict) as refused:
            control.decide(name, secret_from_env="TOKEN")
        assert refused.value.reason == "secret_wanted"
        assert SECRET not in control.log(name).text


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_profile_says_that_a_program_which_reads_keys_hides_a_password(
    control: Control, monkeypatch: pytest.MonkeyPatch, place: Path
) -> None:
    monkeypatch.setenv("TOKEN", SECRET)
    folder = place / ".config" / "tmuxctl" / "profiles"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "vault.yaml").write_text(
        "schema: tmuxctl/profile@1\nname: vault\n"
        "asking: {id: pass, kind: password, re: '^Password: ?$', where: cursor-line, hidden: true}\n"
    )
    script = "stty -icanon -echo -icrnl; printf 'Password: '; read -r x; echo; echo \"it has ${#x} bytes\"; exec cat"
    control.new("t", ("sh", "-c", script), profile="vault")
    assert control.wait("t", asking=True).matched
    control.decide("t", secret_from_env="TOKEN")
    assert SECRET not in control.log("t").text
    assert "Password" in control.screen("t").text
