"""Run suites of tests: python -m tools.suites quick|test|gate|nightly|weekly|bench|list|packages [SUITE...] [-- ARGUMENTS]

quick     the pure tests: no tmux, no program
test      the core, on real tmux, without tests that are marked `night`
gate      what `.ci/run` runs beside it: of every other suite the tests that are not marked `night`
nightly   every suite whole, and the core in random order, beside busy loops, on other versions of Python and tmux (hours).
          A test that fails is run again alone, once. If it passes then, it is flaky: build/flaky.json has its name, and the
          run fails all the same
weekly    what takes hours: states, chaos, soak, scale, mutants, agents
bench     measurements: `measure` fills docs/measured.md, `compare` docs/comparison.md
list      the suites, one line each
packages  install what the suites of the gate need, and run nothing

SUITE names some of them: `make nightly SUITES='gateway web'`. One alone prints as it runs; of several, each has a line here and its
output in build/suites. ARGUMENTS go to pytest or to the suite's own command.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tools.processes import busy_loops

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(sys.prefix)
BUILD = ROOT / "build/suites"
FLAKY = ROOT / "build/flaky.json"
WORKERS = os.cpu_count() or 1
"""One for each processor: more take each other's time, and a program that is tested misses its moment."""

AGAIN, TAIL = 20, 300
"""Failed tests that are run again at most: more are no accident; and lines of its output that a failed suite shows."""

Words = tuple[str, ...]


def npm(folder: str, *packages: str) -> Words:
    """The command that installs packages for node, kept if they are there."""
    return ("sh", "tools/setup.sh", "npm", str(VENV / folder), *packages)


def made(*targets: str) -> Words:
    """The command that makes targets of the Makefile."""
    return ("make", "-s", "--no-print-directory", f"VENV={VENV}", *targets)


class Suite(NamedTuple):
    """Tests of one subject, or a command, and what has to be installed for it."""

    about: str
    tests: Words = ()
    """Folders and files of tests."""
    options: Words = ()
    """Arguments of pytest, in a run of this suite alone."""
    needs: str = ""
    """`program=package` for `setup.sh system`; behind `--`, those without which tests are skipped."""
    prepare: tuple[Words, ...] = ()
    """Commands that install what no package of the system has."""
    commands: tuple[Words, ...] = ()
    """Run behind the tests. ARGUMENTS follow the last one, where there are no tests."""
    environment: Mapping[str, str] = {}
    loops: int = 0
    """Busy loops for each processor, beside the tests."""


def python(*words: str) -> Words:
    """A command of this Python."""
    return (sys.executable, *words)


SYSTEM = (
    "tmux -- bash busybox bwrap=bubblewrap dash dialog fish gcc gdb git jq less make man=man-db mksh nano node=nodejs npm"
    " ps=procps sqlite3 vim zsh"
)
"""What the tests of the core drive."""

SSH = "ssh=openssh-client sshd=openssh-server ssh-keygen=openssh-client"
PROGRAMS = (
    "dpkg-deb=dpkg fzf gpg htop irb=ruby lldb lua5.4 mariadb=mariadb-client mariadbd=mariadb-server more=util-linux passwd"
    " pg_createcluster=postgresql psql=postgresql-client redis-cli=redis-tools redis-server su=util-linux sudo top=procps"
    " vim.tiny=vim-tiny whiptail"
)
BROWSER = "chromium-headless-shell"

AGENT_TURNS = ("submitting", "agent_turns", "agent_answers", "candidates", "chats", "inbox")
GATE = ("-m", "not pipe and not night")
"""What the gate leaves out."""

