"""Families of programs by the kernel's name for them: the only place where a name decides anything."""

from __future__ import annotations

from functools import lru_cache


def _family(names: str) -> frozenset[str]:
    return frozenset(names.split())


SHELLS = _family("sh ash bash csh dash elvish fish ksh ksh93 mksh nu oksh posh pwsh rbash rc tcsh xonsh yash zsh")

LINE_EDITING = _family("bash rbash zsh fish elvish nu xonsh pwsh")
"""Shells that edit their command line themselves: what reads whole lines there is a `read` of a script."""

PAGERS = _family("less more most pager pg man bat batcat moar moor ov w3mman")

EDITORS = _family(
    """vi vim nvim view vimdiff rvim rview nvi vis elvis ex ed nano pico rnano emacs emacsclient mg jmacs zile micro
    hx helix joe jed kak kakoune ne tilde mcedit dte editor"""
)

REMOTE_WRAPPERS = _family(
    """ssh slogin autossh sshpass mosh telnet rlogin rsh et etterminal tsh tmux screen zellij abduco dtach
    docker podman nerdctl kubectl oc crictl ctr lxc incus machinectl nsenter vagrant multipass limactl wsl emacsclient
    minicom picocom cu tio ipmitool virsh"""
)
"""Programs that show a terminal of elsewhere: they wait for the keyboard all the time, whatever the program there does."""

RELAYS = _family("script expect unbuffer sudo doas su runuser socat dtach abduco rlwrap rlfe faketty pkexec run0")
"""Holders of an inner terminal that only pass bytes on: what counts is the program on that."""


@lru_cache(maxsize=256)
def base_name(name: str) -> str:
    """The name alone: `-bash`, `vim.basic`, `emacs-nox`, `mosh-client`, `tmux: client` are bash, vim, emacs, mosh, tmux."""
    name = name.lstrip("-")
    for separator in (":", ".", "-"):
        name = name.partition(separator)[0]
    return name


def is_shell(name: str) -> bool:
    """True for an interpreter of command lines."""
    return base_name(name) in SHELLS


def edits_lines(name: str) -> bool:
    """True for a shell with a line editor of its own."""
    return base_name(name) in LINE_EDITING


def is_pager(name: str) -> bool:
    """True for a program that shows a text page by page."""
    return base_name(name) in PAGERS


def is_editor(name: str) -> bool:
    """True for a program in which a person writes a text."""
    return base_name(name) in EDITORS


def is_remote_wrapper(name: str) -> bool:
    """True for what shows another machine's, server's or container's terminal here."""
    return base_name(name) in REMOTE_WRAPPERS


def is_relay(name: str) -> bool:
    """True for what does no more than pass bytes to and from an inner terminal."""
    return base_name(name) in RELAYS
