"""A shell's session runs many programs: each is known by its own profile while it has the terminal."""

from __future__ import annotations

import concurrent.futures
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tmuxctl.control import Control
from tmuxctl.control.foreground import KnownProfiles
from tmuxctl.profile_files import library
from tmuxctl.program_profile import Profile


@pytest.mark.on("tmux", "resident")
def test_what_a_shell_runs_is_known_by_its_own_profile(control: Control, needs):
    needs("python3", "bash")
    assert control.new("t", ("bash", "--norc")).profile == "bash"
    control.ask("t", b"python3 -q")
    seen = control.show("t")
    assert (seen.profile, seen.kind, seen.detail) == ("python", "prompt", "repl")
    assert control.ask("t", b"6*7").answer == "42"
    assert control.ls().sessions[0].profile == "python"
    control.keys("t", ("C-d",))
    control.wait("t")
    assert control.show("t").profile == "bash"


@pytest.mark.on("tmux")
def test_a_question_of_what_a_shell_runs_has_the_options_of_its_profile(control: Control, needs, place: Path):
    needs("less")
    (place / "text").write_text("line\n" * 200)
    control.new("t", ("sh",))
    control.send("t", b"less text")
    assert control.wait("t", asking=True).kind == "pager"
    assert {"more", "quit"} <= {one.id for one in control.decide("t").asked.options}
    assert control.decide("t", "quit", wait=True).state == "idle"


@pytest.mark.on("tmux")
def test_who_waits_for_the_keys_counts_before_the_script_it_is_a_part_of(control: Control, needs):
    needs("less", "seq")
    assert control.new("t", ("sh", "-c", "seq 300 | less")).profile == "less"
    assert control.wait("t", asking=True).kind == "pager"
    assert control.decide("t", "end").asked.default == "line"


@pytest.mark.on("tmux")
def test_a_profile_that_is_written_later_counts(control: Control, place: Path, until):
    control.new("t", ("sh",))
    control.send("t", b"cat")
    control.wait("t")
    assert control.show("t").profile == "sh"
    path = place / ".config/tmuxctl/profiles/mine.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("schema: tmuxctl/profile@1\ndetect: {argv0: [cat], foreground: [cat]}\n")
    assert Control().show("t").profile == "mine"
    path.write_text("schema: tmuxctl/profile@1\ndetect: {argv0: [tac], foreground: [tac]}\nnotes: for another\n")
    assert Control().show("t").profile == "sh"


@pytest.mark.on("tmux")
def test_a_session_that_wants_no_profile_gets_none(control: Control, needs):
    needs("python3")
    control.new("t", ("sh",), profile="none")
    control.ask("t", b"python3 -q")
    assert control.show("t").profile is None


@pytest.mark.on("tmux")
def test_a_broken_profile_is_in_nobodys_way(control: Control, place: Path):
    path = place / ".config/tmuxctl/profiles/broken.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("promt: x\n")
    os.mkfifo(path.parent / "pipe.yaml")
    control.new("t", ("sh",))
    control.send("t", b"cat")
    control.wait("t")
    assert control.show("t").profile == "sh"
    assert os.stat(next(place.glob("state/**/profiles.json"))).st_mode & 0o777 == 0o600


@pytest.mark.on("memory")
def test_two_threads_that_ask_for_a_profile_at_once_both_find_it(control: Control, monkeypatch: pytest.MonkeyPatch):
    """Reading a profile takes a moment: who asks meanwhile waits for it, and does not take it for missing."""
    known, reads, begun, go = KnownProfiles(control.machine.transport), [], threading.Event(), threading.Event()

    def read(name, *, keys):
        reads.append(name)
        begun.set()
        assert go.wait(10)
        return Profile(name="python")

    monkeypatch.setattr(library, "load_foreground", read)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(known.find, "python3")
        assert begun.wait(10)
        second = pool.submit(known.find, "python3")
        # one that does not wait is done by then
        concurrent.futures.wait([second], timeout=0.2)
        go.set()
        assert [one.result(10) for one in (first, second)] == [Profile(name="python")] * 2
    assert reads == ["python3"]
    # another process remembers it
    assert KnownProfiles(control.machine.transport).find("python3") == Profile(name="python")
    assert reads == ["python3"]


def test_a_program_that_no_profile_is_for_makes_no_file_be_parsed(monkeypatch: pytest.MonkeyPatch):
    """`watch` said idle of a busy program for seconds: it parsed all profiles, and tried their patterns, to find none."""
    parsed, read = [], library._read_document

    def read_document(extension, keys):
        parsed.append(extension.name)
        return read(extension, keys)

    monkeypatch.setattr(library, "_read_document", read_document)
    assert library.load_foreground("tail") is None
    assert parsed == []
    profile = library.load_foreground("python3")
    assert profile is not None
    assert profile.name == "python"
    assert set(parsed) <= {"python"}


@pytest.mark.parametrize(
    "names",
    [
        "[cat, mine]",
        "\n    # two of them\n    - cat\n    # the other\n    - mine",
        "[cat, # one\n    mine]",
    ],
)
def test_names_of_programs_are_found_however_they_are_written(place: Path, names: str):
    path = place / ".config/tmuxctl/profiles/named.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(f"schema: tmuxctl/profile@1\ndetect:\n  argv0: [cat]\n  foreground: {names}\n")
    for program in ("cat", "mine"):
        profile = library.load_foreground(program)
        assert profile is not None, program
        assert profile.name == "named"
    assert library.load_foreground("other") is None
