#!/bin/sh
# A shell in a container: docker's, where it answers and has the image (IMAGE, or busybox), else one that bwrap makes.
# needs: bwrap bash
# root
set -eu
trap 'tmuxctl kill box >/dev/null 2>&1 || :' EXIT

image=${IMAGE:-busybox}
if docker image inspect "$image" >/dev/null 2>&1; then
    set -- docker run -it --rm --hostname box --network none "$image" sh
else
    set -- bwrap --unshare-all --hostname box --die-with-parent \
        --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64 \
        --proc /proc --dev /dev --tmpfs /tmp --clearenv --setenv PATH /usr/bin:/bin --setenv TERM "${TERM:-xterm}" \
        bash --norc
fi
tmuxctl new box -- "$@"
tmuxctl wait box

test "$(tmuxctl ask box hostname)" = box
test "$(hostname)" != box

# its processes are its own, and few
test "$(tmuxctl ask box 'ls -d /proc/[0-9]* | wc -l')" -lt 9

# what is written in there is not here
test "$(tmuxctl ask box 'echo inside >/tmp/tmuxctl-note; cat /tmp/tmuxctl-note')" = inside
test ! -e /tmp/tmuxctl-note

# a variable lasts, for it is one shell
tmuxctl ask box 'count=20'
test "$(tmuxctl ask box 'echo $((count + 1))')" = 21

tmuxctl send box 'exit 3'
test "$(tmuxctl wait box --exit)" = 'exit: status 3'
echo 'In the box and out again.'
