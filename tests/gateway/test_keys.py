"""Keys of hosts and clients behind a gateway: shown, changed, forgotten, revoked; and pairing through ssh, which brings them."""

from __future__ import annotations

import json
import queue
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import list_pids, sweep
from gateway.conftest import TwoWays
from gateway.gateway_site import GatewaySite, until
from gateway.joined_host import JoinedHost, become_client, command

from tmuxctl.control import Control
from tmuxctl.errors import Conflict, Denied
from tmuxctl.gateway.carrier import GatewayCarrier
from tmuxctl.machines import MachineEntry, read_machines
from tmuxctl.rpc.records import VERSION, Header
from tmuxctl.sealed.keys import KeyFiles, fingerprint, key_text, make_key_pair
from tmuxctl.sealed.trust import AuthorizedClient, AuthorizedClients, KnownMachine, KnownMachines
from tmuxctl.vocabulary import Way

pytestmark = pytest.mark.night

STEPS = (
    "tmuxctl config set serve.gateway ~/build-box.json",
    "tmuxctl machine pair thathost --ssh ada@build-box",
)
"""What docs/gateway.md has a reader type on the host and on the client."""


@pytest.fixture
def host(gateway: GatewaySite, place: Path, needs: Callable[..., None]) -> Iterator[JoinedHost]:
    """A machine behind the gateway that serves; the test's own user is a client of the gateway."""
    needs("tmux")
    become_client(gateway)
    before = list_pids()
    made = JoinedHost(gateway, place / "there")
    made.start()
    yield made
    made.end()
    sweep(made.home, before)


@pytest.fixture
def thathost(host: JoinedHost) -> JoinedHost:
    """The same, paired by its code: `thathost` here, with a session."""
    done = host.pair("thathost", "--right", "read", "--right", "write", "--right", "create")
    assert done.returncode == 0, done.stderr
    assert command("new", "thathost/sh", "--", "sh").returncode == 0
    return host


