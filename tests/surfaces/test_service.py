"""The service as a user installs it: the file that is written, what its manager is told, and what is said where there is none."""

from __future__ import annotations

import json
import os
import plistlib
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tmuxctl.surfaces.cli.setup import managers
from tmuxctl.surfaces.cli.setup.managers import Job, Launchd, Systemd

ROOT = Path(__file__).resolve().parents[2]

Command = Callable[..., "subprocess.CompletedProcess[str]"]

JOB = Job(
    "t", ("/opt/50% more/tmuxctl", "--socket", "t$HOME"),
    {"PATH": "/bin:/usr/bin", "TMUX_TMPDIR": '/tmp/a "b" \\ 100%'}, ("XDG_STATE_HOME",), (1024, None), 0o27,
)  # fmt: skip


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


Stub = Callable[[str, str], None]


@pytest.fixture
def stub(place: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """Puts a program of this name first; it notes how it was called."""
    folder = place / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def make(name: str, lines: str) -> None:
        path = folder / name
        path.write_text(f'#!/bin/sh\necho "{name} $*" >>{place}/calls\n{lines}\n')
        path.chmod(0o755)

    make("loginctl", "echo Linger=yes")
    make("systemctl", "")
    return make


def calls(place: Path) -> list[str]:
    """What the stubs were asked to do, but for what changes nothing."""
    path = place / "calls"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if " show" not in line]


RUNS = "case $2 in show) echo 'UnitFileState=enabled\nActiveState=active\nMainPID=7'; esac"


@pytest.fixture
def unit(place: Path) -> Path:
    return place / ".config" / "systemd" / "user" / "tmuxctl-t.service"


def test_install_writes_one_file_and_has_it_started(tmuxctl: Command, stub: Stub, unit: Path, place: Path) -> None:
    done = tmuxctl("service", "install")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{unit}\n", "")
    assert stat.S_IMODE(unit.stat().st_mode) == 0o644
    assert [path.name for path in unit.parent.iterdir()] == [unit.name]
    assert calls(place) == ["systemctl --user daemon-reload", f"systemctl --user enable --now {unit.name}"]
    before = unit.stat()
    again = json.loads(tmuxctl("service", "install", "--json").stdout)
    assert again == {
        "service": unit.name, "file": str(unit), "text": unit.read_text(), "changed": False, "linger": True,
        "server": None, "dry_run": False, "serve": None,
    }  # fmt: skip
    assert unit.stat().st_mtime_ns == before.st_mtime_ns


def test_a_dry_run_shows_the_file_and_does_nothing(tmuxctl: Command, stub: Stub, unit: Path, place: Path) -> None:
    shown = tmuxctl("service", "install", "--dry-run").stdout
    assert not unit.exists()
    assert not calls(place)
    tmuxctl("service", "install")
    assert unit.read_text() == shown


def test_a_unit_says_all_that_keeps_sessions_alive(tmuxctl: Command) -> None:
    shown = tmuxctl("--socket", "other", "service", "install", "--dry-run").stdout
    command = f"{sys.executable} -m tmuxctl --socket other"
    for line in (
        f"ExecStart={command} service run", f"ExecStartPost=-{command} restore", "Restart=on-failure",
        "KillMode=control-group", "OOMPolicy=continue", "Delegate=yes", "TasksMax=infinity", "WantedBy=default.target",
    ):  # fmt: skip
        assert f"\n{line}\n" in shown


def test_the_default_socket_has_the_plain_name(tmuxctl: Command, place: Path) -> None:
    for socket, name in (("tmuxctl", "tmuxctl.service"), ("other", "tmuxctl-other.service")):
        status = json.loads(tmuxctl("service", "status", "--json", "--socket", socket).stdout)
        assert status["file"] == f"{place}/.config/systemd/user/{name}"


def test_the_file_lies_where_the_users_configuration_lies(tmuxctl: Command, stub: Stub, place: Path) -> None:
    done = tmuxctl("service", "install", XDG_CONFIG_HOME=str(place / "my config"))
    assert done.stdout == f"{place}/my config/systemd/user/tmuxctl-t.service\n"
    assert Path(done.stdout.strip()).exists()


