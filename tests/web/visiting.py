"""A person with a browser at the page of `tmuxctl serve`: headless Chromium, driven by playwright."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from served import PATIENCE, HttpServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

ROOT = Path(__file__).resolve().parent.parent.parent
AXE = Path(os.environ.get("TMUXCTL_AXE", ROOT / ".venv/axe-node/node_modules/axe-core/axe.min.js"))
"""axe-core, as `make nightly SUITES=web` brings it."""

SCREENSHOTS = Path(os.environ.get("TMUXCTL_SCREENSHOTS", ROOT / "build/screenshots"))

ASKS = ("bash", "-c", 'read -p "Deploy to production? [y/N] " answer; echo "you said $answer"; exec cat')
"""A stand-in that asks a question, and tells what it was given."""

TERMINAL_TEXT = """() => {
    const { buffer } = window.tmuxctlTerminal().terminal;
    const lines = [];
    for (let at = 0; at < buffer.active.length; at++) lines.push(buffer.active.getLine(at).translateToString(true));
    return lines.join("\\n").trimEnd();
}"""


class Visitor:
    """One window of a browser. What it asks for, what it cannot load and what its scripts say is kept."""

    def __init__(self, context: BrowserContext, server: HttpServer) -> None:
        self.context, self.server = context, server
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE * 1000)
        self.requests: list[str] = []
        self.complaints: list[str] = []
        context.on("request", lambda request: self.requests.append(request.url))
        self.page.on("websocket", lambda socket: self.requests.append(socket.url))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._refuse)
        self.page.on("console", self._note)

    def _refuse(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note(self, message: Any) -> None:
        # of an address that does not answer the browser says so itself
        if (
            message.type == "error"
            and "Failed to load resource" not in message.text
            and "WebSocket" not in message.text
            # no browser installs a service worker over a certificate that it does not trust itself
            and "when fetching the script" not in message.text
        ):
            self.complaints.append(message.text)

    @property
    def origin(self) -> str:
        return self.server.origin

    def open(self, path: str = "/") -> None:
        self.page.goto(self.origin + path)

    def open_session(self, name: str) -> None:
        """Open one session, and wait until its terminal is connected."""
        self.open(f"/session/{self.server.get(f'/v1/sessions/{name}').json['id']}")
        self.await_terminal()

    def await_terminal(self) -> None:
        self.page.wait_for_selector(".xterm-screen")
        self.page.wait_for_function("() => window.tmuxctlTerminal?.()?.isLive")

    def tile(self, name: str) -> Locator:
        return self.page.locator("li").filter(has=self.page.get_by_role("link", name=name, exact=True))

    def terminal_text(self) -> str:
        return str(self.page.evaluate(TERMINAL_TEXT))

    def await_text(self, text: str) -> None:
        """Wait until the terminal shows a text."""
        self.page.wait_for_function(f"text => ({TERMINAL_TEXT})().includes(text)", arg=text)

    def close_sheet(self) -> None:
        self.page.keyboard.press("Escape")
        self.page.locator("dialog[open]").wait_for(state="detached")

    def picture(self, name: str) -> None:
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=str(SCREENSHOTS / f"{name}.png"))

    def faults(self) -> list[str]:
        """What axe-core finds serious or critical."""
        # a script of a test's own, which the page's policy would refuse
        session = self.context.new_cdp_session(self.page)
        session.send("Runtime.evaluate", {"expression": AXE.read_text()})
        script = "axe.run(document).then(found => JSON.stringify(found.violations))"
        done = session.send("Runtime.evaluate", {"expression": script, "awaitPromise": True})
        found = json.loads(done["result"]["value"])
        return [
            f"{one['impact']}: {one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:4]]}"
            for one in found
            if one["impact"] in ("serious", "critical")
        ]

    def leaving(self) -> list[str]:
        """Requests to anything but this server."""
        return [
            one
            for one in self.requests
            if not one.startswith("data:") and urlsplit(one).netloc != urlsplit(self.origin).netloc
        ]


def run_tmuxctl(*words: str) -> str:
    """What a command prints."""
    done = subprocess.run([sys.executable, "-m", "tmuxctl", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def open_window(browser: Browser, server: HttpServer, **about: Any) -> Visitor:
    """A window of 1280x800, or as it is told."""
    return Visitor(browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **about}), server)
