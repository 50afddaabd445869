"""Every public method has an example, and each says what happens."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

import tmuxctl
from tmuxctl.surfaces.library import client as clients
from tmuxctl.surfaces.library import driven, matching, screens

CLASSES = (clients.Client, driven.TerminalSession, screens.TerminalScreen, matching.TextMatch)
WITHOUT = {"Client.control", "Client.settings", "Client.own", "Client.forget", "Client.end_owned", "Client.close"}
"""What other surfaces and tests use, or what has nothing to show."""


def public(kind: type) -> list[tuple[str, Any]]:
    return [
        (f"{kind.__name__}.{name}", member)
        for name, member in vars(kind).items()
        if not name.startswith("_") and (callable(member) or isinstance(member, property))
    ]


MEMBERS = dict([member for kind in CLASSES for member in public(kind)])
MEMBERS |= {"session": clients.session, "run": clients.run}


def examples(name: str) -> list[doctest.Example]:
    text = getattr(MEMBERS[name], "__doc__", "") or ""
    return doctest.DocTestParser().get_examples(text)


def test_every_public_method_has_an_example() -> None:
    assert not [name for name in MEMBERS.keys() - WITHOUT if not examples(name)]


@pytest.mark.parametrize("name", sorted(name for name in MEMBERS if examples(name)))
def test_an_example_does_what_it_says(name: str, place: Path, shared: None) -> None:
    found = examples(name)
    source = "".join(example.source for example in found)
    with tmuxctl.Client() as client:
        names: dict[str, Any] = {"client": client, "tmuxctl": tmuxctl, "re": re, "socket": None}
        if re.search(r"\bsh\b[^ ]|client.list", source):
            names["sh"] = client.new("sh", ["bash", "--norc"], env={"PS1": "$ "})
        if re.search(r"\bpy\b|client.list", source):
            names["py"] = client.new("py", ["python3", "-q"])
        told: list[str] = []
        test = doctest.DocTest(found, names, name, None, None, None)
        doctest.DocTestRunner(verbose=False).run(test, out=told.append)
        client.control.kill(all=True)
    assert not told, "".join(told)
