"""Where plugins and profiles are found, and how a plugin that was found is loaded or run.

First the user's own folder, then the folders of `TMUXCTL_PLUGIN_PATH` or `TMUXCTL_PROFILE_PATH`, then those shipped
with tmuxctl, at last installed packages. Never the current directory: a working tree is not trusted to run code.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from types import ModuleType
from typing import Any

from tmuxctl.config import config_folder, suggest
from tmuxctl.errors import Denied, Failed, NotFound, Usage
from tmuxctl.model import NAME
from tmuxctl.ownership import refuse_unsafe
from tmuxctl.timing import TIMING
from tmuxctl.untrusted import read_file
from tmuxctl.value import Value

GROUP = "tmuxctl.plugins"
"""The group of entry points, each naming a module, and the package that modules from a folder are loaded into."""

SIZE_LIMIT = 16 << 20
"""Bytes of a profile's or plugin's file that are read."""

VARIABLES = {"plugins": "TMUXCTL_PLUGIN_PATH", "profiles": "TMUXCTL_PROFILE_PATH"}


class Extension(Value):
    """A plugin or profile: `source` is user, path, shipped or package; `form` is module, executable or profile.

    `path` is its file; for a package, which is in no folder of plugins, the name of its module.
    """

    name: str
    source: str
    form: str
    path: str
    folder: str = ""


def find_plugin(name: str) -> Extension:
    """The plugin of this name. NotFound `no_plugin`, Usage `bad_name`, Denied `unsafe_file` if others may write it."""
    _check_name(name, "plugin")
    for source, folder in _search_folders("plugins"):
        if found := _find_plugin_in(folder, source, name):
            return found
    if package := _installed_plugins().get(name):
        _refuse_shadow(package)
        return package
    raise _not_found("plugin", name, list_plugins())


def list_plugins() -> tuple[Extension, ...]:
    """Every plugin that can be had by its name, sorted; those refused are left out, and none is run."""
    found = _installed_plugins()
    for source, folder in reversed(_search_folders("plugins")):
        names = {entry.removesuffix(".py") for entry in _list_entries(folder, source)}
        for name in filter(NAME.fullmatch, names):
            with suppress(Denied):
                if one := _find_plugin_in(folder, source, name):
                    found[name] = one
    return tuple(found[name] for name in sorted(found))


def find_profile(name: str) -> Extension:
    """The profile of this name. NotFound `no_profile`, Usage `bad_name`, or Denied `unsafe_file`."""
    _check_name(name, "profile")
    for source, folder in _search_folders("profiles"):
        if f"{name}.yaml" in _list_entries(folder, source):
            return _profile_in(folder, source, name)
    raise _not_found("profile", name, list_profiles())


def list_profiles() -> tuple[Extension, ...]:
    """Every profile that can be had by its name, sorted; those refused are left out."""
    found: dict[str, Extension] = {}
    for source, folder in reversed(_search_folders("profiles")):
        for entry in _list_entries(folder, source):
            name, suffix = os.path.splitext(entry)
            if suffix == ".yaml" and NAME.fullmatch(name):
                with suppress(Denied):
                    found[name] = _profile_in(folder, source, name)
    return tuple(found[name] for name in sorted(found))


def read_extension(found: Extension) -> bytes:
    """The content of a profile or plugin file, from inside a one-file application too."""
    if found.source == "shipped" and (loader := _zip_loader()):
        data: bytes = loader.get_data(found.path)
        return data
    return read_file(found.path, SIZE_LIMIT, follow=True)


def load_module(found: Extension) -> ModuleType:
    """The plugin's module, executed once. What its code raises is passed on, and the module forgotten."""
    from importlib import import_module
    from importlib.util import module_from_spec

    if found.source == "package":
        return import_module(found.path)
    spec = _find_spec(found.folder, found.name)
    if spec is None or spec.loader is None:
        raise NotFound(f"plugin {found.name!r} is gone from {ascii(found.folder)}", reason="no_plugin")
    known = sys.modules.get(spec.name)
    if known is not None and known.__spec__ and known.__spec__.origin == spec.origin:
        return known
    module = sys.modules[spec.name] = module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(spec.name, None)
        raise
    return module


def run_program(
    found: Extension, request: Mapping[str, Any], folder: str, *, seconds: float = TIMING.plugin.program_seconds
) -> bytes:
    """Run a plugin that is a program in `folder`, the request as JSON on its standard input; what it printed.

    Failed `plugin` with its message (`details["said"]`) if it does not start, end in time, or end with 0.
    """
    import json
    import signal
    import subprocess

    def failed(what: str) -> Failed:
        hint = f"fix it, or start without it: {found.path}"
        return Failed(f"plugin {found.name!r}: {what}", reason="plugin", hint=hint, plugin=found.name, said=what)

    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(found.path, stdin=pipe, stdout=pipe, stderr=pipe, cwd=folder, start_new_session=True)
    except OSError as error:
        raise failed(f"{found.path} does not start: {error.strerror}") from None
    with process:
        try:
            printed, complaint = process.communicate(json.dumps(request).encode(), seconds)
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(error, subprocess.TimeoutExpired):
                raise failed(f"{request['op']} did not end within {seconds:g} s") from None
            raise
    if process.returncode:
        raise failed(" ".join(complaint.decode(errors="replace").split())[:500] or f"exit status {process.returncode}")
    return printed


def _search_folders(kind: str) -> list[tuple[str, str]]:
    """(source, folder) in the order of search; those of the user's are there and safe."""
    own = [("user", os.path.join(config_folder(), kind))]
    own += [("path", element) for element in _path_folders(VARIABLES[kind])]
    existing = [(source, folder) for source, folder in own if os.path.isdir(folder)]
    for _, folder in existing:
        refuse_unsafe(folder)
    return [*existing, ("shipped", _shipped_folder(kind))]


