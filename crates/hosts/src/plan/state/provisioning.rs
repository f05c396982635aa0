//! `provisioning`: an image is deployed, or a deploy step of the agent installs the system.
//!
//! The node is cleaned if needed, configured, validated and deployed. A failed deployment is removed at once; the
//! backoff comes before the next attempt.

use std::collections::BTreeSet;

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_api::metal3::names::host_error::NOT_IN_IMAGE_HOSTS;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, Image, ProvisioningState as State};
use metal3_domain::image::ImageField;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use super::deployed::{done, failed, reset_error_count};
use super::graph::Trigger;
use super::inspecting::is_reboot_forced;
use super::register::ensure_registered;
use super::registry_login::registry_login;
use super::service::end_failed_service;
use super::shared::{
    clear_error, failure_reason, recover, require_operable, require_recoverable, require_slot, unexpected_state,
    wait_for_agent, wait_for_cleaning, wait_for_service,
};
use super::volumes::root_device_hints;
use crate::action::{Count, Impact, Request};
use crate::facts::{Read, Secret};
use crate::names::reason;
use crate::node::cleaning::is_cleaned;
use crate::node::{self, Deployment, Instance, InstanceOwner, InvalidHost, config_drive, hints, kept, raid};
use crate::plan::agent_wait::require_ready;
use crate::plan::error::Failure;
use crate::plan::object::remove_annotation;
use crate::plan::ownership::has_no_other_instance;
use crate::plan::planner::{Decision, PlanResult, Planner};
use crate::plan::safety::{disruptive_transition, require_live_reads, require_ownership};
use crate::plan::{status, wait};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    let asked = Deployment::asked(planner.host());
    if asked.is_none() {
        return Ok(Decision::ChangeState(Trigger::Cancelled));
    }
    let instance = instance(planner, &asked)?;
    let node = ensure_registered(planner)?;
    if !is_begun(&node.provision_state) {
        require_allowed_image(planner, asked.image.as_ref())?;
    }
    match &node.provision_state {
        S::Manageable | S::Available if raid::lacks_recorded(planner.host(), node) => lost_volumes(planner, node),
        S::Manageable => {
            require_operable(planner, node)?;
            require_agent(planner, &instance)?;
            require_slot(planner)?;
            disruptive_transition(planner, node, Transition::Provide, why(&asked))?;
            clear_error(planner);
            Ok(Decision::Wait(wait::on_node("Ironic is cleaning the machine")))
        }
        S::CleanFailed => {
            planner.retry(&cleaning_failure(planner, node)?)?;
            recover(planner, node)
        }
        S::InspectFailed | S::AdoptFailed => recover(planner, node),
        S::Available => deploy(planner, node, &asked, &instance),
        S::DeployFailed => failed(planner, node, &asked, &instance),
        S::Active => {
            planner.require_fresh_node()?;
            done(planner, node, &asked, &instance)
        }
        S::WaitCallBack if is_reboot_forced(planner) => restart_deployment(planner, node, &asked),
        // The annotation stays until the restart is possible.
        S::Deploying if is_reboot_forced(planner) => Ok(Decision::Wait(wait::on_node(
            "Ironic is busy; the deployment is restarted next",
        ))),
        S::Deleting => {
            remove_annotation(planner, REBOOT_ANNOTATION);
            clear_error(planner);
            Ok(Decision::Wait(wait::on_node("Ironic is removing the deployment")))
        }
        S::CleanWait | S::WaitCallBack => {
            // The deployment powers the machine on, or is restarted already.
            remove_annotation(planner, REBOOT_ANNOTATION);
            wait_for_cleaning(planner, node)
        }
        S::Cleaning | S::Deploying | S::Adopting => {
            remove_annotation(planner, REBOOT_ANNOTATION);
            Ok(Decision::Wait(wait::on_node("Ironic is busy")))
        }
        S::InspectWait => wait_for_agent(planner, node, "Ironic is inspecting the hardware"),
        S::Inspecting => Ok(Decision::Wait(wait::on_node("Ironic is inspecting the hardware"))),
        // A service of another manager begins on an active node: the deployment has ended.
        S::Servicing | S::ServiceWait => wait_for_service(planner, node),
        S::ServiceFailed => end_failed_service(planner, node),
        S::Error => Ok(removal_failed(planner, node)),
        _ => Err(unexpected_state(
            planner,
            node,
            "End the hold or the rescue in Ironic, so that the node continues",
        )),
    }
}

/// Without the cleaning nothing boots the agent before a live image.
fn require_agent(planner: &mut Planner<'_>, instance: &Instance) -> PlanResult<()> {
    match is_cleaned(planner.host()) || !instance.is_live_iso() {
        true => require_ready(planner),
        false => Ok(()),
    }
}

fn removal_failed(planner: &mut Planner<'_>, node: &Node) -> Decision {
    let error = node.last_error.as_deref().unwrap_or("deprovisioning failed");
    reset_error_count(planner);
    Decision::FailAndChangeState(Failure::retryable(ErrorType::Provisioning, error), Trigger::Failed)
}

