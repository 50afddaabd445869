"""Three nodes of one gateway: what is promised when one of them is lost, and when it is back; leaf nodes, and tenants."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.cluster_load import Load, loaded, seconds_until_well
from gateway.cluster_site import ClusterNode, ClusterSite
from gateway.gateway_site import GatewaySite, connect, until
from gateway.joined_host import JoinedHost, become_client
from gateway.switch import Switch
from gateway.test_gateway_connection import answering, asks
from gateway.test_spool import all_confirmed, make_gap, stored_data
from machines.interrupted_writes import check_writes_and_output

from tmuxctl.control import Control
from tmuxctl.errors import Denied, Timeout, TmuxctlError
from tmuxctl.gateway import subjects
from tmuxctl.gateway.carrier import client_credentials_path
from tmuxctl.gateway.connection import Connection
from tmuxctl.gateway.spool import EventPublisher, Spool
from tmuxctl.value import changed
from tools.ports import free_ports

LONGEST_SECONDS = 30.0
"""How long after the loss of a node requests are answered again. 10 s are promised, of a machine that has nothing else to do; what
was measured is printed."""

PAGE = Path(__file__).resolve().parent.parent.parent / "docs/cluster.md"

STEPS = (
    ("a.example.org", "tmuxctl gateway up --name a.example.org --cluster b.example.org --cluster c.example.org"),
    ("b.example.org", "tmuxctl gateway up --node gateway-node-b.example.org.json"),
    ("a.example.org", "tmuxctl gateway up --leaf-port 7422"),
    ("a.example.org", "tmuxctl gateway add-leaf gateway.site.example.org --out site.json"),
    ("a.example.org", "tmuxctl gateway add-host build-box --node gateway.site.example.org"),
    ("a.example.org", "tmuxctl gateway add-tenant lab"),
    ("a.example.org", "tmuxctl gateway add-host build-box --tenant lab"),
    ("a.example.org", "tmuxctl gateway ls"),
)
"""The commands of the page, and on which machine each is typed."""

ADDRESSES, MEMBERS = ("10.205.0.1", "10.205.0.2", "10.205.0.3"), "10.205.0.9"
"""Of the nodes, and of the machine of the host and client, where each has a network of its own."""

NAMES = ("127.0.11.1", "127.0.11.2", "127.0.11.3")


@pytest.fixture
def cluster(place: Path) -> Iterator[ClusterSite]:
    """Three nodes that run."""
    made = ClusterSite(place, NAMES)
    try:
        made.start()
        yield made
    finally:
        made.end()


@contextmanager
def busy(cluster: ClusterSite, place: Path) -> Iterator[Load]:
    """A host and a client that are busy, while this holds."""
    with loaded(cluster.first.add("host"), cluster.first.add("client"), str(place / "spool")) as made:
        yield made


@pytest.mark.night
@pytest.mark.parametrize("loss", [signal.SIGSTOP, signal.SIGKILL], ids=["cut", "killed"])
def test_the_leader_is_lost_and_back(cluster: ClusterSite, place: Path, loss: int) -> None:
    with busy(cluster, place) as load:
        lost = cluster.leader()
        began = time.monotonic()
        lost.end(loss) if loss == signal.SIGKILL else lost.kill(loss)
        answered, stored = seconds_until_well(load, began)
        print(f"requests again after {answered:.1f} s, events after {stored:.1f} s")
        assert answered < LONGEST_SECONDS
        if loss == signal.SIGKILL:
            cluster.restart(lost)
        else:
            # long enough that the others take it for gone
            time.sleep(8)
            lost.kill(signal.SIGCONT)
        until(cluster.is_whole, "the node is not whole again", 60)


@pytest.mark.night
def test_the_leader_is_cut_off_in_networks_of_their_own(place: Path) -> None:
    try:
        switch = Switch((*ADDRESSES, MEMBERS))
    except OSError as error:
        pytest.skip(f"no network namespaces: {error}")
    made = ClusterSite(place, ADDRESSES, [switch.inside(one) for one in ADDRESSES])
    try:
        made.start()
        for name in ("host", "client"):
            made.first.result(f"add-{name}", "--out", str(place / f"{name}.json"))
        words = [str(place / "host.json"), str(place / "client.json"), str(place / "spool")]
        with subprocess.Popen(
            [*switch.inside(MEMBERS), sys.executable, "-m", "gateway.cluster_load", *words],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as load:
            assert load.stdin
            assert load.stdout
            assert json.loads(load.stdout.readline()) == "goes on"
            lost = made.leader()
            switch.cut(lost.name)
            load.stdin.write("\n")
            load.stdin.flush()
            answered, stored = json.loads(load.stdout.readline())
            print(f"requests again after {answered:.1f} s, events after {stored:.1f} s")
            assert answered < LONGEST_SECONDS
            switch.heal(lost.name)
            until(made.is_whole, "the node is not whole again", 60)
            load.stdin.close()
            # it ends with an error unless each event is stored once
            assert json.loads(load.stdout.readline()) > 20
            assert load.wait(60) == 0
    finally:
        made.end()
        switch.close()


@pytest.mark.night
def test_verbs_go_on_when_the_node_of_host_and_client_is_cut(
    cluster: ClusterSite, place: Path, needs: Callable[..., None]
) -> None:
    needs("tmux")
    become_client(cluster.first)
    before = list_pids()
    host = JoinedHost(cluster.first, place / "there")
    lost = cluster.leader()
    for path in (host.home / "host.json", Path(client_credentials_path())):
        told = json.loads(path.read_text())
        told["urls"].sort(key=lambda url: lost.name not in url)
        path.write_text(json.dumps(told))
    passed: list[float] = []
    try:
        host.start()
        assert host.pair("thathost").returncode == 0
        with Control(resident=True) as here:

            def interrupt() -> threading.Thread:
                began = time.monotonic()
                lost.kill(signal.SIGSTOP)

                def heal() -> None:
                    while not passed:
                        with suppress(TmuxctlError):
                            here.screen("thathost/out")
                            passed.append(time.monotonic() - began)
                    time.sleep(5)
                    lost.kill(signal.SIGCONT)

                healing = threading.Thread(target=heal)
                healing.start()
                return healing

            results = check_writes_and_output(
                here, "thathost", host.home / "taken", interrupt, lambda: Control(resident=True)
            )
        print(f"verbs again after {passed[0]:.1f} s; not done at once: {[one for one in results if one != 'done']}")
        assert passed[0] < LONGEST_SECONDS
        until(cluster.is_whole, "the node is not whole again", 60)
    finally:
        host.end()
        sweep(host.home, before)


@pytest.mark.night
def test_each_node_is_lost_in_turn(cluster: ClusterSite, place: Path) -> None:
    with busy(cluster, place) as load:
        for lost in cluster.nodes:
            began = time.monotonic()
            lost.end(signal.SIGKILL)
            assert seconds_until_well(load, began)[0] < LONGEST_SECONDS
            cluster.restart(lost)
            until(cluster.is_whole, "the node is not whole again", 60)


@pytest.mark.night
def test_a_node_whose_disk_was_lost_is_whole_again_with_its_file(cluster: ClusterSite, place: Path) -> None:
    with busy(cluster, place):
        lost = cluster.nodes[1]
        lost.end(signal.SIGKILL)
        shutil.rmtree(lost.home / ".local/state/tmuxctl/gateway")
        cluster.start_anew(lost)
        until(cluster.is_whole, "the node is not whole again", 60)


@pytest.mark.night
def test_a_member_that_is_removed_while_a_node_is_away_does_not_get_in_there(cluster: ClusterSite) -> None:
    away = cluster.nodes[2]
    gone = cluster.first.add("client")
    stays = cluster.first.add("client")
    away.end(signal.SIGKILL)
    assert cluster.first.result("remove", gone.id)["loaded"] is True
    for one in cluster.nodes[:2]:
        assert refused(changed(gone, urls=url_of(cluster, one)))
    cluster.restart(away)
    until(lambda: refused(changed(gone, urls=url_of(cluster, away))), "the node lets in who was removed")
    connect(changed(stays, urls=url_of(cluster, away))).close()


def url_of(cluster: ClusterSite, node: ClusterNode) -> tuple[str, ...]:
    return (f"tls://{node.name}:{cluster.port}",)


def refused(credentials) -> bool:
    """Whether the gateway refuses a key; not whether it is away."""
    with Connection(credentials) as connection:
        try:
            connection.wait_connected(5)
        except Denied as error:
            return error.reason == "gateway_refused"
        except TmuxctlError:
            pass
    return False


@pytest.mark.night
def test_two_nodes_have_one_connection_by_which_a_leader_that_was_cut_off_hears_of_the_new_one_before_any_event(
    cluster: ClusterSite,
) -> None:
    # those that both opened at once are closed but for one
    until(
        lambda: (
            [sorted(cluster.list_routes(one)) for one in cluster.nodes]
            == [[other for other in NAMES if other != one] for one in NAMES]
        ),
        "not one connection for each",
    )


@pytest.mark.night
def test_status_tells_leader_lag_and_who_is_away(cluster: ClusterSite) -> None:
    found = cluster.first.result("status")
    assert sorted(one["name"] for one in found["nodes"]) == sorted(NAMES)
    assert [one["leads"] for one in found["nodes"]].count(True) == 1
    (stream,) = found["streams"]
    assert stream["leader"] in NAMES
    assert len(stream["replicas"]) == 2
    printed = cluster.first.command("status").stdout
    assert f"leader {stream['leader']}" in printed
    cluster.nodes[1].end(signal.SIGKILL)
    until(
        lambda: [one["name"] for one in cluster.first.result("status")["nodes"] if one["away"]] == [NAMES[1]],
        "the node is not told as away",
    )
    assert any(line.split()[:2] == [NAMES[1], "away"] for line in cluster.first.command("status").stdout.splitlines())


def test_a_node_has_no_keys(cluster: ClusterSite) -> None:
    node = cluster.nodes[1]
    done = node.command("add-host")
    assert done.returncode
    assert "has no keys" in done.stderr
    held = [path.read_bytes() for path in (node.home / ".local/state/tmuxctl/gateway").rglob("*") if path.is_file()]
    accounts = json.loads((cluster.first.home / ".local/state/tmuxctl/gateway/accounts.json").read_text())
    seeds = [accounts["operator"], accounts["system"]]
    seeds += [tenant[name] for tenant in accounts["tenants"] for name in ("account", "store", "host", "client")]
    assert not any(seed.encode() in data for seed in seeds for data in held)


@pytest.mark.night
def test_who_has_no_certificate_of_a_node_does_not_join(cluster: ClusterSite, place: Path) -> None:
    other = ClusterSite(place / "other", ("127.0.12.1", "127.0.12.2", "127.0.12.3"))
    try:
        other.start()
        stranger = other.nodes[2]
        # it believes to belong to the first cluster: its own keys and certificates are of another one
        path = stranger.home / ".local/state/tmuxctl/gateway/nats.conf"
        config = json.loads(path.read_text())
        port = json.loads((cluster.first.home / ".local/state/tmuxctl/gateway/nats.conf").read_text())["cluster"][
            "port"
        ]
        config["cluster"]["routes"] = [f"tls://{NAMES[0]}:{port}"]
        path.write_text(json.dumps(config))
        stranger.kill(signal.SIGHUP)
        until(lambda: "TLS route handshake error" in stranger.read_log(), "it does not try")
        assert cluster.is_whole()
    finally:
        other.end()


def test_tenants_do_not_reach_each_other(gateway: GatewaySite) -> None:
    assert gateway.result("add-tenant", "lab") == {"name": "lab", "loaded": True}
    with (
        connect(gateway.add("host")) as host,
        connect(gateway.add("host", "--tenant", "lab")) as theirs,
        connect(gateway.add("client", "--tenant", "lab")) as client,
        answering(host),
        answering(theirs),
    ):
        assert asks(client, theirs.credentials.id)
        assert not asks(client, host.credentials.id)
        host.publish_event(b"ours", "1")
        theirs.publish_event(b"theirs", "1")
        assert stored_data(client) == [b"theirs"]
        feed = client.subscribe(subjects.feed(subjects.ANY), of_stream=True)
        host.publish_event(b"ours again", "2")
        theirs.publish_event(b"theirs again", "2")
        assert feed.next(5).data == b"theirs again"
        with pytest.raises(Timeout):
            feed.next(0.3)
    listed = {one["id"]: one["tenant"] for one in gateway.result("ls")["members"]}
    assert listed[theirs.credentials.id] == "lab"
    assert listed[host.credentials.id] == "main"


def start_with_leaves(site: GatewaySite) -> None:
    """Run a gateway that takes leaf nodes."""
    (leaf_port,) = free_ports(1)
    site.start(
        f"--listen=127.0.0.1:{site.port}",
        f"--websocket-port={site.websocket_port}",
        f"--monitor-port={site.monitor_port}",
        f"--leaf-port={leaf_port}",
    )


@pytest.mark.night
def test_hosts_of_a_site_reach_each_other_while_the_way_to_the_gateway_is_cut(place: Path, site: GatewaySite) -> None:
    start_with_leaves(site)
    leaf = ClusterNode("127.0.11.9", place / "leaf")
    made = site.result("add-leaf", leaf.name)["file"]
    (leaf.home / "leaf.json").write_bytes(Path(made).read_bytes())
    (monitor,) = free_ports(1)
    leaf.start(f"--listen={leaf.name}:{site.port}", f"--monitor-port={monitor}", "--node=leaf.json")
    try:
        with (
            connect(site.add("host", "--node", leaf.name)) as host,
            connect(site.add("client", "--node", leaf.name)) as near,
            connect(site.add("client")) as far,
            answering(host),
            spooled(host, place) as spool,
        ):
            until(lambda: asks(far, host.credentials.id), "the site is not reached")
            assert asks(near, host.credentials.id)
            spool.append(b"before")
            until(lambda: all_confirmed(spool), "an event of the site is not stored")
            assert site.process
            site.process.send_signal(signal.SIGSTOP)
            try:
                assert asks(near, host.credentials.id)
                spool.append(b"during")
            finally:
                site.process.send_signal(signal.SIGCONT)
            until(lambda: all_confirmed(spool), "an event of the cut is not stored", 60)
            spool.append(b"after")
            until(lambda: all_confirmed(spool), "an event after the cut is not stored", 60)
            far.wait_connected(20)
            until(lambda: asks(far, host.credentials.id), "the site is not reached again", 60)
            assert stored_data(far) == stored_data(near) == [b"before", b"during", b"after"]
            # who is removed at the gateway is cut at the site
            site.result("remove", near.credentials.id)
            until(lambda: isinstance(near.last_error, Denied), "who was removed stays at the site")
    finally:
        leaf.end()


def test_a_key_is_for_one_kind_of_connection(place: Path, site: GatewaySite) -> None:
    start_with_leaves(site)
    host = site.add("host")
    told = json.loads(Path(site.result("add-leaf", "127.0.11.9")["file"]).read_text())
    for user in (told["leaf"]["user"], told["leaf"]["observer"]):
        assert refused(changed(host, seed=user["seed"], jwt=user["claims"]))
    leaf = ClusterNode("127.0.11.9", place / "leaf")
    told["leaf"]["user"] = {"seed": host.seed, "public": "", "claims": host.jwt}
    (leaf.home / "leaf.json").write_text(json.dumps(told))
    (monitor,) = free_ports(1)
    leaf.start(f"--listen={leaf.name}:{site.port}", f"--monitor-port={monitor}", "--node=leaf.json")
    try:
        until(lambda: "Authorization Violation" in leaf.read_log(), "a host is taken for a leaf node")
    finally:
        leaf.end()


@contextmanager
def spooled(host: Connection, place: Path) -> Iterator[Spool]:
    """A spool whose events are published."""
    spool = Spool(str(place / "spool"))
    publisher = EventPublisher(host, spool, make_gap)
    try:
        yield spool
    finally:
        publisher.close()
        with suppress(TmuxctlError):
            spool.close()


@pytest.mark.night
def test_the_steps_of_the_page(place: Path) -> None:
    blocks = re.findall(r"^```sh\n(.+?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    typed = [re.sub(r"\s+#\s.*", "", line) for block in blocks for line in block.splitlines()]
    assert typed == [command for _, command in STEPS]
    names = ("a.example.org", "b.example.org", "c.example.org", "gateway.site.example.org")
    meant = {name: f"127.0.14.{number}" for number, name in enumerate(names, 1)}
    made = ClusterSite(place, list(meant.values())[:3])
    site = ClusterNode(meant[names[3]], place / "site")
    nodes = dict(zip(names, [*made.nodes, site], strict=True))

    def type_command(name: str, command: str) -> str:
        """Type a command on a machine; the addresses that stand for names are those of loopback, with ports of their own."""
        for shown, address in meant.items():
            command = command.replace(shown, address)
        node, words = nodes[name], command.replace("7422", str(made.leaf_port)).split()[2:]
        if words[0] != "up":
            done = node.command(*words)
            assert done.returncode == 0, done.stderr
            return done.stdout
        first = not (node.home / "gateway.log").exists()
        node.end()
        own = made.listen(node) if first else ()
        node.start(*words[1:], *own, *(made.ports if "--name" in words else ()))
        return ""

    def bring(name: str, file: str) -> None:
        (nodes[name].home / file).write_bytes((made.first.home / file).read_bytes())

    printed = ""
    try:
        for number, (name, command) in enumerate(STEPS):
            printed = type_command(name, command)
            if number == 0:
                for other in names[1:3]:
                    bring(other, f"gateway-node-{meant[other]}.json")
            if number == 1:
                type_command("c.example.org", command.replace("b.example.org", "c.example.org"))
            if number in (1, 2):
                until(made.is_whole, "the nodes do not find each other", 60)
        assert sum("build-box" in line for line in printed.splitlines()) == 2
        bring(names[3], "site.json")
        type_command(names[3], "tmuxctl gateway up --node site.json")
        until(lambda: "Leafnode connection created" in site.read_log(), "the site does not reach the gateway")
    finally:
        site.end()
        made.end()


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--cluster=a.example",), "bad_cluster"),
        (("--cluster=a.example", "--cluster=a b"), "bad_name"),
        (("--node=none",), "bad_file"),
        (("--node=none", "--name=a.example"), "conflicting"),
        (("--node=none", "--cluster=a.example", "--cluster=b.example"), "conflicting"),
        (("--node=none", "--cluster-port=6222"), "conflicting"),
    ],
)
def test_what_a_cluster_cannot_be(site: GatewaySite, words: tuple[str, ...], reason: str) -> None:
    done = site.command("up", f"--listen=127.0.0.1:{site.port}", *words, "--json")
    assert (done.returncode, json.loads(done.stderr)["error"]["reason"]) == (2, reason)
