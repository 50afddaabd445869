"""Whether the program has read the last input: until then its state says nothing about what was typed.

Time is no evidence: beside other work a shell reads its Enter seconds after tmux has written it, and until then every
observation finds it waiting at its prompt (docs/adr/0069).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tmuxctl.evidence import Kernel, LastMark
from tmuxctl.reading.evidence.tty_waits import assess_foreground, enter_inner_terminals
from tmuxctl.terminal.input.paste import LastInput

Switches = Mapping[tuple[int, int], int]
"""How often each thread at the terminal gave up the processor, by process and thread (voluntary_ctxt_switches of proc(5))."""


def input_consumed(
    last_input: LastInput,
    journal: int,
    kernel: Kernel | None,
    mark: LastMark | None = None,
    *,
    delivered: bool,
    alternate: bool = False,
    shell_marks: bool = False,
    switches_before: Switches | None = None,
) -> bool | None:
    """Whether the last input was read by the program, by one observation: how far the output had come (`journal`, bytes), then the
    kernel, and the newest shell mark. None: nothing here can tell.

    `delivered`: tmux has answered a query since it confirmed the input, so that it has written it to the terminal. `alternate`: the
    alternate screen is shown, on which a program that holds another terminal passes no input on.
    `shell_marks`: a shell stood at a marked prompt, so that its next mark tells. `switches_before` are those of the observation
    before the input.
    """
    terminals = list(_list_terminals(kernel, alternate))
    counts = [terminal.tty.unread for terminal in terminals if terminal.tty is not None]
    if any(counts):
        return False
    if mark is not None and mark.offset >= last_input.offset:
        return True
    answered = journal > last_input.offset + _count_echo(last_input)
    foreground = assess_foreground(terminals[-1]) if terminals else None
    if foreground is not None and foreground.remote_wrapper is not None:
        # it reads whatever is typed, at once: only output comes from behind it
        return True if answered else None
    if counts and None not in counts:
        # what was delivered has been read, and a program that has read it runs until it waits again
        return delivered and not any(map(_relay_runs, terminals[:-1]))
    if shell_marks:
        return None
    moved = switches_before is not None and kernel is not None and count_switches(kernel) != switches_before
    if answered or (moved and (journal > last_input.offset or last_input.echo == "none")):
        return True
    return None


def count_switches(kernel: Kernel | None) -> dict[tuple[int, int], int]:
    """The `Switches` of all threads of a kernel observation: the number of a thread that reads what was typed changes."""
    switches: dict[tuple[int, int], int] = {}
    while kernel is not None:
        switches |= {(row.pid, thread.id): thread.switches for row in kernel.programs for thread in row.threads}
        kernel = kernel.inner
    return switches


def _list_terminals(kernel: Kernel | None, alternate: bool) -> Iterator[Kernel]:
    """The terminal, and those inside it that input is passed on to, outermost first."""
    (innermost,) = enter_inner_terminals([kernel], alternate=alternate)
    while kernel is not None:
        yield kernel
        kernel = None if kernel is innermost else kernel.inner


def _relay_runs(terminal: Kernel) -> bool:
    """Whether the program that passes input on to the inner terminal has still to do so."""
    holder = terminal.inner.holder if terminal.inner is not None else 0
    return any(
        thread.state in ("R", "D")
        for program in terminal.programs
        if program.pid == holder
        for thread in program.threads
    )


def _count_echo(last_input: LastInput) -> int:
    """Bytes that the terminal itself prints of the input, at most, before the program reads any of it (ECHOCTL of termios(3): a
    control character as two; and Enter as CR LF). A program that edits its line echoes itself."""
    if last_input.echo != "tty":
        return 0
    return len(last_input.typed) + sum(byte < 32 or byte == 127 for byte in last_input.typed) + 2
