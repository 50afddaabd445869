"""What the operations return, beside a Session."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from tmuxctl.model import Asking as Asking
from tmuxctl.model import Option as Option
from tmuxctl.model import Session, State, Status, WithState, WithStatus
from tmuxctl.value import Value
from tmuxctl.vocabulary import EvidenceKind, GatewayRole, StepState, WaitCondition, Way

TIMED_OUT, UNTOLD = 124, 125

ENDS = {"asking": 6, "exited": 5}
"""What a turn's exit status is where it did not end with the program waiting for the next."""

TEAM_ENDS = {"asking": 6, "time": 124}
"""What the exit status of a run is where its end says more than that it failed."""

NO_USAGE: Mapping[str, int | None] = MappingProxyType({"output_tokens": None})


class CursorPosition(Value):
    """Where the terminal's cursor is, counted from 0, and whether it is visible."""

    x: int
    y: int
    visible: bool


class Screen(Value):
    """What a person would see: rows of text without trailing spaces, empty rows at the end removed. `state` and `by` are None
    if the state was not asked for. Of an earlier moment: its time (`at`, ISO-8601), if that is known, what happened then
    (`moment`), and `approximate` if a part of the screen is not known."""

    session: str
    text: str
    cols: int
    rows: int
    cursor: CursorPosition
    alt: bool
    title: str
    state: State | None
    by: EvidenceKind | None
    position: str | None
    """The session's cursor (surface: `cursor` of other results), behind what the screen shows."""
    truncated: bool = False
    scrollback: tuple[str, ...] | None = None
    ansi: str | None = None
    html: str | None = None
    svg: str | None = None
    at: str | None = None
    moment: str | None = None
    approximate: bool = False


class Output(Value):
    """A stretch of a session's output, and the cursor after it. `truncated` says that some of it is missing, `missing_bytes` how
    much: 0 where that is not known."""

    session: str
    text: str
    cursor: str
    truncated: bool = False
    complete: bool = True
    missing_bytes: int = 0
    data: bytes = b""


class Marked(Value):
    """A moment of a session that got a name: the point in its output, and the time (ISO-8601)."""

    session: str
    text: str
    cursor: str
    at: str


class Exported(Value):
    """A recording that was written: its file, how many events or screens it has, and its seconds. `estimated` says that some
    of its times are: what is known between them was spread evenly. `missing` are the characters that no font has."""

    file: str
    count: int
    seconds: float
    estimated: bool
    missing: str = ""


class Reported(Value):
    """A report that was written: its file, and how many turns and questions it tells."""

    session: str
    file: str
    turns: int
    questions: int


class Recorded(Value):
    """Whether a session is recorded now, the point in its output where the recording began, and the file for it, if one was
    named: it is written at the end."""

    session: str
    recording: bool
    cursor: str
    file: str | None


class Pieces(Iterator[Output]):
    """One long output in pieces: their texts, or their data, make the whole, and the cursor is that of the last."""

    def __init__(self, pieces: Iterator[Output]) -> None:
        self._pieces = pieces

    def __next__(self) -> Output:
        return next(self._pieces)


class Written(Value):
    """What became of a write: `done`; `dup` if a write with this id was done before; `empty` if there was nothing to
    write. `cursor` is the point in the output before the input. `wait` is how the wait for a text ended, and `screen`
    what a person would see then; each is None if it was not asked for."""

    session: str
    result: str
    id: str
    bytes: int
    cursor: str | None = None
    wait: Wait | None = None
    screen: Screen | None = None


class Wait(WithStatus):
    """How a wait ended. `matched` is the condition that held, or None; `why` says in words what was seen; `elapsed` is
    in seconds. `wants` is `prompt` if the program is ready for its next command, `input` if anything else has to be
    typed. `until` is the time at which a usage limit ends (detail `limited`), ISO-8601, None if unknown. `text` is the
    text that matched; if the wait timed out, it is the output that was searched, else the last rows of the screen."""

    session: str
    matched: WaitCondition | None
    why: str
    text: str | None = None
    groups: tuple[str | None, ...] | None = None
    status: Status = Status()
    wants: str | None = None
    elapsed: float = 0.0
    cursor: str | None = None
    timed_out: bool = False
    exit_status: int | None = None
    signal: str | None = None


