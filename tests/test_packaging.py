"""What is shipped: the right files in each form, few dependencies, and nothing that belongs to one machine."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import marshal
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import tmuxctl

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
HOUSE = ("pyproject.toml", "Makefile", "README.md", "CONTRIBUTING.md", ".ci/run", "tools/setup.sh", "tools/dist.py")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    pytest.importorskip("hatchling", reason="hatchling is not installed: make dev")
    folder = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    [path] = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def dist():
    spec = importlib.util.spec_from_file_location("dist_tool", ROOT / "tools" / "dist.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def one_file(dist, wheel, tmp_path_factory):
    return dist.one_file(tmp_path_factory.mktemp("one") / "tmuxctl.pyz", wheel)


def shipped(folder):
    return {f"tmuxctl/{path.relative_to(ROOT)}" for path in (ROOT / folder).iterdir() if path.is_file()}


def name_of(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9_.-]", requirement, maxsplit=1)[0]


def test_the_base_needs_five_distributions():
    names = list(map(name_of, PROJECT["project"]["dependencies"]))
    assert names == ["click", "libtmux", "psutil", "pyte", "pyyaml"]


def base():
    """Our dependencies and theirs, as far as they are installed without an extra."""
    names = list(map(name_of, PROJECT["project"]["dependencies"]))
    found: dict[str, importlib.metadata.Distribution] = {}
    while names:
        distribution = importlib.metadata.distribution(names.pop())
        if found.setdefault(distribution.name.lower(), distribution) is distribution:
            names += [name_of(one) for one in distribution.requires or () if ";" not in one]
    return found


def test_the_base_is_small():
    files = [file for one in base().values() for file in one.files or () if file.suffix != ".pyc"]
    assert len(base()) <= 6, sorted(base())
    assert sum(file.locate().stat().st_size for file in files if file.locate().is_file()) <= 10_000_000


def test_the_names_are_the_documented_ones():
    assert PROJECT["project"]["name"] == "tmux-control-plane"
    assert PROJECT["project"]["scripts"] == {"tmuxctl": "tmuxctl.surfaces.cli:main"}


def test_the_wheel_holds_plugins_and_profiles_inside_the_package(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert shipped("plugins") | shipped("profiles") <= names
    outside = {name.split("/")[0] for name in names} - {"tmuxctl"}
    assert all(name.endswith((".dist-info", ".data")) for name in outside)
    assert not [name for name in names if "__pycache__" in name]


@pytest.mark.night
def test_the_wheel_and_the_sdist_hold_the_page(wheel, tmp_path):
    """What `make web-assets` brings, too, where it was run."""
    page = ROOT / "tmuxctl" / "surfaces" / "web"
    files = {
        str(path.relative_to(ROOT)) for path in page.rglob("*") if path.is_file() and "__pycache__" not in str(path)
    }
    wanted = {name for name in files if not name.endswith((".gitignore", ".pyc"))}
    assert "tmuxctl/surfaces/web/vendor.sha256" in wanted
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    [path] = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        assert wanted <= {name.partition("/")[2] for name in archive.getnames()}


@pytest.mark.night
def test_the_one_file_has_nothing_of_the_page(one_file):
    assert not [name for name in zipfile.ZipFile(one_file).namelist() if "surfaces/web" in name or "xterm" in name]


USER_PROGRAM = """
from tmuxctl.control import Control

with Control() as control:
    answer = control.ask("db", b"select 1;", timeout=10.0)
    reveal_type(answer.answer)
    reveal_type(answer.state)
    control.ask("db", b"select 1;", timout=10.0)
