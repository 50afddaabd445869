"""The page over TLS, with a certificate of an authority of the test's own."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from served import HttpServer
from web.visiting import open_window, run_tmuxctl

ASKS_PASSWORD = ("bash", "-c", 'read -s -p "Password: " word; echo; echo "${#word} letters"; exec cat')


def make_certificate(folder: Path) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that an authority signed, and its key."""
    cert, key = str(folder / "server.pem"), str(folder / "server.key")
    new_key = ["-newkey", "rsa:2048", "-nodes"]
    request = ["openssl", "req", *new_key]
    ca = [f"{folder}/ca.pem", f"{folder}/ca.key"]
    names = folder / "names"
    names.write_text("subjectAltName=IP:127.0.0.1,DNS:localhost\n")
    for words in (
        [*request, "-x509", "-days", "2", "-subj", "/CN=An authority of a test", "-out", ca[0], "-keyout", ca[1]],
        [*request, "-subj", "/CN=localhost", "-out", f"{folder}/request", "-keyout", key],
        ["openssl", "x509", "-req", "-in", f"{folder}/request", "-CA", ca[0], "-CAkey", ca[1], "-CAcreateserial",
         "-days", "2", "-extfile", str(names), "-out", cert],
    ):  # fmt: skip
        subprocess.run(words, check=True, capture_output=True)
    return cert, key


@pytest.mark.night
def test_a_browser_signs_in_looks_types_and_gives_a_password_over_tls(
    browser: Any, start_server: Callable[..., HttpServer], place: Path, needs: Callable[..., None]
) -> None:
    needs("openssl")
    cert, key = make_certificate(place)
    server = start_server("--tls-cert", cert, "--tls-key", key)
    link = json.loads(run_tmuxctl("--json", "token", "login", "first"))["url"]
    assert link.startswith(f"https://127.0.0.1:{server.port}/login#")
    one = open_window(browser, server, ignore_https_errors=True)
    one.page.goto(link)
    one.page.wait_for_url(one.origin + "/")
    [cookie] = one.context.cookies()
    about = {name: cookie[name] for name in ("name", "secure", "httpOnly", "sameSite", "path")}
    assert about == {
        "name": "__Host-tmuxctl_login", "secure": True, "httpOnly": True, "sameSite": "Strict", "path": "/"
    }  # fmt: skip
    one.page.get_by_text("No sessions yet").wait_for()
    # what changes comes by the stream of events
    server.new("shell", "bash")
    server.new("asks", *ASKS_PASSWORD)
    one.tile("shell").wait_for()
    one.open_session("shell")
    one.page.keyboard.type("echo $((6*7))\n")
    one.await_text("\n42")
    assert [address for address in one.requests if address.startswith("wss://127.0.0.1:")]
    one.open_session("asks")
    one.page.get_by_label("Password", exact=True).fill("secret")
    one.page.get_by_role("button", name="Send").click()
    one.await_text("6 letters")
    assert one.leaving() == []
    one.context.close()
    assert one.complaints == []
