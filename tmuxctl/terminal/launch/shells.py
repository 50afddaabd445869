"""Makes shells tell where a command's output begins and how it ended: prompt marks, and commands typed whole.

`integrate_shell` changes how a shell is started so that it marks its prompts and commands (OSC 133); its texts are in
shell_marks.py. `exec_script` works in any shell, marked or not: the command goes into a file, one short line that reads
the file is typed, and the marks around the output come from the file itself; its texts are in shell_scripts.py. Pure
functions: they make texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from tmuxctl.errors import Usage
from tmuxctl.terminal.launch import shell_marks, shell_scripts
from tmuxctl.transport.base import shell_word
from tmuxctl.value import Value

KINDS = {"bash": "bash", "zsh": "zsh", "fish": "fish"} | dict.fromkeys(
    ("sh", "dash", "ash", "ksh", "mksh", "lksh"), "sh"
)
VARIANT = r"(bash|zsh|fish|dash|ksh)(?:-?[0-9][0-9.]*[+a-z]*)?(?:-static)?"


class ShellIntegration(Value):
    """How to start a shell so that it marks its prompts: argv, environment to add, files to put in the folder."""

    argv: tuple[str, ...]
    env: dict[str, str]
    files: dict[str, str]


def find_shell_kind(name: str) -> str | None:
    """`bash`, `zsh`, `fish` or `sh` from a program's name, path or argv[0] (`-bash`, `/bin/zsh`, `ksh93`), else None.

    busybox is None: it may be any of its applets, so ask with the applet's name.
    """
    word = name.rpartition("/")[2].removeprefix("-")
    found = re.fullmatch(VARIANT, word)
    return KINDS.get(found[1] if found else word)


def integrate_shell(
    argv: tuple[str, ...], folder: str, env: Mapping[str, str], token: str, *, login: bool = False
) -> ShellIntegration | None:
    """How to start this interactive bash, zsh or fish with marks that carry `token`; None for anything else.

    `folder` is where the caller puts the files and must outlive the shell's start, `env` the environment the shell
    will get; `login` asks for a login shell, as do `-l`, `--login` and an argv[0] that begins with `-`.

    A bash login shell ignores --rcfile (bash(1)), so its start-up files are read by an interactive one that is not:
    `shopt login_shell` stays off, `logout` is refused and ~/.bash_logout is not read.
    """
    if not argv:
        return None
    kind = find_shell_kind(argv[0])
    plan = PLANS.get(kind or "")
    check_token(token)
    return plan(argv, folder, env, token, login or argv[0].startswith("-")) if plan else None


def format_typed_line(kind: str, path: str) -> str:
    """The line to type at the prompt of a shell of this kind so that it carries out the script at `path`; no newline.

    The leading space keeps it out of the history where the shell is told so (always in fish). Usage if the path
    holds a control character, which a line editor would act on.
    """
    if any(ord(character) < 32 or ord(character) == 127 for character in path):
        raise Usage(
            "a control character in a path cannot be typed at a prompt", reason="bad_text", hint="choose another folder"
        )
    return f" source {fish_quote(path)}; eval $tmuxctl_run" if kind == "fish" else f" . {shell_word(path)}"


def show_command_instead(line: str, command: str, *, x: int, cols: int) -> bytes:
    """What shows the command in place of the typed line that reads its file, as if it had been typed at column `x`."""
    first, _, other_lines = command.strip("\n").partition("\n")
    shown = "".join(character for character in first if character.isprintable())[: max(0, cols - x - 3)] + (
        " …" if other_lines else ""
    )
    return f"\x1b[{(x + len(line)) // cols + 1}A\x1b[{x + 1}G\x1b[J{shown}\n".encode()


def exec_script(kind: str, command: str, token: str, path: str, show: bytes = b"", stdin: str | None = None) -> str:
    """The text of a file that, when `format_typed_line` is typed, removes itself and runs `command` in that very shell.

    It writes `OSC 133;C;tmuxctl=TOKEN` before the command and `OSC 133;D;STATUS;tmuxctl=TOKEN` right after it, to
    /dev/tty; `show` is written before the first. Without D the shell has ended, was replaced (`exec`), or is a
    bash called as `sh` that was interrupted. With `stdin` the command reads this file in place of the terminal.
    `token` should be fresh for every command, and the file's mode 0600: the shell's own user must be able to read it.
    Usage for a command that no shell can hold (NUL) and for an unknown kind.
    """
    check_token(token)
    if "\0" in command:
        raise Usage("a shell command cannot hold a NUL byte", reason="bad_text", hint="write \\0 for it")
    template = shell_scripts.SCRIPTS.get(kind)
    if template is None:
        raise Usage(f"{ascii(kind[:40])} is not a kind of shell", reason="bad_shell", hint="bash, zsh, fish or sh")
    quoted = fish_quote if kind == "fish" else shell_word
    values = {"TOKEN": token, "COMMAND": quoted(command), "WORD": quoted(quoted(command))}
    line = quoted(format_typed_line(kind, path))
    source = f" <{quoted(stdin)}" if stdin is not None else ""
    # for fish it is text inside of text, as the command is
    values["INPUT"] = quoted(source) if source and kind == "fish" else source
    path_words = {"PATH": quoted(path), "LINE": line, "RUN": quoted(path + ".run"), "TRAPS": quoted(path + ".trap")}
    # as octal for printf(1), which would take a percent sign for a conversion even so
    shown = "".join("%%" if byte == 0x25 else f"\\{byte:03o}" for byte in show)
    return shell_scripts.fill_template(template, values | path_words | {"SHOW": shown})


def check_token(token: str) -> None:
    """Usage unless the token is 1 to 64 letters and digits: it stands unquoted in escape sequences and shell texts."""
    if not re.fullmatch(r"[A-Za-z0-9]{1,64}", token):
        raise Usage("a mark's token is 1 to 64 letters and digits", reason="bad_token")


def fish_quote(text: str) -> str:
    """One word of fish, where backslash and quote are escaped inside single quotes (fish-language, Quotes)."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


