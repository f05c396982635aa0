//! The agent of a host with `--build-preprov-image`: the PreprovisioningImage of the host, and what its node boots.
//!
//! The image is requested as soon as a state may boot the agent, and required before each order that boots it. A deleted
//! host, and one whose system is removed, wait for no builder: their machine is erased by the image if it is ready, by the
//! agent that the node has, or else by the configured one.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use metal3_api::kind::Kind as _;
use metal3_api::metal3::names::{AGENT_IMAGE_BUILDER_ANNOTATION, AGENT_IMAGE_FINALIZER, AGENT_IMAGE_HOST_FINALIZER};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, InspectionMode, PreprovisioningImage, PreprovisioningImageSpec, ProvisioningState as State,
};
use metal3_domain::bmc::Profile;
use metal3_runtime::patch::{Changes, apply};
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;
use serde_json::Value;

use super::agent_state::{AgentState, AgentWait, state_of};
use crate::action::Action;
use crate::facts::Read;
use crate::node::agent::{accepted, has_agent};
use crate::node::cleaning::is_cleaned;
use crate::node::drive::may_run_agent;
use crate::node::{Agent, BmcEndpoint};
use crate::plan::deletion::failed_removals;
use crate::plan::planner::{Decision, PlanResult, Planner, document};
use crate::plan::secrets::{AGENT_NETWORK_FIELD, require_labelled};
use crate::plan::service_policy;

/// The annotation of an image that this program builds. Who builds an image is decided once, when it is created.
pub(crate) const OWN_BUILDER: &str = "capm3";

/// Why an image that its host has let go is not used.
const IS_DELETED: &str = "it is deleted, and another one is created once it is gone; look at its finalizers";
/// After so many failures the erasure of a deleted host takes the configured agent, whatever its image is: the one that failed may
/// not exist any more, and the deletion gives up soon.
const ATTEMPTS_WITH_IMAGE: i64 = 2;

/// The network data of the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::plan) enum NetworkSource {
    /// The Secret.
    Secret,
    /// They are part of the image, so the node has none.
    Image,
    /// The node keeps what it has.
    Node,
}

/// The agent of the node and its network data. Creates and changes the PreprovisioningImage.
pub(in crate::plan) fn choose(planner: &mut Planner<'_>) -> PlanResult<(Agent, NetworkSource)> {
    planner.agent_wait = None;
    if !planner.facts.settings.builds_agent_images {
        return Ok((Agent::Configured, NetworkSource::Secret));
    }
    let Some((wanted, profile)) = wanted(planner) else {
        return Ok(kept(planner));
    };
    match require_usable_secret(planner, &wanted) {
        Err(end @ Decision::Read(_)) => return Err(end),
        Err(_) if is_erased(planner) || is_in_use(planner) || planner.is_deleting() => return Ok(kept(planner)),
        usable => usable?,
    }
    if planner.is_deleting() {
        return Ok(ready_or_kept(planner, &wanted, &profile));
    }
    let image = match planner.facts.agent_image.object {
        Observed::Unknown(ref why) => {
            let message = format!("PreprovisioningImages cannot be read: {why}");
            return Ok(wait_for(planner, AgentWait::Refused(message)));
        }
        Observed::Absent => {
            let image = new_image(planner, &wanted);
            return change(planner, Action::CreateAgentImage(Box::new(image)));
        }
        Observed::Present(image) => image,
    };
    if is_of_former_host(image, planner.uid) {
        let message = "the image of a former host of this name is not gone; if that lasts, look at its finalizers";
        return Ok(wait_for(planner, AgentWait::Pending(message.to_owned())));
    }
    let is_deleted = image.metadata.deletion_timestamp.is_some();
    let mut refused = None;
    if !is_deleted && let Some(action) = correction(planner, image, &wanted) {
        refused = planner.facts.agent_image.refused;
        if refused.is_none() {
            return change(planner, action);
        }
    }
    let settings = &planner.facts.settings.node;
    let secret = &planner.facts.agent_network;
    let state = state_of(image, &wanted, secret, (&settings.ramdisks, &profile));
    // Without the finalizer its builder may discard it at any time. Nothing boots an available machine.
    let is_ready = has_finalizer(&image.metadata) && matches!(state, AgentState::Ready(_));
    let is_used = is_ready && *planner.state() != State::Available;
    // An erasure may boot it in its next step.
    if is_deleted && !is_used && !is_erased(planner) {
        return release_deleted(planner, image);
    }
    let waits = match (state, refused) {
        // A label that the image may not have holds nothing up.
        (AgentState::Ready(files), _) if is_ready => return Ok((Agent::Built(files), source(image))),
        (_, Some(why)) => AgentWait::Refused(why.to_owned()),
        (AgentState::Failed(message), None) => AgentWait::Failed(message),
        (AgentState::Pending(message), None) => AgentWait::Pending(message),
        (AgentState::Ready(_), None) => AgentWait::Pending(IS_DELETED.to_owned()),
    };
    Ok(wait_for(planner, waits))
}

