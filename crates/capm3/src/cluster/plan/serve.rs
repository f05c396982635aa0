//! The plan of an object that belongs to a Cluster: join, endpoint, status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use metal3_api::cluster::Cluster;
use metal3_api::cluster::names::CLUSTER_NAME_LABEL;
use metal3_api::infrastructure::conditions::cluster::{ENDPOINT_READY, REASON_ATTACHED, REASON_DETACHING};
use metal3_api::infrastructure::names::CLUSTER_FINALIZER;
use metal3_api::infrastructure::v1beta2::{ClusterRole, EndpointOrigin, Initialization, Metal3Cluster};
use metal3_capi::owner::{first, reference};
use metal3_runtime::condition::ConditionBuilder;

use super::attach::{is_cluster, is_leaving, uses_extensions};
use super::draft::{Draft, patch_object};
use super::status::{Attached, Phase, StatusReport, with_status};
use crate::cluster::action::Action;
use crate::cluster::facts::{EndpointWrite, Facts};
use crate::endpoint::address::Address;
use crate::endpoint::conditions::{EndpointState, Missing};
use crate::endpoint::pool::new_claim;
use crate::endpoint::render::{self, SecretWrite};
use crate::endpoint::resolve::{Resolution, ResolveInput, resolve};
use crate::endpoint::source::SourceState;
use crate::endpoint::spec_endpoint::spec_endpoint;

pub(super) fn serve(facts: &Facts, mut after: Metal3Cluster, cluster: &Cluster, is_secondary: bool) -> Draft {
    let uses_extensions = is_secondary || uses_extensions(&facts.object);
    let finalizers = after.metadata.finalizers.get_or_insert_default();
    if !finalizers.iter().any(|name| name == CLUSTER_FINALIZER) {
        finalizers.push(CLUSTER_FINALIZER.to_owned());
    }
    if is_secondary {
        join(&mut after, cluster);
    }
    let input = ResolveInput {
        object: &facts.object,
        cluster,
        is_secondary,
        source_values: &facts.source_values,
        is_refused: facts.results.endpoint == Some(EndpointWrite::Contested),
        now: facts.now,
    };
    let resolution = resolve(&input);
    after.status.role = uses_extensions.then_some(if is_secondary {
        ClusterRole::Secondary
    } else {
        ClusterRole::Primary
    });
    let mut report = match &resolution {
        Some(resolution) => from_source(&mut after, resolution),
        None => from_spec(&facts.object, cluster),
    };
    if matches!(report.phase, Phase::Provisioned) {
        after.status.initialization = Some(Initialization {
            provisioned: Some(true),
        });
    }
    let rendering = rendering(facts, cluster, resolution.as_ref());
    let (render, rendered) = rendering.unzip();
    report.rendered = rendered;
    report.uses_extensions = uses_extensions;
    if uses_extensions {
        report.attached = Some(attached(facts, cluster, is_secondary));
    }
    let mut writes: Vec<Action> = patch_object(facts, &after).into_iter().collect();
    let draft = with_status(facts, after, &report);
    let Some(resolution) = resolution else {
        return Draft { writes, ..draft };
    };
    writes.extend(claim_to_create(facts, cluster));
    let endpoint = resolution.write.filter(|_| facts.results.endpoint.is_none());
    writes.extend(endpoint.map(Action::Derive));
    writes.extend(render.flatten().map(Action::Render));
    Draft {
        writes,
        touch: resolution
            .touch
            .and_then(|(origin, address)| touch(facts, origin, address)),
        requeue_after: resolution.requeue_after,
        ..draft
    }
}

/// The address claim to create: only without a claim, and only while the Cluster has no endpoint.
fn claim_to_create(facts: &Facts, cluster: &Cluster) -> Option<Action> {
    let (wanted, value) = (facts.wanted.pool.as_ref()?, facts.source_values.pool.as_ref()?);
    let is_open = Address::of_cluster(cluster).is_none();
    (is_open && value.state == SourceState::Absent)
        .then(|| new_claim(&facts.object, cluster, wanted))
        .flatten()
        .map(Action::Claim)
}

