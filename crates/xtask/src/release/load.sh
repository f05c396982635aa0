#!/bin/sh
# Copies the images of this archive to a registry, and writes the files to install with their name there.
# Needs skopeo, and the login of `skopeo login` where the registry wants one. Nothing else is reached.
set -eu

if [ $# -ne 2 ]; then
  echo "usage: $0 REGISTRY/NAME FOLDER, as $0 registry.example/metal3/capm3 out" >&2
  exit 2
fi
name=$1 folder=$2
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
  *) verify=true ;;
esac
skopeo copy --quiet --all --preserve-digests --dest-tls-verify=$verify "oci:$here/images:$tag" "docker://$name:$tag"

cp -R "$here/release" "$folder"
# Archives of charts are left as they are: the folders next to them have the new name.
find "$folder" -type f -name '*.yaml' | while read -r file; do
  sed "s|$image|$name|g" "$file" > "$file.new" && mv "$file.new" "$file"
done
# They name the files before the change.
rm -f "$folder"/SHA256SUMS*
echo "$name@DIGEST"
