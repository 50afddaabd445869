#!/bin/sh
# Gets a machine ready for the Makefile. Says what it does; changes the system only as root, and only by apt-get.
#
#   setup.sh system NEEDED... [-- WISHED...]   programs (`ps=procps`: program=Debian package) that must or should be there
#   setup.sh ensurepip PYTHON                  a Python of 3.11 or later that can make virtual environments
#   setup.sh venv PYTHON FOLDER                a virtual environment there, kept if it works
#   setup.sh npm FOLDER PACKAGE@VERSION...     packages for node there, kept if they are these; without npm it says so
set -eu

say() { printf '%s\n' "-- $*"; }
die() { printf '%s\n' "setup: $*" >&2; exit 1; }

can_install() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

apt_install() {
    say "apt-get install $*"
    export DEBIAN_FRONTEND=noninteractive
    log=$(mktemp)
    # a server that comes with a package must not start: policy-rc.d is how Debian is told so
    policy=/usr/sbin/policy-rc.d ours=''
    if [ ! -e $policy ]; then printf '#!/bin/sh\nexit 101\n' >$policy && chmod 755 $policy && ours=$policy; fi
    if { apt-get update -q && apt-get install -q -y --no-install-recommends "$@"; } </dev/null >"$log" 2>&1; then
        rm -f "$log"
    else
        tail -n 5 "$log" >&2
        rm -f "$log"
        say "that failed"
    fi
    [ -z "$ours" ] || rm -f "$ours"
}

# the Debian packages of those of the given programs that are not here
packages_of_missing() {
    for word in "$@"; do
        command -v "${word%%=*}" >/dev/null 2>&1 || printf ' %s' "${word#*=}"
    done
}

system() {
    needed='' wished='' list=needed
    for word in "$@"; do
        if [ "$word" = -- ]; then list=wished; continue; fi
        eval "$list=\"\$$list $word\""
    done
    # shellcheck disable=SC2086 # lists of plain words
    {
        missing=$(packages_of_missing $needed $wished)
        [ -n "$missing" ] || return 0
        if can_install; then apt_install $missing; fi
        missing=$(packages_of_missing $wished)
        [ -z "$missing" ] || say "missing:$missing; the tests that need them are skipped. To have them: $(advice $missing)"
        missing=$(packages_of_missing $needed)
        [ -z "$missing" ] || die "missing:$missing. Install with: $(advice $missing)"
    }
}

advice() {
    if command -v apt-get >/dev/null 2>&1; then echo "sudo apt-get install -y $*"
    elif command -v brew >/dev/null 2>&1; then echo "brew install $*"
    else echo "your system's package manager"; fi
}

ensurepip() {
    command -v "$1" >/dev/null 2>&1 || die "no $1 here. Install with: $(advice python3 python3-venv)"
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        die "$("$1" --version) is too old: Python 3.11 or later is needed. Name another with: make PYTHON=/path/to/python3"
    "$1" -c 'import ensurepip, venv' 2>/dev/null && return 0
    # Debian keeps ensurepip in a package of its own, which serves only Debian's Python
    case $("$1" -c 'import sys; print(sys.base_prefix)') in
        /usr) ;;
        *) die "$1 has no ensurepip, so it cannot make a virtual environment. Name another with: make PYTHON=/usr/bin/python3" ;;
    esac
    if can_install; then apt_install python3-venv; fi
    "$1" -c 'import ensurepip, venv' 2>/dev/null || die "$1 has no ensurepip. Install with: $(advice python3-venv)"
}

venv() {
    "$2/bin/python" -m pip --version >/dev/null 2>&1 && return 0
    ensurepip "$1"
    say "making the virtual environment $2 with $("$1" --version)"
    "$1" -m venv --clear "$2"
}

npm_packages() {
    folder=$1
    shift
    [ "$(cat "$folder/.made" 2>/dev/null)" != "$*" ] || return 0
    command -v npm >/dev/null 2>&1 || { say "no npm: the tests that need $* are skipped"; return 0; }
    say "npm install $* into $folder"
    rm -rf "$folder" && mkdir -p "$folder"
    npm install --silent --no-audit --no-fund --no-package-lock --prefix "$folder" "$@" || die "npm cannot install $*"
    printf '%s\n' "$*" >"$folder/.made"
}

case ${1-} in
    npm) shift && npm_packages "$@" ;;
    system | ensurepip | venv) "$@" ;;
    *) die "usage: setup.sh system|ensurepip|venv|npm ..." ;;
esac
