"""The skill: pages that teach agent programs to use this command, printed, or put where a program looks for skills.

The form is that of https://agentskills.io: a folder with `SKILL.md`, and further pages that are read on demand.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from tmuxctl.errors import Denied, Failed, NotFound, Usage
from tmuxctl.operations import set_up
from tmuxctl.ownership import refuse_unsafe
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations
from tmuxctl.surfaces.cli.editing.replacing import replace_text
from tmuxctl.surfaces.cli.printing.output import note, tell
from tmuxctl.transport.local import explain_write_errors
from tmuxctl.untrusted import parse_record, read_file, to_record

if TYPE_CHECKING:
    from tmuxctl.results import SkillChanged, SkillFile, SkillFolder, SkillPages, SkillText

NAME = "tmuxctl"
"""The name of the skill, which is that of its folder."""

PAGES = ("debugger", "repl", "database", "ssh", "installer", "git", "agents")
FILES: Mapping[str, str] = {NAME: "SKILL.md"} | {page: f"references/{page}.md" for page in PAGES}
"""The file of each page, in the folder of the skill."""

INSTALLED = ".tmuxctl.json"
"""The file beside an installed skill with a digest of each page, by which pages that were changed are told apart."""

PAGE_NAME = re.compile(r"SKILL\.md|references/[a-z]{1,30}\.md")
"""The files that a skill of ours may have, in any release."""

SIZE_LIMIT = 1 << 20
"""Bytes of an installed page that are read."""


class SkillHome(NamedTuple):
    """Where a program looks for skills: in `skills` of the folder that `variable` names, of `folder` by default, and in
    `skills` of a project's `project`. `below` is what stands between the variable's folder and `skills`."""

    variable: str
    folder: str
    below: str
    project: str


AGENTS = SkillHome("", "~", ".agents", ".agents")

CLIENTS: Mapping[str, SkillHome] = {
    "claude": SkillHome("CLAUDE_CONFIG_DIR", "~/.claude", "", ".claude"),
    "codex": AGENTS,
    # it reads .gemini/skills too, and warns of a skill that is in both
    "gemini": AGENTS._replace(variable="GEMINI_CLI_HOME"),
}
"""What the documentation of each says, November 2026; tools/agents tries it."""

ClientOption = Annotated[
    Literal["claude", "codex", "gemini", "json"],
    "the program; codex and gemini read the same folder; json: print the files for another program",
]
ProjectOption = Annotated[bool, "the skills of the project in this folder, not those of the user"]
DryRunOption = Annotated[bool, "print what would change, and change nothing"]
YesOption = Annotated[bool, "do not ask before files are changed"]


class SkillOperations(CommandLineOperations):
    """Operations of the skill."""

    @set_up(right="read", examples=("skill list",))
    def skill_list(self) -> SkillPages:
        """List the pages of the skill, which teaches agent programs to use tmuxctl."""
        from tmuxctl.results import SkillPage, SkillPages

        texts = {page: _read_shipped(file) for page, file in FILES.items()}
        return SkillPages(
            tuple(SkillPage(page, _find_title(text), FILES[page], len(text)) for page, text in texts.items())
        )

    @set_up(right="read", examples=("skill show", "skill show git"))
    def skill_show(self, page: Annotated[str, "the page; default: tmuxctl, the first one"] = NAME) -> SkillText:
        """Print a page of the skill, as Markdown."""
        from tmuxctl.results import SkillText

        if page not in FILES:
            raise NotFound(f"no page {ascii(page[:40])}; there are: {', '.join(FILES)}", reason="no_page")
        return SkillText(page, _read_shipped(FILES[page]))

    @set_up(
        right="write",
        idempotent=True,
        examples=("skill install --client claude --dry-run", "skill install --client codex --project --yes"),
    )
    def skill_install(
        self,
        *,
        client: ClientOption,
        project: ProjectOption = False,
        dry_run: DryRunOption = False,
        yes: YesOption = False,
    ) -> SkillChanged | SkillFolder:
        """Put the skill where an agent program looks for skills, or bring an installed one up to date.

        The program then knows when to use tmuxctl, and reads the pages when it does. Of a page that you changed a
        copy is kept beside it (*.bak). On a terminal the files are shown, and only written if you say so.
        """
        from tmuxctl.results import SkillFolder

        wanted = {file: _read_shipped(file) for file in FILES.values()}
        if client == "json":
            return SkillFolder(NAME, wanted)
        return self._change(client, project, wanted, ask=not yes, dry_run=dry_run)

    @set_up(right="write", idempotent=True, examples=("skill uninstall --client claude",))
    def skill_uninstall(
        self,
        *,
        client: Annotated[Literal["claude", "codex", "gemini"], "the program"],
        project: ProjectOption = False,
        dry_run: DryRunOption = False,
        yes: YesOption = False,
    ) -> SkillChanged:
        """Remove the skill from where an agent program looks for skills.

        A page that you changed is kept (*.bak), and so is what is not ours.
        """
        return self._change(client, project, {}, ask=not yes, dry_run=dry_run)

    def _change(
        self, client: str, project: bool, wanted: Mapping[str, str], *, ask: bool, dry_run: bool
    ) -> SkillChanged:
        """Make the installed skill these files, if that is no dry run and a person at a terminal agrees."""
        import shutil

        from tmuxctl.results import SkillChanged

        folder = _find_folder(CLIENTS[client], project)
        changes = tuple(_list_changes(folder, wanted))
        if dry_run or not changes:
            return SkillChanged(client, folder, changes, dry_run)
        if ask and sys.stdin is not None and sys.stdin.isatty():
            self._ask(changes)
        with explain_write_errors(folder):
            done = tuple(_apply(folder, one, wanted) for one in changes)
            _finish(folder, wanted)
        if wanted and shutil.which(NAME) is None:
            note("tmuxctl is not in your PATH: until it is, no program can use the skill", self.options)
        return SkillChanged(client, folder, done)

    def _ask(self, changes: tuple[SkillFile, ...]) -> None:
        """Failed `declined` if the person at the terminal does not agree, Usage `no_input` if nobody may be asked."""
        if not self.options.prompt:
            raise Usage("--no-input forbids asking before files are changed", reason="no_input", hint="give --yes")
        tell("".join(f"{one.change} {one.file}\n" for one in changes) + "Do it? [y/N]")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            raise Failed("nothing was changed", reason="declined", hint="to do it without being asked: --yes")


def _read_shipped(file: str) -> str:
    """A file of the skill as it was installed with tmuxctl, or is in the one-file form."""
    from pkgutil import get_data

    data = get_data("tmuxctl", f"skill/{file}")
    assert data is not None
    return data.decode()


def _find_title(text: str) -> str:
    found = re.search("^# (.+)", text, re.MULTILINE)
    return found[1] if found else ""


def _find_folder(home: SkillHome, project: bool) -> str:
    """The absolute path of the skill's folder, where its links end. Denied `unsafe_file` if a project's leads out of it, as
    what a project contains was not necessarily made by its user, or if others can change the user's own."""
    if project:
        root = os.path.realpath(os.getcwd())
        path = os.path.join(root, home.project, "skills", NAME)
        folder = os.path.realpath(path)
        if os.path.commonpath([root, folder]) != root:
            hint = f"it leads to {folder}: remove the link"
            raise Denied(f"a link leads from {path} out of the project", reason="unsafe_file", hint=hint)
        return folder
    base = (home.variable and os.environ.get(home.variable)) or os.path.expanduser(home.folder)
    folder = os.path.realpath(os.path.join(base, home.below, "skills", NAME))
    refuse_unsafe(folder)
    return folder