def test_the_server_is_told_where_this_shell_looks_for_it_and_no_secret(tmuxctl: Command, place: Path) -> None:
    shown = tmuxctl("service", "install", "--dry-run", DB_PASSWORD="hunter2", EDITOR="vi").stdout
    assert f"\nEnvironment=TMUX_TMPDIR={place}\n" in shown
    assert f"\nEnvironment=XDG_STATE_HOME={place}/state\n" in shown
    assert "UnsetEnvironment=XDG_CONFIG_HOME TMUXCTL_CONFIG" in shown
    assert "hunter2" not in shown
    assert "EDITOR" not in shown
    assert "TMUX_TMPDIR" in tmuxctl("service", "install", "--dry-run", TMUX_TMPDIR="").stdout.split("Unset")[1]


def test_a_file_that_was_changed_by_hand_is_kept(tmuxctl: Command, stub: Stub, unit: Path) -> None:
    tmuxctl("service", "install")
    made = unit.read_text()
    unit.write_text(made.replace("RestartSec=1", "RestartSec=9"))
    done = tmuxctl("service", "install")
    assert done.returncode == 4
    assert "--force" in done.stderr
    assert "RestartSec=9" in unit.read_text()
    assert tmuxctl("service", "install", "--force").returncode == 0
    assert unit.read_text() == made


def test_a_file_that_only_an_older_install_wrote_is_replaced(tmuxctl: Command, stub: Stub, unit: Path) -> None:
    tmuxctl("service", "install", LANG="de_DE.UTF-8")
    assert "LANG=de_DE.UTF-8" in unit.read_text()
    assert tmuxctl("service", "install", LANG="C.UTF-8").returncode == 0
    assert "LANG=C.UTF-8" in unit.read_text()


@pytest.mark.parametrize("words", [("install",), ("uninstall",)])
def test_a_file_of_somebody_else_is_left_alone(tmuxctl: Command, stub: Stub, unit: Path, place: Path, words) -> None:
    unit.parent.mkdir(parents=True)
    unit.write_text("[Service]\nExecStart=/bin/true\n")
    done = tmuxctl("service", *words, "--json")
    assert (done.returncode, json.loads(done.stderr)["error"]["reason"]) == (4, "edited")
    assert unit.read_text() == "[Service]\nExecStart=/bin/true\n"
    assert not calls(place)


def test_without_a_manager_the_file_is_kept_and_the_next_step_told(tmuxctl: Command, stub: Stub, unit: Path) -> None:
    stub("systemctl", "echo 'Failed to connect to bus: No medium found' >&2; exit 1")
    done = tmuxctl("service", "install")
    assert done.returncode == 7
    assert "Failed to connect to bus" in done.stderr
    assert f"systemctl --user enable --now {unit.name}" in done.stderr or "service run --restore" in done.stderr
    assert str(unit) in done.stderr
    assert unit.exists()
    status = json.loads(tmuxctl("service", "status", "--json").stdout)
    assert (status["installed"], status["enabled"], status["running"]) == (True, None, None)
    assert tmuxctl("service", "uninstall").returncode == 0
    assert not unit.exists()


def test_without_systemd_the_same(tmuxctl: Command, place: Path, unit: Path) -> None:
    (place / "empty").mkdir()
    for name in ("sh", "env", "tmux"):
        (place / "empty" / name).symlink_to(shutil.which(name) or "")
    done = tmuxctl("service", "install", PATH=str(place / "empty"))
    assert done.returncode == 7
    assert "there is no systemctl" in done.stderr
    assert unit.exists()
    for words in (("status",), ("uninstall",)):
        assert tmuxctl("service", *words, PATH=str(place / "empty")).returncode == 0
    assert not unit.exists()


def test_what_the_manager_refuses_is_told(tmuxctl: Command, stub: Stub, unit: Path) -> None:
    stub("systemctl", "case $2 in enable) echo 'Unit is masked.' >&2; exit 1; esac")
    done = tmuxctl("service", "install")
    assert done.returncode == 1
    assert "Unit is masked." in done.stderr
    assert f"journalctl --user --unit {unit.name}" in done.stderr
    assert unit.exists()


