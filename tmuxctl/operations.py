"""An operation is declared once, as a typed method: this reads its name, parameters, help and rights from there.

The command line, `Control.call`, the reference and every later surface are made from what is found here. Parameters before
`*` are arguments, the rest options; a parameter's type says how text and JSON become its value.
"""

from __future__ import annotations

import inspect
import os
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import Enum
from functools import lru_cache, partial, wraps
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

from tmuxctl.errors import Denied, Timeout, TmuxctlError, Usage
from tmuxctl.model import parse_bytes, parse_seconds, parse_size
from tmuxctl.value import Value, told_values

RIGHTS = ("read", "write", "create", "kill")


def check_rights(rights: Iterable[str]) -> tuple[str, ...]:
    """The rights themselves; Usage `bad_right` for a word that is none of RIGHTS."""
    rights = tuple(rights)
    if wrong := [right for right in rights if right not in RIGHTS]:
        raise Usage(f"no right {ascii(wrong[0][:40])}", reason="bad_right", hint=f"there are: {', '.join(RIGHTS)}")
    return rights


OWN_FAILURE, COMMAND_NOT_FOUND = 125, 127
"""What a command that passes a program's status on ends with where tmuxctl failed, as env(1) has it."""

F = TypeVar("F", bound=Callable[..., Any])


class Waiting(Value):
    """What a command that waits says meanwhile."""

    phrase: str
    """What it waits for: with `{names}`, those of the sessions, `{program}`, and `{until}`, all `Until` that were given."""
    unless: tuple[str, ...] = ()
    """Parameters that make it return at once, given another value than their default."""
    until: str = ""
    """`{until}` where none was given."""
    transient: bool = False
    """The session is there for this call only: interrupting it ends the program."""


class Meta(Value):
    """What an operation is beside its signature: `@operation(...)` makes a method one.

    What its first argument names, if that is a `SessionName`, may be elsewhere: the service's `reach` says who drives it.
    """

    right: str
    """What a caller needs, one of RIGHTS."""
    group: str
    """Where help lists it."""
    idempotent: bool = False
    """Twice is as once, though it changes something: what only reads always is."""
    streams: bool = False
    """It may yield results one by one."""
    family: bool = False
    """As a command it is two words: `profile_ls` is `profile ls`."""
    leads: bool = False
    """As a command it may be the first word of others: `mcp` serves, `mcp install` is another operation."""
    passes_status: bool = False
    """Its command ends with the status of the program it ran; our own failures are told apart as env(1) does."""
    rows: bool = False
    """Its result is a list, of which each may be printed as `--format` says."""
    events: bool = False
    """It yields events, for which its command may run one of the user's."""
    waiting: Waiting | None = None
    several: bool = False
    """Its command may be given several sessions, each of which is then called for on its own."""
    view: str = ""
    """What a person is shown of its result, where that is not what is shown of every one of this class; `pairs`: each field
    on a line, which needs no printer."""
    examples: tuple[str, ...] = ()
    """They lead its help."""

    def __call__(self, function: F) -> F:
        function = _reach_first(function, self.right)
        function.__operation__ = self  # type: ignore[attr-defined]
        return function

    def error_status(self, error: TmuxctlError) -> int:
        """What the operation's command ends with where it failed so."""
        if not self.passes_status or isinstance(error, (Usage, Timeout)):
            return error.exit
        return COMMAND_NOT_FOUND if error.reason in ("command_not_found", "not_executable") else OWN_FAILURE

    def spoken(self, name: str) -> str:
        """The operation's name as one types it: `profile_ls` is `profile ls`, `wait_idle` is `wait-idle`."""
        return name.replace("_", " ", int(self.family)).replace("_", "-")


operation = Meta

set_up = partial(operation, group="Set up", family=True)
"""What makes a method one of the commands of two words that set something up."""


