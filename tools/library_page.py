"""Writes the reference of the library in docs/python.md from its docstrings: `python -m tools.library_page [--check]`."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, LIBRARY = ROOT / "docs" / "python.md", ROOT / "tmuxctl" / "surfaces" / "library"
PART = re.compile(r"(<!-- library -->\n).*?(?=<!-- /library -->)", re.DOTALL)

CLASSES: dict[str, tuple[str, str | tuple[str, ...]]] = {
    "session, run": ("client", ("session", "run")),
    "Client": ("client", "Client"),
    "TerminalSession": ("driven", "TerminalSession"),
    "Screen": ("screens", "TerminalScreen"),
    "TextMatch": ("matching", "TextMatch"),
}
INTERNAL = ("control", "own", "forget", "end_owned")


def main() -> int:
    """Write the page, or with `--check` say whether it is up to date; the exit status."""
    before = PAGE.read_text(encoding="utf-8")
    made = "\n".join(
        section for title, (module, names) in CLASSES.items() for section in _sections(title, module, names)
    )
    after = PART.sub(lambda found: found[1] + "\n" + made + "\n", before)
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(after, encoding="utf-8")
    elif before != after:
        print(f"{PAGE.name} does not match the library: run make docs", file=sys.stderr)
        return 1
    return 0


def _sections(title: str, module: str, names: str | tuple[str, ...]) -> Iterator[str]:
    tree = ast.parse((LIBRARY / f"{module}.py").read_text(encoding="utf-8"))
    by_name = {one.name: one for one in tree.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
    yield f"### {title}\n"
    if isinstance(names, tuple):
        for name in names:
            yield from _function(by_name[name])
        return
    kind = by_name[names]
    yield _text(ast.get_docstring(kind) or "") + "\n"
    for node in kind.body:
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in INTERNAL:
            yield from _function(node)


def _function(node: ast.AST) -> Iterator[str]:
    assert isinstance(node, ast.FunctionDef)
    is_property = any(isinstance(one, ast.Name) and one.id == "property" for one in node.decorator_list)
    arguments = re.sub(r"^self(, )?", "", ast.unparse(node.args))
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    words, found, example = inspect.cleandoc(ast.get_docstring(node) or "").partition(">>>")
    yield f"#### `{node.name}`\n"
    signature = f"{node.name}{result.replace(' -> ', ': ')}" if is_property else f"{node.name}({arguments}){result}"
    yield f"```text\n{textwrap.fill(signature, 110, subsequent_indent='    ', break_long_words=False)}\n```\n"
    yield _text(words) + "\n"
    if found:
        yield f"```text\n{found}{example}".rstrip() + "\n```\n"


def _text(words: str) -> str:
    paragraphs = [" ".join(part.split()) for part in words.strip().split("\n\n")]
    return "\n\n".join(textwrap.fill(part, 130, break_long_words=False, break_on_hyphens=False) for part in paragraphs)


if __name__ == "__main__":
    sys.exit(main())