def _list_changes(folder: str, wanted: Mapping[str, str]) -> Iterator[SkillFile]:
    """What has to be done so that the folder has these files of ours, and no others. Nothing is done here."""
    from tmuxctl.results import SkillFile

    installed = _read_digests(folder)
    for file in dict.fromkeys((*FILES.values(), *installed)):
        found, new = _read_installed(folder, file), wanted.get(file)
        if found == (None if new is None else new.encode()):
            continue
        changed = found is not None and _digest(found) != installed.get(file)
        backup = _backup_path(os.path.join(folder, file)) if changed else None
        word = "remove" if new is None else "write" if found is None else "update"
        yield SkillFile(os.path.join(folder, file), word, backup)


def _read_digests(folder: str) -> dict[str, str]:
    """The digest of each page that was installed there; empty if that is not known."""
    try:
        record = parse_record(_read_installed(folder, INSTALLED) or b"{}", INSTALLED)
    except ValueError:
        return {}
    pages = record.get("pages")
    found = pages.items() if isinstance(pages, dict) else ()
    # what lies in a project may name any file
    return {file: digest for file, digest in found if PAGE_NAME.fullmatch(file) and isinstance(digest, str)}


def _read_installed(folder: str, file: str) -> bytes | None:
    """The content of an installed file, None if there is none. Denied `unsafe_file` for a link, or what is no file."""
    path = os.path.join(folder, file)
    if os.path.realpath(path) != path:
        raise Denied(f"{path} is a link, or lies behind one", reason="unsafe_file", hint="remove the link")
    try:
        return read_file(path, SIZE_LIMIT)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Denied(f"{path} cannot be read: {error.strerror}", reason="unsafe_file", hint="move it away") from None


def _digest(data: bytes) -> str:
    from hashlib import sha256

    return sha256(data).hexdigest()


def _backup_path(path: str) -> str:
    """A name beside the file that is free now."""
    copy = f"{path}.{time.strftime('%Y%m%d-%H%M%S')}.bak"
    while os.path.lexists(copy):
        copy = f"{copy.removesuffix('.bak')}-1.bak"
    return copy


def _apply(folder: str, change: SkillFile, wanted: Mapping[str, str]) -> SkillFile:
    """Do one change; returns it."""
    if change.backup:
        os.rename(change.file, change.backup)
    elif change.change == "remove":
        os.unlink(change.file)
    if change.change != "remove":
        replace_text(change.file, wanted[os.path.relpath(change.file, folder)])
    return change


def _finish(folder: str, wanted: Mapping[str, str]) -> None:
    """Remember what was installed; where nothing is, remove the folders if they are empty."""
    record = os.path.join(folder, INSTALLED)
    if wanted:
        pages = {file: _digest(text.encode()) for file, text in wanted.items()}
        replace_text(record, to_record({"pages": pages}).decode())
        return
    with suppress(FileNotFoundError):
        os.unlink(record)
    for path in (os.path.join(folder, "references"), folder):
        with suppress(OSError):
            os.rmdir(path)
