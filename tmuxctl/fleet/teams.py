"""What can be done with teams: check and show a connector file, have its run, and look at one."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress

from tmuxctl.control import Control
from tmuxctl.control.machines.reaching import declare_machine
from tmuxctl.errors import Conflict, Denied, Failed, NotFound, TmuxctlError, Unreachable
from tmuxctl.fleet.connector import DETACHED, Connector
from tmuxctl.fleet.files.reading import read_connector
from tmuxctl.fleet.running.agents import TAG, run_tag, session_name, team_tag
from tmuxctl.fleet.running.planning import plan
from tmuxctl.fleet.running.runner import Runner, end_sessions
from tmuxctl.fleet.running.runs import KnownRun, RunFolder, count_turns, summarize
from tmuxctl.fleet.running.telling import write_report
from tmuxctl.fleet.running.transcript import (
    Record,
    RunTranscript,
    is_written,
    last_run,
    read_last_run,
    running_error,
)
from tmuxctl.machines import parse_machine
from tmuxctl.operations import current
from tmuxctl.results import TeamDown, TeamPlan, TeamReport, TeamRun, TeamStatus
from tmuxctl.timing import TIMING
from tmuxctl.value import changed
from tmuxctl.vocabulary import RunEvent, RunState


class Teams:
    """The teams of one tmux server. A team is named by its connector file (a path), or by its name once it has had a run."""

    def __init__(self, control: Control) -> None:
        self.control = control
        self.folder = RunFolder(control.machine.transport.home)

    # files

    def read(self, path: str, text: str | None = None) -> Connector:
        """A connector file, checked; with `text` in the place of its input. Usage `bad_connector` names the line."""
        connector = read_connector(path)
        return connector if text is None else changed(connector, input=text)

    def plan(self, connector: Connector) -> TeamPlan:
        """What a run of it would do; nothing is done."""
        return plan(connector, self.folder)

    def refuse_unconfirmed(self, connector: Connector, digest: str | None = None) -> None:
        """Denied `not_confirmed` for a file whose plan nobody agreed to, unless `digest` is that of the plan the caller saw."""
        if digest is not None and digest != connector.digest:
            raise Conflict(
                f"{ascii(connector.path)} is not as it was when you saw its plan",
                reason="changed",
                hint=f"look again: tmuxctl connect plan {ascii(connector.path)}",
            )
        if digest is None and not self.folder.is_confirmed(connector.digest):
            raise Denied(
                f"nobody has agreed to what {ascii(connector.path)} does",
                reason="not_confirmed",
                hint="see the plan: tmuxctl connect plan FILE; then agree with: tmuxctl connect up FILE --yes",
            )

    # runs

    def up(
        self,
        connector: Connector,
        *,
        resume: bool = False,
        waits_for_people: bool = True,
        show: Callable[[Record], None] = lambda record: None,
    ) -> TeamRun:
        """Have a run of a file that was confirmed, or go on with one that stopped; how it ended or why it stopped.

        Of a run that has ended, `resume` ends what sessions are left, and tells its end again. Conflict `running`, `unfinished`
        if there is one to be resumed, `changed` if the file is another one by now, `other_team` if another team's run is in the
        transcript; NotFound `no_run` where there is none.
        """
        transcript_path = self.folder.transcript_of(connector)
        self._refuse_other_run(connector.name, transcript_path)
        for entry in connector.machines.values():
            declare_machine(self.control.machine, entry)
        if not os.path.lexists(transcript_path):
            self.folder.keep(connector)
        with closing(RunTranscript(transcript_path)) as transcript:
            _check_resumable(connector, transcript.records, resume)
            run, began, records = self.folder.keep(connector), time.monotonic(), transcript.records
            if records and records[-1].event is RunEvent.END and not connector.keep:
                # who carried it out may have been killed before it could
                left = self._end_sessions(run, records, run_tag(str(records[0].about.get("run"))))[1]
                if resume:
                    return self._tell_end(run, records[-1], 0.0, left)
            if not resume:
                transcript.begin()
            runner = Runner(self.control, connector, transcript, show=show, waits_for_people=waits_for_people)
            last = runner.carry_out()
        return self._tell_end(run, last, time.monotonic() - began, runner.left)

    def check_startable(self, connector: Connector, resume: bool = False) -> None:
        """Raise what `up` would, before anything is done."""
        path = self.folder.transcript_of(connector)
        self._refuse_other_run(connector.name, path)
        if is_written(path):
            raise running_error(path)
        _check_resumable(connector, self._records(connector), resume)

    def start(
        self, connector: Connector, tmuxctl: Sequence[str], text: str | None = None, *, resume: bool = False
    ) -> TeamStatus:
        """Have a confirmed file's run carried out in a session of its own, TEAM-runner; how far it is once it has begun. `tmuxctl`
        are the words that start this program, `text` is the run's input. Errors as `up`; Failed `not_started`."""
        self.check_startable(connector, resume)
        name, before = runner_session(connector.name), self._mark(connector)
        # of a run that ended, only the sessions are ended that are left of it
        is_done = resume and self._records(connector)[-1].event is RunEvent.END
        words = [*tmuxctl, "--socket", self.control.machine.transport.socket]
        words += ["connect", "up", os.path.abspath(connector.path)]
        words += ["--resume"] if resume else []
        words += [f"--input={text}"] if text is not None else []
        self._end_runner(connector.name, over=True)
        # so that it can be given up before it has begun
        self.folder.keep(connector)
        given = {"name": name, "command": words, "tag": [TAG, DETACHED], "if_exists": "error", "wait": False}
        runner = self.control.call("new", given).id
        while True:
            current().check()
            over = self.control.call("show", {"session": runner}).state.traits.over
            if self._mark(connector) != before or (over and is_done):
                return self.status(connector.name)
            if over:
                hint = f"it says why: tmuxctl log {name}"
                raise Failed(f"the run of team {connector.name} did not begin", reason="not_started", hint=hint)
            time.sleep(TIMING.fleet.follow_seconds)

    def _records(self, connector: Connector) -> list[Record]:
        path = self.folder.transcript_of(connector)
        return read_last_run(path)[0] if os.path.lexists(path) else []

    def _mark(self, connector: Connector) -> tuple[object, int]:
        """What differs once a run has begun or goes on."""
        records = self._records(connector)
        return records[0].about.get("run") if records else None, len(records)

    def _end_runner(self, team: str, *, over: bool = False) -> None:
        """End the session in which a detached run is carried out, if there is one; with `over` only if its program has ended."""
        try:
            sessions = self.control.call("ls", {}).sessions
        except Unreachable:
            return
        for one in sessions:
            if one.name == runner_session(team) and DETACHED in one.tags and (one.state.traits.over or not over):
                self.control.call("kill", {"session": [one.id], "signal": "INT", "grace": "10s"})

    def _refuse_other_run(self, team: str, transcript: str) -> None:
        """Conflict `running` where another file's team of this name is at work: it could not be found any more."""
        with suppress(NotFound):
            other = self.folder.find(team).transcript
            if other != transcript and is_written(other):
                raise running_error(other)

    def _end_sessions(
        self, run: KnownRun, records: Sequence[Record], tag: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """End them here, on the machines that the file itself names, and on those that the records tell of."""
        machines = {one.about.get("machine") for one in records if one.event is RunEvent.SESSION}
        return end_sessions(self.control, tag, {None, *run.machines, *machines})

    def _tell_end(self, run: KnownRun, last: Record, elapsed: float, left: tuple[str, ...]) -> TeamRun:
        about, ended = last.about, last.event is RunEvent.END
        records = last_run(run.transcript)
        return TeamRun(
            team=run.team,
            run=str(records[0].about["run"]),
            ok=bool(about.get("ok")) and ended,
            state=(RunState.ENDED if ended else RunState.STOPPED).value,
            reason=str(about.get("reason")),
            message=about.get("message") if ended else last.text,
            result=last.text if ended else None,
            results=about.get("results") or {},
            turns=count_turns(records),
            elapsed=round(elapsed, 1),
            transcript=run.transcript,
            left=left,
        )

    def find(self, team: str) -> KnownRun:
        """The run of a team by its name or its file; NotFound `no_run`. The machines that its file named are known from then on."""
        run = self.folder.find(self.read(team).name if "/" in team or "." in team else team)
        for name, table in run.machines.items():
            with suppress(TmuxctlError):
                declare_machine(self.control.machine, changed(parse_machine(name, table), source=""))
        return run

    def status(self, team: str) -> TeamStatus:
        """How far its last run has come."""
        return summarize(self.control, self.find(team))

    def list_all(self) -> tuple[TeamStatus, ...]:
        """Every team that has had a run and whose transcript can be read."""
        found = []
        for name in self.folder.list_teams():
            try:
                found.append(summarize(self.control, self.find(name)))
            except TmuxctlError:
                continue
        return tuple(found)

    def log(self, team: str, *, follow: bool = False) -> Iterator[Record]:
        """The records of its last run; with `follow` also those that come, up to its end."""
        run = self.find(team)
        records, offset = read_last_run(run.transcript)
        yield from records
        while follow and not (records and records[-1].event is RunEvent.END):
            current().check()
            if not is_written(run.transcript):
                # what was written last may have come in between
                follow = False
            came, offset = read_last_run(run.transcript, offset)
            yield from came
            records = came or records
            if follow:
                time.sleep(TIMING.fleet.follow_seconds)

    def report(self, team: str) -> TeamReport:
        """Its last run as a document."""
        run = self.find(team)
        records = last_run(run.transcript)
        return TeamReport(run.team, str(records[0].about.get("run", "")), write_report(run, records))

    def down(self, team: str) -> TeamDown:
        """End the sessions of its last run, that of a detached one too, and give the run up if it has not ended. Conflict
        `running` while another process goes on with it. Its transcript may be gone, or damaged."""
        run = self.find(team)
        self._end_runner(run.team)
        if is_written(run.transcript):
            raise running_error(run.transcript)
        records: list[Record] = []
        with suppress(NotFound, Failed):
            records = last_run(run.transcript)
        ended, left = self._end_sessions(run, records, team_tag(run.team))
        if records:
            with closing(RunTranscript(run.transcript)) as transcript:
                if transcript.records[-1].event is not RunEvent.END:
                    transcript.append([transcript.make(RunEvent.END, reason="given-up", ok=False)])
        return TeamDown(run.team, ended, left)


def runner_session(team: str) -> str:
    """The name of the session in which a detached run of a team is carried out."""
    return session_name(team, DETACHED)


def _check_resumable(connector: Connector, records: Sequence[Record], resume: bool) -> None:
    """Raise unless a run may begin, or with `resume` go on, behind these records of the last one."""
    name = connector.name
    if records and (other := records[0].about.get("team")) != name:
        raise Conflict(
            f"its transcript is that of team {ascii(other)}",
            reason="other_team",
            hint="name another file: `output` in the connector file",
        )
    unfinished = bool(records) and records[-1].event is not RunEvent.END
    if resume and not records:
        raise NotFound(f"team {name} has no run to resume", reason="no_run", hint="begin one, without --resume")
    if unfinished and not resume:
        raise Conflict(
            f"team {name} has a run that did not end",
            reason="unfinished",
            hint=f"go on with it: --resume; or give it up: tmuxctl connect down {name}",
        )
    if resume and records[0].about.get("digest") != connector.digest:
        raise Conflict(
            f"{ascii(connector.path)} was changed since the run began",
            reason="changed",
            hint=f"give the run up, and begin another one: tmuxctl connect down {name}",
        )
