"""Signing in: who gets in by a code, what the cookie is good for, and what ends it."""

from __future__ import annotations

import json
import re
import subprocess
import sys

import pytest
from served import PATIENCE, HttpServer
from surfaces.web.browsing import PlainBrowser, make_code, tmuxctl
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tmuxctl.surfaces.server.admission import logins
from tmuxctl.surfaces.server.admission.logins import LoginFiles, normalize_code
from tmuxctl.surfaces.server.admission.tokens import TokenFiles


@pytest.fixture
def browser(server: HttpServer) -> PlainBrowser:
    return PlainBrowser(server)


def test_who_has_not_signed_in_is_sent_to_do_so(browser):
    for path in ("/", "/session/one"):
        reply = browser.get(path)
        assert (reply.status, reply.headers["location"]) == (303, "/login")
    assert browser.get("/", Accept="application/json").status == 401
    assert browser.get("/v1/sessions").status == 401
    assert browser.get("/page/tiles").status == 401
    assert browser.get("/assets/app.css").status == 401
    form = browser.get("/login")
    assert form.status == 200
    assert 'name="code"' in form.text


def test_a_code_signs_in_once(browser):
    code = make_code()
    reply = browser.submit("/login", code=code)
    assert (reply.status, reply.headers["location"]) == (303, "/")
    cookie = reply.headers["set-cookie"]
    assert re.match(r"tmuxctl_login=[\w-]{43}; Path=/; HttpOnly; SameSite=Strict; Max-Age=2592000$", cookie), cookie
    assert browser.get("/").status == 200
    me = browser.get("/page/me").json
    assert (me["token"], me["logged_in"], me["rights"]) == ("first", True, ["read", "write", "create", "kill"])
    again = PlainBrowser(browser.server)
    replayed = again.submit("/login", code=code)
    assert replayed.status == 401
    assert "tmuxctl token login" in replayed.text
    assert not again.cookie
    assert again.get("/").status == 303


@pytest.mark.night
def test_a_code_may_come_as_json_and_be_typed_by_hand(browser):
    typed = make_code().replace("-", " ").lower().replace("0", "o")
    reply = browser.call("POST", "/login", {"code": typed}, {})
    assert reply.status == 303
    assert browser.get("/page/me").json["logged_in"]
    assert normalize_code(" ab-cd o1\tIl") == "ABCD0111"


def test_a_code_in_an_address_is_refused(browser):
    code = make_code()
    assert browser.get(f"/login?code={code}").status == 400
    assert browser.submit(f"/login?code={code}").status == 400
    assert browser.submit("/login").status == 401
    assert browser.submit("/login", code=code).status == 303


@pytest.mark.night
def test_neither_code_nor_login_is_kept_as_it_is(browser, place):
    code = make_code()
    browser.submit("/login", code=make_code())
    kept = b"".join(path.read_bytes() for path in (place / "state/tmuxctl/serve").iterdir())
    assert browser.cookie.partition("=")[2].encode() not in kept
    assert code.encode() not in kept
    assert code.replace("-", "").encode() not in kept
    for name in ("login-codes.json", "logins.json"):
        assert (place / "state/tmuxctl/serve" / name).stat().st_mode & 0o777 == 0o600


@pytest.mark.night
def test_wrong_codes_are_looked_at_ten_times_a_minute(browser):
    code = make_code()
    assert [browser.submit("/login", code=f"WRONG{number}").status for number in range(11)] == [401] * 10 + [429]
    assert browser.submit("/login", code=code).status == 429
    assert browser.call("POST", "/login", {"code": code}, {}).reason == "too_many_codes"


@pytest.mark.night
def test_a_login_survives_the_server_and_ends_with_its_token(start_server):
    server = start_server()
    assert tmuxctl("token", "new", "laptop").returncode == 0
    browser = PlainBrowser(server)
    browser.sign_in("laptop")
    server.stop()
    browser.server = start_server()
    assert browser.get("/page/me").json["token"] == "laptop"
    assert tmuxctl("token", "revoke", "laptop").returncode == 0
    assert browser.get("/page/me").status == 401
    # another token of that name is another token
    assert tmuxctl("token", "new", "laptop").returncode == 0
    assert browser.get("/page/me").status == 401


@pytest.mark.night
def test_a_code_ends_with_its_token(browser):
    assert tmuxctl("token", "new", "laptop").returncode == 0
    code = make_code("laptop")
    tmuxctl("token", "revoke", "laptop")
    assert browser.submit("/login", code=code).status == 401
    assert tmuxctl("token", "login", "laptop").returncode == 3


