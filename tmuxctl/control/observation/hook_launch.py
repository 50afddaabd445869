"""Starting a program so that it tells of its turns: words, variables and files of its profile's `hooks`.

All of it is this session's own: nothing of the user's is written, and what the user asks for on the command line stands
behind ours, where programs let the last one count.
"""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase

from tmuxctl.model import SessionSpec
from tmuxctl.program_profile import Profile
from tmuxctl.terminal.launch import hooks
from tmuxctl.terminal.tmux import layout

UNSAFE = set("'\"\\\n")
"""What in a folder's path would end the words, JSON or TOML that the path is put into."""


def told(spec: SessionSpec, profile: Profile, folder: str) -> tuple[SessionSpec, dict[str, bytes]]:
    """The spec with what makes its program tell of its turns, and the files that takes, by their names in `shell`.

    A command that is not the profile's program itself, such as a script that starts it, is left as it is; so is all where the
    session's folder cannot be written into words of others.
    """
    from tmuxctl.profile_files import library

    known = profile.hooks
    place = library.place_of(spec.argv)
    if known is None or place is None or not fits(spec.argv[place], profile) or UNSAFE & set(folder):
        return spec, {}
    places = {"{hook}": f"{folder}/{layout.EVENTS}/{hooks.FILE}", "{shell}": f"{folder}/{layout.SHELL}"}
    words = tuple(filled(word, places) for word in known.argv)
    argv = (*spec.argv[: place + 1], *words, *spec.argv[place + 1 :])
    env = {**spec.env, **{name: filled(value, places) for name, value in known.env.items()}}
    files = {name: filled(text, places).encode() for name, text in known.files.items()}
    return replace(spec, argv=argv, env=env), files


def fits(word: str, profile: Profile) -> bool:
    """Whether a command's word is the profile's program."""
    program = word.rpartition("/")[2]
    return any(fnmatchcase(program, pattern) for pattern in profile.argv0)


def filled(text: str, places: dict[str, str]) -> str:
    """The text with the places it names."""
    for name, place in places.items():
        text = text.replace(name, place)
    return text