Plan = Callable[[tuple[str, ...], str, Mapping[str, str], str, bool], ShellIntegration | None]


def _integrate_bash(
    argv: tuple[str, ...], folder: str, _env: Mapping[str, str], token: str, login: bool
) -> ShellIntegration | None:
    """bash reads our rcfile, which reads the user's files."""
    valued = {"-O", "+O", "-o", "+o", "--rcfile", "--init-file"}
    options = _parse_options(argv[1:], "il", {"--login": "l", "--noediting": ""}, valued)
    if options is None:
        return None
    flags, others = options
    rcfile = next((value for name, value in reversed(others) if name in ("--rcfile", "--init-file")), "~/.bashrc")
    kept = [word for name, value in others if name not in ("--rcfile", "--init-file") for word in (name, value) if word]
    text = shell_marks.bash_rc(token, login or "l" in flags, rcfile if rcfile == "~/.bashrc" else shell_word(rcfile))
    # bash wants its long options before the single-letter ones (bash(1), OPTIONS)
    kept.sort(key=lambda word: 0 if word.startswith("--") else 1)
    words = (argv[0].removeprefix("-"), "--rcfile", f"{folder}/bashrc", *kept, "-i")
    return ShellIntegration(words, {}, {"bashrc": text})


def _integrate_zsh(
    argv: tuple[str, ...], folder: str, env: Mapping[str, str], token: str, login: bool
) -> ShellIntegration | None:
    """zsh looks for its files in $ZDOTDIR: ours stand there, read the user's, and give ZDOTDIR back."""
    options = _parse_options(argv[1:], "ild", {"--login": "l", "--interactive": "", "--no-globalrcs": ""}, {"-o", "+o"})
    if options is None:
        return None
    flags, others = options
    words = [argv[0].removeprefix("-"), *(word for pair in others for word in pair if word)]
    if "d" in flags:
        words.append("-d")
    if login or "l" in flags:
        words.append("-l")
    files = shell_marks.zsh_files(token, shell_word(folder), shell_word(env["ZDOTDIR"]) if "ZDOTDIR" in env else None)
    return ShellIntegration((*words, "-i"), {"ZDOTDIR": folder}, files)


def _integrate_fish(
    argv: tuple[str, ...], folder: str, _env: Mapping[str, str], token: str, login: bool
) -> ShellIntegration | None:
    """fish runs an init command after the user's configuration (fish(1), --init-command)."""
    short = {"--login": "l", "--interactive": "", "--private": "P", "--no-config": "N"}
    options = _parse_options(argv[1:], "ilPN", short, {"-C", "--init-command"})
    if options is None:
        return None
    flags, others = options
    words = [argv[0].removeprefix("-"), *(word for pair in others for word in pair if word)]
    words += [f"-{flag}" for flag in "PN" if flag in flags]
    if login or "l" in flags:
        words.append("-l")
    command = f"source {fish_quote(folder + '/marks.fish')}"
    return ShellIntegration((*words, "-i", "-C", command), {}, {"marks.fish": shell_marks.fish_rc(token)})


PLANS: dict[str, Plan] = {"bash": _integrate_bash, "zsh": _integrate_zsh, "fish": _integrate_fish}


def _parse_options(
    words: tuple[str, ...], letters: str, long: Mapping[str, str], valued: set[str]
) -> tuple[set[str], list[tuple[str, str]]] | None:
    """A shell's options, None if one is not known to leave it interactive: the flags, and the others with their values.

    `letters` may be joined (`-il`); `long` names options and the flag each stands for, or "" to keep it as it is.
    """
    flags: set[str] = set()
    others: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        name, equals, value = word.partition("=")
        if word in valued:
            value = next(rest, "")
            if not value:
                return None
            others.append((word, value))
        elif equals and name in valued and name.startswith("--"):
            others.append((name, value))
        elif word in long:
            flags.add(long[word]) if long[word] else others.append((word, ""))
        elif len(word) > 1 and word[0] == "-" and not set(word[1:]) - set(letters):
            flags.update(word[1:])
        else:
            return None
    return flags, others