SUITES = {
    "snippets": Suite(
        "what the pages and examples say, done as a reader would do it",
        ("tests/docs", "tests/examples"),
        needs=f"{SYSTEM} {PROGRAMS} {SSH}",
    ),
    "plays": Suite("every profile against its real program", ("tests/plays",), needs=f"{SYSTEM} {PROGRAMS} {SSH}"),
    "browsers": Suite(
        "pictures of screens as a browser draws them",
        ("tests/terminal/test_pictures.py",),
        needs=f"{SYSTEM} {BROWSER}",
        prepare=(npm("player-node", "asciinema-player@3.18.0"),),
    ),
    "faults": Suite(
        "what may go wrong is made to: kills at every step, limits, a full disk, a thousand sessions",
        ("tests/faults",),
        needs=SYSTEM,
    ),
    "golden": Suite("help, arguments, results and runs of commands, as they are kept", ("tests/golden",), needs=SYSTEM),
    "plugins": Suite("the plugins", ("tests/plugins",), needs=SYSTEM),
    "states": Suite("recorded states judged again, and real ones beside busy loops", ("tests/states",), needs=SYSTEM),
    "agent-turns": Suite(
        "turns of agent programs; a small one plays their mistakes",
        tuple(f"tests/control/test_{name}.py" for name in AGENT_TURNS),
        needs=SYSTEM,
    ),
    "releases": Suite(
        "what is installed, and sessions of earlier releases",
        ("tests/upgrade", *(f"tests/test_{name}.py" for name in ("packaging", "recipes", "install", "release"))),
        needs=SYSTEM,
    ),
    "library": Suite(
        "the library for Python, what type checkers say of it, and the pytest plugin",
        ("tests/library", "tests/typing"),
        needs=SYSTEM,
        prepare=(npm("pyright-node", "pyright@1.1.408"),),
    ),
    "mcp": Suite(
        "`tmuxctl mcp`, and independent clients of it, from npm and PyPI",
        ("tests/mcp_clients", "tests/surfaces/mcp"),
        needs=SYSTEM,
        prepare=(npm("mcp-node", "@modelcontextprotocol/sdk@1.32.2"),),
    ),
    "http": Suite(
        "`tmuxctl serve`: its callers, and schemathesis over its OpenAPI document",
        ("tests/surfaces/server", "tests/surfaces/web"),
        needs=f"{SYSTEM} curl openssl",
        prepare=(made(f"{VENV}/schemathesis/.made"),),
        commands=(
            python("-m", "tests.surfaces.server.fuzz", f"{VENV}/schemathesis/bin/schemathesis", "--max-examples", "20"),
        ),
    ),
    "web": Suite(
        "the page of `tmuxctl serve` as a person uses it, in headless Chromium",
        ("tests/web",),
        needs=f"{SYSTEM} {BROWSER}",
        prepare=(made(f"{VENV}/.page", "web-assets"), npm("axe-node", "axe-core@4.14.1")),
    ),
    "machines": Suite(
        "machines behind a real sshd on loopback, and behind other commands",
        ("tests/machines",),
        needs=f"{SYSTEM} {SSH}",
    ),
    "teams": Suite("teams of programs", ("tests/fleet",), needs=SYSTEM),
    "gateway": Suite(
        "the gateway over a real nats-server, and operations that a second process carries out",
        ("tests/sealed", "tests/rpc", "tests/gateway"),
        needs=f"{SYSTEM} ip=iproute2",
    ),
}
"""Suites whose tests that are not marked `night` run in the gate."""

CORE = (
    *(f"--ignore={path}" for suite in SUITES.values() for path in suite.tests),
    # `make check` runs these
    *("--ignore=tests/test_layers.py", "--ignore=tests/test_house.py"),
)

ONLY_BY_NIGHT = {
    "core": Suite("the core with its long tests", options=(*CORE, "-m", "not pipe"), needs=SYSTEM),
    "pipe": Suite(
        "the core where tmux is reached through a shell at the end of a pipe",
        options=(
            "-m",
            "pipe",
            "tests/control",
            "tests/plugins",
            "tests/terminal",
            "tests/transport",
            "tests/surfaces",
            "tests/fleet",
        ),
        needs=SYSTEM,
    ),
    "ssh": Suite(
        "behaviour on a machine behind a real sshd, without Python in its PATH",
        options=("--over-ssh", "-m", "ssh", "tests/control", "tests/plugins", "tests/transport"),
        needs=f"{SYSTEM} {SSH}",
    ),
    "elsewhere": Suite(
        "behaviour where a second process carries each operation out, through a real gateway",
        options=("--elsewhere=gateway", "-m", "elsewhere", "tests/control"),
        needs=SYSTEM,
    ),
    "shuffled": Suite(
        "the core of the gate in random order",
        options=(*CORE, *GATE, f"--shuffle={random.randrange(1, 1000)}"),
        needs=SYSTEM,
    ),
    "busy": Suite(
        "the core of the gate beside three busy loops for each processor",
        options=(*CORE, *GATE),
        needs=SYSTEM,
        loops=3,
    ),
}

