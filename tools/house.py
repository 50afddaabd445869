"""Measure how the code is built: sizes, imports, names, complexity. `python -m tools.house [--json] [TREE]`.

It reads the sources of a tree and imports nothing of them, so one version of this tool measures any version of the code.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent

PARTS = ("tmuxctl", "plugins")
"""Folders of the product."""

FOLDERS = ("tmuxctl/control", "tmuxctl/reading", "tmuxctl/surfaces", "tmuxctl/terminal")
"""Those whose packages are counted."""

COMPLEX = 15
"""Functions above this cyclomatic complexity are listed."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef


class Module(NamedTuple):
    """One file of the product: its name as it is imported, whether it is a package's own, and its contents."""

    name: str
    is_package: bool
    lines: int
    tree: ast.Module


class Import(NamedTuple):
    """One import statement: the modules of the product that it names, and where it stands."""

    targets: tuple[str, ...]
    in_function: bool
    type_checking: bool


class House(NamedTuple):
    """What was measured of a tree."""

    product_lines: int
    packages: Mapping[str, int]
    """Modules in each package of FOLDERS, its `__init__` not counted; the largest first."""
    ring: tuple[str, ...]
    """The largest set of modules that import each other, also inside functions; imports for type checkers left out."""
    ring_with_types: tuple[str, ...]
    imports_in_functions: int
    product_imports_in_functions: int
    """Those of them that import a module of the product."""
    takes_control: tuple[str, ...]
    """Functions with a parameter that is annotated `Control`."""
    control_methods: int
    """Methods of the class `Control`, which take it as `self`."""
    functions: int
    words_per_name: float
    """Of functions, without leading underscores and dunders."""
    repeated_classes: Mapping[str, tuple[str, ...]]
    """Class names that stand in more than one module."""
    complex_functions: Mapping[str, int]
    variables_called_one: int
    """Places that assign it, loop over it or take it as a parameter."""
    uses_of_one: int
    """Those, and the places that use it."""
    seconds_constants: tuple[str, ...]
    """Constants of modules that are called `SECONDS` or `*_SECONDS`."""
    clock_uses: Mapping[str, int]
    """How often each module names `time.monotonic` or `time.sleep`, which no test can replace by another clock."""

    @property
    def takes_control_in_control(self) -> tuple[str, ...]:
        """Those of the functions that take a Control that are below it."""
        return tuple(name for name in self.takes_control if name.startswith("tmuxctl.control."))


def measure(root: Path = ROOT) -> House:
    """Measure the product in a tree."""
    modules = [module for part in PARTS for module in _read(root, part)]
    known = {module.name for module in modules}
    imports = {module.name: list(_imports(module, known)) for module in modules}
    in_functions = [one for found in imports.values() for one in found if one.in_function]
    functions = [found for module in modules for found in _functions(module.tree, module.name)]
    words = [_words(node.name) for _, node in functions if not node.name.startswith("__")]
    nodes = [node for module in modules for node in ast.walk(module.tree)]
    return House(
        product_lines=sum(module.lines for module in modules),
        packages=_packages(root),
        ring=largest_ring(_graph(imports, with_types=False)),
        ring_with_types=largest_ring(_graph(imports, with_types=True)),
        imports_in_functions=len(in_functions),
        product_imports_in_functions=sum(bool(one.targets) for one in in_functions),
        takes_control=tuple(name for name, node in functions if _takes(node, "Control")),
        control_methods=sum(
            _methods(node) for node in nodes if isinstance(node, ast.ClassDef) and node.name == "Control"
        ),
        functions=len(functions),
        words_per_name=round(sum(words) / max(1, len(words)), 2),
        repeated_classes=_repeated_classes(modules),
        complex_functions={name: found for name, node in functions if (found := complexity(node)) > COMPLEX},
        variables_called_one=sum(_binds(node, "one") for node in nodes),
        uses_of_one=sum(_binds(node, "one") or (isinstance(node, ast.Name) and node.id == "one") for node in nodes),
        seconds_constants=tuple(name for module in modules for name in _seconds_constants(module)),
        clock_uses={module.name: count for module in modules if (count := _count_clock_uses(module))},
    )


