"""What a connector file says of its topology: the keys of each type, and how they have to agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tmuxctl.fleet.connector import Dialogue, FanOut, Meeting, Mesh, OnFail, Pipeline, Recursive, Stage, Topology
from tmuxctl.fleet.files.field_kinds import (
    AGENT,
    PATTERN,
    TEXT,
    ConnectorReader,
    FieldKind,
    FileKey,
    FileKeys,
    either,
    keys_schema,
    list_of,
    map_of,
    one_of,
    record,
    whole_number,
)
from tmuxctl.profile_files.yaml_tree import YamlNode
from tmuxctl.value import NamedTuple

AGENTS_MOST = 200
STAGES_MOST = 200
COUNT_MOST = 1000

REPLACED = "{input} is the run's text"

ON_FAIL: FileKeys = {
    "goto": FileKey(
        whole_number(0, STAGES_MOST - 1), "the stage to go on at, from 0: this one or one before it", needed=True
    ),
    "max": FileKey(whole_number(1, COUNT_MOST), "how often at most", "most", needed=True),
}

STAGE: FileKeys = {
    "agent": FileKey(AGENT, "who does it", needed=True),
    "prompt": FileKey(TEXT, f"what the agent is given: {REPLACED}, {{previous}} the answer before", needed=True),
    "expect_exit": FileKey(whole_number(0, 255), "the exit status that a command has to end with"),
    "on_fail": FileKey(record(OnFail, ON_FAIL), "where to go on if it ends with another status"),
}

STAGE_KIND = record(Stage, STAGE, dependentRequired={"on_fail": ["expect_exit"]})

JOIN_WORDS = {"all": None, "first": 1}
JOIN_COUNT = whole_number(1, STAGES_MOST)


def _read_join(reader: ConnectorReader, node: YamlNode, what: str) -> int | None:
    found = reader.text(node, what)
    return JOIN_WORDS[found] if found in JOIN_WORDS else JOIN_COUNT.read(reader, node, what)


JOIN = FieldKind(_read_join, {"oneOf": [{"enum": list(JOIN_WORDS)}, JOIN_COUNT.schema]})

FAN_OUT: FileKeys = {
    "fan_out": FileKey(
        list_of(STAGE_KIND, AGENTS_MOST, 2, unique=False),
        "stages that are given the same text at once",
        "stages",
        needed=True,
    ),
    "join": FileKey(JOIN, "how many of their answers go on, as one message: all (default), first, or a number"),
}


def _is_fan_out(node: YamlNode) -> bool:
    return isinstance(node.value, dict) and "fan_out" in node.value


ANYBODY = "*"
LINK = either(lambda node: node.value == ANYBODY, one_of(ANYBODY), AGENT)
OPENING = FileKey(TEXT, f"the first text: {REPLACED} (default: that alone)")

PlaceInFile = tuple[str | int, ...]
"""Keys and indexes that lead from a node to one inside."""


class TopologyType(NamedTuple):
    """One type of topology: the class of its value, its keys, and what finds the places where they do not agree, and why."""

    kind: type[Pipeline | Dialogue | Meeting | Mesh | Recursive]
    about: str
    keys: FileKeys
    disagreements: Callable[[Any], Iterator[tuple[PlaceInFile, str]]]


def _pipeline_disagreements(pipeline: Pipeline) -> Iterator[tuple[PlaceInFile, str]]:
    for number, stage in enumerate(pipeline.stages):
        place: PlaceInFile = ("stages", number)
        if isinstance(stage, Stage):
            yield from _stage_disagreements(stage, number, place)
            continue
        agents = [part.agent for part in stage.stages]
        if len(set(agents)) < len(agents):
            yield (*place, "fan_out"), "an agent stands there twice, and never has two turns at once"
        if stage.join and stage.join > len(agents):
            yield (*place, "join"), f"{stage.join} answers of {len(agents)} stages"
        for index, part in enumerate(stage.stages):
            yield from _stage_disagreements(part, number, (*place, "fan_out", index))


def _stage_disagreements(stage: Stage, number: int, place: PlaceInFile) -> Iterator[tuple[PlaceInFile, str]]:
    if stage.on_fail and stage.expect_exit is None:
        yield (*place, "on_fail"), "it needs `expect_exit`, the status that the stage fails without"
    if stage.on_fail and stage.on_fail.goto > number:
        yield (
            (*place, "on_fail", "goto"),
            f"stage {stage.on_fail.goto} comes after this one, which is {number} (from 0)",
        )


def _dialogue_disagreements(dialogue: Dialogue) -> Iterator[tuple[PlaceInFile, str]]:
    if dialogue.first not in dialogue.between:
        yield ("first",), f"{dialogue.first} is neither of {' and '.join(dialogue.between)}"


def _meeting_disagreements(meeting: Meeting) -> Iterator[tuple[PlaceInFile, str]]:
    if meeting.chair in meeting.members:
        yield ("members",), f"{meeting.chair} is the chair, who speaks after the members"


def _recursive_disagreements(recursive: Recursive) -> Iterator[tuple[PlaceInFile, str]]:
    if recursive.root == recursive.worker:
        yield ("worker",), f"{recursive.worker} is the root: a worker is started anew for each task"


TOPOLOGIES: Mapping[str, TopologyType] = {
    "pipeline": TopologyType(
        Pipeline,
        "each stage's answer is the next one's input",
        {
            "stages": FileKey(
                list_of(either(_is_fan_out, record(FanOut, FAN_OUT), STAGE_KIND), STAGES_MOST, unique=False),
                "the steps, in order",
                needed=True,
            )
        },
        _pipeline_disagreements,
    ),
    "dialogue": TopologyType(
        Dialogue,
        "two agents, strictly by turns",
        {
            "between": FileKey(list_of(AGENT, 2, 2), "the two", needed=True),
            "first": FileKey(AGENT, "which of them is given the opening", needed=True),
            "opening": OPENING,
        },
        _dialogue_disagreements,
    ),
    "meeting": TopologyType(
        Meeting,
        "rounds in which all members speak, then the chair",
        {
            "chair": FileKey(AGENT, "who speaks last in each round, and decides", needed=True),
            "members": FileKey(
                list_of(AGENT, AGENTS_MOST, 2), "the others, in the order in which they speak", needed=True
            ),
            "rounds": FileKey(whole_number(1, COUNT_MOST), "how many at most (default 3)"),
            "speak": FileKey(one_of("in-order", "parallel"), "one after the other (default), or all members at once"),
            "opening": OPENING,
            "decision": FileKey(PATTERN, "the pattern of an answer of the chair that ends the meeting"),
        },
        _meeting_disagreements,
    ),
    "mesh": TopologyType(
        Mesh,
        "any agent tells any other something, by lines `@NAME: text`",
        {
            "start": FileKey(
                map_of(AGENT, TEXT, AGENTS_MOST, 1), f"the first text of some agents: {REPLACED}", needed=True
            ),
            "links": FileKey(
                map_of(AGENT, list_of(LINK, AGENTS_MOST, 0), AGENTS_MOST),
                "whom each may tell something, * for all; who has no entry reaches nobody (default: everybody reaches all)",
            ),
        },
        lambda mesh: iter(()),
    ),
    "recursive": TopologyType(
        Recursive,
        "an agent gives tasks to others, who are started for them",
        {
            "root": FileKey(AGENT, "who is given the opening", needed=True),
            "worker": FileKey(AGENT, "the agent that is started anew for each task", needed=True),
            "depth": FileKey(whole_number(1, 8), "how deep tasks may give tasks; 1: only the root does (default 2)"),
            "width": FileKey(whole_number(1, COUNT_MOST), "tasks of one answer at most (default 4)"),
            "total": FileKey(whole_number(1, COUNT_MOST), "tasks of the run at most (default 12)"),
            "parallel": FileKey(whole_number(1, COUNT_MOST), "tasks that are worked on at once at most (default 2)"),
            "opening": OPENING,
        },
        _recursive_disagreements,
    ),
}


def _read_topology(reader: ConnectorReader, node: YamlNode, what: str) -> Topology:
    entries = reader.entries(node, what, ())
    if "type" not in entries:
        raise reader.wrong(node, what, "`type` is missing", f"there are: {', '.join(TOPOLOGIES)}")
    known = TOPOLOGIES[reader.one_of(entries.pop("type"), f"{what}.type", tuple(TOPOLOGIES))]
    found = known.kind(**reader.fields(node._replace(value=entries), what, known.keys))
    for place, why in known.disagreements(found):
        raise reader.wrong(_find_node(node, place), ".".join(map(str, (what, *place))), why)
    return found


def _find_node(node: Any, place: PlaceInFile) -> YamlNode:
    for step in place:
        node = node.value[step]
    found: YamlNode = node
    return found


def _topology_schema() -> dict[str, Any]:
    types = []
    for name, known in TOPOLOGIES.items():
        schema = keys_schema(known.keys)
        schema["properties"] = {"type": {"const": name}, **schema["properties"]}
        types.append({"title": name, "description": known.about, **schema, "required": ["type", *schema["required"]]})
    return {"oneOf": types}


TOPOLOGY = FieldKind(_read_topology, _topology_schema())
