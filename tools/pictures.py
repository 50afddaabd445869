"""Makes the pictures of the pages, in docs/pictures: `python -m tools.pictures [NAME...]`.

`top` is the screen of a real `tmuxctl top`. The others are diagrams, drawn here from boxes and arrows. All have a background
of their own, so that they are legible on a light page and on a dark one.
"""

from __future__ import annotations

import html
import subprocess
import sys
from collections.abc import Callable
from typing import Literal, NamedTuple

from tmuxctl.control import Control
from tmuxctl.terminal.picture.render import DARK
from tools import cast

PICTURES = cast.ROOT / "docs" / "pictures"

WIDTH, LINE, PADDING = 916, 20, 12
QUIET = "#9a9a9a"
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
COLOUR = {
    "busy": DARK.colours["yellow"],
    "idle": DARK.colours["green"],
    "asking": DARK.colours["brightmagenta"],
    "ended": DARK.colours["brightred"],
    "person": DARK.colours["brightblue"],
    "quiet": QUIET,
    "plain": DARK.foreground,
}

Side = Literal["left", "right", "top", "bottom"]


class Box(NamedTuple):
    """A box with a title and lines of text below it; a `dashed` one holds other boxes, or what is not certain."""

    x: int
    y: int
    width: int
    height: int
    title: str
    lines: tuple[str, ...] = ()
    colour: str = "plain"
    dashed: bool = False

    def point(self, side: Side, share: float = 0.5) -> tuple[float, float]:
        """The point on a side, by its share of the way from the left or the top."""
        across, down = self.x + self.width * share, self.y + self.height * share
        return {
            "left": (self.x, down),
            "right": (self.x + self.width, down),
            "top": (across, self.y),
            "bottom": (across, self.y + self.height),
        }[side]


class Arrow(NamedTuple):
    """A line through some points with a head at its end, or at both; the label stands at `label_at`, centred."""

    points: tuple[tuple[float, float], ...]
    label: str
    label_at: tuple[float, float]
    both: bool = False


class Diagram(NamedTuple):
    """A picture: what it shows, for those who do not see it, its height, and what is drawn."""

    about: str
    height: int
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]


def main() -> int:
    """Make the pictures named, or all; the exit status."""
    for name in sys.argv[1:] or (*DIAGRAMS, "top"):
        picture = top() if name == "top" else draw(DIAGRAMS[name]())
        (PICTURES / f"{name}.svg").write_text(picture, encoding="utf-8")
        print(f"-- {(PICTURES / name).relative_to(cast.ROOT)}.svg")
    return 0


def draw(diagram: Diagram) -> str:
    """A diagram as SVG."""
    size = f'width="{WIDTH}" height="{diagram.height}" viewBox="0 0 {WIDTH} {diagram.height}"'
    about = html.escape(diagram.about)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{about}">',
            f"<title>{about}</title>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
            f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{QUIET}"/></marker></defs>',
            f'<rect width="100%" height="100%" rx="8" fill="{DARK.background}"/>',
            f'<g font-family="{FONT}" font-size="14" fill="{DARK.foreground}">',
            *(part for box in diagram.boxes for part in _box(box)),
            *(part for arrow in diagram.arrows for part in _arrow(arrow)),
            "</g>",
            "</svg>",
            "",
        ]
    )


def _box(box: Box) -> list[str]:
    colour = COLOUR[box.colour]
    dash = ' stroke-dasharray="6 5"' if box.dashed else ""
    place = f'x="{box.x}" y="{box.y}" width="{box.width}" height="{box.height}"'
    left, top = box.x + PADDING, box.y + 24
    return [
        f'<rect {place} rx="6" fill="none" stroke="{colour}" stroke-width="1.5"{dash}/>',
        f'<text x="{left}" y="{top}" font-weight="bold" fill="{colour}">{html.escape(box.title)}</text>',
        *(
            f'<text x="{left}" y="{top + LINE * number}">{html.escape(line)}</text>'
            for number, line in enumerate(box.lines, 1)
        ),
    ]


