"""Results as a person reads them, or as one JSON object on a line; and the exit status they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tmuxctl.operations import plain
from tmuxctl.surfaces.cli.output import Options, clean, flat, note, tell, write, write_json

TIMED_OUT, UNTOLD = 124, 125


class Printer:
    """Prints what one command gives: one result, or a stream of them."""

    def __init__(self, verb: str, options: Options, form: str | None = None) -> None:
        self.verb = verb
        self.options = options
        self.form = form
        self._line_open = False
        self._cursor: str | None = None
        if form is not None:
            from tmuxctl.surfaces.cli import table

            table.check_form(form)

    def show(self, result: Any, *, last: bool = True) -> int:
        """Print one result; returns the exit status it means."""
        if result is None:
            return 0
        if self.options.json and self.form is None:
            write_json(plain(result))
        else:
            kind = type(result).__name__
            for method in (f"print_{self.verb}", f"print_{kind.lower()}", "print_details"):
                if hasattr(self, method):
                    getattr(self, method)(result)
                    break
        if last:
            self.end()
        return exit_status(result)

    def end(self) -> None:
        """Finish the last line of a stream, and tell the cursor behind it."""
        if self._line_open:
            write("\n")
        if self._cursor and not self.options.quiet:
            tell(f"cursor: {self._cursor}")
        self._line_open, self._cursor = False, None

    def seen(self, details: Mapping[str, Any]) -> None:
        """Print what was seen until a time ran out, unless the error object carries it."""
        found = next((details[name] for name in ("seen", "screen", "text", "output") if details.get(name)), None)
        if isinstance(found, (str, bytes)) and not self.options.json:
            self._text(found)
            self.end()

    def _text(self, text: str | bytes) -> None:
        if text:
            write(text)
            self._line_open = isinstance(text, str) and not text.endswith("\n")

    def _lines(self, *lines: str) -> None:
        write("".join(f"{line}\n" for line in lines))

    # one method for a kind of result, or for the one command that shows it in its own way

    def print_screen(self, result: Any) -> None:
        for row in result.scrollback or ():
            write(f"{row}\n")
        self._text(result.ansi if result.ansi is not None else result.text)

    def print_output(self, result: Any) -> None:
        if result.truncated:
            note("older output is gone: more was printed than the journal keeps", self.options)
        self._text(result.data or result.text)

    def print_read(self, result: Any) -> None:
        self.print_output(result)
        self._cursor = result.cursor

    def print_written(self, result: Any) -> None:
        if result.result != "done":
            note(f"nothing typed: {flat(result.id)} was written before", self.options)

    def print_wait(self, result: Any) -> None:
        if not self.options.quiet:
            self._lines(flat(result.why))
            if result.timed_out:
                self._text(result.text or "")

    def print_ran(self, result: Any) -> None:
        write(result.data)
        if result.truncated:
            note("more was printed than --max-bytes lets through", self.options)
        if result.timed_out:
            note(f"gave up after {result.elapsed:.3g} s", self.options)
        elif result.exit_status is None and result.signal is None:
            note("it ended, nobody knows how", self.options)

    def print_sessions(self, result: Any) -> None:
        from tmuxctl.surfaces.cli import table

        if self.form is not None:
            self._lines(*(table.formed(self.form, plain(one)) for one in result.sessions))
        elif self.options.quiet:
            self._lines(*(one.name for one in result.sessions))
        else:
            self._lines(*table.sessions(result.sessions, self.options))

    def print_session(self, result: Any) -> None:
        from tmuxctl.surfaces.cli import table

        self._lines(result.name if self.options.quiet else table.line(result, self.options))

    def print_show(self, result: Any) -> None:
        from tmuxctl.surfaces.cli import table

        self._lines(*([result.name] if self.options.quiet else table.facts(result)))

    def print_plan(self, result: Any) -> None:
        if self.options.quiet:
            self._lines(result.name)
        else:
            self.print_details(result)

    def print_killed(self, result: Any) -> None:
        self._lines(*(one.session for one in result.killed))
        for one in result.killed:
            if one.escaped:
                note(f"{one.session}: may have escaped: {', '.join(map(str, one.escaped))}", self.options)

    def print_pruned(self, result: Any) -> None:
        self._lines(*result.pruned)
        if result.dry_run:
            note("nothing was removed", self.options)

    def print_doctor(self, result: Any) -> None:
        from tmuxctl.surfaces.cli import table

        self._lines(*table.checks(result.checks, self.options))

    def print_completion(self, result: Any) -> None:
        write(result["script"])

    def print_config(self, result: Any) -> None:
        from tmuxctl.surfaces.cli import table

        self._lines(*(table.settings(result["settings"]) if "settings" in result else [clean(result["path"])]))

    def print_details(self, result: Any) -> None:
        from tmuxctl.surfaces.cli import table

        found = plain(result)
        self._lines(*(table.pairs(found.items()) if isinstance(found, dict) else [flat(str(found))]))


def exit_status(result: Any) -> int:
    """What a result means: 0 unless a condition did not hold, a check failed, or a program ended otherwise."""
    kind = type(result).__name__
    if kind == "Wait":
        return TIMED_OUT if result.timed_out else int(result.matched is None)
    if kind == "Ran":
        return _status(result)
    return int(kind == "Doctor" and not result.ok)


def _status(ran: Any) -> int:
    """The program's own status as a shell gives it: 128 and the number for a signal."""
    if ran.timed_out:
        return TIMED_OUT
    if ran.signal is not None:
        import signal

        found = signal.Signals.__members__.get(f"SIG{ran.signal}")
        return 128 + found if found is not None else 128 + int(ran.signal) if str(ran.signal).isdecimal() else UNTOLD
    return UNTOLD if ran.exit_status is None else int(ran.exit_status)
