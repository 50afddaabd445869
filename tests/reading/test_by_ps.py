"""States of programs of which only `ps` tells, and of those of which nothing does."""

from __future__ import annotations

from typing import Any

from reading.looks import KEYS, LINES, SECRET, STEP, drawing, evidence, listed, look, steady

from tmuxctl.control.sessions.chosen_profile import choose_profile
from tmuxctl.evidence import NONE, PS, Evidence, Kernel, Program
from tmuxctl.model import Confidence, State
from tmuxctl.reading.state.explanation import list_arguments
from tmuxctl.reading.state.judging import judge

IN_BASH = {"proc": PS, "program": "bash"}


def told(seen: Evidence) -> tuple[str, str | None]:
    verdict = judge(seen)
    assert verdict.confidence is not Confidence.SURE
    return verdict.state.value, verdict.kind


def changing(screen: str, before: Kernel, since: Kernel, *, quiet: float, seconds: float = 1.0) -> Evidence:
    """The processes changed so many seconds ago, the last output is `quiet` seconds old."""
    looks = []
    for back in reversed(range(40)):
        age = back * STEP
        seen = before if age > seconds else since
        looks.append(
            look(screen, seen, at=10.0 - age, quiet=max(0.0, quiet - age), journal=100 if age <= quiet else 90)
        )
    return evidence(*looks, proc=PS, program="bash")


def test_a_command_without_a_prompt_is_busy() -> None:
    assert told(steady("$ sleep 9\n", listed("sleep"), about=IN_BASH)) == ("busy", None)
    assert told(steady("$ sleep 9\n", listed("sleep"), quiet=60.0, about=IN_BASH)) == ("busy", None)


def test_a_shell_alone_that_takes_keys_is_idle() -> None:
    assert told(steady("bash-5.2# ", listed("bash", tty=KEYS), quiet=0.3)) == ("idle", "prompt")
    assert told(steady("\n", listed("-zsh", tty=KEYS), quiet=2.0))[0] == "idle", "a job printed below the prompt"
    assert told(steady("bash-5.2# ", listed("bash", tty=KEYS), quiet=0.1)) == ("busy", None)


def test_a_shell_alone_that_takes_lines_is_idle_behind_its_prompt() -> None:
    assert told(steady("$ ", listed("dash"), quiet=0.5)) == ("idle", "prompt")
    assert told(steady("quick: ", listed("bash"), quiet=2.0))[0] == "idle", "read of a script"
    assert told(steady("\n", listed("bash"), quiet=60.0)) == ("busy", None), "it waits for a job"


def test_the_prompt_of_a_shell_is_none_of_the_program_that_it_runs() -> None:
    assert told(steady("user@host:~$ ", listed("sleep"), about=IN_BASH)) == ("busy", None)
    assert told(steady("% ", listed("tclsh"), about={"proc": PS, "program": "tclsh"})) == ("idle", "prompt")
    bash = choose_profile("bash", ())
    seen = steady("bash-5.2# ", listed("sleep"), about=IN_BASH)
    assert judge(seen, bash).state is State.BUSY


def test_a_program_behind_its_prompt_is_idle() -> None:
    assert told(steady(">>> ", listed("python3", tty=KEYS), quiet=0.3)) == ("idle", "prompt")
    assert told(steady("You have: ", listed("units", tty=KEYS), quiet=0.5)) == ("idle", "line")
    assert told(steady("Your name: ", listed("python3"), quiet=0.5))[0] in ("idle", "asking")


def test_a_program_that_uses_the_processor_is_busy_at_any_prompt() -> None:
    assert told(steady("Your name: ", listed("python3", state="R"))) == ("busy", None)
    looks = [look(">>> ", listed("python3", tty=KEYS, cpu=10 + 6 * n), at=10 + n * STEP) for n in range(30)]
    assert told(evidence(*looks, proc=PS)) == ("busy", None)
    assert told(steady(">>> ", listed("python3", tty=KEYS, state="R"))) == ("idle", "prompt"), "it draws"


def test_a_program_that_began_after_the_output_did_not_ask() -> None:
    asks, sleeps = listed("bash", tty=LINES), listed("sleep")._replace(programs=(_moved("sleep"),))
    assert told(changing("Your name: ", asks, sleeps, quiet=2.0)) == ("busy", None)
    assert told(changing("Your name: ", sleeps, sleeps, quiet=2.0))[0] != "busy"


def _moved(name: str) -> Program:
    return listed(name).programs[0]._replace(pid=500, parent=400)


