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
    """`'(?P<q>Overwrite .+)'`: the question's text is the group `q`, of several rows too; without it the row that fitted,
    with `menu` all rows above the list"""
    options: Options = NOTHING
    """`{yes: [y, Enter], no: [n, Enter]}`: what may be answered, and the keys that do it; none where any text is an
    answer; a `choice` without takes the numbered list above the cursor"""
    default: Word | None = None
    """`no`: the option that Enter alone would choose; with `menu` the marked one, unless it allows more than is asked
    about, or trusts"""
    risk: Literal["low", "high", "unknown"] = "unknown"
    """`high`: `low`, `high` or `unknown`; a careful policy never allows what is high"""
    detail: Word | None = None
    """`repl`: of a prompt: `shell`, `repl`, `agent`; of busy: `printing computing silent streaming thinking retrying
    limited stopped`; of an error: `retrying`; `limited` if it says that a limit is used up; a group named `until` is then
    when that is over; `failed` if the turn has ended in it. Of a turn with `failed` or `limited` the error is told as its
    `error`, and the exit status is 1"""
    retry: Retry | None = None
    """`30s`: of an error: when to try again; `none`: it would not help"""
    begin: Sign | None = None
    """`'^─{10,}'`: it looks only at the rows from the last one on that this fits: below the last answer, say"""
    unless: Sign | None = None
    """`'^ *Esc to '`: it does not count if this fits there as well"""
    title: Pattern | None = None
    """`'^✳ '`: it counts only while this fits the terminal's title"""
    menu: Literal["digits", "numbers", "letters", "arrows", "typed"] | None = None
    """`digits`: the options are the list on the screen, and one is chosen by its number (`digits`: at once, `numbers`:
    with Enter), by the letter it names (`letters`: `Yes (y)`), by moving there (`arrows`; such a list needs no numbers),
    or by a word's first letter and Enter (`typed`: `(Y)es/(N)o`). Of an approval or of trust the options are called
    `allow`, `always` and `deny` by what their words mean; `options` then only replaces keys"""
    hidden: bool = False
    """`true`: of a `password` for which the program reads keys one by one: it does not show them, or shows stars. Without
    it a secret is typed only where the terminal takes whole lines and shows nothing of them"""
    strip: Patterns = ()
    """`'^ Tip: '`: with `menu`: rows above the list that are no part of the question"""


class Submit(Value):
    """How text is given."""

    mode: Literal["type", "paste"] = "type"
    """`paste`: `type` types each line and Enter, `paste` is for a composer"""
    newline: Keys = ()
    """`M-Enter`: the keys that make a new line"""
    enter: Keys = ("Enter",)
    """`C-j`: the keys that send the text"""
    delay: Pause = 0.0
    """`50ms`: the pause before that"""
    verify: Literal["echo", "none"] = "none"
    """`echo`: what is looked for before the text is sent: that it shows (`echo`), or nothing (`none`)"""
    clear: Keys = ()
    """`C-u`: the keys that empty the line first"""


class AnswerRules(Value):
    """Where an answer begins and ends."""

    begin: Annotated[Pattern | None, "from"] = None
    """`'^⏺ '`: where an answer begins, a sign at the edge: the rows below it are set in by its width; without it right
    behind the echo"""
    strip: Patterns = ()
    r"""`'^\s*[╭╰│]'`: rows that are no part of it: every row in which the pattern is found, the whole row; it takes
    nothing off the beginning of one"""
    until: Pattern | None = None
    """`'^>'`: where it ends"""
    tool: Sign | None = None
    r"""`'^⏺ \w+\('`: how the program's own actions among it begin: what stands behind the last of them is the answer"""
    gutter: Gutter | None = None
    r"""`'^ *(?P<n>\d+) '`: what it draws before lines of code, whose group `n` is their number"""


