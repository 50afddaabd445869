"""The state of a program, told from what was seen of it."""

from __future__ import annotations

from typing import Any

import pytest
from reading.looks import (
    KEYS,
    LINES,
    SECRET,
    STEP,
    by_place,
    drawing,
    evidence,
    kernel,
    look,
    marked,
    moving,
    program,
    recorded,
    steady,
    thread,
    unreadable,
)

from tmuxctl.evidence import NONE, Evidence, Hook, Kernel, Look, Program, Thread, Tty
from tmuxctl.model import Confidence, State
from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.state.event_loops import is_unanswered
from tmuxctl.reading.state.explanation import list_arguments
from tmuxctl.reading.state.judging import Verdict, judge

PROMPT = "user@host:~$ "
BASH = kernel(program("bash", thread("pselect6", alone=True)), tty=KEYS)
READLINE = thread("pselect6", alone=True)
SLEEP = kernel(program("sleep", "clock_nanosleep"))
AGENT = kernel(program("agent", "epoll_wait"), tty=KEYS)


def told(seen: Evidence, profile: Profile | None = None) -> tuple[str, str | None]:
    verdict = judge(seen, profile)
    return verdict.state.value, verdict.kind


# The end


def test_an_ended_program_has_exited_with_its_status() -> None:
    verdict = judge(steady(PROMPT, None, dead=True, status=7))
    assert (verdict.state, verdict.by, verdict.confidence, verdict.status) == (State.EXITED, "exit", Confidence.SURE, 7)


def test_a_killed_program_has_exited_by_a_signal_and_an_unknown_end_is_no_zero() -> None:
    assert judge(steady("", None, dead=True, signal="KILL")).signal == "KILL"
    assert judge(steady("", None, dead=True)).status is None


# Nobody listens


@pytest.mark.parametrize(
    "screen",
    [
        "",
        "Computing the answer: ",
        "Proceed with step 2? checking network ... > ",
        PROMPT,
        "Overwrite? [y/N] ",
        ">>> ",
        "Password: ",
    ],
)
def test_whatever_a_program_shows_that_listens_to_nobody_it_is_busy(screen: str) -> None:
    for seen in (SLEEP, kernel(program("python3", "running")), by_place(SLEEP)):
        verdict = judge(steady(screen, seen, quiet=60.0))
        assert verdict.state is State.BUSY, verdict


def test_who_else_reads_a_terminal_is_looked_for_only_where_a_question_stands_unanswered() -> None:
    sleeps = kernel(program("gpg", thread("read", tty=False)))
    asks = steady("Passphrase: ", sleeps).looks
    assert is_unanswered(asks)
    assert is_unanswered(asks[-1:])
    assert not is_unanswered(steady("Building", sleeps).looks)
    assert not is_unanswered(steady("Passphrase: ", kernel(program("gpg", "read"))).looks)
    # a moment ago it read: the answer may be what it works on
    before = steady("Passphrase: ", kernel(program("gpg", "read"))).looks
    assert not is_unanswered((*before[:-2], *asks[-2:]))
    # the reader that was found does not end the search for it
    pinentry = program("pinentry", "read", pid=900, foreground=False, parent=1)
    assert is_unanswered(steady("Passphrase: ", kernel(*sleeps.programs, pinentry)).looks)


def test_a_program_that_computes_silently_is_busy_and_the_verdict_says_how() -> None:
    verdict = judge(steady("Computing: ", kernel(program("python3", "running")), quiet=9.0))
    assert (verdict.detail, verdict.by, verdict.confidence) == ("computing", "kernel", Confidence.SURE)
    assert "python3 running" in verdict.why
    verdict = judge(steady("", SLEEP, quiet=9.0))
    assert verdict.detail == "silent"
    assert verdict.why == "sleep in clock_nanosleep, no process reads the terminal"


def test_one_look_at_a_busy_program_is_not_enough_to_be_sure() -> None:
    assert judge(evidence(look("", SLEEP))).confidence is Confidence.LIKELY


def test_a_pipeline_works_while_nobody_in_it_reads_the_terminal() -> None:
    pipeline = kernel(
        program("sleep", "clock_nanosleep", pid=1),
        program("cat", thread("read", tty=False), pid=2),
        program("wc", thread("read", tty=False), pid=3),
    )
    assert told(steady("$ (sleep 4; echo hi) | cat | wc -l\n", pipeline)) == ("busy", None)


def test_a_program_stopped_in_a_terminal_without_a_shell_is_busy() -> None:
    stopped = kernel(program("vim", Thread(100, "T", "do_signal_stop"), state="T"), tty=KEYS)
    verdict = judge(steady("~\n~\n~\n", stopped))
    assert (verdict.state, verdict.detail) == (State.BUSY, "stopped")


def test_a_program_that_a_debugger_holds_is_not_stopped_while_the_debugger_listens() -> None:
    gdb = kernel(
        program("gdb", thread("poll"), pid=1),
        program("a.out", Thread(2, "t", "ptrace_stop"), pid=2, foreground=False, state="t"),
        tty=KEYS,
    )
    assert told(steady("(gdb) ", gdb)) == ("idle", "prompt")


def test_output_held_back_with_control_s_is_busy() -> None:
    held = kernel(program("bash", thread("write", tty=False)))
    assert told(steady("1\n2\n", held)) == ("busy", None)
    assert told(
        steady("1\n2\n", by_place(kernel(program("bash", Thread(100, "S", "wait_woken", "write", False)))))
    ) == ("busy", None)


# Blocked in a read


def test_a_program_blocked_in_a_read_waits_for_a_line() -> None:
    verdict = judge(steady("Your name: ", kernel(program("python3", "read"))))
    assert (verdict.state, verdict.kind, verdict.by, verdict.confidence) == (
        State.IDLE,
        "line",
        "kernel",
        Confidence.SURE,
    )
    assert verdict.why == 'line "Your name:", blocked in read'
    assert verdict.prompt == "Your name:"


def test_a_program_that_reads_without_any_prompt_waits_for_a_line() -> None:
    assert told(steady("$ cat\n", kernel(program("cat", "read")))) == ("idle", "line")


def test_the_first_sight_of_a_read_is_not_believed() -> None:
    working, reading = look("x", SLEEP, at=10.0), look("x", kernel(program("sleep", "read")), at=10.06, quiet=0.01)
    assert told(evidence(working, reading)) == ("busy", None)
    assert told(evidence(working, reading, reading._replace(at=10.12, quiet=0.07))) == ("idle", "line")


def test_one_look_at_a_blocked_read_is_enough_when_nothing_was_printed_just_now() -> None:
    reading = kernel(program("python3", "read"))
    assert judge(evidence(look("Name: ", reading, quiet=0.2))).confidence is Confidence.SURE
    assert judge(evidence(look("Name: ", reading, quiet=None))).confidence is Confidence.LIKELY
    assert judge(evidence(look("Name: ", reading, quiet=0.01))).state is State.BUSY


def test_typed_input_that_nobody_took_means_busy() -> None:
    full = Tty(canonical=True, echo=True, unread=5)
    assert told(steady("> ", kernel(program("python3", "read"), tty=full))) == ("busy", None)
    once = [
        look("> ", kernel(program("python3", "read")), at=10.0),
        look("> ", kernel(program("python3", "read"), tty=full), at=10.06),
    ]
    assert told(evidence(*once)) == ("idle", "prompt")


def test_a_read_with_the_echo_off_asks_for_a_password() -> None:
    verdict = judge(steady("[sudo] password for me: ", kernel(program("sudo", "read"), tty=SECRET)))
    assert (verdict.state, verdict.kind, verdict.by) == (State.ASKING, "password", "kernel")
    assert verdict.asking is not None
    assert verdict.asking.question == "[sudo] password for me:"
    assert "echo off" in verdict.why


def test_no_profile_makes_a_prompt_of_a_terminal_that_hides_what_is_typed() -> None:
    profile = Profile(name="p", prompt=(Rule("p", ":$", "cursor-line"),))
    assert told(steady("Secret word: ", kernel(program("p", "read"), tty=SECRET)), profile) == ("asking", "password")


