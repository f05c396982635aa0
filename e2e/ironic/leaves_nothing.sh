#!/usr/bin/env bash
# Starts the real Ironic from a clean checkout, stops it, and fails when it leaves anything.
#
# It runs in separate process, network and mount namespaces: a writable layer over the machine's disk receives all writes,
# except those to the cache. Afterwards there must be no process, no listening port, no file in that layer or in the
# checkout, and only logs of the instance. Requires root.
#
#   FRESH=1   with an empty cache: Ironic is downloaded again
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
export CACHE=${CACHE:-$HOME/.cache/metal3-rs} INSTANCE=leaves-nothing
# From the outer make, whose options must not be inherited.
unset MAKEFLAGS MAKELEVEL EXTRA_CONF PORT IP NEW

say() { printf '%s\n' "$*"; }
die() { printf 'leaves_nothing: %s\n' "$*" >&2; exit 1; }

# Mounts the machine with a layer over it in FOLDER.
world() {
  local folder=$1 shared
  mount -t proc proc /proc
  mount -t tmpfs tmpfs "$folder"
  mkdir "$folder"/{upper,work,world,checkout}
  git clone --quiet "$root" "$folder/checkout"
  mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/world"
  # The layer covers one disk: create mount points of other disks. Directories are not counted afterwards.
  mkdir -p "$folder/world$root"
  for shared in /proc /dev /sys "$CACHE"; do
    mkdir -p "$folder/world$shared"
    mount --rbind "$shared" "$folder/world$shared"
  done
  mount --bind "$folder/checkout" "$folder/world$root"
}

# Process 1 of its namespace, so that any other remaining process is a leftover.
inside() {
  local folder=$1 process found left=()
  world "$folder"
  # The machine's network is required once, to install Ironic.
  chroot "$folder/world" "$here/ironic.sh" python
  # Packages would be counted as leftovers.
  [ ! -e "$folder/upper/var/lib/dpkg/status" ] || die "packages are missing on this machine: run make ironic once, then this"
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
  # Separate commands: the failure of a command substitution in an argument would look like an empty result.
  found=$(find "$folder/upper" -mindepth 1 ! -type d)
  nothing "outside the cache" "$found"
  found=$(git -C "$folder/checkout" status --porcelain --ignored)
  nothing "in the checkout" "$found"
  found=$(find "$CACHE/ironic/run/$INSTANCE" -mindepth 1 -maxdepth 1 ! -name log ! -name lock)
  nothing "of the instance, except logs" "$found"
}

nothing() {
  [ -z "$2" ] || die "left $1: $2"
  say "no file is left $1"
}

if [ "${1:-}" = inside ]; then
  inside "$2"
  exit
fi
[ "$(id -u)" -eq 0 ] || die "namespaces and layers require root"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[ -z "${FRESH:-}" ] || CACHE=$work/cache
mkdir -p "$CACHE" "$work/world"
# The processes of another run are in another namespace, so its Ironic would look dead and be cleaned up.
exec 6<"$CACHE"
flock -n 6 || die "another run uses $CACHE"
unshare --mount --pid --fork --kill-child "$here/leaves_nothing.sh" inside "$work/world"
