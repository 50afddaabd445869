"""What a profile's file may say, how one is built on another, and which one a command gets."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
import yaml

from tmuxctl import extensions
from tmuxctl.errors import NotFound, Usage
from tmuxctl.profile_files import library, patterns, resolved, schema
from tmuxctl.program_profile import (
    RULES,
    AnswerRules,
    HookEventRule,
    Hooks,
    Profile,
    Rule,
    Submit,
    from_json,
    is_named,
    to_json,
)
from tmuxctl.terminal.input.keys import tmux_keys
from tmuxctl.value import Value
from tools import profile_page
from tools.profile_page import Row

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = sorted(path.stem for path in (ROOT / "profiles").glob("*.yaml"))
HEAD = "schema: tmuxctl/profile@1\n"

WHOLE = """\
schema: tmuxctl/profile@1
name: shop
detect: {argv0: [shop, 'shop-*'], foreground: shop}
command: [shop, --console]
size: 100x30
env: {TERM: xterm-256color, PAGER: ''}
start: {timeout: 60s}
prompt: {id: input, re: '^shop>', where: cursor-line, detail: repl}
continuation: [{id: more, re: '^\\.\\.\\.', where: cursor-line}]
busy: [{id: spinner, re: 'esc to interrupt', where: bottom:3, detail: thinking}]
asking:
  - id: delete
    kind: confirm
    re: 'Delete .*\\?$'
    where: last-line
    question: '(?P<q>Delete .*)'
    options: {yes: [y, Enter], no: n}
    default: no
    risk: high
  - {id: pass, re: '^Password:', kind: password, hidden: true}
errors: [{id: limit, re: 'usage limit', retry: none}, {id: slow, re: 'try again', retry: 30s}]
title: {busy: '^[⠂⠐] ', idle: '^✳ '}
password: {argv: --passwordbox, unless: [--inputbox, --form]}
idle: {settle: 800ms}
cost: 3
resume: {argv: [--continue]}
submit: {mode: paste, newline: [M-Enter], enter: [Enter], delay: 50ms, verify: echo, clear: C-u}
answer: {from: '^⏺ ', strip: '^\\s*[╭╰│]', until: '^shop>'}
interrupt: Escape
exit: {send: /exit, keys: [C-d, C-d]}
hooks:
  {argv: [--told, '{hook}'], env: {TOLD: '{shell}/told'}, files: {told: 'x'}, events: {on: Stop, is: stop, text: 'said[-1].text'}}
notes: tested with version 2.x
tests: [{screen: 'shop>', state: idle, cursor: '5,0'}, {screen_file: screens/menu.txt, not: [idle, busy]}]
"""


KEPT_SINCE_1 = r"""{
 "format": 1,
 "argv0": ["shop", "shop-*"],
 "foreground": ["shop"],
 "command": ["shop", "--console"],
 "size": "100x30",
 "env": {"TERM": "xterm-256color", "PAGER": ""},
 "start_timeout": 60.0,
 "prompt": [{"id": "input", "re": "^shop>", "where": "cursor-line", "detail": "repl"}],
 "continuation": [{"id": "more", "re": "^\\.\\.\\.", "where": "cursor-line"}],
 "busy": [{"id": "spinner", "re": "esc to interrupt", "where": "bottom:3", "detail": "thinking"}],
 "asking": [{"id": "delete", "re": "Delete .*\\?$", "where": "last-line", "kind": "confirm",
             "question": "(?P<q>Delete .*)", "options": {"yes": ["y", "Enter"], "no": ["n"]}, "default": "no", "risk": "high"},
            {"id": "pass", "re": "^Password:", "kind": "password", "hidden": true}],
 "errors": [{"id": "limit", "re": "usage limit", "retry": "none"}, {"id": "slow", "re": "try again", "retry": "30s"}],
 "title_busy": "^[⠂⠐] ",
 "title_idle": "^✳ ",
 "password_argv": ["--passwordbox"],
 "password_unless": ["--inputbox", "--form"],
 "settle": 0.8,
 "submit": {"mode": "paste", "newline": ["M-Enter"], "delay": 0.05, "verify": "echo", "clear": ["C-u"]},
 "answer": {"begin": "^⏺ ", "strip": ["^\\s*[╭╰│]"], "until": "^shop>"},
 "interrupt": ["Escape"],
 "exit_send": "/exit",
 "exit_keys": ["C-d", "C-d"],
 "hooks": {"argv": ["--told", "{hook}"], "env": {"TOLD": "{shell}/told"}, "files": {"told": "x"},
           "events": [{"on": "Stop", "means": "stop", "text": "said[-1].text"}]},
 "cost": 3.0,
 "resume": ["--continue"],
 "notes": "tested with version 2.x",
 "name": "shop"
}"""
"""What an earlier version kept of WHOLE in a session's folder. Sessions outlive versions: it stays readable."""


