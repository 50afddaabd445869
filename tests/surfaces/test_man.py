"""The manual pages: one for each command, with all that its help says, and every character as it is to be typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tmuxctl import config
from tmuxctl.surfaces.cli.app import App
from tmuxctl.surfaces.cli.commands import exits, help
from tmuxctl.surfaces.cli.commands.command import OperationCommand
from tmuxctl.surfaces.cli.manual import man, reference, roff

ROOT = Path(__file__).resolve().parents[2]
PAGES = dict(man.pages())
COMMANDS = {man.title(one): one for _, found in reference.commands(App()) for one in found}

REQUESTS = {".TH", ".SH", ".SS", ".PP", ".TP", ".IP", ".RS", ".RE", ".nf", ".fi", ".nh", ".ad"}
ESCAPES = re.compile(r"\\(?:e|-|&|f[BIR]|\((?:aq|ga|ha|ti|dq|bu)|\[u[0-9A-F]{4,6}\])")

HOSTILE = (".TH x", "'\\\" comment", "\\fBbold\\n[x]", '--long-option\'s "value" `code` ^C ~/x', "é → 😀", "...", " .")


@pytest.mark.night
def test_pages_that_need_them_tell_what_exit_statuses_mean() -> None:
    written = reference.text()
    for typed in exits._OWN:
        name = f"tmuxctl-{typed.replace(' ', '-')}"
        rows = exits.list_statuses(COMMANDS[name].operation)
        page = help.format_page(App(), typed.split())
        for status, meaning in rows:
            assert meaning, (typed, status)
            assert roff.bold(status) in PAGES[f"{name}.1"].split("\n"), (typed, status)
            assert re.search(rf"^  {re.escape(status)}  +{re.escape(meaning.split()[0])}", page, re.MULTILINE), (
                typed,
                status,
            )
            assert f"| `{status}` | {meaning} |" in written
    assert {"wait", "exec", "ask", "run", "decide", "send", "doctor"} <= set(exits._OWN)


@pytest.mark.night
def test_what_watch_runs_for_a_state_stands_in_its_help_and_its_page() -> None:
    for option in ("--on-asking CMD", "--on-idle CMD"):
        assert option in help.format_page(App(), ["watch"])
        assert option in reference.text()
    assert roff.escape("--on-asking") in PAGES["tmuxctl-watch.1"]


def test_every_command_has_a_page_of_its_own() -> None:
    assert {f"{name}.1" for name in COMMANDS} | {"tmuxctl.1"} == set(PAGES)
    assert {"tmuxctl-ask.1", "tmuxctl-profile-ls.1", "tmuxctl-attach.1", "tmuxctl-wait-idle.1"} <= set(PAGES)
    assert all(f"{roff.bold(name)}(1)" in PAGES["tmuxctl.1"].split("\n") for name in COMMANDS)


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_ascii_of_known_requests(name: str) -> None:
    text = PAGES[name]
    assert text.isascii()
    assert text.endswith("\n")
    for line in text[:-1].split("\n"):
        assert line, "roff takes an empty line for a request"
        assert not line.startswith("'")
        assert not line.startswith(".") or line.split(" ")[0] in REQUESTS, line
        assert "\\" not in ESCAPES.sub("", line), line
    head, *rest = [line for line in text.split("\n") if line.startswith((".TH", ".SH"))]
    assert re.fullmatch(r'\.TH "TMUXCTL[A-Z\\-]*" "1" "" "tmuxctl [\d.a-z]+" "tmuxctl manual"', head)
    assert rest[0] == '.SH "NAME"'
    assert re.search(r'^\.SH "NAME"\ntmuxctl[a-z\\-]* \\- [^\n]+\n\.SH "SYNOPSIS"$', text, re.MULTILINE)


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_is_a_request_or_an_escape(text: str) -> None:
    made = [
        roff.escape(text),
        *roff.prose(text.replace("`", "")),
        *roff.tagged(roff.bold(text), text),
        roff.option(text),
    ]
    for line in made:
        assert not line.startswith((".", "'")) or line == ".TP"
        assert "\\" not in ESCAPES.sub("", line)
        assert line.isascii()
    # where these stand bare some formatters print typographic ones, and what is copied from the page does not work
    assert not set("-'`^~\"") & set(ESCAPES.sub("", roff.escape(text)))


def test_the_pages_know_every_variable_of_the_settings() -> None:
    known = [name for name, _ in reference.ENVIRONMENT]
    assert {rule.variable for rule in config.RULES.values() if rule.variable} <= set(known)
    assert all(roff.bold(name) in PAGES["tmuxctl.1"] for name in known)


def rendered(path: Path) -> str:
    """What a reader sees, on a terminal so wide that nothing is broken."""
    environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "MANWIDTH": "400", "MANOPT": ""}
    done = subprocess.run(
        ["man", "--warnings=all", "-P", "cat", "-l", str(path)],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return re.sub(".\b", "", done.stdout)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("man")
    man.write(made)
    return made


@pytest.mark.parametrize("name", sorted(PAGES))
def test_a_reader_sees_all_that_help_says(name: str, folder: Path, needs: Callable[..., None]) -> None:
    needs("man", "groff")
    text = rendered(folder / name)
    seen = " ".join(text.split())
    command = COMMANDS.get(name.removesuffix(".1"))
    for line in expected(command):
        assert line in text.split("\n") or " ".join(line.replace("`", "").split()) in seen, line


def expected(command: OperationCommand | None) -> list[str]:
    """What must stand in a command's page, or in the first one."""
    if command is None:
        rows = [*help.list_global_options(), *reference.ENVIRONMENT, *reference.FILES]
        return [*map(help.format_example, help.FIRST), *(word for row in rows for word in row)]
    rows = help.list_options(command.operation)
    examples = [f"           {help.format_example(one)}" for one in command.operation.meta.examples]
    return [*examples, *(word for row in rows for word in row), f"tmuxctl {help.format_synopsis(command.operation)}"]


@pytest.mark.parametrize("text", [text for text in HOSTILE if text.strip() != "."])
def test_a_reader_sees_the_very_characters(text: str, tmp_path: Path, needs: Callable[..., None]) -> None:
    needs("man", "groff")
    lines = [*roff.head("X", 1, "x", "x"), roff.section("NAME"), r"x \- y", roff.section("TEXT"), *roff.literal([text])]
    (tmp_path / "x.1").write_text("\n".join(lines) + "\n")
    assert f"           {text}" in rendered(tmp_path / "x.1").split("\n")


def test_an_installation_has_them(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="hatchling is not installed: make dev")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    [wheel] = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        found = {Path(name).name: archive.read(name) for name in archive.namelist() if "/data/share/man/man1/" in name}
    assert found == {name: text.encode() for name, text in PAGES.items()}


def test_the_module_writes_them(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tmuxctl.surfaces.cli.manual.man"]
    assert subprocess.run([*command, str(tmp_path / "new" / "man")], check=False).returncode == 0
    assert (tmp_path / "new" / "man" / "tmuxctl-ask.1").read_text() == PAGES["tmuxctl-ask.1"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 2
