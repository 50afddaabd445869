"""A connector as a picture: who gives a text to whom. Prompts and roles are never part of it."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Mapping

from tmuxctl.fleet.connector import EVERYBODY, INPUT, Connector
from tmuxctl.fleet.files.talk_graph import TalkEdge, TalkGraph, build_graph, join_label
from tmuxctl.model import NOTHING
from tmuxctl.terminal.picture.render import DARK
from tmuxctl.value import NamedTuple

HEIGHT, GAP, ROW_GAP, MARGIN, LEVEL = 44, 90, 30, 24, 40
NAME_MOST = 24
"""Characters of a name that are drawn; all of it stands in the box's title."""

FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
QUIET = "#9a9a9a"
STATE_COLOURS = {
    "idle": DARK.colours["green"],
    "busy": DARK.colours["yellow"],
    "asking": DARK.colours["brightmagenta"],
    "exited": DARK.colours["brightred"],
}


def to_mermaid(connector: Connector) -> str:
    """A connector as a flow chart of Mermaid."""
    graph = build_graph(connector)
    ids = {name: f"n{number}" for number, name in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for name, key in ids.items():
        before, after = ('["', '"]') if name in connector.agents else ('(["', '"])')
        lines.append(f"    {key}{before}{html.escape(_shown(connector, name))}{after}")
    for edge in graph.edges:
        arrow = "<-->" if edge.both else "-.->" if edge.fails else "-->"
        label = f'|"{edge.label}"|' if edge.label else ""
        lines.append(f"    {ids[edge.source]} {arrow}{label} {ids[edge.target]}")
    return "\n".join([*lines, ""])


def to_svg(connector: Connector, states: Mapping[str, str] = NOTHING) -> str:
    """A connector as SVG, on a background of its own; `states` are what its agents do, by their names."""
    graph = build_graph(connector)
    picture = _Picture(graph, max(len(_shown(connector, name)) for name in graph.nodes))
    lines = [part for edge in graph.edges for part in picture.draw_edge(edge)]
    boxes = [_box(picture, connector, name, states.get(name, "")) for name in graph.nodes]
    left, top, right, bottom = picture.bounds()
    place = f"{left:g} {top:g} {right - left:g} {bottom - top:g}"
    about = f"Connector {connector.name}: {type(connector.topology).__name__.lower()}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{right - left:g}" height="{bottom - top:g}" '
            f'viewBox="{place}" role="img" aria-label="{html.escape(about)}">',
            f"<title>{html.escape(about)}</title>",
            '<defs><marker id="head" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
            f'orient="auto-start-reverse"><path d="M0 0L10 5L0 10z" fill="{QUIET}"/></marker></defs>',
            f'<rect x="{left:g}" y="{top:g}" width="100%" height="100%" rx="8" fill="{DARK.background}"/>',
            f'<g font-family="{FONT}" font-size="14" text-anchor="middle" fill="{DARK.foreground}">',
            *lines,
            *boxes,
            "</g>",
            "</svg>",
            "",
        ]
    )


def _shown(connector: Connector, name: str) -> str:
    """What stands in the box of a node."""
    text = name if name in connector.agents or name in (INPUT, EVERYBODY) else join_label(connector, name)
    return text if len(text) <= NAME_MOST else text[: NAME_MOST - 1] + "…"


def _box(picture: _Picture, connector: Connector, name: str, state: str) -> str:
    spot, width = picture.spots[name], picture.width
    is_agent = name in connector.agents
    colour = STATE_COLOURS.get(state, DARK.foreground if is_agent else QUIET)
    place = f'x="{spot.x - width / 2:g}" y="{spot.y - HEIGHT / 2:g}" width="{width}" height="{HEIGHT}"'
    text = html.escape(_shown(connector, name))
    below = f'<text x="{spot.x:g}" y="{spot.y + 15:g}" font-size="12">{html.escape(state[:NAME_MOST])}</text>'
    return (
        f'<g fill="{colour}"><title>{html.escape(name)}</title>'
        f'<rect {place} rx="{6 if is_agent else HEIGHT // 2}" fill="{DARK.background}" stroke="{colour}" stroke-width="1.5"/>'
        f'<text x="{spot.x:g}" y="{spot.y + (-2 if state else 5):g}" font-weight="bold">{text}</text>'
        f"{below if state else ''}</g>"
    )


