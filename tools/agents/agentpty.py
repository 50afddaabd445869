"""Real Claude Code behind AgentPTY's API: the examples of AgentPTY as they are written, its hooks, its 409s, recovery.

python -m tools.agents.agentpty [PART...]

`tmuxctl serve --listen 127.0.0.1:8765 --no-token` starts Claude Code against the local model, with hooks in the project's settings
that call a script as AgentPTY describes its own. Prints a line for each part; ends with 1 if a promise does not hold.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from . import agentpty_examples as examples
from . import alone, installing, lab
from .model import Model
from .programs import ROOT

PATIENCE = 180.0
"""Seconds that one request may take."""

LEAVING = 20.0
"""Seconds in which the processes of a program that has ended must be gone."""

ADDRESS = "127.0.0.1:8765"
SCRIPT = ROOT / "tests/programs/agentpty_hook.py"
HOOKS = {"UserPromptSubmit": "prompt-submit", "Stop": "stop", "StopFailure": "stop-failure"}
PAUSE = 0.1


def main() -> int:
    """Do all parts; returns the exit status."""
    installing.install(["claude"], ["pinned"], print)
    alone.leave_the_network("tools.agents.agentpty")
    wrong = []
    with Laboratory() as laboratory:
        for part in (one for one in PARTS if one.__name__ in (sys.argv[1:] or [one.__name__])):
            try:
                broken = list(part(laboratory))
            except (AssertionError, KeyError, ValueError, subprocess.SubprocessError) as error:
                broken = [f"{type(error).__name__}: {error}"]
            print(f"-- {part.__name__}: {f'{len(broken)} wrong' if broken else 'holds'}", flush=True)
            wrong += [f"{part.__name__}: {one}" for one in broken]
    wrong += laboratory.left
    for told in wrong:
        print(f"-- DOES NOT HOLD: {told}")
    return 1 if wrong else 0


class Laboratory:
    """Claude Code with a home and a project of its own, the model that it talks to, and a server. `left` is what was left."""

    def __init__(self) -> None:
        self.model = Model()
        self.tag = f"agentpty-{os.getpid()}"
        self.place = lab.make_place("claude", "pinned", self.tag, self.model.port)
        # the path of a socket is short
        self.sockets = Path(tempfile.mkdtemp(prefix="tca-"))
        self.log = self.sockets / "log"
        path = f"{self.place.bin}:{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {
            **lab.BASE, "HOME": str(self.place.home), "TERM": "xterm-256color", "PATH": path,
            "TMUXCTL_SOCKET": self.tag, "XDG_RUNTIME_DIR": str(self.sockets), "TMUX_TMPDIR": str(self.sockets),
        }  # fmt: skip
        self.left: list[str] = []
        self.server: subprocess.Popen[str] | None = None
        commands = {on: f"AGENTPTY_HOOK_EVENT={event} {sys.executable} {SCRIPT}" for on, event in HOOKS.items()}
        settings = {"hooks": {on: [{"hooks": [{"type": "command", "command": one}]}] for on, one in commands.items()}}
        file = self.place.work / ".claude/settings.local.json"
        file.parent.mkdir()
        file.write_text(json.dumps(settings))

    def __enter__(self) -> Laboratory:
        self.serve()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.tmuxctl("kill", "--all")
        subprocess.run(["tmux", "-L", self.tag, "kill-server"], env=self.environment, capture_output=True, check=False)
        deadline = time.monotonic() + LEAVING
        while (left := lab.processes(self.place)) and time.monotonic() < deadline:
            time.sleep(PAUSE)
        for one in left:
            with suppress(psutil.NoSuchProcess):
                psutil.Process(int(one.split()[0])).kill()
        self.left = [f"left running: {one}" for one in left]
        self.model.close()
        lab.remove(self.place)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def serve(self, **variables: str) -> None:
        """Start the server anew; sessions go on."""
        self.stop()
        words = [sys.executable, "-m", "tmuxctl", "serve", "--listen", ADDRESS, "--no-token", "--log"]
        with self.log.open("a") as log:
            self.server = subprocess.Popen(
                words,
                env=self.environment | variables,
                cwd=self.place.work,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        assert self.server.stdout
        told = [self.server.stdout.readline(), self.server.stdout.readline()]
        assert told[1], self.log.read_text()

    def stop(self) -> None:
        """End the server."""
        if self.server:
            self.server.terminate()
            self.server.wait(LEAVING)

    def tmuxctl(self, *words: str) -> str:
        """What a command of the user's prints."""
        done = subprocess.run(["tmuxctl", *words], env=self.environment, capture_output=True, text=True, check=False)
        return done.stdout

    def curl(self, command: str) -> Any:
        """What a command line with curl prints, as JSON."""
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=PATIENCE, check=True)
        return json.loads(done.stdout)

    def ask(self, session: str, message: str, timeout: float = 120) -> Any:
        """A turn, as the examples ask for one."""
        body = json.dumps({"session_id": session, "message": message, "timeout": timeout})
        words = [
            "curl",
            "-s",
            "-X",
            "POST",
            f"http://{ADDRESS}/ask",
            "-H",
            "Content-Type: application/json",
            "-d",
            body,
        ]
        return json.loads(subprocess.check_output(words, text=True, timeout=PATIENCE))

    def get(self, path: str) -> Any:
        return self.curl(f"curl -s http://{ADDRESS}/sessions/{path}")

    def delete(self, session: str) -> Any:
        return self.curl(f"curl -s -X DELETE http://{ADDRESS}/sessions/{session}")

    def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something holds."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, "it did not come true"
            time.sleep(PAUSE)


