"""The verdict on what was seen of a program: its state, its kind and detail, what it rests on, how sure it is, and why in words."""

from __future__ import annotations

import pytest
from reading.looks import (
    KEYS,
    LINES,
    SECRET,
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

from tmuxctl.evidence import NONE, Evidence, Hook, Thread
from tmuxctl.program_profile import Profile, Rule
from tmuxctl.reading.state.judging import judge
from tmuxctl.reading.state.screen_rules import is_turn_over
from tmuxctl.reading.state.situation import build_situation

PROMPT = "user@host:~$ "
BASH = kernel(program("bash", thread("pselect6", alone=True)), tty=KEYS)
SLEEP = kernel(program("sleep", "clock_nanosleep"))
READS = kernel(program("python3", "read"))
AGENT = kernel(program("agent", "epoll_wait"), tty=KEYS)
SSH = kernel(program("ssh", "poll"), tty=KEYS)
CHAT = Profile(
    name="agent",
    prompt=(Rule("input", "^❯ ?$", "cursor-line", detail="agent"),),
    busy=(Rule("works", "^✻ [A-Z][a-z]+…", "bottom:6", detail="thinking"),),
    asking=(Rule("may", "^Do you want to", "bottom:6", kind="approval"),),
    errors=(
        Rule("over", r"limit, resets (?P<until>.+)", "bottom:6", detail="limited"),
        Rule("again", "retrying in", "bottom:6", detail="retrying"),
    ),
    title_busy="^⠋ ",
    title_idle="^✳ ",
)
PLAIN = Profile(name="plain", prompt=(Rule("input", "^❯ ?$", "cursor-line"),))
PYTHON = Profile(name="py", prompt=(Rule("p", "^>>> ", "cursor-line", detail="repl"),))
VIM = kernel(program("vim", "read"), program("sh", "wait4", pid=200, parent=100), tty=KEYS)
COMPILES = kernel(
    program("p", "epoll_wait"), program("cc", "futex", pid=200, parent=100, started=9990), tty=KEYS, clock=10000
)
WORKS = kernel(program("repl", thread("clock_nanosleep"), thread("read", id=101)))
LOOKS_FOR_KEYS = kernel(program("p", thread("poll", timeout=0.1), thread("clock_nanosleep", id=101)), tty=KEYS)
BEGINNING = [
    look("a\nb\nc", AGENT, x=0, y=0, at=10 + 0.06 * count, journal=100 + (count >= 50),
         quiet=None if count < 50 else (count - 50) * 0.06)
    for count in range(52)
]  # fmt: skip

VERDICTS: dict[str, tuple[Evidence, Profile | None, str, str]] = {
    "one that computes": (
        steady("", kernel(program("python3", "running")), quiet=9.0), None,
        "busy - computing kernel sure",
        "python3 running, no process reads the terminal",
    ),
    "one that sleeps": (
        steady("", SLEEP, quiet=9.0), None,
        "busy - silent kernel sure",
        "sleep in clock_nanosleep, no process reads the terminal",
    ),
    "one that sleeps, seen once": (
        evidence(look("", SLEEP)), None,
        "busy - silent kernel likely",
        "sleep in clock_nanosleep, no process reads the terminal",
    ),
    "a stopped one": (
        steady("", kernel(program("vim", Thread(100, "T"), state="T"))), None,
        "busy - stopped kernel sure",
        "vim is stopped",
    ),
    "one that leaves input unread": (
        steady("", kernel(program("cat", "read"), tty=LINES._replace(unread=3))), None,
        "busy - silent kernel likely",
        "3 typed bytes are not read yet",
    ),
    "one that leaves input unread, seen once": (
        evidence(look("", kernel(program("cat", "read"), tty=LINES._replace(unread=3)))), None,
        "busy - silent kernel guess",
        "3 typed bytes are not read yet",
    ),
    "a shell's command": (
        steady("x", SLEEP, mark=marked("C")), None,
        "busy - silent shell-mark sure",
        "a command runs, and the shell has not marked its end",
    ),
    "a shell at its marked prompt": (
        steady(PROMPT, BASH, mark=marked("B")), None,
        "idle prompt shell shell-mark sure",
        'prompt "user@host:~$", marked by the shell, waits only for the terminal (pselect6)',
    ),
    "a shell whose command has failed": (
        steady(PROMPT, BASH, mark=marked("D", 7)), None,
        "idle prompt shell shell-mark sure",
        'prompt "user@host:~$", marked by the shell, waits only for the terminal (pselect6)',
    ),
    "a shell that has just begun its prompt": (
        steady(PROMPT, BASH, mark=marked("A"), quiet=0.01), None,
        "busy - printing shell-mark likely",
        "the shell draws its prompt",
    ),
    "a shell at its marked prompt where there is no kernel to ask": (
        steady(PROMPT, None, mark=marked("B"), about={"proc": NONE}), None,
        "idle prompt shell shell-mark sure",
        'prompt "user@host:~$", marked by the shell, no evidence from the kernel',
    ),
    "one whose turn has just ended": (
        steady("x", AGENT, hook=Hook("stop", 0.1)), None,
        "idle prompt agent hook sure",
        'turn ended, prompt "x", the program reported the end of its turn',
    ),
    "an agent that wants attention at its prompt": (
        steady("❯ ", AGENT, hook=Hook("attention", 5.0)), CHAT,
        "idle prompt agent hook sure",
        'turn ended, prompt "❯", waits for the terminal (epoll_wait)',
    ),
    "one whose turn ended a while ago": (
        steady("> ", AGENT, hook=Hook("stop", 9.0)), None,
        "idle prompt repl hook sure",
        'turn ended, prompt ">", waits for the terminal (epoll_wait)',
    ),
    "an agent at its limit": (
        steady("limit, resets 3pm \n❯ ", AGENT), CHAT,
        "idle prompt limited prompt likely",
        'prompt "❯", waits for the terminal (epoll_wait), limit sign over',
    ),
    "an agent that thinks though its limit shows": (
        steady("limit, resets 3pm\n✻ Pondering…\n❯ x", AGENT), CHAT,
        "busy - thinking busy-mark likely",
        "busy sign works",
    ),
    "an agent that waits for its limit to be over": (
        steady("limit, resets 3pm\nx", AGENT, title="⠋ t"), CHAT,
        "busy - limited busy-mark likely",
        "the title says busy, limit sign over",
    ),
    "an agent that tries again": (
        steady("retrying in 3 s\nx", AGENT, title="⠋ t"), CHAT,
        "busy - retrying busy-mark likely",
        "the title says busy",
    ),
    "an agent with its sign of work": (
        steady("✻ Pondering…\n❯ ", AGENT), CHAT,
        "busy - thinking busy-mark likely",
        "busy sign works",
    ),
    "an agent whose title says that it works": (
        steady("\n❯ ", AGENT, title="⠋ t"), CHAT,
        "busy - silent busy-mark likely",
        "the title says busy",
    ),
    "any with a common sign of work": (
        steady("(esc to interrupt)\n> ", AGENT), None,
        "busy - thinking busy-mark likely",
        '"(esc to interrupt)"',
    ),
    "an agent that asks": (
        steady("Do you want to go on?", AGENT), CHAT,
        "asking approval - asking-mark likely",
        'approval "Do you want to go on?", waits for the terminal (epoll_wait)',
    ),
    "an agent that asks and reads": (
        steady("Do you want to go on?", READS), CHAT,
        "asking approval - asking-mark sure",
        'approval "Do you want to go on?", blocked in read',
    ),
    "one that asks and reads": (
        steady("Overwrite? [y/N] ", READS), None,
        "asking confirm - asking-mark sure",
        'confirm "Overwrite? [y/N]", blocked in read',
    ),
    "a reader at its prompt": (
        steady(">>> ", READS), None,
        "idle prompt repl kernel sure",
        'prompt ">>>", blocked in read',
    ),
    "a reader behind a label": (
        steady("Name: ", READS), None,
        "idle line - kernel sure",
        'line "Name:", blocked in read',
    ),
    "a reader behind nothing": (
        steady("", READS), None,
        "idle line - kernel sure",
        "line, blocked in read",
    ),
    "a reader, seen once": (
        evidence(look(">>> ", READS)), None,
        "idle prompt repl kernel sure",
        'prompt ">>>", blocked in read',
    ),
    "a reader that has just printed, seen once": (
        evidence(look(">>> ", READS, quiet=0.01)), None,
        "busy - printing kernel guess",
        "seen to read the terminal for the first time",
    ),
    "a reader that slept before": (
        evidence(look(">>> ", SLEEP, at=9.9), look(">>> ", READS, at=10.0)), None,
        "busy - silent kernel guess",
        "seen to read the terminal for the first time",
    ),
    "one that seems to read": (
        steady(">>> ", by_place(READS)), None,
        "idle prompt repl kernel likely",
        'prompt ">>>", blocked in read',
    ),
    "one that seems to read and has just printed": (
        steady(">>> ", by_place(READS), quiet=0.05), None,
        "busy - printing kernel guess",
        "it may be writing: it sleeps where writes wait, too",
    ),
    "a shell that seems to read behind nothing": (
        steady("out\n", by_place(kernel(program("sh", "read")))), None,
        "busy - silent kernel guess",
        "a shell that waits in its terminal without a prompt",
    ),
    "a reader with a thread at work": (
        steady("text", WORKS), None,
        "busy - silent kernel likely",
        "repl works beside the thread that reads the terminal",
    ),
    "a reader that draws": (
        drawing("text", READS, every=0.1), None,
        "busy - printing activity likely",
        "6.0 updates a second",
    ),
    "one of another user": (
        steady("text", unreadable("su")), None,
        "busy - silent kernel guess",
        "su cannot be inspected, no prompt left of the cursor",
    ),
    "one of another user at a prompt": (
        steady("# ", unreadable("su")), None,
        "idle prompt repl prompt guess",
        'prompt "#", su cannot be inspected, quiet for 2.0 s',
    ),
    "one of another user that hides input": (
        steady("Password: ", unreadable("su", tty=SECRET)), None,
        "asking password - kernel likely",
        "password, echo off",
    ),
    "a far shell": (
        steady(PROMPT, SSH), None,
        "idle prompt shell prompt guess",
        'prompt "user@host:~$", behind ssh, quiet for 2.0 s',
    ),
    "a far program behind text": (
        steady("text", SSH), None,
        "busy - silent kernel guess",
        "behind ssh, no prompt left of the cursor",
    ),
    "a far program behind text for long": (
        steady("text", SSH, quiet=9.0), None,
        "unknown - - settle guess",
        "behind ssh, quiet for 9 s after text that is not a prompt",
    ),
    "a far shell that has just printed": (
        steady(PROMPT, SSH, quiet=0.1), None,
        "busy - printing activity guess",
        "behind ssh, printed 0.1 s ago",
    ),
    "a shell that has just printed": (
        steady(PROMPT, BASH, quiet=0.01), None,
        "busy - printing kernel guess",
        "the shell has only just printed",
    ),
    "a shell that waits for keys alone": (
        steady(PROMPT, BASH), None,
        "idle prompt shell kernel sure",
        'prompt "user@host:~$", waits only for the terminal (pselect6)',
    ),
    "a shell that waits for more than keys": (
        steady(PROMPT, kernel(program("bash", "pselect6"), tty=KEYS)), None,
        "idle prompt shell kernel likely",
        'prompt "user@host:~$", waits for the terminal (pselect6)',
    ),
    "an event loop that draws": (
        drawing("text", AGENT, every=0.1), None,
        "busy - printing activity likely",
        "6.0 updates a second",
    ),
    "an event loop that slept before": (
        evidence(look("> ", SLEEP, at=9.9), look("> ", AGENT, at=10.0)), None,
        "busy - silent kernel guess",
        "seen to listen to the terminal for the first time",
    ),
    "an event loop that has just printed, seen once": (
        evidence(look("> ", AGENT, quiet=0.1)), None,
        "busy - printing kernel guess",
        "an event loop, seen only once",
    ),
    "one that waits for keys alone and has just printed": (
        steady("> ", kernel(program("p", thread("poll", alone=True)), tty=KEYS), quiet=0.01), None,
        "busy - printing kernel guess",
        "printed 0.01 s ago",
    ),
    "one that waits for keys alone": (
        steady("> ", kernel(program("p", thread("poll", alone=True)), tty=KEYS)), None,
        "idle prompt repl kernel sure",
        'prompt ">", waits only for the terminal (poll)',
    ),
    "an event loop that is to be quiet for longer": (
        steady("> ", AGENT, quiet=1.0), Profile(name="slow", settle=2.5),
        "busy - silent activity guess",
        "printed 1.0 s ago, its profile asks for 2.5 s of quiet",
    ),
    "an event loop behind nothing": (
        steady("out\n", AGENT), None,
        "busy - silent kernel guess",
        "agent listens, but there is no text left of the cursor",
    ),
    "an event loop behind text": (
        steady("text", AGENT), None,
        "busy - silent kernel guess",
        "there is no prompt left of the cursor",
    ),
    "an event loop behind text for long": (
        steady("text", AGENT, quiet=4.0), None,
        "unknown - - settle guess",
        "agent listens, quiet for 4 s after text that is not a prompt",
    ),
    "an event loop at a prompt": (
        steady("> ", AGENT), None,
        "idle prompt repl kernel likely",
        'prompt ">", waits for the terminal (epoll_wait)',
    ),
    "an event loop that has just printed its prompt": (
        steady("> ", AGENT, quiet=0.05), None,
        "busy - printing kernel guess",
        "printed 0.05 s ago",
    ),
    "an event loop behind a label": (
        steady("Name: ", AGENT), None,
        "idle line - kernel likely",
        'line "Name:", waits for the terminal (epoll_wait)',
    ),
    "an event loop that prints each second": (
        drawing("text", AGENT, every=1.0, seconds=5), None,
        "busy - printing activity likely",
        "prints about once a second",
    ),
    "an event loop that begins to print": (
        evidence(*BEGINNING), None,
        "busy - printing activity guess",
        "began to print",
    ),
    "an event loop without its prompt": (
        steady("text", AGENT), PLAIN,
        "busy - silent prompt guess",
        "no prompt of profile plain",
    ),
    "an event loop without its prompt for long": (
        steady("text", AGENT, quiet=4.0), PLAIN,
        "unknown - - settle guess",
        "quiet for 4 s without a prompt of profile plain",
    ),
    "an event loop with a timer, without its prompt for long": (
        steady("text", kernel(program("agent", thread("epoll_wait", timeout=9.0)), tty=KEYS), quiet=4.0), PLAIN,
        "unknown - - settle guess",
        "quiet for 4 s without a prompt of profile plain, a timer of it runs",
    ),
    "a prompt alone": (
        steady(PROMPT, None), None,
        "idle prompt shell prompt guess",
        'prompt "user@host:~$", no evidence from the kernel, quiet for 2.0 s',
    ),
    "text alone": (
        steady("text", None), None,
        "busy - silent kernel guess",
        "no evidence from the kernel, no prompt left of the cursor",
    ),
    "text alone for long": (
        steady("text", None, quiet=4.0), None,
        "unknown - - settle guess",
        "no evidence from the kernel, quiet for 4 s after text that is not a prompt",
    ),
    "a prompt alone that was just printed": (
        steady(PROMPT, None, quiet=0.1), None,
        "busy - printing activity guess",
        "no evidence from the kernel, printed 0.1 s ago",
    ),
    "a prompt alone of unknown age": (
        evidence(look(PROMPT, None, quiet=None)), None,
        "busy - silent kernel guess",
        "no evidence from the kernel, its last output is of unknown age",
    ),
    "a prompt of the profile alone": (
        steady("❯ ", None), PLAIN,
        "idle prompt shell prompt likely",
        'prompt "❯", no evidence from the kernel, quiet for 2.0 s',
    ),
    "text alone that is drawn again and again": (
        drawing("text", None, every=0.1), None,
        "busy - printing activity likely",
        "6.0 updates a second",
    ),
    "a question alone": (
        steady("Overwrite? [y/N] ", None), None,
        "asking confirm - asking-mark guess",
        'confirm "Overwrite? [y/N]", no evidence from the kernel, quiet for 2.0 s',
    ),
    "one whose processes are gone": (
        evidence(look("", SLEEP, at=9.9), look("", None, at=10.0)), None,
        "busy - silent kernel guess",
        "its processes are ending",
    ),
    "an agent's text without its prompt": (
        steady("text", None, quiet=1.0), CHAT,
        "busy - silent prompt guess",
        "no evidence from the kernel, quiet for 1.0 s, its own prompt does not show",
    ),
    "an agent's text without its prompt for long": (
        steady("text", None, quiet=4.0), CHAT,
        "unknown - - settle guess",
        "no evidence from the kernel, quiet for 4.0 s, its own prompt does not show",
    ),
    "one that may read the answer to its question": (
        steady("Overwrite? [y/N] ", by_place(kernel(program("p", thread("poll", tty=False))))), None,
        "asking confirm - asking-mark guess",
        'confirm "Overwrite? [y/N]", the program may be reading its answer',
    ),
    "one that may read at its prompt": (
        steady("> ", by_place(kernel(program("p", thread("poll", tty=False))))), None,
        "idle prompt repl prompt guess",
        'prompt ">", the program may be reading',
    ),
    "a new one that sleeps": (
        steady("", SLEEP, about={"age": 1.0}), None,
        "starting - silent kernel sure",
        "sleep in clock_nanosleep, no process reads the terminal",
    ),
    "an ended one": (
        steady("", None, dead=True, status=3), None,
        "exited - - exit sure",
        "ended, status 3",
    ),
    "an editor that runs a command": (
        steady("~\n~\n:!make\n", VIM, alternate=True), None,
        "busy - silent kernel likely",
        "vim runs sh",
    ),
    "an event loop with a new process": (
        steady("text", COMPILES), None,
        "busy - silent kernel likely",
        "cc began after the last output and goes on",
    ),
    "one that looks for a key now and then while a thread sleeps": (
        steady("text", LOOKS_FOR_KEYS), None,
        "busy - silent kernel guess",
        "p looks for a key while another thread of it sleeps",
    ),
    "an editor": (
        steady("~\n~\n~", kernel(program("vim", thread("pselect6", alone=True)), tty=KEYS), alternate=True), None,
        "idle editor - kernel sure",
        "editor, waits only for the terminal (pselect6)",
    ),
    "a pager": (
        steady("text\n(END)", kernel(program("less", "read"), tty=KEYS)), None,
        "asking pager - asking-mark sure",
        "pager, blocked in read",
    ),
    "one that hides input": (
        steady("Password: ", kernel(program("sudo", "read"), tty=SECRET)), None,
        "asking password - kernel sure",
        "password, echo off",
    ),
    "a shell that wants more of a command": (
        steady("$ for i in 1; do\n> ", BASH), None,
        "idle continuation shell kernel sure",
        'continuation ">", waits only for the terminal (pselect6)',
    ),
    "an interpreter behind its output": (
        steady("Total:", AGENT, quiet=4.0), PYTHON,
        "unknown - - settle guess",
        "quiet for 4 s without a prompt of profile py",
    ),
    "a shell that has begun its prompt at an unknown time": (
        evidence(look(PROMPT, BASH, mark=marked("A"), quiet=None)), None,
        "busy - printing shell-mark likely",
        "the shell draws its prompt",
    ),
    "an editor of another machine that draws now and then": (
        drawing("~\n~\n~", None, every=1.0, seconds=5, alternate=True), None,
        "unknown - - settle guess",
        "no evidence from the kernel, 1.0 updates a second on a whole screen",
    ),
    "a whole screen without a cursor that is drawn now and then": (
        drawing("a\n" * 39 + "b", None, every=1.0, seconds=5, visible=False), None,
        "unknown - - settle guess",
        "no evidence from the kernel, 1.0 updates a second on a whole screen",
    ),
    "an agent at the prompt of another": (
        steady("> ", AGENT), CHAT,
        "busy - silent prompt guess",
        "no prompt of profile agent",
    ),
    "a far program that hides input": (
        steady("Password: ", kernel(program("ssh", "poll"), tty=SECRET)), None,
        "asking password - kernel likely",
        "password, echo off",
    ),
    "a reader with a thread at work behind a label": (
        steady("Name: ", WORKS), None,
        "idle line - kernel sure",
        'line "Name:", blocked in read',
    ),
    "a reader with a thread at work that asks": (
        steady("Overwrite? [y/N] ", WORKS), None,
        "asking confirm - asking-mark sure",
        'confirm "Overwrite? [y/N]", blocked in read',
    ),
    "a reader with a thread at work that tells what it does": (
        steady("Loading: ", WORKS), None,
        "busy - silent kernel likely",
        "repl works beside the thread that reads the terminal",
    ),
    "a question with a hint behind the cursor": (
        steady("Go on? [y/N] yes or no", READS, x=13), None,
        "asking confirm - asking-mark sure",
        'confirm "Go on? [y/N]", blocked in read',
    ),
    "a prompt of two words alone": (
        steady("a b> ", None), None,
        "idle prompt shell prompt guess",
        'prompt "a b>", no evidence from the kernel, quiet for 2.0 s',
    ),
    "a reader at a prompt of two words": (
        steady("a b> ", READS), None,
        "idle prompt repl kernel sure",
        'prompt "a b>", blocked in read',
    ),
    "a reader at a long prompt": (
        steady("x" * 70 + "> ", READS), None,
        "idle prompt repl kernel sure",
        f'prompt "{"x" * 59}>", blocked in read',
    ),
}  # fmt: skip


@pytest.mark.parametrize(("seen", "profile", "words", "why"), VERDICTS.values(), ids=VERDICTS)
def test_a_verdict_says_what_it_rests_on(seen: Evidence, profile: Profile | None, words: str, why: str) -> None:
    found = judge(seen, profile)
    told = (found.state, found.kind, found.detail, found.by, found.confidence)
    assert (" ".join(str(one or "-") for one in told), found.why) == (words, why)


def test_of_the_input_that_is_left_unread_the_newest_count_is_told() -> None:
    counted = [kernel(program("cat", "read"), tty=LINES._replace(unread=count)) for count in (0, 1, 3)]
    looks = [look("", seen, at=10 + number) for number, seen in enumerate(counted)]
    assert judge(evidence(*looks)).why == "3 typed bytes are not read yet"
    assert judge(evidence(*looks[:2])).state != "busy"
    assert judge(evidence(looks[2], looks[0]._replace(at=13.0))).state != "busy"


def test_a_question_counts_more_than_the_end_of_a_turn_or_a_prompt_that_is_marked() -> None:
    ended = judge(steady("Do you want to go on?", AGENT, hook=Hook("stop", 0.1)), CHAT)
    assert (ended.state, ended.rule) == ("asking", "may")
    working = judge(steady("✻ Pondering…\n❯ ", AGENT, hook=Hook("stop", 0.1)), CHAT)
    assert (working.state, working.by) == ("busy", "busy-mark")
    marked_prompt = judge(steady("Do you want to go on?", BASH, mark=marked("B")), CHAT)
    assert marked_prompt.state == "asking"


def test_a_secret_is_asked_for_in_the_words_that_are_there() -> None:
    hidden = kernel(program("sudo", "read"), tty=SECRET)
    for screen, words in (("", "password"), ("Passphrase for x\n", "Passphrase for x"), ("out\nPIN: ", "PIN:")):
        found = judge(steady(screen, hidden)).asking
        assert found is not None
        assert (found.kind, found.question) == ("password", words)


def test_a_turn_is_over_once_the_title_that_said_busy_says_that_it_is_ready() -> None:
    def over(screen: str, *titles: str, profile: Profile | None = CHAT) -> bool:
        looks = [look(screen, AGENT, at=10 + 0.06 * number, title=title) for number, title in enumerate(titles)]
        return is_turn_over(build_situation(evidence(*looks), profile))

    assert over("❯ ", "⠋ task", "✳ task")
    assert not over("text", "⠋ task", "✳ task")
    assert not over("❯ ", "✳ task", "✳ task")
    assert not over("❯ ", "⠋ task", "task")
    assert not over("❯ ", "✳ task", "⠋ task")
    assert not over("✻ Pondering…\n❯ ", "⠋ task", "✳ task")
    assert not over("❯ ", "⠋ task", "✳ task", profile=None)
    assert not over("❯ ", "⠋ task", "✳ task", profile=PLAIN)


def test_a_verdict_tells_the_prompt_its_rule_the_last_status_and_the_end_of_a_limit() -> None:
    shell = judge(steady(PROMPT, BASH, mark=marked("D", 7)))
    assert (shell.prompt, shell.rule, shell.status) == ("user@host:~$", None, 7)
    assert judge(steady(PROMPT, BASH, mark=marked("B", 7))).status is None
    limited = judge(steady("limit, resets 3pm \n❯ ", AGENT), CHAT)
    assert (limited.prompt, limited.rule, limited.until) == ("❯", "input", "3pm")
    waits = judge(steady("limit, resets 3pm\nx", AGENT, title="⠋ t"), CHAT)
    assert (waits.prompt, waits.rule, waits.until) == (None, None, "3pm")
    thinks = judge(steady("limit, resets 3pm\n✻ Pondering…\n❯ x", AGENT), CHAT)
    assert thinks.until is None
    asks = judge(steady("Do you want to go on?", AGENT), CHAT)
    assert (asks.prompt, asks.rule) == (None, "may")
    assert judge(steady("", None, dead=True, signal="KILL")).why == "ended, signal KILL"
    assert judge(steady("", None, dead=True)).why == "ended, how is not known"
