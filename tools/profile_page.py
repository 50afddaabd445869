"""Writes the tables of fields in docs/profiles.md from tmuxctl.program_profile: `python -m tools.profile_page [--check]`.

A table stands between `<!-- fields of NAME ... -->`, which names the records whose fields it lists, and `<!-- /fields -->`.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tmuxctl import program_profile
from tmuxctl.profile_files.schema import key_of
from tmuxctl.program_profile import RECORDS, Profile
from tmuxctl.value import Value

PAGE = Path(__file__).resolve().parents[1] / "docs" / "profiles.md"

KINDS: Mapping[str, type[Value]] = {
    "profile": Profile,
    "rule": RECORDS["prompt"],
    "event": RECORDS["events"],
    **{name: RECORDS[name] for name in ("submit", "answer", "hooks", "transcript", "settings")},
}
"""What the page calls a record."""

TABLE = re.compile(r"(<!-- fields of ([a-z ]+) -->\n).*?(?=<!-- /fields -->)", re.DOTALL)


class Row(NamedTuple):
    """A field: its record, its name and its key there, an example of its value, and what it is for."""

    record: str
    name: str
    key: str
    example: str
    about: str


def main() -> int:
    """Write the page, or with `--check` say whether it is up to date; the exit status."""
    before = PAGE.read_text(encoding="utf-8")
    after = TABLE.sub(lambda found: found[1] + _table(found[2].split()), before)
    if sys.argv[1:] != ["--check"]:
        PAGE.write_text(after, encoding="utf-8")
    elif before != after:
        print(f"{PAGE.name} does not match the code: run make docs", file=sys.stderr)
        return 1
    return 0


def rows(record: str) -> Iterator[Row]:
    """The fields of a record in their order, with the text below each."""
    module = ast.parse(Path(program_profile.__file__).read_text(encoding="utf-8"))
    wanted = KINDS[record]
    body = next(one.body for one in module.body if isinstance(one, ast.ClassDef) and one.name == wanted.__name__)
    texts = {
        ast.unparse(field.target): " ".join(ast.literal_eval(text.value).split())
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }
    for name in wanted._names:
        found = re.fullmatch(r"`([^`]+)`: (.+)", texts.get(name, ""))
        if found is None:
            raise SystemExit(f"{wanted.__name__}.{name}: below it stands no text like: `example`: what it is for")
        yield Row(record, name, key_of(wanted, name), *found.groups())


def _table(records: list[str]) -> str:
    lines = ["| field | example | |", "|---|---|---|"]
    for row in (row for record in records for row in rows(record)):
        key = row.key if row.record == "profile" else f"{row.record}.{row.key}"
        lines.append(f"| `{key}` | `{row.example}` | {row.about} |")
    return "".join(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