class Waits(Value):
    """How a wait for several sessions ended: the sessions for which the condition holds (with `--all`: every one), and
    whether that was enough."""

    waits: tuple[Wait, ...]
    ok: bool


class Submitted(Value):
    """Whether the program took what was typed, and the evidence for it: hook, shell-mark, busy-mark, asking, prompt
    (the input box is empty again), output, kernel or exit. If it did not take it: the reason."""

    ok: bool
    evidence: str


class Passed(Value):
    """A candidate that was passed over: its profile, its session if it has one, and the reason: `limited`, `failed`
    (its turn failed), `exited`, `lost`, `not_installed`, `later` if it was not needed, or the reason for which it could
    not be started."""

    profile: str | None
    reason: str
    message: str
    hint: str | None = None
    session: str | None = None


class Answer(WithState):
    """A turn: what the program wrote in reply to an input, and the state at its end.

    `complete` is True if the answer is the program's own text (`source` hook or transcript) of a turn that came to its
    end. An answer read off the terminal is complete only if the turn ended in a prompt, the beginning of the answer was
    seen, and nothing of it is gone. `error` is why the turn failed, in the program's words, or in ours if no answer was
    found; None if it did not fail. `answer` is then what came before. `warning` says that the profile may not fit this
    version of the program. `exit_status` is that of the command in a shell with marks, or that of the program if it
    ended. `source` is hook, transcript, marks or screen, None if nothing was found. `until` is the time at which a
    usage limit ends (detail `limited`), ISO-8601. `elapsed` is in seconds. `answered_by` is the profile of the session
    that took the turn; `passed` lists the candidates passed over before it.
    """

    session: str
    answer: str
    status: Status
    turn: int = 0
    submitted: Submitted = Submitted(False, "")
    complete: bool = True
    elapsed: float = 0.0
    cursor: str | None = None
    truncated: bool = False
    exit_status: int | None = None
    signal: str | None = None
    usage: Mapping[str, int | None] = NO_USAGE
    answered_by: str | None = None
    source: str | None = None
    timed_out: bool = False
    passed: tuple[Passed, ...] = ()
    error: str | None = None
    warning: str | None = None

    @property
    def text(self) -> str:
        """The answer."""
        return self.answer


class InboxMessage(Value):
    """A message in an inbox: its id, who sent it, its text, and when it came (ISO-8601 UTC)."""

    id: str
    sender: str
    text: str
    at: str


class Inbox(Value):
    """The messages that wait for a session's program, oldest first."""

    session: str
    messages: tuple[InboxMessage, ...]


class Told(Value):
    """What became of a message. `delivered`: the program got it; else it waits in the inbox, at this `position` (from 1 on), and
    `why` says for what. `answer` is the turn in which the program answered, None if that was not waited for."""

    session: str
    id: str
    sender: str
    delivered: bool
    position: int = 0
    why: str | None = None
    answer: Answer | None = None


class Decided(WithState, moved={"until": None}):
    """A question (`asked`), the option that was chosen (None if the question was only shown), and the state afterwards.
    `timed_out` is true if the program did not want anything in time after the answer."""

    session: str
    asked: Asking
    option: str | None
    status: Status
    exit_status: int | None = None
    timed_out: bool = False


class BatchStep(Value):
    """What became of one step of a batch: its `number`, from 1 on, and its `operation`. `outcome` is `done`, `failed`,
    `interrupted` or `not_run`. `exit` is the status with which its command alone would have ended, None if it was not
    carried out to its end. `result` is that of its operation, None if there is none, or if it was too large to be kept
    (`truncated`); `error` is the error object. `elapsed` is in seconds."""

    number: int
    operation: str
    outcome: str
    exit: int | None = None
    elapsed: float | None = None
    result: Any = None
    error: Mapping[str, Any] | None = None
    truncated: bool = False


