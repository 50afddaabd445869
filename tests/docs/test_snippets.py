"""What the pages say is true: each section is done as a reader would do it."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

import pytest

from docs import examples, pages, runner

PAGES = pages.all_pages()


def list_changed_pages() -> set[str]:
    """The first pages of a newcomer, and those that the last commits changed: every run does their sections."""
    log = ("git", "log", "-10", "--name-only", "--format=")
    changed = subprocess.run(log, cwd=pages.ROOT, capture_output=True, text=True, check=False).stdout
    return {"README.md", "docs/quickstart.md", *changed.splitlines()}


CHANGED = list_changed_pages()
SECTIONS = [
    pytest.param(
        page, section, id=f"{page.name}-{section.title}", marks=() if page.name in CHANGED else pytest.mark.night
    )
    for page in PAGES
    for section in page.sections
    if any(isinstance(part, pages.Block) for part in section.parts)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_holds_nothing_that_nobody_runs(page):
    assert not list(pages.problems(page))


@pytest.mark.parametrize(("page", "section"), SECTIONS)
def test_a_section_is_true(page, section, world):
    if wrong := untrue(section, world):
        pytest.fail(f"{page.name} {wrong}", pytrace=False)


@pytest.mark.night
@pytest.mark.parametrize("example", examples.examples())
def test_an_example_of_the_reference_does_what_it_says(example, world, needs):
    needs("sqlite3", "git", *(program for word, program in examples.NEEDS.items() if word in example.split()))
    if wrong := untrue(examples.section(example), world):
        pytest.fail(wrong, pytrace=False)


def test_no_two_sections_listen_on_one_port():
    """They are run at the same time."""
    sections = [section for page in PAGES for section in page.sections]
    sections += [examples.section(one) for one in examples.examples()]
    typed = ("\n".join(part.text for part in one.parts if isinstance(part, pages.Block)) for one in sections)
    counted = Counter(port for text in typed for port in set(re.findall(r"--listen 127\.0\.0\.1:(\d+)", text)))
    assert len(counted) > 2
    assert [port for port, count in counted.items() if count > 1 and port != "0"] == []


def untrue(section, world) -> str | None:
    """What is not as the section says, with the screens of all sessions; None if all is."""
    try:
        runner.follow(section, world)
    except runner.Missing as missing:
        pytest.skip(str(missing))
    except runner.Untrue as untrue:
        return "\n".join((str(untrue), *world.screens()))
    return None
