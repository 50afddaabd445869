"""The picture of the code, as data: who may know whom, and what a quick command may not load."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tmuxctl.terminal.tmux import layout

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tmuxctl"

FLOORS: tuple[tuple[str, ...], ...] = (
    (
        "errors",
        "ownership",
        "value",
        "timing",
        "vocabulary",
        "model",
        "untrusted",
        "milestones",
        "state_files",
        "widths",
        "evidence",
        "results",
        "parsed_file",
    ),
    (
        "alarm",
        "config",
        "machines",
        "extensions",
        "search_cost",
        "program_profile",
        "profile_files",
        "plugin_machine",
        "plugin",
        "contract",
        "operations",
        "rpc",
    ),
    ("transport", "sealed"),
    ("terminal", "reading"),
    ("control",),
    ("fleet", "access"),
    ("surfaces", "gateway"),
    ("surfaces.cli", "aio"),
)
"""From the ground up. A part may import every floor below its own."""

LADDERS = (0, 1)
"""Floors whose parts may also import those to the left of them; elsewhere neighbours do not know each other."""

ROOMS: dict[str, tuple[tuple[str, ...], ...]] = {
    "terminal": (("tmux",), ("processes", "input"), ("launch", "panes", "picture")),
    "reading": (("text",), ("evidence", "questions"), ("state", "answers")),
    "control": (
        ("caller_files", "secret_values"),
        ("foreground",),
        ("machine",),
        ("machines",),
        ("sessions",),
        ("observation",),
        ("output",),
        ("lifecycle", "recordings"),
        ("waiting",),
        ("input",),
        ("turns",),
        ("setup",),
        ("service",),
    ),
    "fleet": (("connector",), ("files", "rules"), ("running",), ("teams",)),
    "gateway": (
        ("subjects",),
        ("credentials", "messages", "nats_client"),
        ("direct", "connection"),
        ("shared",),
        ("carrier", "host", "pairing", "server", "spool"),
        ("events",),
    ),
    "surfaces.cli": (
        ("attaching", "editing", "ending", "kept_code", "printing"),
        ("words",),
        ("commands",),
        ("gateway", "setup", "teams", "top"),
        ("here", "skill"),
        ("app",),
        ("command_server", "manual"),
    ),
}
"""The floors inside a part, from the ground up: a room may import those below its own, and none beside it."""

FORBIDDEN = {"reading": ("transport",)}
"""What a part may not know though it lies below: reading is pure, it knows neither tmux nor a machine."""

PLUGINS_MAY_IMPORT = ("errors", "model", "plugin_machine", "state_files", "untrusted")

HEAVY = (
    "aiortc",
    "asyncio",
    "cryptography",
    "difflib",
    "fnmatch",
    "importlib.metadata",
    "libtmux",
    "nats",
    "nkeys",
    "noise",
    "psutil",
    "pyte",
    "spake2",
    "yaml",
)
"""Together 280 ms over a bare start of 15 ms: loaded inside the function that needs them."""

HOT = (
    "errors",
    "ownership",
    "timing",
    "state_files",
    "vocabulary",
    "model",
    "untrusted",
    "widths",
    "evidence",
    "program_profile",
    "profile_files",
    "results",
    "config",
    "machines",
    "extensions",
    "search_cost",
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
    "tmuxctl.control.recordings.frames",
    "tmuxctl.control.recordings.reporting",
    "tmuxctl.surfaces.cli.setup.ways.ssh_pairing",
    "tmuxctl.surfaces.cli.setup.ways.testing_ways",
    "tmuxctl.surfaces.cli.top.player",
    "tmuxctl.terminal.picture.film",
    "tmuxctl.terminal.picture.filter",
    "tmuxctl.terminal.picture.grid",
    "tmuxctl.terminal.picture.page",
    "tmuxctl.terminal.picture.raster",
    "tmuxctl.terminal.picture.render",
    "tmuxctl.terminal.picture.replay",
    "tmuxctl.terminal.picture.rows",
)
"""Modules in those parts that only a slow command loads, inside a function."""

OPENED_ELSEWHERE = {
    "tmuxctl.state_files.append_line": "appends to a file of ours, never waited for, and to nothing but a regular file",
    "tmuxctl.state_files.make_private_file": "makes a new file",
    "tmuxctl.surfaces.server.admission.tokens.locked": "a lock in our own folder",
    "tmuxctl.sealed.keys._locked": "our own folder, as a lock",
    "tmuxctl.sealed.trust._locked": "the user's own folder, as a lock",
    "tmuxctl.gateway.pairing._only_pairing": "a lock in our own folder, which is never waited for",
    "tmuxctl.gateway.server.running.find_process": "a lock in our own folder, which is never waited for",
    "tmuxctl.gateway.server.running.start": "a lock in our own folder",
    "tmuxctl.gateway.server.settings.locked": "a lock in our own folder",
    "tmuxctl.gateway.spool.__init__": "a lock in our own folder",
    "tmuxctl.gateway.spool._write": "a new segment in our own folder, without following a link",
    "tmuxctl.config.read_file": "the user's own settings; /dev/null stands for none",
    "tmuxctl.contract._run_tests": "a file in a folder made for the trial of a plugin",
    "tmuxctl.contract.child.main": "a file in a folder made for the trial of a plugin",
    "tmuxctl.control.observation.explaining._read_screen": "a file the caller names: a pipe is waited for, as cat(1) does",
    "tmuxctl.control.setup.first_profile._write_file": "makes a new file",
    "tmuxctl.control.caller_files.read_given_file": "a file the caller names: a pipe is waited for, as cat(1) does",
    "tmuxctl.control.caller_files.read_secret": "a file the caller names: a pipe is waited for, as cat(1) does",
    "tmuxctl.surfaces.adapters.agentapi.uploads": "folders without following links, and new files in them",
    "tmuxctl.surfaces.cli.commands.command.write_to_files": "writes where the caller says",
    "tmuxctl.surfaces.cli.command_server.child._replace_streams": "our own standard input, output and error",
    "tmuxctl.surfaces.cli.command_server.client._send_request": "the folder that this process is in",
    "tmuxctl.surfaces.cli.command_server.server._fill_streams": "/dev/null",
    "tmuxctl.surfaces.cli.command_server.server._take_place": "a lock in a folder of ours, which is never waited for",
    "tmuxctl.surfaces.cli.kept_code": "beside the files that Python keeps of each module, and as trusted; made anew",
    "tmuxctl.terminal.launch.hooks.write_event": "makes a new file",
    "tmuxctl.surfaces.cli.editing.replacing._write_backup": "makes a new file",
    "tmuxctl.surfaces.cli.printing.output._drop_rest": "/dev/null",
    "tmuxctl.fleet.running.runs.confirm": "makes a file in our own folder, without following a link",
    "tmuxctl.fleet.running.transcript._open": "appends to a regular file, never waited for, and without following a link",
    "tmuxctl.surfaces.cli.teams.connecting._write_new_file": "makes a new file",
    "tmuxctl.surfaces.cli.manual.reference.main": "our own documentation",
    "tmuxctl.surfaces.cli.manual.reference._messages": "our own sources",
    "tmuxctl.surfaces.cli.manual.reference._reasons": "our own documentation",
    "tmuxctl.surfaces.testing.assertions.to_match_snapshot": "a file of the tests' own, beside them",
    "tmuxctl.terminal.panes.foreign.hold_lock": "a lock of ours; opening a FIFO to read and write does not wait (fifo(7))",
    "tmuxctl.control.recordings.exporting.write_whole": "makes a new file beside the one that the caller names",
    "tmuxctl.control.recordings.recorder.main": "/dev/null",
    "tmuxctl.transport.local._read_file": "files of /proc",
    "tmuxctl.transport.local.append": "writes at the end; what is no regular file is neither waited for nor written",
    "tmuxctl.transport.local._hold_lock": "a lock in our state folder; opening a FIFO to read and write does not wait (fifo(7))",
    "tmuxctl.transport.local._write_new_file": "makes a new file",
    "tmuxctl.transport.procfs": "files of /proc and terminals",
    "tmuxctl.transport.spawn._open_input": "/dev/null",
    "tmuxctl.untrusted": "the reader itself",
    "plugins.sandbox.bubblewrap.takes_descriptors": "a folder",
    "plugins.sandbox.clone._lock": "a lock in our state folder; opening a FIFO to read and write does not wait (fifo(7))",
    "plugins.sandbox.clone._write_file": "makes a new file",
    "plugins.sandbox.repository._make_folders": "folders",
    "plugins.sandbox.start.open_without_links": "what there is at a path, without opening it (O_PATH)",
    "plugins.sandbox.view.remember_written": "makes a new file",
    "plugins.env._read_secret_file": "a file the caller names, a pipe too: read with a deadline",
    "plugins.env._read_text": "a file the caller names, a pipe too: read with a deadline",
}
"""Functions and modules that open files themselves, and why they may; all others use `untrusted.open_file`."""

PARSED_ELSEWHERE = {
    "tmuxctl.contract.child.main": "what the process that started this one wrote",
    "tmuxctl.contract.trial": "what was made of a value a moment ago",
    "tmuxctl.surfaces.cli.editing.json_nodes": "parts of a text that was parsed as a whole before",
    "tmuxctl.untrusted": "the parser itself",
    "plugins.sandbox.start": "the plan that the plugin made; it runs without tmuxctl",
}
"""Functions and modules that parse JSON themselves, and why they may; all others use `untrusted.parse_json`."""

ENDLESS = {
    "tmuxctl.contract._start_child": "each line of it is waited for with a deadline",
    "tmuxctl.extensions.run_program": "communicates with a deadline",
    "tmuxctl.surfaces.cli.setup.serving.start_command_server": "a server, which ends with this process",
    "tmuxctl.surfaces.cli.printing.show._react": "a command the caller gives, to be run to its end",
    "tmuxctl.surfaces.cli.setup.machines._let_ssh_ask": "a person answers what ssh asks",
    "tmuxctl.surfaces.cli.top.top._attached": "a terminal that a person attaches, until they leave",
    "tmuxctl.transport.control_mode._open": "one client for many calls, each with a deadline",
    "tmuxctl.transport.shell.__init__": "one shell for many calls, each with a deadline",
    "tmuxctl.control.lifecycle.login_shell._ask_shell": "read and waited for with a deadline",
    "plugins.env._read_command": "read and waited for with a deadline",
    "plugins.sandbox.bubblewrap._wait_for": "waited for with a deadline",
    "tmuxctl.plugin_machine.run": "waited for with a deadline",
    "tmuxctl.plugin_machine._run_here": "communicates with a deadline",
}
"""Functions that run a program without a deadline in the call, and why they may."""


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


@pytest.fixture(scope="module", autouse=True)
def forgotten() -> Iterator[None]:
    """What was parsed is kept for the tests of this file only: it takes 80 MB, and other tests in this process fork."""
    yield
    for function in (parsed, imports, calls):
        function.cache_clear()


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(), str(path))


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


@cache
def imports(module: str, path: Path) -> tuple[Import, ...]:
    found: list[Import] = []
    for node, at_load in import_nodes(parsed(path)):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        else:
            base = absolute(module, path, node)
            targets = [f"{base}.{alias.name}" if known(f"{base}.{alias.name}") else base for alias in node.names]
        found += (Import(module, target, node.lineno, at_load) for target in targets)
    return tuple(found)


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


@pytest.mark.night
def test_imports_point_down_only():
    wrong = []
    for name, path in MODULES.items():
        importer = part_of(name)
        for found in imports(name, path) if importer else ():
            imported = part_of(found.target)
            if importer and imported and not may_import(importer, imported):
                wrong.append(where(found))
    assert not wrong, "\n".join(wrong)


def room_of(module: str) -> tuple[str, str] | None:
    """The part and the room in it that a module belongs to."""
    part = part_of(module)
    inside = module.removeprefix(f"tmuxctl.{part}").removeprefix(".")
    return (part, inside.partition(".")[0]) if part in ROOMS and inside else None


def room_floor(room: tuple[str, str]) -> int:
    return next(number for number, floor in enumerate(ROOMS[room[0]]) if room[1] in floor)


def test_every_room_has_its_place_in_the_picture():
    drawn = {(part, room) for part, floors in ROOMS.items() for floor in floors for room in floor}
    assert {room for name in MODULES if (room := room_of(name))} == drawn, (
        "draw them in ROOMS (and docs/architecture.md)"
    )


def test_rooms_import_those_below_them_only():
    wrong = []
    for name, path in MODULES.items():
        importer = room_of(name)
        for found in imports(name, path) if importer else ():
            imported = room_of(found.target)
            if not importer or not imported or importer[0] != imported[0] or importer == imported:
                continue
            if room_floor(importer) <= room_floor(imported):
                wrong.append(where(found))
    assert not wrong, "\n".join(wrong)


def table_rows(header: str) -> list[list[str]]:
    """The cells of the rows of a table in docs/architecture.md, by how its header begins."""
    page = (ROOT / "docs" / "architecture.md").read_text()
    rows = page.partition(f"\n| {header}")[2].partition("\n\n")[0].split("\n")[2:]
    assert rows, f"no table {header!r}"
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_contributing_names_the_tests_of_every_room_of_control():
    table = (ROOT / "tests/README.md").read_text().partition("| code | its tests |")[2].partition("\n\n")[0]
    for room in (room for floor in ROOMS["control"] for room in floor if (PACKAGE / "control" / room).is_dir()):
        assert f"`control/{room}`" in table
    named = {
        f"{folder}{name}{suffix}"
        for folder, names, suffix in re.findall(r"`(tests/[\w/]*)(?:\{([\w,]+)\})?([\w.]*)`", table)
        for name in names.split(",")
    }
    assert not [path for path in named if not (ROOT / path).exists()]
    assert {f"tests/control/{path.name}" for path in (ROOT / "tests" / "control").glob("test_*.py")} <= named


def test_the_page_draws_the_floors():
    drawn = {part.replace("/", ".") for _, parts, _ in table_rows("floor") for part in re.findall(r"`([\w/]+)`", parts)}
    assert drawn == {part for floor in FLOORS for part in floor}


@pytest.mark.parametrize("part", ROOMS)
def test_the_page_draws_the_rooms_and_their_modules(part):
    drawn = {
        room.strip("`"): set(re.findall(r"`(\w+)`", modules))
        for room, modules, _ in table_rows(f"room of `{part.replace('.', '/')}`")
    }
    assert list(drawn) == [room for floor in reversed(ROOMS[part]) for room in floor]
    for room, modules in drawn.items():
        assert modules == {name.rpartition(".")[2] for name in MODULES if name.startswith(f"tmuxctl.{part}.{room}.")}


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


def test_plugins_see_the_model_the_errors_and_what_handles_files_only():
    wrong = [
        where(found)
        for name, path in PLUGINS.items()
        for found in imports(name, path)
        if found.target.split(".")[0] in ("tmuxctl", "plugins")
        and part_of(found.target) not in PLUGINS_MAY_IMPORT
        # a plugin that is a package has rooms of its own
        and found.target.split(".")[:2] != name.split(".")[:2]
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


def with_packages(module: str) -> Iterator[str]:
    """A module and the packages that are loaded before it."""
    parts = module.split(".")
    return (".".join(parts[:count]) for count in range(1, len(parts) + 1))


def loaded_with(module: str) -> set[str]:
    """What importing a module loads: of the product all, of other modules those that the product names."""
    loaded: set[str] = set()
    waiting = [module]
    while waiting:
        for name in with_packages(waiting.pop()):
            if name not in loaded:
                loaded.add(name)
                if name in MODULES:
                    waiting += [found.target for found in imports(name, MODULES[name]) if found.at_load]
    return loaded


def later_imports(module: str) -> Iterator[Import]:
    """The imports inside a module's functions."""
    tree = parsed(MODULES[module])
    inside = {
        node.lineno
        for function in ast.walk(tree)
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef))
        for node in ast.walk(function)
        if isinstance(node, (ast.Import, ast.ImportFrom))
    }
    return (found for found in imports(module, MODULES[module]) if found.line in inside)


