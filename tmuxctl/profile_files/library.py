"""Profiles by their name, or by the command they are for; what was read once is kept while its file stays the same.

What reads a file is loaded with the first file that is read: most commands have no profile.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tmuxctl import extensions
from tmuxctl.errors import NotFound, TmuxctlError, Usage
from tmuxctl.extensions import Extension
from tmuxctl.model import NAME
from tmuxctl.ownership import refuse_unsafe
from tmuxctl.program_profile import is_named
from tmuxctl.value import Value

if TYPE_CHECKING:
    from tmuxctl.profile_files.schema import Keys, ProfileDocument
    from tmuxctl.program_profile import Hooks, Profile

SOURCES = ("user", "path", "package", "shipped")
"""Whose profile a command gets when several are for it: the user's before ours."""

Stamp = tuple[int, int]


class Wrapper(Value):
    """A program that runs another: the options that take a value, and how many words stand before the command."""

    valued: str
    long: tuple[str, ...] = ()
    words: int = 0


WRAPPERS: Mapping[str, Wrapper] = {
    "env": Wrapper("uCS", ("--unset", "--chdir", "--split-string")),
    "sudo": Wrapper("CDghpRrTtUu", ("--user", "--group", "--host", "--prompt", "--chdir", "--close-from")),
    "doas": Wrapper("Cu"),
    "nice": Wrapper("n", ("--adjustment",)),
    "ionice": Wrapper("cn", ("--class", "--classdata")),
    "nohup": Wrapper(""),
    "setsid": Wrapper(""),
    "time": Wrapper("fo", ("--format", "--output")),
    "stdbuf": Wrapper("ioe", ("--input", "--output", "--error")),
    "timeout": Wrapper("ks", ("--kill-after", "--signal"), words=1),
}

_documents: dict[str, tuple[Stamp, ProfileDocument]] = {}
_patterns: dict[tuple[str, bytes], tuple[Stamp, tuple[str, ...] | None]] = {}
_profiles: dict[str, tuple[tuple[tuple[str, Stamp], ...], Profile]] = {}


def load(name: str, *, keys: Keys | None = None) -> Profile:
    """The profile of this name, with all that it extends. A name with a `/` or at whose end `.yaml` stands is a file.

    NotFound `no_profile`; Usage `bad_profile` for a file with something wrong in it, `bad_name`; Denied `unsafe_file`.
    """
    return load_found(find_file(name), keys=keys)


def find_file(name: str) -> Extension:
    """Where the profile of this name is, or the file of this path; errors as `load`."""
    if "/" not in name and not name.endswith(".yaml"):
        return extensions.find_profile(name)
    path = os.path.abspath(os.path.expanduser(name))
    stem = os.path.basename(path).removesuffix(".yaml")
    if not NAME.fullmatch(stem):
        raise Usage(
            f"{ascii(name[:80])}: {ascii(stem[:40])} is not a valid profile name", reason="bad_name", hint="NAME.yaml"
        )
    try:
        os.stat(path)
        refuse_unsafe(path)
    except OSError as error:
        message = f"{ascii(path)}: {error.strerror}"
        raise NotFound(message, reason="no_profile", hint="tmuxctl profile ls") from None
    return Extension(stem, "file", "profile", path, os.path.dirname(path))


def load_found(extension: Extension, *, keys: Keys | None = None) -> Profile:
    """As `load`, of a profile that was found before."""
    kept = _profiles.get(extension.path)
    if kept and all(file_stamp(path) == was for path, was in kept[0]):
        return kept[1]
    from tmuxctl.profile_files import resolved

    chain = list(_read_chain(extension, keys))
    given: Mapping[str, Any] = {}
    for _, _, document in reversed(chain):
        given = resolved.merge(document.given, given)
    hooks = given.get("hooks")
    if isinstance(hooks, str):
        others, named = _load_hooks(hooks, chain[0][2].where, keys)
        chain += others
        given = {**given, "hooks": named}
    made = resolved.build_profile(given)
    _profiles[extension.path] = tuple((path, stamp) for path, stamp, _ in chain), made
    return made


