"""Records what a release of tmuxctl leaves behind, for the tests of upgrades.

    python tests/upgrade/record.py TMUXCTL PROGRAMS NAME

drives the command TMUXCTL (of the release, in a venv of its own) with the agent program and profile in PROGRAMS (the
release's tests/programs) through sessions of every kind, and writes into
`tests/upgrade/NAME/` what it left: `home/`, the files of its state folder; `launch/`, the launcher of each session that
runs; `tmux.json`, the commands that made those in tmux and their options at the end. `kept.py` lays that out again. Do so
for each release, before its state folder changes; the tests in this folder then run on every recording.

The release's own code is not kept: a session lives on in its files, in tmux and in its programs, and these are what a new
version meets. Programs are started again by the release's own launchers, so tmux and the processes are real. What is left
out: the cache `profiles.json` (its key names the version), locks, and what a sandbox hides of files that only this machine
has. Everything is recorded below ROOT, which is as long as the folder of a test: offsets in journals stay right.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = Path("/tmp/tc-recorded")
STATE = ROOT / "state/tmuxctl/t"

WRAPPER = r"""#!/bin/sh
for word do
    case $word in
    */sessions/*/launch.sh | */sessions/*/launch.sh\;)
        id=${word%/*} to=ROOT/started/${id##*/}; cp "${word%;}" "$to.sh"; printf '%s\0' "$@" >"$to" ;;
    esac
done
exec TMUX "$@"
"""
"""In place of tmux: keeps each launcher, which removes itself, and the commands that start it."""

COMMIT = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (
    ("NAME", "A"), ("EMAIL", "a@localhost"), ("DATE", "2026-01-01T00:00:00Z")
)}  # fmt: skip
"""A commit is called the same wherever it is made."""

EARLY = 10.0
"""What the machine's clock says of every input: less than it says on any machine that a test runs on."""


def environment() -> dict[str, str]:
    given = {"XDG_STATE_HOME": ROOT / "state", "HOME": ROOT, "TMUX_TMPDIR": ROOT, "TMPDIR": ROOT}
    plain = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "PS1": "$ ",
        "TERM": "xterm",
    }
    return {**{name: str(path) for name, path in given.items()}, **plain, "TMUXCTL_SOCKET": "t"}