def test_codes_and_logins_end_in_time(place):
    now = [1000.0]
    tokens = TokenFiles()
    tokens.read_first()
    files = LoginFiles(tokens, lambda: now[0])
    late, code = files.make_code("first"), files.make_code("first")
    text = files.redeem(code)
    assert files.find([text])
    now[0] += 601
    with pytest.raises(Exception, match="not valid"):
        files.redeem(late)
    now[0] += 30 * 86400 - 602
    assert files.find([text])
    now[0] += 2
    assert files.find([text]) is None


@pytest.mark.night
def test_signing_out_ends_the_login_and_what_it_follows(browser):
    browser.server.new("one", "cat")
    browser.sign_in()
    cookie = browser.cookie
    url = f"ws://127.0.0.1:{browser.server.port}/v1/sessions/one/terminal"
    with connect(url, additional_headers={"Cookie": cookie, "Origin": browser.origin}) as terminal:
        assert json.loads(terminal.recv(PATIENCE))["type"] == "hello"
        reply = browser.submit("/logout")
        assert (reply.status, reply.headers["location"]) == (303, "/login")
        assert "Max-Age=0" in reply.headers["set-cookie"]
        with pytest.raises(ConnectionClosed):
            [terminal.recv(PATIENCE) for _ in range(100)]
    browser.cookie = cookie
    assert browser.get("/page/me").status == 401


@pytest.mark.night
def test_another_page_cannot_act_by_the_cookie(browser, until):
    browser.server.new("one", "cat")
    browser.sign_in()
    port = browser.server.port
    for origin in ("http://evil.example", "null", f"http://localhost:{port}", "http://127.0.0.1:1", "file://", ""):
        given = {"Origin": origin} if origin else {}
        for method, path, body in (
            ("POST", "/v1/sessions/one/send", {"text": "typed"}),
            ("DELETE", "/v1/sessions/one", None),
            ("PATCH", "/v1/sessions/one", {"name": "two"}),
            ("POST", "/logout", {}),
            ("POST", "/mcp", {}),
        ):
            reply = browser.call(method, path, body, given)
            assert (reply.status, reply.reason) == (403, "bad_origin"), (origin, path)
    assert browser.submit("/session/one/type", None, text="typed").status == 403
    assert browser.submit("/session/one/type", "http://evil.example", text="typed").status == 403
    assert "typed" not in browser.server.screen("one")
    assert browser.submit("/session/one/type", text="typed").status == 303
    assert until(lambda: "typed" in browser.server.screen("one"))


@pytest.mark.night
def test_a_browser_that_knows_no_origin_tells_it_by_the_referer(browser, until):
    browser.server.new("one", "cat")
    browser.sign_in()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    other = browser.call("POST", "/session/one/type", b"text=typed", {**headers, "Referer": "http://evil.example/a"})
    assert other.status == 403
    own = browser.call(
        "POST", "/session/one/type", b"text=typed", {**headers, "Referer": f"{browser.origin}/session/one"}
    )
    assert own.status == 303
    sent = browser.call("POST", "/v1/sessions/one/send", {"text": "more"}, {"Referer": f"{browser.origin}/"})
    assert sent.status == 403


@pytest.mark.night
def test_a_websocket_by_the_cookie_is_for_our_own_page(browser):
    browser.server.new("one", "cat")
    browser.sign_in()
    url = f"ws://127.0.0.1:{browser.server.port}/v1/sessions/one/terminal"
    for origin in ("http://evil.example", f"http://localhost:{browser.server.port}", None):
        given = {"Cookie": browser.cookie} | ({"Origin": origin} if origin else {})
        with pytest.raises(InvalidStatus) as refused:
            connect(url, additional_headers=given)
        assert refused.value.response.status_code == 403
    with connect(url, additional_headers={"Cookie": browser.cookie, "Origin": browser.origin}) as terminal:
        assert json.loads(terminal.recv(PATIENCE))["type"] == "hello"


@pytest.mark.night
def test_an_origin_that_may_call_with_a_token_may_not_with_the_cookie(start_server):
    browser = PlainBrowser(start_server("--allow-origin", "https://dash.example"))
    browser.sign_in()
    given = {"Origin": "https://dash.example"}
    assert browser.call("POST", "/v1/prune", {}, given).reason == "bad_origin"
    called = browser.server.call("POST", "/v1/prune", {}, tcp=True, token=browser.server.token, headers=given)
    assert called.status == 200


