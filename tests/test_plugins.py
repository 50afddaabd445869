"""What a user can rely on when plugins are found, given options, applied, and cleaned up after."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
import zipfile
from pathlib import Path

import pytest

from tmuxctl import extensions, plugin
from tmuxctl.errors import Denied, Failed, NotFound, Usage
from tmuxctl.model import SessionSpec, Size

ROOT = Path(__file__).resolve().parent.parent
SPEC = SessionSpec(("make", "all"), "/src", env={"A": "1"}, name="build", notes={"mine": [1]})

HEAD = """
from dataclasses import replace
from typing import Annotated
from tmuxctl.errors import Failed
KIND = "wrap"
"""
LOG = """
def cleanup(spec, ended):
    with open(spec.env["LOG"], "a") as log:
        print(NAME, ended.exit_status, ended.kept, file=log)
"""


class User:
    """Puts a plugin into the user's folder, or another one: a module, or a program if it begins with `#!`."""

    def __init__(self, home: Path) -> None:
        self.home, self.folder = home, home / ".config/tmuxctl/plugins"
        self.folder.mkdir(parents=True)

    def __call__(self, name: str, source: str, where: Path | None = None) -> Path:
        path = (where or self.folder) / (name if source.startswith("#!") else f"{name}.py")
        path.write_text(textwrap.dedent(source))
        path.chmod(0o700)
        return path


@pytest.fixture
def user(tmp_path, monkeypatch, plugin_modules):
    """The user's own plugin folder, in a home of its own; `user(name, source)` puts a plugin there."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for name in ("XDG_CONFIG_HOME", "TMUXCTL_PLUGIN_PATH", "TMUXCTL_PROFILE_PATH"):
        monkeypatch.delenv(name, raising=False)
    return User(tmp_path)


def wrapper(word, *, order=50, kind="wrap", more=""):
    return f"""{HEAD}
NAME, ORDER, KIND = {word!r}, {order}, {kind!r}
def transform(spec):
    return replace(spec, argv=({word!r}, *spec.argv))
{more}"""


def applied(*wanted, spec=SPEC):
    return plugin.apply(spec, wanted)[0]


def refused(kind, *wanted, reason, spec=SPEC):
    with pytest.raises(kind) as error:
        plugin.apply(spec, wanted)
    assert error.value.reason == reason
    assert error.value.hint
    return error.value


# how they are asked for


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("nice", ("nice", "")),
        ("nice=15", ("nice", "15")),
        ("env=a,b=c:d", ("env", "a,b=c:d")),
        ("timeout:seconds=5m", ("timeout", {"seconds": "5m"})),
        ("env:file=/x y,set=A=1,set=B=2", ("env", {"file": "/x y", "set": ["A=1", "B=2"]})),
        (r"env:set=A=1\,2", ("env", {"set": "A=1,2"})),
    ],
)
def test_the_ways_to_ask_for_a_plugin(text, meaning):
    assert plugin.parse_with(text) == meaning


@pytest.mark.parametrize(
    "text", ["", "=x", "nice=", "nice:", "nice:level", "nice:level=1,", "../nice=1", "a b", "nice\n"]
)
def test_what_asks_for_no_plugin_is_refused(text):
    with pytest.raises(Usage) as error:
        plugin.parse_with(text)
    assert error.value.reason == "bad_option"
    assert error.value.hint


# options


def test_options_come_from_the_parameters_with_their_types_and_help(user):
    user("typed", f"""{HEAD}
def transform(spec, *, level: Annotated[int, "1-19"] = 10, share: float = 0.5, net: bool = False,
              label: str | None = None, key: Annotated[tuple[str, ...], "K=V", "secret"] = ()):
    return replace(spec, argv=tuple(map(repr, (level, share, net, label, key))))
