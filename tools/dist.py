"""Make the three forms of a release in dist/ and try each as a stranger would: wheel, sdist, one file.

Each is tried with the system's own Python from an empty folder with an empty HOME; a form that does not work, or a
one-file form above 1 MB, ends this with exit status 1.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib.metadata
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tokenize
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import cast

import tmuxctl

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1_400_000
VENDORED = ("click", "libtmux", "pyte", "pyyaml", "wcwidth")
"""psutil is left out: it is compiled, and tmuxctl reads /proc where it is missing. wcwidth is what pyte needs."""

UNUSED = re.compile(
    r"wcwidth/table_grapheme_overrides/_known_|libtmux/(?:test/|pytest_plugin)|click/(?:testing|_termui_impl|_winconsole)"
)
"""Files that nothing here loads: how other terminals draw some characters, progress bars and pagers, Windows, aids for tests."""

WITH_EXTRA = re.compile(r"tmuxctl/(?:gateway/|surfaces/(?:server/|web/|adapters/(?!__init__|niia)))")
"""Files of ours that do nothing without the extras `server` and `gateway`, which the one-file form cannot have."""

MAIN = ROOT / "tools" / "one_file_main.py"
"""What Python runs in the one-file form."""


class Failure(Exception):
    """A form of the release that does not do what it must."""


def main() -> int:
    """Build and try; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python to try with (default: %(default)s)")
    parser.add_argument("--only", choices=("wheel", "sdist", "one-file"), help="try only this form")
    options = parser.parse_args()
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(last_change()))
    built = build(ROOT / "dist")
    for path in built.values():
        print(f"-- {path.relative_to(ROOT)}: {path.stat().st_size:,} bytes", flush=True)
    try:
        if built["one-file"].stat().st_size > LIMIT:
            raise Failure(f"{built['one-file'].name} is larger than {LIMIT:,} bytes")
        for form, path in built.items():
            if options.only in (None, form):
                attempt(form, path, options.python)
    except Failure as failure:
        print(f"dist: {failure}", file=sys.stderr)
        return 1
    return 0


def last_change() -> int:
    """Seconds since 1970 of the last commit, or of 1980 (where zip's calendar begins) outside a repository."""
    asked = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(asked.stdout) if asked.returncode == 0 and asked.stdout.strip() else 315_532_800


def build(folder: Path) -> dict[str, Path]:
    """Make the three forms in this folder, emptied first; their paths by form. The wheel is made from the sdist."""
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist, "one-file": one_file(folder / "tmuxctl.pyz", wheel)}


def one_file(target: Path, wheel: Path) -> Path:
    """Make a zip that Python runs, of the wheel and the pure-Python part of what it needs, with every licence.

    The same input and SOURCE_DATE_EPOCH give the same bytes. The versions are those installed here, so those tested.
    """
    entries = dict(of_wheel(wheel))
    for name in VENDORED:
        entries.update(of_distribution(name))
    entries["__main__.py"] = main_of(entries)
    epoch = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
    date = time.gmtime(max(epoch, 315_532_800))[:6]
    with target.open("wb") as file:
        file.write(b"#!/usr/bin/env python3\n")
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in sorted(entries.items()):
                entry = zipfile.ZipInfo(name, date)
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    target.chmod(0o755)
    return target


def main_of(entries: Mapping[str, bytes]) -> bytes:
    """The file that Python runs. It names the others by a digest: code that was kept of them is that of no other version."""
    text = undocumented(without_field_texts(MAIN.read_bytes()))
    digest = hashlib.sha256(text)
    for name, data in sorted(entries.items()):
        digest.update(b"%d %s %d " % (len(name), name.encode(), len(data)) + data)
    return text.replace(b"@DIGEST@", digest.hexdigest()[:32].encode())


