//! What to do for a Metal3Cluster.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::{CLUSTER_NAME_LABEL, MANAGED_BY_ANNOTATION};
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{
    ClusterRole, EndpointOrigin, Initialization, Metal3Cluster, ResolvedEndpoint,
};
use metal3_capi::owner::{first, reference};
use metal3_capi::{Sight, pause, progress};
use metal3_runtime::version::ResourceVersion;

use super::status::{Standing, saying};
use super::{Action, Facts, Plan, Tie, belongs_to, is_primary, is_secondary};
use crate::documents::changes;

/// What to do, given the facts.
#[must_use]
pub fn plan(facts: &Facts<'_>) -> Plan {
    let object = facts.object;
    let annotations = object.metadata.annotations.as_ref();
    let is_foreign = annotations.is_some_and(|all| all.contains_key(MANAGED_BY_ANNOTATION));
    // A Cluster that cannot be read may be paused.
    if is_foreign || pause::is_moved_away(&object.metadata) || facts.cluster.unknown().is_some() {
        return Plan::default();
    }
    let cluster = facts.cluster.seen();
    if let Some(message) = pause::why_paused(cluster, "Metal3Cluster", &object.metadata) {
        return saying(facts, object.clone(), &Standing::Paused(message), None);
    }
    if object.metadata.deletion_timestamp.is_some() {
        return leave(facts);
    }
    let mut after = object.clone();
    after.status.failure_domains.clone_from(&object.spec.failure_domains);
    let Some(cluster) = cluster else {
        after.status.role = None;
        return match belongs_to(object) {
            Tie::Loose => saying(facts, after, &Standing::Loose, None),
            Tie::Owned(name) | Tie::Joined(name) => {
                saying(facts, after, &Standing::WithoutCluster(name.to_owned()), None)
            }
        };
    };
    let is_secondary = is_secondary(object, cluster);
    if is_secondary && cluster.metadata.deletion_timestamp.is_some() && facts.descendant.is_none() {
        return Plan {
            action: Some(Action::Delete),
            status: None,
        };
    }
    serve(facts, after, cluster, is_secondary)
}

fn serve(facts: &Facts<'_>, mut after: Metal3Cluster, cluster: &Cluster, is_secondary: bool) -> Plan {
    after.status.role = is_secondary.then_some(ClusterRole::Secondary);
    let finalizers = after.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|name| name == CLUSTER_FINALIZER) {
        finalizers.push(CLUSTER_FINALIZER.to_owned());
    }
    if is_secondary {
        join(&mut after, cluster);
    }
    let standing = match endpoint(facts.object, cluster, is_secondary) {
        Ok(found) => {
            after.status.initialization = Some(Initialization {
                provisioned: Some(true),
            });
            let conflict = conflict(&found, cluster, is_secondary);
            after.status.control_plane_endpoint = is_secondary.then(|| found.clone());
            Standing::Provisioned { conflict }
        }
        Err(flaw) if is_secondary => Standing::Waiting(flaw),
        Err(flaw) => Standing::Invalid(flaw),
    };
    let action = written(facts.object, &after);
    saying(facts, after, &standing, action)
}

/// Lets a Secondary go and move with its Cluster.
fn join(after: &mut Metal3Cluster, cluster: &Cluster) {
    let owned =
        first::<Cluster>(&after.metadata).is_some_and(|owner| Some(&owner.uid) == cluster.metadata.uid.as_ref());
    if !owned {
        let owners = after.metadata.owner_references.get_or_insert_default();
        owners.retain(|owner| owner.kind != "Cluster" || Some(&owner.name) != cluster.metadata.name.as_ref());
        owners.push(OwnerReference {
            controller: None,
            ..reference::<Cluster>(&cluster.metadata)
        });
    }
    let labels = after.metadata.labels.get_or_insert_default();
    let name = cluster.metadata.name.clone().unwrap_or_default();
    labels.entry(CLUSTER_NAME_LABEL.to_owned()).or_insert(name);
}

/// The endpoint that counts, or what is missing, by field and with the cure.
fn endpoint(object: &Metal3Cluster, cluster: &Cluster, is_secondary: bool) -> Result<ResolvedEndpoint, String> {
    let stated = object.spec.control_plane_endpoint.as_ref();
    let host = stated
        .and_then(|endpoint| endpoint.host.clone())
        .filter(|host| !host.is_empty());
    let port = stated
        .and_then(|endpoint| endpoint.port)
        .filter(|port| (1..=65535).contains(port));
    match (host, port) {
        (Some(host), Some(port)) => Ok(ResolvedEndpoint {
            host: Some(host),
            port: Some(port),
            source: Some(EndpointOrigin::Spec),
            from: None,
        }),
        _ if is_secondary => match progress::endpoint(cluster) {
            Some((host, port)) => Ok(ResolvedEndpoint {
                host: Some(host.to_owned()),
                port: Some(port),
                source: Some(EndpointOrigin::Cluster),
                from: cluster.metadata.name.as_ref().map(|name| format!("Cluster {name}")),
            }),
            None => Err("waiting for spec.controlPlaneEndpoint of the Cluster".to_owned()),
        },
        (None, _) => {
            Err("spec.controlPlaneEndpoint.host: it is missing; set it to the address of the API server".to_owned())
        }
        (Some(_), None) => {
            Err("spec.controlPlaneEndpoint.port: it is missing or out of range; set it, usually to 6443".to_owned())
        }
    }
}

/// What differs from the Cluster's endpoint, which does not change any more.
fn conflict(found: &ResolvedEndpoint, cluster: &Cluster, is_secondary: bool) -> Option<String> {
    let (host, port) = progress::endpoint(cluster).filter(|_| is_secondary)?;
    let is_same = found.host.as_deref() == Some(host) && found.port == Some(port);
    (!is_same).then(|| {
        let (own_host, own_port) = (found.host.clone().unwrap_or_default(), found.port.unwrap_or_default());
        format!(
            "spec.controlPlaneEndpoint says {own_host}:{own_port}, the Cluster {host}:{port}, which counts; leave it out"
        )
    })
}

/// Goes when nothing that belongs to the object is left.
fn leave(facts: &Facts<'_>) -> Plan {
    let mut after = facts.object.clone();
    if let Some(machine) = facts.descendant {
        let message = format!("waiting for the Metal3Machines of the cluster to go, such as {machine}");
        return saying(facts, after, &Standing::Deleting(message), None);
    }
    if let Some(finalizers) = &mut after.metadata.finalizers {
        finalizers.retain(|name| name != CLUSTER_FINALIZER);
    }
    Plan {
        action: written(facts.object, &after),
        status: None,
    }
}

fn written(before: &Metal3Cluster, after: &Metal3Cluster) -> Option<Action> {
    let version = ResourceVersion::parse(before.metadata.resource_version.as_deref()?).ok()?;
    changes(before, after)
        .main
        .map(|patch| Action::Patch(patch.only_at(&version)))
}

/// Whether a decision asks for descendants.
#[must_use]
pub fn counts_descendants(object: &Metal3Cluster, cluster: Sight<'_, Cluster>) -> bool {
    let cluster_goes = cluster
        .seen()
        .is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_some() && !is_primary(object, cluster));
    object.metadata.deletion_timestamp.is_some() || cluster_goes
}
