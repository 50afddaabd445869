"""The page `/docs`: every route, made from the OpenAPI document; it loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
code, .path { font-family: ui-monospace, monospace; font-size: 0.95em; }
details { border-top: 1px solid #8884; padding: 0.5rem 0; }
summary { cursor: pointer; display: grid; grid-template-columns: 5rem 1fr; gap: 0.5rem; }
summary .about { grid-column: 2; opacity: 0.75; }
.method { font-weight: 600; }
td { padding: 0.15rem 1rem 0.15rem 0; vertical-align: top; }
p { white-space: pre-line; }
"""

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""The page's Content-Security-Policy."""


def write_page(document: Mapping[str, Any]) -> str:
    """The page of an OpenAPI document."""
    rows = "\n".join(_list_routes(document))
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>tmuxctl: the HTTP interface</title>
<style>{STYLE}</style>
</head>
<body>
<h1>tmuxctl {escape(document["info"]["version"])}: the HTTP interface</h1>
<p>JSON in and out. A failure is an object <code>{{"error": ...}}</code>. On TCP send the header
<code>Authorization: Bearer TOKEN</code>. The same as a document: <a href="openapi.json">openapi.json</a>.</p>
{rows}
</body>
</html>
"""


def _list_routes(document: Mapping[str, Any]) -> Iterator[str]:
    for path, methods in document["paths"].items():
        for method, about in methods.items():
            lines = [
                f'<details id="{escape(about.get("operationId", ""))}"><summary>'
                f'<span class="method">{escape(method.upper())}</span><span class="path">{escape(path)}</span>'
                f'<span class="about">{escape(about.get("summary", ""))}</span></summary>'
            ]
            if about.get("description"):
                lines.append(f"<p>{escape(about['description'])}</p>")
            lines.append("<table>")
            lines += [
                _row(one["name"], one["schema"], one.get("description", "")) for one in about.get("parameters", ())
            ]
            content = about.get("requestBody", {}).get("content", {}).get("application/json", {})
            body = content.get("schema", {}).get("properties", {})
            lines += [_row(name, schema, schema.get("description", "")) for name, schema in body.items()]
            yield "\n".join([*lines, "</table></details>"])


def _row(name: str, schema: Mapping[str, Any], about: str) -> str:
    kind = schema.get("enum") or schema.get("type", "")
    words = " or ".join(str(one) for one in kind) if isinstance(kind, list) else str(kind)
    return f"<tr><td><code>{escape(name)}</code></td><td>{escape(words)}</td><td>{escape(about)}</td></tr>"
