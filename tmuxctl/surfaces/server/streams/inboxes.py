"""Messages that wait in inboxes are delivered while the server runs, whenever a program is seen to be ready for its next text."""

from __future__ import annotations

import queue
import threading

from tmuxctl.control.turns import inbox
from tmuxctl.errors import Conflict, TmuxctlError
from tmuxctl.reading.state.wanted import PROMPT
from tmuxctl.surfaces.server.streams.hub import Change, EventHub, key_of
from tmuxctl.timing import TIMING


class InboxDeliverer:
    """Delivers in a thread of its own, one session after the other; only those are looked at that became ready just now."""

    def __init__(self, hub: EventHub) -> None:
        self.hub = hub
        self._ready: queue.SimpleQueue[str] = queue.SimpleQueue()
        hub.listeners.append(self._listen)
        self._thread = threading.Thread(target=self._run, name="tmuxctl-inboxes", daemon=True)

    def start(self) -> None:
        """Begin to deliver."""
        self._thread.start()

    def stop(self) -> None:
        """End it, once the hub was stopped."""
        self._ready.put("")

    def _listen(self, change: Change) -> None:
        if change.event.wants == PROMPT and change.event.id:
            self._ready.put(key_of(change.event))

    def _run(self) -> None:
        refused: set[str] = set()
        while not self.hub.stopped:
            try:
                ready = {self._ready.get(timeout=TIMING.http.retry_seconds if refused else None)}
            except queue.Empty:
                ready, refused = refused, set()
            refused |= {key for key in ready if not self._deliver(key)}

    def _deliver(self, key: str) -> bool:
        """False if it is to be tried again: a person types, or a turn has not quite ended."""
        event = self.hub.present.get(key)
        if event is None or event.id is None or event.wants != PROMPT:
            return True
        try:
            session_id = event.id
            control, name = self.hub.control.reach(event.session)
            if control.machine.remote is not None:
                # its own server delivers them
                return True
            if inbox.has_messages(control.machine, session_id):
                control.carry_out(lambda: inbox.deliver(control.machine, session_id), name, name="tell")
        except Conflict:
            return False
        except (TmuxctlError, OSError):
            # it ended, or cannot be reached: its messages wait
            pass
        return True
