"""What the pages for users of pexpect and of libtmux say is run, row by row, and does what the row says."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tmuxctl
from tmuxctl.surfaces.library import client as clients
from tmuxctl.surfaces.testing.plugin import TestBench

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| `(?P<theirs>.+?)` \| `(?P<ours>.+?)` \| (?P<note>.*?) ?\|$")
BASH = ("bash", "--norc")
PYTHON = ("python3", "-q")
MODULES = {
    "tmuxctl": tmuxctl,
    "contextlib": contextlib,
    "os": os,
    "pathlib": pathlib,
    "re": re,
    "signal": signal,
    "subprocess": subprocess,
}


class Row(NamedTuple):
    """How a row is tried: `before` is run first, and afterwards `holds` must be true, where `value` is that of the row's
    expression. `s` runs the `program`; with `viewed` the row is run in a session `viewer`, because it needs a terminal."""

    holds: str
    before: str = ""
    program: tuple[str, ...] | None = BASH
    viewed: bool = False


ENDED = "s.id not in [one.id for one in client.list()]"
ATTACHED = "viewer = client.new('viewer', ['tmuxctl', 'attach', 'sh']); viewer.wait_for(r'\\$', since='screen')"
LEFT = (
    "viewer.wait_for(r'\\$', since='screen') and s.info.attached == 1 "
    "and viewer.keys('C-b', 'd').wait_for('detached') and s.info.attached == 0"
)
"""A session was attached in `viewer`, and is left by its keys."""
SLEEP = ("sleep", "60")
INTERRUPTIBLE = "s.send('sh -c \"echo ready; exec sleep 60\"').wait_for('^ready$')"
"""Ctrl-C before the shell has started its command is the shell's own, and the command goes on."""
SAYS = ("sh", "-c", "read x; echo one; echo two; exit 3")
ASKS = ("sh", "-c", "printf 'Go on? [y/n] '; read a; echo got $a")