@pytest.fixture
def own(place: Path):
    """Writes a profile into the user's folder."""
    folder = place / ".config/tmuxctl/profiles"
    folder.mkdir(parents=True)

    def write(name: str, text: str) -> Path:
        path = folder / f"{name}.yaml"
        path.write_text(text if text.startswith("schema:") else HEAD + text)
        return path

    return write


@pytest.fixture(params=["C", "Python"])
def either_parser(request, monkeypatch):
    """A one-file application has only the parser in Python."""
    if request.param == "Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    elif not hasattr(yaml, "CSafeLoader"):
        pytest.skip("PyYAML was built without libyaml")


def parse(text: str, name: str = "shop") -> Profile:
    return resolved.build_profile(schema.parse(text.encode(), "shop.yaml", name, keys=tmux_keys).given)


def wrong(text: str) -> Usage:
    with pytest.raises(Usage) as caught:
        schema.parse(
            (text if text.startswith("schema:") else HEAD + text).encode(), "shop.yaml", "shop", keys=tmux_keys
        )
    assert caught.value.reason == "bad_profile"
    return caught.value


def test_a_profile_is_what_its_file_says():
    assert parse(WHOLE) == Profile(
        name="shop",
        argv0=("shop", "shop-*"),
        foreground=("shop",),
        command=("shop", "--console"),
        size="100x30",
        env={"TERM": "xterm-256color", "PAGER": ""},
        start_timeout=60.0,
        prompt=(Rule("input", "^shop>", "cursor-line", detail="repl"),),
        continuation=(Rule("more", r"^\.\.\.", "cursor-line"),),
        busy=(Rule("spinner", "esc to interrupt", "bottom:3", detail="thinking"),),
        asking=(
            Rule("delete", r"Delete .*\?$", "last-line", "confirm", "(?P<q>Delete .*)",
                 {"yes": ("y", "Enter"), "no": ("n",)}, "no", "high"),
            Rule("pass", "^Password:", kind="password", hidden=True),
        ),
        errors=(Rule("limit", "usage limit", retry="none"), Rule("slow", "try again", retry="30s")),
        title_busy="^[⠂⠐] ",
        title_idle="^✳ ",
        password_argv=("--passwordbox",),
        password_unless=("--inputbox", "--form"),
        settle=0.8,
        submit=Submit("paste", ("M-Enter",), ("Enter",), 0.05, "echo", ("C-u",)),
        answer=AnswerRules("^⏺ ", (r"^\s*[╭╰│]",), "^shop>"),
        interrupt=("Escape",),
        exit_send="/exit",
        exit_keys=("C-d", "C-d"),
        hooks=Hooks(
            argv=("--told", "{hook}"),
            env={"TOLD": "{shell}/told"},
            files={"told": "x"},
            events=(HookEventRule("Stop", "stop", text="said[-1].text"),),
        ),
        cost=3.0,
        resume=("--continue",),
        notes="tested with version 2.x",
    )  # fmt: skip


def test_its_tests_say_where_a_screen_is_and_what_it_is():
    inline, file = schema.parse(WHOLE.encode(), "shop.yaml", "shop").tests
    assert (inline.screen, inline.cursor, inline.state) == ("shop>", (5, 0), "idle")
    assert (file.file, file.never) == ("screens/menu.txt", ("idle", "busy"))


