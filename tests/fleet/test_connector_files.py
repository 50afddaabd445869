"""What a connector file may say, and what is told of one with something wrong in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from fleet.connector_cases import (
    AGENT_CASES,
    AGENTS,
    HEAD,
    NAME_CASES,
    OTHER_CASES,
    SMALL,
    TOPOLOGY,
    TOPOLOGY_CASES,
    WHOLE,
)

from tmuxctl.errors import Denied, Usage
from tmuxctl.fleet.connector import (
    RUN_TIME,
    TURNS,
    Agent,
    Connector,
    Dialogue,
    FanOut,
    Isolation,
    Meeting,
    Mesh,
    OnError,
    OnFail,
    Pipeline,
    Recursive,
    Stage,
    Stop,
)
from tmuxctl.fleet.files.reading import read_connector
from tmuxctl.fleet.files.templates import template
from tmuxctl.machines import MachineEntry

PROFILES = Path(__file__).resolve().parent.parent.parent / "profiles"
TYPES = {"pipeline": Pipeline, "dialogue": Dialogue, "meeting": Meeting, "mesh": Mesh, "recursive": Recursive}


@pytest.fixture
def read(tmp_path: Path):
    def read_text(text: str | bytes, name: str = "team.yaml") -> Connector:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_connector(str(path))

    return read_text


@pytest.fixture
def wrong(read):
    def read_wrong(text: str | bytes) -> Usage:
        with pytest.raises(Usage) as caught:
            read(text)
        error = caught.value
        assert error.reason == "bad_connector"
        assert error.message.isprintable()
        assert error.message.isascii()
        return error

    return read_wrong


def test_a_whole_file_is_read(read, tmp_path: Path):
    found = read(json.dumps(WHOLE, indent=2), "shop.json")
    assert found.path == str(tmp_path / "shop.json")
    assert (found.name, found.input, found.output, found.keep) == ("shop", WHOLE["input"], "transcript.jsonl", True)
    assert found.machines == {
        "build": MachineEntry("build", ssh="ci@build", socket="work"),
        "box": MachineEntry("box", command=("docker", "exec", "-i", "box", "sh")),
    }
    writer = Agent(
        name="writer",
        command=("claude", "--model", ""),
        profile="claude",
        machines=("build", None, "web.example"),
        cwd="~/shop",
        size="100x30",
        role="You write tests.",
        isolation=Isolation(
            worktree="topic",
            sandbox="workspace",
            scratchpad="shared",
            env={"PORT": "8080", "DEBUG": "true", "NAME": "", "RATIO": "1.5"},
            timeout="1h",
            plugins=("nice", "timeout:idle=30m"),
        ),
        decide={"tool": "allow", "*": "stop"},
        turn_timeout=5400.0,
    )
    assert found.agents == {
        "writer": writer,
        "coder": Agent("coder", candidates=("ollama", "codex", "claude"), route="cheapest", machines=("box",)),
        "shell": Agent("shell", command=("bash",), turn_timeout=90.0),
        "lint": Agent("lint", profile="bash"),
    }
    assert list(found.agents) == list(WHOLE["agents"])
    assert found.topology == Pipeline(
        (
            Stage("writer", "Write tests for {input}, as in {this: [1]}"),
            FanOut(
                (
                    Stage("coder", "Make these pass:\n{previous}"),
                    Stage("lint", "ruff check", expect_exit=0, on_fail=OnFail(0, 1)),
                ),
                join=1,
            ),
            Stage("shell", "pytest -q", expect_exit=0, on_fail=OnFail(1, 3)),
        )
    )
    assert found.stop == Stop(30, 172800.0, "(?m)^DONE$", "restart")
    assert found.on_error == OnError("retry", 3)
    assert found.raw == WHOLE


def test_yaml_says_the_same_as_json(read):
    as_json = read(json.dumps(WHOLE), "shop.json")
    as_yaml = read(yaml.safe_dump(WHOLE, sort_keys=False), "shop.yaml")
    assert as_yaml.raw == WHOLE
    for name in ("agents", "topology", "stop", "machines", "input", "on_error", "keep"):
        assert getattr(as_yaml, name) == getattr(as_json, name), name


def test_what_is_left_out_has_its_default(read):
    found = read(SMALL)
    assert found.stop == Stop(TURNS, RUN_TIME, None, "fail")
    assert (found.input, found.on_error, found.keep, found.output) == ("", OnError("stop"), False, None)
    assert found.topology == Dialogue(("writer", "coder"), "writer", "{input}")


@pytest.mark.parametrize("topology", TYPES)
def test_a_template_can_be_used_as_it_is(read, topology: str):
    text = template(topology)
    assert text.startswith("# ")
    found = read(text)
    assert type(found.topology) is TYPES[topology]
    assert found.name == topology
    assert found.input


@pytest.mark.parametrize("topology", TYPES)
def test_a_template_names_profiles_that_there_are(read, topology: str):
    agents = read(template(topology)).agents.values()
    named = {name for agent in agents for name in (agent.profile, *agent.candidates, *agent.command[:1])} - {"auto"}
    assert named
    assert not [name for name in named if not (PROFILES / f"{name}.yaml").exists()]


def test_there_is_no_template_of_another_topology():
    with pytest.raises(Usage) as caught:
        template("piepline")
    assert "'pipeline'" in caught.value.hint


@pytest.mark.parametrize(
    ("topology", "found"),
    [
        ("{type: mesh, start: {shell: a}}", Mesh({"shell": "a"})),
        ("{type: mesh, start: {shell: a}, links: {shell: ['*'], coder: []}}", Mesh({"shell": "a"}, {"shell": ("*",), "coder": ()})),
        ("{type: recursive, root: shell, worker: coder, depth: 8}", Recursive("shell", "coder", depth=8)),
        (
            "{type: meeting, chair: shell, members: [coder, writer], speak: parallel, decision: '^D'}",
            Meeting("shell", ("coder", "writer"), speak="parallel", decision="^D"),
        ),
        (
            "{type: pipeline, stages: [{fan_out: [{agent: shell, prompt: a}, {agent: coder, prompt: b}], join: 2}]}",
            Pipeline((FanOut((Stage("shell", "a"), Stage("coder", "b")), 2),)),
        ),
        (
            "{type: pipeline, stages: [{fan_out: [{agent: shell, prompt: a}, {agent: coder, prompt: b}], join: all}]}",
            Pipeline((FanOut((Stage("shell", "a"), Stage("coder", "b")), None),)),
        ),
    ],
)  # fmt: skip
def test_topologies(read, topology: str, found: object):
    assert read(f"{HEAD}{AGENTS}topology: {topology}\n").topology == found


def test_json_escapes_come_out_right(read):
    text = json.dumps(WHOLE | {"input": 'é\U0001f600/\\"\t\x7f\x1b'}, ensure_ascii=True).replace("/", "\\/")
    assert "\\ud83d\\ude00" in text
    assert read(text).input == 'é\U0001f600/\\"\t\x7f\x1b'
    long = "x" * 2000
    assert read(json.dumps(WHOLE | {"input": long + ": #"})).input == long + ": #"
    assert read(b"\xef\xbb\xbf" + json.dumps(WHOLE).encode()).name == "shop"


@pytest.mark.parametrize(("agent", "said", "hint"), AGENT_CASES)
def test_what_is_wrong_with_an_agent(wrong, agent: str, said: str, hint: str):
    error = wrong(f"{HEAD}agents:\n  a: {{command: [bash]}}\n  b: {agent}\n{TOPOLOGY}")
    assert "team.yaml line 5: " in error.message
    assert said in error.message
    assert hint in error.hint


@pytest.mark.parametrize(("name", "said"), NAME_CASES)
def test_names_that_no_agent_may_have(wrong, name: str, said: str):
    error = wrong(f"{HEAD}agents:\n  writer: {{command: [bash]}}\n  {name}: {{command: [bash]}}\n{TOPOLOGY}")
    assert "team.yaml line 5: agents" in error.message
    assert said in error.message


@pytest.mark.parametrize(("topology", "said", "hint"), TOPOLOGY_CASES)
def test_what_is_wrong_with_a_topology(wrong, topology: str, said: str, hint: str):
    error = wrong(f"{HEAD}{AGENTS}topology: {topology}\n")
    assert "team.yaml line 4: " in error.message
    assert said in error.message
    assert hint in error.hint


@pytest.mark.parametrize(("line", "said", "hint"), OTHER_CASES)
def test_what_is_wrong_elsewhere(wrong, line: str, said: str, hint: str):
    error = wrong(f"{SMALL}{line}\n")
    assert "team.yaml line 5: " in error.message
    assert said in error.message
    assert hint in error.hint


@pytest.mark.parametrize("key", ["schema", "name", "agents", "topology"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_a_key_that_is_missing_is_named(wrong, key: str, form: str):
    rest = {name: value for name, value in WHOLE.items() if name != key}
    error = wrong(json.dumps(rest) if form == "json" else yaml.safe_dump(rest))
    assert f"`{key}`" in error.message


def test_another_schema_is_refused(wrong):
    error = wrong(SMALL.replace("connector@1", "connector@2"))
    assert "line 1: schema: schema 'tmuxctl/connector@2' is not known" in error.message


def test_agents_are_bounded(read, wrong):
    def file(count: int) -> str:
        agents = {f"a{number}": {"command": ["bash"]} for number in range(count)}
        return json.dumps(WHOLE | {"agents": agents, "topology": {"type": "mesh", "start": {"a0": "x"}}})

    assert len(read(file(200)).agents) == 200
    assert "201 entries" in wrong(file(201)).message


def test_the_line_of_a_later_stage_is_named(wrong):
    text = json.dumps(WHOLE, indent=2).replace('"goto": 1', '"goto": 2').replace('"join": "first"', '"join": 7')
    line = text.count("\n", 0, text.index('"join": 7')) + 1
    error = wrong(text)
    assert f"line {line}: topology.stages.1.join: 7 answers of 2 stages" in error.message


# files that are no YAML and no JSON, or bombs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("{", "line 1: "),
        ('{\n"a": 1,\n}', "line 3: "),
        ('{"a": 1} x', "Extra data"),
        ('{"a": NaN}', "NaN is no number"),
        ('{\n"name": 1,\n"name": 2}', "line 3: 'name' was given before, on line 2"),
        ("{a: b}", "line 1: "),
        ('{"a": ' * 9 + "1" + "}" * 9, "nested too deeply"),
        ("{" + '"a":[' * 50_000, "line 1: "),
        ('{"a":' + "[" * 50 + "]" * 50 + "}", "nested too deeply"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", "nested too deeply"),
        ("a: " + "[" * 100_000, "maximum nesting depth"),
        ('{"a": ' + "9" * 6000 + "}", ""),
        ("{" + " " * (257 << 10) + "}", "larger than 256 KB"),
        ("a: " + "x" * (257 << 10), "larger than 256 KB"),
        (b"name: \xff", "not UTF-8"),
        (b'{"name": "\xff"}', "not UTF-8"),
        ("a: &x [1]\nb: *x", "aliases (*) and anchors (&)"),
        ("a: &a [x,x]\nb: &b [*a,*a]\nc: &c [*b,*b]", "aliases (*) and anchors (&)"),
        ("a: !!python/object/apply:os.system [id]", "tags"),
        ('a: !<%1b[2J> x', "tags"),
        ("a: b\n---\na: b", "a second document"),
        ("<<: {name: x}\n", "`schema`"),
        ("a: \x1b[2J", "U+001B"),
        ('{"a": "\x1b[2J"}', "line 1: "),
        ("[]", "expected key: value pairs"),
        ("just text", "expected key: value pairs"),
        (json.dumps(WHOLE | {"name": "\ud83d"}), "half of a surrogate pair"),
        (json.dumps(WHOLE | {"input": "\ud83d"}), "half of a surrogate pair"),
        ("schema: tmuxctl/connector@1\n\x1b: x", "U+001B"),
        ('schema: tmuxctl/connector@1\n"\\e[2J": x', "no key '\\x1b[2J'"),
        (f'{HEAD}agents: {{"\\e[2J": }}\n{TOPOLOGY}', "\\x1b[2J: is empty"),
    ],
    ids=range(32),
)  # fmt: skip
def test_what_is_no_file_of_ours_ends_in_an_error(wrong, text: str | bytes, said: str):
    assert said in wrong(text).message


def test_as_a_nested_list_a_topology_is_deep_enough(read):
    assert read(json.dumps(WHOLE, indent=1)).topology.stages[1].stages[1].on_fail == OnFail(0, 1)


# the file itself


def test_a_file_that_is_not_there(tmp_path: Path):
    with pytest.raises(Usage) as caught:
        read_connector(str(tmp_path / "no\x1b[2Jne.yaml"))
    assert caught.value.reason == "bad_connector"
    assert "No such file" in caught.value.message
    assert "\x1b" not in caught.value.message


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/tty", "/", "fifo", "a\0b"])
def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path, monkeypatch, path: str):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("fifo")
    with pytest.raises(Usage) as caught:
        read_connector(path)
    assert caught.value.reason == "bad_connector"


def test_a_file_that_others_can_write_is_refused(tmp_path: Path):
    path = tmp_path / "team.yaml"
    path.write_text(SMALL)
    path.chmod(0o666)
    with pytest.raises(Denied) as caught:
        read_connector(str(path))
    assert caught.value.reason == "unsafe_file"


def test_a_link_to_a_file_is_followed_that_the_user_names(tmp_path: Path):
    (tmp_path / "team.yaml").write_text(SMALL)
    (tmp_path / "link.yaml").symlink_to("team.yaml")
    assert read_connector(str(tmp_path / "link.yaml")).path == str(tmp_path / "link.yaml")


# the file with a run's text


def test_the_text_is_read_from_a_file_beside_the_connector(read, tmp_path: Path, monkeypatch):
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "one.md").write_text("Schreibe {input}\n$HOME `id` ü\n")
    monkeypatch.chdir("/")
    assert read(f"{SMALL}input: {{file: tasks/one.md}}\n").input == "Schreibe {input}\n$HOME `id` ü\n"


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "../secret", "tasks/../../secret", "link", "folder/secret", "tasks/./../../secret", "tasks/link",
        "none", "tasks", "tasks/", ".", "..", "fifo", "zero", "large", "binary", "nul", "tasks//link", "/",
    ],
)  # fmt: skip
def test_a_text_that_may_not_be_read(wrong, tmp_path: Path, path: str):
    outside = tmp_path / "outside"
    inside = tmp_path / "inside"
    (inside / "tasks").mkdir(parents=True)
    outside.mkdir()
    (tmp_path / "secret").write_text("secret")
    (outside / "secret").write_text("secret")
    (inside / "link").symlink_to("../secret")
    (inside / "tasks" / "link").symlink_to("../../secret")
    (inside / "folder").symlink_to("../outside")
    (inside / "zero").symlink_to("/dev/zero")
    os.mkfifo(inside / "fifo")
    (inside / "large").write_bytes(b"x" * ((1 << 20) + 1))
    (inside / "binary").write_bytes(b"\xff")
    (inside / "nul").write_bytes(b"a\0b")
    file = inside / "team.yaml"
    file.write_text(f"{SMALL}input: {{file: '{path}'}}\n")
    with pytest.raises(Usage) as caught:
        read_connector(str(file))
    assert "team.yaml line 5: input.file: " in caught.value.message
    assert "secret" not in caught.value.message.replace(path, "")


def test_a_text_may_have_a_mebibyte(read, tmp_path: Path):
    (tmp_path / "text").write_bytes(b"x" * (1 << 20))
    assert len(read(f"{SMALL}input: {{file: text}}\n").input) == 1 << 20


# the digest


def test_the_digest_is_that_of_the_files_and_the_place(read, tmp_path: Path):
    text = f"{SMALL}input: {{file: task}}\n"
    (tmp_path / "task").write_text("a")
    first = read(text)
    assert first.digest == read(text).digest
    assert len(first.digest) == 64
    digests = {first.digest, read(text, "other.yaml").digest, read(text + "# more\n").digest}
    (tmp_path / "task").write_text("b")
    assert len({*digests, read(text).digest}) == 4


# a parser without C


PYTHON_PARSER = """
import sys, yaml
if hasattr(yaml, "CSafeLoader"):
    del yaml.CSafeLoader
from tmuxctl.errors import Usage
from tmuxctl.fleet.files.reading import read_connector
try:
    print(ascii(read_connector(sys.argv[1]).input))
except Usage as error:
    print(error.message)
"""


@pytest.mark.parametrize(("written", "said"), [("é \\x41", "'\\xe9 A'"), ("\\ud83d", "surrogate pair")])
def test_yaml_is_read_alike_without_its_parser_in_c(tmp_path: Path, written: str, said: str):
    path = tmp_path / "team.yaml"
    path.write_text(f'{SMALL}input: "{written}"\n')
    done = subprocess.run([sys.executable, "-c", PYTHON_PARSER, path], capture_output=True, text=True, timeout=60)
    assert said in done.stdout, done.stderr
