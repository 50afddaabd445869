"""The process that is killed: `python -m compared.driver TOOL FOLDER` asks a shell for something long."""

from __future__ import annotations

import sys
from pathlib import Path

from compared.programs import programs
from compared.recipes import LibtmuxPrompt, PexpectPrompt, Recipe, TmuxctlAsk, TmuxQuiet
from tmuxctl.control import Control


def recipe_named(name: str) -> Recipe:
    if name == "tmuxctl":
        return TmuxctlAsk(Control(resident=True))
    recipes: dict[str, type[Recipe]] = {"tmux": TmuxQuiet, "libtmux": LibtmuxPrompt, "pexpect": PexpectPrompt}
    return recipes[name]()


if __name__ == "__main__":
    name, folder = sys.argv[1], Path(sys.argv[2])
    driving = recipe_named(name)
    driving.start(folder.name, programs()["bash"], folder)
    driving.ask(". ./work", 60)
