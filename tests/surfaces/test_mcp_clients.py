"""`tmuxctl mcp install`: a program's own settings with our server in them, and all else in them as it was, to the letter."""

from __future__ import annotations

import json
import os
import pty
import random
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tmuxctl.errors import Failed, TmuxctlError
from tmuxctl.surfaces.cli.editing import json_nodes, toml_lines

Command = Callable[..., "subprocess.CompletedProcess[str]"]

SERVER = {"command": "tmuxctl", "args": ["mcp"]}

# without these, which Codex takes away, the server would reach other sessions than the user's command
VARIABLES = [
    *("TMUXCTL_SOCKET", "TMUXCTL_CONFIG", "TMUXCTL_SESSION", "TMUXCTL_MCP_TOOLS", "TMUXCTL_MCP_OWNER"),
    *("TMUX_TMPDIR", "XDG_CONFIG_HOME", "XDG_STATE_HOME"),
]

# where each program's own `mcp add`, or its documentation, has a server: of the user, and of a project
PLACES: Mapping[str, tuple[str, str, str, dict[str, Any]]] = {
    "claude": (".claude.json", ".mcp.json", "mcpServers", {"type": "stdio", **SERVER}),
    "codex": (".codex/config.toml", ".codex/config.toml", "mcp_servers", {**SERVER, "env_vars": VARIABLES}),
    "gemini": (".gemini/settings.json", ".gemini/settings.json", "mcpServers", SERVER),
    "cursor": (".cursor/mcp.json", ".cursor/mcp.json", "mcpServers", SERVER),
    "vscode": (".config/Code/User/mcp.json", ".vscode/mcp.json", "servers", {"type": "stdio", **SERVER}),
}

OTHERS = {
    "json": '{\n  "mcpServers": {\n    "other": {"command": "other", "env": {"KEY": "hidden"}}\n  },\n  "theme": "dark"\n}\n',
    "toml": 'model = "x" # mine\n\n[mcp_servers.other]\ncommand = "other"\nenv = { KEY = "hidden" }\n\n# the end\n',
}


def read(path: Path) -> Any:
    return tomllib.loads(path.read_text()) if path.suffix == ".toml" else json.loads(path.read_text())


def put(text: str) -> str:
    return json_nodes.with_entry(text, "mcpServers", "tmuxctl", SERVER, "FILE", comments=True)


def taken(text: str) -> str:
    return json_nodes.without_entry(text, "mcpServers", "tmuxctl", "FILE", comments=True)


def put_table(text: str) -> str:
    return toml_lines.with_table(text, "mcp_servers.tmuxctl", {"command": "tmuxctl", "args": ["mcp"]}, "FILE")


def taken_table(text: str) -> str:
    return toml_lines.without_table(text, "mcp_servers.tmuxctl", "FILE")


# The text