def run(*words: str, **variables: str) -> str:
    done = subprocess.run(
        words, env=environment() | variables, cwd=ROOT, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode:
        sys.exit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def make_repository(root: Path) -> None:
    """The git repository whose worktrees are recorded; the same commit wherever it is made."""
    repository = root / "repo"
    repository.mkdir()
    (repository / "a").write_text("hi\n")
    for words in (("init", "-q", "-b", "main"), ("add", "a"), ("commit", "-q", "-m", "one")):
        git(root, *words)


def git(root: Path, *words: str) -> None:
    """A command of git in that repository."""
    subprocess.run(("git", *words), cwd=root / "repo", check=True, env=os.environ | COMMIT | {"HOME": str(root)})


def prepare(programs: Path) -> None:
    """A home with a program, its profile, a repository, and a tmux that keeps what it is told."""
    ROOT.mkdir()
    for folder in ("box", "started", ".config/tmuxctl/profiles"):
        (ROOT / folder).mkdir(parents=True)
    shutil.copy(programs / "agent.py", ROOT)
    shutil.copy(programs / "agent.yaml", ROOT / ".config/tmuxctl/profiles")
    wrapper = ROOT / "tmux"
    wrapper.write_text(WRAPPER.replace("ROOT", str(ROOT)).replace("TMUX", str(shutil.which("tmux"))))
    wrapper.chmod(0o755)
    (ROOT / ".config/tmuxctl/config.toml").write_text(f'[tmux]\nbinary = "{wrapper}"\n')
    make_repository(ROOT)


SHELL = ("--", "bash", "--norc")


def make(tmuxctl: str, prefix: str) -> None:
    """A session of each kind, with a turn behind it."""
    run(tmuxctl, "new", f"{prefix}shell", "--tag", "nightly", "-e", "MARK=a b", "--", "bash")
    run(tmuxctl, "new", f"{prefix}agent", "--", "./agent.py")
    run(tmuxctl, "new", f"{prefix}tree", "--cwd", "repo", "--worktree", f"{prefix}feature", *SHELL)
    run(tmuxctl, "new", f"{prefix}box", "--cwd", "box", "--sandbox", *SHELL)
    for name in ("shell", "tree", "box"):
        run(tmuxctl, "ask", prefix + name, "echo before the upgrade")
    run(tmuxctl, "ask", f"{prefix}agent", "before the upgrade")


def drive(tmuxctl: str) -> None:
    make(tmuxctl, "lost-")
    server = int((STATE / "server").read_text().split()[0])
    os.kill(server, signal.SIGKILL)
    while os.path.exists(f"/proc/{server}/exe"):
        time.sleep(0.01)
    make(tmuxctl, "")
    run(tmuxctl, "new", "limited", "--lifetime", "1d", *SHELL)
    run(tmuxctl, "new", "done", "--", "sh", "-c", "echo before the upgrade; exit 3")
    run(tmuxctl, "wait", "done", "--exit")
    run(tmuxctl, "new", "ended", *SHELL)
    run(tmuxctl, "ask", "ended", "echo before the upgrade")
    run(tmuxctl, "kill", "ended")
    run("tmux", "-L", "person", "-f", "/dev/null", "new-session", "-d", "-s", "work", "bash --norc")
    run(tmuxctl, "adopt", "tmux@person:work", "adopted", "--profile", "bash")
    run(tmuxctl, "ask", "adopted", "echo before the upgrade")
    run(tmuxctl, "ls")


def words(name: str) -> list[str]:
    """A command that was given to tmux, without the words that name the server."""
    found = (ROOT / "started" / name).read_text().split("\0")[:-1]
    verbs = [at for at, word in enumerate(found) if re.fullmatch("[a-z]+-[a-z]+", word)]
    return found[verbs[0] :]


def options(name: str, clock: float) -> dict[str, str]:
    """A session's options now, but for what somebody held at that moment."""
    listed = run("tmux", "-L", "t", "show-options", "-t", f"={name}:").split("\n")
    ours = [line.split()[0] for line in listed if line.startswith("@") and "_until" not in line.split()[0]]
    found = {one: run("tmux", "-L", "t", "show-options", "-v", "-t", f"={name}:", one).rstrip("\n") for one in ours}
    return {one: early(value, clock) for one, value in found.items()}


def early(text: str, clock: float) -> str:
    """A remembered input, as if it had been given when the machine's clock began."""
    return re.sub(r":(\d+\.\d+):", lambda at: f":{max(0.0, float(at[1]) - clock + EARLY):.3f}:", text)


def about_tmux(sessions: list[dict[str, Any]]) -> dict[str, Any]:
    run_by_us = [one for one in sessions if one["state"] != "lost" and not one["target"]]
    made = {one["name"]: {"id": one["id"], "start": words(one["id"])} for one in run_by_us}
    return {
        "tmux": run("tmux", "-V").split()[1],
        "machine": platform.machine(),
        "lost": {one["name"]: one["id"] for one in sessions if one["state"] == "lost"},
        "sessions": {name: {**about, "options": options(name, time.monotonic())} for name, about in made.items()},
        "adopted": next(one["id"] for one in sessions if one["target"]),
    }


def portable(launcher: str) -> str:
    """A launcher without what its sandbox hides of files that this machine has and another may not, and without the numbers
    by which it knows the folders it shows again."""
    for what in (r" --ro-bind /dev/null /(?!tmp/)\S+", r" --tmpfs /(?:sys|home|root)\S*"):
        launcher = re.sub(what, "", launcher)
    plan = re.search(r"(?<=')\{\"bwrap\": .*?\}(?=' ')", launcher)
    if plan is None:
        return launcher
    about = json.loads(plan[0])
    mounts = [mount for mount in about["mounts"] if not mount[1].startswith(("/etc/", "/home", "/root", "/sys/"))]
    about["mounts"] = [[kind, path, source, None, *rest] for kind, path, source, _, *rest in mounts]
    return launcher.replace(plan[0], json.dumps(about))


def keep(there: Path, about: dict[str, Any]) -> None:
    """Write the recording."""
    shutil.rmtree(there, ignore_errors=True)
    left_out = shutil.ignore_patterns("*.lock", "repo~*", "profiles.json")
    shutil.copytree(ROOT / "state", there / "home/state", ignore=left_out)
    for record in (ROOT / "state/tmuxctl/worktrees").glob("repo~*/*.json"):
        copy = there / "home" / record.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(record, copy)
    shutil.copytree(ROOT / ".config/tmuxctl/profiles", there / "home/.config/tmuxctl/profiles")
    shutil.copy(ROOT / "agent.jsonl", there / "home")
    (there / "launch").mkdir()
    for name, one in about["sessions"].items():
        text = (ROOT / "started" / f"{one['id']}.sh").read_text()
        (there / "launch" / f"{name}.sh").write_text(portable(text))
    for file in there.rglob("options.json"):
        kept = {name: value for name, value in json.loads(file.read_text()).items() if not name.endswith("_until")}
        file.write_text(early(json.dumps(kept), time.monotonic()))
    (there / "tmux.json").write_text(json.dumps(about, indent=1) + "\n")


def processes() -> Iterator[int]:
    """All that was started here and lives."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if f"HOME={ROOT}\0".encode() in Path(f"/proc/{pid}/environ").read_bytes():
                yield int(pid)


def main() -> None:
    tmuxctl, programs, name = os.path.abspath(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    if ROOT.exists():
        sys.exit(f"{ROOT} is there: is something else recorded? else remove it")
    try:
        prepare(programs)
        drive(tmuxctl)
        keep(HERE / name, about_tmux(json.loads(run(tmuxctl, "--json", "ls"))["sessions"]))
    finally:
        while left := list(processes()):
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        shutil.rmtree(ROOT, ignore_errors=True)


if __name__ == "__main__":
    main()
