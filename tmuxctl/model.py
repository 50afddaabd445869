"""What things are: the frozen values that travel between the floors. No tmux, no I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from tmuxctl.errors import Usage
from tmuxctl.value import Value, changed
from tmuxctl.vocabulary import Confidence as Confidence
from tmuxctl.vocabulary import EvidenceKind, InputKind
from tmuxctl.vocabulary import State as State

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")


NOTHING: Mapping[str, Any] = MappingProxyType({})


class Size(Value):
    """A terminal's width and height in cells."""

    cols: int
    rows: int

    def __str__(self) -> str:
        return f"{self.cols}x{self.rows}"


class SessionSpec(Value):
    """What to start: a plugin takes one and returns another, before tmux sees it.

    `argv` is executed as it is, without a shell; `env` is the program's whole environment; `history` is in lines.
    `notes` carries what plugins want to remember or ask of the launcher (`lifetime`: seconds until the program is ended).
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str] = NOTHING
    size: Size = Size(120, 40)
    name: str = ""
    machine: str | None = None
    history: int = 2000
    notes: Mapping[str, Any] = NOTHING


class Option(Value):
    """One way to answer a question: its `id` (what `decide` takes), the label on the screen, and the keys that choose it."""

    id: str
    label: str
    keys: tuple[str, ...]


class Asking(Value):
    """A decision a program wants before it goes on.

    `kind` is one that asks (`InputKind`); `id` names this very question, `default`
    is the id of the option that plain Enter would choose, None if there is none or nobody knows; `risk` is low, high or
    unknown. `options` is empty where any text is an answer. `hidden`: the program's profile says that what is typed is not
    shown, though keys are read one by one.
    """

    kind: InputKind
    id: str
    question: str
    options: tuple[Option, ...] = ()
    default: str | None = None
    risk: str = "unknown"
    hidden: bool = False


class Status(Value):
    """What a program does, as far as the evidence goes; `state` is None where nobody looked.

    `detail` is a `Detail`, or why tmuxctl ended the program or does not see it; `until` is when a limit ends, of which the
    detail `limited` tells, ISO-8601, None if the program does not say.
    """

    state: State | None = None
    kind: InputKind | None = None
    detail: str | None = None
    until: str | None = None
    by: EvidenceKind | None = None
    confidence: Confidence | None = None
    asking: Asking | None = None


class WithStatus(Value):
    """A result with a `status` inside, which tells the fields of it as its own: in JSON in that place, but for those that
    are `moved` behind another field, or nowhere (None)."""

    if TYPE_CHECKING:

        @property
        def status(self) -> Status: ...

    def __init_subclass__(cls, moved: Mapping[str, str | None] = NOTHING) -> None:
        super().__init_subclass__()
        if "status" in cls._names:
            at, names = cls._names.index("status"), list(cls._names)
            names[at : at + 1] = [name for name in Status._names if name not in moved]
            for name, before in moved.items():
                if before is not None:
                    names.insert(names.index(before) + 1, name)
            cls._told = tuple(names)

    @property
    def state(self) -> State | None:
        return self.status.state

    @property
    def kind(self) -> InputKind | None:
        return self.status.kind

    @property
    def detail(self) -> str | None:
        return self.status.detail

    @property
    def until(self) -> str | None:
        return self.status.until

    @property
    def by(self) -> EvidenceKind | None:
        return self.status.by

    @property
    def confidence(self) -> Confidence | None:
        return self.status.confidence

    @property
    def asking(self) -> Asking | None:
        return self.status.asking


class WithState(WithStatus):
    """One whose state is always told: where nobody looked it is UNKNOWN."""

    @property
    def state(self) -> State:
        return self.status.state or State.UNKNOWN


class Session(WithState):
    """One program on one terminal, as far as it is known; what is not known is None. Times are ISO-8601 UTC."""

    name: str
    id: str
    incarnation: str | None = None
    machine: str | None = None
    status: Status = Status(State.UNKNOWN)
    wants: str | None = None
    """`prompt` where the program is ready for its next command, `input` where anything else has to be typed before it
    goes on: a decision, a password, a line, a key."""
    profile: str | None = None
    argv: tuple[str, ...] = ()
    cwd: str | None = None
    cols: int | None = None
    rows: int | None = None
    pid: int | None = None
    exit_status: int | None = None
    signal: str | None = None
    created: str | None = None
    active: str | None = None
    attached: int = 0
    tags: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    recording: bool = False
    cursor: str | None = None
    owner: str | None = None
    target: str | None = None
    """The pane it is on another tmux server, None for a session of tmuxctl's own."""
    left: tuple[str, ...] = ()
    """Of a session that was ended: what its plugins left behind, in words."""
    processes: int | None = None
    memory: int | None = None
    """Of its program and all that descend from it, in bytes; pages they share are counted for each. `show` tells it."""
    cpu: float | None = None
    """Seconds of processor time used by its processes, and by children of theirs that have ended."""
    passed: tuple[Any, ...] = ()
    """Of a session that was just started from candidates: those passed over, each with its reason (`results.Passed`)."""

    @property
    def address(self) -> str:
        """What every command calls it: its name, with the machine before it if it is on another one."""
        return f"{self.machine}/{self.name}" if self.machine else self.name

    @property
    def lasting_address(self) -> str:
        """The same with the id for the name, which another session cannot get."""
        return f"{self.machine}/{self.id}" if self.machine else self.id


T = TypeVar("T", bound=WithStatus)