def told(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """What a command that succeeds prints with --json."""
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def reason(done: subprocess.CompletedProcess[str]) -> str:
    """The reason of the error that a command with --json tells."""
    assert done.returncode
    found: str = json.loads((done.stdout or done.stderr).splitlines()[-1])["error"]["reason"]
    return found


def reached() -> subprocess.CompletedProcess[str]:
    """A look at a session of `thathost`."""
    return command("screen", "thathost/sh", "--json")


def known_key() -> str:
    """The fingerprint of the key that is known of `thathost`."""
    found = KnownMachines().find("thathost")
    assert found
    return fingerprint(found.key)


def test_the_clients_of_a_host_learn_its_new_key_and_the_old_one_is_forgotten(thathost: JoinedHost) -> None:
    first = told(thathost.command("gateway", "key", "--json"))["fingerprint"]
    assert known_key() == first
    made = told(thathost.command("gateway", "rotate-key", "--json"))
    second = made["fingerprint"]
    assert (made["old"], made["untold"]) == (first, ["tester"])
    assert reason(thathost.command("gateway", "forget-key", "--json")) == "untold"
    assert reason(thathost.command("gateway", "rotate-key", "--json")) == "exists"
    # the server that runs takes the new key, and tells it inside the channel
    done = reached()
    assert done.returncode == 0
    assert f"tmuxctl: thathost has a new key, as it says by the one before: {second}" in done.stderr
    assert known_key() == second
    done = reached()
    assert (done.returncode, done.stderr) == (0, "")
    (client,) = told(thathost.command("gateway", "clients", "--json"))["clients"]
    assert client["knows_key"] is True
    assert told(thathost.command("gateway", "forget-key", "--json"))["old"] is None
    assert reached().returncode == 0


def test_who_was_not_told_of_a_new_key_is_refused_once_the_old_one_is_forgotten(thathost: JoinedHost) -> None:
    assert thathost.command("gateway", "rotate-key").returncode == 0
    assert thathost.command("gateway", "forget-key", "--force").returncode == 0
    assert reason(reached()) == "key_changed"


def test_hosts_are_told_the_new_key_of_a_client_and_the_old_one_is_forgotten(thathost: JoinedHost) -> None:
    before = KeyFiles().load().current.public
    (client,) = told(thathost.command("gateway", "clients", "--json"))["clients"]
    assert client == {
        "name": "tester",
        "fingerprint": fingerprint(before),
        "rights": ["read", "write", "create"],
        "sessions": ["*"],
        "knows_key": None,
    }
    assert told(command("machine", "key", "--json"))["fingerprint"] == client["fingerprint"]
    changed = told(command("machine", "rotate-key", "--json"))
    assert (changed["told"], changed["problems"], changed["old"]) == (["thathost"], [], None)
    (after,) = told(thathost.command("gateway", "clients", "--json"))["clients"]
    assert after == {**client, "fingerprint": changed["fingerprint"]} != client
    assert reached().returncode == 0


def test_a_host_that_is_away_when_a_client_changes_its_key_is_told_when_it_is_back(thathost: JoinedHost) -> None:
    thathost.end()
    changed = told(command("machine", "rotate-key", "--json"))
    assert changed["told"] == []
    assert [one["reason"] for one in changed["problems"]] == ["host_offline"]
    assert changed["old"] is not None
    thathost.start()
    assert reached().returncode == 0
    again = told(command("machine", "rotate-key", "--json"))
    assert (again["fingerprint"], again["told"], again["old"]) == (changed["fingerprint"], ["thathost"], None)


def test_calls_under_way_go_on_while_their_client_changes_its_key(thathost: JoinedHost) -> None:
    with Control() as here:
        followed = here.read("thathost/sh", follow=True)
        assert here.ask("thathost/sh", b"echo one").text == "one"
        assert told(command("machine", "rotate-key", "--json"))["told"] == ["thathost"]
        assert here.ask("thathost/sh", b"echo two").text == "two"
        seen = ""
        while "two" not in seen.replace("echo two", ""):
            seen += next(followed).text


def test_a_client_cannot_take_the_key_of_another(thathost: JoinedHost) -> None:
    other = make_key_pair().public
    line = f"other {told(command('machine', 'key', '--json'))['key']} read *\n"
    AuthorizedClients(str(thathost.authorized)).add(AuthorizedClient("other", other))
    host_id = read_machines()["thathost"].gateway
    answers: queue.Queue[Header] = queue.Queue()
    entry = MachineEntry("thathost", gateway=host_id)
    carrier = GatewayCarrier(entry, lambda header, _: answers.put(header), lambda: None)
    carrier.send({"v": VERSION, "type": "client_key"}, other)
    carrier.send({"v": VERSION, "type": "client_key"}, b"short")
    # nothing can be agreed with it: events would be sealed for no client any more
    carrier.send({"v": VERSION, "type": "client_key"}, bytes(32))
    carrier.send({"v": VERSION, "type": "about"}, b"")
    assert answers.get(timeout=20)["name"] == "tester"
    # nor does a client take such a key for that of a host
    known = known_key()
    carrier._take_host_key(bytes(32))
    assert fingerprint(carrier._known.key) == known == known_key()
    carrier.close()
    assert reached().returncode == 0
    assert line.split()[1] in thathost.authorized.read_text()


def test_a_client_is_let_in_no_more(thathost: JoinedHost) -> None:
    assert reached().returncode == 0
    assert "tester is let in no more" in thathost.command("gateway", "unpair", "tester").stderr
    assert reason(reached()) == "unpaired"
    assert reason(thathost.command("gateway", "unpair", "tester", "--json")) == "no_key"
    assert told(thathost.command("gateway", "clients", "--json"))["clients"] == []


def test_a_machine_is_forgotten_with_its_key_and_paired_again(thathost: JoinedHost) -> None:
    assert command("machine", "rm", "thathost").returncode == 0
    assert KnownMachines().entries() == ()
    assert "thathost" not in read_machines()
    assert reason(command("machine", "rm", "thathost", "--json")) == "no_machine"
    assert thathost.pair("thathost").returncode == 0
    assert reached().returncode == 0


def test_a_host_with_a_new_id_is_paired_again_under_its_name(thathost: JoinedHost, gateway: GatewaySite) -> None:
    thathost.end()
    (thathost.home / "host.json").unlink()
    thathost.id = gateway.add("host", "--out", str(thathost.home / "host.json")).id
    thathost.start()
    done = thathost.pair("thathost")
    assert done.returncode == 0, done.stderr
    assert read_machines()["thathost"].gateway == thathost.id
    assert reached().returncode == 0


def test_a_known_name_with_another_key_stays_refused(thathost: JoinedHost) -> None:
    known = KnownMachines()
    known.replace_key("thathost", known.entries()[0].key, KnownMachine("thathost", thathost.id, make_key_pair().public))
    done = thathost.pair("thathost")
    assert done.returncode == Denied.exit
    assert "tmuxctl machine rm thathost" in done.stderr


def test_what_a_machine_that_is_reached_through_its_gateway_alone_is_like(thathost: JoinedHost) -> None:
    found = told(command("machine", "test", "thathost", "--json"))
    checks = {one["name"]: one for one in found["checks"]}
    assert list(checks) == ["credentials", "gateway", "host", "rights", "release", "path"]
    assert found["ok"]
    assert found["round_trip"] > 0
    assert known_key() in checks["host"]["found"]
    assert checks["rights"]["found"] == "read,write,create on sessions *, as tester"
    thathost.end()
    done = command("machine", "test", "thathost")
    assert done.returncode == 1
    assert "thathost is not connected to the gateway" in done.stdout


def test_a_setting_names_the_gateway_of_serve_and_of_the_other_commands(host: JoinedHost) -> None:
    host.end()
    assert reason(host.command("gateway", "authorize", "a", "b", "--json")) == "missing"
    path = str(host.home / "host.json")
    assert host.command("config", "set", "serve.gateway", path).returncode == 0
    assert told(host.command("gateway", "key", "--json"))["id"] == host.id
    host.start(gateway=())
    assert host.pair("thathost", credentials=()).returncode == 0
    assert command("new", "thathost/sh", "--", "sh").returncode == 0


def test_a_service_is_not_installed_whose_gateway_it_could_not_use(host: JoinedHost) -> None:
    words = ("service", "install", "--serve", "--dry-run", "--json")
    assert host.command("config", "set", "serve.gateway", str(host.home / "none.json")).returncode == 0
    assert reason(host.command(*words)) == "no_credentials"
    assert host.command("config", "set", "serve.gateway", str(host.home / "host.json")).returncode == 0
    assert "serve" in told(host.command(*words))["serve"]["text"]


def install_tmuxctl(there: TwoWays, *, with_settings: bool = True) -> None:
    """Put the command into the PATH of ssh, with the settings of the machine."""
    there.ssh.script("tmuxctl", f'exec {sys.executable} -m tmuxctl "$@"')
    if with_settings:
        path = str(there.host.home / "host.json")
        assert there.host.command("config", "set", "serve.gateway", path).returncode == 0


def test_a_machine_is_paired_through_ssh(behind_both: TwoWays) -> None:
    install_tmuxctl(behind_both)
    words = ("machine", "pair", "thathost", "--ssh", "box", "--called", "me", "--right", "read", "--right", "create")
    done = command(*words, "--only", "s*")
    assert done.returncode == 0, done.stderr
    assert known_key() == told(behind_both.host.command("gateway", "key", "--json"))["fingerprint"]
    (client,) = told(behind_both.host.command("gateway", "clients", "--json"))["clients"]
    assert (client["name"], client["rights"], client["sessions"]) == ("me", ["read", "create"], ["s*"])
    entry = read_machines()["thathost"]
    assert (entry.ssh, entry.gateway) == ("box", behind_both.host.id)
    behind_both.ssh.go_down()
    assert told(command("new", "thathost/sh", "--json", "--", "sh"))["machine"] == "thathost"
    assert reason(command("send", "thathost/sh", "x", "--json")) == "right"


def test_the_steps_of_the_page(behind_both: TwoWays) -> None:
    install_tmuxctl(behind_both, with_settings=False)
    (behind_both.host.home / "host.json").rename(behind_both.host.home / "build-box.json")
    for typed, environment in ((STEPS[0], behind_both.host.environment), (STEPS[1], None)):
        words = typed.replace("tmuxctl", f"{sys.executable} -m tmuxctl", 1).replace("ada@build-box", "box")
        subprocess.run(["sh", "-c", words], env=environment, check=True, timeout=60)
    assert read_machines()["thathost"].ways == (Way.SSH, Way.GATEWAY)


def test_why_a_machine_cannot_be_paired_through_ssh(behind_both: TwoWays) -> None:
    words = ("machine", "pair", "thathost", "--ssh", "box", "--json")
    assert reason(command(*words)) == "no_tmuxctl"
    install_tmuxctl(behind_both, with_settings=False)
    assert reason(command(*words)) == "no_credentials"
    behind_both.ssh.script("tmuxctl", 'echo "tmuxctl: gateway: no command authorize" >&2\nexit 2')
    assert reason(command(*words)) == "other_version"
    for lie in (
        "{}",
        "[]",
        '{"host": 1, "key": 2}',
        '{"host": "../x", "key": "AAAA", "rights": [], "sessions": []}',
        "{" * 99,
        f'{{"host": "a", "key": "{key_text(make_key_pair().public)}", "rights": ["read"], "sessions": ["*"]}}',
    ):
        behind_both.ssh.script("tmuxctl", f"printf '%s\\n' '{lie}'")
        assert reason(command(*words)) == "bad_answer"
    behind_both.ssh.script(
        "tmuxctl", """printf '%s\\n' '{"error": {"code": "denied", "message": "\\u001b[31mno"}}'\nexit 8"""
    )
    done = command(*words[:-1])
    assert done.returncode == Denied.exit
    assert "\x1b" not in done.stderr
    assert KnownMachines().entries() == ()
    assert read_machines() == {}


def test_a_client_whose_name_another_has_is_not_let_in(host: JoinedHost) -> None:
    assert host.command("config", "set", "serve.gateway", str(host.home / "host.json")).returncode == 0
    keys = [told(command("machine", "key", "--json"))["key"], key_text(make_key_pair().public)]
    assert host.command("gateway", "authorize", "laptop", keys[0]).returncode == 0
    assert host.command("gateway", "authorize", "laptop", keys[1]).returncode == Conflict.exit
    assert host.command("gateway", "authorize", "laptop", keys[0], "--right", "read").returncode == 0
    (client,) = told(host.command("gateway", "clients", "--json"))["clients"]
    assert client["rights"] == ["read"]
    until(lambda: "laptop" in host.authorized.read_text(), "no line")
