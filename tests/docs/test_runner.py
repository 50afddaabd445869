"""The one who reads the pages: what is not true or cannot be run is told, and nothing else is."""

from __future__ import annotations

import pytest

from docs import pages, runner

WELL = """
# A page

A paragraph
    that goes on, indented.

- a list

  with a second paragraph

10. a tenth

    with a second paragraph

## First
<!-- needs: sh cat -->
<!-- a remark -->
<!-- before
colour=red
-->
1. In a list:

   ```console
   $ mkdir -p sub && cd sub     # it stays
   $ echo "$colour"; pwd
   red
   .../work/sub
   $ cat <<END
   > one
   >
   > three
   > END
   one

   three
   $ false
   [exit 1]
   $ echo last of $?; exit_with() { return 3; }; exit_with
   ...
   last of 1
   ...
   [exit 3]
   ```

```text
a --> b
```

## Second

```sh
[ ! -e sub ]
test "$HOME/work" = "$PWD"
```
<!-- file: ~/notes/one.json -->
```json
{"one": 1}
```
```console
$ cat ~/notes/one.json; echo $((6 * 7)); ls
{"one": 1}
42
```
```yaml
schema: tmuxctl/profile@1
name: shop
prompt: {id: prompt, re: '^shop>', where: cursor-line}
tests: [{screen: 'shop>', state: idle}]
```
```yaml
exit: {send: quit}
```
```toml
[wait]
timeout = "5s"
```
```tmux
set -g mouse on
bind r refresh-client
```
```python
import tmuxctl
```
"""


def page(text):
    return pages.page("page.md", text)


def section(*blocks):
    return page("## One\n\n" + "\n".join(blocks)).sections[0]


def block(language, text):
    return f"```{language}\n{text}\n```"


def test_a_page_is_sections_of_blocks_and_directives():
    title, first, second = page(WELL).sections
    assert title == ("A page", ())
    assert [part[0] for part in first.parts] == ["needs", "before", "console", "text"]
    assert first.parts[1].value == "colour=red"
    assert [part[0] for part in second.parts][:4] == ["sh", "file", "json", "console"]
    assert WELL.split("\n")[first.parts[2].line - 1].strip() == pages.steps(first.parts[2])[0].command.join(("$ ", ""))


@pytest.mark.parametrize("number", [1, 2])
def test_what_is_true_passes(number, world):
    assert not list(pages.problems(page(WELL)))
    runner.follow(page(WELL).sections[number], world)


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("Do this:\n\n    tmuxctl ls\n", 5, "indented"),
        ("## More\n    tmuxctl ls\n", 4, "indented"),
        ("- a list\n\n      tmuxctl ls\n", 5, "indented"),
        ("\tls\n", 3, "indented"),
        (block("", "ls"), 4, "no language"),
        (block("bash", "ls"), 4, "bash"),
        (block("python3", "pass"), 4, "python3"),
        (block("text", "so:\n$ ls"), 4, "in a block of text"),
        (block("text", "tmuxctl ls"), 4, "in a block of text"),
        (block("console", "ls"), 4, "begins with a command"),
        ("<!-- need: gdb -->", 3, "no directive 'need'"),
        ("<!-- run-by: Makefile -->\n\nNothing.", 3, "none in this section"),
    ],
)
def test_what_nobody_would_run_is_told_with_its_line(text, line, said):
    [problem] = pages.problems(page(f"## One\n\n{text}"))
    assert problem.startswith(f"page.md:{line}: ")
    assert said in problem


