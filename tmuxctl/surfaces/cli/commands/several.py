"""One command for several sessions, on one machine or on many: each is called for on its own, at the same time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from tmuxctl.errors import DecisionNeeded, NotFound, Timeout, TmuxctlError, Usage
from tmuxctl.operations import WHOLE, Cancellation, Operation, to_json
from tmuxctl.results import exit_status
from tmuxctl.surfaces.cli.printing import progress
from tmuxctl.surfaces.cli.printing.output import Options, report, write, write_json
from tmuxctl.surfaces.cli.printing.show import Printer
from tmuxctl.timing import TIMING

AT_ONCE = 32
"""How many sessions are used at once, if `--limit` says nothing else."""


def run_each(
    operation: Operation,
    connect: Callable[[Options], Any],
    arguments: Mapping[str, Any],
    options: Options,
    limit: str | None,
) -> int:
    """Call the operation for each target, and print what they give in the order of the targets; the exit status of the first
    of them that failed, or 0. Usage, NotFound `no_group` for targets that cannot be read, before anything is done."""
    first = operation.parameters[0].name
    targets = list_targets(arguments[first])
    at_once = parse_limit(limit)
    service, cancelled = connect(options), Cancellation()
    ends: list[Future[Any]] = [Future() for _ in targets]
    waiting: queue.SimpleQueue[tuple[str, Future[Any]]] = queue.SimpleQueue()
    for both in zip(targets, ends, strict=True):
        waiting.put(both)

    def work() -> None:
        while not cancelled.is_set():
            try:
                target, end = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                end.set_result(service.call(operation.name, {**arguments, first: target}, cancelled=cancelled))
            except BaseException as error:
                end.set_exception(error)

    for _ in range(min(at_once, len(targets))):
        threading.Thread(target=work, daemon=True).start()
    try:
        status = 0
        for target, end in zip(targets, ends, strict=True):
            given = {**arguments, first: target}
            with progress.waiting(operation, given, options):
                error = _wait_for_error(end)
            if error is not None and not isinstance(error, TmuxctlError):
                raise error
            printer = Printer(options, arguments=given, meta=operation.meta)
            ended = _tell_error(target, error, printer) if error else _tell_result(target, end.result(), printer)
            status = status or ended
        return status
    finally:
        cancelled.set()
        service.close()


def _wait_for_error(end: Future[Any]) -> BaseException | None:
    """The error that it ends with, if any. Sleeps in steps, so that a signal is heard (see WaitTiming)."""
    while True:
        with suppress(TimeoutError):
            return end.exception(timeout=TIMING.wait.signal_seconds)


def list_targets(text: str) -> tuple[str, ...]:
    """The sessions that are meant by `A,B`, by `@GROUP/NAME` (one of each machine of the group), or by both; each once."""
    found: list[str] = []
    for word in text.split(","):
        group, slash, name = word.removeprefix("@").partition("/")
        if not word.startswith("@"):
            found.append(word)
        elif slash and name:
            found += (f"{machine}/{name}" for machine in _find_group(group))
        else:
            hint = f"which session of each machine? @{group}/NAME"
            raise Usage(f"{ascii(word[:40])} names no session", reason="bad_target", hint=hint)
    if not all(found):
        raise Usage("a name is missing between the commas", reason="bad_target", hint="name them so: A,B,C")
    return tuple(dict.fromkeys(found))


def _find_group(name: str) -> Sequence[str]:
    from tmuxctl import machines

    groups = machines.read_groups()
    if name not in groups:
        listed = ", ".join(groups) or "none"
        hint = f'there are: {listed}; write [groups] and {name} = ["web1", "web2"] into {machines.machines_path()}'
        raise NotFound(f"no group {ascii(name[:40])}", reason="no_group", hint=hint)
    if not groups[name]:
        raise NotFound(f"group {name} has no machines", reason="no_group", hint="name some in machines.toml")
    return groups[name]


def parse_limit(limit: str | None) -> int:
    """How many at once; Usage for less than one."""
    if limit is None:
        return AT_ONCE
    if (number := WHOLE.parse(limit)) < 1:
        raise Usage(f"--limit: {number} is less than 1", reason="bad_number", hint="--limit 8")
    return int(number)


def _tell_result(target: str, result: Any, printer: Printer) -> int:
    if printer.options.json:
        write_json({"target": target, **(to_json(result) or {})})
        return exit_status(result)
    _head(target, printer.options)
    return printer.show(result)


def _tell_error(target: str, error: TmuxctlError, printer: Printer) -> int:
    if printer.options.json:
        write_json({"target": target, "error": to_json(error.to_json())})
    else:
        _head(target, printer.options)
        if isinstance(error, (DecisionNeeded, Timeout)):
            printer.seen(error.details)
            printer.end()
        report(error, printer.options)
    return printer.meta.error_status(error)


def _head(target: str, options: Options) -> None:
    """Above what a session gave, as head(1) and tail(1) do with files."""
    if not options.quiet:
        write(f"==> {target} <==\n")
