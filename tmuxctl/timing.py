"""How long things take: every duration that tmuxctl waits for or judges by, in seconds, with the clock it is measured by.

A test, or a program that embeds tmuxctl, passes its own to `Control`; code that is handed no machine goes by `TIMING`.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from tmuxctl.value import Value


class ObservationTiming(Value):
    """Looking at a program until its state is stable."""

    pause_seconds: float = 0.025  # the pause before the look that confirms another
    settle_seconds: float = 0.0015
    """How long nothing must come after output before it is looked at; doubled by each look, up to `pause_seconds`, while more
    output comes."""
    apart_seconds: float = 0.06  # output that comes so long after the last look which found some does not double it
    confirm_seconds: float = 0.025  # how long a state must have stood before a second look confirms it
    moment_seconds: float = 0.4
    """The longest time that a command which only tells a state observes it, if the first looks do not agree."""
    lively_seconds: float = 0.35  # how long after output looks follow each other without delay
    rare_pause_seconds: float = 3.0  # the longest pause between two looks at a program that works and prints nothing
    silent_seconds: float = 0.25  # how long a program that prints on and on is silent before who follows it looks
    working_seconds: float = 1.0  # how seldom who follows it looks if it is never silent for so long
    resting_seconds: float = 60.0
    """The longest pause between two looks of who follows a program that waits, and is woken when a thread of it runs."""
    threads_seconds: float = 1.0  # how often it is checked whether one has run, where nothing else tells
    timer_seconds: float = (
        15.0  # how often it is looked at, at least, if its threads run by a timer and nothing changes
    )
    flood_pause_seconds: float = 0.1  # the pause between two looks at a program that prints without end
    input_pause_seconds: float = 0.01
    """The pause before the second look after an input; doubled by each look, until the program has read it."""
    rare_input_pause_seconds: float = 1.0  # the longest one
    unconfirmed_seconds: float = 3.0
    """How long after an input a state is told as a guess where nothing can show whether the program has read it."""
    recent_seconds: float = 1.0  # how recent a look of another process must be to confirm ours
    window_seconds: float = 3.3
    """How long looks are kept: an animation is judged over two seconds, and silence over three."""
    written_seconds: float = 1.0
    """How long a process that stays keeps looks that led to the same state to itself, before it writes them for others."""
    keyframe_seconds: float = 0.1  # how long a program has been quiet when its screen is kept beside its journal
    file_ahead_seconds: float = 1.0  # how far a file's time may lie ahead of the clock by itself
    stands_seconds: float = 3.0
    """How long a process that stays tells the state it judged before, while nothing has happened that could change it."""
    start_seconds: float = 30.0  # the longest wait for a new program, if neither its profile nor the settings say
    start_busy_seconds: float = 2.0  # how long a new program may be busy before the wait for it ends


class EventTiming(Value):
    """Reading what a program's hooks report of its turns."""

    tick_seconds: float = 0.01
    """A file's time is that of the kernel's last tick (clock_getres(2), CLOCK_REALTIME_COARSE)."""
    ahead_seconds: float = 5.0
    """A file that is this much newer than now was written before the wall clock was set back, at an unknown time."""


class AnswerTiming(Value):
    """Finding the answer of a turn that has ended."""

    late_seconds: float = 0.6
    """How much later than its prompt a program may tell the end of its turn (Codex: 0.2 s, measured)."""
    late_tokens_seconds: float = 0.15
    """How long a transcript is waited for that only says how many tokens an answer took (Claude: up to 0.13 s, measured)."""
    pause_seconds: float = 0.02  # the pause between two looks for it