@pytest.mark.parametrize(
    ("text", "line", "said", "hint"),
    [
        ("promt: []", 2, "no key 'promt'", "did you mean 'prompt'?"),
        ("a: 1\nb: 2", 2, "no key 'a'", "there are: schema, name"),
        ("prompt:\n  - {id: a, re: '^>', were: screen}", 3, "no key 'were'", "'where'"),
        ("submit: {entr: [Enter]}", 2, "no key 'entr'", "'enter'"),
        ("size: big", 2, "'big' is not a valid size", "120x40"),
        ("notes: x\nsize:\n  big", 3, "'big' is not a valid size", ""),
        ("idle: {settle: soon}", 2, "'soon' is not a valid duration", "500ms"),
        ("cost: much", 2, "'much' is not a number", ""),
        ("env: [A=1]", 2, "expected key: value pairs", ""),
        ("env: {'A B': x}", 2, "'A B' is not the name of a variable", ""),
        ("interrupt: {a: b}", 2, "expected text, not a map", ""),
        ("interrupt:", 2, "interrupt: is empty", "leave it out"),
        ("interrupt: Escpae", 2, "no key named 'Escpae'", "did you mean"),
        ("exit: {keys: [C-d, Nosuch]}", 2, "no key named 'Nosuch'", ""),
        ("detect: {argv0: /usr/bin/shop}", 2, "'/usr/bin/shop' is not the name of a program", "python3*"),
        ("prompt: {id: a, re: '^(>'}", 2, "not a regular expression", ""),
        ("prompt: {id: a, re: '^(?:a+)+$'}", 2, "it can take too long", ""),
        ("prompt: {id: a, re: '(\\w*\\s?)*>'}", 2, "it can take too long", ""),
        ("prompt: {id: a, re: '^\\s*'}", 2, "matches an empty line", ""),
        ("title: {idle: '.*'}", 2, "matches an empty line", ""),
        ("prompt: {re: '^>'}", 2, "needs `id`", ""),
        ("prompt: {id: a b, re: '^>'}", 2, "'a b' is not a valid name", ""),
        ("prompt: {id: a, re: '^>', where: bottom}", 2, "'bottom' is not a place", "bottom:6"),
        ("prompt: {id: a, re: '^>', detail: thinking}", 2, "not one of its values", "shell, repl, agent"),
        ("busy:\n  - {id: a, re: x}\n  - {id: a, re: y}", 4, "two rules with the id 'a'", ""),
        ("asking: {id: a, re: x}", 2, "needs `kind`", "confirm"),
        ("asking: {id: a, re: x, kind: conferm}", 2, "'conferm' is not one of its values", "'confirm'"),
        ("asking: {id: a, re: x, kind: password, hidden: maybe}", 2, "not one of its values", "true, false"),
        ("asking: {id: a, re: x, kind: confirm, question: 'x'}", 2, "no group named q", ""),
        ("asking: {id: a, re: x, kind: choice, options: {a: [Entr]}}", 2, "no key named 'Entr'", ""),
        ("asking: {id: a, re: x, kind: choice, options: {a: []}}", 2, "'a' has no keys", ""),
        ("asking: {id: a, re: x, kind: choice, options: {a: y}, default: b}", 2, "none of the options", ""),
        ("name: store", 2, "name 'store' is not that of the file", "name: shop"),
        ("tests: [{screen: x}]", 2, "needs its `state`", ""),
        ("tests: [{state: idle}]", 2, "either `screen` or `screen_file`", ""),
        ("tests: [{screen: x, state: idel}]", 2, "'idel' is not one", "'idle'"),
        ("tests: [{screen: x, state: idle, cursor: here}]", 2, "COLUMN,ROW", ""),
        ("name: shop\nname: shop", 3, "'name' was given before, on line 2", ""),
        ("env: {A: x, A: y}", 2, "'A' was given before", ""),
        ("notes: &a text\ncommand: [*a]", 2, "aliases (*) and anchors (&)", "extends"),
        ("command: [*a]", 2, "aliases (*) and anchors (&)", ""),
        ("notes: !!python/object:os.system x", 2, "tags", ""),
        ("? [a, b]\n: c", 2, "a key is text, not a list", ""),
        ("notes: a\n---\nnotes: b", 3, "a second document", ""),
        ("prompt:\n\t- {id: a, re: x}", 3, "cannot start any token", "spaces, not with tabs"),
        ("prompt: {id: a\nname: shop\n", 3, "", ""),
        ("notes: a: b", 2, "mapping values are not allowed", ""),
        ("notes: 'a\x07'", 2, "U+0007", ""),
        ("command: " + "[" * 200 + "]" * 200, 2, "nested too deeply", ""),
        ("schema: tmuxctl/profile@2\nname: shop", 1, "schema 'tmuxctl/profile@2' is not known", "tmuxctl/profile@1"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_file_is_named_with_its_line(either_parser, text, line, said, hint):
    error = wrong(text)
    assert error.message.startswith(f"shop.yaml line {line}: "), error.message
    assert said in error.message
    assert hint in error.hint


TRYING = r"""
from tmuxctl.profile_files import patterns
sound = r"^(?P<q>.{0,300}?)(?:  \(press RETURN\))?$"
assert patterns.search_steps(sound, patterns.ROW) > patterns.STEPS_LIMIT
print("trying", flush=True)
for _ in range(150):
    assert patterns.find_problem(sound) is None
"""


@pytest.mark.night
def test_a_sound_pattern_is_taken_where_its_trial_gets_no_processor():
    with subprocess.Popen([sys.executable, "-c", TRYING], stdout=subprocess.PIPE, cwd=ROOT) as trying:
        assert trying.stdout
        assert trying.stdout.readline() == b"trying\n"
        for _ in range(3):
            # as long as all trials of a pattern may take, and in the middle of one
            time.sleep(0.05)
            trying.send_signal(signal.SIGSTOP)
            time.sleep(0.6)
            trying.send_signal(signal.SIGCONT)
        assert trying.wait(60) == 0


@pytest.mark.night
@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*b",
        "(a|a){40}b",
        "a*a*a*a*a*a*b",
        "(x+x+)+y",
        "(?=(a+)+b)",
        "^Error: (?:a+)+$",
        "^Error: a*a*a*a*a*a*b",
        "(?:^Error: (─+)+!|foo)",
    ],
)
@pytest.mark.timeout(60, method="thread")  # leaves the alarm to what is tried
def test_a_pattern_that_would_take_years_is_refused(pattern):
    assert "it can take too long" in (patterns.find_problem(pattern) or "")


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)*b", "^Error: (?:a+)+$", "a*a*a*a*a*a*b"])
def test_where_there_is_no_alarm_such_a_pattern_is_refused_as_well(pattern):
    with ThreadPoolExecutor(1) as thread:
        assert "it can take too long" in (thread.submit(patterns.find_problem, pattern).result() or "")


