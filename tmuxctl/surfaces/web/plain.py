"""The page without JavaScript: the overview as a table, a session as a grid of its screen, and forms that act on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from tmuxctl.surfaces.web.markup import escape_text, write_page
from tmuxctl.timing import TIMING

if TYPE_CHECKING:
    from tmuxctl.access import CallerAccess
    from tmuxctl.results import TeamReport, TeamStatus

ASSETS_MISSING = """<p class="quiet">This is the page without JavaScript: what the other one is made with was not installed.
A release has it; in a clone of the repository <code>make web-assets</code> brings it.</p>"""

ALL_SESSIONS = '<a href="/?plain=1">All sessions</a>'


class PlainPage:
    """Writes the pages for one caller. `whole`: the page with JavaScript is there."""

    def __init__(self, access: CallerAccess, whole: bool) -> None:
        self.access, self.whole = access, whole
        self.may_write = "write" in access.rights

    def write_overview(self, tiles: Mapping[str, Any]) -> str:
        """All sessions; those that need a person come first."""
        rows = sorted(tiles["rows"], key=lambda row: (row["rank"], row["name"]))
        asking = f"({tiles['asking']}) " if tiles["asking"] else ""
        teams = '<a href="/teams?plain=1">Teams</a>' if self.access.unlimited else ""
        body = [self._write_navigation(teams), f"<h1>{len(rows)} session{'' if len(rows) == 1 else 's'}</h1>"]
        if rows:
            body.append("<table><tr><th>Name</th><th>State</th><th>Program</th><th>Folder</th><th>Last line</th></tr>")
            body += [self._write_row(row) for row in rows]
            body.append("</table>")
        else:
            body.append("<p>Nothing runs. Start something: <code>tmuxctl new -- bash</code></p>")
        return write_page(f"{asking}tmuxctl", "\n".join(body), refresh=TIMING.http.overview_seconds)

    def write_session(self, row: Mapping[str, Any], grid: str, hold: bool) -> str:
        """One session: `grid` is the markup of its screen. `hold`: it is not loaded again by itself, so that one may type."""
        here = f"/session/{quote(row['id'], safe='')}"
        other = f"{here}?plain=1" if hold else f"{here}?plain=1&amp;hold=1"
        links = f'<a href="{other}">{"Renew by itself" if hold else "Do not renew"}</a>'
        body = [
            self._write_navigation(f"{ALL_SESSIONS} {links}"),
            f"<h1>{escape_text(row['name'])} <small>{_write_state(row)}</small></h1>",
            *self._write_question(row),
            f'<div class="screen" tabindex="0" role="region" aria-label="Screen">{grid}</div>',
        ]
        if self.may_write and row["exit_status"] is None and row["signal"] is None:
            body.append(
                f'<form method="post" action="{here}/type"><label for="text">Type</label>'
                '<input id="text" name="text" autocomplete="off" spellcheck="false"><button>Send, with Enter</button></form>'
                f'<form method="post" action="{here}/interrupt"><button>Interrupt (Ctrl-C)</button></form>'
            )
        body.append(f'<p class="quiet">{" · ".join(_write_facts(row))}</p>')
        return write_page(row["name"], "\n".join(body), refresh=0 if hold else TIMING.http.grid_seconds)

    def write_teams(self, teams: Sequence[TeamStatus]) -> str:
        """All teams, each with how far its last run has come."""
        rows = "".join(
            f'<tr><td><a href="/team/{quote(one.team, safe="")}?plain=1">{escape_text(one.team)}</a></td>'
            f"<td>{escape_text(one.state)}</td><td>{one.turns} of {one.turns_most} turns</td>"
            f"<td>{escape_text(one.path)}</td></tr>"
            for one in teams
        )
        body = f"{self._write_navigation(ALL_SESSIONS)}<h1>Teams</h1><table>{rows}</table>"
        return write_page("Teams", body, refresh=TIMING.http.overview_seconds)

    def write_report(self, report: TeamReport) -> str:
        """The last run of a team: its report as text."""
        links = f'{ALL_SESSIONS} <a href="/teams?plain=1">All teams</a>'
        body = (
            f"{self._write_navigation(links)}<h1>{escape_text(report.team)}</h1><pre>{escape_text(report.text)}</pre>"
        )
        return write_page(report.team, body, refresh=TIMING.http.overview_seconds)

    def write_failure(self, message: str, hint: str | None, back: str) -> str:
        """What could not be done, and what would work."""
        told = f"<p>{escape_text(hint)}</p>" if hint else ""
        body = f'<h1 class="error" role="alert">{escape_text(message)}</h1>{told}<p><a href="{escape_text(back)}">Back</a></p>'
        return write_page("That did not work", self._write_navigation() + body)

    def _write_navigation(self, links: str = "") -> str:
        more = "" if self.whole else ASSETS_MISSING
        whole = '<a href="/">The page with JavaScript</a>' if self.whole else ""
        leave = '<form method="post" action="/logout"><button>Sign out</button></form>' if self.access.login else ""
        return f"<nav>{links} {whole} {leave}</nav>{more}"

    def _write_row(self, row: Mapping[str, Any]) -> str:
        place = " ".join(filter(None, (row["folder"], f"({row['branch']})" if row["branch"] else "")))
        asked = "".join(self._write_question(row))
        return (
            f'<tr><td><a href="/session/{quote(row["id"], safe="")}?plain=1">{escape_text(row["name"])}</a></td>'
            f"<td>{_write_state(row)}</td><td>{escape_text(row['profile'] or row['command'])}</td>"
            f"<td>{escape_text(place)}</td><td>{asked or escape_text(row['line'])}</td></tr>"
        )

    def _write_question(self, row: Mapping[str, Any]) -> Iterator[str]:
        """A session's question, with a button for each answer."""
        asked = row["question"]
        if asked is None:
            return
        risk = ' <strong class="error">risk: high</strong>' if asked["risk"] == "high" else ""
        yield f'<p class="question needs">{escape_text(asked["text"] or asked["kind"])}{risk}</p>'
        if not self.may_write or (asked["secret"] and not self.access.private):
            return
        yield f'<form method="post" action="/session/{quote(row["id"], safe="")}/answer">'
        yield f'<input type="hidden" name="id" value="{escape_text(asked["id"])}">'
        for option in asked["options"]:
            label = escape_text(option["label"] or option["name"])
            yield f'<button name="option" value="{escape_text(option["name"])}">{label}</button>'
        if not asked["options"]:
            kind, name = ("password", "secret") if asked["secret"] else ("text", "option")
            yield f'<input type="{kind}" name="{name}" autocomplete="off" aria-label="Answer" required><button>Answer</button>'
        yield "</form>"


def _write_state(row: Mapping[str, Any]) -> str:
    return f'<span class="{"needs" if row["needs"] else "state"}">{escape_text(row["word"])}</span>'


def _write_facts(row: Mapping[str, Any]) -> Iterator[str]:
    facts = (row["command"], row["folder"], row["branch"], row["title"], row["active"], " ".join(row["tags"]))
    return (escape_text(fact) for fact in facts if fact)


def cut_grid(page: str) -> str:
    """The markup of a screen, from the page that has nothing else: what a program printed is escaped in it."""
    return f"<pre>\n{page.partition('<pre>')[2].rpartition('</pre>')[0].removeprefix(chr(10))}</pre>"