def _arrow(arrow: Arrow) -> list[str]:
    path = "M" + "L".join(f"{x:g} {y:g}" for x, y in arrow.points)
    start = ' marker-start="url(#head)"' if arrow.both else ""
    x, y = arrow.label_at
    return [
        f'<path d="{path}" fill="none" stroke="{QUIET}" stroke-width="1.5" marker-end="url(#head)"{start}/>',
        f'<text x="{x:g}" y="{y:g}" text-anchor="middle" font-size="13" fill="{QUIET}">{html.escape(arrow.label)}</text>',
    ]


def states() -> Diagram:
    """From one state to another."""
    starting = Box(16, 150, 130, 76, "starting", ("nothing to be", "seen yet"), "quiet")
    runs = Box(200, 16, 480, 344, "the program runs", (), "quiet", dashed=True)
    idle = Box(224, 62, 180, 96, "idle", ("takes the next input:", "at a prompt, a line,", "in an editor"), "idle")
    busy = Box(224, 244, 180, 96, "busy", ("works: prints,", "computes, or is", "silent"), "busy")
    asking = Box(496, 244, 160, 96, "asking", ("wants a decision:", "yes or no, a menu,", "a password"), "asking")
    unknown = Box(496, 62, 160, 96, "unknown", ("quiet, and no", "evidence either", "way"), "quiet", dashed=True)
    exited = Box(750, 62, 150, 96, "exited", ("ended, with an", "exit status or", "a signal"), "ended")
    lost = Box(750, 244, 150, 96, "lost", ("its tmux server", "is gone: a crash,", "a reboot"), "ended")
    return Diagram(
        "The states of a session: starting; idle, busy, asking or unknown while the program runs; exited or lost",
        408,
        (starting, runs, idle, busy, asking, unknown, exited, lost),
        (
            Arrow((starting.point("right"), runs.point("left", 0.5)), "", (0, 0)),
            Arrow((idle.point("bottom", 0.2), busy.point("top", 0.2)), "input", (240, 206)),
            Arrow((busy.point("top", 0.6), idle.point("bottom", 0.6)), "done", (356, 206)),
            Arrow((busy.point("right", 0.3), asking.point("left", 0.3)), "asks", (450, 264)),
            Arrow((asking.point("left", 0.7), busy.point("right", 0.7)), "decide", (450, 330)),
            Arrow(((680, 110), exited.point("left")), "", (0, 0)),
            Arrow(((680, 292), lost.point("left")), "", (0, 0)),
            Arrow((lost.point("bottom"), (825, 386), (81, 386), starting.point("bottom")), "restore", (440, 380)),
        ),
    )


def attach() -> Diagram:
    """Whose keys reach the program, while a person is attached and otherwise."""
    panels = (
        ("1  detached", "scripts type", "person", False),
        ("2  tmuxctl attach db", "you type, scripts only read", "person", True),
        ("3  C-b d", "scripts type again", "person", False),
    )
    boxes: list[Box] = []
    arrows: list[Arrow] = []
    for number, (title, who, colour, attached) in enumerate(panels):
        left = 16 + 300 * number
        panel = Box(left, 16, 284, 330, title, (who,), "quiet", dashed=True)
        scripts = Box(
            left + 16, 84, 120, 76, "scripts", ("ask, send,", "wait, screen"), "quiet" if attached else "busy"
        )
        program = Box(left + 72, 240, 140, 90, "session db", ("the program", "goes on"), "idle")
        you = Box(left + 148, 84, 120, 76, "you", ("your terminal",) if attached else ("elsewhere",))
        boxes += [panel, scripts, program, you._replace(colour=colour if attached else "quiet", dashed=not attached)]
        reading = Arrow((scripts.point("bottom"), program.point("top", 0.03)), "read", (left + 56, 206))
        typing = Arrow((scripts.point("bottom"), program.point("top", 0.03)), "type, read", (left + 40, 206))
        arrows.append(reading if attached else typing)
        if attached:
            arrows.append(
                Arrow((you.point("bottom"), program.point("top", 0.97)), "type, read", (left + 244, 206), both=True)
            )
    return Diagram(
        "Detached, scripts type into a session; while you are attached and type, they only read; after C-b d they type again",
        362,
        tuple(boxes),
        tuple(arrows),
    )


