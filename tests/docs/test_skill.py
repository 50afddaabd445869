"""The skill that agent programs load is true, too: each section of its pages is done as a reader would do it."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest

from docs import pages
from docs.pages import ROOT, Block, Directive, Section
from docs.test_snippets import untrue
from tmuxctl.surfaces.cli.app import App

FOLDER = ROOT / "tmuxctl" / "skill"

SOURCES = r"""
cat >total.c <<'END'
#include <stdio.h>
int sum(const int *prices, int count) {
    int total = 0;
    for (int i = 0; i < count; i++)
        total += prices[i];
    return total;
}
int main(void) {
    int prices[] = {4, 7, 9};
    printf("%d\n", sum(prices, 3));
    return 0;
}
END
cat >total.py <<'END'
def total(prices):
    sum = 0
    for price in prices:
        sum = price
    return sum

print(total([4, 7, 9]))
END
"""

BOX = r"""
export BOX_PASSWORD=$SSH_PASSWORD
mkdir -p ~/bin && export PATH=$HOME/bin:$PATH
cat >~/bin/ssh <<END
#!/bin/sh
exec /usr/bin/ssh -o UserKnownHostsFile=$HOME/known -o HostKeyAlias=box.example -p $SSH_PORT $SSH_USER@127.0.0.1
END
chmod +x ~/bin/ssh
"""
"""The machine of the page on ssh: a real sshd, under the name that stands there."""

REPOSITORY = r"""
export GIT_CONFIG_GLOBAL=$HOME/gitconfig
git config --global user.name Ada && git config --global user.email ada@example.org
git init -q -b main shop && cd shop
seq 20 >list.txt && git add . && git commit -qm 'Add tea'
for name in cake coffee; do echo $name >$name && git add $name && git commit -qm "Add $name"; done
"""

AGENT = r"""
tests=$(python3 -c 'import tmuxctl; print(tmuxctl.__path__[0])')/../tests/programs
mkdir -p ~/bin ~/.config/tmuxctl/profiles && cp $tests/agent.py ~/bin/claude && export PATH=$HOME/bin:$PATH
sed -e 's/agent\.py/claude/g' -e 's/^name: .*/name: claude/' $tests/agent.yaml >~/.config/tmuxctl/profiles/claude.yaml
git config --global user.name Ada && git config --global user.email ada@example.org
git init -q -b main shop && cd shop && echo 'test:' >Makefile && git add . && git commit -qm Begin
"""
"""An agent program with scripted answers, under the name of a real one; the real ones are driven by tools/agents."""

BEFORE: Mapping[str, str] = {
    "gdb": SOURCES,
    "pdb": SOURCES,
    "A shell on another machine": BOX,
    "In a shell, with a policy": r"""
printf '%s\n' '#!/bin/sh' 'printf "Install into ~/shop? [Y/n] "; read -r answer; echo installed' >install.sh
chmod +x install.sh
""",
    "rebase -i": REPOSITORY,
    "add -p": f"{REPOSITORY}\nsed -i -e '2s/.*/two/' -e '18s/.*/eighteen/' list.txt",
    "One agent": AGENT,
    "Several agents": AGENT,
}
"""What a reader has before a section."""

NEEDS: Mapping[str, str] = {
    "The loop": "sqlite3",
    "gdb": "gdb gcc",
    "One question after the other": "npm",
    "rebase -i": "git vim",
    "add -p": "git",
    "One agent": "git",
    "Several agents": "git",
    "A shell on another machine": "ssh sshd",
    "psql": "psql",
}
SERVICES: Mapping[str, str] = {"psql": "postgres", "A shell on another machine": "sshd"}

MEANT: Mapping[str, str] = {
    "Make the failing test pass.": "tool make test; say The test passes now.",
    "Write the tests.": "say Tests written.",
    "Write the docs.": "say Docs written.",
}
"""What stands for the task that an agent program gets, in the words of the scripted one."""

PAGES = [
    pages.page(path.relative_to(ROOT).as_posix(), path.read_text())
    for path in [FOLDER / "SKILL.md", *sorted((FOLDER / "references").glob("*.md"))]
]
SECTIONS = [
    pytest.param(section, id=f"{page.name.rpartition('/')[2]}-{section.title}")
    for page in PAGES
    for section in page.sections
    if any(isinstance(part, Block) for part in section.parts)
]


@pytest.mark.night
@pytest.mark.parametrize("section", SECTIONS)
def test_a_section_of_the_skill_is_true(section, world):
    if wrong := untrue(prepared(section), world):
        pytest.fail(wrong, pytrace=False)


def prepared(section: Section) -> Section:
    """The section with what it needs, as the comments of another page say it."""
    about = (("needs", NEEDS), ("needs-service", SERVICES), ("before", BEFORE))
    directives = [Directive(name, table[section.title], 0) for name, table in about if section.title in table]
    return Section(section.title, (*directives, *map(meant, section.parts)))


def meant(part: Block | Directive) -> Block | Directive:
    assert isinstance(part, Block), "the skill has no comments: an agent reads them"
    text = part.text
    for shown, typed in MEANT.items():
        text = text.replace(shown, typed)
    return part._replace(text=text)


def test_what_is_prepared_is_for_sections_that_there_are():
    titles = [section.title for page in PAGES for section in page.sections]
    assert {*BEFORE, *NEEDS, *SERVICES} <= set(titles)
    assert len(titles) == len(set(titles))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name.rpartition("/")[2])
def test_every_block_of_the_skill_is_run(page):
    assert not list(pages.problems(page))


def test_every_command_that_is_named_is_one():
    commands = {one.typed for one in App().listed()}
    options = set(re.findall(r"--[a-z][a-z-]+", (ROOT / "docs" / "reference.md").read_text()))
    for page in PAGES:
        text = (ROOT / page.name).read_text()
        named = re.findall(r"(?:^\$ |&& |`)tmuxctl ((?:skill )?[a-z]+)", text, re.MULTILINE)
        assert {*named} <= commands, page.name
        for words in re.findall(r"`((?:ask|exec|send|keys|wait|decide|new) [^`]*)`", text):
            assert {*re.findall(r"(?<= )--[a-z-]+", words.partition(" -- ")[0])} <= options, words