@pytest.mark.parametrize("pattern", [r"(?:\w+ )*\w+$", r".*a.*b.*c$", r"(\w+)\s*=\s*(\d+)", r"(?:\d+\.)+\d+ (?:a|b)+"])
def test_a_pattern_of_several_repetitions_is_none_that_takes_too_long(pattern):
    assert patterns.find_problem(pattern) is None


def test_a_file_without_schema_or_content_is_refused(either_parser):
    for text, said in (
        (b"name: shop\n", "no `schema`"),
        (b"", "empty"),
        (b"# nothing\n", "empty"),
        (b"- a\n", "key: value pairs"),
    ):
        with pytest.raises(Usage, match=said):
            schema.parse(text, "shop.yaml", "shop")


def test_a_file_that_is_no_text_is_refused_with_its_line():
    with pytest.raises(Usage, match="line 3: not UTF-8"):
        schema.parse(HEAD.encode() + b"name: shop\nnotes: \xff\n", "shop.yaml", "shop")


def test_a_bomb_is_refused_before_it_grows():
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert "anchors" in wrong(bomb).message
    assert "larger than 256 KB" in wrong("notes: " + "x" * (257 << 10)).message


def test_words_that_yaml_takes_for_truths_are_words():
    rule = parse(f"{HEAD}asking: {{id: on, re: x, kind: confirm, options: {{yes: [y], no: n, off: '0'}}}}").asking[0]
    assert rule.id == "on"
    assert rule.options == {"yes": ("y",), "no": ("n",), "off": ("0",)}


def test_a_profile_extends_another(own):
    own("base", "size: 80x24\nenv: {A: '1', B: '2'}\ninterrupt: Escape\nnotes: the base\ntests: [{screen: x, state: idle}]\n"
        "prompt: [{id: one, re: '^1'}, {id: two, re: '^2'}]\nsubmit: {mode: paste, delay: 1s}")  # fmt: skip
    own("child", "extends: base\nsize: 100x30\nenv: {B: '3'}\nprompt: [{id: zero, re: '^0'}, {id: two, re: '^II'}]\n"
        "submit: {delay: 2s}")  # fmt: skip
    found = library.load("child")
    assert (found.size, dict(found.env), found.interrupt) == ("100x30", {"A": "1", "B": "3"}, ("Escape",))
    assert [(rule.id, rule.re) for rule in found.prompt] == [("zero", "^0"), ("two", "^II"), ("one", "^1")]
    assert (found.submit.mode, found.submit.delay) == ("paste", 2.0)
    assert (found.name, found.notes) == ("child", "")


