"""Hooks for every session of a program, wherever it is started: put into its own settings, and taken out again."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from tmuxctl.errors import Conflict, Failed, NotFound, Usage
from tmuxctl.model import NOTHING
from tmuxctl.operations import operation
from tmuxctl.surfaces.cli import settings_file
from tmuxctl.surfaces.cli.here import OfCommands
from tmuxctl.surfaces.cli.output import note, tell
from tmuxctl.surfaces.cli.replacing import replace_text
from tmuxctl.transport.local import told
from tmuxctl.untrusted import read_file

SIZE_LIMIT = 16 << 20
"""Bytes of a settings file that are read."""

if TYPE_CHECKING:
    from tmuxctl.results import DenyList, HooksChanged


class Program(NamedTuple):
    """Where a program keeps its settings and which events it has: `variable` names the folder that is else `folder`,
    `file` is below it. `hook` is what its hooks have beside the command; `deny` are rules for what it should not touch."""

    variable: str
    folder: str
    file: str
    events: tuple[str, ...]
    hook: Mapping[str, Any] = NOTHING
    deny: tuple[str, ...] = ()


_SECRET_FILES = (
    "**/.env", "**/.env.*", "**/*.pem", "**/*.key", "**/*.p12", "**/*.pfx", "**/id_rsa*", "**/id_ed25519*", "**/id_ecdsa*",
    "**/.git-credentials", "**/.netrc", "**/.pgpass", "**/credentials.json", "**/secrets/**",
    "~/.ssh/**", "~/.gnupg/**", "~/.aws/**", "~/.azure/**", "~/.config/gcloud/**", "~/.config/gh/**", "~/.kube/**",
    "~/.docker/config.json", "~/.npmrc", "~/.pypirc", "~/.netrc", "~/.pgpass", "~/.git-credentials",
    "~/.password-store/**", "~/.local/share/keyrings/**", "~/.mozilla/**", "~/.config/google-chrome/**",
    "~/.bash_history", "~/.zsh_history", "//etc/shadow", "//etc/sudoers", "//etc/ssh/**",
)  # fmt: skip

_LASTING_FILES = (
    "~/.ssh/**", "~/.bashrc", "~/.bash_profile", "~/.profile", "~/.zshrc", "~/.zshenv", "~/.gitconfig",
    "~/.config/systemd/**", "~/.config/autostart/**", "//etc/**", "**/.git/hooks/**", "**/.git/config",
)  # fmt: skip

_COMMANDS = (
    "sudo", "sudo *", "su", "su *", "doas *", "pkexec *",
    "rm -rf /", "rm -rf /*", "rm -rf ~", "rm -rf ~/*", "rm -rf $HOME*", "rm -rf .", "rm -rf ..*",
    "rm -fr /", "rm -fr /*", "rm -fr ~", "rm -fr ~/*", "rm -fr $HOME*", "rm -fr .", "rm -fr ..*",
    "mkfs*", "dd *of=/dev/*", "shred *", "wipefs *",
    "shutdown *", "reboot*", "halt*", "poweroff*",
    "chmod -R 777 *", "chmod 777 *",
    "git push --force*", "git push * --force*", "git push -f*", "git push * -f*", "git push * +*",
    "git reset --hard *", "git clean -fd*", "git clean -xf*", "git config --global *",
    "sh", "bash", "zsh", "sh -", "bash -", "sh -s*", "bash -s*", "eval *",
    "ssh *", "scp *", "rsync *:*", "nc *", "ncat *", "telnet *",
    "env", "printenv*", "history*", "crontab *", "systemctl *", "launchctl *",
    "npm publish*", "twine upload*", "cargo publish*", "docker push*",
    "aws configure *", "gcloud auth *", "az account *", "gh auth *", "kubectl delete *", "terraform apply*", "terraform destroy*",
)  # fmt: skip

PROGRAMS: Mapping[str, Program] = {
    "claude": Program(
        variable="CLAUDE_CONFIG_DIR",
        folder="~/.claude",
        file="settings.json",
        events=("UserPromptSubmit", "PermissionRequest", "Stop", "StopFailure"),
        hook={"timeout": 10},
        deny=(
            *(f"Read({one})" for one in _SECRET_FILES),
            *(f"Edit({one})" for one in _LASTING_FILES),
            *(f"Bash({one})" for one in _COMMANDS),
        ),
    ),
    "gemini": Program(
        variable="GEMINI_CLI_HOME",
        folder="~",
        file=".gemini/settings.json",
        events=("BeforeAgent", "Notification", "AfterAgent"),
        hook={"name": "tmuxctl", "timeout": 10000},
    ),
}
"""The programs that can be set up so, by the name of their profile."""


class Hooks(OfCommands):
    """Operations of a program's own hooks."""

    @operation(
        right="write",
        group="Set up",
        examples=("hook Stop </dev/null", """hook idle '{"text": "done"}'"""),
    )
    def hook(
        self,
        event: Annotated[str, "its name, as the program's profile knows it"],
        text: Annotated[str | None, "what comes with it, JSON (default: standard input)"] = None,
    ) -> None:
        """Tell the session this runs in that something happened: a turn began or ended, a question was asked.

        What a program's own hooks call, in settings that hold for every terminal. It prints nothing and does nothing
        outside of a session; -v says what it did. Within a session `sh "$TMUXCTL_EVENTS/hook" EVENT` does the same
        without Python.
        """
        from tmuxctl.surfaces.cli import hook

        said = hook.tell(event, None if text is None else text.encode())
        if self.options.verbose:
            tell(f"tmuxctl: {said}")

    @operation(
        right="write",
        group="Set up",
        idempotent=True,
        examples=("hooks install claude --dry-run", "hooks install claude", "hooks install claude --deny-list"),
    )
    def hooks_install(
        self,
        program: Annotated[str, "claude or gemini"],
        *,
        dry_run: Annotated[bool, "show the change and do nothing"] = False,
        settings: Annotated[str | None, "the file, if it is not the program's usual one"] = None,
        deny_list: Annotated[
            bool, "print rules that deny files with secrets and dangerous commands, to be pasted; change nothing"
        ] = False,
    ) -> HooksChanged | DenyList:
        """Have a program tell tmuxctl of its turns wherever it is started, by hooks in its own settings.

        A session that tmuxctl starts needs this only where the program takes no hooks for one session (gemini). What
        others put into the file stays as it is, to the letter; a copy of the file as it was is kept beside it. In a
        terminal that is no session the hooks do nothing.
        """
        from tmuxctl.results import DenyList

        about = _program(program)
        if deny_list:
            if not about.deny:
                raise Usage(f"there are no such rules for {program}", reason="no_deny_list")
            return DenyList({"deny": about.deny})
        hooks = {one: {"type": "command", "command": f"tmuxctl hook {one} || :", **about.hook} for one in about.events}
        path = _path(about, settings)
        before = _read(path)
        after = settings_file.with_hooks(before or "", hooks, path)
        if not dry_run and not _on_path():
            note("tmuxctl is not on your PATH: until it is, the hooks do nothing", self.options)
        return _changed(program, path, before, after, dry_run)

    @operation(
        right="write",
        group="Set up",
        idempotent=True,
        examples=("hooks uninstall claude --dry-run", "hooks uninstall claude"),
    )
    def hooks_uninstall(
        self,
        program: Annotated[str, "claude or gemini"],
        *,
        dry_run: Annotated[bool, "show the change and do nothing"] = False,
        settings: Annotated[str | None, "the file, if it is not the program's usual one"] = None,
    ) -> HooksChanged:
        """Take tmuxctl's hooks out of a program's settings: those whose command is `tmuxctl hook`, nothing else."""
        about = _program(program)
        path = _path(about, settings)
        before = _read(path)
        after = settings_file.without_hooks(before, path) if before else before
        return _changed(program, path, before, after, dry_run)


