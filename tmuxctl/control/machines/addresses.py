"""What another machine's results and errors are called here: each session by its address, `MACHINE/NAME`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tmuxctl.errors import TmuxctlError, Unreachable
from tmuxctl.value import Value, changed

NONSENSE = (ValueError, LookupError, ArithmeticError, TypeError, AttributeError, RecursionError)
"""What is raised where something is not as tmux, a shell and our own files have it: a machine may answer anything."""


def carry_out(address: str, call: Callable[[], Any], session: str = "") -> Any:
    """What a call on another machine gives, or the error that it ends with, with addresses for names. `session` is what the
    session that it is about is called there, if there is one. Unreachable `bad_answer` where its answers make no sense."""
    with _naming(address, session):
        found = call()
    if isinstance(found, Iterator):
        return _name_each(address, found, session)
    return with_address(address, found)


def _name_each(address: str, found: Iterator[Any], session: str) -> Iterator[Any]:
    with _naming(address, session):
        for one in found:
            yield with_address(address, one)


@contextmanager
def _naming(address: str, session: str) -> Iterator[None]:
    try:
        yield
    except TmuxctlError as error:
        name_machine(address, error, session)
        raise
    except NONSENSE as error:
        hint = f"is what runs there tmux, and a shell? tmuxctl machine test {address}"
        raise Unreachable(
            f"{address}: what it answers makes no sense ({type(error).__name__})",
            reason="bad_answer",
            hint=hint,
            machine=address,
        ) from error


def with_address(address: str, result: Any) -> Any:
    """The result of a call on another machine: a session is told by its address, and a `Session` tells its machine."""
    if not isinstance(result, Value):
        return result
    fields: dict[str, Any] = {}
    for name, value in vars(result).items():
        if name == "session" and isinstance(value, str) and not value.startswith(f"{address}/"):
            fields[name] = f"{address}/{value}"
        elif name == "machine" and value is None:
            fields[name] = address
        elif isinstance(value, Value) and (named := with_address(address, value)) is not value:
            fields[name] = named
        elif isinstance(value, tuple) and value and isinstance(value[0], Value):
            fields[name] = tuple(with_address(address, one) for one in value)
    return changed(result, **fields) if fields else result


def name_machine(address: str, error: TmuxctlError, session: str = "") -> None:
    """Let an error tell which machine it comes from, and the commands of its hint go there."""
    if "machine" in error.details:
        return
    error.details["machine"] = address
    error.message = f"{address}: {error.message}"
    error.args = (error.message,)
    if session:
        error.hint = re.sub(
            rf"(\btmuxctl [a-z-]+ ){re.escape(session)}(?![\w/-])", rf"\1{address}/{session}", error.hint
        )
    error.hint = re.sub(r"\btmuxctl ls\b", f"tmuxctl ls {address}/", error.hint)