def test_a_profile_cannot_extend_itself_by_any_way(own):
    own("a", "extends: b")
    own("b", "extends: c")
    own("c", "extends: a")
    with pytest.raises(Usage, match="a -> b -> c -> a"):
        library.load("a")


def test_extending_what_is_not_there_names_the_file(own):
    own("a", "extends: pyhton")
    with pytest.raises(Usage, match=r"a\.yaml.*no profile named 'pyhton'") as caught:
        library.load("a")
    assert "'python'" in caught.value.hint


def test_a_file_is_named_by_its_path(place: Path):
    (place / "mine.yaml").write_text(f"{HEAD}interrupt: Escape\n")
    assert library.load(f"{place}/mine.yaml").interrupt == ("Escape",)
    assert library.load("./mine.yaml").name == "mine"
    with pytest.raises(NotFound, match="No such file"):
        library.load("./other.yaml")


def test_a_changed_file_is_read_again(own):
    own("base", "size: 80x24")
    own("shop", "extends: base")
    assert library.load("shop").size == "80x24"
    own("base", "size: 100x30")
    assert library.load("shop").size == "100x30"


@pytest.mark.parametrize("name", SHIPPED)
def test_a_kept_profile_is_the_same(place, name):
    found = library.load(name, keys=tmux_keys)
    assert from_json(to_json(found)) == found


def test_a_whole_profile_is_kept():
    found = parse(WHOLE)
    assert from_json(to_json(found)) == found
    assert from_json(KEPT_SINCE_1.encode()) == found
    assert from_json(to_json(None)) is None


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"{}", b"\xff", b'{"format": 1, "nmae": "x"}', b'{"name": "x"}', b'{"format": "x", "name": "x"}'],
)
def test_what_is_no_kept_profile_is_none(data):
    assert from_json(data) is None


def test_a_kept_profile_is_read_without_yaml():
    code = (
        "import sys; from tmuxctl.program_profile import from_json;"
        "assert from_json(sys.stdin.buffer.read()); print('yaml' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], input=to_json(parse(WHOLE)), capture_output=True, check=True)
    assert done.stdout == b"False\n"


@pytest.mark.parametrize("name", [*SHIPPED, "shop"])
def test_a_profile_shown_as_a_file_says_the_same(place, own, name):
    own("shop", WHOLE)
    found = library.load(name)
    text = resolved.as_yaml(found)
    assert resolved.build_profile(schema.parse(text.encode(), "again", name, keys=tmux_keys).given) == found


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("bash", "bash"),
        ("/usr/bin/bash -l", "bash"),
        ("/bin/sh", "sh"),
        ("dash", "sh"),
        ("python3 -q", "python"),
        ("/usr/bin/python3.11 shop.py", "python"),
        ("sqlite3 shop.db", "sqlite3"),
        ("env A=1 -u B python3", "python"),
        ("env -i -C /tmp A=1 bash", "bash"),
        ("sudo -u postgres psql", "psql"),
        ("sudo -iu postgres psql", "psql"),
        ("sudo --user=postgres -- psql", "psql"),
        ("nice -n 5 gdb ./shop", "gdb"),
        ("nohup node", "node"),
        ("time -f %e ssh far", "ssh"),
        ("stdbuf -oL less log", "less"),
        ("timeout -k 5 10m sqlite3", "sqlite3"),
        ("timeout --signal INT 10 env X=1 nice zsh", "zsh"),
        ("ed", None),
        ("sudo -s", None),
        ("mybash", None),
        ("./configure --with-bash", None),
    ],
)
def test_a_command_gets_the_profile_of_its_program(place, command, name):
    assert library.detect(command.split(), keys=tmux_keys) == name


