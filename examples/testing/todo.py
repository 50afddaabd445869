"""A list of things to do, in Textual: the program that test_todo.py tests. It needs Textual: pip install textual.

Enter adds what was typed, Tab goes to the list and back, Delete removes the selected thing, Ctrl-Q quits.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import App, ComposeResult
from textual.binding import Binding
from textual.widgets import Footer, Input, OptionList


class Things(OptionList):
    """The list; its key stands in the footer while it has the focus."""

    BINDINGS: ClassVar = [Binding("delete", "remove", "Remove")]

    def action_remove(self) -> None:
        """Remove the selected thing."""
        if self.highlighted is not None:
            self.remove_option_at_index(self.highlighted)
            self.show_count()

    def show_count(self) -> None:
        """Say how much is left to do."""
        self.border_title = f"{self.option_count} to do"


class Todo(App[None]):
    """An input above a list."""

    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar = [Binding("ctrl+q", "quit", "Quit")]

    def compose(self) -> ComposeResult:
        """The widgets, from top to bottom."""
        yield Input(placeholder="What is there to do?")
        yield Things()
        yield Footer()

    def on_mount(self) -> None:
        """A cursor that blinks would make each picture of the screen another one."""
        self.query_one(Input).cursor_blink = False
        self.query_one(Things).show_count()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Add what was typed to the list."""
        text = event.value.strip()
        event.input.clear()
        event.input.border_title = "" if text else "Type something first"
        if text:
            things = self.query_one(Things)
            things.add_option(text)
            things.show_count()


if __name__ == "__main__":
    Todo().run()