def with_status(result: T, **fields: Any) -> T:
    """The result with other fields in its status."""
    return changed(result, status=changed(result.status, **fields))


LABEL = r"tmux(?:@[A-Za-z0-9._-]{1,64})?:(?:[A-Za-z0-9_-]+:[0-9]+\.[0-9]+|%[0-9]+)"
"""What a pane of another tmux server is called: `tmux:SESSION:WINDOW.PANE`, `tmux@SOCKET:%ID`."""


def is_addressable(name: str) -> bool:
    """True for what may be a session's name or id, or a pane's: nothing in it means anything to tmux."""
    return bool(NAME.fullmatch(name) or re.fullmatch(LABEL, name))


def check_name(name: str) -> str:
    """The name itself, or Usage: letters, digits, `_` and `-`, at most 63, which is inert in every tmux format."""
    if not NAME.fullmatch(name):
        raise Usage(f"{ascii(name[:40])} is not a valid session name", reason="bad_name", hint=NAME_HINT)
    return name


def check_tag(tag: str) -> str:
    """The tag itself, or Usage: what may stand in a session's name."""
    if not NAME.fullmatch(tag):
        raise Usage(f"{ascii(tag[:40])} is not a valid tag", reason="bad_tag", hint=NAME_HINT)
    return tag


def check_tags(tags: Iterable[str], most: int) -> tuple[str, ...]:
    """The tags that a session is to have, each once; Usage for one that is not valid, and if there are more than `most`."""
    found = tuple(dict.fromkeys(tags))
    if len(found) > most:
        hint = f"a session has at most {most} tags"
        raise Usage(f"{len(found)} tags are too many", reason="too_many_tags", hint=hint)
    return tuple(check_tag(tag) for tag in found)


def check_owner(owner: str) -> str:
    """The owner itself, or Usage: a word that stands in no format and no path."""
    if not re.fullmatch(r"[\w.:@-]{1,64}", owner, re.ASCII):
        hint = "use letters, digits and _ . : @ -, at most 64"
        raise Usage(f"{ascii(owner[:40])} is not a valid owner", reason="bad_owner_name", hint=hint)
    return owner


NAME_HINT = "use letters, digits, _ and -, starting with a letter or digit, at most 63 characters"


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of `127.0.0.1:8765`, `[::1]:8765`, or a port of this machine alone; Usage for anything else."""
    found = re.fullmatch(r"(?:(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9._-]+)):)?([0-9]{1,5})", text)
    if not found or int(found[3]) > 65535:
        hint = "write HOST:PORT, as in 127.0.0.1:8765"
        raise Usage(f"{ascii(text[:60])} is no address", reason="bad_address", hint=hint)
    return found[1] or found[2] or "127.0.0.1", int(found[3])


def parse_size(text: str) -> Size:
    """`120x40` as a Size; columns 2-1000, rows 2-1000, or Usage."""
    found = re.fullmatch(r"([0-9]{1,4})x([0-9]{1,4})", text)
    if found:
        size = Size(int(found[1]), int(found[2]))
        if 2 <= size.cols <= 1000 and 2 <= size.rows <= 1000:
            return size
    hint = "columns x rows, each 2 to 1000, as in 120x40"
    raise Usage(f"{ascii(text[:40])} is not a valid size", reason="bad_size", hint=hint)


@lru_cache(maxsize=1024)
def natural_key(name: str) -> tuple[object, ...]:
    """The key that sorts names as people count: `job2` before `job10`, upper and lower case together."""
    words = re.split(r"([0-9]+)", name.casefold())
    # the name itself in a place of its own: numbers and texts, which cannot be compared, stand in turn
    return tuple(int(word) if number % 2 else word for number, word in enumerate(words)), name


UNITS: Mapping[float, str] = {
    86400.0: "d|days?", 3600.0: "h|hrs?|hours?", 60.0: "m|mins?|minutes?", 1.0: "s|secs?|seconds?", 0.001: "ms",
}  # fmt: skip
"""What each unit of a duration may be called, by its length in seconds."""

NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,6})?"
DURATION = "".join(rf"(?:({NUMBER}) ?(?:{names})(?![a-z]) ?)?" for names in UNITS.values())


def parse_seconds(value: str | int | float | None) -> float | None:
    """`500ms`, `30`, `30s`, `5min`, `1h30m`, `7d` in seconds; `none` is None. Usage for anything else.

    Longer units come before shorter ones, each once; the words may be written out (`2 hours`).
    """
    if value is None or value == "none":
        return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    text = value if isinstance(value, str) else ""
    if re.fullmatch(NUMBER, text):
        return float(text)
    found = re.fullmatch(DURATION, text)
    if not text or not found:
        hint = "write 500ms, 30, 30s, 5m, 1h30m, 2h or none"
        raise Usage(f"{ascii(str(value)[:40])} is not a valid duration", reason="bad_duration", hint=hint)
    return sum(float(number) * unit for number, unit in zip(found.groups(), UNITS, strict=True) if number)


def parse_bytes(value: str | int) -> int:
    """`64M`, `1M`, `8k`, `100` as a number of bytes, or Usage."""
    found = re.fullmatch(r"([0-9]{1,15})([kKmMgG]?)[bB]?", str(value))
    if not found:
        hint = "write 4096, 8k, 64M or 1G"
        raise Usage(f"{ascii(str(value)[:40])} is not a valid number of bytes", reason="bad_bytes", hint=hint)
    return int(found[1]) << {"": 0, "k": 10, "m": 20, "g": 30}[found[2].lower()]
