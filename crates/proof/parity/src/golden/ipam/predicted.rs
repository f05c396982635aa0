//! Predicted grants: the next free address of a pool, its object, and its entry in the pool's map.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use super::view::list_mut;
use crate::values::{list, text};

pub(super) const METAL3: &str = "ipam.metal3.io/v1alpha1";

pub(super) fn pools(input: &Value) -> impl Iterator<Item = &Value> {
    list(input, "/objects").filter(|object| text(object, "/kind") == "IPPool")
}

/// Sets a member of an existing parent.
pub(super) fn put(value: &mut Value, place: &str, new: Value) {
    let (parent, member) = place.rsplit_once('/').unwrap_or_default();
    if let Some(members) = value.pointer_mut(parent).and_then(Value::as_object_mut) {
        members.insert(member.to_owned(), new);
    }
}

/// An address of ipam.metal3.io in the namespace of the cases.
fn address(name: &str, ip: &str, claim: &str, pool: &str) -> Value {
    json!({
        "name": name,
        "apiVersion": METAL3,
        "spec": {
            "address": ip,
            "claim": { "name": claim, "namespace": "metal" },
            "pool": { "name": pool, "namespace": "metal" },
        },
    })
}

fn pool_spec<'a>(input: &'a Value, pool: &str) -> &'a Value {
    let found = pools(input).find(|one| text(one, "/metadata/name") == pool);
    found.and_then(|pool| pool.get("spec")).unwrap_or(&Value::Null)
}

/// The lowest address of a pool's first range that is not pre-allocated, that no recorded object of the pool has, and that
/// gives a name no recorded object has; with that name.
pub(super) fn next_free(input: &Value, recorded: &Value, pool: &str) -> Option<(String, String)> {
    let spec = pool_spec(input, pool);
    let in_pool = |held: &Value| [text(held, "/spec/pool/name"), text(held, "/spec/poolRef/name")].contains(&pool);
    let is_held = |name: &str, ip: &str| {
        list(recorded, "/final/addresses")
            .any(|held| text(held, "/name") == name || in_pool(held) && text(held, "/spec/address") == ip)
    };
    let reserved = spec.get("preAllocations").and_then(Value::as_object);
    let is_reserved = |ip: &str| reserved.is_some_and(|all| all.values().any(|value| value == ip));
    let mut address: IpAddr = text(spec, "/pools/0/start").parse().ok()?;
    let end: Option<IpAddr> = text(spec, "/pools/0/end").parse().ok();
    while end.is_none_or(|end| address <= end) {
        let ip = address.to_string();
        let name = format!("{}-{}", text(spec, "/namePrefix"), ip.replace(['.', ':'], "-"));
        if !is_held(&name, &ip) && !is_reserved(&ip) {
            return Some((name, ip));
        }
        address = match address {
            IpAddr::V4(v4) => Ipv4Addr::from(u32::from(v4).checked_add(1)?).into(),
            IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6).checked_add(1)?).into(),
        };
    }
    None
}

/// Adds an address to the map of a pool. The claim of Cluster API has the second name.
pub(super) fn publish(recorded: &mut Value, pool: &str, (kind, name): (&str, &str), ip: &str) {
    let second = format!("ipaddressclaim/{name}");
    for shown in list_mut(recorded, "/final/pools").filter(|shown| text(shown, "/name") == pool) {
        let Some(members) = shown.as_object_mut() else {
            continue;
        };
        let indexes = members.entry("indexes").or_insert_with(|| json!({}));
        let Some(indexes) = indexes.as_object_mut() else {
            continue;
        };
        if kind == "IPAddressClaim" {
            indexes.insert(second.clone(), json!(ip));
        } else if let Some(earlier) = indexes.insert(name.to_owned(), json!(ip)) {
            indexes.insert(second.clone(), earlier);
        }
    }
}

/// The object of a granted address.
pub(super) fn granted(input: &Value, pool: &str, (kind, claim): (&str, &str), (object, ip): (&str, &str)) -> Value {
    let mut made = if kind == "IPClaim" {
        address(object, ip, claim, pool)
    } else {
        json!({
            "name": object,
            "apiVersion": "ipam.cluster.x-k8s.io/v1beta2",
            "spec": {
                "address": ip,
                "claimRef": { "name": claim },
                "poolRef": { "name": pool, "kind": "IPPool", "apiGroup": "ipam.metal3.io" },
            },
        })
    };
    let spec = pool_spec(input, pool);
    for member in ["prefix", "gateway"] {
        let of_range = spec.pointer(&format!("/pools/0/{member}"));
        if let Some(value) = of_range.or_else(|| spec.get(member)) {
            put(&mut made, &format!("/spec/{member}"), value.clone());
        }
    }
    made
}

/// Adds an address object in the order of the recordings.
pub(super) fn push_address(recorded: &mut Value, object: Value) {
    if recorded.pointer("/final/addresses").is_none() {
        put(recorded, "/final/addresses", json!([]));
    }
    if let Some(Value::Array(addresses)) = recorded.pointer_mut("/final/addresses") {
        addresses.push(object);
        addresses.sort_by_key(|held| (text(held, "/apiVersion") != METAL3, text(held, "/name").to_owned()));
    }
}
