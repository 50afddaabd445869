"""What is sent before it is asked for, and when its answer may be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from tmuxctl.timing import TIMING
from tmuxctl.transport.ahead import MARGIN, KnownSequences


class Machine:
    """Counts what is sent to it. An exchange is the number of the request, and its body."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.changes = 0
        self.sequences: KnownSequences[tuple[int, str]] = KnownSequences(self.begin, lambda: self.changes)

    def begin(self, body: str, pause: float = 0.0) -> tuple[int, str]:
        self.sent.append(f"{body} behind {pause:.3f}" if pause else body)
        return len(self.sent) - 1, body

    def ask(self, body: str, *, reads: bool = True) -> tuple[int, str]:
        """As a transport does it."""
        sequence = self.sequences.current
        assert sequence
        found = sequence.take(body, reads)
        if found is None:
            self.changes += not reads
            found = self.begin(body)
            sequence.follow(body, reads)
        assert found[1] == body
        return found

    def word(self) -> str:
        assert self.sequences.current
        return self.sequences.current.make_word()


def sent_at_first(machine: Machine, *bodies: str, key: str = "screen sh") -> list[int]:
    """Carry out an operation that asks this; how many requests were sent before each was asked for."""
    before, counts = len(machine.sent), []
    with machine.sequences.operation(key):
        for body in bodies:
            machine.ask(body)
            counts.append(len(machine.sent) - before)
    return counts


def test_the_second_time_all_is_sent_at_once():
    machine = Machine()
    assert sent_at_first(machine, "a", "b", "c") == [1, 2, 3]
    assert sent_at_first(machine, "a", "b", "c") == [3, 3, 3]
    assert sent_at_first(machine, "a", "b", key="screen other") == [1, 2]


def test_it_is_sent_before_the_operation_has_come_to_its_first_question():
    machine = Machine()
    sent_at_first(machine, "a", "b")
    with machine.sequences.operation("screen sh"):
        assert machine.sent == ["a", "b"] * 2
        assert machine.ask("a") == (2, "a")


def test_what_is_left_out_or_new_keeps_the_order():
    machine = Machine()
    sent_at_first(machine, "a", "b", "c", "d")
    assert sent_at_first(machine, "a", "c", "d") == [4, 4, 4]
    sent_at_first(machine, "a", "b", "c")
    # nothing that was sent before the new one is used behind it
    assert sent_at_first(machine, "a", "new", "b", "c") == [3, 6, 6, 6]


def test_nothing_more_is_sent_once_it_goes_another_way():
    machine = Machine()
    sent_at_first(machine, "a", "b", "c")
    assert sent_at_first(machine, "a", "new", "newer", "newest", "b", "c") == [3, 6, 7, 8, 10, 10]


def test_the_same_question_twice_in_a_row_is_sent_once():
    machine = Machine()
    assert sent_at_first(machine, "a", "b", "b", "b", "c") == [1, 2, 3, 4, 5]
    assert sent_at_first(machine, "a", "b", "b", "b", "c") == [3, 3, 3, 3, 3]


def test_what_changes_something_is_never_sent_ahead_and_ends_what_was():
    machine = Machine()
    for expected in ([1, 2, 3, 4], [2, 2, 4, 4]):
        before, counts = len(machine.sent), []
        with machine.sequences.operation("send sh"):
            for body in ("look", "facts", "write", "look"):
                machine.ask(body, reads=body != "write")
                counts.append(len(machine.sent) - before)
        assert counts == expected
    with machine.sequences.operation("send sh"):
        machine.ask("look")
        machine.ask("write", reads=False)
        number, _ = machine.ask("facts")
    assert number == machine.sent.index("facts", machine.sent.index("write", 8))


def test_an_answer_from_before_a_change_of_another_thread_is_not_used():
    machine = Machine()
    sent_at_first(machine, "a", "b")
    with machine.sequences.operation("screen sh"):
        machine.ask("a")
        machine.changes += 1
        number, _ = machine.ask("b")
    assert number == len(machine.sent) - 1


def test_nothing_that_was_asked_before_a_sleep_is_used_after_it():
    machine = Machine()
    numbers = []
    for _ in range(2):
        with machine.sequences.operation("wait sh"):
            numbers.append(machine.ask("look"))
            assert machine.sequences.current
            machine.sequences.current.pause(1.0)
            numbers.append(machine.ask("look"))
    assert [number for number, _ in numbers] == [0, 1, 2, 3]


