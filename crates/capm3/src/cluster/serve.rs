//! What is done for an object that belongs to a Cluster: it is joined, its endpoint is settled, its state is said.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::conditions::cluster::ENDPOINT_READY;
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{ClusterRole, EndpointOrigin, Initialization, Metal3Cluster};
use metal3_capi::owner::{first, reference};
use metal3_runtime::condition::ConditionBuilder;

use super::attach::{is_cluster, is_leaving};
use super::plan::{uses_what_is_new, written};
use super::status::{Attached, Standing, Words, saying};
use super::{Facts, Plan};
use crate::data::claims::NewClaim;
use crate::endpoint::address::Address;
use crate::endpoint::own::{Derived, Own, own};
use crate::endpoint::pool::new_claim;
use crate::endpoint::reading::{Heard, wanted};
use crate::endpoint::render::{self, Writing};
use crate::endpoint::resolve::{Question, Resolution, resolve};
use crate::endpoint::said;

pub(super) fn serve(facts: &Facts<'_>, mut after: Metal3Cluster, cluster: &Cluster, is_secondary: bool) -> Plan {
    let is_new = is_secondary || uses_what_is_new(facts.object);
    let finalizers = after.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|name| name == CLUSTER_FINALIZER) {
        finalizers.push(CLUSTER_FINALIZER.to_owned());
    }
    if is_secondary {
        join(&mut after, cluster);
    }
    let question = Question {
        object: facts.object,
        cluster,
        is_secondary,
        readings: facts.readings,
        is_refused: facts.refused.endpoint,
        now: facts.now,
    };
    let resolution = resolve(&question);
    after.status.role = is_new.then_some(if is_secondary {
        ClusterRole::Secondary
    } else {
        ClusterRole::Primary
    });
    let mut words = match &resolution {
        Some(resolution) => settled(&mut after, resolution),
        None => as_ever(facts.object, cluster),
    };
    if matches!(words.standing, Standing::Provisioned) {
        after.status.initialization = Some(Initialization {
            provisioned: Some(true),
        });
    }
    let rendering = rendering(facts, cluster, resolution.as_ref());
    let (render, rendered) = rendering.unzip();
    words.rendered = rendered;
    words.is_new = is_new;
    if is_new {
        words.attached = Some(attached(facts, cluster, is_secondary));
    }
    let action = written(facts.object, &after);
    let plan = saying(facts, after, &words, action);
    match resolution {
        Some(resolution) => Plan {
            claim: claiming(facts, cluster, is_secondary),
            render: render.flatten(),
            derive: resolution.write,
            nudge: resolution.nudge,
            again: resolution.again,
            ..plan
        },
        None => plan,
    }
}

/// The claim on an address, where there is none. Who has an endpoint needs no address.
fn claiming(facts: &Facts<'_>, cluster: &Cluster, is_secondary: bool) -> Option<NewClaim> {
    let wanted = wanted(facts.object, cluster, is_secondary).pool?;
    let reading = facts.readings.pool.as_ref()?;
    let is_open = Address::of_cluster(cluster).is_none();
    (is_open && reading.heard == Heard::Absent)
        .then(|| new_claim(facts.object, cluster, &wanted))
        .flatten()
}

/// What is made of the endpoint that counts: that of the Cluster, or else the one that Cluster API is to take from here.
fn rendering(
    facts: &Facts<'_>,
    cluster: &Cluster,
    resolution: Option<&Resolution>,
) -> Option<(Option<Writing>, ConditionBuilder)> {
    let is_known = resolution.is_some_and(|resolution| resolution.standing.is_good());
    let own = || match own(facts.object) {
        Own::Typed(address) | Own::Derived(Derived { address, .. }) => Some(address),
        Own::Unset { .. } => None,
    };
    let endpoint = Address::of_cluster(cluster).or_else(|| own().filter(|_| is_known));
    render::render(&render::Question {
        object: facts.object,
        cluster: cluster.metadata.name.as_deref().unwrap_or_default(),
        endpoint: endpoint.as_ref(),
        template: facts.readings.template.as_ref(),
        secret: facts.secret,
        refused: facts.refused.secret,
    })
}

