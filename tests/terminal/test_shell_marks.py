"""Shells that mark their prompts: they look and start as they did before."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import pytest
from terminal.shell_pane import SESSION, Shell, folder, integrated, numbers, tmux

from tmuxctl.reading.text.marks import find_marks, undo_newlines
from tmuxctl.terminal.launch.shells import integrate_shell

__all__ = ["folder"]


def lines(one: Shell) -> list[str]:
    return [line.rstrip() for line in one.screen().splitlines()]


FISH = ".config/fish/config.fish"
FRAMEWORKS = {
    "bash string": ("bash", ".bashrc", "é$", "precmd() { PS1='<$?> \\w é$ '; }; PROMPT_COMMAND=precmd\n"),
    "bash array": ("bash", ".bashrc", ">", "one() { PS1='one\\n> '; }; PROMPT_COMMAND=(true one)\n"),
    "bash static": ("bash", ".bashrc", "it$", "PS1='\\[\\e[1m\\]it\\[\\e[m\\]$ '; alias printf=false builtin=false\n"),
    "zsh precmd": ("zsh", ".zshrc", "é#", 'precmd() { PS1="<$?> %~ é%# "; }; setopt ksh_arrays nounset\n'),
    "zsh functions": ("zsh", ".zshrc", ">", "one() { PS1=$'one\\n> '; }; precmd_functions=(one); RPROMPT=right\n"),
    "zsh literal": ("zsh", ".zshrc", "% >", "setopt no_prompt_percent; PS1='100% > '\n"),
    "fish prompt": ("fish", FISH, ">", "function fish_prompt; printf '[%s] é\\n> ' $status; end\n"),
    "fish right": (
        "fish",
        FISH,
        ">",
        "function fish_prompt; echo 'line>'; end; function fish_right_prompt; echo right; end\n",
    ),
}


def dressed(one: Shell, tail: str, command: str) -> tuple[list[str], str]:
    """The screen and cursor after some commands and a long line edited in its middle; `tail` ends each prompt."""

    def prompted(count: int) -> bool:
        text = one.screen()
        return text.count(tail) == count and text.removesuffix("right").rstrip().endswith(tail)

    one.until(lambda: prompted(1), "prompt")
    one.paste(" true\r")
    one.until(lambda: prompted(2), "second prompt")
    one.paste(f" {command}\r")
    one.until(lambda: prompted(3), "third prompt")
    one.paste("x" * 130 + "\x1b[D\x1b[D.\x01!")
    one.until(lambda: "!xx" in one.screen() and "x.xx" in one.screen(), "typed text")
    return lines(one), tmux("display-message", "-p", "-t", f"={one.name}:", "#{cursor_x},#{cursor_y}")


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_marked_prompts_look_as_before(folder: Path, name: str) -> None:
    kind, file, tail, text = FRAMEWORKS[name]
    home = folder / f"home{next(numbers)}"
    (home / file).parent.mkdir(parents=True)
    (home / file).write_text(text + ("function fish_greeting; end\n" if kind == "fish" else ""))
    env = {"HOME": str(home)}
    command = "sh -c 'echo said; exit 3'"
    plain = Shell(folder, (kind,), env)
    wanted = dressed(plain, tail, command)
    marked = Shell(folder, *integrated(folder, (kind,), env))
    assert dressed(marked, tail, command) == wanted
    found = find_marks(marked.data(), SESSION)
    order = "".join(letter for letter, _ in groupby(one.letter for one in found if one.letter not in "AB"))
    assert order.removeprefix("D") == "CDCD"
    assert [one.status for one in found if one.letter == "D"][-1] == 3
    assert {"A", "B"} - {one.letter for one in found} == ({"B"} if name == "zsh literal" else set())
    plain.close()
    marked.close()


def test_zsh_gives_zdotdir_back(folder: Path) -> None:
    home, own = folder / f"home{next(numbers)}", folder / f"own{next(numbers)}"
    for place in (home, own):
        place.mkdir()
        for file in (".zshenv", ".zprofile", ".zshrc", ".zlogin"):
            (place / file).write_text(f"print -r -- read:{place.name}{file}:${{ZDOTDIR-none}}:\n")
    (home / ".zshrc").write_text("print -r -- hist:${HISTFILE-none}:\nZDOTDIR=/elsewhere\n")
    for env, argv, read in [
        (
            {"HOME": str(home)},
            ("zsh",),
            [f"read:{home.name}.zshenv:none:", f"hist:{home}/.zsh_history:", "env:ZDOTDIR no:/elsewhere:"],
        ),
        (
            {"HOME": str(home), "ZDOTDIR": str(own)},
            ("-zsh",),
            [f"read:{own.name}{file}:{own}:" for file in (".zshenv", ".zprofile", ".zshrc", ".zlogin")]
            + [f"env:ZDOTDIR={own}:{own}:"],
        ),
    ]:
        words, extra = integrated(folder, argv, env)
        # what a system's zshrc makes of $ZDOTDIR before the user's own is read
        one = Shell(folder, words, {**extra, "HISTFILE": f"{extra['ZDOTDIR']}/.zsh_history"})
        one.marked()
        command = "print -r -- env:$(env | grep ZDOTDIR || echo ZDOTDIR no):$ZDOTDIR: ${(k)parameters[(I)*tmuxctl*]}"
        said, _ = one.run("zsh", command)
        seen = undo_newlines(one.data()).decode().splitlines()
        assert [line for line in seen if line.startswith(("read:", "hist:"))] + said.decode().splitlines() == read
        one.close()


def test_bash_reads_what_it_would_have_read(folder: Path) -> None:
    home = folder / f"home{next(numbers)}"
    home.mkdir()
    for file in (".bashrc", ".bash_profile", ".profile", "mine"):
        (home / file).write_text(f"echo read:{file}\n")
    for argv, file in [
        (("bash",), ".bashrc"),
        (("bash", "-l"), ".bash_profile"),
        (("/bin/bash", "--rcfile", f"{home}/mine", "-i"), "mine"),
    ]:
        words, extra = integrated(folder, argv, {"HOME": str(home)})
        one = Shell(folder, words, extra)
        one.marked()
        assert [line for line in undo_newlines(one.data()).decode().splitlines() if line.startswith("read:")] == [
            f"read:{file}"
        ]
        assert b"tmuxctl" not in one.run("bash", "env")[0]
        one.close()


@pytest.mark.parametrize(
    "line",
    [
        "bash -c ls",
        "bash file",
        "bash -s",
        "bash --norc",
        "bash --rcfile",
        "zsh -f",
        "zsh -c x",
        "fish -c x",
        "fish file",
        "dash",
        "python -i",
        "sh -l",
    ],
)
def test_what_is_no_plain_interactive_shell_is_left_alone(line: str) -> None:
    assert integrate_shell(tuple(line.split()), "/f", {}, SESSION) is None