def broken(what: str, found: Any, expected: Any) -> Iterator[str]:
    """What is not as it was promised."""
    if found != expected:
        yield f"{what}: {found!r} instead of {expected!r}"


def reason(reply: Mapping[str, Any]) -> str:
    """Why a request was refused; empty if it was not."""
    return str(reply.get("error", {}).get("reason", ""))


def said(reply: Mapping[str, Any], prompt: str) -> bool:
    """Whether a turn ended with the model's answer to a prompt without a directive."""
    text = reply.get("text", "")
    whole = text.startswith("FAKE-BEGIN:") and f"you said: {prompt}" in text and "FAKE-END:" in text
    return whole and (reply.get("event"), reply.get("prompt_submitted"), reply.get("returncode")) == (
        "stop",
        True,
        None,
    )


def run_examples(laboratory: Laboratory) -> Iterator[str]:
    """The examples, in the order in which they are shown."""
    curl = laboratory.curl
    first = curl(examples.ASK_FIRST)
    yield from broken("the first answer", (said(first, "Say hello in one sentence."), first), (True, first))
    yield from broken("output_tokens", isinstance(first["output_tokens"], int), True)
    again = curl(examples.ASK_AGAIN.replace("c6e5...", first["session_id"]))
    yield from broken("the next answer", (said(again, "Now make it shorter."), again), (True, again))
    yield from broken("its session", again["session_id"], first["session_id"])
    sonnet = curl(examples.ASK_WITH_COMMAND)
    yield from broken("with a command", (sonnet["session_id"], sonnet["event"]), ("sonnet-demo", "stop"))
    yield from broken("a named session", curl(examples.START)["session_id"], "demo")
    named = curl(examples.ASK_NAMED)
    yield from broken("its answer", (said(named, "What directory are you in?"), named), (True, named))
    yield from broken("a command again", reason(curl(examples.START_WITH_COMMAND)), "exists")
    laboratory.delete("sonnet-demo")
    yield from broken("after DELETE", curl(examples.START_WITH_COMMAND)["command"], ["claude", "--model", "sonnet"])
    # Claude Code refuses these words to root
    yield from broken("daring", curl(examples.START_DARING)["session_id"], "local-automation")
    listed = {one["session_id"] for one in curl(examples.LIST)["sessions"]}
    yield from broken("the list", listed, {first["session_id"], "sonnet-demo", "demo", "local-automation"})
    shown, told = curl(examples.SHOW), curl(examples.DEBUG)
    facts = [shown[name] for name in ("alive", "busy", "needs_recovery", "state")]
    yield from broken("shown", facts, [True, False, False, "idle"])
    events = [one for one in told["recent_hook_events"] if (one["payload"] or {}).get("agentpty_session_id") == "demo"]
    yield from broken("events by the script", [one["event"] for one in events], ["UserPromptSubmit", "Stop"])
    yield from broken("all events", len(told["recent_hook_events"]), 4)
    yield from broken("the end's text", events[-1]["payload"].get("last_assistant_message"), named["text"])
    yield from broken("tails", ("\x1b" in told["raw_tail"], "\x1b" in told["cleaned_tail"]), (True, False))
    yield from broken("closed", curl(examples.DELETE)["closed"], True)
    yield from broken("and gone", reason(curl(examples.SHOW)), "no_session")
    for one in listed - {"demo"}:
        laboratory.delete(one)


