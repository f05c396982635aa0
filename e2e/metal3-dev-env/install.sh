#!/usr/bin/env bash
# Replaces upstream's managers in a metal3-dev-env by this provider. Run in the directory of the metal3-dev-env,
# after its `make`. See README.md in this directory; not executed by the tests of this repository.
set -euo pipefail

ours=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
overlay=$ours/e2e/metal3-dev-env
# A unique tag for each build: a node keeps an image by its name.
image_name=capm3:dev-$(date +%s)

# shellcheck disable=SC1091
for part in lib/logging.sh lib/common.sh lib/releases.sh lib/network.sh lib/ironic_tls_setup.sh lib/ironic_basic_auth.sh; do
  source "$part"
done
[ "${IRONIC_NAMESPACE}" = baremetal-operator-system ] || { echo "IRONIC_NAMESPACE must be baremetal-operator-system" >&2; exit 1; }

# The image, and manifests with its name.
image=${REGISTRY}/localimages/$image_name
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
(cd "$ours" && RUSTFLAGS='-C target-feature=+crt-static -C strip=symbols' cargo build --locked --no-default-features --features console --profile dist \
  --target x86_64-unknown-linux-gnu --target-dir "$build/target" -p metal3-manager)
cp "$build/target/x86_64-unknown-linux-gnu/dist/capm3" "$ours/Containerfile" "$build"
sudo "${CONTAINER_RUNTIME}" build --tag "$image" --file "$build/Containerfile" "$build"
if [ "${CONTAINER_RUNTIME}" = podman ]; then insecure=--tls-verify=false; else insecure=; fi
# shellcheck disable=SC2086
sudo "${CONTAINER_RUNTIME}" push $insecure "$image"
make -C "$ours" release IMAGE="$image" RELEASE="$build/release"

# Clusters, machines and addresses: through clusterctl, from its local overrides.
overrides=${XDG_CONFIG_HOME:-${HOME}/.config}/cluster-api/overrides
place() {
  rm -rf "$overrides/$1"
  mkdir -p "$overrides/$1"
  (cd "$build/release" && cp "${@:2}" "$overrides/$1")
}
place "infrastructure-metal3/${CAPM3RELEASE}" infrastructure-components.yaml cluster-template.yaml metadata.yaml
place "ipam-metal3/${IPAMRELEASE}" ipam-components.yaml metadata.yaml
# It is no error when an earlier run has deleted one.
for one in infrastructure ipam; do
  if kubectl get providers.clusterctl.cluster.x-k8s.io --all-namespaces --output=name | grep -q "/$one-metal3\$"; then
    clusterctl delete "--$one" metal3
  fi
done
clusterctl init --infrastructure "metal3:${CAPM3RELEASE}" --ipam "metal3:${IPAMRELEASE}" --wait-providers

# Hosts: a Deployment cannot change what it selects, and Secrets cannot change their type.
kubectl delete deployment "${NAMEPREFIX}-controller-manager" --namespace "${IRONIC_NAMESPACE}" --ignore-not-found
kubectl delete validatingwebhookconfiguration "${NAMEPREFIX}-validating-webhook-configuration" --ignore-not-found
kubectl delete secret ironic-credentials ironic-cacert --namespace "${IRONIC_NAMESPACE}" --ignore-not-found
kubectl create secret generic ironic-credentials --namespace "${IRONIC_NAMESPACE}" \
  --from-file=username="${IRONIC_USERNAME_FILE}" --from-file=password="${IRONIC_PASSWORD_FILE}"
if [ -r "${IRONIC_CACERT_FILE:-}" ]; then
  kubectl create secret generic ironic-cacert --namespace "${IRONIC_NAMESPACE}" --from-file=tls.crt="${IRONIC_CACERT_FILE}"
fi
sed "s#IRONIC_ENDPOINT: .*#IRONIC_ENDPOINT: ${IRONIC_URL}#" "$build/release/hosts-components.yaml" |
  kubectl apply --server-side --force-conflicts --filename -
kubectl rollout status deployment/baremetal-operator-controller-manager --namespace "${IRONIC_NAMESPACE}" --timeout=5m

# The hosts that SKIP_APPLY_BMH kept from being applied.
kubectl apply --namespace "${NAMESPACE}" --filename "${WORKING_DIR}/bmhosts_crs.yaml"
# A new host uses only a Secret that its owner has labelled, and upstream's have no label.
kubectl get baremetalhosts --namespace "${NAMESPACE}" \
  --output=jsonpath='{range .items[*]}{.spec.bmc.credentialsName}{"\n"}{end}' | sort --unique |
  xargs --no-run-if-empty -I'{}' kubectl label secret '{}' --namespace "${NAMESPACE}" --overwrite environment.metal3.io=baremetal
echo "hosts are enrolled by ${overlay##*/}; watch them: kubectl get baremetalhosts --namespace ${NAMESPACE} --watch"
