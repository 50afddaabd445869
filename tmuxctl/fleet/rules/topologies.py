"""Which rules belong to which topology."""

from __future__ import annotations

from tmuxctl.fleet.connector import Connector, Dialogue, Meeting, Mesh, Pipeline
from tmuxctl.fleet.rules.conversation import TeamConversation
from tmuxctl.fleet.rules.dialogue import DialogueRules
from tmuxctl.fleet.rules.meeting import MeetingRules
from tmuxctl.fleet.rules.mesh import MeshRules
from tmuxctl.fleet.rules.pipeline import PipelineRules
from tmuxctl.fleet.rules.recursive import RecursiveRules


def make_conversation(connector: Connector) -> TeamConversation:
    """The conversation that a connector file describes, before its beginning."""
    topology, names = connector.topology, tuple(connector.agents)
    if isinstance(topology, Pipeline):
        return PipelineRules(topology, names)
    if isinstance(topology, Dialogue):
        return DialogueRules(topology, names)
    if isinstance(topology, Meeting):
        return MeetingRules(topology, names)
    if isinstance(topology, Mesh):
        return MeshRules(topology, names)
    return RecursiveRules(topology, names)