class Batch(Value):
    """What became of the steps of a batch. `ok` is true if all were done. `failed` is the number of the first that failed,
    and `exit` its exit status; without one, `exit` is 124 if the time for the whole was over (`timed_out`), else 0. Each
    step has its `number`, `operation`, `outcome` (`done`, `failed`, `interrupted`, `not_run`), `exit`, `elapsed`, `result`,
    `error` and `truncated`; `result` is what the operation returns, null if it was too large to be kept (`truncated`).
    `elapsed` is in seconds."""

    session: str
    ok: bool
    exit: int
    failed: int | None
    timed_out: bool
    steps: tuple[BatchStep, ...]
    elapsed: float


class Event(WithState, moved={"until": None, "asking": "cursor"}):
    """A change of state that `watch` reports. `time` is ISO-8601 UTC; `wants` is `prompt` or `input`, as in the result
    of a wait; `attached` is how many terminals show the session; `id` is the session's, which stays when it is renamed."""

    time: str
    session: str
    status: Status
    why: str | None = None
    cursor: str | None = None
    wants: str | None = None
    exit_status: int | None = None
    signal: str | None = None
    attached: int = 0
    id: str | None = None


class Reason(Value):
    """One piece of evidence: its source, what was seen, how many seconds ago, the state it argued for, and whether the
    verdict rests on it."""

    source: str
    seen: str
    age: float | None
    state: State | None
    used: bool


class Explained(WithState, moved={"until": None, "asking": "reasons"}):
    """A state with every piece of evidence, in the order in which the rules use them."""

    session: str | None
    status: Status
    why: str
    profile: str | None
    proc: str
    reasons: tuple[Reason, ...]
    answer: str | None = None
    evidence: tuple[Mapping[str, Any], ...] | None = None


class Ran(Value):
    """A command's exact output and exit status. `elapsed` is in seconds. If the output is not UTF-8, `output` has
    replacement characters, and `output_base64` the bytes as they were."""

    session: str
    output: str
    data: bytes
    output_base64: str | None
    exit_status: int | None
    signal: str | None = None
    elapsed: float = 0.0
    cursor: str | None = None
    truncated: bool = False
    timed_out: bool = False


class Stray(Value):
    """A process that may have belonged to a session; nothing proves it."""

    pid: int
    name: str


class End(Value):
    """How one session ended under `kill`.

    `escaped` are processes of the session that were seen but could not be ended. `strays` may have belonged to it: they
    started while it ran, have no parent in it, and do not carry its mark; they were left alone. `left` is what its
    plugins left behind.
    """

    session: str
    id: str
    exit_status: int | None
    signal: str | None
    processes: int
    escaped: tuple[int, ...] = ()
    strays: tuple[Stray, ...] = ()
    left: tuple[str, ...] = ()


class Killed(Value):
    """What `kill` ended."""

    killed: tuple[End, ...]


class Pruned(Value):
    """What `prune` removed, or would remove. `left` is what plugins did not remove because work would be lost."""

    pruned: tuple[str, ...]
    dry_run: bool = False
    left: tuple[str, ...] = ()


class Sync(Value):
    """What of one session was brought to your repository, and what was not, each in words."""

    session: str
    id: str
    told: tuple[str, ...] = ()


class Synced(Value):
    """The sessions that `sync` looked at."""

    synced: tuple[Sync, ...]


class Restoring(Value):
    """What became of one lost session.

    `outcome` is `relaunched` (its command was started anew), `restored` (its command was started anew, with the options
    by which its profile makes the program continue), or `lost` (it could not be started: see `reason`, `message`,
    `hint`). Values that were not stored are taken from the environment of this call (`from_environment`), else from
    that of a login (`from_login`); `secret_missing` names the variables of its first environment that are in neither.
    Whether a value is the same as before is not known. `running` are processes of its earlier life that still run,
    without a terminal.
    """

    session: str
    id: str
    outcome: str
    reason: str | None = None
    message: str | None = None
    hint: str | None = None
    argv: tuple[str, ...] = ()
    from_environment: tuple[str, ...] = ()
    from_login: tuple[str, ...] = ()
    secret_missing: tuple[str, ...] = ()
    running: tuple[Stray, ...] = ()


class Restored(Value):
    """What `restore` brought back, or would bring back; `ok` is false if a session could not be started."""

    ok: bool
    sessions: tuple[Restoring, ...]
    dry_run: bool = False