def places() -> Diagram:
    """Where the things live that tmuxctl works with."""
    command = Box(
        16, 120, 170, 96, "tmuxctl ask db ...", ("a command, which", "ends when it has", "its answer"), "person"
    )
    config = Box(
        16,
        286,
        300,
        96,
        "~/.config/tmuxctl",
        ("config.toml: settings, aliases", "profiles/: programs you know", "plugins/"),
    )
    tmux = Box(346, 16, 554, 236, "tmux server", ("socket: tmux -L tmuxctl",), "idle", dashed=True)
    session = Box(
        366,
        88,
        220,
        124,
        "session db",
        ("terminal: screen, size,", "process, exit status", "options @tmuxctl_*: its id,", "last input, who types"),
        "idle",
    )
    program = Box(690, 102, 190, 96, "sqlite3 shop.db", ("the program, with", "everything that", "it starts"), "busy")
    state = Box(
        346,
        286,
        554,
        116,
        "~/.local/state/tmuxctl",
        (
            "spec.json, profile.json: what was asked for",
            "journal/: every byte that the program printed",
            "events/: what the program reports of its turns",
            "exit: how it ended",
        ),
    )
    return Diagram(
        "tmuxctl is a command that ends; sessions live in a tmux server, their records and output in the state folder",
        418,
        (command, config, tmux, session, program, state),
        (
            Arrow(
                (command.point("right", 0.4), (366, command.point("right", 0.4)[1])),
                "types, looks",
                (270, 150),
                both=True,
            ),
            Arrow((session.point("right", 0.5), program.point("left", 0.5)), "terminal", (638, 146), both=True),
            Arrow((session.point("bottom", 0.6), (498, 286)), "output", (530, 274)),
            Arrow((program.point("bottom"), (785, 286)), "hooks", (812, 274)),
            Arrow((command.point("bottom", 0.3), (67, 286)), "reads", (92, 256)),
            Arrow((command.point("right", 0.8), (260, 197), (260, 260), (375, 260), (375, 286)), "", (0, 0), both=True),
        ),
    )


def top() -> str:
    """The screen of `tmuxctl top`, with programs at work, ready and asking."""
    with cast.place(PROGRAMS) as folder, Control() as control:
        try:
            for name, *argv in SESSIONS:
                subprocess.run(["tmuxctl", "--socket", cast.INNER, "new", "-q", name, "--", *argv], check=True)
            control.new("top", ("tmuxctl", "--socket", cast.INNER, "top"), size="100x10")
            # a pane's title is the host's name until a program sets it
            control.machine.transport.run([("select-pane", "-t", "=top:", "-T", "tmuxctl top")])
            for row in ("setup +asking", r"build +busy +\d+s +\d", "notes +idle"):
                control.wait("top", text=row, since="screen", timeout=60.0)
            picture = control.screen("top", svg=True).svg or ""
        finally:
            cast.end()
    if found := cast.names_of_this_machine(folder, picture):
        raise SystemExit(f"pictures: it shows what belongs to this machine: {', '.join(found)}")
    return picture


PROGRAMS = """
cat >setup.sh <<'END'
#!/bin/sh
printf 'Delete the old shop? [y/N] '
read answer
END
cat >build.sh <<'END'
#!/bin/sh
part=0
while :; do part=$((part + 1)); echo "building part $part of the shop"; sleep 0.3; done
END
chmod +x setup.sh build.sh
"""
"""Writes the scripts that `top` shows."""

SESSIONS = (
    ("setup", "./setup.sh"),
    ("build", "./build.sh"),
    ("db", "sqlite3", "shop.db"),
    ("notes", "vim", "-u", "NONE", "notes.txt"),
    ("py", "python3", "-q"),
)

DIAGRAMS: dict[str, Callable[[], Diagram]] = {"attach": attach, "places": places, "states": states}

if __name__ == "__main__":
    sys.exit(main())
