#!/usr/bin/env bash
# Compares config.sh and install.sh with pinned.txt: each variable in capitals and each path under lib/ that they use is
# pinned, and each pinned one is used. `check.sh CLONE` checks each row in a clone, at the pinned commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

rows() { grep -v '^#\|^commit ' pinned.txt; }
names() { rows | sed 's/ | .*//' | sort -u; }
used() {
  grep -ohE '\$\{[A-Z][A-Z0-9_]+|^export [A-Z][A-Z0-9_]+|lib/[a-z_]+\.sh' config.sh install.sh |
    sed -E 's/^\$\{|^export //' | grep -v '^BASH_SOURCE$' | sort -u
}

wrong=0
while read -r name; do
  echo "used and not pinned: $name" >&2
  wrong=1
done < <(comm -13 <(names) <(used))
while read -r name; do
  grep -qF -- "$name" config.sh install.sh || { echo "pinned and not used: $name" >&2; wrong=1; }
done < <(names)

if [ $# -gt 0 ]; then
  clone=$(cd "$OLDPWD" && cd "$1" && pwd)
  commit=$(sed -n 's/^commit //p' pinned.txt)
  while IFS= read -r row; do
    rest=${row#* | }
    file=${rest%% | *} text=${rest#* | }
    git -C "$clone" show "$commit:$file" | grep -F -- "$text" >/dev/null || { echo "not in $file: $text" >&2; wrong=1; }
  done < <(rows)
fi
[ $wrong -eq 0 ] && echo "$(rows | wc -l) names and paths are as pinned"
exit $wrong