@pytest.mark.night
def test_a_login_is_always_new(browser):
    browser.cookie = "tmuxctl_login=chosen-by-a-stranger-before-anybody-signed-in"
    assert browser.get("/").status == 303
    browser.sign_in()
    assert "stranger" not in browser.cookie
    first, browser.cookie = browser.cookie, ""
    browser.sign_in()
    assert browser.cookie != first
    # a page on another port can set a cookie beside ours: two tokens at once are none
    tmuxctl("token", "new", "other")
    other = PlainBrowser(browser.server)
    other.sign_in("other")
    browser.cookie = f"{browser.cookie}; {other.cookie}"
    assert browser.get("/page/me").status == 401
    browser.cookie = f"tmuxctl_login=nonsense; {first}"
    assert browser.get("/page/me").json["token"] == "first"


@pytest.mark.night
def test_a_login_of_a_token_for_some_sessions_sees_those(browser, until):
    for name in ("build-1", "secret"):
        browser.server.new(name, "cat")
    assert tmuxctl("token", "new", "ci", "--right", "read", "--only", "build-*").returncode == 0
    browser.sign_in("ci")
    me = browser.get("/page/me").json
    assert (me["rights"], me["limited"]) == (["read"], True)
    assert [one["name"] for one in browser.get("/v1/sessions").json["sessions"]] == ["build-1"]
    page = browser.get("/?plain=1").text
    assert "build-1" in page
    assert "secret" not in page
    for path in ("/session/secret?plain=1", "/v1/sessions/secret/screen", "/page/sessions/secret/moments"):
        assert browser.get(path).status == 404
    shown = browser.get("/session/build-1?plain=1")
    assert shown.status == 200
    assert "<form" not in shown.text.replace('<form method="post" action="/logout">', "")
    assert browser.submit("/session/build-1/type", text="typed").status == 403


@pytest.mark.night
def test_the_cookie_does_not_count_beside_a_token(browser):
    browser.sign_in()
    assert browser.get("/page/me", Authorization="Bearer wrong").status == 401
    reply = browser.get("/page/me", Authorization=f"Bearer {browser.server.token}")
    assert reply.json["logged_in"] is False


def test_a_strange_host_is_refused_at_the_end_of_a_tunnel_too(server):
    """A page of `evil.example` whose name leads to the tunnel's port has that name as Host and as Origin."""
    for host in ("evil.example", "evil.example:8765", "10.0.0.1"):
        reply = server.get("/v1/sessions", headers={"Host": host, "Origin": f"http://{host}"})
        assert (reply.status, reply.reason) == (403, "bad_host")
    for host in ("localhost:8765", "127.0.0.1:8765", "[::1]:8765", "tmuxctl"):
        assert server.get("/v1/sessions", headers={"Host": host}).status == 200


@pytest.mark.night
def test_a_link_needs_to_know_where_the_server_is(start_server):
    server = start_server(listen=False)
    made = tmuxctl("token", "login")
    assert made.returncode != 0
    assert "--url" in made.stderr
    made = tmuxctl("token", "login", "--url", "https://box.example/")
    assert re.fullmatch(r"https://box\.example/login#[0-9A-Z]{4}(-[0-9A-Z]{4}){2}\n", made.stdout)
    assert tmuxctl("token", "login", "--url", "box.example").returncode == 2
    server.stop()
    other = start_server()
    made = tmuxctl("token", "login")
    assert made.stdout.startswith(f"http://127.0.0.1:{other.port}/login#")
    other.stop()
    assert tmuxctl("token", "login").returncode != 0


def test_a_terminal_shows_the_link_as_a_qr_code(server):
    pytest.importorskip("segno")
    words = ["script", "-qec", f"{sys.executable} -m tmuxctl token login", "/dev/null"]
    shown = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert "▀" in shown.stdout
    assert "/login#" in shown.stdout


def test_under_tls_the_cookie_is_bound_to_the_host(place):
    written = logins.write_cookie("text", encrypted=True)
    assert written.startswith("__Host-tmuxctl_login=text; Path=/; HttpOnly; SameSite=Strict; ")
    assert written.endswith("; Secure")
    headers = {"cookie": "tmuxctl_login=one; __Host-tmuxctl_login=two; x__Host-tmuxctl_login=three"}
    assert logins.read_cookies(headers, encrypted=True) == ["two"]
    assert logins.read_cookies(headers, encrypted=False) == ["one"]
