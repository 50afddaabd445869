"""Credentials files, which anybody may have written: what is no credentials is refused, and others cannot read or change them."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.errors import Conflict, Denied, NotFound, TmuxctlError, Usage
from tmuxctl.gateway.credentials import parse_credentials, read_credentials, write_credentials
from tmuxctl.gateway.server.authority.certificates import make_certificates
from tmuxctl.gateway.server.authority.members import Members
from tmuxctl.gateway.server.settings import GatewayFiles, make_settings
from tmuxctl.gateway.subjects import make_id, may_reply
from tmuxctl.vocabulary import GatewayRole


@pytest.fixture
def files(place: Path) -> GatewayFiles:
    """A gateway that was set up, and does not run."""
    made = GatewayFiles()
    made.write_settings(make_settings(made, ("127.0.0.1", 4222)))
    make_certificates(made, made.read_settings(), time.time())
    return made


@pytest.fixture
def good(files: GatewayFiles) -> dict[str, Any]:
    with files.locked():
        members = Members(files)
        members.accounts.make()
        return members.add(GatewayRole.HOST, None).to_json()


def test_what_is_printed_is_what_is_read(good: dict[str, Any], place: Path):
    parsed = parse_credentials(json.dumps(good), "-")
    assert parsed.to_json() == good
    write_credentials("kept.json", parsed)
    assert os.stat("kept.json").st_mode & 0o777 == 0o600
    assert read_credentials("kept.json") == parsed
    with pytest.raises(Conflict):
        write_credentials("kept.json", parsed)
    assert good["seed"] not in repr(parsed)


HOSTILE: list[dict[str, Any]] = [
    {"id": "../../etc/passwd"},
    {"id": "a" * 17},
    {"id": "*"},
    {"id": "A" * 16},
    {"id": "a" * 15 + "\n"},
    {"id": 7},
    {"role": "admin"},
    {"role": None},
    {"kind": "else"},
    {"format": 99},
    {"format": "1"},
    {"urls": []},
    {"urls": "tls://127.0.0.1:1"},
    {"urls": ["tls://127.0.0.1:1"] * 9},
    {"urls": ["nats://127.0.0.1:4222"]},
    {"urls": ["tls://user:word@127.0.0.1:4222"]},
    {"urls": ["tls://127.0.0.1"]},
    {"urls": ["tls://127.0.0.1:99999"]},
    {"urls": ["tls://127.0.0.1:4222/path"]},
    {"urls": ["tls://127.0.0.1:4222\n"]},
    {"urls": ["tls://127.0.0.1:4222", 3]},
    {"urls": ["tls://-x:4222"]},
    {"urls": ["tls://\x1b[31m:4222"]},
    {"seed": "SAAF4QTUPM4YYFEYNJ2DSM5HVX3XDMFHZVYNN4GCDMSTNWXY2QIYK2KRAE"},
    {"seed": "SU" + "A" * 55},
    {"seed": "SU" + "a" * 56},
    {"seed": ""},
    {"seed": None},
    {"ca": ""},
    {"ca": "no certificate"},
    {"ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"},
    {"ca": 3},
]


@pytest.mark.parametrize("number", range(len(HOSTILE)))
def test_what_no_gateway_wrote_is_refused(good: dict[str, Any], number: int):
    assert parse_credentials(json.dumps(good), "-")
    with pytest.raises(TmuxctlError) as found:
        parse_credentials(json.dumps(good | HOSTILE[number]), "file")
    assert found.value.reason in ("bad_credentials", "newer_format")
    assert "\x1b" not in str(found.value)


def test_every_key_is_needed_and_one_authority(good: dict[str, Any]):
    for key in good.keys() - {"format"}:
        with pytest.raises(Usage):
            parse_credentials(json.dumps({name: value for name, value in good.items() if name != key}), "-")
    with pytest.raises(Usage):
        parse_credentials(json.dumps(good | {"ca": good["ca"] * 2}), "-")


@pytest.mark.parametrize("text", ["", "[]", "null", "{", "[" * 100_000, '{"a":' * 10_000, "x" * 100_000, "\x00"])
def test_what_is_no_record_is_refused(text: str):
    with pytest.raises(Usage) as found:
        parse_credentials(text, "file")
    assert found.value.reason == "bad_credentials"


def test_the_certificate_of_a_server_is_no_authority(files: GatewayFiles, good: dict[str, Any]):
    server = Path(files.path("server.pem")).read_text()
    with pytest.raises(Usage):
        parse_credentials(json.dumps(good | {"ca": server}), "-")


def test_a_file_that_others_may_read_or_change_is_refused(good: dict[str, Any], place: Path):
    write_credentials("kept.json", parse_credentials(json.dumps(good), "-"))
    for mode in (0o644, 0o640, 0o620, 0o602):
        os.chmod("kept.json", mode)
        with pytest.raises(Denied):
            read_credentials("kept.json")
    os.chmod("kept.json", 0o600)
    assert read_credentials("kept.json")
    os.chmod(place, 0o777)
    with pytest.raises(Denied):
        read_credentials("kept.json")
    os.chmod(place, 0o700)


def test_only_a_regular_file_is_read(place: Path, good: dict[str, Any]):
    write_credentials("kept.json", parse_credentials(json.dumps(good), "-"))
    os.symlink("kept.json", "link.json")
    os.mkfifo("fifo.json", 0o600)
    os.mkdir("folder.json", 0o700)
    for name in ("link.json", "fifo.json", "folder.json"):
        with pytest.raises(Usage):
            read_credentials(name)
    with pytest.raises(NotFound):
        read_credentials("missing.json")


def test_where_a_host_may_reply():
    host, client, other = make_id(), make_id(), make_id()
    request = f"tmc.{host}.rpc.{client}"
    assert may_reply(host, request, f"tmc.{host}.reply.{client}.token")
    for wrong in (
        "",
        f"tmc.{host}.events",
        f"tmc.{other}.reply.{client}.token",
        f"tmc.{host}.reply.{other}.token",
        f"tmc.{host}.output.{client}.token",
        f"tmc.{host}.reply.{client}",
        f"tmc.{host}.reply.{client}.token.more",
    ):
        assert not may_reply(host, request, wrong)
