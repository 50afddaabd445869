"""What is known of one program beforehand: its prompts, questions, busy signs and manners, as data from a YAML file.

A field is declared once, here. Its annotation names what reads it in a file (`profile_files.schema.READERS`), with the
key in the file where that is not its own name; the text below it is an example and its row in docs/profiles.md. What
checks a file, keeps a profile as JSON and shows it goes by these declarations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any

from tmuxctl.model import NOTHING
from tmuxctl.untrusted import FORMAT, parse_record
from tmuxctl.value import Value
from tmuxctl.vocabulary import Detail

if TYPE_CHECKING:
    from typing import Annotated, Literal, TypeAlias

    # what reads a field, by the name of its type
    Dimensions: TypeAlias = str
    EventWord: TypeAlias = str
    Gutter: TypeAlias = str
    JsonObject: TypeAlias = str
    Kind: TypeAlias = str
    Path: TypeAlias = str
    Pattern: TypeAlias = str
    Place: TypeAlias = str
    Question: TypeAlias = str
    Retry: TypeAlias = str
    Sign: TypeAlias = str
    Word: TypeAlias = str
    Pause: TypeAlias = float
    Seconds: TypeAlias = float
    Keys: TypeAlias = tuple[str, ...]
    Patterns: TypeAlias = tuple[str, ...]
    Programs: TypeAlias = tuple[str, ...]
    Matches: TypeAlias = Mapping[str, str]
    Texts: TypeAlias = Mapping[str, str]
    Variables: TypeAlias = Mapping[str, str]
    Options: TypeAlias = Mapping[str, tuple[str, ...]]
    PromptRules: TypeAlias = tuple["Rule", ...]
    ContinuationRules: TypeAlias = tuple["Rule", ...]
    BusyRules: TypeAlias = tuple["Rule", ...]
    AskingRules: TypeAlias = tuple["Rule", ...]
    ErrorRules: TypeAlias = tuple["Rule", ...]


class Rule(Value):
    """A pattern that says something where it is found. Which fields a rule has depends on what it is for."""

    id: Word
    """`overwrite`: its name; unique among its kind"""
    re: Sign
    r"""`'Overwrite .+\?'`: the pattern (`re`, Python's, multi-line)"""
    where: Place = "screen"
    """`bottom:6`: `screen`, `bottom:N`, `cursor-line`, `last-line`, `title`"""
    kind: Kind | None = None
    """`confirm`: of a question: `confirm choice approval trust password pager keys question`; of a prompt: `prompt line
    editor tui`"""
    question: Question | None = None
    """`'(?P<q>Overwrite .+)'`: the group `q` is the question's text, of one or several rows; without it the text is the
    row that matched, or with `menu` all rows above the list"""
    options: Options = NOTHING
    """`{yes: [y, Enter], no: [n, Enter]}`: the possible answers, and the keys of each; none if any text is an answer; a
    `choice` without options takes the numbered list above the cursor"""
    default: Word | None = None
    """`no`: the option that Enter alone would choose; with `menu` the marked option, unless it allows more than the
    question asks for, or grants trust"""
    risk: Literal["low", "high", "unknown"] = "unknown"
    """`high`: `low`, `high` or `unknown`; a careful policy never allows a high risk"""
    detail: Word | None = None
    """`repl`: of a prompt: `shell`, `repl`, `agent`; of busy: `printing computing silent streaming thinking retrying
    limited stopped`; of an error: `retrying`; `limited` if a usage limit is reached (a group named `until` is the time
    when that ends); `failed` if the turn ends with it. With `failed` or `limited` the turn has an `error`, and the exit
    status is 1"""
    retry: Retry | None = None
    """`30s`: of an error: when to try again; `none` if that would not help"""
    begin: Sign | None = None
    """`'^─{10,}'`: the rule looks only at the last row that this pattern matches and at the rows below, for example
    below the last answer"""
    unless: Sign | None = None
    """`'^ *Esc to '`: the rule does not count if this pattern matches there too"""
    title: Pattern | None = None
    """`'^✳ '`: the rule counts only while this pattern matches the terminal's title"""
    menu: Literal["digits", "numbers", "letters", "arrows", "typed"] | None = None
    """`digits`: the options are the list on the screen. One is chosen by its number (`digits`: at once, `numbers`: with
    Enter), by the letter it names (`letters`: `Yes (y)`), by moving there (`arrows`; such a list needs no numbers), or
    by a word's first letter and Enter (`typed`: `(Y)es/(N)o`). In an approval or a trust question the options are named
    `allow`, `always` and `deny` by the meaning of their words; `options` then only replaces keys"""
    hidden: bool = False
    """`true`: of a `password` that the program reads key by key: it shows nothing, or stars. Without `hidden` a secret
    is typed only where the terminal takes whole lines and does not show them"""
    strip: Patterns = ()
    """`'^ Tip: '`: with `menu`: rows above the list that do not belong to the question"""


class Submit(Value):
    """How text is given."""

    mode: Literal["type", "paste"] = "type"
    """`paste`: `type` types each line with Enter, `paste` is for an input box"""
    newline: Keys = ()
    """`M-Enter`: the keys for a new line"""
    enter: Keys = ("Enter",)
    """`C-j`: the keys that send the text"""
    delay: Pause = 0.0
    """`50ms`: the pause before those keys"""
    verify: Literal["echo", "none"] = "none"
    """`echo`: what is checked before the text is sent: that it is visible (`echo`), or nothing (`none`)"""
    clear: Keys = ()
    """`C-u`: the keys that clear the input box first"""


class AnswerRules(Value):
    """Where an answer begins and ends."""

    begin: Annotated[Pattern | None, "from"] = None
    """`'^⏺ '`: the sign at the left edge with which an answer begins; the rows below it are indented by its width.
    Without `from` the answer begins after the echo of the input"""
    strip: Patterns = ()
    r"""`'^\s*[╭╰│]'`: rows that do not belong to it: each row in which the pattern is found is removed as a whole"""
    until: Pattern | None = None
    """`'^>'`: where it ends"""
    tool: Sign | None = None
    r"""`'^⏺ \w+\('`: how the program's actions within it begin: the answer is what follows the last of them"""
    gutter: Gutter | None = None
    r"""`'^ *(?P<n>\d+) '`: what the program draws before lines of code; the group `n` is the line number"""


class HookEventRule(Value):
    """An event the program tells of itself."""

    on: Word
    """`notify`: the event's name"""
    means: Annotated[EventWord, "is"]
    """`stop`: `submit`: the program took an input; `stop`: the turn is over; `failure`: it ended with an error;
    `asking` and `attention`: the program wants something, and the screen shows what"""
    where: Matches = NOTHING
    """`{type: ^agent-turn-complete$}`: the event counts only if these fields of the JSON match these patterns"""
    text: Path | None = None
    """`last_assistant_message`: where in the JSON the answer is"""
    input: Path | None = None
    """`prompt`: where the input is that the event belongs to; events for another input do not count"""
    transcript: Path | None = None
    """`transcript_path`: where the path of the transcript is"""
    tokens: Path | None = None
    """`usage.output_tokens`: where the number of tokens of the answer is"""


class Transcript(Value):
    """A file in which the program keeps its turns."""

    form: Literal["json", "jsonl", "markdown"] = "jsonl"
    """`json`: `jsonl`: one entry a line; `json`: one list, at `items`; `markdown`"""
    file: str | None = None
    """`.aider.chat.history.md`: its name, in the session's folder or the nearest folder above, if no event names it"""
    items: Path | None = None
    """`messages`: where in `json` the list of entries is"""
    user: Matches = NOTHING
    """`{type: ^user$}`: how to recognise an entry of the user; for `markdown` write `user: {line: RE}`, with the typed
    line as group 1"""
    agent: Matches = NOTHING
    """`{type: ^assistant$}`: how to recognise an entry of the program"""
    input: Path | None = None
    """`message.content[].text`: where in an entry of the user the input is"""
    text: Path | None = None
    """`message.content[].text`: where in an entry of the program the answer is"""
    id: Path | None = None
    """`message.id`: entries with the same id are one message"""
    time: Path | None = None
    """`timestamp`: the time (ISO-8601) that orders the entries, if they are not in order"""
    tokens: Path | None = None
    """`message.usage.output_tokens`: where the number of tokens is"""
    skip: Patterns = ()
    """`'^> '`: lines of `markdown` that the program adds about itself"""
    until: Sign | None = None
    """`'^#### '`: of `markdown`: the line that follows an answer"""
    drop: Patterns = ()
    """`'^Tokens: '`: lines that do not belong to an answer"""


class SettingsFile(Value):
    """A program's own settings, into which `hooks install` puts hooks for each of its events."""

    file: str
    """`settings.json`: the file, in JSON, below `folder`"""
    hook: JsonObject = "{}"
    """`'{"timeout": 10}'`: what a hook needs in addition to its command, in JSON"""
    folder: str = "~"
    """`~/.shop`: where the program keeps its settings"""
    variable: str | None = None
    """`SHOP_HOME`: the variable that names another folder"""
    deny: tuple[str, ...] = ()
    """`[Read(**/.env), Bash(sudo *)]`: rules that deny actions, printed by `hooks install --deny-list`"""


class Hooks(Value):
    """How a program is made to tell of its turns."""

    argv: tuple[str, ...] = ()
    """`[--settings, '{shell}/claude.json']`: options added directly after the program's name, if the session's command
    is the program itself; `{hook}` is the script that its hooks have to run, `{shell}` the folder of `files`"""
    env: Variables = NOTHING
    """`{AGENT_SETTINGS: '{shell}/settings.json'}`: variables for the program"""
    files: Texts = NOTHING
    """`{claude.json: '{"hooks": ...}'}`: files for this session alone, in its folder `{shell}`, which the program may
    not write"""
    events: tuple[HookEventRule, ...] = ()
    """`[{on: Stop, is: stop}]`: what its events mean; the first one whose name and `where` match counts"""
    transcript: Transcript | None = None
    """`{form: json, text: content}`: how to read the answer from the file that the program writes itself"""
    settings: SettingsFile | None = None
    """`{folder: ~/.shop, file: settings.json}`: its own settings, for `tmuxctl hooks install`"""


class Profile(Value):
    """One program, resolved: `extends` merged, kept with the session when it is created."""

    name: Word
    """`shop`: the file's name without `.yaml`; may be left out"""
    argv0: Annotated[Programs, "detect.argv0"] = ()
    """`[shop, 'shop-*']`: the commands that have this profile (default, without `script`: its name); `*` and `?` are
    wildcards"""
    script: Annotated[Programs, "detect.script"] = ()
    """`[shop.py, shop-cli]`: the scripts, modules or tools that an interpreter runs, above"""
    foreground: Annotated[Programs, "detect.foreground"] = ()
    """`[shop]`: the program's name, for when it runs in a shell and has the terminal"""
    command: tuple[str, ...] = ()
    """`[shop, --console]`: what `new --profile shop` starts if no command is given"""
    size: Dimensions | None = None
    """`120x40`: the terminal's size, if none is asked for"""
    env: Variables = NOTHING
    """`{PAGER: cat}`: variables; `new -e` overrides them"""
    start_timeout: Annotated[Seconds | None, "start.timeout"] = None
    """`60s`: how long it may take to be ready"""
    prompt: PromptRules = ()
    r"""`{id: input, re: '^shop>', where: cursor-line, detail: repl}`: rules: the program takes input"""
    continuation: ContinuationRules = ()
    r"""`{id: more, re: '^\.\.\.', where: cursor-line}`: rules: the program wants the rest of the same input"""
    busy: BusyRules = ()
    """`{id: spinner, re: 'esc to interrupt', where: bottom:3}`: rules: the program works"""
    asking: AskingRules = ()
    """`{id: trust, kind: trust, re: 'Do you trust', options: {allow: [Enter], deny: [Escape]}}`: rules: the program
    wants a decision"""
    errors: ErrorRules = ()
    """`{id: limit, re: 'usage limit', retry: none}`: rules: something went wrong"""
    title_busy: Annotated[Sign | None, "title.busy"] = None
    """`'^[⠂⠐] '`: a pattern for the terminal's title: the program works"""
    title_idle: Annotated[Sign | None, "title.idle"] = None
    """`'^✳ '`: a pattern for the terminal's title: the program takes input"""
    password_argv: Annotated[tuple[str, ...], "password.argv"] = ()
    """`--passwordbox`: of a program that draws boxes: its options for a field that does not show what is typed"""
    password_unless: Annotated[tuple[str, ...], "password.unless"] = ()
    """`--inputbox`: its options for a field that shows it. A secret is typed only with one of the former and none of
    these"""
    settle: Annotated[Seconds | None, "idle.settle"] = None
    """`800ms`: how long it must be quiet before a prompt is believed"""
    cost: float | None = None
    """`3`: a number by which `new --route cheapest` compares programs"""
    install: str | None = None
    """`pipx install aider-chat`: how to install the program; printed if it is missing, never run"""
    resume: Annotated[tuple[str, ...], "resume.argv"] = ()
    """`[--continue]`: what is added to its command when it is started again"""
    submit: Submit = Submit()
    """`{mode: paste, newline: M-Enter, clear: C-u}`: how a text is submitted, below"""
    answer: AnswerRules = AnswerRules()
    """`{from: '^⏺ ', until: '^>'}`: how an answer is found on the screen, below; not needed for programs that work line
    by line"""
    interrupt: Keys = ("C-c",)
    """`[Escape]`: the keys that interrupt; default C-c"""
    exit_send: Annotated[str | None, "exit.send"] = None
    """`quit`: what is typed to leave it"""
    exit_keys: Annotated[Keys, "exit.keys"] = ("C-d",)
    """`[C-c, C-c]`: the keys if that does not help"""
    hooks: Hooks | None = None
    """`{events: [{on: Stop, is: stop}]}`: how the program is made to report its turns, below; or the name of a profile
    with the same hooks"""
    notes: str = ""
    """`tested with version 2`: what `profile ls` says"""

    @property
    def is_agent(self) -> bool:
        """Whether it is that of an agent program, which takes a text as such and executes none of it: a prompt rule has
        `detail: agent`, and texts are pasted whole (`submit: {mode: paste}`)."""
        return self.submit.mode == "paste" and any(rule.detail == Detail.AGENT for rule in self.prompt)


RECORDS: Mapping[str, type[Value]] = {
    **dict.fromkeys(("prompt", "continuation", "busy", "asking", "errors"), Rule),
    "submit": Submit,
    "answer": AnswerRules,
    "hooks": Hooks,
    "events": HookEventRule,
    "transcript": Transcript,
    "settings": SettingsFile,
}
"""What the maps are that stand in these fields; annotations are not evaluated in a quick command."""

RULES = tuple(name for name, kind in RECORDS.items() if kind is Rule)
"""The fields of a Profile that hold rules."""


def is_named(program: str, patterns: Collection[str]) -> bool:
    """Whether a program's name is one of these, in which `*`, `?` and `[...]` mean what they do in a shell."""
    if program in patterns:
        return True
    # fnmatch compiles each pattern it is given: of a hundred names in the profiles few have a `*` and may be this one
    may_fit = [
        one for one in patterns if one[:1] in (program[:1], "*", "?", "[") and any(sign in one for sign in "*?[")
    ]
    if not may_fit:
        return False
    from fnmatch import fnmatchcase

    return any(fnmatchcase(program, pattern) for pattern in may_fit)


def to_json(profile: Profile | None) -> bytes:
    """The profile as it is kept in a session's folder, so that no command has to read YAML: what differs from the
    defaults. None, where there is no profile, is kept as that."""
    kept = {} if profile is None else {"format": FORMAT, **to_plain(profile)}
    return json.dumps(kept, ensure_ascii=False).encode()


def from_json(data: bytes | str, path: str = "a profile") -> Profile | None:
    """The profile that `to_json` wrote into a file. None if it says that there is none, or is damaged: then a state is judged
    without it. NewerFormat if a later release wrote it."""
    try:
        kept = parse_record(data, path)
        return _record_from_json(Profile, kept) if kept.pop("format", None) else None
    except (ValueError, TypeError, AttributeError):
        return None


def _record_from_json(kind: type[Value], kept: Mapping[str, Any]) -> Any:
    if unknown := kept.keys() - set(kind._names):
        raise TypeError(f"{kind.__name__} has no {unknown}")
    return kind(**{name: _value_from_json(RECORDS.get(name), value) for name, value in kept.items()})


def _value_from_json(kind: type[Value] | None, kept: Any) -> Any:
    if isinstance(kept, list):
        return tuple(_value_from_json(kind, item) for item in kept)
    if isinstance(kept, dict):
        return _record_from_json(kind, kept) if kind else {name: _value_from_json(None, kept[name]) for name in kept}
    return kept


def to_plain(value: Any, key: Callable[[type[Value], str], str] = lambda kind, name: name) -> Any:
    """A value as JSON and YAML have it: of a record the fields that differ from their defaults, under the `key` of each."""
    if isinstance(value, Value):
        kind, missing = type(value), object()
        changed = (name for name in kind._names if kind._defaults.get(name, missing) != getattr(value, name))
        return {key(kind, name): to_plain(getattr(value, name), key) for name in changed}
    if isinstance(value, Mapping):
        return {name: to_plain(item, key) for name, item in value.items()}
    return [to_plain(item, key) for item in value] if isinstance(value, tuple) else value
