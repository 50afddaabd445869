"""A door to a machine that lies: what sh answers there goes through it, and comes out otherwise.

    python lying_door.py RULES SHELL..

SHELL is the command that runs the true sh. RULES is a file with a list of rules as JSON, each `[pattern, lie]`: the answer
to a script in which the pattern is found is replaced by the lie, an object with any of `output`, `complaint` (text; a
surrogate stands for a byte), `status`, `replace` (pairs of a pattern and what takes its place in
the output), and `raw`, which is sent instead of the whole answer. In a text `$OUTPUT` is the true output, and in `raw` `$NONCE`
the word of the answer. `endless`: it is sent again and again.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any, BinaryIO

CALL = re.compile(rb"reply(?:_from_files)? ([0-9a-f]{24}) \$status \d+ </dev/null\n")
ANSWER = re.compile(rb"\n([0-9a-f]{24})<\n(.*?)\n\1 (\d+)\n(.*?)\n\1>\n", re.DOTALL)


def main(rules: list[tuple[str, dict[str, Any]]], command: list[str]) -> None:
    shell = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert shell.stdin
    assert shell.stdout
    scripts: dict[bytes, str] = {}
    threading.Thread(target=pass_up, args=(shell.stdout, rules, scripts), daemon=True).start()
    kept = b""
    while data := os.read(0, 1 << 16):
        kept += data
        while found := CALL.search(kept):
            scripts[found[1]] = kept[: found.end()].decode(errors="surrogateescape")
            kept = kept[found.end() :]
        shell.stdin.write(data)
        shell.stdin.flush()
    shell.stdin.close()
    shell.wait()


def pass_up(answers: BinaryIO, rules: list[tuple[str, dict[str, Any]]], scripts: dict[bytes, str]) -> None:
    kept = b""
    while data := os.read(answers.fileno(), 1 << 16):
        kept += data
        while kept.endswith(b">\n") and (found := ANSWER.search(kept)):
            kept = kept[found.end() :]
            script = scripts.pop(found[1], "")
            lie = next((lie for pattern, lie in rules if re.search(pattern, script, re.DOTALL)), {})
            answer(found[1], int(found[3]), found[2], found[4], lie)


def answer(nonce: bytes, status: int, output: bytes, complaint: bytes, lie: dict[str, Any]) -> None:
    def fill(text: str) -> bytes:
        return text.encode(errors="surrogateescape").replace(b"$OUTPUT", output).replace(b"$NONCE", nonce)

    if "raw" in lie:
        data = fill(lie["raw"])
    else:
        for old, new in lie.get("replace", ()):
            output = re.sub(old.encode(), new.encode(errors="surrogateescape"), output)
        said = fill(lie["output"]) if "output" in lie else output
        told = fill(lie["complaint"]) if "complaint" in lie else complaint
        ended = str(lie.get("status", status)).encode()
        data = b"\n%b<\n%b\n%b %b\n%b\n%b>\n" % (nonce, said, nonce, ended, told, nonce)
    while True:
        view = memoryview(data)
        while view:
            view = view[os.write(1, view) :]
        if not lie.get("endless"):
            return


if __name__ == "__main__":
    main(json.loads(Path(sys.argv[1]).read_text()), sys.argv[2:])