def take_turns(laboratory: Laboratory) -> Iterator[str]:
    """Several turns of one session, one at a time, each with the answer to its own prompt."""
    found: list[Any] = []
    laboratory.ask("turns", "the first")
    slow = threading.Thread(target=lambda: found.append(laboratory.ask("turns", "fake:silent#slow 6")))
    slow.start()
    laboratory.until(lambda: laboratory.get("turns")["busy"])
    yield from broken("a second one", reason(laboratory.ask("turns", "no")), "busy")
    slow.join(PATIENCE)
    yield from broken("the slow one", (found[0]["event"], "FAKE-END:silent#slow" in found[0]["text"]), ("stop", True))
    for number in range(6):
        # both hooks report each end, and none of them may be taken for that of the next turn
        reply = laboratory.ask("turns", f"fake:echo#n{number} number {number}")
        yield from broken(f"turn {number}", (reply["event"], f"number {number}" in reply["text"]), ("stop", True))
    submitted = [one.user for one in laboratory.model.requests() if not one.auxiliary and one.user.strip() == "no"]
    yield from broken("submitted though refused", submitted, [])
    laboratory.delete("turns")


def report_ends(laboratory: Laboratory) -> Iterator[str]:
    """A turn that fails, one that asks, and one that ends the program."""
    failed = laboratory.ask("ends", "fake:error#failed 400")
    yield from broken("failed", (failed["event"], "API Error" in failed["text"]), ("stop_failure", True))
    yield from broken("and told", laboratory.get("ends/debug")["last_turn_status"], "stop_failure")
    asking = laboratory.ask("ends", 'fake:tool#ask Bash {"command": "mkdir made"}')
    yield from broken("asking", (asking["event"], asking["prompt_submitted"]), ("asking", True))
    yield from broken("while it asks", reason(laboratory.ask("ends", "no")), "approval")
    question = laboratory.get("ends")["question"] or {}
    yield from broken("the question", question.get("kind"), "approval")
    laboratory.delete("ends")
    exited = laboratory.ask("ends", "/exit")
    yield from broken("exited", (exited["event"], exited["returncode"]), ("exited", 0))
    laboratory.delete("ends")


def recover(laboratory: Laboratory) -> Iterator[str]:
    """A turn that takes too long, and the way back."""
    late = laboratory.ask("late", "fake:silent#late 15", timeout=6)
    yield from broken("late", (late["event"], late["prompt_submitted"]), ("timeout", True))
    yield from broken("refused", reason(laboratory.ask("late", "no")), "needs_recovery")
    laboratory.until(lambda: not laboratory.get("late")["busy"])
    laboratory.serve()
    yield from broken("by the next server", reason(laboratory.ask("late", "no")), "needs_recovery")
    told = laboratory.get("late/debug")
    yield from broken("told", (told["needs_recovery"], told["last_turn_status"]), (True, "timeout"))
    laboratory.delete("late")
    anew = laboratory.ask("late", "and now")
    yield from broken("anew", (said(anew, "and now"), anew), (True, anew))
    laboratory.delete("late")


def trust(laboratory: Laboratory) -> Iterator[str]:
    """A folder that Claude Code does not know: trusted where that is set, else asked for."""
    settings = laboratory.place.home / ".claude.json"

    def forget() -> None:
        kept = json.loads(settings.read_text())
        settings.write_text(json.dumps(kept | {"projects": {}}))

    forget()
    yield from broken("not trusted", reason(laboratory.ask("new", "no")), "trust")
    laboratory.tmuxctl("decide", "new", "deny", "--wait")
    yield from broken(
        "denied", (laboratory.get("new")["alive"], json.loads(settings.read_text())["projects"]), (False, {})
    )
    laboratory.delete("new")
    forget()
    laboratory.serve(AGENTPTY_AUTO_TRUST_WORKSPACE="true")
    trusted = laboratory.ask("new", "and now")
    yield from broken("trusted", (said(trusted, "and now"), trusted), (True, trusted))
    laboratory.delete("new")


def keep_keys(laboratory: Laboratory) -> Iterator[str]:
    """No log has a key in it."""
    state = laboratory.place.home / ".local/state/tmuxctl"
    logs = [laboratory.log, *state.rglob("audit.log*"), *state.rglob("spec.json")]
    yield from broken("log files", len(logs) > 3, True)
    yield from (f"a key stands in {one}" for one in logs if "key=" in one.read_text())


PARTS = (run_examples, take_turns, report_ends, recover, trust, keep_keys)

if __name__ == "__main__":
    sys.exit(main())
