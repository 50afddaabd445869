"""The lists of all machines: what each told last, without waiting for another one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tmuxctl.control.machines.machine_lists import SESSIONS_MOST, ListPace, MachineLists
from tmuxctl.errors import Unreachable
from tmuxctl.model import Session
from tmuxctl.results import MachineProblem, Sessions

QUICK = ListPace(seen=0.05, rare=60.0, again=0.05, least=0.01)


class Machines:
    """What machines answer, and how often each was asked."""

    def __init__(self) -> None:
        self.asked: dict[str, int] = {}
        self.down: set[str] = set()
        self.broken: set[str] = set()
        self.hung = threading.Event()
        self.number = 1

    def list_sessions(self, name: str, over: threading.Event) -> Sessions:
        self.asked[name] = self.asked.get(name, 0) + 1
        if name == "hangs":
            self.hung.wait()
        if name in self.broken:
            raise OSError("no room")
        if name in self.down:
            raise Unreachable(f"{name}: no answer", reason="no_answer", hint="is it on?")
        return Sessions(tuple(Session(f"s{one}", f"id{one}", machine=name) for one in range(self.number)))


@pytest.fixture
def machines(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Machines]:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "config"))
    (place / "config/tmuxctl").mkdir(parents=True, mode=0o700)
    text = "".join(f'[{name}]\ncommand = ["false"]\n' for name in ("web1", "web2", "hangs"))
    (place / "config/tmuxctl/machines.toml").write_text(text)
    found = Machines()
    yield found
    found.hung.set()


@pytest.fixture
def lists(machines: Machines) -> Iterator[MachineLists]:
    made = MachineLists(machines.list_sessions, lambda name: None, QUICK)
    made.renew()
    yield made
    made.stop()


def test_one_that_does_not_answer_holds_up_none(
    lists: MachineLists, machines: Machines, until: Callable[..., object]
) -> None:
    until(lambda: lists.all()["web1"].is_known and lists.all()["web2"].is_known)
    assert [one.address for one in lists.all()["web1"].sessions] == ["web1/s0"]
    silent = lists.all()["hangs"]
    assert (silent.sessions, silent.problem, silent.is_known) == ((), None, False)


def test_what_a_machine_told_stays_beside_why_it_does_not_answer(
    lists: MachineLists, machines: Machines, until: Callable[..., object]
) -> None:
    until(lambda: lists.all()["web1"].is_known)
    machines.down.add("web1")
    lists.poke("web1")
    until(lambda: lists.all()["web1"].problem)
    found = lists.all()["web1"]
    assert found.problem
    assert (found.problem.reason, found.problem.message, len(found.sessions)) == ("no_answer", "no answer", 1)
    machines.down.clear()
    # it is asked again by itself
    until(lambda: lists.all()["web1"].problem is None)


def test_what_is_looked_at_is_asked_again_and_again(
    lists: MachineLists, machines: Machines, until: Callable[..., object]
) -> None:
    until(lambda: lists.all()["web2"].is_known)
    lists.look_at({"web1"})
    until(lambda: machines.asked["web1"] > 5)
    assert machines.asked["web2"] == 1


def test_a_machine_that_is_not_named_any_more_is_not_listed(
    place: Path, machines: Machines, until: Callable[..., object]
) -> None:
    lists = MachineLists(machines.list_sessions, lambda name: None, ListPace(0.05, 0.0, 0.05, 0.01))
    lists.renew()
    assert set(lists.all()) == {"web1", "web2", "hangs"}
    (place / "config/tmuxctl/machines.toml").write_text('[web3]\ncommand = ["false"]\n')
    lists.renew()
    assert set(lists.all()) == {"web3"}
    lists.stop()
    assert lists.all() == {}


def test_the_file_of_machines_is_read_once_in_a_while(place: Path, lists: MachineLists) -> None:
    (place / "config/tmuxctl/machines.toml").write_text('[web3]\ncommand = ["false"]\n')
    lists.renew()
    assert "web3" not in lists.all()


def test_all_are_asked_again_where_no_name_is_given(
    lists: MachineLists, machines: Machines, until: Callable[..., object]
) -> None:
    until(lambda: lists.all()["web1"].is_known and lists.all()["web2"].is_known)
    lists.poke()
    until(lambda: machines.asked["web1"] == machines.asked["web2"] == 2)


def test_what_is_looked_at_anew_is_asked_at_once(machines: Machines, until: Callable[..., object]) -> None:
    lists = MachineLists(machines.list_sessions, lambda name: None, ListPace(60.0, 60.0, 60.0, 0.01))
    lists.renew()
    until(lambda: lists.all()["web1"].is_known)
    lists.look_at({"web1"})
    until(lambda: machines.asked["web1"] == 2)
    lists.stop()


def test_none_is_asked_any_more_once_it_is_stopped(machines: Machines, until: Callable[..., object]) -> None:
    told: list[str] = []
    lists = MachineLists(machines.list_sessions, told.append, QUICK)
    lists.renew()
    until(lambda: set(told) == {"web1", "web2"})
    lists.look_at({"web1", "web2"})
    until(lambda: machines.asked["web1"] > 2)
    lists.stop()
    until(lambda: [one.name for one in threading.enumerate()].count("tmuxctl-machine") <= 1)
    asked = dict(machines.asked)
    # who was still asked then is told to nobody
    machines.hung.set()
    until(lambda: "tmuxctl-machine" not in [one.name for one in threading.enumerate()])
    assert (machines.asked, lists.all()) == (asked, {})
    assert "hangs" not in told


def test_an_error_of_this_machine_is_a_problem_of_that_one(
    lists: MachineLists, machines: Machines, until: Callable[..., object]
) -> None:
    until(lambda: lists.all()["web1"].is_known)
    machines.broken.add("web1")
    lists.poke("web1")
    problem = until(lambda: lists.all()["web1"].problem)
    assert isinstance(problem, MachineProblem)
    assert (problem.reason, problem.message) == ("failed", "no room")


def test_no_more_is_kept_of_one_machine_than_its_bound(
    lists: MachineLists, machines: Machines, until: Callable[..., object]
) -> None:
    until(lambda: lists.all()["web1"].is_known)
    machines.number = SESSIONS_MOST + 1
    lists.poke("web1")
    until(lambda: len(lists.all()["web1"].sessions) == SESSIONS_MOST)
