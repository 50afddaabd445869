"""The pages: their files and headers, and what a browser without JavaScript can do with them."""

from __future__ import annotations

import gzip
import hashlib
import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from served import HttpServer
from surfaces.web.browsing import PlainBrowser, tmuxctl

from tmuxctl.surfaces.web import assets

PAGE_BYTES = 400_000
MENU = 'printf "Delete all? [y/N] "; read answer; echo "answer: $answer"; exec cat'
NEEDED = ("default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'", "base-uri 'none'")


class Markup(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.parts: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.parts)


@pytest.fixture
def browser(server: HttpServer) -> PlainBrowser:
    browser = PlainBrowser(server)
    browser.sign_in()
    return browser


@pytest.mark.night
def test_every_page_has_a_strict_policy(browser):
    browser.server.new("one", "cat")
    for path in ("/", "/?plain=1", "/session/one?plain=1", "/session/none?plain=1", "/login"):
        reply = browser.get(path)
        policy = reply.headers["content-security-policy"].split("; ")
        assert set(NEEDED) <= set(policy), path
        assert not [part for part in policy if part.startswith("script-src") and "unsafe" in part]
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "same-origin"
        assert reply.headers["cross-origin-opener-policy"] == "same-origin"


@pytest.mark.night
def test_a_page_of_ours_has_no_script_and_loads_nothing_from_elsewhere(browser):
    browser.server.new("one", "cat")
    for path in ("/?plain=1", "/session/one?plain=1", "/login"):
        found = Markup(browser.get(path).text)
        for tag, about in found.elements:
            assert tag != "script" or about == {"src": "/login.js"}
            assert not [name for name in about if name.startswith("on")]
            for name in ("src", "href", "action"):
                assert (about.get(name) or "/").startswith("/"), about


@pytest.mark.night
def test_no_path_of_a_request_reaches_the_file_system(browser):
    for path in (
        "../page.py",
        "..%2fpage.py",
        "%2e%2e/vendor.sha256",
        "/etc/passwd",
        ".gitignore",
        "vendor",
        "",
        "vendor/../x",
    ):
        assert browser.get(f"/assets/{path}").status == 404, path