def _program(name: str) -> Program:
    if name not in PROGRAMS:
        raise NotFound(
            f"no hooks for {ascii(name[:40])}; there are: {', '.join(PROGRAMS)}",
            reason="no_program",
            hint="other programs get theirs when a session is started: tmuxctl profile show NAME",
        )
    return PROGRAMS[name]


def _path(program: Program, given: str | None) -> str:
    folder = os.environ.get(program.variable) or os.path.expanduser(program.folder)
    return os.path.abspath(os.path.expanduser(given) if given else os.path.join(folder, program.file))


def _on_path() -> bool:
    import shutil

    return shutil.which("tmuxctl") is not None


def _read(path: str) -> str | None:
    """The text of the settings, None if there are none."""
    try:
        with told(path):
            return read_file(path, SIZE_LIMIT, follow=True).decode()
    except FileNotFoundError:
        return None
    except OSError as error:
        what = "is a folder" if os.path.isdir(path) else f"cannot be read: {error.strerror}"
        raise Usage(f"{path} {what}", reason="bad_file", hint="name a file: --settings FILE") from None
    except UnicodeDecodeError as error:
        raise settings_file.wrong(path, f"byte {error.start + 1} is not UTF-8") from None


def _changed(program: str, path: str, before: str | None, after: str | None, dry_run: bool) -> HooksChanged:
    """Write the settings, if they are to change and this is no dry run; what was done."""
    from tmuxctl.results import HooksChanged

    diff = _diff(path, before or "", after or "")
    if before == after or after is None:
        return HooksChanged(program, path, False, dry_run=dry_run)
    backup = None if dry_run else _replaced(path, before, after)
    return HooksChanged(program, path, True, diff, backup, dry_run)


def _diff(path: str, before: str, after: str) -> str:
    import difflib

    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), path, path, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _replaced(path: str, before: str | None, after: str) -> str | None:
    """Put the new text where the old one was. Returns the path of the copy of the old one, None if there was none."""
    backup = None
    if before is not None:
        with told(path):
            backup = _copied(path, before, stat.S_IMODE(os.stat(path).st_mode))
        if _read(path) != before:
            # programs write their settings while they run
            raise Conflict(f"{path} was changed by another program meanwhile", reason="edited", hint="do it again")
    replace_text(path, after)
    return backup


def _copied(path: str, text: str, mode: int) -> str:
    """Keep the text beside a file, named after it and the time."""
    stamp = time.strftime("%Y%m%d-%H%M%S")
    for number in range(100):
        copy = f"{path}.{stamp}{f'-{number}' if number else ''}.bak"
        try:
            handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode & 0o600)
        except FileExistsError:
            continue
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        return copy
    raise Failed(f"{path}: too many copies of this second", reason="bad_file", hint="do it again")