COVERED = tuple(
    f"--ignore={path}"
    for name, suite in SUITES.items()
    if name not in ("plugins", "agent-turns", "releases", "library", "mcp", "http")
    for path in suite.tests
)
STATES = (
    "tmux -- calcurse cfdisk=fdisk cryptsetup=cryptsetup-bin curl dash dialog emacs=emacs-nox expect fish gawk gdb git gpg htop"
    " irb=ruby irssi jed joe kak=kakoune less lftp lua5.4 lynx make man=man-db mc mg micro multitail nano ne neomutt nnn"
    " node=nodejs nvim=neovim openssl parallel parted pg_createcluster=postgresql pinentry-curses pinentry-tty"
    " ps=procps psql=postgresql-client redis-cli=redis-tools redis-server rsync script=bsdutils sqlite3 ssh=openssh-client"
    " sshd=openssh-server sudo task=taskwarrior telnet tig units vim w3m whiptail zsh"
)
AGENTS = "tmux -- bash git ip=iproute2 node=nodejs npm unshare=util-linux"

WEEKLY = {
    "states": Suite(
        "real programs whose true state is known, and how often it is judged right (six minutes; --load: beside busy loops,"
        " --over-ssh: on a machine behind sshd)",
        needs=STATES,
        prepare=(made(f"{VENV}/states/.made"),),
        commands=(python("-m", "tools.states.silent"), python("-m", "tools.states")),
    ),
    "chaos": Suite(
        "sessions of three machines while random faults are made (--seconds 3600 --seed 25; --replay LOG)",
        needs=f"{SYSTEM} {SSH} unshare=util-linux",
        commands=(python("-m", "tools.chaos", "--log", "build/chaos.jsonl", "--seconds", "600"),),
    ),
    "soak": Suite(
        "turns for half an hour: the memory of tmux must not grow by them",
        needs=SYSTEM,
        commands=(python("bench/soak.py", "30"),),
    ),
    "soak-http": Suite(
        "callers of the HTTP server for half an hour: no event may be lost, nor its memory grow",
        needs=SYSTEM,
        commands=(python("bench/http_soak.py", "30"),),
    ),
    "scale": Suite(
        "500 hosts behind a gateway, and 1,000 sessions on one host (`small`: a tenth of it)",
        needs=SYSTEM,
        commands=(python("-m", "tools.scale"),),
    ),
    "mutants": Suite(
        "which small changes of reading/ and terminal/input no test notices (hours; --sample 50: of 50 in each module)",
        prepare=(made(f"{VENV}/.mutants"),),
        commands=(("nice", "-n", "19", *python("-m", "tools.mutants")),),
    ),
    "coverage": Suite(
        "which lines and branches the core, plugins, library and mcp reach; fails below a floor",
        needs=SYSTEM,
        prepare=(made(f"{VENV}/.coverage"),),
        commands=(
            python("-m", "coverage", "erase"),
            python("-m", "coverage", "run", "-m", "pytest", f"-n{WORKERS}", *COVERED, "-m", "not pipe"),
            python("-m", "coverage", "combine", "-q"),
            python("-m", "coverage", "report"),
        ),
    ),
    "agents": Suite(
        "real agent programs against a local model: tools/agents/README.md (half an hour; --full: hours)",
        needs=f"{AGENTS} {BROWSER}",
        prepare=(made(f"{VENV}/.page", "web-assets"),),
        commands=(
            *(python("-m", f"tools.agents.{name}") for name in ("skill", "mcp", "agentpty", "page")),
            python("-m", "tools.agents"),
        ),
    ),
}

