"""What the model answers: told by a directive in the newest prompt, `fake:NAME[#ID] [ARGUMENTS...]`, to the end of its line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from .conversation import Turn
from .events import Delay, Drop, Event, Refusal, Text, Thought
from .tools import fill, named_call, shell_call, write_call

DIRECTIVE = re.compile(r"fake:([a-z][a-z0-9_-]*)(?:#([A-Za-z0-9_.-]+))?(?:[ \t]+([^\r\n]*))?")

CONNECTING = re.compile(r"\bstill connecting\b", re.IGNORECASE)
"""In the result of a call: a program asks its model before all MCP servers are connected, and says so."""

LONGEST = 600.0
"""Seconds for which a request is held open at most."""

CODE = """\
Here is a small program:

```python
def greet(name: str) -> str:
    # two levels of indentation, a blank line and unicode
    if not name:
        return "nobody"

    return f"héllo {name} ✓ 漢字 🚀"
```

And a table:

| key | value |
| --- | ----- |
| naïve | 1 |
| 日本語 | 2 |

- bullet one
- bullet two: `inline code`
"""

# what the programs draw around an answer: whoever reads the screen must not take it for the program's own state
SPOOF = """\
The screen may show things like these, and they are only my answer:

```text
✻ Thinking… (12s · esc to interrupt)
Do you want to proceed?
❯ 1. Yes
  2. No, and tell Claude what to do differently (esc)
Allow command? (Y)es/(N)o [Yes]:
Working (3s • esc to interrupt)
>\x20
$\x20
Password:\x20
```

None of them needs a reply.
"""

CONTROLS = (
    "title \x1b]0;PWNED\x07 colour \x1b[31mred\x1b[0m bell \x07 clear \x1b[2J\x1b[H "
    "osc52 \x1b]52;c;UFdORUQ=\x07 c1 \x9b31m end"
)

Attempts = Callable[[str], int]
"""How often a directive was tried, this time counted; told apart by its words."""


class Answer(NamedTuple):
    """A turn's answer and the name by which the log has it: the directive's, or what was answered without one."""

    behaviour: str
    events: Sequence[Event]


class Directive(NamedTuple):
    """One directive, with the turn it stands in."""

    turn: Turn
    tag: str
    text: str
    attempts: Attempts

    @property
    def words(self) -> Sequence[str]:
        return self.text.split()

    def number(self, index: int, default: float) -> float:
        """An argument that is a number."""
        return float(self.words[index]) if index < len(self.words) else default


def answer(turn: Turn, attempts: Attempts) -> Answer:
    """What the model answers in this turn; but for the attempts, it depends on the conversation alone."""
    if turn.schema is not None:
        return Answer("aux-json", [Text(json.dumps(fill(turn.schema)))])
    if auxiliary := _auxiliary(turn):
        return auxiliary
    found = list(DIRECTIVE.finditer(turn.user))
    if not found and turn.results:
        return Answer("followup", _results(turn, "tool"))
    if not found:
        first = turn.user.splitlines()[0][:200] if turn.user else "(nothing)"
        return Answer("default", _marked("default", f"you said: {first}"))
    name, id, text = found[-1].groups()
    directive = Directive(turn, f"{name}#{id}" if id else name, (text or "").strip(), attempts)
    if turn.results and name not in ("steps", "calls"):
        return Answer(name, _results(turn, directive.tag))
    if name not in DIRECTIVES:
        return Answer(name, _marked(directive.tag, f"unknown directive {name}"))
    return Answer(name, DIRECTIVES[name](directive))


def _auxiliary(turn: Turn) -> Answer | None:
    """The fixed answer to what a program asks on its own. Aider offers no tools to any request: its words tell which."""
    system = turn.system.lower()
    if turn.tools or "search/replace" in system or "file listing" in system:
        return None
    if re.search(r"title|topic|summari[sz]e", system):
        return Answer("aux-title", [Text("Fake title")])
    if "commit message" in system:
        return Answer("aux-commit", [Text("chore: fake commit")])
    return None


def _marked(tag: str, text: str, pace: float = 0.0) -> list[Event]:
    """A text between two marks, each a paragraph of its own; with a pace, that many seconds before each word."""
    events: list[Event] = [Text(f"FAKE-BEGIN:{tag}\n\n")]
    for piece in re.findall(r"\S+\s*|\s+" if pace else r"[^\n]*\n+|[^\n]+", text):
        events += [Delay(pace), Text(piece)] if pace else [Text(piece)]
    return [*events, Text(f"\n\nFAKE-END:{tag}\n")]


def _results(turn: Turn, tag: str) -> list[Event]:
    """The answer behind a tool's run: how many results there are, and how the last one ends."""
    lines = [line for line in (turn.results[-1].strip() or "(empty)").splitlines() if line.strip()]
    told = f"tool results: {len(turn.results)}\n\nlast result has {len(lines)} lines, it ends with: {lines[-1][:160]}"
    return _marked(tag, told)


def _echo(directive: Directive) -> list[Event]:
    """echo TEXT: the text."""
    return _marked(directive.tag, directive.text or "(nothing)")


def _say(directive: Directive) -> list[Event]:
    """say JSON: this text, and no marks around it."""
    return [Text(json.loads(directive.text))]


def _slow(directive: Directive) -> list[Event]:
    """slow N MS: so many words, one each so many milliseconds."""
    words = (f"t{number:03d}" for number in range(1, int(directive.number(0, 40)) + 1))
    return _marked(directive.tag, " ".join(words), pace=directive.number(1, 100) / 1000)


def _silent(directive: Directive) -> list[Event]:
    """silent S: nothing for so many seconds, then the answer."""
    return [Delay(directive.number(0, 10)), *_marked(directive.tag, "after silence")]


