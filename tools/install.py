"""Put tmuxctl into a user's own folders, or take it out again: the one-file form, its manual pages and its completion."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tmuxctl.surfaces.cli.manual import man
from tools import dist

COMPLETION = {
    "bash": "share/bash-completion/completions/tmuxctl",
    "zsh": "share/zsh/site-functions/_tmuxctl",
    "fish": "share/fish/vendor_completions.d/tmuxctl.fish",
}
"""Where each shell looks for a command's completion, below the prefix."""

COMMAND = "bin/tmuxctl"
PAGES = "share/man/man1"


def main() -> int:
    """Install or remove; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("install", "uninstall"))
    parser.add_argument("--prefix", type=Path, default=Path.home() / ".local", help="default: %(default)s")
    options = parser.parse_args()
    command: Path = options.prefix / COMMAND
    # a link or a script of pip's or pipx's is theirs to replace
    if command.is_symlink() or (command.exists() and not zipfile.is_zipfile(command)):
        print(f"install: {command} was not put there by make install: remove it first", file=sys.stderr)
        return 1
    if options.action == "install":
        install(options.prefix)
        print(f"-- {command}: {subprocess.check_output([command, '--version'], text=True).strip()}")
    else:
        uninstall(options.prefix)
        print(
            f"-- {command}, its manual pages and its completion are gone; sessions, settings and profiles are as they were"
        )
    return 0


def install(prefix: Path) -> None:
    """Put everything below the prefix; what an earlier version left there goes."""
    with tempfile.TemporaryDirectory() as folder:
        made = make_files(Path(folder))
        uninstall(prefix)
        for name, path in made.items():
            target = prefix / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)


def make_files(folder: Path) -> Mapping[str, Path]:
    """What is installed, made in a folder: by its name below the prefix."""
    built = subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=dist.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if built.returncode:
        raise dist.Failure(built.stdout + built.stderr)
    [wheel] = folder.glob("*.whl")
    command = dist.one_file(folder / "tmuxctl", wheel)
    made = {COMMAND: command}
    man.write(folder / "man")
    made |= {f"{PAGES}/{page.name}": page for page in (folder / "man").iterdir()}
    for shell, name in COMPLETION.items():
        path = folder / f"completion.{shell}"
        path.write_bytes(subprocess.check_output([command, "completion", shell]))
        made[name] = path
    return made


def uninstall(prefix: Path) -> None:
    """Remove what `install` puts there."""
    for name in (COMMAND, *COMPLETION.values()):
        (prefix / name).unlink(missing_ok=True)
    for pattern in ("tmuxctl.1", "tmuxctl-*.1"):
        for page in (prefix / PAGES).glob(pattern):
            page.unlink()


if __name__ == "__main__":
    sys.exit(main())