/// Touches an idle control plane, if enabled.
fn touch(facts: &Facts, origin: EndpointOrigin, address: Address) -> Option<Action> {
    let control_plane = facts.wanted.control_plane.as_ref()?;
    (facts.touches_control_planes && origin == EndpointOrigin::ControlPlane)
        .then(|| Action::Touch(control_plane.clone(), address))
}

/// The rendered endpoint: that of the Cluster, or else the one that Cluster API takes from this object.
fn rendering(
    facts: &Facts,
    cluster: &Cluster,
    resolution: Option<&Resolution>,
) -> Option<(Option<SecretWrite>, ConditionBuilder)> {
    let is_known = resolution.is_some_and(|resolution| resolution.state.is_known());
    let in_spec = || spec_endpoint(&facts.object).address().cloned().filter(|_| is_known);
    let endpoint = Address::of_cluster(cluster).or_else(in_spec);
    render::render(&render::RenderInput {
        object: &facts.object,
        cluster: cluster.metadata.name.as_deref().unwrap_or_default(),
        endpoint: endpoint.as_ref(),
        template: facts.source_values.template.as_ref(),
        secret: facts.secret.as_ref(),
        digester: &facts.digester,
        refused: facts.results.secret.as_deref(),
    })
}

fn attached(facts: &Facts, cluster: &Cluster, is_secondary: bool) -> Attached {
    match &facts.descendant {
        Some(machine) if is_secondary && is_leaving(&facts.object) => {
            let why = format!("detaches from the Cluster once no Metal3Machine belongs to it; {machine} does");
            Attached::Yes(REASON_DETACHING, why)
        }
        _ => {
            let name = cluster.metadata.name.as_deref().unwrap_or_default();
            Attached::Yes(REASON_ATTACHED, format!("belongs to Cluster {name}"))
        }
    }
}

/// Adds owner reference and label to a Secondary, so that it is deleted and moved with its Cluster.
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

fn from_source(after: &mut Metal3Cluster, resolution: &Resolution) -> StatusReport {
    after.status.control_plane_endpoint.clone_from(&resolution.endpoint);
    let phase = match &resolution.state {
        EndpointState::Missing(Missing { message, .. }) | EndpointState::Conflict(message)
            if !resolution.is_provisioned =>
        {
            Phase::Waiting(message.clone())
        }
        _ => Phase::Provisioned,
    };
    StatusReport {
        endpoint: Some(resolution.state.clone()),
        drift: resolution.drift.clone(),
        ..StatusReport::of(phase)
    }
}

// differs (`cluster-endpoint-conflict`): the Go manager does not read the Cluster's endpoint.
/// Status of an endpoint in the spec. A conflict with the Cluster is reported without effect.
fn from_spec(object: &Metal3Cluster, cluster: &Cluster) -> StatusReport {
    let phase = match spec_error(object) {
        None => Phase::Provisioned,
        Some(spec_error) => Phase::Invalid(spec_error.to_owned()),
    };
    let stated = object.spec.control_plane_endpoint.as_ref().and_then(Address::of);
    let conflict = match (stated, Address::of_cluster(cluster)) {
        (Some(typed), Some(fixed)) if typed != fixed => Some(EndpointState::Conflict(format!(
            "spec.controlPlaneEndpoint says {typed}, the Cluster says {fixed}, which counts; set it to the same"
        ))),
        _ => None,
    };
    let was_reported = object.status.conditions.iter().any(|one| one.type_ == ENDPOINT_READY);
    let resolved = (was_reported && phase == Phase::Provisioned).then_some(EndpointState::Known {
        origin: EndpointOrigin::Spec,
        note: None,
    });
    StatusReport {
        endpoint: conflict.or(resolved),
        ..StatusReport::of(phase)
    }
}

/// The invalid field of the endpoint, with the remedy.
fn spec_error(object: &Metal3Cluster) -> Option<&'static str> {
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
