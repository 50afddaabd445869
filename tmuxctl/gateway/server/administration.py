"""What only the gateway's first machine may do with the servers that run: tell them new claims of accounts, make the streams, and
ask all nodes what they do. It connects as any client, with keys that it signs itself and that hold for minutes."""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import nats.errors
from nats.js.api import StreamConfig
from nats.js.errors import NotFoundError

from tmuxctl.errors import TmuxctlError, Unreachable
from tmuxctl.gateway import subjects
from tmuxctl.gateway.nats_client import GatewayClient
from tmuxctl.gateway.server.authority.accounts import Accounts
from tmuxctl.gateway.server.authority.certificates import find_certificate
from tmuxctl.gateway.server.authority.claims import SignedUser
from tmuxctl.gateway.server.nats_config import STREAM_CONFIG
from tmuxctl.gateway.server.settings import GatewayFiles, GatewaySettings
from tmuxctl.timing import TIMING, GatewayTiming
from tmuxctl.untrusted import parse_json

ANSWER_LIMIT = 1 << 20


def tell_accounts(files: GatewayFiles, timing: GatewayTiming = TIMING.gateway) -> bool:
    """Tell the servers the claims of all accounts: whoever was removed is disconnected, others are not. False where none of them
    runs: they are told once this machine's does. A node that is away learns them from the others when it is back."""
    return asyncio.run(_tell_accounts(files, timing))


def prepare(files: GatewayFiles, is_running: Callable[[], bool], timing: GatewayTiming = TIMING.gateway) -> None:
    """Tell the servers the claims of all accounts, and make the stream of each tenant, or change it to what STREAM_CONFIG says.
    It is tried while the server runs: in a cluster a majority of the nodes is needed."""
    pause, patience = timing.prepare_pause_seconds, timing.prepare_first_seconds
    complained, began = False, time.monotonic()
    while is_running():
        try:
            if not asyncio.run(_tell_accounts(files, timing)):
                raise Unreachable("the server does not answer yet", reason="not_running")
            asyncio.run(_make_streams(files, patience, timing))
        except (TmuxctlError, nats.errors.Error, OSError, TimeoutError) as error:
            if not complained and time.monotonic() - began > timing.prepare_seconds:
                complained = True
                sys.stderr.write(f"tmuxctl: events are not kept yet: {error or 'nothing answers'}\n")
                sys.stderr.flush()
            time.sleep(pause)
            pause = min(pause * 2, timing.prepare_rare_pause_seconds)
            patience = min(patience * 2, timing.prepare_seconds)
        else:
            if complained:
                sys.stderr.write("tmuxctl: events are kept now\n")
                sys.stderr.flush()
            return


def make_tenants(files: GatewayFiles, timing: GatewayTiming = TIMING.gateway) -> bool:
    """Tell the servers of tenants that were added, and make their streams; False where that has to wait for `prepare`."""
    with suppress(TmuxctlError, nats.errors.Error, OSError, TimeoutError):
        if asyncio.run(_tell_accounts(files, timing)):
            asyncio.run(_make_streams(files, timing.prepare_seconds, timing))
            return True
    return False


def ask_nodes(files: GatewayFiles, about: str, timing: GatewayTiming = TIMING.gateway) -> dict[str, Any]:
    """What each node answers to a question of the servers' account, as VARZ or JSZ (NATS documentation, "System events"), by its
    name. Raises Unreachable where none answers."""
    settings = files.read_settings()
    found: dict[str, Any] = asyncio.run(_ask_nodes(files, settings, about, timing))
    return found


@asynccontextmanager
async def _connected(files: GatewayFiles, user: SignedUser, timing: GatewayTiming) -> AsyncIterator[GatewayClient]:
    """A connection to the server of this machine, else to another node. Unreachable where none can be made."""
    settings = files.read_settings()
    context = ssl.create_default_context(cadata=find_certificate(files, settings).authority)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    ways: list[tuple[str, str | None]] = [(settings.own_address, settings.names[0])]
    ways += [(url, None) for url in settings.all_urls if url not in settings.urls]
    for url, name in ways:
        client = GatewayClient(name)
        opening = client.open(
            url, context, user.seed, user.claims, connect_timeout=timing.connect_seconds, error_cb=_ignore
        )
        try:
            await asyncio.wait_for(opening, timing.open_seconds)
            break
        except Exception:
            # the client library raises errors of many classes
            client.abort()
            with suppress(Exception):
                await client.close()
    else:
        raise Unreachable("no server of the gateway answers", reason="not_running", hint="start it: tmuxctl gateway up")
    try:
        yield client
    finally:
        client.abort()
        with suppress(Exception):
            await asyncio.wait_for(client.close(), timing.close_seconds)


async def _ignore(_error: Exception) -> None:
    """What nats-py reports beside what was called."""


async def _tell_accounts(files: GatewayFiles, timing: GatewayTiming) -> bool:
    accounts = Accounts(files)
    user = accounts.sign_administrator(timing.administrator_seconds)
    try:
        async with _connected(files, user, timing) as client:
            for key, text in accounts.trusted().accounts.items():
                if key != accounts.trusted().system:
                    await client.request("$SYS.REQ.CLAIMS.UPDATE", text.encode(), timeout=timing.store_seconds)
    except Unreachable:
        return False
    return True


async def _make_streams(files: GatewayFiles, patience: float, timing: GatewayTiming) -> None:
    """Make or change the stream of each tenant; each step may take `patience` seconds."""
    accounts, replicas = Accounts(files), files.read_settings().replicas
    wanted = StreamConfig.from_response({**STREAM_CONFIG, "num_replicas": replicas})
    for tenant in accounts.tenants:
        user = accounts.sign_store_administrator(tenant, timing.administrator_seconds)
        async with _connected(files, user, timing) as client:
            stream = client.jetstream(timeout=patience)
            try:
                await stream.stream_info(subjects.STREAM)
            except NotFoundError:
                await stream.add_stream(wanted)
            else:
                await stream.update_stream(wanted)


async def _ask_nodes(
    files: GatewayFiles, settings: GatewaySettings, about: str, timing: GatewayTiming
) -> dict[str, Any]:
    user = Accounts(files).sign_administrator(timing.administrator_seconds)
    found: dict[str, Any] = {}
    async with _connected(files, user, timing) as client:
        inbox = client.new_inbox()
        answers = await client.subscribe(inbox)
        await client.publish(f"$SYS.REQ.SERVER.PING.{about}", json.dumps({"streams": True}).encode(), reply=inbox)
        deadline = time.monotonic() + timing.probe_seconds
        while len(found) <= len(settings.nodes) and (left := deadline - time.monotonic()) > 0:
            with suppress(nats.errors.TimeoutError, ValueError, LookupError, TypeError):
                answer = parse_json((await answers.next_msg(left)).data, limit=ANSWER_LIMIT)
                found[str(answer["server"]["name"])] = answer["data"]
    return found
