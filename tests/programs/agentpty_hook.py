"""A hook script as AgentPTY describes its own: it puts AGENTPTY_SESSION_ID into what a hook of Claude Code is given, and posts
that to AGENTPTY_HOOK_URL. AGENTPTY_HOOK_EVENT names the event."""

from __future__ import annotations

import json
import os
import sys
import urllib.request

event = os.environ.get("AGENTPTY_HOOK_EVENT", "stop")
url = os.environ.get("AGENTPTY_HOOK_URL", f"http://127.0.0.1:8765/hooks/claude-{event}")
payload = json.load(sys.stdin) | {"agentpty_session_id": os.environ.get("AGENTPTY_SESSION_ID", "")}
request = urllib.request.Request(url, json.dumps(payload).encode(), {"Content-Type": "application/json"})
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).read()
