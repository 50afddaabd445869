"""What a session's folder keeps of its environment, and how the rest is found again when the session is restored.

Of an inherited variable the name is kept, of a given one the value too; if that looks secret, the place where it is found
again. A kept entry is the value, or `{"from": PLACE}`, with `given` true if the session does not start without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from tmuxctl.control.secret_values import looks_secret

ENVIRONMENT = "environment"
"""The place of a value without a place of its own: the environment of the caller, or that of the user's login."""

PROFILE = "profile"
"""The place of a value from the session's profile."""

PATH = "PATH"
"""The inherited variable whose value is kept: it says which program the command is, and folders are no secret."""


class RecoveredVariables(NamedTuple):
    """The variables of a session as far as they are known again.

    `given` are those it was given and `inherited` those that came along. The rest are names: `from_environment` and
    `from_login` say where inherited ones and given secrets were found, `missing` are inherited ones that were not, and
    `wanted` are given secrets that were not. `references` are secrets with the places a plugin knows to read.
    """

    given: Mapping[str, str]
    inherited: Mapping[str, str]
    from_environment: tuple[str, ...]
    from_login: tuple[str, ...]
    missing: tuple[str, ...]
    wanted: tuple[str, ...]
    references: Mapping[str, str]

    @property
    def env(self) -> dict[str, str]:
        """All that is known."""
        return {**self.inherited, **self.given}


def keep_variables(
    variables: Mapping[str, str], inherited: Collection[str], places: Mapping[str, str], references: Mapping[str, str]
) -> dict[str, Any]:
    """The entries to keep of these variables.

    `inherited` names those that were not given, some of which may have no value at the moment; `references` are the places
    of secrets, `places` those where a given value is found again if it may not be kept.
    """
    kept: dict[str, Any] = {}
    for name, value in variables.items():
        if name in references:
            kept[name] = {"from": references[name]}
        elif name in inherited and name != PATH:
            kept[name] = {"from": ENVIRONMENT}
        elif name != PATH and looks_secret(name, value):
            kept[name] = {"from": places.get(name, ENVIRONMENT), "given": True}
        else:
            kept[name] = value
    return {**{name: {"from": ENVIRONMENT} for name in inherited if name not in variables}, **kept}


def recover_variables(
    kept: Mapping[str, Any],
    environment: Mapping[str, str],
    *,
    login: Callable[[], Mapping[str, str]],
    profile: Callable[[], Mapping[str, str]],
) -> RecoveredVariables:
    """The variables that were kept, as far as they can be found: in `environment`, that of programs started now, or in what
    `login` returns, the user's environment at login, which is called only for what the first does not have. `profile` returns
    the variables of the session's profile now."""
    given: dict[str, str] = {}
    inherited: dict[str, str] = {}
    references: dict[str, str] = {}
    names: dict[str, list[str]] = {"from_environment": [], "from_login": [], "missing": [], "wanted": []}
    for name, entry in kept.items():
        if isinstance(entry, str):
            given[name] = entry
        elif entry["from"] not in (ENVIRONMENT, PROFILE):
            references[name] = entry["from"]
        elif entry["from"] == PROFILE and name in profile():
            given[name] = profile()[name]
        else:
            needed = entry.get("given", False)
            source = "from_environment" if name in environment else "from_login"
            found = environment[name] if name in environment else login().get(name)
            if found is None or (needed and not found):
                names["wanted" if needed else "missing"].append(name)
            else:
                names[source].append(name)
                (given if needed else inherited)[name] = found
    return RecoveredVariables(
        given, inherited, references=references, **{word: tuple(found) for word, found in names.items()}
    )


def list_places(kept: Mapping[str, Any]) -> dict[str, str]:
    """The places of given values that were not kept."""
    return {name: entry["from"] for name, entry in kept.items() if not isinstance(entry, str) and entry.get("given")}
