r"""niia's commands: `write --session ID $'text\r'`, `wait-idle --session ID`, `get-answer --session ID TEXT`, and the same of a
session of another machine: `remote write MACHINE $'text\r'`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from tmuxctl.errors import Usage
from tmuxctl.operations import TEXT, Input, Seconds, SessionName, ValueKind, invoke, operation
from tmuxctl.results import Output, Wait, Written

Place = Annotated[
    str,
    ValueKind("machine", TEXT.schema, TEXT.parse),
    "a machine whose only session is meant, or MACHINE/NAME",
]


class Niia:
    """niia's operations, carried out by a Control's."""

    tool = "niia"
    """Whose spellings these are."""

    def __init__(self, control: Any) -> None:
        self.control = control

    def call(self, name: str, arguments: Mapping[str, Any], **about: Any) -> Any:
        """As `Control.call`."""
        return invoke(self, name, arguments, **about)

    def close(self) -> None:
        """End what the Control keeps open."""
        self.control.close()

    @operation(right="write", group="Drive", examples=(r"write --session db $'select 1;\r'",))
    def write(self, text: Annotated[Input, "the bytes to type, as they are"], *, session: SessionName) -> Written:
        """Type bytes exactly as they are, without Enter; niia's spelling of `send --no-enter --multiline`."""
        written: Written = self.control.send(session, text, enter=False, multiline=True)
        return written

    @operation(right="read", group="Drive", examples=("wait-idle --session db",))
    def wait_idle(
        self,
        *,
        session: SessionName,
        timeout: Annotated[Seconds | None, "stop waiting after this long"] = None,
    ) -> Wait:
        """Wait until a session takes the next input; niia's spelling of `wait --idle`."""
        waited: Wait = self.control.wait(session, idle=True, timeout=timeout)
        return waited

    @operation(right="read", group="Drive", examples=("get-answer --session db 'select 1'",))
    def get_answer(self, text: Annotated[str, "part of what was typed"], *, session: SessionName) -> Output:
        """Print the answer to the last input that contains a text; niia's spelling of `read --answer-to`."""
        found: Output = self.control.read(session, answer_to=text)
        return found

    @operation(right="write", group="Drive", family=True, examples=(r"remote write web1 $'make\r'",))
    def remote_write(self, place: Place, text: Annotated[Input, "the bytes to type, as they are"]) -> Written:
        """Type bytes exactly as they are into a session of another machine; niia's spelling of `send --no-enter --multiline`."""
        return self.write(text, session=self._find_session(place))

    @operation(right="read", group="Drive", family=True, examples=("remote wait-idle web1",))
    def remote_wait_idle(
        self, place: Place, *, timeout: Annotated[Seconds | None, "stop waiting after this long"] = None
    ) -> Wait:
        """Wait until a session of another machine takes the next input; niia's spelling of `wait --idle`."""
        return self.wait_idle(session=self._find_session(place), timeout=timeout)

    @operation(right="read", group="Drive", family=True, examples=("remote get-answer web1 make",))
    def remote_get_answer(self, place: Place, text: Annotated[str, "part of what was typed"]) -> Output:
        """Print the answer to the last input that contains a text in a session of another machine."""
        return self.get_answer(text, session=self._find_session(place))

    def _find_session(self, place: str) -> str:
        """The address that is meant; Usage `which_session` where a machine has none or several."""
        if "/" in place:
            return place
        found = [one for one in self.control.ls(machine=place).sessions if not one.state.traits.over]
        if len(found) != 1:
            names = ", ".join(one.address for one in found) or f"there is none: tmuxctl new {place}/NAME"
            raise Usage(f"{len(found)} sessions run on {place}", reason="which_session", hint=names)
        return str(found[0].address)