def test_a_users_profile_takes_the_place_of_ours_by_name(own):
    own("sqlite3", "prompt: {id: mine, re: '^shop='}")
    assert library.detect(["sqlite3"]) == "sqlite3"
    assert [rule.id for rule in library.load("sqlite3").prompt] == ["mine"]


def test_a_users_profile_takes_a_command_over(own):
    own("mine", "extends: sqlite3\ndetect: {argv0: ['sqlite*']}")
    assert library.detect(["sqlite3"]) == "mine"
    assert library.load("mine").exit_send == ".quit"


def test_a_child_is_not_for_its_parents_commands(own):
    own("alpha", "extends: sqlite3")
    assert library.detect(["sqlite3"]) == "sqlite3"
    assert library.detect(["alpha"]) == "alpha"


def test_a_name_written_out_comes_before_one_with_a_star(own):
    own("a-any", "detect: {argv0: 'shop*'}")
    own("b-one", "detect:\n  argv0:\n    - store   # as it was called\n    - shop\n  foreground: shop*")
    assert library.detect(["shop"]) == "b-one"
    assert library.detect(["store"]) == "b-one"
    assert library.detect(["shopping"]) == "a-any"


def test_what_runs_in_front_is_not_what_is_detected(own):
    own("agent", "detect: {argv0: [agent], foreground: [agent, ed]}")
    assert library.detect(["ed"]) is None


def test_a_broken_profile_disturbs_its_own_program_only(own):
    own("shop", "promt: x")
    own("other", "detect: {argv0: [bash")
    assert library.detect(["python3"]) == "python"
    with pytest.raises(Usage, match=r"shop\.yaml.* line 2: .*no key 'promt'"):
        library.detect(["shop"])


def test_looking_for_a_profile_that_is_not_there_reads_no_yaml(place):
    code = "import sys; from tmuxctl.profile_files import library; library.detect(['ed']); print('yaml' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert done.stdout == b"False\n"


def test_no_pattern_of_ours_needs_a_blank_at_the_end_of_a_row(place):
    for name in SHIPPED:
        found = library.load(name)
        for rules in (found.prompt, found.continuation, found.asking):
            wanting = [rule.id for rule in rules if re.search(r"(?<!\\)(?: |\\s|\\s\+) ?\$?$", rule.re)]
            assert not wanting, f"{name}: {wanting}"


def test_every_profile_of_ours_has_a_place_in_the_list_and_says_what_it_is(place):
    assert {one.name for one in extensions.list_profiles()} == set(SHIPPED)


@pytest.mark.parametrize("name", SHIPPED)
def test_no_pattern_of_a_shipped_profile_takes_long(name: str) -> None:
    """Users read them without this trial."""
    found = extensions.find_profile(name)
    schema.parse(extensions.read_extension(found), found.path, name)
    assert all(library.load(name, keys=tmux_keys).notes for name in SHIPPED)
    assert all(library.read(extensions.find_profile(name)).tests for name in SHIPPED)


PAGE = ROOT / "docs" / "profiles.md"
# a list is of plays, which are played where the snippets are
EXAMPLES = [
    textwrap.dedent(text)
    for text in re.findall(r"```yaml\n((?!- ).*?)```", PAGE.read_text() if PAGE.exists() else "", re.DOTALL)
]


def test_the_page_about_profiles_has_examples():
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize("text", EXAMPLES)
def test_what_the_page_about_profiles_shows_can_be_used(text):
    name = re.search(r"^name: (\S+)", text, re.MULTILINE)
    schema.parse(text.encode(), "docs/profiles.md", name[1] if name else "example", keys=tmux_keys)


def test_the_tables_on_the_page_about_profiles_are_those_of_the_code(monkeypatch):
    monkeypatch.setattr("sys.argv", ["profile_page", "--check"])
    assert profile_page.main() == 0


SMALLEST = {
    "profile": "detect: {argv0: a}",
    "rule": "asking: {id: a, re: x, kind: choice, options: {yes: y, no: n}}",
    "rule.detail": "prompt: {id: a, re: x}",
    "rule.retry": "errors: {id: a, re: x}",
    "submit": "submit: {}",
    "answer": "answer: {}",
    "hooks": "hooks: {}",
    "event": "hooks: {events: {on: a, is: submit}}",
    "transcript": "hooks: {transcript: {}}",
    "settings": "hooks: {settings: {file: a}}",
}
"""The smallest file in which a record stands."""