BENCH = {
    "measure": Suite(
        "what docs/measured.md says (ONLY=asking,hot: some of it)",
        # compiled against the headers of Debian's node, as others cannot be fetched everywhere; without it one row is left out
        prepare=(("sh", "-c", f"npm_config_nodedir=/usr sh tools/setup.sh npm {VENV}/ptyai-node ptyai@0.1.1 || :"),),
        commands=(python("bench/measure.py"),),
    ),
    "compare": Suite(
        "tmuxctl beside tmux, libtmux and pexpect at the same jobs: docs/comparison.md (ONLY=asking,cost: some of it)",
        needs="tmux -- gdb pg_createcluster=postgresql psql=postgresql-client sqlite3",
        commands=(python("bench/compare.py"),),
    ),
    "tree": Suite("how fast this tree is, to compare it with another", commands=(python("bench/bench.py"),)),
}

QUICK = (
    *("tests/reading", "tests/terminal/test_keys.py", "tests/terminal/test_paste.py"),
    *(f"tests/test_{name}.py" for name in ("config", "model", "operations", "value", "vocabulary")),
)


def versions() -> dict[str, Suite]:
    """The core on the other versions of Python that are installed, and of tmux that TMUX_BINARIES names (paths)."""
    suites = {}
    for minor in range(11, 20):
        name = f"python3.{minor}"
        if minor != sys.version_info.minor and shutil.which(name):
            words = ("make", f"PYTHON={name}", f"VENV={VENV}-3.{minor}", "test")
            suites[name] = Suite(f"the core of the gate on Python 3.{minor}", commands=(words,))
    for number, path in enumerate(os.environ.get("TMUX_BINARIES", "").split(), 1):
        tests = ("tests/control", "tests/faults", "tests/terminal", "tests/transport")
        suites["tmux" if number == 1 else f"tmux-{number}"] = Suite(
            f"what drives tmux, on {path}",
            options=("-k", "not memory", "-m", "not night", *tests),
            environment={"PATH": f"{_folder_of_tmux(path)}:{os.environ['PATH']}"},
        )
    return suites


def _folder_of_tmux(path: str) -> Path:
    """A folder in which this program is called tmux."""
    folder = BUILD / f"tmux-{zlib.crc32(path.encode()):x}"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "tmux"
    link.unlink(missing_ok=True)
    link.symlink_to(Path(path).resolve())
    return folder


class Outcome(NamedTuple):
    """How a suite ended: the names of tests that failed twice, of those that passed when run again alone, and whether a command
    failed or pytest could not run."""

    failed: tuple[str, ...] = ()
    flaky: tuple[str, ...] = ()
    broken: bool = False

    def __str__(self) -> str:
        if self.failed or self.broken:
            return "FAILED"
        return "FLAKY" if self.flaky else "passed"


def install_commands(suite: Suite) -> Iterator[Words]:
    """The commands that install what a suite needs."""
    if suite.needs:
        yield ("sh", "tools/setup.sh", "system", *suite.needs.split())
    yield from suite.prepare


def run(name: str, suite: Suite, arguments: Sequence[str], log: Path | None) -> Outcome:
    """Install what a suite needs and run it. Its output goes to `log`, or to our own."""
    with ExitStack() as stack:
        output = stack.enter_context(log.open("wb")) if log else None

        def call(words: Sequence[str], **variables: str) -> int:
            environment = {**os.environ, **suite.environment, **variables}
            return subprocess.run(
                words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
            ).returncode

        if any(call(words) for words in install_commands(suite)):
            return Outcome(broken=True)
        if suite.loops:
            stack.enter_context(busy_loops(suite.loops * (os.cpu_count() or 1)))
        outcome = Outcome()
        if suite.tests or suite.options:
            cache = BUILD / "cache" / name
            shutil.rmtree(cache, ignore_errors=True)
            pytest = python("-m", "pytest", "-o", f"cache_dir={cache}")
            words = (*pytest, "-n", str(WORKERS), "--dist", "worksteal", *suite.options, *suite.tests, *arguments)
            outcome = _run_again(cache, call(words), lambda tests: call((*pytest, *_own_options(suite), *tests)))
            arguments = ()
        for number, words in enumerate(suite.commands, 1):
            more = arguments if number == len(suite.commands) else ()
            outcome = outcome._replace(broken=bool(call((*words, *more))) or outcome.broken)
        return outcome


def _own_options(suite: Suite) -> Words:
    """Those that choose what tests run on."""
    return tuple(word for word in suite.options if word.startswith(("--over-ssh", "--elsewhere")))


