"""Plugins looked at and tried: `plugin ls`, `plugin show`, and `plugin test` with what it asks of every plugin."""

from __future__ import annotations

import json
import signal
import tempfile
import textwrap
from pathlib import Path

import pytest
from click.shell_completion import ShellComplete

from tmuxctl import contract
from tmuxctl.control.service import Control
from tmuxctl.control.setup import plugins
from tmuxctl.errors import Denied, Failed, NotFound, Usage
from tmuxctl.operations import find
from tmuxctl.surfaces.cli import app
from tmuxctl.timing import PluginTiming

SHIPPED = sorted(
    path.stem for path in (Path(__file__).resolve().parents[2] / "plugins").iterdir() if path.stem[0] != "_"
)

NICE = '''
"""Run the program at lower priority.

It stays so.
"""
from dataclasses import replace
from typing import Annotated

KIND = "wrap"

def transform(spec, *, level: Annotated[int, "1-19"] = 10, key: Annotated[tuple[str, ...], "a key", "secret"] = ()):
    return replace(spec, argv=("nice", "-n", str(level), *spec.argv))
'''

HEAD = '''
"""What it is for."""
import os, subprocess, time
from dataclasses import replace
from typing import Annotated
from tmuxctl.errors import Failed, Usage
KIND = "wrap"
'''

LAZY = r"""#!/bin/sh
request=$(cat)
printf '%s\n' "$request" >>"${LOG:-/dev/null}"
case $request in
*'"op": "check"'*) echo '{"kind": "env", "order": 7, "help": "Do nothing.", "options": {"word": "any"}}' ;;
*'"op": "transform"'*) request=${request#*'"spec": '} && printf '%s\n' "${request%?}" ;;
esac
"""


@pytest.fixture
def put(place):
    return PluginFolder(place / ".config/tmuxctl/plugins")


