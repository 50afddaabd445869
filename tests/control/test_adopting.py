"""Panes of a person's own tmux: driven as they are, or adopted; nothing of that server changes."""

from __future__ import annotations

import json
import re
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest
from control.person import Person

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Denied, NotFound, Unreachable, Usage


@pytest.mark.night
@pytest.mark.on("tmux", "resident")
def test_a_pane_of_another_tmux_is_driven_by_its_target(control: Control, person: Person):
    person.tmux("new-window", "-t", "work", "python3 -q")
    calc = person.target("work:2")
    assert control.wait(calc).state == "idle"
    assert control.ask(calc, b"6*7").answer == "42"
    assert control.ask(calc, b"'x' * 150").answer == repr("x" * 150)
    asked = control.ask(calc, b"for i in range(40): print(i)\n")
    assert asked.answer == "\n".join(map(str, range(40)))
    shell = person.target("work:1.0")
    control.send(shell, b"sleep 0.3; echo $((40+2))marker")
    assert control.wait(shell, text="42marker").matched == "text"
    assert control.wait(shell).matched == "idle"
    assert "42marker" in control.read(shell).text
    assert "42marker" in control.screen(shell).text
    control.keys(shell, ("C-l",))
    control.send(shell, b"read -p 'Really? [y/n] ' x")
    assert control.wait(shell, asking=True).kind == "confirm"
    assert control.decide(shell, "no").option == "no"
    assert control.wait(shell).matched == "idle"
    shown = control.show(shell)
    assert (shown.name, shown.target, shown.profile) == (person.target("work:1.0"), person.target("work:1.0"), "bash")
    assert (shown.cursor, shown.exit_status, shown.created) == (None, None, None)
    first = next(iter(control.watch((calc, shell))))
    assert first.state == "idle", first


@pytest.mark.on("tmux")
def test_targets_are_matched_exactly(control: Control, person: Person):
    pane = person.tmux("list-panes", "-a", "-F", "#{pane_id}").strip()
    for target in ("work", "work:1", "work:1.0", pane):
        assert control.show(person.target(target)).target == person.target("work:1.0")
    for target in ("wor", "work:7", "work:1.3", "%99", "", "=work", "work:bas", "*"):
        with pytest.raises(NotFound) as caught:
            control.show(person.target(target) if target else "tmux@person:x")
        assert caught.value.reason == "no_target"
    with pytest.raises(Unreachable) as unreachable:
        control.show("tmux@nobody:work")
    assert unreachable.value.reason == "no_server"


@pytest.mark.on("tmux")
def test_a_window_is_named_by_its_index_or_its_name_as_tmux_takes_it(control: Control, person: Person):
    person.tmux("new-window", "-t", "work", "-n", "code", "cat")
    person.tmux("split-window", "-t", "work:code", "cat")
    person.tmux("new-window", "-t", "work", "-n", "notes", "cat")
    for target in ("work:code.0", "work:code.1", "work:code", "work:2.1"):
        pane = person.tmux(
            "display-message", "-p", "-t", target, "#{session_name}:#{window_index}.#{pane_index}"
        ).strip()
        assert control.show(person.target(target)).target == person.target(pane)
    person.tmux("rename-window", "-t", "work:3", "日本, x: 1.0")
    assert control.show(person.target("work:日本, x: 1.0.0")).target == person.target("work:3.0")
    # an index comes first, and a name that two windows have names none
    person.tmux("rename-window", "-t", "work:3", "2")
    assert control.show(person.target("work:2.0")).target == person.target("work:2.0")
    person.tmux("rename-window", "-t", "work:3", "code")
    with pytest.raises(Usage) as refused:
        control.show(person.target("work:code.0"))
    assert refused.value.reason == "ambiguous"
    assert control.adopt(person.target("work:2.1"), name="mine").target
    control.release(("mine",))


@pytest.mark.on("tmux")
def test_the_name_of_a_window_hides_no_pane(control: Control, person: Person):
    # tmux 3.7 refuses such a name
    with suppress(subprocess.CalledProcessError):
        person.tmux("new-session", "-d", "-s", "odd", "-n", "a\tb\nc\td", "cat")
        assert control.show(person.target("odd:1.0")).target == person.target("odd:1.0")
    assert control.show(person.target("work")).target == person.target("work:1.0")


@pytest.mark.on("tmux")
def test_sessions_with_strange_names_are_reached_by_their_pane(control: Control, person: Person):
    person.tmux("new-session", "-d", "-s", "a name; ##(touch hit) %1", "cat")
    pane = person.tmux("list-panes", "-a", "-F", "#{pane_id}", "-f", "#{m:a name*,#{session_name}}").strip()
    shown = control.show(person.target(pane))
    assert shown.name == person.target(pane)
    control.send(person.target(pane), b"hello")
    assert control.wait(person.target(pane), text="hello", since="screen").matched == "text"
    assert not (person.place / "hit").exists()


