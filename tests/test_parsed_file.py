"""Files that are parsed again only once they were changed, and what is looked up in them for hundreds of machines."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from tmuxctl import machines
from tmuxctl.gateway import carrier
from tmuxctl.machines import MachineEntry, parse_machine, read_machines
from tmuxctl.parsed_file import ParsedFile
from tmuxctl.sealed import trust
from tmuxctl.sealed.keys import make_key_pair, parse_key
from tmuxctl.sealed.trust import KnownMachine, KnownMachines, write_known_machine

HOSTS = 50


class Counted:
    """A file that is parsed, and how often it was."""

    def __init__(self, path: Path) -> None:
        self.times = 0
        self.path = path
        self._file = ParsedFile(self._parse)

    def read(self) -> str:
        return self._file.read(str(self.path))

    def _parse(self, path: str) -> str:
        self.times += 1
        return Path(path).read_text()


@pytest.fixture
def counted(tmp_path: Path) -> Counted:
    (tmp_path / "file").write_text("first")
    return Counted(tmp_path / "file")


def test_a_file_is_parsed_once_for_all_threads(counted: Counted) -> None:
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(counted.read())) for _ in range(20)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (found, counted.times) == (["first"] * 20, 1)


def test_a_file_is_parsed_again_once_it_was_changed(counted: Counted) -> None:
    assert counted.read() == "first"
    counted.path.write_text("another")
    assert counted.read() == "another"
    # as a file of the same size that takes its place
    new = counted.path.with_name("new")
    new.write_text("renamed")
    new.rename(counted.path)
    assert counted.read() == "renamed"
    assert counted.times == 3


def test_a_file_is_parsed_again_if_others_may_write_it_now(counted: Counted) -> None:
    counted.read()
    counted.path.chmod(0o606)
    counted.read()
    assert counted.times == 2


def test_a_link_that_leads_elsewhere_is_another_file(counted: Counted, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    target, counted.path = counted.path, tmp_path / "link"
    counted.path.symlink_to(target)
    assert counted.read() == "first"
    counted.path.unlink()
    counted.path.symlink_to(tmp_path / "other")
    assert counted.read() == "other"


def test_a_link_whose_file_was_changed_is_followed(counted: Counted, tmp_path: Path) -> None:
    target, counted.path = counted.path, tmp_path / "link"
    counted.path.symlink_to(target)
    assert counted.read() == "first"
    target.write_text("again")
    assert counted.read() == "again"


def test_a_change_that_hides_its_time_and_size_is_seen(counted: Counted) -> None:
    before = counted.path.stat()
    assert counted.read() == "first"
    counted.path.write_text("other")
    os.utime(counted.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert counted.read() == "other"


def test_another_name_of_the_same_file_is_another_path(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    os.link(tmp_path / "file", tmp_path / "name")
    file = ParsedFile(os.path.basename)
    assert [file.read(str(tmp_path / name)) for name in ("file", "name", "file")] == ["file", "name", "file"]


def test_what_is_written_while_it_is_parsed_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("first")

    def parse(name: str) -> str:
        found = Path(name).read_text()
        path.write_text("written meanwhile")
        return found

    file = ParsedFile(parse)
    assert [file.read(str(path)) for _ in range(2)] == ["first", "written meanwhile"]


def test_an_error_is_not_kept(counted: Counted) -> None:
    counted.path.unlink()
    with pytest.raises(FileNotFoundError):
        counted.read()
    counted.path.write_text("made")
    assert counted.read() == "made"


def test_looking_up_every_known_machine_reads_each_line_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = Path(KnownMachines().path)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    known = [KnownMachine(f"h{number}", "a" * 16, make_key_pair().public) for number in range(HOSTS)]
    path.write_text("".join(f"{write_known_machine(one)}\n" for one in known))
    path.chmod(0o600)
    read: list[str] = []

    def parse(text: str) -> bytes:
        read.append(text)
        return parse_key(text)

    monkeypatch.setattr(trust, "parse_key", parse)
    for one in known:
        assert carrier.find_known(MachineEntry(one.name, gateway=one.host_id)) == one
    assert len(read) == HOSTS


def test_looking_up_every_machine_parses_their_file_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    path = Path(machines.machines_path())
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.write_text("".join(f'[h{number}]\ngateway = "a{number}"\n' for number in range(HOSTS)))
    parsed: list[str] = []

    def parse(name: str, table: object) -> MachineEntry:
        parsed.append(name)
        return parse_machine(name, table)

    monkeypatch.setattr(machines, "parse_machine", parse)
    for number in range(HOSTS):
        assert machines.find_machine(f"h{number}").gateway == f"a{number}"
    assert len(parsed) == HOSTS
    # what a caller does with its mapping is its own
    read_machines().clear()
    assert len(read_machines()) == HOSTS
    os.utime(path, ns=(1, 1))
    machines.find_machine("h0")
    assert len(parsed) == 2 * HOSTS
