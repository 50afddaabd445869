"""Drawings of who talks to whom."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from fleet.connector_cases import WHOLE

from tmuxctl.fleet.connector import Agent, Connector, Dialogue
from tmuxctl.fleet.files.drawing import STATE_COLOURS, to_mermaid, to_svg
from tmuxctl.fleet.files.reading import read_connector
from tmuxctl.fleet.files.talk_graph import TalkEdge, build_graph
from tmuxctl.fleet.files.templates import template

SVG = "{http://www.w3.org/2000/svg}"
TYPES = ("pipeline", "dialogue", "meeting", "mesh", "recursive")


@pytest.fixture
def read(tmp_path: Path):
    def read_text(text: str) -> Connector:
        path = tmp_path / "team.yaml"
        path.write_text(text)
        return read_connector(str(path))

    return read_text


@pytest.fixture
def team(read):
    def team_of(topology: dict[str, Any], count: int = 4) -> Connector:
        agents = {f"a{number}": {"command": ["bash"]} for number in range(count)}
        return read(json.dumps({"schema": WHOLE["schema"], "name": "team", "agents": agents, "topology": topology}))

    return team_of


def stage(agent: str, **more: Any) -> dict[str, Any]:
    return {"agent": agent, "prompt": "a prompt nobody sees", **more}


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(f"{SVG}text")]


def test_a_pipeline_goes_from_stage_to_stage(team):
    stages = [
        stage("a0"),
        {"fan_out": [stage("a1"), stage("a2")], "join": 1},
        stage("a3", expect_exit=0, on_fail={"goto": 1, "max": 2}),
        stage("a0"),
    ]
    graph = build_graph(team({"type": "pipeline", "stages": stages}))
    assert graph.columns == [["input"], ["a0"], ["a1", "a2"], ["join 1"], ["a3"]]
    assert set(graph.edges) == {
        TalkEdge("input", "a0", "0"),
        TalkEdge("a0", "a1", "1"),
        TalkEdge("a0", "a2", "1"),
        TalkEdge("a1", "join 1"),
        TalkEdge("a2", "join 1"),
        TalkEdge("join 1", "a3", "2"),
        TalkEdge("a3", "a1", "fails: 1, 2 times", fails=True),
        TalkEdge("a3", "a2", "fails: 1, 2 times", fails=True),
        TalkEdge("a3", "a0", "3"),
    }


@pytest.mark.parametrize(("join", "label"), [("all", "all"), ("first", "first"), (2, "2 of 3")])
def test_a_join_says_for_what_it_waits(team, join: str | int, label: str):
    fan_out = [stage("a0"), stage("a1"), stage("a2")]
    picture = to_svg(team({"type": "pipeline", "stages": [{"fan_out": fan_out, "join": join}]}))
    assert label in texts(picture)


def test_a_way_that_is_taken_twice_is_one_line(team):
    stages = [stage("a0"), stage("a1"), stage("a0"), stage("a1"), stage("a1")]
    edges = build_graph(team({"type": "pipeline", "stages": stages})).edges
    assert edges == [
        TalkEdge("input", "a0", "0"),
        TalkEdge("a0", "a1", "1, 3"),
        TalkEdge("a1", "a0", "2"),
        TalkEdge("a1", "a1", "4"),
    ]


def test_a_mesh_without_links_reaches_all(team):
    graph = build_graph(team({"type": "mesh", "start": {"a0": "x"}}, 200))
    assert len(graph.edges) == 201
    assert TalkEdge("a7", "all", both=True) in graph.edges


def test_a_mesh_with_links_draws_each_of_them(team):
    links = {"a0": ["a1", "a2"], "a1": ["a0"], "a2": ["*"]}
    graph = build_graph(team({"type": "mesh", "start": {"a0": "x"}, "links": links}))
    assert {edge for edge in graph.edges if "all" not in (edge.source, edge.target)} == {
        TalkEdge("input", "a0", "start"),
        TalkEdge("a0", "a1", both=True),
        TalkEdge("a0", "a2"),
    }
    assert TalkEdge("a2", "all", both=True) in graph.edges


def test_a_recursion_shows_tasks_and_results(team):
    edges = build_graph(team({"type": "recursive", "root": "a0", "worker": "a1", "depth": 3})).edges
    assert TalkEdge("a0", "a1", "task") in edges
    assert TalkEdge("a1", "a0", "result") in edges
    assert TalkEdge("a1", "a1", "task, 3 deep") in edges


@pytest.mark.parametrize("topology", TYPES)
def test_every_agent_is_drawn_and_no_prompt(read, topology: str):
    connector = read(template(topology))
    picture = to_svg(connector, dict.fromkeys(connector.agents, "busy"))
    root = ElementTree.fromstring(picture)
    assert root[0].tag == f"{SVG}title"
    assert root[0].text == f"Connector {topology}: {topology}"
    assert {*connector.agents, "input"} <= set(texts(picture))
    assert texts(picture).count("busy") == len(connector.agents)
    for drawn in (picture, to_mermaid(connector)):
        assert connector.input not in drawn
        assert not any(agent.role and agent.role in drawn for agent in connector.agents.values())


@pytest.mark.parametrize("topology", TYPES)
def test_all_boxes_are_within_the_picture_and_apart(read, topology: str):
    root = ElementTree.fromstring(to_svg(read(template(topology))))
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    boxes = [
        tuple(float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        for group in root.iter(f"{SVG}g")
        for box in group.findall(f"{SVG}rect")
    ]
    for x, y, wide, high in boxes:
        assert left < x < x + wide < left + width
        assert top < y < y + high < top + height
    for number, (x, y, wide, high) in enumerate(boxes):
        for other_x, other_y, *_ in boxes[number + 1 :]:
            assert abs(x - other_x) > wide or abs(y - other_y) > high


@pytest.mark.parametrize("state", STATE_COLOURS)
def test_a_state_has_its_colour_and_its_word(read, state: str):
    connector = read(template("dialogue"))
    picture = to_svg(connector, {"author": state})
    assert f'<g fill="{STATE_COLOURS[state]}"><title>author</title>' in picture
    assert state in texts(picture)


def test_what_is_no_word_of_ours_is_text_all_the_same():
    """The reader lets no such names pass; a caller may bring them."""
    bad = '"]<script>&'
    agents = {bad: Agent(bad, command=("a",)), "b": Agent("b", command=("b",))}
    connector = Connector("<i>", "/x", "", agents, Dialogue((bad, "b"), bad))
    picture = to_svg(connector, {"b": "</svg><script>"})
    assert ElementTree.fromstring(picture).find(f".//{SVG}script") is None
    assert bad in texts(picture)
    assert "<script" not in to_mermaid(connector)


def test_a_flow_chart_has_a_line_for_each_node_and_edge(read):
    lines = to_mermaid(read(template("pipeline"))).splitlines()
    assert lines[0] == "flowchart LR"
    node = r'    n\d+(\["[\w-]+"\]|\(\["[\w ]+"\]\))'
    edge = r'    n\d+ (-->|-\.->|<-->)(\|"[\w:, ]+"\|)? n\d+'
    assert all(re.fullmatch(f"{node}|{edge}", line) for line in lines[1:])
    assert '    n3 -.->|"fails: 1, 3 times"| n2' in lines


def test_a_large_team_is_drawn(team):
    links = {f"a{number}": ["*"] for number in range(200)}
    picture = to_svg(team({"type": "mesh", "start": {"a0": "x"}, "links": links}, 200))
    assert len(texts(picture)) == 203
    assert len(picture) < 200_000
