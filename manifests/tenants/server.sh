#!/bin/bash
# A server for a tenant, with kubectl alone:
#   server.sh create NAME IMAGE-URL CHECKSUM [USER-DATA-FILE]    claim a server, and wait until it runs the image
#   server.sh status NAME                                       what it waits for
#   server.sh delete NAME                                       give it back, and wait until it is clean
# NAMESPACE: of the tenant; default: that of the kubeconfig. HOSTS: namespace of the hosts. LIMIT: seconds to wait at most.
set -euo pipefail
HOSTS=${HOSTS:-hosts}
LIMIT=${LIMIT:-3600}
# Has the name of the claim, on a Secret that this script made for it: another Secret is not removed with the claim.
LABEL=tenants.metal3.io/user-data-of

k() { kubectl ${NAMESPACE:+-n "$NAMESPACE"} "$@"; }

fail() {
  echo "$*" >&2
  exit 1
}

usage() {
  sed -n '2,5s/^# //p' "$0" >&2
  exit 2
}

# facts NAME CONDITION: the UID of the claim, and below it status, reason and message of the condition. Nothing without the claim; the
# status of the function is not 0 if nothing is known.
facts() {
  k get hostclaim "$1" --ignore-not-found \
    -o "jsonpath={.metadata.uid}{'\n'}{range .status.conditions[?(@.type==\"$2\")]}{.status} {.reason}: {.message}{end}"
}

# follow NAME UID CONDITION WITHOUT: prints each new reason, until the condition is true, or the claim is gone or another one. WITHOUT:
# words for a claim that has no such condition.
follow() {
  local said='' text uid now
  while true; do
    if text=$(facts "$1" "$3"); then
      uid=${text%%$'\n'*}
      [ "$uid" = "$2" ] || return 0
      now=''
      case $text in *$'\n'*) now=${text#*$'\n'} ;; esac
      if [ "${now:-$4}" != "$said" ]; then
        said=${now:-$4}
        echo "$1: $said"
      fi
      case $now in True*) [ "$3" != Ready ] || return 0 ;; esac
    fi
    [ "$SECONDS" -lt "$LIMIT" ] || fail "$1: stopped after $LIMIT seconds, and left as it is; see: $0 status $1"
    sleep 2
  done
}

uid_of() { k get hostclaim "$1" --ignore-not-found -o 'jsonpath={.metadata.uid}'; }

create() {
  local name=$1 url=$2 checksum=$3 file=${4:-} uid
  case $url$checksum in *[[:cntrl:]\"\\]*) fail "the URL and the checksum have no quotes, backslashes and line ends" ;; esac
  if [ -n "$file" ]; then
    k create secret generic "$name-user-data" --from-file=userData="$file" --dry-run=client -o yaml \
      | kubectl label --local -f - -o yaml "$LABEL=$name" | k create -f -
  fi
  if ! k create -f - <<YAML
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
  then
    [ -z "$file" ] || k delete secret "$name-user-data"
    fail "$name: not created; if there is a claim of that name, see: $0 status $name"
  fi
  uid=$(uid_of "$name")
  follow "$name" "$uid" Ready 'no controller of HostClaims has looked at it yet'
  [ "$(uid_of "$name")" = "$uid" ] || fail "$name: was deleted meanwhile"
}

delete() {
  local uid
  uid=$(uid_of "$1")
  if [ -n "$uid" ]; then
    k delete hostclaim "$1" --wait=false
    follow "$1" "$uid" Associated 'is deleted'
  fi
  k delete secret -l "$LABEL=$1"
  if [ -n "$uid" ]; then echo "$1: given back"; else echo "$1: there is no such claim"; fi
}

[[ $LIMIT =~ ^[0-9]+$ ]] || fail "LIMIT=$LIMIT is no number of seconds"
[[ ${2:-x} =~ ^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$ ]] || fail "$2 is no name of a claim"
[[ $HOSTS =~ ^[a-z0-9]([-a-z0-9]*[a-z0-9])?$ ]] || fail "HOSTS=$HOSTS is no name of a namespace"
case "${1:-} $#" in
  'create 4' | 'create 5') create "${@:2}" ;;
  'status 2')
    k get hostclaim "$2" -o 'jsonpath={range .status.conditions[*]}{.type}: {.status} {.reason}: {.message}{"\n"}{end}'
    ;;
  'delete 2') delete "$2" ;;
  *) usage ;;
esac
