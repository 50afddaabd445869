"""A list on the whole screen: arrows move, Enter opens, d asks before it deletes, q leaves. `shelf.py FILE`, a line an item."""

import curses
import sys
from pathlib import Path

HELP = "Enter opens, d deletes, q quits"


def draw(screen: curses.window, rows: list[str], marked: int | None, last: str) -> str:
    """Draw the rows with a line at the bottom, and wait for a key."""
    screen.erase()
    for number, row in enumerate(rows):
        screen.addstr(number, 0, ("> " if number == marked else "  ") + row, curses.A_REVERSE * (number == marked))
    screen.addstr(curses.LINES - 1, 0, last)
    screen.refresh()
    return screen.getkey()


def shelf(screen: curses.window) -> None:
    """The program."""
    file, marked = Path(sys.argv[1]), 0
    curses.curs_set(0)
    while True:
        rows = file.read_text().splitlines()
        marked = max(0, min(marked, len(rows) - 1))
        key = draw(screen, rows, marked, HELP)
        if key == "q":
            return
        if key in ("KEY_DOWN", "KEY_UP"):
            marked += 1 if key == "KEY_DOWN" else -1
        if key == "\n" and rows:
            draw(screen, [f"This is {rows[marked]}."], None, "Press any key")
        if key == "d" and rows and draw(screen, rows, marked, f"Delete {rows[marked]}? [y/N] ") == "y":
            file.write_text("".join(f"{row}\n" for row in rows[:marked] + rows[marked + 1 :]))


curses.wrapper(shelf)
