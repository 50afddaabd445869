"""Who may call the server, and what: tokens, hosts, origins, sizes, deadlines, rights, and the sessions a token is for."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from served import PATIENCE, HttpReply, HttpServer
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect, unix_connect

from tmuxctl.surfaces.server.admission import guard
from tmuxctl.timing import TIMING


def tmuxctl(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "tmuxctl", *words], capture_output=True, text=True)


def make_token(name: str, *words: str) -> str:
    made = tmuxctl("token", "new", name, *words)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@pytest.mark.night
def test_nothing_is_told_over_tcp_without_a_token(server):
    for path in ("/v1/sessions", "/metrics", "/mcp", "/v1/events", "/nothing", "/v1/sessions/one/screen"):
        for given in (
            None,
            "Bearer ",
            "Bearer wrong",
            "Basic dXNlcjpwYXNz",
            "Bearer \x80\xff",
            f"Token {server.token}",
        ):
            reply = server.get(path, tcp=True, headers={"Authorization": given} if given else {})
            assert (reply.status, reply.reason) == (401, "no_token"), (path, given)
            assert "www-authenticate" in reply.headers


@pytest.mark.night
def test_a_websocket_needs_a_token_too(server):
    server.new("one", "cat")
    url = f"ws://127.0.0.1:{server.port}/v1/sessions/one/terminal"
    with pytest.raises(InvalidStatus) as refused:
        connect(url)
    assert refused.value.response.status_code == 401
    with connect(url, additional_headers={"Authorization": f"Bearer {server.token}"}) as terminal:
        assert json.loads(terminal.recv(PATIENCE))["type"] == "hello"


@pytest.mark.night
def test_a_token_in_the_address_is_none(server):
    for query in ("token", "access_token", "authorization"):
        assert server.get(f"/v1/sessions?{query}={server.token}", tcp=True).status == 401


def test_the_first_token_is_kept_in_a_file_of_the_users_own(server, place):
    path = place / "state/tmuxctl/serve/token"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text().strip() == server.token
    assert server.get("/v1/sessions", tcp=True, token=server.token).status == 200
    path.chmod(0o644)
    shown = tmuxctl("serve", "--show-token")
    assert shown.returncode == 8
    assert "chmod 600" in shown.stderr


@pytest.mark.night
def test_other_tokens_are_printed_once_and_kept_as_hashes(server, place):
    token = make_token("laptop")
    assert server.get("/v1/sessions", tcp=True, token=token).status == 200
    kept = b"".join(path.read_bytes() for path in (place / "state/tmuxctl/serve").iterdir())
    assert token.encode() not in kept
    assert token not in tmuxctl("token", "ls", "--json").stdout
    assert "laptop" in tmuxctl("token", "ls").stdout
    assert tmuxctl("token", "new", "laptop").returncode == 4


@pytest.mark.night
def test_a_revoked_token_holds_no_more_and_what_it_follows_ends(server, until):
    token = make_token("laptop")
    server.new("one", "cat")
    url = f"ws://127.0.0.1:{server.port}/v1/sessions/one/terminal"
    with connect(url, additional_headers={"Authorization": f"Bearer {token}"}) as terminal:
        terminal.recv(PATIENCE)
        assert tmuxctl("token", "revoke", "laptop").returncode == 0
        assert server.get("/v1/sessions", tcp=True, token=token).status == 401
        terminal.send(b"typed\r")
        # what it prints meanwhile may come first
        with pytest.raises(ConnectionClosed, match="revoked"):
            [terminal.recv(PATIENCE) for _ in range(100)]
    assert "typed" not in server.screen("one")
    assert tmuxctl("token", "revoke", "laptop").returncode == 3


@pytest.mark.night
def test_who_only_reads_a_terminal_is_let_go_when_its_token_is_revoked(server):
    token = make_token("laptop")
    server.new("one", "cat")
    url = f"ws://127.0.0.1:{server.port}/v1/sessions/one/terminal"
    with connect(url, additional_headers={"Authorization": f"Bearer {token}"}) as terminal:
        terminal.recv(PATIENCE)
        assert tmuxctl("token", "revoke", "laptop").returncode == 0
        with pytest.raises(ConnectionClosed, match="revoked"):
            terminal.recv(PATIENCE)


@pytest.mark.night
def test_a_session_that_gets_a_name_a_token_is_not_for_is_followed_no_more(server):
    token = make_token("ci", "--right", "read", "--right", "write", "--only", "build-*")
    server.new("build-1", "cat")
    given = {"Authorization": f"Bearer {token}"}
    url = f"ws://127.0.0.1:{server.port}/v1/sessions/build-1/terminal"
    connection = server.connect(tcp=True)
    connection.request("GET", "/v1/sessions/build-1/events", headers=given)
    with connect(url, additional_headers=given) as terminal:
        terminal.recv(PATIENCE)
        stream = connection.getresponse()
        assert server.post("/v1/sessions/build-1/rename", {"name": "secret"}).status == 200
        with pytest.raises(ConnectionClosed, match="not for this session"):
            terminal.recv(PATIENCE)
    assert server.post("/v1/sessions/secret/send", {"text": "hidden"}).status == 200
    assert b"hidden" not in stream.read()
    connection.close()


@pytest.mark.night
def test_a_body_of_millions_of_values_is_not_read(server):
    server.new("one", "cat")
    text = {"Content-Type": "application/json"}
    for value in (b"{}", b"1", b'"a"'):
        body = b'{"steps": [' + b",".join([value] * 200_000) + b"]}"
        reply = server.call("POST", "/v1/sessions/one/batch", body, headers=text)
        assert (reply.status, reply.json["error"]["message"]) == (400, "the body holds too many values")
    assert server.post("/v1/sessions/one/mark", {"text": "{,[" * 200_000}).reason == "bad_text"


def test_another_host_is_refused(server):
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost@evil.example", "", "[::1", "0x7f000001"):
        reply = server.get("/v1/sessions", tcp=True, token=server.token, headers={"Host": host})
        assert reply.status in (400, 403), (host, reply.text)


@pytest.mark.night
def test_hosts_and_origins_can_be_allowed(start_server):
    server = start_server("--allow-host", "build.example", "--allow-origin", "https://page.example")
    for headers in ({"Host": "build.example:8765"}, {"Origin": "https://page.example"}, {"Host": "localhost"}):
        assert server.get("/v1/sessions", tcp=True, token=server.token, headers=headers).status == 200


@pytest.mark.night
def test_the_page_of_another_site_is_refused(server):
    server.new("one", "cat")
    url = f"ws://127.0.0.1:{server.port}/v1/sessions/one/terminal"
    for origin in ("https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example", "file://"):
        reply = server.get("/v1/sessions", tcp=True, token=server.token, headers={"Origin": origin})
        assert (reply.status, reply.reason) == (403, "bad_origin"), origin
        with pytest.raises(InvalidStatus) as refused:
            connect(url, additional_headers={"Authorization": f"Bearer {server.token}", "Origin": origin})
        assert refused.value.response.status_code == 403
        with pytest.raises(InvalidStatus):
            unix_connect(server.path, "ws://localhost/v1/sessions/one/terminal", additional_headers={"Origin": origin})


def test_a_header_that_decides_stands_once(server):
    connection = server.connect(tcp=True)
    connection.putrequest("GET", "/v1/sessions")
    connection.putheader("Authorization", "Bearer wrong")
    connection.putheader("Authorization", f"Bearer {server.token}")
    connection.endheaders()
    assert HttpReply(connection.getresponse()).status == 400
    connection.close()


def test_a_body_of_a_gigabyte_is_refused_at_once(server):
    connection = server.connect(tcp=True)
    connection.putrequest("POST", "/v1/sessions")
    connection.putheader("Authorization", f"Bearer {server.token}")
    connection.putheader("Content-Length", str(1 << 30))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_body_without_a_length_is_cut_off(server):
    connection = server.connect()
    connection.putrequest("POST", "/v1/sessions/none/send")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    part = b"%x\r\n%s\r\n" % (1 << 20, b"x" * (1 << 20))
    try:
        for _ in range(guard.BODY_BYTES // (1 << 20) + 2):
            connection.send(part)
        connection.send(b"0\r\n\r\n")
        assert connection.getresponse().status == 413
    except (BrokenPipeError, ConnectionResetError):
        # the answer may be lost where the rest is not read
        pass
    assert server.get("/healthz").status == 200
    connection.close()


def begin_large_body(server: HttpServer) -> http.client.HTTPConnection:
    """A request that lacks the last byte of the largest body."""
    connection = server.connect()
    connection.putrequest("POST", "/v1/sessions/none/send")
    connection.putheader("Content-Length", str(guard.BODY_BYTES))
    connection.endheaders()
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        connection.send(b"x" * (guard.BODY_BYTES - 1))
    return connection


def test_large_bodies_do_not_fill_the_memory_together(server):
    begun = [begin_large_body(server) for _ in range(guard.BODIES_BYTES // guard.BODY_BYTES + 1)]
    (refused, *_), _, _ = select.select([one.sock for one in begun], [], [], PATIENCE)
    assert b" 503 " in refused.recv(4096)
    for one in begun:
        one.close()
    # what they held is free again
    last = begin_large_body(server)
    last.send(b"x")
    assert last.getresponse().status != 503
    last.close()


@pytest.mark.night
def test_one_token_does_not_keep_the_others_out(server):
    busy, other = make_token("busy"), make_token("other")
    headers = {"Authorization": f"Bearer {busy}"}
    streams = [server.connect(tcp=True) for _ in range(guard.REQUESTS_PER_TOKEN)]
    for one in streams:
        one.request("GET", "/v1/events", headers=headers)
        assert one.getresponse().status == 200
    assert server.get("/v1/sessions", tcp=True, token=busy).status == 503
    assert server.get("/v1/sessions", tcp=True, token=other).status == 200
    streams.pop().close()
    deadline = time.monotonic() + PATIENCE
    while server.get("/v1/sessions", tcp=True, token=busy).status != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    for one in streams:
        one.close()


@pytest.mark.night
def test_a_head_that_does_not_end_is_cut_off(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=TIMING.http.head_seconds + PATIENCE) as slow:
        slow.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: ")
        assert slow.recv(4096) == b""


@pytest.mark.night
def test_a_head_without_end_is_refused(server):
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as long:
        long.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-A: " + b"a" * (1 << 20))
        with contextlib.suppress(ConnectionResetError):
            assert b" 400 " in long.recv(4096)
    assert server.get("/healthz").status == 200


CHANGES = [
    ("POST", "/v1/sessions/one/send", {"text": "no"}, "write"),
    ("POST", "/v1/sessions/one/keys", {"keys": ["C-c"]}, "write"),
    ("POST", "/v1/sessions/one/ask", {"text": "no"}, "write"),
    ("POST", "/v1/sessions/one/exec", {"command": ["no"]}, "write"),
    ("POST", "/v1/sessions/one/decide", {"option": "y"}, "write"),
    ("POST", "/v1/sessions/one/decide", {"secret": "y"}, "write"),
    ("POST", "/v1/sessions/one/batch", {"steps": [{"send": "no"}]}, "write"),
    ("POST", "/v1/sessions/one/resize", {"size": "90x30"}, "write"),
    ("POST", "/v1/sessions/one/rename", {"name": "two"}, "write"),
    ("PATCH", "/v1/sessions/one", {"name": "two"}, "write"),
    ("DELETE", "/v1/sessions/one", None, "kill"),
    ("POST", "/v1/sessions", {"name": "two", "command": ["cat"]}, "create"),
    ("POST", "/v1/run", {"command": ["true"]}, "create"),
    ("POST", "/v1/prune", {}, "kill"),
    ("POST", "/v1/restore", {}, "create"),
]


@pytest.mark.night
def test_a_token_to_read_changes_nothing(server):
    server.new("one", "cat")
    token = make_token("reader", "--right", "read")
    for method, path, body, right in CHANGES:
        reply = server.call(method, path, body, tcp=True, token=token)
        assert (reply.status, reply.reason) == (403, "right"), (method, path, reply.text)
        assert right in reply.json["error"]["message"]
    assert server.get("/v1/sessions/one", tcp=True, token=token).json["name"] == "one"
    assert server.screen("one") == ""


@pytest.mark.night
def test_a_token_to_read_types_nothing_through_a_terminal(server):
    server.new("one", "cat")
    token = make_token("reader", "--right", "read")
    url = f"ws://127.0.0.1:{server.port}/v1/sessions/one/terminal"
    for message in (b"typed\r", json.dumps({"type": "resize", "cols": 50, "rows": 20})):
        with connect(url, additional_headers={"Authorization": f"Bearer {token}"}) as terminal:
            terminal.recv(PATIENCE)
            terminal.send(message)
            assert json.loads(terminal.recv(PATIENCE))["error"]["reason"] == "right"
    shown = server.get("/v1/sessions/one").json
    assert shown["cols"] == 120
    assert "typed" not in server.screen("one")


MEANT = ("build-1", "build-2")


@pytest.fixture
def limited(server) -> tuple[HttpServer, str, dict[str, Any]]:
    """A token for some sessions, and one that it is not for."""
    for name in MEANT:
        server.new(name, "cat")
    other = server.new("secret", "sh", "-c", "echo hidden; exec cat")
    return server, make_token("builder", "--only", "build-*", "--only", "b?"), other


@pytest.mark.night
def test_a_token_for_some_sessions_sees_and_changes_those(limited):
    server, token, _ = limited
    call = {"tcp": True, "token": token}
    assert [one["name"] for one in server.get("/v1/sessions", **call).json["sessions"]] == [*MEANT]
    assert server.get("/v1/sessions/build-1/screen", **call).status == 200
    assert server.post("/v1/sessions/build-1/send", {"text": "a"}, **call).status == 200
    assert server.post("/v1/sessions", {"name": "build-3", "command": ["cat"]}, **call).status == 201
    assert server.call("DELETE", "/v1/sessions/build-3", **call).status == 200


OF_OTHERS: list[tuple[str, str, Any]] = [
    ("GET", "", None),
    ("GET", "/screen", None),
    ("GET", "/log", None),
    ("GET", "/read", None),
    ("GET", "/cast", None),
    ("GET", "/events", None),
    ("GET", "/explain", None),
    ("POST", "/send", {"text": "no"}),
    ("POST", "/keys", {"keys": ["a"]}),
    ("POST", "/ask", {"text": "no"}),
    ("POST", "/wait", {"text": "no"}),
    ("POST", "/batch", {"steps": [{"screen": {}}]}),
    ("POST", "/rename", {"name": "build-9"}),
    ("PATCH", "", {"name": "build-9"}),
    ("DELETE", "", None),
]


@pytest.mark.night
def test_a_token_for_some_sessions_knows_nothing_of_others(limited):
    server, token, other = limited
    for method, path, body in OF_OTHERS:
        for name in ("secret", other["id"]):
            reply = server.call(method, f"/v1/sessions/{name}{path}", body, tcp=True, token=token)
            assert reply.status == 404, (method, path, name, reply.text)
            assert "hidden" not in reply.text
    assert server.get("/v1/sessions/secret").json["id"] == other["id"]
    assert server.screen("secret") == "hidden"


BEYOND = [
    ("POST", "/v1/sessions/build-1/wait", {"text": "a", "any": ["build-1", "secret"]}),
    ("POST", "/v1/sessions/build-1/wait", {"text": "a", "all": ["secret"]}),
    ("POST", "/v1/sessions/build-1/batch", {"steps": [{"ask": {"text": "a", "fallback": "bash"}}]}),
    ("POST", "/v1/sessions/build-1/rename", {"name": "other"}),
    ("GET", "/metrics", None),
    ("PATCH", "/v1/sessions/build-1", {"name": "other"}),
    ("POST", "/v1/sessions", {"name": "secret", "if_exists": "replace"}),
    ("POST", "/v1/sessions", {"command": ["cat"]}),
    ("POST", "/v1/sessions", {"name": "build-4", "candidates": ["bash", "sh"]}),
    ("POST", "/v1/run", {"command": ["cat"]}),
    ("POST", "/v1/prune", {}),
    ("POST", "/v1/restore", {}),
    ("POST", "/v1/sync", {}),
    ("POST", "/v1/adopt", {"target": "tmux:0"}),
    ("GET", "/v1/sessions?all_sockets=1", None),
    ("DELETE", "/v1/sessions/build-1?all=1", None),
    ("GET", "/v1/sessions/tmux:0/screen", None),
]


@pytest.mark.night
def test_a_token_for_some_sessions_does_not_reach_beyond_them(limited):
    server, token, _ = limited
    for method, path, body in BEYOND:
        reply = server.call(method, path, body, tcp=True, token=token)
        assert reply.status in (403, 404), (method, path, reply.text)
    assert {one["name"] for one in server.get("/v1/sessions").json["sessions"]} == {*MEANT, "secret"}


@pytest.mark.night
def test_events_of_other_sessions_are_not_told(limited):
    server, token, _ = limited
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("GET", "/v1/events", headers={"Authorization": f"Bearer {token}"})
    stream = connection.getresponse()
    told = b""
    while b'"build-2"' not in told:
        told += stream.readline()
    server.post("/v1/sessions/secret/send", {"text": "a"})
    server.call("DELETE", "/v1/sessions/secret")
    server.call("DELETE", "/v1/sessions/build-2")
    while b'"exited"' not in told:
        told += stream.readline()
    assert b"secret" not in told
    connection.close()


WITH_FILES = [
    ("/v1/sessions/one/send", {"secret_from_file": "/etc/passwd"}),
    ("/v1/sessions/one/send", {"secret_from_env": "HOME"}),
    ("/v1/sessions/one/ask", {"file": "/etc/passwd"}),
    ("/v1/sessions/one/exec", {"command": ["cat"], "stdin": "/etc/passwd"}),
    ("/v1/sessions/one/batch", {"file": "/etc/passwd"}),
    ("/v1/sessions/one/batch", {"steps": [{"exec": {"command": ["cat"], "stdin": "/etc/passwd"}}]}),
    ("/v1/sessions/one/batch", {"steps": '[{"ask": {"file": "/etc/passwd"}}]'}),
    ("/v1/sessions/one/batch", {"steps": [{"screen": {}}, {"send": {"secret_from_file": "/etc/passwd"}}]}),
    ("/v1/sessions/one/batch", {"steps": [{"decide": {"secret_from_env": "HOME"}}]}),
    ("/v1/sessions", {"command": ["cat"], "env_file": "/etc/passwd"}),
    ("/v1/sessions", {"command": ["cat"], "profile": "/etc/passwd"}),
    ("/v1/sessions", {"command": ["cat"], "with_": ["env:file=/etc/passwd"]}),
    ("/v1/sessions", {"command": ["cat"], "with_": ["timeout=9", "env=/etc/passwd"]}),
    ("/v1/sessions", {"command": ["cat"], "with_": ["env:set=A=b,secret=A=env:HOME"]}),
    ("/v1/run", {"command": ["env"], "with_": ["env:secret=A=file:/etc/passwd"]}),
    ("/v1/sessions", {"command": ["cat"], "with_": "env=/etc/passwd"}),
    ("/v1/sessions", {"command": ["cat"], "with_": ["theirs:the-file=/etc/passwd"]}),
]

THEIRS = """
from typing import Annotated
KIND = "env"
def transform(spec, *, level: int = 1, the_file: Annotated[str, "a file", "local"] = ""): return spec
"""


@pytest.mark.night
def test_files_of_the_servers_machine_are_named_on_it_only(server, place):
    (place / ".config/tmuxctl/plugins").mkdir(parents=True)
    (place / ".config/tmuxctl/plugins/theirs.py").write_text(THEIRS)
    server.new("one", "cat")
    for path, body in WITH_FILES:
        reply = server.post(path, body, tcp=True, token=server.token)
        assert (reply.status, reply.reason) == (403, "local_file"), (path, body, reply.text)
    for query in ("file=/etc/passwd", "before=/etc/passwd"):
        assert server.get(f"/v1/sessions/one/explain?{query}", tcp=True, token=server.token).status == 403


@pytest.mark.night
def test_plugins_that_name_no_file_are_applied_for_callers_over_tcp_too(server, place):
    (place / "vars").write_text("A=b\n")
    remote = {"tcp": True, "token": server.token}
    for plugins in (["timeout=90"], ["env:set=A=b"]):
        body = {"command": ["sh", "-c", "echo A is $A; exec cat"], "with_": plugins}
        assert server.post("/v1/sessions", body, **remote).status == 201
    assert server.post("/v1/sessions", {"command": ["cat"], "with_": ["nosuch=1"]}, **remote).status == 404
    assert server.post("/v1/sessions", {"command": ["cat"], "with_": ["env:"]}, **remote).reason == "bad_option"
    # who is on this machine may name its files
    assert server.post("/v1/sessions", {"command": ["cat"], "with_": [f"env={place}/vars"]}).status == 201


@pytest.mark.night
def test_a_password_is_taken_on_a_unix_socket_only(server, until):
    server.new("one", "sh", "-c", "stty -echo; printf 'Password: '; read a; stty echo; echo \"got ${#a}\"; exec cat")
    server.post("/v1/sessions/one/wait", {"asking": True})
    over_tcp = server.post("/v1/sessions/one/decide", {"secret": "hush-hush"}, tcp=True, token=server.token)
    assert (over_tcp.status, over_tcp.reason) == (403, "not_private")
    reply = server.post("/v1/sessions/one/decide", {"secret": "hush-hush"})
    assert reply.status == 200, reply.text
    assert "hush" not in reply.text
    server.post("/v1/sessions/one/wait", {"text": "got 9", "since": "screen"})
    kept = b"".join(path.read_bytes() for path in Path(os.environ["XDG_STATE_HOME"]).rglob("*") if path.is_file())
    assert b"hush" not in kept


EXPOSED = [
    (["--listen", "0.0.0.0:0"], 8),
    (["--listen", "0.0.0.0:0", "--no-token", "--insecure"], 8),
    (["--listen", "nonsense"], 2),
    (["--listen", "127.0.0.1:99999"], 2),
    (["--tls-cert", "/dev/null"], 2),
    (["--on-event", "https://user:pass@host/"], 2),
]


@pytest.mark.night
def test_what_would_let_strangers_in_is_refused(place):
    for words, status in EXPOSED:
        refused = tmuxctl("serve", *words)
        assert refused.returncode == status, refused.stderr
        assert "Traceback" not in refused.stderr


@pytest.mark.night
def test_a_planted_link_or_file_in_the_place_of_the_socket_is_refused(start_server, place):
    server = start_server()
    assert server.stop() == 0
    path = Path(server.path)
    path.symlink_to(place / "elsewhere")
    assert tmuxctl("serve").returncode == 8
    path.unlink()
    path.write_text("")
    assert tmuxctl("serve").returncode == 8
    path.unlink()
    path.parent.chmod(0o755)
    assert tmuxctl("serve").returncode == 8
    path.parent.chmod(0o700)


def test_the_log_of_requests_has_no_token_and_no_query(start_server, place, until):
    server = start_server("--log")
    server.get("/v1/sessions?state=idle", tcp=True, token=server.token)
    server.get("/v1/sessions?token=hush", tcp=True, token="wrong-token")
    log = place / "serve-0.log"
    until(lambda: log.read_text().count('"status"') == 2)
    lines = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    assert [(line["status"], line["token"]) for line in lines] == [(200, "first"), (401, None)]
    assert server.token not in log.read_text()
    assert "hush" not in log.read_text()
    assert "wrong-token" not in log.read_text()


def test_more_calls_than_there_may_be_are_refused_and_the_rest_go_on(server, until):
    server.new("one", "cat")
    waits = [server.connect() for _ in range(40)]
    for connection in waits:
        connection.request("POST", "/v1/sessions/one/wait", json.dumps({"text": "never", "timeout": "none"}))
    assert server.get("/v1/sessions").status == 200
    for connection in waits:
        connection.close()
