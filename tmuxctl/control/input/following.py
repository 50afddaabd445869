"""What follows a write in the same call: the wait for a text, and the screen as it is then."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tmuxctl.control.output import captured
from tmuxctl.control.waiting import waits
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.operations import to_json
from tmuxctl.results import Screen, Wait, Written
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.control.input.sending import Typed
    from tmuxctl.control.machine import Machine


def write_and_follow(
    machine: Machine, write: Callable[..., Typed], *, text: str | None, screen: bool, timeout: float | None
) -> Written:
    """Write, then wait until the output after it matches `text` (a regular expression), for at most `timeout` seconds (None:
    the setting), then capture the screen: three exchanges less than three calls need. `write` is called with `followed`.

    Raises Usage for a bad pattern before anything is typed; later errors carry the write in their details.
    """
    if text is None and timeout is not None:
        raise Usage(
            "there is nothing to wait for", reason="bad_option", hint="add --wait-text RE, or leave --timeout out"
        )
    waits.find_search(text)
    typed = write(followed=True)
    try:
        waited = None if text is None else _wait(machine, typed, text, timeout)
        return changed(typed.written, wait=waited, screen=_screen(machine, typed) if screen else None)
    except TmuxctlError as error:
        error.details["written"] = to_json(typed.written)
        raise


def _wait(machine: Machine, typed: Typed, text: str, timeout: float | None) -> Wait:
    wanted, limit = waits.Conditions(text=text), waits.time_limit(machine, timeout)
    if typed.pane is None or typed.last_input is None:
        waiter = waits.make_waiter(machine, typed.written.session, wanted, None)
    else:
        waiter = waits.Waiter(machine, typed.pane, wanted, None, typed.last_input, begun=True)
    with waiter:
        return waiter.until(limit)


def _screen(machine: Machine, typed: Typed) -> Screen:
    if typed.pane is None:
        return captured.screen(machine, typed.written.session, state=False)
    return captured.to_screen(machine, captured.capture_pane(machine, typed.pane))