fn attached(facts: &Facts<'_>, cluster: &Cluster, is_secondary: bool) -> Attached {
    let name = cluster.metadata.name.clone().unwrap_or_default();
    match facts.descendant {
        Some(machine) if is_secondary && is_leaving(facts.object) => Attached::Leaving(machine.to_owned()),
        _ => Attached::To(name),
    }
}

/// Lets a Secondary go and move with its Cluster.
fn join(after: &mut Metal3Cluster, cluster: &Cluster) {
    let owned =
        first::<Cluster>(&after.metadata).is_some_and(|owner| Some(&owner.uid) == cluster.metadata.uid.as_ref());
    if !owned {
        let owners = after.metadata.owner_references.get_or_insert_default();
        owners.retain(|owner| !is_cluster(owner) || Some(&owner.name) != cluster.metadata.name.as_ref());
        owners.push(OwnerReference {
            controller: None,
            ..reference::<Cluster>(&cluster.metadata)
        });
    }
    let labels = after.metadata.labels.get_or_insert_default();
    let name = cluster.metadata.name.clone().unwrap_or_default();
    labels.entry(CLUSTER_NAME_LABEL.to_owned()).or_insert(name);
}

/// The endpoint comes from a source.
fn settled(after: &mut Metal3Cluster, resolution: &Resolution) -> Words {
    after.status.control_plane_endpoint.clone_from(&resolution.endpoint);
    let standing = match &resolution.standing {
        _ if resolution.is_provisioned => Standing::Provisioned,
        said::Standing::Missing(missing) => Standing::Waiting(missing.message.clone()),
        said::Standing::Conflict(message) => Standing::Waiting(message.clone()),
        said::Standing::Known { .. } => Standing::Provisioned,
    };
    Words {
        endpoint: Some(resolution.standing.clone()),
        drift: resolution.drift.clone(),
        ..Words::of(standing)
    }
}

// differs (`cluster-endpoint-conflict`): the Go manager does not look at the Cluster's endpoint.
/// The endpoint is what is written in the object, as it always was. That the Cluster has another one is said, and
/// changes nothing.
fn as_ever(object: &Metal3Cluster, cluster: &Cluster) -> Words {
    let standing = match flaw(object) {
        None => Standing::Provisioned,
        Some(flaw) => Standing::Invalid(flaw.to_owned()),
    };
    let stated = object.spec.control_plane_endpoint.as_ref().and_then(Address::of);
    let conflict = match (stated, Address::of_cluster(cluster)) {
        (Some(typed), Some(fixed)) if typed != fixed => Some(said::Standing::Conflict(format!(
            "spec.controlPlaneEndpoint says {typed}, the Cluster says {fixed}, which counts; set it to the same"
        ))),
        _ => None,
    };
    let was_said = object.status.conditions.iter().any(|one| one.type_ == ENDPOINT_READY);
    let agreed = (was_said && standing == Standing::Provisioned).then_some(said::Standing::Known {
        origin: EndpointOrigin::Spec,
        note: None,
    });
    Words {
        endpoint: conflict.or(agreed),
        ..Words::of(standing)
    }
}

/// What is missing of the endpoint, by field and with the cure.
fn flaw(object: &Metal3Cluster) -> Option<&'static str> {
    let stated = object.spec.control_plane_endpoint.as_ref();
    let port = stated.and_then(|endpoint| endpoint.port);
    if object.spec.endpoint_host().is_none() {
        Some("spec.controlPlaneEndpoint.host: it is missing; set it to the address of the API server")
    } else if port.is_none_or(|port| !(1..=65535).contains(&port)) {
        Some("spec.controlPlaneEndpoint.port: it is missing or out of range; set it, usually to 6443")
    } else {
        None
    }
}