class Released(Value):
    """The names of the adopted panes that were given back."""

    released: tuple[str, ...]


class MachineProblem(Value):
    """A machine that told nothing, and why."""

    machine: str
    reason: str
    message: str
    hint: str


class Sessions(Value):
    """All sessions, by name. `problems`: of machines whose sessions were asked for and are not known."""

    sessions: tuple[Session, ...]
    problems: tuple[MachineProblem, ...] = ()


class StatusLine(Value):
    """One line for status bars and prompts: how many sessions are busy, and which want input, by their names. `problems`: of
    machines whose sessions were asked for and are not known."""

    line: str
    busy: int
    wanting: tuple[str, ...]
    sessions: int
    problems: tuple[MachineProblem, ...] = ()


class Plan(Value):
    """What `new` would do: the profile, the spec after the plugins, the tmux command list, the session's files, and why
    other candidates were passed over."""

    name: str
    argv: tuple[str, ...]
    cwd: str
    size: str
    history: int
    env: tuple[str, ...]
    plugins: tuple[str, ...]
    files: tuple[str, ...]
    tmux: tuple[str, ...]
    profile: str | None = None
    passed: tuple[Passed, ...] = ()


class Check(Value):
    """One thing that `doctor` checked; `ok` is None if it does not apply here."""

    name: str
    ok: bool | None
    found: str
    hint: str | None = None


class Doctor(Value):
    """What `doctor` found."""

    ok: bool
    checks: tuple[Check, ...]


class MachineLine(Value):
    """One machine: its name, where it comes from (`machines.toml`, `ssh config`), what ssh is told or the command that takes its
    place, and the tmux and the socket that are used there (None: the same as here); `gateway` is its id behind a gateway. `way` is
    the one by which it is reached: where it has several the one that was used last (None: not known), and `used` when. `direct` is
    `tcp` or `webrtc` while a process here reaches it past its gateway."""

    name: str
    source: str
    ssh: str | None
    command: tuple[str, ...]
    tmux: str
    socket: str | None
    gateway: str | None = None
    way: Way | None = None
    used: str | None = None
    direct: str | None = None


class Machines(Value):
    """The machines that can be named, those of the file first."""

    path: str
    machines: tuple[MachineLine, ...]


class MachineTested(Value):
    """What a machine has: the version of its tmux, how many seconds the way there and back takes, and what that means."""

    machine: str
    ok: bool
    tmux: str | None
    round_trip: float
    checks: tuple[Check, ...]


class SetupStep(Value):
    """One step of `machine setup`: whether it is done, needed or left to the user, what was found or would be done, the command
    for it, and what the user can do. `required`: without it no session can be there. `changed`: this run did it."""

    name: str
    state: StepState
    found: str
    hint: str | None = None
    command: str | None = None
    required: bool = False
    changed: bool = False


class MachineSetup(Value):
    """What was done on a machine to prepare it, or would be; `ok` is False if something is left without which no session can be
    there."""

    machine: str
    ok: bool
    dry_run: bool
    steps: tuple[SetupStep, ...]


class ProfileLine(Value):
    """One profile: its name, where it comes from, its description, and the programs it is for. `problem` is what is
    wrong with its file."""

    name: str
    source: str
    description: str
    path: str
    programs: tuple[str, ...] = ()
    problem: str | None = None


class Profiles(Value):
    """All profiles, by name."""

    profiles: tuple[ProfileLine, ...]


class ProfileFile(Value):
    """A profile with everything it extends, as the text of a file (YAML) and as plain values. `source` is user, path,
    shipped, package, file, or new for one that was just made; `path` is None if no file was written. `notes` say for
    which commands a new profile is used."""

    name: str
    source: str
    path: str | None
    text: str
    profile: Mapping[str, Any]
    notes: tuple[str, ...] = ()


class ProfileTested(Value):
    """A saved screen of a profile, and whether it was judged as its test says. `path` and `line` say where the test is;
    `screen` is given if the test failed."""

    profile: str
    path: str
    line: int
    ok: bool
    expected: str
    judged: str
    why: str
    screen: str | None = None


