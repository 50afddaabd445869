"""The code of modules that commands keep in one file: what is run is always what the sources say."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = """
import atexit, sys
from tmuxctl.surfaces.cli import main
kept = lambda name: type(sys.modules[name].__spec__.loader).__name__ == "_KeptLoader"
atexit.register(lambda: print(*(name for name in sys.modules if name.startswith(("tmuxctl.", "click.")) and kept(name))))
main()
"""


class Copy:
    """A copy of tmuxctl whose sources may be changed, and its command."""

    def __init__(self, folder: Path) -> None:
        self.package = folder / "tmuxctl"
        shutil.copytree(ROOT / "tmuxctl", self.package, ignore=shutil.ignore_patterns("__pycache__"))
        self.environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(folder)}

    def run(self, **environment: str) -> list[str]:
        """Print the version; what was printed, and then the modules whose code was kept."""
        done = subprocess.run(
            [sys.executable, "-c", RUN, "--version"],
            env={**self.environment, **environment},
            capture_output=True,
            text=True,
            check=True,
            cwd="/",
        )
        assert not done.stderr
        version, modules = done.stdout.splitlines()
        return [version, *modules.split()]

    def file(self) -> Path:
        [path] = self.package.glob("surfaces/cli/__pycache__/*.modules")
        return path


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path)


def test_the_second_command_loads_what_the_first_one_kept(copy: Copy) -> None:
    version, *first = copy.run()
    before = copy.file().stat()
    assert not first
    again, *second = copy.run()
    assert again == version
    assert {"tmuxctl.surfaces.cli.app", "tmuxctl.control.service", "tmuxctl.errors", "click.core"} <= set(second)
    assert copy.file().stat().st_mtime_ns == before.st_mtime_ns, "it is written once"


@pytest.mark.night
def test_a_changed_module_is_loaded_as_it_is_now(copy: Copy) -> None:
    assert copy.run()[0].endswith("0.1.0")
    options = copy.package / "surfaces/cli/commands/options.py"
    before = options.stat()
    options.write_text(options.read_text().replace("tmuxctl {__version__}", "tmuxCTL {__version__}"))
    # as an installer does that sets the times of what it unpacks; Python's own file of it is gone with the old version
    os.utime(options, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert options.stat().st_size == before.st_size
    for path in options.parent.glob("__pycache__/options.*"):
        path.unlink()
    version, *modules = copy.run()
    assert version == "tmuxCTL 0.1.0"
    assert "tmuxctl.surfaces.cli.commands.options" in modules, "loaded by the finder, from its source"
    assert copy.run() == [version, *modules]


@pytest.mark.night
def test_a_copied_tree_runs_its_own_modules(copy: Copy, tmp_path: Path) -> None:
    copy.run()
    other = tmp_path / "other"
    shutil.copytree(copy.package, other / "tmuxctl")
    options = other / "tmuxctl/surfaces/cli/commands/options.py"
    options.write_text(options.read_text().replace("tmuxctl {__version__}", "other {__version__}"))
    assert copy.run(PYTHONPATH=str(other))[0] == "other 0.1.0"
    assert copy.run()[0] == "tmuxctl 0.1.0"


@pytest.mark.parametrize("part", [0, 4, 100, 0.5, 0.999])
def test_a_damaged_file_counts_as_none_and_is_made_again(copy: Copy, part: float) -> None:
    _, *modules = copy.run(), *copy.run()
    whole = copy.file().read_bytes()
    copy.file().write_bytes(whole[: int(part if part > 1 else part * len(whole))])
    assert copy.run()[1:] == []
    assert set(copy.run()[1:]) == set(modules[1:])


def test_damaged_code_is_compiled_again(copy: Copy) -> None:
    copy.run()
    whole = copy.file().read_bytes()
    copy.file().write_bytes(whole[: len(whole) // 2] + bytes(len(whole) - len(whole) // 2))
    assert copy.run()[0] == "tmuxctl 0.1.0"
    assert bytes(1000) not in copy.file().read_bytes()


def test_nothing_is_kept_where_python_is_to_keep_nothing(copy: Copy) -> None:
    copy.run()
    copy.file().unlink()
    assert copy.run(PYTHONDONTWRITEBYTECODE="1")[1:] == []
    assert not list(copy.package.glob("surfaces/cli/__pycache__/*.modules*"))


def test_a_file_that_cannot_be_written_changes_nothing(copy: Copy) -> None:
    command = 'ulimit -f 8; exec "$@"'
    words = ["sh", "-c", command, "sh", sys.executable, "-m", "tmuxctl", "--version"]
    done = subprocess.run(words, env=copy.environment, capture_output=True, text=True, check=False, cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, "tmuxctl 0.1.0\n", "")
    assert not list(copy.package.glob("surfaces/cli/__pycache__/*.modules*"))


def test_a_module_that_is_kept_looks_as_any_other(copy: Copy) -> None:
    copy.run()
    told = (
        "import sys, inspect; from tmuxctl.surfaces.cli import kept_code; sys.argv[1] == 'kept' and kept_code.install();"
        + (
            "import tmuxctl.control, tmuxctl.errors as e; c = tmuxctl.control;"
            "print(e.__file__, e.__cached__, e.__package__, c.__path__, c.__file__, inspect.getsource(e.Usage),"
            " e.Usage.__init__.__code__.co_filename)"
        )
    )
    command = [sys.executable, "-c", told]
    kept, plain = (
        subprocess.run([*command, how], env=copy.environment, capture_output=True, check=True).stdout
        for how in ("kept", "plain")
    )
    assert kept == plain
