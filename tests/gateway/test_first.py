from __future__ import annotations
from collections.abc import Callable, Iterator
from pathlib import Path
import pytest
from conftest import list_pids, sweep
from gateway.gateway_site import GatewaySite
from gateway.joined_host import JoinedHost, become_client, command

@pytest.fixture
def joined(gateway: GatewaySite, place: Path, needs: Callable[..., None]) -> Iterator[JoinedHost]:
    needs("tmux")
    become_client(gateway)
    before = list_pids()
    host = JoinedHost(gateway, place / "there")
    host.start()
    yield host
    host.end()
    sweep(host.home, before)

def test_first(joined, place):
    import time
    done = joined.pair("thathost")
    print(done); assert done.returncode == 0
    print(joined.log)
    for words in (("new","thathost/sh","--","sh"),("exec","thathost/sh","--","uname"),("ask","thathost/sh","echo hi"),("screen","thathost/sh"),("ls","--machine","thathost"),("machine","ls"),("kill","thathost/sh")):
        t=time.time(); done=command(*words); print(words, done, time.time()-t)
    print(joined.log)
    assert 0