class PluginFolder:
    """Puts a plugin into the user's folder, or another one: a module, or a program if it begins with `#!`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, mode=0o700)

    def __call__(self, name: str, source: str, where: Path | None = None) -> Path:
        where = where or self.folder
        for other in (where / name, where / f"{name}.py"):
            other.unlink(missing_ok=True)
        path = where / (name if source.startswith("#!") else f"{name}.py")
        path.write_text(source if source.startswith("#!") else textwrap.dedent(source).lstrip())
        path.chmod(0o700)
        return path


@pytest.fixture
def line(capsys):
    before = signal.getsignal(signal.SIGTERM)

    def run(*words):
        status = app.run(words)
        found = capsys.readouterr()
        assert "Traceback" not in found.err
        return status, found.out, found.err

    yield run
    signal.signal(signal.SIGTERM, before)


def listed(**timing):
    return {one.name: one for one in plugins.ls(PluginTiming(**timing)).plugins}


def wrapper(body, head=HEAD, options="", more=""):
    return f"{head}\ndef transform(spec{options}):\n    {body}\n{textwrap.dedent(more)}\n"


SOUND = "return replace(spec, argv=('env', *spec.argv))"


# plugin ls


def test_every_plugin_is_listed_with_what_it_is(put, place, monkeypatch):
    other = place / "other"
    other.mkdir(mode=0o700)
    monkeypatch.setenv("TMUXCTL_PLUGIN_PATH", str(other))
    path, lazy = put("nice", NICE), put("lazy", LAZY, other)
    found = listed()
    assert {*SHIPPED, "lazy", "nice"} == found.keys()
    nice = found["nice"]
    assert (nice.kind, nice.order, nice.source, nice.form, nice.path) == ("wrap", 50, "user", "module", str(path))
    assert (nice.summary, nice.options, nice.problem) == (
        "Run the program at lower priority.",
        ("level", "key"),
        None,
    )
    one = found["lazy"]
    assert (one.kind, one.order, one.source, one.form, one.path) == ("env", 7, "path", "executable", str(lazy))
    assert (one.summary, one.options, one.problem) == ("Do nothing.", ("word",), None)
    assert all(one.source == "shipped" and one.summary for name, one in found.items() if name in SHIPPED)


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("def transform(:", "SyntaxError"),
        ("import nosuchmodule", "No module named 'nosuchmodule'"),
        ("raise SystemExit(3)", "SystemExit: 3"),
        ("KIND = 'wrap'", "needs a function transform"),
        (NICE + "\ndef check(): return 'there is no \\x1b[31mnice'", "there is no \x1b[31mnice"),
        (NICE + "\ndef check(): 1/0", "ZeroDivisionError"),
        ("#!/bin/sh\necho there is no bwrap >&2; exit 1\n", "there is no bwrap"),
        ("#!/bin/sh\necho hello\n", "printed 'hello\\n', not a JSON object"),
        ("#!/bin/sh\necho '{\"options\": 5}'\n", "check printed no kind"),
        ("#!/nonexistent/shell\n", "does not start"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_listed_with_what_is_wrong(put, line, source, problem):
    put("bad", source)
    assert problem in listed()["bad"].problem
    assert listed()["env"].problem is None
    status, out, err = line("plugin", "ls")
    assert (status, err) == (0, "")
    assert "\x1b" not in out
    assert [row for row in out.splitlines() if row.startswith("bad") and "!" in row]
    shown = json.loads(line("plugin", "ls", "--json")[1])
    assert [one["problem"] for one in shown["plugins"] if one["name"] == "bad"] == [listed()["bad"].problem]


# a limit by alarm would leave none for us
@pytest.mark.timeout(method="thread")
@pytest.mark.parametrize(
    "source",
    [
        "import time\ntime.sleep(1000)",
        NICE + "\nimport time\ndef check(): time.sleep(1000)",
        NICE + "\ndef check():\n    while True: pass",
        "#!/bin/sh\nsleep 1000\n",
    ],
)
def test_a_plugin_that_hangs_is_listed_with_that(put, source):
    put("slow", source)
    assert "0.3 s" in listed(program_seconds=0.3)["slow"].problem


def test_programs_are_only_asked_what_they_are(put, place, monkeypatch):
    monkeypatch.setenv("LOG", str(place / "log"))
    put("lazy", LAZY)
    plugins.ls()
    plugins.show("lazy")
    assert {json.loads(asked)["op"] for asked in (place / "log").read_text().splitlines()} == {"check"}


# plugin show


def test_all_of_a_plugin_is_shown(put, line):
    path = put("nice", NICE)
    page = plugins.show("nice")
    assert (page.kind, page.order, page.source, page.path) == ("wrap", 50, "user", str(path))
    assert page.text == "Run the program at lower priority.\n\nIt stays so."
    assert page.options
    level, key = page.options
    assert (level.type, level.default, level.help, level.required) == ("whole number", 10, "1-19", False)
    assert (key.type, key.repeated, key.secret, key.default) == ("text", True, True, [])
    assert page.usage == ("--with nice", "--with nice=LEVEL", "--with nice:level=LEVEL,key=KEY")
    status, out, _ = line("plugin", "show", "nice")
    assert status == 0
    for words in ("It stays so.", "--with nice=LEVEL", "whole number, default 10", "repeatable, secret", "1-19"):
        assert words in out
    assert json.loads(line("plugin", "show", "nice", "--json")[1])["options"][0]["default"] == 10


@pytest.mark.parametrize(
    ("options", "usage"),
    [
        ("", ["--with x"]),
        (", a: str = ''", ["--with x", "--with x=A", "--with x:a=A"]),
        (", a: str", ["--with x=A", "--with x:a=A"]),
        (", a: str, b: str", ["--with x:a=A,b=B"]),
        (", a: str = '', *, b: str", ["--with x:b=B"]),
    ],
)
def test_how_a_plugin_is_asked_for_can_be_typed(put, options, usage):
    put("x", wrapper("return spec", options=options))
    assert list(plugins.show("x").usage) == usage


def test_what_a_plugin_needs_and_why_it_cannot_work_is_shown(put, line):
    put("x", wrapper("return spec", options=", *, word: Annotated[str, 'a word']",
                     more="CLEAN_ENV = True\ndef check(): return 'there is no moon'"))  # fmt: skip
    page = plugins.show("x")
    assert page.options
    assert (page.problem, page.clean_env, page.options[0].required) == ("there is no moon", True, True)
    out = line("plugin", "show", "x")[1]
    assert "no: there is no moon" in out
    assert "text, required" in out
    assert "a short list of variables" in out


def test_a_program_that_names_no_options_takes_any(put, line):
    put("any", "#!/bin/sh\ncat >/dev/null\n")
    assert plugins.show("any").options is None
    assert "it takes any option" in line("plugin", "show", "any")[1]


def test_a_plugin_that_is_not_there_or_not_safe_is_refused(put, line):
    with pytest.raises(NotFound) as error:
        plugins.show("env2")
    assert error.value.hint == "did you mean 'env'?"
    assert line("plugin", "show", "env2")[0] == 3
    put("bad", "1/0")
    with pytest.raises(Failed, match="ZeroDivisionError"):
        plugins.show("bad")
    put("open", NICE).chmod(0o777)
    for operation in (plugins.show, contract.run):
        with pytest.raises(Denied):
            operation("open")


# plugin test


def tried(name="it", **options):
    return {one.test: one for one in contract.run(name, options)}


def broken(name="it", **options):
    return {one.test: one.why for one in contract.run(name, options) if one.outcome == "failed"}


@pytest.mark.night
@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_plugin_keeps_to_all(place, name):
    found = tried(name)
    assert not [f"{one.test}: {one.why}" for one in found.values() if one.outcome == "failed"]
    cannot = found["says in time whether it can work here"].why
    if cannot:
        pytest.skip(f"{name}: {cannot}")
    assert found["takes a plain command"].outcome == "ok"
    for other in SHIPPED:
        together = found.get(f"works with {other}")
        assert together is None or together.outcome == "ok" or "cannot work here" in together.why, together


@pytest.mark.night
@pytest.mark.parametrize(
    ("source", "test", "why"),
    [
        ("1/0", "loads", "ZeroDivisionError"),
        (wrapper(SOUND).replace('"""What it is for."""', ""), "says what it is for", "no docstring"),
        (wrapper(SOUND, options=", *, word: str = ''"), "says what each option is for", "word"),
        (wrapper(SOUND, more="def check(): return 5"), "says in time whether it can work here", "returned 5"),
        (wrapper("raise ValueError('no disk')"), "takes a plain command", "plugin 'it': ValueError: no disk (it.py line"),
        (wrapper("return None"), "takes a plain command", "not NoneType"),
        (wrapper(SOUND, options=", *, a: Annotated[str, 'a']"), "takes a plain command", "it needs a"),
        (wrapper("return replace(spec, name='x')"), "takes a plain command", "may not change the session's name"),
        (wrapper("return replace(spec, notes={'x': {1}})"), "takes a plain command", "spec.notes"),
        (wrapper("return replace(spec, env={'A B': 'x'})"), "takes a plain command", "spec.env"),
        (wrapper("return replace(spec, argv=('sh', '-c', ' '.join(spec.argv)))"), "keeps the command it wraps", "sleep"),
        (wrapper("subprocess.run(' '.join(spec.argv).replace('sleep', ':'), shell=True, check=True)\n    " + SOUND),
         "takes arguments with quotes, line ends and other alphabets", "CalledProcessError"),
        (wrapper("os.stat(spec.cwd.replace('##', '#'))\n    " + SOUND),
         "takes a folder with spaces and signs in its name", "FileNotFoundError"),
        (wrapper("spec.env['PATH']\n    " + SOUND), "takes an empty environment", "KeyError"),
        (wrapper("os.stat(spec.cwd)\n    " + SOUND), "takes another machine, or refuses it with its own error", "/srv/shop"),
        (wrapper("return replace(spec, argv=('env', str(time.monotonic_ns()), *spec.argv))"),
         "gives the same result when called again", "another argv"),
        (wrapper("spec.env['A'] = '1'\n    " + SOUND), "does not change what it is given", "dataclasses.replace"),
        (wrapper("return replace(spec, cwd='/')"), "changes only what its kind allows", "changed cwd"),
        (wrapper(SOUND, HEAD + "KIND = 'env'"), "changes only what its kind allows", "changed argv"),
        (wrapper(SOUND, HEAD + "KIND = 'cwd'"), "changes only what its kind allows", "changed argv"),
        (wrapper("return replace(spec, argv=('env', f'A={key}', *spec.argv))",
                 options=", *, key: Annotated[str, 'a', 'secret'] = ''"),
         "keeps secrets out of arguments and notes", "key, which is secret, is in argv"),
        (wrapper("return replace(spec, notes={**spec.notes, 'key': list(key)})",
                 options=", *, key: Annotated[tuple[str, ...], 'a', 'secret'] = ()"),
         "keeps secrets out of arguments and notes", "key, which is secret, is in notes"),
        (wrapper("os.system('echo hello')\n    " + SOUND), "writes nothing to standard output", "new --json"),
        (wrapper("return replace(spec, notes={**spec.notes, 'lifetime': 'soon'})", HEAD + "KIND = 'env'"),
         "works with timeout", "plugin 'timeout': TypeError"),
        (wrapper(SOUND, more="def cleanup(spec, ended): spec.notes['mine']"), "cleans up where nothing was started", "KeyError"),
        (wrapper("open(spec.cwd + '/mine', 'w').close()\n    " + SOUND,
                 more="def cleanup(spec, ended): os.unlink(spec.cwd + '/mine')"), "cleans up more than once", "FileNotFoundError"),
        (wrapper(SOUND, more="def cleanup(spec, ended): os.listdir(spec.cwd)"), "cleans up where nothing is left", "No such file"),
        (wrapper(SOUND, more="def cleanup(spec, ended): return 5 / 0 if ended.force else None"),
         "cleans up more than once", "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_what_a_plugin_does_not_keep_to_is_named(put, source, test, why):
    put("it", source)
    assert why in broken().get(test, "it passed")


def test_a_plugin_that_keeps_to_all_passes(put):
    put("it", wrapper(SOUND, options=", *, word: Annotated[str, 'a word'] = 'x'"))
    assert contract.failures("it") == ()
    assert {one.outcome for one in contract.run("it")} == {"ok", "skipped"}


def test_a_program_keeps_to_all_too(put):
    put("it", LAZY)
    assert broken() == {}
    put("it", LAZY.replace('"${request%?}"', "hello"))
    assert "not a JSON object" in broken()["takes a plain command"]


def test_a_plugin_that_cannot_work_here_is_not_tried(put):
    put("it", wrapper("1/0", more="def check(): return 'there is no moon'"))
    last = contract.run("it")[-1]
    assert (last.outcome, last.why) == ("skipped", "it cannot work here: there is no moon")


def test_another_machine_may_be_refused_with_words(put):
    put("it", wrapper("if spec.machine: raise Usage('not from here')\n    " + SOUND))
    assert "not from here" in tried()["takes another machine, or refuses it with its own error"].why
    assert broken() == {}


@pytest.mark.night
def test_the_options_to_try_it_with_are_given_or_named_by_an_example(put):
    source = wrapper("open(word)\n    " + SOUND, options=", *, word: Annotated[str, 'a file']")
    put("it", source)
    assert "let its `example` name one" in broken()["takes a plain command"]
    assert broken(word="/dev/null") == {}
    put(
        "it",
        source + "\ndef example(folder):\n    open(folder + '/f', 'w').close()\n    return {'word': folder + '/f'}",
    )
    assert broken() == {}
    assert "/nonexistent" in broken(word="/nonexistent")["takes a plain command"]
    put("it", source + "\ndef example(folder): return ['word']")
    assert "not options by name" in broken()["takes a plain command"]
    put("it", LAZY.replace('"help"', '"example": {"word": 1, "sentence": 2}, "help"'))
    assert "has no option 'sentence'" in broken()["takes a plain command"]


def test_what_a_plugin_leaves_behind_in_words_is_no_failure(put):
    put("it", wrapper(SOUND, more="def cleanup(spec, ended): return '2 files are kept'"))
    assert broken() == {}


@pytest.mark.night
@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("os.system('sleep 1000')", "did not end within 5 s"),
        ("os._exit(3)", "ended the test process, with status 3"),
        ("os._exit(0)", "ended the test process, with status 0"),
        ("os.kill(os.getpid(), 9)", "with status -9"),
    ],
)
def test_a_plugin_that_takes_the_trial_down_fails_that_test(put, body, why):
    put("it", wrapper(f"if len(spec.argv) > 2: {body}\n    {SOUND}"))
    told = contract.run("it", timing=PluginTiming(test_seconds=5.0))
    assert why in {one.test: one.why for one in told}["takes arguments with quotes, line ends and other alphabets"]


def test_a_trial_leaves_nothing_behind(put, place, monkeypatch, until):
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    writes = "for name in ('HOME', 'TMPDIR', 'XDG_STATE_HOME'): open(os.environ[name] + '/mine', 'w').close()"
    put("it", wrapper(f"{writes}\n    subprocess.Popen(['sleep', '1000'])\n    {SOUND}"))
    before = {*place.rglob("*")}
    assert broken() == {}
    new = {path for path in place.rglob("*") if path not in before}
    assert not [path for path in new if "__pycache__" not in str(path)]
    until(lambda: not any(map(started_in(place), Path("/proc").glob("[0-9]*"))))


def started_in(place):
    def was(process):
        try:
            return f"HOME={place}/tmuxctl-plugin-".encode() in (process / "environ").read_bytes()
        except OSError:
            return False

    return was


@pytest.mark.night
def test_the_command_tells_each_test_and_ends_with_1_if_one_failed(put, line):
    put("it", wrapper("return replace(spec, cwd='/')"))
    status, shown, _ = line("plugin", "test", "it")
    assert status == 1
    assert "it  ok       loads\n" in shown
    assert "it  failed   changes only what its kind allows: of kind wrap, it may change" in shown
    assert "it  skipped  keeps secrets out of arguments and notes: it has no secret option\n" in shown
    status, out, _ = line("plugin", "test", "it", "--json")
    told = json.loads(out)
    outcomes = [one["outcome"] for one in told["tests"]]
    counted = tuple(map(outcomes.count, ("ok", "failed", "skipped")))
    assert (status, told["ok"]) == (1, False)
    assert counted == (told["passed"], told["failed"], told["skipped"])
    assert shown.splitlines()[-1] == "{} passed, {} failed, {} skipped".format(*counted)
    assert line("plugin", "test", "it", "-q")[1].count("\n") == told["failed"]
    put("it", wrapper(SOUND))
    assert line("plugin", "test", "it")[0] == 0


@pytest.mark.night
def test_options_are_given_as_name_and_value(put, line):
    put("it", wrapper("assert (word, more) == ('a=b', ('1', '2'))\n    " + SOUND,
                      options=", *, word: Annotated[str, 'a'] = '', more: Annotated[tuple[str, ...], 'b'] = ()"))  # fmt: skip
    given = ("--option", "word=a=b", "--option", "more=1", "--option", "more=2")
    assert line("plugin", "test", "it", *given)[0] == 0
    assert line("plugin", "test", "it")[0] == 1
    for words in (
        ("it", "env", *given),
        ("it", "--option", "word"),
        ("it", "--option", "wrod=1"),
        ("it", "--option", "=1"),
    ):
        assert line("plugin", "test", *words)[0] == 2
    with pytest.raises(Usage, match="needs the name of a single plugin"):
        plugins.test(["it", "it"], ["word=a"])
    with pytest.raises(Usage, match="has no option 'wrod'"):
        contract.run("it", {"wrod": "1"})
    assert line("plugin", "test", "nosuch")[0] == 3


@pytest.mark.parametrize(("typed", "start"), [(["plugin", "show"], "ni"), (["plugin", "test", "env"], "ni")])
def test_the_shell_completes_the_names_of_plugins(put, typed, start):
    put("nice", NICE)
    complete = ShellComplete(app.App(), {}, "tmuxctl", "_X").get_completions
    assert [one.value for one in complete(typed, start)] == ["nice"]


def test_trying_needs_the_right_to_start_programs():
    assert [find(Control, f"plugin_{name}").meta.right for name in ("ls", "show", "test")] == ["read", "read", "create"]
