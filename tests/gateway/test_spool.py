"""Events on disk: none is lost by a kill, none comes twice, and what did not fit is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from gateway.conftest import Pair
from gateway.gateway_site import connect, until

from tmuxctl.errors import Conflict, Denied, Failed, TmuxctlError, Usage
from tmuxctl.gateway.connection import EVENT_BYTES, Connection
from tmuxctl.gateway.credentials import Credentials
from tmuxctl.gateway.spool import EventPublisher, Spool, SpooledEvent


@pytest.fixture
def folder(place: Path) -> str:
    return str(place / "spool")


@contextmanager
def opened(folder: str, **limits: int) -> Iterator[Spool]:
    spool = Spool(folder, **limits)
    try:
        yield spool
    finally:
        spool.close()


def take_all(spool: Spool) -> list[tuple[int, bytes, int]]:
    found: list[tuple[int, bytes, int]] = []
    while event := spool.first():
        found.append((event.number, b"" if event.lost else event.data, event.lost))
        spool.confirm(event.number)
    return found


def make_gap(gap: SpooledEvent) -> bytes:
    return b"lost %d" % gap.lost


def test_events_come_in_order_until_they_are_confirmed(folder: str):
    with opened(folder) as spool:
        assert spool.first() is None
        assert [spool.append(b"e%d" % one) for one in range(3)] == [1, 2, 3]
        first = spool.first()
        assert first == spool.first()
        assert take_all(spool) == [(1, b"e0", 0), (2, b"e1", 0), (3, b"e2", 0)]
        assert spool.append(b"e3") == 4
        assert take_all(spool) == [(4, b"e3", 0)]


def test_what_is_not_confirmed_is_there_for_the_next_process(folder: str):
    with opened(folder, segment_bytes=200) as spool:
        for one in range(20):
            spool.append(b"e%d" % one)
        spool.confirm(5)
        name, ids = spool.name, spool.event_id(spool.first() or pytest.fail("none"))
    with opened(folder, segment_bytes=200) as spool:
        assert spool.name == name
        assert spool.event_id(spool.first() or pytest.fail("none")) == ids
        assert spool.append(b"new") == 21
        assert [one for one, _, _ in take_all(spool)] == list(range(6, 22))
        assert len(list(Path(folder).glob("*.events"))) == 1


def test_only_this_user_may_read_it(folder: str):
    with opened(folder) as spool:
        spool.append(b"x")
        assert os.stat(folder).st_mode & 0o077 == 0
        assert not [one for one in Path(folder).iterdir() if one.stat().st_mode & 0o077]


def test_one_process_has_it_at_a_time(folder: str):
    with opened(folder), pytest.raises(Conflict):
        Spool(folder)


def test_the_oldest_make_room_and_are_counted(folder: str):
    with opened(folder, most_bytes=1000, segment_bytes=200) as spool:
        for _ in range(100):
            spool.append(b"x" * 100)
        assert sum(one.stat().st_size for one in Path(folder).glob("*.events")) <= 1200
        gap, *rest = take_all(spool)
        assert gap[1] == b""
        assert gap[2] == gap[0]
        assert gap[2] + len(rest) == 100
        assert [one for one, _, _ in rest] == list(range(gap[0] + 1, 101))


def test_what_was_lost_is_counted_after_a_restart_too(folder: str):
    with opened(folder, most_bytes=1000, segment_bytes=200) as spool:
        for _ in range(50):
            spool.append(b"x" * 100)
        spool.confirm(3)
        before = spool.first()
    with opened(folder) as spool:
        assert spool.first() == before
        assert before
        assert before.lost == before.number - 3


@pytest.mark.parametrize("cut", [1, 5, 15, 17, 30])
def test_a_part_that_was_not_written_to_its_end_is_left_out(folder: str, cut: int):
    with opened(folder) as spool:
        for one in range(3):
            spool.append(b"event %d, twenty bytes" % one)
    (segment,) = Path(folder).glob("*.events")
    segment.write_bytes(segment.read_bytes()[:-cut])
    with opened(folder) as spool:
        assert spool.append(b"new") == 3
        assert [data for _, data, _ in take_all(spool)] == [b"event 0, twenty bytes", b"event 1, twenty bytes", b"new"]


@pytest.mark.parametrize("offset", [0, 5, 9, 20, 60])
def test_damage_costs_what_is_behind_it_in_the_segment(folder: str, offset: int):
    with opened(folder, segment_bytes=150) as spool:
        for one in range(9):
            spool.append(b"event %d, twenty bytes" % one)
    first = min(Path(folder).glob("*.events"))
    damaged = bytearray(first.read_bytes())
    damaged[offset] ^= 1
    first.write_bytes(damaged)
    with opened(folder, segment_bytes=150) as spool:
        found = take_all(spool)
    assert found[-1] == (9, b"event 8, twenty bytes", 0)
    assert sum(lost for _, _, lost in found) + sum(1 for _, _, lost in found if not lost) == 9
    assert sum(lost for _, _, lost in found) >= 1


def test_a_number_that_is_used_again_has_another_id(folder: str):
    """A machine that loses its power may lose the end of a segment, and the number of an event that was published."""
    with opened(folder) as spool:
        spool.append(b"one")
        spool.append(b"two")
        spool.append(b"three")
        stored = [spool.event_id(one) for one in spool._read(1)]
        spool.confirm(2)
    for one in Path(folder).glob("*.events"):
        one.unlink()
    with opened(folder) as spool:
        assert spool.append(b"other") == 3
        other = spool.event_id(spool.first() or pytest.fail("none"))
        assert other != stored[2]
        spool.confirm_id(stored[2])
        assert spool.first()
        spool.confirm_id(other)
        assert spool.first() is None


def test_ids_of_others_confirm_nothing(folder: str):
    with opened(folder) as spool:
        spool.append(b"x")
        for wrong in (
            "",
            "x",
            f"{spool.name}-1-00000000",
            f"{'0' * 16}-1-gap",
            f"{spool.name}-99-gap",
            f"{spool.name}-1",
        ):
            spool.confirm_id(wrong)
        assert spool.first()


def test_what_is_too_large_is_refused(folder: str):
    with opened(folder) as spool:
        with pytest.raises(Usage):
            spool.append(b"x" * (EVENT_BYTES + 1))
        assert spool.append(b"x" * EVENT_BYTES) == 1


@pytest.mark.night
def test_the_stream_takes_the_largest_event(pair: Pair, folder: str):
    with opened(folder) as spool:
        spool.append(bytes(EVENT_BYTES))
        publisher = EventPublisher(pair.host, spool, make_gap)
        until(lambda: all_confirmed(spool), "not published")
        publisher.close()
    assert [len(one) for one in stored_data(pair.client)] == [EVENT_BYTES]
    with pytest.raises(Usage):
        pair.host.publish_event(bytes(EVENT_BYTES + 1), "1")


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"name": 3, "confirmed": 0}', '{"name": "0123456789abcdef", "confirmed": -1}', '{"confirmed": 1}'],
)
def test_a_file_that_was_changed_is_told(folder: str, text: str):
    with opened(folder):
        pass
    (Path(folder) / "confirmed.json").write_text(text)
    with pytest.raises(Failed) as found:
        Spool(folder)
    assert found.value.reason == "bad_spool"


def test_links_are_not_followed(folder: str, place: Path):
    with opened(folder) as spool:
        spool.append(b"x")
    victim = place / "victim"
    victim.write_text("mine")
    for name in ("00000000000000000002.events", "00000000000000000009.events"):
        (Path(folder) / name).symlink_to(victim)
        with pytest.raises(TmuxctlError):
            Spool(folder)
        (Path(folder) / name).unlink()
    assert victim.read_text() == "mine"
    os.chmod(folder, 0o755)
    with pytest.raises(Denied):
        Spool(folder)


APPEND = """
import sys
from tmuxctl.gateway.spool import Spool
spool = Spool(sys.argv[1], segment_bytes=2000)
while True:
    print(spool.append(b"event"), flush=True)
