"""The commands with which AgentPTY's page shows its API, as they are written there."""

from __future__ import annotations

ASK_FIRST = r"""
curl -s -X POST http://127.0.0.1:8765/ask \
  -H "Content-Type: application/json" \
  -d '{"message":"Say hello in one sentence.","timeout":120}'
"""

ASK_AGAIN = r"""
curl -s -X POST http://127.0.0.1:8765/ask \
  -H "Content-Type: application/json" \
  -d '{"session_id":"c6e5...","message":"Now make it shorter.","timeout":120}'
"""

ASK_WITH_COMMAND = r"""
curl -s -X POST http://127.0.0.1:8765/ask \
  -H "Content-Type: application/json" \
  -d '{
    "session_id": "sonnet-demo",
    "message": "Say hello in one sentence.",
    "timeout": 120,
    "command": ["claude", "--model", "sonnet"]
  }'
"""

START = r"""
curl -s -X POST http://127.0.0.1:8765/sessions \
  -H "Content-Type: application/json" \
  -d '{"session_id":"demo"}'
"""

ASK_NAMED = r"""
curl -s -X POST http://127.0.0.1:8765/sessions/demo/ask \
  -H "Content-Type: application/json" \
  -d '{"message":"What directory are you in?","timeout":120}'
"""

START_WITH_COMMAND = r"""
curl -s -X POST http://127.0.0.1:8765/sessions \
  -H "Content-Type: application/json" \
  -d '{
    "session_id": "sonnet-demo",
    "command": ["claude", "--model", "sonnet"]
  }'
"""

START_DARING = r"""
curl -s -X POST http://127.0.0.1:8765/sessions \
  -H "Content-Type: application/json" \
  -d '{
    "session_id": "local-automation",
    "command": ["claude", "--model", "sonnet", "--dangerously-skip-permissions"]
  }'
"""

LIST = "curl -s http://127.0.0.1:8765/sessions"
SHOW = "curl -s http://127.0.0.1:8765/sessions/demo"
DEBUG = "curl -s http://127.0.0.1:8765/sessions/demo/debug"
DELETE = "curl -s -X DELETE http://127.0.0.1:8765/sessions/demo"
