r"""niia's commands: `write --session ID $'text\r'`, `wait-idle --session ID`, `get-answer --session ID TEXT`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from tmuxctl.operations import Input, Seconds, SessionName, invoke, operation
from tmuxctl.results import Output, Wait, Written


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