/// Removes the finalizer of a deleted host from its image.
pub(in crate::plan) fn release(planner: &mut Planner<'_>) {
    if !planner.facts.settings.builds_agent_images {
        return;
    }
    if let Observed::Present(image) = planner.facts.agent_image.object
        && let Some(action) = without_finalizer(image)
    {
        planner.add(action);
    }
}

/// The image that the host asks for now; `None` while nothing of the host boots an agent that is built for it.
fn wanted(planner: &Planner<'_>) -> Option<(PreprovisioningImageSpec, Profile)> {
    let host = planner.host();
    let spec = &host.spec;
    let is_needed = match planner.state() {
        State::Inspecting => spec.inspection_mode != Some(InspectionMode::Fast),
        State::Deprovisioning => is_cleaned(host),
        State::Preparing | State::Available | State::Ready | State::Provisioning => true,
        State::Provisioned | State::ExternallyProvisioned => {
            let node = planner.facts.own_node();
            node.is_some_and(|(node, _)| service_policy::is_left(planner, node))
        }
        _ => false,
    };
    if !is_needed {
        return None;
    }
    let settings = &planner.facts.settings.node;
    let profile = profile(planner)?;
    let hardware = host.status.hardware.as_ref();
    let inspected = hardware.and_then(|hardware| hardware.cpu.as_ref()?.arch.clone());
    let is_given = |text: &String| !text.is_empty();
    let architecture = spec.architecture.clone().filter(is_given);
    let architecture = architecture.or(inspected.filter(is_given));
    let wanted = PreprovisioningImageSpec {
        network_data_name: spec.preprovisioning_network_data_name.clone().filter(is_given),
        architecture: Some(architecture.unwrap_or_else(|| settings.own_architecture.clone())),
        accept_formats: accepted(&profile),
    };
    Some((wanted, profile))
}

fn profile(planner: &Planner<'_>) -> Option<Profile> {
    let address = planner.host().spec.bmc.as_ref().map_or("", |bmc| &bmc.address);
    let endpoint = BmcEndpoint::of(address, &planner.facts.settings.node).ok()?;
    Some(endpoint.profile())
}

/// Whether the machine runs a system, which is started whatever its agent.
fn is_in_use(planner: &Planner<'_>) -> bool {
    matches!(planner.state(), State::Provisioned | State::ExternallyProvisioned)
}

/// Whether the system of the machine is removed, which waits for no builder.
fn is_erased(planner: &Planner<'_>) -> bool {
    *planner.state() == State::Deprovisioning
}

/// A builder reads the Secret that the image names: the owner of the Secret must have labelled it for hosts.
fn require_usable_secret(planner: &Planner<'_>, wanted: &PreprovisioningImageSpec) -> PlanResult<()> {
    let Some(name) = &wanted.network_data_name else {
        return Ok(());
    };
    match planner.facts.agent_network {
        Observed::Unknown(_) => Err(Decision::read(Read::AgentNetwork)),
        Observed::Absent => Ok(()),
        Observed::Present(secret) => require_labelled(planner, name, secret, AGENT_NETWORK_FIELD),
    }
}

