"""The picture of the code, as data: who may know whom, and what a quick command may not load."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tmuxctl"

FLOORS: tuple[tuple[str, ...], ...] = (
    ("errors", "ownership", "value", "model", "untrusted", "evidence", "results"),
    ("config", "extensions", "effort", "profile", "profile_files", "plugin", "contract", "operations"),
    ("transport",),
    ("terminal", "reading"),
    ("control",),
    ("fleet",),
    ("surfaces", "gateway"),
    ("surfaces.cli",),
)
"""From the ground up. A part may import every floor below its own."""

LADDERS = (0, 1)
"""Floors whose parts may also import those to the left of them; elsewhere neighbours do not know each other."""

FORBIDDEN = {"reading": ("transport",)}
"""What a part may not know though it lies below: reading is pure, it knows neither tmux nor a machine."""

PLUGINS_MAY_IMPORT = ("errors", "model", "untrusted")

HEAVY = ("asyncio", "importlib.metadata", "libtmux", "psutil", "pyte", "yaml")
"""Together 280 ms over a bare start of 15 ms: loaded inside the function that needs them."""

HOT = (
    "errors",
    "ownership",
    "model",
    "untrusted",
    "evidence",
    "profile",
    "profile_files",
    "results",
    "config",
    "extensions",
    "effort",
    "plugin",
    "operations",
    "transport",
    "terminal",
    "reading",
    "control",
    "surfaces.cli",
)
"""The parts `ls show send screen wait --now` are made of: every module in them, and whatever it loads, stays light."""

COLD = (
    "tmuxctl.terminal.filter",
    "tmuxctl.terminal.grid",
    "tmuxctl.terminal.page",
    "tmuxctl.terminal.render",
    "tmuxctl.terminal.replay",
    "tmuxctl.terminal.rows",
)
"""Modules in those parts that only a slow command loads, inside a function."""


class Import(NamedTuple):
    """One import: who, of what (the longest module name that exists), where, and whether loading the file runs it."""

    module: str
    target: str
    line: int
    at_load: bool


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
PLUGINS = {module_name(path): path for path in sorted((ROOT / "plugins").rglob("*.py"))}


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def import_nodes(node: ast.AST, at_load: bool = True) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, at_load
        else:
            later = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)) or is_type_checking(child)
            yield from import_nodes(child, at_load and not later)


def absolute(module: str, path: Path, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    parts = package[: len(package) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def imports(module: str, path: Path) -> Iterator[Import]:
    for node, at_load in import_nodes(ast.parse(path.read_text(), str(path))):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            base = absolute(module, path, node)
            targets = [f"{base}.{alias.name}" if known(f"{base}.{alias.name}") else base for alias in node.names]
        yield from (Import(module, target, node.lineno, at_load) for target in targets)


def known(name: str) -> bool:
    return name in MODULES or name in HEAVY


def part_of(module: str) -> str | None:
    """The part of the picture that a module belongs to: `surfaces.cli` before `surfaces`."""
    inside = module.removeprefix("tmuxctl.")
    parts = (part for floor in FLOORS for part in floor)
    fitting = [part for part in parts if inside == part or inside.startswith(part + ".")]
    return max(fitting, key=len, default=None) if module.startswith("tmuxctl.") else None


def may_import(importer: str, imported: str) -> bool:
    if importer == imported:
        return True
    if imported in FORBIDDEN.get(importer, ()):
        return False
    above, below = floor_of(importer), floor_of(imported)
    if above != below:
        return above > below
    floor = FLOORS[above]
    return above in LADDERS and floor.index(importer) > floor.index(imported)


def floor_of(part: str) -> int:
    return next(number for number, floor in enumerate(FLOORS) if part in floor)


def where(found: Import) -> str:
    return f"{found.module}:{found.line} imports {found.target}"


def test_every_module_has_its_place_in_the_picture():
    homeless = [name for name in MODULES if part_of(name) is None and name not in ("tmuxctl", "tmuxctl.__main__")]
    assert not homeless, f"draw them in FLOORS (and docs/architecture.md): {homeless}"


def test_imports_point_down_only():
    wrong = []
    for name, path in MODULES.items():
        importer = part_of(name)
        for found in imports(name, path) if importer else ():
            imported = part_of(found.target)
            if importer and imported and not may_import(importer, imported):
                wrong.append(where(found))
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("terminal", "reading"),
        ("reading", "terminal"),
        ("reading", "transport"),
        ("transport", "terminal"),
        ("transport", "reading"),
        ("errors", "model"),
        ("control", "surfaces"),
        ("surfaces", "surfaces.cli"),
        ("surfaces", "gateway"),
    ],
)
def test_the_picture_keeps_these_apart(importer, imported):
    assert not may_import(importer, imported)


def test_plugins_see_the_model_the_errors_and_the_readers_only():
    wrong = [
        where(found)
        for name, path in PLUGINS.items()
        for found in imports(name, path)
        if found.target.split(".")[0] in ("tmuxctl", "plugins") and part_of(found.target) not in PLUGINS_MAY_IMPORT
    ]
    assert not wrong, "\n".join(wrong)


def loaded_by(module: str, cause: Import | None, causes: dict[str, Import | None]) -> None:
    """Fill `causes` with everything of ours that loading the module loads, each with the import that does it."""
    if module in causes or module not in MODULES:
        return
    causes[module] = cause
    for found in (one for one in imports(module, MODULES[module]) if one.at_load):
        names = found.target.split(".")
        for length in range(1, len(names) + 1):
            loaded_by(".".join(names[:length]), found, causes)


def chain(found: Import, causes: dict[str, Import | None]) -> str:
    cause = causes[found.module]
    return where(found) + (f"\n    because {chain(cause, causes)}" if cause else "")


@pytest.mark.parametrize("part", HOT)
def test_a_quick_command_loads_nothing_heavy(part):
    causes: dict[str, Import | None] = {}
    for module in ("tmuxctl", "tmuxctl.__main__", *MODULES):
        if module not in COLD and part_of(module) in (part, None):
            loaded_by(module, None, causes)
    heavy = (one for name in causes for one in imports(name, MODULES[name]) if one.at_load and is_heavy(one.target))
    wrong = dict.fromkeys(chain(one, causes) for one in heavy)
    assert not wrong, "import inside the function that needs it (or is the module COLD?):\n" + "\n".join(wrong)


def is_heavy(target: str) -> bool:
    return any(target == name or target.startswith(name + ".") for name in HEAVY)


def test_the_lists_name_what_there_is():
    assert set(HOT) <= {part for floor in FLOORS for part in floor}
    assert set(COLD) <= MODULES.keys()
