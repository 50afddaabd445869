"""A page of Markdown as a reader would use it: its sections, each with blocks to run and directives hidden in comments.

tests/README.md, "Snippets are tested", says what may stand in a page.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

LANGUAGES = ("console", "sh", "yaml", "toml", "python", "tmux", "json", "text", "diff")

FOR_A_BLOCK = ("run-by", "file", "append", "changed-tree")
"""Directives that say something of the next block."""

DIRECTIVES = ("needs", "needs-service", "before", *FOR_A_BLOCK)

FENCE = re.compile(r"(?P<fence>```+|~~~+) *(?P<language>[^\s`]*)[^`]*")
ITEM = re.compile(r" *(?:[-*+]|\d{1,9}[.)]) {1,4}(?=\S)")
DIRECTIVE = re.compile(r" *([a-z-]+)(?:: +| *\n)(.*)", re.DOTALL)
EXIT = re.compile(r"\[exit (\d+)\]")
COMMENT = re.compile(r"\s+#\s.*")


class Block(NamedTuple):
    """A fenced block without its fence, or code that is indented only. `line` is that of its first line."""

    language: str
    text: str
    line: int


class Directive(NamedTuple):
    """What a comment asks of who runs the section."""

    name: str
    value: str
    line: int


class Section(NamedTuple):
    """What stands between two headings of the second level; the page's own heading begins one too."""

    title: str
    parts: tuple[Block | Directive, ...]


class Page(NamedTuple):
    """A page by its name from the root of the project."""

    name: str
    sections: tuple[Section, ...]


class Step(NamedTuple):
    """A command that is typed; the lines that it is to print (none: whatever it likes) and the status it ends with."""

    line: int
    command: str
    expected: tuple[str, ...]
    status: int


def all_pages() -> list[Page]:
    """Every page with something to type, but for the decisions and the reference, whose examples have their own test."""
    paths = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    paths += [path for path in sorted((ROOT / "docs").glob("*.md")) if path.name != "reference.md"]
    return [page(path.relative_to(ROOT).as_posix(), path.read_text()) for path in paths if path.exists()]


def page(name: str, text: str) -> Page:
    """A page, read."""
    sections: list[tuple[str, list[Block | Directive]]] = [("", [])]
    for part in _PageReader(text.split("\n")).parts():
        if isinstance(part, str):
            sections.append((part, []))
        else:
            sections[-1][1].append(part)
    return Page(name, tuple(Section(title, tuple(parts)) for title, parts in sections if title or parts))


