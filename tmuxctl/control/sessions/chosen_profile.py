"""The profile a session is started with."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tmuxctl.errors import Denied, Usage
from tmuxctl.profile_files import library
from tmuxctl.terminal.input.keys import tmux_keys

if TYPE_CHECKING:
    from tmuxctl.control.foreground import KnownProfiles
    from tmuxctl.program_profile import Profile


def choose_profile(choice: str, argv: Sequence[str], known: KnownProfiles | None = None) -> Profile | None:
    """The profile of a session to be: `auto` finds one by the command, `none` is none, else a name or a file. `known` keeps
    what was found by a command for the next one.

    NotFound `no_profile`, Usage `bad_profile`, Denied `unsafe_file`.
    """
    if choice == "none":
        return None
    if choice != "auto":
        return library.load(choice, keys=tmux_keys)
    if known is not None:
        about = json.dumps([library.script_name(argv), library.program_name(argv)])
        return known.find_started(about, lambda: choose_profile(choice, argv))
    try:
        name = library.detect(argv, keys=tmux_keys)
        return library.load(name, keys=tmux_keys) if name else None
    except (Usage, Denied) as error:
        hint = "; ".join(filter(None, (error.hint, "--profile none starts it without a profile")))
        raise type(error)(error.message, reason=error.reason, hint=hint) from None
