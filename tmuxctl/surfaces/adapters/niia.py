r"""niia's commands: `write --session ID $'text\r'`, `wait-idle --session ID`, `get-answer --session ID TEXT`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from tmuxctl.operations import Call, Input, Seconds, SessionName, current, invoke, operation
from tmuxctl.results import Output, Wait, Written


class Niia:
    """niia's operations, carried out by a Control's."""

    def __init__(self, control: Any) -> None:
        self.control = control

    def call(self, name: str, arguments: Mapping[str, Any], **about: Any) -> Any:
        """As `Control.call`."""
        return invoke(self, name, arguments, **about)

    def close(self) -> None:
        """End what the Control keeps open."""
        self.control.close()

    def _control(self, name: str, **arguments: Any) -> Any:
        call: Call = current()
        return self.control.call(name, arguments, request_id=call.request_id, cancelled=call.cancelled)

    @operation(right="write", group="Drive", examples=(r"write --session db $'select 1;\r'",))
    def write(self, text: Annotated[Input, "the bytes to type, as they are"], *, session: SessionName) -> Written:
        """Type bytes exactly as they are, without Enter; as niia spells `send --no-enter --multiline`."""
        written: Written = self._control("send", session=session, text=text, enter=False, multiline=True)
        return written

    @operation(right="read", group="Drive", idempotent=True, examples=("wait-idle --session db",))
    def wait_idle(
        self,
        *,
        session: SessionName,
        timeout: Annotated[Seconds | None, "give up after this long"] = None,
    ) -> Wait:
        """Wait until a session takes the next input; as niia spells `wait --idle`."""
        wanted = {} if timeout is None else {"timeout": timeout}
        waited: Wait = self._control("wait", session=session, idle=True, **wanted)
        return waited

    @operation(right="read", group="Drive", idempotent=True, examples=("get-answer --session db 'select 1'",))
    def get_answer(self, text: Annotated[str, "part of what was typed"], *, session: SessionName) -> Output:
        """Print the answer to the last input that holds a text; as niia spells `read --answer-to`."""
        found: Output = self._control("read", session=session, answer_to=text)
        return found