class ProfilesTested(Value):
    """The results of the tests of profiles."""

    ok: bool
    passed: int
    failed: int
    tests: tuple[ProfileTested, ...]


class ProfileChecked(Value):
    """Whether a profile fits the installed program. `argv` was started; `version` is what the program says of its
    version, None if nothing; `notes` say with what the profile was tried. A check has `ok` None if something was not
    seen that the program need not show."""

    ok: bool
    profile: str
    argv: tuple[str, ...]
    version: str | None
    notes: str
    checks: tuple[Check, ...]


class PluginLine(Value):
    """One plugin: its name, where it comes from (user, path, package or shipped), its form (module or executable), what
    it changes and in which order, its summary, and the names of its options, None if it takes any. `problem` is why it
    cannot be used."""

    name: str
    kind: str | None
    order: int | None
    source: str
    form: str
    path: str
    summary: str = ""
    options: tuple[str, ...] | None = ()
    problem: str | None = None


class Plugins(Value):
    """All plugins, by name."""

    plugins: tuple[PluginLine, ...]


class PluginOption(Value):
    """One option of a plugin. `type` says in words what it takes; the value of a secret option is never stored."""

    name: str
    type: str
    help: str
    default: Any = None
    required: bool = False
    repeated: bool = False
    secret: bool = False


class PluginPage(Value):
    """Everything about one plugin. `text` is its description, `usage` how to apply it; `clean_env` says that its
    sessions start from a short list of variables, `problem` why it cannot work here. `options` is None if it takes any.
    """

    name: str
    kind: str
    order: int
    source: str
    form: str
    path: str
    text: str
    options: tuple[PluginOption, ...] | None
    usage: tuple[str, ...]
    clean_env: bool = False
    problem: str | None = None


class PluginTested(Value):
    """One test of the rules that every plugin keeps. `outcome` is ok, failed or skipped; `why` gives the reason."""

    plugin: str
    test: str
    outcome: str
    why: str = ""


class PluginsTested(Value):
    """The results of the tests of plugins."""

    ok: bool
    passed: int
    failed: int
    skipped: int
    tests: tuple[PluginTested, ...]


class ServiceInstalled(Value):
    """What `service install` did: the name of the service, and the file that its manager reads, with its `text`.

    `changed` is false if the file was already as it should be. `linger` says whether the services of the user go on
    after logout. `server` is the pid of a tmux server that a command started, for whose end the service waits. `serve` is the
    service of the HTTP server, null without --serve.
    """

    service: str
    file: str
    text: str
    changed: bool = False
    linger: bool | None = None
    server: int | None = None
    dry_run: bool = False
    serve: ServiceFile | None = None


class ServiceFile(Value):
    """The name of a service, and the file that its manager reads, with its `text`; whether it was `changed`."""

    service: str
    file: str
    text: str
    changed: bool


class ServiceRemoved(Value):
    """What `service uninstall` did: whether a file was `removed`, and whether the service is still `running`. `serve` is the file
    of the service of the HTTP server, null if there was none."""

    service: str
    file: str
    removed: bool
    running: bool | None = None
    serve: str | None = None


class ServiceStatus(Value):
    """The service: its `manager` (systemd or launchd), the file that the manager reads, whether it is `installed`,
    `enabled` to start by itself, and `running`, with its `pid`; null if the manager does not answer.

    `server` is the pid of the tmux server. It differs from that of the service if a command started the server; the
    service then waits for its end. `linger` says whether the services of the user go on after logout. `serve` is the service
    of the HTTP server, null if there is none.
    """

    service: str
    manager: str
    file: str
    installed: bool
    enabled: bool | None = None
    running: bool | None = None
    pid: int | None = None
    server: int | None = None
    linger: bool | None = None
    serve: ServiceUnit | None = None


class ServiceUnit(Value):
    """A service that is installed: its name and file, whether it is `enabled` to start by itself, and `running`, with its `pid`;
    null if the manager does not answer."""

    service: str
    file: str
    enabled: bool | None
    running: bool | None
    pid: int | None


