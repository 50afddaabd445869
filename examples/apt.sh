#!/bin/sh
# apt: look at what would be installed, decline, and see that nothing has changed.
# It has packages and a system of its own here, below this folder: neither this machine's packages nor a network is needed.
# needs: apt-get dpkg dpkg-deb sha256sum
set -eu
trap 'tmuxctl kill install >/dev/null 2>&1 || :' EXIT

# package NAME [FIELD]: a package with nothing in it, put into the repository and its list
package() {
    mkdir -p "$1/DEBIAN" repository
    printf 'Package: %s\nVersion: 1.0\nArchitecture: all\nMaintainer: Ada <ada@example.org>\n' "$1" >"$1/DEBIAN/control"
    printf '%s\n' ${2+"$2"} "Description: $1, for the shop" >>"$1/DEBIAN/control"
    dpkg-deb --build --root-owner-group "$1" "repository/$1.deb" >/dev/null
    {
        dpkg-deb --field "repository/$1.deb"
        printf 'Filename: ./%s.deb\nSize: %s\n' "$1" "$(wc -c <"repository/$1.deb")"
        printf 'SHA256: %s\n\n' "$(sha256sum "repository/$1.deb" | cut -d ' ' -f 1)"
    } >>repository/Packages
}
package flour
package bakery 'Depends: flour'

mkdir -p root/etc/apt/apt.conf.d root/etc/apt/preferences.d root/var/log/apt
mkdir -p root/var/lib/dpkg/info root/var/lib/dpkg/updates root/var/lib/apt/lists/partial root/var/cache/apt/archives/partial
: >root/var/lib/dpkg/status
echo "deb [trusted=yes] file:$PWD/repository ./" >root/etc/apt/sources.list
# not only apt: the dpkg it calls must know of this system, too, or a yes would be one for this machine
cat >apt.conf <<CONF
Dir "$PWD/root";
Dir::State::status "$PWD/root/var/lib/dpkg/status";
APT::Sandbox::User "root";
DPkg::Options { "--root=$PWD/root"; "--force-not-root"; "--force-script-chrootless"; };
CONF
export APT_CONFIG="$PWD/apt.conf"
apt-get -qq update

tmuxctl new install -- apt-get install bakery
tmuxctl wait install --asking
tmuxctl screen install | grep '2 newly installed'
tmuxctl decide install
tmuxctl decide install no
test "$(tmuxctl wait install --exit)" = 'exit: status 1'
tmuxctl log install | grep '^Abort\.$'

test ! -s root/var/lib/dpkg/status
test -z "$(dpkg --root="$PWD/root" --get-selections)"
echo 'Nothing was installed.'
