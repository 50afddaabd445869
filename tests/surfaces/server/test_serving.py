"""What callers of the server can rely on: the operations, what they answer, events, terminals, and what a stop leaves."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from served import PATIENCE, HttpServer, UnixConnection
from websockets.sync.client import unix_connect


@pytest.mark.night
def test_a_session_is_started_typed_into_looked_at_and_ended(server):
    started = server.new("db", "bash", "--norc")
    assert started["name"] == "db"
    assert [one["name"] for one in server.get("/v1/sessions").json["sessions"]] == ["db"]
    ran = server.post("/v1/sessions/db/exec", {"command": ["printf 'a\\nb\\n'"]})
    assert ran.json["output"] == "a\nb\n"
    asked = server.post("/v1/sessions/db/ask", {"text": "echo $((6*7))"})
    assert asked.json["answer"] == "42"
    typed = server.post("/v1/sessions/db/send", {"text": "echo m''ark", "wait_text": "^mark$", "screen": True})
    assert "mark" in typed.json["screen"]["text"]
    assert server.call("DELETE", "/v1/sessions/db?grace=1s").json["killed"][0]["session"] == "db"
    assert server.get("/v1/sessions/db").reason == "no_session"


@pytest.mark.night
def test_every_answer_of_an_operation_is_that_of_the_command(server):
    server.new("one", "cat")
    command = [sys.executable, "-m", "tmuxctl", "--json", "screen", "one"]
    printed = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert server.get("/v1/sessions/one/screen").json == printed


@pytest.mark.night
def test_bytes_that_are_no_text_are_typed_as_they_are(server, until, place):
    server.new("raw", "sh", "-c", f"stty raw -echo; echo up; head -c 5 >{place}/got; sleep 100")
    server.post("/v1/sessions/raw/wait", {"text": "up"})
    data = b"\x00\xff\x03a\r"
    reply = server.call(
        "POST",
        "/v1/sessions/raw/send?enter=false&multiline=true",
        data,
        headers={"Content-Type": "application/octet-stream"},
    )
    assert reply.status == 200, reply.text
    assert until(lambda: (place / "got").stat().st_size == 5)
    assert (place / "got").read_bytes() == data


@pytest.mark.night
def test_a_screen_comes_in_each_form(server):
    server.new("one", "sh", "-c", "echo mark; exec cat")
    server.post("/v1/sessions/one/wait", {"text": "mark", "since": "screen"})
    for form, kind in (("text", "text/plain"), ("html", "text/html"), ("svg", "image/svg+xml"), ("ansi", "text/plain")):
        by_name = server.get(f"/v1/sessions/one/screen?format={form}")
        assert by_name.headers["content-type"].startswith(kind)
        assert "mark" in by_name.text
        assert by_name.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
        if form != "ansi":
            assert server.get("/v1/sessions/one/screen", headers={"Accept": kind}).body == by_name.body


@pytest.mark.night
def test_a_recording_is_an_asciicast(server):
    server.new("one", "sh", "-c", "echo mark; exec cat")
    server.post("/v1/sessions/one/wait", {"text": "mark", "since": "screen"})
    first, *rest = server.get("/v1/sessions/one/cast").text.splitlines()
    assert json.loads(first)["version"] == 3
    assert "mark" in "".join(json.loads(line)[2] for line in rest)


@pytest.mark.night
def test_a_session_gets_another_name_size_and_tags(server):
    server.new("one", "cat", tag=["old", "both"])
    changed = server.call("PATCH", "/v1/sessions/one", {"name": "two", "size": "90x30", "tags": ["both", "new"]}).json
    assert (changed["name"], changed["cols"], changed["rows"]) == ("two", 90, 30)
    assert sorted(changed["tags"]) == ["both", "new"]
    assert server.call("PATCH", "/v1/sessions/two", {"colour": "red"}).reason == "bad_parameter"
    many = [f"t{number}" for number in range(65)]
    assert server.call("PATCH", "/v1/sessions/two", {"tags": many}).reason == "too_many_tags"
    assert server.post("/v1/sessions", {"command": ["cat"], "tag": many}).reason == "too_many_tags"
    assert server.call("PATCH", "/v1/sessions/two", {"tags": many[:64]}).json["tags"] == many[:64]


IMPOSSIBLE = [
    ("GET", "/v1/sessions/none", None, 404, "no_session"),
    ("GET", "/v1/sessions/a%00b", None, 404, "no_session"),
    ("GET", "/v1/sessions/..%2F..%2Fetc/screen", None, 404, None),
    ("GET", "/v1/sessions/%2e%2e/screen", None, 404, None),
    ("GET", "/v1/nothing", None, 404, "no_path"),
    ("PUT", "/v1/sessions", {}, 405, "bad_method"),
    ("POST", "/v1/sessions/none/send", b"no json", 400, "bad_json"),
    ("POST", "/v1/sessions/none/send", b"[" * 5000, 400, "bad_json"),
    ("POST", "/v1/sessions/none/send", {"texxt": "a"}, 400, "bad_parameter"),
    ("POST", "/v1/sessions/none/send", {"text": 7}, 400, "bad_type"),
    ("POST", "/v1/sessions/none/read", {}, 405, "bad_method"),
    ("GET", "/v1/sessions/none/read?follow=1", None, 400, "bad_parameter"),
    ("GET", "/v1/sessions/none/read?turn=x", None, 400, "bad_number"),
    ("GET", "/v1/sessions?state=blue", None, 400, "bad_choice"),
    ("GET", "/v1/sessions/none/screen?format=pdf", None, 400, "bad_choice"),
    ("POST", "/v1/sessions", {"name": "a b"}, 400, "bad_name"),
    ("POST", "/v1/export", {"source": "a", "file": "b"}, 404, "no_path"),
]


@pytest.mark.night
def test_what_cannot_be_is_refused_with_an_error_object(server):
    for method, path, body, status, reason in IMPOSSIBLE:
        reply = server.call(method, path, body)
        assert reply.status == status, (method, path, reply.text)
        assert reason in (None, reply.reason)
        assert reply.headers["x-request-id"]


@pytest.mark.night
def test_a_second_turn_and_a_name_that_is_taken_are_conflicts(server):
    server.new("one", "sh", "-c", "echo ready; sleep 100")
    assert server.post("/v1/sessions", {"name": "one", "command": ["cat"]}).status == 409


@pytest.mark.night
def test_a_repeated_write_with_the_same_key_happens_once(server, until):
    server.new("one", "cat")
    for _ in range(2):
        reply = server.post("/v1/sessions/one/send", {"text": "mark"}, headers={"Idempotency-Key": "abcdef0123456789"})
        assert reply.status == 200, reply.text
    assert reply.json["result"] == "dup"
    server.post("/v1/sessions/one/wait", {"text": "^mark$"})
    assert server.screen("one").split().count("mark") == 2  # its echo, and what cat says


@pytest.mark.night
def test_a_client_that_goes_away_ends_its_wait(server, until):
    server.new("one", "cat")
    connection = server.connect()
    body = json.dumps({"text": "never", "timeout": "none"})
    connection.request("POST", "/v1/sessions/one/wait", body, {"Content-Type": "application/json"})
    until(lambda: _under_way(server) == 1)
    connection.close()
    until(lambda: _under_way(server) == 0)


def _under_way(server: HttpServer) -> int:
    for line in server.get("/metrics").text.splitlines():
        if line.startswith("tmuxctl_calls_under_way "):
            return int(float(line.split()[1]))
    raise AssertionError("not counted")


@pytest.mark.night
def test_events_tell_the_present_state_first_then_changes(server):
    server.new("one", "bash", "--norc")
    with_all = server.events("/v1/events")
    first = with_all.next()
    assert (first["event"], first["data"]["session"], first["data"]["state"]) == ("state", "one", "idle")
    server.post("/v1/sessions/one/send", {"text": "sleep 100"})
    with_all.next(lambda event: event["data"]["state"] == "busy")
    server.post("/v1/sessions/one/keys", {"keys": ["C-c"]})
    with_all.next(lambda event: event["data"]["state"] == "idle")
    server.new("two", "cat")
    with_all.next(lambda event: event["data"]["session"] == "two")
    server.post("/v1/sessions/one/send", {"text": "exit 3"})
    ended = with_all.next(lambda event: event["event"] == "exited")
    assert ended["data"]["exit_status"] == 3
    server.call("DELETE", "/v1/sessions/one")
    assert with_all.next(lambda event: event["event"] == "gone")["data"]["session"] == "one"


@pytest.mark.night
def test_events_go_on_after_the_last_one_that_was_seen(server):
    server.new("one", "bash", "--norc")
    stream = server.events("/v1/events")
    seen = stream.next()["id"]
    stream.close()
    server.post("/v1/sessions/one/exec", {"command": ["true"]})
    server.post("/v1/sessions/one/send", {"text": "exit"})
    server.post("/v1/sessions/one/wait", {"exit": True})
    again = server.events("/v1/events", Last_Event_ID=seen)
    numbers = [int(seen.split("-")[1])]
    while True:
        event = again.next()
        numbers.append(int(event["id"].split("-")[1]))
        if event["event"] == "exited":
            break
    assert numbers == [*range(numbers[0], numbers[0] + len(numbers))]


@pytest.mark.night
def test_a_sessions_events_have_its_output_and_resume_without_a_gap(server):
    server.new("one", "sh", "-c", "read a; seq 1 500; read a; seq 501 1000; exec cat")
    stream = server.events("/v1/sessions/one/events")
    server.post("/v1/sessions/one/keys", {"keys": ["Enter"]})
    text, cursor = "", ""
    while "\n500\n" not in text:
        event = stream.next(lambda event: event["event"] == "output")
        text, cursor = text + event["data"]["text"], event["id"]
    stream.close()
    server.post("/v1/sessions/one/keys", {"keys": ["Enter"]})
    server.post("/v1/sessions/one/wait", {"text": "1000"})
    again = server.events("/v1/sessions/one/events", Last_Event_ID=cursor)
    while "\n1000\n" not in text:
        text += again.next(lambda event: event["event"] == "output")["data"]["text"]
    assert [line for line in text.splitlines() if line] == [str(number) for number in range(1, 1001)]


@pytest.mark.night
def test_a_terminal_carries_raw_bytes_both_ways(server):
    server.new("one", "sh")
    with unix_connect(server.path, "ws://localhost/v1/sessions/one/terminal?since=0") as terminal:
        hello = json.loads(terminal.recv(PATIENCE))
        assert (hello["type"], hello["session"], hello["cols"]) == ("hello", "one", 120)
        terminal.send(b"echo m''ark\r")
        _receive(terminal, b"\nmark\r\n")
        terminal.send(json.dumps({"type": "resize", "cols": 77, "rows": 20}))
        terminal.send(b"tput cols\r")
        _receive(terminal, b"\n77\r\n")
        terminal.send(b"exit 3\r")
        while isinstance(message := terminal.recv(PATIENCE), bytes):
            pass
        assert json.loads(message) == {"type": "exited", "exit_status": 3, "signal": None}


@pytest.mark.night
def test_what_a_client_follows_ends_with_it(start_server, until):
    server = start_server()
    server.new("one", "cat")
    stream = server.events("/v1/sessions/one/events")
    stream.next()
    with unix_connect(server.path, "ws://localhost/v1/sessions/one/terminal") as terminal:
        terminal.recv(PATIENCE)
        until(lambda: _under_way(server) == 2)
    stream.close()
    until(lambda: _under_way(server) == 0)
    assert server.stop() == 0


def test_a_terminal_goes_on_from_any_offset(server):
    server.new("one", "sh", "-c", "seq 1 2000; exec cat")
    server.post("/v1/sessions/one/wait", {"text": "^2000$", "since": "screen"})
    whole = "".join(f"{number}\r\n" for number in range(1, 2001)).encode()
    for offset in (0, 100, 5000):
        with unix_connect(server.path, f"ws://localhost/v1/sessions/one/terminal?since={offset}") as terminal:
            terminal.recv(PATIENCE)
            assert _receive(terminal, b"\r\n2000\r\n") == whole[offset:]


@pytest.mark.night
def test_what_the_journal_does_not_keep_any_more_is_counted(start_server, settings, place, until):
    settings.write_text('[journal]\nlimit = "64k"\n')
    server = start_server()
    printed = 300_000
    made = server.new("one", "sh", "-c", f"head -c {printed} /dev/zero | tr '\\0' x; exec cat", wait=False)
    until(lambda: server.get("/v1/sessions/one").json["cursor"].endswith(f":{printed}"))
    # what is kept: the segments of the journal are named after the offset at which they begin
    first = min(int(found.name[4:]) for found in place.rglob(f"{made['id']}/journal/seg.*"))
    assert first > 1000
    with unix_connect(server.path, "ws://localhost/v1/sessions/one/terminal?since=1000") as terminal:
        terminal.recv(PATIENCE)
        told = json.loads(terminal.recv(PATIENCE))
        data = terminal.recv(PATIENCE)
    assert (told["type"], told["missing_bytes"]) == ("truncated", first - 1000)
    assert told["cursor"].rpartition(":")[2] == str(first + len(data))
    for form in ("text", "raw"):
        stream = server.events(f"/v1/sessions/one/events?since=c1:{made['incarnation']}:1000&format={form}")
        event = stream.next(lambda event: event["event"] == "output")
        assert (event["data"]["truncated"], event["data"]["missing_bytes"]) == (True, first - 1000)
        stream.close()
    read = server.get(f"/v1/sessions/one/read?since=c1:{made['incarnation']}:1000").json
    assert (read["truncated"], read["missing_bytes"]) == (True, first - 1000)
    end = server.get(f"/v1/sessions/one/read?since=c1:{made['incarnation']}:{printed - 10}").json
    assert (end["text"], end["truncated"], end["missing_bytes"]) == ("x" * 10, False, 0)


def _receive(terminal: Any, until: bytes) -> bytes:
    data = b""
    while until not in data:
        message = terminal.recv(PATIENCE)
        data += message if isinstance(message, bytes) else b""
    return data


@pytest.mark.night
def test_no_session_ends_with_the_server_and_the_next_one_goes_on(start_server, until):
    first = start_server()
    first.new("one", "bash", "--norc")
    stream = first.events("/v1/events")
    stream.next()
    assert first.stop() == 0
    stream.await_end()
    assert not os.path.exists(first.path)
    second = start_server()
    assert second.post("/v1/sessions/one/exec", {"command": ["echo still"]}).json["output"] == "still\n"
    second.stop(signal.SIGKILL)
    third = start_server()
    assert third.post("/v1/sessions/one/exec", {"command": ["echo there"]}).json["output"] == "there\n"


def test_a_wait_under_way_ends_when_the_server_is_told_to_stop(start_server, until):
    server = start_server()
    server.new("one", "cat")
    connection = server.connect()
    connection.request("POST", "/v1/sessions/one/wait", json.dumps({"text": "never", "timeout": "none"}))
    until(lambda: _under_way(server) == 1)
    assert server.stop() == 0


@pytest.fixture
def settings(place: Path) -> Path:
    """The file of settings, for a test to write."""
    path = place / ".config/tmuxctl/config.toml"
    path.parent.mkdir(parents=True)
    return path


@pytest.mark.night
def test_what_no_option_says_the_settings_say(start_server, settings):
    settings.write_text('[serve]\nlisten = "127.0.0.1:0"\n')
    server = start_server(listen=False)
    assert server.get("/v1/sessions", tcp=True, token=server.token).status == 200
    assert server.get("/v1/sessions", tcp=True).status == 401
    server.stop()
    # an option wins
    server = start_server("--listen", "unix", listen=False)
    assert (server.port, server.get("/healthz").status) == (0, 200)
    server.stop()
    settings.write_text('[serve]\nlisten = "192.0.2.1:1"\n')
    assert start_server().get("/v1/sessions", tcp=True).status == 401


def test_the_certificate_of_the_settings_is_used(start_server, settings, certificate):
    settings.write_text('[serve]\nlisten = "127.0.0.1:0"\ntls_cert = "~/cert.pem"\ntls_key = "~/key.pem"\n')
    server = start_server(listen=False)
    context = ssl.create_default_context(cafile=str(certificate[0]))
    context.check_hostname = False
    connection = http.client.HTTPSConnection("127.0.0.1", server.port, timeout=PATIENCE, context=context)
    connection.request("GET", "/v1/sessions", headers={"Authorization": f"Bearer {server.token}"})
    assert connection.getresponse().status == 200
    connection.close()


@pytest.fixture
def certificate(place, needs):
    """A certificate and its key, for localhost, from `cert.pem` and `key.pem` of the test's folder."""
    needs("openssl")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run([*words, "-keyout", place / "key.pem", "-out", place / "cert.pem"], check=True, capture_output=True)
    return place / "cert.pem", place / "key.pem"