class WaitTiming(Value):
    """Waiting until something holds."""

    sessions_seconds: float = 1.0  # how often `watch` checks whether sessions came or went
    last_search_seconds: float = 1.0  # how long the newest output may be searched after the time is over
    alive_seconds: float = 20.0
    """How often tmux is asked whether the session is still there when nothing is heard: its end is heard of otherwise."""
    nap_seconds: float = 3.0  # how often a wait checks whether the caller still wants it, if nothing else wakes it
    signal_seconds: float = 0.2
    """How long the main thread sleeps at most while other threads work. A handler of a signal runs in the main thread, but the
    signal may interrupt another one that just started a process (11 of 60, measured), and the main thread then sleeps on."""
    under_way_seconds: float = 2.0
    """How long after a program's last output more of it may come, though the program has ended."""
    moment_seconds: float = 0.5  # how long `--now` looks at a state before it says that it does not hold
    flood_seconds: float = 0.02  # the time over which it is judged whether output floods
    flood_rest_seconds: float = 0.01  # how long a wait for text lets a flood go on before it reads what came
    give_way_seconds: float = 0.0002  # the pause for other threads between two parts of much output
    journal_seconds: float = 1.0
    """How long the output that a screen shows may take to come into the journal, whose writer may get no time for so long."""
    follow_seconds: float = 1.0
    """How often reading along checks whether the session is still there, if nothing is printed."""


class SearchTiming(Value):
    """Searching output with a user's pattern."""

    longest_seconds: float = 5.0  # how long a search may take
    least_seconds: float = 0.05  # how long a search may take though its deadline is nearer
    shared_seconds: float = 0.05
    """How long a search in the main thread may hold up the others: after that it is a worker's."""
    worker_start_seconds: float = 10.0  # how long a worker may take to start
    worker_grace_seconds: float = 1.0  # how long after the deadline a worker ends itself
    worker_retry_seconds: float = 60.0
    """How long no other worker is tried after one that did not start: it may have taken `worker_start_seconds`."""


class InputTiming(Value):
    """Typing keys and answering questions."""

    escape_seconds: float = 0.1
    """The pause after Escape: without one programs take it and the next key for Meta and that key. Also the pause between the
    keys that empty an editor: some take what they read at once for text (Ink without bracketed paste, measured)."""
    mark_seconds: float = 0.5  # how long the mark of a menu may take to move before it is moved once more
    question_gone_seconds: float = 3.0
    """How long a question that was answered may stay before the decision is told as it stands."""


class SubmissionTiming(Value):
    """Pasting a text into a program, and Enter when it shows there."""

    shown_seconds: float = 5.0  # how long nothing may move before a pasted text shows
    longest_seconds: float = 60.0  # how long a pasted text may take to show at all
    still_seconds: float = 0.15
    """A composer that shows something else than the text (`[Pasted text +50 lines]`) has taken it when nothing moves for this
    long."""
    lively_seconds: float = 1.0
    """After this much longer a program that has the text and goes on drawing is taken to do so all the time."""
    proof_seconds: float = 5.0  # how long a program may take to show that it took the text
    cleared_seconds: float = 0.5  # how long a key that clears may take to show
    silent_seconds: float = 0.3
    """A program that works and has printed nothing for this long does not draw what was typed. Nor is it only drawing that
    where something else has stood on its screen for this long."""
    renew_seconds: float = 2.0  # how often a lease is renewed while a text is sent
    pause_seconds: float = 0.02  # the pause between two looks


class TurnTiming(Value):
    """A turn of `ask`: from a program that is ready to the end of its answer."""

    ready_seconds: float = 1.0
    """How long a program that is just finishing something is waited for before a turn is refused."""
    starting_seconds: float = 10.0  # how long a program that has only been started is waited for
    stop_seconds: float = 5.0  # how long a turn that was interrupted may take to end
    renew_seconds: float = 4.0  # how often a turn under way says that it still is
    unbegun_seconds: float = 1.5
    """After this long in silence a program that was given a text and shows its prompt has had its turn, though nothing of it
    was seen."""
    signed_seconds: float = 5.0
    """The same for a program whose signs of work are known and have not come: a loaded machine may take this long."""
    unseen_seconds: float = 10.0
    """After this long it has had its turn though it goes on printing, such as a clock: nobody knows of what."""


class CommandTiming(Value):
    """A command of `exec` or `run`."""

    start_seconds: float = 10.0  # how long a shell may take to begin with a command it was given
    prompt_seconds: float = 0.25  # how long the end of a prompt is waited for once it has begun
    ready_seconds: float = 10.0  # how long a shell that is still starting is waited for
    silent_seconds: float = 0.5  # after this long without output it is checked whether the program waits for an answer
    answer_seconds: float = 3.0
    """How long somebody else may take to answer a program that is run to its end, before it is ended."""


