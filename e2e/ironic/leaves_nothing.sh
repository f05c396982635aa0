#!/usr/bin/env bash
# Starts the real Ironic from a clean checkout, ends it, and fails on whatever is left of it.
#
# It happens in namespaces of processes, network and mounts, where nobody else does anything: the machine's disk lies under
# a layer that takes what is written to it, and the cache alone is the real one. Afterwards there must be no process, no
# port that listens, no file in that layer, none in the checkout, and of the instance its logs alone. As root.
#
#   FRESH=1   with a cache that is empty, as on the first day: Ironic is fetched anew
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export CACHE=${CACHE:-$HOME/.cache/metal3-rs} INSTANCE=leaves-nothing
# Of the outer make, which would hand its own orders down.
unset MAKEFLAGS MAKELEVEL EXTRA_CONF PORT IP NEW

say() { printf '%s\n' "$*"; }
die() { printf 'leaves_nothing: %s\n' "$*" >&2; exit 1; }

# The machine as it is, with a layer over it, in FOLDER.
world() {
  local folder=$1 shared
  mount -t proc proc /proc
  mount -t tmpfs tmpfs "$folder"
  mkdir "$folder"/{upper,work,world,checkout}
  git clone --quiet "$root" "$folder/checkout"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/world"
  # The layer lies over one disk: what is on others has no place there yet. Folders are not counted afterwards.
  mkdir -p "$folder/world$root"
  for shared in /proc /dev /sys "$CACHE"; do
    mkdir -p "$folder/world$shared"
    mount --rbind "$shared" "$folder/world$shared"
  done
  mount --bind "$folder/checkout" "$folder/world$root"
}

# The first process of its namespace, so that every other one that is left is left behind.
inside() {
  local folder=$1 process found left=()
  world "$folder"
  # The network of the machine is needed once, where Ironic is not installed yet.
  chroot "$folder/world" "$here/ironic.sh" python
  # They would be taken for what Ironic left.
  [ ! -e "$folder/upper/var/lib/dpkg/status" ] || die "packages were missing on this machine: run make ironic once, then this"
  # shellcheck disable=SC2016
  unshare --net chroot "$folder/world" bash -euc 'cd "$1"; ip link set lo up
    make --silent ironic; make --silent ironic-status
    found=$(ss -Hltun); printf "listening:\n%s\n" "$found"
    [ -n "$found" ] || { echo "nothing listens while it runs" >&2; exit 1; }
    make --silent ironic-down
    found=$(ss -Hltunp); [ -z "$found" ] || { printf "still listening:\n%s\n" "$found" >&2; exit 1; }' _ "$root"
  for process in /proc/[0-9]*; do
    [ "$process" = "/proc/$$" ] || left+=("${process#/proc/}: $(tr '\0' ' ' 2>/dev/null <"$process/cmdline")")
  done
  [ ${#left[@]} -eq 0 ] || die "processes are left: ${left[*]}"
  say "no process is left, and no port listens"
  # Each look by itself: one that fails as an argument would count as one that found nothing.
  found=$(find "$folder/upper" -mindepth 1 ! -type d)
  nothing "outside the cache" "$found"
  found=$(git -C "$folder/checkout" status --porcelain --ignored)
  nothing "in the checkout" "$found"
  found=$(find "$CACHE/ironic/run/$INSTANCE" -mindepth 1 -maxdepth 1 ! -name log ! -name lock)
  nothing "of the instance, beside its logs" "$found"
}

nothing() {
  [ -z "$2" ] || die "left $1: $2"
  say "no file is left $1"
}

if [ "${1:-}" = inside ]; then
  inside "$2"
  exit
fi
[ "$(id -u)" -eq 0 ] || die "namespaces and layers need root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -z "${FRESH:-}" ] || CACHE=$work/cache
mkdir -p "$CACHE" "$work/world"
# Processes of another run are in a namespace of their own, so its Ironic would seem to be dead and be swept away.
exec 6<"$CACHE"
flock -n 6 || die "another run is under way on $CACHE"
unshare --mount --pid --fork --kill-child "$here/leaves_nothing.sh" inside "$work/world"
