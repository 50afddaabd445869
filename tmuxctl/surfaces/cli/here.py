"""The commands that only a command line has: they need this terminal, this shell, this user's files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tmuxctl.errors import Denied, Unreachable, Usage
from tmuxctl.operations import TEXTS, Flag, SessionName, ValueKind, invoke, operation
from tmuxctl.surfaces.cli.output import Options, tell
from tmuxctl.terminal.tmux import options

if TYPE_CHECKING:
    from tmuxctl.control import Control


class OfCommands:
    """Operations that only a command line has. `connect` gives the Control they need, if they need one."""

    def __init__(self, connect: Callable[[Options], Any], options: Options) -> None:
        self.connect = connect
        self.options = options

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """As `Control.call`."""
        return invoke(self, name, arguments)

    def close(self) -> None:
        """Nothing is kept open."""


class Here(OfCommands):
    """Operations of this terminal."""

    @operation(right="write", group="Sessions", examples=("attach db", "attach db --read-only"))
    def attach(
        self,
        session: SessionName,
        *,
        read_only: Annotated[bool, "look only: what is typed goes nowhere", Flag(("-r",))] = False,
        keep_size: Annotated[bool, "do not fit the session to this terminal"] = False,
    ) -> None:
        """Bring a session to this terminal; C-b d leaves it, and its program goes on.

        While you are there it has your terminal's size, and its own again afterwards.
        """
        with self.connect(self.options) as control:
            words = client(control, session, read_only=read_only, keep_size=keep_size)
        if self.options.verbose:
            tell("tmuxctl: C-b d leaves; the program goes on")
        try:
            os.execvpe(words[0], words, outside())
        except OSError as error:
            raise no_client(words[0], error) from None

    @operation(right="kill", group="Look", examples=("top",))
    def top(self) -> None:
        """A live table of all sessions: state, open question, idle time, processor time and memory of all they run.

        Those that ask or want a line stand first, then those that work. It changes once a second, and at once with a state.

        Keys: Up, Down, j, k select; Enter or a attaches (C-b d comes back); d shows the question with its answers, one
        key chooses; i interrupts as the program's profile says; x kills after y; / filters by words or a state; s sorts
        by state, name, processor time, memory, idle time; ? explains; q quits. The sessions go on.
        """
        from tmuxctl import config
        from tmuxctl.control import Control
        from tmuxctl.surfaces.cli import top

        top.check(self.options)
        with Control(settings=config.load({"tmux.socket": self.options.socket}), resident=True) as control:
            top.run(control, self.options)

    @operation(
        right="read",
        group="Set up",
        view="script",
        examples=('eval "$(tmuxctl completion bash)"', "completion fish > ~/.config/fish/completions/tmuxctl.fish"),
    )
    def completion(self, shell: Annotated[Literal["bash", "zsh", "fish"], "the shell that is to complete"]) -> Any:
        """Print the shell code that completes commands, options, keys and the names of sessions."""
        from tmuxctl.surfaces.cli import completion

        return {"shell": shell, "script": completion.script(shell)}

    @operation(right="read", group="Set up", view="text", examples=("help", "help ask", "help profile test"))
    def help(
        self,
        command: Annotated[tuple[str, ...], ValueKind("command", TEXTS.schema, TEXTS.parse), "a command's words"] = (),
    ) -> Any:
        """Print what a command is for, with examples: the same as COMMAND --help. The long form is `man tmuxctl-COMMAND`."""
        from tmuxctl.surfaces.cli import group, help

        return {"command": " ".join(command) or None, "text": help.page(group.App(), command)}


def client(control: Control, session: str, *, read_only: bool = False, keep_size: bool = False) -> list[str]:
    """The tmux command that brings a session to this terminal, which it fits from now on unless `keep_size`.

    Usage `no_terminal` if this is none, Denied `foreign` for a pane of another server.
    """
    place, called = control.reach(session)
    if place is not control:
        raise Denied(
            f"{called} is a pane of another tmux server",
            reason="foreign",
            hint=f"go there: tmux -L {place.machine.transport.socket} attach",
        )
    found = control.call("show", {"session": session})
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
        raise Usage(
            "attach needs a terminal, and this is none",
            reason="no_terminal",
            hint=f"tmuxctl screen {found.name} shows what is on it",
        )
    option = (options.KEEP_SIZE, "1") if keep_size else ("-u", options.KEEP_SIZE)
    control.machine.transport.run([("set-option", "-q", "-t", f"={found.name}:", *option)])
    tmux, socket = control.machine.settings.tmux_binary, control.machine.transport.socket
    words = [tmux, "-u", "-L", socket, "attach-session", "-t", f"={found.name}"]
    return [*words, "-r"] if read_only else words


def outside() -> dict[str, str]:
    """Our environment as it is outside of any tmux: a session may be shown inside another one."""
    return {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}


def no_client(tmux: str, error: OSError) -> Unreachable:
    """The error where tmux cannot be executed."""
    return Unreachable(f"{ascii(tmux)}: {error.strerror}", reason="no_tmux", hint="tmuxctl doctor")