FROM_PEXPECT = {
    'child = pexpect.spawn("python3 -q")': Row("s.alive and s.info.argv == ('python3', '-q')", program=None),
    'pexpect.spawn("cat", ["-n"])': Row("s.send('hi').wait_for(r'1\\s+hi')", program=None),
    'pexpect.spawn("bash", cwd="/tmp")': Row("s.exec('pwd').output == '/tmp\\n'", program=None),
    'pexpect.spawn("bash", env={**os.environ, "STAGE": "test"})': Row(
        "s.exec('echo $STAGE $HOME').output == f'test {os.environ[\"HOME\"]}\\n'", program=None
    ),
    'pexpect.spawn("bash", dimensions=(24, 80))': Row("s.exec('stty size').output == '24 80\\n'", program=None),
    'pexpect.spawn("bash", timeout=10)': Row("tmuxctl.Client().settings.wait_timeout == 10", program=None),
    'pexpect.spawn("cat", encoding="utf-8")': Row("value == 0 and s.before == ''", program=("cat",)),
    'with pexpect.spawn("cat") as child: ...': Row(ENDED, program=None),
    'child.sendline("echo built")': Row("s.wait_for('^built$')"),
    "child.sendline()": Row("s.wait_for('^hi$')", before="s.send('echo hi', enter=False)"),
    'child.send("echo built")': Row(
        "s.keys('Enter').wait('prompt') and s.screen.lines == ['$ echo built', 'built', '$']"
    ),
    'child.writelines(["x=4\\n", "echo $x$x\\n"])': Row("s.wait_for('^44$')"),
    'child.sendcontrol("d")': Row("s.wait('exit').exit_status == 0"),
    "child.sendintr()": Row("s.wait('prompt') and s.ask('echo $?').text == '130'", before=INTERRUPTIBLE),
    "child.sendeof()": Row("s.wait('exit').exit_status == 0", program=("sh", "-c", "cat; exit 0")),
    'child.send("\\x1b[A\\r")': Row("s.wait_for('^one$')", before="s.send('echo one').wait('prompt')"),
    "child.sendline(password)": Row(
        "s.wait_for('^7$') and 'hunter2' not in s.log().text",
        before="s.send('read -rs word; echo ${#word}').wait('input')",
    ),
    "child.flush()": Row("s.wait_for('^hi$')"),
    'child.expect("t.o")': Row("value == 0 and s.after == 'two'", before="s.send('echo one two')"),
    'child.expect(["three", "t.o"])': Row("value == 1 and s.after == 'two'", before="s.send('echo one two three')"),
    'child.expect_exact("1 + 1")': Row("value == 0 and s.after == '1 + 1'", before="s.send('echo 1 + 1')"),
    'child.expect_list([re.compile("one"), re.compile("two")])': Row(
        "value == 1 and s.after == 'two'", before="s.send('echo two one')"
    ),
    "child.ignorecase = True": Row("value == 0 and s.after == 'two'", before="s.send('echo two')"),
    'child.expect("one\\r\\ntwo")': Row("value == 0", before="s.send('echo one; echo two')"),
    'child.expect(">>> ")': Row("value == 0 and s.before == '1\\n'", before="s.send('print(1)')", program=PYTHON),
    "child.expect(pexpect.EOF)": Row(
        "value == 0 and s.after is tmuxctl.EOF and s.before == 'one\\ntwo'", before="s.send('go')", program=SAYS
    ),
    'child.expect(["never", pexpect.TIMEOUT], timeout=1)': Row("value == 1 and s.after is tmuxctl.TIMEOUT"),
    'child.expect("done", timeout=60)': Row(
        "value == 0 and s.after == 'done'", before="s.send('sleep 0.1; echo done')"
    ),
    'try: child.expect("never") except pexpect.TIMEOUT: ...': Row(
        "s.after is tmuxctl.TIMEOUT and s.before.startswith('hi\\n') and s.alive",
        before="s.send('echo hi').wait('prompt')",
    ),
    'try: child.expect("never") except pexpect.EOF: ...': Row(
        "s.after is tmuxctl.EOF and s.before == 'one\\ntwo'", before="s.send('go')", program=SAYS
    ),
    "try: ... except pexpect.ExceptionPexpect: ...": Row("'s' not in names and not client.list()", program=None),
    "child.before": Row("value == 'one '", before="s.send('echo one two').expect('two')"),
    "child.after": Row("value == 'two'", before="s.send('echo one two').expect('t.o')"),
    "child.match.group(1)": Row(
        "value == 'w' and s.match.group(0, 1) == ('two', 'w')", before="s.send('echo one two').expect('t(.)o')"
    ),
    "child.match_index": Row("value == 1", before="s.send('echo one').expect(['two', 'one'])"),
    "child.buffer": Row(
        "value == 0 and s.before.startswith(' two\\n')", before="s.send('echo one two').wait('prompt'); s.expect('one')"
    ),
    "child.searchwindowsize = 100": Row("value == 0 and s.before.count('\\n') == 1999", before="s.send('seq 2000')"),
    "child.delaybeforesend = 0.5": Row("value == 'input'", before="s.send('sleep 0.1; read -rs x')"),
    "time.sleep(1)": Row(
        "value.matched == 'prompt' and 'done' in s.read().text", before="s.send('sleep 0.1; echo done')"
    ),
    "child.waitnoecho()": Row("value == 'password'", before="s.send(\"sleep 0.1; read -rsp 'Password: ' x\")"),
    "child.setecho(False)": Row("'-echo' in s.exec('stty -a').output.split()"),
    "child.read()": Row("s.before == 'one\\ntwo' and s.exit_status == 3", before="s.send('go')", program=SAYS),
    "child.readline()": Row("value == 0 and s.match[1] == 'one'", before="s.send('echo one; echo two')"),
    "child.readlines()": Row("value[-2:] == ['one', 'two']", before="s.send('go').wait('exit')", program=SAYS),
    "for line in child: ...": Row(
        "lines == ['one'] and s.before == 'two'", before="lines = []; s.send('go')", program=SAYS
    ),
    "child.read_nonblocking(1000, timeout=0)": Row(
        "value.startswith('one')", before="s.send('echo one').wait_for('^one$')"
    ),
    'child.logfile = open("out.log", "wb")': Row(
        "pathlib.Path('out.log').read_bytes().count(b'one\\r\\n') == 2", before="s.send('echo one').wait('prompt')"
    ),
    "child.logfile_read = sys.stdout": Row("'\\none\\n' in printed()", before="s.send('echo one').wait('prompt')"),
    "child.isalive()": Row("value is True and s.keys('C-d').wait('exit') and s.alive is False"),
    "child.eof()": Row("value is True", before="s.keys('C-d').wait('exit')"),
    "child.wait()": Row("value == 3", before="s.send('go')", program=SAYS),
    "child.exitstatus": Row("value == 3", before="s.send('go').wait('exit')", program=SAYS),
    "child.signalstatus": Row(
        "value == 'TERM'", before="os.kill(s.info.pid, signal.SIGTERM); s.wait('exit')", program=SLEEP
    ),
    "child.close()": Row(f"{ENDED} and not is_running(pid)", before="pid = s.info.pid", program=SLEEP),
    "child.terminate()": Row(f"value.signal == 'TERM' and {ENDED}", program=SLEEP),
    "child.close(force=True)": Row(
        f"{ENDED} and not is_running(pid)",
        before="s.wait_for('ready', since='screen'); pid = s.info.pid",
        program=("sh", "-c", "trap '' TERM HUP; echo ready; read x"),
    ),
    "child.kill(signal.SIGUSR1)": Row("s.wait('exit').signal == 'USR1'", program=SLEEP),
    "child.pid": Row("f'{value}\\n' == s.exec('echo $$').output"),
    "child.args": Row("value == ('bash', '--norc')"),
    "child.ptyproc": Row("f'{value}\\n' == s.exec('tty').output"),
    "child.isatty()": Row("value is True"),
    "child.setwinsize(24, 80)": Row("s.exec('stty size').output == '24 80\\n'"),
    "child.getwinsize()": Row("value == (40, 120) and s.exec('stty size').output == '40 120\\n'"),
    "str(child)": Row("'ends' in value or 'prompt' in value"),
    "child.interact()": Row(LEFT, viewed=True),
    'pexpect.run("echo hi")': Row("value == 'hi\\n'", program=None),
    "pexpect.run(\"sh -c 'exit 3'\", withexitstatus=True)": Row("value == 3", program=None),
    'pexpect.run("sleep 60", timeout=1)': Row("value is True and not client.list()", program=None),
    'pexpect.run("./deploy", events={r"\\[y/n\\]": "y\\n"})': Row("'got y' in s.log().text", program=ASKS),
    "replwrap.python()": Row("py.ask('6*7').text == '42'", program=None),
    "replwrap.bash()": Row("sh.ask('echo hi').text == 'hi'", program=None),
    'python.run_command("6*7")': Row("value == '42'", before="py = s", program=PYTHON),
    'bash.run_command("cd /tmp; pwd")': Row("value == '/tmp\\n' and s.exec('pwd').output == '/tmp\\n'"),
    'pxssh.pxssh().login("build", "ada")': Row(
        "s.decide(secret='hunter2', wait=True) and s.ask('echo $far').text == 'ada@build'", program=None
    ),
    'ssh.login("build", "ada", "hunter2")': Row(
        "value.asked.kind == 'password' and s.ask('echo $far $given').text == 'ada@build 7'",
        program=("ssh", "ada@build"),
    ),
    "ssh.prompt()": Row(
        "value.matched == 'prompt' and 'done' in s.read().text", before="s.send('sleep 0.1; echo done')"
    ),
    'ssh.sendline("uptime"); ssh.prompt(); ssh.before': Row("value == 'up'", before="s.exec('uptime() { echo up; }')"),
    "ssh.logout()": Row("value.exit_status == 0 and not s.alive"),
    'await child.expect("t.o", async_=True)': Row(
        "value == 0 and s.before == 'one ' and s.after == 'two'",
        before="s = await tmuxctl.aio.session('bash --norc'); await s.send('echo one two')",
        program=None,
    ),
}