def in_a_file(row: Row, *, given: bool) -> str:
    """The smallest file in which a field of a record may stand, with the field as its row has it, or without."""
    file = place = yaml.load(SMALLEST.get(f"{row.record}.{row.key}", SMALLEST[row.record]), yaml.BaseLoader)
    while row.record != "profile" and isinstance(inner := next(iter(place.values()), None), dict):
        place = inner
    *outer, key = row.key.split(".")
    for one in outer:
        place = place.setdefault(one, {})
    if given:
        place[key] = yaml.load(row.example, yaml.BaseLoader)
    return HEAD + yaml.safe_dump(file)


def record_of(found: Profile, record: str) -> Value:
    """The record of this kind in a profile that has one of each at the most."""
    if record == "rule":
        return next(rule for name in RULES for rule in getattr(found, name))
    if record == "event":
        assert found.hooks
        return found.hooks.events[0]
    return (
        found
        if record == "profile"
        else getattr(found.hooks if record in ("transcript", "settings") else found, record)
    )


@pytest.mark.parametrize(
    "row",
    [row for record in profile_page.KINDS for row in profile_page.rows(record)],
    ids=lambda row: f"{row.record}.{row.name}",
)
def test_every_field_survives_the_way_from_a_file_to_the_session_and_back(row):
    name = row.example if (row.record, row.name) == ("profile", "name") else "a"
    plain = parse(in_a_file(row, given=False), "a")
    found = parse(in_a_file(row, given=True), name)
    before, after = record_of(plain, row.record), record_of(found, row.record)
    changed = [one for one in profile_page.KINDS[row.record]._names if getattr(before, one) != getattr(after, one)]
    assert changed == [row.name]
    assert from_json(to_json(found)) == found
    assert parse(resolved.as_yaml(found), name) == found


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python3 mush.py", "mush"),
        ("python3.11 -q ./games/mush.py --colour", "mush"),
        ("env X=1 python3 -W ignore -Xdev /srv/mush.py", "mush"),
        ("./mush.py", "mush"),
        ("python3 -m mush.play", "mush"),
        ("python3 -um mush.play", "mush"),
        ("npx -y @games/mush-cli@latest", "mush"),
        ("uvx --from games mush-cli", "mush"),
        ("uv run --with rich mush.py", "mush"),
        ("java -Xmx1g -cp lib -jar mush.jar", "mush"),
        ("mush", None),
        ("python3", "python"),
        ("python3 -q", "python"),
        ("python3 other.py mush.py", "python"),
        ("python3 -c 'print()' mush.py", "python"),
        ("python3 - mush.py", "python"),
        ("bash -c mush.py", "bash"),
        ("bash --rcfile mush.py", "bash"),
        ("node mush.js", "node"),
    ],
)
def test_a_script_gets_its_own_profile_and_its_interpreter_keeps_its_own(own, command, name):
    own("mush", "detect: {script: [mush.py, mush.play, mush-cli, mush.jar]}")
    assert library.detect(shlex.split(command), keys=tmux_keys) == name


@pytest.mark.parametrize("pattern", ["vim", "vim.*", "vi?", "*", "?im", "[uv]im", "*-gdb", "gdb-*", "VIM", "vim*x", ""])
@pytest.mark.parametrize("program", ["vim", "vim.tiny", "arm-gdb", "gdb-1", "v", "", "vi[m", "*"])
def test_a_name_fits_what_a_shell_would_take_it_for(program, pattern):
    assert is_named(program, ("other", pattern)) == fnmatchcase(program, pattern)


def test_a_profile_may_be_for_a_program_and_for_a_script(own):
    own("mush", "detect:\n  argv0: [mush]\n  script:\n    - mush.py\n    - 'mush-*.py'")
    assert [library.detect(words.split()) for words in ("mush", "python3 mush-2.py", "python3 mush")] == [
        "mush",
        "mush",
        "python",
    ]
    assert library.load("mush").script == ("mush.py", "mush-*.py")


def test_a_users_profile_of_an_interpreter_leaves_scripts_to_theirs(own):
    own("mypython", "detect: {argv0: ['python3*']}")
    own("mush", "detect: {script: mush.py}")
    assert library.detect(["python3", "mush.py"]) == "mush"
    assert library.detect(["python3"]) == "mypython"
