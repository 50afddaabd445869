"""Real agent programs drive sessions through the MCP server that `tmuxctl mcp install` put into their settings.

python -m tools.agents.mcp [claude codex gemini]

Each is asked without a person, and its model calls the tools: the request must list all twelve, a Python REPL is started, asked
and killed, and a session that is left is one of the user's command line too. The tools must not be there before the server is
installed, nor after it was uninstalled, and another server has to stay in the settings. Claude Code does the same where it hides
tools until its model searches them, and it supervises Codex, over MCP and by the skill's commands. Prints a line for each; ends
with 1 if a promise does not hold.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from . import alone, installing, lab
from .behaviours import RUN
from .model import Model, Request
from .scripted_model.script import CONNECTING

PATIENCE = 240.0
"""Seconds that one run of a program may take."""

LEAVING = 20.0
"""Seconds in which the processes of a program that has ended must be gone."""

TOOLS = (
    *("pty_create", "pty_ask", "pty_exec", "pty_write", "pty_sendkey", "pty_wait"),
    *("pty_read", "pty_decide", "pty_list", "pty_resize", "pty_kill", "pty_list_keys"),
)

OTHER = "other"
"""A server that the user's settings have before: it cannot be started, which hinders no program."""

TASK = f"fake:{RUN['codex']}#task mkdir -v made"
"""What the supervised program is told: to run a command that it asks about."""

Calls = Sequence[tuple[str, Mapping[str, Any]]]
"""Tools that the model calls, one after the other, with their arguments."""


class Client(NamedTuple):
    """How a program is asked once so that its model may call the tools: the words before the prompt, those more while the
    server is installed, what the model calls first, and what stands before a tool's name. `settings` is the user's file
    below the home; `other` puts the entry of the other server into its text."""

    words: Sequence[str]
    more: Sequence[str]
    first: Calls
    prefix: str
    settings: str
    other: Callable[[str], str]


def _with_json_server(text: str) -> str:
    return json.dumps({**json.loads(text), "mcpServers": {OTHER: {"command": "false", "args": []}}})


