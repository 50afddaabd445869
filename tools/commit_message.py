"""Check messages of commits: an imperative subject of at most 72 characters, and the reason in the body.

python -m tools.commit_message            every commit since the rule began
python -m tools.commit_message FILE       the message in a file, as git's hook commit-msg passes it
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SINCE = "9b5f6b97"
"""The last commit before the rule; none of a shallow clone is checked."""

SUBJECT_CHARACTERS = 72
SCISSORS = re.compile(r"^# -+ >8 -+$.*", re.MULTILINE | re.DOTALL)
"""Below this line `git commit --verbose` shows the change."""

NOT_IMPERATIVE = re.compile(r"(?!(Bring|Embed|Exceed|Feed|Need|Seed|Shed|Speed|String)$)\w+(ed|ing|[^s]s)$")
"""A first word in another form of the verb, such as `Fixed`, `Fixing` or `Fixes`."""


def find_faults(message: str) -> Iterator[str]:
    """What is wrong with a message, a line each; nothing for merges and reverts, whose subjects git writes."""
    lines = [line for line in SCISSORS.sub("", message).strip().splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return
    if len(subject) > SUBJECT_CHARACTERS:
        yield f"the subject has {len(subject)} characters; at most {SUBJECT_CHARACTERS} fit into git's lists"
    if not subject[:1].isupper() or subject.endswith("."):
        yield "the subject begins with a capital letter and ends without a full stop"
    if NOT_IMPERATIVE.match(subject.partition(" ")[0]):
        yield "the subject says what the commit does, in the imperative: Fix, not Fixed, Fixes or Fixing"
    if len(lines) > 1 and lines[1].strip():
        yield "the second line is empty, so that git knows where the subject ends"
    if not any(line.strip() for line in lines[1:]):
        yield "the body gives the reason for the change"


def read_messages() -> Iterator[str]:
    """The messages of the commits since the rule; none where their history is not here."""
    known = subprocess.run(["git", "cat-file", "-e", f"{SINCE}^{{commit}}"], capture_output=True, check=False)
    if not known.returncode:
        log = subprocess.check_output(["git", "log", "--format=%B%x00", f"{SINCE}..HEAD"], text=True)
        yield from (message.strip() for message in log.split("\0") if message.strip())


def main(argv: list[str]) -> int:
    """Print the faults of each message; 1 if there are any."""
    messages = [Path(argv[0]).read_text(encoding="utf-8")] if argv else read_messages()
    status = 0
    for message in messages:
        for fault in find_faults(message):
            print(f"{message.partition(chr(10))[0]!r}: {fault}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
