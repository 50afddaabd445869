"""Teams in a browser without JavaScript: the list, the report of a run, and who is shown neither."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from served import HttpServer
from surfaces.web.browsing import PlainBrowser, make_code, tmuxctl
from surfaces.web.test_pages import NEEDED, Markup

MARKUP = "</pre><script>alert(1)</script>"


@pytest.fixture
def browser(server: HttpServer, place: Path) -> PlainBrowser:
    """Signed in at a server that has had the run of a team, whose agents are shells."""
    shell = {"command": ["bash", "--norc"]}
    stages = [{"agent": "one", "prompt": "echo {input}"}, {"agent": "two", "prompt": "echo end"}]
    about = {"schema": "tmuxctl/connector@1", "name": "pair", "agents": {"one": shell, "two": shell}}
    file = place / "pair.json"
    file.write_text(json.dumps({**about, "topology": {"type": "pipeline", "stages": stages}, "input": f"'{MARKUP}'"}))
    done = tmuxctl("connect", "up", str(file), "--yes")
    assert done.returncode == 0, done.stderr
    browser = PlainBrowser(server)
    browser.sign_in()
    return browser


@pytest.mark.night
def test_the_list_and_a_report_are_pages_without_a_script(browser):
    assert 'href="/teams?plain=1"' in browser.get("/?plain=1").text
    teams = browser.get("/teams?plain=1")
    assert "ended" in Markup(teams.text).text
    assert ("a", {"href": "/team/pair?plain=1"}) in Markup(teams.text).elements
    report = browser.get("/team/pair?plain=1")
    assert f"echo '{MARKUP}'" in Markup(report.text).text or MARKUP in Markup(report.text).text
    for reply in (teams, report):
        assert set(NEEDED) <= set(reply.headers["content-security-policy"].split("; "))
        assert not [tag for tag, _ in Markup(reply.text).elements if tag == "script"]


@pytest.mark.night
def test_a_team_that_is_not_there_is_told(browser):
    for name in ("none", "..%2fpair", "pair.json", "%00", "<b>"):
        reply = browser.get(f"/team/{name}?plain=1")
        assert reply.status == 404, name
        assert "<b>" not in reply.text


def test_who_has_not_signed_in_is_sent_to_sign_in(server):
    for path in ("/teams", "/team/pair"):
        reply = PlainBrowser(server).get(path)
        assert (reply.status, reply.headers["location"]) == (303, "/login")


@pytest.mark.night
def test_a_login_for_some_sessions_is_shown_no_team(browser):
    assert tmuxctl("token", "new", "some", "--only", "pair-*").returncode == 0
    some = PlainBrowser(browser.server)
    some.submit("/login", code=make_code("some"))
    assert "/teams" not in some.get("/?plain=1").text
    for path in ("/teams?plain=1", "/team/pair?plain=1"):
        assert some.get(path).status == 403
