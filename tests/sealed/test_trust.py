"""Who is trusted is in files that a person reads and edits; a key that changed is a hard stop."""

from __future__ import annotations

import fcntl
import os
import stat

import pytest

from tmuxctl.errors import Conflict, Denied, NotFound, TmuxctlError, Usage
from tmuxctl.operations import RIGHTS
from tmuxctl.sealed.keys import fingerprint, key_text
from tmuxctl.sealed.trust import AuthorizedClient, AuthorizedClients, KnownMachine, KnownMachines
from tmuxctl.timing import SealedTiming

KEYS = [bytes((number,)) * 32 for number in range(1, 5)]


@pytest.fixture
def machines(tmp_path):
    return KnownMachines(str(tmp_path / "config" / "known_machines"))


@pytest.fixture
def clients(tmp_path):
    return AuthorizedClients(str(tmp_path / "config" / "authorized_clients"))


def write(file, text: str) -> None:
    os.makedirs(os.path.dirname(file.path), mode=0o700, exist_ok=True)
    with open(file.path, "w", newline="") as opened:
        opened.write(text)


def read(file) -> str:
    with open(file.path, newline="") as opened:
        return opened.read()


def refused(call, *arguments) -> TmuxctlError:
    with pytest.raises(TmuxctlError) as error:
        call(*arguments)
    return error.value


def test_what_was_added_is_found_by_name_and_by_key(machines, clients):
    assert machines.entries() == ()
    machine = KnownMachine("web1", "h_1", KEYS[0])
    machines.add(machine)
    assert machines.find("web1") == machines.find_key(KEYS[0]) == machine
    assert machines.find("web2") is machines.find_key(KEYS[1]) is None
    client = AuthorizedClient("laptop", KEYS[1], ("read", "write"), ("build-*", "web1/*"))
    clients.add(client)
    clients.add(AuthorizedClient("phone", KEYS[2]))
    assert clients.find_key(KEYS[1]) == client
    assert clients.entries()[1].rights == RIGHTS
    assert clients.entries()[1].sessions == ("*",)
    assert AuthorizedClients(clients.path).entries() == clients.entries()