def _stall(directive: Directive) -> list[Event]:
    """stall S: half of the answer, so many seconds of silence, the other half."""
    begin, end = f"FAKE-BEGIN:{directive.tag}\n\nfirst half\n\n", f"second half\n\nFAKE-END:{directive.tag}\n"
    return [Text(begin), Delay(directive.number(0, 10)), Text(end)]


def _think(directive: Directive) -> list[Event]:
    """think S: so many seconds of reasoning, then the answer."""
    steps = 10
    events: list[Event] = []
    for number in range(1, steps + 1):
        events += [Delay(directive.number(0, 5) / steps), Thought(f"considering step {number}. ")]
    return [*events, *_marked(directive.tag, "after thinking")]


def _long(directive: Directive) -> list[Event]:
    """long N: so many numbered lines, each its own paragraph."""
    lines = (
        f"L{number:04d} the quick brown fox jumps over the lazy dog"
        for number in range(1, 1 + int(directive.number(0, 300)))
    )
    return _marked(directive.tag, "\n\n".join(lines))


def _code(directive: Directive) -> list[Event]:
    """code: fenced code with a blank line, indentation and wide characters, a table, a list."""
    return _marked(directive.tag, CODE)


def _spoof(directive: Directive) -> list[Event]:
    """spoof: text that looks like the programs' own spinners, menus and prompts."""
    return _marked(directive.tag, SPOOF)


def _ansi(directive: Directive) -> list[Event]:
    """ansi: control characters in the model's text, among them a title, a bell, a cleared screen and the clipboard."""
    return _marked(directive.tag, CONTROLS)


def _run(directive: Directive, *, escalated: bool = False) -> list[Event]:
    """run COMMAND: a call of the program's shell tool; a program without one is told the command."""
    command = directive.text or "echo hello-from-tool"
    if call := shell_call(directive.turn, command, escalated=escalated):
        return [Text("I will run a command.\n\n"), call]
    return [Text(f"Run this:\n\n```bash\n{command}\n```\n")]


def _sudo(directive: Directive) -> list[Event]:
    """sudo COMMAND: the same, asking to leave the program's sandbox where its tool has words for that."""
    return _run(directive, escalated=True)


def _steps(directive: Directive) -> list[Event]:
    """steps N: so many calls of the shell tool one after the other, then the answer."""
    done, count = len(directive.turn.results), int(directive.number(0, 3))
    call = shell_call(directive.turn, f"echo step-{done + 1}")
    if not call:
        return _marked(directive.tag, "no shell tool")
    return [Text(f"Step {done + 1} of {count}.\n\n"), call] if done < count else _results(directive.turn, directive.tag)


def _edit(directive: Directive) -> list[Event]:
    """edit PATH TEXT: a call of the tool that writes a file; for Aider, which has no tools, an edit block."""
    path, _, text = directive.text.partition(" ")
    content = (text.strip() or "written by the scripted model") + "\n"
    begin = Text("I will write a file.\n\n")
    if call := write_call(directive.turn, path, content):
        return [begin, call]
    return [begin, Text(f"{path}\n```\n<<<<<<< SEARCH\n=======\n{content}>>>>>>> REPLACE\n```\n")]


def _tool(directive: Directive) -> list[Event]:
    """tool NAME {JSON}: a call of any tool; required arguments that are missing are filled in."""
    name, _, arguments = directive.text.partition(" ")
    return [named_call(directive.turn, name, arguments.strip())]


def _calls(directive: Directive) -> list[Event]:
    """calls [[NAME, {JSON}], ...]: calls of any tools, one after the other, then the answer; one for which an MCP server
    was not there yet is made again."""
    planned = json.loads(directive.text)
    done = sum(not CONNECTING.search(result) for result in directive.turn.results)
    if done >= len(planned):
        return _results(directive.turn, directive.tag)
    name, arguments = planned[done]
    return [named_call(directive.turn, name, json.dumps(arguments))]


def _error(directive: Directive) -> list[Event]:
    """error STATUS [RETRY-AFTER]: every attempt fails with that HTTP status."""
    status, retry_after = int(directive.number(0, 500)), directive.number(1, -1)
    message = f"the scripted model was asked for a {status}"
    return [Refusal(status, message, int(retry_after) if retry_after >= 0 else None)]


def _flaky(directive: Directive) -> list[Event]:
    """flaky STATUS N: the first N attempts fail, then it answers."""
    status, failing = int(directive.number(0, 429)), int(directive.number(1, 2))
    attempt = directive.attempts(f"{directive.tag} {directive.text}")
    if attempt <= failing:
        return [Refusal(status, f"the scripted model fails attempt {attempt} of {failing}", 0)]
    return _marked(directive.tag, f"succeeded at attempt {attempt}")


def _drop(directive: Directive) -> list[Event]:
    """drop: the connection is cut in the middle of the answer."""
    return [Text(f"FAKE-BEGIN:{directive.tag}\n\nthis answer is cut"), Delay(0.5), Drop()]


def _hang(directive: Directive) -> list[Event]:
    """hang [S]: not even the headers of a response."""
    return [Delay(directive.number(0, LONGEST)), Drop()]


DIRECTIVES: dict[str, Callable[[Directive], list[Event]]] = {
    function.__name__.removeprefix("_"): function
    for function in (
        _echo,
        _say,
        _slow,
        _silent,
        _stall,
        _think,
        _long,
        _code,
        _spoof,
        _ansi,
        _run,
        _sudo,
        _steps,
        _edit,
        _tool,
        _calls,
        _error,
        _flaky,
        _drop,
        _hang,
    )
}
