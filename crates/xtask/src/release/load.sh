#!/bin/sh
# Copies the images of this archive to a registry, and writes the files to install with their name there.
# Needs skopeo, and the login of `skopeo login` where the registry wants one. Nothing else is reached.
# TLS_VERIFY=false: the registry has no certificate, or one that this machine does not know. The digests of the images count then, too.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: $0 REGISTRY/NAME FOLDER, as $0 registry.example/metal3/capm3 out" >&2
  exit 2
fi
name=$1
case $2 in
  /*) folder=$2 ;;
  *) folder=$PWD/$2 ;;
esac
folder=${folder%/}
image=IMAGE
tag=TAG

refuse() {
  echo "$*" >&2
  exit 1
}
# A name without a host is one of Docker Hub for skopeo, and the program writes no tag of the user.
case ${name%%/*} in
  *[.:]* | localhost) ;;
  *) refuse "$name names no registry: give HOST/NAME, as registry.example/metal3/capm3" ;;
esac
case $name in
  *[!][a-zA-Z0-9./:_-]*) refuse "$name is no name of an image" ;;
  */*) ;;
  *) refuse "$name names no image: give HOST/NAME, as registry.example/metal3/capm3" ;;
esac
case ${name##*/} in
  *:*) refuse "$name has a tag: leave it out" ;;
esac
if [ -e "$folder" ]; then
  refuse "$folder exists: name a folder that is to be made"
fi

# The files of these folders are those that SHA256SUMS names, with these bytes, and no others.
check() {
  sha256sum --check --quiet --strict SHA256SUMS
  # Two lines of one name would look like two files.
  [ -z "$(find "$@" -name '*
*')" ] || refuse "a file has a line end in its name"
  found=$(find "$@" ! -type d ! -path ./SHA256SUMS ! -path ./SHA256SUMS.sig)
  named=$(sed 's/^[^ ]*  //' SHA256SUMS)
  other=$(printf '%s\n' "$found" "$named" | LC_ALL=C sort | uniq -u)
  [ -z "$other" ] || refuse "SHA256SUMS does not name: $other"
}
# Relative paths: skopeo takes what stands after a colon for a tag.
CDPATH= cd -- "$(dirname -- "$0")"
check ./load.sh ./release ./images
[ ! -e release/SHA256SUMS ] || (cd release && check .)
command -v skopeo >/dev/null || refuse "skopeo is missing: apt-get install -y skopeo"

case $name in
  # A registry on this machine usually has no certificate.
  localhost:* | localhost/* | 127.0.0.1:* | "[::1]:"*) verify=${TLS_VERIFY:-false} ;;
  *) verify=${TLS_VERIFY:-true} ;;
esac
skopeo copy --quiet --all --preserve-digests --dest-tls-verify=$verify "oci:images:$tag" "docker://$name:$tag"

# Next to the folder until all files have the new name of the image.
part=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf -- "$part"' EXIT
cp -R -- release "$part/release"
# What would be another: the sums of the files before the change, and charts with the old name, whose folders have the new one.
rm -f -- "$part"/release/SHA256SUMS* "$part"/release/charts/*.tgz
find "$part/release" -type f -name '*.yaml' -exec sh -e -c '
  for file; do sed "$0" "$file" > "$file.new"; mv -- "$file.new" "$file"; done' "s|$image@|$name@|g" {} +
mv -- "$part/release" "$folder"
echo "$name@DIGEST"
