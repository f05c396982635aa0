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
here=$(cd "$(dirname "$0")" && pwd)
image=IMAGE
tag=TAG

if [ -e "$folder" ]; then
  echo "$folder exists: name a folder that is to be made" >&2
  exit 1
fi
(cd "$here" && sha256sum --check --quiet --strict SHA256SUMS)
command -v skopeo >/dev/null || { echo "skopeo is missing: apt-get install -y skopeo" >&2; exit 1; }

case $name in
  # A registry on this machine usually has no certificate.
  localhost:* | localhost/* | 127.0.0.1:*) verify=false ;;
  *) verify=${TLS_VERIFY:-true} ;;
esac
skopeo copy --quiet --all --preserve-digests --dest-tls-verify=$verify "oci:$here/images:$tag" "docker://$name:$tag"

# Next to the folder until all files have the new name of the image.
part=$(mktemp -d "$folder.XXXXXX")
trap 'rm -rf -- "$part"' EXIT
cp -R -- "$here/release" "$part/release"
# What would be another: the sums of the files before the change, and charts with the old name, whose folders have the new one.
rm -f -- "$part"/release/SHA256SUMS* "$part"/release/charts/*.tgz
find "$part/release" -type f -name '*.yaml' -exec sh -e -c '
  for file; do sed "$0" "$file" > "$file.new"; mv -- "$file.new" "$file"; done' "s|$image|$name|g" {} +
mv -- "$part/release" "$folder"
echo "$name@DIGEST"
