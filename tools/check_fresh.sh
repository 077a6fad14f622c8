#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/check_fresh.sh [--keep DIR] [COMMAND...]: runs the README's commands on a fresh Debian 12.
#
# The script makes a minimal root with debootstrap, clones HEAD into the root, and runs each COMMAND there in a chroot
# (default: ./demo, then ./check). Nothing else is installed: each COMMAND must install what it lacks. --keep stores the
# minimal root in DIR and uses the stored root next time. Needs root, debootstrap and a Debian mirror; exits with 77
# without them. SINTER_MIRROR names the mirror (default: the first one that this machine's apt uses).
set -u
cd "$(dirname "$0")/.." || exit 1

keep=
if [ "${1:-}" = --keep ]; then
    keep=${2:?--keep needs a folder}
    shift 2
fi
commands=("$@")
[ $# -gt 0 ] || commands=(./demo ./check)

skip() {
    echo "$1"
    exit 77
}
[ "$(id -u)" -eq 0 ] || skip "not root: chroot and mount need it"
[ -x /usr/sbin/debootstrap ] || skip "no debootstrap: apt-get install debootstrap"
mirror=${SINTER_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
    sed -nE 's/^(URIs:|deb( \[[^]]*\])?) *([a-z]+:[^ ]+).*/\3/p' | head -1)}
[ -n "$mirror" ] || skip "no Debian mirror: set SINTER_MIRROR"
unshare -m true 2>/dev/null || skip "no mount namespaces"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
base=${keep:-$scratch/base}
if [ ! -e "$base/.complete" ]; then
    echo "making a minimal Debian 12 in $base"
    if ! /usr/sbin/debootstrap --variant=minbase bookworm "$base" "$mirror" >"$scratch/debootstrap.log" 2>&1; then
        tail -3 "$scratch/debootstrap.log"
        skip "debootstrap failed"
    fi
    touch "$base/.complete"
fi
root=$scratch/root
cp -a "$base" "$root"
cp -L /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null
git clone -q --no-hardlinks . "$root/sinter" || exit 1

# The mounts live in a namespace of their own and vanish with it. The environment is the one of a new login.
in_root() { # COMMAND
    unshare -m --propagation private bash -c '
        mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && mount -t sysfs sys "$1/sys" &&
        exec env -i HOME=/root TERM="${TERM:-dumb}" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            chroot "$1" bash -c "cd /sinter && $2"' _ "$root" "$1"
}

status=0
for command in "${commands[@]}"; do
    echo "fresh: $command"
    start=$SECONDS
    if in_root "$command"; then
        echo "fresh: $command passed in $((SECONDS - start)) s"
    else
        echo "fresh: $command failed after $((SECONDS - start)) s"
        status=1
    fi
done
exit $status
