"""This machine's own key: made once, for its user alone, and changed without a break."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import json
import os
import stat

import pytest

from tmuxctl.errors import Conflict, Denied, Usage
from tmuxctl.sealed.keys import KeyFiles, check_public_key, fingerprint, key_text, make_key_pair, pair_of, parse_key
from tmuxctl.timing import SealedTiming
from tmuxctl.untrusted import NewerFormat


@pytest.fixture
def files(tmp_path):
    return KeyFiles(str(tmp_path / "state" / "keys"))


def read(path: str) -> str:
    with open(path) as file:
        return file.read()


def refused(files: KeyFiles) -> str:
    with pytest.raises(Denied) as error:
        files.load()
    return error.value.reason


def test_the_public_key_is_that_of_rfc_7748():
    # section 6.1
    alice = bytes.fromhex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a")
    public = "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a"
    assert pair_of(alice).public.hex() == public


def test_a_key_is_made_once_for_its_user_alone(files):
    keys = files.load()
    assert files.load() == keys
    assert KeyFiles(files.folder).load() == keys
    assert keys.old is None
    assert stat.S_IMODE(os.stat(files.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(files.folder).st_mode) == 0o700


def test_a_key_is_made_while_no_other_process_makes_one(files):
    os.makedirs(files.folder, mode=0o700)
    held = os.open(files.folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        impatient = KeyFiles(files.folder, timing=SealedTiming(lock_seconds=0.0))
        for change in (impatient.load, impatient.rotate, impatient.forget_old):
            with pytest.raises(Conflict) as error:
                change()
            assert error.value.reason == "busy"
        assert not os.listdir(files.folder)
    finally:
        os.close(held)
    assert impatient.load() == files.load()


def test_the_default_folder_is_in_the_state_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert KeyFiles().path == str(tmp_path / "tmuxctl" / "keys" / "static.json")


def test_a_changed_key_keeps_the_one_before_until_it_is_forgotten(files):
    first = files.load().current
    keys = files.rotate()
    assert keys.old == first
    assert keys.all == (keys.current, first)
    assert files.load() == keys
    again = files.rotate()
    assert again.all == (again.current, keys.current)
    assert files.forget_old().all == (again.current,)
    assert files.load().all == (again.current,)


def test_a_file_of_others_is_refused(files):
    files.load()
    os.chmod(files.path, 0o640)
    assert refused(files) == "bad_mode"
    os.chmod(files.path, 0o600)
    os.chmod(files.folder, 0o755)
    assert refused(files) == "bad_mode"
    os.chmod(files.folder, 0o700)
    os.chmod(os.path.dirname(files.folder), 0o777)
    assert refused(files) == "unsafe_file"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_owner_is_refused(files):
    files.load()
    os.chown(files.path, 12345, -1)
    assert refused(files) == "bad_owner"


def test_a_link_a_fifo_or_a_folder_is_refused_and_left_alone(files, tmp_path):
    elsewhere = KeyFiles(str(tmp_path / "elsewhere"))
    elsewhere.load()
    kept = read(elsewhere.path)
    files.load()
    for make in (lambda path: os.symlink(elsewhere.path, path), os.mkfifo, os.mkdir):
        os.rmdir(files.path) if os.path.isdir(files.path) else os.unlink(files.path)
        make(files.path)
        assert refused(files) == "unsafe_file"
        with pytest.raises(Denied):
            files.rotate()
    assert read(elsewhere.path) == kept


def test_a_folder_that_is_a_link_is_refused(files, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    os.mkdir(os.path.dirname(files.folder))
    os.symlink(elsewhere, files.folder)
    assert refused(files) == "bad_owner"
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        '{"current": 1}',
        '{"current": "AAAA"}',
        json.dumps({"current": "A" * 42 + "B="}),
        json.dumps({"current": base64.b64encode(bytes(32)).decode(), "old": "x"}),
        "[" * 4000,
        " " * 5000,
    ],
)
def test_a_file_without_a_key_is_refused_and_left_alone(files, text):
    files.load()
    with open(files.path, "w") as file:
        file.write(text)
    assert refused(files) == "bad_key"
    assert read(files.path) == text


def test_a_file_of_a_later_release_is_refused(files):
    files.load()
    with open(files.path, "w") as file:
        json.dump({"format": 99, "keys": []}, file)
    with pytest.raises(NewerFormat):
        files.load()


def test_a_fingerprint_is_written_as_ssh_writes_it():
    public = bytes(range(32))
    digest = base64.b64encode(hashlib.sha256(public).digest()).decode()
    assert fingerprint(public) == f"SHA256:{digest[:43]}"
    assert digest[43:] == "="


def test_a_private_key_is_not_shown():
    keys = make_key_pair()
    shown = repr(keys)
    assert shown == f"KeyPair({fingerprint(keys.public)})"


@pytest.mark.parametrize(
    "text", ["", "x", "A" * 44, "A" * 43 + "=" + "\n", "A" * 42 + "B=", "é" * 44, "A" * 39 + "AAA=" + "="]
)
def test_what_is_no_key_is_refused(text):
    with pytest.raises(Usage) as error:
        parse_key(text)
    assert error.value.reason == "bad_key"


def test_the_text_of_a_key_is_read_back():
    public = make_key_pair().public
    assert parse_key(key_text(public)) == public


P = 2**255 - 19
SMALL_ORDER = [
    number.to_bytes(32, "little")
    for point in (
        0,
        1,
        325606250916557431795983626356110631294008115727848805560023387167927233504,
        39382357235489614581723060781553021112529911719440698176882885853963445705823,
        P - 1,
        P,
        P + 1,
    )
    for number in (point, point + 2**255)
]
"""All 7 encodings of points of small order (D. J. Bernstein, "A state-of-the-art Diffie-Hellman function"), without and with the
highest bit, which X25519 ignores."""


@pytest.mark.parametrize("key", SMALL_ORDER, ids=bytes.hex)
def test_a_key_with_which_all_agree_on_zeros_is_refused(key):
    for take in (lambda: check_public_key(key), lambda: parse_key(key_text(key))):
        with pytest.raises(Usage) as error:
            take()
        assert error.value.reason == "bad_key"


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_key_has_32_bytes(size):
    with pytest.raises(Usage):
        check_public_key(bytes([9]) * size)
