"""Several operations on one session, in order and in one call: all are checked before the first is carried out."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tmuxctl.config import suggest
from tmuxctl.control.caller_files import read_given_file
from tmuxctl.control.input import deciding
from tmuxctl.control.sessions import finding
from tmuxctl.control.waiting import waits
from tmuxctl.errors import Conflict, NotFound, TmuxctlError, Unreachable, Usage
from tmuxctl.operations import Anchor, Call, Cancelled, Operation, current, keep_result, to_json, under
from tmuxctl.results import TIMED_OUT, Batch, BatchStep, exit_status
from tmuxctl.terminal.input.keys import tmux_keys
from tmuxctl.terminal.tmux import lease, options, server
from tmuxctl.terminal.tmux.journal import parse_cursor
from tmuxctl.untrusted import JSON_LIMIT, has_more_values, parse_json
from tmuxctl.value import Value, changed

if TYPE_CHECKING:
    from tmuxctl.control.machine import Machine
    from tmuxctl.terminal.tmux.server import Pane

INTERRUPTED = 130
"""What Ctrl-C ends a command with, as in a shell: 128 and the number of SIGINT."""

INPUTS = ("send", "keys", "ask", "exec", "decide")
STEPS = (*INPUTS, "wait", "screen")
"""The operations that a step may be."""

VALUES_MOST = 200_000
"""Values of JSON in the text of all steps, as many as a call from another machine may have: an empty object takes 30 times as much
memory as its text."""

EXAMPLE = """[{"send": "make"}, {"wait": {"prompt": true}}]"""

ELSEWHERE: Mapping[str, str] = {
    "run": '{"exec": "CMD"}',
    "sendKeys": '{"keys": ["Enter"]}',
    "press": '{"keys": ["Enter"]}',
    "type": '{"send": {"text": "TEXT", "enter": false}}',
    "paste": '{"send": {"text": "TEXT", "enter": false, "paste": true}}',
    "expect": '{"wait": {"text": "RE"}}',
    "sleep": '{"wait": {"text": "RE"}}, for what the program prints then',
}
"""What other tools call a step, and how it is written here."""

CHECKS: Mapping[str, Callable[[Any], object]] = {
    "re": waits.find_search,
    "key": tmux_keys,
    "cursor": lambda since: since == "screen" or parse_cursor(since),
    "decide": deciding.parse_policies,
}
"""What the values of parameters of these kinds, or names, have to pass: their operations would refuse them only when they
begin, after other steps. Each raises Usage."""


class PlannedStep(Value):
    """One operation that is to be carried out, with its checked arguments, but for the session."""

    number: int
    operation: Operation
    arguments: Mapping[str, Any]


def parse_steps(
    given: Any, file: str | None, find: Callable[[str], Operation], *, limit: int
) -> tuple[PlannedStep, ...]:
    """The steps that a list of objects describes, a text of JSON, or a file of it: an array, or an object on each line.

    `find` gives an operation by its name. Raises Usage, which names the first step that cannot be carried out so, or for
    more than `limit` steps.
    """
    if (given is None) == (file is None):
        raise Usage("give the steps, or --file", reason="missing", hint=f"tmuxctl batch NAME '{EXAMPLE}'")
    if file is not None:
        given = read_given_file(file)
    found = _parse_text(given, limit) if isinstance(given, (str, bytes)) else given
    if not isinstance(found, (list, tuple)):
        raise Usage("the steps are neither a list nor a text", reason="bad_type", hint=f"as in {EXAMPLE}")
    if not found:
        raise Usage("there are no steps", reason="missing", hint=f"as in {EXAMPLE}")
    _check_count(len(found), limit)
    return tuple(_parse_step(number, one, find) for number, one in enumerate(found, 1))


def _check_count(steps: int, limit: int) -> None:
    if steps > limit:
        raise Usage(f"{steps} steps are more than {limit}", reason="too_many_steps", hint="use several batches")


def _parse_text(text: str | bytes, limit: int) -> Sequence[Any]:
    if len(text) > JSON_LIMIT:
        hint = f"at most {JSON_LIMIT >> 20} MiB"
        raise Usage(f"the steps are more than {JSON_LIMIT} bytes", reason="too_long", hint=hint)
    try:
        text = text.decode("utf-8-sig") if isinstance(text, bytes) else text
    except UnicodeDecodeError:
        raise Usage("the steps are not UTF-8", reason="bad_text", hint=f"as in {EXAMPLE}") from None
    if has_more_values(text, VALUES_MOST):
        hint = "give longer texts, or use several batches"
        raise Usage(f"the steps have more than {VALUES_MOST} values of JSON", reason="too_long", hint=hint)
    if text.lstrip().startswith("["):
        value = _parse_json(text, "the steps are")
        assert isinstance(value, list)
        return value
    # not str.splitlines: a JSON string may hold U+2028
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    _check_count(len(lines), limit)
    # a line that is no JSON ends it, so what was counted of all lines together is right for those that are read
    return [_parse_json(line, f"line {number} of the steps is") for number, line in lines]


def _parse_json(text: str, what: str) -> Any:
    try:
        return parse_json(text, object_pairs_hook=_to_object)
    except ValueError as error:
        hint = f"write an array, or an object on each line: {EXAMPLE}; from a file: --file FILE"
        raise Usage(f"{what} no JSON: {error}", reason="bad_json", hint=hint) from None


def _to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        # the last would count, and the others would be forgotten without a word
        raise ValueError("an object has the same key twice; each step is an object of its own")
    return found


def _parse_step(number: int, value: Any, find: Callable[[str], Operation]) -> PlannedStep:
    name = _name_operation(number, value)
    operation = find(name)
    # the session is that of the batch
    operation = changed(
        operation, parameters=tuple(one for one in operation.parameters if one.kind.word not in ("name", "names"))
    )
    given = value[name]
    if not isinstance(given, dict):
        first = next((one for one in operation.parameters if one.positional), None)
        if first is None or given is None:
            hint = f'{{"{name}": {{}}}}, or with parameters: tmuxctl {name} --help'
            raise Usage(f"step {number}: {name} takes an object", reason="bad_step", hint=hint)
        given = {first.name: given}
    try:
        arguments = operation.arguments(given)
        for one in operation.parameters:
            check = CHECKS.get(one.kind.word) or CHECKS.get(one.name)
            if check and arguments.get(one.name) is not None:
                check(arguments[one.name])
    except Usage as error:
        raise Usage(f"step {number}: {error.message}", reason=error.reason, hint=error.hint) from None
    current().demand(operation.meta.right, f"step {number}, {name},")
    return PlannedStep(number, operation, arguments)


def _name_operation(number: int, value: Any) -> str:
    """The one operation that a step names."""
    if not isinstance(value, dict):
        hint = f'write {{"{value}": {{}}}}' if value in STEPS else f"as in {EXAMPLE}"
        raise Usage(f"step {number} is no object", reason="bad_step", hint=hint)
    names: list[str] = [name for name in value if name in STEPS]
    if len(names) == 1 and len(value) == 1:
        return names[0]
    if len(names) > 1:
        hint = "give each an object of its own: " + ", ".join(f'{{"{name}": ...}}' for name in names)
        raise Usage(f"step {number} names {' and '.join(names)}", reason="bad_step", hint=hint)
    if names:
        others = ", ".join(ascii(name)[:40] for name in value if name not in STEPS)
        hint = f'parameters stand inside: {{"{names[0]}": {{"...": ..., {others[:60]}: ...}}}}'
        raise Usage(f"step {number}: {others[:200]} beside {names[0]}", reason="bad_step", hint=hint.replace("'", '"'))
    word = next(iter(value), "")
    hint = f"a step is one of {', '.join(STEPS)}, as in {EXAMPLE}"
    if word in ELSEWHERE and len(value) == 1:
        hint = f"in tmuxctl: {ELSEWHERE[word]}"
    elif near := suggest(str(word), STEPS):
        hint = near
    raise Usage(f"step {number}: no step {ascii(word)[:40]}", reason="bad_step", hint=hint)


def run(
    machine: Machine,
    session: str,
    steps: Sequence[PlannedStep],
    carry_out: Callable[[PlannedStep], Any],
    *,
    keep_going: bool = False,
    timeout: float | None = None,
) -> Batch:
    """Carry out the steps one after the other, up to the first that fails, or all with `keep_going`; `timeout` (seconds)
    bounds the whole. `carry_out` does one of them.

    Raises what finding the session raises, Conflict `busy` while another batch is under way in it, and whatever interrupts
    a step that is no failure of it; with this goes what was done so far (`read_result`).
    """
    left = current().left(timeout)
    deadline = None if left is None else time.monotonic() + left
    pane = finding.find_session(machine, session)
    sequence = _Sequence(machine, pane, steps, carry_out, deadline)
    if not sequence.begin():
        raise Conflict(f"another batch is under way in {pane.name}", reason="busy", hint="try again when it has ended")
    try:
        sequence.run(keep_going)
    except BaseException as error:
        done = sequence.result(_status_of(error))
        keep_result(error, done)
        if isinstance(error, TmuxctlError):
            error.details["batch"] = to_json(done)
        raise
    finally:
        sequence.end()
    return sequence.result()


def _status_of(error: BaseException) -> int:
    """The exit status of a command that this ends: an error of ours and the end by SIGTERM have one, Ctrl-C is 130."""
    status: int = getattr(error, "exit", None) or getattr(error, "status", None) or INTERRUPTED
    return status


class _Sequence:
    """The steps of one batch on their way."""

    def __init__(
        self,
        machine: Machine,
        pane: Pane,
        steps: Sequence[PlannedStep],
        carry_out: Callable[[PlannedStep], Any],
        deadline: float | None,
    ) -> None:
        self.machine, self.pane, self.steps, self.carry_out, self.deadline = machine, pane, steps, carry_out, deadline
        self.call, self.clock = current(), machine.clock
        self.holder = machine.new_holder()
        self.began = self.renewed = self.clock.monotonic()
        self.anchor = Anchor()
        self.ended: list[BatchStep] = []
        self.room = machine.limits.batch_bytes
        self.timed_out = False

    def begin(self) -> bool:
        """Be the only batch of this session; False if it has another one."""
        return lease.take_turn(self.machine.io, self.holder, self.pane, name=options.BATCH)

    def end(self) -> None:
        """Let another batch begin."""
        with suppress(TmuxctlError):
            lease.release_lease(self.machine.io, self.holder, self.pane.name, name=options.BATCH)

    def run(self, keep_going: bool) -> None:
        """Carry out the steps, as far as they go."""
        for step in self.steps:
            self.call.check()
            if self.deadline is not None and time.monotonic() >= self.deadline:
                self.timed_out = True
                return
            if not self._attempt(step) and not keep_going:
                return

    def result(self, status: int = 0) -> Batch:
        """What became of each step so far; `status` is the exit status if something else than a step ends the batch."""
        rest = [BatchStep(step.number, step.operation.name, "not_run") for step in self.steps[len(self.ended) :]]
        failed = next((one for one in self.ended if one.exit), None)
        otherwise = TIMED_OUT if self.timed_out else status
        return Batch(
            session=self.pane.name,
            ok=all(one.outcome == "done" for one in (*self.ended, *rest)),
            exit=failed.exit or 0 if failed and not status else otherwise,
            failed=failed.number if failed else None,
            timed_out=self.timed_out,
            steps=(*self.ended, *rest),
            elapsed=self._seconds_since(self.began),
        )

    def _attempt(self, step: PlannedStep) -> bool:
        """Carry out one step and note what became of it; whether it succeeded."""
        if step.operation.name in INPUTS:
            self.anchor = Anchor()
        began = self.clock.monotonic()
        ended = BatchStep(step.number, step.operation.name, "done", 0)
        try:
            with under(self._call_of(step)):
                if self.ended:
                    self._check_session()
                found = self.carry_out(step)
            ended = self._with_result(ended, found)
        except BaseException as error:
            if not isinstance(error, TmuxctlError) or isinstance(error, Cancelled):
                ended = changed(ended, outcome="interrupted", exit=None)
                raise
            status = step.operation.meta.error_status(error)
            ended = changed(ended, outcome="failed", exit=status, error=to_json(error.to_json()))
        finally:
            self.ended.append(changed(ended, elapsed=self._seconds_since(began)))
        return ended.outcome == "done"

    def _call_of(self, step: PlannedStep) -> Call:
        """The call that a step is: a write has an id of its own, which is the same where the batch is repeated."""
        call = self.call
        identity = f"{call.request_id}s{step.number}"[-64:] if call.repeated else os.urandom(8).hex()
        return changed(
            call,
            request_id=identity,
            deadline=self.deadline,
            # the results are kept whole
            pieces=None,
            anchor=self.anchor,
            renew=self._renew,
        )

    def _with_result(self, ended: BatchStep, found: Any) -> BatchStep:
        status = exit_status(found)
        self.room -= len(json.dumps(to_json(found), default=ascii))
        fits = self.room >= 0
        return changed(
            ended,
            outcome="failed" if status else "done",
            exit=status,
            result=found if fits else None,
            truncated=not fits,
        )

    def _check_session(self) -> None:
        """Before a later step, renew the lease; NotFound `replaced` if the name is another session's by now."""
        fields = (options.INCARNATION,)
        self.renewed = self.clock.monotonic()
        try:
            own = changed(self.pane, lease="")
            values = lease.take_lease_and_look(self.machine.io, self.holder, own, fields, name=options.BATCH)
        except (NotFound, Unreachable) as error:
            if error.reason == "backend_timeout":
                raise
            return  # the operation tells best what became of the session
        if values is None:
            raise Conflict(f"another batch has begun in {self.pane.name}", reason="busy", hint="wait for its end")
        if values[0] != self.pane.incarnation:
            raise server.replaced_error(self.pane.name)

    def _renew(self) -> None:
        if self.clock.monotonic() - self.renewed > self.machine.timing.turn.renew_seconds:
            self.renewed = self.clock.monotonic()
            with suppress(TmuxctlError):
                lease.take_lease(self.machine.io, self.holder, changed(self.pane, lease=""), name=options.BATCH)

    def _seconds_since(self, moment: float) -> float:
        return round(self.clock.monotonic() - moment, 3)