class HooksChanged(Value):
    """What became of a program's settings. `diff` shows the change line by line, and is empty if nothing is `changed`;
    `backup` is the copy of the old file, null if there was no file or it was not written."""

    program: str
    file: str
    changed: bool
    diff: str = ""
    backup: str | None = None
    dry_run: bool = False


class McpClientChanged(Value):
    """What became of the settings of a program that uses tmuxctl over MCP. `change` shows the lines put in and taken out, and is
    empty if nothing is `changed`; `file` is empty where they were printed only; `backup` is the copy of the old file, null
    if there was no file or it was not written."""

    client: str
    file: str
    changed: bool
    change: str = ""
    backup: str | None = None
    dry_run: bool = False


class SkillPage(Value):
    """A page of the skill: its `title`, its `file` in the skill's folder, and its length in characters."""

    name: str
    title: str
    file: str
    characters: int


class SkillPages(Value):
    """The pages of the skill, the first one first."""

    pages: tuple[SkillPage, ...]


class SkillText(Value):
    """A page of the skill, as Markdown."""

    page: str
    text: str


class SkillFolder(Value):
    """The skill as files: the name of its folder, and the text of each file by its path in there."""

    name: str
    files: Mapping[str, str]


class SkillFile(Value):
    """A file of an installed skill: its path, its `change` (write, update, remove), and the copy that is kept of what
    somebody changed in it."""

    file: str
    change: str
    backup: str | None = None


class SkillChanged(Value):
    """What became of the skill in a program's folder of skills; no `files` if it was as it should be."""

    client: str
    folder: str
    files: tuple[SkillFile, ...]
    dry_run: bool = False


class DenyList(Value):
    """Rules for a program's own settings that deny access to what it should not touch."""

    permissions: Mapping[str, tuple[str, ...]]


def exit_status(result: Any) -> int:
    """What a result means: 0 unless a condition did not hold, a check failed, or a program ended otherwise."""
    if isinstance(result, Ran):
        return _program_status(result)
    if isinstance(result, Batch):
        return result.exit
    if isinstance(result, Written) and result.wait is not None:
        return exit_status(result.wait)
    if isinstance(result, Told):
        return exit_status(result.answer)
    if getattr(result, "timed_out", False):
        return TIMED_OUT
    if isinstance(result, TeamRun) and result.reason in TEAM_ENDS:
        return TEAM_ENDS[result.reason]
    if isinstance(result, Wait):
        return int(result.matched is None)
    if isinstance(result, Answer):
        failed = int(not result.submitted.ok or result.error is not None)
        return ENDS.get(result.state.value, failed)
    if isinstance(result, Waits) and not result.ok and any(one.timed_out for one in result.waits):
        return TIMED_OUT
    return int(getattr(result, "ok", True) is False)


def _program_status(ran: Ran) -> int:
    """The program's own status as a shell gives it: 128 and the number for a signal."""
    if ran.timed_out:
        return TIMED_OUT
    if ran.signal is not None:
        import signal

        found = signal.Signals.__members__.get(f"SIG{ran.signal}")
        return 128 + found if found is not None else 128 + int(ran.signal) if str(ran.signal).isdecimal() else UNTOLD
    return UNTOLD if ran.exit_status is None else int(ran.exit_status)


class PlannedAgent(Value):
    """An agent of a team, as it would be started: its session, on which machines (none: this one), the command or the profiles
    to choose from, the folder, the text that it is given first, what its plugins do, and the questions that are answered
    without a person. `runs` is False of one that is started for tasks only."""

    name: str
    session: str
    machines: tuple[str, ...]
    command: tuple[str, ...]
    profile: str
    candidates: tuple[str, ...]
    cwd: str | None
    role: str | None
    isolation: Mapping[str, Any]
    decide: Mapping[str, str]
    turn_timeout: float
    runs: bool


class PlannedTurn(Value):
    """A turn of a run: the agent, and the text that it is given."""

    agent: str
    text: str


