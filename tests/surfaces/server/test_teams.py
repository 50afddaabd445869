"""What callers of the server can rely on with teams: plans, runs, their records, and who may have which of them."""

from __future__ import annotations

import json
import shutil
import signal
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from fleet.teams import PROFILE, ScriptedAgents
from served import EventStream, HttpReply, HttpServer
from surfaces.server.test_admission import make_token, tmuxctl

MARKUP = "</text><script>alert(1)</script>&\u202eevil"


@pytest.fixture
def agents(place: Path) -> ScriptedAgents:
    """Scripted agents in a folder of their own; their profile is one of this user's too."""
    (place / "work").mkdir()
    profiles = place / ".config/tmuxctl/profiles"
    profiles.mkdir(parents=True)
    shutil.copy(PROFILE, profiles)
    return ScriptedAgents(place / "work")


def dialogue(agents: ScriptedAgents, rules: Sequence[Mapping[str, Any]], **given: Any) -> Path:
    """The file of a team of two: `ann` has these rules, and `bob` answers."""
    topology = {"type": "dialogue", "between": ["ann", "bob"], "first": "ann"}
    both = {"ann": agents.agent("ann", rules), "bob": agents.agent("bob", [{"re": ".", "say": "bob says {n}"}])}
    return agents.write(topology, both, **{"stop": {"text": "DONE"}, **given})


def up(server: HttpServer, body: Mapping[str, Any], **about: Any) -> HttpReply:
    """Have a run of a connector by its plan."""
    wanted = {name: value for name, value in body.items() if name != "resume"}
    plan = server.post("/v1/connect/plan", wanted, **about)
    return server.post("/v1/connect", {**body, "digest": plan.json.get("digest")}, **about)


def await_event(events: EventStream, name: str) -> dict[str, Any]:
    """The next record of this event."""
    return dict(events.next(lambda event: event.get("data", {}).get("event") == name)["data"])


@pytest.mark.night
def test_a_run_is_planned_begun_followed_and_told(server, agents):
    file = dialogue(agents, [{"re": "bob", "say": f"DONE {MARKUP}"}, {"re": ".", "say": "first"}])
    plan = server.post("/v1/connect/plan", {"file": str(file), "input": "begin"}).json
    assert (plan["team"], plan["first"]) == ("team", [{"agent": "ann", "text": "begin"}])
    assert server.get("/v1/connect").json == {"teams": []}
    begun = server.post("/v1/connect", {"file": str(file), "input": "begin", "digest": plan["digest"]})
    assert (begun.status, begun.json["team"]) == (202, "team")
    assert await_event(server.events("/v1/connect/team/events"), "end")["reason"] == "text"
    records = server.get("/v1/connect/team/log").json["records"]
    said = [one["text"] for one in records if one["event"] == "message"]
    assert said == ["first", "bob says 1", f"DONE {MARKUP}"]
    assert records[0]["text"] == "begin"
    assert server.get("/v1/connect/team/log?since=3").json["records"] == records[3:]
    [listed] = server.get("/v1/connect").json["teams"]
    assert listed["run"] == begun.json["run"]
    assert listed == server.get("/v1/connect/team").json
    report = server.get("/v1/connect/team/report")
    assert report.headers["content-type"] == "text/markdown; charset=utf-8"
    assert f"```text\n{said[-1]}\n```" in report.text
    graph = server.get("/v1/connect/team/graph")
    assert graph.headers["content-type"] == "image/svg+xml"
    assert "default-src 'none'" in graph.headers["content-security-policy"]
    assert {"ann", "bob"} <= set(ElementTree.fromstring(graph.text).itertext())


@pytest.mark.night
def test_a_run_needs_the_digest_of_the_plan_that_was_shown(server, agents):
    file = dialogue(agents, [{"re": ".", "say": "DONE"}])
    digest = server.post("/v1/connect/plan", {"file": str(file)}).json["digest"]
    missing = server.post("/v1/connect", {"file": str(file)})
    assert (missing.status, missing.reason) == (403, "not_confirmed")
    file.write_text(file.read_text().replace("the input", "another input"))
    changed = server.post("/v1/connect", {"file": str(file), "digest": digest})
    assert (changed.status, changed.reason) == (409, "changed")
    assert server.get("/v1/connect").json == {"teams": []}
    # a person who agreed in a terminal did not agree for this caller
    assert tmuxctl("connect", "up", str(file), "--yes").returncode == 0
    assert server.post("/v1/connect", {"file": str(file)}).reason == "not_confirmed"