""")  # fmt: skip
    options = plugin.load("typed").options
    assert options
    assert options[0] == plugin.TransformOption("level", int, "1-19", 10)
    assert applied(("typed", "")).argv == ("10", "0.5", "False", "None", "()")
    assert applied(("typed", "15")).argv[0] == "15"
    given = {"level": 3, "share": "0.25", "net": "yes", "label": "x", "key": ["A=1", "B=2"]}
    assert applied(("typed", given)).argv == ("3", "0.25", "True", "'x'", "('A=1', 'B=2')")
    _, done = plugin.apply(SPEC, [("typed", given)])
    assert [one._asdict() for one in done] == [
        {"name": "typed", "options": {"level": 3, "share": 0.25, "net": True, "label": "x"}}
    ]


@pytest.mark.parametrize(
    ("given", "message", "hint"),
    [
        ({"levle": "1"}, "has no option 'levle'", "did you mean 'level'"),
        ({"zzz": "1"}, "has no option 'zzz'", "it takes level, name"),
        ({"level": "x"}, "level: 'x' is not a whole number", "1-19"),
        ({"level": 1.5}, "level: '1.5' is not a whole number", "1-19"),
        ({"level": True}, "level: 'True' is not a whole number", "1-19"),
        ({"level": "9" * 5000}, "is not a whole number", "1-19"),
        ({"level": ["1", "2"]}, "is not a whole number", "1-19"),
        ({"name": {}}, "name: '{}' is not a single text", "single text"),
        ({}, "needs level: 1-19", "typed:level=VALUE"),
    ],
)
def test_a_wrong_option_names_plugin_option_and_what_is_right(user, given, message, hint):
    user("before", wrapper("before", more="1/0"))
    user("typed", f'{HEAD}\ndef transform(spec, *, level: Annotated[int, "1-19"], name: str = ""): return 1/0')
    error = refused(Usage, ("typed", given), reason="bad_option")
    assert "'typed'" in error.message
    assert message in error.message
    assert hint in error.hint
    assert len(error.message) < 200


# order and result


def test_cwd_then_env_then_wrap_with_the_highest_order_outermost(user):
    user("timeouts", wrapper("timeouts", order=100))
    user("sandbox", wrapper("sandbox", order=0))
    user("nice", wrapper("nice"))
    user("worktree", f"{HEAD}\nKIND = 'cwd'\ndef transform(spec): return replace(spec, cwd=spec.cwd + '/tree')")
    user("vars", f"{HEAD}\nKIND = 'env'\ndef transform(spec): return replace(spec, env={{**spec.env, 'AT': spec.cwd}})")
    wanted = [(name, "") for name in ("timeouts", "nice", "vars", "sandbox", "worktree")]
    spec, done = plugin.apply(SPEC, wanted)
    assert spec.argv == ("timeouts", "nice", "sandbox", "make", "all")
    assert (spec.cwd, spec.env) == ("/src/tree", {"A": "1", "AT": "/src/tree"})
    assert [one.name for one in done] == ["worktree", "vars", "sandbox", "nice", "timeouts"]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ("None", "a SessionSpec, not NoneType"),
        ("'x'", "a SessionSpec, not str"),
        ("replace(spec, argv=())", "spec.argv has to be at least a program"),
        ("replace(spec, argv=('',))", "spec.argv"),
        ("replace(spec, argv=['a'])", "spec.argv has to be a tuple"),
        ("replace(spec, argv=('a', 5))", "spec.argv"),
        ("replace(spec, argv=('a', 'b\\0'))", "spec.argv"),
        ("replace(spec, argv=('a', '\\ud800'))", "spec.argv"),
        ("replace(spec, cwd='src')", "spec.cwd"),
        ("replace(spec, cwd=None)", "spec.cwd"),
        ("replace(spec, env={'A=B': 'x'})", "spec.env"),
        ("replace(spec, env={'A': 5})", "spec.env"),
        ("replace(spec, env={'A': 'x\\0'})", "spec.env"),
        ("replace(spec, env=None)", "spec.env"),
        ("replace(spec, size=(80, 24))", "spec.size"),
        ("replace(spec, size=replace(spec.size, cols=1))", "spec.size"),
        ("replace(spec, history=-1)", "spec.history"),
        ("replace(spec, history=True)", "spec.history"),
        ("replace(spec, name='a b')", "spec.name"),
        ("replace(spec, name='other')", "may not change the session's name"),
        ("replace(spec, machine='other')", "may not change the session's name or machine"),
        ("replace(spec, notes={'x': object()})", "spec.notes"),
        ("replace(spec, notes={'x': float('nan')})", "spec.notes"),
    ],
)
def test_a_result_that_could_not_be_started_is_refused(user, result, message):
    user("bad", f"{HEAD}\ndef transform(spec): return {result}")
    error = refused(Failed, ("bad", ""), reason="plugin")
    assert error.message.startswith("plugin 'bad': ")
    assert message in error.message


def test_an_empty_argument_and_undecodable_bytes_pass(user):
    user("fine", f"{HEAD}\ndef transform(spec): return replace(spec, argv=('printf', '', '\\udcff'))")
    assert applied(("fine", "")).argv == ("printf", "", "\udcff")


# what goes wrong


@pytest.mark.parametrize(
    ("body", "cause"),
    [
        ("raise ValueError('no disk')", "ValueError: no disk (bad.py line 9)"),
        ("raise Failed('no disk', hint='df')", "no disk"),
        ("raise SystemExit(0)", "SystemExit: 0 (bad.py line 9)"),
    ],
)
def test_a_plugin_that_raises_stops_the_spawn_and_the_others_are_cleaned_up_in_reverse(user, body, cause):
    log = user.home / "log"
    spec = SessionSpec(("make",), "/src", env={"LOG": str(log)})
    user("one", wrapper("one", order=1, more=LOG))
    user("two", wrapper("two", order=2, more=LOG))
    user("bad", f"{HEAD}\nORDER = 3\ndef transform(spec):\n    {body}\n" + LOG)
    user("never", wrapper("never", order=4, more=LOG))
    wanted = [(name, "") for name in ("never", "bad", "two", "one")]
    error = refused(Failed, *wanted, reason="plugin", spec=spec)
    assert error.exit == 1
    assert error.message == f"plugin 'bad': {cause}"
    assert log.read_text() == "two None False\none None False\n"


def test_a_cleanup_that_fails_is_told_and_does_not_stop_the_others(user):
    log = user.home / "log"
    spec = SessionSpec(("make",), "/src", env={"LOG": str(log)})
    user("one", wrapper("one", order=1, more=LOG))
    user("two", wrapper("two", order=2, more="def cleanup(spec, ended): raise OSError('stuck')"))
    final, done = plugin.apply(spec, [("one", ""), ("two", "")])
    stored = json.loads(json.dumps([one._asdict() for one in done]))
    complaints = plugin.cleanup(final, [plugin.AppliedPlugin(**one) for one in stored], plugin.SessionEnd(7, kept=True))
    assert complaints == ("plugin 'two': OSError: stuck (two.py line 10)",)
    assert log.read_text() == "one 7 True\n"
    (user.folder / "one.py").unlink()
    assert "no plugin named 'one'" in plugin.cleanup(final, done[:1], plugin.SessionEnd(None, kept=False))[0]


def test_a_plugin_that_cannot_work_here_says_why_before_anything_is_changed(user):
    user("one", f"{HEAD}\nKIND = 'cwd'\ndef transform(spec): open('touched', 'w')")
    user("two", wrapper("two", more="def check(): return 'there is no bwrap'"))
    error = refused(Failed, ("one", ""), ("two", ""), reason="plugin")
    assert error.message == "plugin 'two': cannot work here: there is no bwrap"
    assert not Path("touched").exists()


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def transform(:", "SyntaxError"),
        ("import nosuchmodule", "ModuleNotFoundError: No module named 'nosuchmodule' (bad.py line 1)"),
        ("KIND = 'wrap'", "needs a function transform"),
        ("def transform(spec): return spec", f"a KIND ({', '.join(plugin.KINDS)})"),
        ("KIND = 'shell'\ndef transform(spec): return spec", f"a KIND ({', '.join(plugin.KINDS)})"),
        ("KIND = ['wrap']\ndef transform(spec): return spec", f"a KIND ({', '.join(plugin.KINDS)})"),
        ("KIND = 'env'\ndef transform(spec, *, x: list = ()): return spec", "option x: its type is not one of"),
        ("KIND = 'env'\ndef transform(spec, **more): return spec", "option more"),
        ("KIND = 'env'\ndef transform(spec, *, x: 'Nosuch' = 1): return spec", "NameError"),
    ],
)
def test_a_broken_plugin_is_named_with_the_cause(user, source, message):
    user("bad", source)
    error = refused(Failed, ("bad", ""), reason="plugin")
    assert error.message.startswith("plugin 'bad': ")
    assert message in error.message


# where they are found


def test_the_users_folder_then_the_path_then_ours(user, monkeypatch):
    other = user.home / "other"
    other.mkdir(mode=0o700)
    user("timeout", wrapper("from-path"), other)
    user("second", wrapper("second"), other)
    monkeypatch.setenv("TMUXCTL_PLUGIN_PATH", f":{other}:")
    assert extensions.find_plugin("env").source == "shipped"
    assert extensions.find_plugin("timeout").source == "path"
    assert applied(("timeout", "")).argv[0] == "from-path"
    user("timeout", wrapper("from-user"))
    assert applied(("timeout", "")).argv[0] == "from-user"
    assert {found.name: found.source for found in extensions.list_plugins()} == {
        **{path.stem: "shipped" for path in (ROOT / "plugins").iterdir() if path.stem[0] != "_"},
        "timeout": "user",
        "second": "path",
    }


def test_nothing_is_taken_from_the_current_directory(user, monkeypatch):
    here = user.home / "project"
    for folder in ("", "plugins", "tmuxctl/plugins", ".config/tmuxctl/plugins"):
        (here / folder).mkdir(parents=True, exist_ok=True)
        user("planted", wrapper("planted"), here / folder)
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CONFIG_HOME", ".config")
    for path in ("", ":", "::"):
        monkeypatch.setenv("TMUXCTL_PLUGIN_PATH", path)
        refused(NotFound, ("planted", ""), reason="no_plugin")
    for path in (".", "plugins", f"{user.folder}:../project", "~/project"):
        monkeypatch.setenv("TMUXCTL_PLUGIN_PATH", path)
        refused(Usage, ("planted", ""), reason="bad_path")


PACKAGE = """
import sys
sys.path.append(sys.argv[1])
from tmuxctl import plugin
from tmuxctl.errors import TmuxctlError
from tmuxctl.model import SessionSpec
try:
    print(plugin.apply(SessionSpec(("make",), "/"), [("hello", "")])[0].argv)