def _reach_first(function: F, right: str) -> F:
    """The method, carried out by the service that drives the session it is called with."""

    @wraps(function)
    def reaching(service: Any, *arguments: Any, **options: Any) -> Any:
        if not hasattr(service, "reach"):
            return function(service, *arguments, **options)
        if (remote := _remote_of(service)) is not None:
            return remote.call(function.__name__, _name_arguments(function, arguments, options))
        name, new = _session_argument(function)
        if arguments and name == MACHINE:
            arguments, options = arguments[1:], {**options, MACHINE: arguments[0]}
        if MACHINE in options and options[MACHINE] is not None:
            session: Any = ""
            reached, _ = service.reach(f"{options.pop(MACHINE).removesuffix('/')}/")
        else:
            session = arguments[0] if arguments else options.get(name)
            # the name of a new session leads to its machine, and to nothing that is there already
            if name in ("", MACHINE) or not isinstance(session, str) or (new and "/" not in session):
                return function(service, *arguments, **options)
            reached, session = service.reach(session)
            if arguments:
                arguments = (session, *arguments[1:])
            else:
                options = {**options, name: session}
        if reached is service:
            return function(service, *arguments, **options)
        if (remote := _remote_of(reached)) is not None:
            named = _name_arguments(function, arguments, options)
            return remote.call(function.__name__, named, session, address=reached.machine.address)
        # a call that waits is as patient with a connection as it is itself
        patience = options.get("timeout") if "timeout" in function.__annotations__ else 0.0
        return reached.carry_out(
            lambda: function(reached, *arguments, **options),
            session,
            name=function.__name__,
            patience=patience,
            changes=right != "read",
        )

    return reaching  # type: ignore[return-value]  # it takes and gives what the method does


def _remote_of(service: Any) -> Any:
    """The operations of another machine's tmuxctl, if it is that one which carries those of this service out; else None."""
    machine = getattr(service, "machine", None)
    return None if machine is None else machine.remote


def _name_arguments(
    function: Callable[..., Any], arguments: Sequence[Any], options: Mapping[str, Any]
) -> dict[str, Any]:
    """All arguments of a call by their names."""
    code = function.__code__
    return {**dict(zip(code.co_varnames[1 : code.co_argcount], arguments, strict=False)), **options}


MACHINE = "machine"
"""The parameter that names another machine to work on."""


@lru_cache(maxsize=256)
def _session_argument(function: Callable[..., Any]) -> tuple[str, bool]:
    """The name of the argument that is the session to work on, the first one, or none; and whether that is a new one's."""
    code = function.__code__
    for name in code.co_varnames[1 : code.co_argcount][:1]:
        if name == MACHINE:
            return name, False
        kind = _find_kind(_evaluate_annotation(function.__annotations__[name], function))
        new = kind is not None and kind.word == NEW_NAME
        return (name, new) if new or (kind and kind.target and not kind.many) else ("", False)
    return "", False


class ValueKind(Value):
    """How a value is written: its word in help, its JSON schema, and how text or JSON becomes it (raises Usage)."""

    word: str
    schema: Mapping[str, Any]
    parse: Callable[[Any], Any]
    completes: str = ""
    """The word of the kind whose values the shell offers, if that is another one."""
    target: bool = False
    """It is the session, or the sessions, that the operation works on."""
    from_input: bool = False
    """As an argument, `-` stands for what standard input holds."""

    @property
    def many(self) -> bool:
        """True if a value is made of several."""
        return self.schema.get("type") in ("array", "object")

    def __hash__(self) -> int:
        return hash(self.word)


class Flag(Value):
    """How an option is written on the command line, where that is not all in its type."""

    names: tuple[str, ...] = ()
    """Other spellings, as `-e`."""
    bare: str = ""
    """Its value where that is left out."""
    value: str = ""
    """What the next word is like if it is the value: a regular expression, needed where the value may be left out."""
    to_file: bool = False
    """It asks for the field of this name of the result: it takes the FILE that this is written to."""
    own_input: bool = False
    """It is a file that is read, by default our own standard input."""


class Until(Value):
    """What a command waits for that is given this parameter, as it says meanwhile."""

    phrase: str


def _parse_text(value: Any) -> str:
    if not isinstance(value, str):
        raise Usage(f"{ascii(value)[:40]} is not text", reason="bad_type")
    if any("\ud800" <= character <= "\udfff" for character in value):
        hint = "give raw bytes on standard input: printf '\\377' | tmuxctl send NAME -"
        raise Usage("the text holds bytes or surrogates that are not Unicode", reason="bad_text", hint=hint)
    return value


