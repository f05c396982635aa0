#!/bin/bash
# A server for a tenant, with kubectl alone:
#   server.sh create NAME IMAGE-URL CHECKSUM [USER-DATA-FILE]    claim a server, and wait until it runs the image
#   server.sh status NAME                                       what it waits for
#   server.sh delete NAME                                       give it back, and wait until it is clean
# NAMESPACE: of the tenant; default: that of the kubeconfig. HOSTS: namespace of the hosts. LIMIT: seconds to wait at most.
set -euo pipefail
HOSTS=${HOSTS:-hosts}
LIMIT=${LIMIT:-3600}

k() { kubectl ${NAMESPACE:+-n "$NAMESPACE"} "$@"; }

usage() {
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
}

# words NAME CONDITION: its status, reason and message on one line; nothing without the condition.
words() {
  k get hostclaim "$1" --ignore-not-found \
    -o "jsonpath={range .status.conditions[?(@.type==\"$2\")]}{.status} {.reason}: {.message}{end}"
}

# until_true NAME: prints each new reason.
until_true() {
  local said='' now
  while true; do
    now=$(words "$1" Ready)
    if [ "$now" != "$said" ]; then
      echo "$1: ${now:-no controller of HostClaims has looked at it yet}"
      said=$now
    fi
    case $now in True*) return ;; esac
    if [ "$SECONDS" -ge "$LIMIT" ]; then
      echo "$1 is not ready after $LIMIT seconds; it stays as it is: wait with: $0 status $1" >&2
      exit 1
    fi
    sleep 2
  done
}

# until_gone NAME: prints each new reason.
until_gone() {
  local said='' now
  while [ -n "$(k get hostclaim "$1" --ignore-not-found -o name)" ]; do
    now=$(words "$1" Associated)
    if [ "$now" != "$said" ]; then
      echo "$1: ${now:-is deleted}"
      said=$now
    fi
    if [ "$SECONDS" -ge "$LIMIT" ]; then
      echo "$1 is not given back after $LIMIT seconds: its last words say who has to act" >&2
      exit 1
    fi
    sleep 2
  done
}

create() {
  local name=$1 url=$2 checksum=$3 file=${4:-}
  if [ -n "$file" ]; then
    k create secret generic "$name-user-data" --from-file=userData="$file" --dry-run=client -o yaml | k apply -f -
  fi
  k apply -f - <<YAML
apiVersion: metal3.io/v1alpha1
kind: HostClaim
metadata:
  name: "$name"
spec:
  poweredOn: true
  image:
    url: "$url"
    checksum: "$checksum"
    checksumType: auto
  hostSelector:
    inNamespace: "$HOSTS"
${file:+  userData:
    name: "$name-user-data"}
YAML
  until_true "$name"
}

delete() {
  k delete hostclaim "$1" --wait=false
  until_gone "$1"
  k delete secret "$1-user-data" --ignore-not-found
  echo "$1: given back"
}

case "${1:-} $#" in
  'create 4' | 'create 5') create "${@:2}" ;;
  'status 2')
    k get hostclaim "$2" -o 'jsonpath={range .status.conditions[*]}{.type}: {.status} {.reason}: {.message}{"\n"}{end}'
    ;;
  'delete 2') delete "$2" ;;
  *) usage ;;
esac
