"""The commands that only a command line has: they need this terminal, this shell, this user's files."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, Literal

from tmuxctl.operations import TEXTS, Factor, Flag, Seconds, SessionName, ValueKind, operation
from tmuxctl.surfaces.cli import attaching
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations
from tmuxctl.surfaces.cli.printing.output import colorful, tell


class TerminalOperations(CommandLineOperations):
    """Operations of this terminal."""

    @operation(right="write", group="Sessions", examples=("attach db", "attach db --read-only", "attach --next-asking"))
    def attach(
        self,
        session: SessionName | None = None,
        *,
        next_asking: Annotated[bool, "bring the session that has waited longest for input"] = False,
        read_only: Annotated[bool, "only look: what you type is not sent", Flag(("-r",))] = False,
        keep_size: Annotated[bool, "do not fit the session to this terminal"] = False,
    ) -> None:
        """Bring a session to this terminal; C-b d leaves it, and its program goes on.

        While you are attached the session has the size of your terminal; afterwards it gets its own size back.
        """
        with self.connect(self.options) as control:
            if session is None or next_asking:
                session = attaching.choose_session(control, session, next_asking=next_asking)
            words = attaching.attach_command(control, session, read_only=read_only, keep_size=keep_size)
        if self.options.verbose:
            tell("tmuxctl: C-b d leaves; the program goes on")
        try:
            os.execvpe(words[0], words, attaching.environment_outside_tmux())
        except OSError as error:
            raise attaching.missing_client_error(words[0], error) from None

    @operation(right="kill", group="Look", view="text", examples=("top", "top --once", "top --all-machines"))
    def top(
        self,
        *,
        once: Annotated[bool, "print the table once, and end"] = False,
        all_machines: Annotated[bool, "also the sessions of all machines of machines.toml"] = False,
    ) -> Any:
        """Show a live table of all sessions, and what the selected one shows.

        It has the state, open question, idle time, processor time and memory of each. Sessions that want input come
        first, then busy ones. Processor time and memory are those of all processes of a session. The table is drawn
        again once a second, and at once when a state changes. Where there is room the screen of the selected session is
        shown beside it. The bell rings when a session begins to want input. With --all-machines the sessions stand by
        their machines, and the first lines say which of these do not answer, and why.

        Keys: Up, Down, j, k select; n selects the next session that wants input; Enter or a attaches (C-b d comes back);
        d shows the question with its answers, and one more key chooses one; t types a line; i interrupts the program as
        its profile says; x kills, after y; / filters by words or a state; s sorts by state, name, processor time,
        memory, idle time; g groups by tag, folder or machine; v shows or hides the screen; b silences the bell; ? shows
        the keys; q quits, and the sessions go on. A click selects, a double click attaches.
        """
        from tmuxctl import config
        from tmuxctl.control import Control
        from tmuxctl.surfaces.cli.top import top

        if once:
            with self.connect(self.options) as control:
                return {"text": "\n".join(top.show_once(control, self.options, all_machines=all_machines))}
        top.check(self.options)
        with Control(settings=config.load({"tmux.socket": self.options.socket}), resident=True) as control:
            top.run(control, self.options, all_machines=all_machines)
        return None

    @operation(right="read", group="Look", examples=("play build", "play demo.cast --speed 2 --idle-limit 1s"))
    def play(
        self,
        source: Annotated[str, "a session, or an asciicast: a path, or a name that ends in .cast"],
        *,
        speed: Annotated[Factor, "so many times as fast"] = 1.0,
        idle_limit: Annotated[Seconds | None, "shorten pauses to this"] = None,
        since: Annotated[str | None, "begin at this moment of the session: see screen --at"] = None,
        until: Annotated[str | None, "end at this moment of the session"] = None,
    ) -> None:
        """Play what a session printed, or an asciicast, on this terminal.

        Only the screens are drawn: what else a recording holds does nothing to your terminal. Keys: space pauses, . goes to
        the next change, + and - change the speed, q quits.
        """
        from tmuxctl.control.recordings import exporting
        from tmuxctl.surfaces.cli.top import player, top

        top.check(self.options, "play", f"to look at it elsewhere: tmuxctl export {source} FILE.html")
        exporting.check_idle_limit(idle_limit)
        with self.connect(self.options) as control:
            recording = exporting.open_recording(control.machine, source, since=since, until=until)
            player.play(recording, speed=speed, idle_limit=idle_limit, colors=colorful(sys.stdout, self.options))

    @operation(
        right="read",
        group="Set up",
        view="script",
        examples=('eval "$(tmuxctl completion bash)"', "completion fish > ~/.config/fish/completions/tmuxctl.fish"),
    )
    def completion(self, shell: Annotated[Literal["bash", "zsh", "fish"], "the shell to complete in"]) -> Any:
        """Print the shell code for completion.

        It completes commands, options, keys, the names of sessions and the answers to their questions.
        """
        from tmuxctl.surfaces.cli.commands import completion

        return {"shell": shell, "script": completion.shell_script(shell)}

    @operation(right="read", group="Set up", view="text", examples=("help", "help ask", "help profile test"))
    def help(
        self,
        command: Annotated[
            tuple[str, ...], ValueKind("command", TEXTS.schema, TEXTS.parse), "the name of the command"
        ] = (),
    ) -> Any:
        """Print the help of a command, with examples, as COMMAND --help does; `man tmuxctl-COMMAND` says more."""
        from tmuxctl.surfaces.cli.commands import help

        return {"command": " ".join(command) or None, "text": help.format_page(self.app, command)}
