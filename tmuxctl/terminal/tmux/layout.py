"""The names of the folders and files in which we keep what there is of sessions; docs/architecture.md says what they hold."""

from __future__ import annotations

from collections.abc import Collection

from tmuxctl.transport import base

# In the folder of a server; `tmux.conf`, the record of the server and the locks of its start are the transport's.

SESSIONS, ENDED_SESSIONS = "sessions", "ended"
"""Folders of sessions by their ids: of those that run or are lost, and of those that ended."""

ADOPTED, FOREIGN = "adopted", "foreign"
"""Folders of panes of other servers: of those that have a name here, by it, and of those that were only used."""

CANDIDATES = "candidates"
TURNS, LIMITS, LIMITED = "turns.json", "limits.json", "limited-"
"""Which candidate was taken last; when each one's last limit ended or will; until when a session is limited, by its id."""

PROFILES = "profiles.json"
"""The profiles of programs and of commands, for the next process."""

LOCK, ADOPT_LOCK, RESTORE_LOCK, TURNS_LOCK = "lock", "adopt.lock", "restore.held", "turns.held"

# In the folder of a session.

SPEC = "spec.json"
PROFILE = "profile.json"
END = "ended.json"
LAST = "last.json"
ADOPTION = "adopted.json"
"""In the folder of an adopted pane: which pane it is. What has this file is adopted."""

PANE_OPTIONS = "options.json"
"""What is kept of a pane of another server as options are of a session of ours."""

JOURNAL, WRITER, WRITER_PID = "journal", "journal.sh", "journal.pid"
TIMELINE, SIZE_SCRIPT = "timeline", "size.sh"
"""When what happened, and the script by which tmux adds that the terminal has another size."""

INBOX, INBOX_LOCK = "inbox", "inbox.held"
"""The messages that wait for its program, and what only one process holds that changes them."""

RECORDER, OUTPUT_TIMES = "recorder", "times"
"""What a recorder is to do; when output came, kept by it."""

KEYFRAMES = "keyframes"
"""The folder of screens that were seen while the program was quiet, each named by how far the output had come."""

CGROUP = "cgroup"
"""The absolute folder of its control group, if it has one."""

EXPIRE = "expire.sh"

LAUNCHER = "launch.sh"
"""The script that becomes the program. It holds the values of its variables, and removes itself first."""

STARTED = "pid"
"""The pid of the program, by the launcher."""

EXIT = "exit"
"""How the program ended: `STATUS:SIGNAL`, either of which may be missing."""

ENDED = "ended"
"""Which limit of time ended it."""

SERVER = base.SERVER
"""The record of the tmux server that the session was made on, by who made it."""

EVENTS = "events"
"""The folder that its program may write: what its hooks tell, a file for each event."""

SHELL = "shell"
"""The folder whose files its shell reads; beside `events`, which it may write, all of it that a sandboxed program sees."""


def was_started(files: Collection[str]) -> bool:
    """Whether a session ever ran in the folder with these files: its launcher says so, or who made it."""
    return STARTED in files or SERVER in files