def test_an_editor_that_runs_a_command_is_busy() -> None:
    vim, runs = listed("vim", tty=KEYS), listed("vim", "sleep", tty=KEYS)
    whole: dict[str, Any] = {"alternate": True, "quiet": 2.0}
    assert told(steady("text\n", vim, about=IN_BASH, **whole)) == ("idle", "editor")
    screen = changing("text\n", vim, runs, quiet=2.0)
    screen = screen._replace(looks=tuple(one._replace(alternate=True) for one in screen.looks))
    assert told(screen) == ("busy", None)
    lent = steady("text\n", listed("vim", "make"), about=IN_BASH, **whole)
    assert told(lent) == ("busy", None), "it gave the terminal back its lines"


def test_a_whole_screen_that_says_what_it_does_is_not_idle() -> None:
    whole: dict[str, Any] = {"alternate": True, "quiet": 2.0}
    assert told(steady("list\nquit ", listed("nnn", tty=KEYS), **whole)) == ("idle", "tui")
    assert told(steady("list\nWorking ", listed("nnn", tty=KEYS), **whole)) == ("busy", None)
    assert told(drawing("Every 1.0s: date\n", listed("watch", tty=KEYS), every=1.0, alternate=True)) == ("busy", None)


def test_a_question_that_may_have_been_answered_beforehand_counts_after_three_seconds() -> None:
    assert told(steady("Go on? [y/N] ", listed("python3"), quiet=2.0)) == ("busy", None)
    assert told(steady("Go on? [y/N] ", listed("python3"), quiet=3.5)) == ("asking", "confirm")
    assert told(steady("Go on? [y/N] ", listed("sh"), quiet=0.5)) == ("asking", "confirm"), (
        "a shell sleeps for no other"
    )
    assert told(steady("Go on? [y/N] ", listed("python3", tty=KEYS), quiet=0.5)) == ("asking", "confirm")


def test_a_password_is_asked_for_where_lines_are_not_echoed() -> None:
    assert told(steady("Password: ", listed("sudo", tty=SECRET))) == ("asking", "password")
    assert told(steady("\n", listed("sudo", tty=SECRET))) == ("busy", None), "it was given"


def test_a_relay_passes_on_what_is_typed_only_if_it_takes_keys() -> None:
    inner = listed("bash", tty=KEYS)._replace(via="expect", holder=100)
    drives = listed("expect")._replace(inner=inner)
    about = {"proc": PS, "program": "expect"}
    assert told(steady("bash-5.2# ", drives, about=about)) == ("busy", None)
    assert told(steady("bash-5.2# ", drives._replace(tty=KEYS), about=about)) == ("idle", "prompt")


def test_where_nothing_tells_of_the_program_a_whole_screen_is_not_idle() -> None:
    settings = Kernel(KEYS, 0, ())
    assert told(drawing("text\n" * 39, settings, every=1.0, visible=False)) == ("unknown", None)
    assert told(steady("~\n~\n~\n~\n", settings, alternate=True, quiet=4.0)) == ("unknown", None)


def test_where_nothing_tells_of_the_program_what_takes_lines_counts_after_three_seconds() -> None:
    settings = Kernel(LINES, 0, ())
    assert told(steady("Go on? [y/N] ", settings, quiet=2.0)) == ("busy", None)
    assert told(steady("Go on? [y/N] ", settings, quiet=3.5)) == ("asking", "confirm")
    assert told(steady("Press any key to continue", settings, quiet=3.5)) == ("unknown", None)
    assert told(steady("bash-5.2# ", Kernel(KEYS, 0, ()), quiet=0.6)) == ("idle", "prompt")


def test_explain_names_what_ps_shows() -> None:
    (kernel,) = [one for one in list_arguments(steady("$ sleep 9\n", listed("sleep"))) if one.source == "kernel"]
    assert (kernel.seen, kernel.state) == ("sleep in the foreground (ps)", None)


def test_a_program_of_another_user_that_runs_a_command_is_not_idle() -> None:
    def of_another_user(seen: Kernel) -> Kernel:
        return seen._replace(programs=tuple(one._replace(level=NONE) for one in seen.programs))

    vim, runs = (of_another_user(listed(*names, tty=KEYS)) for names in (("vim",), ("vim", "sleep")))
    screen = changing("~\n~\n~\n", vim, runs, quiet=2.0)
    assert told(screen._replace(looks=tuple(one._replace(alternate=True) for one in screen.looks))) == ("busy", None)
    shown = steady("user@host:~$ ", of_another_user(listed("sleep")), about=IN_BASH)
    assert told(shown) == ("busy", None)
    assert told(steady("Go on? [Y/n] ", of_another_user(listed("apt")), quiet=0.6)) == ("asking", "confirm")
