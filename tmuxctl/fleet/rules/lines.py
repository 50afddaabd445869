"""What an agent's answer says to others: lines that name an agent, and fenced blocks that give a task.

Fences are those of CommonMark (https://spec.commonmark.org/0.31.2/#fenced-code-blocks): what stands in a block is text, and
so are lines in it that name an agent, and fences of fewer characters.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tmuxctl.value import NamedTuple

FENCE = re.compile(r" {0,3}(`{3,}|~{3,})[ \t]*(.*?)[ \t]*$")

ADDRESS = re.compile(r"@([A-Za-z0-9][A-Za-z0-9_-]{0,62}):[ \t]*(.*)$")

TASK = "task"
"""The first word behind the fence of a block that gives a task; its name follows."""


class TextBlock(NamedTuple):
    """A part of an answer: a fenced block with what stands behind its opening fence (`info`), or None and what stands between
    two. `lines` are those within, `written` all of it as it was written."""

    info: str | None
    lines: list[str]
    written: list[str]


class Addressed(NamedTuple):
    """A text in an answer, and the name that it is addressed to."""

    name: str
    text: str


class Task(NamedTuple):
    """A block that gives a task; `name` is what stands there, which may be no valid name."""

    name: str
    text: str


def split_blocks(text: str) -> Iterator[TextBlock]:
    """The parts of an answer, in order. A block without its closing fence goes to the end."""
    fence, block = "", TextBlock(None, [], [])
    for line in text.split("\n"):
        found = FENCE.match(line)
        if fence:
            block.written.append(line)
            if found and found[1][0] == fence[0] and len(found[1]) >= len(fence) and not found[2]:
                yield block
                fence, block = "", TextBlock(None, [], [])
            else:
                block.lines.append(line)
        elif found and not (found[1][0] == "`" and "`" in found[2]):
            if block.written:
                yield block
            fence, block = found[1], TextBlock(found[2], [], [line])
        else:
            block.lines.append(line)
            block.written.append(line)
    if block.written:
        yield block


def find_addressed(text: str, names: Collection[str]) -> list[Addressed]:
    """The texts that are addressed to one of these names, in order. Each begins in a line `@NAME: TEXT` outside of any fenced
    block, and goes up to the next such line, whoever that names."""
    found: list[tuple[str, list[str]]] = []
    for block in split_blocks(text):
        for line in block.written:
            address = ADDRESS.match(line) if block.info is None else None
            if address:
                found.append((address[1], [address[2]]))
            elif found:
                found[-1][1].append(line)
    return [Addressed(name, "\n".join(lines).strip()) for name, lines in found if name in names]


def find_tasks(text: str) -> list[Task]:
    """The fenced blocks ```` ```task NAME ````, in order."""
    found = []
    for block in split_blocks(text):
        word, _, name = (block.info or "").partition(" ")
        if word == TASK:
            found.append(Task(name.strip(), "\n".join(block.lines).strip("\n")))
    return found