@pytest.mark.night
def test_a_run_goes_on_while_no_server_runs(start_server, agents, until):
    first = start_server()
    file = dialogue(agents, [{"re": "bob", "say": "DONE"}, {"re": ".", "ask": "Go on?", "say": "on"}])
    assert up(first, {"file": str(file)}).status == 202
    events = first.events("/v1/connect/team/events")
    assert await_event(events, "asking")["text"] == "Go on?"
    assert (up(first, {"file": str(file)}).status, first.get("/v1/connect/team").json["state"]) == (409, "waiting")
    first.stop(signal.SIGKILL)
    second = start_server()
    assert second.get("/v1/connect/team").json["state"] == "waiting"
    until(lambda: second.get("/v1/sessions/team-ann").json["state"] == "asking")
    decided = second.post("/v1/sessions/team-ann/decide", {"option": "allow"})
    assert decided.status == 200, decided.json
    until(lambda: second.get("/v1/connect/team").json["state"] == "ended")


@pytest.mark.night
def test_a_run_is_given_up_with_its_sessions_or_goes_on(server, agents, until):
    file = dialogue(
        agents, [{"re": "bob", "say": "DONE"}, {"re": ".", "think": 60, "times": 1}, {"re": ".", "say": "x"}]
    )
    assert up(server, {"file": str(file)}).status == 202
    await_event(server.events("/v1/connect/team/events"), "turn")
    runner = server.get("/v1/sessions/team-runner").json["id"]
    server.call("DELETE", f"/v1/sessions/{runner}?signal=INT")
    until(lambda: server.get("/v1/connect/team").json["state"] == "stopped")
    assert up(server, {"file": str(file)}).reason == "unfinished"
    resumed = up(server, {"file": str(file), "resume": True})
    assert (resumed.status, resumed.json["state"]) == (202, "running")
    down = server.call("DELETE", "/v1/connect/team")
    assert sorted(down.json["ended"]) == ["team-ann", "team-bob"]
    assert server.get("/v1/sessions").json["sessions"] == []
    assert server.get("/v1/connect/team").json["reason"] == "given-up"
    # nothing is left to be done of it
    again = up(server, {"file": str(file), "resume": True})
    assert (again.status, again.json["state"]) == (202, "ended")


@pytest.mark.night
def test_whoever_comes_back_is_told_what_came_since(server, agents):
    file = dialogue(agents, [{"re": "bob", "say": "DONE"}, {"re": ".", "say": "first"}])
    up(server, {"file": str(file)})
    events = server.events("/v1/connect/team/events")
    seen = events.next(lambda event: event.get("data", {}).get("event") == "message")
    await_event(events, "end")
    events.close()
    again = server.events("/v1/connect/team/events", Last_Event_ID=seen["id"])
    assert again.next()["data"]["n"] == seen["data"]["n"] + 1
    # a stream goes on with the next run, and an id of an earlier one is of none that is there
    await_event(again, "end")
    up(server, {"file": str(file)})
    assert again.next()["data"]["event"] == "begin"
    late = server.events("/v1/connect/team/events", Last_Event_ID=seen["id"])
    assert late.next()["data"]["n"] == 1


@pytest.mark.night
def test_rights_and_sessions_of_a_token(server, agents):
    file = dialogue(agents, [{"re": ".", "say": "DONE"}])
    up(server, {"file": str(file)})
    await_event(server.events("/v1/connect/team/events"), "end")
    body = {"connector": {}, "digest": "0"}
    for name, words, refused in (
        ("looks", ("read",), {"POST /v1/connect/plan", "POST /v1/connect", "DELETE /v1/connect/team"}),
        ("types", ("read", "write"), {"POST /v1/connect/plan", "POST /v1/connect", "DELETE /v1/connect/team"}),
        ("starts", ("read", "create"), {"POST /v1/connect", "DELETE /v1/connect/team"}),
        ("works", ("read", "write", "create"), {"DELETE /v1/connect/team"}),
    ):
        token = make_token(name, *(word for right in words for word in ("--right", right)))
        for method, path in (line.split() for line in ROUTES):
            reply = server.call(method, path, body if method == "POST" else None, tcp=True, token=token)
            denied = reply.status == 403 and reply.reason == "right"
            assert denied == (f"{method} {path}" in refused), (name, method, path, reply.text)
    some = make_token("some", "--only", "team-*")
    for method, path in (line.split() for line in (*ROUTES, "GET /v1/connect/team/events")):
        reply = server.call(method, path, body if method == "POST" else None, tcp=True, token=some)
        assert (reply.status, reply.reason) == (403, "sessions"), path
    assert server.get("/v1/connect", tcp=True).status == 401


ROUTES = (
    *(f"GET /v1/connect{path}" for path in ("", "/team", "/team/log", "/team/report", "/team/graph")),
    "POST /v1/connect/plan",
    "POST /v1/connect",
    "DELETE /v1/connect/team",
)


