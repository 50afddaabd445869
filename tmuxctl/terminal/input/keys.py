"""Names of keys, as tmux (`C-c`, `PPage`) and ptyai (`ctrl+c`, `page_up`) spell them.

tmux types a name it does not know as text, and for some names it knows (`C-Tab`, `C-;`) it sends nothing at all:
so a name is looked up here first, and only those pass that reach a program as one key (measured with tmux 3.3a).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tmuxctl.errors import Usage

ARROWS = ("up", "down", "left", "right")

MOVING: Mapping[str, str] = {
    "up": "Up", "down": "Down", "left": "Left", "right": "Right", "home": "Home", "end": "End",
    "pageup": "PPage", "page_up": "PPage", "pgup": "PPage", "ppage": "PPage",
    "pagedown": "NPage", "page_down": "NPage", "pgdn": "NPage", "npage": "NPage",
    "insert": "IC", "ic": "IC", "delete": "DC", "dc": "DC",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}  # fmt: skip
"""Keys that take every modifier, by each spelling in lower case."""

PLAIN: Mapping[str, str] = {
    "enter": "Enter", "return": "Enter", "escape": "Escape", "esc": "Escape", "space": "Space", " ": "Space",
    "backspace": "BSpace", "bspace": "BSpace", "tab": "Tab", "btab": "BTab",
}  # fmt: skip
"""Keys that take Alt and no other modifier (Space takes Control as well)."""

CONTROLS: Mapping[str, str] = {
    **{character: f"C-{character}" for character in "@abcdefghijklmnopqrstuvwxyz\\]^_"},
    "i": "Tab", "m": "Enter", "[": "Escape", "?": "BSpace", "/": "C-_",
}  # fmt: skip
"""What Control makes of a character (ECMA-48 C0). A terminal cannot tell `C-i` from Tab: the plain name works."""

LETTERS: Mapping[str, str] = {"ctrl": "C", "c": "C", "^": "C", "alt": "M", "m": "M", "shift": "S", "s": "S"}

PREFIX = re.compile(r"((?:(?:ctrl|alt|shift)\+)+|(?:[cms]-)+|\^)(?=.)", re.IGNORECASE | re.DOTALL)


def tmux_keys(names: Sequence[str]) -> tuple[str, ...]:
    """Each name in either spelling as the argument of `send-keys` that produces the key.

    A single printable character is a key too. Case counts only for such a character; `Usage` `bad_key` names the
    first name that is no key. None of the arguments begins an option, but `;` still has to be escaped for tmux.
    """
    return tuple(_find_tmux_key(name) or _refuse_key(name) for name in names)


def key_names() -> tuple[str, ...]:
    """The ninety names of ptyai, sorted; tmux's spellings and single characters work beside them."""
    functions = [f"f{number}" for number in range(1, 13)]
    names = {f"ctrl+{character}" for character in "@abcdefghijklmnopqrstuvwxyz[\\]^_"}
    names |= {"enter", "return", "tab", "shift+tab", "backspace", "escape", "esc", "space", "delete", "insert"}
    names |= {modifier + arrow for modifier in ("", "shift+", "ctrl+", "alt+") for arrow in ARROWS}
    names |= {"home", "end", "pageup", "page_up", "pagedown", "page_down", "alt+enter", "alt+backspace"}
    names |= {modifier + function for modifier in ("", "shift+") for function in functions}
    return tuple(sorted(names))


def _find_tmux_key(name: str) -> str | None:
    prefix = PREFIX.match(name)
    words = re.findall(r"[a-z]+|\^", prefix[1].lower()) if prefix else []
    modifiers = {LETTERS[word] for word in words}
    base = name[prefix.end() :] if prefix else name
    lower = base.lower()
    if lower in MOVING:
        return _spell_key(modifiers, MOVING[lower])
    if lower in PLAIN:
        return _spell_plain_key(modifiers, PLAIN[lower])
    if len(base) != 1 or not base.isprintable() or "S" in modifiers:
        return None
    if "C" not in modifiers:
        return _spell_key(modifiers, base)
    control = CONTROLS.get(lower)
    return control and _spell_key(modifiers - {"C"}, control)


def _spell_plain_key(modifiers: set[str], key: str) -> str | None:
    if key == "Tab" and "S" in modifiers:
        modifiers, key = modifiers - {"S"}, "BTab"
    allowed = {"C", "M"} if key == "Space" else {"M"}
    return _spell_key(modifiers, key) if modifiers <= allowed else None


def _spell_key(modifiers: set[str], key: str) -> str:
    return "".join(f"{letter}-" for letter in sorted(modifiers)) + key


def _refuse_key(name: str) -> str:
    from difflib import get_close_matches

    shown = name[:40].lower()
    choices = {*key_names(), *(key.lower() for key in (*MOVING.values(), *PLAIN.values()))}
    rewritten = re.sub(r"(ctrl|control|alt|meta|shift)[-_ +]", lambda found: f"{_expand_modifier(found[1])}+", shown)
    is_key = rewritten != shown and _find_tmux_key(rewritten)
    suggestions = [rewritten] if is_key else get_close_matches(rewritten, sorted(choices))
    suggestion = f"did you mean {', '.join(suggestions)}? " if suggestions else ""
    raise Usage(
        f"no key named {ascii(name[:40])}",
        reason="bad_key",
        hint=f"{suggestion}keys are written C-c or ctrl+c, Enter, S-Tab, F5, M-x; text is typed with `tmuxctl send`",
    )


def _expand_modifier(word: str) -> str:
    return {"control": "ctrl", "meta": "alt"}.get(word, word)