"""


def test_a_process_that_is_killed_loses_no_event_that_it_was_told_of(folder: str):
    told = 0
    for _ in range(3):
        with subprocess.Popen([sys.executable, "-c", APPEND, folder], stdout=subprocess.PIPE) as process:
            assert process.stdout
            for _ in range(200):
                told = int(process.stdout.readline())
            os.kill(process.pid, signal.SIGKILL)
            told = max([told, *map(int, process.stdout.read().split(b"\n")[:-1])])
        with opened(folder) as spool:
            number = spool.append(b"next")
            assert number in (told + 1, told + 2)
            told = number
    with opened(folder) as spool:
        assert [one for one, _, lost in take_all(spool) if not lost] == list(range(1, told + 1))


def stored_data(client: Connection) -> list[bytes]:
    return [one.data for one in client.read_events(1, most=1024).events]


def all_confirmed(spool: Spool) -> bool:
    return spool.first() is None


@pytest.mark.night
def test_events_of_a_cut_are_published_once_each_in_order(pair: Pair, folder: str):
    with opened(folder) as spool:
        publisher = EventPublisher(pair.host, spool, make_gap)
        for number in range(20):
            spool.append(b"a%d" % number)
        until(lambda: all_confirmed(spool), "not published")
        pair.gateway.end(signal.SIGKILL)
        for number in range(20):
            spool.append(b"b%d" % number)
        pair.gateway.start()
        until(lambda: all_confirmed(spool), "not published after the restart")
        publisher.close()
    expected = [b"%s%d" % (letter, number) for letter in (b"a", b"b") for number in range(20)]
    pair.client.wait_connected(10)
    assert stored_data(pair.client) == expected


@pytest.mark.night
def test_kills_of_the_server_double_nothing_and_lose_nothing(pair: Pair, folder: str):
    with opened(folder) as spool:
        publisher = EventPublisher(pair.host, spool, make_gap)
        count = 0
        for _ in range(3):
            for _ in range(60):
                spool.append(b"%d" % count)
                count += 1
            time.sleep(0.02)
            pair.gateway.end(signal.SIGKILL)
            pair.gateway.start()
        until(lambda: all_confirmed(spool), "not published")
        publisher.close()
    pair.client.wait_connected(10)
    assert stored_data(pair.client) == [b"%d" % number for number in range(count)]


class NotingConnection(Connection):
    """As `Connection`; notes the ids that are published."""

    published: list[str]

    def __init__(self, credentials: Credentials) -> None:
        self.published = []
        super().__init__(credentials)

    def publish_event(self, data: bytes, event_id: str) -> int:
        self.published.append(event_id)
        return super().publish_event(data, event_id)


@pytest.mark.night
def test_an_event_whose_confirmation_was_lost_is_not_published_again_however_long_ago(pair: Pair, folder: str):
    """The stream compares ids for two minutes only, so it is asked for the last one."""
    with opened(folder) as spool:
        for data in (b"one", b"two"):
            spool.append(data)
        for event in list(spool._read(1)):
            pair.host.publish_event(event.data, spool.event_id(event))
        spool.append(b"three")
        with closing(NotingConnection(pair.host.credentials)) as again:
            publisher = EventPublisher(again, spool, make_gap)
            until(lambda: all_confirmed(spool), "not published")
            publisher.close()
            assert [one.split("-")[1] for one in again.published] == ["3"]
    assert stored_data(pair.client) == [b"one", b"two", b"three"]


@pytest.mark.night
def test_a_gap_is_published_in_the_place_of_what_was_lost(pair: Pair, folder: str):
    pair.host.close()
    with opened(folder, most_bytes=1000, segment_bytes=200) as spool:
        for number in range(30):
            spool.append(b"%03d" % number + b"x" * 100)
        gap = spool.first()
        assert gap
        assert gap.lost
        with connect(pair.host.credentials) as host:
            publisher = EventPublisher(host, spool, make_gap)
            until(lambda: all_confirmed(spool), "not published")
            publisher.close()
    found = stored_data(pair.client)
    assert found[0] == b"lost %d" % gap.lost
    assert [int(one[:3]) for one in found[1:]] == list(range(gap.lost, 30))


def test_a_publisher_says_what_it_waits_for(pair: Pair, folder: str):
    with opened(folder) as spool:
        # a client may not publish events
        publisher = EventPublisher(pair.client, spool, make_gap)
        spool.append(b"x")
        until(lambda: isinstance(publisher.last_error, Denied), "no error")
        publisher.close()
        assert not all_confirmed(spool)