def _read(root: Path, part: str) -> Iterator[Module]:
    for path in sorted((root / part).rglob("*.py")):
        names = path.relative_to(root).with_suffix("").parts
        is_package = names[-1] == "__init__"
        text = path.read_text(encoding="utf-8")
        yield Module(".".join(names[:-1] if is_package else names), is_package, text.count("\n"), ast.parse(text))


def _packages(root: Path) -> dict[str, int]:
    found = Counter(
        path.parent.relative_to(root).as_posix()
        for folder in FOLDERS
        for path in (root / folder).rglob("*.py")
        if path.name != "__init__.py"
    )
    return dict(found.most_common())


def _imports(module: Module, known: Collection[str]) -> Iterator[Import]:
    for node, in_function, type_checking in _import_nodes(module.tree):
        yield Import(tuple(_targets(module, node, known)), in_function, type_checking)


def _import_nodes(
    node: ast.AST, in_function: bool = False, type_checking: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child, in_function, type_checking
        elif isinstance(child, ast.If) and ast.unparse(child.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for inner in child.body:
                yield from _import_nodes(ast.Module([inner], []), in_function, True)
            for inner in child.orelse:
                yield from _import_nodes(ast.Module([inner], []), in_function, type_checking)
        else:
            yield from _import_nodes(child, in_function or isinstance(child, FUNCTIONS), type_checking)


def _targets(module: Module, node: ast.Import | ast.ImportFrom, known: Collection[str]) -> Iterator[str]:
    """The modules of the product that an import names: `from package import name` names the module, if that is one."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name in known)
        return
    base = node.module or ""
    if node.level:
        package = module.name.split(".")[: None if module.is_package else -1]
        package = package[: len(package) - node.level + 1]
        base = ".".join([*package, base] if base else package)
    named = (f"{base}.{alias.name}" for alias in node.names)
    yield from (name for name in dict.fromkeys(name if name in known else base for name in named) if name in known)


def _graph(imports: Mapping[str, Iterable[Import]], *, with_types: bool) -> dict[str, set[str]]:
    return {
        name: {target for one in found if with_types or not one.type_checking for target in one.targets}
        for name, found in imports.items()
    }


def largest_ring(graph: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """The largest set of nodes of which each reaches each; empty if there is no such set of two or more."""
    reached = {name: _reachable(graph, name) for name in graph}
    rings = ({other for other in found if name in reached[other]} for name, found in reached.items())
    return tuple(sorted(max(rings, key=len, default=()), key=str))


def _reachable(graph: Mapping[str, Collection[str]], start: str) -> set[str]:
    """The nodes that are reached from one, itself only by a way back."""
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        if (name := waiting.pop()) not in found:
            found.add(name)
            waiting += graph[name]
    return found - {start} | ({start} if len(found) > 1 and start in found else set())


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    """Every function below a node with its whole name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, FUNCTIONS):
            yield f"{prefix}.{child.name}", child
        named = isinstance(child, (*FUNCTIONS, ast.ClassDef))
        yield from _functions(child, f"{prefix}.{child.name}" if named else prefix)  # type: ignore[attr-defined]


def _takes(node: Function, kind: str) -> bool:
    """Whether a parameter's annotation names the class."""
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs, node.args.vararg, node.args.kwarg]
    annotations = [one.annotation for one in arguments if one is not None and one.annotation is not None]
    return any(re.search(rf"\b{kind}\b", ast.unparse(annotation)) for annotation in annotations)


def _methods(node: ast.ClassDef) -> int:
    return sum(isinstance(child, FUNCTIONS) for child in node.body)


def _words(name: str) -> int:
    return len([word for word in name.split("_") if word])


def _repeated_classes(modules: Iterable[Module]) -> dict[str, tuple[str, ...]]:
    places: dict[str, dict[str, None]] = {}
    for module in modules:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, {})[module.name] = None
    return {name: tuple(found) for name, found in sorted(places.items()) if len(found) > 1}


