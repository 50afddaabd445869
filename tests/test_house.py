"""How the code is built keeps within limits: a stranger finds a subject in a small package, and a function fits in a glance."""

from __future__ import annotations

import ast
import re
import sys
from functools import lru_cache
from pathlib import Path

import pytest

from tools import house

PRODUCT = house.ROOT / "tmuxctl"
PARTS = ("tmuxctl", "plugins", "tools", "bench", "tests", "examples")

TESTS = Path(__file__).resolve().parent
PACKAGE_MODULES = 10
RING_MODULES = 3
FUNCTIONS_WITH_CONTROL = 50
"""Functions in control/ that take it, with its own methods."""

COMPLEX: dict[str, str] = {}
"""Functions that may be more complex than `house.COMPLEX`, each with its reason."""


@lru_cache(maxsize=1)
def measured() -> house.House:
    return house.measure()


@pytest.mark.night
def test_a_package_holds_few_modules():
    large = {name: count for name, count in measured().packages.items() if count > PACKAGE_MODULES}
    assert not large, f"more than {PACKAGE_MODULES} modules: {large}"


def test_modules_do_not_import_each_other_in_a_ring():
    ring = measured().ring
    assert len(ring) <= RING_MODULES, f"{len(ring)} modules import each other: {', '.join(ring)}"


def test_few_functions_take_the_whole_control():
    takes, methods = measured().takes_control_in_control, measured().control_methods
    wrong = f"{methods} methods, and functions that are to get what they need of it: {', '.join(takes)}"
    assert len(takes) + methods <= FUNCTIONS_WITH_CONTROL, wrong


def test_a_class_name_stands_once():
    repeated = measured().repeated_classes
    assert not repeated, "\n".join(f"{name}: {', '.join(places)}" for name, places in repeated.items())


def test_no_module_shadows_a_standard_one():
    paths = [path for part in PARTS for path in (house.ROOT / part).rglob("*.py")]
    names = {path: path.parent.name if path.stem == "__init__" else path.stem for path in paths}
    assert not [path for path, name in names.items() if name in sys.stdlib_module_names]


def test_the_glossary_names_code_that_is_there():
    rows = re.findall(r"^\|.*\|.*\|(.*)\|$", (house.ROOT / "docs/glossary.md").read_text(), re.MULTILINE)
    places = [place for row in rows for place in re.findall(r"`([a-z_/]+)(?:\.(\w+))?`", row)]
    assert len(places) > 30
    assert not [place for place in places if not _defines(*place)]


def _defines(module: str, name: str) -> bool:
    path = PRODUCT / f"{module}.py"
    return path.exists() and (not name or re.search(rf"^class {name}\b", path.read_text(), re.MULTILINE) is not None)


def test_no_function_is_too_complex():
    complex_functions = measured().complex_functions
    unlisted = complex_functions.keys() - COMPLEX.keys()
    assert not unlisted, (
        f"split them, or list them with a reason: { ({name: complex_functions[name] for name in unlisted}) }"
    )


def test_the_list_of_complex_functions_names_what_there_is():
    assert COMPLEX.keys() <= measured().complex_functions.keys()


def test_a_ring_is_found_through_other_modules():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}, "g": {"g"}}
    assert house.largest_ring(graph) == ("a", "b", "c")
    assert house.largest_ring({"g": {"g"}, "h": set()}) == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("pass", 1),
        ("if a: pass\nelif b: pass\nelse: pass", 3),
        ("for a in b: pass\nelse: pass", 2),
        ("try: pass\nexcept A: pass\nexcept B: pass\nelse: pass\nfinally: pass", 4),
        ("match a:\n case 1: pass\n case 2: pass\n case _: pass", 3),
        ("def inner():\n if a: pass", 3),
        ("with a:\n while b: pass", 2),
        ("return [a for a in b if a and c or d]", 1),
    ],
)
def test_complexity_is_counted_as_ruff_counts_it(body: str, expected: int):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    function = ast.parse(f"def outer():\n{lines}").body[0]
    assert isinstance(function, ast.FunctionDef)
    assert house.complexity(function) == expected


PATCHED = {
    "plugins/test_env.py": "a plugin's own constants, as a user who copies it would change them",
    "plugins/test_sandbox.py": "a plugin's own constants, as a user who copies it would change them",
    "plugins/test_sandbox_sessions.py": "RUN_SECONDS is what a plugin says of itself",
    "plugins/test_worktree.py": "a plugin's own constants, as a user who copies it would change them",
    "control/test_typing.py": "the version of the terminal in memory, which belongs to the tests",
}
"""Tests that replace a constant of a module, each with its reason; all others pass what they want in, as a Timing or Limits."""


def test_durations_of_the_product_are_values():
    """A plugin stands alone: it is a file that a user copies and changes, and takes no Timing."""
    constants = [name for name in measured().seconds_constants if not name.startswith("plugins.")]
    assert not constants, f"move them into a group of tmuxctl/timing.py: {', '.join(constants)}"


def test_modules_take_the_time_from_the_injected_clock():
    """`tmuxctl.timing.Clock` is that clock. The list of modules that go past it may only shrink."""
    lines = (TESTS / "clock_uses.txt").read_text().splitlines()
    allowed = {module: int(count) for count, module in map(str.split, lines)}
    uses = {name: count for name, count in measured().clock_uses.items() if name.startswith("tmuxctl.")}
    del uses["tmuxctl.timing"]
    more = {name: count for name, count in uses.items() if count > allowed.get(name, 0)}
    assert not more, f"take the clock as an argument (Machine.clock, timing.CLOCK): {more}"
    fewer = {name: uses.get(name, 0) for name, count in allowed.items() if uses.get(name, 0) < count}
    assert not fewer, f"lower these counts in tests/clock_uses.txt, and take out those that are 0: {fewer}"


def test_no_test_replaces_a_constant_of_a_module():
    replaced = {}
    for path in TESTS.rglob("*.py"):
        text = path.read_text()
        # parsing all tests takes seconds
        for call in ast.walk(ast.parse(text)) if "setattr" in text else ():
            if isinstance(call, ast.Call) and ast.unparse(call.func).endswith("setattr"):
                words = [
                    word.value for word in call.args if isinstance(word, ast.Constant) and isinstance(word.value, str)
                ]
                if any(word.rpartition(".")[2].isupper() for word in words):
                    replaced[str(path.relative_to(TESTS))] = ast.unparse(call)
    assert replaced.keys() == PATCHED.keys(), f"pass it in: {replaced}"
