"""Results as a person reads them, or as one JSON object on a line; and the exit status they mean."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tmuxctl import results
from tmuxctl.model import NOTHING, Session
from tmuxctl.operations import Meta, to_json
from tmuxctl.surfaces.cli.printing.output import (
    Options,
    as_json,
    clean,
    flat,
    note,
    shown,
    tell,
    with_socket,
    write,
    write_json,
    write_pieces,
)
from tmuxctl.vocabulary import InputKind

ANY = Meta("read", "")
"""An operation that says nothing of how its result is shown."""

PRINTERS: dict[type | str, Callable[[Printer, Any], None]] = {}
"""What prints a result: by its class, or by the view that its operation declares."""

P = TypeVar("P", bound=Callable[..., None])


def prints(*what: type | str) -> Callable[[P], P]:
    """Make a method of the printer print results of these classes, or such views of them."""

    def mark(method: P) -> P:
        PRINTERS.update(dict.fromkeys(what, method))
        return method

    return mark


class Printer:
    """Prints what one command gives: one result, or a stream of them."""

    def __init__(
        self,
        options: Options,
        form: str | None = None,
        reactions: Mapping[str, str] | None = None,
        arguments: Mapping[str, Any] = NOTHING,
        meta: Meta = ANY,
    ) -> None:
        self.meta = meta
        self.arguments = arguments
        self.reactions = reactions or {}
        """What is done at events: commands by the word of a state, and by `notify` how a person is told."""
        self.notifier = None
        if ways := self.reactions.get("notify"):
            from tmuxctl.surfaces.cli.printing import notices

            self.notifier = notices.Notifier(ways)
        self.options = options
        self.form = form
        self._line_open = False
        self._cursor: str | None = None
        if form is not None:
            from tmuxctl.surfaces.cli.printing import table

            table.check_form(form)

    def show(self, result: Any, *, last: bool = True) -> int:
        """Print one result; returns the exit status it means."""
        if result is None:
            return 0
        if self.notifier:
            self.notifier.see(result)
        if self.reactions:
            for word in dict.fromkeys((result.state.value, result.wants)):
                self._react(word, result)
        if self.options.json and self.form is None:
            write_json(to_json(result))
        else:
            PRINTERS.get(self.meta.view or type(result), Printer.print_details)(self, result)
        if last:
            self.end()
        return results.exit_status(result)

    def show_pieces(self, pieces: results.Pieces) -> int:
        """Print one result that comes in pieces, each as it comes."""
        if self.options.json and self.form is None:
            write_pieces("text", map(to_json, pieces))
        else:
            for piece in pieces:
                self.show(piece, last=False)
            self.end()
        return 0

    def _react(self, word: str, event: Any) -> None:
        """Run the user's command for a state, or for what is wanted; what the program shows reaches it as data in its
        environment only."""
        command = self.reactions.get(word)
        if command is None:
            return
        import subprocess

        told = {
            "TMUXCTL_SESSION": event.session,
            "TMUXCTL_STATE": event.state.value,
            "TMUXCTL_EVENT": as_json(to_json(event)),
        }
        # its output must not stand between the lines of this command
        done = subprocess.run(
            ["/bin/sh", "-c", command], env={**os.environ, **told}, stdin=subprocess.DEVNULL, stdout=sys.stderr
        )
        if done.returncode:
            self._note(f"--on-{word} for {event.session}: exit status {done.returncode}")

    def end(self) -> None:
        """Finish the last line of a stream, and tell the cursor behind it."""
        if self._line_open:
            write("\n")
        if self._cursor and not self.options.quiet:
            tell(f"cursor: {flat(self._cursor)}")
        self._line_open, self._cursor = False, None

    def seen(self, details: Mapping[str, Any]) -> None:
        """Print what was seen until a time ran out, unless the error object carries it."""
        found = next((details[name] for name in ("seen", "screen", "text", "output") if details.get(name)), None)
        if isinstance(found, (str, bytes)) and not self.options.json:
            self._text(found)
            self.end()

    def _text(self, text: str | bytes) -> None:
        if text:
            write(shown(text) if isinstance(text, str) else text)
            self._line_open = isinstance(text, str) and not text.endswith("\n")

    def _plain_text(self, text: str) -> None:
        from tmuxctl.terminal.tmux import screen

        self._text(screen.strip_escapes(text))

    def _note(self, text: str) -> None:
        note(text, self.options)

    def _lines(self, *lines: str) -> None:
        write("".join(f"{shown(line)}\n" for line in lines))

    # what is printed of each class of results, and the views that single operations have of theirs

    @prints(results.Screen)
    def print_screen(self, result: Any) -> None:
        for row in result.scrollback or ():
            write(f"{shown(row)}\n")
        if result.moment is not None:
            self._note(f"as it was at {result.at or 'an unknown time'}: {flat(result.moment)}")
        if result.approximate:
            self._note("a part of this screen is not known: it was drawn before what the journal can tell")
        self._text(result.ansi if result.ansi is not None else result.text)

    @prints(results.Output)
    def print_output(self, result: Any) -> None:
        if result.truncated:
            self._note("older output is gone: more was printed than the journal keeps")
        self._text(result.data or result.text)

    @prints(results.Marked)
    def print_marked(self, result: Any) -> None:
        if not self.options.quiet:
            self._lines(f"{result.session}: {flat(result.text)} is {flat(result.cursor)}")

    @prints(results.Exported)
    def print_exported(self, result: Any) -> None:
        if result.estimated:
            self._note("times between known moments are estimated")
        if result.missing:
            self._note(f"no font has these characters: {flat(result.missing[:40])}")
        if not self.options.quiet:
            self._lines(f"{flat(result.file)}: {result.seconds:.1f} s")

    @prints(results.Reported)
    def print_reported(self, result: Any) -> None:
        if not self.options.quiet:
            counts = ((result.turns, "turn"), (result.questions, "question"))
            told = ", ".join(f"{count} {what}{'' if count == 1 else 's'}" for count, what in counts)
            self._lines(f"{flat(result.file)}: {told}")

    @prints(results.Recorded)
    def print_recorded(self, result: Any) -> None:
        name, file = result.session, result.file and flat(result.file)
        if self.options.quiet:
            return
        if result.recording:
            self._note(f"{name} is recorded{f' to {file}' if file else ''}; end it: tmuxctl rec {name} --stop")
        elif file:
            self._lines(file)
        else:
            self._note(f"recorded; write it: tmuxctl export {name} {name}.cast --since {flat(result.cursor)}")

    @prints("cursor")
    def print_read(self, result: Any) -> None:
        self.print_output(result)
        self._cursor = result.cursor

    @prints(results.Written)
    def print_written(self, result: Any) -> None:
        if result.result == "empty":
            self._note(f"nothing typed: the text is empty; for Enter alone: tmuxctl keys {result.session} Enter")
        elif result.result != "done":
            self._note(f"nothing typed: {flat(result.id)} was written before")
        if result.screen is not None:
            self.print_screen(result.screen)
            if result.wait is not None and result.wait.timed_out:
                self.end()
                self._note(flat(result.wait.why))
        elif result.wait is not None:
            self.print_wait(result.wait)

    @prints(results.Wait)
    def print_wait(self, result: Any) -> None:
        if not self.options.quiet:
            self._lines(flat(result.why))
            if result.timed_out:
                self._text(result.text or "")
                self.end()
                if result.state is not None:
                    stop = f"; stop it: tmuxctl keys {result.session} C-c" if result.state.value == "busy" else ""
                    self._note(f"{result.session} goes on{stop}")

    @prints(results.Waits)
    def print_waits(self, result: Any) -> None:
        if not self.options.quiet:
            self._lines(*(f"{one.session}: {flat(one.why)}" for one in result.waits))
        else:
            self._lines(*(one.session for one in result.waits if one.matched))

    @prints(results.Answer)
    def print_answer(self, result: Any) -> None:
        if result.answer:
            # what a program told of itself is word for word what its model wrote, escape sequences and all
            told = result.source in ("hook", "transcript")
            (self._plain_text if told else self._text)(result.answer)
            self._text("\n")
        if result.truncated:
            self._note(
                f"the answer is incomplete: more was printed than it can hold; all that is kept: tmuxctl log {result.session}"
            )
        if result.passed:
            self._passed(result.passed)
            self._note(f"answered by {result.answered_by} in {result.session}")
        if result.warning is not None:
            self._note(result.warning)
        self._ending(result)

    @prints(results.Told)
    def print_told(self, result: Any) -> None:
        if result.answer is not None:
            self.print_answer(result.answer)
        elif result.delivered:
            self._note(f"{result.session} was told")
        else:
            self._note(f"{result.session} will be told: {flat(result.why or 'it does not take a text now')}")

    @prints(results.Inbox)
    def print_inbox(self, result: Any) -> None:
        for one in result.messages:
            self._lines(f"{flat(one.at)}  {flat(one.sender)}: {flat(one.text)}")

    def _ending(self, result: results.Answer) -> None:
        """Say how a turn ended, where that was not with an answer alone."""
        if result.asking is not None:
            self._asked(result, result.asking)
        elif result.error is not None:
            # an error is told with --quiet, too
            tell(f"tmuxctl: {result.session}: {flat(with_socket(result.error, self.options))}")
        elif result.timed_out:
            self._note(f"{result.session} is still {result.state.value} after {result.elapsed:.3g} s")
        elif result.submitted.evidence and not result.submitted.ok and result.state.value != "exited":
            why = result.submitted.evidence
            self._note(f"not submitted to {result.session}: {why}; look at it: tmuxctl screen {result.session}")
        elif result.state.value == "unknown":
            self._note(f"nothing shows whether {result.session} is done; --strict keeps waiting")
        elif result.kind in (InputKind.LINE, InputKind.CONTINUATION):
            name, unfinished = result.session, result.kind is InputKind.CONTINUATION
            more = "the rest of its input" if unfinished else "a line of input"
            stop = f"; or cancel it: tmuxctl keys {name} C-c" if unfinished else ""
            hint = f"send it: tmuxctl send {name} TEXT{stop}"
            self._note(f"{name} is not at its prompt: it waits for {more}; {hint}")
        elif result.state.value == "exited":
            self._note(f"the program in {result.session} has ended")
        elif not result.complete:
            self._note(f"the answer may be incomplete; look at the screen: tmuxctl screen {result.session}")

    def _asked(self, result: results.Answer, asking: results.Asking) -> None:
        """Say what a program asks, and how it is answered."""
        self._note(f"{result.session} is asking ({result.kind}): {flat(asking.question)}")
        ids = ", ".join(flat(one.id) for one in asking.options)
        answer = f"tmuxctl decide {result.session}"
        answer += " --secret-from-env VARIABLE" if asking.kind.traits.hidden else ""
        self._note(f"options: {ids}       answer: {answer} OPTION" if ids else f"answer: {answer}")

    def _passed(self, passed: Sequence[Any]) -> None:
        """Say why other programs were not taken."""
        for one in passed:
            self._note(f"{one.profile or one.session}: {flat(one.message)}")

    @prints(results.Decided)
    def print_decided(self, result: Any) -> None:
        asked = result.asked
        if result.option is not None:
            self._lines(f"{result.session}: {flat(result.option)}, now {result.state.value}")
            return
        self._lines(f"{flat(asked.question)}   ({asked.kind}, {asked.id})")
        for one in asked.options:
            default = "  (default)" if one.id == asked.default else ""
            label = f"  {flat(one.label)}" if one.label != one.id else ""
            self._lines(f"  {flat(one.id)}{label}{default}")

    @prints(results.Batch)
    def print_batch(self, result: Any) -> None:
        for step in result.steps:
            if self._line_open:
                self.end()
            if not self.options.quiet:
                self._lines(f"{step.number} {flat(step.operation)}: {_sum_up(step)}")
            if step.error and (hint := step.error.get("hint")):
                self._note(f"step {step.number}: {flat(str(hint))}")
            self._step(step.result)
        self.end()
        if not result.ok:
            left = sum(step.outcome == "not_run" for step in result.steps)
            why = f"step {result.failed} failed" if result.failed else "the time is over" if result.timed_out else ""
            self._note("; ".join(filter(None, (why, f"not run: {left} of {len(result.steps)} steps" if left else ""))))

    def _step(self, result: Any) -> None:
        """Print what a step of a batch showed, beside its line."""
        if isinstance(result, results.Ran):
            # between lines of ours: the exact bytes are in the JSON
            self._plain_text(result.output)
            self._run_ending(result)
        elif isinstance(result, results.Wait):
            self._text(result.text or "" if result.timed_out else "")
        elif isinstance(result, results.Written):
            self._step(result.screen or result.wait)
        elif result is not None:
            PRINTERS.get(type(result), Printer.print_details)(self, result)

    @prints(results.Event)
    def print_event(self, result: Any) -> None:
        self._lines(f"{result.time[11:19]}  {self._event_text(result)}")

    @prints(results.MachineEvent)
    def print_machine_event(self, result: Any) -> None:
        # of several days
        time, number = (result.time or "")[:19].replace("T", " "), "" if result.number is None else result.number
        missing = "events before this are not known" if result.lost is None else f"{result.lost} events were lost"
        told = {"lost": missing, "silent": "is not heard any more", "heard": "is heard again"}.get(result.kind)
        text = self._event_text(result.event) if result.event else f"{result.machine}: {told}"
        self._lines(f"{number:>6}  {time:19}  {text}")

    def _event_text(self, result: Any) -> str:
        """A change of state without its time."""
        from tmuxctl.surfaces.cli.printing import color

        state = color.state(result.state.value, result.state.value, sys.stdout, self.options)
        kind = f" ({result.kind})" if result.kind else ""
        question = f"  ? {flat(result.asking.question)}" if result.asking else ""
        return f"{result.session}  {state}{kind}  {flat(result.why or '')}{question}"

    @prints(results.Ran)
    def print_ran(self, result: Any) -> None:
        write(result.data)
        self._run_ending(result)

    def _run_ending(self, result: results.Ran) -> None:
        """Say how a command ended, where that was not with a status alone."""
        if result.truncated:
            self._note("more was printed than --max-bytes allows, and the rest was left out; try --max-bytes 64M")
        if result.timed_out:
            name, own = result.session, self.meta.waiting and self.meta.waiting.transient
            end = f"it still runs; stop it: tmuxctl keys {name} C-c" if not own else "it was ended"
            self._note(f"timed out after {result.elapsed:.3g} s; {end}")
        elif result.signal is not None:
            self._note(f"the program was ended by signal {flat(result.signal)}")
        elif result.exit_status is None:
            self._note("the program ended; its exit status is unknown")

    @prints(results.Sessions)
    def print_sessions(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import table

        if self.form is not None:
            self._lines(*(table.formed(self.form, one) for one in result.sessions))
        elif self.options.quiet:
            self._lines(*(one.address for one in result.sessions))
        elif not result.sessions:
            start = "no sessions; start one: tmuxctl new -- python3"
            told = "no session matches; to list all: tmuxctl ls" if self.arguments else start
            self._note(with_socket(told, self.options))
        else:
            self._lines(*table.sessions(result.sessions, self.options))
        for one in result.problems:
            tell(f"tmuxctl: {flat(one.machine)}: {flat(one.message)}\n  {flat(one.hint)}")

    @prints(results.StatusLine)
    def print_status_line(self, result: Any) -> None:
        # a bar shows the last line: where it follows, nobody any more is a line too
        if result.line or self.arguments.get("follow"):
            self._lines(result.line)

    @prints(Session)
    def print_session(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import table

        self._lines(result.name if self.options.quiet else table.line(result, self.options))
        self._passed(result.passed)

    @prints("started")
    def print_new(self, result: Any) -> None:
        PRINTERS[type(result)](self, result)
        if not {"command", "profile", "candidates"} & self.arguments.keys() and _is_program(self.arguments.get("name")):
            name = self.arguments["name"]
            self._note(f"{name} is only the name of this session; to run the program: tmuxctl new -- {name}")

    @prints("tags")
    def print_tag(self, result: Any) -> None:
        self._lines(*([result.name] if self.options.quiet else map(flat, result.tags)))

    @prints(results.Plan)
    def print_plan(self, result: Any) -> None:
        if self.options.quiet:
            self._lines(result.name)
        else:
            from tmuxctl.surfaces.cli.printing import table

            found = {name: value for name, value in to_json(result).items() if name != "passed"}
            self._lines(*table.pairs(found.items()))
            self._passed(result.passed)

    @prints(results.Killed)
    def print_killed(self, result: Any) -> None:
        self._lines(*(one.session for one in result.killed))
        for one in result.killed:
            if one.escaped:
                self._note(f"{one.session}: could not be ended: {', '.join(map(str, one.escaped))}")
            if one.strays:
                names = ", ".join(f"{stray.pid} ({stray.name})" for stray in one.strays)
                self._note(f"{one.session}: processes that may belong to it were left alone: {names}")
            self._left(one.left)

    @prints(results.Restored)
    def print_restored(self, result: Any) -> None:
        if not self.options.quiet:
            size = max((len(one.session) for one in result.sessions), default=0)
            for one in result.sessions:
                told = flat(f"{one.outcome}: {one.message}" if one.message else one.outcome)
                self._lines(f"{one.session:{size}}  {told}")
        else:
            self._lines(*(one.session for one in result.sessions if one.outcome != "lost"))
        for one in result.sessions:
            self._missing(one)
        if result.dry_run:
            self._note("nothing was started")
        elif not result.sessions:
            self._note("nothing is lost")

    def _missing(self, one: results.Restoring) -> None:
        """Say what a session does not have as before."""
        if one.from_login:
            self._note(f"{one.session}: taken from the environment at login: {', '.join(one.from_login)}")
        if one.secret_missing:
            missing = ", ".join(one.secret_missing)
            self._note(f"{one.session}: started without variables that were never stored: {missing}")
        if one.running:
            names = ", ".join(f"{stray.pid} ({stray.name})" for stray in one.running)
            self._note(
                f"{one.session}: still running from its earlier life, without a terminal (`tmuxctl kill` ends it too): {names}"
            )
        if one.outcome == "lost" and one.hint:
            self._note(f"{one.session}: {one.hint}")

    @prints(results.Synced)
    def print_synced(self, result: Any) -> None:
        self._lines(*(f"{one.session}  {flat('; '.join(one.told)) or 'nothing new'}" for one in result.synced))

    @prints(results.Pruned)
    def print_pruned(self, result: Any) -> None:
        self._lines(*result.pruned)
        self._left(result.left)
        if result.dry_run:
            self._note("nothing was removed")

    def _left(self, left: Sequence[str]) -> None:
        """Say what was not removed."""
        for one in left:
            self._note(flat(one))
        if left:
            self._note("resolve that, then: tmuxctl prune (with --force what was kept is lost)")

    @prints(results.ServiceInstalled)
    def print_serviceinstalled(self, result: Any) -> None:
        files = (result, result.serve) if result.serve else (result,)
        if result.dry_run:
            write("\n".join(one.text for one in files))
            return
        self._lines(*(one.service if self.options.quiet else clean(one.file) for one in files))
        if result.server is not None:
            self._note(
                f"the running server (pid {result.server}) was started by a command: the service waits for its end"
            )
        if result.linger is False:
            self._note("the server ends when you log out; to keep it: tmuxctl service install --linger")

    @prints(results.ServiceRemoved)
    def print_serviceremoved(self, result: Any) -> None:
        if result.removed:
            self._lines(result.service if self.options.quiet else clean(result.file))
        else:
            self._note(f"there is no {result.file}")
        if result.serve is not None:
            self._lines(os.path.basename(result.serve) if self.options.quiet else clean(result.serve))
        if result.running:
            self._note("the server goes on with its sessions; end them: tmuxctl service uninstall --stop")

    @prints(results.ServiceStatus)
    def print_servicestatus(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import table

        found = to_json(result)
        serve = found.pop("serve")
        self._lines(*table.pairs({**found, **{f"serve_{name}": one for name, one in (serve or {}).items()}}.items()))

    @prints(results.HooksChanged)
    def print_hookschanged(self, result: Any) -> None:
        if not self.options.quiet:
            self._lines(*(clean(line) for line in result.diff.splitlines()))
        self._note_change(result)

    def _note_change(self, result: Any) -> None:
        if not result.changed:
            self._note(f"nothing to do: {result.file}")
        elif not result.dry_run:
            self._note(f"wrote {result.file}" + (f", as it was: {result.backup}" if result.backup else ""))

    @prints(results.McpClientChanged)
    def print_mcpclientchanged(self, result: Any) -> None:
        if not self.options.quiet or not result.file:
            self._lines(*(clean(line) for line in result.change.splitlines()))
        if result.file:
            self._note_change(result)

    @prints(results.SkillPages)
    def print_skillpages(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import table

        names = [one.name for one in result.pages]
        self._lines(*(names if self.options.quiet else table.pairs((one.name, one.title) for one in result.pages)))

    @prints(results.SkillText)
    def print_skilltext(self, result: Any) -> None:
        write(result.text)

    @prints(results.SkillChanged)
    def print_skillchanged(self, result: Any) -> None:
        for one in result.files:
            self._lines(clean(one.file) if self.options.quiet else f"{one.change}  {clean(one.file)}")
            if one.backup:
                self._note(f"it was changed by hand; kept as {one.backup}")
        if not result.files:
            self._note(f"nothing to do: {result.folder}")
        elif result.dry_run:
            self._note("nothing was changed")

    @prints(results.TokenMade)
    def print_tokenmade(self, result: Any) -> None:
        self._lines(result.token)
        self._note("keep it: it is not kept here, and cannot be printed again")

    @prints(results.LoginLink)
    def print_loginlink(self, result: Any) -> None:
        if sys.stdout.isatty():
            from tmuxctl.surfaces.cli.printing.qr_code import draw_qr_code

            write(draw_qr_code(result.url))
        self._lines(result.url)
        self._note(f"open it within {result.seconds // 60} minutes; it signs in one browser, as token {result.name}")

    @prints(results.TokenRevoked)
    def print_tokenrevoked(self, result: Any) -> None:
        self._note(f"token {result.name} does not hold any more")

    @prints(results.GatewayKey)
    def print_gateway_key(self, result: Any) -> None:
        if result.text is not None:
            write(result.text)
        elif self.options.quiet:
            self._lines(result.id)
        else:
            self._lines(clean(result.file))
            self._note(
                f"copy it to the {result.role}, by a way that others cannot read, and remove it here: it is a key"
            )
        if not result.loaded:
            self._note("the gateway is not running: it takes the key when it starts")

    @prints(results.GatewayLeaf)
    def print_gateway_leaf(self, result: Any) -> None:
        if result.text is not None:
            write(result.text)
        elif self.options.quiet:
            self._lines(result.name)
        else:
            self._lines(clean(result.file))
            self._note(f"copy it to {result.name}, by a way that others cannot read: tmuxctl gateway up --node FILE")

    @prints(results.GatewayTenant)
    def print_gateway_tenant(self, result: Any) -> None:
        self._note(f"add its hosts and clients: tmuxctl gateway add-host --tenant {result.name}, and add-client")
        if not result.loaded:
            self._note("the gateway does not run, or too few nodes do: events of this tenant are kept once it does")

    @prints(results.GatewayRemoved)
    def print_gateway_removed(self, result: Any) -> None:
        self._note(f"{result.role} {result.id} may not connect any more")

    @prints(results.GatewayPairing)
    def print_gateway_pairing(self, result: Any) -> None:
        if self.options.quiet:
            self._lines(result.name)
            return
        self._lines(f"{result.name}  {result.fingerprint}  {','.join(result.rights)}  {','.join(result.sessions)}")
        if result.host is not None:
            self._note(f"list its sessions: tmuxctl ls --machine {result.name}")

    @prints(results.OwnKey)
    def print_own_key(self, result: Any) -> None:
        if self.options.quiet:
            self._lines(result.fingerprint)
            return
        self._lines(f"{result.fingerprint}  {result.key}" + (f"  host {result.id}" if result.id else ""))
        if result.old:
            self._note(f"the old key is answered to as well: {result.old}; forget it: tmuxctl gateway forget-key")
        if result.untold:
            self._note(f"clients that may know only that: {', '.join(result.untold)}")

    @prints(results.KeyToldTo)
    def print_key_told_to(self, result: Any) -> None:
        self._lines(result.fingerprint)
        if result.told:
            self._note(f"told: {', '.join(result.told)}")
        for one in result.problems:
            self._note(f"not told: {one.machine}: {flat(one.message.removeprefix(f'{one.machine}: '))}")
        if result.old:
            self._note("the old key is kept for who was not told; do it again: tmuxctl machine rotate-key")

    @prints(results.AuthorizedHere)
    def print_authorized_here(self, result: Any) -> None:
        self._lines(f"{result.name}  {result.fingerprint}  {','.join(result.rights)}  {','.join(result.sessions)}")
        self._note(f"this host: {result.host}  {result.key}")

    @prints(results.ClientUnpaired)
    def print_client_unpaired(self, result: Any) -> None:
        self._note(f"{result.name} is let in no more: {result.fingerprint}")

    @prints(results.DenyList, results.SkillFolder)
    def print_json(self, result: Any) -> None:
        import json

        write(json.dumps(to_json(result), indent=2) + "\n")

    @prints("text")
    def print_help(self, result: Any) -> None:
        self._text(result["text"] + "\n")

    @prints("script")
    def print_completion(self, result: Any) -> None:
        write(result["script"])

    @prints(results.ProfileFile)
    def print_profilefile(self, result: Any) -> None:
        if result.source != "new" or result.path is None:
            write(result.name + "\n" if self.options.quiet else result.text)
        else:
            self._lines(clean(result.path))
            self._note(f"edit it there, then: tmuxctl profile test {result.name}")
        for one in result.notes:
            self._note(one)

    @prints(results.ProfileChecked)
    def print_profilechecked(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import table

        if not self.options.quiet:
            notes = f"  ({flat(result.notes)})" if result.notes else ""
            self._lines(f"{result.profile}: {flat(result.version or 'of unknown version')}{notes}")
        self._lines(*table.checks(result.checks, self.options))
        if not self.options.quiet:
            failed = ", ".join(one.name for one in result.checks if one.ok is False)
            self._lines(f"does not fit: {failed}" if failed else "fits, as far as could be seen")

    @prints("path", "written")
    def print_word(self, result: Any) -> None:
        self._lines(clean(result[self.meta.view]))

    @prints(results.Explained, results.Doctor, results.Profiles, results.ProfilesTested, results.Plugins)
    @prints(results.Machines, results.MachineLine, results.MachineTested, results.MachineSetup)
    @prints(results.PluginPage, results.PluginsTested, results.TokensKept, "facts", "settings")
    @prints(results.GatewayMembers, results.GatewayStatus, results.PairedClients)
    def print_table(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import table

        self._lines(*table.LINES[self.meta.view or type(result)](result, self.options))

    @prints(results.TeamPlan)
    def print_team_plan(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import team_lines

        self._lines(*team_lines.plan_lines(result))
        if not result.confirmed:
            self._note(f"nobody has agreed to this yet; have its run: tmuxctl connect up {flat(result.path)}")

    @prints(results.TeamStatus)
    def print_team_status(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import team_lines

        self._lines(*team_lines.status_lines(result))

    @prints(results.TeamList)
    def print_teams(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import team_lines

        if result.teams:
            self._lines(*team_lines.team_rows(result.teams))
        else:
            self._note("no team has had a run; a file to begin with: tmuxctl connect new pipeline team.yaml")

    @prints("records")
    def print_record(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import team_lines

        self._lines(team_lines.record_line(result))

    @prints(results.TeamRun)
    def print_team_run(self, result: Any) -> None:
        if result.result:
            self._plain_text(f"{result.result}\n")
        for name, text in result.results.items():
            self._lines(f"{flat(name)}: {flat(text)}")
        for text in result.left:
            self._note(flat(text))
        why = f": {flat(result.message)}" if result.message else ""
        self._note(f"{result.team} {result.state} ({result.reason}) after {result.turns} turns{why}")

    @prints(results.TeamDown)
    def print_team_down(self, result: Any) -> None:
        for text in result.left:
            self._note(flat(text))
        if not self.options.quiet:
            self._lines(f"{result.team}: {len(result.ended)} sessions ended")

    @prints(results.TeamFile)
    def print_team_file(self, result: Any) -> None:
        if result.text is not None and result.path is None:
            self._text(result.text)
        elif not self.options.quiet:
            self._lines(f"{flat(result.path)}: {result.topology} of {', '.join(result.agents)}")

    @prints(results.TeamReport, results.TeamGraph)
    def print_document(self, result: Any) -> None:
        self._plain_text(result.text)

    @prints("pairs")
    def print_details(self, result: Any) -> None:
        from tmuxctl.surfaces.cli.printing import table

        found = to_json(result)
        self._lines(*(table.pairs(found.items()) if isinstance(found, dict) else [flat(str(found))]))


def _sum_up(step: results.BatchStep) -> str:
    """What became of a step of a batch, on one line."""
    if step.error:
        return flat(f"{step.outcome}: {step.error.get('message')}")
    found = getattr(step.result, "wait", None) or step.result
    if isinstance(found, results.Wait):
        return flat(found.why)
    if isinstance(found, results.Ran) and not found.timed_out:
        return f"exit status {step.exit}"
    told = flat(step.outcome.replace("_", " "))
    if step.truncated:
        return f"{told}; its result was too large to be kept"
    return f"{told}: timed out" if getattr(found, "timed_out", False) else told


def _is_program(name: str | None) -> bool:
    """Whether a session's name is that of a program other than a shell, which is what starts without a command."""
    import shutil

    from tmuxctl.reading.evidence import programs

    return name is not None and not programs.is_shell(name) and shutil.which(name) is not None