def test_that_sessions_end_with_the_login_is_told_and_changed_only_if_asked(
    tmuxctl: Command, stub: Stub, place: Path
) -> None:
    stub("loginctl", "echo Linger=no")
    assert "--linger" in tmuxctl("service", "install").stderr
    assert not [line for line in calls(place) if "enable-linger" in line]
    assert tmuxctl("service", "install", "--linger").returncode == 0
    made = [line.split()[0:3] for line in calls(place)]
    assert made.index(["loginctl", "--no-ask-password", "enable-linger"]) < len(made) - 1
    stub("loginctl", "echo 'Access denied' >&2; exit 1")
    done = tmuxctl("service", "install", "--linger")
    assert done.returncode == 1
    assert "sudo loginctl enable-linger" in done.stderr


def test_a_server_that_a_command_started_is_told(tmuxctl: Command, stub: Stub) -> None:
    tmuxctl("new", "s", "--", "cat")
    try:
        status = json.loads(tmuxctl("service", "status", "--json").stdout)
        assert (
            f"(pid {status['server']}) was started by a command: the service waits"
            in tmuxctl("service", "install").stderr
        )
    finally:
        subprocess.run(["tmux", "-L", "t", "kill-server"], check=True)


def test_status_says_what_the_manager_says(tmuxctl: Command, stub: Stub, unit: Path) -> None:
    stub("systemctl", RUNS)
    status = json.loads(tmuxctl("service", "status", "--json").stdout)
    assert status == {
        "service": unit.name, "manager": "systemd", "file": str(unit), "installed": False, "enabled": True,
        "running": True, "pid": 7, "server": None, "linger": True, "serve": None,
    }  # fmt: skip
    assert "running:   yes" in tmuxctl("service", "status").stdout


def test_uninstall_lets_sessions_go_on_unless_told_to_stop(
    tmuxctl: Command, stub: Stub, unit: Path, place: Path
) -> None:
    stub("systemctl", RUNS)
    for words, stopped in (((), []), (("--stop",), [f"systemctl --user stop {unit.name}"])):
        tmuxctl("service", "install")
        (place / "calls").unlink()
        done = tmuxctl("service", "uninstall", *words)
        assert (done.returncode, done.stdout) == (0, f"{unit}\n")
        assert not unit.exists()
        assert calls(place) == [
            *stopped, f"systemctl --user disable {unit.name}", "systemctl --user daemon-reload"
        ]  # fmt: skip
    assert "--stop" in done.stderr
    again = tmuxctl("service", "uninstall", "--json")
    assert json.loads(again.stdout)["removed"] is False


def test_an_install_that_no_service_could_start_is_refused(
    tmuxctl: Command, stub: Stub, unit: Path, place: Path
) -> None:
    (place / "tmuxctl").write_text(
        f"#!{sys.executable}\nimport os, sys\nif os.getcwd() == '/': sys.exit('not here')\n"
        "from tmuxctl.surfaces.cli import main\nsys.exit(main())\n"
    )
    (place / "tmuxctl").chmod(0o755)
    done = subprocess.run([place / "tmuxctl", "service", "install"], capture_output=True, text=True)
    assert done.returncode == 1
    assert "not here" in done.stderr
    assert not unit.exists()


# the HTTP server


@pytest.fixture
def http(unit: Path) -> Path:
    return unit.with_name("tmuxctl-serve-t.service")


@pytest.mark.night
def test_the_http_server_gets_a_service_beside(
    tmuxctl: Command, stub: Stub, unit: Path, http: Path, place: Path
) -> None:
    shown = tmuxctl("service", "install", "--serve", "--dry-run").stdout
    assert not unit.parent.exists()
    done = tmuxctl("service", "install", "--serve")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{unit}\n{http}\n", "")
    assert calls(place) == [
        "systemctl --user daemon-reload", f"systemctl --user enable --now {unit.name}",
        "systemctl --user daemon-reload", f"systemctl --user enable --now {http.name}",
    ]  # fmt: skip
    assert shown == f"{unit.read_text()}\n{http.read_text()}"
    again = json.loads(tmuxctl("service", "install", "--serve", "--json").stdout)
    assert again["file"] == str(unit)
    assert again["serve"] == {
        "service": http.name, "file": str(http), "text": http.read_text(), "changed": False
    }  # fmt: skip
    # the first as it is without the second
    assert json.loads(tmuxctl("service", "install", "--json").stdout)["changed"] is False