def test_a_request_without_tls_gets_no_answer_where_tls_is_spoken(start_server, certificate):
    server = start_server("--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]))
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as plain:
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while data := plain.recv(4096):
                answer += data
    assert b"HTTP/" not in answer


@pytest.mark.night
def test_the_unix_socket_speaks_no_tls_whatever_the_address_does(start_server, certificate):
    server = start_server("--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]))
    server.new("one", "sh")
    # the page at the end of an ssh tunnel
    reply = server.post(
        "/v1/sessions/one/send", {"text": "echo m''ark"}, headers={"Host": "box", "Origin": "http://box"}
    )
    assert reply.status == 200
    assert server.get("/v1/sessions", headers={"Host": "box", "Origin": "http://other"}).status == 403
    with unix_connect(server.path, "ws://localhost/v1/sessions/one/terminal?since=0") as terminal:
        _receive(terminal, b"\nmark\r\n")
    assert server.stop() == 0


def _spoil(folder: Path, what: str) -> str:
    """Make the certificate one that cannot be used; what the message says of it."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    if what == "missing":
        cert.unlink()
        return f"{cert}: No such file"
    if what == "a link to nothing":
        key.unlink()
        key.symlink_to(folder / "nothing")
        return f"{key}: No such file"
    if what == "a folder":
        cert.unlink()
        cert.mkdir()
        return f"{cert}: not a regular file"
    if what == "unreadable":
        key.chmod(0)
        return f"{key}: Permission denied"
    if what == "of another":
        words = ["openssl", "genpkey", "-algorithm", "RSA", "-out", str(key)]
        subprocess.run(words, check=True, capture_output=True)
        return f"{key} is not the key of {cert}"
    if what == "with a password":
        words = [
            "openssl",
            "pkey",
            "-in",
            str(key),
            "-aes256",
            "-passout",
            "pass:secret",
            "-out",
            str(folder / "locked.pem"),
        ]
        subprocess.run(words, check=True, capture_output=True)
        (folder / "locked.pem").rename(key)
        return f"{key} has a password"
    if what == "exchanged":
        cert.rename(folder / "other.pem")
        key.rename(cert)
        (folder / "other.pem").rename(key)
        return f"{cert} holds no certificate"
    cert.write_text("-----BEGIN CERTIFICATE-----\nnot base64\n-----END CERTIFICATE-----\n")
    return f"{cert} with {key}: "


SPOILT = (
    "missing",
    "a link to nothing",
    "a folder",
    "unreadable",
    "of another",
    "with a password",
    "exchanged",
    "no base64",
)


@pytest.mark.parametrize("what", SPOILT)
def test_a_certificate_that_cannot_be_used_is_told_before_anything_listens(what, certificate, place, monkeypatch):
    if what == "unreadable" and os.geteuid() == 0:
        pytest.skip("root reads every file")
    runtime = place / "run"
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))
    message = _spoil(place, what)
    words = ["serve", "--tls-cert", str(certificate[0]), "--tls-key", str(certificate[1]), "--listen", "127.0.0.1:0"]
    done = subprocess.run(
        [sys.executable, "-m", "tmuxctl", "--json", *words], capture_output=True, text=True, timeout=PATIENCE
    )
    error = json.loads(done.stderr)["error"]
    assert (done.returncode, error["reason"], done.stdout) == (2, "bad_certificate", "")
    assert error["message"].startswith(message)
    assert re.search(r"ls -ld |openssl |PEM", error["hint"])
    assert not list(runtime.rglob("*.sock"))


WRONG = [
    ('listen = "localhost"', "bad_config", "serve.listen: 'localhost' is not a valid address"),
    ('tls_cert = "cert.pem"', "bad_config", "serve.tls_cert: 'cert.pem' is not a valid file"),
    ('tls_cert = "/etc/cert.pem"', "missing", "TLS needs a certificate and a key"),
    ('listen = "0.0.0.0:0"', "exposed", "could be read on its way"),
]


@pytest.mark.parametrize(("line", "reason", "message"), WRONG)
def test_a_wrong_setting_of_the_server_is_told(settings, line, reason, message):
    settings.write_text(f"[serve]\n{line}\n")
    words = [sys.executable, "-m", "tmuxctl", "--json", "serve"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE)
    error = json.loads(done.stderr)["error"]
    assert error["reason"] == reason
    assert message in error["message"]
    if reason != "exposed":
        assert str(settings) in error["message"] + error["hint"]


def test_a_second_server_says_that_one_listens_already(server, place):
    words = [sys.executable, "-m", "tmuxctl", "serve"]
    second = subprocess.run(words, capture_output=True, text=True)
    assert second.returncode == 4, second.stderr
    assert "listens" in second.stderr


@pytest.mark.night
def test_sockets_of_a_service_manager_are_used(place, until):
    path = str(place / "passed.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as opened:
        opened.bind(path)
        opened.listen(5)
        # what a service manager does (sd_listen_fds(3)): descriptor 3, and the pid of the program itself
        script = (
            "import os, sys; os.dup2(int(sys.argv[1]), 3);"
            "os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS='1'); os.execv(sys.argv[2], sys.argv[2:])"
        )
        serve = [sys.executable, "-m", "tmuxctl", "--json", "serve"]
        words = [sys.executable, "-c", script, str(opened.fileno()), *serve]
        process = subprocess.Popen(words, pass_fds=[opened.fileno()], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert json.loads(process.stdout.readline()) == {"listening": [f"unix:{path}"]}
        connection = UnixConnection(path)
        connection.request("GET", "/healthz")
        assert json.loads(connection.getresponse().read())["status"] == "ok"
        connection.close()
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0
        assert process.stdout
        process.stdout.close()
    assert os.path.exists(path)


@pytest.mark.night
def test_metrics_count_sessions_turns_and_errors(server, until):
    server.new("one", "bash", "--norc")
    server.post("/v1/sessions/one/ask", {"text": "true"})
    server.get("/v1/sessions/none")

    def counted() -> bool:
        text = server.get("/metrics").text
        wanted = (
            'tmuxctl_sessions{state="idle"} 1.0',
            "tmuxctl_turn_seconds_count 1.0",
            'tmuxctl_errors_total{code="not_found"}',
        )
        return all(one in text for one in wanted)

    until(counted)


@pytest.mark.night
def test_the_documentation_loads_nothing_from_elsewhere(server):
    page = server.get("/docs")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "/v1/sessions/{id}/ask" in page.text
    assert "://" not in page.text.replace("http://www.w3.org", "")
    assert set(server.get("/openapi.json").json["paths"]) > {"/v1/sessions", "/v1/events", "/v1/sessions/{id}/screen"}


@pytest.mark.night
def test_every_change_is_in_the_audit_log_without_its_text(server, place):
    server.new("one", "cat")
    server.post("/v1/sessions/one/send", {"text": "hush-hush"})
    server.get("/v1/sessions/one/screen")
    server.post("/v1/sessions/none/send", {"text": "hush-hush"})
    log = (place / "state/tmuxctl/serve/audit.log").read_text()
    rows = [json.loads(line) for line in log.splitlines()]
    assert [(row["operation"], row["session"], row["result"]) for row in rows] == [
        ("new", "one", "done"),
        ("send", "one", "done"),
        ("send", "none", "no_session"),
    ]
    assert all(row["by"] == f"user {os.geteuid()}" for row in rows)
    assert "hush" not in log