class _Spot(NamedTuple):
    """Where the middle of a box is, and its column (None: in the ring)."""

    x: float
    y: float
    column: int | None


class _Picture:
    """Where the boxes of a graph are, and the lines between them. Arcs above and below have a level each."""

    def __init__(self, graph: TalkGraph, longest: int) -> None:
        self.width = 24 + 9 * max(longest, 5)
        self.spots = dict(self._place(graph))
        self.top = min(spot.y for spot in self.spots.values()) - HEIGHT / 2
        self.bottom = max(spot.y for spot in self.spots.values()) + HEIGHT / 2
        self._above = self._below = 0

    def _place(self, graph: TalkGraph) -> Iterator[tuple[str, _Spot]]:
        for number, column in enumerate(graph.columns):
            for row, name in enumerate(column):
                y = (row - (len(column) - 1) / 2) * (HEIGHT + ROW_GAP)
                yield name, _Spot(number * (self.width + GAP), y, number)
        # neighbours in the ring do not touch, nor does the centre
        radius = max(self.width + GAP, len(graph.ring) * (self.width + ROW_GAP) / math.tau)
        middle = len(graph.columns) * (self.width + GAP) + radius
        if graph.centre:
            yield graph.centre, _Spot(middle, 0, None)
        for number, name in enumerate(graph.ring):
            # the gap of the ring is at the left, where the input comes from
            angle = math.pi + math.tau * (number + 0.5) / len(graph.ring)
            yield name, _Spot(middle + radius * math.cos(angle), radius * math.sin(angle), None)

    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom of all that was drawn."""
        across = [spot.x for spot in self.spots.values()]
        side = self.width / 2 + MARGIN
        top = self.top - MARGIN - self._above * LEVEL
        return min(across) - side, top, max(across) + side, self.bottom + MARGIN + self._below * LEVEL

    def draw_edge(self, edge: TalkEdge) -> Iterator[str]:
        """The line of an edge, and its label."""
        source, target = self.spots[edge.source], self.spots[edge.target]
        steps = None if source.column is None or target.column is None else target.column - source.column
        path, x, y = (
            self._straight(source, target) if steps in (None, 1) else self._arc(source, target, (steps or 0) > 0)
        )
        heads = 'marker-end="url(#head)"' + (' marker-start="url(#head)"' if edge.both else "")
        dash = ' stroke-dasharray="6 5"' if edge.fails else ""
        yield f'<path d="{path}" fill="none" stroke="{QUIET}" stroke-width="1.5"{dash} {heads}/>'
        if edge.label:
            label = html.escape(edge.label if len(edge.label) <= NAME_MOST else edge.label[: NAME_MOST - 1] + "…")
            yield f'<text x="{x:g}" y="{y - 6:g}" font-size="13" fill="{QUIET}">{label}</text>'

    def _straight(self, source: _Spot, target: _Spot) -> tuple[str, float, float]:
        """From border to border, with the middle between."""
        (ax, ay), (bx, by) = self._border(source, target), self._border(target, source)
        return f"M{ax:g} {ay:g}L{bx:g} {by:g}", (ax + bx) / 2, (ay + by) / 2

    def _border(self, spot: _Spot, toward: _Spot) -> tuple[float, float]:
        across, down = toward.x - spot.x, toward.y - spot.y
        share = min(
            self.width / 2 / abs(across) if across else math.inf, HEIGHT / 2 / abs(down) if down else math.inf, 0.5
        )
        return round(spot.x + across * share, 1), round(spot.y + down * share, 1)

    def _arc(self, source: _Spot, target: _Spot, above: bool) -> tuple[str, float, float]:
        """Above all boxes, or below them: what goes back, to itself, or past others."""
        if above:
            self._above += 1
            level, half = self.top - self._above * LEVEL, -HEIGHT / 2
        else:
            self._below += 1
            level, half = self.bottom + self._below * LEVEL, HEIGHT / 2
        apart = self.width / 4 if source.x == target.x else 0
        ax, ay, bx, by = source.x + apart, source.y + half, target.x - apart, target.y + half
        path = f"M{ax:g} {ay:g}C{ax:g} {level:g} {bx:g} {level:g} {bx:g} {by:g}"
        # the label stands outside of the arc
        return path, (ax + bx) / 2, (ay + 6 * level + by) / 8 + (0 if above else 22)