@pytest.mark.night
def test_a_connector_is_sent_over_tcp_and_names_nothing_of_this_machine(server, agents, place):
    file = dialogue(agents, [{"re": ".", "say": "DONE"}])
    over_tcp = {"tcp": True, "token": server.token}
    reply = server.post("/v1/connect/plan", {"file": str(file)}, **over_tcp)
    assert (reply.status, reply.reason) == (403, "local_file")
    sent = json.loads(file.read_text())

    def refused(**about: Any) -> str:
        return server.post("/v1/connect/plan", {"connector": {**sent, **about}}, **over_tcp).reason

    assert refused() == "local_file"  # its profile is named by a path
    for agent in sent["agents"].values():
        agent["profile"] = "team_agent"
    assert refused() == "bad_connector"  # it has no folder
    for agent in sent["agents"].values():
        agent["cwd"] = str(place)
    assert refused(output="/tmp/x") == refused(input={"file": "a"}) == refused(machines={}) == "local_file"
    ann = sent["agents"]["ann"]
    secrets = {**ann, "isolation": {"with": ["env:file=/etc/passwd"]}}
    assert refused(agents={**sent["agents"], "ann": secrets}) == "local_file"
    away = {**ann, "machine": "example.org"}
    assert refused(agents={**sent["agents"], "ann": away}) == "no_machine"
    begun = up(server, {"connector": sent}, **over_tcp)
    assert begun.status == 202, begun.text
    await_event(server.events("/v1/connect/team/events"), "end")
    [kept] = (place / "state").rglob("given/*")
    assert (kept.stat().st_mode & 0o777, json.loads(kept.read_text())) == (0o600, sent)
    audit = (place / "state/tmuxctl/serve/audit.log").read_text()
    assert [one["result"] for one in map(json.loads, audit.splitlines()) if one["operation"] == "connect_up"] == [
        "done"
    ]


@pytest.mark.night
@pytest.mark.parametrize(
    "name", ["..%2f..%2fwork%2fteam.json", "team.json", "%2fetc%2fpasswd", "a" * 300, "%00", "%F0", "ann"]
)
def test_no_name_of_a_team_is_a_path(name, server, agents):
    dialogue(agents, [{"re": ".", "say": "DONE"}])
    for method, rest in (("GET", ""), ("GET", "/log"), ("GET", "/events"), ("GET", "/graph"), ("DELETE", "")):
        reply = server.call(method, f"/v1/connect/{name}{rest}")
        assert (reply.status, reply.reason) == (404, "no_run"), (name, rest, reply.text)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "bad_parameter"),
        ({"file": "team.json"}, "bad_parameter"),
        ({"file": "/etc/shadow\x00"}, "bad_connector"),
        ({"file": "/none"}, "bad_connector"),
        ({"file": "/none", "connector": {}}, "bad_parameter"),
        ({"connector": {}}, "bad_connector"),
        ({"connector": []}, "bad_type"),
        ({"connector": {"schema": "tmuxctl/connector@1", "name": "../x", "agents": {}}}, "bad_connector"),
        ({"file": 1}, "bad_type"),
        ({"digest": "0", "file": "/none"}, "bad_parameter"),
    ],
)
def test_a_plan_of_what_is_no_connector(body, reason, server):
    reply = server.post("/v1/connect/plan", body)
    assert (reply.status, reply.reason) == (400, reason), reply.text


@pytest.mark.night
def test_the_graph_is_of_the_file_that_the_run_began_with(server, agents):
    file = dialogue(agents, [{"re": ".", "say": "DONE"}])
    up(server, {"file": str(file)})
    await_event(server.events("/v1/connect/team/events"), "end")
    file.write_text(file.read_text() + "\n")
    assert server.get("/v1/connect/team/graph").reason == "changed"


def test_a_run_that_cannot_begin_is_told(server, agents, monkeypatch):
    """The file is another one by the time that the session reads it."""
    file = dialogue(agents, [{"re": ".", "say": "DONE"}], output="/proc/none/x")
    reply = up(server, {"file": str(file)})
    assert (reply.status, reply.reason) == (422, "not_started"), reply.text


def test_a_long_input_and_a_deep_connector_are_answered(server, agents):
    file = dialogue(agents, [{"re": ".", "say": "DONE"}])
    # more than an argument of a program may have
    assert up(server, {"file": str(file), "input": "x" * 200_000}).reason == "not_started"
    deep = b'{"connector": ' + b'{"a":' * 3000 + b"1" + b"}" * 3001
    reply = server.call("POST", "/v1/connect/plan", deep, headers={"Content-Type": "application/json"})
    assert reply.status == 400, reply.text
