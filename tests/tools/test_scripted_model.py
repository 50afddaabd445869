"""The local model: each dialect gets the scripted answer whole, and the log says what became of each request."""

from __future__ import annotations

import gzip
import http.client
import json
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tools.agents.scripted_model.conversation import Tool, Turn
from tools.agents.scripted_model.events import Text
from tools.agents.scripted_model.script import DIRECTIVES, answer
from tools.agents.scripted_model.server import REQUESTS, Server
from tools.agents.scripted_model.tools import fill, shell_call, write_call

ROOT = Path(__file__).resolve().parents[2]
DIALECTS = ("chat", "responses", "anthropic", "gemini")
PATIENCE = 20.0

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
WORDS = {"type": "object", "properties": {"command": {"type": "array", "items": {"type": "string"}}}}
REMINDER = "<system-reminder>fake:error 500</system-reminder>"


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    serving = threading.Thread(target=made.serve_forever, daemon=True)
    serving.start()
    yield made
    made.shutdown()
    serving.join()
    made.server_close()


class Reply:
    """What a program gets for a request."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        self.status, self.headers, self.body = status, headers, body.decode()

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def events(self) -> list[Any]:
        lines = (line.removeprefix("data: ") for line in self.body.splitlines() if line.startswith("data: "))
        return [json.loads(line) for line in lines if line != "[DONE]"]


def post(server: Server, path: str, body: Any, *, packed: bool = False) -> Reply:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=PATIENCE)
    data = json.dumps(body).encode()
    try:
        if packed:
            connection.request("POST", path, gzip.compress(data), {"Content-Encoding": "gzip"})
        else:
            # in pieces of a length of their own, as programs that stream their requests send it
            connection.request("POST", path, iter([data[:10], data[10:]]), encode_chunked=True)
        answered = connection.getresponse()
        return Reply(answered.status, dict(answered.getheaders()), answered.read())
    finally:
        connection.close()


def ask(
    server: Server, dialect: str, prompt: str, results: Sequence[str] = (), *, tools: bool = False, stream: bool = True
) -> Reply:
    """One request, put as the dialect puts it."""
    if dialect == "chat":
        body = {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": prompt},
                *({"role": "tool", "content": result} for result in results),
            ],
            "tools": [{"type": "function", "function": {"name": "bash", "parameters": COMMAND}}] if tools else [],
            "stream": stream,
        }
        return post(server, "/v1/chat/completions", body)
    if dialect == "responses":
        blocks = [{"type": "input_text", "text": text} for text in (prompt,)]
        body = {
            "input": [
                {"type": "message", "role": "user", "content": blocks},
                *({"type": "function_call_output", "call_id": "x", "output": result} for result in results),
            ],
            "tools": [{"type": "function", "name": "shell", "parameters": WORDS}] if tools else [],
            "stream": stream,
        }
        return post(server, "/v1/responses", body)
    if dialect == "anthropic":
        blocks = [{"type": "text", "text": text} for text in (REMINDER, prompt)]
        told = [{"type": "tool_result", "tool_use_id": "x", "content": result} for result in results]
        body = {
            "messages": [{"role": "user", "content": blocks}, *([{"role": "user", "content": told}] if told else [])],
            "tools": [{"name": "Bash", "input_schema": COMMAND}] if tools else [],
            "stream": stream,
        }
        return post(server, "/v1/messages?beta=true", body)
    responses = [{"functionResponse": {"name": "x", "response": {"output": result}}} for result in results]
    declared = {"name": "run_shell_command", "parametersJsonSchema": COMMAND}
    body = {
        "contents": [
            {"role": "user", "parts": [{"text": prompt}]},
            *([{"role": "user", "parts": responses}] if responses else []),
        ],
        "tools": [{"functionDeclarations": [declared]}] if tools else [],
    }
    return post(server, f"/v1beta/models/m:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}", body)


def text(dialect: str, reply: Reply, *, stream: bool = True) -> str:
    """The text of an answer."""
    if not stream:
        return str(
            {
                "chat": lambda found: found["choices"][0]["message"]["content"],
                "responses": lambda found: found["output"][0]["content"][0]["text"],
                "anthropic": lambda found: found["content"][0]["text"],
                "gemini": lambda found: found["candidates"][0]["content"]["parts"][0]["text"],
            }[dialect](reply.json)
        )
    pieces_of: dict[str, Callable[[Any], list[str]]] = {
        "chat": lambda event: [choice["delta"].get("content", "") for choice in event["choices"]],
        "responses": lambda event: [event["delta"]] if event["type"] == "response.output_text.delta" else [],
        "anthropic": lambda event: [event.get("delta", {}).get("text", "")],
        "gemini": lambda event: [part.get("text", "") for part in event["candidates"][0]["content"]["parts"]],
    }
    return "".join(piece for event in reply.events for piece in pieces_of[dialect](event))


def calls(dialect: str, reply: Reply) -> list[tuple[str, Any]]:
    """The tools that an answer calls, with their arguments."""
    found: list[tuple[str, Any]] = []
    for event in reply.events:
        if dialect == "chat":
            for call in event["choices"][0]["delta"].get("tool_calls", ()):
                if "name" in call["function"]:
                    found.append((call["function"]["name"], ""))
                else:
                    found[-1] = (found[-1][0], json.loads(call["function"]["arguments"]))
        elif dialect == "responses" and event["type"] == "response.completed":
            items = [item for item in event["response"]["output"] if item["type"] == "function_call"]
            found += [(item["name"], json.loads(item["arguments"])) for item in items]
        elif dialect == "anthropic" and event["type"] == "content_block_start":
            found += [(event["content_block"]["name"], "")] if event["content_block"]["type"] == "tool_use" else []
        elif dialect == "anthropic" and "partial_json" in event.get("delta", {}):
            found[-1] = (found[-1][0], json.loads(event["delta"]["partial_json"]))
        elif dialect == "gemini":
            parts = event["candidates"][0]["content"]["parts"]
            found += [(p["functionCall"]["name"], p["functionCall"]["args"]) for p in parts if "functionCall" in p]
    return found


@pytest.mark.night
@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_the_answer_is_the_scripted_text(server: Server, dialect: str, stream: bool) -> None:
    reply = ask(server, dialect, "please fake:echo#a1 héllo 漢字 ✓", stream=stream)
    assert reply.status == 200
    assert text(dialect, reply, stream=stream) == "FAKE-BEGIN:echo#a1\n\nhéllo 漢字 ✓\n\nFAKE-END:echo#a1\n"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_prompt_without_a_directive_is_repeated(server: Server, dialect: str) -> None:
    assert "you said: hi there" in text(dialect, ask(server, dialect, "hi there"))


@pytest.mark.night
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_command_goes_to_the_programs_own_tool_and_its_result_is_told(server: Server, dialect: str) -> None:
    [(name, arguments)] = calls(dialect, ask(server, dialect, "fake:run echo 42", tools=True))
    assert re.match("bash|shell|run_shell_command", name, re.IGNORECASE)
    assert arguments["command"] == (["bash", "-lc", "echo 42"] if dialect == "responses" else "echo 42")
    after = ask(server, dialect, "fake:run echo 42", ["one\nlast line"], tools=True)
    assert "last result has 2 lines, it ends with: last line" in text(dialect, after)


@pytest.mark.night
@pytest.mark.parametrize("dialect", DIALECTS)
def test_reasoning_comes_apart_from_the_answer(server: Server, dialect: str) -> None:
    reply = ask(server, dialect, "fake:think#t 0")
    assert "considering step 10." in reply.body
    said = text(dialect, reply)
    assert said.endswith("FAKE-BEGIN:think#t\n\nafter thinking\n\nFAKE-END:think#t\n")
    assert ("considering" in said) == (dialect == "gemini")


@pytest.mark.night
def test_steps_are_taken_one_after_the_other(server: Server) -> None:
    second = ask(server, "chat", "fake:steps 2", ["a"], tools=True)
    assert calls("chat", second) == [("bash", {"command": "echo step-2"})]
    assert "tool results: 2" in text("chat", ask(server, "chat", "fake:steps 2", ["a", "b"], tools=True))


@pytest.mark.night
def test_calls_are_made_one_after_the_other_and_again_while_a_server_is_connecting(server: Server) -> None:
    prompt = 'fake:calls#c [["bash", {"command": "one"}], ["pty_list", {}]]'
    first = ("bash", {"command": "one"})
    assert calls("chat", ask(server, "chat", prompt, tools=True)) == [first]
    assert calls("chat", ask(server, "chat", prompt, ["ready: false\nStill connecting: x"], tools=True)) == [first]
    assert calls("chat", ask(server, "chat", prompt, ["still connecting", "1"], tools=True)) == [("pty_list", {})]
    assert "it ends with: 2" in text("chat", ask(server, "chat", prompt, ["still connecting", "1", "2"], tools=True))


@pytest.mark.night
def test_a_tool_of_a_namespace_is_called_with_its_name(server: Server) -> None:
    tool = {"type": "function", "name": "pty_list", "parameters": {}}
    tools = [{"type": "namespace", "name": "mcp__tmuxctl", "tools": [tool]}]
    reply = post(server, "/v1/responses", {"input": "fake:tool pty_list {}", "tools": tools})
    [call] = reply.json["output"]
    assert (call["name"], call["namespace"]) == ("pty_list", "mcp__tmuxctl")


@pytest.mark.night
def test_what_a_program_says_of_loaded_tools_is_no_prompt(server: Server) -> None:
    loaded = [{"type": "tool_result", "content": []}, {"type": "text", "text": "Tool loaded."}]
    messages = [{"role": "user", "content": "fake:run id"}, {"role": "user", "content": loaded}]
    post(server, "/v1/messages", {"messages": messages})
    assert [(entry["user"], entry["results"]) for entry in log(server)] == [("fake:run id", [""])]


@pytest.mark.night
@pytest.mark.parametrize("dialect", DIALECTS)
def test_errors_fail_every_attempt_and_flaky_ones_the_first(server: Server, dialect: str) -> None:
    refused = ask(server, dialect, "fake:error 429 7")
    assert (refused.status, refused.headers["retry-after"]) == (429, "7")
    assert "asked for a 429" in refused.body
    assert ask(server, dialect, "fake:flaky 500 1").status == 500
    assert "succeeded at attempt 2" in text(dialect, ask(server, dialect, "fake:flaky 500 1"))


@pytest.mark.night
def test_a_structured_answer_fits_its_schema(server: Server) -> None:
    schema = {"type": "OBJECT", "properties": {"next": {"enum": ["user", "model"]}}, "required": ["next"]}
    config = {"responseMimeType": "application/json", "responseJsonSchema": schema}
    body = {"contents": [{"role": "user", "parts": [{"text": "fake:error 500"}]}], "generationConfig": config}
    reply = post(server, "/v1beta/models/m:generateContent", body)
    assert json.loads(text("gemini", reply, stream=False)) == {"next": "user"}


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "array", "minItems": 2, "items": {"type": "integer", "minimum": 3}}, [3, 3]),
        ({"anyOf": [{"type": "boolean"}, {"type": "string"}]}, False),
        ({"type": ["number", "null"]}, 0),
        ({"const": 1}, 1),
        ({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}, "required": ["b"]}, {"b": "fake b"}),
    ],
)
def test_a_schema_is_filled_with_the_least_value(schema: Any, value: Any) -> None:
    assert fill(schema) == value


def test_a_file_is_written_by_whatever_the_program_offers() -> None:
    patch = write_call(Turn("", tools=(Tool("apply_patch", custom=True),)), "a.txt", "one\ntwo\n")
    assert patch
    assert patch.arguments == "*** Begin Patch\n*** Add File: a.txt\n+one\n+two\n*** End Patch\n"
    properties = {"file_path": {"type": "string"}, "content": {"type": "string"}}
    written = write_call(Turn("", tools=(Tool("Write", {"properties": properties}),)), "a.txt", "it's\n")
    assert written
    assert written.arguments == {"file_path": "a.txt", "content": "it's\n"}
    through_shell = write_call(Turn("", tools=(Tool("bash", COMMAND),)), "a.txt", "it's\n")
    assert through_shell
    done = subprocess.run(
        ["sh", "-c", through_shell.arguments["command"].replace("> a.txt", "")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "it's\n"
    assert write_call(Turn("aider"), "a.txt", "x") is None


def test_a_command_that_leaves_the_sandbox_says_so_where_the_tool_has_words_for_it() -> None:
    properties = {**COMMAND["properties"], "with_escalated_permissions": {"type": "boolean"}}  # type: ignore[dict-item]
    turn = Turn("", tools=(Tool("shell", {"type": "object", "properties": properties}),))
    escalated, plain = shell_call(turn, "id", escalated=True), shell_call(turn, "id")
    assert escalated
    assert plain
    assert (escalated.arguments, plain.arguments) == (
        {"command": "id", "with_escalated_permissions": True},
        {"command": "id"},
    )


def test_every_directive_of_the_page_is_there_and_every_other_one_is_told() -> None:
    page = (ROOT / "tools/agents/scripted_model/README.md").read_text()
    assert set(re.findall(r"^\| `fake:(\w+)", page, re.MULTILINE)) == DIRECTIVES.keys()
    found = answer(Turn("", user="fake:nothing"), lambda _: 1)
    assert "unknown directive nothing" in "".join(event.text for event in found.events if isinstance(event, Text))


@pytest.mark.night
def test_the_log_tells_what_was_submitted(server: Server) -> None:
    prompt = "one\nfake:echo#x 1"
    post(server, "/v1/messages", {"messages": [{"role": "user", "content": prompt}]}, packed=True)
    [entry] = ended_log(server)
    told = {"user": prompt, "user_length": len(prompt), "behaviour": "echo", "outcome": "done", "dialect": "anthropic"}
    assert told.items() <= entry.items()
    assert entry["seconds"] >= 0


@pytest.mark.night
def test_a_connection_that_the_script_cuts_is_told_from_one_that_the_program_left(server: Server) -> None:
    with pytest.raises(http.client.IncompleteRead):
        ask(server, "chat", "fake:drop#d1")
    body = json.dumps({"stream": True, "messages": [{"role": "user", "content": "fake:silent#s1 600"}]})
    address = ("127.0.0.1", server.server_address[1])
    with socket.create_connection(address) as connection:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
        connection.sendall((head + body).encode())
        assert connection.recv(1) == b"H", "the headers of an answer come before its silence"
    assert outcomes(server) == {"fake:drop#d1": "dropped by the server", "fake:silent#s1 600": "aborted by the client"}


def outcomes(server: Server) -> dict[str, str]:
    """What became of each prompt."""
    return {entry["user"]: entry["outcome"] for entry in ended_log(server)}


def ended_log(server: Server) -> list[dict[str, Any]]:
    """The log when every request is over: a program has its answer a moment before the server knows that."""
    waiting = threading.Event()
    for _ in range(int(PATIENCE / 0.05)):
        if all("seconds" in entry for entry in log(server)):
            break
        waiting.wait(0.05)
    return log(server)


def log(server: Server) -> list[dict[str, Any]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_address[1], timeout=PATIENCE)
    connection.request("GET", REQUESTS)
    found: list[dict[str, Any]] = json.load(connection.getresponse())
    connection.close()
    return found


@pytest.mark.night
def test_what_no_program_should_ask_is_in_the_log_too(server: Server) -> None:
    assert post(server, "/v1/embeddings", {}).status == 404
    assert [(entry["method"], entry["path"]) for entry in log(server)] == [("POST", "/v1/embeddings")]


def test_it_serves_as_a_process_that_says_its_port(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    words = [sys.executable, "-m", "tools.agents.scripted_model", "--port-file", str(port_file)]
    process = subprocess.Popen(words, cwd=ROOT)
    try:
        waiting = threading.Event()
        for _ in range(int(PATIENCE / 0.05)):
            if port_file.exists() and port_file.read_text().endswith("\n"):
                break
            waiting.wait(0.05)
        connection = http.client.HTTPConnection("127.0.0.1", int(port_file.read_text()), timeout=PATIENCE)
        connection.request("GET", "/v1/models")
        assert json.load(connection.getresponse())["data"][0]["id"] == "fake"
        connection.close()
    finally:
        process.terminate()
        process.wait()
