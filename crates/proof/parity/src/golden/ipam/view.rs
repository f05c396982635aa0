//! The compared parts of objects.

use serde_json::{Map, Value, json};

use crate::values::{at, list, text};

/// The list at a pointer, for changes.
pub(super) fn list_mut<'a>(value: &'a mut Value, pointer: &str) -> impl Iterator<Item = &'a mut Value> + use<'a> {
    value
        .pointer_mut(pointer)
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

fn of<'a>(objects: &'a [Value], kind: &str) -> Vec<&'a Value> {
    objects.iter().filter(|object| text(object, "/kind") == kind).collect()
}

/// Non-empty members.
fn filled<const N: usize>(members: [(&str, Value); N]) -> Value {
    let is_filled = |value: &Value| match value {
        Value::Null => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(members) => !members.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    };
    let kept = members.into_iter().filter(|(_, value)| is_filled(value));
    Value::Object(kept.map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Claims, IPClaims first.
pub(super) fn claims(objects: &[Value]) -> Vec<Value> {
    let mut claims = Vec::new();
    for kind in ["IPClaim", "IPAddressClaim"] {
        for claim in of(objects, kind) {
            let named = [
                text(claim, "/status/address/name"),
                text(claim, "/status/addressRef/name"),
            ]
            .concat();
            let address = of(objects, "IPAddress").into_iter().find(|held| {
                text(held, "/metadata/name") == named && text(held, "/apiVersion") == text(claim, "/apiVersion")
            });
            let there = Some(&named).filter(|named| !named.is_empty());
            let conditions = Some(claim).filter(|_| kind == "IPAddressClaim").map(conditions);
            let namespace = Some(at(claim, "/metadata/namespace")).filter(|namespace| namespace != "metal");
            claims.push(filled([
                ("name", at(claim, "/metadata/name")),
                ("kind", kind.into()),
                ("namespace", namespace.unwrap_or_default()),
                ("address", json!(there)),
                (
                    "addressObject",
                    json!(there.filter(|_| address.is_none()).map(|_| "missing")),
                ),
                ("ip", address.map(|held| at(held, "/spec/address")).unwrap_or_default()),
                ("errorMessage", at(claim, "/status/errorMessage")),
                ("conditions", conditions.unwrap_or_default()),
                (
                    "deleting",
                    json!(claim.pointer("/metadata/deletionTimestamp").map(|_| true)),
                ),
                ("finalizers", at(claim, "/metadata/finalizers")),
            ]));
        }
    }
    claims
}

fn conditions(claim: &Value) -> Value {
    let shown = |condition: &Value| {
        let member = |name: &str| (name.to_owned(), condition.get(name).cloned().unwrap_or_default());
        Value::Object(Map::from_iter(["type", "status", "reason", "message"].map(member)))
    };
    list(claim, "/status/conditions").map(shown).collect()
}

/// Addresses, those of ipam.metal3.io first.
pub(super) fn addresses(objects: &[Value], in_full: bool) -> Vec<Value> {
    let mut addresses = of(objects, "IPAddress");
    addresses.sort_by_key(|held| {
        (
            text(held, "/apiVersion") != "ipam.metal3.io/v1alpha1",
            text(held, "/metadata/name"),
        )
    });
    let shown = |held: &Value| {
        if !in_full {
            return filled([
                ("name", at(held, "/metadata/name")),
                ("apiVersion", at(held, "/apiVersion")),
                ("spec", at(held, "/spec")),
            ]);
        }
        let metadata = filled([
            ("name", at(held, "/metadata/name")),
            ("namespace", at(held, "/metadata/namespace")),
            ("labels", at(held, "/metadata/labels")),
            ("finalizers", at(held, "/metadata/finalizers")),
            ("ownerReferences", at(held, "/metadata/ownerReferences")),
        ]);
        filled([
            ("apiVersion", at(held, "/apiVersion")),
            ("kind", at(held, "/kind")),
            ("metadata", metadata),
            ("spec", at(held, "/spec")),
        ])
    };
    addresses.into_iter().map(shown).collect()
}

/// The pools.
pub(super) fn pools(objects: &[Value]) -> Vec<Value> {
    let shown = |pool: &Value| {
        filled([
            ("name", at(pool, "/metadata/name")),
            ("finalizers", at(pool, "/metadata/finalizers")),
            ("labels", at(pool, "/metadata/labels")),
            ("ownerReferences", at(pool, "/metadata/ownerReferences")),
            (
                "deletionTimestamp",
                json!(pool.pointer("/metadata/deletionTimestamp").map(|_| "<time>")),
            ),
            ("indexes", at(pool, "/status/indexes")),
        ])
    };
    of(objects, "IPPool").into_iter().map(shown).collect()
}
