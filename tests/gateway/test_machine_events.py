"""Events of a host reach its clients whenever they are there: each once, in order, over kills, cuts and a hostile gateway."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from conftest import list_pids, sweep
from gateway.conftest import Pair
from gateway.gateway_site import PATIENCE, GatewaySite, connect, until
from gateway.joined_host import JoinedHost, become_client, command
from gateway.test_event_order import event_of
from gateway.test_gateway_connection import relayed
from gateway.test_joined import add_spy

from tmuxctl.errors import NotFound, TmuxctlError
from tmuxctl.gateway import subjects
from tmuxctl.gateway.carrier import client_credentials_path
from tmuxctl.gateway.connection import CarriedMessage, Connection
from tmuxctl.gateway.credentials import write_credentials
from tmuxctl.gateway.events.reading import EventReader
from tmuxctl.gateway.events.recording import EventRecorder, spool_folder
from tmuxctl.gateway.spool import Spool
from tmuxctl.machines import MachineEntry
from tmuxctl.operations import Call, Cancellation, Cancelled, under
from tmuxctl.results import MachineEvent
from tmuxctl.sealed.keys import KeyFiles, key_text, make_key_pair
from tmuxctl.sealed.trust import AuthorizedClient, AuthorizedClients, KnownMachine, KnownMachines
from tmuxctl.timing import TIMING
from tmuxctl.value import changed

QUICK = changed(TIMING.gateway, heartbeat_seconds=0.1, silent_seconds=1.0, follow_seconds=0.05)

ALL = ("read", "write", "create", "kill")


@pytest.fixture
def joined(pair: Pair) -> Pair:
    """A host and a client that know each other; both have the key of this user."""
    key = KeyFiles().load().current.public
    Path(client_credentials_path()).parent.mkdir(mode=0o700, parents=True)
    write_credentials(client_credentials_path(), pair.client.credentials)
    KnownMachines().add(KnownMachine("far", pair.host.credentials.id, key))
    AuthorizedClients().add(AuthorizedClient("here", key))
    return pair


@contextmanager
def recording(host: Connection, spool: Spool | None = None) -> Iterator[EventRecorder]:
    with closing(EventRecorder(host, spool=spool, timing=QUICK)) as made:
        yield made


def reader(joined: Pair, since: float | None = None) -> EventReader:
    return EventReader(MachineEntry(name="far", gateway=joined.host.credentials.id), since, timing=QUICK)


def read(joined: Pair, since: float | None = None) -> list[MachineEvent]:
    with reader(joined, since) as events:
        return list(events.read())


def whys(found: list[MachineEvent]) -> list[str | None]:
    """What is told of each: why, or how many are missing."""
    return [one.event.why if one.event else f"{one.kind} {one.lost}" for one in found]


def all_stored(joined: Pair) -> bool:
    """Whether the spool of the host has nothing that is not confirmed."""
    folder = Path(spool_folder(joined.host.credentials.id))
    confirmed = json.loads((folder / "confirmed.json").read_text())["confirmed"]
    with suppress(OSError):
        newest = max((one for one in folder.glob("*.events")), default=None)
        data = newest.read_bytes() if newest else b""
        at, last = 0, confirmed
        while at + 16 <= len(data):
            last = int.from_bytes(data[at + 8 : at + 16], "big")
            at += 16 + int.from_bytes(data[at : at + 4], "big")
        return bool(last == confirmed)
    return False


def record_all(joined: Pair, events: list[str], session: str = "sh") -> None:
    with recording(joined.host) as recorder:
        for why in events:
            recorder.record(event_of(session, why))
        until(lambda: all_stored(joined), "not stored")


class Follower:
    """Follows the events of `far` in a thread."""

    def __init__(self, joined: Pair, since: float | None = None) -> None:
        self.found: list[MachineEvent] = []
        self.over = Cancellation()
        self.error: TmuxctlError | None = None
        self._thread = threading.Thread(target=self._run, args=(joined, since), daemon=True)
        self._thread.start()

    def _run(self, joined: Pair, since: float | None) -> None:
        try:
            with under(Call("", cancelled=self.over)), reader(joined, since) as events:
                for one in events.follow():
                    self.found.append(one)
        except Cancelled:
            pass
        except TmuxctlError as error:
            self.error = error

    @property
    def events(self) -> list[str | None]:
        return whys([one for one in self.found if one.kind not in ("silent", "heard")])

    def close(self) -> None:
        self.over.set()
        self._thread.join(20)
        assert not self._thread.is_alive()


@pytest.mark.night
def test_who_was_away_reads_what_happened_in_order(joined: Pair):
    record_all(joined, ["one", "two", "three"])
    joined.host.close()
    found = read(joined)
    assert whys(found) == ["one", "two", "three"]
    assert {one.event.session for one in found if one.event} == {"far/sh"}
    numbers = [one.number for one in found]
    assert numbers == sorted(set(numbers))  # type: ignore[type-var]
    assert whys(read(joined, numbers[0])) == ["two", "three"]
    assert read(joined, numbers[-1]) == []


@pytest.mark.night
def test_it_begins_at_a_moment(joined: Pair):
    with recording(joined.host) as recorder:
        recorder.record(event_of("sh", "old", time="2020-01-01T00:00:00.000Z"))
        recorder.record(event_of("sh", "new", time="2999-01-01T00:00:00.000Z"))
        until(lambda: all_stored(joined), "not stored")
    assert whys(read(joined, 60.0)) == ["new"]
    assert whys(read(joined)) == ["old", "new"]


@pytest.mark.night
def test_a_gateway_that_is_killed_in_the_middle_of_300_events(joined: Pair):
    with closing(Follower(joined)) as follower, recording(joined.host) as recorder:
        for number in range(300):
            recorder.record(event_of("sh", str(number)))
            if number == 100:
                until(lambda: len(follower.events) > 20, "nothing follows")
                joined.gateway.end(signal.SIGKILL)
            if number == 200:
                joined.gateway.start()
        until(lambda: len(follower.events) >= 300, f"{len(follower.events)} came", 60)
        assert follower.events == [str(number) for number in range(300)]
    joined.client.wait_connected(10)
    assert whys(read(joined)) == [str(number) for number in range(300)]


@pytest.mark.night
def test_a_process_of_the_host_that_is_killed_loses_nothing_that_was_recorded(joined: Pair, place: Path):
    joined.host.close()
    path = place / "host.json"
    write_credentials(str(path), joined.host.credentials)
    told = -1
    with closing(Follower(joined)) as follower:
        for _ in range(4):
            with subprocess.Popen(
                [sys.executable, "-m", "gateway.event_writer", str(path), str(told + 1)],
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
            ) as process:
                assert process.stdout
                lines = [process.stdout.readline() for _ in range(60)]
                process.kill()
                lines += process.stdout.readlines()
            told = int([one for one in lines if one.endswith(b"\n")][-1])
        with connect(joined.host.credentials) as again, recording(again) as recorder:
            recorder.record(event_of("sh", "last"))
            until(lambda: follower.events[-1:] == ["last"], "the last one did not come")
        # one that was recorded, but not said so, comes twice under the same text: it was recorded twice
        found = list(dict.fromkeys(follower.events))
    assert found == [*[str(number) for number in range(told + 1)], "last"]
    assert len(follower.events) - len(found) <= 3


@pytest.mark.night
def test_a_number_that_is_used_again_after_a_loss_of_power(joined: Pair):
    folder = Path(spool_folder(joined.host.credentials.id))
    record_all(joined, ["one"])
    kept = {path: path.read_bytes() for path in folder.glob("*.events")}
    record_all(joined, ["two"])
    # what was written without a sync is gone
    for path in folder.glob("*.events"):
        path.unlink()
    for path, data in kept.items():
        path.write_bytes(data)
    state = json.loads((folder / "confirmed.json").read_text())
    (folder / "confirmed.json").write_text(json.dumps({**state, "confirmed": 1}))
    record_all(joined, ["other"])
    assert whys(read(joined)) == ["one", "two", "other"]


@pytest.mark.night
def test_a_host_that_is_cut_off_for_a_while(joined: Pair):
    joined.host.close()
    with (
        relayed(joined.host.credentials, joined.gateway) as (credentials, (relay,)),
        connect(credentials) as host,
        recording(host) as recorder,
        closing(Follower(joined)) as follower,
    ):
        recorder.record(event_of("sh", "before"))
        until(lambda: follower.events == ["before"], "it did not come")
        relay.cut.set()
        until(lambda: follower.found[-1].kind == "silent", "silence is not told")
        recorder.record(event_of("sh", "during"))
        relay.cut.clear()
        recorder.record(event_of("sh", "after"))
        until(lambda: follower.events == ["before", "during", "after"], "it did not come", 60)
        until(lambda: "heard" in [one.kind for one in follower.found], "that it is heard is not told")


@pytest.mark.night
def test_an_event_is_sealed_for_those_who_may_know_of_its_session(joined: Pair):
    keys, clients = KeyFiles().load().current, AuthorizedClients()
    clients.remove("here")
    record_all(joined, ["for none"])
    assert joined.client.read_events(1).events == ()
    clients.add(AuthorizedClient("here", keys.public, ("read",), ("build-*",)))
    clients.add(AuthorizedClient("other", make_key_pair().public, ALL))
    record_all(joined, ["not yours"], "secret")
    record_all(joined, ["yours"], "build-1")
    assert whys(read(joined)) == ["yours"]
    clients.remove("here")
    clients.add(AuthorizedClient("here", keys.public, ("write", "create", "kill")))
    record_all(joined, ["no right to read"])
    clients.remove("here")
    record_all(joined, ["removed"], "build-1")
    assert len(joined.client.read_events(1).events) == 4
    assert whys(read(joined)) == ["yours"]


def test_an_event_is_stored_for_as_many_clients_as_a_host_may_know(joined: Pair):
    clients = AuthorizedClients()
    keys = (key_text(number.to_bytes(32, "little")) for number in range(2, clients.most_entries + 1))
    with open(clients.path, "a") as file:
        file.writelines(f"c{number} {key} read *\n" for number, key in enumerate(keys))
    record_all(joined, ["for all of them"])
    assert whys(read(joined)) == ["for all of them"]


@pytest.mark.night
def test_sessions_of_other_machines_are_not_told(joined: Pair):
    record_all(joined, ["x"], "web1/sh")
    assert joined.client.read_events(1).events == ()


@pytest.mark.night
def test_what_the_gateway_repeats_reorders_or_forges_is_not_told(joined: Pair):
    record_all(joined, ["one", "two", "three"])
    stored = joined.client.read_events(1).events
    put = [
        *(one.data for one in stored),
        *(one.data for one in reversed(stored)),
        *(bytes((*stored[0].data[:at], stored[0].data[at] ^ 1, *stored[0].data[at + 1 :])) for at in range(0, 150, 7)),
        # another number
        stored[0].data[:20] + b"\x09" + stored[0].data[21:],
        b"",
        b"x" * 200,
        stored[0].data[:60],
    ]
    for number, data in enumerate(put):
        joined.host.publish_event(data, f"forged-{number}")
    assert whys(read(joined)) == ["one", "two", "three"]
    record_all(joined, ["four"])
    assert whys(read(joined)) == ["one", "two", "three", "four"]


@pytest.mark.night
def test_events_of_another_host_are_not_taken_for_its_own(joined: Pair, other_host: Connection):
    with recording(other_host) as recorder:
        recorder.record(event_of("sh", "of another"))
        until(lambda: joined.client.read_events(1).events, "not stored")
    for stored in joined.client.read_events(1).events:
        joined.host.publish_event(stored.data, "copied")
    record_all(joined, ["own"])
    # both hosts have one key here: it is the id of the host that tells them apart
    assert whys(read(joined)) == ["own"]


@pytest.mark.night
def test_an_event_that_the_gateway_keeps_back_is_missed(joined: Pair, other_host: Connection):
    record_all(joined, [str(number) for number in range(6)])
    stored = joined.client.read_events(1).events
    # a stream of the operator's: without two events, and two in the wrong order
    known = KnownMachines()
    joined.gateway.end()
    for path in Path(joined.gateway.files.folder).rglob("*.blk"):
        path.unlink()
    joined.gateway.start()
    joined.host.wait_connected(20)
    joined.client.wait_connected(20)
    assert known.find("far")
    for number in (0, 3, 5, 4):
        joined.host.publish_event(stored[number].data, f"again-{number}")
    assert whys(read(joined)) == ["0", "lost 2", "3", "lost 1", "5"]


@pytest.mark.night
def test_events_that_found_no_room_are_told_as_lost(joined: Pair):
    joined.host.close()
    folder = spool_folder(joined.host.credentials.id)
    with closing(Connection(joined.host.credentials)) as host:
        joined.gateway.end()
        until(lambda: not host.connected.is_set(), "it is connected")
        with recording(host, Spool(folder, most_bytes=4000, segment_bytes=1000)) as recorder:
            for number in range(50):
                recorder.record(event_of("sh", str(number)))
            joined.gateway.start()
            until(lambda: all_stored(joined), "not stored", 60)
    gap, *rest = read(joined)
    assert gap.kind == "lost"
    assert gap.lost
    assert whys(rest) == [str(number) for number in range(gap.lost, 50)]


@pytest.mark.night
def test_what_is_not_kept_any_more_is_told(joined: Pair):
    record_all(joined, ["one", "two"])
    (first, second) = read(joined)
    assert first.number
    assert second.number
    assert [one.kind for one in read(joined, second.number + 7)] == ["lost"]


@pytest.mark.night
def test_who_follows_learns_what_came_before_and_comes(joined: Pair):
    record_all(joined, ["before"])
    with closing(Follower(joined)) as follower, recording(joined.host) as recorder:
        until(lambda: follower.events == ["before"], "it did not come")
        recorder.record(event_of("sh", "after"))
        until(lambda: follower.events == ["before", "after"], "it did not come")


@pytest.mark.night
def test_who_follows_misses_nothing_of_a_time_without_a_connection(joined: Pair):
    with relayed(joined.client.credentials, joined.gateway, 2) as (credentials, (first, second)):
        path = Path(client_credentials_path())
        path.unlink()
        write_credentials(str(path), credentials)
        record_all(joined, ["before"])
        with closing(Follower(joined)) as follower:
            until(lambda: follower.events == ["before"], "it did not come")
            second.cut.set()
            first.close()
            record_all(joined, ["during"])
            assert follower.events == ["before"]
            second.cut.clear()
            until(lambda: follower.events == ["before", "during"], "it did not come", 30)


@pytest.mark.night
def test_who_follows_goes_on_with_a_stream_that_was_made_anew(joined: Pair):
    record_all(joined, [str(number) for number in range(5)])
    with closing(Follower(joined)) as follower, recording(joined.host) as recorder:
        until(lambda: len(follower.events) == 5, "they did not come")
        joined.gateway.end()
        shutil.rmtree(Path(joined.gateway.files.folder) / "store")
        recorder.record(event_of("sh", "new"))
        joined.gateway.start()
        until(lambda: follower.error or follower.events[-1] == "new", "it did not come", 40)
        assert follower.events == [*"01234", "new"]


@pytest.mark.night
def test_a_machine_that_was_never_paired_has_none(joined: Pair):
    with pytest.raises(NotFound):
        EventReader(MachineEntry(name="unknown", gateway=subjects.make_id()))


@pytest.fixture
def thathost(gateway: GatewaySite, place: Path, needs: Callable[..., None]) -> Iterator[JoinedHost]:
    """A machine behind the gateway that serves, and is paired: `thathost` here."""
    needs("tmux")
    become_client(gateway)
    before = list_pids()
    made = JoinedHost(gateway, place / "there")
    made.start()
    done = made.pair("thathost")
    assert done.returncode == 0, done.stderr
    yield made
    made.end()
    sweep(made.home, before)


def lines(*words: str) -> list[dict[str, object]]:
    """What `machine events --json` prints."""
    done = command("machine", "events", "thathost", "--json", *words)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.night
def test_what_a_server_sees_is_told_as_watch_tells_it(thathost: JoinedHost) -> None:
    # it says at its start what is there
    assert thathost.command("new", "job", "--", "sh", "-c", "read line; exit 3").returncode == 0
    assert thathost.command("wait", "job").returncode == 0
    until(lambda: any("job" in str(one) for one in lines()), "not told")
    assert thathost.command("send", "job", "x").returncode == 0

    def told() -> list[dict[str, object]]:
        return [event for one in lines() if isinstance(event := one["event"], dict)]

    until(lambda: any(one["state"] == "exited" for one in told()), "the end is not told")
    thathost.end(kill=True)
    found = told()
    assert {one["session"] for one in found} == {"thathost/job"}
    assert found[-1]["exit_status"] == 3
    watched = json.loads(thathost.command("watch", "job", "--json").stdout.splitlines()[-1])
    ignored = ("time", "session", "attached", "cursor", "why")
    assert {key: value for key, value in found[-1].items() if key not in ignored} == {
        key: value for key, value in watched.items() if key not in ignored
    }
    text = command("machine", "events", "thathost").stdout
    assert "thathost/job  exited" in text
    number = lines()[-1]["number"]
    assert lines("--since", str(number)) == []


@pytest.mark.night
def test_who_follows_by_the_command_line_learns_that_a_machine_is_silent(thathost: JoinedHost, place: Path) -> None:
    log = place / "followed"
    with log.open("wb") as file:
        words = ("--no-server", "machine", "events", "thathost", "--follow")
        following = subprocess.Popen([sys.executable, "-m", "tmuxctl", *words], stdout=file)
    try:
        assert thathost.command("new", "job", "--", "cat").returncode == 0
        until(lambda: "  thathost/job  " in log.read_text(), "no event")
        thathost.end(kill=True)
        until(lambda: "  thathost: is not heard any more\n" in log.read_text(), "silence is not told")
        thathost.start()
        until(lambda: "  thathost: is heard again\n" in log.read_text(), "that it is heard is not told")
        following.send_signal(signal.SIGINT)
        assert following.wait(20) == 130
    finally:
        following.kill()
        following.wait()


@pytest.mark.night
def test_no_text_of_it_is_at_the_gateway(thathost: JoinedHost, gateway: GatewaySite) -> None:
    with connect(add_spy(gateway)) as spy:
        everything = spy.subscribe(">", of_stream=True, most_messages=1 << 16, most_bytes=1 << 28)
        assert (
            thathost.command("new", "secretname", "--", "sh", "-c", "printf 'Secretquestion? '; read x").returncode == 0
        )
        until(lambda: any("Secretquestion" in str(one) or "secretname" in str(one) for one in lines()), "not told")
        thathost.command("kill", "secretname")
        until(lambda: any("exited" in str(one) for one in lines()), "not told")
        seen: list[CarriedMessage] = []
        wanted = {f"tmc.{thathost.id}.{what}" for what in ("events", "feed", "heartbeat")}
        while not wanted <= {one.subject for one in seen}:
            seen.append(everything.next(PATIENCE))
        with suppress(TmuxctlError):
            while True:
                seen.append(everything.next(0.5))
    told = [one.subject.encode() + repr(one.headers).encode() + one.data for one in seen]
    stored = [path.read_bytes() for path in Path(gateway.files.folder).rglob("*") if path.is_file()]
    # the spool of the host has only what goes out
    spooled = [path.read_bytes() for path in (thathost.home / ".local/state/tmuxctl/gateway-events").rglob("*.events")]
    assert any(f"tmc.{thathost.id}.events".encode() in one for one in stored)
    for text in (*told, *stored, *spooled):
        for word in (b"secretname", b"Secretquestion", b"thathost", b"exited", b"tester"):
            assert word not in text


def test_a_machine_that_is_not_behind_a_gateway_has_no_events(place: Path) -> None:
    assert command("machine", "add", "box", "--command", "sh").returncode == 0
    done = command("machine", "events", "box", "--json")
    assert json.loads(done.stdout or done.stderr)["error"]["reason"] == "no_gateway"
    assert command("machine", "events", "box", "--since", "soon").returncode == 2
