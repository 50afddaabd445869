"""`tmuxctl top`: its pages are a function of what is known; its keys are pressed in a real terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import psutil
import pytest
from programs import LINES, SHELL
from wcwidth import wcwidth

from tmuxctl.control import Control
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import Asking, Option, Session, State, Status
from tmuxctl.results import Event
from tmuxctl.surfaces.cli.printing.table import moment
from tmuxctl.surfaces.cli.top import feed as top_feed
from tmuxctl.surfaces.cli.top import live
from tmuxctl.surfaces.cli.top import meter as top_meter
from tmuxctl.surfaces.cli.top import terminal as top_terminal
from tmuxctl.surfaces.cli.top.pages import (
    Load,
    Row,
    View,
    answer_of,
    help_page,
    memory,
    page,
    percent,
    question_page,
)
from tmuxctl.surfaces.cli.top.selection import Selection
from tmuxctl.timing import TIMING, PageTiming, Timing
from tmuxctl.transport.base import ProcessLoad
from tmuxctl.value import changed
from tmuxctl.vocabulary import InputKind

Until = Callable[[Callable[[], Any]], Any]

NOW = 1_790_000_000.0
ASKING = Asking(
    InputKind.CONFIRM,
    "77aa",
    "Overwrite a.txt?",
    (Option("yes", "y", ("y",)), Option("no", "no", ("n",))),
    "no",
    "high",
)


def row(name: str, state: State = State.IDLE, ago: float = 5.0, load: Load | None = None, **facts: Any) -> Row:
    active = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(NOW - ago))
    asking = ASKING if state is State.ASKING else None
    told: dict[str, Any] = {"asking": asking, "kind": InputKind.CONFIRM if asking else None}
    told |= {name: facts.pop(name) for name in told.keys() & facts.keys()}
    given = {"argv": ("bash",), "profile": "bash", "active": active, **facts}
    return Row(Session(name=name, id=f"id-{name}", status=Status(state, **told), **given), load)


ROWS = (
    row("web", State.IDLE, 7300, Load(0.0, 3 << 20), argv=("node", "server.js")),
    row("build", State.BUSY, 0, Load(98.24, 345 << 20), argv=("make", "idle"), profile=None),
    row("gone", State.EXITED, 60, exit_status=2),
    row("fix", State.ASKING, 200, Load(1600.4, 1288490188)),
    row("db", State.IDLE, 12, Load(0.1, 900 << 10), argv=("sqlite3", "shop.db")),
)


def text(lines: Any) -> list[str]:
    return ["".join(piece.text for piece in line) for line in lines]


def columns(line: str) -> int:
    return sum(max(0, wcwidth(one)) for one in line)


def drawn(width: int = 80, height: int = 14, rows: Any = ROWS, **view: Any) -> list[str]:
    return text(page(View(rows, width, height, NOW, **view)).lines)


def names(lines: list[str]) -> list[str]:
    return [line[2:].split()[0] for line in lines[2:-1] if line.strip() and not line.startswith("    ")]


# pages


def test_the_table_shows_what_is_known_and_asking_sessions_first():
    lines = drawn(selected="id-fix")
    assert [line.rstrip() for line in lines[:9]] == [
        "tmuxctl  5 sessions  1 asking  1 busy  2 idle  1 exited        1 of 5, by state",
        "  NAME   STATE           IDLE   CPU%    MEM  PROFILE  COMMAND",
        "> fix    asking confirm    3m   1600   1.2G  bash     bash",
        "    ? Overwrite a.txt?: yes | no",
        "  build  busy              0s   98.2   345M  -        make idle",
        "  db     idle             12s    0.1   900K  bash     sqlite3 shop.db",
        "  web    idle              2h    0.0   3.0M  bash     node server.js",
        "  gone   exited 2           -      -      -  bash     bash",
        "",
    ]
    assert lines[-1] == " Enter attach  d decide  t type  n next  x kill  / filter  ? help  q quit"


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("state", ["fix", "build", "db", "web", "gone"]),
        ("name", ["build", "db", "fix", "gone", "web"]),
        ("cpu", ["fix", "build", "db", "web", "gone"]),
        ("mem", ["fix", "build", "web", "db", "gone"]),
        ("idle", ["web", "fix", "db", "build", "gone"]),
    ],
)
def test_rows_are_sorted(order, expected):
    lines = drawn(order=order)
    assert names(lines) == expected
    assert lines[0].endswith(f"by {order}")


def test_rows_that_are_equal_stand_in_the_order_in_which_people_count() -> None:
    rows = tuple(row(name) for name in ("ask10", "Ask2", "ask1"))
    assert names(drawn(rows=rows, order="name")) == ["ask1", "Ask2", "ask10"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("SQL", ["db"]),
        ("asking", ["fix"]),
        ("idle", ["db", "web"]),
        ("overwrite", ["fix"]),
        ("bash idle", ["db", "web"]),
        ("idle node", ["web"]),
        ("nothing at all", ["no"]),
    ],
)
def test_a_filter_is_words_and_states(words, expected):
    assert names(drawn(words=words)) == expected


HOSTILE = "\x1b]0;x\x07\x9b31m\r\n\u202e\u0301漢字漢字👍\ue000" + "w" * 300


@pytest.mark.parametrize("width", [1, 2, 10, 20, 33, 80, 200])
@pytest.mark.parametrize("height", [1, 2, 3, 5, 24])
def test_a_page_is_as_large_as_its_terminal_and_steers_nothing(width, height):
    asking = changed(ASKING, question=HOSTILE, options=(Option(HOSTILE, HOSTILE, ()),) * 40)
    rows = (*ROWS, row("x", State.ASKING, argv=(HOSTILE, HOSTILE), profile=HOSTILE, kind=HOSTILE, asking=asking))
    view = View(rows, width, height, NOW, selected="id-x", words=HOSTILE[:4])
    pages = [
        page(view), page(view._replace(words="")), page(view._replace(rows=())), help_page(width, height),
        question_page(rows[-1].session, width, height),
        question_page(row("y", State.ASKING, asking=Asking(InputKind.QUESTION, "", HOSTILE)).session, width, height, "漢字" * 300),
    ]  # fmt: skip
    for one in pages:
        lines = text(one.lines)
        assert len(lines) == height
        assert all(line.isprintable() and columns(line) <= width for line in lines)


def test_wide_characters_keep_the_columns_aligned_and_long_texts_are_cut():
    rows = (
        row("a", State.IDLE, argv=("漢字漢字漢字漢字漢字漢字漢字",)),
        row("b", State.ASKING, kind="漢字", argv=("x" * 90,)),
    )
    head, *lines = drawn(60, 8, rows)[1:5]
    wide, long = lines[2], lines[0]
    place = head.index("IDLE") + 4
    assert [columns(line[: line.index("5s") + 2]) for line in (wide, long)] == [place, place]
    assert all(columns(line) <= 60 and line.rstrip().endswith("…") for line in (wide, long))


def test_where_there_is_little_room_the_name_and_the_state_stay():
    lines = drawn(20, 5, selected="id-fix")
    assert lines[0].startswith("5: 1 asking  1 busy")
    assert lines[2].startswith("> fix    asking")
    assert "COMMAND" not in lines[1]
    assert drawn(40, 5)[1].split() == ["NAME", "STATE", "IDLE", "COMMAND"]


def test_the_selected_session_stays_in_sight_and_the_table_still():
    rows = tuple(row(f"s{number:02}") for number in range(40))
    first = 0
    for selected, expected in ((0, 0), (6, 0), (7, 1), (39, 33), (34, 33), (33, 33), (20, 20), (0, 0)):
        found = page(View(rows, 60, 10, NOW, selected=f"id-s{selected:02}", first=first))
        first = found.first
        assert first == expected
        assert any(line.startswith(f"> s{selected:02}") for line in text(found.lines))
    asks = (*rows, row("t", State.ASKING))
    lines = drawn(60, 5, asks, selected="id-t", first=20)
    assert [line[:5] for line in lines[2:4]] == ["> t  ", "    ?"]


def test_what_to_do_where_there_is_nothing():
    assert "no sessions; tmuxctl new -- COMMAND" in "\n".join(drawn(rows=()))
    assert "Escape ends the filter" in "\n".join(drawn(words="nosuch"))


def test_asking_sessions_stand_out():
    view = View(ROWS, 80, 14, NOW, selected="id-fix")
    styles = {piece.text.strip(): piece.style for line in page(view).lines for piece in line if piece.text.strip()}
    assert styles["asking confirm"] == "reverse asking"
    assert styles["? Overwrite a.txt?: yes | no"] == "asking"
    assert styles["d"] == "asking"
    elsewhere = page(view._replace(selected="id-db")).lines[-1]
    assert {piece.style for piece in elsewhere if piece.text == "d"} == {"key"}


def test_a_question_is_shown_with_a_key_for_each_answer():
    lines = text(question_page(ROWS[3].session, 60, 10).lines)
    assert [line.rstrip() for line in lines[:6]] == [
        "fix asks  risk: high",
        "",
        "  Overwrite a.txt?",
        "",
        "  1  yes (y)",
        "  2  no  (what Enter alone would choose)",
    ]
    assert lines[-1] == " one key answers  y yes  n no  Escape leaves"


@pytest.mark.parametrize(
    ("answers", "key", "chosen"),
    [
        (["yes", "no"], "n", "no"),
        (["yes", "no"], "y", "yes"),
        (["yes", "no"], "2", "no"),
        (["allow", "always", "deny"], "n", "deny"),
        (["allow", "always", "deny"], "y", None),
        (["main", "next"], "n", None),
        (["main", "next"], "3", None),
        ([*(f"answer{number}" for number in range(22)), "next", "no"], "n", "next"),
    ],
)
def test_a_key_chooses_an_answer_by_its_number_or_as_yes_and_no(answers, key, chosen):
    assert answer_of(key, answers) == chosen


@pytest.mark.parametrize(("selected", "words", "place"), [("s07", "", "8 of 60"), ("s07", "s0", "8 of 10 with 's0'")])
def test_the_place_of_the_selected_session_is_told(selected, words, place):
    rows = tuple(row(f"s{number:02}") for number in range(60))
    assert drawn(80, 10, rows, selected=f"id-{selected}", words=words)[0].endswith(f"  {place}, by state")


def test_names_are_whole_where_less_important_columns_can_give_way():
    rows = tuple(row(f"worker-with-long-name-{number:02}", argv=("bash",)) for number in range(3))
    shown = drawn(70, 10, rows)
    assert names(shown) == [one.session.name for one in rows]
    assert shown[1].split() == ["NAME", "STATE", "IDLE", "CPU%", "MEM", "COMMAND"]
    assert drawn(90, 10, rows)[1].split() == ["NAME", "STATE", "IDLE", "CPU%", "MEM", "PROFILE", "COMMAND"]
    assert drawn(50, 10, rows)[1].split() == ["NAME", "STATE", "IDLE", "COMMAND"]


def test_on_a_small_terminal_the_answers_come_before_all_else():
    lines = text(question_page(ROWS[3].session, 20, 5).lines)
    assert [line[:8] for line in lines] == ["fix asks", "  Overwr", "  1  yes", "  2  no ", " one key"]
    many = changed(ASKING, options=tuple(Option(f"answer{number}", "", ()) for number in range(12)))
    lines = text(question_page(row("m", State.ASKING, asking=many).session, 40, 14).lines)
    assert lines[0] == "  Overwrite a.txt?"
    assert lines[-2] == "  c  answer11"


def test_numbers_are_short():
    sizes = [memory(Load(None, size)) for size in (0, 1000 << 10, 10 << 20, 1000 << 20, 12 << 30, 3 << 40)]
    assert sizes == ["0K", "1.0M", "10M", "1.0G", "12G", "3.0T"]
    assert [percent(Load(cpu, 0)) for cpu in (None, 0.04, 99.96, 999.96)] == ["-", "0.0", "100.0", "1000"]


# the selection


def test_the_selection_follows_its_session_and_then_what_stood_below_it():
    selection = Selection()
    selection.follow(["a", "b", "c", "d"], "")
    assert (selection.id, selection.pointed) == ("a", True)
    selection.move(1)
    selection.follow(["c", "a", "d", "b"], "")
    assert (selection.id, selection.pointed) == ("b", True)
    selection.follow(["c", "b", "a", "d"], "")
    # the nearest below that is left; nobody pointed at it
    selection.follow(["x", "c", "d"], "")
    assert (selection.id, selection.pointed) == ("d", False)
    selection.move(1)
    assert (selection.id, selection.pointed) == ("d", True)
    # the last one only from the last
    selection.follow(["x", "c"], "")
    assert (selection.id, selection.pointed) == ("c", False)
    selection.follow([], "")
    assert not selection.id
    selection.follow(["y", "z"], "")
    assert (selection.id, selection.pointed) == ("y", True)


def test_a_session_that_a_filter_selects_was_pointed_at():
    selection = Selection()
    selection.follow(["a", "b"], "")
    selection.follow(["b"], "b")
    assert (selection.id, selection.pointed) == ("b", True)


def test_a_session_that_is_about_to_end_is_left_for_the_next():
    selection = Selection()
    selection.follow(["a", "b", "c"], "")
    selection.leave()
    assert (selection.id, selection.pointed) == ("b", False)
    selection.move(10**6)
    selection.leave()
    assert (selection.id, selection.pointed) == ("b", False)
    selection.follow(["b"], "")
    selection.leave()
    assert selection.id == "b"


# keys and loads


@pytest.mark.parametrize(
    ("sent", "keys", "rest"),
    [
        ("jK/?", ["j", "K", "/", "?"], ""),
        ("\x1b[A\x1bOB\x1b[5~\x1b[1~q", ["up", "down", "pageup", "home", "q"], ""),
        ("\r\n\x7f\x15", ["enter", "enter", "backspace", "clear"], ""),
        ("漢\t\x00", ["漢", "tab"], ""),
        ("x\x1b", ["x"], "\x1b"),
        ("\x1b[1", [], "\x1b[1"),
        ("\x1b\x1b[A", ["escape", "up"], ""),
        ("\x1b[200~\x1bx\x1b[1;5A\x1bOP", [], ""),
    ],
)
def test_keys_are_told_from_sequences(sent, keys, rest):
    assert top_terminal.parse(sent) == (keys, rest)


BURN = "import time\nend = time.process_time() + 0.2\nwhile time.process_time() < end: pass"


@pytest.mark.on("tmux")
def test_a_load_is_that_of_the_whole_tree(control, until):
    script = f"read go; {sys.executable} -c '{BURN}'; echo done; sleep 60 & read more"
    with subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as shell:
        meter = top_meter.Meter(control.machine.transport.load, 0.0)
        roots = {"s": shell.pid, "nobody": 2**22 + 1}
        before = meter.measure(roots)
        assert before.keys() == {"s"}
        assert before["s"].cpu is None
        print(file=shell.stdin, flush=True)
        assert shell.stdout
        assert shell.stdout.readline() == "done\n"
        # the child that worked has ended
        after = meter.measure(roots)
        assert (after["s"].cpu or 0) > 0
        until(psutil.Process(shell.pid).children)
        tree = [psutil.Process(shell.pid), *psutil.Process(shell.pid).children()]
        until(lambda: meter.measure(roots)["s"].memory > max(one.memory_info().rss for one in tree))
        for one in reversed(tree):
            one.kill()
        shell.wait()
        until(lambda: meter.measure(roots) == {})


def test_only_loads_that_are_seen_are_measured_again():
    measured: list[int] = []

    def load(pid: int) -> ProcessLoad:
        measured.append(pid)
        return ProcessLoad(1, 1 << 20, float(len(measured)))

    meter, roots = top_meter.Meter(load, 0.0), {"a": 1, "b": 2}
    assert [one.cpu for one in meter.measure(roots).values()] == [None, None]
    loads = meter.measure(roots, lambda key: key == "b")
    assert measured == [1, 2, 2]
    assert (loads["a"].cpu, (loads["b"].cpu or 0) > 0) == (None, True)
    assert meter.measure({"a": 1}, lambda key: False).keys() == {"a"}


def test_where_no_load_is_to_be_had_none_is_known():
    def load(pid: int) -> ProcessLoad:
        raise ImportError("psutil")

    assert top_meter.Meter(load).measure({"s": os.getpid()}) == {}


class Told:
    """A Control whose `ls` and `watch` say what the test wants, and its tmux the same."""

    def __init__(self, timing: Timing = TIMING) -> None:
        self.machine, self.transport, self.io, self.timing = self, self, self, timing
        self.listed = self.asked = 0
        self.address = ""
        self.sessions: list[Session] | Exception = []
        self.events: list[Any] = []

    def load(self, pid: int) -> ProcessLoad:
        return ProcessLoad(1, 0, 0.0)

    def list_values(self, fields: Any) -> list[list[str]]:
        self.asked += 1
        if isinstance(self.sessions, Exception):
            raise self.sessions
        return [
            [one.id, one.incarnation or "", one.name, "0", "", str(one.attached), str(int(moment(one.active or "")))]
            for one in self.sessions
        ]

    def call(self, name: str, arguments: Any, cancelled: Any = None, caller: Any = None) -> Any:
        if name == "watch":
            return iter(self.events)
        self.listed += 1
        if isinstance(self.sessions, Exception):
            raise self.sessions
        return type("Sessions", (), {"sessions": tuple(self.sessions), "problems": ()})


@pytest.fixture
def fed() -> Iterator[tuple[Told, top_feed.Feed]]:
    told = Told()
    feed = top_feed.Feed(cast("Control", told), lambda: None)
    yield told, feed
    feed.close()


def event(state: State, incarnation: str = "a.1") -> Event:
    return Event(time="", session="web", status=Status(state), cursor=f"c1:{incarnation}:7", exit_status=None)


def test_what_watch_told_last_counts_more_than_a_list(fed, until):
    told, feed = fed
    told.sessions = [row("web", incarnation="a.1").session, row("gone", State.EXITED, incarnation="b.1").session]
    told.events = [event(State.BUSY), event(State.IDLE, "b.1"), event(State.BUSY, "other.1")]
    feed.start()
    until(lambda: [one.session.state for one in feed.rows()] == [State.BUSY, State.EXITED])


QUICK = Timing(page=PageTiming(table_seconds=0.01, together_seconds=0.0, changed_seconds=0.05, rare_seconds=1e9))


def test_sessions_are_listed_whole_where_one_came_or_a_state_changed_and_else_only_asked_for(until):
    told = Told(QUICK)
    feed = top_feed.Feed(cast("Control", told), lambda: None)
    told.sessions = [row("web", incarnation="a.1").session]
    feed.start()

    def asked_again() -> bool:
        number = told.asked
        return bool(until(lambda: told.asked > number + 5))

    assert asked_again()
    assert told.listed == 1
    told.sessions = [changed(told.sessions[0], attached=1, active="2026-11-26T00:00:00Z")]
    until(lambda: [(one.session.attached, one.session.active) for one in feed.rows()] == [(1, "2026-11-26T00:00:00Z")])
    assert told.listed == 1
    told.sessions = [*told.sessions, row("new", incarnation="n.1").session]
    until(lambda: len(feed.rows()) == 2)
    assert asked_again()
    assert told.listed == 2
    feed._hear(event(State.BUSY))
    until(lambda: told.listed == 3)
    assert asked_again()
    assert told.listed == 3
    feed.close()


@pytest.mark.night
def test_a_row_is_made_anew_only_where_something_changed(fed):
    told, feed = fed
    told.sessions = [row("web", incarnation="a.1").session, row("db", incarnation="b.1").session]
    feed.list_once()
    before = feed.rows()
    feed._hear(event(State.BUSY))
    assert [one is other for one, other in zip(before, feed.rows(), strict=True)] == [False, True]


@pytest.mark.night
def test_a_table_that_is_not_fresh_says_why_and_a_bug_is_not_hidden(fed, until):
    told, feed = fed
    feed.start()
    told.sessions = TmuxctlError("tmux did not answer")
    until(lambda: feed.problem == "tmux did not answer")
    told.sessions = ZeroDivisionError("oh")
    feed.poke()

    def failed() -> bool:
        try:
            feed.rows()
        except ZeroDivisionError:
            return True
        return False

    until(failed)


# the real thing


class Table:
    """`tmuxctl top` in a session of the server it shows."""

    def __init__(self, control: Control, place: Path, until: Until) -> None:
        self.control, self.until = control, until
        self.environment = {"TMUX_TMPDIR": str(place), "TMUXCTL_SOCKET": os.environ["TMUXCTL_SOCKET"]}
        self.command = (sys.executable, "-m", "tmuxctl", "top")

    def open(self, *words: str, size: str = "90x20", **environment: str) -> None:
        self.control.new("top", (*self.command, *words), env=self.environment | environment, size=size, wait=False)
        self.sees("by state")

    @property
    def text(self) -> str:
        return self.control.screen("top").text

    def sees(self, *words: str) -> str:
        return str(self.until(lambda: all(word in self.text for word in words) and self.text))

    def changed(self, words: str) -> str:
        """What it shows once it does not show these words any more."""
        return str(self.until(lambda: words not in (now := self.text) and now))

    def press(self, *keys: str) -> None:
        self.control.keys("top", keys)

    def select(self, name: str) -> None:
        """By a filter that only this session passes."""
        self.press("/", "C-u", *name, "Enter")
        self.sees(f"> {name} ", f"1 with '{name}'")


@pytest.fixture
def table(control: Control, place: Path, until: Until) -> Table:
    return Table(control, place, until)


ASKS = ("sh", "-c", "printf 'Overwrite 文件.txt? [y/n] '; read answer; echo \"got $answer\"; exec cat")

real = pytest.mark.on("tmux")


@pytest.mark.night
@real
def test_it_shows_sessions_as_they_change(control, table):
    # cat alone closes its terminal before it ends: if tmux sees that first, the kernel still hangs it up
    control.new("web", ("sh", "-c", "cat; exit 0"))
    table.open()
    shown = table.sees("web", "idle", "cat")
    assert re.search(r"^> top|^> web", shown, re.MULTILINE)
    control.new("fix", ASKS)
    shown = table.sees("fix", "asking confirm", "? Overwrite 文件.txt? [y/n]: yes | no")
    assert shown.index("fix") < shown.index("web")
    control.keys("web", ["C-d"])
    table.sees("exited 0")
    control.kill(("web",))
    table.until(lambda: "web" not in table.text)


@pytest.mark.night
@real
def test_a_question_is_decided_from_within(control, table):
    control.new("web", LINES)
    control.new("fix", ASKS)
    table.open()
    table.sees("? Overwrite")
    table.press("Home", "d")
    table.sees("fix asks", "1  yes", "2  no", "one key answers")
    table.press("Escape")
    table.sees("by state")
    table.press("d")
    table.sees("fix asks")
    table.press("1")
    assert control.wait("fix", text="got y").matched == "text"
    table.sees("fix: yes")
    table.until(lambda: "? Overwrite" not in table.text)


@real
def test_where_any_text_is_an_answer_it_is_written(control, table):
    control.new("fix", ("sh", "-c", "printf 'Do you want to name it? '; read name; echo \"hello $name\"; exec cat"))
    table.open()
    table.sees("? Do you want to name it?")
    table.press("Home", "d")
    table.sees("answer:")
    table.press(*"Ann Lex", "BSpace", "e", "Enter")
    assert control.wait("fix", text="hello Ann Lee").matched == "text"


@real
def test_a_question_answered_elsewhere_is_no_longer_shown(control, table):
    control.new("fix", ASKS)
    table.open()
    table.sees("? Overwrite")
    table.press("Home", "d")
    table.sees("fix asks")
    control.decide("fix", "no")
    table.sees("fix does not ask that any more")


@real
def test_kill_asks_first(control, table):
    control.new("web", LINES)
    table.open()
    table.select("web")
    table.press("x")
    table.sees("kill web? y or any other key for no")
    table.press("n")
    assert table.changed("kill web?").endswith("q quit")
    assert control.show("web").state is State.IDLE
    table.press("K")
    table.sees("kill web?")
    table.press("y")
    table.until(lambda: "web" not in [one.name for one in control.ls().sessions])
    table.sees("killed web")


@pytest.mark.night
@real
@pytest.mark.parametrize("words", ["", "s"])
def test_after_a_kill_the_next_row_is_selected_and_nothing_else_is_killed(control, table, words):
    for number in range(1, 5):
        control.new(f"s{number}", LINES)
    table.open(size="120x20")
    table.press("s", "/", *words, "Enter", "Home")
    table.sees("by name", "> s1 ")
    table.press("j")
    table.sees("> s2 ")
    table.press("x")
    table.sees("kill s2?")
    table.press("y")
    table.sees("> s3 ", "killed s2")
    table.until(lambda: " s2 " not in table.text)
    table.press("x")
    table.sees("the selection moved to s3 by itself", "> s3 ")
    table.press("y", "x")
    table.sees("kill s3?")
    table.press("y")
    table.sees("> s4 ", "killed s3")
    table.until(lambda: " s3 " not in table.text)
    table.press("k", "x")
    table.sees("kill s1?")
    assert {one.name for one in control.ls().sessions} >= {"s1", "s4"}


@pytest.mark.night
@real
def test_the_question_whether_to_kill_goes_with_its_session(control, table):
    for number in range(1, 4):
        control.new(f"s{number}", LINES)
    table.open(size="120x20")
    # in the order of states s2 may be seen at the end, as exited, before it is gone
    table.press("s")
    table.sees("by name")
    table.select("s2")
    table.press("Escape")
    table.sees("2 of 4")
    table.press("x")
    table.sees("kill s2?")
    control.kill(("s2",))
    table.sees("s2 is gone", "> s3 ")
    table.press("y")
    table.changed("s2 is gone")
    assert {one.name for one in control.ls().sessions} >= {"s1", "s3"}


@real
def test_n_means_no_on_the_page_of_a_question(control, table):
    control.new("fix", ASKS)
    table.open()
    table.sees("? Overwrite")
    table.press("Home", "d")
    table.sees("fix asks", "n no")
    table.press("n")
    assert control.wait("fix", text="got n").matched == "text"


@real
def test_what_was_typed_before_the_question_was_seen_kills_nothing(control, table):
    control.new("web", LINES)
    table.open()
    table.select("web")
    control.send("top", b"xy", enter=False)
    table.sees("kill web?")
    assert control.show("web").state is State.IDLE


@pytest.mark.night
@real
def test_interrupt_presses_the_keys_of_the_profile(control, table, until):
    control.new("loop", SHELL)
    control.send("loop", b"sleep 1000")
    until(lambda: control.show("loop").state is State.BUSY)
    table.open()
    table.select("loop")
    table.press("i")
    table.sees("interrupted loop")
    assert control.wait("loop").matched == "idle"


@real
def test_an_operation_that_fails_says_so_in_the_last_line(control, table):
    control.new("gone", ("true",), wait=False)
    table.open()
    table.sees("exited 0")
    table.select("gone")
    table.press("i")
    table.sees("has ended", "by state")
    table.press("d")
    table.sees("gone asks no question: it is exited")


@pytest.mark.night
@real
def test_a_filter_and_an_order(control, table):
    for name in ("web", "worker", "db"):
        control.new(name, LINES)
    table.open()
    table.sees("web", "worker", "db")
    table.press("/", *"rkez")
    table.sees("filter: rkez", "no session matches")
    table.press("BSpace", "Enter")
    shown = table.sees("1 with 'rke', by state", "worker")
    assert not re.search(r"^..(web|db|top) ", shown, re.MULTILINE)
    table.press("Escape")
    table.sees("web", "by state")
    table.press("/", "q")
    table.sees("filter: q")
    table.press("Escape")
    assert table.changed("filter: q").splitlines()[0].endswith(" by state")
    for order in ("name", "cpu", "mem", "idle", "state"):
        table.press("s")
        table.sees(f"by {order}")
    table.press("?")
    table.sees("any key goes back", "Up Down")
    table.press("x")
    table.sees("by state", "web")


@pytest.mark.night
@real
def test_it_survives_every_size(control, table):
    control.new("fix", ASKS)
    for name in ("one", "two", "three"):
        control.new(name, LINES)
    table.open()
    table.sees("one", "two", "three")
    sizes = (
        (90, 5, "q quit"),
        (90, 20, "q quit"),
        (20, 5, "Enter attach"),
        (200, 40, "q quit"),
        (2, 2, ""),
        (80, 24, ""),
    )
    for cols, rows, footer in sizes:
        control.resize("top", f"{cols}x{rows}")

        def fits(cols: int = cols, rows: int = rows, footer: str = footer) -> bool:
            lines = table.text.splitlines()
            if not lines or len(lines) > rows or any(columns(line) > cols for line in lines):
                return False
            if rows >= 20 and not all(name in table.text for name in ("fix", "one", "two", "three")):
                return False
            heads = [number for number, line in enumerate(lines) if "STATE" in line]
            return not footer or (len(lines) == rows and footer in lines[-1] and heads == [1] and "> fix" in lines[2])

        table.until(fits)


@pytest.mark.night
@real
def test_the_selected_session_is_seen_live_beside_the_table_or_below_it(control, table):
    control.new("web", LINES)
    control.send("web", b"first words")
    table.open(size="160x30")
    table.press("/", *"web", "Enter")
    shown = table.sees("│ web", "│first words")
    assert shown.splitlines()[1].startswith("  NAME")
    control.send("web", b"\x1b[31msecond")
    table.sees("second")
    control.resize("top", "90x40")
    below = table.sees("second")
    assert "│" not in below
    assert below.splitlines()[20].startswith(" web")
    table.press("v")
    table.changed("second")
    table.press("v")
    table.sees("second")
    control.resize("top", "90x20")
    table.press("v")
    table.changed("second")


@pytest.mark.night
@real
def test_a_line_is_typed_to_the_selected_session(control, table):
    control.new("web", LINES)
    table.open()
    table.select("web")
    table.press("t")
    table.sees("to web:")
    table.press(*"hallo", "BSpace", "!")
    table.sees("to web: hall!")
    table.press("Enter")
    assert control.wait("web", text="^hall!$").matched == "text"
    table.sees("typed to web")
    table.press("t")
    table.sees("to web:")
    table.press("x", "Escape")
    table.sees("q quit")
    assert "x" not in control.screen("web").text
    control.keys("web", ["C-d"])
    table.sees("exited")
    table.press("t")
    table.sees("nothing can be typed to it")


@pytest.mark.night
@real
def test_the_next_that_asks_is_selected(control, table):
    for name in ("one", "two", "web"):
        control.new(name, ASKS if name != "web" else SHELL)
    table.open(size="90x25")
    table.sees("2 asking")
    for key, name in (("End", ""), ("n", "one"), ("Tab", "two"), ("n", "one")):
        table.press(key)
        table.until(lambda name=name: f"> {name}" in table.text)
    control.kill(("one", "two"))
    table.until(lambda: "asking" not in table.text)
    table.press("n")
    table.sees("no session wants input")


@pytest.mark.night
@real
def test_a_click_selects_and_a_second_one_attaches(control, table):
    control.new("web", LINES)
    control.new("zoo", LINES)
    control.send("zoo", b"in the zoo")
    table.open()
    lines = table.sees("web", "zoo").splitlines()
    (row,) = [number for number, line in enumerate(lines, 1) if line[2:].startswith("zoo")]
    press = f"\x1b[<0;5;{row}M\x1b[<0;5;{row}m".encode()
    control.send("top", press, enter=False)
    table.sees("> zoo")
    # the second press of a double click comes with the first
    control.send("top", press + press, enter=False)
    table.sees("in the zoo", "C-b d leaves")
    table.press("C-b", "d")
    table.sees("back from zoo")
    control.send("top", b"\x1b[<65;5;5M", enter=False)
    control.send("top", b"\x1b[<64;5;5M" * 30, enter=False)
    table.until(lambda: "> zoo" not in table.text)


@pytest.mark.night
@real
def test_the_bell_rings_when_a_session_begins_to_want_input(control, table):
    control.new("web", SHELL)
    table.open()
    rung = control.read("top").cursor
    control.send("web", b"read -p 'Delete it? [y/n] ' answer")
    table.sees("asking confirm")
    table.until(lambda: b"\a" in control.read("top", since=rung, raw=True).data)
    control.decide("web", "n")
    table.until(lambda: "asking" not in table.text)
    table.press("b")
    table.sees("the bell is off")
    silent = control.read("top").cursor
    control.send("web", b"read -p 'Delete it? [y/n] ' answer")
    table.sees("asking confirm")
    assert b"\a" not in control.read("top", since=silent, raw=True).data


@pytest.mark.night
@real
def test_rows_are_grouped_by_tag_folder_and_machine(control, table, place):
    for name, tag in (("one", "red"), ("two", "blue"), ("three", "red")):
        control.new(name, LINES, tag=(tag,), cwd=str(place))
    table.open(size="90x25")
    table.sees("one", "two", "three")
    table.press("g")
    lines = [line.lstrip("> ").split()[0] for line in table.sees("by state and tag").splitlines()[2:] if line.strip()]
    assert [one for one in lines if one in ("blue", "red", "one", "two", "three")] == [
        "blue",
        "two",
        "red",
        "one",
        "three",
    ]
    table.press("g")
    assert "~" in table.sees("by state and folder").splitlines()
    table.press("g")
    table.sees("by state and machine", "this machine")
    table.press("g")
    table.changed(" and machine")


@pytest.mark.night
@real
def test_once_prints_the_table_and_ends(control, table, place):
    control.new("fix", ASKS)
    done = subprocess.run([*table.command, "--once"], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[2].startswith("  fix")
    assert "? Overwrite 文件.txt? [y/n]: yes | no" in done.stdout
    assert "\x1b" not in done.stdout
    assert not done.stdout.splitlines()[-1].isspace()


@pytest.mark.parametrize(
    ("width", "height", "wanted", "place"),
    [
        (160, 40, None, live.ViewPlace(True, 81, 0, 79, 40)),
        (200, 60, None, live.ViewPlace(True, 91, 0, 109, 60)),
        (90, 40, None, live.ViewPlace(False, 0, 20, 90, 19)),
        (80, 24, None, None),
        (80, 24, True, live.ViewPlace(False, 0, 12, 80, 11)),
        (160, 40, False, None),
        (40, 5, True, None),
    ],
)
def test_the_live_view_stands_where_there_is_room(width, height, wanted, place):
    assert live.find_place(width, height, wanted=wanted) == place


def test_a_row_with_styles_is_cut_to_its_columns_and_steers_nothing():
    row = "ab\x1b[1;31m文件\x1b[0mcd\u202e"
    assert live.cut_row(row, 4, colors=True) == "ab\x1b[1;31m文\x1b[0m\x1b[0m"
    assert live.cut_row(row, 4, colors=False) == "ab文"
    assert live.cut_row(row, 3, colors=False) == "ab "
    assert "\u202e" not in live.cut_row(row, 40, colors=False)
    assert live.cut_row("", 3, colors=False) == "   "


def test_of_a_screen_that_is_too_high_the_end_is_shown_with_the_cursor():
    rows = [str(number) for number in range(10)]
    assert live.cut_rows(live.Shown("a", rows, 9, 80, 10), 1, 3, colors=False) == ["7", "8", "9"]
    assert live.cut_rows(live.Shown("a", rows, 2, 80, 10), 1, 3, colors=False) == ["2", "3", "4"]
    assert live.cut_rows(live.Shown("a", rows[:2], 0, 80, 10), 1, 3, colors=False) == ["0", "1"]


@pytest.mark.night
@real
def test_attach_and_back(control, table):
    control.new("web", LINES)
    control.send("web", b"hello from web")
    table.open()
    table.select("top")
    table.press("Enter")
    table.sees("top is the session this runs in")
    table.select("web")
    table.press("a")
    table.sees("hello from web", "C-b d leaves")
    assert control.show("web").attached == 1
    table.press("C-b", "d")
    table.sees("back from web", "by state", "COMMAND")
    table.press("j", "k")
    table.sees("q quit")


@real
@pytest.mark.parametrize("environment", [{}, {"NO_COLOR": "1"}])
def test_colours_end_with_no_color(control, table, environment):
    control.new("web", LINES)
    table.open(**environment)
    table.sees("web", "idle")
    colored = re.search(r"\x1b\[[0-9;]*3[1-7]", control.screen("top", ansi=True).ansi)
    assert bool(colored) == (not environment)


# leaving


@pytest.fixture
def from_shell(control: Control, table: Table) -> Table:
    """The table started from a shell, behind what that showed."""
    control.new("top", SHELL, env=table.environment)
    control.ask("top", b"echo before top")
    return table


def state_of(control: Control) -> str:
    control.wait("top")
    return control.ask("top", b"stty -g").answer


@pytest.mark.night
@real
@pytest.mark.parametrize(("how", "status"), [("q", "0"), ("C-c", "130"), ("TERM", "143")])
def test_the_terminal_is_left_as_it_was(control, from_shell, how, status):
    before = state_of(control)
    control.send("top", " ".join(from_shell.command).encode())
    from_shell.sees("by state")
    assert control.screen("top").alt
    assert not control.screen("top").cursor.visible
    if how == "TERM":
        [child] = psutil.Process(control.show("top").pid).children()
        child.terminate()
    else:
        from_shell.press(how)
    from_shell.until(lambda: not control.screen("top").alt)
    control.wait("top")
    assert control.ask("top", b"echo status $?").answer == f"status {status}"
    assert control.screen("top").cursor.visible
    assert "before top" in control.screen("top").text
    assert state_of(control) == before


@pytest.mark.night
@real
def test_it_stops_and_goes_on_as_a_job(control, from_shell):
    before = state_of(control)
    control.send("top", " ".join(from_shell.command).encode())
    from_shell.sees("by state")
    from_shell.press("C-z")
    from_shell.until(lambda: not control.screen("top").alt)
    assert state_of(control) == before
    control.send("top", b"fg")
    from_shell.sees("by state", "q quit")
    from_shell.press("q")
    from_shell.until(lambda: not control.screen("top").alt)
    assert state_of(control) == before


@real
@pytest.mark.parametrize(
    "line", ["TERM=dumb {}", "TERM= {}", "{} </dev/null", "{} | cat >&2", "{} --json", "{} --no-input", "{} -q --json"]
)
def test_without_a_terminal_and_a_person_it_is_an_error(control, table, line):
    line = line.format(" ".join(table.command))
    control.new("d", ("bash", "-o", "pipefail", "-c", line), env=table.environment)
    assert control.wait("d", exit=True).exit_status == 2
    assert "tmuxctl ls" in control.screen("d", wide=True).text


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_where_there_is_no_terminal_it_is_an_error(place, words):
    command = [sys.executable, "-m", "tmuxctl", "top", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "no_terminal" in done.stderr if "--json" in words else "tmuxctl ls" in done.stderr
    assert "Traceback" not in done.stderr
