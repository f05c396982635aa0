//! Losses between two states of an installation: of a host, an index, an address, or a pending deletion.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

use crate::golden::server::{Resource, TestServer};
use crate::values::{list, text};

const OURS: &str = "infrastructure.cluster.x-k8s.io";

/// Objects of one kind, by name.
type Named = BTreeMap<String, Value>;

/// Objects of a namespace.
pub(in crate::golden) struct NamespaceObjects {
    clusters: Named,
    metal3_clusters: Named,
    machines: Named,
    hosts: Named,
    data_claims: Named,
    data: Named,
    /// Claims and addresses of both APIs.
    claims: [Named; 2],
    addresses: [Named; 2],
    secrets: Named,
}

impl NamespaceObjects {
    pub(super) async fn of(server: &TestServer, namespace: &str) -> Result<Self> {
        let all = async |group: &str, version: &str, kind: &str| -> Result<Named> {
            let objects = server.all(&Resource::new(group, version, kind), namespace).await?;
            Ok(objects
                .into_iter()
                .map(|object| (text(&object, "/metadata/name").to_owned(), object))
                .collect())
        };
        Ok(Self {
            clusters: all("cluster.x-k8s.io", "v1beta2", "Cluster").await?,
            metal3_clusters: all(OURS, "v1beta2", "Metal3Cluster").await?,
            machines: all(OURS, "v1beta2", "Metal3Machine").await?,
            hosts: all("metal3.io", "v1alpha1", "BareMetalHost").await?,
            data_claims: all(OURS, "v1beta2", "Metal3DataClaim").await?,
            data: all(OURS, "v1beta2", "Metal3Data").await?,
            claims: [
                all("ipam.metal3.io", "v1alpha1", "IPClaim").await?,
                all("ipam.cluster.x-k8s.io", "v1beta2", "IPAddressClaim").await?,
            ],
            addresses: [
                all("ipam.metal3.io", "v1alpha1", "IPAddress").await?,
                all("ipam.cluster.x-k8s.io", "v1beta2", "IPAddress").await?,
            ],
            secrets: all("", "v1", "Secret").await?,
        })
    }

    /// A Metal3Cluster.
    pub(in crate::golden) fn metal3_cluster(&self, name: &str) -> Option<&Value> {
        self.metal3_clusters.get(name)
    }
}

fn remains(objects: &Named, name: &str) -> bool {
    objects
        .get(name)
        .is_some_and(|object| object.pointer("/metadata/deletionTimestamp").is_none())
}

/// The name of the owner of a kind; empty if absent.
fn owner<'a>(object: &'a Value, kind: &str) -> &'a str {
    let owner = list(object, "/metadata/ownerReferences").find(|owner| text(owner, "/kind") == kind);
    owner.map_or("", |owner| text(owner, "/name"))
}

/// Whether a data claim stays: neither it nor its machine is being deleted.
fn is_served(all: &NamespaceObjects, claim: &str) -> bool {
    let machine = all
        .data_claims
        .get(claim)
        .map_or("", |claim| owner(claim, "Metal3Machine"));
    remains(&all.data_claims, claim) && (machine.is_empty() || remains(&all.machines, machine))
}

/// Whether a pool claim stays: it is not being deleted, and the data claim of its Metal3Data stays.
fn is_granted(all: &NamespaceObjects, claims: &Named, claim: &str) -> bool {
    let data = claims.get(claim).map_or("", |claim| owner(claim, "Metal3Data"));
    let is_wanted = |data: &Value| is_served(all, text(data, "/spec/claim/name"));
    remains(claims, claim) && (data.is_empty() || all.data.get(data).is_some_and(is_wanted))
}

/// Losses, one line each.
pub(in crate::golden) fn losses(before: &NamespaceObjects, after: &NamespaceObjects) -> Vec<String> {
    let mut lost = Vec::new();
    hosts(before, after, &mut lost);
    numbers(before, after, &mut lost);
    addresses(before, after, &mut lost);
    stuck(before, after, &mut lost);
    lost
}

/// Changed fields that must not change.
fn changed(what: &str, before: &Value, after: Option<&Value>, places: &[&str], lost: &mut Vec<String>) {
    for place in places {
        let (old, new) = (before.pointer(place), after.and_then(|after| after.pointer(place)));
        if old != new {
            lost.push(format!("{what}: {place} was {old:?} and is {new:?}"));
        }
    }
}

