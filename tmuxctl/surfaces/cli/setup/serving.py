"""The headless server as a command, and the tokens of those who call it over TCP; `tmuxctl.surfaces.server` is the server."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated

from tmuxctl import config
from tmuxctl.errors import Failed, TmuxctlError, Usage
from tmuxctl.model import parse_address
from tmuxctl.operations import RIGHTS, FileName, FolderName, ValueKind, operation, set_up
from tmuxctl.surfaces.cli.commands.own_command import find_tmuxctl
from tmuxctl.surfaces.cli.commands.services import CommandLineOperations, load_gateway, read_host_credentials
from tmuxctl.surfaces.cli.printing.output import flat, note, shown, tell, write
from tmuxctl.surfaces.cli.setup.managers import notify_manager
from tmuxctl.timing import TIMING
from tmuxctl.value import changed

if TYPE_CHECKING:
    from tmuxctl.access import CallerAccess
    from tmuxctl.control import Control
    from tmuxctl.gateway.credentials import Credentials
    from tmuxctl.gateway.events.recording import EventRecorder
    from tmuxctl.results import LoginLink, TokenMade, TokenRevoked, TokensKept
    from tmuxctl.surfaces.server.admission.tokens import TokenFiles
    from tmuxctl.surfaces.server.app import Served
    from tmuxctl.surfaces.server.logs import AuditLog
    from tmuxctl.surfaces.server.serve import ServeOptions
    from tmuxctl.surfaces.server.streams.hub import Change

COMMAND_SERVER = "tmuxctl.surfaces.cli.command_server.server"
"""What a process runs that carries out quick commands; it stands above all of them."""

EXTRA = ("fastapi", "starlette", "uvicorn", "websockets", "prometheus_client", "anyio", "pydantic", "python_multipart")

AddressText = Annotated[
    str, ValueKind("address", {"type": "string"}, lambda value: value if isinstance(value, str) else _refuse(value))
]
SessionText = Annotated[
    str, ValueKind("name", {"type": "string"}, lambda value: value if isinstance(value, str) else _refuse(value))
]
Words = Annotated[
    tuple[str, ...],
    ValueKind("text", {"type": "array", "items": {"type": "string"}}, lambda value: tuple(value)),
]


def _refuse(value: object) -> str:
    raise Usage(f"{ascii(value)[:40]} is not text", reason="bad_type")


def _not_installed(error: ModuleNotFoundError) -> Exception:
    """The error for a server that is not installed; the same error for any other module that is missing."""
    name = error.name or ""
    if name.partition(".")[0] not in EXTRA and not name.startswith(
        ("tmuxctl.surfaces.server", "tmuxctl.surfaces.adapters", "tmuxctl.surfaces.web")
    ):
        return error
    hint = "install the extra: pip install 'tmux-control-plane[server]'"
    return Failed("the HTTP server is not installed", reason="no_server_extra", hint=hint)


def _token_files() -> TokenFiles:
    try:
        from tmuxctl.surfaces.server.admission.tokens import TokenFiles
    except ModuleNotFoundError as error:
        # the one-file form has no server
        raise _not_installed(error) from None
    return TokenFiles()


def start_command_server() -> subprocess.Popen[bytes]:
    """Start a server of commands. It ends when the pipe that is its standard input is closed, and so with this process."""
    # Python's own options decide how it works, and who calls must have the same
    options = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # noqa: SLF001
    return subprocess.Popen(
        [sys.executable, *options, "-m", COMMAND_SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _collect_garbage_as_it_comes() -> None:
    """Commands collect garbage seldom, as they end soon. A server goes on for weeks: it grew by 0.7 MB a minute, the page open
    on 40 sessions of which 20 printed (measured). What is loaded by now stays, and is not looked through again."""
    import gc

    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 5, 5)


@contextmanager
def _serving_commands() -> Iterator[None]:
    """Have quick commands carried out by a process that is ready, while this holds; where there is none they run as ever."""
    started = start_command_server()
    try:
        yield
    finally:
        assert started.stdin
        # it ends with the pipe; a command under way goes on
        started.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            started.wait(TIMING.http.stop_seconds)


class ServeOperations(CommandLineOperations):
    """Operations of the HTTP server."""

    @operation(
        right="kill",
        group="Set up",
        examples=(
            "serve",
            "serve --listen 127.0.0.1:8766",
            "serve --show-token",
            "serve --on-event 'tee -a events'",
            "serve --agentapi fix --listen 127.0.0.1:8767",
            "serve --daemon-socket ~/pty.sock --default-shell bash",
            "serve --gateway host.json",
        ),
    )
    def serve(
        self,
        *,
        listen: Annotated[
            AddressText | None, "listen at this address too: HOST:PORT; unix: at none (default: serve.listen)"
        ] = None,
        show_token: Annotated[bool, "print the first token, and do nothing else"] = False,
        no_token: Annotated[bool, "let every user of this machine call it; refused for any other address"] = False,
        tls_cert: Annotated[FileName | None, "the certificate (PEM) for TLS (default: serve.tls_cert)"] = None,
        tls_key: Annotated[FileName | None, "its key (PEM; default: serve.tls_key)"] = None,
        insecure: Annotated[bool, "allow an address that other machines reach, without TLS"] = False,
        allow_host: Annotated[Words, "a name in the Host header that is this server's"] = (),
        allow_origin: Annotated[Words, "the origin of a web page that may call it, as in https://example.org"] = (),
        on_event: Annotated[Words, "a URL or a command that is told of each change"] = (),
        agentapi: Annotated[SessionText | None, "the session that agentapi's routes at the root are for"] = None,
        daemon_socket: Annotated[FileName | None, "serve the daemon protocol too, on a Unix socket here"] = None,
        default_cwd: Annotated[FolderName | None, "the folder of a new session for which the caller names none"] = None,
        default_shell: Annotated[
            str | None, "what runs in a new session for which the caller names no command (default: $SHELL)"
        ] = None,
        all_machines: Annotated[
            bool, "events and the page are of the sessions of all machines of machines.toml too"
        ] = False,
        gateway: Annotated[
            FileName | None,
            "connect to a gateway with these credentials of a host, and serve paired clients through it too (default: "
            "serve.gateway); none: connect to no gateway",
        ] = None,
        direct: Annotated[
            str | None,
            "whether paired clients may reach this machine past the gateway: on, off, or HOST:PORT to listen there too "
            "(default: serve.direct)",
        ] = None,
        log: Annotated[bool, "write a line of JSON to standard error for each request"] = False,
    ) -> None:
        """Serve the sessions over HTTP, until it is interrupted. No session ends with it.

        It listens on a Unix socket that only you can open, and with --listen, or the setting serve.listen, at an address
        too. Callers at the address
        send `Authorization: Bearer TOKEN`: the first token is made on the first start, `tmuxctl token new` makes more.
        Anybody who may write to a shell may do all that you may.

        A receiver of --on-event is told each change once it took the one before. A URL gets it signed (Standard
        Webhooks, with the secret of webhook-secret in the state folder), a command on standard input. What it never took
        is kept in dead-letters.jsonl.

        On a --daemon-socket a line is a JSON object that creates, resizes, closes or lists sessions; each session that was
        created so has a socket of its own, which carries the raw bytes of its terminal.

        With --gateway it connects outward to a gateway too, and carries out calls of the clients that `tmuxctl gateway pair` let
        in, end-to-end encrypted: each may do what its line in ~/.config/tmuxctl/authorized_clients says. That needs the extra
        `gateway` too. With the setting serve.gateway it does so without the option, started as a service too.

        While it runs, ls, show, send, keys, screen, wait, ask, exec and status are carried out by a process that is ready, in
        a third of the time; --no-server runs one in its own process.

        Its routes are listed at /docs. It needs the extra `server`: pip install 'tmux-control-plane[server]'.
        """
        if show_token:
            return write(_token_files().read_first() + "\n")
        options = _serve_options(
            self.options.socket,
            listen=listen,
            no_token=no_token,
            tls_cert=tls_cert,
            tls_key=tls_key,
            insecure=insecure,
            allow_host=allow_host,
            allow_origin=allow_origin,
            on_event=on_event,
            agentapi=agentapi,
            log=log,
        )
        options = _with_daemon(options, daemon_socket, default_cwd, default_shell)
        options = changed(options, all_machines=all_machines)
        from tmuxctl.surfaces.server import serve as server

        beside = {}
        gateway = gateway or config.load().serve_gateway
        if gateway not in (None, "none"):
            member = self._gateway_host(gateway, config.load({"serve.direct": direct}).serve_direct)
            options, beside = changed(options, parts=(*options.parts, member.listen)), {"beside": member.connect}
        _collect_garbage_as_it_comes()
        with _serving_commands():
            return server.serve(options, self._tell_started, **beside)

    def _gateway_host(self, path: str, direct: str) -> _GatewayHost:
        """What connects to a gateway with the credentials in this file."""
        return _GatewayHost(path, read_host_credentials(path), direct)

    def _tell_started(self, addresses: list[str]) -> None:
        """Say where it listens: on standard output, as what else it says is for people; and to a service manager that waits."""
        import json

        notify_manager(f"READY=1\nSTATUS=Listening on {', '.join(addresses)}")
        # no program that is told of events may speak for this one
        os.environ.pop("NOTIFY_SOCKET", None)
        if self.options.json:
            write(json.dumps({"listening": addresses}) + "\n")
        else:
            write("".join(f"listening on {address}\n" for address in addresses))
        sys.stdout.flush()
        if any(not address.startswith("unix:") for address in addresses):
            note("callers need a token: tmuxctl serve --show-token, tmuxctl token new", self.options)

    @set_up(right="create", examples=("token new laptop", "token new ci --right read --right write --only 'build-*'"))
    def token_new(
        self,
        name: Annotated[str, "what the token is called"],
        *,
        right: Annotated[Words, "what its bearer may: read, write, create, kill; default: all"] = (),
        only: Annotated[Words, "the sessions that are meant, as a pattern like 'build-*'; default: all"] = (),
    ) -> TokenMade:
        """Make a token for a caller of the server, and print it. It is kept as a hash: it cannot be printed again.

        Who may write to a session without a sandbox may do all that you may. A token for some sessions only tells
        nothing of the others.
        """
        from tmuxctl.results import TokenMade

        rights, sessions = right or RIGHTS, only or ("*",)
        return TokenMade(name, _token_files().add(name, rights, sessions), rights, sessions)

    @set_up(
        right="create",
        examples=("token login --url http://127.0.0.1:8765", "token login laptop --url https://example.org"),
    )
    def token_login(
        self,
        name: Annotated[str, "the token that the browser is to stand for"] = "first",
        *,
        url: Annotated[
            str | None, "how the browser reaches the server; default: as the server that runs listens"
        ] = None,
    ) -> LoginLink:
        """Make a one-time code for a browser, and print the link that signs it in; on a terminal as a QR code too.

        The code holds once, for ten minutes. The browser may do what the token may, until it signs out, the token is
        revoked, or 30 days are over. The token itself is in no link.
        """
        from tmuxctl.results import LoginLink

        try:
            from tmuxctl.surfaces.server.admission.logins import LoginFiles
        except ModuleNotFoundError as error:
            raise _not_installed(error) from None
        place = (url or self._running_url()).rstrip("/")
        if not re.fullmatch(r"https?://[^/?#@\s]+", place):
            hint = "--url http://127.0.0.1:8765"
            raise Usage(f"{ascii(place[:60])} is not the address of a server", reason="bad_address", hint=hint)
        tokens = _token_files()
        if name == "first":
            tokens.read_first()
        code = LoginFiles(tokens).make_code(name)
        return LoginLink(name, code, f"{place}/login#{code}", int(TIMING.http.code_seconds))

    def _running_url(self) -> str:
        try:
            from tmuxctl.surfaces.server.serve import RunningAddress
        except ModuleNotFoundError as error:
            raise _not_installed(error) from None
        settings = config.load({"tmux.socket": self.options.socket})
        if (found := RunningAddress(settings.tmux_socket).find()) is None:
            hint = "start one: tmuxctl serve --listen 127.0.0.1:8765; or say where it is: --url URL"
            raise Failed("no server listens at an address here", reason="no_address", hint=hint)
        return found

    @set_up(right="read", examples=("token ls", "token ls --json"))
    def token_ls(self) -> TokensKept:
        """List the tokens: what each bearer may, and since when. The tokens themselves are kept nowhere."""
        from tmuxctl.results import TokenLine, TokensKept

        tokens = _token_files().list_tokens()
        return TokensKept(tuple(TokenLine(one.name, one.rights, one.sessions, one.created or None) for one in tokens))

    @set_up(right="kill", idempotent=True, examples=("token revoke laptop",))
    def token_revoke(self, name: Annotated[str, "the name of the token"]) -> TokenRevoked:
        """Forget a token. Its bearer is refused at once, and what it follows ends."""
        from tmuxctl.results import TokenRevoked

        _token_files().revoke(name)
        return TokenRevoked(name)


class _GatewayHost:
    """This server as a host of a gateway, with the credentials in a file."""

    def __init__(self, path: str, credentials: Credentials, direct: str) -> None:
        self._path, self._credentials, self._direct = path, credentials, direct
        self._recorder: EventRecorder | None = None
        self._audit: AuditLog | None = None

    @contextmanager
    def connect(self, control: Control) -> Iterator[None]:
        """Carry out calls of clients, while this holds. Where the gateway is not reached at once it is said, and tried again for as
        long as the server runs."""
        host, carrier, recording = (load_gateway(name) for name in ("host", "carrier", "events.recording"))
        with (
            carrier.only_user(self._path),
            host.GatewayHost(control, self._credentials, write_down=self._write_down, direct=self._direct) as made,
            closing(recording.EventRecorder(made.connection)) as self._recorder,
        ):
            try:
                made.connection.wait_connected(TIMING.gateway.reach_seconds)
            except TmuxctlError as error:
                tell(f"tmuxctl: {error.message}; it is tried again" + (f"\n  {error.hint}" if error.hint else ""))
            yield

    def listen(self, _app: object, served: Served) -> None:
        """Record the changes that the server sees anyway, while it is connected, and write calls down where it does."""

        def record(change: Change) -> None:
            if self._recorder and not change.gone:
                self._recorder.record(change.event)

        served.hub.listeners.append(record)
        self._audit = served.audit

    def _write_down(self, access: CallerAccess, call_id: str, operation: str, session: str | None, result: str) -> None:
        """Note a call of a client where those over HTTP are noted."""
        if self._audit:
            self._audit.note(access, call_id, operation, session, result)


def _serve_options(
    socket: str | None,
    *,
    listen: str | None = None,
    no_token: bool = False,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    insecure: bool = False,
    allow_host: tuple[str, ...] = (),
    allow_origin: tuple[str, ...] = (),
    on_event: tuple[str, ...] = (),
    agentapi: str | None = None,
    log: bool = False,
) -> ServeOptions:
    """What a server is told, with the settings for what no option says. Failed `no_server_extra` where it is not installed, Usage
    for what does not fit."""
    from tmuxctl.surfaces.cli.printing.table import command, state_and_kind

    try:
        from tmuxctl.surfaces.adapters.agentapi.routes import add_routes as add_agentapi
        from tmuxctl.surfaces.adapters.agentpty import add_routes as add_agentpty
        from tmuxctl.surfaces.adapters.mcp_http import add_mcp
        from tmuxctl.surfaces.server.listening import Address, Encryption
        from tmuxctl.surfaces.server.serve import ServeOptions
        from tmuxctl.surfaces.server.streams import webhooks
        from tmuxctl.surfaces.server.teams import make_team_routes
        from tmuxctl.surfaces.web.page import make_page
        from tmuxctl.surfaces.web.rows import RowWords
    except ModuleNotFoundError as error:
        raise _not_installed(error) from None
    settings = config.load({"tmux.socket": socket})
    listen, cert = listen or settings.serve_listen, tls_cert or settings.serve_tls_cert
    key = tls_key or settings.serve_tls_key
    if (cert is None) != (key is None):
        hint = f"--tls-cert FILE --tls-key FILE, or serve.tls_cert and serve.tls_key in {config.config_path()}"
        raise Usage("TLS needs a certificate and a key", reason="missing", hint=hint)
    return ServeOptions(
        socket=socket,
        address=None if listen == config.UNIX_ONLY else Address(*parse_address(listen)),
        encryption=Encryption(cert, key) if cert and key else None,
        no_token=no_token,
        insecure=insecure,
        hosts=allow_host,
        origins=allow_origin,
        log=log,
        parts=(
            make_page(RowWords(state_and_kind, command, lambda text: shown(flat(text)))),
            make_team_routes(find_tmuxctl()),
            add_mcp,
            partial(add_agentapi, root=agentapi),
            add_agentpty,
            partial(webhooks.tell_of_events, hooks=[webhooks.parse_webhook(one) for one in on_event]),
        ),
    )


def check_servable(socket: str) -> None:
    """Raise what would end `tmuxctl serve` without options before it listens: the extra that is not installed, settings that do
    not fit, or that would let strangers in."""
    options = _serve_options(socket)
    if config.load().serve_gateway is not None:
        read_host_credentials(None)
    from tmuxctl.surfaces.server.serve import check_options

    check_options(options)


def _with_daemon(
    options: ServeOptions, socket: str | None, default_cwd: str | None, default_shell: str | None
) -> ServeOptions:
    """The options with the daemon protocol, and with what a new session gets by default. Usage and Failed for a folder or a shell
    that is not there."""
    import shutil

    from tmuxctl.surfaces.adapters import daemon
    from tmuxctl.surfaces.server.calls import NewDefaults

    cwd = None if default_cwd is None else os.path.abspath(os.path.expanduser(default_cwd))
    if cwd is not None and not os.path.isdir(cwd):
        raise Usage(f"default_cwd: there is no folder {ascii(cwd)}", reason="bad_cwd", hint="--default-cwd DIR")
    shell = () if default_shell is None else tuple(daemon.split_words(default_shell))
    if shell and not shutil.which(shell[0]):
        hint = "--default-shell /bin/sh"
        raise Failed(f"default_shell: {ascii(shell[0])} was not found", reason="command_not_found", hint=hint)
    parts = options.parts if socket is None else (*options.parts, daemon.make_daemon(socket))
    return changed(options, parts=parts, defaults=NewDefaults(shell, cwd))
