"""Prepare a release: the version and the changelog in the tree, and in dist/ its forms, their bill of materials and checksums.

Nothing is committed, tagged or published: what is left to do is printed.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from tools import dist

VERSION_FILE = Path("tmuxctl/__init__.py")
CHANGELOG = Path("CHANGELOG.md")
RECIPES = ("aur/PKGBUILD", "homebrew/tmuxctl.rb", "nix/package.nix")

NEXT = """\
-- {version} is prepared in dist/. What is left is yours to do:
   git diff                                          look it over
   git commit -am 'Release {version}' && git tag -s v{version}
   git push --follow-tags, and upload the files of dist/
   tests/upgrade/record.py                           keep what this release leaves behind"""


class Refused(Exception):
    """The tree is not one to make a release of."""


def main() -> int:
    """Prepare it; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version", help="the version to release, as 0.2.0")
    parser.add_argument(
        "--bom", required=True, metavar="PROGRAM", help="cyclonedx-py, which writes the bill of materials"
    )
    parser.add_argument("--url", default="@URL@", help="where the files of dist/ will be: filled into the recipes")
    parser.add_argument("--python", default="/usr/bin/python3", help="the Python the forms are tried with")
    options = parser.parse_args()
    try:
        if changed := _git("status", "--porcelain"):
            raise Refused(f"commit or put away first:\n{changed}")
        write_version(dist.ROOT, options.version, time.strftime("%Y-%m-%d"))
    except Refused as refused:
        print(f"release: {refused}", file=sys.stderr)
        return 1
    # a process of its own: this one has loaded the old version
    words = [sys.executable, "-m", "tools.dist", "--python", options.python]
    if subprocess.run(words, cwd=dist.ROOT, check=False).returncode:
        return 1
    folder = dist.ROOT / "dist"
    [wheel] = folder.glob("*.whl")
    write_bom(wheel, options.bom, folder / f"tmuxctl-{options.version}.cdx.json")
    (folder / "SHA256SUMS").write_text(checksums(folder))
    [sdist] = folder.glob("*.tar.gz")
    fill_recipes(
        folder / "packaging", options.version, options.url, {"sdist": sdist, "one-file": folder / "tmuxctl.pyz"}
    )
    print(NEXT.format(version=options.version))
    return 0


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=dist.ROOT, capture_output=True, text=True, check=True).stdout.strip()


def write_version(root: Path, version: str, date: str) -> None:
    """Put the version into the package and the changelog, whose *Unreleased* becomes its section."""
    source, changes = (root / VERSION_FILE).read_text(), (root / CHANGELOG).read_text()
    found = re.search(r'__version__ = "(.*)"', source)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version) or not found or _number(version) < _number(found[1]):
        raise Refused(f"{version} is no version behind {found[1] if found else 'none'}")
    if f"## [{version}]" in changes:
        raise Refused(f"{version} stands in {CHANGELOG} already")
    _, heading, rest = changes.partition("## [Unreleased]\n")
    if not heading or not rest.partition("\n## ")[0].strip():
        raise Refused(f"nothing stands under Unreleased in {CHANGELOG}")
    (root / VERSION_FILE).write_text(source.replace(found[0], f'__version__ = "{version}"'))
    (root / CHANGELOG).write_text(changes.replace(heading, f"{heading}\n## [{version}] - {date}\n", 1))


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def write_bom(wheel: Path, program: str, target: Path) -> None:
    """Write the bill of materials (CycloneDX, JSON) of what installing the wheel brings."""
    with tempfile.TemporaryDirectory() as folder:
        python = dist.installed(wheel, Path(folder) / "venv", sys.executable) / "bin" / "python"
        # the tools that came with the environment are no part of it
        subprocess.run([python, "-m", "pip", "uninstall", "-q", "-y", "setuptools", "pip"], check=True, cwd=folder)
        project = dist.ROOT / "pyproject.toml"
        words = [program, "environment", str(python), "--pyproject", str(project), "--output-reproducible"]
        subprocess.run([*words, "--output-format", "JSON", "--output-file", str(target)], check=True, cwd=folder)


def fill_recipes(folder: Path, version: str, url: str, forms: Mapping[str, Path]) -> None:
    """Write the recipes for other systems, with the version, the place and the checksums of the release filled in."""
    known = {"@VERSION@": version, "@URL@": url.rstrip("/")}
    known |= {f"@SHA256:{form}@": checksum(path) for form, path in forms.items()}
    for recipe in RECIPES:
        text = (dist.ROOT / "packaging" / recipe).read_text()
        for name, value in known.items():
            text = text.replace(name, value)
        (folder / recipe).parent.mkdir(parents=True, exist_ok=True)
        (folder / recipe).write_text(text)


def checksum(path: Path) -> str:
    """The SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def checksums(folder: Path) -> str:
    """The SHA-256 of each file, as sha256sum(1) writes and checks them."""
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    return "".join(f"{checksum(path)}  {path.name}\n" for path in files)


if __name__ == "__main__":
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(dist.last_change()))
    sys.exit(main())