def test_a_thread_that_reads_beside_one_that_works_is_no_prompt() -> None:
    """A program may listen for keys in a thread of its own while it works."""
    beside = kernel(program("work", thread("clock_nanosleep", id=100), thread("read", id=101)))
    assert told(steady("step 3 of 9\n", beside, quiet=5.0)) == ("busy", None)
    assert told(steady("chat> ", beside, quiet=5.0)) == ("idle", "prompt")
    idle = kernel(program("java", thread("futex", id=100), thread("read", id=101)))
    assert told(steady("\n", idle, quiet=5.0)) == ("idle", "line")


def test_reads_between_frames_of_a_spinner_are_work() -> None:
    assert told(drawing("| working", kernel(program("bash", "read")), every=0.12)) == ("busy", None)


def test_bash_blocked_in_a_read_is_its_read_builtin() -> None:
    assert told(steady("Your name: ", kernel(program("bash", "read")))) == ("idle", "line")


def test_a_shell_without_a_line_editor_waits_at_its_prompt() -> None:
    assert told(steady("$ ", kernel(program("dash", "read")))) == ("idle", "prompt")
    assert told(steady("", kernel(program("dash", "read")))) == ("idle", "line")


@pytest.mark.parametrize("name", ["fish-loop", "fish-quote", "fish-in-a-loop", "fish-quote-unmarked"])
def test_a_command_that_goes_on_below_its_prompt_is_a_continuation(name: str) -> None:
    fish = Profile(name="fish", foreground=("fish",), prompt=(Rule("p", r"^\S+ \S+[>#]\s*$", "cursor-line"),))
    for profile in (None, fish):
        assert told(recorded(name), profile) == ("idle", "continuation")


def test_a_shell_whose_output_stands_above_its_prompt_is_at_its_prompt() -> None:
    fish = kernel(program("fish", "poll"), tty=KEYS)
    assert told(steady("me@vm ~> echo a\n         a\nme@vm ~> ", fish)) == ("idle", "prompt")
    assert told(steady("me@vm ~> echo a\n  ", fish)) != ("idle", "continuation")


REPL_OF_NODE = Profile(
    name="node", foreground=("node",), prompt=(Rule("p", r"^>(?:\s|$)", "cursor-line", detail="repl"),)
)


@pytest.mark.parametrize("name", ["node-awaits", "node-printed-later", "node-interval"])
def test_an_event_loop_with_a_timer_and_without_its_prompt_may_wait_or_work(name: str) -> None:
    """What awaits and what printed behind its prompt look alike: on the screen, and to the kernel."""
    verdict = judge(recorded(name), REPL_OF_NODE)
    assert verdict.state is State.UNKNOWN
    assert "a timer of it runs" in verdict.why
    assert told(recorded(name)) == ("busy", None)


@pytest.mark.parametrize("text", ["Package name: ", "What is your name? ", "package name: (shop) "])
def test_a_timer_behind_the_label_of_a_field_is_no_work(text: str) -> None:
    """node keeps some of its own, after a connection that it might use again."""
    idles = program(
        "node", thread("epoll_wait", timeout=4.0), thread("futex", id=101), thread("epoll_wait", tty=False, id=102)
    )
    assert told(steady(text, kernel(idles, tty=KEYS)), REPL_OF_NODE)[0] == "idle"
    for works in (
        kernel(idles._replace(sockets=1), tty=KEYS),
        kernel(idles, program("sh", "wait4", pid=200), tty=KEYS),
        kernel(program("node", thread("epoll_wait", timeout=4.0), thread("read", tty=False, id=101)), tty=KEYS),
    ):
        assert told(steady(text, works), REPL_OF_NODE)[0] in ("busy", "unknown")
    assert told(steady("Loading the file: ", kernel(idles, tty=KEYS)), REPL_OF_NODE)[0] in ("busy", "unknown")


def test_an_event_loop_that_nothing_but_input_can_wake_waits_without_its_prompt_too() -> None:
    for profile in (None, REPL_OF_NODE):
        assert told(recorded("node-printed-and-waits"), profile) == ("idle", "line")


# Less readable kernels


def test_where_only_the_place_of_sleep_is_known_a_read_needs_a_moment_of_quiet() -> None:
    reading = by_place(kernel(program("python3", "read")))
    assert told(steady("Name: ", reading, quiet=0.06)) == ("busy", None)
    verdict = judge(steady("Name: ", reading))
    assert (verdict.state, verdict.confidence) == (State.IDLE, Confidence.LIKELY)


def test_the_place_of_a_terminals_read_is_also_a_sockets() -> None:
    fetching = by_place(kernel(program("curl", "read", sockets=1)))
    assert told(steady("Name: ", fetching, quiet=9.0)) == ("busy", None)
    unknown = by_place(kernel(program("curl", "read", sockets=None)))
    assert told(steady("Name: ", unknown, quiet=9.0)) == ("busy", None)
    secret = by_place(kernel(program("psql", "read", sockets=1), tty=SECRET))
    assert told(steady("Password: ", secret)) == ("asking", "password")


def test_a_poll_by_place_counts_only_where_keys_are_read() -> None:
    assert told(steady("fetching: ", by_place(kernel(program("fetch", "poll"), tty=LINES)), quiet=9.0)) == (
        "busy",
        None,
    )
    assert told(steady(PROMPT, by_place(BASH))) == ("idle", "prompt")


def test_a_program_that_has_no_terminal_open_waits_for_none() -> None:
    daemon = by_place(kernel(program("server", "read", holds=False)))
    assert told(steady("ready> ", daemon, quiet=9.0)) == ("busy", None)


def test_sudo_that_cannot_be_looked_into_asks_for_a_password() -> None:
    assert told(steady("[sudo] password for me: ", unreadable("sudo", tty=SECRET))) == ("asking", "password")


def test_an_unreadable_program_is_guessed_from_the_text_alone() -> None:
    verdict = judge(steady("Continue? [Y/n] ", unreadable("apt")))
    assert (verdict.state, verdict.kind, verdict.confidence) == (State.ASKING, "confirm", Confidence.GUESS)
    assert told(steady("Continue? [Y/n] ", unreadable("apt"), quiet=0.2)) == ("busy", None)
    assert told(steady("root@host:~# ", unreadable("su"))) == ("idle", "prompt")
    assert told(steady("Reading package lists\n", unreadable("apt"), quiet=9.0)) == ("busy", None)


def test_an_unreadable_program_that_computes_is_busy_at_any_prompt() -> None:
    looks = [look("$ ", unreadable("su", cpu=10 + step), at=10 + step * STEP, quiet=5.0) for step in range(20)]
    assert told(evidence(*looks)) == ("busy", None)


def test_a_quiet_program_that_nothing_tells_of_becomes_unknown() -> None:
    verdict = judge(steady("Computing the answer: ", unreadable("su"), quiet=3.5))
    assert (verdict.state, verdict.by, verdict.confidence) == (State.UNKNOWN, "settle", Confidence.GUESS)
    assert told(steady("Computing the answer: ", unreadable("su"), quiet=2.5)) == ("busy", None)


# Event loops


def test_bash_at_its_prompt_is_idle() -> None:
    verdict = judge(steady(PROMPT, BASH))
    assert (verdict.state, verdict.kind, verdict.detail, verdict.confidence) == (
        State.IDLE,
        "prompt",
        "shell",
        Confidence.SURE,
    )
    assert verdict.prompt == "user@host:~$"


def test_a_half_typed_command_line_is_idle_and_its_prompt_is_told_without_it() -> None:
    verdict = judge(steady(PROMPT + "echo half", BASH))
    assert (verdict.state, verdict.kind, verdict.prompt) == (State.IDLE, "prompt", "user@host:~$")