@pytest.mark.on("tmux")
def test_a_target_that_could_mean_two_panes_is_refused(control: Control, person: Person):
    pane = person.tmux("list-panes", "-a", "-F", "#{pane_id}").strip()
    session = person.tmux("display-message", "-p", "-t", pane, "#{session_id}").strip()
    other = person.tmux("new-session", "-d", "-P", "-F", "#{pane_id}", "-s", session, "cat").strip()
    with pytest.raises(Usage) as refused:
        control.send(person.target(session), b"to whom?")
    assert refused.value.reason == "ambiguous"
    assert {pane, other} <= set(re.findall(r"%\d+", str(refused.value.hint)))
    assert control.send(person.target(other), b"to cat").result == "done"
    assert control.wait(person.target(other), text="to cat", since="screen").matched


@pytest.mark.on("tmux")
def test_a_session_whose_name_has_a_colon_is_reached_by_it(control: Control, person: Person):
    """tmux 3.7 and later allow it, earlier ones put `_` there."""
    person.tmux("new-session", "-d", "-s", "b.c:1", "cat")
    name = person.tmux("list-sessions", "-F", "#{session_name}", "-f", "#{m:b*,#{session_name}}").strip()
    for target in (name, f"{name}:1", f"{name}:1.0"):
        control.send(person.target(target), target.encode())
        assert control.wait(person.target(target), text=target, since="screen").matched
    assert "b.c" not in control.screen(person.target("work")).text


@pytest.mark.on("tmux")
def test_every_byte_reaches_a_pane_of_another_server(control: Control, person: Person, place: Path, until):
    person.tmux("new-window", "-t", "work:2", f"stty raw -echo; : >{place}/ready; exec cat >{place}/taken")
    until((place / "ready").exists)
    text = bytes(range(256)) + "\x9b31m é".encode() + b"\xff\xed\xa0\x80"
    control.send(person.target("work:2"), text, enter=False, multiline=True)
    until(lambda: (place / "taken").exists() and (place / "taken").stat().st_size >= len(text))
    assert (place / "taken").read_bytes() == text


@pytest.mark.on("tmux")
def test_what_would_change_the_other_server_is_refused(control: Control, person: Person):
    before = person.everything()
    shell = person.target("work")
    for refused in (
        lambda: control.kill((shell,)),
        lambda: control.rename(shell, "mine"),
        lambda: control.resize(shell, "80x24"),
    ):
        with pytest.raises(Denied) as caught:
            refused()
        assert caught.value.reason == "foreign"
    with pytest.raises(Conflict) as conflict:
        control.exec(shell, ("true",))
    assert conflict.value.reason == "no_journal"
    assert person.everything() == before


@pytest.mark.on("tmux")
def test_two_writers_do_not_mix_and_a_repeated_write_is_typed_once(control: Control, person: Person, until):
    person.tmux("new-window", "-t", "work", "cat")
    cat = person.target("work:2")
    first = control.send(cat, b"one")
    assert control.send(cat, b"one", id=first.id).result == "dup"
    until(lambda: control.screen(cat).text.count("one") == 2)


@pytest.mark.night
@pytest.mark.on("tmux")
def test_an_adopted_pane_has_a_name_a_profile_and_a_journal(control: Control, person: Person):
    person.tmux("new-window", "-t", "work", "python3 -q")
    made = control.adopt(person.target("work:2"), "calc")
    pane = person.tmux("display-message", "-p", "-t", "work:2", "#{pane_id}").strip()
    assert (made.name, made.target) == ("calc", person.target(pane))
    control.wait("calc")
    assert control.ask("calc", b"print('\\n' * 200 + 'end')").answer == "\n" * 200 + "end"
    point = control.show("calc").cursor
    control.ask("calc", b"40 + 2")
    assert "42" in control.read("calc", since=point).text
    assert "42" in control.log("calc").text
    assert [(one.name, one.state.value, one.profile) for one in control.ls().sessions] == [("calc", "idle", "python")]
    with pytest.raises(Conflict):
        control.new("calc", ("cat",))
    with pytest.raises(Conflict, match="adopted as calc"):
        control.adopt(person.target("work:2"), "again")
    assert control.show(made.id).name == "calc"
    assert control.wait(any=("calc",)).ok
    assert next(iter(control.watch())).session == "calc"
    control.adopt(person.target("work:1"), "shell", profile="bash")
    assert control.exec("shell", ("echo", "a b")).output == "a b\n"
    assert control.release(("calc", "shell")).released == ("calc", "shell")
    assert control.ls().sessions == ()
    with pytest.raises(NotFound):
        control.show("calc")


@pytest.mark.on("tmux")
def test_the_end_of_an_adopted_program_is_told_without_a_status_nobody_knows(control: Control, person: Person):
    person.tmux("new-window", "-t", "work", "python3 -q")
    control.adopt(person.target("work:2"), "calc")
    control.wait("calc")
    control.send("calc", b"exit(3)")
    ended = control.wait("calc", exit=True)
    assert (ended.matched, ended.exit_status) == ("exit", None)
    gone = control.show("calc")
    assert (gone.state.value, gone.exit_status) == ("exited", None)
    assert "exit(3)" in control.log("calc").text
    control.prune()
    assert control.ls().sessions == ()