/// For a deleted host, which neither creates nor changes an image: what is ready, what this program would build, or what its node
/// has.
// differs: `agent-image-erasure`. The Go manager waits for the builder before it erases the machine.
fn ready_or_kept(
    planner: &Planner<'_>,
    wanted: &PreprovisioningImageSpec,
    profile: &Profile,
) -> (Agent, NetworkSource) {
    let ramdisks = &planner.facts.settings.node.ramdisks;
    let architecture = wanted.architecture.as_deref().unwrap_or_default();
    let has_network = wanted.network_data_name.is_some();
    let configured = || {
        let files = ramdisks.offer(architecture, &wanted.accept_formats, has_network);
        files.map(|files| (Agent::Built(files), NetworkSource::Secret))
    };
    if failed_removals(planner) >= ATTEMPTS_WITH_IMAGE
        && let Ok(configured) = configured()
    {
        return configured;
    }
    let is_builder = match planner.facts.agent_image.object {
        Observed::Present(image) if is_of_former_host(image, planner.uid) => true,
        Observed::Present(image) => {
            // Without the finalizer its builder may discard it at any time.
            if has_finalizer(&image.metadata)
                && let AgentState::Ready(files) =
                    state_of(image, wanted, &planner.facts.agent_network, (ramdisks, profile))
            {
                return (Agent::Built(files), source(image));
            }
            is_own(image)
        }
        Observed::Absent => true,
        Observed::Unknown(_) => false,
    };
    match configured() {
        Ok(configured) if is_builder => configured,
        _ => kept(planner),
    }
}

/// The agent that the node has, or the configured one for a node without any.
fn kept(planner: &Planner<'_>) -> (Agent, NetworkSource) {
    let has_own = match (planner.facts.own_node(), profile(planner)) {
        (Some((node, _)), Some(profile)) => has_agent(node, &profile),
        _ => false,
    };
    let name = planner.host().spec.preprovisioning_network_data_name.as_deref();
    let source = match name.filter(|name| !name.is_empty()) {
        Some(_) if has_own => NetworkSource::Node,
        Some(_) | None => NetworkSource::Secret,
    };
    (Agent::Kept, source)
}

fn wait_for(planner: &mut Planner<'_>, waits: AgentWait) -> (Agent, NetworkSource) {
    // differs: `agent-image-erasure`. The Go manager waits.
    planner.agent_wait = Some(waits).filter(|_| !is_erased(planner));
    kept(planner)
}

/// Changes the image, unless the API server refused that some minutes ago.
fn change(planner: &mut Planner<'_>, action: Action) -> PlanResult<(Agent, NetworkSource)> {
    if let Some(why) = planner.facts.agent_image.refused {
        return Ok(wait_for(planner, AgentWait::Refused(why.to_owned())));
    }
    planner.add(action);
    Err(Decision::Wait(Next::Requeue))
}

fn source(image: &PreprovisioningImage) -> NetworkSource {
    match is_own(image) {
        // A configured image is the same for all hosts.
        // differs: `agent-image-network`. The Go manager gives the agent no network data then.
        true => NetworkSource::Secret,
        false => NetworkSource::Image,
    }
}

/// Whether this program builds the image.
pub(crate) fn is_own(image: &PreprovisioningImage) -> bool {
    let annotations = image.metadata.annotations.as_ref();
    annotations
        .and_then(|all| all.get(AGENT_IMAGE_BUILDER_ANNOTATION))
        .map(String::as_str)
        == Some(OWN_BUILDER)
}

/// Whether the image was made for an earlier host of this name.
pub(crate) fn is_of_former_host(image: &PreprovisioningImage, uid: &str) -> bool {
    let mut owners = image.metadata.owner_references.iter().flatten();
    owners.any(|owner| owner.kind == BareMetalHost::KIND && owner.uid != uid)
}