def test_a_shell_that_wants_the_rest_of_a_command_is_at_a_continuation() -> None:
    assert told(steady("user@host:~$ for i in 1 2; do\n> ", BASH)) == ("idle", "continuation")
    python = kernel(program("python3", READLINE), tty=KEYS)
    assert told(steady(">>> def f():\n... ", python)) == ("idle", "continuation")
    psql = kernel(program("psql", READLINE), tty=KEYS)
    assert told(steady("shop=# select\nshop-# ", psql)) == ("idle", "continuation")


def test_output_over_a_prompt_leaves_the_shell_idle() -> None:
    assert told(steady(PROMPT + "later\n", BASH)) == ("idle", "prompt")


def test_a_prompt_that_waits_for_the_terminal_alone_is_not_busy_after_a_flood() -> None:
    python = kernel(program("python3", READLINE), tty=KEYS)
    flood = [
        look("1\n2", kernel(program("python3", "running")), at=10 + n * STEP, journal=n, quiet=0.0) for n in range(40)
    ]
    end = flood[-1].at
    waits = [look(">>> ", python, at=end + n * STEP, journal=99, quiet=n * STEP) for n in (1, 2)]
    assert told(evidence(*flood, *waits)) == ("idle", "prompt")


def test_a_repl_that_begins_to_work_is_busy_at_once() -> None:
    python, working = kernel(program("python3", READLINE), tty=KEYS), kernel(program("python3", "clock_nanosleep"))
    looks = [look(">>> ", python, at=10 + n * STEP) for n in range(30)]
    begins = look(">>> ", working, at=looks[-1].at + STEP)
    assert told(evidence(*looks, begins)) == ("busy", None)


def test_an_event_loop_that_wakes_to_blink_still_waits() -> None:
    loop = kernel(program("menu", "poll"), tty=KEYS)
    looks = [look("Choose: ", loop, at=10 + n * STEP, visible=False) for n in range(30)]
    awake = look("Choose: ", kernel(program("menu", "running"), tty=KEYS), at=looks[-1].at + STEP, visible=False)
    assert told(evidence(*looks, awake)) == ("idle", "tui")
    again = [awake._replace(at=awake.at + n * STEP) for n in range(4)]
    assert told(evidence(*looks, *again)) == ("busy", None)


def test_an_event_loop_that_starts_a_process_works() -> None:
    loop = kernel(program("menu", "poll"), tty=KEYS)
    looks = [look("Choose: ", loop, at=10 + n * STEP, visible=False) for n in range(30)]
    child = kernel(program("menu", thread("wait4")), program("make", "running", pid=200), tty=KEYS)
    assert told(evidence(*looks, look("Choose: ", child, at=looks[-1].at + STEP, visible=False))) == ("busy", None)


@pytest.mark.parametrize("every", [1.0, 0.5, 0.4])
def test_a_blinking_clock_is_no_work(every: float) -> None:
    menu = kernel(program("menu", "poll"), tty=KEYS)
    assert told(drawing("Menu 12:00:01\nChoose: ", menu, every=every, visible=False, alternate=True)) == ("idle", "tui")


@pytest.mark.parametrize("every", [0.08, 0.12, 0.25])
def test_a_spinner_is_work(every: float) -> None:
    verdict = judge(drawing("✻ Pondering\n> ", AGENT, every=every, visible=False))
    assert (verdict.state, verdict.by) == (State.BUSY, "activity")


def test_a_spinner_is_work_from_its_first_frames_on() -> None:
    still = [look("> ", AGENT, at=10 + n * STEP, visible=False, journal=5, quiet=9 + n * STEP) for n in range(30)]
    start = still[-1].at
    for n in range(1, 30):
        at = start + n * STEP
        frames = int((at - start) / 0.12)
        still.append(look("> ", AGENT, at=at, visible=False, journal=6 + frames, quiet=(at - start) - frames * 0.12))
        assert told(evidence(*still)) == ("busy", None), n


def test_an_event_loop_with_nothing_left_of_the_cursor_is_not_called_idle() -> None:
    assert told(steady("> await slow()\n", kernel(program("node", "epoll_wait"), tty=KEYS), quiet=9.0)) == (
        "busy",
        None,
    )


def test_an_event_loop_at_a_prompt_is_idle_after_a_moment() -> None:
    node = kernel(program("node", "epoll_wait"), tty=KEYS)
    assert told(steady("> ", node)) == ("idle", "prompt")
    assert told(steady("> ", node, quiet=0.05, count=30)) == ("busy", None)
    assert told(steady("Continue? (y/n) ", node)) == ("asking", "confirm")


def test_an_event_loop_that_reads_lines_behind_what_is_no_prompt_is_not_idle() -> None:
    asyncio = kernel(program("python3", "epoll_wait"))
    assert told(steady("fetched 12 of 90", asyncio, quiet=2.0)) == ("busy", None)
    assert told(steady("fetched 12 of 90", asyncio, quiet=4.0)) == ("busy", None)


def test_an_event_loop_that_computes_in_another_thread_is_busy() -> None:
    looks = [
        look(
            "> ",
            kernel(program("app", thread("epoll_wait", id=100), thread("running", id=101), cpu=10 + n * 6), tty=KEYS),
            at=10 + n * STEP,
        )
        for n in range(20)
    ]
    assert told(evidence(*looks)) == ("busy", None)


def test_one_look_at_an_event_loop_needs_it_to_have_been_quiet() -> None:
    app = look("menu", AGENT, alternate=True, visible=False, quiet=0.05)
    assert told(evidence(app)) == ("busy", None)
    assert told(evidence(app._replace(quiet=None))) == ("busy", None)
    verdict = judge(evidence(app._replace(quiet=2.0)))
    assert (verdict.state, verdict.confidence) == (State.IDLE, Confidence.LIKELY)


def test_an_editor_is_an_editor_and_a_full_screen_program_a_tui() -> None:
    vim = kernel(program("vim.basic", "select"), tty=KEYS)
    assert told(steady("hello\n~\n~", vim, alternate=True)) == ("idle", "editor")
    assert told(steady("CPU 3%\nF1Help", kernel(program("htop", "poll"), tty=KEYS), alternate=True, visible=False)) == (
        "idle",
        "tui",
    )


def test_a_pager_asks_for_the_next_page() -> None:
    assert told(steady("text\n:", kernel(program("less", "read"), tty=KEYS), alternate=True)) == ("asking", "pager")
    piped = kernel(program("less", "read", pid=1), program("yes", thread("write", tty=False), pid=2), tty=KEYS)
    assert told(steady("y\ny\n:", piped)) == ("asking", "pager")


@pytest.mark.parametrize(
    "row",
    [
        "✻ Pondering… (esc to interrupt)",
        "⠋ Thinking...",
        "Waiting for data... (interrupt to abort)",
        "⠏ Reading (esc to cancel, 12s)",
    ],
)
def test_signs_many_programs_share_say_busy_while_an_event_loop_listens(row: str) -> None:
    verdict = judge(steady(f"{row}\n\n> ", AGENT, quiet=9.0))
    assert (verdict.state, verdict.by) == (State.BUSY, "busy-mark")


def test_a_question_written_behind_a_prompt_is_one_where_whole_lines_are_read() -> None:
    asked = "In [1]: Do you really want to exit ([y]/n)? "
    assert told(steady(asked, kernel(program("ipython", "read")))) == ("asking", "confirm")
    # in a line editor it is typed
    assert told(steady(asked, kernel(program("ipython", READLINE), tty=KEYS))) == ("idle", "prompt")
    assert told(steady("In [1]: print('yes or no')", kernel(program("ipython", "read")))) == ("idle", "prompt")


def test_a_busy_sign_says_nothing_of_a_blocked_read() -> None:
    assert told(steady("Loading...\n>>> ", kernel(program("python3", "read")))) == ("idle", "prompt")


# Terminals inside and elsewhere


def relay(via: str, inner: Kernel, tty: Tty = KEYS, waits: str = "poll") -> Kernel:
    held = inner._replace(via=via, masters=1)
    return kernel(program(via, waits, pid=inner.programs[0].pid - 1), tty=tty)._replace(inner=held)


