"""The state of a program, told from what was seen of it."""

from __future__ import annotations

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
    program,
    steady,
    thread,
    unreadable,
)

from tmuxctl.evidence import NONE, Evidence, Kernel, Look, Thread, Tty
from tmuxctl.model import Confidence, State
from tmuxctl.profile import Profile, Rule
from tmuxctl.reading.state import arguments, judge

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


def test_a_program_that_computes_silently_is_busy_and_the_verdict_says_how() -> None:
    verdict = judge(steady("Computing: ", kernel(program("python3", "running")), quiet=9.0))
    assert (verdict.detail, verdict.by, verdict.confidence) == ("computing", "kernel", Confidence.SURE)
    assert "python3 running" in verdict.why
    verdict = judge(steady("", SLEEP, quiet=9.0))
    assert verdict.detail == "silent"
    assert verdict.why == "sleep in clock_nanosleep, nobody reads the terminal"


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


# Less readable kernels


def test_where_only_the_place_of_sleep_is_known_a_read_needs_a_moment_of_quiet() -> None:
    reading = by_place(kernel(program("python3", "read")))
    assert told(steady("Name: ", reading, quiet=0.1)) == ("busy", None)
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


def test_a_busy_sign_says_nothing_of_a_blocked_read() -> None:
    assert told(steady("Loading...\n>>> ", kernel(program("python3", "read")))) == ("idle", "prompt")


# Terminals inside and elsewhere


def relay(via: str, inner: Kernel, tty: Tty = KEYS, waits: str = "poll") -> Kernel:
    return kernel(program(via, waits), tty=tty, inner=inner, via=None)._replace(inner=inner._replace(via=via))


def test_behind_a_relay_the_inner_program_counts() -> None:
    assert told(steady(PROMPT, relay("script", BASH))) == ("idle", "prompt")
    assert told(steady(PROMPT + "sleep 4\n", relay("script", SLEEP))) == ("busy", None)
    assert told(steady(PROMPT, relay("sudo", relay("script", SLEEP)), quiet=9.0)) == ("busy", None)
    assert told(steady("Name: ", relay("python3", kernel(program("app", "read"))))) == ("idle", "line")


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


def test_a_multiplexers_client_waits_through_its_server() -> None:
    tmux = kernel(program("tmux: client", thread("poll", tty=False)), tty=KEYS)
    assert told(steady(PROMPT, tmux, alternate=True)) == ("idle", "prompt")
    assert told(steady(PROMPT + "sleep 4\n", tmux, alternate=True, quiet=9.0))[0] == "busy"


def test_a_full_screen_program_far_away_is_unknown_unless_its_screen_tells_that_it_takes_keys() -> None:
    assert told(steady("some text\nof a page", SSH, alternate=True, quiet=5.0)) == ("unknown", None)
    nano = "hello\n" + "\n" * 20 + "^G Help      ^O Write Out ^W Where Is  ^K Cut\n"
    assert told(steady(nano, SSH, alternate=True, x=5, y=0)) == ("idle", "editor")
    assert told(steady("hello\n~\n~\n~\n~", SSH, alternate=True, x=0, y=1)) == ("idle", "editor")


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
    verdict = judge(steady("> ", AGENT, hook="stop"))
    assert (verdict.state, verdict.by, verdict.confidence) == (State.IDLE, "hook", Confidence.SURE)
    assert told(steady("> ", kernel(program("agent", "running"), tty=KEYS), hook="stop")) == ("busy", None)


def test_every_piece_of_evidence_is_told_in_the_order_of_the_rules() -> None:
    found = arguments(steady("Overwrite? [y/N] ", kernel(program("python3", "read")), title="work"))
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
    about = {one.source: one for one in arguments(steady(PROMPT, SLEEP, mark=marked("B"), quiet=5.0))}
    assert (about["shell-mark"].state, about["shell-mark"].used) == ("idle", False)
    assert (about["prompt"].state, about["settle"].state) == ("idle", "unknown")
    assert (about["kernel"].state, about["kernel"].used) == ("busy", True)


def test_any_evidence_can_be_explained() -> None:
    for seen in (SLEEP, BASH, AGENT, SSH, unreadable("su"), None, Kernel(None, 0, ()), by_place(BASH)):
        for text in ("", PROMPT, "a\nb\nc"):
            assert len(arguments(steady(text, seen), QUIET_AGENT)) == 11


def test_without_a_look_there_is_nothing_to_judge() -> None:
    with pytest.raises(ValueError, match="no look"):
        judge(Evidence((), proc=NONE))


def test_a_long_or_odd_screen_is_judged_all_the_same() -> None:
    rows = ["x" * 5000, "(" * 3000, "[y/" * 900, "a, " * 2000 + "press"] * 12
    assert isinstance(judge(steady("\n".join(rows), None)), tuple)
    off: Look = look("a", BASH, x=500, y=39)
    assert told(evidence(off)) == ("idle", "prompt")