class SessionTiming(Value):
    """The life of a session: starting, adopting, ending, restoring."""

    unfinished_seconds: float = 60.0
    """How old a folder is before it is taken for what is left of a `new` that never came to its end."""
    close_seconds: float = 2.0  # how long the end of our own pipe from an adopted pane is waited for
    prepare_seconds: float = 60.0  # how long a restored session may take to be prepared: its plugins are at work then
    slow_seconds: float = 2.0  # a session that takes longer than this to be prepared no longer holds up the next
    login_seconds: float = 10.0
    """How long the start-up files of a login shell may take. Those of version managers take two on a slow machine."""
    login_fresh_seconds: float = 60.0
    """How long variables at login are believed by a process that stays: sessions restored together ask for the same ones."""
    kill_seconds: float = 3.0  # how long processes are killed again and again, while new ones are found
    kill_pause_seconds: float = 0.02  # the pause between two looks whether they have ended
    writer_seconds: float = 1.0
    """How long a journal's new writer is waited for, until it has taken the sign of the end away that the one before it left; and
    how long one that takes nothing is waited for before its session is ended."""


class TmuxTiming(Value):
    """A tmux server: ours, and that of an adopted pane."""

    nudge_seconds: float = 2.0
    """How long tmux may take to start and end a process of its own before it is taken to have overlooked that end."""
    status_seconds: float = 2.0  # how long the status of a program that closed its terminal and is ending is asked for
    status_pause_seconds: float = 0.01  # the pause between two such questions
    lease_seconds: int = 10  # how long a lease on a session's input lasts unless renewed
    human_seconds: int = 2  # a person who pressed a key this recently is still typing; tmux counts in whole seconds
    open_seconds: float = 3.0  # how long a control client may take to open
    spawn_seconds: float = 30.0  # how long calls are spawned instead when the control client did not open
    foreign_pause_seconds: float = 0.1
    """How often a pane without a journal is looked at, for nothing tells when it prints."""
    foreign_rare_pause_seconds: float = 0.5  # the same when nothing changed for long
    foreign_lock_seconds: float = 5.0  # how long another process may have what only one may have at a time


class JudgingTiming(Value):
    """From evidence to a state."""

    blink_seconds: float = 0.4
    """How far back a program that waited counts as still waiting, when it wakes to blink or to move a clock."""
    used_seconds: float = 0.6  # the time over which the use of the processor is looked at
    used_recently_seconds: float = 0.25  # the time in which a program that goes on computing uses it, too
    start_seconds: float = 2.0  # how long a new program counts as starting, if its profile does not say
    hook_seconds: float = 1.0
    """How long what a program told of its turn counts more than what it shows: it tells before it draws."""


class ProfileTiming(Value):
    """Reading profiles and trying them."""

    fresh_seconds: float = 2.0  # how long a profile may be cached before its file is looked at again
    trial_seconds: float = 0.5
    """How long all searches of a pattern's trial may take; those of a sound pattern take a hundredth of it. A trial that had the
    processor for less than half of it is made again."""
    search_seconds: float = 0.05  # seconds of the processor for one search of a trial that no alarm can end
    version_seconds: float = 10.0  # how long a program may take to print its version
    exit_seconds: float = 5.0  # how long a program may take to end when it is told to
    quiet_seconds: float = 0.7
    """A program that printed nothing for this long, with something left of its cursor, is taken to wait."""


class PluginTiming(Value):
    """What plugins are given."""

    program_seconds: float = 10.0  # how long a plugin that is a program may take
    function_seconds: float = 60.0  # how long a function of a plugin may take, unless the plugin says otherwise
    test_seconds: float = 30.0  # how long one test of a plugin may take
    shell_seconds: float = 10.0  # how much longer a shell has than the command in it, which is ended there in its time
    lock_pause_seconds: float = 0.05  # how often a lock that another process holds is tried


