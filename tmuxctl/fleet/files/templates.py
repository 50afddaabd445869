"""Connector files to start from, one for each type of topology."""

from __future__ import annotations

from tmuxctl.config import suggest
from tmuxctl.errors import Usage

_HEAD = """\
# {about}
schema: tmuxctl/connector@1
name: {name}

# the run's text; {{input}} stands for it below. From a file beside this one: {{file: task.md}}
input: {input}

"""

_PIPELINE = (
    "Two agents write and repair, a shell tests: each stage's answer is the next one's input.",
    "Add a function that parses ISO 8601 durations, in src/durations.py",
    """\
agents:
  writer: {profile: claude, role: You write tests. Change no other files.}
  coder: {profile: codex, turn_timeout: 20m}
  shell: {command: [bash]}

topology:
  type: pipeline
  stages:
    - {agent: writer, prompt: 'Write tests for this, in tests/: {input}'}
    - agent: coder
      prompt: |
        Make these tests pass: {previous}
    # a shell runs the prompt as a command; if it fails, the coder goes on with its output
    - agent: shell
      prompt: pytest -q
      expect_exit: 0
      on_fail: {goto: 1, max: 3}      # stages count from 0

stop: {turns: 12, time: 1h}
""",
)

_DIALOGUE = (
    "An author and a critic, strictly by turns, until the critic agrees.",
    "Write a README for this project, in README.md",
    """\
agents:
  author: {profile: claude, role: You write. Answer each remark by changing the file.}
  critic:
    command: [codex, --sandbox, read-only]
    role: You review what the author wrote. If nothing is left to improve, answer AGREED on a line of its own.

topology:
  type: dialogue
  between: [author, critic]
  first: author
  opening: '{input}'

# a pattern in the syntax of Python; (?m) lets ^ match at each line
stop: {turns: 8, text: '(?m)^AGREED$'}
""",
)

_MEETING = (
    "Three members give their views, a chair decides, in three rounds at most.",
    "Shall we store sessions in SQLite or in plain files?",
    """\
agents:
  chair:
    profile: claude
    role: You chair a meeting. Once the views are clear, answer with one line that begins with DECISION.
  security: {profile: claude, role: You look at security only. Be brief.}
  speed: {profile: codex, role: You look at speed only. Be brief.}
  # the first of these whose program is installed
  users: {candidates: [claude, codex], role: You look at what users notice only. Be brief.}

topology:
  type: meeting
  chair: chair
  members: [security, speed, users]
  speak: parallel                     # or in-order
  rounds: 3
  decision: '(?m)^DECISION'

stop: {turns: 20}
""",
)

_MESH = (
    "Agents that tell each other what they like, by lines `@NAME: text` in their answers.",
    "Build a command that prints the phase of the moon",
    """\
agents:
  planner: {profile: claude, role: 'You plan. Give tasks by lines such as "@coder: do this". Write no code.'}
  coder: {profile: codex, role: 'You write code. Tell the tester when it is ready: "@tester: try this".'}
  tester: {profile: claude, role: 'You test, and tell the coder what fails: "@coder: this fails".'}

topology:
  type: mesh
  start: {planner: '{input}'}
  # whom each may tell something; without `links` everybody reaches all
  links: {planner: ['*'], coder: [planner, tester], tester: [coder]}

# it ends when all are idle, or at these limits
stop: {turns: 40, time: 2h}
""",
)

_RECURSIVE = (
    "A lead that gives tasks to workers, each in a session and a git worktree of its own.",
    "Translate all pages in docs/ to German",
    """\
agents:
  lead:
    profile: claude
    role: |
      You lead. Give a task by a fenced block:
      ```task NAME
      what is to be done
      ```
      The results come back to you. Answer without such a block when all is done.
  dev:
    profile: codex
    isolation: {worktree: dev}

topology:
  type: recursive
  root: lead
  worker: dev
  depth: 1                            # workers give no tasks themselves
  width: 4                            # tasks of one answer
  total: 12
  parallel: 2

stop: {turns: 40, time: 2h}
""",
)

_TEMPLATES = {
    "pipeline": _PIPELINE,
    "dialogue": _DIALOGUE,
    "meeting": _MEETING,
    "mesh": _MESH,
    "recursive": _RECURSIVE,
}


def template(topology: str) -> str:
    """A connector file of this type of topology, in YAML with comments; Usage `bad_topology` for any other word."""
    if topology not in _TEMPLATES:
        hint = suggest(topology, _TEMPLATES) or f"there are: {', '.join(_TEMPLATES)}"
        raise Usage(f"no topology {ascii(topology[:40])}", reason="bad_topology", hint=hint)
    about, text, rest = _TEMPLATES[topology]
    return _HEAD.format(about=about, name=topology, input=text) + rest
