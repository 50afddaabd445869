"""Hooks for every session of a program, wherever it is started: put into its own settings, and taken out again."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple

from tmuxctl.errors import NotFound, TmuxctlError, Usage
from tmuxctl.operations import operation, set_up
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations
from tmuxctl.surfaces.cli.editing import settings_file
from tmuxctl.surfaces.cli.editing.replacing import read_settings, replace_settings
from tmuxctl.surfaces.cli.printing.output import note, tell
from tmuxctl.untrusted import parse_json

if TYPE_CHECKING:
    from tmuxctl.extensions import Extension
    from tmuxctl.program_profile import HookEventRule, SettingsFile
    from tmuxctl.results import DenyList, HooksChanged


class HookOperations(CommandLineOperations):
    """Operations of a program's own hooks."""

    @operation(right="write", group="Set up", examples=("hook Stop </dev/null", """hook idle '{"text": "done"}'"""))
    def hook(
        self,
        event: Annotated[str, "the name of the event, as in the program's profile"],
        text: Annotated[str | None, "the data of the event, as JSON (default: standard input)"] = None,
    ) -> None:
        """Report an event to the session that this runs in.

        An event is, for instance, that a turn began or ended, or that a question was asked. The hooks of a program call
        this, from settings that apply in every terminal. It prints nothing, and outside of a session it does nothing;
        -v says what it did. Within a session `sh "$TMUXCTL_EVENTS/hook" EVENT` does the same without Python.
        """
        from tmuxctl.surfaces.cli.setup import hook

        said = hook.report_event(event, None if text is None else text.encode())
        if self.options.verbose:
            tell(f"tmuxctl: {said}")

    @set_up(
        right="write",
        idempotent=True,
        examples=("hooks install claude --dry-run", "hooks install claude", "hooks install claude --deny-list"),
    )
    def hooks_install(
        self,
        program: Annotated[str, "claude or gemini"],
        *,
        dry_run: Annotated[bool, "print the change, and change nothing"] = False,
        settings: Annotated[str | None, "the settings file, if it is not the usual one of the program"] = None,
        deny_list: Annotated[
            bool, "print rules to paste that deny files with secrets and dangerous commands; change nothing"
        ] = False,
    ) -> HooksChanged | DenyList:
        """Add hooks to a program's own settings, so that it reports its turns wherever it is started.

        A session that tmuxctl starts needs this only if the program takes no hooks for a single session (gemini).
        Nothing else in the file changes, and a copy of the old file is kept beside it. Outside of sessions the hooks do
        nothing.
        """
        from tmuxctl.results import DenyList

        about = _find_settable(program)
        if deny_list:
            if not about.settings.deny:
                raise Usage(f"there are no deny rules for {program}", reason="no_deny_list")
            return DenyList({"deny": about.settings.deny})
        import shutil

        more = parse_json(about.settings.hook)
        events = (one.on for one in about.events)
        hooks = {one: {"type": "command", "command": f"tmuxctl hook {one} || :", **more} for one in events}
        path = _settings_path(about.settings, settings)
        before = read_settings(path)
        after = settings_file.with_hooks(before or "", hooks, path)
        if not dry_run and shutil.which("tmuxctl") is None:
            note("tmuxctl is not in your PATH: until it is, the hooks do nothing", self.options)
        return _apply_change(program, path, before, after, dry_run)

    @set_up(right="write", idempotent=True, examples=("hooks uninstall claude --dry-run", "hooks uninstall claude"))
    def hooks_uninstall(
        self,
        program: Annotated[str, "claude or gemini"],
        *,
        dry_run: Annotated[bool, "print the change, and change nothing"] = False,
        settings: Annotated[str | None, "the settings file, if it is not the usual one of the program"] = None,
    ) -> HooksChanged:
        """Remove tmuxctl's hooks from a program's settings: those whose command is `tmuxctl hook`, nothing else."""
        about = _find_settable(program)
        path = _settings_path(about.settings, settings)
        before = read_settings(path)
        after = settings_file.without_hooks(before, path) if before else before
        return _apply_change(program, path, before, after, dry_run)


class _Settable(NamedTuple):
    """A program's own settings file, and the events for which hooks are put there."""

    settings: SettingsFile
    events: tuple[HookEventRule, ...]


def _find_settable(name: str) -> _Settable:
    """What the profile of this name says of the program's own settings."""
    from tmuxctl import extensions

    every = extensions.list_profiles()
    if found := next((about for one in every if one.name == name and (about := _read_settable(one))), None):
        return found
    raise NotFound(
        f"no hooks for {ascii(name[:40])}; there are: {', '.join(one.name for one in every if _read_settable(one))}",
        reason="no_program",
        hint="other programs get their hooks when a session starts: tmuxctl profile show NAME",
    )


def _read_settable(one: Extension) -> _Settable | None:
    from tmuxctl.profile_files import library

    with suppress(TmuxctlError):
        hooks = library.load_found(one).hooks
        return _Settable(hooks.settings, hooks.events) if hooks and hooks.settings else None
    return None


def _settings_path(about: SettingsFile, given: str | None) -> str:
    folder = (about.variable and os.environ.get(about.variable)) or os.path.expanduser(about.folder)
    return os.path.abspath(os.path.expanduser(given) if given else os.path.join(folder, about.file))


def _apply_change(program: str, path: str, before: str | None, after: str | None, dry_run: bool) -> HooksChanged:
    """Write the settings, if they are to change and this is no dry run; what was done."""
    import difflib

    from tmuxctl.results import HooksChanged

    if before == after or after is None:
        return HooksChanged(program, path, False, dry_run=dry_run)
    lines = difflib.unified_diff((before or "").splitlines(), after.splitlines(), path, path, lineterm="")
    diff = "".join(f"{line}\n" for line in lines)
    backup = None if dry_run else replace_settings(path, before, after)
    return HooksChanged(program, path, True, diff, backup, dry_run)