class PageTiming(Value):
    """What a person sees: `top`, and the line that tells what a command waits for."""

    table_seconds: float = 1.0  # how often the table of `top` is made anew
    together_seconds: float = 0.1  # changes this close together are looked at together
    changed_seconds: float = 2.0  # how often `top` lists the sessions at most where only states change
    rare_seconds: float = 20.0  # how often it lists them where none does, and no session comes or goes
    load_seconds: float = 0.5  # processor time is told as a share of at least this long
    view_seconds: float = 0.2  # how often the live view of a session is drawn at most
    passing_seconds: float = 0.03  # a session that is selected for less than this is not looked at
    twice_seconds: float = 0.4  # two clicks this close together are a double click
    note_seconds: float = 10.0  # how long what was said stands in place of the keys
    escape_seconds: float = 0.05  # an escape that nothing follows for this long is the key of that name
    clock_seconds: float = 0.5  # how often a player writes how far it is
    told_seconds: float = 5.0  # how long a desktop may take to show a notice, and fontconfig to name a font
    film_end_seconds: float = 2.0  # how long the last screen of a moving picture stands before it begins anew
    line_seconds: float = 1.0
    """When a person may begin to wonder what is waited for; how often the line is written again."""
    rare_pause_seconds: float = 5.0
    """The longest pause between two looks at what is waited for; the longer it lasts the rarer they are."""
    grace_seconds: float = 3.0  # how long an orderly end may take after SIGTERM
    service_start_seconds: int = 300  # how long a service's server and all that is restored may take to start
    service_stop_seconds: int = 10  # how long programs may take to end when a service tells them to


class RecorderTiming(Value):
    """The process that keeps when a session's output comes."""

    begin_seconds: float = 1.0  # what a session printed in so long a time since its start counts as recorded
    together_seconds: float = 0.01  # output that comes within this has one time
    alive_seconds: float = 2.0  # how often it shows that it still works, and looks whether the session is still there
    silent_seconds: float = 15.0  # a recorder that showed nothing for so long works no more
    start_seconds: float = 15.0  # how long a recorder may take to start
    stop_seconds: float = 5.0  # how long it may take to end
    pause_seconds: float = 0.02  # the pause between two looks whether it has ended


class ServingTiming(Value):
    """Serving a client: MCP."""

    progress_seconds: float = 5.0  # how often a client is told that its call goes on
    sweep_seconds: float = 60.0  # how often sessions that are idle for too long are looked for, as in ptyai
    close_seconds: float = 1.0  # how long a server that is told to end gives tmux to let its control client go


class HttpTiming(Value):
    """The HTTP server."""

    head_seconds: float = 10.0  # how long the head of a request may take
    body_seconds: float = 30.0  # how long its body may take
    keep_alive_seconds: int = 30  # how long a connection stays open that nothing is asked on
    stop_seconds: int = 5  # how long calls may go on after the server was told to end
    sweep_seconds: float = 3.0  # how often it is looked whether sessions that had ended are still listed
    retry_seconds: float = 1.0  # the pause before sessions are watched again, after tmux could not be asked
    follow_seconds: float = 1.0  # how often it is looked whether who follows a session still may
    ping_seconds: float = 15.0  # how often a stream of events on which nothing happens says that it is there
    answer_seconds: float = 10.0  # how long the receiver of an event may take to answer
    command_seconds: float = 30.0  # how long a command may take that is told of an event
    probe_seconds: float = 2.0  # how long a server that listens already may take to take a connection
    listing_seconds: float = 1.0  # how often the board of the page asks tmux for its sessions
    whole_listing_seconds: float = 5.0  # how often it asks for all that is known of them where a state changed
    rare_listing_seconds: float = 30.0  # how often where none did, and no session came or went
    seen_listing_seconds: float = 2.0  # how often another machine is asked of which sessions are looked at
    tiles_seconds: float = 0.5  # the shortest pause between two changes of the board that a reader is told
    together_seconds: float = 0.1  # changes of the board this close together are told together
    overview_seconds: int = 10  # how often a browser without JavaScript loads the list of sessions again
    grid_seconds: int = 5  # how often it loads the screen of one again
    code_seconds: float = 600.0  # how long a one-time code for signing in may be used
    wrong_codes_seconds: float = 60.0  # the time in which only so many wrong codes are looked at
    login_seconds: float = 30 * 86400.0  # how long a browser that has signed in stays signed in


