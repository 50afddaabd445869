"""The commands of config.toml: show it, read one setting, change one, and leave all else in the file as it is."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated, Any

import click

from tmuxctl import config
from tmuxctl.errors import Usage
from tmuxctl.operations import TEXT, ValueKind, set_up
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations
from tmuxctl.surfaces.cli.editing import toml_lines
from tmuxctl.surfaces.cli.editing.replacing import replace_text
from tmuxctl.surfaces.cli.printing.output import note

SettingName = Annotated[
    str,
    ValueKind("setting", TEXT.schema, TEXT.parse),
    "the name of the setting, as `config show` prints it, or alias.NAME",
]


class SettingsOperations(CommandLineOperations):
    """Operations of the user's settings."""

    @set_up(right="read", view="settings", examples=("config show", "config show --json"))
    def config_show(self) -> Any:
        """Show every setting, its value, and its origin.

        The origin is an option, a variable, the file or the default.
        """
        listed = self._list_settings()
        self._note_unused(one.name for one in listed if one.name in config.UNUSED)
        return {"path": config.config_path(), "settings": [one._asdict() for one in listed]}

    @set_up(right="read", view="path", examples=("config path",))
    def config_path(self) -> Any:
        """Print the path of the settings file, which may not exist."""
        path = config.config_path()
        return {"path": path, "exists": os.path.exists(path)}

    @set_up(right="read", view="written", examples=("config get wait.timeout", "config get wait.timeout --json"))
    def config_get(self, name: SettingName) -> Any:
        """Print the value of one setting, as it was written."""
        if not _is_alias(name):
            config.find_rule(name)
            settings = config.load({"tmux.socket": self.options.socket})
            self._note_unused(settings.unused())
            value = getattr(settings, name.replace(".", "_"))
            value = value if isinstance(value, int | float | None) else str(value)
            return config.Setting(name, value, *settings.origins[name])._asdict()
        listed = self._list_settings()
        found = next((one for one in listed if one.name == name), None)
        if found is None:
            known = config.suggest(name, [one.name for one in listed])
            raise Usage(f"no alias {ascii(name[6:46])}", reason="bad_alias", hint=known or "tmuxctl config show")
        return found._asdict()

    @set_up(
        right="write",
        idempotent=True,
        examples=(
            "config set wait.timeout 5min",
            "config set limits.sessions 500",
            "config set alias.py 'new -- python3'",
        ),
    )
    def config_set(self, name: SettingName, value: Annotated[str, "the new value"]) -> None:
        """Write one setting or alias into config.toml.

        All other lines stay as they are, comments too. The value is checked first. The value of an alias is the command
        that its name stands for; with ! in front it is a command for the shell.
        """
        written: str | int = value
        if _is_alias(name):
            self._check_alias(name, value)
        else:
            rule = config.find_rule(name)
            try:
                rule.check(value)
            except Usage as error:
                raise Usage(f"{name}: {error.message}", reason="bad_config", hint=error.hint) from None
            written = int(value) if isinstance(rule.default, int) else value
        path, before = _read_config()
        _write_if_changed(path, before, toml_lines.with_value(before or "", name, written, path))
        if not _is_alias(name) and (variable := config.RULES[name].variable) and os.environ.get(variable):
            note(f"{variable} is set, and takes precedence over it", self.options)

    @set_up(right="write", idempotent=True, examples=("config unset wait.timeout",))
    def config_unset(self, name: SettingName) -> None:
        """Remove one setting or alias from config.toml, so that the default applies again."""
        if not _is_alias(name) and name not in config.UNUSED:
            config.find_rule(name)
        path, before = _read_config()
        if before is not None:
            _write_if_changed(path, before, toml_lines.without_value(before, name, path))

    def _list_settings(self) -> tuple[config.Setting, ...]:
        return config.list_settings({"tmux.socket": self.options.socket})

    def _note_unused(self, names: Iterable[str]) -> None:
        for name in names:
            note(f"the setting {name} has no effect any more: tmuxctl config unset {name}", self.options)

    def _check_alias(self, name: str, stands_for: str) -> None:
        alias = name.partition(".")[2]
        config.alias_words(alias, stands_for)
        if self.app.get_command(click.Context(self.app), alias) is not None:
            hint = "an alias cannot replace a command: choose another name"
            raise Usage(f"{ascii(alias)} is a command of tmuxctl", reason="bad_alias", hint=hint)


def _is_alias(name: str) -> bool:
    return name.startswith(f"{config.ALIAS}.")


def _read_config() -> tuple[str, str | None]:
    """The file and its text, None if it is not there."""
    path = config.config_path()
    return (path, config.read_file()[1]) if os.path.lexists(path) else (path, None)


def _write_if_changed(path: str, before: str | None, after: str) -> None:
    if before != after:
        replace_text(path, after)