@pytest.mark.night
def test_an_import_inside_a_function_puts_off_loading_something():
    needless = []
    for module in MODULES:
        later = list(later_imports(module))
        loaded = loaded_with(module) if later else set()
        needless += [where(found) for found in later if found.target in loaded]
    assert not needless, "loaded with the module anyway; import at its top:\n" + "\n".join(needless)


def test_the_lists_name_what_there_is():
    assert set(HOT) <= {part for floor in FLOORS for part in floor}
    assert set(COLD) <= MODULES.keys()


class Use(NamedTuple):
    """A call in a function: which, where, and the call itself."""

    function: str
    name: str
    line: int
    node: ast.Call


@cache
def calls(module: str, path: Path) -> tuple[Use, ...]:
    def within(node: ast.AST, function: str) -> Iterator[Use]:
        for child in ast.iter_child_nodes(node):
            inner = function
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and function == module:
                inner = f"{module}.{child.name}"
            if isinstance(child, ast.Call):
                yield Use(function, ast.unparse(child.func), child.lineno, child)
            yield from within(child, inner)

    return tuple(within(parsed(path), module))


def unexpected(names: Callable[[Use], bool], allowed: Mapping[str, str]) -> list[str]:
    """Calls in functions that are not among the allowed ones, and allowed ones that have no such call."""
    found = [use for name, path in (MODULES | PLUGINS).items() for use in calls(name, path) if names(use)]
    places = {place for use in found for place in (use.function, use.function.rpartition(".")[0])}
    wrong = [
        f"{use.function}:{use.line} calls {use.name}"
        for use in found
        if not {use.function, use.function.rpartition(".")[0]} & allowed.keys()
    ]
    return wrong + [f"{place} is listed and does no such thing" for place in sorted(allowed.keys() - places)]


