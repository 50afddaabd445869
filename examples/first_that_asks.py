#!/usr/bin/env python3
"""Five installers run at once; whichever asks first is answered first, until all have ended. Ctrl-C ends them all."""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack

import tmuxctl

INSTALLER = r"""
sleep "$1"
printf 'Install %s? [y/N] ' "$0"
read -r answer
if [ "$answer" != y ]; then echo "$0 is not installed"; exit 3; fi
sleep "$1"
printf 'Where to? '
read -r folder
echo "$0 is in $folder"
"""

SECONDS = {"postgres": 0.5, "redis": 0.1, "node": 0.3, "docker": 0.2, "nginx": 0.4}
"""What each one needs before it asks. Nothing below depends on it."""

UNWANTED = {"docker"}


async def answer(installer: tmuxctl.aio.TerminalSession) -> None:
    """Answer the question of one installer."""
    name, asking = await installer.name, await installer.asking
    if asking is not None:
        chosen = "no" if name in UNWANTED else "yes"
        await installer.decide(chosen, id=asking.id)
        print(f"{name}: {asking.question} -> {chosen}", flush=True)
    else:
        # any text will do: that is a line of input, and nothing to decide
        await installer.send(f"/opt/{name}")
        print(f"{name}: sent /opt/{name}", flush=True)


async def main() -> None:
    """Start them, answer them as they ask, and say how each one ended."""
    async with AsyncExitStack() as stack:
        installers = [
            await stack.enter_async_context(
                tmuxctl.aio.session(["sh", "-c", INSTALLER, name, f"{seconds}"], name=name, wait=False)
            )
            for name, seconds in SECONDS.items()
        ]
        client = installers[0].client
        while True:
            try:
                await answer(await client.wait_any(installers, "input", timeout="1m"))
            except tmuxctl.Exited:
                # none is left that could ask
                break
        for installer in installers:
            print(f"{await installer.name}: ended with status {await installer.exit_status}")


try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted: all installers are ended")
    sys.exit(130)
