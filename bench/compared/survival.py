"""The driving process killed (-9) in the middle of a turn: what is left of the program, and who can go on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from place import HERE, Place, until

from compared.programs import prepare
from compared.table import DRIVEN, Line
from compared.tools import Libtmux, Tmux, Tmuxctl, Tool, shows

PRINTED = 5000
WORK = """\
echo $$ >pid
for part in 1 2 3 4 5; do
    seq $((part * 1000 - 999)) $((part * 1000))
    : >part$part
    sleep 0.3
done
: >end
"""
ROWS = (
    "driver killed (-9) in mid-turn: the program lives",
    "– and finishes its work",
    f"– lines kept of the {PRINTED} it printed[^kept]",
    "– another process reads them and goes on",
)


def measure(place: Place) -> list[Line]:
    prepare(place.folder / "home")
    with place.control() as control:
        tools: dict[str, Tool] = {"tmuxctl": Tmuxctl(control), "tmux": Tmux(), "libtmux": Libtmux()}
        told = {name: _killed(place, name, tool) for name, tool in tools.items()}
    told["pexpect"] = _killed(place, "pexpect", None)
    return [Line(DRIVEN, what, {name: cells[at] for name, cells in told.items()}) for at, what in enumerate(ROWS)]


def _killed(place: Place, name: str, tool: Tool | None) -> tuple[str, ...]:
    """Start a driver, kill it while its program works, and look from outside. `tool` is what another process takes up
    the program with, if it can."""
    folder = place.folder / "work" / f"driven-{name}"
    folder.mkdir()
    Path(folder, "work").write_text(WORK)
    driver = subprocess.Popen([sys.executable, "-m", "compared.driver", name, str(folder)], cwd=HERE)
    assert until(Path(folder, "part2").exists, 20), f"{name}: the program did not begin"
    driver.kill()
    driver.wait()
    finished = until(Path(folder, "end").exists, 3)
    lives = Path("/proc", Path(folder, "pid").read_text().strip()).exists()
    return _yes(lives), _yes(finished), *(_taken_up(tool, folder.name) if tool else ("0[^owner]", "no[^owner]"))


def _taken_up(tool: Tool, name: str) -> tuple[str, str]:
    """How many lines are there, and whether the program does what this process types."""
    tool.join(name)
    kept = {int(row) for row in tool.output().split() if row.isdigit()} & set(range(1, PRINTED + 1))
    tool.type(b"echo went $((1 + 1)) on")
    return str(len(kept)), _yes(shows(tool, "went 2 on", 5))


def _yes(holds: bool) -> str:
    return "yes" if holds else "no"
