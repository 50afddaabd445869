"""The options of tmux in which a session keeps what is known of it while it runs (tmux(1), OPTIONS: `@` is for users)."""

from __future__ import annotations

import re

PREFIX = "@tmuxctl_"

ID = "@tmuxctl_id"
FORMAT = "@tmuxctl_format"
"""That of the session's files and options (`untrusted.FORMAT`)."""
FOLDER = "@tmuxctl_folder"
"""What `journal.encode_path` makes of the session's folder."""
INCARNATION = "@tmuxctl_incarnation"
CREATED = "@tmuxctl_created"
SPEC = "@tmuxctl_spec"
"""What `launch.format_facts` tells of the session."""
TAGS = "@tmuxctl_tags"
COLUMNS = "@tmuxctl_cols"
ROWS = "@tmuxctl_rows"
KEEP_SIZE = "@tmuxctl_keep_size"
ENDED = "@tmuxctl_ended"
"""Why its program was ended."""
LEASE = "@tmuxctl_lease"
LEASE_UNTIL = "@tmuxctl_lease_until"
ASKER = "@tmuxctl_asker"
ASKER_UNTIL = "@tmuxctl_asker_until"
"""The name of the lease that one turn holds to its end."""
BATCH = "@tmuxctl_batch"
BATCH_UNTIL = "@tmuxctl_batch_until"
"""The name of the lease that one batch holds to its end."""
INPUT = "@tmuxctl_input"
"""The last input, as `paste.LastInput` writes it."""
FACTS_SIZE = 200
"""Characters of a remembered input that hold all of it but the text."""
INPUT_FACTS = f"={FACTS_SIZE}:{INPUT}"
"""The last input without its text, in a format."""
ACKNOWLEDGED = "@tmuxctl_ack"
"""The ids of the last inputs that were typed."""
ASKED = "@tmuxctl_asked"
"""The last turn's input, so that its answer can be had later."""
INBOX = "@tmuxctl_inbox"
"""The id of the last message of its inbox that was given to the program, or what took its place when the inbox was emptied."""
LEFT = "@tmuxctl_left"
TURN = "@tmuxctl_turn"
TURN_ID, TURN_PLACE = "@tmuxctl_turn_id", "@tmuxctl_turn_place"
"""The id of the last turn that was given with one, and where its text stands, as `paste.OnceMark` writes it."""
RECOVERY = "@tmuxctl_recovery"
MISFITS = "@tmuxctl_misfits"
CONFIG = "@tmuxctl_config"
"""Of a server: that ours started it."""

NAMES = frozenset(value for value in globals().values() if isinstance(value, str) and value.startswith(PREFIX)) - {
    PREFIX
}


def option_name(name: str) -> str:
    """The option that is called so, without the prefix."""
    if PREFIX + name not in NAMES:
        raise KeyError(name)
    return PREFIX + name


def fill_option_names(text: str) -> str:
    """A script or format in which `@@NAME` stands for an option of ours."""
    return re.sub(r"@@(\w+)", lambda found: option_name(found[1]), text)