class AgentApiTiming(Value):
    """agentapi's API over a session."""

    begin_seconds: float = 15.0
    """How long a program may take to show that it works on a message, before that counts as taken, as in agentapi."""
    begin_pause_seconds: float = 0.03  # the pause between two looks whether it does
    quiet_seconds: float = 1.5
    """After so long in silence a program that shows the prompt again that it had before a message counts as stable, though
    it does not read its terminal. agentapi goes by silence alone, for two seconds."""
    quiet_pause_seconds: float = 0.2  # the pause between two looks whether it is so
    tick_seconds: float = 0.1  # the longest pause between two looks whether there is anything to tell
    live_seconds: float = 0.25  # the pause between two looks at what a program prints in a turn
    rest_seconds: float = 2.0
    """The pause between two looks at the messages of a program that waits: others may have given it a turn too short to be
    seen."""
    holds_seconds: float = 1.0  # how often it is looked whether the token of one who follows still holds
    frame_seconds: float = 0.05  # the shortest pause between two screens
    change_seconds: float = 1.0  # how long a change of the screen is waited for before the token is looked at again
    fresh_seconds: float = 0.1  # how long messages that were read are told again


class RawTerminalTiming(Value):
    """Raw bytes between a session's terminal and a client of the server."""

    drained_seconds: float = 0.002
    """A terminal with nothing unread at two moments so far apart has handed all to its program: what tmux still holds comes to
    it in less."""
    pause_seconds: float = 0.001  # the pause before a terminal is looked at again whose program has not read all
    rare_pause_seconds: float = 0.05  # the longest one: it is doubled each time
    hold_seconds: float = 0.1  # how long input waits before it is tried again where a person types, or another writer
    hangup_seconds: float = 0.5  # how often it is looked whether a client that sends no more has gone away
    end_seconds: float = 1.0  # how long a client may take to close its end after the end of the output


class CommandServerTiming(Value):
    """Carrying out the commands of others."""

    request_seconds: float = 10.0  # how long a caller may take for its request, and then to want the command begun
    rest_seconds: float = 0.1
    """How long a command has the processors for itself before a child is forked for the next one, unless that has come: 3 ms of 25
    on two processors (measured)."""
    retry_seconds: float = 0.05  # the pause where the kernel has no process or descriptor left for a caller


class MachineTiming(Value):
    """Reaching other machines."""

    start_seconds: float = 20.0
    """How long the first call to one may take: ssh gives up by itself before that, after ten seconds, and says why."""
    all_seconds: float = 5.0
    """How long a list of all machines waits for those that are slow."""
    slot_seconds: float = 0.005
    """After how long without an answer a list of many machines asks one more than it asks at once."""
    heal_seconds: float = 60.0
    """How long a call that follows a session, or waits without a limit, waits for a connection that was lost."""
    retry_seconds: float = 0.5  # the pause before a machine whose connection was lost is reached again
    pause_seconds: float = 0.1  # longer sleeps of an operation are not left to the shell there, together
    fresh_seconds: float = 1.0
    """How old the answer to a request may be that was sent before it was asked for."""
    again_seconds: float = 5.0
    """The pause before a machine is reached again that cannot be followed any more."""
    install_seconds: float = 600.0
    """How long a package manager there may take."""
    pairing_seconds: float = 30.0
    """How long the tmuxctl there may take to let this client in."""
    first_seconds: float = 3.0
    """How long a way to a machine that has another way too may take to be opened: ssh needs 1.3 s to one 50 ms away (measured)."""
    way_seconds: float = 300.0
    """How long the way that was used last is tried first, before the first one is tried again."""