def _path_folders(variable: str) -> Iterator[str]:
    for element in filter(None, os.environ.get(variable, "").split(":")):
        if not os.path.isabs(element):
            hint = "each folder has to be an absolute path; nothing is taken from the current directory"
            raise Usage(f"{variable}: {ascii(element[:80])} is not absolute", reason="bad_path", hint=hint)
        yield element


def _shipped_folder(kind: str) -> str:
    """Inside the package in a wheel or a one-file application, beside it in a checkout."""
    package = os.path.dirname(os.path.abspath(__file__))
    inside = os.path.join(package, kind)
    return inside if _zip_loader() or os.path.isdir(inside) else os.path.join(os.path.dirname(package), kind)


def _zip_loader() -> Any:
    loader = __spec__.loader if __spec__ else None
    return loader if hasattr(loader, "archive") else None


def _list_entries(folder: str, source: str) -> list[str]:
    loader = _zip_loader() if source == "shipped" else None
    if loader is None:
        return os.listdir(folder) if os.path.isdir(folder) else []
    from zipfile import ZipFile

    inside = os.path.relpath(folder, loader.archive) + "/"
    with ZipFile(loader.archive) as archive:
        below = (name.removeprefix(inside) for name in archive.namelist() if name.startswith(inside))
        return sorted({name.partition("/")[0] for name in below} - {""})


def _find_plugin_in(folder: str, source: str, name: str) -> Extension | None:
    spec = _find_spec(folder, name)
    if spec and spec.loader and spec.origin:
        cached = spec.cached or spec.origin
        _refuse_unsafe_files(source, os.path.dirname(spec.origin), spec.origin, os.path.dirname(cached), cached)
        for folder_ in spec.submodule_search_locations or () if source != "shipped" else ():
            _refuse_unsafe_files(source, *(entry.path for entry in os.scandir(folder_)))
        return Extension(name, source, "module", spec.origin, folder)
    path = os.path.join(folder, name)
    if os.path.isfile(path) and os.access(path, os.X_OK):
        _refuse_unsafe_files(source, path)
        return Extension(name, source, "executable", path, folder)
    return None


def _find_spec(folder: str, name: str) -> Any:
    from pkgutil import get_importer

    # what Python remembers of a folder can be older than the file just put there
    sys.path_importer_cache.pop(folder, None)
    importer = get_importer(folder)
    return importer.find_spec(f"{GROUP}.{name}", None) if importer else None


def _profile_in(folder: str, source: str, name: str) -> Extension:
    path = os.path.join(folder, f"{name}.yaml")
    _refuse_unsafe_files(source, path)
    if source != "shipped" and not os.path.isfile(path):
        # a pipe of that name would be waited for, whatever session is looked at
        raise Denied(f"{path} is not a file", reason="unsafe_file", hint=f"look at it: ls -l {path}")
    return Extension(name, source, "profile", path, folder)


def _refuse_unsafe_files(source: str, *paths: str) -> None:
    """Ours were installed as the code that runs here was; anybody else's are looked at."""
    for path in paths if source != "shipped" else ():
        refuse_unsafe(path)


def _installed_plugins() -> dict[str, Extension]:
    from importlib.metadata import distributions

    found: dict[str, Extension] = {}
    for distribution in distributions(path=trusted_path()):
        for entry in distribution.entry_points:
            if entry.group == GROUP and NAME.fullmatch(entry.name):
                found.setdefault(entry.name, Extension(entry.name, "package", "module", entry.module))
    return found


def _refuse_shadow(found: Extension) -> None:
    """Denied if importing the package's module would take one of the same name from the current directory, or one that
    others may change."""
    from importlib.util import find_spec

    spec = find_spec(found.path.partition(".")[0])
    places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
    if any(os.path.isabs(place) and not _is_on_trusted_path(place) for place in places):
        hint = "go to another directory, or start tmuxctl by its command"
        message = f"plugin {found.name!r}: the current directory holds a module {found.path!r} of its own"
        raise Denied(message, reason="unsafe_file", hint=hint)
    # what lies beside our own code was installed as that was
    beside = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
    _refuse_unsafe_files(
        "package", *(place for place in places if os.path.isabs(place) and not place.startswith(beside))
    )


def trusted_path() -> list[str]:
    """`sys.path` without the entry that Python makes of the current directory (`python -m`, `python -c`)."""
    start = 1 if sys.path and _is_current_folder(sys.path[0]) else 0
    return [entry for entry in sys.path[start:] if os.path.isabs(entry)]


def _is_on_trusted_path(place: str) -> bool:
    here = os.path.dirname(place)
    return not _is_current_folder(here) or here in trusted_path()


def _is_current_folder(folder: str) -> bool:
    try:
        return folder == "" or os.path.samefile(folder, os.getcwd())
    except OSError:
        return False


def _check_name(name: str, what: str) -> None:
    if not NAME.fullmatch(name):
        hint = "a name, not a path: letters, digits, _ and -"
        raise Usage(f"{ascii(name[:80])} is not a valid {what} name", reason="bad_name", hint=hint)


def _not_found(what: str, name: str, there: Iterable[Extension]) -> NotFound:
    names = tuple(found.name for found in there)
    message = f"no {what} named {name!r}; there are: {', '.join(names)}"
    return NotFound(message, reason=f"no_{what}", hint=suggest(name, names) or f"tmuxctl {what} ls")