CLIENTS: Mapping[str, Client] = {
    "claude": Client(
        words=("-p", "--allowedTools", "mcp__tmuxctl", "Bash(tmuxctl *)", "--"),
        more=(),
        # it asks its model at once, and offers this tool as long as a server is starting
        first=(("WaitForMcpServers", {}),),
        prefix="mcp__tmuxctl__",
        settings=".claude.json",
        other=_with_json_server,
    ),
    "codex": Client(
        words=("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        # else it asks its model at once, too, and has no tool to wait
        more=("-c", "mcp_servers.tmuxctl.required=true", "-c", "mcp_servers.tmuxctl.startup_timeout_sec=60"),
        first=(),
        prefix="",
        settings=".codex/config.toml",
        other=lambda text: f'{text}\n[mcp_servers.{OTHER}]\ncommand = "false"\n',
    ),
    "gemini": Client(
        words=("--allowed-mcp-server-names", "tmuxctl", "-p"),
        more=(),
        first=(),
        prefix="mcp_tmuxctl_",
        settings=".gemini/settings.json",
        other=_with_json_server,
    ),
}

STEPS = (
    ("nowhere", (), False),
    ("for the user", ("install",), True),
    ("nowhere any more", ("uninstall",), False),
    ("for the project", ("install", "--project"), True),
)
"""Where the server is, what is done for that, and whether the program knows the tools then."""

DRIVING = (
    ("pty_create", {"command": ["python3", "-q"], "name": "py"}),
    ("pty_ask", {"session_id": "py", "text": "6*7", "timeout_ms": 50_000}),
    ("pty_kill", {"session_id": "py"}),
    ("pty_create", {"command": ["cat"], "name": "kept"}),
)


class Asked(NamedTuple):
    """One run of a program: what the model was asked, the results of its calls, and how the program ended."""

    requests: Sequence[Request]
    results: Sequence[str]
    told: str

    @property
    def tools(self) -> set[str]:
        """Every tool that a request offered."""
        return {tool for one in self.requests for tool in one.tools}


def main() -> int:
    """Run the programs that were named, all by default; returns the exit status."""
    wanted = installing.install(sys.argv[1:] or list(CLIENTS), ["pinned"], print)
    alone.leave_the_network("tools.agents.mcp")
    wrong = []
    for name, _ in wanted:
        for what, job in jobs(name, [one for one, _ in wanted]).items():
            broken = job(name)
            print(f"-- {name}: {what}: {f'{len(broken)} wrong' if broken else 'holds'}", flush=True)
            wrong += [f"{name}: {what}: {one}" for one in broken]
    for told in wrong:
        print(f"-- DOES NOT HOLD: {told}")
    return 1 if wrong else 0


def jobs(program: str, others: Sequence[str]) -> Mapping[str, Callable[[str], list[str]]]:
    """What is done with a program, by its name; each gives the promises that are broken."""
    found: dict[str, Callable[[str], list[str]]] = {"installed, used, uninstalled": drive}
    if program == "claude":
        found["tools that are searched"] = drive_hidden
    if program == "claude" and "codex" in others:
        found |= {"supervises Codex over MCP": supervise, "supervises Codex by commands": supervise_by_commands}
    return found


def drive(program: str) -> list[str]:
    """Go through all steps of one program; the promises that it breaks."""
    wrong = []
    with Run.ready(program) as run:
        client = CLIENTS[program]
        for number, (where, words, known) in enumerate(STEPS):
            if words:
                run.tmuxctl("mcp", *words, "--client", program, "--yes")
            listed = run.program("mcp", "list")
            named = listed.stdout + listed.stderr
            if ("tmuxctl" in named) != known or OTHER not in named:
                wrong.append(f"{where}: `{program} mcp list` says {named[-300:]!r}")
            asked = run.ask(f"mcp-{number}", DRIVING, client.more if known else ())
            wrong += [f"{where}: {one}" for one in (broken(run, asked, client.prefix) if known else unknown(asked))]
    return wrong + run.left


def broken(run: Run, asked: Asked, prefix: str) -> Iterator[str]:
    """What a program with the tools did not do."""
    if missing := {prefix + tool for tool in TOOLS} - asked.tools:
        yield f"{len(asked.requests)} requests, without {sorted(missing)}; {asked.told}"
    if not has_answer(asked.results, "42"):
        yield f"6*7 is not answered: {asked.results}; {asked.told}"
    if len(asked.results) != len(DRIVING) or not any('"killed"' in one for one in asked.results):
        yield f"not killed: {asked.results}; {asked.told}"
    if (listed := run.tmuxctl("ls", "-q").split()) != ["kept"]:
        yield f"the user's command line has the sessions {listed}"
    for name in listed:
        run.tmuxctl("kill", name)


def unknown(asked: Asked) -> Iterator[str]:
    """What a program without the tools has, or did, nevertheless."""
    if not asked.requests:
        yield f"the model was not asked: {asked.told}"
    if there := {tool for tool in asked.tools if "pty_" in tool}:
        yield f"it has the tools {sorted(there)}"
    if has_answer(asked.results, "42"):
        yield f"6*7 is answered: {asked.results}"


def drive_hidden(program: str) -> list[str]:
    """Drive with tools of which only the names are told, until the model loads some; the promises that are broken."""
    prefix = CLIENTS[program].prefix
    wanted = ",".join(f"{prefix}{name}" for name in dict.fromkeys(name for name, _ in DRIVING))
    with Run.ready(program, ENABLE_TOOL_SEARCH="true") as run:
        run.tmuxctl("mcp", "install", "--client", program, "--yes")
        search = ("ToolSearch", {"query": f"select:{wanted}", "max_results": 10})
        asked = run.ask("mcp-hidden", DRIVING, first=(search,))
        wrong = []
        if unnamed := [tool for tool in TOOLS if not any(f"\\n{prefix}{tool}" in body for body in run.model.bodies())]:
            wrong.append(f"the model is not told of {unnamed}; {asked.told}")
        if {tool for tool in asked.tools if tool.startswith(prefix)} != set(wanted.split(",")):
            wrong.append(f"after the search the tools are {sorted(asked.tools)}")
        if not has_answer(asked.results, "42"):
            wrong.append(f"6*7 is not answered: {asked.results}; {asked.told}")
        run.tmuxctl("kill", "kept")
    return wrong + run.left


def supervise(program: str, other: str = "codex") -> list[str]:
    """Decide another program's approval and read its answer, by the tools; the promises that are broken."""
    calls = (
        ("pty_create", {"command": [other], "name": "worker"}),
        ("pty_ask", {"session_id": "worker", "text": TASK, "timeout_ms": 50_000}),
        ("pty_decide", {"session_id": "worker", "option": "allow", "timeout_ms": 50_000}),
        ("pty_wait", {"session_id": "worker", "until": "idle", "timeout_ms": 50_000}),
        ("pty_kill", {"session_id": "worker"}),
    )
    with Run.ready(program) as run:
        run.tmuxctl("mcp", "install", "--client", program, "--yes")
        wrong = list(unsupervised(run, run.beside(other), "mcp-supervise", calls))
    return wrong + run.left


def supervise_by_commands(program: str, other: str = "codex") -> list[str]:
    """Do the same by the commands that the skill names; the promises that are broken."""
    commands = (
        f"tmuxctl new worker -- {other}",
        f"tmuxctl ask worker {shlex.quote(TASK)}",
        "tmuxctl decide worker allow --wait",
        "tmuxctl read worker",
        "tmuxctl kill worker",
    )
    with Run.ready(program) as run:
        run.tmuxctl("skill", "install", "--client", program, "--yes")
        calls = [("Bash", {"command": one}) for one in commands]
        wrong = list(unsupervised(run, run.beside(other), "skill-supervise", calls, first=()))
    return wrong + run.left


def unsupervised(run: Run, worker: lab.Place, mark: str, calls: Calls, first: Calls | None = None) -> Iterator[str]:
    """What does not hold after these five calls: a program started, asked, decided for, read and ended."""
    asked = run.ask(mark, calls, first=first)
    turns = [one for one in run.model.requests(TASK) if one.user == TASK and not one.auxiliary]
    results = [*asked.results, *[""] * len(calls)]
    held = {
        "it is asked for approval": "approval" in results[1] and "allow" in results[1],
        "the task is submitted once": [len(one.results) for one in turns] == [0, 1],
        "the command was run": (worker.work / "made").exists(),
        "the answer is read": "it ends with: mkdir: created directory" in results[3],
        "it is ended": '"killed":true' in results[4] or results[4].strip() == "worker",
        "no session is left": run.tmuxctl("ls", "-q") == "",
    }
    yield from (what for what, holds in held.items() if not holds)
    if not all(held.values()):
        yield f"the results are {asked.results}; {asked.told}"


def has_answer(results: Sequence[str], answer: str) -> bool:
    """Whether the answer of `pty_ask` is in a result, as a field or as a line of the text."""
    return any(f'"answer":"{answer}"' in one.replace(" ", "") or answer in one.splitlines() for one in results)


class Run:
    """One program with its home and the model that it talks to. `left` is what it left behind."""

    def __init__(self, place: lab.Place, model: Model, environment: Mapping[str, str], tag: str) -> None:
        self.place, self.model, self.environment, self.tag = place, model, environment, tag
        self.places = [place]
        self.left: list[str] = []

    @classmethod
    @contextmanager
    def ready(cls, program: str, **variables: str) -> Iterator[Run]:
        """The program made ready, with another MCP server in its settings and a tmux server of its own for tmuxctl."""
        model = Model()
        tag = f"mcp-{os.getpid()}-{program}-{len(variables)}-{time.monotonic_ns()}"
        place = lab.make_place(program, "pinned", tag, model.port)
        client = CLIENTS[program]
        settings = place.home / client.settings
        settings.write_text(client.other(settings.read_text()))
        commands = Path(sys.executable).parent
        environment = {
            **lab.BASE, "HOME": str(place.home), "TERM": "xterm-256color", "PATH": f"{commands}:{os.environ['PATH']}",
            # Codex gives a server this only because `mcp install` says so
            "TMUXCTL_SOCKET": tag, **variables,
        }  # fmt: skip
        run = cls(place, model, environment, tag)
        try:
            yield run
        finally:
            run.close()

    def beside(self, program: str) -> lab.Place:
        """Another program against the same model, found by its name."""
        place = lab.make_place(program, "pinned", f"{self.tag}-{program}", self.model.port)
        self.places.append(place)
        self.environment = {**self.environment, "PATH": f"{place.bin}:{self.environment['PATH']}"}
        return place

    def program(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run the program without a person."""
        return subprocess.run(
            [self.place.bin / self.place.program, *words],
            env=self.environment, cwd=self.place.work, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=PATIENCE, check=False,
        )  # fmt: skip

    def tmuxctl(self, *words: str) -> str:
        """What a command of the user's prints."""
        return subprocess.run(
            ["tmuxctl", *words], env=self.environment, cwd=self.place.work, capture_output=True, text=True, check=True
        ).stdout

    def ask(self, mark: str, calls: Calls, words: Sequence[str] = (), first: Calls | None = None) -> Asked:
        """Ask the program once: its model makes these calls, and before them those that come `first`, which have no part in
        the results."""
        client = CLIENTS[self.place.program]
        first = client.first if first is None else first
        ours = ((client.prefix + name if name in TOOLS else name, arguments) for name, arguments in calls)
        planned = [*first, *ours]
        said = self.program(*client.words, *words, f"fake:calls#{mark} {json.dumps(planned)}")
        asked = [one for one in self.model.requests(f"fake:calls#{mark} ") if one.behaviour == "calls"]
        results = [one for one in asked[-1].results if not CONNECTING.search(one)] if asked else []
        told = f"status {said.returncode}, {said.stdout[-200:]!r}, {said.stderr[-300:]!r}"
        return Asked(asked, results[len(first) :], told)

    def close(self) -> None:
        """End the sessions, and say what else was left; nothing of it stays."""
        with suppress(subprocess.CalledProcessError):
            self.tmuxctl("kill", "--all")
        subprocess.run(["tmux", "-L", self.tag, "kill-server"], env=self.environment, capture_output=True, check=False)
        Path(f"/tmp/tmux-{os.getuid()}", self.tag).unlink(missing_ok=True)
        deadline = time.monotonic() + LEAVING
        while (left := [one for place in self.places for one in lab.processes(place)]) and time.monotonic() < deadline:
            time.sleep(0.1)
        for one in left:
            with suppress(psutil.NoSuchProcess):
                psutil.Process(int(one.split()[0])).kill()
        self.left += [f"left running: {one}" for one in left]
        self.model.close()
        for place in self.places:
            lab.remove(place)


if __name__ == "__main__":
    sys.exit(main())
