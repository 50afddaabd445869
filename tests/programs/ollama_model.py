"""A model behind ollama's API, of which a test says what it answers: `ollama_model.py PORT`.

The last message's first words say how: `slow` word by word, `silent` after a while, `think` with a thought before, `long` in
forty lines, `fail` with an error; else it says what it was told. What it was told stands in the answer, whole.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAUSE = 2.0
"""Seconds of silence, and of an answer that is slow."""


def pieces(text: str) -> Iterator[dict[str, str]]:
    """What is streamed for a message."""
    how, said = text.split()[0], f"I was told: {text}"
    if how == "silent":
        time.sleep(PAUSE)
    if how == "think":
        yield {"thinking": "It wants to be told. "}
        time.sleep(PAUSE)
        yield {"thinking": "So be it."}
    if how == "long":
        said = "\n".join(f"{number} of 40" for number in range(1, 41))
    for word in said.split(" "):
        yield {"content": word if word is said else word + " "}
        time.sleep(PAUSE / 10 if how == "slow" else 0)


class Model(BaseHTTPRequestHandler):
    """Answers what is posted."""

    def do_POST(self) -> None:
        """Answer the last message."""
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = told["messages"][-1]["content"]
        fails = text.startswith("fail")
        self.send_response(500 if fails else 200)
        self.end_headers()
        if fails:
            self.wfile.write(json.dumps({"error": f"model {told['model']!r} fails"}).encode())
            return
        for one in pieces(text):
            message = {"role": "assistant", "content": "", **one}
            self.wfile.write(json.dumps({"message": message, "done": False}).encode() + b"\n")
        self.wfile.write(b'{"message": {"role": "assistant", "content": ""}, "done": true}\n')

    def log_message(self, *_: object) -> None:
        """Say nothing."""


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()
