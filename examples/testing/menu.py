"""A settings menu in curses: the program that test_menu.py tests.

Up and Down select, Left and Right change the volume, Enter changes the sound or leaves, q leaves.
"""

from __future__ import annotations

import argparse
import curses
from collections.abc import Iterator

STEP = 10
LOUD = 80
ENTRIES = ("Volume", "Sound", "Quit")


class Menu:
    """The settings, and which entry is selected."""

    def __init__(self, volume: int) -> None:
        self.volume, self.sound, self.selected = volume, True, 0

    def press(self, key: int) -> bool:
        """Do what the key says; False if the program has to end."""
        entry = ENTRIES[self.selected]
        if key == ord("q") or (key in (curses.KEY_ENTER, ord("\n")) and entry == "Quit"):
            return False
        if key == curses.KEY_UP:
            self.selected = max(self.selected - 1, 0)
        elif key == curses.KEY_DOWN:
            self.selected = min(self.selected + 1, len(ENTRIES) - 1)
        elif key == curses.KEY_LEFT and entry == "Volume":
            self.volume = max(self.volume - STEP, 0)
        elif key == curses.KEY_RIGHT and entry == "Volume":
            self.volume = min(self.volume + STEP, 100)
        elif key in (curses.KEY_ENTER, ord("\n")) and entry == "Sound":
            self.sound = not self.sound
        return True

    def rows(self, columns: int) -> Iterator[tuple[str, int]]:
        """The text of each entry for a screen of so many columns, and its attributes."""
        width = max(columns - 24, 4)
        bar = ("#" * round(self.volume * width / 100)).ljust(width, "-")
        values = {"Volume": f"[{bar}] {self.volume:3}", "Sound": "on" if self.sound else "off", "Quit": ""}
        for number, entry in enumerate(ENTRIES):
            attributes = curses.A_REVERSE if number == self.selected else curses.A_NORMAL
            if entry == "Volume" and self.volume >= LOUD:
                attributes |= curses.color_pair(1)
            yield f" {entry:10}{values[entry]}".ljust(columns - 4), attributes


def draw(screen: curses.window, menu: Menu) -> None:
    """Draw everything anew, for the size that the terminal has now."""
    rows, columns = screen.getmaxyx()
    screen.erase()
    screen.addnstr(0, 2, "Settings", columns - 3, curses.A_BOLD)
    for number, (text, attributes) in enumerate(menu.rows(columns)):
        screen.addnstr(2 + number, 2, text, columns - 3, attributes)
    screen.addnstr(rows - 1, 2, "arrows: select, change   Enter: do   q: quit", columns - 3, curses.A_DIM)
    screen.refresh()


def run(screen: curses.window, menu: Menu) -> None:
    """Show the menu until the user leaves it."""
    curses.curs_set(0)
    curses.use_default_colors()
    curses.init_pair(1, curses.COLOR_RED, -1)
    while True:
        draw(screen, menu)
        if not menu.press(screen.getch()):
            return


def main() -> None:
    """Read the options, show the menu, print what was chosen."""
    parser = argparse.ArgumentParser(prog="menu", description="A settings menu.")
    parser.add_argument("--volume", type=int, choices=range(101), metavar="0..100", default=50)
    menu = Menu(parser.parse_args().volume)
    curses.wrapper(run, menu)
    print(f"volume {menu.volume}, sound {'on' if menu.sound else 'off'}")


if __name__ == "__main__":
    main()
