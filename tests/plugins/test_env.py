"""The plugin `env`: variables from a file, single ones and secrets reach the program, and the value of a secret nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from programs import LINES

from tmuxctl import plugin
from tmuxctl.control import Control
from tmuxctl.errors import Failed
from tmuxctl.model import SessionSpec
from tmuxctl.operations import to_json

VALUE = "wq7-the-value-itself"


def applied(*wanted: Any, env: dict[str, str] | None = None, **fields: Any) -> SessionSpec:
    """What `env` makes of a spec, once for each of the options."""
    spec = SessionSpec(("x",), os.getcwd(), env or {}, **fields)
    return plugin.apply(spec, [("env", options) for options in wanted])[0]


def refused(options: Any, **fields: Any) -> Failed:
    with pytest.raises(Failed) as error:
        applied(options, **fields)
    assert error.value.reason == "plugin"
    return error.value


def environ(pid: int | None) -> dict[str, str]:
    """The variables that a process was started with."""
    pairs = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


# what the caller has


def test_only_what_is_allowed_is_left_of_the_callers_variables(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "LC_TIME", "LC_ALL", "LCX"):
        monkeypatch.setenv(name, "caller's")
    (place / "vars").write_text("FROM_FILE=1\n")
    options = {"file": "vars", "set": ["SINGLE=2"], "secret": ["PLACE=env:HTTP_PROXY"], "allow": ["PATH", "LC_*"]}
    spec = applied(options, env={**os.environ, "ADDED": "by the profile", "HTTP_PROXY": "caller's"})
    assert spec.env == {
        "PATH": os.environ["PATH"], "LC_TIME": "caller's", "LC_ALL": "caller's", "ADDED": "by the profile",
        "FROM_FILE": "1", "SINGLE": "2", "PLACE": "caller's",
    } | {name: value for name, value in os.environ.items() if name.startswith("LC_")}  # fmt: skip


def test_only_what_is_allowed_is_left_of_another_machines_variables(place: Path) -> None:
    env = {"PATH": "/there", "THERE_TOKEN": VALUE, "MODE": "given"}
    assert applied({"allow": ["PATH"]}, env=env, machine="web1", notes={"given": ["MODE"]}).env == {
        "PATH": "/there",
        "MODE": "given",
    }


def test_what_is_unset_is_left_out_unless_it_is_added(place: Path) -> None:
    env = {"AWS_KEY": "a", "AWS_REGION": "b", "HOME": "/h", "LANG": "C"}
    assert applied({"unset": ["AWS_*", "LANG"], "set": "AWS_REGION=c"}, env=env).env == {
        "AWS_REGION": "c",
        "HOME": "/h",
    }


@pytest.mark.parametrize("glob", ["", "A B", "A=" + VALUE, "$HOME", "A,B"])
def test_what_is_no_name_is_refused(place: Path, glob: str) -> None:
    for option in ("allow", "unset"):
        error = refused({option: [glob]})
        assert error.details["cause"] == "bad_env"
        assert VALUE not in error.message


# secrets


def test_a_secret_comes_from_a_variable_a_file_or_a_command(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT", VALUE)
    (place / "key").write_text("-----BEGIN-----\nabc==\n-----END-----\n\n")
    (place / "dos").write_bytes(b"one\r\n")
    (place / "vars").write_text("E=no\nF='yes'\n")
    secrets = ["A=env:VAULT", "B=file:key", "C=file:~/key", "D=command:tr a-z A-Z <dos; echo two", "E=file:dos"]
    secrets.append("F=dotenv:vars")
    spec = applied({"secret": secrets})
    key = "-----BEGIN-----\nabc==\n-----END-----\n"
    assert spec.env == {"A": VALUE, "B": key, "C": key, "D": "ONE\r\ntwo", "E": "one", "F": "yes"}
    assert spec.notes["secrets"] == {
        "A": "env:VAULT", "B": f"file:{place}/key", "C": f"file:{place}/key",
        "D": "command:tr a-z A-Z <dos; echo two", "E": f"file:{place}/dos", "F": f"dotenv:{place}/vars",
    }  # fmt: skip
    assert VALUE not in json.dumps(spec.notes)


def test_a_secret_can_come_through_a_pipe(place: Path) -> None:
    reader, writer = os.pipe()
    if not os.fork():
        os.write(writer, VALUE.encode() + b"\n")
        os._exit(0)
    os.close(writer)
    assert applied({"secret": [f"A=file:/dev/fd/{reader}"]}).env["A"] == VALUE
    os.close(reader)
    os.wait()


def test_a_secret_wins_and_a_later_value_takes_its_place(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VAULT", VALUE)
    first = {"set": ["A=plain", "B=plain"], "secret": ["A=env:VAULT", "C=env:VAULT", "D=env:VAULT"]}
    spec = applied(first, {"set": "C=plain", "unset": "D"})
    assert spec.env == {"A": VALUE, "B": "plain", "C": "plain"}
    assert spec.notes["secrets"] == {"A": "env:VAULT"}
    assert "secrets" not in applied(first, {"unset": "*"}).notes


@pytest.mark.night
@pytest.mark.on("tmux")
def test_a_restored_session_gets_its_secret_from_where_it_is(control: Control, place: Path, until: Any) -> None:
    (place / "token").write_text("old")
    made = control.new("t", LINES, with_=("env:secret=DEPLOY=file:token,set=MODE=special",))
    assert environ(made.pid)["DEPLOY"] == "old"
    control.machine.transport.run([("kill-session", "-t", "=t")])
    (place / "token").write_text("new")
    assert control.restore(("t",)).ok
    until(lambda: "DEPLOY" in environ(control.show("t").pid))
    given = environ(control.show("t").pid)
    assert (given["DEPLOY"], given["MODE"]) == ("new", "special")

    control.machine.transport.run([("kill-session", "-t", "=t")])
    (place / "token").unlink()
    (lost,) = control.restore(("t",)).sessions
    assert (lost.outcome, lost.reason) == ("lost", "secret_missing")
    assert "DEPLOY" in (lost.message or "")


@pytest.mark.parametrize(
    ("reference", "why"),
    [
        ("dotenv:/nonexistent/vars", "cannot be read: '/nonexistent/vars': No such file or directory"),
        ("dotenv:/dev/null", "has no TOKEN"),
        ("env:NOWHERE", "is not set"),
        ("env:EMPTY", "is empty"),
        ("file:/nonexistent/token", "cannot be read: No such file or directory"),
        ("file:/", "cannot be read: Is a directory"),
        ("file:/dev/null", "is empty"),
        ("file:/dev/zero", "is larger than 64 KiB"),
        ("command:exit 3", "ended with status 3"),
        (f"command:cat value; cat value >&2; kill $$; : {VALUE[:3]}", "ended with status -15"),
        ("command:yes", "is larger than 64 KiB"),
        ("command:printf 'a\\0b'", "holds a NUL"),
    ],
)
def test_a_secret_that_cannot_be_had_is_told_without_its_value(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], reference: str, why: str
) -> None:
    monkeypatch.setenv("EMPTY", "")
    (place / "value").write_text(VALUE)
    error = refused({"secret": [f"TOKEN={reference}"]})
    assert error.details["cause"] == "secret_missing"
    assert error.message == f"plugin 'env': secret TOKEN: {ascii(reference)[1:-1]} {why}"
    assert VALUE not in str(error.to_json()) + "".join(capfd.readouterr())


@pytest.mark.parametrize("given", [f"TOKEN={VALUE}", VALUE, f"={VALUE}", f"TOKEN=vault:{VALUE}", f"a b{VALUE}=env:X"])
def test_a_value_given_by_mistake_is_not_repeated(place: Path, given: str) -> None:
    for option in ("secret", "set"):
        if option == "secret" or not given.startswith("TOKEN"):
            error = refused({option: [given]})
            assert error.details["cause"] == "bad_env"
            assert VALUE not in str(error.to_json())


@pytest.mark.night
def test_a_command_that_does_not_end_is_ended_with_all_it_started(
    place: Path, monkeypatch: pytest.MonkeyPatch, until: Callable[..., Any]
) -> None:
    monkeypatch.setattr(plugin.load("env").module, "SECONDS", 0.3)
    for command in ("sleep 1000 & echo $! >child; wait", "exec >&-; sleep 1000 & echo $! >child; wait"):
        error = refused({"secret": [f"TOKEN=command:{command}"]})
        assert error.details["cause"] == "secret_missing"
        assert error.message.endswith("s")
        until(lambda: not Path(f"/proc/{(place / 'child').read_text().strip()}/cwd").exists())


def test_a_command_has_no_terminal_to_ask_at(place: Path) -> None:
    command = 'cat; set -- $(cat /proc/$$/stat); if [ $6 = $$ ] && [ $7 = 0 ]; then echo none; else echo "$*"; fi'
    assert applied({"secret": [f"A=command:{command}"]}).env["A"] == "none"


@pytest.mark.night
def test_a_pipe_that_nobody_writes_to_is_not_waited_for_without_end(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin.load("env").module, "SECONDS", 0.3)
    os.mkfifo(place / "pipe")
    for place_of_it in ("file:pipe", "dotenv:pipe"):
        assert refused({"secret": [f"A={place_of_it}"]}).details["cause"] == "secret_missing"
    assert refused({"file": "pipe"}).details["cause"] == "bad_env"


def test_a_file_elsewhere_is_named_by_its_whole_path(place: Path) -> None:
    error = refused({"secret": ["A=file:token"]}, machine="web")
    assert "not absolute" in error.message


# with sessions


@pytest.mark.night
@pytest.mark.on("tmux", "pipe")
def test_a_secret_reaches_the_program_and_is_kept_nowhere(
    control: Control, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VAULT", VALUE)
    token = place / "token"
    token.write_text(VALUE + "\n")
    wanted = (f"env:secret=DEPLOY=file:{token},secret=COPY=env:VAULT,secret=MADE=command:cat {token}",)
    plan = control.new("t", LINES, with_=wanted, dry_run=True)
    made = control.new("t", LINES, with_=wanted)
    control.send("t", b"up")
    assert control.wait("t", text="up").matched
    given = environ(made.pid)
    assert {given["DEPLOY"], given["COPY"], given["MADE"], given["VAULT"]} == {VALUE}

    told = [plan, made, control.show("t"), control.ls(), control.screen("t"), control.log("t")]
    assert VALUE not in json.dumps([to_json(one) for one in told])
    kept = [one for one in place.rglob("*") if one.is_file() and VALUE.encode() in one.read_bytes()]
    assert kept == [token]
    assert not [one for one in Path("/proc").glob("[0-9]*/cmdline") if VALUE.encode() in contents(one)]
    for command in (("show-options", "-t", "=t:"), ("show-environment", "-t", "=t:"), ("show-environment", "-g")):
        assert VALUE.encode() not in control.machine.transport.run([command])
    spec = json.loads((place / f"state/tmuxctl/t/sessions/{made.id}/spec.json").read_text())["spec"]
    assert spec["env"]["DEPLOY"] == {"from": f"file:{token}"}
    assert spec["env"]["VAULT"] == {"from": "env:VAULT"}


def contents(path: Path) -> bytes:
    """A file of /proc, empty if its process has ended."""
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.on("tmux")
def test_the_variables_of_one_session_reach_no_other_and_not_the_server(control: Control, place: Path) -> None:
    (place / "token").write_text(VALUE)
    first = control.new("first", LINES, with_=("env:secret=DEPLOY=file:token,set=MODE=special",))
    second = control.new("second", LINES)
    assert environ(first.pid)["DEPLOY"] == VALUE
    assert not {"DEPLOY", "MODE"} & environ(second.pid).keys()
    server = int(control.machine.transport.run([("display-message", "-p", "#{pid}")]))
    assert not {"DEPLOY", "MODE"} & environ(server).keys()
    assert b"MODE" not in control.machine.transport.run([("show-environment", "-g")])


@pytest.mark.on("memory", "tmux")
def test_nothing_starts_without_its_secret(control: Control) -> None:
    with pytest.raises(Failed) as error:
        control.new("t", LINES, with_=("env:secret=TOKEN=env:NOWHERE",))
    assert error.value.details["cause"] == "secret_missing"
    assert not control.ls().sessions
    assert not control.machine.transport.files(control.machine.transport.home + "/sessions")


@pytest.mark.on("tmux")
def test_a_session_gets_what_is_allowed_and_what_every_session_has(control: Control) -> None:
    made = control.new("t", LINES, with_=("env:allow=PATH,allow=HOME",), env={"MODE": "special"})
    given = {name for name in environ(made.pid) if not name.startswith("TMUX")}
    assert given == {"PATH", "HOME", "MODE", "TERM", "COLORTERM", "PWD"}