def _binds(node: ast.AST, name: str) -> bool:
    """Whether a node makes a variable of this name: assigns it, loops over it, or takes it as a parameter."""
    if isinstance(node, ast.Name):
        return node.id == name and isinstance(node.ctx, ast.Store)
    return (isinstance(node, ast.arg) and node.arg == name) or (
        isinstance(node, ast.ExceptHandler) and node.name == name
    )


def _seconds_constants(module: Module) -> Iterator[str]:
    for node in module.tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)):
            names = (
                name.id for name in ast.walk(node) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            )
            yield from (f"{module.name}.{name}" for name in names if name.split("_")[-1] == "SECONDS")


def _count_clock_uses(module: Module) -> int:
    imported = {
        alias.asname or alias.name
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
        if alias.name in ("monotonic", "sleep")
    }
    return sum(
        (isinstance(node, ast.Attribute) and ast.unparse(node) in ("time.monotonic", "time.sleep"))
        or (isinstance(node, ast.Name) and node.id in imported)
        for node in ast.walk(module.tree)
    )


def complexity(node: Function) -> int:
    """The cyclomatic complexity of a function with those inside it, counted as ruff's C901 does."""
    return 1 + sum(map(_branches, node.body))


def _branches(node: ast.AST) -> int:
    """The branches in a statement."""
    own = 0
    if isinstance(node, (ast.If, ast.For, ast.AsyncFor, ast.While, *FUNCTIONS)):
        own = 1
    elif isinstance(node, (ast.Try, ast.TryStar)):
        own = len(node.handlers) + bool(node.orelse)
    elif isinstance(node, ast.Match):
        own = len(node.cases) - any(_takes_all(case) for case in node.cases[-1:])
    return own + sum(_branches(child) for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr))


def _takes_all(case: ast.match_case) -> bool:
    return isinstance(case.pattern, ast.MatchAs) and case.pattern.pattern is None and case.guard is None


def report(house: House) -> str:
    """The measures as a table, then the lists behind them."""
    largest = next(iter(house.packages), "none")
    rows: list[tuple[str, Any]] = [
        ("product lines", house.product_lines),
        ("largest package (modules)", f"{house.packages.get(largest, 0)}  {largest}"),
        ("largest import ring (modules)", len(house.ring)),
        ("  with imports for type checkers", len(house.ring_with_types)),
        ("imports inside functions", house.imports_in_functions),
        ("  of modules of the product", house.product_imports_in_functions),
        ("functions", house.functions),
        ("  with a parameter Control", len(house.takes_control)),
        ("    of them in control/", len(house.takes_control_in_control)),
        ("  methods of Control", house.control_methods),
        ("words per function name", house.words_per_name),
        ("class names in several modules", len(house.repeated_classes)),
        (f"functions over complexity {COMPLEX}", len(house.complex_functions)),
        ("variables called `one`", house.variables_called_one),
        ("  with their uses", house.uses_of_one),
        ("constants *_SECONDS", len(house.seconds_constants)),
        ("uses of time.monotonic and time.sleep", sum(house.clock_uses.values())),
    ]
    lists = (
        ("modules per package", (f"{count:3} {name}" for name, count in house.packages.items())),
        ("the largest ring", house.ring),
        ("class names in several modules", (f"{name}: {', '.join(at)}" for name, at in house.repeated_classes.items())),
        ("complex functions", (f"{count:3} {name}" for name, count in house.complex_functions.items())),
    )
    table = [f"{name:34}{value}" for name, value in rows]
    return "\n".join(table + [f"\n{title}\n" + "\n".join(f"  {line}" for line in lines) for title, lines in lists])


def main() -> None:
    """Print the measures of a tree."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "tree", nargs="?", type=Path, default=ROOT, help="where tmuxctl/ and plugins/ are (default: here)"
    )
    parser.add_argument("--json", action="store_true", help="all of it as one JSON object")
    options = parser.parse_args()
    house = measure(options.tree)
    print(json.dumps(house._asdict(), indent=2) if options.json else report(house))


if __name__ == "__main__":
    main()
