"""Commands in real shells: what the marks enclose is what the command wrote, and nothing of ours stays behind."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from terminal.shell_pane import Shell, folder, integrated, tmux

from tmuxctl.errors import Usage
from tmuxctl.terminal.launch.shells import exec_script, find_shell_kind, format_typed_line

__all__ = ["folder"]
PLAIN = {"bash": ("bash", "--norc"), "zsh": ("zsh", "-f"), "fish": ("fish", "--no-config"), "sh": ("dash",)}


@pytest.fixture(scope="module", params=["bash", "zsh", "fish", "sh", "marked-bash", "marked-zsh", "marked-fish"])
def shell(request: pytest.FixtureRequest, folder: Path) -> Iterator[tuple[str, Shell]]:
    """A shell of each kind, with marks of its own and without, used by one test after another."""
    marked, _, kind = request.param.rpartition("-")
    argv, env = integrated(folder, (kind,)) if marked else (PLAIN[kind], {})
    if not shutil.which(argv[0]):
        pytest.skip(f"{argv[0]} is not installed")
    one = Shell(folder, argv, env).ready()
    yield kind, one
    one.close()


EVERYWHERE = {
    "no newline": ("printf abc", b"abc", 0),
    "nothing": ("true", b"", 0),
    "empty": ("", b"", 0),
    "two lines": ("echo one\necho two", b"one\ntwo\n", 0),
    "ends in a comment": ("echo one # two", b"one\n", 0),
    "quotes": ("""printf '%s|' "it's" 'a"b' 'x!y' '#{x}' 'a\\b' 'é✓🧑‍🔬' '$HOME' '`' '@PATH@'""", None, 0),
    "false": ("false", b"", 1),
    "status": ("sh -c 'exit 42'", b"", 42),
    "killed": ("sh -c 'kill -9 $$'", None, 137),
    "marks of its own": (r"printf '\033]133;D;9\007\033]133;C;tmuxctl=x\007\033]133;D;7;tmuxctl=x\007'", None, 0),
    "bytes": (r"printf 'a\000b\377\200\r\nc\r\r\n\n'", b"a\0b\xff\x80\r\nc\r\r\n\n", 0),
}


@pytest.mark.parametrize("case", EVERYWHERE)
def test_output_and_status_are_exact(shell: tuple[str, Shell], case: str) -> None:
    kind, one = shell
    command, wanted, status = EVERYWHERE[case]
    got = one.run(kind, command)
    if case == "quotes":
        wanted = "it's|a\"b|x!y|#{x}|a\\b|é✓🧑‍🔬|$HOME|`|@PATH@|".encode()
    elif case == "marks of its own":
        wanted = b"\x1b]133;D;9\x07\x1b]133;C;tmuxctl=x\x07\x1b]133;D;7;tmuxctl=x\x07"
    assert got == (got[0] if wanted is None else wanted, status)


@pytest.mark.parametrize("kind", list(PLAIN))
def test_five_megabytes_pass(folder: Path, kind: str) -> None:
    one = Shell(folder, PLAIN[kind]).ready()
    data, status = one.run(kind, f"yes {'0123456789' * 11} | head -c 5000000; printf end")
    wanted = (b"0123456789" * 11 + b"\n") * 50000
    assert (data == wanted[:5000000] + b"end", status) == (True, 0)
    one.close()


def test_a_here_document_is_read(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    if kind != "fish":
        assert one.run(kind, "cat <<'END'; echo after\n$x\n  two\nEND\necho last") == (b"$x\n  two\nafter\nlast\n", 0)


def test_a_syntax_error_is_a_status(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    said, status = one.run(kind, "echo (((" if kind == "fish" else "if then")
    assert said
    assert status


def test_errors_that_drop_the_line_are_a_status(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    for command in (
        ["math 1 / (", "nosuch"] if kind == "fish" else ["echo $((1/0)); true", "cd /nonexistent", ": ${nope?no}"]
    ):
        assert one.run(kind, command)[1], command


def test_tracing_does_not_tell_of_the_helpers(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    if kind != "fish":
        one.run(kind, "set -x")
        said = one.run(kind, "echo traced")[0].splitlines()
        one.run(kind, "set +x")
        assert said[-1] == b"traced"
        assert [line for line in said if b"traced" not in line] == []


def test_return_does_no_harm(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    one.run(kind, "return 3")
    assert one.run(kind, "echo again") == (b"again\n", 0)


def test_the_command_runs_in_the_shell_itself(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    one.run(kind, "cd empty; set -gx kept 5" if kind == "fish" else "cd empty; export kept=5")
    assert one.run(kind, "echo $kept; pwd") == (f"5\n{one.folder}/empty\n".encode(), 0)
    one.run(
        kind,
        "alias tell 'echo told'; function twice; echo $argv $argv; end"
        if kind == "fish"
        else "alias tell='echo told'; twice() { echo $1 $1; }",
    )
    assert one.run(kind, "cd ..; tell; twice 4")[0] == b"told\n4 4\n"


def test_status_goes_in_and_comes_out(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    status = "$status" if kind == "fish" else "$?"
    one.run(kind, "sh -c 'exit 42'")
    assert one.run(kind, f"echo {status}")[0] == b"42\n"
    one.paste(f" sh -c 'exit 43'\r echo typed:{status}:\r")
    one.until(lambda: b"typed:43:" in one.data(), "status of the typed command")
    assert one.run(kind, f"echo {status}; sh -c 'exit 44'") == (b"0\n", 44)
    one.paste(f" echo typed:{status}:\r")
    one.until(lambda: b"typed:44:" in one.data(), "status of the command")


def test_nothing_of_ours_stays(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    listing = "set -n; functions --all --names" if kind == "fish" else "set; trap; alias"
    if kind in ("bash", "zsh"):
        listing += "; declare -f"
    listing = f"begin; {listing}; end" if kind == "fish" else f"{{ {listing}; }}"
    moving = (
        b"_=", b"LINENO", b"RANDOM", b"SECONDS", b"EPOCH", b"SRANDOM", b"BASH_ARGC", b"BASH_ARGV", b"PPID", b"HISTCMD",
        b"PIPESTATUS", b"TTYIDLE", b"pipestatus", b"BASH_LINENO",
    )  # fmt: skip

    def interrupt() -> None:
        one.until(
            lambda: "sleep" in tmux("display-message", "-p", "-t", f"={one.name}:", "#{pane_current_command}"), "sleep"
        )
        one.paste("\x03")

    def listed(name: str) -> set[bytes]:
        file = one.folder / name
        one.paste(f" true\r {listing} >{file} 2>/dev/null\r")
        one.ready()
        return {line for line in file.read_bytes().splitlines() if not line.startswith(moving)}

    # what a shell itself keeps of an interrupt: the prompt of fish lists the names of signals
    one.paste(" sleep 100\r")
    interrupt()
    one.ready()
    before = listed("before")
    one.run(kind, "echo x | cat")
    one.run(kind, "sh -c 'exit 3'")
    look = one.start(kind, "sleep 100; echo after")
    interrupt()
    one.finished(look)
    one.ready()
    after = listed("after")
    assert {line for line in after - before if b"before" not in line and b"after" not in line} == set()


def test_an_interrupt_ends_the_whole_command(shell: tuple[str, Shell]) -> None:
    kind, one = shell
    look = one.start(kind, "sleep 100; echo af''ter\necho more")
    one.until(
        lambda: "sleep" in tmux("display-message", "-p", "-t", f"={one.name}:", "#{pane_current_command}"), "sleep"
    )
    one.paste("\x03")
    one.finished(look)
    found = look()
    one.ready()
    assert (found.status, one.data()[found.start : found.end].strip()) == (130, b"^C")
    assert b"after" not in one.data()[found.start :]
    assert b"more" not in one.data()[found.start :]
    assert one.run(kind, "echo again") == (b"again\n", 0)


@pytest.mark.parametrize("kind", list(PLAIN))
def test_exit_ends_the_shell(folder: Path, kind: str) -> None:
    one = Shell(folder, PLAIN[kind]).ready()
    one.start(kind, "echo bye; exit 7")
    assert one.dead() == "7"
    one.close()


def test_the_users_own_trap_decides(folder: Path) -> None:
    one = Shell(folder, ("dash",)).ready()
    one.run("sh", "trap 'echo caught' INT")
    look = one.start("sh", "sleep 100; echo after")
    one.until(
        lambda: "sleep" in tmux("display-message", "-p", "-t", f"={one.name}:", "#{pane_current_command}"), "sleep"
    )
    one.paste("\x03")
    one.finished(look)
    found = look()
    assert one.data()[found.start : found.end].split() == [b"^Ccaught", b"after"]
    assert one.run("sh", "trap >traps; cat traps; rm traps")[0] == b"trap -- 'echo caught' INT\n"
    assert one.run("sh", "trap 'echo mine' INT; set -eu; printf '%s\\n' \"$-\"")[1] == 0
    assert b"e" in one.run("sh", "trap >traps; cat traps; rm traps; printf '%s\\n' \"$-\"")[0].splitlines()[-1]
    one.close()


def test_kinds_are_known_by_name() -> None:
    known = {
        "-bash": "bash",
        "/bin/zsh": "zsh",
        "zsh-5.9": "zsh",
        "fish": "fish",
        "-sh": "sh",
        "/usr/bin/ksh93": "sh",
        "mksh": "sh",
        "bash-static": "bash",
    }
    assert {name: find_shell_kind(name) for name in known} == known
    assert [find_shell_kind(name) for name in ("", "-", "busybox", "bashful", "python3", "rbash", "tcsh", "/bin/")] == [
        None
    ] * 8


def test_what_cannot_be_typed_is_refused() -> None:
    for kind, command, token in [
        ("bash", "a\0b", "t"),
        ("tcsh", "true", "t"),
        ("sh", "true", "a;b"),
        ("sh", "true", ""),
    ]:
        with pytest.raises(Usage):
            exec_script(kind, command, token, "/p")
    with pytest.raises(Usage):
        format_typed_line("sh", "/a\nb")
