"""What the way through a gateway costs: a screen of 3 KB, beside the same here and beside what NATS alone takes for as much."""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from nats.aio.client import Client
from nats.aio.msg import Msg
from place import Place, Row

from tmuxctl.control import Control
from tmuxctl.gateway import subjects
from tmuxctl.gateway.credentials import Credentials, read_credentials
from tmuxctl.gateway.nats_client import login_options

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from gateway.gateway_site import GatewaySite
from gateway.joined_host import JoinedHost, become_client

TREE = Path(__file__).resolve().parent.parent
ROUNDS = 60
ANSWER_BYTES = 3072
SHOWN = ("sh", "-c", "for i in $(seq 38); do printf '%078d\\n' $i; done; exec cat")
"""A program whose screen has 3 KB."""


def measure(place: Place) -> list[Row]:
    os.environ |= {"XDG_CONFIG_HOME": str(place.folder / "config")}
    site = GatewaySite(place.folder)
    site.start()
    try:
        become_client(site)
        host = JoinedHost(site, place.folder / "there")
        host.start()
        try:
            assert host.pair("thathost").returncode == 0
            return _measure_all(site)
        finally:
            host.command("kill", "--all")
            host.end()
    finally:
        site.end()


def _measure_all(site: GatewaySite) -> list[Row]:
    with Control(resident=True) as control, _NatsAlone(site) as alone:
        for name in ("sh", "thathost/sh"):
            control.new(name, SHOWN)
            control.wait(name, text="0038$", since="screen")
        calls = (lambda: control.screen("sh"), lambda: control.screen("thathost/sh"), alone.request)
        near, far, nats = _medians(*calls)
        control.kill(("sh", "thathost/sh"), signal="KILL")
    told = f"{far * 1000:.2f} ms; here {near * 1000:.2f}, NATS {nats * 1000:.2f}"
    most = near + 2 * nats
    what = f"`screen` of 3 KB through a gateway, beside the same here and {ANSWER_BYTES} bytes asked of NATS alone over TLS"
    return [Row(what, f"here + 2 x NATS: {most * 1000:.2f} ms", told, far <= most)]


def _medians(*calls: Callable[[], object]) -> list[float]:
    """The seconds that each takes, all of them in turn."""
    times: list[list[float]] = [[] for _ in calls]
    for number in range(ROUNDS + 5):
        for call, found in zip(calls, times, strict=True):
            began = time.monotonic()
            call()
            if number >= 5:
                found.append(time.monotonic() - began)
            # looks at a program are kept for a moment, and nothing of them is to be left to the next
            time.sleep(0.03)
    return [statistics.median(found) for found in times]


class _NatsAlone:
    """A client of the server that asks another process, by nats-py and nothing else."""

    def __init__(self, site: GatewaySite) -> None:
        self._host = site.add("host", "--out", str(site.place / "alone-host.json"))
        self._own = site.add("client", "--out", str(site.place / "alone-client.json"))
        self._place = site.place

    def __enter__(self) -> _NatsAlone:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._place / "alone-host.json")],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (TREE, TREE / "bench")))},
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout
        assert self._process.stdout.readline() == "ready\n"
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._client = asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def request(self) -> None:
        """Ask, and have an answer of so many bytes."""
        answer = asyncio.run_coroutine_threadsafe(self._ask(), self._loop).result(10)
        assert answer == ANSWER_BYTES

    async def _ask(self) -> int:
        self._came = self._loop.create_future()
        host, own = self._host.id, self._own.id
        await self._client.publish(subjects.rpc(host, own), b"?" * 300, reply=subjects.reply(host, own, "x"))
        return len(await self._came)

    async def _open(self) -> Client:
        async def take(message: Msg) -> None:
            self._came.set_result(message.data)

        client = await _connect(self._own)
        await client.subscribe(subjects.reply(self._host.id, self._own.id, subjects.ANY), cb=take)
        await client.flush()
        return client

    def __exit__(self, *_error: object) -> None:
        self._process.kill()
        self._process.wait()
        asyncio.run_coroutine_threadsafe(self._client.close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()


async def _connect(credentials: Credentials) -> Client:
    client = Client()
    await client.connect(
        credentials.urls[0],
        tls=credentials.tls_context(),
        tls_handshake_first=True,
        **login_options(credentials.seed, credentials.jwt),
    )
    return client


async def answer(path: str) -> None:
    """Answer each request with so many bytes."""
    credentials = read_credentials(path)
    client = await _connect(credentials)

    async def take(message: Msg) -> None:
        await client.publish(message.reply, b"!" * ANSWER_BYTES)

    await client.subscribe(subjects.rpc(credentials.id, subjects.ANY), cb=take)
    await client.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(answer(sys.argv[1]))