except TmuxctlError as error:
    print(error.reason)
"""


def package(folder, word):
    (folder / "hello-1.dist-info").mkdir(parents=True)
    (folder / "hello-1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: hello\nVersion: 1\n")
    (folder / "hello-1.dist-info/entry_points.txt").write_text("[tmuxctl.plugins]\nhello = hello_plugin\n")
    (folder / "hello_plugin.py").write_text(textwrap.dedent(wrapper(word)))


@pytest.mark.parametrize("started", [["-c", PACKAGE], ["-m", "runner"]], ids=["-c", "-m"])
def test_an_installed_package_is_found_but_none_in_the_current_directory(user, started):
    installed, here = user.home / "installed", user.home / "here"
    here.mkdir()
    (here / "runner.py").write_text(PACKAGE)

    def ask(where):
        environment = {"HOME": str(user.home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
        command = [sys.executable, *started, str(where)]
        return subprocess.run(
            command, cwd=here, env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    package(installed, "installed")
    assert ask(installed) == "('installed', 'make')"
    package(here, "planted")
    assert ask("/nonexistent") == "no_plugin"
    assert ask(installed) == "unsafe_file"


@pytest.mark.parametrize("name", ["../env", "", "/etc/passwd", "a.b", "env/", "_private", "-x", "e\0", "x" * 64])
def test_a_name_is_never_a_path(user, name):
    refused(Usage, (name, ""), reason="bad_name")


def test_an_unknown_name_tells_what_there_is(user):
    error = refused(NotFound, ("timeuot", ""), reason="no_plugin")
    assert "there are: env, timeout" in error.message.replace("sandbox, ", "").replace("scratchpad, ", "")
    assert error.hint == "did you mean 'timeout'?"


@pytest.mark.parametrize(
    ("what", "name"), [("folder", "one"), ("folder", "two"), ("module", "one"), ("program", "two"), ("folder", "env")]
)
def test_what_others_may_write_is_refused(user, what, name):
    module, program = user("one", wrapper("one")), user("two", "#!/bin/sh\ncat >&2; touch ran")
    {"folder": user.folder, "module": module, "program": program}[what].chmod(0o777)
    with pytest.raises(Denied) as error:
        plugin.apply(SPEC, [(name, "")])
    assert error.value.reason == "unsafe_file"
    assert not Path("ran").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("what", ["", "one.py", "__pycache__"])
def test_what_belongs_to_somebody_else_is_refused(user, what):
    user("one", wrapper("one"))
    (user.folder / "__pycache__").mkdir()
    os.chown(user.folder / what, 12345, 12345)
    with pytest.raises(Denied, match="belongs to user 12345"):
        plugin.load("one")


def test_a_plugin_is_loaded_once_from_its_own_file(user):
    path = user(
        "one", "import sys\nassert sys.modules[__name__].__file__ == __file__\n" + textwrap.dedent(wrapper("one"))
    )
    assert plugin.load("one").module is plugin.load("one").module
    assert getattr(plugin.load("one").module, "__name__", None) == "tmuxctl.plugins.one"
    assert plugin.load("one").found.path == str(path)


def test_a_package_in_the_folder_is_a_plugin(user):
    (user.folder / "big").mkdir()
    (user.folder / "big/__init__.py").write_text("from .part import KIND, transform")
    (user.folder / "big/part.py").write_text(textwrap.dedent(wrapper("big")))
    assert applied(("big", "")).argv[0] == "big"
    (user.folder / "empty").mkdir()
    refused(NotFound, ("empty", ""), reason="no_plugin")


def test_plugins_and_profiles_work_from_one_zipped_file(user):
    archive = user.home / "tmuxctl.pyz"
    with zipfile.ZipFile(archive, "w") as file:
        for path in (ROOT / "tmuxctl").glob("*.py"):
            file.write(path, f"tmuxctl/{path.name}")
        for path in (ROOT / "plugins").glob("*.py"):
            file.write(path, f"tmuxctl/plugins/{path.name}")
        file.writestr("tmuxctl/profiles/demo.yaml", "name: demo\n")
    code = """if True:
        from tmuxctl import extensions, plugin
        from tmuxctl.model import SessionSpec
        spec, _ = plugin.apply(SessionSpec(("make",), "/"), [plugin.parse_with("env:set=A=1"), ("timeout", "1m")])
        print(extensions.__file__, dict(spec.env), dict(spec.notes))
        print([found.name for found in extensions.list_plugins()], [found.name for found in extensions.list_profiles()])
        print(extensions.read_extension(extensions.find_profile("demo")))
    """
    environment = {"HOME": str(user.home), "PATH": os.environ["PATH"], "PYTHONPATH": str(archive)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    names = sorted(path.stem for path in (ROOT / "plugins").glob("*.py"))
    assert ran.stdout.splitlines() == [
        f"{archive}/tmuxctl/extensions.py {{'A': '1'}} {{'given': ['A'], 'lifetime': 60.0}}",
        f"{names} ['demo']",
        "b'name: demo\\n'",
    ]


def test_profiles_are_found_by_the_same_rules(user, monkeypatch):
    own, other = user.home / ".config/tmuxctl/profiles", user.home / "other"
    for folder in (own, other):
        folder.mkdir(mode=0o700)
        (folder / "demo.yaml").write_text(f"name: {folder.name}\n")
    (other / "more.yaml").write_text("name: more\n")
    monkeypatch.setenv("TMUXCTL_PROFILE_PATH", str(other))
    assert extensions.read_extension(extensions.find_profile("demo")) == b"name: profiles\n"
    assert {"demo": "user", "more": "path"}.items() <= {
        one.name: one.source for one in extensions.list_profiles()
    }.items()
    (own / "demo.yaml").chmod(0o666)
    with pytest.raises(Denied):
        extensions.find_profile("demo")
    with pytest.raises(NotFound, match="no profile named 'mroe'"):
        extensions.find_profile("mroe")


def test_finding_a_plugin_in_a_folder_needs_no_package_metadata(user):
    code = "import sys; from tmuxctl.extensions import find_plugin; find_plugin('env')"
    code += "; print([name for name in ('importlib.metadata', 'subprocess', 'zipfile') if name in sys.modules])"
    environment = {"HOME": str(user.home), "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)}
    assert subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True).stdout == b"[]\n"


# executables


def program(body):
    return (
        f"#!{sys.executable}\nimport json, os, sys, time\nasked = json.load(sys.stdin)\nspec = asked['spec']\n{body}\n"
    )


def test_an_executable_transforms_checks_and_cleans_up(user):
    user("swap", program(f"""