class RpcTiming(Value):
    """Operations carried out by a tmuxctl on another machine."""

    beat_seconds: float = 1.0
    """How often each end of a call that goes on hears of the other, and what got lost is asked for again."""
    gap_seconds: float = 0.1  # how long a record may be behind a later one before it counts as lost
    step_seconds: float = 0.5  # how often a call that waits looks whether it is cancelled
    late_seconds: float = (
        1.0  # how much later than its caller says a call may begin: clocks differ, and a handshake takes time
    )
    cancel_seconds: float = 1.0  # how long a call that is cancelled waits to be told what was done before
    silence_seconds: float = 10.0  # how long nothing is heard from a machine before a call that does not wait ends
    heal_seconds: float = 60.0  # the same for a call that waits without a limit
    answer_seconds: float = 900.0
    """How long a machine that is heard may take to answer a call that does not wait, as one that starts a session and waits for it,
    and how much longer than its own limit one that does."""
    lost_seconds: float = 120.0  # how long a machine goes on reading for a caller that it hears nothing of
    kept_seconds: float = 600.0  # how long a machine keeps the result of a call that changed something
    idle_seconds: float = 5.0  # how long a thread that has no call any more waits for the next


class FleetTiming(Value):
    """Runs of connector files."""

    person_seconds: float = 1.0  # the pause before a text is given again, into whose session a person types
    follow_seconds: float = 0.2  # how often a transcript that is followed is looked at
    finish_seconds: float = 10.0  # how long the agents of a run that is broken off may take to notice


class GatewayTiming(Value):
    """The connection to a gateway, and its server."""

    ping_seconds: float = 2.5
    """How often a connection asks whether the server is there. The third question without an answer ends it, so that a cut which
    nothing tells of is known after 5 to 7.5 s."""
    connect_seconds: float = 3.0  # how long the server may take for each step of a new connection
    open_seconds: float = 6.0  # how long a new connection may take altogether
    pause_seconds: float = 0.1  # the pause before it is opened again; doubled by each failure
    rare_pause_seconds: float = 2.0  # the longest one
    flush_seconds: float = 5.0  # how long the server may take to confirm what it was sent
    close_seconds: float = 1.0  # the same when the connection is closed
    heartbeat_seconds: float = 2.0  # how often a host says that it is there
    silent_seconds: float = 6.0  # how long it says nothing before that is told: three times
    follow_seconds: float = 0.5  # how often who follows events looks whether the host is silent
    store_seconds: float = 5.0  # how long the stream may take for an answer
    reach_seconds: float = 8.0  # how long a client waits for a connection; a host says after that why it has none
    handshake_seconds: float = 3.0  # how long a host may take to answer a handshake, which is tried three times
    pairing_seconds: float = 15.0  # the same for a message of a pairing
    unconfirmed_seconds: float = 30.0  # how long a host keeps a channel whose client has sent nothing through it
    accounts_seconds: int = 10  # how often a server asks another one whether it knows newer claims of accounts
    administrator_seconds: int = (
        300  # how long a key holds with which the gateway's first machine asks and tells the servers
    )
    prepare_seconds: float = 10.0  # how long a server may take for one step of making its stream
    prepare_first_seconds: float = (
        1.0  # the same at the first try, as nodes without a leader answer nothing; doubled by each failure
    )
    prepare_pause_seconds: float = 0.3  # the pause before it is tried again; doubled by each failure, up to the next
    prepare_rare_pause_seconds: float = 5.0
    probe_seconds: float = 3.0  # how long a question to the monitoring port, or a check, may take
    sync_seconds: int = 5  # how often the store is synced to the disk
    certificate_days: int = 397  # how long the server's certificate is valid
    renewal_days: int = 60  # it is made anew by `gateway up` if it ends within this
    authority_days: int = 3650  # how long the certificate of the authority is valid


class AssertionTiming(Value):
    """Assertions of the pytest plugin."""

    limit_seconds: float = 5.0  # how long one waits, where nothing else is said
    look_seconds: float = 0.5  # how often a screen is looked at again, though nothing was printed
    late_seconds: float = 0.05  # how long the last that a program printed may be on its way to its screen
    settled_seconds: float = 0.3  # how long nothing is printed before a screen is kept as a snapshot


