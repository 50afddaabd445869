"""Judges the log of a run: `python -m tools.chaos.judge LOG` prints what must not be, a line each, and ends with 1
if there is anything.

An action is told `done`, and happened once; or an error that says it did not, and it did not; or `outcome_unknown`, and its id
settled which. It ends within its own timeout and `MARGIN`. What an ended or lost session had not read yet may be missing,
but nothing before what it had read.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tools.chaos.schedule import read_log

MARGIN = 75.0
"""Seconds that an action may take beyond its own timeout: a minute for a machine that is away, and what the fault itself takes."""

Row = dict[str, Any]


def judge(rows: list[Row]) -> list[str]:
    """What in a log must not be."""
    return [*_judge_actions(rows), *_judge_texts(rows), *_judge_streams(rows), *_judge_end(rows)]


def _judge_actions(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        if row["row"] == "action":
            what = f"{row['worker']} {row['kind']} {row['number']} at {row['at']}"
            if row["outcome"] == "untyped":
                yield f"untyped: {what}: {row['said']}"
            if row["outcome"] == "unsettled":
                yield f"unsettled: {what}: {row['said']}"
            if row["outcome"] == "wrong":
                yield f"wrong: {what}: {row['said']}"
            if row["outcome"] == "hang" or row["seconds"] > row["timeout"] + MARGIN:
                yield f"hang: {what}: {row['seconds']} s"


def _judge_texts(rows: list[Row]) -> Iterator[str]:
    """What each session took, against what was told of each text that it was given."""
    taken: dict[str, list[str]] = {one["session"]: one["texts"] for one in rows if one["row"] == "taken"}
    for session, texts in taken.items():
        told = [one for one in rows if one["row"] == "text" and one["session"] == session]
        known = {one["text"] for one in told}
        counts = Counter(texts)
        for text, count in counts.items():
            if count > 1:
                yield f"doubled: {session} took {text!r} {count} times"
            if text not in known:
                yield f"altered: {session} took {text!r}, which it was never given"
        places = {text: place for place, text in enumerate(texts)}
        for number, one in enumerate(told):
            if one["outcome"] == "not_done" and one["text"] in counts:
                yield f"untrue: {session} took {one['text']!r}, which was told as not done: {one['said']}"
            if (
                one["outcome"] == "done"
                and one["text"] not in counts
                and not _died_before_reading(told, number, places)
            ):
                yield f"lost: {session} never took {one['text']!r}, which was told as done"
        order = [places[one["text"]] for one in told if one["text"] in places]
        if order != sorted(order):
            yield f"order: {session} took texts in another order than they were given"


def _died_before_reading(told: list[Row], number: int, places: dict[str, int]) -> bool:
    """True if the program ended after this text was given, and had read none that was given after it."""
    for one in told[number + 1 :]:
        if one["outcome"] in ("died", "renewed"):
            return True
        if one["text"] in places:
            return False
    return False


def _judge_streams(rows: list[Row]) -> Iterator[str]:
    for row in rows:
        if row["row"] == "stream":
            printed, pieces = row["printed"], row["pieces"]
            place = 0
            for piece in pieces:
                if piece["gap"]:
                    found = printed.find(piece["text"], place)
                    if found < 0:
                        yield f"stream: {row['session']} after a gap reads {piece['text'][:80]!r}, which was not printed"
                        break
                    place = found
                elif not printed.startswith(piece["text"], place):
                    yield f"stream: {row['session']} at {place} reads {piece['text'][:80]!r}, not {printed[place : place + 80]!r}"
                    break
                place += len(piece["text"])
            else:
                if row["whole"] and place != len(printed):
                    yield f"stream: {row['session']} ends at {place} of {len(printed)}, and no gap was told"


def _judge_end(rows: list[Row]) -> Iterator[str]:
    if not any(one["row"] == "end" for one in rows):
        yield "end: the run did not come to its end"
    for row in rows:
        if row["row"] == "leftover":
            yield f"leftover: {row['what']}"
        if row["row"] == "end":
            yield from (f"unhealed: {one}" for one in row["unhealed"])


def main() -> int:
    """Judge the log that the command line names."""
    rows = read_log(Path(sys.argv[1]))
    found = judge(rows)
    for line in found:
        print(line)
    counts = Counter(f"{one['kind']} {one['outcome']}" for one in rows if one["row"] == "action")
    faults = Counter(one["kind"] for one in rows if one["row"] == "fault")
    print("actions:", ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items())))
    print("faults:", ", ".join(f"{count} {kind}" for kind, count in sorted(faults.items())))
    print(f"{len(found)} violations")
    return int(bool(found))


if __name__ == "__main__":
    raise SystemExit(main())