@pytest.mark.parametrize(
    ("expected", "output", "same"),
    [
        ("", "anything", True),
        ("a", "a\n", True),
        ("a", "a  \n\n", True),
        ("a", "b", False),
        ("a", "a\nb", False),
        ("a\nb", "b\na", False),
        ("a...", "a", True),
        ("a...c", "abc", True),
        ("a...c", "a\nc", False),
        ("...", "", True),
        ("a\n...", "a", True),
        ("a\n...\nd", "a\nb\nc\nd", True),
        ("...\nd", "a\nd\ne", False),
        ("NAME  STATE\ndb    idle", "NAME     STATE\ndb       idle", True),
        ("a  b", "a b", False),
        ("a b", "a  b", False),
        ("  a", "   a", False),
        ("[a] (1.5)", "[a] (1.5)", True),
        ("[a] (1.5)", "a 1x5", False),
    ],
)
def test_output_is_what_the_page_shows(expected, output, same):
    [step] = pages.steps(pages.Block("console", f"$ x\n{expected}", 1))
    assert pages.shows(step.expected, output) is same


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (block("console", "$ echo one\ntwo"), ("line 4: $ echo one", "two", "one")),
        (block("console", "$ true\n$ false"), ("line 5: $ false", "exit status 1")),
        (block("console", "$ true\n[exit 1]"), ("line 4: $ true", "exit status 0")),
        (block("console", "$ echo out; exit 3"), ("of the shell itself", "out")),
        (block("console", "$ tmuxctl send nobody hello"), ("no session 'nobody'",)),
        (block("sh", "false\ntrue"), ("line 4", "exit status 1")),
        (block("sh", 'echo "$unset"'), ("unset",)),
        (block("yaml", "schema: tmuxctl/profile@1\nprompts: {}"), ("no key 'prompts'",)),
        (block("yaml", "schema: tmuxctl/profile@1\ntests: [{screen: 'x>', state: exited}]"), ("1 failed",)),
        (block("yaml", "busy: {id: a, re: '('}"), ("line 2",)),
        (block("yaml", "schema: tmuxctl/connector@1\nname: x"), ("agents",)),
        (block("toml", "[wait]\ntimout = '5s'"), ("wait.timout",)),
        (block("tmux", "set -g mouse on\nset -g mice on"), ("mice",)),
        (block("json", '{"a": 1,}'), ("line 4",)),
        (block("python", "import nothing_of_this_name"), ("nothing_of_this_name",)),
        (block("python", "KIND = 'wrap'\ndef transform(spec):\n    return 1"), ("SessionSpec",)),
        (block("python", "def transform(spec):\n    return spec"), ("KIND",)),
        (f"<!-- run-by: Makefile -->\n{block('console', '$ make believe')}", ("`make believe`",)),
        (f"<!-- before\ntrue\nfalse\n-->\n{block('console', '$ true')}", ("line 3",)),
    ],
)
def test_what_is_not_true_is_told(wrong, said, world):
    with pytest.raises(runner.Untrue) as untrue:
        runner.follow(section(wrong), world)
    for words in said:
        assert words in str(untrue.value)


def test_what_is_run_elsewhere_is_not_run_here(world):
    wanted = "$ make check      # as before\n$ make docs\n$ make"
    runner.follow(section("<!-- run-by: Makefile -->", block("console", wanted)), world)


def test_a_section_that_needs_what_is_not_here_does_nothing(world):
    with pytest.raises(runner.Missing, match="no-such-program is not installed"):
        runner.follow(section(block("console", "$ touch done"), "<!-- needs: sh no-such-program -->"), world)
    assert not (world.here / "done").exists()


@pytest.mark.parametrize(
    ("server", "client", "shown"),
    [
        ("postgres", "psql -Atc 'select 6 * 7'", "42"),
        ("mariadb", "mariadb -uroot -Ne 'select 6 * 7'", "42"),
        ("redis", "redis-cli -p $REDIS_PORT ping", "PONG"),
        (
            "sshd",
            "ssh-keyscan -p $SSH_PORT 127.0.0.1 2>&1 | grep -c ed25519; test $SSH_USER && test $SSH_PASSWORD",
            "1",
        ),
    ],
)
def test_a_section_has_servers_of_its_own(server, client, shown, world):
    asks = f"<!-- needs: {client.split()[0]} -->\n<!-- needs-service: {server} -->"
    try:
        runner.follow(section(asks, block("console", f"$ {client}\n{shown}")), world)
    except runner.Missing as missing:
        pytest.skip(str(missing))


def test_a_person_attaches_at_a_terminal_and_leaves(world):
    told = "$ tmuxctl new t -- cat\n$ tmuxctl send t hello\n$ tmuxctl attach t   # C-b d; leaves it\n...\nhello\n..."
    runner.follow(section(block("console", f"{told}\n$ tmuxctl watch\n...  t  ...\n$ tmuxctl kill t")), world)


def test_a_reader_has_an_empty_home_and_no_session(world):
    told = "$ echo ~; ls -A ~; tmuxctl ls -q; echo ${TMUX-none} ${NO_COLOR-none}\n.../home\nwork\nnone none"
    runner.follow(section(block("console", told)), world)