"""


@pytest.mark.night
def test_type_checkers_see_the_types_of_an_installed_wheel(wheel, tmp_path):
    pytest.importorskip("mypy", reason="mypy is not installed: make dev")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "venv")], check=True)
    [packages] = tmp_path.glob("venv/lib/python*/site-packages")
    zipfile.ZipFile(wheel).extractall(packages)
    (tmp_path / "program.py").write_text(USER_PROGRAM)
    options = ["--strict", "--cache-dir", "cache", "--python-executable", "venv/bin/python"]
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *options, "program.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    told = [line.partition(" ")[2] for line in checked.stdout.splitlines() if line.startswith("program.py")]
    assert told == [
        'note: Revealed type is "str"',
        'note: Revealed type is "tmuxctl.vocabulary.State"',
        'error: Unexpected keyword argument "timout" for "ask" of "Control"; did you mean "timeout"?  [call-arg]',
        'note: "ask" defined in "tmuxctl.control.service"',
    ], checked.stdout + checked.stderr


def test_the_one_file_is_small_and_pure(one_file, dist):
    names = zipfile.ZipFile(one_file).namelist()
    assert one_file.stat().st_size < dist.LIMIT
    assert not [
        name for name in names if not name.endswith((".py", ".yaml", ".md", ".typed")) and "licenses/" not in name
    ]
    assert shipped("plugins") | shipped("profiles") <= set(names)


def test_the_one_file_carries_every_licence(one_file, dist):
    folders = {name.split("/")[1] for name in zipfile.ZipFile(one_file).namelist() if name.startswith("licenses/")}
    assert {name.split("-")[0] for name in folders} == {"tmuxctl", *dist.VENDORED}


def test_the_one_file_lacks_only_texts_that_no_program_can_read(dist):
    source = (
        b'"""What it is."""\n\nclass A:\n    """A value."""\n\n    one: int = 1\n    """The first\n    of two."""\n'
        b'    two = "# 2"  # two\n    # a comment\n\nB = 3\n"""A third."""\n'
    )
    assert dist.without_field_texts(source) == (
        b'"""What it is."""\n\nclass A:\n    """A value."""\n\n    one: int = 1\n\n\n    two = "# 2"\n\n\nB = 3\n\n'
    )


def test_what_others_wrote_is_the_same_code_without_its_docstrings(dist):
    source = (
        b'"""What a module says.\n\nMore."""\nclass A:\n    """One."""; B = "\xc3\xbc"\n'
        b'    def f(self):\n        """Two,\n        three."""\n'
    )
    assert dist.undocumented(source) == b'""\n\n\nclass A:\n    ""; B = "\xc3\xbc"\n    def f(self):\n        ""\n\n'


@pytest.mark.night
def test_the_same_source_gives_the_same_one_file(one_file, dist, wheel, tmp_path):
    assert dist.one_file(tmp_path / "again.pyz", wheel).read_bytes() == one_file.read_bytes()


def test_the_one_file_runs_with_python_alone(one_file, tmp_path):
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    asked = subprocess.run(
        [sys.executable, "-S", "-E", str(one_file), "--version"],
        cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert tmuxctl.__version__ in asked.stdout, asked.stderr


class Home:
    """A home folder, and the one-file form run with it."""

    def __init__(self, one_file, folder):
        self.one_file, self.folder = one_file, folder
        folder.mkdir(mode=0o700)

    def version(self):
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(self.folder)}
        asked = subprocess.run(
            [sys.executable, str(self.one_file), "--version"], env=environment, capture_output=True, text=True, check=False
        )  # fmt: skip
        return asked.stdout or asked.stderr

    def kept(self):
        [found] = (self.folder / ".cache" / "tmuxctl").iterdir()
        return found

    def spoil(self):
        """Put other code in the place of what was kept of a module that every command loads."""
        path = self.kept()
        code = compile("run = lambda: print('kept') or 0\nleave = int", "cli", "exec")
        path.write_bytes(
            marshal.dumps({**marshal.loads(path.read_bytes()), "tmuxctl.surfaces.cli": marshal.dumps(code)})
        )
        return path


@pytest.fixture
def home(one_file, tmp_path):
    home = Home(one_file, tmp_path / "home")
    assert tmuxctl.__version__ in home.version()
    return home


def test_the_one_file_keeps_what_it_compiled_for_its_user_alone(home):
    before = home.kept().stat()
    assert before.st_mode & 0o777 == 0o600
    assert home.kept().parent.stat().st_mode & 0o777 == 0o700
    assert tmuxctl.__version__ in home.version()
    after = home.kept().stat()
    assert (after.st_ino, after.st_mtime_ns, after.st_size) == (before.st_ino, before.st_mtime_ns, before.st_size)
    home.spoil()
    assert home.version() == "kept\n"


@pytest.mark.parametrize("mode", [0o770, 0o707])
@pytest.mark.parametrize("at", [".cache/tmuxctl", ".cache", ".", "the file"])
def test_the_one_file_runs_no_code_that_others_could_have_put_there(home, mode, at):
    path = home.spoil()
    (path if at == "the file" else home.folder / at).chmod(mode)
    assert tmuxctl.__version__ in home.version()


def test_the_one_file_runs_no_code_that_another_user_kept(home):
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    path = home.spoil()
    os.chown(path, 4711, 4711)
    assert tmuxctl.__version__ in home.version()


def test_the_one_file_follows_no_link_to_what_was_kept(home, tmp_path):
    path = home.spoil()
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert tmuxctl.__version__ in home.version()


@pytest.mark.parametrize("length", [0, 1, 1000])
def test_the_one_file_runs_when_what_was_kept_is_damaged(home, length):
    path = home.kept()
    path.write_bytes(path.read_bytes()[:length])
    assert tmuxctl.__version__ in home.version()
    assert tmuxctl.__version__ in home.version()


def test_the_one_file_runs_when_the_code_of_a_module_is_damaged(home):
    path = home.kept()
    path.write_bytes(marshal.dumps(dict.fromkeys(marshal.loads(path.read_bytes()), b"c")))
    assert tmuxctl.__version__ in home.version()


@pytest.mark.night
def test_the_one_file_takes_no_code_of_another_version(home, dist, wheel, tmp_path, monkeypatch):
    home.spoil()
    other = tmp_path / "other.whl"
    shutil.copy(wheel, other)
    with zipfile.ZipFile(other, "a") as archive:
        archive.writestr("tmuxctl/new.py", "")
    home.one_file = dist.one_file(tmp_path / "other.pyz", other)
    assert tmuxctl.__version__ in home.version()


def test_the_one_file_leaves_a_folder_that_is_not_its_users_as_it_is(one_file, tmp_path):
    home = Home(one_file, tmp_path / "home")
    home.folder.chmod(0o777)
    assert tmuxctl.__version__ in home.version()
    assert not list(home.folder.iterdir())


def test_the_one_file_removes_what_it_kept_long_ago(home):
    folder = home.kept().parent
    home.kept().unlink()
    for name in ("one-file-old", "new-old", "other"):
        (folder / name).write_text("")
        os.utime(folder / name, (0, 0))
    home.version()
    assert {one.name[:9] for one in folder.iterdir()} == {"one-file-", "other"}
    assert not (folder / "one-file-old").exists()


def test_python_m_is_the_command():
    asked = subprocess.run([sys.executable, "-m", "tmuxctl", "--version"], capture_output=True, text=True, check=False)
    assert tmuxctl.__version__ in asked.stdout, asked.stderr


@pytest.mark.parametrize("name", HOUSE)
def test_no_file_of_the_house_names_a_host_or_somebodys_folder(name):
    text = (ROOT / name).read_text()
    assert not re.findall(r"https?://\S+|/home/\w+|/root\b|/Users/\w+", text)


def test_the_readme_says_the_two_commands():
    readme = (ROOT / "README.md").read_text()
    assert "make hero" in readme
    assert "make test" in readme


def test_the_readme_stays_short():
    """As `wc -w` counts. What is more belongs on a page of docs/."""
    assert len((ROOT / "README.md").read_text().split()) <= 1500