class SealedTiming(Value):
    """End-to-end encryption: pairing, handshakes and channels."""

    clock_skew_seconds: float = 300.0
    """How far the clocks of a client and a host may be apart: what RFC 4120, section 8.2, recommends to Kerberos."""
    channel_seconds: float = 3600.0  # how long one channel is used before another handshake makes the next
    grace_seconds: float = 60.0  # how long after its end a channel's records are still read
    pairing_seconds: float = 300.0  # how long the code of a pairing is good
    lock_seconds: float = 5.0  # how long another process may take to change keys, or who is trusted


class DirectTiming(Value):
    """The direct path between a client and a host, past the gateway."""

    settle_seconds: float = 1.0  # how long a channel is used before such a path is looked for
    probe_seconds: float = 0.1
    """How long a call that went by it may be without an answer before it is asked whether the host is there."""
    hedge_seconds: float = 0.4  # how long before the call is sent through the gateway too, and the path is suspected
    suspect_seconds: float = 0.5  # how often a path that is suspected is tried
    lost_seconds: float = 2.0  # how long it stays suspected before it is given up and made anew
    connect_seconds: float = 3.0  # how long each step of making it may take
    handshake_seconds: float = 1.0  # how long a host may take to answer a handshake on it
    late_seconds: float = 1.0  # how long a client waits for the gateway before it tries the host's own address
    pause_seconds: float = 1.0  # the pause before it is tried again; doubled by each failure
    rare_pause_seconds: float = 15.0  # the longest one
    recent_seconds: float = 120.0  # how long after a path was whole it is tried more often
    recent_pause_seconds: float = 2.0  # the longest pause then
    unused_seconds: float = 10.0  # how long it is kept while no channel uses it
    strange_seconds: float = 5.0  # how long a host bears a connection that has said nothing authentic


class Timing(Value):
    """Every duration, by what it is for."""

    observation: ObservationTiming = ObservationTiming()
    events: EventTiming = EventTiming()
    answer: AnswerTiming = AnswerTiming()
    wait: WaitTiming = WaitTiming()
    search: SearchTiming = SearchTiming()
    input: InputTiming = InputTiming()
    submission: SubmissionTiming = SubmissionTiming()
    turn: TurnTiming = TurnTiming()
    command: CommandTiming = CommandTiming()
    session: SessionTiming = SessionTiming()
    tmux: TmuxTiming = TmuxTiming()
    judging: JudgingTiming = JudgingTiming()
    profile: ProfileTiming = ProfileTiming()
    plugin: PluginTiming = PluginTiming()
    page: PageTiming = PageTiming()
    recorder: RecorderTiming = RecorderTiming()
    serving: ServingTiming = ServingTiming()
    http: HttpTiming = HttpTiming()
    agentapi: AgentApiTiming = AgentApiTiming()
    raw_terminal: RawTerminalTiming = RawTerminalTiming()
    command_server: CommandServerTiming = CommandServerTiming()
    assertion: AssertionTiming = AssertionTiming()
    machine: MachineTiming = MachineTiming()
    rpc: RpcTiming = RpcTiming()
    fleet: FleetTiming = FleetTiming()
    sealed: SealedTiming = SealedTiming()
    gateway: GatewayTiming = GatewayTiming()
    direct: DirectTiming = DirectTiming()


class Limits(Value):
    """How much is read of what a program's hooks and transcripts hold, as it may write as much as it likes; and what a batch or a
    session may have."""

    event_bytes: int = 1 << 20  # bytes of one event that are read
    events_bytes: int = 8 << 20  # bytes of all events that are read at once: the newest
    events_kept: int = 500  # how many events are read, and kept when a turn begins: the newest
    near_transcript_bytes: int = 2 << 20
    """Bytes of a transcript that are read from its end at first, as 20 MB take 1.4 s (measured)."""
    tags: int = 64  # tags of one session
    batch_steps: int = 1000  # steps of one batch
    batch_bytes: int = 16 << 20  # characters of JSON that the results of one batch may have together
    transcript_bytes: int = 64 << 20  # bytes that are read from its end if the input is not among those


class Clock(Value):
    """What tells the time and sleeps. `monotonic` stays near the machine's own: the kernel and workers keep the same deadlines."""

    monotonic: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    sleep: Callable[[float], None] = time.sleep


TIMING, LIMITS, CLOCK = Timing(), Limits(), Clock()
