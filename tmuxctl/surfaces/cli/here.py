"""The commands that only a command line has: they need this terminal, this shell, this user's files."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from tmuxctl.errors import Unreachable, Usage
from tmuxctl.operations import SessionName, invoke, operation
from tmuxctl.surfaces.cli.output import Options, tell


class Here:
    """Operations of this terminal. `connect` gives the Control they need, if they need one."""

    def __init__(self, connect: Callable[[Options], Any], options: Options) -> None:
        self.connect = connect
        self.options = options

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """As `Control.call`."""
        return invoke(self, name, arguments)

    def close(self) -> None:
        """Nothing is kept open."""

    @operation(right="write", group="Sessions", examples=("attach db", "attach db --read-only"))
    def attach(
        self,
        session: SessionName,
        *,
        read_only: Annotated[bool, "look only: what is typed goes nowhere"] = False,
        keep_size: Annotated[bool, "do not fit the session to this terminal"] = False,
    ) -> None:
        """Bring a session to this terminal; C-b d leaves it, and its program goes on.

        While you are there it has your terminal's size, and its own again afterwards.
        """
        with self.connect(self.options) as control:
            found = control.call("show", {"session": session})
            if not (sys.stdin and sys.stdin.isatty() and sys.stdout and sys.stdout.isatty()):
                raise Usage(
                    "attach needs a terminal, and this is none",
                    reason="no_terminal",
                    hint=f"tmuxctl screen {found.name} shows what is on it",
                )
            option = ("@tmuxctl_keep_size", "1") if keep_size else ("-u", "@tmuxctl_keep_size")
            control.transport.run([("set-option", "-q", "-t", f"={found.name}:", *option)])
            tmux, socket = control.settings.tmux_binary, control.transport.socket
        if self.options.verbose:
            tell("tmuxctl: C-b d leaves; the program goes on")
        environment = {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}
        words = [tmux, "-u", "-L", socket, "attach-session", "-t", f"={found.name}", *(["-r"] if read_only else [])]
        try:
            os.execvpe(tmux, words, environment)
        except OSError as error:
            raise Unreachable(f"{ascii(tmux)}: {error.strerror}", reason="no_tmux", hint="tmuxctl doctor") from None

    @operation(
        right="read",
        group="Set up",
        idempotent=True,
        examples=('eval "$(tmuxctl completion bash)"', "completion fish > ~/.config/fish/completions/tmuxctl.fish"),
    )
    def completion(self, shell: Annotated[Literal["bash", "zsh", "fish"], "the shell that is to complete"]) -> Any:
        """Print the shell code that completes commands, options, keys and the names of sessions."""
        from tmuxctl.surfaces.cli import completion

        return {"shell": shell, "script": completion.script(shell)}

    @operation(right="read", group="Set up", idempotent=True, examples=("config show", "config path"))
    def config(self, action: Annotated[Literal["show", "path"], "the settings, or the file they are kept in"]) -> Any:
        """Show every setting with its value and where that came from: option, variable, file or default."""
        from tmuxctl import config

        path = config.config_path()
        if action == "path":
            return {"path": path, "exists": os.path.exists(path)}
        settings = config.load({"tmux.socket": self.options.socket})
        return {"path": path, "settings": [one._asdict() for one in settings.listed()]}