FROM_LIBTMUX = {
    "server = libtmux.Server()": Row("[one.name for one in client.list()] == ['sh']"),
    'libtmux.Server(socket_name="work")': Row(
        "client.new('sh', 'cat').tmux.server.socket_name == 'work' and client.control.kill(all=True)"
    ),
    "server.is_alive()": Row("value is True"),
    'server.new_session("build")': Row("client.get('build').info.argv == (os.environ['SHELL'],)", program=None),
    'server.new_session("build", window_command="python3 -q")': Row(
        "s.name == 'build' and s.ask('6*7').text == '42'", program=None
    ),
    'server.new_session("build", start_directory="/tmp")': Row("s.exec('pwd').output == '/tmp\\n'", program=None),
    'server.new_session("build", environment={"STAGE": "test"})': Row(
        "s.exec('echo $STAGE').output == 'test\\n'", program=None
    ),
    'server.new_session("build", x=80, y=24)': Row("s.exec('stty size').output == '24 80\\n'", program=None),
    'server.new_session("build", kill_session=True)': Row(
        "s.id != old and [one.id for one in client.list()] == [s.id]",
        before="old = client.new('build', 'cat').id",
        program=None,
    ),
    "with server.new_session() as session: ...": Row(ENDED, program=None),
    'server.set_option("history-limit", 5000)': Row("s.tmux.active_pane.history_limit == '5000'", program=None),
    "server.sessions": Row("[one.name for one in value] == ['sh']"),
    'server.sessions.get(session_name="sh")': Row("value.id == s.id"),
    'server.sessions.get(session_name="gone", default=None)': Row("value is None"),
    'server.sessions.filter(session_name__startswith="s")': Row(
        "[one.id for one in value] == [s.id]", before="client.new('other', 'cat')"
    ),
    'server.has_session("sh")': Row("value is True"),
    "try: ... except libtmux.exc.TmuxSessionExists: ...": Row("[one.id for one in client.list()] == [s.id]"),
    "try: ... except libtmux.exc.TmuxObjectDoesNotExist: ...": Row("s.name == 'sh'"),
    "server.attached_sessions": Row(
        "[one.name for one in value] == ['sh'] and viewer.keys('C-b', 'd').wait_for('detached')",
        before=ATTACHED,
    ),
    'server.attach_session("sh")': Row(LEFT, viewed=True),
    'server.kill_session("sh")': Row(f"value.signal and {ENDED}"),
    "server.kill()": Row("client.list() == () and not is_running(pid)", before="pid = s.info.pid"),
    'server.cmd("display-message", "-p", "#{version}")': Row("value == [tmux('-V').split()[1]]"),
    'libtmux.Server().sessions.get(session_name="work").active_pane': Row(
        "client.get('work').ask('echo hi').text == 'hi' and 'work' in tmux('-L', 'default', 'list-sessions')",
        before="tmux('-L', 'default', '-f', '/dev/null', 'new-session', '-d', '-s', 'work', 'bash --norc')",
        program=None,
    ),
    "session.name": Row("value == 'sh'"),
    "session.id": Row("value == s.tmux.cmd('display-message', '-p', '#{session_id}').stdout[0]"),
    'session.rename_session("other")': Row("[one.name for one in client.list()] == ['other']"),
    "session.refresh()": Row("value.cols == 90", before="client.get('sh').resize('90x30')"),
    "session.kill()": Row(f"value.session == 'sh' and {ENDED}"),
    "session.active_window": Row("value.window_width == '120'"),
    "session.active_pane": Row("int(value.pane_pid) == s.info.pid"),
    'session.new_window("logs", window_shell="cat")': Row("[one.name for one in client.list()] == ['logs', 'sh']"),
    'pane.split(shell="cat")': Row("[one.id for one in client.list(tag='dev')] == [s.id]"),
    'session.show_option("history-limit")': Row("value == 2000"),
    'session.set_option("status-left", "here")': Row("s.tmux.show_option('status-left') == 'here'"),
    'session.set_environment("STAGE", "test")': Row("s.tmux.getenv('STAGE') == 'test'"),
    'session.cmd("set-option", "@team", "web")': Row("s.tmux.show_option('@team') == 'web'"),
    'pane.send_keys("echo hi")': Row("s.wait_for('^hi$')"),
    'pane.send_keys("echo hi", enter=False)': Row(
        "s.keys('Enter').wait('prompt') and s.screen.lines == ['$ echo hi', 'hi', '$']"
    ),
    'pane.send_keys("Enter", literal=True)': Row("s.wait_for('Enter: command not found')"),
    'pane.send_keys("C-c", enter=False)': Row(
        "s.wait('prompt') and s.ask('echo $?').text == '130'", before=INTERRUPTIBLE
    ),
    'pane.send_keys("echo hi", suppress_history=True)': Row(
        "value == 'hi\\n' and 'echo hi' not in s.exec('history').output", before="s.exec('set -o history')"
    ),
    "pane.enter()": Row("s.wait_for('^hi$')", before="s.send('echo hi', enter=False)"),
    'server.set_buffer("one\\ntwo"); pane.paste_buffer()': Row(
        "s.wait_for(r'one: command not found[\\s\\S]*two: command not found')"
    ),
    "pane.capture_pane()": Row("'hi' in value", before="s.send('echo hi').wait_for('^hi$')"),
    '"\\n".join(pane.capture_pane())': Row("value.startswith('$ echo hi\\nhi\\n')", before="s.ask('echo hi')"),
    "pane.capture_pane(start=-100)": Row(
        "[row for row in value if row.isdecimal()] == [str(n) for n in range(1, 81)]", before="s.ask('seq 80')"
    ),
    "pane.capture_pane(start=1, end=2)": Row(
        "value == ['one', 'two']", before="s.ask('echo one; echo two; echo three')"
    ),
    "pane.capture_pane(escape_sequences=True)": Row(
        "'\\x1b[31mred' in value", before="s.ask(\"printf '\\\\033[31mred\\\\033[0m\\\\n'\")"
    ),
    "pane.capture_pane(join_wrapped=True)": Row(
        "'x' * 300 + '\\n' in value and 'x' * 300 not in s.screen.text",
        before="s.ask(\"printf '%0300d\\\\n' 0 | tr 0 x\")",
    ),
    'pane.pipe("cat >out.log")': Row("'\\nhi\\n' in value", before="s.ask('echo hi')"),
    "pane.clear()": Row("s.wait_gone('hi').matched == 'gone'", before="s.ask('echo hi')"),
    "pane.reset()": Row("'hi' not in s.screen and s.scrollback() == []", before="s.ask('echo hi; seq 80')"),
    "pane.clear_history()": Row("s.scrollback() == [] and '80' in s.screen", before="s.ask('seq 80')"),
    "pane.resize(width=100, height=30)": Row("s.exec('stty size').output == '30 100\\n'"),
    'pane.display_message("#{pane_tty}", get_text=True)': Row("'\\n'.join(value) + '\\n' == s.exec('tty').output"),
    "pane.pane_current_command": Row("value == 'bash'"),
    "pane.pane_current_path": Row("value == '/tmp'", before="s.exec('cd /tmp')"),
    "pane.pane_pid": Row("f'{value}\\n' == s.exec('echo $$').output"),
    "pane.pane_width": Row("value == 80", before="s.resize('80x24')"),
    "pane.pane_height": Row("value == 24", before="s.resize('80x24')"),
    "pane.pane_title": Row("value == 'works'", before="s.ask(\"printf '\\\\033]2;works\\\\007'\")"),
    "pane.cursor_x": Row("value == 2", before="s.ask('echo hi')"),
    "pane.alternate_on": Row("value is True", before="s.send(\"printf '\\\\033[?1049hfull'; read x\").wait('input')"),
    "pane.pane_dead_status": Row("value == 3", before="s.send('exit 3').wait('exit')"),
    "pane.respawn(kill=True)": Row("s.id != old and s.ask('echo $x').text == ''", before="s.exec('x=1'); old = s.id"),
    'retry_until(lambda: "built" in pane.capture_pane())': Row(
        "value.found == 'built'", before="s.send('sleep 0.1; echo built; seq 200')"
    ),
    'pane.send_keys("make"); time.sleep(1); pane.capture_pane()': Row(
        "value.split('\\n')[:2] == ['$ echo built', 'built']"
    ),
    'server.wait_for("finished")': Row(
        "value.matched == 'prompt' and 'done' in s.read().text", before="s.send('sleep 0.1; echo done')"
    ),
    "def test_app(session): ...": Row(
        "test_app(bench) is None and bench.sessions[0].name in [one.name for one in client.list()] "
        "and not bench.end() and not client.list()",
        program=None,
    ),
}

