"""Which variables hold a secret, by their name or by what the value looks like.

A harmless value may be taken for a secret: then it is not kept, and `restore` has to find it again. The other mistake
would put a secret into a file.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.program_profile import Profile

WORD = re.compile(
    r"keys?|pat|auth|jw[tek]|cookies?|creds?|pwd|pass|pw|pswd|passwd|dsn|sid|pin|t?otp|mfa|sas|hmac|salt|seed|mnemonic|sig"
    r"|signature|bearer|pem|pfx|webhook|licen[sc]e|netrc|pgpass|htpasswd|kubeconfig"
)
"""Words of a name that mean a secret: `SIGNING_KEY`, `ghPat`, `DB_PWD`."""

INSIDE = re.compile(
    r"secret|token|passw|passphrase|passcode|credential|apikey|accesskey|privatekey|signingkey|sshpass|jwt|cookie|oauth"
    r"|authoriz",
    re.IGNORECASE,
)
"""What means a secret anywhere in a name."""

SPLIT = re.compile(r"[^A-Za-z]+|(?<=[a-z])(?=[A-Z])")

PLACE = re.compile(r"(?i).*(?:file|path|dir|sock|socket|home)")
"""A name of this form, with a path for its value, says where something is."""

SHOWN = re.compile(
    r"""
    ://[^/\s:@]*:[^/\s@]*@ | ://[^/\s@]{16,}@                       # a URL with a password, or with a token for its user
    | -----BEGIN\b | \bAGE-SECRET-KEY- | \$(?:2[aby]|5|6|y|argon2\w{1,2})\$  # keys, hashes of passwords
    | (?i:\b(?:bearer|basic|digest|negotiate|token)\s+\S{8})          # what stands in an Authorization header
    | (?i:(?:passw(?:or)?d|pwd|passphrase|secret|token|api_?key|access_?key|account_?key|auth|signature|sig|credentials?)
        ["']?\s*[=:]\s*\S)
    | \b(?:gh[a-z]_|github_pat_|glpat-|sk-|[sr]k_live_|[sr]k_test_|xox[a-z]-|xapp-|AKIA|ASIA|AIza|ya29\.|npm_|pypi-|hf_
        |SG\.|dop_v1_|hv[sb]\.|shp[a-z]{2}_|eyJ)[A-Za-z0-9_-]{8}
    | \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b      # a UUID, which many services use for a key
    """,
    re.VERBOSE,
)
"""What shows a secret in any value."""

RUN = re.compile(r"[A-Za-z0-9+/=_-]{16,}")
PART = re.compile(r"[A-Za-z0-9+=_-]{16,}")
"""Characters in a row that may be random; of a path, those of one part of it."""

CHANGES = re.compile(r"(?<=[a-z])(?=[A-Z0-9])|(?<=[A-Z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
LONG = re.compile(r"[a-z]{24}|[A-Z0-9]{20}")
"""Longer than a word of one kind of letters."""

SHARES = (0.12, 0.2)
"""The least share of changes between two kinds of characters that shows random text, for one case of letters and for both.
Random letters and digits have 0.4, names like `ThisIsAConfigValue` have 0.17 at most, `build20241122b` 0.15."""


def looks_secret(name: str, value: str) -> bool:
    """Whether a variable counts as a secret, by its name or by its value. An empty value does not."""
    if not value:
        return False
    return _is_named_secret(name, value) or bool(SHOWN.search(value)) or _looks_random(value)


def without_secrets(profile: Profile | None) -> Profile | None:
    """The profile as it may be written to a file: variables that look secret have an empty value."""
    if profile is None or not any(looks_secret(name, value) for name, value in profile.env.items()):
        return profile
    env = {name: "" if looks_secret(name, value) else value for name, value in profile.env.items()}
    return changed(profile, env=env)


def _is_named_secret(name: str, value: str) -> bool:
    if PLACE.fullmatch(name) and value[0] in "/~.":
        return False
    words = SPLIT.sub(" ", name).lower().split()
    return bool(INSIDE.search("".join(words))) or any(map(WORD.fullmatch, words))


def _looks_random(value: str) -> bool:
    runs = (PART if value[0] in "/~." else RUN).findall(value)
    return any(LONG.search(run) or len(CHANGES.findall(run)) >= _share_of_changes(run) * (len(run) - 1) for run in runs)


def _share_of_changes(run: str) -> float:
    return SHARES[0 if run in (run.lower(), run.upper()) else 1]
