//! Pools and claims in numbers, and their invariants.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, bail, ensure};
use serde_json::{Value, json};

use crate::claims::stack::Stack;

/// Both kinds of claim.
const KINDS: [&str; 2] = ["ipclaims.ipam.metal3.io", "ipaddressclaims.ipam.cluster.x-k8s.io"];

pub(crate) fn pool(name: &str, start: &str, end: &str) -> Value {
    json!({"apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPPool", "metadata": {"name": name},
        "spec": {"namePrefix": name, "prefix": 16, "gateway": "10.64.0.1", "pools": [{"start": start, "end": end}]}})
}

/// An IPClaim for even numbers, an IPAddressClaim for odd ones.
pub(crate) fn claim(pool: &str, number: usize) -> Value {
    let metadata = json!({"name": format!("{pool}-claim-{number}")});
    if number.is_multiple_of(2) {
        json!({"apiVersion": "ipam.metal3.io/v1alpha1", "kind": "IPClaim", "metadata": metadata,
            "spec": {"pool": {"name": pool}}})
    } else {
        json!({"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim", "metadata": metadata,
            "spec": {"poolRef": {"apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": pool}}})
    }
}

pub(crate) fn list(stack: &Stack, namespace: &str, kind: &str) -> anyhow::Result<Vec<Value>> {
    let text = stack.kubectl(&["get", kind, "--namespace", namespace, "--output=json"])?;
    let mut list: Value = serde_json::from_str(&text)?;
    Ok(list["items"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

/// The address of each claim; fails when two objects have one address, or a claim refers to another claim's object.
pub(crate) fn grants(stack: &Stack, namespace: &str) -> anyhow::Result<BTreeMap<String, String>> {
    let mut objects: BTreeMap<(String, String), Value> = BTreeMap::new();
    for kind in ["ipaddresses.ipam.metal3.io", "ipaddresses.ipam.cluster.x-k8s.io"] {
        for object in list(stack, namespace, kind)? {
            objects.insert((kind.to_owned(), name(&object)), object);
        }
    }
    let mut held: BTreeSet<&str> = BTreeSet::new();
    for object in objects.values() {
        let address = object["spec"]["address"]
            .as_str()
            .context("an address object without address")?;
        ensure!(held.insert(address), "{address} is held twice");
    }
    let mut grants = BTreeMap::new();
    for (kind, member, addresses) in [
        (KINDS[0], "/status/address/name", "ipaddresses.ipam.metal3.io"),
        (KINDS[1], "/status/addressRef/name", "ipaddresses.ipam.cluster.x-k8s.io"),
    ] {
        for claim in list(stack, namespace, kind)? {
            let Some(named) = claim
                .pointer(member)
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty())
            else {
                continue;
            };
            let Some(object) = objects.get(&(addresses.to_owned(), named.to_owned())) else {
                bail!("{} names {named}, which does not exist", name(&claim));
            };
            let of = [&object["spec"]["claim"]["name"], &object["spec"]["claimRef"]["name"]];
            ensure!(
                of.iter().any(|of| of.as_str() == Some(&name(&claim))),
                "{named} is named by {} and belongs to {of:?}",
                name(&claim)
            );
            let address = object["spec"]["address"].as_str().unwrap_or_default();
            grants.insert(name(&claim), address.to_owned());
        }
    }
    Ok(grants)
}

pub(crate) fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

pub(crate) fn has_address(claim: &Value) -> bool {
    claim["status"]["address"]["name"]
        .as_str()
        .is_some_and(|name| !name.is_empty())
}

/// The objects in a namespace, except those that Kubernetes puts into each: a CA and an account.
pub(crate) fn left_in_namespace(stack: &Stack, namespace: &str) -> anyhow::Result<Vec<String>> {
    let kinds = "pods,replicasets,deployments,services,leases,secrets,configmaps,serviceaccounts,roles,rolebindings,\
                 networkpolicies,poddisruptionbudgets,certificates.cert-manager.io,issuers.cert-manager.io";
    let mut left = Vec::new();
    for object in list(stack, namespace, kinds)? {
        let (kind, own) = (object["kind"].as_str().unwrap_or_default(), name(&object));
        let of_kubernetes = [("ConfigMap", "kube-root-ca.crt"), ("ServiceAccount", "default")];
        // The record of the other chart, which is still installed.
        let of_helm = object["type"] == "helm.sh/release.v1";
        if !of_kubernetes.contains(&(kind, own.as_str())) && !of_helm {
            left.push(format!("{kind}/{own}"));
        }
    }
    Ok(left)
}