PAGES = {"from-pexpect": FROM_PEXPECT, "from-libtmux": FROM_LIBTMUX}


def read_rows(page: str) -> list[tuple[str, str]]:
    """The rows of a page's table: what the others have, and what we have."""
    lines = (ROOT / "docs" / f"{page}.md").read_text().splitlines()
    return [(row["theirs"], row["ours"]) for line in lines if (row := ROW.match(line))]


EVERY = [pytest.param(page, *row, id=f"{page}: {row[0]}") for page in PAGES for row in read_rows(page)]


@pytest.mark.parametrize("page", PAGES)
def test_every_row_is_tried(page: str) -> None:
    lines = (ROOT / "docs" / f"{page}.md").read_text().splitlines()
    rows = [theirs for theirs, _ in read_rows(page)]
    assert len(rows) == len([line for line in lines if line.startswith("|")]) - 2 >= 40
    assert len(rows) == len(set(rows))
    assert set(rows) == set(PAGES[page])


class Trial:
    """The names that the code of a row has, and the event loop that it runs in."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = {**MODULES, **names}
        self.names["names"] = self.names
        self._runner = asyncio.Runner()

    def run(self, code: str) -> Any:
        """Run statements, or an expression, and return the value of that."""
        try:
            tree = compile(code, "<row>", "eval", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except SyntaxError:
            tree = compile(code, "<row>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        value = eval(tree, self.names)
        if tree.co_flags & inspect.CO_COROUTINE:
            return self._runner.run(_await(value))
        return value

    def end(self) -> None:
        """End the asyncio twin, which the row may have used."""
        self._runner.run(tmuxctl.aio.close())
        self._runner.close()


async def _await(value: Any) -> Any:
    return await value


def run_tmux(*words: str) -> str:
    return subprocess.run(["tmux", *words], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def commands(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`tmuxctl`, and an `ssh` that asks for a password and goes nowhere."""
    folder = place / "commands"
    folder.mkdir()
    again = f"PYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} -m tmuxctl"
    for name, script in {
        "tmuxctl": f'{again} "$@"',
        "ssh": 'printf "$1\'s password: "; stty -echo; read -r word; stty echo; echo\n'
        "far=$1 given=${#word} exec bash --norc",
    }.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture
