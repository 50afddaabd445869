"""The runs of teams on the page: the list, one run with its agents, graph and transcript, and what waits for a person."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet.teams import ScriptedAgents
from served import HttpServer
from web.test_looks import THEMES, WINDOWS, describe_window
from web.visiting import Visitor, run_tmuxctl

pytestmark = pytest.mark.night

MARKUP = "<img src=x onerror=window.caught=1><script>window.caught=1</script>"


@pytest.fixture
def agents(place: Path) -> ScriptedAgents:
    (place / "work").mkdir()
    return ScriptedAgents(place / "work")


def begin(server: HttpServer, agents: ScriptedAgents, ann: list[dict[str, Any]], **given: Any) -> None:
    """A run of three: `ann`, who has these rules, leads a meeting of `bob` and `cyd`."""
    rules = {"ann": ann, "bob": [{"re": ".", "say": "bob: good"}], "cyd": [{"re": ".", "say": "cyd: better"}]}
    topology = {"type": "meeting", "chair": "ann", "members": ["bob", "cyd"], "decision": "DECISION"}
    file = agents.write(topology, {name: agents.agent(name, found) for name, found in rules.items()}, **given)
    digest = server.post("/v1/connect/plan", {"file": str(file)}).json["digest"]
    reply = server.post("/v1/connect", {"file": str(file), "digest": digest})
    assert reply.status == 202, reply.text


def await_state(one: Visitor, state: str) -> None:
    """Wait until the run that is shown is in this state."""
    one.page.locator(".team .session-name .status").get_by_text(state).wait_for()


ASKS = [{"re": ".", "ask": "Merge it?", "say": "DECISION: merged"}]


def test_a_run_is_found_followed_and_answered(
    visit: Callable[..., Visitor], page_server: HttpServer, agents: ScriptedAgents
) -> None:
    one = visit()
    one.open()
    one.page.get_by_text("No sessions yet").wait_for()
    assert one.page.get_by_role("link", name="Teams").count() == 0
    begin(page_server, agents, ASKS)
    one.page.get_by_role("link", name="Teams").click()
    one.page.get_by_role("link", name="team", exact=True).click()
    transcript = one.page.get_by_role("log")
    transcript.get_by_text("bob: good").wait_for()
    waiting = one.page.get_by_role("region", name="What waits for you")
    waiting.get_by_text("Merge it?").wait_for()
    one.page.get_by_role("region", name="Agents").get_by_text("asking approval").wait_for()
    drawn = one.page.get_by_role("img", name="ann asking")
    drawn.wait_for()
    one.page.wait_for_function("() => document.querySelector('.team-graph img').naturalWidth > 100")
    waiting.get_by_role("button", name="allow").click()
    transcript.get_by_text("DECISION: merged").first.wait_for()
    await_state(one, "ended (decision)")
    assert one.page.get_by_role("button", name="End").count() == 0
    one.page.keyboard.press("Escape")
    one.page.get_by_role("link", name="team", exact=True).wait_for()
    one.page.keyboard.press("Escape")
    one.page.get_by_role("main", name="Sessions").wait_for()
    assert one.leaving() == []


def test_an_agent_is_opened_and_a_run_ended(
    visit: Callable[..., Visitor], page_server: HttpServer, agents: ScriptedAgents, until: Callable[..., object]
) -> None:
    begin(page_server, agents, ASKS)
    one = visit()
    one.open("/team/team")
    one.page.get_by_role("region", name="Agents").get_by_role("link", name="ann").click()
    one.await_text("Merge it?")
    one.page.go_back()
    one.page.get_by_role("button", name="End").click()
    one.page.get_by_role("button", name="Sure?").click()
    await_state(one, "ended (given-up)")
    assert page_server.get("/v1/sessions").json["sessions"] == []


def test_what_agents_say_and_are_called_stays_text(
    visit: Callable[..., Visitor], page_server: HttpServer, agents: ScriptedAgents
) -> None:
    said = f"{MARKUP} \u202egnp.exe"
    begin(page_server, agents, [{"re": ".", "say": f"DECISION {said}"}], input=f"look at {MARKUP}")
    one = visit()
    one.open("/team/team")
    await_state(one, "ended (decision)")
    one.page.get_by_role("log").get_by_text("DECISION <img").first.wait_for()
    one.page.get_by_role("log").get_by_text("\\u202egnp.exe").first.wait_for()
    assert one.leaving() == []
    assert one.page.evaluate("() => window.caught") is None
    assert one.page.locator("#app img[src=x], #app script").count() == 0
    # the picture is one, and not a part of the page
    assert one.page.locator(".team-graph svg").count() == 0


def test_a_later_run_takes_the_place_of_the_one_before(
    visit: Callable[..., Visitor], page_server: HttpServer, agents: ScriptedAgents, until: Callable[..., object]
) -> None:
    begin(page_server, agents, [{"re": ".", "say": "DECISION: one"}])
    one = visit()
    one.open("/team/team")
    await_state(one, "ended (decision)")
    # the sessions of a run end behind its last record
    until(lambda: [row["name"] for row in page_server.get("/v1/sessions").json["sessions"]] == ["team-runner"])
    until(lambda: page_server.get("/v1/sessions/team-runner").json["state"] == "exited")
    begin(page_server, agents, [{"re": ".", "say": "DECISION: two"}])
    one.page.get_by_role("log").get_by_text("DECISION: two").first.wait_for()
    assert one.page.get_by_role("log").get_by_text("DECISION: one").count() == 0


def test_who_may_only_read_is_shown_no_button_and_who_has_some_sessions_no_teams(
    signed_in: Callable[..., Visitor], start_server: Callable[..., HttpServer], agents: ScriptedAgents
) -> None:
    server = start_server()
    begin(server, agents, ASKS)
    reader = signed_in(server, "--right", "read")
    reader.open("/team/team")
    reader.page.get_by_role("region", name="What waits for you").get_by_text("Merge it?").wait_for()
    assert reader.page.get_by_role("button", name="allow").count() == 0
    assert reader.page.get_by_role("button", name="End").count() == 0
    run_tmuxctl("token", "new", "some", "--only", "team-*")
    code = json.loads(run_tmuxctl("--json", "token", "login", "some"))["code"]
    reader.context.clear_cookies()
    reader.open(f"/login#{code}")
    reader.page.wait_for_url(reader.origin + "/")
    reader.tile("team-ann").wait_for()
    assert reader.page.get_by_role("link", name="Teams").count() == 0
    reader.open("/team/team")
    reader.page.get_by_text("This run cannot be shown").wait_for()


def test_everybody_can_use_it(
    visit: Callable[..., Visitor], page_server: HttpServer, agents: ScriptedAgents, axe: None
) -> None:
    begin(page_server, agents, ASKS)
    for theme in THEMES:
        one = visit(color_scheme=theme)
        one.open("/team/team")
        one.page.get_by_role("button", name="allow").wait_for()
        assert one.faults() == []
        one.open("/teams")
        one.page.get_by_role("link", name="team", exact=True).wait_for()
        assert one.faults() == []


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("window", WINDOWS)
def test_a_run_in_pictures(
    window: str, theme: str, visit: Callable[..., Visitor], page_server: HttpServer, agents: ScriptedAgents
) -> None:
    page_server.new("shell", "bash")
    long = "A longer answer, with several lines.\n\n1. the first point\n2. the second one\n\n" + "word " * 120
    begin(page_server, agents, [{"re": "^the input", "say": long}, *ASKS], input="the input: what shall we do?")
    one = visit(**describe_window(window, theme))
    one.open()
    one.page.get_by_role("link", name="Teams").wait_for()
    one.picture(f"teams-link-{window}-{theme}")
    one.open("/teams")
    one.page.get_by_role("link", name="team", exact=True).wait_for()
    one.picture(f"teams-{window}-{theme}")
    one.open("/team/team")
    one.page.get_by_role("button", name="allow").wait_for()
    one.page.wait_for_timeout(800)
    one.picture(f"team-{window}-{theme}")
    assert one.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    if window == "phone":
        one.page.get_by_role("log").scroll_into_view_if_needed()
        one.page.mouse.wheel(0, 2000)
        one.page.wait_for_timeout(300)
        one.picture(f"team-end-{window}-{theme}")
