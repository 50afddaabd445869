"""HTML that the server writes itself: the frame of such a page, and texts of programs in it, which are never markup."""

from __future__ import annotations

from tmuxctl.terminal.picture.render import escape_markup

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        # xterm.js makes elements of style, and styles of elements, while it runs
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "worker-src 'self'",
        "font-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        # no text becomes a script by mistake; one policy of our own makes the address of the service worker
        "require-trusted-types-for 'script'",
        "trusted-types tmuxctl",
    )
)
"""The Content-Security-Policy of every page."""

HEADERS = {
    "content-security-policy": POLICY,
    # a form that is sent under `no-referrer` has the Origin `null` (Fetch, "append a request Origin header")
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""The headers of every page."""

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; --line: #8884; --accent: #0b57c2; --alarm: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --accent: #8ab4ff; --alarm: #ff8a80; } }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; }
.narrow { max-width: 24rem; margin: 10vh auto; }
h1 { font-size: 1.25rem; margin: 0 0 .75rem; }
h2 { font-size: 1rem; margin: 1.25rem 0 .25rem; }
a { color: var(--accent); }
code, pre, .mono { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }
table { border-collapse: collapse; width: 100%; }
th { text-align: left; font-weight: 600; white-space: nowrap; }
td, th { border-bottom: 1px solid var(--line); padding: .4rem .75rem .4rem 0; vertical-align: top; overflow-wrap: anywhere; }
.quiet { opacity: .75; }
.error, .needs { color: var(--alarm); font-weight: 600; }
.question { white-space: pre-line; }
form { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; margin: .5rem 0; }
input { font: inherit; padding: .5rem; min-width: 0; flex: 1 1 12rem; }
button { font: inherit; padding: .5rem .9rem; min-height: 2.75rem; }
.screen { overflow: auto; border: 1px solid var(--line); border-radius: .4rem; padding: .5rem; background: #1e1e1e; color: #d4d4d4;
  color-scheme: dark; }
.screen pre { margin: 0; line-height: 1.2; font-variant-ligatures: none; direction: ltr; }
i.c { display: inline-block; font-style: inherit; overflow: hidden; vertical-align: bottom; height: 1.2em; }
nav { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; margin: .5rem 0; }
nav form { margin: 0; }
@media (max-width: 40rem) {
  th { display: none; }
  table, tbody, tr, td { display: block; }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
  td { padding: .1rem 0; border: 0; }
}
"""


def write_page(title: str, body: str, *, refresh: int = 0) -> str:
    """A whole page. `body` is markup, `title` text; it is loaded again every `refresh` seconds, unless that is 0."""
    again = f'\n<meta http-equiv="refresh" content="{refresh}">' if refresh else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">{again}
<title>{escape_text(title)}</title>
<link rel="icon" href="/favicon.svg">
<style>{STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def escape_text(text: str) -> str:
    """A text as markup that shows it: nothing of it is markup, and nothing turns the direction of what stands beside it."""
    return escape_markup(text)