def of_wheel(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """Our own files, with their names in the one-file form."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if WITH_EXTRA.match(name):
                continue
            if name.startswith("tmuxctl/"):
                data = archive.read(name)
                yield name, without_field_texts(data) if name.endswith(".py") else data
            elif "/licenses/" in name:
                yield f"licenses/tmuxctl/{Path(name).name}", archive.read(name)


def without_field_texts(source: bytes) -> bytes:
    """Python source without comments and the texts below its fields, which no running program can read. All else stays on its
    line."""
    lines = source.split(b"\n")
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1].decode()[:column].rstrip().encode()
    for node in ast.walk(ast.parse(source)):
        for statement in getattr(node, "body", [])[1:] if isinstance(node, ast.Module | ast.ClassDef) else ():
            if isinstance(statement, ast.Expr) and isinstance(getattr(statement.value, "value", None), str):
                first, last = statement.lineno - 1, cast("int", statement.end_lineno)
                lines[first:last] = [b""] * (last - first)
    return b"\n".join(lines)


def of_distribution(name: str) -> Iterator[tuple[str, bytes]]:
    """The Python files and licences of an installed distribution, with their names in the one-file form."""
    distribution = importlib.metadata.distribution(name)
    licences = 0
    for file in distribution.files or ():
        if ".dist-info" in file.parts[0]:
            if file.name.startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS")):
                licences += 1
                yield f"licenses/{name}-{distribution.version}/{file.name}", file.read_binary()
        elif file.suffix == ".py" and ".." not in file.parts and not UNUSED.match(str(file)):
            yield str(file), undocumented(file.read_binary())
    if not licences:
        raise Failure(f"{name} {distribution.version} carries no licence file")


def undocumented(source: bytes) -> bytes:
    """Python source with empty docstrings: nothing here reads those of others. All else stays on its line, as in tracebacks."""
    lines = source.split(b"\n")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and ast.get_docstring(
            node
        ):
            text = cast("ast.Expr", node.body[0])
            first, last = text.lineno - 1, cast("int", text.end_lineno) - 1
            begin, end = lines[first][: text.col_offset], lines[last][text.end_col_offset :]
            lines[first : last + 1] = [begin + b'""' + end, *[b""] * (last - first)]
    return b"\n".join(lines)


def attempt(form: str, path: Path, python: str) -> None:
    """Use the form as a stranger would, or Failure. What it starts and makes is gone afterwards."""
    # a Unix socket's path holds 107 bytes: keep the folder's name short
    place = Path(tempfile.mkdtemp(prefix="tmuxctl-", dir="/tmp"))
    began = time.monotonic()
    try:
        for folder in ("home", "run", "empty"):
            (place / folder).mkdir(mode=0o700)
        if form == "one-file":
            command = [python, str(shutil.copy(path, place))]
        else:
            command = [str(installed(path, place / "venv", python) / "bin" / "tmuxctl")]
        drive(Stranger(command, place))
        print(f"-- {path.name}: works ({time.monotonic() - began:.0f} s)", flush=True)
    except Failure as failure:
        raise Failure(f"{path.name}: {failure}") from failure
    finally:
        shutil.rmtree(place, ignore_errors=True)


def installed(path: Path, venv: Path, python: str) -> Path:
    """A throw-away virtual environment with the package in it."""
    for command in (
        [python, "-m", "venv", str(venv)],
        [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-q", str(path)],
    ):
        done = subprocess.run(command, cwd=venv.parent, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Failure(f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}")
    return venv


class Stranger:
    """Somebody with an empty HOME, the system's own PATH and a tmux socket of their own."""

    def __init__(self, command: Sequence[str], place: Path) -> None:
        self.command = list(command)
        self.folder = place / "empty"
        self.socket = f"tmuxctl-dist-{os.getpid()}"
        self.environment = {
            "HOME": str(place / "home"),
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LC_ALL": "C.UTF-8",
            "TERM": "xterm-256color",
            "XDG_RUNTIME_DIR": str(place / "run"),
            "TMUX_TMPDIR": str(place / "run"),
            "TMUXCTL_SOCKET": self.socket,
        }

    def run(self, *arguments: str) -> str:
        """What the command prints, or Failure if it does not end well within 30 s."""
        return self._run([*self.command, *arguments])

    def leave(self) -> None:
        """End the tmux server, should one run."""
        subprocess.run(
            ["tmux", "-L", self.socket, "kill-server"], env=self.environment, capture_output=True, check=False
        )

    def _run(self, command: list[str]) -> str:
        try:
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=30, check=False
            )
        except subprocess.TimeoutExpired as late:
            raise Failure(f"{' '.join(command)} did not end in 30 s") from late
        if done.returncode:
            raise Failure(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout


def drive(stranger: Stranger) -> None:
    """Start a program, type a line, see it, end the program: or Failure."""
    version = stranger.run("--version")
    if tmuxctl.__version__ not in version:
        raise Failure(f"--version printed {version!r}")
    try:
        # a plugin, because plugins are found another way in each form
        stranger.run("new", "try", "--with", "timeout=1h", "--", "cat")
        stranger.run("send", "try", "one line; as it is")
        stranger.run("wait", "try", "--since", "screen", "--text", "one line; as it is", "--timeout", "20s")
        screen = stranger.run("screen", "try")
        if "one line; as it is" not in screen:
            raise Failure(f"the line is not on the screen:\n{screen}")
        stranger.run("kill", "try")
        if "try" in stranger.run("ls", "-q"):
            raise Failure("the session is still there after kill")
    finally:
        stranger.leave()


if __name__ == "__main__":
    sys.exit(main())
