"""Signing in and out with a browser: the form for a one-time code, and what becomes of it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse

from tmuxctl.access import CallerAccess
from tmuxctl.errors import TmuxctlError, Usage
from tmuxctl.surfaces.server.admission import logins
from tmuxctl.surfaces.server.app import Served, access_of
from tmuxctl.surfaces.server.routes import parse_body
from tmuxctl.surfaces.web.markup import HEADERS, escape_text, write_page

if TYPE_CHECKING:
    from collections.abc import Mapping

FORM_TYPE = "application/x-www-form-urlencoded"
FORM_FIELDS = 100

SCRIPT = """// Takes the code behind the # of the address, which no server is sent, and leaves where one has signed in already.
const code = decodeURIComponent(location.hash.slice(1));
const form = document.querySelector("form");
history.replaceState(null, "", location.pathname);
if (code && form) {
  form.elements.code.value = code;
  form.submit();
} else if (!document.querySelector("[role=alert]")) {
  fetch("/page/me").then((answer) => answer.ok && location.replace("/"), () => {});
}
"""
"""`/login.js`. A link from another site comes without the cookie (SameSite), and so leads here though one has signed in."""


def add_signing(app: FastAPI, served: Served) -> None:
    """The routes by which a browser signs in and out."""

    @app.get("/login", include_in_schema=False)
    async def show_login(request: Request) -> Response:
        _refuse_query(request)
        return _write_form(None, 200)

    @app.get("/login.js", include_in_schema=False)
    async def script() -> Response:
        return Response(SCRIPT, media_type="text/javascript; charset=utf-8", headers={"cache-control": "no-cache"})

    @app.post("/login", include_in_schema=False)
    async def sign_in(request: Request) -> Response:
        _refuse_query(request)
        fields = await read_fields(request)
        files = served.rules.logins
        if files is None:
            return leave_for("/")
        try:
            text = await served.calls.in_thread(partial(files.redeem, str(fields.get("code", ""))))
        except TmuxctlError as error:
            served.audit.note(_stranger(request), _request_id(request), "login", None, error.reason)
            if _is_form(request):
                return _write_form(error, error.http_status)
            raise
        found = files.find([text])
        access = CallerAccess(found[1].name, remote=True) if found else _stranger(request)
        served.audit.note(access, _request_id(request), "login", None, "done")
        answer = leave_for("/")
        answer.headers["set-cookie"] = logins.write_cookie(text, served.rules.encrypted)
        return answer

    @app.post("/logout", include_in_schema=False)
    async def sign_out(request: Request) -> Response:
        access = access_of(request)
        if access.login and served.rules.logins:
            await served.calls.in_thread(partial(served.rules.logins.forget, access.login))
            served.audit.note(access, _request_id(request), "logout", None, "done")
        answer = leave_for("/login")
        answer.headers["set-cookie"] = logins.write_cookie("", served.rules.encrypted)
        return answer


def leave_for(path: str) -> Response:
    """Send a browser on to another page, with GET (RFC 9110, 15.4.4)."""
    return Response(status_code=303, headers={"location": path, "cache-control": "no-store"})


async def read_fields(request: Request) -> Mapping[str, object]:
    """The fields of a form, or of a JSON object. Usage for anything else."""
    if not _is_form(request):
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            # a page of another site could send any other type without asking first
            raise Usage("send a form or a JSON object", reason="bad_type", hint="Content-Type: application/json")
        return parse_body(await request.body(), kind)
    try:
        pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, max_num_fields=FORM_FIELDS)
    except ValueError:
        raise Usage("the form cannot be read", reason="bad_form", hint="send UTF-8") from None
    return dict(pairs)


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == FORM_TYPE


def _refuse_query(request: Request) -> None:
    """Addresses are written down in histories and logs: a code is in none."""
    if request.url.query:
        hint = "type the code into the form, or open the link that tmuxctl token login prints"
        raise Usage("nothing belongs into the address of this page", reason="bad_parameter", hint=hint)


def _stranger(request: Request) -> CallerAccess:
    return CallerAccess(rights=(), remote=access_of(request).remote)


def _request_id(request: Request) -> str:
    found: str = request.scope["tmuxctl.request"]
    return found


def _write_form(error: TmuxctlError | None, status: int) -> Response:
    told = f'<p role="alert" class="error">{escape_text(error.message)}.</p>' if error else ""
    body = f"""<main class="narrow">
<h1>tmuxctl</h1>
<p>Make a code on the server's machine: <code>tmuxctl token login</code>. It holds once, for ten minutes.</p>
{told}
<form method="post" action="/login">
<label for="code">Code</label>
<input id="code" name="code" autocomplete="one-time-code" autocapitalize="characters" spellcheck="false" required autofocus>
<button>Sign in</button>
</form>
</main>
<script src="/login.js"></script>"""
    return HTMLResponse(write_page("Sign in", body), status, headers=HEADERS)
