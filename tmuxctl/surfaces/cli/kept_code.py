"""Keeps the code of all modules that commands load in one file, beside those that Python keeps of each (ADR 41).

Python takes 50 us to find, check and open the file of a module (measured), and a quick command loads ninety.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

PACKAGES = ("tmuxctl.", "click.")
"""Only modules inside packages: where a package is, Python has found out itself."""

HEAD = 8
"""Bytes of the file that say how long the table of its modules is; then come the table and the code of each."""

Stamp = tuple[int, int, int]
"""The size of a source file, its times of modification and of change: a program cannot set the last one back."""

Row = tuple[str, str, bool, Stamp, int, int]
"""A module: the paths of its source and of Python's own file, whether it is a package, and where its code is, how long."""


class KeptCode:
    """Finds modules of `PACKAGES` whose code is kept; all others are Python's to find."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.file = -1
        self.begin = 0
        self.table: dict[str, Row] = {}
        with suppress(OSError, EOFError, ValueError, TypeError):
            self._open()

    def _open(self) -> None:
        self.file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        length = int.from_bytes(os.pread(self.file, HEAD, 0), "little")
        version, size, table = marshal.loads(os.pread(self.file, length, HEAD))
        # Python writes its own files as this one is written: after a power failure they may be cut off
        if version == sys.version and os.fstat(self.file).st_size == HEAD + length + size:
            self.begin, self.table = HEAD + length, table

    def find_spec(
        self, name: str, search: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The module, if its code is kept and it is in the package that was loaded; see importlib.abc.MetaPathFinder."""
        row = self.table.get(name)
        if row is None or not search or not row[0].startswith(f"{search[0]}/"):
            return None
        path, cached, is_package, *_ = row
        spec = ModuleSpec(name, _KeptLoader(name, path, self), origin=path, is_package=is_package)
        spec.has_location, spec.cached = True, cached
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(os.path.dirname(path))
        return spec

    def read(self, name: str) -> bytes:
        """The kept code of a module, as marshal has it; KeyError for none, OSError where it cannot be read."""
        *_, offset, length = self.table[name]
        return os.pread(self.file, length, self.begin + offset)

    def keep(self) -> None:
        """Keep what was loaded and is not kept, or has changed since; nothing where Python would keep nothing. Raises OSError,
        and what a module that was damaged meanwhile raises."""
        loaded = {name: module for name, module in list(sys.modules.items()) if name.startswith(PACKAGES)}
        new = [module for name, module in loaded.items() if name not in self.table and _is_plain(module)]
        if not new or sys.dont_write_bytecode or not os.access(os.path.dirname(self.path), os.W_OK):
            return
        self._write(new)

    def _write(self, new: list[ModuleType]) -> None:
        table: dict[str, Row] = {}
        code = bytearray()
        for name, (path, cached, is_package, stamp, _, length) in list(self.table.items()):
            table[name] = (path, cached, is_package, stamp, len(code), length)
            code += self.read(name)
        for module in new:
            path, name = str(module.__file__), module.__name__
            # before the code is read: what changes meanwhile has another stamp
            stamp = read_stamp(path)
            data = marshal.dumps(SourceFileLoader(name, path).get_code(name))
            table[name] = (path, module.__cached__, hasattr(module, "__path__"), stamp, len(code), len(data))
            code += data
        head = marshal.dumps((sys.version, len(code), table))
        _write_file(self.path, len(head).to_bytes(HEAD, "little") + head + code)


class _KeptLoader(SourceFileLoader):
    """Loads a module from what is kept; like any other where its source has changed."""

    def __init__(self, name: str, path: str, kept: KeptCode) -> None:
        super().__init__(name, path)
        self.kept = kept

    def get_code(self, fullname: str) -> CodeType | None:
        with suppress(OSError, KeyError, EOFError, ValueError, TypeError):
            if read_stamp(self.path) == self.kept.table[fullname][3]:
                code = marshal.loads(self.kept.read(fullname))
                if isinstance(code, CodeType):
                    return code
        self.kept.table.pop(fullname, None)
        return super().get_code(fullname)


def install() -> KeptCode | None:
    """Let this process load modules from what is kept; None where they are not files that Python keeps the code of."""
    if type(__spec__.loader) is not SourceFileLoader or not __spec__.cached:
        return None
    kept = KeptCode(__spec__.cached.removesuffix(".pyc") + ".modules")
    sys.meta_path.insert(0, kept)
    return kept


def read_stamp(path: str) -> Stamp:
    """What tells a source file from an earlier one at the same path."""
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _is_plain(module: ModuleType) -> bool:
    spec = module.__spec__
    return spec is not None and isinstance(spec.loader, SourceFileLoader) and bool(spec.cached)


def _write_file(path: str, data: bytes) -> None:
    new = f"{path}.{os.getpid()}"
    handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        with open(handle, "wb") as file:
            file.write(data)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
