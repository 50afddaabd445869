"""Who gives a text to whom in a connector, as nodes and edges: what drawings are made of.

Nodes are agents by their names, `input`, the joins of a pipeline (`join N`), and `all` in a mesh where an agent reaches
everybody: a line for each pair would be forty thousand of two hundred agents.
"""

from __future__ import annotations

from collections.abc import Iterator

from tmuxctl.fleet.connector import (
    EVERYBODY,
    INPUT,
    Connector,
    Dialogue,
    FanOut,
    Meeting,
    Mesh,
    Pipeline,
    Recursive,
    Stage,
)
from tmuxctl.value import NamedTuple


class TalkEdge(NamedTuple):
    """From whom to whom texts go, and which; `both`: in either direction; `fails`: where a stage failed."""

    source: str
    target: str
    label: str = ""
    both: bool = False
    fails: bool = False


class TalkGraph(NamedTuple):
    """Nodes in `columns` from the left, then a `ring` around a `centre` (None: nothing there), and the edges between them."""

    columns: list[list[str]]
    edges: list[TalkEdge]
    ring: tuple[str, ...] = ()
    centre: str | None = None

    @property
    def nodes(self) -> list[str]:
        """All nodes, in order."""
        centre = [self.centre] if self.centre else []
        return [*(name for column in self.columns for name in column), *centre, *self.ring]


def build_graph(connector: Connector) -> TalkGraph:
    """The graph of a connector; agents without a part in its topology stand in the last column."""
    names = tuple(connector.agents)
    match connector.topology:
        case Pipeline() as pipeline:
            graph = _pipeline_graph(pipeline)
        case Dialogue() as dialogue:
            graph = _dialogue_graph(dialogue)
        case Meeting() as meeting:
            graph = _meeting_graph(meeting)
        case Mesh() as mesh:
            graph = _mesh_graph(mesh, names)
        case Recursive() as recursive:
            graph = _recursive_graph(recursive)
    drawn = set(graph.nodes)
    idle = [name for name in names if name not in drawn]
    columns = [*graph.columns, idle] if idle else graph.columns
    return graph._replace(columns=columns, edges=_merge(graph.edges))


def _pipeline_graph(pipeline: Pipeline) -> TalkGraph:
    columns, edges = [[INPUT]], []
    before, placed = INPUT, {INPUT}
    for number, stage in enumerate(pipeline.stages):
        agents = _agents_of(stage)
        columns.append([name for name in dict.fromkeys(agents) if name not in placed])
        placed.update(agents)
        edges += [TalkEdge(before, name, str(number)) for name in agents]
        for part in stage.stages if isinstance(stage, FanOut) else (stage,):
            edges += _failing_edges(pipeline, part)
        before = agents[0]
        if isinstance(stage, FanOut):
            before = f"join {number}"
            columns.append([before])
            edges += [TalkEdge(name, before) for name in agents]
    return TalkGraph([column for column in columns if column], edges)


def _agents_of(stage: Stage | FanOut) -> list[str]:
    return [stage.agent] if isinstance(stage, Stage) else [part.agent for part in stage.stages]


def _failing_edges(pipeline: Pipeline, stage: Stage) -> Iterator[TalkEdge]:
    if stage.on_fail:
        for name in _agents_of(pipeline.stages[stage.on_fail.goto]):
            label = f"fails: {stage.on_fail.goto}, {stage.on_fail.most} times"
            yield TalkEdge(stage.agent, name, label, fails=True)


def join_label(connector: Connector, node: str) -> str:
    """What a join of a pipeline waits for: `all`, `first`, or `2 of 3`."""
    stage = connector.topology.stages[int(node.rpartition(" ")[2])]  # type: ignore[union-attr]
    assert isinstance(stage, FanOut)
    words = {None: "all", 1: "first"}
    return words.get(stage.join, f"{stage.join} of {len(stage.stages)}")


def _dialogue_graph(dialogue: Dialogue) -> TalkGraph:
    other = next(name for name in dialogue.between if name != dialogue.first)
    edges = [TalkEdge(INPUT, dialogue.first, "opening"), TalkEdge(dialogue.first, other, both=True)]
    return TalkGraph([[INPUT], [dialogue.first], [other]], edges)


def _meeting_graph(meeting: Meeting) -> TalkGraph:
    edges = [TalkEdge(meeting.chair, name, both=True) for name in meeting.members]
    return TalkGraph([[INPUT]], [TalkEdge(INPUT, meeting.chair, "to all"), *edges], meeting.members, meeting.chair)


def _mesh_graph(mesh: Mesh, names: tuple[str, ...]) -> TalkGraph:
    edges = [TalkEdge(INPUT, name, "start") for name in mesh.start]
    if mesh.links is None:
        edges += [TalkEdge(name, EVERYBODY, both=True) for name in names]
        return TalkGraph([[INPUT]], edges, names, EVERYBODY)
    reaching = [name for name, links in mesh.links.items() if "*" in links]
    edges += [TalkEdge(name, EVERYBODY) for name in reaching]
    if reaching:
        edges += [TalkEdge(EVERYBODY, name) for name in names]
    for name, links in mesh.links.items():
        if "*" not in links:
            edges += [TalkEdge(name, target) for target in links if target != name]
    return TalkGraph([[INPUT]], edges, names, EVERYBODY if reaching else None)


def _recursive_graph(recursive: Recursive) -> TalkGraph:
    root, worker = recursive.root, recursive.worker
    edges = [TalkEdge(INPUT, root, "opening"), TalkEdge(root, worker, "task"), TalkEdge(worker, root, "result")]
    deeper = [TalkEdge(worker, worker, f"task, {recursive.depth} deep")] if recursive.depth > 1 else []
    return TalkGraph([[INPUT], [root], [worker]], [*edges, *deeper])


def _merge(edges: list[TalkEdge]) -> list[TalkEdge]:
    """Edges of the same two nodes as one: with all labels, or in both directions where there are none."""
    merged: dict[tuple[str, str, bool], TalkEdge] = {}
    for edge in edges:
        back = merged.get((edge.target, edge.source, edge.fails))
        if back and edge.source != edge.target and not (edge.label or back.label):
            merged[edge.target, edge.source, edge.fails] = back._replace(both=True)
            continue
        key = (edge.source, edge.target, edge.fails)
        same = merged.get(key)
        merged[key] = same._replace(label=f"{same.label}, {edge.label}") if same and edge.label else same or edge
    return list(merged.values())
