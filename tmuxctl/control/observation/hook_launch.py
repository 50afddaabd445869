"""Starting a program with hooks that report its turns: words, variables and files of its profile's `hooks`.

All of it is this session's own: nothing of the user's is written. The user's words follow ours, as programs let the last
one count.
"""

from __future__ import annotations

from dataclasses import replace

from tmuxctl.model import SessionSpec
from tmuxctl.program_profile import Profile, is_named
from tmuxctl.terminal.launch import hooks
from tmuxctl.terminal.tmux import layout

UNSAFE = set("'\"\\\n")
"""Characters that would end the words, JSON or TOML into which a folder's path is put."""


def with_hooks(spec: SessionSpec, profile: Profile, folder: str) -> tuple[SessionSpec, dict[str, bytes]]:
    """The spec with the hooks of its program, and their files, by their names in `shell`.

    A command that is not the profile's program itself, such as a script that starts it, stays as it is; so does every
    command if the path of the session's folder has an UNSAFE character.
    """
    from tmuxctl.profile_files import library

    hooks_of_profile = profile.hooks
    program_index = library.program_index(spec.argv)
    if (
        hooks_of_profile is None
        or program_index is None
        or not is_program_of(spec.argv[program_index], profile)
        or UNSAFE & set(folder)
    ):
        return spec, {}
    places = {"{hook}": f"{folder}/{layout.EVENTS}/{hooks.FILE}", "{shell}": f"{folder}/{layout.SHELL}"}
    words = tuple(fill_places(word, places) for word in hooks_of_profile.argv)
    argv = (*spec.argv[: program_index + 1], *words, *spec.argv[program_index + 1 :])
    env = {**spec.env, **{name: fill_places(value, places) for name, value in hooks_of_profile.env.items()}}
    files = {name: fill_places(text, places).encode() for name, text in hooks_of_profile.files.items()}
    return replace(spec, argv=argv, env=env), files


def is_program_of(word: str, profile: Profile) -> bool:
    """Whether a command's word is the profile's program."""
    program = word.rpartition("/")[2]
    return is_named(program, profile.argv0)


def fill_places(text: str, places: dict[str, str]) -> str:
    """The text with the values of the places, such as `{shell}`, that it names."""
    for name, place in places.items():
        text = text.replace(name, place)
    return text