class _PageReader:
    """Goes through the lines once. `margin` is where the text of each list stands that is open."""

    def __init__(self, lines: list[str]) -> None:
        self.lines, self.at = lines, 0
        self.margins, self.in_paragraph = [0], False

    def parts(self) -> Iterator[str | Block | Directive]:
        """The titles, blocks and directives, in order."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            text, indent = line.strip(), _indent(line)
            if text:
                self.margins = [one for one in self.margins if one <= indent]
            if text and not self.in_paragraph and indent >= self.margins[-1] + 4:
                yield self._indented()
            elif fence := FENCE.fullmatch(text):
                yield self._fenced(fence["fence"], fence["language"], indent)
            elif text.startswith("<!--"):
                yield from self._comment()
            else:
                yield from self._prose(line)

    def _prose(self, line: str) -> Iterator[str]:
        heading = re.fullmatch(r"#{1,3} +(.+?)[ #]*", line)
        if heading:
            yield heading[1]
        if item := ITEM.match(line):
            self.margins.append(item.end())
        self.in_paragraph = bool(line.strip()) and not heading
        self.at += 1

    def _indented(self) -> Block:
        began, margin = self.at, self.margins[-1] + 4
        while self.at < len(self.lines) and (not self.lines[self.at].strip() or _indent(self.lines[self.at]) >= margin):
            self.at += 1
        return Block("indented", textwrap.dedent("\n".join(self.lines[began : self.at])).rstrip(), began + 1)

    def _fenced(self, fence: str, language: str, indent: int) -> Block:
        self.at += 1
        began = self.at
        while self.at < len(self.lines) and not self._closes(fence):
            self.at += 1
        inside = self.lines[began : self.at]
        self.at += 1
        self.in_paragraph = False
        return Block(language, "\n".join(re.sub(f"^ {{0,{indent}}}", "", line) for line in inside), began + 1)

    def _closes(self, fence: str) -> bool:
        text = self.lines[self.at].strip()
        return text.startswith(fence) and not text.strip(fence[0])

    def _comment(self) -> Iterator[Directive]:
        began = self.at
        while self.at < len(self.lines) - 1 and "-->" not in self.lines[self.at]:
            self.at += 1
        self.at += 1
        self.in_paragraph = False
        text = textwrap.dedent("\n".join(self.lines[began : self.at]))
        if found := DIRECTIVE.fullmatch(text.partition("-->")[0].removeprefix("<!--")):
            yield Directive(found[1], found[2].strip(), began + 1)


def _indent(line: str) -> int:
    return len(line.expandtabs(4)) - len(line.expandtabs(4).lstrip(" "))


def problems(page: Page) -> Iterator[str]:
    """What stands in a page and cannot be run, line by line."""
    for section in page.sections:
        for number, part in enumerate(section.parts):
            what = (
                _wrong_block(part) if isinstance(part, Block) else _wrong_directive(part, section.parts[number + 1 :])
            )
            if what:
                yield f"{page.name}:{part.line}: {what}"


def _wrong_block(block: Block) -> str | None:
    lines = block.text.split("\n")
    if block.language == "indented":
        return "a block is fenced (```console), not indented"
    if block.language not in LANGUAGES:
        return f"a block of {block.language or 'no language'}; there are: {', '.join(LANGUAGES)}"
    if block.language == "text" and any(line.startswith(("$ ", "tmuxctl ")) for line in lines):
        return "commands do not stand in a block of text, where nobody would run them"
    if block.language == "console" and not lines[0].startswith("$ "):
        return "a console begins with a command: `$ ` and what is typed"
    return None


def _wrong_directive(directive: Directive, following: tuple[Block | Directive, ...]) -> str | None:
    if directive.name not in DIRECTIVES:
        return f"no directive {directive.name!r}; there are: {', '.join(DIRECTIVES)}"
    if directive.name in FOR_A_BLOCK and not any(isinstance(part, Block) for part in following):
        return f"{directive.name} is about the next block, and there is none in this section"
    return None


def steps(block: Block) -> list[Step]:
    """What is typed in a console, and what it shows."""
    found: list[tuple[int, list[str], list[str]]] = []
    for number, line in enumerate(block.text.split("\n"), block.line):
        if line.startswith("$ "):
            found.append((number, [line[2:]], []))
        elif (line + " ").startswith("> ") and not found[-1][2]:
            found[-1][1].append(line[2:])
        else:
            found[-1][2].append(line)
    return [_step(number, "\n".join(typed), shown) for number, typed, shown in found]


def _step(line: int, command: str, shown: list[str]) -> Step:
    exits = [int(found[1]) for one in shown if (found := EXIT.fullmatch(one))]
    expected = [one for one in shown if not EXIT.fullmatch(one)]
    while expected and not expected[-1].strip():
        expected.pop()
    return Step(line, command, tuple(expected), exits[-1] if exits else 0)


def shows(expected: tuple[str, ...], output: str) -> bool:
    """Whether this is the output that a page shows: `...` alone stands for any lines, within a line for any text; the
    columns of a table may be wider or narrower."""
    patterns = [_line_pattern(line) for line in expected]
    return not expected or bool(re.fullmatch("".join(patterns), f"{tidy(output)}\n"))


def _line_pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:[^\n]*\n)*"
    columns = [_text_pattern(one) for one in re.split(r"(?<=\S) {2,}", line.rstrip())]
    return " {2,}".join(columns) + r"\n"


def _text_pattern(text: str) -> str:
    return "[^\n]*".join(map(re.escape, text.split("...")))


def tidy(output: str) -> str:
    """Output without what cannot be seen: blanks at the end of its lines, empty lines at its end."""
    return "\n".join(line.rstrip() for line in output.split("\n")).rstrip("\n")


def commands(block: Block) -> list[str]:
    """Each command of a block without its comment, as another file would have it."""
    if block.language == "console":
        lines = [step.command for step in steps(block)]
    else:
        lines = [line for line in block.text.split("\n") if line.strip() and not line.startswith("#")]
    return [COMMENT.sub("", line).strip() for line in lines]