def test_behind_a_relay_the_inner_program_counts() -> None:
    assert told(steady(PROMPT, relay("script", BASH))) == ("idle", "prompt")
    assert told(steady(PROMPT + "sleep 4\n", relay("script", SLEEP))) == ("busy", None)
    assert told(steady(PROMPT, relay("sudo", relay("script", SLEEP)), quiet=9.0)) == ("busy", None)
    assert told(steady("Name: ", relay("python3", kernel(program("app", "read"))))) == ("idle", "line")


def sized(seen: Kernel, columns: int, rows: int, **known: Any) -> Kernel:
    assert seen.tty is not None
    return seen._replace(tty=seen.tty._replace(size=(columns, rows)), **known)


@pytest.mark.parametrize("size", [(120, 40), (0, 0)])
def test_a_relay_of_any_name_is_known_by_the_size_it_gives_the_inner_terminal(size: tuple[int, int]) -> None:
    pump = relay("pump", sized(SLEEP, *size))
    assert told(steady("Loading: ", sized(pump, 120, 40), quiet=9.0)) == ("busy", None)
    # a window in it has a size of its own, and a program with windows draws a screen of its own
    window = relay("pump", sized(SLEEP, 80, 20))
    assert told(steady("Name: ", sized(window, 120, 40), quiet=9.0)) == ("idle", "line")
    assert told(steady("Name: ", sized(pump, 120, 40), quiet=9.0, alternate=True)) == ("idle", "tui")


def test_who_holds_several_terminals_is_no_relay() -> None:
    several = relay("script", SLEEP)
    assert several.inner is not None
    several = several._replace(inner=several.inner._replace(masters=2))
    assert told(steady("Name: ", several, quiet=9.0)) == ("idle", "line")


def test_a_shell_stopped_in_its_own_terminal_hides_nothing() -> None:
    stopped = kernel(program("bash", Thread(100, "T", "do_signal_stop"), state="T"))
    assert told(steady("Name: ", relay("script", stopped), quiet=9.0)) == ("idle", "line")


def test_a_terminal_that_is_there_for_the_password_alone_is_not_entered() -> None:
    """sshpass gives ssh a terminal to ask for the password at; ssh keeps to the outer one, which only it listens to."""
    inner = kernel(program("ssh", thread("poll", tty=False), pid=100))
    outer = kernel(
        program("sshpass", thread("pselect6", tty=False), pid=99),
        program("ssh", thread("poll", timeout=300.0), pid=100, foreground=False, holds=None),
        tty=KEYS,
        inner=inner._replace(via="sshpass", masters=1),
    )
    assert told(steady("me@far:~$ ", outer)) == ("idle", "prompt")
    held = tuple(one._replace(holds=True) for one in outer.programs)
    assert told(steady("me@far:~$ ", by_place(outer._replace(programs=held)))) == ("idle", "prompt")
    assert told(steady("me@far:~$ sleep 3\n", outer, quiet=9.0))[0] != "idle"


def test_a_multiplexer_with_one_window_is_looked_into() -> None:
    """Its server waits for the keys, and its client for nothing."""

    def screen(inner: Kernel) -> Kernel:
        return kernel(
            program("screen", thread("pause", tty=False), pid=98),
            program("screen", thread("pselect6"), pid=99, foreground=False),
            tty=KEYS,
            inner=inner._replace(via="screen", masters=1),
        )

    assert told(steady(PROMPT, screen(BASH), alternate=True)) == ("idle", "prompt")
    assert told(steady("Mounting the disk > ", screen(SLEEP), alternate=True, quiet=9.0)) == ("busy", None)


def test_a_relay_that_does_not_listen_passes_nothing_on() -> None:
    """A script of expect that drives a shell by itself takes no input for it."""
    driving = relay("expect", BASH, tty=LINES, waits="clock_nanosleep")
    assert told(steady(PROMPT, driving, quiet=9.0)) == ("busy", None)


def test_a_program_with_terminals_in_its_windows_is_judged_by_itself() -> None:
    emacs = relay("emacs-nox", SLEEP, waits="pselect6")
    assert told(steady("-UUU:----F1  *shell*", emacs, alternate=True)) == ("idle", "editor")
    assert told(steady("menu", relay("mc", SLEEP), alternate=True)) == ("idle", "tui")


SSH = kernel(program("ssh", "poll"), tty=KEYS)


def test_ssh_is_judged_by_the_text_left_of_the_cursor() -> None:
    verdict = judge(steady("me@far:~$ ", SSH))
    assert (verdict.state, verdict.kind, verdict.detail, verdict.confidence) == (
        State.IDLE,
        "prompt",
        "shell",
        Confidence.GUESS,
    )
    assert told(steady("me@far:~$ ", SSH, quiet=0.2)) == ("busy", None)
    assert told(steady("me@far:~$ sleep 4\n", SSH, quiet=60.0)) == ("busy", None)


@pytest.mark.parametrize(
    "text",
    [
        "Computing the answer: ",
        "Proceed with step 2? checking network ... > ",
        "Receiving objects:  45%",
        "######## 80%",
        "[=====>",
    ],
)
def test_work_that_looks_like_a_prompt_at_the_end_is_not_idle_through_ssh(text: str) -> None:
    assert told(steady(text, SSH, quiet=2.0)) == ("busy", None)
    assert told(steady(text, SSH, quiet=5.0)) == ("unknown", None)


def test_ssh_at_a_password_asks_for_it() -> None:
    assert told(steady("me@far's password: ", SSH)) == ("asking", "password")
    reads = kernel(program("ssh", "read"), tty=SECRET)
    assert judge(steady("me@far's password: ", reads)).confidence is Confidence.SURE
    assert told(steady("Are you sure you want to continue connecting (yes/no/[fingerprint])? ", SSH)) == (
        "asking",
        "confirm",
    )


def test_a_carrier_that_blocks_in_a_read_of_the_keyboard_is_judged_by_the_text_too() -> None:
    """Programs written in Go read the keyboard so, whatever runs in the container."""
    docker = kernel(program("docker", "read"), tty=KEYS)
    assert told(steady("/ # sleep 4\n", docker, quiet=60.0)) == ("busy", None)
    assert judge(steady("/ # ", docker)).confidence is Confidence.GUESS
    itself = kernel(program("docker", "read"))
    assert judge(steady("Username: ", itself)).confidence is Confidence.SURE


def test_a_multiplexers_client_waits_through_its_server() -> None:
    tmux = kernel(program("tmux: client", thread("poll", tty=False)), tty=KEYS)
    assert told(steady(PROMPT, tmux, alternate=True)) == ("idle", "prompt")
    assert told(steady(PROMPT + "sleep 4\n", tmux, alternate=True, quiet=9.0))[0] == "busy"


def test_a_full_screen_program_far_away_is_unknown_unless_its_screen_tells_that_it_takes_keys() -> None:
    assert told(steady("some text\nof a page", SSH, alternate=True, quiet=5.0)) == ("unknown", None)
    nano = "hello\n" + "\n" * 20 + "^G Help      ^O Write Out ^W Where Is  ^K Cut\n"
    assert told(steady(nano, SSH, alternate=True, x=5, y=0)) == ("idle", "editor")
    assert told(steady("hello\n~\n~\n~\n~", SSH, alternate=True, x=0, y=1)) == ("idle", "editor")


def test_a_full_screen_around_a_hidden_cursor_that_is_drawn_anew_is_guessed_to_take_keys() -> None:
    top = "\n".join(f"{number} some process" for number in range(40))
    assert told(drawing(top, SSH, every=1.0, visible=False, x=0, y=6)) == ("idle", "tui")
    assert judge(drawing(top, SSH, every=1.0, visible=False, x=0, y=6)).confidence is Confidence.GUESS
    assert told(drawing("pulling\n layer 1\n layer 2", SSH, every=1.0, visible=False))[0] == "busy"


# Listening, and working


