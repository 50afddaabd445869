"""A browser without JavaScript, as far as the server can tell: it keeps the cookie, and says where a form was."""

from __future__ import annotations

import http.cookies
import json
import subprocess
import sys
from typing import Any
from urllib.parse import urlencode

from served import HttpReply, HttpServer

FORM = "application/x-www-form-urlencoded"


def tmuxctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tmuxctl", *words], capture_output=True, text=True)


def make_code(name: str = "first") -> str:
    """A one-time code, as `token login` makes it."""
    made = tmuxctl("--json", "token", "login", name)
    assert made.returncode == 0, made.stderr
    return str(json.loads(made.stdout)["code"])


class PlainBrowser:
    """Calls the server's address."""

    def __init__(self, server: HttpServer) -> None:
        self.server = server
        self.cookie = ""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def get(self, path: str, **headers: str) -> HttpReply:
        return self.call("GET", path, None, {"Accept": "text/html", **headers})

    def submit(self, path: str, _origin: str | None = "", **fields: str) -> HttpReply:
        """Send a form; with `_origin` None a browser that does not tell where it was."""
        headers = {"Content-Type": FORM, "Accept": "text/html"}
        if _origin is not None:
            headers["Origin"] = _origin or self.origin
        return self.call("POST", path, urlencode(fields).encode(), headers)

    def call(self, method: str, path: str, body: Any, headers: dict[str, str]) -> HttpReply:
        given = {"Cookie": self.cookie, **headers} if self.cookie else headers
        reply = self.server.call(method, path, body, tcp=True, headers=given)
        for line in reply.headers.get_all("set-cookie") or ():
            [(name, found)] = http.cookies.SimpleCookie(line).items()
            self.cookie = f"{name}={found.value}" if found.value else ""
        return reply

    def sign_in(self, name: str = "first") -> HttpReply:
        reply = self.submit("/login", code=make_code(name))
        assert reply.status == 303, reply.text
        return reply
