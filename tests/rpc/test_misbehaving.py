"""What a carrier may do to records, and a machine to its callers: each call ends as it should, and nothing is done twice."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from rpc.conftest import QUICK, Host, operations_of
from rpc.socket_carrier import Weather, read_records, write_record

from tmuxctl import results
from tmuxctl.access import CallerAccess, ServiceAccess
from tmuxctl.control import Control
from tmuxctl.control.machines import remote
from tmuxctl.errors import Denied, TmuxctlError, Unreachable, Usage
from tmuxctl.machines import MachineEntry
from tmuxctl.operations import RIGHTS, invoke, operation
from tmuxctl.rpc.client import CallClient, Patience, _Pending
from tmuxctl.rpc.records import (
    BODY_MOST,
    CALL_VALUES,
    VERSION,
    WINDOW,
    Carrier,
    Connect,
    Header,
    Receive,
    RemoteCall,
    Send,
    now,
    pack_call,
    parse_call,
    split_body,
)
from tmuxctl.rpc.responder import Responder, ResponderLimits
from tmuxctl.rpc.result_room import ResultRoom
from tmuxctl.timing import TIMING
from tmuxctl.value import changed


@pytest.mark.night
@pytest.mark.parametrize(
    "kind", [{"lost": 0.2}, {"repeated": 0.5}, {"late": 0.4}, {"lost": 0.1, "repeated": 0.2, "late": 0.2}], ids=str
)
def test_each_write_is_done_once_in_any_weather(far: Control, weather: Weather, kind: dict[str, float]) -> None:
    far.new("far/sh", ("sh",))
    vars(weather).update(kind)
    for number in range(8):
        far.exec("far/sh", (f"echo {number} >>done",))
        far.send("far/sh", f"echo s{number} >>sent".encode(), wait_text=r"^\S* ?$")
    vars(weather).update(lost=0.0, repeated=0.0, late=0.0)
    assert far.exec("far/sh", ("cat done sent",)).output.split() == [
        *map(str, range(8)),
        *(f"s{number}" for number in range(8)),
    ]


@pytest.mark.night
def test_a_flood_that_is_followed_comes_exactly_in_any_weather(far: Control, weather: Weather) -> None:
    far.new("far/sh", ("sh",))
    since = far.screen("far/sh").position
    following = far.read("far/sh", since=since, follow=True)
    vars(weather).update(lost=0.05, repeated=0.1, late=0.1)
    # of a program that ends at once tmux 3.3a may lose the last of what it printed (docs/limits.md)
    far.send("far/sh", b"seq 300000; sleep 1; exit", id="0123456789abcdef")
    text = "".join(one.text for one in following)
    lines = [line for line in text.splitlines() if line.isdigit()]
    assert lines == [str(number) for number in range(1, 300001)]


@pytest.mark.night
def test_of_a_flood_no_more_is_made_than_its_reader_takes(far: Control, host: Host, weather: Weather) -> None:
    far.new("far/sh", ("sh",))
    since = far.screen("far/sh").position
    following = far.read("far/sh", since=since, follow=True)
    far.send("far/sh", b"seq 2000000; echo all done")
    far.wait("far/sh", text="^all done$", timeout=60.0)
    # by now all has been printed, and nothing of it was read
    # under load a record is asked for again while it is on its way
    came = {header["number"] for way, header in weather.seen if way == "in" and header.get("kind") == "item"}
    assert 0 < len(came) <= WINDOW
    first = next(following)
    assert first.text.startswith("seq 2000000") or "1\n2\n" in first.text
    following.close()  # type: ignore[attr-defined]


@pytest.mark.night
def test_a_stream_goes_on_behind_a_cut(far: Control, weather: Weather) -> None:
    far.new("far/sh", ("sh",))
    since = far.screen("far/sh").position
    following = far.read("far/sh", since=since, follow=True)
    far.send("far/sh", b"for n in $(seq 30); do echo line $n; sleep 0.05; done; exit")
    found = ""
    for number, piece in enumerate(following):
        found += piece.text
        if number % 3 == 0:
            weather.cut()
    assert [line for line in found.splitlines() if line.startswith("line")] == [f"line {n}" for n in range(1, 31)]


@pytest.mark.night
def test_a_call_whose_answer_is_lost_ends_as_unknown_and_is_done_once(
    host: Host, reach: Callable[..., Control], weather: Weather
) -> None:
    patient = reach(far=host)
    patient.new("far/sh", ("sh",))
    far = reach(changed(QUICK, silence_seconds=1.0), far=host)
    weather.lose = lambda way, header: way == "in"
    with pytest.raises(Unreachable) as caught:
        far.call("rename", {"session": "far/sh", "name": "other"}, request_id="abcdef0123456789")
    assert caught.value.reason == "outcome_unknown"
    assert caught.value.details["id"] == "abcdef0123456789"
    assert caught.value.details["machine"] == "far"
    weather.lose = lambda way, header: False
    # a second rename by itself would not find the session any more
    again = patient.call("rename", {"session": "far/sh", "name": "other"}, request_id="abcdef0123456789")
    assert again.name == "other"
    with pytest.raises(TmuxctlError) as other:
        patient.call("rename", {"session": "far/sh", "name": "third"}, request_id="abcdef0123456789")
    assert other.value.reason == "bad_id"


@pytest.mark.night
def test_a_text_whose_answer_is_lost_is_typed_once(host: Host, reach: Callable[..., Control], weather: Weather) -> None:
    patient = reach(far=host)
    patient.new("far/sh", ("sh",))
    far = reach(changed(QUICK, silence_seconds=1.0), far=host)
    weather.lose = lambda way, header: way == "in"
    with pytest.raises(Unreachable) as caught:
        far.send("far/sh", b"echo x >>typed")
    assert caught.value.reason == "outcome_unknown"
    weather.lose = lambda way, header: False
    assert patient.send("far/sh", b"echo x >>typed", id=caught.value.details["id"]).result == "dup"
    patient.wait("far/sh", prompt=True)
    assert patient.exec("far/sh", ("cat typed",)).output == "x\n"


@pytest.mark.night
def test_a_read_whose_machine_is_silent_ends_without_an_answer(
    host: Host, reach: Callable[..., Control], weather: Weather
) -> None:
    patient = reach(far=host)
    patient.new("far/sh", ("sh",))
    far = reach(changed(QUICK, silence_seconds=0.5), far=host)
    weather.silent = True
    with pytest.raises(Unreachable) as caught:
        far.screen("far/sh")
    assert (caught.value.reason, caught.value.details["machine"]) == ("no_answer", "far")
    weather.silent = False
    assert patient.screen("far/sh").session == "far/sh"


@pytest.mark.night
def test_a_wait_outlives_a_silence_that_it_has_time_for(far: Control, weather: Weather) -> None:
    far.new("far/sh", ("sh",))
    far.send("far/sh", b"sleep 1; echo now")
    weather.silent = True
    timer = threading.Timer(2.0, lambda: setattr(weather, "silent", False))
    timer.start()
    assert far.wait("far/sh", text="^now$", timeout=30.0).matched


@pytest.mark.night
def test_the_end_of_the_machines_process_is_told(host: Host, far: Control) -> None:
    far.new("far/sh", ("sh",))
    far.screen("far/sh")
    host.kill()
    with pytest.raises(Unreachable) as caught:
        far.screen("far/sh")
    assert caught.value.details["machine"] == "far"
    with pytest.raises(Unreachable):
        far.send("far/sh", b"x")
    host.start()
    assert far.screen("far/sh").session == "far/sh"


@pytest.mark.night
def test_a_process_that_ends_in_the_middle_of_a_call_is_told(
    host: Host, reach: Callable[..., Control], until: Callable[..., Any], weather: Weather
) -> None:
    reach(far=host).new("far/sh", ("sh",))
    far = reach(changed(QUICK, silence_seconds=1.0), far=host)
    ended: dict[str, TmuxctlError] = {}

    def call(name: str, **arguments: Any) -> None:
        try:
            far.call(name, {"session": "far/sh", **arguments})
        except TmuxctlError as error:
            ended[name] = error

    threads = [
        threading.Thread(target=call, args=("exec",), kwargs={"command": ["sleep 60"], "timeout": 2}),
        threading.Thread(target=call, args=("wait",), kwargs={"text": "never", "timeout": 2}),
    ]
    for thread in threads:
        thread.start()
    until(lambda: sum(header["type"] == "call" for way, header in weather.seen if way == "out") >= 3)
    host.kill()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert ended["exec"].reason == "outcome_unknown"
    assert isinstance(ended["wait"], Unreachable)


def test_another_process_is_not_asked_to_do_again_what_was_begun(
    host: Host, far: Control, until: Callable[..., Any]
) -> None:
    far.new("far/sh", ("sh",))
    ended: list[TmuxctlError] = []

    def call() -> None:
        try:
            far.exec("far/sh", ("echo begun >>log; sleep 3",), timeout=30.0)
        except TmuxctlError as error:
            ended.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    until((host.folder / "log").exists)
    host.kill()
    host.start()
    thread.join(30)
    assert [error.reason for error in ended] == ["outcome_unknown"]
    assert (host.folder / "log").read_text() == "begun\n"


# machines that lie


@contextmanager
def lying_machine(path: str, answer: Callable[[Header, Callable[[Header, bytes], None]], None]) -> Iterator[None]:
    """A machine that answers each record as `answer` does."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    connections = []

    def serve(connection: socket.socket) -> None:
        lock = threading.Lock()

        def send(header: Header, body: bytes) -> None:
            write_record(connection, lock, header, body)

        try:
            read_records(connection, lambda header, body: answer(header, send))
        except (OSError, ValueError):
            return

    def accept() -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:
                return
            connections.append(connection)
            threading.Thread(target=serve, args=(connection,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    yield
    listening.shutdown(socket.SHUT_RDWR)
    listening.close()
    for connection in connections:
        connection.close()


def reply(header: Header, number: int, kind: str, value: Any, **other: Any) -> dict[str, Any]:
    return {"v": VERSION, "type": "reply", "id": header["id"], "number": number, "kind": kind, "more": False, **other}


SCREEN = {
    "session": "sh", "text": "x", "cols": 80, "rows": 24, "cursor": {"x": 0, "y": 0, "visible": True}, "alt": False,
    "title": "", "state": None, "by": None, "position": None,
}  # fmt: skip

LIES: dict[str, Any] = {
    "no result at all": None,
    "a text": "screen",
    "a text in the place of a value": {"value": "screen"},
    "nothing in the place of a value": {"value": None},
    "another class": {"class": "Session", "value": {"name": "sh", "id": "12345678"}},
    "a class that there is not": {"class": "os.system", "value": {}},
    "wrong types": {"class": "Screen", "value": {**SCREEN, "cols": "many"}},
    "a session of another machine": {"class": "Screen", "value": {**SCREEN, "session": "web1/sh"}},
    "a forged name": {"class": "Screen", "value": {**SCREEN, "session": "\x1b]0;x\x07"}},
}


class Liar:
    """One lying machine, by the name that it has here."""

    def __init__(self, path: str) -> None:
        self.path = path


@pytest.mark.parametrize("lie", LIES)
def test_a_lie_is_told_as_a_bad_answer(place: Path, start_host: Any, reach: Callable[..., Control], lie: str) -> None:
    path = f"{place}/liar"

    def answer(header: Header, send: Callable[[Header, bytes], None]) -> None:
        if header["type"] == "call":
            send(reply(header, 0, "result", None), json.dumps(LIES[lie]).encode())

    with lying_machine(path, answer):
        far = reach(far=Liar(path), good=start_host())
        with pytest.raises(Unreachable) as caught:
            far.screen("far/sh")
        assert (caught.value.reason, caught.value.details["machine"]) == ("bad_answer", "far")
        far.new("good/sh", ("sh",))
        listed = far.ls(all_machines=True)
        assert [one.address for one in listed.sessions] == ["good/sh"]
        assert [one.machine for one in listed.problems] == ["far"]


def send_all(send: Callable[[Header, bytes], None], *records: tuple[Header, bytes]) -> None:
    """Send these records."""
    for header, body in records:
        send(header, body)


FLOODS: dict[str, Callable[[Header, Callable[[Header, bytes], None]], object]] = {
    "no JSON": lambda header, send: send(reply(header, 0, "result", None), b"{"),
    "no number of JSON": lambda header, send: send(reply(header, 0, "result", None), b"[NaN]"),
    "too deep": lambda header, send: send(reply(header, 0, "result", None), b"[" * 20_000 + b"]" * 20_000),
    "parts of nothing": lambda header, send: send_all(
        send, *((reply(header, number, "result", None, more=True), b"") for number in range(3))
    ),
    "a stream in the place of a result": lambda header, send: send_all(
        send,
        (reply(header, 0, "stream", None), b'{"pieces": false}'),
        (reply(header, 1, "item", None), json.dumps({"class": "Screen", "value": SCREEN}).encode()),
    ),
    "pieces in the place of a result": lambda header, send: send(reply(header, 0, "stream", None), b'{"pieces": true}'),
    "an item of no stream": lambda header, send: send(reply(header, 0, "item", None), b"null"),
    "a strange kind": lambda header, send: send({**reply(header, 0, "x", None), "kind": ["x"]}, b"null"),
    "an error that is none": lambda header, send: send(reply(header, 0, "error", None), b"[]"),
    "another version": lambda header, send: send({**reply(header, 0, "result", None), "v": 99}, b"null"),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_nonsense_ends_a_call(place: Path, start_host: Any, reach: Callable[..., Control], flood: str) -> None:
    path = f"{place}/liar"

    def answer(header: Header, send: Callable[[Header, bytes], None]) -> None:
        if header["type"] == "call":
            FLOODS[flood](header, send)

    with lying_machine(path, answer):
        with pytest.raises(Unreachable) as caught:
            reach(far=Liar(path)).screen("far/sh")
        assert caught.value.reason == ("other_version" if flood == "another version" else "bad_answer")


def test_one_result_is_none_that_is_followed(place: Path, start_host: Any, reach: Callable[..., Control]) -> None:
    def answer(header: Header, send: Callable[[Header, bytes], None]) -> None:
        if header["type"] == "call":
            value = {"class": "Output", "value": {"session": "sh", "text": "x", "cursor": "c1:1.1:0"}}
            send(reply(header, 0, "result", None), json.dumps(value).encode())

    with lying_machine(f"{place}/liar", answer):
        far = reach(far=Liar(f"{place}/liar"))
        assert far.read("far/sh").text == "x"
        with pytest.raises(Unreachable) as caught:
            far.read("far/sh", follow=True)
        assert caught.value.reason == "bad_answer"


def test_records_that_nobody_asked_for_take_no_room(
    place: Path, start_host: Any, reach: Callable[..., Control]
) -> None:
    path = f"{place}/liar"
    sent = []

    def answer(header: Header, send: Callable[[Header, bytes], None]) -> None:
        if header["type"] != "call":
            return
        for number in range(1, 2000):
            send(reply(header, number, "result", None, more=True), b"a" * BODY_MOST)
            sent.append(number)
        send({"type": "reply"}, b"")
        send({**header, "id": "unknown-id", "number": -1}, b"")
        send({**reply(header, 0, "result", None), "number": True}, b"")

    with lying_machine(path, answer):
        far = reach(changed(QUICK, silence_seconds=1.0), far=Liar(path))
        kept: list[int] = []

        def look() -> None:
            remote = operations_of(far)
            for pending in list(remote.client._pending.values()):
                kept.append(len(pending.early) + len(pending.ready))

        timer = threading.Timer(0.9, look)
        timer.start()
        with pytest.raises(Unreachable):
            far.screen("far/sh")
        timer.join()
        assert sent
        assert kept
        assert max(kept) <= WINDOW


def test_what_a_liar_tells_has_no_escape_sequences(place: Path, start_host: Any, reach: Callable[..., Control]) -> None:
    path = f"{place}/liar"
    evil = "\x1b]52;c;aGk=\x07\x9b2J"

    def answer(header: Header, send: Callable[[Header, bytes], None]) -> None:
        if header["type"] == "call":
            value = {"class": "Screen", "value": {**SCREEN, "text": evil, "title": evil}}
            send(reply(header, 0, "result", None), json.dumps(value).encode())

    with lying_machine(path, answer):
        screen = reach(far=Liar(path)).screen("far/sh")
    assert screen.text == screen.title == "]52;c;aGk=2J"


# the machine's end, record by record


class Recorded:
    """What a responder sends."""

    def __init__(self) -> None:
        self.records: list[tuple[Header, bytes]] = []
        self.changed = threading.Condition()

    def send(self, header: Header, body: bytes) -> None:
        with self.changed:
            self.records.append((header, body))
            self.changed.notify_all()

    def wait_for(self, kind: str) -> tuple[Header, bytes]:
        """The first record of this type, or reply of this kind."""

        def find() -> tuple[Header, bytes] | None:
            return next((one for one in self.records if kind in (one[0]["type"], one[0].get("kind"))), None)

        with self.changed:
            assert self.changed.wait_for(find, 20)
        found = find()
        assert found
        return found


class Everything:
    """The access of a caller that may do everything."""

    rights = ("read", "write", "create", "kill")

    def check(self, operation: Any, arguments: Any) -> dict[str, Any]:
        return dict(arguments)

    def select(self, result: Any) -> Any:
        return result

    def check_followed(self, operation: Any, arguments: Any) -> None:
        """It may know all."""

    def note(self, call_id: str, operation: str, session: str | None, result: str) -> None:
        """Nothing is written down."""


def call_record(call_id: str, operation: str, **arguments: Any) -> tuple[Header, bytes]:
    body = json.dumps({"operation": operation, "arguments": arguments}).encode()
    header = {"v": VERSION, "type": "call", "id": call_id, "part": 0, "parts": 1, "window": WINDOW, "digest": "d"}
    header |= {"age": 0.0, "until": 10.0, "repeatable": False}
    return header, body


def receive(responder: Responder, header: Header, body: bytes, send: Send) -> None:
    """Take a record through a carrier that was connected just now."""
    responder.receive(header, body, send, connected=now())


@pytest.fixture
def control_here(place: Path, needs: Callable[..., None]) -> Iterator[Control]:
    needs("tmux")
    with Control() as control:
        yield control


@pytest.mark.parametrize("name", [7, True, 1.5, {"a": 1}])
def test_a_name_that_is_no_text_is_refused_typed(control_here: Control, name: object) -> None:
    responder, out = Responder(control_here, Everything()), Recorded()
    receive(responder, *call_record("a" * 16, "kill", session=name), out.send)
    assert json.loads(out.wait_for("error")[1])["code"] == "usage"


def test_a_call_does_not_begin_once_its_caller_has_given_up(control_here: Control) -> None:
    responder, out = Responder(control_here, Everything()), Recorded()
    header, body = call_record("a" * 16, "new", name="sh", command=["sh"])
    connected, limit = now() - 60.0, 60.0 - TIMING.rpc.late_seconds
    responder.began = connected - 60.0
    for late in ({"until": limit - 1.0}, {"until": limit - 1.0, "parts": 2}):
        responder.receive({**header, **late}, body, out.send, connected=connected)
    # of one that came in parts the last one may be kept back
    halves = body[:9], body[9:]
    for part, until in ((0, limit + 60.0), (1, limit - 1.0)):
        part_header = {**header, "id": "c" * 16, "parts": 2, "part": part, "until": until}
        responder.receive(part_header, halves[part], out.send, connected=connected)
    responder.receive({**header, "id": "b" * 16, "until": limit + 60.0}, body, out.send, connected=connected)
    out.wait_for("result")
    # asked again for what it gave, however late
    responder.receive({**header, "id": "b" * 16, "until": 0.0}, body, out.send, connected=connected)
    out.wait_for("taken")
    assert {one[0]["id"] for one in out.records} == {"b" * 16}


@pytest.mark.parametrize(
    ("patience", "deadline", "silent", "seconds"),
    [
        (60.0, None, 0.0, 10.0),
        (60.0, None, 55.0, 5.0),
        (60.0, 3.0, 0.0, 3.0),
        (5.0, 60.0, 0.0, 5.0),
        (5.0, None, 9.0, 0.0),
    ],
)
def test_a_call_may_begin_as_long_as_its_caller_waits(
    patience: float, deadline: float | None, silent: float, seconds: float
) -> None:
    moment = time.monotonic()
    bears = Patience(patience, False, True, False, "")
    pending = _Pending("a" * 16, [], "d", bears, None if deadline is None else moment + deadline)
    pending.heard = moment - silent
    assert pending.seconds_to_begin(changed(TIMING.rpc, silence_seconds=10.0)) == pytest.approx(seconds, abs=0.5)


def test_records_that_make_no_sense_are_dropped(control_here: Control) -> None:
    responder, out = Responder(control_here, Everything()), Recorded()
    header, body = call_record("a" * 16, "ls")
    for wrong in (
        {},
        {**header, "id": 3},
        {**header, "id": "../x"},
        {**header, "part": -1},
        {**header, "part": 5},
        {**header, "parts": 1 << 60},
        {**header, "window": "x"},
        {**header, "age": float("nan")},
        {**header, "until": float("nan")},
        {**header, "until": None},
        {**header, "type": "dance"},
    ):
        receive(responder, wrong, body, out.send)
    receive(responder, header, b"a" * (BODY_MOST + 1), out.send)
    assert out.records == []
    receive(responder, header, body, out.send)
    assert json.loads(out.wait_for("result")[1])["class"] == "Sessions"
    responder.close()


class Sized:
    """A service whose results are as large as its caller wants them."""

    @operation(right="read", group="Look")
    def fill(self, size: int) -> results.Output:
        """A text of so many bytes."""
        return results.Output("sh", "x" * size, "c1:1.1:0")

    @operation(right="write", group="Drive")
    def change(self, size: int) -> results.Output:
        """The same, of an operation that changes something."""
        return self.fill(size)

    def call(self, name: str, arguments: Any, **about: Any) -> Any:
        return invoke(self, name, arguments, **about)


KIB = 1 << 10

PATIENT = changed(TIMING.rpc, silence_seconds=600.0)


def fill(responder: Responder, number: int, kib: int, operation: str = "fill") -> str:
    """What a call of a result of so many KiB gives: the kind of the reply, or the reason of the error."""
    out = Recorded()
    call_id = f"{number:016}"
    header, body = call_record(call_id, operation, size=kib * KIB)
    receive(responder, {**header, "window": 0}, body, out.send)
    call = responder._calls[call_id]
    ends = time.monotonic() + 20
    while call.ended is None:
        assert time.monotonic() < ends
        time.sleep(0.002)
    first = call.replies[0]
    return str(json.loads(first.body)["reason"] if first.header["kind"] == "error" else first.header["kind"])


def fetch(responder: Responder, number: int) -> None:
    """Say that all that a call gave has come."""
    more = {"v": VERSION, "type": "more", "id": f"{number:016}", "next": 1 << 20, "window": 1 << 20, "again": False}
    receive(responder, more, b"", Recorded().send)


def test_results_that_wait_for_one_caller_have_a_bound_together() -> None:
    responder = Responder(Sized(), Everything(), limits=ResponderLimits(kept_bytes=256 * KIB), timing=PATIENT)
    assert [fill(responder, number, 100) for number in range(2)] == ["result", "result"]
    # neither of them was fetched
    assert fill(responder, 2, 100) == "busy"
    assert fill(responder, 3, 100, "change") == "outcome_unknown"
    assert sum(call.bytes for call in responder._calls.values()) < 256 * KIB
    # what was fetched makes room
    fetch(responder, 0)
    assert fill(responder, 4, 100) == "result"
    assert f"{0:016}" not in responder._calls
    assert f"{1:016}" in responder._calls
    responder.close()


def test_results_for_all_callers_of_a_machine_have_a_bound_together() -> None:
    room = ResultRoom(256 * KIB)
    first, second = (Responder(Sized(), Everything(), timing=PATIENT, room=room) for _ in range(2))
    assert [fill(first, number, 100) for number in range(2)] == ["result", "result"]
    assert fill(second, 0, 100) == "busy"
    fetch(first, 1)
    assert fill(second, 1, 100) == "result"
    assert list(first._calls) == [f"{0:016}"]
    first.close()
    assert fill(second, 2, 100) == "result"
    second.close()
    assert room.used == 0


def test_a_stream_waits_for_room_and_gives_it_back(until: Callable[..., Any]) -> None:
    room = ResultRoom(64 * KIB)
    responder, service = Responder(Sized(), Everything(), timing=PATIENT, room=room), Counting()
    assert fill(responder, 0, 63) == "result"
    following, out = Responder(service, Everything(), room=room), Recorded()
    receive(following, *call_record("a" * 16, "count"), out.send)
    until(lambda: service.made > 1)
    assert len(out.records) < WINDOW
    fetch(responder, 0)
    until(lambda: len(out.records) == WINDOW)
    more = {"v": VERSION, "type": "more", "id": "a" * 16, "next": WINDOW, "window": 2 * WINDOW, "again": False}
    receive(following, more, b"", out.send)
    until(lambda: sum("number" in header for header, _ in out.records) == 2 * WINDOW)
    kept = sum(len(one.body) for one in following._calls["a" * 16].replies)
    responder.close()
    assert kept <= room.used < 64 * KIB
    following.close()


class Counting:
    """A service that yields as many outputs as are taken."""

    def __init__(self) -> None:
        self.made = 0

    @operation(right="read", group="Look", streams=True)
    def count(self) -> Iterator[results.Output]:
        """Count."""
        for number in range(10_000):
            self.made = number + 1
            yield results.Output("sh", str(number), "c1:1.1:0")

    def call(self, name: str, arguments: Any, **about: Any) -> Any:
        return invoke(self, name, arguments, **about)


def test_of_a_stream_no_more_is_made_than_its_caller_has_room_for(until: Callable[..., Any]) -> None:
    service, out = Counting(), Recorded()
    responder = Responder(service, Everything())
    receive(responder, *call_record("a" * 16, "count"), out.send)
    until(lambda: len(out.records) == WINDOW)
    # it goes on as far as its caller says
    for number in (WINDOW // 2, WINDOW, 2 * WINDOW):
        more = {"v": VERSION, "type": "more", "id": "a" * 16, "next": number, "window": number + WINDOW, "again": False}
        receive(responder, more, b"", out.send)
        until(lambda number=number: sum("number" in header for header, _ in out.records) == number + WINDOW)
        assert service.made <= number + WINDOW + 1
    responder.close()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"operation": 3, "arguments": {}}',
        b'{"operation": "ls", "arguments": []}',
        b'{"operation": "%s", "arguments": {}}' % (b"l" * 65),
        b'{"operation": "ls", "arguments": {"%s": 1}}' % (b"a" * 65),
        b'{"operation": "ls", "arguments": {"all": true}, "data": {"all": ""}}',
    ],
)
def test_a_call_that_cannot_be_read_is_told(control_here: Control, body: bytes) -> None:
    responder, out = Responder(control_here, Everything()), Recorded()
    receive(responder, call_record("a" * 16, "ls")[0], body, out.send)
    assert json.loads(out.wait_for("error")[1])["reason"] == "bad_call"
    responder.close()


def test_a_record_of_another_version_is_told_what_is_understood(control_here: Control) -> None:
    responder, out = Responder(control_here, Everything()), Recorded()
    header, body = call_record("a" * 16, "ls")
    receive(responder, {**header, "v": 99}, body, out.send)
    error = json.loads(out.wait_for("failed")[1])
    assert error["reason"] == "other_version"
    assert "99" in error["message"]


def test_no_more_calls_than_may_be_are_under_way(control_here: Control) -> None:
    responder = Responder(control_here, Everything(), limits=ResponderLimits(calls=2))
    control_here.new("sh", ("sh",))
    out = Recorded()
    for number in range(3):
        receive(responder, *call_record(f"{number}" * 16, "wait", session="sh", text="never"), out.send)
    header, body = out.wait_for("failed")
    assert (header["id"], json.loads(body)["reason"]) == ("2" * 16, "busy")
    receive(responder, {"v": VERSION, "type": "cancel", "id": "0" * 16}, b"", out.send)
    assert json.loads(out.wait_for("error")[1])["reason"] == "cancelled"
    responder.close()


def test_what_is_not_kept_any_more_is_told_and_not_done_again(control_here: Control) -> None:
    responder = Responder(control_here, Everything(), limits=ResponderLimits(kept=1))
    control_here.new("sh", ("sh",))
    record = call_record("a" * 16, "tag", session="sh", tags=["x"])
    first = Recorded()
    receive(responder, *record, first.send)
    first.wait_for("result")
    receive(responder, {"v": VERSION, "type": "more", "id": "a" * 16, "next": 1, "window": 1}, b"", first.send)
    for number in range(3):
        other = Recorded()
        receive(responder, *call_record(f"{number}" * 16, "ls"), other.send)
        other.wait_for("result")
        receive(
            responder, {"v": VERSION, "type": "more", "id": f"{number}" * 16, "next": 1, "window": 1}, b"", other.send
        )
    control_here.tag("sh", remove=("x",))
    again = Recorded()
    receive(responder, *record, again.send)
    assert json.loads(again.wait_for("failed")[1])["reason"] == "outcome_unknown"
    assert control_here.show("sh").tags == ()
    responder.close()


OWN = [
    ("send", {"session": "sh", "secret_from_fd": 0}),
    ("exec", {"session": "sh", "stdin": 0}),
    ("ls", {"machine": 0}),
]


@pytest.mark.parametrize(("name", "arguments"), OWN)
def test_what_means_the_machine_itself_is_refused_whatever_its_value(
    control_here: Control, name: str, arguments: dict[str, Any]
) -> None:
    responder, out = Responder(control_here, Everything()), Recorded()
    receive(responder, *call_record("a" * 16, name, **arguments), out.send)
    assert json.loads(out.wait_for("error")[1])["reason"] == "local_file"
    responder.close()


def test_arguments_that_are_bytes_are_looked_at_as_others_are(control_here: Control) -> None:
    responder = Responder(control_here, Everything())
    header, _ = call_record("a" * 16, "screen")
    told = {}
    for number, data in enumerate(({"session": "web1/sh"}, {"session": "sh", "machine": "web1"})):
        call = RemoteCall("screen", {}, {name: text.encode() for name, text in data.items()})
        out = Recorded()
        receive(responder, {**header, "id": f"{number}" * 16}, pack_call(call), out.send)
        told[number] = json.loads(out.wait_for("error")[1])["reason"]
    assert told == {0: "no_session", 1: "local_file"}
    responder.close()


@pytest.mark.parametrize("wrong", [5, 1.5, True, {"a/b": 1}, [["a/b"]]], ids=str)
def test_a_name_that_is_none_is_no_fault_of_the_machine(control_here: Control, wrong: Any) -> None:
    responder, out = Responder(control_here, Everything()), Recorded()
    receive(responder, *call_record("a" * 16, "screen", session=wrong), out.send)
    assert json.loads(out.wait_for("error")[1])["reason"] in ("no_session", "bad_type")
    responder.close()


class Removed(Everything):
    """The access of a caller that was removed once `over` is set."""

    def __init__(self) -> None:
        self.over = False

    @property
    def rights(self) -> tuple[str, ...]:  # type: ignore[override]
        if self.over:
            raise Denied("not authorized any more", reason="unpaired", hint="pair again")
        return RIGHTS


def test_a_caller_that_was_removed_is_told_nothing_more(control_here: Control, until: Callable[..., Any]) -> None:
    access, out = Removed(), Recorded()
    responder = Responder(control_here, access)
    control_here.new("sh", ("sh",))
    receive(responder, *call_record("a" * 16, "show", session="sh"), out.send)
    out.wait_for("result")
    receive(responder, *call_record("b" * 16, "wait", session="sh", text="never"), out.send)
    until(lambda: len(responder._calls) == 2)
    access.over = True
    control_here.kill(("sh",), signal="KILL")
    header, body = out.wait_for("error")
    assert (header["id"], json.loads(body)["reason"]) == ("b" * 16, "unpaired")
    again = Recorded()
    receive(
        responder,
        {"v": VERSION, "type": "more", "id": "a" * 16, "next": 0, "window": 1, "again": True},
        b"",
        again.send,
    )
    assert [(header["type"], json.loads(body)["reason"]) for header, body in again.records] == [("failed", "unpaired")]
    responder.close()


def test_a_session_that_is_renamed_is_followed_no_further_by_who_may_not_know_it(control_here: Control) -> None:
    access = ServiceAccess(CallerAccess(rights=RIGHTS, sessions=("a*",), remote=True), control_here)
    responder, out = Responder(control_here, access), Recorded()
    control_here.new("a1", ("sh", "-c", "while read line; do echo got $line; done"))
    receive(responder, *call_record("a" * 16, "read", session="a1", follow=True), out.send)
    control_here.send("a1", b"before", wait_text="got before")
    out.wait_for("item")
    control_here.rename("a1", "b1")
    control_here.send("b1", b"behind", wait_text="got behind")
    assert b"no_session" in out.wait_for("error")[1]
    assert not any(b"behind" in body for _, body in out.records)
    responder.close()


def test_results_are_not_kept_for_who_asks_for_them_again_and_again(control_here: Control) -> None:
    responder = Responder(control_here, Everything(), limits=ResponderLimits(kept=2))
    for number in range(8):
        out = Recorded()
        receive(responder, *call_record(f"{number}" * 16, "ls"), out.send)
        out.wait_for("result")
        for before in range(number + 1):
            more = {"v": VERSION, "type": "more", "id": f"{before}" * 16, "next": 0, "window": 1, "again": True}
            receive(responder, more, b"", out.send)
    assert len(responder._calls) <= 2 * 2 + 1
    responder.close()


def test_a_call_of_which_a_part_was_lost_makes_room_again(control_here: Control, until: Callable[..., Any]) -> None:
    timing = changed(TIMING.rpc, lost_seconds=0.1)
    responder = Responder(control_here, Everything(), limits=ResponderLimits(calls=1), timing=timing)
    header, body = call_record("a" * 16, "ls")
    receive(responder, {**header, "parts": 2}, body, Recorded().send)

    def ask() -> bool:
        out = Recorded()
        receive(responder, *call_record("b" * 16, "ls"), out.send)
        return "failed" not in {header["type"] for header, _ in out.records}

    assert not ask()
    until(ask)
    responder.close()


@pytest.mark.timeout(60)
def test_a_call_that_waits_does_not_wait_for_who_refuses_it() -> None:
    def refuse(*_: Any) -> Any:
        raise Denied("not paired", reason="unpaired", hint="pair")

    client = CallClient("far", refuse, timing=TIMING.rpc)
    patience = Patience(3600.0, True, False, False, "")
    with pytest.raises(Denied):
        client.call(RemoteCall(operation="wait", arguments={}, data={}), {}, patience)
    client.close()


@pytest.mark.timeout(60)
def test_a_call_that_waits_does_not_wait_for_who_was_never_reached() -> None:
    def miss(*_: Any) -> Any:
        raise Unreachable("it is off", reason="host_offline", hint="switch it on")

    client = CallClient("far", miss, timing=TIMING.rpc)
    with pytest.raises(Unreachable):
        client.call(RemoteCall(operation="wait", arguments={}, data={}), {}, Patience(3600.0, True, False, False, ""))
    client.close()


@pytest.mark.timeout(60)
def test_a_call_that_was_told_as_not_done_is_not_sent_later(until: Callable[..., Any]) -> None:
    told, made, sent = threading.Event(), list[Any](), list[tuple[str, str]]()

    class Late:
        """A machine that is lost behind a call, and is reached again once the caller of the next one was told that it is not."""

        def __init__(self, _receive: Receive, lost: Callable[[], None]) -> None:
            self.lost, self.connected = lost, now()
            if made:
                beating = next(one for one in threading.enumerate() if one.name == "calls-late")
                if threading.current_thread() is not beating:
                    assert beating.ident
                    # it comes here as soon as this attempt is over
                    until(lambda: sys._current_frames()[beating.ident or 0].f_code.co_name == "_reach")
                    raise Unreachable("it is off", reason="no_answer", hint="switch it on")
                assert told.wait(20)
            made.append(self)

        def send(self, header: Header, _body: bytes) -> None:
            sent.append((str(header["type"]), str(header["id"])))

        def close(self) -> None:
            """Nothing is open."""

    client = CallClient("late", Late, timing=QUICK)
    send = RemoteCall(operation="send", arguments={}, data={})
    with pytest.raises(Unreachable):
        client.call(send, {}, Patience(0.1, False, True, True, "0122", 0.1), call_id="before")
    assert ("call", "before") in sent
    made[0].lost()
    with pytest.raises(Unreachable) as ended:
        client.call(send, {}, Patience(60.0, False, True, True, "0123", 1.0), call_id="given up")
    assert ended.value.reason == "no_answer"
    told.set()
    until(lambda: len(made) > 1)
    # what the beat does with it comes before its next one
    time.sleep(10 * QUICK.gap_seconds)
    client.close()
    assert "given up" not in {call_id for _, call_id in sent}


def test_a_machine_that_only_says_that_it_has_the_call_is_not_waited_for_without_end() -> None:
    class Holding:
        """A carrier to a machine that takes each call, says so again and again, and never answers."""

        def __init__(self, receive: Receive, _lost: Callable[[], None]) -> None:
            self._receive, self.connected = receive, now()

        def send(self, header: Header, _body: bytes) -> None:
            self._receive({"v": VERSION, "type": "taken", "id": header["id"]}, b"")

        def close(self) -> None:
            """Nothing is open."""

    client = CallClient("far", Holding, timing=QUICK)
    for changes, reason in ((False, "no_answer"), (True, "outcome_unknown")):
        patience = Patience(60.0, False, changes, False, "0123", 1.0)
        with pytest.raises(Unreachable) as ended:
            client.call(RemoteCall(operation="ls", arguments={}, data={}), {}, patience)
        assert ended.value.reason == reason
    client.close()


def test_a_deadline_ends_a_call_that_waits_for_a_machine_which_never_answers(
    place: Path, start_host: Any, reach: Callable[..., Control]
) -> None:
    def answer(header: Header, send: Callable[[Header, bytes], None]) -> None:
        send({"v": VERSION, "type": "taken", "id": header["id"]}, b"")

    with lying_machine(f"{place}/liar", answer):
        far = reach(changed(QUICK, heal_seconds=1.0), far=Liar(f"{place}/liar"))
        ended = []

        def wait() -> None:
            try:
                far.call("wait", {"session": "far/sh", "text": "never"}, timeout=0.5)
            except Unreachable as error:
                ended.append(error.reason)

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        thread.join(20)
        assert ended == ["no_answer"]


def test_who_calls_takes_no_more_memory_than_a_call_may() -> None:
    many = b'{"operation":"ls","arguments":{"a":[' + b"{}," * CALL_VALUES + b"0]}}"

    def refused() -> None:
        with pytest.raises(Usage):
            parse_call(many)

    assert peak_memory(refused) < len(many) * 4
    # what stands in a text is no value
    text = json.dumps({"operation": "send", "arguments": {"text": '[{,"' * CALL_VALUES}}).encode()
    assert parse_call(text).arguments["text"].startswith("[{,")


def peak_memory(call: Callable[[], object]) -> int:
    """Bytes that a call takes at most at once."""
    tracemalloc.start()
    call()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


@pytest.mark.night
def test_the_time_that_it_takes_to_connect_is_no_silence(
    host: Host, reach: Callable[..., Control], monkeypatch: pytest.MonkeyPatch
) -> None:
    far = reach(changed(QUICK, silence_seconds=2.0), far=host)
    connect = remote.CARRIERS["gateway"]
    assert callable(connect)

    def connect_slowly(entry: MachineEntry) -> Connect:
        quick = connect(entry)

        def open_slowly(receive: Receive, lost: Callable[[], None]) -> Carrier:
            time.sleep(3.0)
            return quick(receive, lost)

        return open_slowly

    monkeypatch.setitem(remote.CARRIERS, "gateway", connect_slowly)
    assert far.new("far/sh", ("sh",), wait=False).name == "sh"


def test_a_cancel_that_comes_before_its_call_counts(control_here: Control) -> None:
    responder, out = Responder(control_here, Everything()), Recorded()
    receive(responder, {"v": VERSION, "type": "cancel", "id": "a" * 16}, b"", out.send)
    receive(responder, *call_record("a" * 16, "new", name="sh", command=["sh"]), out.send)
    out.wait_for("failed")
    assert control_here.ls().sessions == ()


def test_a_long_body_is_split_and_an_empty_one_is_one_part() -> None:
    assert list(split_body(b"")) == [b""]
    text = os.urandom(3 * BODY_MOST + 1)
    parts = list(split_body(text))
    assert b"".join(parts) == text
    assert len(parts) == 4