class TeamPlan(Value):
    """What a connector file would do. `digest` names the file as it is; `confirmed`: its plan was agreed to before.
    `first` are the turns with which a run begins, `later` those of further stages, with the prompt as the file has it.
    `machines` are those that the file itself says how to reach; `seconds` and `turns` are the limits of a run."""

    team: str
    path: str
    digest: str
    confirmed: bool
    topology: str
    agents: tuple[PlannedAgent, ...]
    first: tuple[PlannedTurn, ...]
    later: tuple[PlannedTurn, ...]
    machines: Mapping[str, tuple[str, ...]]
    turns: int
    seconds: float
    transcript: str
    keep: bool


class TeamRun(Value):
    """How a run ended, or why it stopped: `state` is `ended` or `stopped`, `reason` one word. `result` is what it came to,
    `results` that of each agent where each has one. `ok` is False where it came to a limit, failed, or waits for a person."""

    team: str
    run: str
    ok: bool
    state: str
    reason: str
    message: str | None
    result: str | None
    results: Mapping[str, str]
    turns: int
    elapsed: float
    transcript: str
    left: tuple[str, ...] = ()


class TeamAgent(Value):
    """An agent of a run: its session and the state of that (None: there is none, or it is not known), the turns it has had,
    the one it has now with the seconds since its beginning, and what it waits for where that is a person."""

    name: str
    session: str | None
    state: str | None
    turns: int
    turn: str | None
    seconds: float | None
    waits: str | None
    last: str | None


class TeamStatus(Value):
    """How far the last run of a team has come."""

    team: str
    run: str
    state: str
    reason: str | None
    message: str | None
    path: str
    transcript: str
    began: str
    turns: int
    turns_most: int
    messages: int
    output_tokens: int | None
    agents: tuple[TeamAgent, ...]


class TeamList(Value):
    """The teams that have had a run on this tmux server, by name."""

    teams: tuple[TeamStatus, ...]


class TeamDown(Value):
    """The sessions of a run that were ended, and what their plugins left behind, in words."""

    team: str
    ended: tuple[str, ...]
    left: tuple[str, ...] = ()


class TeamFile(Value):
    """A connector file that was checked or made: its team, its topology, its agents, and the text where it was made."""

    path: str | None
    team: str
    topology: str
    agents: tuple[str, ...]
    text: str | None = None


class TeamGraph(Value):
    """Who talks to whom in a team: the text of a diagram (`format` mermaid), or a picture (svg)."""

    team: str
    format: str
    text: str


class TeamReport(Value):
    """A run as a document in Markdown."""

    team: str
    run: str
    text: str


class TokenMade(Value):
    """A token of the server that was just made, with its text; what its bearer may, and the sessions that are meant, as
    patterns."""

    name: str
    token: str
    rights: tuple[str, ...]
    sessions: tuple[str, ...]


class LoginLink(Value):
    """A one-time code with which a browser signs in for a token: its link, and how many seconds it holds."""

    name: str
    code: str
    url: str
    seconds: int


class TokenLine(Value):
    """A token of the server: what its bearer may, the sessions that are meant, as patterns, and since when; None of the first."""

    name: str
    rights: tuple[str, ...]
    sessions: tuple[str, ...]
    created: str | None = None


class TokensKept(Value):
    """All tokens of the server."""

    tokens: tuple[TokenLine, ...]


class TokenRevoked(Value):
    """The name of a token that holds no more."""

    name: str


class GatewayMember(Value):
    """A host or client of the gateway: its id, its role, the operator's label for it, since when, and its tenant."""

    id: str
    role: GatewayRole
    label: str | None
    created: str
    tenant: str


class GatewayMembers(Value):
    """All hosts and clients of the gateway."""

    members: tuple[GatewayMember, ...]


class GatewayTenant(Value):
    """A tenant that was added, and whether a server that runs knows it (False: it will when it starts)."""

    name: str
    loaded: bool


class GatewayLeaf(Value):
    """A leaf node: its name, its tenant, and the file with which it is started (None: it is `text`)."""

    name: str
    tenant: str
    file: str | None
    text: str | None = None


class GatewayKey(Value):
    """A host or client that was given a key: its id, its role, the file of its credentials (None: they are `text`), and whether a
    server that runs knows that an earlier key ended (False: it will when it starts)."""

    id: str
    role: GatewayRole
    file: str | None
    loaded: bool
    text: str | None = None


