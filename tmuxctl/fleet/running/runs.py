"""The runs of a tmux server's teams: where each is kept, which files were confirmed, and how far a run has come."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from tmuxctl.control import Control
from tmuxctl.errors import NotFound, TmuxctlError
from tmuxctl.fleet.connector import Connector
from tmuxctl.fleet.running.transcript import Record, is_written, last_run, parse_time, unwritten_error
from tmuxctl.machines import machine_table
from tmuxctl.model import NAME, NOTHING
from tmuxctl.results import TeamAgent, TeamStatus
from tmuxctl.state_files import make_private_folder, write_record
from tmuxctl.untrusted import JSON_LIMIT, fits, parse_record, read_file
from tmuxctl.value import Value
from tmuxctl.vocabulary import RunEvent, RunState

FOLDER, CONFIRMED = "teams", "confirmed"

RECORD = {"team!": str, "path!": str, "digest!": str, "transcript!": str, "turns!": int, "machines!": dict}


class KnownRun(Value):
    """What is kept of a team's last run: the connector file it was made from and its digest, its transcript, the limit of its
    turns, and how the machines are reached that the file named, as `machines.toml` has it."""

    team: str
    path: str
    digest: str
    transcript: str
    turns: int
    machines: Mapping[str, Any] = NOTHING


class RunFolder:
    """The folder of a tmux server's runs, which is made when something is to be kept in it."""

    def __init__(self, home: str) -> None:
        self.path = f"{home}/{FOLDER}"

    def transcript_of(self, connector: Connector) -> str:
        """The file of a team's transcript: what its connector file says, beside that, or one in this folder."""
        if connector.output is not None:
            given = os.path.expanduser(connector.output)
            return os.path.join(os.path.dirname(os.path.abspath(connector.path)), given)
        return f"{self.path}/{connector.name}.jsonl"

    def keep(self, connector: Connector) -> KnownRun:
        """Keep that this team has a run; Failed `disk_full`, `io`."""
        run = KnownRun(
            connector.name,
            os.path.abspath(connector.path),
            connector.digest,
            self.transcript_of(connector),
            connector.stop.turns,
            {name: machine_table(entry) for name, entry in connector.machines.items()},
        )
        with self._writing():
            write_record(f"{self.path}/{run.team}.json", run.__dict__, durable=True)
        return run

    def find(self, team: str) -> KnownRun:
        """The last run of the team of this name; NotFound `no_run`."""
        if NAME.fullmatch(team):
            with suppress(OSError, ValueError, TmuxctlError):
                kept = parse_record(read_file(f"{self.path}/{team}.json", JSON_LIMIT), team)
                if fits(kept, RECORD) and kept["team"] == team:
                    return KnownRun(**{name.rstrip("!"): kept[name.rstrip("!")] for name in RECORD})
        raise NotFound(
            f"no run of a team {ascii(team[:60])}",
            reason="no_run",
            hint="those there are: tmuxctl connect ls; begin one: tmuxctl connect up FILE",
        )

    def list_teams(self) -> list[str]:
        """The names of the teams that have had a run, in order."""
        with suppress(OSError):
            names = (file.removesuffix(".json") for file in os.listdir(self.path) if file.endswith(".json"))
            return sorted(name for name in names if NAME.fullmatch(name))
        return []

    def forget(self, team: str) -> None:
        """Keep no more that this team has had a run; its transcript stays."""
        with suppress(FileNotFoundError):
            os.unlink(f"{self.path}/{team}.json")

    def is_confirmed(self, digest: str) -> bool:
        """Whether a person has agreed to what a file of this digest does."""
        return os.path.lexists(f"{self.path}/{CONFIRMED}/{digest}")

    def confirm(self, digest: str) -> None:
        """Keep that a person has agreed; errors as `keep`."""
        with self._writing():
            make_private_folder(f"{self.path}/{CONFIRMED}")
            os.close(os.open(f"{self.path}/{CONFIRMED}/{digest}", os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600))

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """The folder is there, and what cannot be written in it is told."""
        try:
            make_private_folder(self.path)
            yield
        except OSError as error:
            raise unwritten_error(self.path, error, "df -h") from None


def summarize(control: Control, run: KnownRun, records: Sequence[Record] | None = None) -> TeamStatus:
    """How far a run has come, by its transcript and its sessions."""
    found = last_run(run.transcript) if records is None else records
    last = found[-1]
    agents = list_agents(found)
    state, reason, message = RunState.STOPPED, None, None
    if last.event is RunEvent.END:
        state = RunState.ENDED
    elif is_written(run.transcript):
        working = [one for one in agents if one.turn]
        state = RunState.WAITING if working and all(one.waits for one in working) else RunState.RUNNING
    if last.event in (RunEvent.END, RunEvent.STOPPED):
        reason, message = last.about.get("reason"), last.about.get("message") or last.text
    tokens = [one.about["output_tokens"] for one in found if isinstance(one.about.get("output_tokens"), int)]
    states = {} if state is RunState.ENDED else _states(control, [one.session for one in agents if one.session])
    now = time.time()
    return TeamStatus(
        team=run.team,
        run=str(found[0].about.get("run", "")),
        state=state.value,
        reason=reason,
        message=message if reason else None,
        path=run.path,
        transcript=run.transcript,
        began=found[0].at,
        turns=count_turns(found),
        turns_most=run.turns,
        messages=sum(one.event is RunEvent.MESSAGE for one in found),
        output_tokens=sum(tokens) if tokens else None,
        agents=tuple(
            TeamAgent(
                name=one.name,
                session=one.session,
                state=states.get(one.session or ""),
                turns=one.turns,
                turn=one.turn,
                seconds=round(now - parse_time(one.since), 1) if one.turn else None,
                waits=one.waits,
                last=one.last,
            )
            for one in agents
        ),
    )


def count_turns(records: Iterable[Record]) -> int:
    """How many turns were begun; one that was tried again is one."""
    return sum(one.event is RunEvent.TURN and not one.about.get("tries") for one in records)


class AgentProgress:
    """What the records of a run say of an agent: its session, how many turns it had, the one it has now and since when, for what
    it waits where that is a person, and its last answer."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.session: str | None = None
        self.turns = 0
        self.turn: str | None = None
        self.since = ""
        self.waits: str | None = None
        self.last: str | None = None

    def note(self, record: Record) -> None:
        """Take a record that tells of this agent."""
        self.waits = record.text if record.event in (RunEvent.ASKING, RunEvent.PAUSED) else None
        match record.event:
            case RunEvent.TURN:
                self.turn, self.since = record.about.get("turn"), record.at
                self.turns += not record.about.get("tries")
            case RunEvent.SESSION:
                self.session = record.about.get("session")
            case RunEvent.MESSAGE | RunEvent.SKIPPED:
                self.turn, self.last = None, record.text


def list_agents(records: Iterable[Record]) -> list[AgentProgress]:
    """What the records say of each agent, in the order in which they came."""
    found: dict[str, AgentProgress] = {}
    for record in records:
        name = record.to[0] if record.event is RunEvent.TURN else record.sender
        if name is not None:
            found.setdefault(name, AgentProgress(name)).note(record)
    return list(found.values())


def _states(control: Control, addresses: Sequence[str]) -> dict[str, str]:
    """The states of these sessions, as far as they are known; those of machines that are not reached are not."""
    found: dict[str, str] = {}
    for machine in dict.fromkeys(address.rpartition("/")[0] for address in addresses):
        with suppress(TmuxctlError):
            listed = control.call("ls", {"machine": machine} if machine else {})
            found.update({one.address: one.state.value for one in listed.sessions})
    return found