def _run_again(cache: Path, status: int, run_tests: Callable[[Sequence[str]], int]) -> Outcome:
    """Run each test that failed again, alone and once."""
    file = cache / "v/cache/lastfailed"
    if status == 0:
        return Outcome()
    failed = tuple(json.loads(file.read_text())) if status == 1 and file.exists() else ()
    if not failed or len(failed) > AGAIN:
        return Outcome(failed=failed, broken=True)
    flaky = tuple(name for name in failed if not run_tests([name]))
    return Outcome(failed=tuple(name for name in failed if name not in flaky), flaky=flaky)


def run_all(suites: Mapping[str, Suite], arguments: Sequence[str], flaky_file: Path | None = None) -> int:
    """Run suites one after another, each with its output in a file and a line here. Returns 1 unless all passed at once."""
    BUILD.mkdir(parents=True, exist_ok=True)
    flaky: dict[str, str] = {}
    bad = []
    for name, suite in suites.items():
        log = BUILD / f"{name}.log" if len(suites) > 1 else None
        began = time.monotonic()
        outcome = run(name, suite, arguments, log)
        print(f"== {name}: {outcome}, {time.monotonic() - began:.0f} s", flush=True)
        flaky |= dict.fromkeys(outcome.flaky, name)
        if str(outcome) != "passed":
            bad.append(name)
            lines = log.read_text(errors="replace").splitlines()[-TAIL:] if log else []
            print("\n".join([*lines, *(f"   failed: {test}" for test in outcome.failed)]), flush=True)
    if flaky_file:
        flaky_file.write_text(json.dumps(flaky, indent=2) + "\n")
    if bad:
        print(f"FAILED: {', '.join(bad)}; flaky: {', '.join(flaky) or 'none'}", flush=True)
    return int(bool(bad))


def gate() -> dict[str, Suite]:
    """What the gate runs of all suites, together: tests that are not marked `night`. Those of the page are apart, as Playwright
    leaves an event loop in their process, and so is what their browser needs."""
    apart = {"web": SUITES["web"]._replace(options=GATE)}
    together = [suite for name, suite in SUITES.items() if name not in (*apart, "plays", "browsers")]
    smoke = Suite(
        "of every other suite, what is not marked `night`",
        tests=tuple(path for suite in together for path in suite.tests),
        options=GATE,
        needs=" ".join(dict.fromkeys(word for suite in together for word in suite.needs.split())),
        prepare=tuple(words for suite in together for words in suite.prepare if "schemathesis" not in words[-1]),
    )
    return {"smoke": smoke, **apart}


def main(argv: list[str]) -> int:
    """Run what the command line names; the status of the command."""
    end = argv.index("--") if "--" in argv else len(argv)
    words, arguments = argv[:end], argv[end + 1 :]
    runs = {
        "quick": {"quick": Suite("the pure tests: no tmux, no program", QUICK)},
        "test": {"test": Suite("the core, on real tmux, without its long tests", options=(*CORE, *GATE), needs=SYSTEM)},
        "gate": gate(),
        "nightly": {**SUITES, **ONLY_BY_NIGHT, **versions()},
        "weekly": WEEKLY,
        "bench": BENCH,
    }
    if words == ["list"]:
        for title in ("nightly", "weekly", "bench"):
            suites = runs[title]
            print(f"{title}:", *(f"  {name:12} {suite.about}" for name, suite in suites.items()), sep="\n")
        return 0
    if words == ["packages"]:
        statuses = {
            subprocess.run(command, cwd=ROOT, check=False).returncode
            for suite in gate().values()
            for command in install_commands(suite)
        }
        return int(statuses != {0})
    if not words or words[0] not in runs:
        print(__doc__, file=sys.stderr)
        return 2
    suites = runs[words[0]]
    names = words[1:] or list(suites)
    if unknown := [name for name in names if name not in suites]:
        print(f"no such suite: {', '.join(unknown)}. There are: {', '.join(suites)}", file=sys.stderr)
        return 2
    chosen = {name: suites[name] for name in names}
    try:
        return run_all(chosen, arguments, flaky_file=FLAKY if words[0] == "nightly" else None)
    except KeyboardInterrupt:
        # the programs that ran had it too, and have ended
        return 128 + signal.SIGINT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