@pytest.mark.night
def test_a_file_is_packed_and_known_again(browser, place):
    name = next((name for name in ("vendor/xterm.mjs", "app.css") if name in assets.load_assets()), None)
    if name is None:
        pytest.skip("no files of the page: make web-assets")
    whole = browser.get(f"/assets/{name}")
    packed = browser.get(f"/assets/{name}", **{"Accept-Encoding": "br, gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == whole.body
    assert whole.headers["cache-control"] == "no-cache"
    again = browser.get(f"/assets/{name}", **{"If-None-Match": whole.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


def test_files_are_listed_without_links_and_hidden_ones(tmp_path):
    (tmp_path / "a.js").write_text("1")
    (tmp_path / ".hidden.js").write_text("1")
    (tmp_path / "program.py").write_text("1")
    (tmp_path / "link.js").symlink_to("/etc/passwd")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git/b.js").write_text("1")
    assert list(assets.load_assets(str(tmp_path))) == ["a.js"]


def test_the_whole_page_is_small():
    found = assets.load_assets()
    if not assets.is_whole(found):
        pytest.skip("no files of the page: make web-assets")
    sizes = {name: len(one.packed or one.data) for name, one in found.items() if not name.endswith(".txt")}
    assert sum(sizes.values()) <= PAGE_BYTES, sizes


def test_what_is_brought_is_what_was_looked_at():
    rows = [line.split() for line in Path(assets.LIST).read_text().splitlines()]
    assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest, _ in rows)
    folder = Path(assets.FOLDER) / "vendor"
    if not folder.exists():
        pytest.skip("not brought: make web-assets")
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()} == {
        name: digest for digest, name in rows
    }


@pytest.mark.night
def test_the_overview_lists_who_needs_a_person_first(browser, until):
    browser.server.new("quiet", "bash", "--norc")
    browser.server.new("z-asks", "sh", "-c", MENU)
    assert until(lambda: "Delete all?" in browser.get("/?plain=1").text)
    page = browser.get("/?plain=1").text
    assert page.index(">z-asks<") < page.index(">quiet<")
    assert "<title>(1) tmuxctl</title>" in page
    assert 'http-equiv="refresh"' in page


@pytest.mark.night
def test_a_question_is_answered_by_its_button(browser, until):
    browser.server.new("one", "sh", "-c", MENU)
    assert until(lambda: "Delete all?" in browser.get("/session/one?plain=1").text)
    shown = Markup(browser.get("/session/one?plain=1").text)
    assert ("button", {"name": "option", "value": "yes"}) in shown.elements
    [question] = [about["value"] for tag, about in shown.elements if tag == "input" and about.get("name") == "id"]
    assert question
    stale = browser.submit("/session/one/answer", option="yes", id="another")
    assert stale.status == 409
    assert "Back" in stale.text
    assert browser.submit("/session/one/answer", option="yes", id=question).status == 303
    assert until(lambda: "answer: y" in browser.get("/session/one?plain=1").text)


@pytest.mark.night
def test_a_line_is_typed_and_a_program_interrupted(browser, until):
    browser.server.new("one", "sh", "-c", "trap 'echo stopped' INT; while :; do read line && echo \"got $line\"; done")
    assert browser.submit("/session/one/type", text="<b>&amp; ü").status == 303
    assert until(lambda: "got <b>&amp; ü" in Markup(browser.get("/session/one?plain=1").text).text)
    assert browser.submit("/session/one/interrupt").status == 303
    assert until(lambda: "stopped" in browser.get("/session/one?plain=1").text)
    assert browser.submit("/session/none/type", text="x").status == 404


@pytest.mark.night
def test_a_password_is_asked_for_where_nobody_reads_along_only(browser, until):
    server = browser.server
    server.new(
        "one", "sh", "-c", 'printf "Password: "; stty -echo; read word; stty echo; echo; echo "got $word"; exec cat'
    )
    assert until(lambda: 'class="question needs"' in browser.get("/session/one?plain=1").text)
    assert "/answer" not in browser.get("/session/one?plain=1").text
    assert browser.submit("/session/one/answer", secret="tulip").status == 403
    local = server.get("/session/one?plain=1").text
    assert '<input type="password" name="secret"' in local
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    sent = server.call("POST", "/session/one/answer", b"secret=tulip", headers=headers)
    assert sent.status == 303, sent.text
    assert until(lambda: "got tulip" in server.screen("one"))


HOSTILE = (
    r'printf "\033]2;</title><script>alert(1)</script>\033\\"; printf "\033]8;;javascript:alert(2)\033\\click\033]8;;\033\\ ";'
    r' printf "\033]52;c;ZXZpbA==\033\\</pre><img src=http://evil.example/x onerror=alert(3)>\n";'
    r' printf "\342\200\256evil\342\201\246 & &lt;b&gt;\n"; exec cat'
)


@pytest.mark.night
def test_nothing_that_a_program_says_is_markup(browser, until):
    browser.server.new("one", "sh", "-c", HOSTILE, tag=["blue"])
    assert until(lambda: "onerror" in Markup(browser.get("/session/one?plain=1").text).text)
    for path in ("/session/one?plain=1", "/?plain=1", "/session/%3Cscript%3Ealert(4)?plain=1"):
        reply = browser.get(path)
        found = Markup(reply.text)
        assert not [tag for tag, _ in found.elements if tag in ("script", "img")], path
        assert not [about for _, about in found.elements if "javascript" in str(about) or "evil" in str(about)]
        assert not re.search("[\u202a-\u202e\u2066-\u2069\x00-\x08\x1b]", reply.text)
    shown = Markup(browser.get("/session/one?plain=1").text)
    assert "</pre><img src=http://evil.example/x onerror=alert(3)>" in shown.text
    assert "& &lt;b&gt;" in shown.text


@pytest.mark.night
def test_ten_megabytes_on_a_line_make_no_large_page(browser, until):
    browser.server.new("one", "sh", "-c", "head -c 10000000 /dev/zero | tr '\\0' x; exec cat")
    assert until(lambda: "xxxx" in browser.get("/?plain=1").text)
    assert len(browser.get("/?plain=1").body) < 20_000
    assert len(browser.get("/session/one?plain=1").body) < 100_000


@pytest.mark.night
def test_who_may_only_read_is_shown_nothing_that_acts(browser, until):
    browser.server.new("one", "sh", "-c", MENU)
    tmuxctl("token", "new", "reader", "--right", "read")
    reader = PlainBrowser(browser.server)
    reader.sign_in("reader")
    assert until(lambda: "Delete all?" in reader.get("/session/one?plain=1").text)
    for path in ("/?plain=1", "/session/one?plain=1"):
        forms = [about["action"] for tag, about in Markup(reader.get(path).text).elements if tag == "form"]
        assert forms == ["/logout"]
    assert reader.submit("/session/one/answer", option="yes").status == 403


@pytest.mark.night
def test_a_page_that_is_typed_into_is_not_renewed(browser):
    browser.server.new("one", "cat")
    assert 'http-equiv="refresh"' in browser.get("/session/one?plain=1").text
    assert 'http-equiv="refresh"' not in browser.get("/session/one?plain=1&hold=1").text


def test_over_the_unix_socket_and_without_tokens_nobody_signs_in(start_server):
    server = start_server("--no-token")
    server.new("one", "cat")
    for tcp in (False, True):
        reply = server.get("/?plain=1", tcp=tcp, headers={"Accept": "text/html"})
        assert reply.status == 200
        assert "one" in html.unescape(reply.text)
        assert "/logout" not in reply.text
        assert server.get("/page/me", tcp=tcp).json["token"] is None
        left = server.call("POST", "/login", {"code": "x"}, tcp=tcp)
        assert (left.status, left.headers["location"]) == (303, "/")
    other = {"Origin": "http://evil.example", "Content-Type": "application/x-www-form-urlencoded"}
    assert server.call("POST", "/session/one/type", b"text=x", tcp=True, headers=other).status == 403


@pytest.mark.night
def test_the_moments_of_a_session_are_told(browser):
    browser.server.new("one", "bash", "--norc")
    browser.server.post("/v1/sessions/one/ask", {"text": "echo $((6*7))"})
    browser.server.post("/v1/sessions/one/mark", {"text": "here"})
    found = browser.get("/page/sessions/one/moments").json
    assert found["end"] > found["start"] >= 0
    [turn] = [one for one in found["moments"] if one["kind"] == "turn"]
    assert (turn["turn"], turn["text"]) == (1, "echo $((6*7))")
    assert turn["offset"] < turn["end"] <= found["end"]
    assert [one["text"] for one in found["moments"] if one["kind"] == "mark"] == ["here"]
    assert browser.get("/page/sessions/none/moments").status == 404