def test_a_read_that_gives_up_is_no_wait() -> None:
    """The terminal lets a read return without input after half a second (VMIN 0, VTIME 5): the program works in between."""
    keys = KEYS._replace(vmin=0, vtime=0.5)
    working = moving([f"sector {one} of 8 " for one in range(7)], kernel(program("pack", "read"), tty=keys), every=0.5)
    assert told(working) == ("busy", None)
    assert told(steady("Label: ", kernel(program("pack", "read"), tty=keys))) == ("idle", "line")


def test_who_prints_whenever_his_wait_for_a_key_ends_is_at_work() -> None:
    """A bar that takes a key to cancel, one step a second."""
    looks_for_keys = kernel(program("bar", thread("pselect6", timeout=1.0)), tty=KEYS)
    bar = [f"{one * 20}% (press c to cancel) " for one in range(4)]
    for seconds in (0.9, 1.0):
        assert told(moving(bar, looks_for_keys, every=seconds)) == ("busy", None)
    assert told(steady(bar[2], looks_for_keys, quiet=1.2)) == ("busy", None)
    assert told(steady("Cancel? [y/N] ", looks_for_keys, quiet=1.6)) == ("asking", "confirm")


def test_the_read_of_a_script_that_waits_a_moment_for_a_key_is_no_prompt() -> None:
    reading = kernel(program("bash", thread("pselect6", timeout=1.0)), tty=KEYS)
    assert told(steady("packing, q stops: ", reading, quiet=0.9)) == ("busy", None)
    assert told(steady("Continue> ", reading, quiet=0.9)) == ("busy", None)


def test_a_prompt_with_a_clock_is_no_work() -> None:
    """It is drawn anew every second, and nothing of it but the time changes."""
    clock = [f"2{one}:59:0{one} app> " for one in range(4)]
    waits = kernel(program("app", thread("pselect6", timeout=1.0)), tty=KEYS)
    assert told(moving(clock, waits, every=1.0)) == ("idle", "prompt")
    counter = [f"{one} of 9 app> " for one in range(4)]
    assert told(moving(counter, kernel(program("app", "epoll_wait"), tty=KEYS), every=0.96)) == ("busy", None)


@pytest.mark.parametrize("prompt", ["[{} jobs] > ", "up {} s > ", "12:00:0{} [3 jobs]# ls -l", "shop {}> ls"])
def test_a_prompt_drawn_anew_each_second_stays_idle(prompt: str) -> None:
    """Nothing but its numbers changes; the moment after it was drawn is like any other."""
    drawn = [prompt.format(one) for one in range(5)]
    for waits in (thread("pselect6", timeout=1.0), thread("epoll_wait", timeout=0.9)):
        seen = moving(drawn, kernel(program("app", waits), tty=KEYS), every=1.02)
        for count in range(36, len(seen.looks)):
            assert told(seen._replace(looks=seen.looks[max(0, count - 55) : count]))[0] == "idle"


def test_output_line_by_line_is_work_while_the_keyboard_is_listened_to() -> None:
    lines = ["a\n> ", "a\nb\n> ", "a\nb\nc\n> ", "a\nb\nc\nd\n> "]
    assert told(moving(lines, AGENT, every=0.72)) == ("busy", None)
    assert told(moving([*lines, lines[-1], lines[-1]], AGENT, every=0.72)) == ("busy", None)
    assert told(steady(lines[-1], AGENT, quiet=2.0)) == ("idle", "prompt")


def test_an_animation_is_known_by_its_first_three_frames() -> None:
    """It follows what was typed and echoed a moment ago."""
    frames = [0.0, 0.9, 1.02, 1.14, 1.26]
    looks = []
    for number in range(24):
        at = number * STEP
        drawn = [one for one in frames if one <= at]
        about = {"at": 10.0 + at, "journal": 100 + len(drawn), "quiet": at - drawn[-1], "visible": False}
        looks.append(look(f"frame {len(drawn)}", AGENT, **about))
    assert told(evidence(*looks[:23])) == ("busy", None)
    assert told(evidence(*looks[:14])) == ("idle", "tui")