def _read_chain(extension: Extension, keys: Keys | None) -> Iterator[tuple[str, Stamp, ProfileDocument]]:
    """A file and those it is built on, nearest first."""
    names: list[str] = []
    following: Extension | None = extension
    while following is not None:
        names.append(following.name)
        stamp, document = _read_document(following, keys)
        yield following.path, stamp, document
        following = _find_parent(document, names)


def _load_hooks(name: str, where: str, keys: Keys | None) -> tuple[list[tuple[str, Stamp, ProfileDocument]], Hooks]:
    """What another profile says of its program's hooks, and the files that say it."""
    try:
        chain = list(_read_chain(extensions.find_profile(name), keys))
    except NotFound as error:
        raise Usage(f"{where}: hooks: {error.message}", reason="bad_profile", hint=error.hint) from None
    hooks = next((said for _, _, document in chain if (said := document.given.get("hooks"))), None)
    if hooks is None or isinstance(hooks, str):
        raise Usage(f"{where}: hooks: profile {name} has no hooks of its own", reason="bad_profile")
    return chain, hooks


def read(extension: Extension, *, keys: Keys | None = None) -> ProfileDocument:
    """One file, as it stands; errors as `load`."""
    return _read_document(extension, keys)[1]


def _read_document(extension: Extension, keys: Keys | None) -> tuple[Stamp, ProfileDocument]:
    stamp = file_stamp(extension.path)
    kept = _documents.get(extension.path)
    if kept is None or kept[0] != stamp:
        from tmuxctl.profile_files.schema import parse

        trusted = extension.source == "shipped"
        content, where = _read_content(extension), ascii(extension.path)
        kept = stamp, parse(content, where, extension.name, keys=keys, trusted=trusted)
        _documents[extension.path] = kept
    return kept


def detect(argv: Sequence[str], *, keys: Keys | None = None) -> str | None:
    """The name of the profile that is for this command, None if there is none.

    A script comes before the interpreter that runs it, a user's own before ours, a name written out before one with `*`.
    Only files whose text seems to name the program are parsed; Usage `bad_profile` if one of these has something wrong in it.
    """
    program = program_name(argv)
    # a script with a `#!` line is a program of its own, too
    wanted = (("script", script_name(argv)), ("script", program), ("argv0", program))
    return next((found for key, name in wanted if name and (found := _find_profile_for(name, key, keys))), None)


def _find_profile_for(program: str, key: str, keys: Keys | None) -> str | None:
    """The name of the profile whose `detect` names this program under the key."""
    likely = [extension for extension in extensions.list_profiles() if _may_fit(extension, program, STARTED)]
    for source in SOURCES:
        fitting = []
        for extension in (extension for extension in likely if extension.source == source):
            names = _detected_programs(read(extension, keys=keys), key)
            if is_named(program, names):
                fitting.append((program not in names, extension.name != program, extension.name))
        if fitting:
            return min(fitting)[2]
    return None


def _detected_programs(document: ProfileDocument, key: str) -> tuple[str, ...]:
    """The programs one file is for: those it names itself, else the one of its own name; never its parent's."""
    given = document.given.get("detect", {})
    own = (document.given["name"],) if key == "argv0" and "script" not in given else ()
    found: tuple[str, ...] = given.get(key, own)
    return found


def program_name(argv: Sequence[str]) -> str:
    """The name of the program that a command is about, past `env`, `sudo -u X`, `timeout 5` and the like; may be empty."""
    place = program_index(argv)
    return "" if place is None else os.path.basename(argv[place])


def script_name(argv: Sequence[str]) -> str:
    """The name of the script, module or tool that a command runs by an interpreter; empty if it runs none."""
    from tmuxctl.profile_files import interpreters

    place = program_index(argv)
    return "" if place is None else interpreters.script_name(argv[place:])


def program_index(argv: Sequence[str]) -> int | None:
    """Which word of a command is the program that it is about, as `program_of`; None if none is."""
    words = list(argv)
    while words:
        wrapper = WRAPPERS.get(os.path.basename(words.pop(0)))
        if wrapper is None:
            return len(argv) - len(words) - 1
        _drop_options(words, wrapper)
        del words[: wrapper.words]
    return None