class HookEventRule(Value):
    """An event the program tells of itself."""

    on: Word
    """`notify`: the event's name"""
    means: Annotated[EventWord, "is"]
    """`stop`: `submit`: it took an input, `stop`: the turn is over, `failure`: it ended in an error, `asking`,
    `attention`: it wants something, and the screen tells what"""
    where: Matches = NOTHING
    """`{type: ^agent-turn-complete$}`: only if these fields of the JSON fit these patterns"""
    text: Path | None = None
    """`last_assistant_message`: where the answer stands"""
    input: Path | None = None
    """`prompt`: where the input stands that the event is about: one about another input does not count"""
    transcript: Path | None = None
    """`transcript_path`: where the path of the transcript stands"""
    tokens: Path | None = None
    """`usage.output_tokens`: where it stands how many tokens the answer took"""


class Transcript(Value):
    """A file in which the program keeps its turns."""

    form: Literal["json", "jsonl", "markdown"] = "jsonl"
    """`json`: `jsonl`: an entry a line; `json`: one list, at `items`; `markdown`"""
    file: str | None = None
    """`.aider.chat.history.md`: its name, in the session's folder or the nearest above, where no event names it"""
    items: Path | None = None
    """`messages`: where in `json` the list of entries stands"""
    user: Matches = NOTHING
    """`{type: ^user$}`: what an entry of the user's looks like; of `markdown` it is `user: {line: RE}`, whose group 1 is
    the line that was typed"""
    agent: Matches = NOTHING
    """`{type: ^assistant$}`: what an entry of the program's looks like"""
    input: Path | None = None
    """`message.content[].text`: where in an entry of the user's the input stands"""
    text: Path | None = None
    """`message.content[].text`: where in one of the program's the answer stands"""
    id: Path | None = None
    """`message.id`: entries with the same id are one message"""
    time: Path | None = None
    """`timestamp`: their order (ISO-8601), where the file's is another"""
    tokens: Path | None = None
    """`message.usage.output_tokens`: where the number of tokens stands"""
    skip: Patterns = ()
    """`'^> '`: lines of `markdown` that the program says of itself"""
    until: Sign | None = None
    """`'^#### '`: of `markdown`: the line behind an answer"""
    drop: Patterns = ()
    """`'^Tokens: '`: what is no part of an answer"""


class SettingsFile(Value):
    """A program's own settings, into which `hooks install` puts hooks for each of its events."""

    file: str
    """`settings.json`: the file, in JSON, below `folder`"""
    hook: JsonObject = "{}"
    """`'{"timeout": 10}'`: what a hook has beside its command, in JSON"""
    folder: str = "~"
    """`~/.shop`: where the program keeps its settings"""
    variable: str | None = None
    """`SHOP_HOME`: the variable that names another folder"""
    deny: tuple[str, ...] = ()
    """`[Read(**/.env), Bash(sudo *)]`: rules for what it should not touch: `hooks install --deny-list` prints them"""


class Hooks(Value):
    """How a program is made to tell of its turns."""

    argv: tuple[str, ...] = ()
    """`[--settings, '{shell}/claude.json']`: words put right behind the program's own, where the session's command is the
    program itself; `{hook}` is the script that its hooks have to run, `{shell}` the folder of `files`"""
    env: Variables = NOTHING
    """`{AGENT_SETTINGS: '{shell}/settings.json'}`: variables it is started with"""
    files: Texts = NOTHING
    """`{claude.json: '{"hooks": ...}'}`: files written for this session alone, into its folder `{shell}`, which the
    program may not write"""
    events: tuple[HookEventRule, ...] = ()
    """`[{on: Stop, is: stop}]`: what its events mean, in order: the first whose name and `where` fit"""
    transcript: Transcript | None = None
    """`{form: json, text: content}`: how the answer is read out of the file that the program keeps itself"""
    settings: SettingsFile | None = None
    """`{folder: ~/.shop, file: settings.json}`: its own settings, for `tmuxctl hooks install`"""


