"""The process that tries a plugin: it is asked on standard input and tells each test, then what it gave, on a line."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from tmuxctl.contract import tests
from tmuxctl.contract.trial import Trial


def main() -> None:
    """Try what standard input asks for. What the plugin writes to standard output goes to a file that is looked at."""
    os.umask(0o077)
    request: dict[str, Any] = json.load(sys.stdin)
    told = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(f"{request['folder']}/printed", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1)

    def tell(**words: Any) -> None:
        print(json.dumps(words), file=told, flush=True)

    trial = Trial(request["name"], request["options"], request["folder"])
    try:
        for title, test in tests.tests_for(trial):
            tell(test=title)
            outcome, why = tests.outcome(test, trial)
            tell(outcome=outcome, why=why)
    except tests.OptionsRefused as refused:
        tell(refused=refused.error.to_json())
    finally:
        trial.close()
