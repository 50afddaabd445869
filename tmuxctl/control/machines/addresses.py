"""What another machine's results and errors are called here: each session by its address, `MACHINE/NAME`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from tmuxctl.errors import TmuxctlError
from tmuxctl.value import Value, changed


def carry_out(address: str, call: Callable[[], Any], session: str = "") -> Any:
    """What a call on another machine gives, or the error that it ends with, with addresses for names. `session` is what the
    session that it is about is called there, if there is one."""
    try:
        found = call()
    except TmuxctlError as error:
        name_machine(address, error, session)
        raise
    if isinstance(found, Iterator):
        return _name_each(address, found, session)
    return with_address(address, found)


def _name_each(address: str, found: Iterator[Any], session: str) -> Iterator[Any]:
    try:
        for one in found:
            yield with_address(address, one)
    except TmuxctlError as error:
        name_machine(address, error, session)
        raise


def with_address(address: str, result: Any) -> Any:
    """The result of a call on another machine: a session is told by its address, and a `Session` tells its machine."""
    if not isinstance(result, Value):
        return result
    fields: dict[str, Any] = {}
    for name, value in vars(result).items():
        if name == "session" and isinstance(value, str) and "/" not in value:
            fields[name] = f"{address}/{value}"
        elif name == "machine" and value is None:
            fields[name] = address
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