def busy_beside(*, cpu: int) -> Evidence:
    """A debugger that listens, and a program that used so many clock ticks in three seconds."""
    looks = []
    for number in range(50):
        program_below = program("node", "running", pid=2, cpu=100 + number * cpu // 50)
        at = 10.0 + number * STEP
        seen = kernel(program("node", thread("epoll_wait", timeout=0.15), pid=1), program_below, tty=KEYS)
        looks.append(look("debug> ", seen, at=at, quiet=number * STEP))
    return evidence(*looks)


def test_a_debugger_is_busy_while_the_program_it_runs_computes() -> None:
    assert told(busy_beside(cpu=290)) == ("busy", None)
    assert told(busy_beside(cpu=0)) == ("idle", "prompt")


def test_a_program_that_has_just_stopped_computing_is_idle_at_once() -> None:
    looks = []
    for number in range(50):
        used = min(number, 45) * 6
        seen = kernel(program("node", "epoll_wait", cpu=100 + used), tty=KEYS)
        looks.append(
            look("> ", seen, at=10.0 + number * STEP, journal=100 + (number > 40), quiet=max(0, number - 41) * STEP)
        )
    assert told(evidence(*looks)) == ("idle", "prompt")
    assert told(evidence(*looks[:45])) == ("busy", None)


def helped(*, started: int, quiet: float, screen: str = "Building the index: ") -> Evidence:
    """A program that listens beside one that started at this clock tick; it is 1000 now."""
    listens = program("python3", "epoll_wait", pid=1, started=500)
    seen = kernel(listens, program("cc", "wait4", pid=2, started=started), clock=1000)
    return steady(screen, seen, quiet=quiet)


def editor(*below: Program, rows: str = "~\n~\n:!make", call: str = "epoll_wait") -> Verdict:
    """What is said of an editor that listens, with these programs below it, four seconds after its last output."""
    seen = kernel(program("nvim", thread(call), sockets=3), *below, tty=KEYS, clock=10_000)
    return judge(steady(rows, seen, alternate=True, quiet=4.0))


def below(name: str, call: str, *, seconds: float, **known: Any) -> Program:
    """A child of the editor that began so many seconds ago."""
    started = round(10_000 - seconds * 100)
    return program(name, thread(call, tty=False, id=200), **{"pid": 200, "parent": 100, "started": started, **known})


@pytest.mark.parametrize("call", ["epoll_wait", "read"])
def test_an_editor_that_waits_for_a_command_it_runs_is_busy(call: str) -> None:
    for runs in (
        # it is output of a command that goes on, so that this began long before
        below("sh", "wait4", seconds=60),
        below("sleep", "clock_nanosleep", seconds=4.1, foreground=False),
        below("curl", "poll", seconds=4.1, foreground=False),
    ):
        verdict = editor(runs, call=call)
        assert (verdict.state, verdict.why) == (State.BUSY, f"nvim runs {runs.name}")


def test_where_calls_are_not_told_a_child_that_sleeps_is_what_its_parent_waits_for() -> None:
    sleeps = program("sleep", thread("nanosleep", tty=False, id=200), pid=200, parent=100)
    seen = kernel(program("tig", thread("poll")), sleeps, tty=KEYS)
    assert told(steady("one\ntwo", seen, alternate=True)) == ("idle", "tui")
    assert told(steady("one\ntwo", by_place(seen), alternate=True)) == ("busy", None)


def test_an_editor_with_helpers_is_idle() -> None:
    assert editor(below("node", "epoll_wait", seconds=60)).state is State.IDLE
    assert editor(below("node", "epoll_wait", seconds=3), rows="~\n~\n~").state is State.IDLE
    assert editor(below("gopls", "futex", seconds=60)).state is State.IDLE
    assert editor(below("collect2", "vfork", seconds=3), rows="~\n~\n-UUU:--- notes.txt").state is State.IDLE
    # in a window of its own
    shell = below("bash", "wait4", seconds=60)
    inside = kernel(program("nvim", thread("epoll_wait")), shell, tty=KEYS, inner=kernel(shell, masters=1))
    assert judge(steady("~\n~", inside, alternate=True)).state is State.IDLE


def test_a_process_that_began_after_the_last_output_is_what_is_waited_for() -> None:
    assert told(helped(started=800, quiet=2.0)) == ("busy", None)
    # one that was there before the question is none of its matter, and a prompt is a prompt
    assert told(helped(started=600, quiet=2.0)) == ("idle", "line")
    assert told(helped(started=800, quiet=2.0, screen="app> ")) == ("idle", "prompt")


def test_a_program_that_looks_for_a_key_while_another_thread_of_it_sleeps_is_busy() -> None:
    looks_for_keys = thread("pselect6", timeout=0.1)
    copying = kernel(program("copy", looks_for_keys, thread("clock_nanosleep", id=101)))
    assert told(steady("Copying (press c to cancel) ", copying)) == ("busy", None)
    assert told(steady("copy> ", copying)) == ("idle", "prompt")
    assert told(steady("Another folder: ", kernel(program("copy", looks_for_keys)))) == ("idle", "line")


def inward(*others: str, **known: Any) -> Kernel:
    """A program that waits for the terminal and for its own threads."""
    main = thread("epoll_pwait", tty=True, inward=True)
    threads = (thread(one, id=101 + index) for index, one in enumerate(others))
    return kernel(program("node", main, *threads, **known), tty=KEYS)


def test_what_nothing_but_input_can_wake_waits_wherever_its_cursor_stands() -> None:
    for screen in ("Enter the message for all users:\n", "Progress 45%"):
        assert judge(steady(screen, inward("futex", "futex"))).state is State.IDLE
        assert told(steady(screen, inward("running"), quiet=2.5)) == ("busy", None)
        assert told(steady(screen, inward(sockets=1), quiet=2.5)) == ("busy", None)
        assert told(steady(screen, inward("futex"), quiet=0.05)) == ("busy", None)
        child = kernel(*inward().programs, program("cc", "wait4", pid=2), tty=KEYS)
        assert told(steady(screen, child, quiet=2.5)) == ("busy", None)


def test_a_prompt_under_what_a_job_in_the_background_prints_is_idle() -> None:
    shell = kernel(program("bash", thread("pselect6", alone=True, switches=9)), tty=KEYS)
    assert told(steady("note 3\n", shell, quiet=0.0)) == ("idle", "prompt")
    # by itself it has printed just now
    woken = kernel(program("bash", thread("pselect6", alone=True, switches=10)), tty=KEYS)
    assert told(evidence(*steady(PROMPT, shell).looks[:-1], look(PROMPT, woken, quiet=0.0))) == ("busy", None)


def test_that_holds_where_only_the_place_of_sleep_is_known() -> None:
    shell = by_place(kernel(program("bash", thread("pselect6", switches=9)), tty=KEYS))
    assert told(drawing("note 3\n", shell, every=0.4)) == ("idle", "prompt")


def test_a_full_screen_program_that_reads_may_wake_to_draw() -> None:
    reads, draws = kernel(program("atop", "read"), tty=KEYS), kernel(program("atop", "running"), tty=KEYS)
    looks = [look("table", reads, at=10.0 + number * STEP, alternate=True) for number in range(20)]
    drawn = look("table", draws, at=looks[-1].at + STEP, quiet=0.02, alternate=True)
    again = look("table", reads, at=drawn.at + STEP, journal=101, quiet=0.05, alternate=True)
    assert told(evidence(*looks, drawn)) == ("idle", "tui")
    assert told(evidence(*looks, drawn, again)) == ("idle", "tui")
    assert told(evidence(*looks, drawn, drawn._replace(at=again.at), drawn._replace(at=again.at + STEP))) == (
        "busy",
        None,
    )
    # a line that was taken is worked on
    plain = [one._replace(alternate=False) for one in (*looks, drawn)]
    assert told(evidence(*plain)) == ("busy", None)


def test_on_a_screen_of_its_own_a_read_by_its_place_needs_no_quiet() -> None:
    reads = by_place(kernel(program("atop", "read"), tty=KEYS))
    assert told(steady("table", reads, quiet=0.02, alternate=True)) == ("idle", "tui")
    assert told(steady("table", reads, quiet=0.02)) == ("busy", None)


def test_a_full_screen_program_may_sleep_from_tick_to_tick_beside_its_reader() -> None:
    ticks = kernel(program("btop", "clock_nanosleep", thread("read", alone=True, id=101)), tty=KEYS)
    assert told(steady("cpu", ticks, alternate=True, visible=False)) == ("idle", "tui")
    assert told(steady("chunk 3\n", ticks)) == ("busy", None)


def test_a_name_that_is_asked_for_is_guessed_to_be_read_where_only_the_place_of_sleep_is_known() -> None:
    fetches = by_place(kernel(program("git", "wait4", pid=1), program("git-remote-http", "read", pid=2, sockets=2)))
    assert told(steady("Username for 'https://host': ", fetches)) == ("idle", "line")
    assert told(steady("Receiving objects: ", fetches)) == ("busy", None)


# Shell marks


def test_a_command_between_its_marks_is_busy_though_the_kernel_is_not_known() -> None:
    verdict = judge(steady(PROMPT, None, mark=marked("C"), about={"marks": True}))
    assert (verdict.state, verdict.by, verdict.confidence) == (State.BUSY, "shell-mark", Confidence.SURE)


def test_a_program_that_reads_inside_a_marked_command_is_judged_by_the_kernel() -> None:
    assert told(steady(">>> ", kernel(program("python3", "read")), mark=marked("C"))) == ("idle", "prompt")
    assert told(steady("", SLEEP, mark=marked("C"))) == ("busy", None)


def test_a_marked_prompt_is_sure_and_needs_no_quiet() -> None:
    verdict = judge(evidence(look(PROMPT, BASH, mark=marked("B"), quiet=0.0)))
    assert (verdict.state, verdict.detail, verdict.by, verdict.confidence) == (
        State.IDLE,
        "shell",
        "shell-mark",
        Confidence.SURE,
    )
    drawing = look("", BASH, mark=marked("A"), quiet=0.02)
    assert told(evidence(drawing)) == ("busy", None)
    assert told(evidence(drawing._replace(quiet=0.1))) == ("idle", "prompt")


def test_what_a_line_editor_asks_at_its_prompt_is_a_question() -> None:
    asks = Rule("all", r"^Display all \d+ possibilities\?", "cursor-line", kind="confirm", options={"no": ("n",)})
    listing = steady(PROMPT + "ls\nDisplay all 400 possibilities? (y or n)", BASH, mark=marked("B"))
    assert told(listing, Profile("bash", asking=(asks,))) == ("asking", "confirm")


def test_a_mark_is_no_proof_where_the_kernel_sees_that_nobody_waits() -> None:
    """What a program prints may be the marks of a prompt."""
    assert told(steady(PROMPT, SLEEP, mark=marked("B"))) == ("busy", None)
    assert told(steady("Name: ", kernel(program("python3", "read")), mark=marked("B"))) == ("idle", "line")


def test_marks_through_ssh_tell_of_the_shell_there() -> None:
    assert judge(steady("me@far:~$ ", SSH, mark=marked("B"))).confidence is Confidence.SURE
    far = {"program": "ssh", "marks": True}
    assert told(steady("user@host:~$ ", SSH, mark=marked("C"), about=far)) == ("busy", None)
    assert told(steady("far$ ", SSH, mark=marked("C"), about={"program": "bash", "marks": True})) == ("idle", "prompt")


# Without a kernel


def test_without_a_kernel_nothing_is_more_than_a_guess() -> None:
    verdict = judge(steady(">>> ", None))
    assert (verdict.state, verdict.kind, verdict.by, verdict.confidence) == (
        State.IDLE,
        "prompt",
        "prompt",
        Confidence.GUESS,
    )
    assert told(steady(">>> ", None, quiet=0.4)) == ("busy", None)
    assert told(steady("", None, quiet=60.0)) == ("busy", None)
    assert told(steady("Computing the answer: ", None, quiet=5.0)) == ("unknown", None)


def test_without_a_kernel_a_profiles_prompt_makes_it_likely() -> None:
    profile = Profile(name="odd", prompt=(Rule("p", r"^odd\)\s*$", "cursor-line", detail="repl"),))
    verdict = judge(steady("odd) ", None), profile)
    assert (verdict.state, verdict.confidence, verdict.rule) == (State.IDLE, Confidence.LIKELY, "p")


def test_a_program_whose_processes_just_went_is_not_idle() -> None:
    looks = [look(PROMPT, BASH, at=10 + n * STEP) for n in range(10)]
    gone = look(PROMPT, Kernel(None, 0, ()), at=looks[-1].at + STEP)
    assert told(evidence(*looks, gone)) == ("busy", None)


# Profiles


QUIET_AGENT = Profile(
    name="agent",
    prompt=(Rule("ready", r"for shortcuts", "last-line", detail="agent"),),
    asking=(
        Rule(
            "tool",
            r"Do you want to proceed",
            "bottom:6",
            kind="approval",
            options={"allow": ("1",), "deny": ("Escape",)},
        ),
    ),
    title_busy="^⠂ ",
)


def test_a_quiet_agent_is_busy_while_its_profiles_prompt_does_not_show() -> None:
    working = "● doing it\n✻ Pondering\n│ >      │"
    assert told(steady(working, AGENT, quiet=2.0), QUIET_AGENT) == ("busy", None)
    assert told(steady(working, AGENT, quiet=5.0), QUIET_AGENT) == ("unknown", None)
    ready = judge(steady("│ >      │\n? for shortcuts", AGENT, y=0, x=4), QUIET_AGENT)
    assert (ready.state, ready.kind, ready.detail, ready.by) == (State.IDLE, "prompt", "agent", "prompt")


SCREENS = Profile(
    name="tops",
    prompt=(
        Rule("line", r"^Which\?", "cursor-line", kind="line"),
        Rule("table", r"\AUP ", "screen", kind="tui"),
    ),
)
TOPS = kernel(program("tops", "poll"), tty=KEYS)


def test_a_profiles_prompt_says_for_what_kind_of_input_the_program_waits() -> None:
    assert told(steady("UP 3 days\n1 tops", TOPS, alternate=True), SCREENS) == ("idle", "tui")
    assert told(steady("UP 3 days\nWhich? ", TOPS, alternate=True), SCREENS) == ("idle", "line")


def test_a_page_of_a_full_screen_program_that_its_profile_does_not_know_is_idle_too() -> None:
    assert told(steady("About tops\nversion 3", TOPS, alternate=True, quiet=5.0), SCREENS) == ("idle", "tui")


def test_what_an_editor_or_a_list_shows_is_no_sign_of_work() -> None:
    vim = kernel(program("vim", "pselect6"), tty=KEYS)
    assert told(steady("one\nLoading...\n~", vim, alternate=True, y=0, x=0)) == ("idle", "editor")
    assert told(steady("UP 3 days\n1 Loading...", TOPS, alternate=True), SCREENS) == ("idle", "tui")
    assert told(steady("one\nLoading...", TOPS, alternate=True)) == ("busy", None)


def test_a_title_may_say_busy_and_never_idle() -> None:
    ready = "│ >      │\n? for shortcuts"
    assert told(steady(ready, AGENT, title="⠂ task"), QUIET_AGENT) == ("busy", None)
    titled = Profile(name="t", title_idle="Ready")
    assert told(steady("working\n", AGENT, title="Ready", quiet=2.0), titled) == ("busy", None)


def test_a_profiles_question_is_asked_with_its_options() -> None:
    verdict = judge(steady("● Bash(rm -rf build)\nDo you want to proceed?\n❯ 1. Yes\n  2. No", AGENT), QUIET_AGENT)
    assert (verdict.state, verdict.kind, verdict.by, verdict.rule) == (State.ASKING, "approval", "asking-mark", "tool")
    assert verdict.asking is not None
    assert [(one.id, one.keys) for one in verdict.asking.options] == [("allow", ("1",)), ("deny", ("Escape",))]


def test_a_profile_overrides_neither_the_end_nor_unread_input_nor_that_nobody_listens() -> None:
    asks = "Do you want to proceed?"
    assert told(steady(asks, None, dead=True, status=0), QUIET_AGENT) == ("exited", None)
    assert told(steady(asks, SLEEP), QUIET_AGENT) == ("busy", None)
    assert told(steady("? for shortcuts", kernel(program("agent", "running"), tty=KEYS)), QUIET_AGENT) == ("busy", None)
    unread = kernel(program("agent", "epoll_wait"), tty=Tty(False, False, 3))
    assert told(steady(asks, unread), QUIET_AGENT) == ("busy", None)


def test_a_busy_sign_of_a_profile_does_not_override_a_blocked_read_or_a_shell() -> None:
    profile = Profile(name="p", busy=(Rule("b", "working", "screen", detail="streaming"),))
    assert told(steady("working\n> ", kernel(program("p", "read"))), profile) == ("idle", "prompt")
    assert told(steady(f"working\n{PROMPT}", BASH), profile) == ("idle", "prompt")
    verdict = judge(steady("working\n> ", AGENT), profile)
    assert (verdict.state, verdict.detail, verdict.by) == (State.BUSY, "streaming", "busy-mark")


def test_a_profile_of_a_shell_says_nothing_of_the_programs_in_it() -> None:
    profile = Profile(name="bash", foreground=("bash",), prompt=(Rule("p", r"\$\s*$", "cursor-line", detail="shell"),))
    node = kernel(program("node", "epoll_wait"), tty=KEYS)
    assert told(steady("> ", node), profile) == ("idle", "prompt")


INTERPRETER = Profile(
    name="node", foreground=("node",), prompt=(Rule("p", r"^>(?:\s|$)", "cursor-line", detail="repl"),)
)
NODE = kernel(program("node", "epoll_wait"), tty=KEYS)


def test_a_profile_of_an_interpreter_says_nothing_of_the_scripts_it_runs() -> None:
    assert told(steady("? Package name ", NODE), INTERPRETER) == ("idle", "line")
    assert told(steady("menu", NODE, alternate=True), INTERPRETER) == ("idle", "tui")
    menu = "Which template?\n❯ Plain\n  With tests\n"
    assert told(steady(menu, NODE, visible=False), INTERPRETER) == ("asking", "choice")
    assert told(steady("Looking for the latest release: ", NODE), INTERPRETER) == ("busy", None)


def test_a_shells_prompt_is_none_of_a_program_it_runs() -> None:
    profile = Profile(
        name="bash", foreground=("bash",), continuation=(Rule("c", r"^>\s*$", "cursor-line", detail="shell"),)
    )
    finder = kernel(program("fzf", "read"), tty=KEYS)
    assert told(steady("  2\n> 1\n> ", finder, alternate=True), profile) == ("idle", "tui")
    assert told(steady("$ echo 'a\n> ", BASH), profile) == ("idle", "continuation")


def test_a_profile_may_want_more_quiet_of_an_event_loop() -> None:
    profile = Profile(name="p", settle=1.5, prompt=(Rule("p", "^> ?$", "cursor-line"),))
    assert told(steady("> ", AGENT, quiet=1.0), profile) == ("busy", None)
    assert told(steady("> ", AGENT, quiet=1.6), profile) == ("idle", "prompt")


def test_a_continuation_of_a_profile_is_told() -> None:
    profile = Profile(
        name="p", prompt=(Rule("p", "^ok>", "cursor-line"),), continuation=(Rule("c", "^-- ", "cursor-line"),)
    )
    verdict = judge(steady("ok> begin\n-- x", kernel(program("p", "read"))), profile)
    assert (verdict.kind, verdict.rule) == ("continuation", "c")


def test_a_continuation_that_shows_above_the_cursor_is_believed_of_an_event_loop() -> None:
    profile = Profile(
        name="p",
        prompt=(Rule("p", "^>", "cursor-line"),),
        continuation=(Rule("editor", "^// Entering editor mode$", "last-line", detail="repl"),),
    )
    screen = "> .editor\n// Entering editor mode\n"
    assert told(steady(screen, AGENT), profile) == ("idle", "continuation")
    assert told(steady("> await forever()\n", AGENT), profile)[0] != "idle"


def test_a_broken_pattern_in_a_profile_fits_nothing() -> None:
    profile = Profile(name="p", prompt=(Rule("p", "(", "screen"),), busy=(Rule("b", "[", "screen"),), title_busy="*")
    assert told(steady(PROMPT, BASH), profile) == ("idle", "prompt")


# Beginning, hooks, explanations


def test_a_new_program_that_works_is_starting_until_something_was_typed_or_time_has_passed() -> None:
    assert told(steady("", SLEEP, about={"age": 1.0})) == ("starting", None)
    assert told(steady("", SLEEP, about={"age": 1.0, "typed": True})) == ("busy", None)
    assert told(steady("", SLEEP, about={"age": 3.0})) == ("busy", None)
    assert told(steady("", SLEEP, about={"age": 30.0}), Profile(name="slow", start_timeout=60.0)) == ("starting", None)
    assert told(steady(PROMPT, BASH, about={"age": 0.5})) == ("idle", "prompt")


def test_the_end_of_a_turn_that_a_program_tells_supports_what_the_kernel_sees() -> None:
    verdict = judge(steady("> ", AGENT, hook=Hook("stop", 2.0)))
    assert (verdict.state, verdict.by, verdict.confidence) == (State.IDLE, "hook", Confidence.SURE)
    assert told(steady("> ", kernel(program("agent", "running"), tty=KEYS), hook=Hook("stop", 2.0))) == ("busy", None)


def test_every_piece_of_evidence_is_told_in_the_order_of_the_rules() -> None:
    found = list_arguments(steady("Overwrite? [y/N] ", kernel(program("python3", "read")), title="work"))
    assert [one.source for one in found] == [
        *(
            "exit",
            "hook",
            "shell-mark",
            "asking-mark",
            "busy-mark",
            "prompt",
            "kernel",
            "activity",
            "settle",
            "title",
            "tty",
        )
    ]
    about = {one.source: one for one in found}
    assert (about["kernel"].state, about["kernel"].used) == ("idle", True)
    assert (about["asking-mark"].state, about["asking-mark"].used) == ("asking", True)
    assert not about["title"].used
    assert "whole lines" in about["tty"].seen
    assert about["activity"].age == pytest.approx(2.0)


def test_what_argued_against_the_verdict_is_told_too() -> None:
    about = {one.source: one for one in list_arguments(steady(PROMPT, SLEEP, mark=marked("B"), quiet=5.0))}
    assert (about["shell-mark"].state, about["shell-mark"].used) == ("idle", False)
    assert (about["prompt"].state, about["settle"].state) == ("idle", "unknown")
    assert (about["kernel"].state, about["kernel"].used) == ("busy", True)


def test_any_evidence_can_be_explained() -> None:
    for seen in (SLEEP, BASH, AGENT, SSH, unreadable("su"), None, Kernel(None, 0, ()), by_place(BASH)):
        for text in ("", PROMPT, "a\nb\nc"):
            assert len(list_arguments(steady(text, seen), QUIET_AGENT)) == 11


def test_without_a_look_there_is_nothing_to_judge() -> None:
    with pytest.raises(ValueError, match="no observation"):
        judge(Evidence((), proc=NONE))


def test_a_long_or_odd_screen_is_judged_all_the_same() -> None:
    rows = ["x" * 5000, "(" * 3000, "[y/" * 900, "a, " * 2000 + "press"] * 12
    assert isinstance(judge(steady("\n".join(rows), None)), Verdict)
    off: Look = look("a", BASH, x=500, y=39)
    assert told(evidence(off)) == ("idle", "prompt")


# Two looks that saw the same


def at_rest(name: str = "python3", **known: Any) -> Kernel:
    """A program whose only thread sleeps until a key is pressed."""
    return kernel(program(name, thread("pselect6", **{"alone": True, "switches": 9, **known})), tty=KEYS)


def twice(screen: str, earlier: Kernel, later: Kernel | None = None, **known: Any) -> Evidence:
    """Two looks 25 ms apart, right behind the last output; `known` is of the second."""
    first = look(screen, earlier, at=10.0, quiet=0.001)
    return evidence(
        first, look(screen, later or earlier, **{"at": first.at + 0.025, "quiet": 0.026, **known}), typed=True
    )


LISTENS_TO_ITSELF = {"alone": False, "inward": True}
"""gdb polls the terminal and what its own threads write to."""


def test_a_prompt_needs_no_quiet_where_nothing_happened_between_two_looks() -> None:
    for name, prompt in (("python3", ">>> "), ("sqlite3", "sqlite> "), ("psql", "shop=# "), ("bash", "$ ")):
        assert told(twice(f"2\n{prompt}", at_rest(name))) == ("idle", "prompt")
        assert told(evidence(look(prompt, at_rest(name), quiet=0.026))) == ("busy", None)
    gdb = Profile(name="gdb", foreground=("gdb",), prompt=(Rule("p", r"^\(gdb\)", "cursor-line"),))
    assert told(twice("2\n(gdb) ", at_rest("gdb", **LISTENS_TO_ITSELF)), gdb) == ("idle", "prompt")


@pytest.mark.parametrize("screen", [">>> work()\n", ">>> work()", "step 1 of 3", "Enter a number: "])
def test_what_shows_no_bare_prompt_needs_quiet(screen: str) -> None:
    """The prompt may still be on its way to the screen."""
    assert told(twice(screen, at_rest())) == ("busy", None)


def test_a_prompt_needs_quiet_where_something_happened_between_the_looks() -> None:
    assert told(twice(">>> ", at_rest(), journal=104)) == ("busy", None)
    assert told(twice(">>> ", at_rest(), at_rest(switches=10))) == ("busy", None)
    assert told(twice(">>> ", at_rest()._replace(tty=KEYS._replace(unread=3)), at_rest())) == ("busy", None)
    assert told(twice(">>> ", at_rest(), at=10.01)) == ("busy", None)


def test_a_prompt_needs_quiet_where_a_thread_has_the_processor_or_the_kernel_tells_too_little() -> None:
    waits, works = thread("pselect6", alone=True, switches=9), thread("running", id=101, switches=5)
    assert told(twice(">>> ", kernel(program("python3", waits, works), tty=KEYS))) == ("busy", None)
    assert told(twice(">>> ", at_rest(switches=0))) == ("busy", None)
    assert told(twice(">>> ", by_place(at_rest()))) == ("busy", None)


def test_an_event_loop_needs_quiet_where_more_than_input_may_wake_it_or_its_prompt_is_not_known() -> None:
    gdb = Profile(name="gdb", foreground=("gdb",), prompt=(Rule("p", r"^\(gdb\)", "cursor-line"),))
    waits = thread("poll", switches=9, inward=True)
    child = program("make", thread("wait4", tty=False, switches=3), pid=2)
    for seen in (
        kernel(program("gdb", waits, sockets=1), tty=KEYS),
        kernel(program("gdb", waits), child, tty=KEYS),
        at_rest("gdb", alone=False, timeout=2.0),
    ):
        assert told(twice("(gdb) ", seen), gdb) == ("busy", None)
    assert told(twice("(gdb) ", at_rest("gdb", **LISTENS_TO_ITSELF))) == ("busy", None)


def test_a_profile_that_asks_for_quiet_gets_it() -> None:
    slow = Profile(name="slow", foreground=("slow",), prompt=(Rule("p", "^> ?$", "cursor-line"),), settle=0.5)
    assert told(twice("> ", at_rest("slow")), slow) == ("busy", None)