def parse_input(value: Any) -> bytes:
    """A text to type as UTF-8, or bytes as they are; Usage for what is neither, or has NUL or surrogates in it."""
    if isinstance(value, bytes):
        return value
    text = _parse_text(value)
    if "\0" in text:
        hint = "give raw bytes on standard input: tmuxctl send NAME -"
        raise Usage("the text holds NUL", reason="bad_text", hint=hint)
    return text.encode()


def _parse_whole(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lstrip("-").isdecimal() and len(value) < 16:
        return int(value)
    raise Usage(f"{ascii(value)[:40]} is not a whole number", reason="bad_number")


def _parse_factor(value: Any) -> float:
    with suppress(ValueError):
        found = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else 0.0
        if 0.01 <= found <= 1000:
            return found
    raise Usage(
        f"{ascii(value)[:40]} is not a number from 0.01 to 1000", reason="bad_number", hint="2 is twice as fast"
    )


def _parse_truth(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise Usage(f"{ascii(value)[:40]} is neither true nor false", reason="bad_type")


def _parse_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, (list, tuple)):
        return tuple(_parse_text(text) for text in value)
    return (_parse_text(value),)


def _parse_pairs(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping):
        return {_parse_text(name): _parse_text(text) for name, text in value.items()}
    if not isinstance(value, (list, tuple)):
        raise Usage(f"{ascii(value)[:40]} is neither an object nor a list of NAME=VALUE", reason="bad_type")
    pairs = [_parse_text(text).partition("=") for text in value]
    for name, equals, _ in pairs:
        if not equals or not name:
            raise Usage(f"{ascii(name)[:40]} is not NAME=VALUE", reason="bad_env", hint="write -e NAME=VALUE")
    return {name: text for name, _, text in pairs}


def _parse_names(value: Any) -> tuple[str, ...]:
    return tuple(_parse_text(value).split(",")) if isinstance(value, str) else _parse_texts(value)


TEXT = ValueKind("text", {"type": "string"}, _parse_text)
WHOLE = ValueKind("number", {"type": "integer"}, _parse_whole)
TRUTH = ValueKind("", {"type": "boolean"}, _parse_truth)
TEXTS = ValueKind("text", {"type": "array", "items": {"type": "string"}}, _parse_texts)
NAMES = ValueKind("names", {"type": ["array", "string"], "items": {"type": "string"}}, _parse_names)
PAIRS = ValueKind("name=value", {"type": "object", "additionalProperties": {"type": "string"}}, _parse_pairs)
KINDS: dict[Any, ValueKind] = {str: TEXT, int: WHOLE, bool: TRUTH, tuple[str, ...]: TEXTS, dict[str, str]: PAIRS}

SessionName = Annotated[str, ValueKind("name", TEXT.schema, _parse_text, target=True), "name or id of the session"]
SessionNames = Annotated[tuple[str, ...], ValueKind("name", TEXTS.schema, _parse_texts, target=True)]
NEW_NAME = "newname"
"""The word of the kind that names a session which is not there yet."""

NewName = Annotated[str, ValueKind(NEW_NAME, {"type": "string"}, _parse_text)]
Input = Annotated[bytes, ValueKind("input", {"type": "string"}, parse_input, from_input=True)]
Seconds = Annotated[float, ValueKind("duration", {"type": ["number", "string"]}, parse_seconds)]
Factor = Annotated[float, ValueKind("factor", {"type": "number"}, _parse_factor)]
SizeText = Annotated[str, ValueKind("colsxrows", {"type": "string"}, lambda value: str(parse_size(_parse_text(value))))]
Bytes = Annotated[int, ValueKind("bytes", {"type": ["integer", "string"]}, parse_bytes)]
Pattern = Annotated[str, ValueKind("re", {"type": "string"}, _parse_text)]
CursorText = Annotated[str, ValueKind("cursor", {"type": "string"}, _parse_text)]
Names = Annotated[tuple[str, ...], NAMES]
Key = Annotated[tuple[str, ...], ValueKind("key", {"type": "array", "items": {"type": "string"}}, _parse_texts)]
FolderName = Annotated[str, ValueKind("dir", {"type": "string"}, _parse_text)]
FileName = Annotated[str, ValueKind("file", {"type": "string"}, _parse_text)]


class Parameter(Value):
    """One parameter of an operation."""

    name: str
    kind: ValueKind
    help: str
    default: Any
    positional: bool
    many: bool
    optional: bool
    choices: tuple[str, ...]
    flag: Flag
    until: str

    @property
    def required(self) -> bool:
        """True if a call without it is an error."""
        return self.default is inspect.Parameter.empty

    def convert(self, value: Any, called: Callable[[Parameter], str] = lambda parameter: parameter.name) -> Any:
        """The value for a call, from text or JSON; Usage names the parameter."""
        if value is None and (self.optional or self.default is None):
            return None
        try:
            found = self.kind.parse(value)
        except Usage as error:
            hint = error.hint or "see the command's --help"
            raise Usage(f"{called(self)}: {error.message}", reason=error.reason, hint=hint) from None
        if self.choices and found not in self.choices:
            hint = _suggest(found, list(self.choices))
            raise Usage(f"{called(self)}: {ascii(found)} is not one of its choices", reason="bad_choice", hint=hint)
        return found


class Operation(Value):
    """One operation, as every surface needs it."""

    name: str
    help: str
    parameters: tuple[Parameter, ...]
    meta: Meta
    function: Callable[..., Any]

    @property
    def spoken(self) -> str:
        """Its name as one types it."""
        return self.meta.spoken(self.name)

    def arguments(
        self, given: Mapping[str, Any], called: Callable[[Parameter], str] = lambda parameter: parameter.name
    ) -> dict[str, Any]:
        """Checked and converted arguments for a call; Usage for a strange, missing or wrong one, which it names as it is
        called where the call comes from."""
        known = {parameter.name: parameter for parameter in self.parameters}
        for name in given.keys() - known.keys():
            hint = _suggest(name, list(known))
            raise Usage(f"{self.spoken} does not take {ascii(name)}", reason="bad_parameter", hint=hint)
        for parameter in self.parameters:
            if parameter.required and parameter.name not in given:
                hint = f"tmuxctl {self.spoken} --help"
                raise Usage(f"{self.spoken} needs {called(parameter)}", reason="missing", hint=hint)
        return {name: known[name].convert(value, called) for name, value in given.items()}

    def schema(self) -> dict[str, Any]:
        """The JSON schema of its arguments."""
        properties: dict[str, Any] = {}
        for parameter in self.parameters:
            about: dict[str, Any] = dict(parameter.kind.schema)
            if parameter.help:
                about["description"] = parameter.help
            if parameter.choices:
                about["enum"] = list(parameter.choices)
            if not parameter.required and parameter.default is not None:
                default = parameter.default
                about["default"] = list(default) if isinstance(default, tuple) else default
            properties[parameter.name] = about
        required = [parameter.name for parameter in self.parameters if parameter.required]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _suggest(word: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(word, known, 1)
    return f"did you mean {near[0]}?" if near else "it takes " + ", ".join(known)


def list_names(service: type) -> list[str]:
    """The names of a service's operations, in the order they are declared."""
    return [name for base in service.__mro__ for name, member in vars(base).items() if hasattr(member, "__operation__")]


@lru_cache(maxsize=256)
def find(service: type, name: str) -> Operation:
    """One operation of a service by name; Usage if there is none."""
    function = getattr(service, name, None)
    meta = getattr(function, "__operation__", None)
    if function is None or meta is None:
        hint = _suggest(name, list_names(service))
        raise Usage(f"no operation {ascii(name)[:40]}", reason="bad_operation", hint=hint)
    signature = list(inspect.signature(function).parameters.values())[1:]
    parameters = tuple(
        _to_parameter(parameter, _evaluate_annotation(parameter.annotation, function)) for parameter in signature
    )
    return Operation(name, inspect.getdoc(function) or "", parameters, meta, function)


def _evaluate_annotation(annotation: Any, function: Callable[..., Any]) -> Any:
    # only the parameters': a result's type is imported where it is made, so that a quick verb loads no other
    return eval(annotation, inspect.unwrap(function).__globals__) if isinstance(annotation, str) else annotation


def _find_kind(hint: Any) -> ValueKind | None:
    plain, extras, _ = _unwrap_annotation(hint)
    found = next((extra for extra in extras if isinstance(extra, ValueKind)), None)
    return found or KINDS.get(str if get_origin(plain) is Literal else plain)


def _to_parameter(parameter: inspect.Parameter, hint: Any) -> Parameter:
    plain, extras, optional = _unwrap_annotation(hint)
    kind = _find_kind(hint)
    if kind is None:
        raise TypeError(f"{parameter.name}: no kind for {hint}")
    return Parameter(
        name=parameter.name,
        kind=kind,
        help=next((extra for extra in reversed(extras) if isinstance(extra, str)), ""),
        default=parameter.default,
        positional=parameter.kind is not inspect.Parameter.KEYWORD_ONLY,
        many=kind.many,
        optional=optional,
        choices=tuple(get_args(plain)) if get_origin(plain) is Literal else (),
        flag=next((extra for extra in extras if isinstance(extra, Flag)), Flag()),
        until=next((extra.phrase for extra in extras if isinstance(extra, Until)), ""),
    )


def _unwrap_annotation(hint: Any) -> tuple[Any, list[Any], bool]:
    """The plain type, what Annotated says about it (nested, outermost last), and whether None is allowed."""
    extras: list[Any] = []
    optional = False
    while True:
        if get_origin(hint) is Annotated:
            hint, *found = get_args(hint)
            extras = [*found, *extras]
        elif get_origin(hint) in (Union, types.UnionType) and type(None) in get_args(hint):
            optional = True
            hint = next(choice for choice in get_args(hint) if choice is not type(None))
        else:
            return hint, extras, optional


class Anchor:
    """The input after which each wait of a call looks, whoever types later; None until it is known."""

    def __init__(self) -> None:
        self.last_input: Any = None


class Cancellation(threading.Event):
    """What cancels a call, as an event does, and wakes it at once where it sleeps."""

    def __init__(self) -> None:
        super().__init__()
        self._wakes: list[Callable[[], None]] = []

    def wake_by(self, wake: Callable[[], None]) -> None:
        """Call `wake`, which may be called from any thread and more than once, as soon as this is set."""
        self._wakes.append(wake)
        if self.is_set():
            wake()

    def set(self) -> None:
        """Cancel the call, and wake it."""
        super().set()
        for wake in list(self._wakes):
            wake()


class Caller(Value):
    """Who makes a call, where that restricts what it changes: a program that runs in a session, or owns some."""

    owner: str | None = None
    """Only sessions of this owner may be ended; None: any."""
    session: str | None = None
    """The id of the session that the caller runs in."""
    processes: frozenset[int] = frozenset()
    """The caller's process and those above it: where one of them is the program of a pane, that pane is the caller's own
    terminal, whatever tmux server it is on."""

    def refuse_own(self, session: str, session_id: str, pid: int) -> None:
        """Raise Denied `own_session` for the session that the caller runs in, whose first process has this pid."""
        if session_id == self.session or pid in self.processes:
            raise Denied(
                f"{session} is the session that you run in", reason="own_session", hint="start another session"
            )

    def refuse_owner(self, session: str, owner: str | None) -> None:
        """Raise Denied `not_owner` for a session of another owner, which is not to be ended."""
        if self.owner is not None and owner != self.owner:
            hint = f"it is left to a person to end it: tmuxctl kill {session}"
            raise Denied(f"{session} was not started by you", reason="not_owner", hint=hint)


class Call(Value):
    """The call under way: who may what, until when, and whether the caller still wants it."""

    request_id: str
    deadline: float | None = None
    cancelled: threading.Event | None = None
    repeated: bool = False
    """The caller chose the id: this may be a call that was made before."""
    rights: Sequence[str] = RIGHTS
    """What the caller may."""
    caller: Caller | None = None
    pieces: str | None = None
    """What `in_pieces` was told."""
    anchor: Anchor | None = None
    """The call is one of several that belong together."""
    renew: Callable[[], None] | None = None
    """What keeps from running out what the caller holds meanwhile; called every few seconds."""

    def left(self, wanted: float | None) -> float | None:
        """Seconds a wait may still last: what it wants, cut at the caller's deadline. None is without end."""
        if self.deadline is None:
            return wanted
        rest = max(0.0, self.deadline - time.monotonic())
        return rest if wanted is None else min(rest, wanted)

    def demand(self, right: str, what: str) -> None:
        """Raise Denied unless the caller has this right too."""
        if right not in self.rights:
            hint = f"this caller may: {', '.join(self.rights) or 'nothing'}"
            raise Denied(f"{what} needs the right to {right}", reason="right", hint=hint)

    @property
    def wakes(self) -> bool:
        """Whether what `wake_by` was given is called when the caller gives up."""
        return isinstance(self.cancelled, Cancellation)

    def wake_by(self, wake: Callable[[], None]) -> None:
        """Call `wake` when the caller gives up, where that is told: by a `Cancellation`."""
        if isinstance(self.cancelled, Cancellation):
            self.cancelled.wake_by(wake)

    def check(self) -> None:
        """Raise when the caller gave up."""
        if self.renew is not None:
            self.renew()
        if self.cancelled is not None and self.cancelled.is_set():
            raise Cancelled()


class Cancelled(TmuxctlError):
    """The caller gave up; the program in the session goes on."""

    code, exit, http_status = "failed", 130, 499

    def __init__(self) -> None:
        super().__init__("the call was cancelled; the program goes on", reason="cancelled")


def keep_result(error: BaseException, result: Any) -> None:
    """Let what was done so far go with what ends a call."""
    error.__dict__["tmuxctl_result"] = result


def read_result(error: BaseException) -> Any:
    """What `keep_result` gave it; None if nothing was kept."""
    return error.__dict__.get("tmuxctl_result")


_current: ContextVar[Call | None] = ContextVar("tmuxctl_call", default=None)


_DIRECT = Call("")


def current() -> Call:
    """The call under way in this thread. For a method that is called directly it is one without an id."""
    return _current.get() or _DIRECT


@contextmanager
def under(call: Call) -> Iterator[Call]:
    """Run something as this call."""
    token = _current.set(call)
    try:
        yield call
    finally:
        _current.reset(token)


_pieces: ContextVar[str | None] = ContextVar("pieces", default=None)


@contextmanager
def in_pieces(what: str) -> Iterator[None]:
    """A caller that takes a long output in pieces (`results.Pieces`): each with its `text`, or its `data` where raw bytes are
    asked for."""
    before = _pieces.set(what)
    try:
        yield
    finally:
        _pieces.reset(before)


def invoke(
    service: object,
    name: str,
    arguments: Mapping[str, Any],
    *,
    rights: Sequence[str] = RIGHTS,
    request_id: str | None = None,
    timeout: float | None = None,
    cancelled: threading.Event | None = None,
    caller: Caller | None = None,
) -> Any:
    """Call an operation of a service by name: the one place where rights, arguments, deadline and id are looked after."""
    found: Operation = find(type(service), name)  # type: ignore[arg-type]  # a class is hashable
    Call("", rights=rights).demand(found.meta.right, name)
    if request_id is not None and not (8 <= len(request_id) <= 64 and request_id.isalnum() and request_id.isascii()):
        raise Usage("a request id is 8 to 64 letters and digits", reason="bad_id", hint="leave it out to get one")
    checked = found.arguments(arguments)
    deadline = None if timeout is None else time.monotonic() + timeout
    with under(
        Call(
            request_id or os.urandom(8).hex(),
            deadline,
            cancelled,
            request_id is not None,
            rights,
            caller,
            _pieces.get(),
        )
    ):
        return found.function(service, **checked)


def to_json(result: Any) -> Any:
    """A result as JSON's own types: values as objects, enums as their words, bytes left out."""
    if isinstance(result, Enum):
        return result.value
    if (values := told_values(result)) is not None:
        return {name: to_json(value) for name, value in values.items() if not isinstance(value, bytes)}
    if isinstance(result, Mapping):
        return {str(name): to_json(value) for name, value in result.items()}
    if isinstance(result, (list, tuple)):
        return [to_json(item) for item in result]
    return result