/// A host keeps its consumer and image, and a machine its host, as long as the machine exists.
fn hosts(before: &NamespaceObjects, after: &NamespaceObjects, lost: &mut Vec<String>) {
    const HOST_FIELDS: [&str; 6] = [
        "/spec/consumerRef/name",
        "/spec/image",
        "/spec/customDeploy",
        "/spec/userData",
        "/spec/metaData",
        "/spec/networkData",
    ];
    for (name, host) in &before.hosts {
        let consumer = text(host, "/spec/consumerRef/name");
        let what = format!("BareMetalHost {name} of {consumer}");
        if remains(&before.machines, consumer) {
            let runs = !host.pointer("/spec/image").unwrap_or(&Value::Null).is_null();
            let kept = if runs {
                HOST_FIELDS.as_slice()
            } else {
                &["/spec/consumerRef/name"]
            };
            changed(&what, host, after.hosts.get(name), kept, lost);
        } else if !consumer.is_empty() {
            let now = after
                .hosts
                .get(name)
                .map(|host| text(host, "/spec/consumerRef/name"))
                .unwrap_or_default();
            // A released host may be claimed by another machine.
            let waits = |machine: &str| after.machines.contains_key(machine);
            if !now.is_empty() && now != consumer && !waits(now) {
                lost.push(format!("{what}: claimed by {now}"));
            }
        }
    }
    for (name, machine) in before
        .machines
        .iter()
        .filter(|(name, _)| remains(&before.machines, name))
    {
        let mut places = vec!["/metadata/annotations/metal3.io~1BareMetalHost"];
        places.retain(|place| machine.pointer(place).is_some());
        places.extend(
            [
                "/spec/providerID",
                "/status/renderedData/name",
                "/status/initialization/provisioned",
            ]
            .iter()
            .filter(|place| machine.pointer(place).is_some()),
        );
        changed(
            &format!("Metal3Machine {name}"),
            machine,
            after.machines.get(name),
            &places,
            lost,
        );
    }
}

/// A claim keeps its index and its rendered data.
fn numbers(before: &NamespaceObjects, after: &NamespaceObjects, lost: &mut Vec<String>) {
    for (name, data) in &before.data {
        let claim = text(data, "/spec/claim/name");
        if !remains(&before.data, name) || !is_served(before, claim) {
            continue;
        }
        let what = format!("Metal3Data {name} of {claim}");
        changed(
            &what,
            data,
            after.data.get(name),
            &["/spec/index", "/spec/claim/name", "/spec/template/name"],
            lost,
        );
        for part in ["/spec/metaData/name", "/spec/networkData/name"] {
            if let Some((secret, content)) = before.secrets.get_key_value(text(data, part)) {
                let what = format!("Secret {secret} of {what}");
                changed(&what, content, after.secrets.get(secret), &["/data"], lost);
            }
        }
    }
    for (name, claim) in before.data_claims.iter().filter(|(name, _)| is_served(before, name)) {
        if claim.pointer("/status/renderedData/name").is_some() {
            let what = format!("Metal3DataClaim {name}");
            changed(
                &what,
                claim,
                after.data_claims.get(name),
                &["/status/renderedData/name"],
                lost,
            );
        }
    }
}

/// A claim keeps its address, and no address is allocated twice.
fn addresses(before: &NamespaceObjects, after: &NamespaceObjects, lost: &mut Vec<String>) {
    let claim_of = |address: &Value| {
        let names = ["/spec/claim/name", "/spec/claimRef/name"].map(|place| text(address, place).to_owned());
        names.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
    };
    for ((old, new), claims) in before.addresses.iter().zip(&after.addresses).zip(&before.claims) {
        for (name, address) in old
            .iter()
            .filter(|(_, address)| is_granted(before, claims, &claim_of(address)))
        {
            changed(&format!("IPAddress {name}"), address, new.get(name), &["/spec"], lost);
        }
    }
    let mut given: BTreeMap<(String, String), String> = BTreeMap::new();
    for (name, address) in after.addresses.iter().flatten() {
        let pool = ["/spec/pool/name", "/spec/poolRef/name"]
            .map(|place| text(address, place))
            .concat();
        let key = (pool, text(address, "/spec/address").to_owned());
        if let Some(other) = given
            .insert(key.clone(), claim_of(address))
            .filter(|other| *other != claim_of(address))
        {
            lost.push(format!(
                "{} is allocated to {other}, and as {name} to {}",
                key.1,
                claim_of(address)
            ));
        }
    }
}

/// Deletions finish, unless the Cluster is paused.
fn stuck(before: &NamespaceObjects, after: &NamespaceObjects, lost: &mut Vec<String>) {
    let rests = before
        .clusters
        .values()
        .any(|cluster| cluster.pointer("/spec/paused") == Some(&Value::Bool(true)));
    let kinds = [
        ("Metal3Cluster", &before.metal3_clusters, &after.metal3_clusters),
        ("Metal3Machine", &before.machines, &after.machines),
        ("Metal3DataClaim", &before.data_claims, &after.data_claims),
        ("Metal3Data", &before.data, &after.data),
    ];
    for (kind, old, new) in kinds.into_iter().filter(|_| !rests) {
        let left = old.keys().filter(|name| !remains(old, name) && new.contains_key(*name));
        lost.extend(left.map(|name| format!("{kind} {name} is still being deleted")));
    }
}