def opens(use: Use) -> bool:
    """Whether a call opens a file by a path, but for files of /proc that are named as such: they are the kernel's."""
    first = ast.unparse(use.node.args[0]) if use.node.args else ""
    if first.lstrip("f").startswith(("'/proc/", '"/proc/')) or first.startswith(("handle", "os.open(", "open_file(")):
        # the latter are descriptors, of a file that was opened by another call
        return False
    return use.name in ("open", "os.open", "io.open") or use.name.endswith((".read_text", ".read_bytes"))


@pytest.mark.night
def test_files_that_a_program_may_have_put_there_are_opened_in_one_way():
    wrong = unexpected(opens, OPENED_ELSEWHERE)
    assert not wrong, "use tmuxctl.untrusted, or list the function with its reason:\n" + "\n".join(wrong)


def test_json_is_parsed_within_bounds():
    wrong = unexpected(lambda use: use.name in ("json.load", "json.loads"), PARSED_ELSEWHERE)
    assert not wrong, "use tmuxctl.untrusted.parse_json, or list the function with its reason:\n" + "\n".join(wrong)


def endless(use: Use) -> bool:
    started = use.name in ("subprocess.Popen", "os.system", "os.popen")
    waited = use.name in ("subprocess.run", "subprocess.check_output", "subprocess.check_call", "subprocess.call")
    return started or (waited and all(keyword.arg != "timeout" for keyword in use.node.keywords))


