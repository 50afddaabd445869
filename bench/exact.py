"""What is typed arrives as it was given, and nothing hostile is expanded or executed: text, names, folders, values, titles."""

from __future__ import annotations

import sys

from place import HERE, Done, Place, Row, counted, tmuxctl, until

from tmuxctl.control import Control
from tmuxctl.errors import Usage

TEXTS = (
    "select 1;",
    ";",
    "\\;",
    ";;",
    "ls;",
    "a\\",
    "-R",
    "--help",
    "--",
    "-",
    "Enter",
    "C-c",
    "#{x}",
    "#S",
    "%H",
    "#(touch pwned)",
    "#{l:x}",
    "'single' \"double\" `touch pwned` $(touch pwned) ${HOME} !! ~",
    "{ brace }",
    "# note",
    "tab\there",
    " blanks ",
    "0x1b",
    "\\033[A",
    "M-x",
    "äöü ∀ 漢字",
    "👩‍👩‍👧‍👦 🏳️‍🌈 e\u0301",
    "x" * 5000,
)
BYTES = (
    b"\0",
    b"a\0b",
    b"\xff\xfe\x80",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\x1b[A\x1b]0;t\x07",
    b"\r\n\n\r",
    b"\x03\x04\x1a\x1c\x11\x13",
    b"",
)
MEGABYTE = bytes(range(256)) * 4096
NAMES = (
    "#(touch pwned)",
    "#{pid}",
    "a.b",
    "a:b",
    "-x",
    "",
    "..",
    "a\x1bb",
    "a\nb",
    "x" * 5000,
    "é",
    "%1",
    "=a",
    "a*",
    "$0",
    "@1",
    "a b",
    "_a",
)
FOLDERS = (
    "x##y",
    "#(touch pwned)",
    "%H",
    "#{pid}",
    "new\nline",
    'it\'s "q" `touch pwned` $(touch pwned)',
    "back\\slash",
    "semi;",
    "-dash",
    "ünï",
)
VALUES = (
    "#(touch pwned)",
    "$(touch pwned)",
    "`touch pwned`",
    "x##y",
    "%H",
    "new\nline",
    "'\"\\",
    ";",
    "\\;",
    "{",
    "",
    "~",
    "\x1b[0m",
)


def measure(place: Place) -> list[Row]:
    with place.control() as control:
        rows = [_typed(place, control), *_hostile(place, control)]
    pwned = place.files_named("pwned")
    return [
        *rows,
        Row("commands in hostile text, names, folders, values and titles that ran", "0", str(len(pwned)), not pwned),
    ]


class Recorder:
    """A session that writes down what it is given."""

    def __init__(self, place: Place, control: Control, name: str) -> None:
        self.name, self.file = name, place.folder / f"{name}.typed"
        control.new(name, (sys.executable, str(HERE / "recorder.py"), str(self.file)))
        assert control.wait(name, text="READY", since="screen", timeout=20).matched

    def typed(self) -> bytes:
        return self.file.read_bytes() if self.file.exists() else b""

    def took(self, before: int, wanted: bytes) -> bool:
        """True if exactly these bytes came since; a mark typed behind them would tell of more."""
        until(lambda: len(self.typed()) >= before + len(wanted), 15)
        return self.typed()[before:] == wanted


def _typed(place: Place, control: Control) -> Row:
    """Each text through the command, as an argument and on standard input, and the bytes on standard input."""
    recorder = Recorder(place, control, "typed")
    wrong: list[str] = []
    tried = 0

    def check(what: str, done: Done, before: int, wanted: bytes) -> None:
        nonlocal tried
        tried += 1
        if done.status or not recorder.took(before, wanted):
            wrong.append(f"{what} (status {done.status} {done.error.get('reason', '')})")

    for text in TEXTS:
        before, words = len(recorder.typed()), ("send", "typed", "--", text)
        if text == "-":
            check(repr(text), tmuxctl("send", "typed", "-", stdin=b"-"), before, b"-\r")
        else:
            check(repr(text[:30]), tmuxctl(*words), before, text.encode() + b"\r")
    for data in (*BYTES, MEGABYTE):
        before = len(recorder.typed())
        done = tmuxctl("send", "typed", "-", "--no-enter", "--multiline", stdin=data)
        check(f"{data[:20]!r} of {len(data)}", done, before, data)
    what = "texts typed byte for byte: key names, formats, quotes, ZWJ, NUL, invalid UTF-8, 1 MiB of every byte"
    return counted(what, wrong, tried)


def _hostile(place: Place, control: Control) -> list[Row]:
    return [_names(control), _folders(place, control), _values(place, control), _titles(control)]


def _names(control: Control) -> Row:
    taken = []
    for name in NAMES:
        try:
            taken.append(f"{ascii(name[:20])} became {control.new(name, ('cat',)).name}")
        except Usage as error:
            if error.reason != "bad_name":
                taken.append(f"{ascii(name[:20])}: {error.reason}")
    return counted("hostile names refused", taken, len(NAMES))


def _folders(place: Place, control: Control) -> Row:
    """A program starts exactly in the folder that was named, and `show` says so."""
    wrong = []
    for number, name in enumerate(FOLDERS):
        folder = place.folder / "work" / name
        folder.mkdir()
        session = control.new(f"cwd{number}", ("sh", "-c", "pwd -P >../seen; exec cat"), cwd=str(folder))
        seen = place.folder / "work" / "seen"
        until(lambda seen=seen: seen.exists() and seen.stat().st_size > 0)
        told = control.show(session.name).cwd
        if not seen.exists() or seen.read_text() != f"{folder}\n" or told != str(folder):
            wrong.append(f"{ascii(name)}: told as {ascii(told)}")
        seen.unlink(missing_ok=True)
    return counted("hostile folders started in exactly", wrong, len(FOLDERS))


def _values(place: Place, control: Control) -> Row:
    """Values of the environment and words of the command arrive as they are."""
    file = place.folder / "environment"
    env = {f"HOSTILE_{number}": value for number, value in enumerate(VALUES)}
    script = (
        "import os,sys;out=open(sys.argv[1]+'.new','wb');"
        "out.write('\\0'.join([os.environ[f'HOSTILE_{n}'] for n in range(len(sys.argv)-2)]+sys.argv[2:]).encode());"
        "out.close();os.rename(sys.argv[1]+'.new',sys.argv[1]);sys.stdin.read()"
    )
    control.new("values", (sys.executable, "-c", script, str(file), *VALUES), env=env)
    until(file.exists)
    found = file.read_text().split("\0") if file.exists() else []
    wanted = (*VALUES, *VALUES)
    wrong = [ascii(value) for at, value in enumerate(wanted) if found[at : at + 1] != [value]]
    return counted("hostile values and arguments handed over exactly", wrong, len(wanted))


def _titles(control: Control) -> Row:
    """A title is data: shown as text, its control characters gone, and the other sessions list as before."""
    titles = ("#(touch pwned)", "#{pid}", "$(touch pwned)", "tab\there", "\u241e", "%H", "x##y")
    wrong = []
    for number, title in enumerate(titles):
        name = f"title{number}"
        control.new(name, ("sh", "-c", "printf '\\033]2;%s\\033\\\\READY' \"$0\"; exec cat", title))
        control.wait(name, text="READY", since="screen", timeout=10)
        seen = control.screen(name).title
        listed = {one.name for one in control.ls().sessions}
        if seen != title.replace("\t", "") or name not in listed:
            wrong.append(f"{ascii(title)} shown as {ascii(seen)}")
    return counted("hostile titles shown as text", wrong, len(titles))
