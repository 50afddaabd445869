"""A person answers real Claude Code on the page of `tmuxctl serve`: allows one command and denies the next, in headless Chromium.

python -m tools.agents.page

The program talks to the local model. Prints a line for each decision; ends with 1 if one does not hold.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

from . import alone, installing
from .agentpty import ADDRESS, PATIENCE, Laboratory, broken

SESSION = "helper"
BROWSERS = ("chromium-headless-shell", "chromium")
OPTIONS = {"allow": (re.compile("^Yes$"), True), "deny": (re.compile("^No"), False)}
SURE = re.compile(r"^Sure\?")
UNDECIDED = 1000
"""Milliseconds in which a command must not run though its question stands on the page."""


def main() -> int:
    """Make both decisions; returns the exit status."""
    installing.install(["claude"], ["pinned"], print)
    alone.leave_the_network("tools.agents.page")
    program = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if program is None:
        print("chromium-headless-shell is not installed", file=sys.stderr)
        return 2
    wrong = []
    with Laboratory() as laboratory, tempfile.TemporaryDirectory(prefix="tca-browser-") as home:
        laboratory.tmuxctl("new", SESSION, "--", "claude")
        laboratory.tmuxctl("wait", SESSION)
        options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=program, args=options, env={"PATH": os.environ["PATH"], "HOME": home}
            )
            page = browser.new_page()
            page.set_default_timeout(PATIENCE * 1000)
            page.goto(f"http://{ADDRESS}/")
            for option, (label, runs) in OPTIONS.items():
                faults = list(decide(laboratory, page, option, label, runs))
                print(f"-- {option}: {f'{len(faults)} wrong' if faults else 'holds'}", flush=True)
                wrong += [f"{option}: {one}" for one in faults]
            browser.close()
    for told in [*wrong, *laboratory.left]:
        print(f"-- DOES NOT HOLD: {told}")
    return 1 if wrong or laboratory.left else 0


def decide(laboratory: Laboratory, page: Any, option: str, label: re.Pattern[str], runs: bool) -> Iterator[str]:
    """Have the program ask for a command, and press the button with this label on its tile."""
    made = Path(laboratory.place.work) / f"made-{option}"
    laboratory.tmuxctl("send", SESSION, f"fake:run#{option} touch {made.name}")
    tile = page.locator("li").filter(has=page.get_by_role("link", name=SESSION, exact=True))
    button = tile.get_by_role("button", name=label)
    button.wait_for()
    page.wait_for_timeout(UNDECIDED)
    yield from broken("the command before the decision", made.exists(), False)
    page.screenshot(path=str(folder() / f"agent-{option}.png"))
    button.click()
    # what may do harm is asked for once more
    if (again := tile.get_by_role("button", name=SURE)).count():
        again.click()
    tile.get_by_role("button").first.wait_for(state="detached")
    laboratory.tmuxctl("wait", SESSION, "--timeout", str(int(PATIENCE)))
    yield from broken("the command after the decision", made.exists(), runs)
    yield from broken("the title", page.title(), "tmuxctl")


def folder() -> Path:
    """Where pictures are put, for a person to look at."""
    found = Path(os.environ.get("TMUXCTL_SCREENSHOTS", Path(__file__).resolve().parents[2] / "build/screenshots"))
    found.mkdir(parents=True, exist_ok=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