JSON = [
    '{"a": 1}',
    '{\n  "a": 1\n}\n',
    '{"mcpServers": {}}',
    '{"mcpServers": {"x": {"command": "x"}}, "b": "}"}',
    '{\n\t"mcpServers": {\n\t\t"x": {}\n\t}\n}',
    '\ufeff{\r\n  "b": "// none",\r\n  "n": 1.50e3\r\n}\r\n',
    '// mine\n{\n  "a": 1, // one\n  /* two */ "b": "/* no */" // three\n}\n// end',
    '{\n  "a": 1,\n}\n',
    '{\n  "mcpServers": {\n    "x": {}, // the only one,\n  }, // behind\n}\n',
    '{\n  "mcpServers": {\n    "x": {} // the only one\n  }\n}\n',
    '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    '{"a": 1 // one\n}',
    '{"mcpServers": {"x": {} /* a, b */ }}',
]


@pytest.mark.parametrize("text", JSON)
def test_what_was_put_in_and_taken_out_again_leaves_json_as_it_was(text: str) -> None:
    changed = put(text)
    root = json_nodes.parse(changed, "FILE", comments=True)
    assert root.value["mcpServers"]["tmuxctl"] == SERVER
    assert taken(changed) == text
    assert taken(text) == text


def test_comments_stay_with_what_they_follow() -> None:
    changed = put('{\n  "mcpServers": {\n    "x": {} // mine\n  }\n}\n')
    assert '"x": {}, // mine\n    "tmuxctl": {\n' in changed
    # someone moved ours to the front, and wrote beside it
    moved = '{\n  "mcpServers": {\n    "tmuxctl": {}, // ours\n    // next\n    "x": {}\n  }\n}\n'
    left = taken(moved)
    assert "// ours" in left
    assert "// next" in left
    assert json_nodes.parse(left, "FILE", comments=True).value == {"mcpServers": {"x": {}}}


@pytest.mark.parametrize("seed", range(100))
def test_in_any_json_only_ours_changes(seed: int) -> None:
    chance = random.Random(seed)
    servers = {f"s{n}": {"command": "c", "args": ["a"] * chance.randrange(3)} for n in range(chance.randrange(4))}
    value: dict[str, Any] = {
        f"k{n}": chance.choice([1, "}", [], {"a": None}]) for n in range(1, chance.randrange(2, 5))
    }
    if chance.random() < 0.7:
        value["mcpServers"] = servers
    text = json.dumps(value, indent=chance.choice([None, 0, 1, 2, 4, "\t"]))
    if chance.random() < 0.5:
        # a comment behind each line
        text = "\n".join(f"{line} // {number}, {{" for number, line in enumerate(text.split("\n")))
    changed = put(text)
    wanted = {**value, "mcpServers": {**value.get("mcpServers", {}), "tmuxctl": SERVER}}
    assert json_nodes.parse(changed, "FILE", comments=True).value == wanted
    left = taken(changed)
    if value.get("mcpServers") != {}:
        assert left == text
    assert left.count("//") == text.count("//")


def test_json_that_a_program_cannot_read_is_refused_with_its_place() -> None:
    for text, said in [
        ('{\n  "a": 1,,\n}', "FILE: line 2, column 10: "),
        ('{"mcpServers": []}', "FILE: line 1, column 16: mcpServers is a list; expected an object"),
        ('{"a": 1, "a": 2}', "FILE: the key 'a' occurs twice in one object"),
        ("/* open", "FILE: line 1, column 1: "),
    ]:
        with pytest.raises(Failed) as refused:
            put(text)
        assert refused.value.message.startswith(said)
    with pytest.raises(Failed):
        json_nodes.with_entry("// mine\n{}", "mcpServers", "tmuxctl", SERVER, "FILE")


TOML = [
    "",
    'model = "x"\n',
    '# mine\n[mcp_servers.other]\ncommand = "x" # c\n\n\n[profiles.p]\nmodel = "m"\n# the end\n',
    '[mcp_servers."a b"]\ncommand = "x"\r\n',
    'text = """\n[mcp_servers.tmuxctl]\n"""\n',
]


@pytest.mark.parametrize("text", TOML)
def test_what_was_put_in_and_taken_out_again_leaves_toml_as_it_was(text: str) -> None:
    changed = put_table(text)
    assert tomllib.loads(changed)["mcp_servers"]["tmuxctl"] == SERVER
    assert changed.startswith(text)
    if '"""' not in text:
        assert taken_table(changed) == text
    assert taken_table(text) == text


def test_tables_below_ours_go_with_it_and_comments_of_the_next_stay() -> None:
    text = (
        '[mcp_servers.a]\ncommand = "a"\n\n[mcp_servers.tmuxctl]\ncommand = "tmuxctl"\n# fast\nargs = ["mcp"]\n'
        '[mcp_servers.tmuxctl.env]\nX = "1"\n\n# about b\n[mcp_servers.b]\ncommand = "b"\n'
    )
    assert taken_table(text) == '[mcp_servers.a]\ncommand = "a"\n\n# about b\n[mcp_servers.b]\ncommand = "b"\n'


def test_a_table_that_has_no_lines_of_its_own_is_left_to_its_user() -> None:
    for text, change in [
        ('mcp_servers = {tmuxctl = {command = "tmuxctl"}}\n', taken_table),
        ('mcp_servers = {other = {command = "x"}}\n', put_table),
        ('text = """\n[mcp_servers.tmuxctl]\n"""\n[mcp_servers.tmuxctl]\ncommand = "tmuxctl"\n', taken_table),
    ]:
        with pytest.raises(TmuxctlError) as refused:
            change(text)
        assert refused.value.reason == "bad_settings"


# The command


@pytest.fixture
def project(place: Path) -> Path:
    made = place / "project"
    made.mkdir()
    return made


@pytest.fixture
def tmuxctl(project: Path) -> Command:
    def run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        found = subprocess.run(
            [sys.executable, "-m", "tmuxctl", *words],
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=project,
            env={**os.environ, **environment},
        )  # fmt: skip
        assert "Traceback" not in found.stderr
        return found

    return run


@pytest.mark.parametrize("scope", ["user", "project"])
@pytest.mark.parametrize("client", PLACES)
def test_every_client_finds_our_server_beside_those_it_has(
    tmuxctl: Command, place: Path, project: Path, client: str, scope: str
) -> None:
    of_user, of_project, table, server = PLACES[client]
    words = ("--client", client, *(["--project"] if scope == "project" else []))
    file = project / of_project if scope == "project" else place / of_user
    before = OTHERS["toml" if file.suffix == ".toml" else "json"].replace("mcpServers", table)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(before)
    file.chmod(0o640)
    wanted = read(file)

    shown = tmuxctl("mcp", "install", *words, "--dry-run")
    assert (file.read_text(), len(list(file.parent.glob("*.bak")))) == (before, 0)
    done = tmuxctl("mcp", "install", *words)
    assert done.returncode == 0, done.stderr
    assert done.stdout == shown.stdout
    assert {line[0] for line in done.stdout.splitlines()} == {"+"}
    assert "hidden" not in done.stdout
    wanted[table]["tmuxctl"] = server
    assert read(file) == wanted
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    (copy,) = file.parent.glob("*.bak")
    assert (copy.read_text(), stat.S_IMODE(copy.stat().st_mode)) == (before, 0o600)

    at = file.stat().st_mtime_ns
    again = json.loads(tmuxctl("mcp", "install", *words, "--json").stdout)
    assert again == {
        "client": client, "file": str(file), "changed": False, "change": "", "backup": None, "dry_run": False,
    }  # fmt: skip
    assert file.stat().st_mtime_ns == at

    assert tmuxctl("mcp", "uninstall", *words).returncode == 0
    assert file.read_text() == before
    assert "nothing to do" in tmuxctl("mcp", "uninstall", *words).stderr


@pytest.mark.parametrize("client", PLACES)
def test_settings_that_are_not_there_are_made_for_the_user_alone(tmuxctl: Command, place: Path, client: str) -> None:
    of_user, _, table, server = PLACES[client]
    assert tmuxctl("mcp", "uninstall", "--client", client).returncode == 0
    assert not (place / of_user).exists()
    assert tmuxctl("mcp", "install", "--client", client).returncode == 0
    assert read(place / of_user) == {table: {"tmuxctl": server}}
    assert stat.S_IMODE((place / of_user).stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("client", "variable", "file"),
    [
        ("claude", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json"),
        ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
    ],
)
def test_a_program_that_was_told_to_keep_its_settings_elsewhere_is_found(
    tmuxctl: Command, place: Path, client: str, variable: str, file: str
) -> None:
    assert tmuxctl("mcp", "install", "--client", client, **{variable: str(place / "else where")}).returncode == 0
    assert (place / "else where" / file).exists()


def test_for_any_other_program_the_entry_is_printed_or_put_into_a_file(tmuxctl: Command, place: Path) -> None:
    printed = tmuxctl("mcp", "install", "--client", "json", "-q")
    assert json.loads(printed.stdout) == {"mcpServers": {"tmuxctl": SERVER}}
    assert [path.name for path in place.iterdir()] == ["project"]
    assert tmuxctl("mcp", "install", "--client", "json", "--settings", "~/mine.json").returncode == 0
    assert json.loads((place / "mine.json").read_text()) == {"mcpServers": {"tmuxctl": SERVER}}
    for words in (["uninstall"], ["install", "--project"], ["install", "--project", "--settings", "x"]):
        assert tmuxctl("mcp", *words, "--client", "json").returncode == 2


@pytest.mark.night
def test_ours_stays_as_its_user_changed_it_and_another_ones_is_never_touched(tmuxctl: Command, place: Path) -> None:
    file = place / ".claude.json"
    ours = {"command": "/opt/bin/tmuxctl", "args": ["--socket", "x", "mcp"], "env": {"TMUXCTL_MCP_TOOLS": "read"}}
    through = {"command": "uvx", "args": ["--from", "tmux-control-plane[mcp]", "tmuxctl", "mcp"]}
    for server in (ours, through):
        file.write_text(text := json.dumps({"mcpServers": {"tmuxctl": server}}))
        assert tmuxctl("mcp", "install", "--client", "claude").returncode == 0
        assert file.read_text() == text
        assert tmuxctl("mcp", "uninstall", "--client", "claude").returncode == 0
        assert read(file) == {"mcpServers": {}}
    strangers: list[Any] = [{"command": "tmux-other"}, {"url": "http://127.0.0.1/mcp"}, [], "tmuxctl mcp"]
    for foreign in strangers:
        file.write_text(text := json.dumps({"mcpServers": {"tmuxctl": foreign}}))
        for verb in ("install", "uninstall"):
            done = tmuxctl("mcp", verb, "--client", "claude", "--json")
            assert (done.returncode, json.loads(done.stderr)["error"]["reason"]) == (4, "exists")
        assert file.read_text() == text


@pytest.mark.night
def test_what_cannot_be_read_is_refused_and_stays(tmuxctl: Command, place: Path) -> None:
    broken = {
        "claude": ('{"a": 1, // c\n}', "bad_settings"),
        "gemini": ("{,}", "bad_settings"),
        "codex": ("[mcp_servers\n", "bad_config"),
        "cursor": ("\udcff{}", "bad_settings"),
    }
    for client, (text, reason) in broken.items():
        file = place / PLACES[client][0]
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        for verb in ("install", "uninstall"):
            done = tmuxctl("mcp", verb, "--client", client, "--json")
            assert json.loads(done.stderr)["error"]["reason"] == reason
        assert file.read_bytes() == text.encode("utf-8", "surrogateescape")
        assert not list(file.parent.glob("*.bak"))
    fifo = place / ".config/Code/User/mcp.json"
    fifo.parent.mkdir(parents=True)
    os.mkfifo(fifo)
    assert tmuxctl("mcp", "install", "--client", "vscode").returncode == 2
    huge = place / "huge.json"
    with huge.open("w") as file_of_blanks:
        file_of_blanks.truncate((16 << 20) + 1)
    assert "more than 16 MiB" in tmuxctl("mcp", "install", "--client", "json", "--settings", str(huge)).stderr


def test_a_users_link_is_followed_and_one_out_of_a_project_is_not(tmuxctl: Command, place: Path, project: Path) -> None:
    kept = place / "dotfiles.json"
    kept.write_text('{"a": 1}')
    (place / ".claude.json").symlink_to("dotfiles.json")
    assert tmuxctl("mcp", "install", "--client", "claude").returncode == 0
    assert (place / ".claude.json").is_symlink()
    assert "tmuxctl" in kept.read_text()

    victim = place / "victim.json"
    victim.write_text("{}")
    (project / ".mcp.json").symlink_to(victim)
    (project / ".cursor").symlink_to(place)
    for client in ("claude", "cursor"):
        done = tmuxctl("mcp", "install", "--client", client, "--project", "--json")
        assert (done.returncode, json.loads(done.stderr)["error"]["reason"]) == (8, "unsafe_file")
    assert victim.read_text() == "{}"
    assert not (place / "mcp.json").exists()
    (project / "settings").mkdir()
    (project / ".gemini").symlink_to("settings")
    assert tmuxctl("mcp", "install", "--client", "gemini", "--project").returncode == 0
    assert (project / "settings/settings.json").exists()


@pytest.mark.parametrize(("answer", "words", "status"), [("y\n", (), 0), ("\n", (), 1), ("", ("--yes",), 0)])
def test_at_a_terminal_the_change_is_shown_and_asked_about(
    place: Path, project: Path, answer: str, words: tuple[str, ...], status: int
) -> None:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "tmuxctl", "mcp", "install", "--client", "claude", *words],
        stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=project,
    )  # fmt: skip
    os.close(terminal)
    os.write(controller, answer.encode())
    out, err = process.communicate(timeout=60)
    os.close(controller)
    assert process.returncode == status, err
    assert (place / ".claude.json").exists() is (status == 0)
    assert '+    "tmuxctl": {' in (out if words else err)
    assert ("Write it? [y/N]" in err) is not bool(words)
    if status:
        assert "nothing was changed" in err


def test_where_nobody_may_be_asked_a_terminal_changes_nothing(place: Path, project: Path) -> None:
    controller, terminal = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-m", "tmuxctl", "mcp", "install", "--client", "claude", "--no-input"],
        stdin=terminal, capture_output=True, text=True, cwd=project, timeout=60,
    )  # fmt: skip
    os.close(terminal)
    os.close(controller)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert not (place / ".claude.json").exists()