def test_the_shell_there_sleeps_for_an_operation_but_not_for_long():
    machine = Machine()
    asked = TIMING.machine.pause_seconds * 0.4
    for _ in range(2):
        before = len(machine.sent)
        with machine.sequences.operation("wait sh"):
            for number in range(4):
                machine.ask(f"look {number}")
                assert machine.sequences.current
                machine.sequences.current.pause(asked)
    sent = machine.sent[before:]
    # the third sleep would make it too long: others wait for the same shell
    assert sent[:3] == ["look 0", f"look 1 behind {asked + MARGIN:.3f}", f"look 2 behind {asked + MARGIN:.3f}"]
    assert sent[3] == "look 3"


def test_an_old_answer_is_not_used(monkeypatch):
    machine = Machine()
    sent_at_first(machine, "a", "b")
    moments = iter([10.0, 10.0, 10.0 + TIMING.machine.fresh_seconds + 0.1, 20.0])
    monkeypatch.setattr("tmuxctl.transport.ahead.time.monotonic", lambda: next(moments))
    with machine.sequences.operation("screen sh"):
        machine.ask("a")
        number, _ = machine.ask("b")
    assert number == len(machine.sent) - 1


def test_each_request_has_words_of_its_own():
    machine = Machine()
    seen: list[str] = []
    for _ in range(3):
        with machine.sequences.operation("screen sh"):
            machine.ask("first")
            first, second = machine.word(), machine.word()
            machine.ask(f"fields {first} {second} {first}")
            third = machine.word()
            machine.ask(f"rows {third}")
            seen += [first, second, third]
    assert len(set(seen)) == 9
    assert len(machine.sent) == 9


def test_an_operation_inside_another_is_a_part_of_it():
    machine = Machine()
    for _ in range(2):
        with machine.sequences.operation("outer"):
            machine.ask("a")
            with machine.sequences.operation("inner"):
                machine.ask("b")
            machine.ask("c")
    assert machine.sent == ["a", "b", "c"] * 2


def test_a_word_that_was_sent_in_vain_is_replaced():
    machine = Machine()
    for _ in range(2):
        with machine.sequences.operation("screen sh"):
            machine.ask("first")
            machine.ask(f"fields {machine.word()}")
    with machine.sequences.operation("screen sh"):
        machine.ask("first")
        word = machine.word()
        assert machine.sent[-1] == f"fields {word}"
        sequence = machine.sequences.current
        assert sequence
        other = f"other fields {word}"
        assert sequence.take(other, True) is None
        sent, renewed = sequence.renew_words(other)
        assert word not in sent
        assert sent == f"other fields {renewed[word]}"


class LaterProcess(Machine):
    """One that finds what an earlier one kept."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.sequences = KnownSequences(self.begin, lambda: self.changes, file)


def test_a_later_process_knows_what_was_asked(tmp_path: Path):
    file = str(tmp_path / "web1.json")
    first = LaterProcess(file)
    sent_at_first(first, "a", "b", "c")
    first.sequences.keep_answer("b", b"\xff\0")
    first.sequences.save()
    assert sent_at_first(LaterProcess(file), "a", "b", "c") == [3, 3, 3]


def test_what_is_kept_is_written_where_it_changed(tmp_path: Path):
    file = tmp_path / "web1.json"
    for sent, changes in ((("a", "b"), True), (("a", "b"), False), (("a", "c"), True)):
        before = file.stat().st_ino if file.exists() else 0
        process = LaterProcess(str(file))
        sent_at_first(process, *sent)
        process.sequences.save()
        assert (file.stat().st_ino != before) is changes


@pytest.mark.parametrize(
    "kept", ["", "[]", "{}", '{"release": "0", "known": {}, "answers": {}}', '{"known": {"screen sh": [[1]]}}']
)
def test_a_damaged_file_is_as_none(tmp_path: Path, kept: str):
    file = tmp_path / "web1.json"
    file.write_text(kept)
    process = LaterProcess(str(file))
    assert sent_at_first(process, "a", "b") == [1, 2]
    process.sequences.save()
    assert sent_at_first(LaterProcess(str(file)), "a", "b") == [2, 2]


def test_what_was_assumed_and_not_tested_is_asked_for():
    machine = Machine()
    for answer in ("old", "new"):
        asked: list[str] = []

        def send(answer: str = answer, asked: list[str] = asked) -> str:
            sequence = machine.sequences.current
            assert sequence
            if (known := machine.sequences.assume("settings")) is not None:
                sequence.note("settings", reads=True, assumable=True)
                sequence.assumed.append("a condition")
            else:
                sequence.follow("settings", True, True)
                machine.sequences.keep_answer("settings", answer.encode())
                known = answer.encode()
            asked.append(known.decode())
            if len(asked) == 1 and answer == "new":
                raise RuntimeError("of what is no longer so")
            sequence.follow("write", False)
            return known.decode()

        assert machine.sequences.carry_out("send sh", send) == answer
    assert asked == ["old", "new"]
