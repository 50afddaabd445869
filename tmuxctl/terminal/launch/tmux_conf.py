"""The configuration of tmuxctl's own server. Nothing of the user's is read."""

from __future__ import annotations

from tmuxctl.terminal.tmux import journal, layout, options

OPTIONS = """\
# tmuxctl's own server; your ~/.tmux.conf is not read. Every option with -q: a version that does not know one goes on.
set -sq exit-empty off
set -sq escape-time 0
# its log would keep what is typed
set -sq message-limit 0
set -sq set-clipboard off
set -sq default-terminal tmux-256color
set -sq command-alias ''
set -gq default-shell /bin/sh
set -gq default-command ''
set -gq update-environment ''
set -gq allow-passthrough off
set -gq allow-rename off
set -gq automatic-rename off
set -gq set-titles off
# on since tmux 3.8: the wheel would leave a session in copy mode
set -gq mouse off
set -gq visual-activity off
set -gq visual-bell off
set -gq display-time 2000
set -gq remain-on-exit on
set -gq remain-on-exit-format ''
set -gq status-left-length 60
set -gq status-right-length 60
set -gq status-left '#{session_name} '
set -gq status-right '#{?@@input,driven by tmuxctl #{s/:.*//:@@input} ,}#{?client_readonly,read-only ,}C-b d leaves'
set -gq window-status-format ''
set -gq window-status-current-format ''
set -sq @@config 1
"""

FILL = "set -w window-size latest"
NOTE_SIZES = (
    f'set-hook -w window-resized {{ run-shell -b \'sh "$(printf "#{{@@folder}}/{layout.SIZE_SCRIPT}")"'
    " #{window_width} #{window_height} >/dev/null 2>&1; true' }"
)
ATTACHED = (
    '%if "#{e|>=|f:#{s/[^0-9.].*//:version},3.3}"\n'
    f'set-hook -g client-attached {{ if -F "#{{&&:#{{@@id}},#{{!=:#{{@@keep_size}},1}}}}" {{ {NOTE_SIZES} ; {FILL} }} }}\n'
    "%else\n"
    f'set-hook -g client-attached {{ if -F "#{{&&:#{{@@id}},#{{!=:#{{@@keep_size}},1}}}}" {{ {FILL} }} }}\n'
    "%endif\n"
)
"""A person's terminal is filled while they are there; from then on the session's timeline tells its sizes. tmux 3.2 knows no
hook for that."""

LEFT = "#{&&:#{@@id},#{&&:#{==:#{session_attached_list},},#{==:#{window-size},latest}}}"
DETACHED = (
    f'set-hook -g client-detached {{ run-shell -C "#{{S:#{{?{LEFT},'
    "resize-window -t =#{session_name}: -x #{@@cols} -y #{@@rows} ; "
    # no hook is run for what a hook does
    f'run-shell -b \'sh \\"$(printf \\"#{{@@folder}}/{layout.SIZE_SCRIPT}\\")\\" #{{@@cols}} #{{@@rows}} >/dev/null 2>&1; true\''
    ' ;,}}" }\n'
)
"""The size asked for comes back when the last one leaves. The hook does not know which session was left and
`session_attached` may still count the leaver (measured, 3.3a), so every session is looked at."""

CONFIG = options.fill_option_names(OPTIONS + ATTACHED + DETACHED + journal.HOOK + "\n").encode()
