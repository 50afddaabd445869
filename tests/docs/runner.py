"""Does what a section of a page says, and compares what comes with what the page shows."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import yaml
from plays.play import Play, play

from docs import pages
from docs.pages import ROOT, Block, Directive, Section, Step
from docs.servers import started
from docs.world import Ran, World
from tmuxctl.control import Control
from tmuxctl.profile_files.library import detect

PROFILE = "schema: tmuxctl/profile@1"


class Untrue(Exception):
    """A page says what is not so."""


class Missing(Exception):
    """What a section needs is not on this machine."""


def follow(section: Section, world: World) -> None:
    """Do all that the section says, in its order. Raises Untrue, or Missing before anything was done."""
    _Run(world).section(section)


class _Run:
    """One section under way: what directives said of the next block, and the files that blocks were saved to."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.next: dict[str, str] = {}

    def section(self, section: Section) -> None:
        directives = [part for part in section.parts if isinstance(part, Directive)]
        for program in _words(directives, "needs"):
            if not shutil.which(program, path=self.world.environment["PATH"]):
                raise Missing(f"{program} is not installed")
        with ExitStack() as stack:
            for server in _words(directives, "needs-service"):
                variables = stack.enter_context(started(server, self.world.place))
                if variables is None:
                    raise Missing(f"{server} cannot be started here")
                self.world.set(variables)
            for part in section.parts:
                if isinstance(part, Directive):
                    self._directive(part)
                else:
                    self._block(part)

    def _directive(self, directive: Directive) -> None:
        if directive.name == "before":
            self._succeed(f"set -e\n{directive.value}\nset +e", directive.line)
        elif directive.name in pages.FOR_A_BLOCK:
            self.next[directive.name] = directive.value

    def _block(self, block: Block) -> None:
        about, self.next = self.next, {}
        if "run-by" in about:
            _said_elsewhere(block, about["run-by"])
        elif block.language in CHECKS and "changed-tree" not in about:
            CHECKS[block.language](self, block, self._saved(block, about))

    def _saved(self, block: Block, about: Mapping[str, str]) -> Path | None:
        """The file that a reader was told to put the block into."""
        for how, where in about.items():
            path = self.world.path(where)
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a" if how == "append" else "w") as file:
                file.write(block.text + "\n")
            path.chmod(0o700 if path.read_text().startswith("#!") else 0o600)
            return path
        return None

    def _succeed(self, command: str, line: int) -> None:
        ran = self.world.run(command)
        if ran.status != 0:
            raise Untrue(f"line {line}: ended with {_ended(ran)}: {command}\n{ran.output}")

    def console(self, block: Block, path: Path | None) -> None:
        """Type each command; what it prints is what the page shows."""
        for step in pages.steps(block):
            ran = self.world.run(step.command, partial(pages.shows, step.expected))
            if ran.status != step.status or not pages.shows(step.expected, ran.output):
                raise Untrue(_difference(step, ran))

    def script(self, block: Block, path: Path | None) -> None:
        """Run it; one that was saved is for another occasion, and only has to be a script."""
        words = f"sh -n {path}" if path else f"sh -eu {self.world.file('script', block.text)}"
        self._succeed(words, block.line)

    def yaml(self, block: Block, path: Path | None) -> None:
        """A profile or a part of one; a list is plays, and what has the schema of connector files is one."""
        if block.text.startswith("schema: tmuxctl/connector@1\n"):
            path = path or self.world.file("team.yaml", block.text)
            self._succeed(f"tmuxctl connect validate {path}", block.line)
            return
        (self.plays if block.text.startswith("- ") else self.profile)(block, path)

    def plays(self, block: Block, path: Path | None) -> None:
        """Plays of real programs, played."""
        for number, written in enumerate(yaml.safe_load(block.text)):
            folder = self.world.place / f"play-{block.line}-{number}"
            folder.mkdir()
            with Control() as control:
                list(play(control, Play(detect(written["command"]) or "", written), folder, {}))

    def profile(self, block: Block, path: Path | None) -> None:
        """A profile whose saved screens hold; of a part of one, that it can be read."""
        text = block.text if f"\n{PROFILE}" in f"\n{block.text}" else f"{PROFILE}\n{block.text}"
        name = re.search(r"^name: *([\w-]+)", text, re.MULTILINE)
        path = path or self.world.file(f"{name[1] if name else 'part'}.yaml", text)
        self._succeed(f"tmuxctl profile test {path}", block.line)

    def settings(self, block: Block, path: Path | None) -> None:
        """A config.toml without anything unknown, or a machines.toml."""
        path = path or self.world.file("config.toml", block.text)
        if path.name == "machines.toml":
            self._succeed("tmuxctl machine ls", block.line)
            return
        self._succeed(f"TMUXCTL_CONFIG={path} tmuxctl config show", block.line)

    def python(self, block: Block, path: Path | None) -> None:
        """A plugin that makes a spec of a spec; else a program."""
        if "def transform" not in (path.read_text() if path else block.text):
            self._succeed(f"python3 {path or self.world.file('snippet.py', block.text)}", block.line)
            return
        path = path or self._saved(block, {"file": "~/.config/tmuxctl/plugins/snippet.py"})
        assert path
        self._succeed(f"tmuxctl new --dry-run --with {path.stem} -- true", block.line)

    def tmux(self, block: Block, path: Path | None) -> None:
        """Lines that a tmux of its own takes."""
        path = path or self.world.file("tmux.conf", block.text)
        own = f"tmux -L conf-{block.line} -f /dev/null"
        self._succeed(f"{own} new-session -d cat && {own} source-file {path} && {own} kill-server", block.line)

    def json(self, block: Block, path: Path | None) -> None:
        """JSON, strictly."""
        try:
            json.loads(block.text)
        except ValueError as error:
            raise Untrue(f"line {block.line}: {error}") from None


CHECKS: Mapping[str, Callable[[_Run, Block, Path | None], None]] = {
    "console": _Run.console,
    "sh": _Run.script,
    "yaml": _Run.yaml,
    "toml": _Run.settings,
    "python": _Run.python,
    "tmux": _Run.tmux,
    "json": _Run.json,
}
"""How a block of a language is tried. A block of text is a picture, and is not."""


def _words(directives: list[Directive], name: str) -> list[str]:
    return [word for one in directives if one.name == name for word in one.value.split()]


def _said_elsewhere(block: Block, name: str) -> None:
    """What is not run here has to stand in the file that runs it; a goal of make, in the Makefile that makes it."""
    text = (ROOT / name).read_text()
    for command in pages.commands(block):
        goal = re.match(r"make ([\w-]+)", command)
        made = goal and name.endswith("Makefile") and re.search(rf"^{goal[1]}:", text, re.MULTILINE)
        if not made and command not in text:
            raise Untrue(f"line {block.line}: {name} does not run `{command}`")


def _difference(step: Step, ran: Ran) -> str:
    wanted = "\n".join(step.expected) if step.expected else "(anything)"
    return (
        f"line {step.line}: $ {step.command}\n"
        f"--- the page shows, with exit status {step.status}:\n{wanted}\n"
        f"--- it printed, and ended with {_ended(ran)}:\n{pages.tidy(ran.output)}"
    )


def _ended(ran: Ran) -> str:
    return "no end in time, or of the shell itself" if ran.status is None else f"exit status {ran.status}"