fn has_finalizer(metadata: &ObjectMeta) -> bool {
    let mut finalizers = metadata.finalizers.iter().flatten();
    finalizers.any(|one| one == AGENT_IMAGE_HOST_FINALIZER)
}

/// Lets an image go that is deleted and is not what the host asks for, or that nothing needs now, unless its machine boots it.
// differs: `agent-image-deleted`. The Go manager uses it for as long as the host exists.
fn release_deleted(planner: &mut Planner<'_>, image: &PreprovisioningImage) -> PlanResult<(Agent, NetworkSource)> {
    if let Some(action) = without_finalizer(image) {
        let node = planner.node()?;
        if !node.is_some_and(may_run_agent) {
            return change(planner, action);
        }
    }
    Ok(wait_for(planner, AgentWait::Pending(IS_DELETED.to_owned())))
}

fn without_finalizer(image: &PreprovisioningImage) -> Option<Action> {
    let mut wanted = image.clone();
    if let Some(finalizers) = &mut wanted.metadata.finalizers {
        finalizers.retain(|one| one != AGENT_IMAGE_HOST_FINALIZER);
    }
    patch(image, &wanted)
}

/// The change that the image needs, if any.
fn correction(
    planner: &Planner<'_>,
    image: &PreprovisioningImage,
    wanted: &PreprovisioningImageSpec,
) -> Option<Action> {
    let mut corrected = image.clone();
    let metadata = &mut corrected.metadata;
    if !has_finalizer(metadata) {
        let finalizers = metadata.finalizers.get_or_insert_default();
        finalizers.push(AGENT_IMAGE_HOST_FINALIZER.to_owned());
    }
    if let Some(labels) = &planner.host().metadata.labels {
        metadata.labels.get_or_insert_default().extend(labels.clone());
    }
    corrected.spec = wanted.clone();
    patch(image, &corrected)
}

/// Whether the stored image has what was sent: a webhook, or the definition of the kind, may take it back.
pub(crate) fn has_effect(sent: &Value, stored: &PreprovisioningImage) -> bool {
    let stored = document(stored);
    let mut repeated = stored.clone();
    apply(sent, &mut repeated);
    Changes::between(&stored, &repeated).is_empty()
}

/// What is said of a change that is taken back.
pub(crate) const TAKEN_BACK: &str =
    "the API server accepts a change and does not store it: a webhook, or the definition of the kind, takes it back";

fn patch(from: &PreprovisioningImage, to: &PreprovisioningImage) -> Option<Action> {
    let version = ResourceVersion::parse(from.metadata.resource_version.as_deref()?).ok()?;
    let patch = Changes::between(&document(from), &document(to)).main?;
    Some(Action::PatchAgentImage(patch.with_precondition(&version)))
}

fn new_image(planner: &Planner<'_>, wanted: &PreprovisioningImageSpec) -> PreprovisioningImage {
    let host = &planner.host().metadata;
    let owner = OwnerReference {
        api_version: "metal3.io/v1alpha1".to_owned(),
        kind: BareMetalHost::KIND.to_owned(),
        name: host.name.clone().unwrap_or_default(),
        uid: planner.uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    };
    let ramdisks = &planner.facts.settings.node.ramdisks;
    let builder = (AGENT_IMAGE_BUILDER_ANNOTATION.to_owned(), OWN_BUILDER.to_owned());
    let is_own = ramdisks.serves(wanted.architecture.as_deref().unwrap_or_default());
    let finalizers = [AGENT_IMAGE_HOST_FINALIZER]
        .into_iter()
        .chain(is_own.then_some(AGENT_IMAGE_FINALIZER));
    PreprovisioningImage {
        metadata: ObjectMeta {
            name: host.name.clone(),
            namespace: host.namespace.clone(),
            labels: host.labels.clone(),
            annotations: is_own.then(|| [builder].into()),
            owner_references: Some(vec![owner]),
            finalizers: Some(finalizers.map(str::to_owned).collect()),
            ..ObjectMeta::default()
        },
        spec: wanted.clone(),
        ..PreprovisioningImage::default()
    }
}