@pytest.mark.on("tmux")
def test_a_server_that_is_gone_is_no_reason_to_fail(control: Control, person: Person, until):
    control.adopt(person.target("work"), "w")
    person.tmux("kill-server")
    until(lambda: [(one.name, one.state.value) for one in control.ls().sessions] == [("w", "lost")])
    control.release(("w",))
    assert control.ls().sessions == ()


@pytest.mark.night
@pytest.mark.on("tmux")
def test_every_pane_of_every_server_is_listed_with_its_state(control: Control, person: Person, until):
    control.new("own", ("cat",))
    person.tmux("split-window", "-t", "work", "python3 -q")
    until(lambda: all(one.state.value == "idle" for one in control.ls(all_sockets=True).sessions))
    listed = {one.name: one for one in control.ls(all_sockets=True).sessions}
    assert set(listed) == {"own", person.target("work:1.0"), person.target("work:1.1")}
    assert listed[person.target("work:1.1")].profile == "python"
    control.adopt(person.target("work:1.1"), "calc")
    names = [one.name for one in control.ls(all_sockets=True).sessions]
    assert sorted(names) == ["calc", "own", person.target("work:1.0")]


@pytest.mark.night
@pytest.mark.on("tmux")
def test_the_first_look_at_an_idle_pane_says_idle_and_where_it_is(control: Control, person: Person, place, until):
    person.tmux("new-window", "-t", "work", "-c", str(place), "python3 -q")

    def silent() -> bool:
        newest = person.tmux("list-windows", "-t", "work", "-F", "#{window_activity}").split()
        return all(time.time() - float(one) > 3 for one in newest)

    until(silent)
    listed = control.ls(all_sockets=True).sessions
    assert [(one.state.value, one.kind) for one in listed] == [("idle", "prompt")] * 2
    assert str(place) in [one.cwd for one in listed]


@pytest.mark.on("tmux")
def test_what_is_no_target_is_refused(control: Control, person: Person):
    for target in ("work", "tmux", "person:work", ""):
        with pytest.raises(Usage):
            control.adopt(target)
    control.new("own", ("cat",))
    with pytest.raises(Conflict):
        control.adopt(f"tmux@{control.machine.transport.socket}:own")
    with pytest.raises(Conflict):
        control.adopt(person.target("work"), "own")


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_persons_tmux_is_as_it_was_after_adopting_driving_and_releasing(
    control: Control, person: Person, needs, until
):
    needs("vim")
    log = person.place / "log"
    person.tmux("new-window", "-t", "work", "-n", "notes", "vim -u NONE notes.txt")
    person.tmux("split-window", "-h", "-t", "work:1", "bash --norc")
    person.tmux("new-window", "-t", "work", "-n", "logged", "bash --norc")
    person.tmux("pipe-pane", "-t", "work:3", f"cat >> {log}")
    person.tmux("set-buffer", "-b", "kept", "what was copied")
    person.tmux("send-keys", "-t", "work:3", "echo before", "Enter")
    until(lambda: "before" in person.tmux("capture-pane", "-p", "-t", "work:3"))
    until(lambda: "notes.txt" in person.tmux("capture-pane", "-p", "-t", "work:2"))
    untouched = person.tmux("capture-pane", "-p", "-S", "-", "-t", "work:1.1")
    before = person.everything()

    shell = control.adopt(person.target("work:1.0"), "shell")
    control.adopt(person.target("work:2"), "editor", profile="none")
    logged = control.adopt(person.target("work:3"), "logged")
    assert shell.cursor is not None
    assert logged.cursor is None
    assert control.ask("shell", b"seq 3").answer == "1\n2\n3"
    assert control.ask("logged", b"echo after").answer == "after"
    until(lambda: control.show("editor").kind in ("editor", "tui"))
    control.keys("editor", ("i",))
    control.send("editor", b"written", enter=False)
    control.keys("editor", ("Escape",))
    assert control.wait("editor", text="written", since="screen").matched == "text"
    control.keys("editor", ("u",))
    control.wait("editor", gone="written")
    assert control.release(("shell", "editor", "logged")).released

    after = person.everything()
    for what, value in before.items():
        assert after[what] == value, what
    assert person.tmux("capture-pane", "-p", "-S", "-", "-t", "work:1.1") == untouched
    assert "seq 3" in person.tmux("capture-pane", "-p", "-S", "-", "-t", "work:1.0")
    person.tmux("send-keys", "-t", "work:3", "echo still", "Enter")
    until(lambda: "still" in log.read_text())
    assert "after" in log.read_text()
    assert not list((person.place / "state").glob("**/adopted/shell"))


@pytest.mark.on("tmux")
def test_what_is_kept_of_a_pane_is_the_callers_alone(control: Control, person: Person):
    control.adopt(person.target("work"), "w")
    for path in (person.place / "state").glob("**/adopted/**/*"):
        assert path.lstat().st_mode & 0o077 == 0, path
    about = json.loads(next((person.place / "state").glob("**/adopted.json")).read_text())
    assert about["target"] == person.target(person.tmux("list-panes", "-a", "-F", "#{pane_id}").strip())
