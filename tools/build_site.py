"""Builds the site from the pages of this repository, in build/site: `python -m tools.build_site`.

GitHub shows the pages where they stand, so they are written for GitHub. Here they are brought to where the navigation of
docs/site.toml has them: links are rewritten, comments left out, and lists indented as Python-Markdown wants them. A file that
a page links to and that is no page gets one. Then zensical builds the site, and every link of the result is followed.
"""

from __future__ import annotations

import html.parser
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from tools import links

ROOT = links.ROOT
CONFIG, BUILD = ROOT / "docs" / "site.toml", ROOT / "build"

PLACES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "reporting.md",
    "examples/README.md": "examples.md",
    "docs/adr": "adr/index.md",
}
"""Where pages outside docs/ stand in the site; all of docs/ stands as it is there."""

LANGUAGES = {".py": "python", ".sh": "sh", ".toml": "toml", ".yaml": "yaml"}
ITEM = re.compile(r"(?P<indent> *)(?P<marker>[-*+]|\d{1,9}\.) +(?=\S)")


def main() -> int:
    """Build; the exit status."""
    source, built, config = BUILD / "site-source", BUILD / "site", BUILD / "zensical.toml"
    for old in (source, built):
        shutil.rmtree(old, ignore_errors=True)
    write_source(source)
    shutil.copyfile(CONFIG, config)
    words = (sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", str(config))
    status = subprocess.run(words, cwd=BUILD, check=False).returncode
    wrong = list(wrong_links(built)) if status == 0 else []
    for one in wrong:
        print(f"site: {one}", file=sys.stderr)
    if status == 0 and not wrong:
        pages = len(list(built.rglob("*.html")))
        # a browser loads the index of the search from a server only
        print(
            f"-- {pages} pages; to read and search them: python3 -m http.server --directory {built.relative_to(ROOT)}"
        )
    return 1 if status or wrong else 0


def write_source(folder: Path) -> None:
    """Write what zensical builds from: the pages, and a page for each file that one of them links to."""
    todo = ["README.md", *(name for name in PLACES if name != "README.md")]
    todo += [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*")) if path.is_file()]
    for name in todo:
        target = folder / place(name)
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).suffix in (".md", "") or target.suffix == ".md":
            target.write_text(page(name), encoding="utf-8")
            todo += [one for one in linked(name) if one not in todo]
        elif name != "docs/site.toml":
            shutil.copyfile(ROOT / name, target)


def place(name: str) -> str:
    """Where a file or folder of the repository stands in the site."""
    if name in PLACES:
        return PLACES[name]
    if name.startswith("docs/"):
        return name.removeprefix("docs/")
    return f"files/{name}" if name.endswith(".md") else f"files/{name}.md"


def page(name: str) -> str:
    """The page of a file or folder."""
    path = ROOT / name
    if path.suffix == ".md":
        return convert(path.read_text(encoding="utf-8"), name)
    if path.is_dir() and name in PLACES:
        return f"# Decisions\n\n{''.join(_entry(one) for one in sorted(path.glob('*.md')))}"
    files = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    shown = [f"`{one.relative_to(ROOT)}`\n\n{_code(one)}" for one in files if "__pycache__" not in one.parts]
    return "\n".join(["---\nsearch:\n  exclude: true\n---\n", f"# {path.name}\n", *shown])


def _entry(path: Path) -> str:
    title = path.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
    return f"- [{title}]({path.name})\n"


def _code(path: Path) -> str:
    return f"````{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text(encoding='utf-8').rstrip()}\n````\n"


def linked(name: str) -> Iterator[str]:
    """The files and folders outside docs/ that a page links to."""
    if not name.endswith(".md"):
        return
    for link in links.links((ROOT / name).read_text(encoding="utf-8")):
        target = _repository_path(name, link.target)
        if target and not target.startswith("docs/") and place(target) not in PLACES.values():
            yield target


def _repository_path(name: str, target: str) -> str:
    path = unquote(target.partition("#")[0])
    found = (ROOT / name).parent.joinpath(path).resolve() if path else ROOT / name
    if found.is_dir() and (found / "README.md").exists():
        found /= "README.md"
    return found.relative_to(ROOT).as_posix()


def convert(text: str, name: str) -> str:
    """A page as Python-Markdown wants it, for its place in the site."""
    margins = [0]
    converted: list[str] = []
    before = "prose"
    for kind, line in links.classify(text):
        begins_block, before = kind == "code" and before != "code", kind
        if kind == "comment":
            continue
        if line.strip() and (kind == "prose" or begins_block):
            while len(line) - len(line.lstrip()) < margins[-1]:
                margins.pop()
        if kind == "prose":
            line = _with_links_of_the_site(line, name)
            if line.startswith("|"):
                # in code a `|` parts no cells here, and a backslash would be shown
                line = re.sub(r"`[^`]*`", lambda code: code[0].replace("\\|", "|"), line)
        converted.append(_indented(line, margins))
        if kind == "prose" and (item := ITEM.match(line)):
            margins.append(item.end())
    return "\n".join(converted)


def _with_links_of_the_site(line: str, name: str) -> str:
    for link in reversed(list(links.links_of_line(line))):
        path, mark, heading = link["target"].partition("#")
        if path:
            there = os.path.relpath(place(_repository_path(name, path)), PurePosixPath(place(name)).parent)
            line = f"{line[: link.start('target')]}{there}{mark}{heading}{line[link.end('target') :]}"
    return line


def _indented(line: str, margins: list[int]) -> str:
    """The line with four spaces for each list it stands in; `margins` is where the text of each open list stands."""
    indent = len(line) - len(line.lstrip())
    return "    " * (len(margins) - 1) + line[min(indent, margins[-1]) :] if line.strip() else ""


class _Page(html.parser.HTMLParser):
    """What a built page has: the ids in it, what it links to, and what the browser loads for it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.linked: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value for name, value in attrs if value}
        self.ids |= {found[name] for name in ("id", "name") if name in found}
        if "src" in found:
            self.loaded.append(found["src"])
        if "href" in found:
            (self.linked if tag == "a" else self.loaded).append(found["href"])


def wrong_links(folder: Path) -> Iterator[str]:
    """Links of the built pages that lead nowhere, and whatever a browser would load from another host."""
    built = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.html"))}
    for path, found in built.items():
        # the page for what is not found is shown at any address, so its own links begin at the root
        base = folder if path.name == "404.html" else path.parent
        for target in found.linked + found.loaded:
            address = urlsplit(target)
            if address.scheme or address.netloc:
                if target in found.loaded and address.scheme != "data":
                    yield f"{path.relative_to(folder)}: loads {target}"
                continue
            there = (base / unquote(address.path).lstrip("/")).resolve() if address.path else path
            there = there / "index.html" if there.is_dir() else there
            if not there.exists():
                yield f"{path.relative_to(folder)}: {target} is not there"
            elif there in built and address.fragment and unquote(address.fragment) not in built[there].ids:
                yield f"{path.relative_to(folder)}: {target} names no heading"


if __name__ == "__main__":
    sys.exit(main())
