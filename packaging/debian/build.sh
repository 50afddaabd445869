#!/bin/sh
# build.sh PYTHON FOLDER: makes FOLDER/tmuxctl_VERSION_all.deb, with the Python of `make dev`.
#
# It holds the one-file form, which needs Python and tmux alone: Debian's own click and libtmux are older than what tmuxctl needs.
set -eu

python=$1
folder=$2
root=$(cd "$(dirname "$0")/../.." && pwd)
package=$(mktemp -d)
trap 'rm -rf "$package"' EXIT
chmod 755 "$package"
umask 022
cd "$root"

"$python" -m tools.install install --prefix "$package/usr" >/dev/null
version=$("$package/usr/bin/tmuxctl" --version | awk '{ print $2 }')
share=$package/usr/share
mv "$share/zsh/site-functions" "$share/zsh/vendor-completions"
gzip -9n "$share"/man/man1/*.1

doc=$share/doc/tmuxctl
mkdir -p "$doc" "$package/DEBIAN"
{
    printf 'tmuxctl and what its one file carries of others, each with its own terms.\n'
    printf 'The LGPL of pyte is also in /usr/share/common-licenses/LGPL-3.\n'
    "$python" - "$package/usr/bin/tmuxctl" <<'PYTHON'
import sys
import zipfile

with zipfile.ZipFile(sys.argv[1]) as archive:
    for name in sorted(archive.namelist()):
        if name.startswith("licenses/"):
            print(f"\n== {name.removeprefix('licenses/')}\n\n{archive.read(name).decode()}")
PYTHON
} >"$doc/copyright"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"

maintainer=$(sed -n 's/^Maintainer: //p' packaging/debian/control)
date=$(date -R -u -d "@${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 315532800)}")
printf 'tmuxctl (%s-1) unstable; urgency=medium\n\n  * What changed stands in changelog.gz.\n\n -- %s  %s\n' \
    "$version" "$maintainer" "$date" | gzip -9n >"$doc/changelog.Debian.gz"

sed "s/@VERSION@/$version-1/; s/@SIZE@/$(du -sk "$package/usr" | cut -f1)/" packaging/debian/control >"$package/DEBIAN/control"
mkdir -p "$folder"
dpkg-deb --root-owner-group --build "$package" "$folder/tmuxctl_$version-1_all.deb"
