"""The commands of teams: what a connector file says and would do, its run, and what became of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tmuxctl import config
from tmuxctl.errors import Conflict, Failed
from tmuxctl.operations import TEXT, FileName, Flag, ValueKind, operation
from tmuxctl.results import TeamDown, TeamFile, TeamGraph, TeamList, TeamPlan, TeamReport, TeamRun, TeamStatus
from tmuxctl.surfaces.cli.commands.own_command import find_tmuxctl
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations
from tmuxctl.surfaces.cli.printing.output import tell

if TYPE_CHECKING:
    from tmuxctl.fleet import teams
    from tmuxctl.fleet.connector import Connector

ConnectorFile = Annotated[FileName, "the connector file, JSON or YAML"]
TeamName = Annotated[
    str, ValueKind("team", TEXT.schema, TEXT.parse, completes="file"), "the team's name, or its connector file"
]


class TeamOperations(CommandLineOperations):
    """Operations of teams."""

    @operation(
        right="read",
        group="Teams",
        family=True,
        examples=("connect new pipeline", "connect new mesh team.yaml"),
    )
    def connect_new(
        self,
        topology: Annotated[
            Literal["pipeline", "dialogue", "meeting", "mesh", "recursive"], "how the agents of the team talk"
        ],
        file: Annotated[FileName | None, "write it here; default: print it"] = None,
    ) -> TeamFile:
        """Print a connector file to begin with, or write it: a small team of this topology, with comments."""
        from tmuxctl.fleet.files.templates import template

        text = template(topology)
        if file is not None:
            _write_new_file(file, text)
        return TeamFile(path=file, team="team", topology=topology, agents=(), text=text)

    @operation(right="read", group="Teams", family=True, examples=("connect validate team.yaml",))
    def connect_validate(self, file: ConnectorFile) -> TeamFile:
        """Check a connector file. The first mistake is told with its line, and with what is right there."""
        from tmuxctl.fleet.files.reading import read_connector
        from tmuxctl.fleet.running.planning import topology_name

        connector = read_connector(file)
        return TeamFile(file, connector.name, topology_name(connector), tuple(connector.agents))

    @operation(
        right="read", group="Teams", family=True, view="text", examples=("connect schema >connector.schema.json",)
    )
    def connect_schema(self) -> dict[str, Any]:
        """Print the JSON Schema of connector files, with which an editor completes and checks them.

        A JSON file names it by the key $schema, a YAML file by a line: # yaml-language-server: $schema=connector.schema.json
        """
        import json

        from tmuxctl.fleet.files.json_schema import connector_schema

        schema = connector_schema()
        return schema if self.options.json else {"text": json.dumps(schema, indent=2)}

    @operation(
        right="read", group="Teams", family=True, examples=("connect plan team.yaml", "connect plan team.yaml --json")
    )
    def connect_plan(
        self,
        file: ConnectorFile,
        *,
        input: Annotated[str | None, "the text that the run is given, in the place of the file's"] = None,
    ) -> TeamPlan:
        """Print what a run would do, and start nothing: the sessions, their programs, folders and machines, what is decided
        without a person, and the first texts."""
        with self._teams() as found:
            return found.plan(found.read(file, input))

    @operation(
        right="read",
        group="Teams",
        family=True,
        examples=("connect graph team.yaml", "connect graph team.yaml --svg team.svg"),
    )
    def connect_graph(
        self,
        file: ConnectorFile,
        *,
        svg: Annotated[FileName | None, "write it as an SVG picture to this file; - prints it"] = None,
    ) -> TeamGraph | None:
        """Print who talks to whom, as a Mermaid diagram, or draw it."""
        from tmuxctl.fleet.files import drawing
        from tmuxctl.fleet.files.reading import read_connector

        connector = read_connector(file)
        if svg is None:
            return TeamGraph(connector.name, "mermaid", drawing.to_mermaid(connector))
        text = drawing.to_svg(connector)
        if svg == "-":
            return TeamGraph(connector.name, "svg", text)
        _write_new_file(svg, text)
        return None

    @operation(
        right="create",
        group="Teams",
        family=True,
        examples=(
            "connect up team.yaml",
            "connect up team.yaml --input 'review the last commit'",
            "connect up team.yaml --yes --wait",
            "connect up team.yaml --detach",
            "connect up team.yaml --resume",
        ),
    )
    def connect_up(
        self,
        file: ConnectorFile,
        *,
        input: Annotated[str | None, "the text that the run is given, in the place of the file's"] = None,
        resume: Annotated[bool, "go on with a run that stopped; nothing is typed twice"] = False,
        wait: Annotated[bool, "end, with status 6, where everything waits for a decision that no policy makes"] = False,
        detach: Annotated[bool, "have the run carried out in a session of its own, TEAM-runner"] = False,
        yes: Annotated[bool, "agree to the plan without being asked"] = False,
    ) -> TeamRun | TeamStatus | None:
        """Start the agents of a connector file and have them talk, by its rules, until the run ends; print its result.

        A file runs commands and may approve what they ask. One that was never run is shown as a plan first, and you are
        asked; elsewhere than on a terminal --yes is needed. A changed file is a new file.

        Ctrl-C stops the run; its sessions stay, and --resume goes on with it. A run that came to its end ends its sessions,
        unless the file says `keep`. Everything that happens is a line of the transcript (`connect log`).
        """
        with self._teams() as found:
            connector = found.read(file, input)
            self._agree(found, connector, yes)
            if detach:
                found.start(connector, find_tmuxctl(), input, resume=resume)
                if not self.options.quiet:
                    from tmuxctl.fleet.teams import runner_session

                    runner = runner_session(connector.name)
                    follow = f"tmuxctl connect log {connector.name} --follow"
                    tell(f"{runner}: look at it: tmuxctl attach {runner}; {follow}")
                return None
            from tmuxctl.surfaces.cli.teams.live import RunDisplay

            with RunDisplay(self.options, connector) as display:
                return found.up(connector, resume=resume, waits_for_people=not wait, show=display.show)

    @operation(
        right="read", group="Teams", family=True, examples=("connect status team.yaml", "connect status review --json")
    )
    def connect_status(self, team: TeamName) -> TeamStatus:
        """Print how far the last run of a team has come, what each agent does, and what waits for you."""
        with self._teams() as found:
            return found.status(team)

    @operation(
        right="read",
        group="Teams",
        family=True,
        streams=True,
        view="records",
        examples=("connect log review", "connect log review --follow", "connect log team.yaml --json"),
    )
    def connect_log(
        self,
        team: TeamName,
        *,
        follow: Annotated[bool, "go on printing until the run ends or stops", Flag(("-f",))] = False,
    ) -> Iterator[Any]:
        """Print what happened in the last run of a team, a line for each message."""
        with self._teams() as found:
            for record in found.log(team, follow=follow):
                yield record.to_json()

    @operation(
        right="read",
        group="Teams",
        family=True,
        examples=("connect report review", "connect report review >review.md"),
    )
    def connect_report(self, team: TeamName) -> TeamReport:
        """Print the last run of a team as Markdown: who said what, how long it took, and how many tokens it used."""
        with self._teams() as found:
            return found.report(team)

    @operation(right="kill", group="Teams", family=True, examples=("connect down review", "connect down team.yaml"))
    def connect_down(self, team: TeamName) -> TeamDown:
        """End the sessions of a team's last run, and the run itself. Its transcript stays."""
        with self._teams() as found:
            return found.down(team)

    @operation(right="read", group="Teams", family=True, examples=("connect ls", "connect ls --json"))
    def connect_ls(self) -> TeamList:
        """List the teams that have had a run, and how far each has come."""
        with self._teams() as found:
            return TeamList(found.list_all())

    @contextmanager
    def _teams(self) -> Iterator[teams.Teams]:
        from tmuxctl.control import Control
        from tmuxctl.fleet import teams

        with Control(settings=config.load({"tmux.socket": self.options.socket}), resident=True) as control:
            yield teams.Teams(control)

    def _agree(self, found: teams.Teams, connector: Connector, yes: bool) -> None:
        """Show the plan of a file that nobody has agreed to, and go on if it is agreed to now."""
        if found.folder.is_confirmed(connector.digest):
            return
        if not yes:
            from tmuxctl.surfaces.cli.printing import team_lines

            if not self._is_attended():
                found.refuse_unconfirmed(connector)
            tell("\n".join(team_lines.plan_lines(found.plan(connector))))
            sys.stderr.write("Run these commands? [y/N] ")
            sys.stderr.flush()
            if sys.stdin.readline().strip().lower() not in ("y", "yes"):
                raise Failed(
                    "nothing was started", reason="not_confirmed", hint="see the plan: tmuxctl connect plan FILE"
                )
        found.folder.confirm(connector.digest)

    def _is_attended(self) -> bool:
        attended = sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()
        return attended and self.options.prompt and not self.options.json


def _write_new_file(path: str, text: str) -> None:
    """Write a file that was not there; Conflict `exists`, Failed `bad_file`."""
    try:
        with open(path, "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Conflict(f"{ascii(path)} is there already", reason="exists", hint="name another file") from None
    except OSError as error:
        raise Failed(f"{ascii(path)}: {error.strerror}", reason="bad_file", hint="name a file you may write") from None