def test_the_files_are_beside_the_settings(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert KnownMachines().path == str(tmp_path / "tmuxctl" / "known_machines")
    assert AuthorizedClients().path == str(tmp_path / "tmuxctl" / "authorized_clients")


def test_a_new_file_is_for_its_user_alone(clients):
    clients.add(AuthorizedClient("laptop", KEYS[0]))
    assert stat.S_IMODE(os.stat(clients.path).st_mode) == 0o600
    assert os.listdir(os.path.dirname(clients.path)) == ["authorized_clients"]


def test_a_changed_key_is_a_hard_stop_that_says_what_to_do(machines):
    machines.add(KnownMachine("web1", "h1", KEYS[0]))
    assert machines.check("web1", KEYS[0]).host_id == "h1"
    error = refused(machines.check, "web1", KEYS[1])
    assert isinstance(error, Denied)
    assert error.reason == "key_changed"
    assert "web1" in error.message
    assert all(fingerprint(key) in error.message for key in KEYS[:2])
    assert "tmuxctl machine rm web1" in error.hint
    assert refused(machines.check, "web2", KEYS[0]).reason == "no_key"


def test_other_lines_stay_as_they_are(clients):
    lines = [
        "# mine, since May\r\n",
        f"laptop  {key_text(KEYS[0])}\tread *\n",
        "\n",
        "   # the phone, é\u2028x\n",
        f"phone {key_text(KEYS[1])} read,write build-*,web1/*",
    ]
    write(clients, "".join(lines))
    clients.add(AuthorizedClient("tablet", KEYS[2], ("read",), ("*",)))
    added = f"tablet {key_text(KEYS[2])} read *\n"
    assert read(clients) == "".join(lines) + "\n" + added
    assert clients.remove("phone").key == KEYS[1]
    assert read(clients) == "".join(lines[:4]) + added
    clients.replace_key("laptop", KEYS[0], AuthorizedClient("laptop", KEYS[3], ("read",), ("*",)))
    assert read(clients) == lines[0] + f"laptop {key_text(KEYS[3])} read *\n" + "".join(lines[2:4]) + added


def test_a_revoked_client_is_unknown_at_once_to_who_read_the_file_before(clients):
    clients.add(AuthorizedClient("laptop", KEYS[0]))
    other = AuthorizedClients(clients.path)
    assert other.find_key(KEYS[0])
    clients.remove("laptop")
    assert other.find_key(KEYS[0]) is None
    os.unlink(clients.path)
    assert other.entries() == ()
    assert refused(clients.remove, "laptop").reason == "no_key"


def test_a_name_or_a_key_is_there_once(clients):
    clients.add(AuthorizedClient("laptop", KEYS[0]))
    for again in (AuthorizedClient("laptop", KEYS[1]), AuthorizedClient("other", KEYS[0])):
        error = refused(clients.add, again)
        assert isinstance(error, Conflict)
        assert error.reason == "exists"
    assert len(clients.entries()) == 1


def test_a_key_is_replaced_only_where_the_old_one_stands(machines):
    machines.add(KnownMachine("web1", "h1", KEYS[0]))
    wrong = refused(machines.replace_key, "web1", KEYS[1], KnownMachine("web1", "h1", KEYS[2]))
    assert isinstance(wrong, NotFound)
    machines.add(KnownMachine("web2", "h2", KEYS[3]))
    before = read(machines)
    assert refused(machines.replace_key, "web1", KEYS[0], KnownMachine("web1", "h1", KEYS[3])).reason == "bad_config"
    assert read(machines) == before
    machines.replace_key("web1", KEYS[0], KnownMachine("web1", "h1", KEYS[2]))
    assert machines.check("web1", KEYS[2])


KEY = key_text(KEYS[0])


@pytest.mark.parametrize(
    "line",
    [
        "laptop",
        f"laptop {KEY} read",
        f"laptop {KEY} read * more",
        f"laptop {KEY[:-2]} read *",
        f"laptop {KEY} reed *",
        f"laptop {KEY} read, *",
        f"laptop {KEY} read a,,b",
        f"laptop {KEY} read {'x' * 129}",
        f"laptop {KEY} read {','.join('abc' for _ in range(65))}",
        f"laptop {KEY} read $HOME",
        f"-laptop {KEY} read *",
        f"{'x' * 65} {KEY} read *",
        f"laptop {KEY} read *\nlaptop {key_text(KEYS[1])} read *",
        f"laptop {KEY} read *\nother {KEY} read *",
    ],
)
def test_a_file_with_a_line_that_is_none_trusts_no_client(clients, line):
    write(clients, f"phone {key_text(KEYS[3])} read *\n{line}\n")
    error = refused(clients.find_key, KEYS[3])
    assert isinstance(error, Usage)
    assert error.reason == "bad_config"
    assert "line 2" in error.message or "line 3" in error.message
    before = read(clients)
    assert refused(clients.add, AuthorizedClient("new", KEYS[2])).reason == "bad_config"
    assert read(clients) == before
    write(clients, f"phone {key_text(KEYS[3])} read *\n")
    assert clients.find_key(KEYS[3])


@pytest.mark.parametrize(
    "entry",
    [
        AuthorizedClient("a b", KEYS[0]),
        AuthorizedClient("x\ny", KEYS[0]),
        AuthorizedClient("a", KEYS[0], ()),
        AuthorizedClient("a", KEYS[0], ("all",)),
        AuthorizedClient("a", KEYS[0], ("read",), ()),
        AuthorizedClient("a", KEYS[0], ("read",), ("a b",)),
        AuthorizedClient("a", KEYS[0], ("read",), ("a,b",)),
    ],
)
def test_an_entry_that_cannot_be_is_not_written(clients, entry):
    assert isinstance(refused(clients.add, entry), Usage)
    assert not os.path.exists(clients.path)


def test_a_host_id_is_a_word(machines):
    for wrong in ("", "a b", "a.b", "x" * 65, ">"):
        assert isinstance(refused(machines.add, KnownMachine("web1", wrong, KEYS[0])), Usage)
    assert refused(machines.add, KnownMachine("-web1", "h1", KEYS[0])).reason == "bad_machine"
    assert machines.entries() == ()


def test_a_link_a_fifo_or_what_others_may_write_is_refused(clients, tmp_path):
    write(clients, f"laptop {KEY} read *\n")
    os.rename(clients.path, tmp_path / "elsewhere")
    for make in (lambda path: os.symlink(tmp_path / "elsewhere", path), os.mkfifo):
        make(clients.path)
        assert refused(clients.find_key, KEYS[0]).reason == "unsafe_file"
        assert refused(clients.add, AuthorizedClient("new", KEYS[1])).reason == "unsafe_file"
        os.unlink(clients.path)
    os.rename(tmp_path / "elsewhere", clients.path)
    assert clients.find_key(KEYS[0])
    os.chmod(clients.path, 0o666)
    assert refused(clients.find_key, KEYS[0]).reason == "unsafe_file"
    os.chmod(clients.path, 0o600)
    os.chmod(tmp_path / "config", 0o777)
    assert refused(AuthorizedClients(clients.path).find_key, KEYS[0]).reason == "unsafe_file"


def test_the_size_is_bounded(clients):
    write(clients, "#" * ((1 << 20) + 1))
    assert "1 MiB" in refused(clients.entries).message
    write(clients, "#" * ((1 << 20) - 10) + "\n")
    assert refused(clients.add, AuthorizedClient("new", KEYS[0])).reason == "too_many"
    assert clients.entries() == ()
    lines = [
        f"c{number} {key_text(number.to_bytes(32, 'little'))} read *" for number in range(2, clients.most_entries + 2)
    ]
    write(clients, "\n".join(lines))
    assert len(clients.entries()) == clients.most_entries
    assert refused(clients.add, AuthorizedClient("new", KEYS[0])).reason == "too_many"
    write(clients, "\n".join([*lines, f"new {KEY} read *"]))
    assert "entries" in refused(clients.entries).message


def test_a_file_is_changed_while_no_other_process_changes_one(clients):
    clients.add(AuthorizedClient("laptop", KEYS[0]))
    impatient = AuthorizedClients(clients.path, timing=SealedTiming(lock_seconds=0.0))
    held = os.open(os.path.dirname(clients.path), os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert refused(impatient.add, AuthorizedClient("phone", KEYS[1])).reason == "busy"
        assert refused(impatient.remove, "laptop").reason == "busy"
        assert impatient.find_key(KEYS[0])
    finally:
        os.close(held)
    assert impatient.remove("laptop")


def test_a_file_that_is_no_utf8_is_refused(clients):
    write(clients, "")
    with open(clients.path, "wb") as file:
        file.write(b"# \xff\n")
    assert refused(clients.entries).reason == "bad_config"
