"""The server: what it listens at, who gets in, and that changes of that cut nobody else."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import stat
import subprocess
import urllib.request
from pathlib import Path

import nats.errors
import pytest
from gateway.conftest import Pair
from gateway.gateway_site import GatewaySite, connect, until

from tmuxctl.errors import Conflict, Denied, Failed, NotFound, Unreachable, Usage
from tmuxctl.gateway import subjects
from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.credentials import read_credentials
from tmuxctl.gateway.nats_client import GatewayClient
from tmuxctl.gateway.server import checks, running, status
from tmuxctl.gateway.server.authority import certificates, claims
from tmuxctl.gateway.server.authority.members import Members
from tmuxctl.gateway.server.settings import GatewayFiles, make_settings
from tmuxctl.timing import TIMING
from tmuxctl.value import changed


@pytest.mark.night
def test_all_that_is_written_is_for_this_user_alone(gateway: GatewaySite):
    gateway.add("host")
    for folder, _, files in os.walk(gateway.files.folder):
        if folder.startswith(gateway.files.path("store")):
            # inside a private folder
            continue
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
        open_to_others = [name for name in files if os.stat(os.path.join(folder, name)).st_mode & 0o077]
        assert not open_to_others


@pytest.mark.night
def test_nothing_is_told_before_tls(gateway: GatewaySite):
    with socket.create_connection(("127.0.0.1", gateway.port), 5) as plain:
        plain.sendall(b"CONNECT {}\r\nPING\r\n")
        plain.settimeout(20)
        # a TLS alert at most, never INFO
        with pytest.raises((ConnectionError, AssertionError)):
            assert b"INFO" in plain.recv(4096)


@pytest.mark.night
def test_websocket_has_the_same_certificate(gateway: GatewaySite):
    context = ssl.create_default_context(cadata=Path(gateway.files.path("ca.pem")).read_text())
    with (
        socket.create_connection(("127.0.0.1", gateway.websocket_port), 5) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as secured,
    ):
        secured.sendall(
            b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        )
        assert secured.recv(4096).startswith(b"HTTP/1.1 101")


def test_monitoring_is_reached_on_loopback_alone(gateway: GatewaySite):
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.monitor_port}/varz", timeout=5) as found:
        assert json.load(found)["server_name"] == gateway.files.read_settings().server
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", gateway.monitor_port), 5)


@pytest.mark.night
def test_by_default_it_listens_everywhere_and_monitoring_does_not(site: GatewaySite):
    site.start(
        f"--listen=0.0.0.0:{site.port}",
        f"--websocket-port={site.websocket_port}",
        f"--monitor-port={site.monitor_port}",
        "--name=127.0.0.2",
        "--name=localhost",
    )
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", site.monitor_port), 5)
    credentials = site.add("client")
    assert credentials.urls == (f"tls://127.0.0.2:{site.port}", f"tls://localhost:{site.port}")
    for url in credentials.urls:
        connect(changed(credentials, urls=(url,))).close()
    assert make_settings(site.files).host == "0.0.0.0"


@pytest.mark.night
def test_a_second_one_is_refused_while_it_runs(gateway: GatewaySite):
    refused = gateway.command("up")
    assert refused.returncode == 4
    assert "is running" in refused.stderr


@pytest.mark.night
def test_another_authority_is_not_trusted(pair: Pair, place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(place / "elsewhere"))
    other = GatewayFiles()
    made = certificates.make_certificates(other, pair.gateway.files.read_settings(), 1.8e9)
    assert made.authority
    with (
        Connection(changed(pair.client.credentials, ca=made.authority)) as refused,
        pytest.raises(Denied) as found,
    ):
        refused.wait_connected(10)
    assert found.value.reason == "bad_certificate"


@pytest.mark.night
def test_a_certificate_for_another_name_is_not_trusted(pair: Pair):
    # 127.0.0.2 does not listen here: a name that leads to the same server
    credentials = changed(pair.client.credentials, urls=(f"tls://localhost:{pair.gateway.port}",))
    with Connection(credentials) as refused, pytest.raises(Denied) as found:
        refused.wait_connected(10)
    assert found.value.reason == "bad_certificate"


@pytest.mark.night
def test_a_key_that_was_never_given_is_refused(pair: Pair, gateway: GatewaySite):
    other = gateway.add("client")
    removed = gateway.result("remove", other.id)
    assert removed["id"] == other.id
    assert removed["loaded"]
    with Connection(other) as refused, pytest.raises(Denied) as found:
        refused.wait_connected(10)
    assert found.value.reason == "gateway_refused"


@pytest.mark.parametrize("keyed", [True, False])
def test_without_members_it_is_open_to_nothing(gateway: GatewaySite, keyed: bool):
    assert gateway.result("ls")["members"] == []
    settings = gateway.files.read_settings()
    authority = certificates.find_certificate(gateway.files, settings).authority
    # signed by an account that this gateway's operator did not sign, or by nothing
    key = claims.sign_role_user(
        claims.make_seed(claims.ACCOUNT), claims.public_key(claims.make_seed(claims.ACCOUNT)), "x"
    )
    key = key if keyed else changed(key, claims="")

    async def enter() -> None:
        client = GatewayClient()
        context = ssl.create_default_context(cadata=authority)
        await client.open(settings.urls[0], context, key.seed, key.claims, connect_timeout=10)

    with pytest.raises(nats.errors.Error, match=r"Authorization Violation"):
        asyncio.run(enter())


@pytest.mark.night
def test_who_is_added_gets_in_and_who_is_there_stays(pair: Pair):
    with connect(pair.gateway.add("host", "a-label")):
        assert (pair.host.opened, pair.client.opened) == (1, 1)
        assert pair.host.connected.is_set()
    pair.host.publish(subjects.heartbeat(pair.host.credentials.id), b"here")
    pair.host.flush()
    assert pair.host.opened == 1


@pytest.mark.night
def test_who_is_removed_is_cut_at_once_and_others_are_not(pair: Pair):
    pair.gateway.result("remove", pair.host.credentials.id)
    until(lambda: isinstance(pair.host.last_error, Denied), "the host was not refused")
    assert not pair.host.connected.is_set()
    assert pair.client.opened == 1
    pair.client.flush()
    assert [one["id"] for one in pair.gateway.result("ls")["members"]] == [pair.client.credentials.id]


@pytest.mark.night
def test_a_new_key_ends_the_old_one(pair: Pair):
    member = pair.host.credentials.id
    rotated = read_credentials(pair.gateway.result("rotate", member, "--out", "new.json")["file"])
    assert rotated.id == member
    until(lambda: isinstance(pair.host.last_error, Denied), "the old key still holds")
    connect(rotated).close()


@pytest.mark.night
def test_a_file_that_is_there_is_not_replaced_and_nobody_is_let_in(gateway: GatewaySite, place: Path):
    (place / "there.json").write_text("mine")
    refused = gateway.command("add-host", "--out", "there.json")
    assert refused.returncode == 4
    assert (place / "there.json").read_text() == "mine"
    assert gateway.result("ls")["members"] == []


def test_the_label_is_in_no_subject_and_no_file_of_the_server(gateway: GatewaySite):
    added = gateway.add("host", "secretlabel")
    with connect(added) as host:
        host.publish_event(b"x", "1")
        listed = [one for one in gateway.result("ls")["members"] if one["label"] == "secretlabel"]
        assert listed
        config = Path(gateway.files.path("nats.conf")).read_text()
    assert "secretlabel" not in config + gateway.log
    for path in Path(gateway.files.path("store")).rglob("*"):
        assert not path.is_file() or b"secretlabel" not in path.read_bytes()


def test_status_tells_connections_by_id(pair: Pair):
    found = status.look(pair.gateway.files)
    assert {one.id for one in found.connections} == {pair.host.credentials.id, pair.client.credentials.id}
    assert [one.events for one in found.streams] == [0]
    pair.host.publish_event(b"x", "1")
    assert [(one.tenant, one.events) for one in status.look(pair.gateway.files).streams] == [("main", 1)]
    printed = pair.gateway.command("status")
    assert pair.host.credentials.id in printed.stdout


def test_status_of_one_that_does_not_run(gateway: GatewaySite):
    gateway.end()
    with pytest.raises(Unreachable) as found:
        status.look(gateway.files)
    assert found.value.reason == "not_running"


def test_without_a_gateway_commands_say_how_to_start_one(site: GatewaySite):
    for words in (("ls",), ("status",), ("add-host",), ("doctor",), ("remove", "a" * 16)):
        refused = site.command(*words)
        assert refused.returncode == 3, words
        assert "tmuxctl gateway up" in refused.stderr


@pytest.mark.night
def test_keys_given_while_it_does_not_run_hold_when_it_does(gateway: GatewaySite):
    gateway.end()
    added = gateway.result("add-host")
    assert not added["loaded"]
    gateway.start()
    connect(read_credentials(added["file"])).close()


@pytest.mark.night
def test_what_it_was_told_is_kept_for_the_next_time(gateway: GatewaySite):
    before = gateway.files.read_settings()
    authority = Path(gateway.files.path("ca.pem")).read_text()
    credentials = gateway.add("client")
    gateway.end(signal.SIGKILL)
    gateway.start("--json")
    assert gateway.files.read_settings() == before
    assert Path(gateway.files.path("ca.pem")).read_text() == authority
    connect(credentials).close()


def test_a_certificate_is_made_anew_before_it_ends(gateway: GatewaySite):
    settings = gateway.files.read_settings()
    first = certificates.find_certificate(gateway.files, settings)
    late = first.ends - (TIMING.gateway.renewal_days - 1) * 86400
    assert certificates.make_certificates(gateway.files, settings, late).ends > first.ends
    renamed = changed(settings, names=("gateway.example.org", "::1"))
    assert certificates.make_certificates(gateway.files, renamed, late).names == ("gateway.example.org", "::1")


@pytest.mark.night
def test_a_certificate_of_ones_own_is_shown_and_trusted_as_others_are(
    gateway: GatewaySite, place: Path, monkeypatch: pytest.MonkeyPatch
):
    cert, key = (gateway.files.path(name) for name in ("server.pem", "server.key"))
    for path, name in ((cert, "own.pem"), (key, "own.key")):
        (place / name).write_bytes(Path(path).read_bytes())
        (place / name).chmod(0o600)
    gateway.end()
    gateway.start("--cert=own.pem", "--key=own.key")
    credentials = gateway.add("client")
    assert credentials.ca is None
    with Connection(credentials) as refused, pytest.raises(Denied):
        refused.wait_connected(10)
    # what this machine trusts
    monkeypatch.setenv("SSL_CERT_FILE", gateway.files.path("ca.pem"))
    connect(credentials).close()


def test_doctor_finds_what_is_wrong(gateway: GatewaySite, monkeypatch: pytest.MonkeyPatch):
    found = checks.examine_gateway(gateway.files)
    assert found.ok, found
    os.chmod(gateway.files.path("ca.key"), 0o644)
    wrong = [one for one in checks.examine_gateway(gateway.files).checks if one.ok is False]
    assert [one.name for one in wrong] == ["files"]
    assert wrong[0].hint == f"chmod go= {gateway.files.path('ca.key')}"
    os.chmod(gateway.files.path("ca.key"), 0o600)
    gateway.end()
    stopped = gateway.command("doctor")
    assert stopped.returncode == 1
    assert "tmuxctl gateway up" in stopped.stdout
    gateway.files.write_settings(changed(gateway.files.read_settings(), names=("other.example.org",)))
    names = [one for one in checks.examine_gateway(gateway.files).checks if one.name == "names"]
    assert names
    assert names[0].ok is False


@pytest.mark.night
def test_doctor_checks_the_way_of_a_client(gateway: GatewaySite, place: Path):
    added = gateway.result("add-client", "--out", "client.json")
    assert gateway.command("doctor", "--credentials", "client.json").returncode == 0
    gateway.result("remove", added["id"])
    refused = gateway.command("doctor", "--credentials", "client.json")
    assert refused.returncode == 1
    assert "tmuxctl gateway rotate" in refused.stdout
    gateway.end()
    unreached = gateway.command("doctor", "--credentials", "client.json")
    assert unreached.returncode == 1
    assert "may this machine reach" in unreached.stdout


@pytest.mark.night
def test_members_that_were_changed_are_not_taken(gateway: GatewaySite):
    path = Path(gateway.files.path("members.json"))
    for text in ('{"members": [{"id": "x"}]}', "[]", "{", '{"members": 3}', '{"format": 99, "members": []}'):
        path.write_text(text)
        with pytest.raises(Failed):
            Members(gateway.files).list_members()


@pytest.mark.night
@pytest.mark.parametrize("name", ["", "x" * 65, "a\nb", "\x1b[31m"])
def test_labels_that_cannot_be(gateway: GatewaySite, name: str):
    assert gateway.command("add-host", name).returncode == 2


def test_ids_that_cannot_be(gateway: GatewaySite):
    with pytest.raises(Usage):
        Members(gateway.files).find("../x")
    with pytest.raises(NotFound):
        Members(gateway.files).find("a" * 16)


@pytest.mark.parametrize(
    "words",
    [
        ("--listen", "nowhere"),
        ("--listen", "127.0.0.1:4222", "--websocket-port", "4222"),
        ("--cert", "own.pem"),
        ("--name", "a b"),
        ("--name", "x:1"),
        ("--monitor-port", "70000"),
    ],
)
def test_what_up_does_not_take(site: GatewaySite, words: tuple[str, ...]):
    refused = site.command("up", *words)
    assert refused.returncode == 2, refused.stderr


def test_an_old_server_is_refused(place: Path, site: GatewaySite, monkeypatch: pytest.MonkeyPatch):
    script = place / "nats-server"
    script.write_text("#!/bin/sh\necho nats-server: v2.10.4\n")
    script.chmod(0o755)
    old = running.NatsServer(str(script), "2.10.4")
    assert not old.is_recent
    assert running.NatsServer("", "2.12.7").is_recent
    assert not running.NatsServer("", "2.9.10").is_recent


@pytest.mark.night
def test_the_configuration_is_one_that_the_server_takes(gateway: GatewaySite, nats_server: str):
    gateway.add("host")
    gateway.add("client")
    path = gateway.files.path("nats.conf")
    assert subprocess.run([nats_server, "-t", "-c", path], capture_output=True, check=False).returncode == 0


@pytest.mark.night
def test_two_that_change_it_at_once_wait_for_each_other(gateway: GatewaySite):
    with gateway.files.locked():
        refused = gateway.command("add-host")
    assert refused.returncode == Conflict.exit