const fn why(asked: &Deployment) -> &'static str {
    match asked.method {
        Some(_) => "spec.customDeploy",
        None => "spec.image",
    }
}

/// Ends a deployment that has not begun on a node without the volumes that were made: the root device may be one of them, and
/// without it Ironic writes the image to a disk of its choice. The host gets the volumes when it is prepared again.
fn lost_volumes(planner: &mut Planner<'_>, node: &Node) -> PlanResult {
    require_operable(planner, node)?;
    planner.require_fresh_node()?;
    // differs: `host-raid-lost`. The Go manager deploys.
    let message = "Ironic knows nothing of the software RAID volumes of this host any more, so the image is not deployed; the host \
                   is prepared again first";
    reset_error_count(planner);
    Ok(Decision::FailAndChangeState(
        Failure::retryable(ErrorType::Provisioning, message),
        Trigger::Failed,
    ))
}

/// Restarts a deployment that waits for its agent, for a forced reboot. Nothing that it installs runs yet; the node is
/// cleaned and deployed again.
fn restart_deployment(planner: &mut Planner<'_>, node: &Node, asked: &Deployment) -> PlanResult {
    require_allowed_image(planner, asked.image.as_ref())?;
    require_operable(planner, node)?;
    disruptive_transition(planner, node, Transition::Delete, "a forced reboot")?;
    remove_annotation(planner, REBOOT_ANNOTATION);
    Ok(Decision::Wait(wait::on_node("Ironic is removing the deployment")))
}

/// The recorded failure of a cleaning, or a new one, unless an operator keeps Ironic from another.
pub(super) fn cleaning_failure(planner: &Planner<'_>, node: &Node) -> PlanResult<Failure> {
    require_recoverable(planner, node)?;
    let message = match planner.recorded_error(ErrorType::Provisioning) {
        Some(recorded) => recorded.to_owned(),
        None => format!("Cleaning failed: {}", failure_reason(planner, node)?),
    };
    Ok(Failure::retryable(ErrorType::Provisioning, message))
}

/// Whether Ironic already deploys, or did.
const fn is_begun(state: &S) -> bool {
    matches!(
        state,
        S::Deploying
            | S::WaitCallBack
            | S::DeployFailed
            | S::Active
            | S::Servicing
            | S::ServiceWait
            | S::ServiceFailed
            | S::Deleting
            | S::Error
    )
}

/// Requires that the administrator allows the hosts that Ironic would download the image and its checksum from. The flag
/// may be newer than the host, so it is checked before each request that begins a deployment or ends one for this image.
pub(super) fn require_allowed_image(planner: &Planner<'_>, image: Option<&Image>) -> PlanResult<()> {
    let Some(image) = image else { return Ok(()) };
    // differs: `destinations-allowed`. The Go manager allows any host.
    let field = match planner
        .facts
        .settings
        .image_hosts
        .forbidden_image_field(&image.fields())
    {
        None => return Ok(()),
        Some(ImageField::Checksum) => "checksum",
        Some(_) => "url",
    };
    let message = format!(
        "spec.image.{field} names a host that {NOT_IN_IMAGE_HOSTS}, so the image is not deployed and the machine is \
         not changed; use an image of an allowed host, or ask the administrator of this program to add the host to the flag"
    );
    let kind = match planner.state() {
        State::Provisioned | State::ExternallyProvisioned => ErrorType::ProvisionedRegistration,
        _ => ErrorType::Provisioning,
    };
    Err(Decision::reject(kind, message))
}

fn invalid(error: InvalidHost) -> Decision {
    Decision::reject(ErrorType::Provisioning, error.to_string())
}

pub(super) fn instance(planner: &Planner<'_>, deployment: &Deployment) -> PlanResult<Instance> {
    Instance::of(planner.host(), deployment, &planner.facts.settings.node).map_err(invalid)
}