class GatewayRemoved(Value):
    """A host or client that may not connect any more, and whether a server that runs knows that."""

    id: str
    role: GatewayRole
    label: str | None
    loaded: bool


class GatewayPairing(Value):
    """Two machines that know each other's keys now: what the other one is called here, the id of a host (None: it is a client), the
    fingerprint of its key, and what the client may there with which sessions."""

    name: str
    host: str | None
    fingerprint: str
    rights: tuple[str, ...]
    sessions: tuple[str, ...]


class MachineEvent(Value):
    """What happened at a machine behind a gateway. `kind` is `state` for a change of state (`event`, as `watch` prints it), `lost`
    for events that are missing before it (`lost`: how many, null if that is not known), `silent` if the machine is not heard any
    more, `heard` if it is again. `number` is that of the stored event, `time` is ISO-8601 UTC."""

    kind: str
    machine: str
    number: int | None = None
    time: str | None = None
    event: Event | None = None
    lost: int | None = None


class OwnKey(Value):
    """The key by which others know this user on this machine: its fingerprint and itself (base64), the fingerprint of the one
    before as long as that is answered to, and the clients of this host that may know only that; `id` is this host's at the gateway
    (None: it is none)."""

    id: str | None
    fingerprint: str
    key: str
    old: str | None = None
    untold: tuple[str, ...] = ()


class KeyToldTo(Value):
    """The key by which hosts know this user now: its fingerprint, that of the one before if that is still kept, the hosts that know
    the new one, and what kept others from being told."""

    fingerprint: str
    old: str | None
    told: tuple[str, ...]
    problems: tuple[MachineProblem, ...] = ()


class PairedClient(Value):
    """A client that this host lets in: its name, the fingerprint of its key, what it may with which sessions, and whether it knows
    this host's present key (None: there is no other)."""

    name: str
    fingerprint: str
    rights: tuple[str, ...]
    sessions: tuple[str, ...]
    knows_key: bool | None = None


class PairedClients(Value):
    """All clients that this host lets in, and the file that says so."""

    path: str
    clients: tuple[PairedClient, ...]


class AuthorizedHere(Value):
    """A client that was let in by its key, and what it has to know of this host: its id at the gateway and its key (base64)."""

    name: str
    fingerprint: str
    rights: tuple[str, ...]
    sessions: tuple[str, ...]
    host: str
    key: str


class ClientUnpaired(Value):
    """A client that this host lets in no more."""

    name: str
    fingerprint: str


class GatewayConnection(Value):
    """A connection to the gateway: of which host or client, from which address, since when, how much it sent and was sent, and
    how many bytes wait for it."""

    id: str | None
    role: GatewayRole | None
    label: str | None
    address: str
    since: str
    received_bytes: int
    sent_bytes: int
    pending_bytes: int


class GatewayReplica(Value):
    """A copy of a tenant's events on a node: how many changes it has not stored yet, whether it has all that it was told, and
    whether the node is away."""

    node: str
    lag: int
    current: bool
    away: bool


class GatewayEvents(Value):
    """The stream of a tenant's events: how many it has, their bytes, the numbers of the first and the last; in a cluster the node
    that decides their order (None: none is elected now), and the copies on other nodes."""

    tenant: str
    events: int
    bytes: int
    first: int
    last: int
    leader: str | None = None
    replicas: tuple[GatewayReplica, ...] = ()


class GatewayNode(Value):
    """A node of the gateway's cluster: whether it answers, and then since when it runs, its version, how many are connected to
    it, its memory in bytes, and whether it leads the others."""

    name: str
    away: bool
    since: str | None = None
    version: str | None = None
    connections: int | None = None
    memory_bytes: int | None = None
    leads: bool = False


class GatewayStatus(Value):
    """What the gateway's server tells of itself: its process, version, and start, how others reach it, its memory in bytes, the
    connections to it and the streams of its tenants. In a cluster also its nodes; another machine than the first one asks none."""

    process: int
    version: str
    since: str
    urls: tuple[str, ...]
    memory_bytes: int
    connections: tuple[GatewayConnection, ...]
    streams: tuple[GatewayEvents, ...]
    nodes: tuple[GatewayNode, ...] = ()
