"""What a machine costs that is 50 ms away, there and back, over a network of this machine's own. Needs root and /dev/net/tun."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from place import Place, Row

from tmuxctl.control import Control

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from machines.far_network import FAR, FarNetwork
from machines.ssh_server import SshServer, configure_ssh, end_all

ROUND_TRIP = 0.050
ROUNDS = 9
MACHINES = 10
SCREENS = 20

RESIDENT: dict[str, Callable[[Control, str], object]] = {
    "send": lambda control, name: control.send(name, b":"),
    "screen": lambda control, name: control.screen(name),
    "wait --now": lambda control, name: control.wait(name, now=True),
    "ask": lambda control, name: control.ask(name, b"echo x"),
}
ONE_SHOT = {
    "send": ["send", "{}", ":"],
    "screen": ["screen", "{}"],
    "wait --now": ["wait", "{}", "--now"],
    "ask": ["ask", "{}", "echo x"],
}


@contextmanager
def far_machines(place: Path, count: int) -> Iterator[list[SshServer]]:
    """Machines `web1`, `web2`, ... at the other side of the network, which this thread and what it starts reach."""
    network = FarNetwork(ROUND_TRIP / 2)
    try:
        servers = [
            SshServer(place, f"web{number}", address=FAR, inside=network.inside(network.far))
            for number in range(1, count + 1)
        ]
        configure_ssh(place, servers)
        network.enter(network.near)
        yield servers
    finally:
        end_all(place)
        network.close()


def measure(place: Place) -> list[Row]:
    os.environ |= {"XDG_RUNTIME_DIR": str(place.folder / "run"), "XDG_CONFIG_HOME": str(place.folder / "config")}
    os.environ["PATH"] = f"{place.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    rows: list[Row] = []

    def all_rows() -> None:
        with far_machines(place.folder, MACHINES) as servers:
            try:
                rows.extend(_measure_all(place, servers))
            finally:
                for server in servers:
                    _end_tmux(server)

    # a thread of its own: the network that it enters is that of the thread
    with ThreadPoolExecutor(1) as pool:
        pool.submit(all_rows).result()
    return rows


def _measure_all(place: Place, servers: list[SshServer]) -> list[Row]:
    folder = place.folder / "config/tmuxctl"
    folder.mkdir(mode=0o700, parents=True)
    (folder / "machines.toml").write_text("".join(f"[{server.name}]\n" for server in servers))
    (folder / "machines.toml").chmod(0o600)
    with Control(resident=True) as control:
        control.new("sh", ("bash", "--norc"))
        for server in servers:
            control.new(f"{server.name}/sh", ("bash", "--norc"))
        for number in range(1, SCREENS):
            control.new(f"web1/more{number}", ("bash", "--norc"))
        rows = [_resident(control, verb) for verb in RESIDENT]
        rows += [_screens(control, state=state) for state in (False, True)]
        control.kill(tuple(f"web1/more{number}" for number in range(1, SCREENS)), signal="KILL")
        rows.append(_all_machines(control))
        rows += [_one_shot(verb) for verb in ONE_SHOT]
        servers[-1].go_down()
        rows.append(_dead(control))
        for server in servers[:-1]:
            control.kill((f"{server.name}/sh",), signal="KILL")
    return rows


def _resident(control: Control, verb: str) -> Row:
    far, near = (_median(partial(RESIDENT[verb], control, name)) for name in ("web1/sh", "sh"))
    if verb == "ask":
        trips = (far - near) / ROUND_TRIP
        return Row("`ask` of a machine 50 ms away, beyond the same here", "4 round trips", f"{trips:.1f}", trips <= 4)
    most = 1.3 * ROUND_TRIP + 0.010
    return Row(f"`{verb}` of a machine 50 ms away", f"{most * 1000:.0f} ms", f"{far * 1000:.0f} ms", far <= most)


def _screens(control: Control, *, state: bool) -> Row:
    names = ["web1/sh", *(f"web1/more{number}" for number in range(1, SCREENS))]

    def all_screens() -> None:
        threads = [threading.Thread(target=control.screen, args=(name,), kwargs={"state": state}) for name in names]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    trips = _median(all_screens) / ROUND_TRIP
    what = f"{SCREENS} screens of it at once{'' if state else ', without what the programs do'}"
    return Row(what, "2 round trips", f"{trips:.1f}", trips <= 2)


def _all_machines(control: Control) -> Row:
    trips = _median(lambda: control.ls(all_machines=True)) / ROUND_TRIP
    return Row(f"`ls --all-machines` of {MACHINES} such machines", "2 round trips", f"{trips:.1f}", trips <= 2)


def _one_shot(verb: str) -> Row:
    def run(name: str) -> None:
        words = [word.format(name) for word in ONE_SHOT[verb]]
        subprocess.run(
            [sys.executable, "-m", "tmuxctl", "--no-server", *words], check=True, capture_output=True, timeout=60
        )

    trips = (_median(lambda: run("web1/sh")) - _median(lambda: run("sh"))) / ROUND_TRIP
    what = f"`tmuxctl {verb}` of it, a process each time, beyond the same here"
    return Row(what, "4 round trips", f"{trips:.1f}", trips <= 4)


def _dead(control: Control) -> Row:
    found = control.ls(all_machines=True)
    there = {session.machine for session in found.sessions}
    wrong = [problem.machine for problem in found.problems]
    holds = len(there) == MACHINES and wrong == [f"web{MACHINES}"]
    return Row("one of them dead", "its own row only", f"{len(there) - 1} told, {', '.join(wrong)} is not", holds)


def _median(call: Callable[[], object]) -> float:
    """Seconds; the first calls are those from which the next ones learn."""
    times = []
    for number in range(ROUNDS + 3):
        began = time.monotonic()
        call()
        times.append(time.monotonic() - began)
        time.sleep(0.3 if number < 3 else 0.05)
    return statistics.median(times[3:])


def _end_tmux(server: SshServer) -> None:
    with suppress(OSError):
        subprocess.run(
            ["tmux", "-L", os.environ["TMUXCTL_SOCKET"], "kill-server"],
            env={**os.environ, "TMUX_TMPDIR": str(server.home)},
            capture_output=True,
            check=False,
        )