open({str(user.home / "log")!r}, "a").write(json.dumps(asked) + "\\n")
if asked["op"] == "transform":
    spec["argv"] = ["swap", asked["options"]["value"], *spec["argv"]]
    print(json.dumps(spec))
"""))  # fmt: skip
    spec, done = plugin.apply(SPEC, [("swap", "now")], folder=str(user.home))
    assert spec.argv == ("swap", "now", "make", "all")
    assert (spec.size, spec.notes, spec.machine) == (Size(120, 40), {"mine": [1]}, None)
    assert plugin.cleanup(spec, done, plugin.SessionEnd(0, kept=True)) == ()
    log = [json.loads(line) for line in (user.home / "log").read_text().splitlines()]
    assert [one["op"] for one in log] == ["check", "transform", "cleanup"]
    assert log[2] == {
        "op": "cleanup",
        "options": {"value": "now"},
        "spec": plugin.spec_to_json(spec),
        "ended": {"exit_status": 0, "kept": True, "force": False},
    }


def test_an_executable_says_its_kind_order_and_options(user):
    user("first", program("print(json.dumps({'kind': 'cwd', 'order': 3, 'options': {'level': '1-19'}}))"))
    found = plugin.load("first")
    assert (found.kind, found.order, found.options) == ("cwd", 3, (plugin.TransformOption("level", str, "1-19"),))
    assert refused(Usage, ("first", {"levle": "1"}), reason="bad_option").hint == "did you mean 'level'?"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("if asked['op'] == 'transform': sys.exit('the disk\\nis full')", "plugin 'bad': the disk is full"),
        ("sys.exit('no bwrap')", "plugin 'bad': cannot work here: no bwrap"),
        ("if spec: sys.exit(3)", "exit status 3"),
        ("if spec: print('hello')", "printed 'hello\\n', not a JSON object"),
        ("if spec: print('[' * 100000)", "not a JSON object"),
        ("if spec: print('[1]')", "not a JSON object"),
        ("if spec: print('{}')", "spec.argv"),
        ("if spec: print(json.dumps({**spec, 'argw': 1}))", "spec has no field 'argw'"),
        ("if spec: print(json.dumps({**spec, 'size': 'big'}))", "'big' is not a valid size"),
        ("if spec: print(json.dumps({**spec, 'env': {'A': None}}))", "spec.env"),
        ("if spec: print(json.dumps({**spec, 'name': 'x'}))", "may not change"),
        ('print(\'{"kind": "shell"}\')', "check printed no kind"),
    ],
)
def test_an_executable_that_fails_is_named_with_what_it_said(user, body, message):
    user("bad", program(body))
    error = refused(Failed, ("bad", ""), reason="plugin")
    assert error.message.startswith("plugin 'bad': ")
    assert message in error.message


def test_an_executable_that_does_not_start_is_told(user):
    user("bad", "#!/nonexistent/shell\n")
    assert "does not start" in refused(Failed, ("bad", ""), reason="plugin").message


@pytest.mark.night
def test_an_executable_that_hangs_is_ended_with_its_children(user):
    user("slow", f"#!/bin/sh\nsleep 1000 &\necho $! > {user.home}/child\nwait\n")
    with pytest.raises(Failed, match=r"did not end within 0\.5 s") as error:
        extensions.run_program(extensions.find_plugin("slow"), {"op": "check"}, "/", seconds=0.5)
    assert error.value.reason == "plugin"
    child = int((user.home / "child").read_text())
    deadline = time.monotonic() + 10
    while is_running(child):
        assert time.monotonic() < deadline, "the child goes on"
        time.sleep(0.005)


def is_running(pid):
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True).stdout
    return bool(state.strip()) and not state.startswith("Z")


# a spec as JSON


def test_a_spec_survives_json():
    spec = SessionSpec(("a", "", "\udcff"), "/x", {"A": "ü"}, Size(80, 24), "n", "web", 5, {"lifetime": 1.5})
    assert plugin.spec_from_json(json.loads(json.dumps(plugin.spec_to_json(spec)))) == spec
    assert plugin.spec_from_json({"argv": ["a"], "cwd": "/"}) == SessionSpec(("a",), "/")


@pytest.mark.parametrize(
    "data",
    [None, [], {}, {"argv": ["a"]}, {"cwd": "/"}, {"argv": "a", "cwd": "/"}, {"argv": ["a"], "cwd": "/", "size": 5}],
)
def test_what_is_no_spec_is_refused(data):
    with pytest.raises(Usage) as error:
        plugin.spec_from_json(data)
    assert error.value.reason == "bad_spec"


# env


def test_env_reads_a_file_and_single_values(user):
    (user.home / ".env").write_bytes(
        b"\xef\xbb\xbf# comment\n\nPLAIN=a b  # comment\nexport  EXPORTED = x\r\nEMPTY=\nHASH=a#b\nONLY= # nothing\n"
        b'SINGLE=\'a \\n "$HOME" # b\'\nDOUBLE="a\\tb\\\\ \\"q\\" \\$HOME $HOME" # comment\nURL=http://x/?a=b&c=d\n'
        b'MORE="one\ntwo"\nPLAIN=again\nSPACE="  "\nNOT=$(touch planted)'
    )
    spec = applied(
        ("env", {"file": ".env", "set": ["A=2", "URL=", "EQ=a=b"]}),
        spec=SessionSpec(("x",), str(user.home), {"A": "1"}),
    )
    assert spec.env == {
        "A": "2", "PLAIN": "again", "EXPORTED": "x", "EMPTY": "", "HASH": "a#b", "ONLY": "",
        "SINGLE": 'a \\n "$HOME" # b', "DOUBLE": 'a\tb\\ "q" $HOME $HOME', "URL": "", "EQ": "a=b",
        "MORE": "one\ntwo", "SPACE": "  ", "NOT": "$(touch planted)",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"A=1\nB\n", "line 2: no `=`"),
        (b"A=1\n\n2B=1\n", "line 3: the text before the `=` is not the name of a variable"),
        (b"A=1\nsecret/1=\n", "line 2: the text before the `=` is not the name of a variable"),
        (b"A='x\nB=1\n", "line 1: a ' is not closed"),
        (b'M="1\n2"\nA="x" secret\n', 'line 3: a " is not closed, or something follows it'),
        (b"A=1\nB=\0\n", "line 2: holds a NUL"),
        (b"A=1\nB=\xff\n", "line 2: not UTF-8"),
        (b"#" * (1 << 20) + b"\n", "larger than 1 MiB"),
    ],
)
def test_a_bad_environment_file_names_its_line_and_no_value(user, content, message):
    (user.home / "vars").write_bytes(content)
    error = refused(Failed, ("env", str(user.home / "vars")), reason="plugin")
    assert error.message.startswith("plugin 'env': ")
    assert f"{user.home}/vars" in error.message
    assert message in error.message
    assert "secret" not in error.message


def test_env_tells_what_it_cannot_use(user):
    assert "No such file" in refused(Failed, ("env", "/nonexistent"), reason="plugin").message
    assert "does not begin with a variable's name" in refused(Failed, ("env", {"set": "1A=x"}), reason="plugin").message
    remote = SessionSpec(("x",), "/src", machine="web")
    assert "not absolute" in refused(Failed, ("env", ".env"), reason="plugin", spec=remote).message


def test_the_values_given_to_env_are_not_stored(user):
    _, done = plugin.apply(SPEC, [plugin.parse_with("env:set=TOKEN=abc")])
    assert "abc" not in json.dumps([one._asdict() for one in done])


# timeout


def test_timeout_asks_for_a_lifetime_and_leaves_the_program_as_it_is(user):
    spec = applied(("timeout", "2h"))
    assert (spec.argv, spec.notes) == (SPEC.argv, {"mine": [1], "lifetime": 7200.0})
    assert applied(("timeout", 90)).notes["lifetime"] == 90.0
    assert applied(("timeout", "1m"), ("timeout", "2m")).notes["lifetime"] == 60.0
    assert plugin.load("timeout").order > plugin.ORDER


@pytest.mark.parametrize("text", ["none", "0", "soon", "-1", "366d", "inf"])
def test_a_lifetime_that_is_none_is_refused(user, text):
    assert "plugin 'timeout': " in refused(Failed, ("timeout", text), reason="plugin").message


def test_timeout_has_no_other_option_and_needs_a_limit(user):
    assert refused(Usage, ("timeout", {"after": "5m"}), reason="bad_option").hint == "it takes seconds, idle, grace"
    assert "seconds or idle has to be given" in refused(Failed, ("timeout", ""), reason="plugin").message
    refused(Failed, ("timeout", {"grace": "5s"}), reason="plugin")


# the documentation


def snippets(language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "docs/plugins.md").read_text(), re.DOTALL)


def test_the_documented_module_works_as_it_is_written(user, capsys):
    first, more, _ = snippets("python")
    user("nice", first)
    assert plugin.load("nice").help == "Run the program at lower priority."
    assert applied(plugin.parse_with("nice=15")).argv == ("nice", "-n", "15", "make", "all")
    user("nicer", first + more)
    spec, done = plugin.apply(SPEC, [("nicer", "")])
    assert plugin.cleanup(spec, done, plugin.SessionEnd(0, kept=True)) == ()
    assert capsys.readouterr().err == "0 True\n"


def test_the_documented_module_for_every_machine_works_as_it_is_written(user):
    user("empty", snippets("python")[2])
    spec, done = plugin.apply(SPEC, [("empty", "")])
    assert os.listdir(spec.cwd) == []
    assert plugin.load("empty").options == ()
    assert plugin.cleanup(spec, done, plugin.SessionEnd(0, kept=True)) == ()
    assert not os.path.exists(spec.cwd)


@pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
def test_the_documented_executable_works_as_it_is_written(user):
    [source] = snippets("sh")
    user("lazy", source)
    spec, done = plugin.apply(SPEC, [("lazy", "15")])
    assert spec == SessionSpec(
        ("nice", "-n", "15", "make", "all"), "/src", {"A": "1"}, name="build", notes={"mine": [1]}
    )
    assert applied(("lazy", "")).argv[:3] == ("nice", "-n", "10")
    assert plugin.cleanup(spec, done, plugin.SessionEnd(0, kept=True)) == ()
