"""Server-sent events, the form in which all dialects stream."""

from __future__ import annotations

import json
from typing import Any


def sse(value: Any, event: str = "") -> str:
    """One event, with its name where the dialect names them."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {value if isinstance(value, str) else to_json(value)}\n\n"


def to_json(value: Any) -> str:
    """JSON as a model's server writes it, with every character as it is."""
    return json.dumps(value, ensure_ascii=False)