def _drop_options(words: list[str], wrapper: Wrapper) -> None:
    """Leave out what stands before the wrapped command: options, their values, and variables."""
    while words and (words[0].startswith("-") or re.match(r"[A-Za-z_]\w*=", words[0])):
        word = words.pop(0)
        if word == "--":
            return
        if words and _takes_value(word, wrapper):
            words.pop(0)


def _takes_value(option: str, wrapper: Wrapper) -> bool:
    """True if the next word is this option's value: `-u`, not `-uroot` and not `--user=root`."""
    if option.startswith("--"):
        return option in wrapper.long
    valued = [place for place, letter in enumerate(option) if letter in wrapper.valued]
    return option.startswith("-") and valued[:1] == [len(option) - 1]


def _find_parent(document: ProfileDocument, names: list[str]) -> Extension | None:
    name = document.given.get("extends")
    if name is None:
        return None
    if name in names:
        circle = " -> ".join((*names, name))
        raise Usage(f"{document.where}: extends is circular: {circle}", reason="bad_profile")
    try:
        return extensions.find_profile(name)
    except NotFound as error:
        raise Usage(f"{document.where}: extends: {error.message}", reason="bad_profile", hint=error.hint) from None


def _read_content(extension: Extension) -> bytes:
    try:
        return extensions.read_extension(extension)
    except OSError as error:
        raise Usage(f"{ascii(extension.path)}: {error.strerror}", reason="bad_profile") from None


def file_stamp(path: str) -> Stamp:
    """What changes with a file's content. Inside a one-file application nothing does."""
    try:
        status = os.stat(path)
    except OSError:
        return 0, 0
    return status.st_mtime_ns, status.st_size


DETECT = rb"(?m)^detect:.*(?:\n(?:[ \t#].*)?)*"
NAMES = rb"(?:%s)['\"]?\s*:\s*(\[[^\]]*\]|[^,}\n]*(?:\n\s*-.*)*)"
STARTED, FOREGROUND = b"argv0|script", b"foreground"
"""The keys of `detect` that name programs: as a command starts them, and as the kernel names them in the foreground."""


def load_foreground(program: str, *, keys: Keys | None = None) -> Profile | None:
    """The profile for a program by its name in the foreground, a user's own before ours, a name written out before one with
    `*`; None if there is none. A file that cannot be read is left out; only those whose text may name the program are parsed."""
    fitting: list[tuple[bool, int, Profile]] = []
    for extension in extensions.list_profiles():
        with suppress(TmuxctlError):
            if _may_fit(extension, program, FOREGROUND):
                profile = load_found(extension, keys=keys)
                # the kernel tells the interpreter's name, not which script it runs
                if not profile.script and is_named(program, profile.foreground):
                    fitting.append((program not in profile.foreground, SOURCES.index(extension.source), profile))
    return min(fitting, key=lambda fit: fit[:2])[2] if fitting else None


def _may_fit(extension: Extension, program: str, named_by: bytes) -> bool:
    """Whether a file may be for this program, by its text alone: parsing all of them would take 20 times as long."""
    stamp, place = file_stamp(extension.path), (extension.path, named_by)
    kept = _patterns.get(place)
    if kept is None or kept[0] != stamp:
        kept = _patterns[place] = stamp, _scan_patterns(extension, named_by)
    return kept[1] is None or is_named(program, kept[1])


def _scan_patterns(extension: Extension, named_by: bytes) -> tuple[str, ...] | None:
    """The names that `detect` seems to hold under these keys; None if only parsing can tell."""
    data = _read_content(extension)
    section = re.search(DETECT, data)
    listed = re.findall(NAMES % named_by, section[0]) if section else None
    if named_by == FOREGROUND and section and named_by in section[0] and b"#" in section[0]:
        # a comment may stand between the names
        return None
    if listed:
        return tuple(re.findall(r"[\w.+@*?-]+", b" ".join(listed).decode(errors="replace")))
    if named_by == FOREGROUND:
        # it may have them from the profile that it extends
        return None if named_by in data or b"extends" in data else ()
    return None if section or b"detect" in data else (extension.name,)
