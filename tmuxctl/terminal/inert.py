"""Shell commands that pass through tmux's formats unexpanded, whatever a path in them holds."""

from __future__ import annotations


def run_script(folder: str, script: str, *arguments: str) -> str:
    r"""A command for `run-shell` and `pipe-pane` that runs `sh FOLDER/SCRIPT FOLDER ARGUMENTS`.

    Both expand their string as a format and by strftime(3), and `#(...)` would run a program (tmux(1), FORMATS). So the
    folder travels as octal bytes for printf(1), which hold neither `#` nor `%`; the `x` behind it keeps a trailing
    newline from `$(...)`, and `%%x` means the same before and after strftime. Script and arguments are our own plain words.
    """
    octal = "".join(f"\\{byte:03o}" for byte in folder.encode(errors="surrogateescape"))
    words = " ".join((f'"${{p%%x}}/{script}"', '"${p%%x}"', *arguments))
    return f"p=$(printf '{octal}x') && exec sh {words}"