def test_every_program_that_is_run_has_a_deadline():
    wrong = unexpected(endless, ENDLESS)
    assert not wrong, "give it a timeout, or list the function with its reason:\n" + "\n".join(wrong)


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts in a module that are no docstrings, each with its line."""
    tree = parsed(path)
    docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


@pytest.mark.night
def test_the_options_of_a_session_are_named_in_one_place():
    there = "tmuxctl.terminal.tmux.options"
    wrong = [
        f"{name}:{number} says {text.strip()[:40]!r}"
        for name, path in (MODULES | PLUGINS).items()
        for number, text in texts(path)
        if "@tmuxctl_" in text and name != there
    ]
    assert not wrong, f"use {there}:\n" + "\n".join(wrong)


@pytest.mark.night
def test_the_state_folder_is_named_in_one_place():
    """Scripts that run in a session's folder name their neighbours themselves."""
    names = {value for name, value in vars(layout).items() if name.isupper()}
    inside = re.compile(rf"/({'|'.join(map(re.escape, sorted(names)))})(/|$)")
    wrong = [
        f"{name}:{number} says {text!r}"
        for name, path in MODULES.items()
        for number, text in texts(path)
        if part_of(name) in ("control", "terminal") and name != layout.__name__ and "\n" not in text
        if inside.search(text) or ("." in text and text in names)
    ]
    assert not wrong, f"use {layout.__name__}:\n" + "\n".join(wrong)