class Profile(Value):
    """One program, resolved: `extends` merged, kept with the session when it is created."""

    name: Word
    """`shop`: the file's name without `.yaml`; may be left out"""
    argv0: Annotated[Programs, "detect.argv0"] = ()
    """`[shop, 'shop-*']`: the commands this is for (default, without `script`: its name); `*` and `?` stand for anything"""
    script: Annotated[Programs, "detect.script"] = ()
    """`[shop.py, shop-cli]`: the scripts, modules or tools that an interpreter runs, above"""
    foreground: Annotated[Programs, "detect.foreground"] = ()
    """`[shop]`: how the program is called while it has the terminal"""
    command: tuple[str, ...] = ()
    """`[shop, --console]`: what `new --profile shop` starts if no command is given"""
    size: Dimensions | None = None
    """`120x40`: the terminal's size, if none is asked for"""
    env: Variables = NOTHING
    """`{PAGER: cat}`: variables; those of `new -e` come on top"""
    start_timeout: Annotated[Seconds | None, "start.timeout"] = None
    """`60s`: how long it may take to be ready"""
    prompt: PromptRules = ()
    r"""`{id: input, re: '^shop>', where: cursor-line, detail: repl}`: rules: any match means that it takes input"""
    continuation: ContinuationRules = ()
    r"""`{id: more, re: '^\.\.\.', where: cursor-line}`: rules: it wants more of the same input"""
    busy: BusyRules = ()
    """`{id: spinner, re: 'esc to interrupt', where: bottom:3}`: rules: it works"""
    asking: AskingRules = ()
    """`{id: trust, kind: trust, re: 'Do you trust', options: {allow: [Enter], deny: [Escape]}}`: rules: it wants a
    decision"""
    errors: ErrorRules = ()
    """`{id: limit, re: 'usage limit', retry: none}`: rules: something went wrong"""
    title_busy: Annotated[Sign | None, "title.busy"] = None
    """`'^[⠂⠐] '`: a pattern for the terminal's title: it works"""
    title_idle: Annotated[Sign | None, "title.idle"] = None
    """`'^✳ '`: a pattern for the terminal's title: it takes input"""
    password_argv: Annotated[tuple[str, ...], "password.argv"] = ()
    """`--passwordbox`: of a program that draws boxes: words among its own that say that the field of its box does not
    show what is typed"""
    password_unless: Annotated[tuple[str, ...], "password.unless"] = ()
    """`--inputbox`: words of boxes that do show it. Only with the one and without the other a secret is typed there"""
    settle: Annotated[Seconds | None, "idle.settle"] = None
    """`800ms`: how long it must be quiet before a prompt is believed"""
    cost: float | None = None
    """`3`: to choose among several programs for one task"""
    install: str | None = None
    """`pipx install aider-chat`: what puts the program on a machine: told where it is missing, never run"""
    resume: Annotated[tuple[str, ...], "resume.argv"] = ()
    """`[--continue]`: what is added to its command when it is started again"""
    submit: Submit = Submit()
    """`{mode: paste, newline: M-Enter, clear: C-u}`: how a turn's text is given, below"""
    answer: AnswerRules = AnswerRules()
    """`{from: '^⏺ ', until: '^>'}`: how an answer is found among what the program draws, below.
    Programs that work by lines need none of it"""
    interrupt: Keys = ("C-c",)
    """`[Escape]`: the keys that stop what it does; default C-c"""
    exit_send: Annotated[str | None, "exit.send"] = None
    """`quit`: what is typed to leave it"""
    exit_keys: Annotated[Keys, "exit.keys"] = ("C-d",)
    """`[C-c, C-c]`: the keys if that does not help"""
    hooks: Hooks | None = None
    """`{events: [{on: Stop, is: stop}]}`: how the program is made to tell of its turns, below; a name: as that profile
    says"""
    notes: str = ""
    """`tested with version 2`: what `profile ls` says"""


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