@pytest.mark.night
def test_no_session_ends_with_the_unit_of_the_http_server(tmuxctl: Command, stub: Stub, unit: Path, http: Path) -> None:
    tmuxctl("service", "install", "--serve")
    text = http.read_text()
    command = f"{sys.executable} -m tmuxctl --socket t"
    for line in (
        "Type=notify", f"ExecStart={command} serve", "Restart=on-failure", "KillMode=process", "OOMPolicy=continue",
        f"Wants={unit.name}", f"After={unit.name}", "Delegate=yes", "TasksMax=infinity", "WantedBy=default.target",
    ):  # fmt: skip
        assert f"\n{line}\n" in text
    assert "ExecStartPost" not in text
    assert "Wants=" not in unit.read_text()
    default = tmuxctl("--socket", "tmuxctl", "service", "install", "--serve", "--dry-run").stdout
    assert "\nWants=tmuxctl.service\n" in default


@pytest.mark.night
def test_status_and_uninstall_know_the_http_server(
    tmuxctl: Command, stub: Stub, unit: Path, http: Path, place: Path
) -> None:
    stub("systemctl", RUNS)
    tmuxctl("service", "install", "--serve")
    assert json.loads(tmuxctl("service", "status", "--json").stdout)["serve"] == {
        "service": http.name, "file": str(http), "enabled": True, "running": True, "pid": 7,
    }  # fmt: skip
    assert "serve running: yes\n" in tmuxctl("service", "status").stdout
    (place / "calls").unlink()
    done = tmuxctl("service", "uninstall")
    assert (done.returncode, done.stdout) == (0, f"{unit}\n{http}\n")
    assert "the server goes on with its sessions" in done.stderr
    assert [*unit.parent.iterdir()] == []
    assert calls(place) == [
        f"systemctl --user stop {http.name}", f"systemctl --user disable {http.name}", "systemctl --user daemon-reload",
        f"systemctl --user disable {unit.name}", "systemctl --user daemon-reload",
    ]  # fmt: skip
    assert json.loads(tmuxctl("service", "uninstall", "--json").stdout)["serve"] is None


@pytest.mark.night
def test_nothing_is_changed_where_one_of_two_files_was_changed_by_hand(
    tmuxctl: Command, stub: Stub, unit: Path, http: Path, place: Path
) -> None:
    tmuxctl("service", "install", "--serve")
    http.write_text(http.read_text().replace("RestartSec=1", "RestartSec=9"))
    unit.unlink()
    (place / "calls").unlink()
    done = tmuxctl("service", "install", "--serve")
    assert done.returncode == 4
    assert str(http) in done.stderr
    assert not unit.exists()
    assert tmuxctl("service", "install", "--serve", "--force").returncode == 0
    (place / "calls").unlink()
    http.write_text("[Service]\nExecStart=/bin/true\n")
    assert tmuxctl("service", "uninstall").returncode == 4
    assert unit.exists()
    assert not calls(place)


@pytest.mark.night
def test_where_the_http_server_could_not_start_nothing_is_written(
    tmuxctl: Command, stub: Stub, unit: Path, place: Path
) -> None:
    settings = place / ".config/tmuxctl/config.toml"
    settings.parent.mkdir(parents=True)
    for line, reason in (
        ('listen = "0.0.0.0:1"', "exposed"),
        ('tls_cert = "/a"', "missing"),
        ("listen = []", "bad_config"),
    ):
        settings.write_text(f"[serve]\n{line}\n")
        refused = tmuxctl("service", "install", "--serve", "--json")
        assert json.loads(refused.stderr)["error"]["reason"] == reason
    settings.unlink()
    script = "import sys; sys.modules['fastapi'] = None; from tmuxctl.surfaces.cli import main; sys.exit(main())"
    for words in (("--serve",), ("--serve", "--dry-run")):
        command = [sys.executable, "-c", script, "service", "install", *words]
        refused = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
        assert refused.returncode == 1
        assert "pip install 'tmux-control-plane[server]'" in refused.stderr
    assert not unit.parent.exists()
    assert not calls(place)


