"""Operations that another machine's tmuxctl carries out give what they give here, to every caller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rpc.conftest import Host, operations_of
from rpc.socket_carrier import Weather

from tmuxctl.access import CallerAccess, find_meant, still_means
from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Denied, Exited, NotFound, TmuxctlError, Usage
from tmuxctl.model import State
from tmuxctl.operations import Cancellation, Cancelled, in_pieces, to_json
from tmuxctl.results import Batch, Output

MOVING = {"id", "incarnation", "pid", "created", "active", "cursor", "position", "elapsed", "cwd", "time", "age", "at"}
"""What differs from session to session, whoever is asked."""


STEPS = [{"send": "echo three"}, {"wait": {"text": r"^three\n\$ "}}, {"screen": {}}]


def outcomes(found: Batch) -> list[Any]:
    """What came of the steps, and what the screen shows; not whether the shell reads again, which what it printed does not say."""
    *_, screen = found.steps
    return [*(one.outcome for one in found.steps), to_json(screen)["result"]["text"]]


def told(result: Any) -> Any:
    """A result as it is printed, without what differs from session to session, and with names for addresses."""
    if isinstance(result, dict):
        return {name: told(value) for name, value in result.items() if name not in MOVING | {"machine"}}
    if isinstance(result, list):
        return [told(one) for one in result]
    return result.removeprefix("far/") if isinstance(result, str) else result


@pytest.mark.night
def test_each_operation_gives_there_what_it_gives_here(far: Control) -> None:
    def play(name: str, machine: str) -> list[Any]:
        control = far
        found: list[Any] = [
            control.new(name, ("sh",), tag=("a",)),
            control.send(name, b"echo one", wait_text=r"^one\n\$ ", screen=True),
            control.ask(name, b"echo two"),
            control.exec(name, ("printf", "a\\377b")),
            # its prompt comes before or after it has ended
            [control.wait(name, prompt=True), control.read(name)][:1],
            control.keys(name, ("e", "Enter"), wait_text="not found"),
            control.wait(name, prompt=True),
            control.wait(any=(name,), prompt=True),
            control.wait(all=(name,), idle=True, timeout=5.0),
            control.screen(name, scrollback=5),
            control.read(name),
            control.log(name, tail=3, raw=True),
            outcomes(control.batch(name, STEPS)),
            control.mark(name, "here"),
            control.tag(name, ("b",), remove=("a",)),
            control.resize(name, "100x30"),
            control.show(name),
            control.explain(name).status,
            control.ls(machine),
            control.inbox_ls(name),
            next(iter(control.watch((name,)))),
            control.kill((name,)),
            control.ls(machine, ended=True).sessions[0].state,
        ]
        return [told(json.loads(json.dumps(to_json(one)))) for one in found]

    here, there = play("sh", None), play("far/sh", "far")  # type: ignore[arg-type]
    # the load of each machine's processes is its own
    for one in (here, there):
        for row in one:
            if isinstance(row, dict):
                for name in ("memory", "cpu", "processes", "strays"):
                    row.pop(name, None)
    for one, other in zip(there, here, strict=True):
        assert one == other


ERRORS: dict[str, Callable[[Control, str], Any]] = {
    "no session": lambda control, at: control.send(f"{at}nobody", b"x"),
    "bad key": lambda control, at: control.keys(f"{at}sh", ("Nosuchkey",)),
    "bad name": lambda control, at: control.new(f"{at}a.b", ("sh",)),
    "exists": lambda control, at: control.new(f"{at}sh", ("sh",)),
    "bad pattern": lambda control, at: control.wait(f"{at}sh", text="("),
    "no program": lambda control, at: control.new(f"{at}other", ("no-such-program",)),
    "no such question": lambda control, at: control.decide(f"{at}sh", "yes"),
    "no command": lambda control, at: control.exec(f"{at}sh", ()),
    "bad step": lambda control, at: control.batch(f"{at}sh", [{"dance": 1}]),
    "a failed step": lambda control, at: control.batch(f"{at}sh", [{"wait": {"text": "never", "timeout": 0.1}}]),
    "too late": lambda control, at: control.run(
        ("sleep", "9"), name="late", timeout=0.2, machine=at.strip("/") or None
    ),
}


@pytest.mark.parametrize("case", ERRORS)
def test_each_error_is_the_same_there(far: Control, case: str) -> None:
    far.new("sh", ("sh",))
    far.new("far/sh", ("sh",))

    def end(at: str) -> Any:
        try:
            return "result", told(to_json(ERRORS[case](far, at)))
        except TmuxctlError as error:
            found = to_json(error.to_json())
            details = {name: one for name, one in (found.pop("details") or {}).items() if name != "machine"}
            message = found.pop("message").removeprefix("far: ")
            hint = (found.pop("hint") or "").replace("far/", "").replace("far", "").strip()
            return type(error).__name__, told(found), told(details), message, hint

    assert end("far/") == end("")


def test_a_machine_of_its_own_has_its_own_sessions(far: Control, host: Host) -> None:
    made = far.new("far/sh", ("sh",))
    assert (made.machine, made.name, made.address) == ("far", "sh", "far/sh")
    assert far.ls().sessions == ()
    assert [one.address for one in far.ls("far").sessions] == ["far/sh"]
    assert [one.address for one in far.ls(all_machines=True).sessions] == ["far/sh"]
    assert far.exec("far/sh", ("pwd",)).output == f"{host.folder}\n"


@pytest.mark.night
def test_output_is_followed_to_its_end(far: Control) -> None:
    far.new("far/sh", ("sh",))
    since = far.screen("far/sh").position
    following = far.read("far/sh", since=since, follow=True)
    far.send("far/sh", b"for n in 1 2 3; do echo line $n; sleep 0.1; done; exit")
    text = "".join(one.text for one in following)
    assert [line for line in text.splitlines() if line.startswith("line")] == ["line 1", "line 2", "line 3"]


@pytest.mark.night
def test_events_of_sessions_here_and_there_come_together(far: Control) -> None:
    far.new("here", ("sh",))
    far.new("far/there", ("sh",))
    events = far.watch(("here", "far/there"))
    first = {next(events).session, next(events).session}
    assert first == {"here", "far/there"}
    far.kill(("here", "far/there"))
    assert {one.session for one in events if one.state is State.EXITED} == {"here", "far/there"}


def test_all_machines_are_watched(far: Control) -> None:
    far.new("far/there", ("sh",))
    events = far.watch(all_machines=True)
    assert next(events).session == "far/there"
    events.close()  # type: ignore[attr-defined]


def test_a_wait_for_one_of_several_machines_ends_with_the_first(far: Control) -> None:
    far.new("here", ("sh",))
    far.new("far/there", ("sh",))
    far.send("far/there", b"sleep 0.2; echo now")
    waits = far.wait(any=("here", "far/there"), text="^now$", timeout=15.0)
    assert [one.session for one in waits.waits] == ["far/there"]


def test_nothing_is_killed_if_one_of_several_is_not_there(far: Control) -> None:
    far.new("here", ("sh",))
    far.new("far/there", ("sh",))
    with pytest.raises(NotFound):
        far.kill(("here", "far/there", "far/nobody"))
    assert len(far.ls(all_machines=True).sessions) == 2
    assert [one.session for one in far.kill(("here", "far/there")).killed] == ["here", "far/there"]


def test_a_secret_is_typed_there(far: Control, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PW", "hunter2")
    far.new(
        "far/sh", ("sh", "-c", "stty -echo; printf 'Password: '; read -r p; stty echo; echo; echo \"<$p>\"; exec sh")
    )
    far.wait("far/sh", input=True, timeout=10.0)
    far.decide("far/sh", secret_from_env="PW")
    assert far.wait("far/sh", text="<hunter2>", timeout=10.0).matched


def test_files_of_the_caller_are_read_here(far: Control, place: Path) -> None:
    far.new("far/sh", ("sh",))
    (place / "input").write_bytes(b"b\na\n" * 50_000)
    ran = far.exec("far/sh", ("sort -u",), stdin=str(place / "input"))
    assert ran.output == "a\nb\n"
    (place / "text").write_text("echo from a file\n")
    assert far.ask("far/sh", file=str(place / "text")).text == "from a file"


def test_bytes_arrive_as_they_are(far: Control) -> None:
    far.new("far/cat", ("sh", "-c", "stty raw -echo; exec od -An -tx1"), wait=False)
    far.wait("far/cat", settle=0.3, timeout=5.0)
    far.send("far/cat", b"\xff\xfe\x01" + b"a" * 13, enter=False)
    assert far.wait("far/cat", text="ff fe 01 61", timeout=10.0).matched


@pytest.mark.night
def test_what_is_cancelled_here_ends_there(far: Control, weather: Weather, until: Callable[..., Any]) -> None:
    far.new("far/sh", ("sh",))
    cancelled = Cancellation()
    ended: list[BaseException] = []

    def wait() -> None:
        try:
            far.call("wait", {"session": "far/sh", "text": "never", "timeout": 60}, cancelled=cancelled)
        except BaseException as error:
            ended.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    remote = operations_of(far)
    until(lambda: remote.client._pending)
    cancelled.set()
    thread.join(10)
    assert isinstance(ended[0], Cancelled)
    until(lambda: any(way == "in" and header.get("kind") == "error" for way, header in weather.seen))
    assert not remote.client._pending


@pytest.mark.night
def test_a_stream_that_is_closed_here_ends_there(far: Control, weather: Weather, until: Callable[..., Any]) -> None:
    far.new("far/sh", ("sh",))
    events = far.watch(("far/sh",))
    next(events)
    events.close()  # type: ignore[attr-defined]
    until(lambda: any(way == "in" and header.get("kind") == "error" for way, header in weather.seen))
    assert not operations_of(far).client._pending


@pytest.mark.night
def test_a_batch_is_cancelled(far: Control) -> None:
    far.new("far/sh", ("sh",))
    cancelled = Cancellation()
    timer = threading.Timer(1.0, cancelled.set)
    timer.start()
    steps = [{"send": "echo hi"}, {"wait": {"text": "never"}}]
    with pytest.raises(Cancelled):
        far.call("batch", {"session": "far/sh", "steps": steps}, cancelled=cancelled)
    assert "hi" in far.read("far/sh").text


def test_rights_are_decided_there(start_host: Callable[..., Host], reach: Callable[..., Control]) -> None:
    all_rights, read_only = start_host(), start_host("read")
    far = reach(far=all_rights, shy=read_only)
    for call in (
        lambda: far.new("shy/sh", ("sh",)),
        lambda: far.send("shy/sh", b"x"),
        lambda: far.kill(("shy/sh",)),
        lambda: far.ask("shy/sh", b"x", new="sh"),
    ):
        with pytest.raises(Denied) as caught:
            call()
        assert caught.value.reason == "right"
    assert far.ls("shy").sessions == ()


def test_a_caller_reaches_no_session_but_its_own(
    start_host: Callable[..., Host], reach: Callable[..., Control]
) -> None:
    far = reach(far=start_host("read,write,create,kill", "mine-*"))
    far.new("far/mine-1", ("sh",))
    made = far.exec("far/mine-1", (f"{sys.executable} -m tmuxctl new other -- sh",))
    assert made.exit_status == 0, made.output
    assert [one.name for one in far.ls("far").sessions] == ["mine-1"]
    for call in (
        lambda: far.screen("far/other"),
        lambda: far.send("far/other", b"x"),
        lambda: far.kill(("far/other",)),
        lambda: far.rename("far/mine-1", "other2"),
        lambda: next(iter(far.watch(("far/other",)))),
        lambda: far.new("far/their", ("sh",)),
    ):
        with pytest.raises(NotFound) as caught:
            call()
        assert caught.value.reason == "no_session"
    remote = operations_of(far)
    for operation, arguments in (
        ("kill", {"all": True}),
        ("prune", {}),
        ("restore", {}),
        ("status", {}),
        ("watch", {}),
    ):
        with pytest.raises((Denied, NotFound)) as refused:
            list(remote.call(operation, arguments))
        assert refused.value.reason in ("sessions", "no_session")
    assert [one.name for one in far.ls("far").sessions] == ["mine-1"]


@pytest.mark.night
@pytest.mark.parametrize("word", ["exec", "ask", "wait", "any", "timeout"])
def test_nothing_is_told_of_a_session_that_was_renamed_out_of_its_patterns_meanwhile(
    start_host: Callable[..., Host], reach: Callable[..., Control], word: str
) -> None:
    far = reach(far=start_host("read,write,create,kill", "mine-*"))
    rename = f"{sys.executable} -m tmuxctl rename $TMUXCTL_SESSION other; echo sec''ret"
    calls: dict[str, Callable[[], object]] = {
        "exec": lambda: far.exec("far/mine-1", (rename,)),
        "ask": lambda: far.ask("far/mine-1", rename.encode()),
        "wait": lambda: far.wait("far/mine-1", text="^secret"),
        "any": lambda: far.wait(any=("far/mine-1",), text="^secret"),
        "timeout": lambda: far.wait("far/mine-1", text="never", timeout=6.0),
    }
    far.new("far/mine-1", ("sh",))
    if word in ("wait", "any", "timeout"):
        far.send("far/mine-1", f"sleep 2; {rename}".encode())
    with pytest.raises(NotFound) as caught:
        calls[word]()
    assert caught.value.reason == "no_session"
    assert caught.value.screen is None


@pytest.mark.parametrize(
    ("operation", "arguments", "reason"),
    [
        ("export", {"source": "sh", "file": "/tmp/x.cast"}, "not_offered"),
        ("report", {"session": "sh", "file": "/tmp/x.md"}, "not_offered"),
        ("rec", {"session": "sh"}, "not_offered"),
        ("adopt", {"target": "tmux:x:0.0"}, "not_offered"),
        ("profile_new", {"name": "x", "command": ["sh"]}, "not_offered"),
        ("doctor", {"fix": True}, "local_file"),
        ("ls", {"all_machines": True}, "local_file"),
        ("ls", {"all_sockets": True}, "local_file"),
        ("new", {"name": "x", "env_file": "/etc/passwd"}, "local_file"),
        ("new", {"name": "x", "profile": "/etc/passwd"}, "local_file"),
        ("new", {"name": "x", "profile": "beside.yaml"}, "local_file"),
        ("profile_show", {"name": "/etc/passwd"}, "local_file"),
        ("profile_check", {"name": "/etc/passwd"}, "local_file"),
        ("ask", {"session": "sh", "text": "x", "fallback": "/etc/passwd"}, "local_file"),
        ("explain", {"file": "/etc/passwd"}, "local_file"),
    ],
)
def test_what_concerns_the_machine_itself_is_refused(
    far: Control, operation: str, arguments: dict[str, Any], reason: str
) -> None:
    far.ls("far")
    remote = operations_of(far)
    with pytest.raises(Denied) as caught:
        remote.call(operation, arguments)
    assert caught.value.reason == reason


def test_a_screen_of_another_machine_is_drawn_here(far: Control) -> None:
    far.new("far/sh", ("sh", "-c", "printf '\\033[31mred <b>'; exec cat"))
    far.wait("far/sh", text="red", since="screen")
    told = far.screen("far/sh", html=True, svg=True)
    assert "red &lt;b&gt;" in (told.html or "")
    assert "red &lt;b&gt;" in (told.svg or "")
    assert told.ansi is None
    assert "\x1b[31m" in (far.screen("far/sh", html=True, ansi=True).ansi or "")


def test_an_operation_that_there_is_not_is_told(far: Control) -> None:
    far.ls("far")
    remote = operations_of(far)
    with pytest.raises(Usage):
        remote.call("ls", {"nonsense": 1})


def test_a_machine_that_was_reached_reaches_no_further(far: Control) -> None:
    far.new("far/sh", ("sh",))
    with pytest.raises(NotFound):
        far.screen("far/far/sh")


def test_what_needs_the_machine_itself_says_so(far: Control, place: Path) -> None:
    far.new("far/sh", ("sh",))
    with pytest.raises(Usage) as caught:
        far.export("far/sh", str(place / "x.cast"))
    assert caught.value.reason == "operations_only"


@pytest.mark.night
def test_the_command_works_as_with_any_machine(host: Host, place: Path) -> None:
    folder = place / "config/tmuxctl"
    (folder / "machines.toml").write_text('[far]\ngateway = "far"\n')
    environment = {**os.environ, "PYTHONPATH": f"{Path(__file__).parent.parent}:{Path(__file__).parents[2]}"}
    environment["FAR"] = host.path

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        script = (
            "import os, sys\n"
            "from tmuxctl.control.machines import remote\n"
            "from rpc import socket_carrier\n"
            "remote.register_carrier('gateway', lambda entry: socket_carrier.connect_to(os.environ['FAR']))\n"
            "from tmuxctl.surfaces.cli import main\n"
            "sys.exit(main())\n"
        )
        return subprocess.run(
            [sys.executable, "-c", script, "--no-server", *words],
            env=environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )

    assert run("new", "far/sh", "--", "sh").returncode == 0
    ran = run("exec", "far/sh", "--", "uname; exit_status() { return 3; }; exit_status")
    assert (ran.returncode, ran.stdout) == (3, "Linux\n"), ran.stderr
    assert "far/sh" in run("ls", "far/").stdout
    assert "far" in run("machine", "ls").stdout
    logged = run("log", "far/sh")
    assert "uname" not in logged.stderr
    assert logged.returncode == 0
    failed = run("send", "far/nobody", "x", "--json")
    assert failed.returncode == 3
    assert json.loads(failed.stderr)["error"]["details"]["machine"] == "far"


def test_too_much_for_one_call_is_refused(far: Control) -> None:
    far.new("far/sh", ("sh",))
    with pytest.raises(Usage):
        far.send("far/sh", b"a" * (17 << 20))


def test_a_long_output_comes_whole(far: Control) -> None:
    far.new("far/sh", ("sh",))
    ran = far.exec("far/sh", ("seq 200000",), max_bytes=4 << 20)
    assert ran.output == "".join(f"{number}\n" for number in range(1, 200001))


def test_an_end_of_a_program_is_told(far: Control) -> None:
    far.new("far/sh", ("sh",))
    far.send("far/sh", b"exit 3")
    waited = far.wait("far/sh", exit=True, timeout=10.0)
    assert waited.exit_status == 3
    with pytest.raises((Exited, Conflict)):
        far.send("far/sh", b"x")


def test_pieces_of_a_long_log_make_the_whole(far: Control) -> None:
    far.new("far/sh", ("sh",))
    far.exec("far/sh", ("seq 100000",))
    with in_pieces("text"):
        text = "".join(one.text for one in far.call("log", {"session": "far/sh"}))
    whole = far.log("far/sh")
    assert isinstance(whole, Output)
    # the prompt may come in between
    assert text.partition("\n100000\n")[1]
    assert text.rstrip("$ ") == whole.text.rstrip("$ ")


def test_a_token_for_sessions_of_a_machine_reaches_those(far: Control) -> None:
    made = far.new("far/mine", ("sh",))
    far.new("far/other", ("sh",))
    access = CallerAccess(sessions=("far/mine",))
    assert find_meant(access, far, "far/mine") == f"far/{made.id}"
    assert still_means(access, far, f"far/{made.id}")
    with pytest.raises(NotFound):
        find_meant(access, far, "far/other")