fn deploy(planner: &mut Planner<'_>, node: &Node, asked: &Deployment, instance: &Instance) -> PlanResult {
    require_operable(planner, node)?;
    if planner.host().annotation(REBOOT_ANNOTATION).is_some() {
        // The deployment powers the machine on. A write of the host postpones the write of its status, so it comes
        // first.
        remove_annotation(planner, REBOOT_ANNOTATION);
        return Ok(Decision::Wait(Next::Requeue));
    }
    if matches!(instance.owner_of(node), InstanceOwner::Other(_)) && planner.rules.own_instance() {
        require_ownership(planner, node, has_no_other_instance(planner, node))?;
        // That of this host from before a move. Ironic does not replace it in one request.
        require_live_reads(planner, Impact::Erases)?;
        planner.request(Request::PatchNode(node.uuid.clone(), node::instance::release(node)));
        return Ok(Decision::Wait(Next::Requeue));
    }
    if !instance.is_live_iso() {
        require_ready(planner)?;
    }
    record_attempt(planner, asked)?;
    let login = registry_login(planner, asked.image.as_ref())?;
    let drive = config_drive(planner, instance)?;
    require_live_reads(planner, Impact::Erases)?;
    let patch = instance.deployed_from(login.as_ref(), node).patch;
    if !patch.is_empty() {
        planner.request(Request::PatchNode(node.uuid.clone(), patch));
        return Ok(Decision::Wait(Next::Requeue));
    }
    match planner.facts.validation {
        Observed::Unknown(_) => return Err(Decision::read(Read::Validation)),
        Observed::Absent => {}
        Observed::Present(validation) => {
            let errors = validation.deploy_errors();
            if !errors.is_empty() {
                let message = format!("host validation error: {}", errors.join("; "));
                return Err(planner.fail_with_backoff(Failure::retryable(ErrorType::Provisioning, message)));
            }
        }
    }
    let deploy = Transition::Deploy {
        config_drive: drive,
        steps: instance.steps(),
    };
    require_slot(planner)?;
    disruptive_transition(planner, node, deploy, why(asked))?;
    status::clear_kind(&mut planner.draft.status, ErrorType::Provisioning);
    planner.record_event(reason::PROVISIONING_STARTED, "Image provisioning started");
    Ok(Decision::Wait(wait::on_node("Ironic is deploying the image")))
}

/// Records the image, root device and boot mode of the spec before they are written to the node. Nothing is deployed yet,
/// and the edit that changed the image may exclude the former disk.
fn record_attempt(planner: &mut Planner<'_>, asked: &Deployment) -> PlanResult<()> {
    // differs: `host-deployment-of-spec`. The Go manager takes the image from the spec, and the rest from the status.
    let prepared = &planner.host().status.provisioning.root_device_hints;
    let root_device = if raid::differ(planner.host()) && kept::asked(planner.host()).is_empty() {
        // Other volumes are not made yet, so the root device of the spec may not exist. No volumes are made next to kept disks.
        prepared.clone()
    } else {
        root_device_hints(planner)?
    };
    // A value that Ironic cannot get is not recorded: the user could not replace it any more.
    root_device
        .as_ref()
        .map(hints::to_ironic)
        .transpose()
        .map_err(invalid)?;
    let (recorded, boot_mode) = (&planner.host().status, planner.host().boot_mode());
    let is_recorded = recorded.last_attempted_image == asked.image
        && recorded.provisioning.root_device_hints == root_device
        && recorded.provisioning.boot_mode.is_none_or(|mode| mode == boot_mode);
    if is_recorded {
        return Ok(());
    }
    let status = &mut planner.draft.status;
    status.last_attempted_image.clone_from(&asked.image);
    status.provisioning.root_device_hints = root_device;
    status.provisioning.boot_mode = Some(boot_mode);
    Err(Decision::Wait(Next::Requeue))
}

fn config_drive(
    planner: &mut Planner<'_>,
    instance: &Instance,
) -> PlanResult<metal3_ironic::calls::provision::ConfigDrive> {
    let host: &BareMetalHost = planner.host();
    let named = config_drive::references(host).map_err(invalid)?;
    let facts = planner.facts;
    let agent = named.agent_network.filter(|_| named.network_data.is_none());
    let (mut reads, mut missing) = (BTreeSet::new(), None);
    let mut values = |name: Option<&str>, observed: &Observed<Secret<'_>>, read: Read| match (name, observed) {
        (None, _) => {}
        (Some(_), Observed::Unknown(_) | Observed::Present(Secret { values: None, .. })) => {
            reads.insert(read);
        }
        (Some(name), Observed::Absent) => missing = Some(name.to_owned()),
        (Some(_), Observed::Present(_)) => {}
    };
    if !instance.is_live_iso() {
        values(named.user_data, &facts.user_data, Read::UserData);
        values(named.network_data, &facts.network_data, Read::NetworkData);
        values(named.meta_data, &facts.meta_data, Read::MetaData);
        values(agent, &facts.agent_network, Read::AgentNetwork);
    }
    if let Some(name) = missing {
        return Err(Decision::Fail(Failure::until(
            ErrorType::Provisioning,
            format!("Secret {name} for the config drive does not exist; create it"),
            wait::on_secret(&name),
        )));
    }
    if !reads.is_empty() {
        return Err(Decision::Read(reads));
    }
    let parts = config_drive::Parts {
        user_data: named.user_data.and_then(|_| facts.user_data.present()?.values),
        network_data: named.network_data.and_then(|_| facts.network_data.present()?.values),
        meta_data: named.meta_data.and_then(|_| facts.meta_data.present()?.values),
        agent_network: agent.and_then(|_| facts.agent_network.present()?.values),
    };
    config_drive::build(host, &parts, instance.is_live_iso()).map_err(|error| {
        if let InvalidHost::NoValue { key, .. } = &error {
            planner.count(Count::ConfigData(key));
        }
        invalid(error)
    })
}