@pytest.mark.night
def test_a_socket_called_serve_has_its_own_service(tmuxctl: Command, stub: Stub, unit: Path, place: Path) -> None:
    """The two units that have one name do not take each other's place."""
    theirs = unit.with_name("tmuxctl-serve.service")
    assert tmuxctl("--socket", "serve", "service", "install").returncode == 0
    before = theirs.read_text()
    for force in ((), ("--force",)):
        done = tmuxctl("--socket", "tmuxctl", "service", "install", "--serve", *force)
        assert done.returncode == 4
        assert "another server" in done.stderr
    assert json.loads(tmuxctl("--socket", "tmuxctl", "service", "status", "--json").stdout)["serve"] is None
    assert tmuxctl("--socket", "tmuxctl", "service", "uninstall").returncode == 0
    assert theirs.read_text() == before


def test_a_unit_holds_for_systemd_itself(tmuxctl: Command, place: Path, needs: Callable[..., None]) -> None:
    needs("systemd-analyze")
    (place / "a %folder").mkdir()
    (place / "a %folder" / "tmuxctl").symlink_to("/bin/true")
    job = JOB._replace(command=(f"{place}/a %folder/tmuxctl", *JOB.command[1:]))
    for name, text in (
        ("odd.service", Systemd("t").text(job)),
        ("tmuxctl-t.service", tmuxctl("service", "install", "--dry-run").stdout),
        ("odd-serve.service", Systemd("t", managers.HTTP_SERVER).text(job)),
    ):
        (place / name).write_text(text)
        done = subprocess.run(
            ["systemd-analyze", "--man=no", "--user", "verify", str(place / name)],
            capture_output=True,
            text=True,
            env={**os.environ, "XDG_RUNTIME_DIR": str(place)},
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_words_of_a_unit_mean_what_they_are() -> None:
    text = Systemd("t").text(JOB)
    assert '\nExecStart="/opt/50%% more/tmuxctl" --socket t$$HOME service run\n' in text
    assert '\nExecStartPost="-/opt/50%% more/tmuxctl" --socket t$$HOME restore\n' in text
    assert '\nEnvironment="TMUX_TMPDIR=/tmp/a \\"b\\" \\\\ 100%%"\n' in text
    assert "\nLimitNOFILE=1024:infinity\n" in text
    assert "\nUMask=0027\n" in text


def test_a_file_of_launchd_starts_the_same_server(place: Path) -> None:
    made = Launchd("other")
    assert made.path == f"{place}/Library/LaunchAgents/tmuxctl-other.plist"
    text = made.text(JOB)
    assert managers.is_untouched(text)
    assert not managers.is_untouched(text.replace("RunAtLoad", "RunNever"))
    found = plistlib.loads(text.encode())
    assert found == {
        "Label": "tmuxctl-other",
        "ProgramArguments": [*JOB.command, "service", "run", "--restore"],
        "EnvironmentVariables": dict(JOB.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ExitTimeOut": 10,
        "SoftResourceLimits": {"NumberOfFiles": 1024},
        "Umask": 0o27,
    }
    assert made.is_for_role(text)


def test_a_file_of_launchd_starts_the_http_server(place: Path) -> None:
    made = Launchd("other", managers.HTTP_SERVER)
    assert made.path == f"{place}/Library/LaunchAgents/tmuxctl-serve-other.plist"
    text = made.text(JOB)
    assert managers.is_untouched(text)
    found = plistlib.loads(text.encode())
    assert (found["Label"], found["ProgramArguments"]) == ("tmuxctl-serve-other", [*JOB.command, "serve"])
    assert found["AbandonProcessGroup"] is True
    assert made.is_for_role(text)
    assert not Launchd("serve-other").is_for_role(text)
    assert not made.is_for_role(Launchd("serve-other").text(JOB))