def trial(
    client: tmuxctl.Client,
    shared: None,
    commands: None,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Trial]:
    # a row may change it for all that follows
    monkeypatch.setenv("TMUXCTL_TIMEOUT", os.environ["TMUXCTL_TIMEOUT"])
    made = Trial(
        {
            "client": client,
            "bench": TestBench(client, request),
            "printed": lambda: capsys.readouterr().out,
            "is_running": lambda pid: Path(f"/proc/{pid}/exe").exists(),
            "tmux": run_tmux,
        }
    )
    yield made
    made.end()
    client.control.kill(all=True)


@pytest.mark.night
@pytest.mark.parametrize(("page", "theirs", "ours"), EVERY)
def test_a_row_does_what_it_says(page: str, theirs: str, ours: str, trial: Trial, needs: Callable[..., None]) -> None:
    row = PAGES[page][theirs]
    client: tmuxctl.Client = trial.names["client"]
    if row.program is not None:
        # of session(), as in what the reader writes
        trial.names["s"] = tmuxctl.session(row.program, name="sh", env={"PS1": "$ "})
    trial.run(row.before)
    if row.viewed:
        script = f"import subprocess, tmuxctl; s = tmuxctl.Client().get('sh'); {ours}"
        trial.names["viewer"] = client.new("viewer", [sys.executable, "-c", script], env={"PYTHONPATH": f"{ROOT}"})
    else:
        trial.names["value"] = trial.run(ours)
    held = trial.run(row.holds)
    known = {name: trial.names[name] for name in ("value", "s") if name in trial.names}
    assert held, f"{row.holds}\n{known}\n{[(one.name, one.screen.text) for one in client.list()]}"


def test_the_shared_client_is_on_the_same_server(client: tmuxctl.Client, shared: None) -> None:
    assert clients.shared_client().settings.tmux_socket == client.settings.tmux_socket
