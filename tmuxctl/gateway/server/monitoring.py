"""What the server tells of itself at its monitoring port, which is on loopback alone."""

from __future__ import annotations

import http.client
from typing import Any

from tmuxctl.errors import Unreachable
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.untrusted import parse_json

ANSWER_LIMIT = 16 << 20


def ask_server(port: int, path: str, timing: GatewayTiming = TIMING.gateway) -> dict[str, Any]:
    """The object at a path of the monitoring port, as `/varz` (NATS documentation, "Monitoring"). Unreachable `no_monitoring`
    where nothing answers, or anything else does."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timing.probe_seconds)
    try:
        connection.request("GET", path)
        found = parse_json(connection.getresponse().read(ANSWER_LIMIT), limit=ANSWER_LIMIT)
        if not isinstance(found, dict):
            raise ValueError
    except (OSError, http.client.HTTPException, ValueError):
        raise Unreachable(
            f"nothing answers at the monitoring port, 127.0.0.1:{port}",
            reason="no_monitoring",
            hint="is it running? tmuxctl gateway doctor",
        ) from None
    finally:
        connection.close()
    return found
