"""Which programs are driven, and how each is made ready to talk to the local model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
GUESTS = ROOT / "tests/screens/unseen"

MODES = ("hooks", "screen")


class Setup(NamedTuple):
    """How a program is made ready: its files below its home, its environment, and its words, with `newest_words` in its
    newest version.

    `{url}` in each is the local model's address, `{home}` the program's home, `{work}` its work tree. `hooks` is whether
    its profile makes it tell of its turns.
    """

    files: Mapping[str, str]
    environment: Mapping[str, str]
    words: Sequence[str] = ()
    newest_words: Sequence[str] = ()
    hooks: bool = True


class Program(NamedTuple):
    """One agent program. `pinned` is the version it is played in; a guest, for which tmuxctl ships no profile, has none and
    is driven with `tests/screens/unseen/NAME.yaml` alone. `asks` is whether it asks before it runs a command."""

    name: str
    registry: str
    package: str
    setup: Setup
    pinned: str = ""
    asks: bool = True

    @property
    def guest(self) -> bool:
        """Whether tmuxctl ships no profile for it."""
        return not self.pinned

    @property
    def modes(self) -> Sequence[str]:
        """With its hooks and without, where it has some."""
        return MODES if self.setup.hooks else ("screen",)

    @property
    def profile(self) -> str:
        """What `new --profile` takes for it."""
        return str(GUESTS / f"{self.name}.yaml") if self.guest else self.name


CLAUDE_KEY = "sk-ant-dummy-key-0000000000"

CLAUDE_STATE = json.dumps(
    {
        "hasCompletedOnboarding": True,
        # it asks once whether a key may be used, and knows the answer by the key's last twenty characters
        "customApiKeyResponses": {"approved": [CLAUDE_KEY[-20:]], "rejected": []},
        "projects": {"{work}": {"hasTrustDialogAccepted": True}},
    }
)

CODEX_CONFIG = """\
model = "gpt-5.1"
model_provider = "fake"
check_for_update_on_startup = false
[analytics]
enabled = false
[projects."{work}"]
trust_level = "trusted"
[model_providers.fake]
name = "fake"
base_url = "{url}/v1"
env_key = "FAKE_API_KEY"
wire_api = "responses"
request_max_retries = 4
stream_max_retries = 2
"""

GEMINI_SETTINGS = json.dumps(
    {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False},
    }
)

AIDER_WORDS = (
    *("--model", "openai/fake", "--edit-format", "diff", "--map-tokens", "0", "--no-gitignore"),
    *("--no-check-update", "--no-show-model-warnings", "--no-show-release-notes", "--analytics-disable"),
)

CN_CONFIG = """\
name: fake
version: 0.0.1
schema: v1
models:
  - {name: fake, provider: openai, model: fake, apiBase: '{url}/v1', apiKey: dummy, roles: [chat]}
"""

PI_MODELS = json.dumps(
    {
        "providers": {
            "fake": {
                "baseUrl": "{url}/v1",
                "api": "openai-completions",
                "apiKey": "dummy",
                "models": [{"id": "fake", "contextWindow": 1000000}],
            }
        }
    }
)

PROGRAMS = {
    program.name: program
    for program in (
        Program(
            "claude",
            "npm",
            "@anthropic-ai/claude-code",
            Setup(
                {".claude.json": CLAUDE_STATE},
                {
                    "ANTHROPIC_BASE_URL": "{url}",
                    "ANTHROPIC_API_KEY": CLAUDE_KEY,
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                    "DISABLE_AUTOUPDATER": "1",
                    "CLAUDE_CODE_MAX_RETRIES": "4",
                },
                # Claude Code 2.1.330 starts in a mode that asks before no command
                newest_words=("--permission-mode", "manual"),
            ),
            pinned="2.1.197",
        ),
        Program(
            "codex",
            "npm",
            "@openai/codex",
            Setup(
                {".codex/config.toml": CODEX_CONFIG},
                {"FAKE_API_KEY": "dummy"},
                ("--no-daemon", "--no-alt-screen", "-a", "on-request", "-s", "read-only"),
            ),
            pinned="0.169.0",
        ),
        Program(
            "gemini",
            "npm",
            "@google/gemini-cli",
            Setup(
                {".gemini/settings.json": GEMINI_SETTINGS, ".gemini/trustedFolders.json": '{"{work}": "TRUST_FOLDER"}'},
                {"COLORTERM": "truecolor", "GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": "{url}"},
            ),
            pinned="0.61.0",
        ),
        Program(
            "aider",
            "pip",
            "aider-chat",
            Setup({}, {"OPENAI_API_KEY": "dummy", "OPENAI_API_BASE": "{url}/v1"}, AIDER_WORDS),
            pinned="0.86.2",
        ),
        Program(
            "cn",
            "npm",
            "@continuedev/cli",
            Setup(
                {".continue/config.yaml": CN_CONFIG},
                {"CONTINUE_TELEMETRY_ENABLED": "0"},
                ("--config", "{home}/.continue/config.yaml"),
                hooks=False,
            ),
        ),
        Program(
            "pi",
            "npm",
            "@mariozechner/pi-coding-agent",
            Setup(
                {".pi/agent/models.json": PI_MODELS, ".pi/agent/settings.json": '{"hideThinkingBlock": true}'},
                # its profile sets the cursor; by the screen alone it gets no environment from there
                {"PI_OFFLINE": "1", "PI_TELEMETRY": "0", "PI_HARDWARE_CURSOR": "1"},
                ("--provider", "fake", "--model", "fake"),
            ),
            asks=False,
        ),
    )
}

SHIPPED = tuple(name for name, program in PROGRAMS.items() if not program.guest)
