//! An image is deployed.
//!
//! The node is cleaned if it was not, told what to deploy, checked, and deployed. What went wrong is removed at once;
//! the pause comes before the next attempt.

use std::collections::BTreeSet;

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, Image};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Why;
use super::inspecting::is_forced;
use super::register::registered;
use super::{operable, order, recover, said, turn, unexpected, went_on};
use crate::action::{Harm, Request, Wait};
use crate::brakes::{look, transition};
use crate::error::Failure;
use crate::facts::{Read, Secret, Sight};
use crate::names::reason;
use crate::node::{Instance, Occupant, config_drive};
use crate::object::annotate_without;
use crate::plan::{End, Pass};
use crate::status;

const WHY: &str = "spec.image";

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    let Some(image) = pass.host().spec.image.as_ref().filter(|image| !image.url.is_empty()) else {
        return Ok(End::Go(Why::Cancelled));
    };
    let instance = instance(pass, image)?;
    let node = registered(pass)?;
    match &node.provision_state {
        S::Manageable => {
            operable(pass, node)?;
            turn(pass)?;
            transition(pass, node, Transition::Provide, WHY)?;
            went_on(pass);
            Ok(End::Wait(Wait::OnNode("Ironic cleans the machine")))
        }
        S::CleanFailed => {
            pass.attempt(&cleaning_failed(pass, node)?)?;
            Ok(recover(pass, node))
        }
        S::InspectFailed | S::AdoptFailed => Ok(order(pass, node, Transition::Manage)),
        S::Available => {
            operable(pass, node)?;
            deploy(pass, node, image, &instance)
        }
        S::DeployFailed => failed(pass, node, &instance),
        S::Active => {
            pass.abreast()?;
            done(pass, node, image, &instance)
        }
        S::WaitCallBack if is_forced(pass) => begin_anew(pass, node),
        // The wish stays until it can be met.
        S::Deploying if is_forced(pass) => Ok(End::Wait(Wait::OnNode(
            "Ironic is at work, and then the deployment is begun anew",
        ))),
        S::Deleting => {
            annotate_without(pass, REBOOT_ANNOTATION);
            went_on(pass);
            Ok(End::Wait(Wait::OnNode("Ironic tears down")))
        }
        S::Cleaning | S::CleanWait | S::Deploying | S::WaitCallBack | S::Adopting => {
            // The machine is started on the way, or is begun anew already.
            annotate_without(pass, REBOOT_ANNOTATION);
            Ok(End::Wait(Wait::OnNode("Ironic is at work")))
        }
        S::Inspecting | S::InspectWait => Ok(End::Wait(Wait::OnNode("Ironic looks at the hardware"))),
        S::Error => {
            let error = node.last_error.as_deref().unwrap_or("tear-down failed");
            count_deployments_alone(pass);
            Ok(End::FailAndGo(
                Failure::attempt(ErrorType::Provisioning, error),
                Why::Failed,
            ))
        }
        _ => Err(unexpected(pass, node, "Bring the node to available in Ironic")),
    }
}

/// For a forced reboot: the agent that is waited for is given up, and the deployment with it. Nothing of the image runs
/// yet; the node is cleaned and gets it once more.
fn begin_anew(pass: &mut Pass<'_>, node: &Node) -> Result<End, End> {
    operable(pass, node)?;
    transition(pass, node, Transition::Delete, "a forced reboot")?;
    annotate_without(pass, REBOOT_ANNOTATION);
    Ok(End::Wait(Wait::OnNode("Ironic tears down")))
}

/// The failure of a cleaning, as it is told or to be told.
pub(super) fn cleaning_failed(pass: &Pass<'_>, node: &Node) -> Result<Failure, End> {
    let message = match pass.told(ErrorType::Provisioning) {
        Some(told) => told.to_owned(),
        None => format!("Cleaning failed: {}", said(pass, node)?),
    };
    Ok(Failure::attempt(ErrorType::Provisioning, message))
}

fn instance(pass: &Pass<'_>, image: &Image) -> Result<Instance, End> {
    Instance::of(pass.host(), image, &pass.facts.settings.node)
        .map_err(|error| End::Fail(Failure::standing(ErrorType::Provisioning, error.to_string())))
}

fn deploy(pass: &mut Pass<'_>, node: &Node, image: &Image, instance: &Instance) -> Result<End, End> {
    if pass.host().annotation(REBOOT_ANNOTATION).is_some() {
        // The machine is started on the way. A change of the host puts that of its status off, so it comes first.
        annotate_without(pass, REBOOT_ANNOTATION);
        return Ok(End::Wait(Wait::Again));
    }
    if let Occupant::Another(uuid) = instance.occupies(node)
        && pass.rules.own_instance
    {
        return Err(pass.fails(Failure::attempt(
            ErrorType::Provisioning,
            format!(
                "in Ironic the node serves instance {uuid}; it is left as it is. If nothing needs that, remove instance_uuid \
                 from node {}",
                node.uuid
            ),
        )));
    }
    if pass.host().status.last_attempted_image.as_ref() != Some(image) {
        pass.draft.status.last_attempted_image = Some(image.clone());
        return Ok(End::Wait(Wait::Again));
    }
    let drive = config_drive(pass, instance)?;
    look(pass, Harm::Erases)?;
    let patch = instance.changes(node).patch;
    if !patch.is_empty() {
        pass.ask(Request::PatchNode(node.uuid.clone(), patch));
        return Ok(End::Wait(Wait::Again));
    }
    match pass.facts.validation {
        Sight::Unknown => return Err(End::read(Read::Validation)),
        Sight::Absent => {}
        Sight::Found(verdict) => {
            let against = verdict.against_deploying();
            if !against.is_empty() {
                let message = format!("host validation error: {}", against.join("; "));
                return Err(pass.fails(Failure::attempt(ErrorType::Provisioning, message)));
            }
        }
    }
    let deploy = Transition::Deploy {
        config_drive: drive,
        steps: Vec::new(),
    };
    turn(pass)?;
    transition(pass, node, deploy, WHY)?;
    status::clear_of(&mut pass.draft.status, ErrorType::Provisioning);
    pass.tell(reason::PROVISIONING_STARTED, "Image provisioning started");
    Ok(End::Wait(Wait::OnNode("Ironic deploys the image")))
}

/// What the machine is told at its first start.
fn config_drive(pass: &Pass<'_>, instance: &Instance) -> Result<metal3_ironic::calls::provision::ConfigDrive, End> {
    let told = |error: crate::node::Refusal| End::Fail(Failure::standing(ErrorType::Provisioning, error.to_string()));
    let host: &BareMetalHost = pass.host();
    let named = config_drive::references(host).map_err(told)?;
    let facts = pass.facts;
    let agent = named.agent_network.filter(|_| named.network_data.is_none());
    let (mut reads, mut missing) = (BTreeSet::new(), None);
    let mut values = |name: Option<&str>, sight: Sight<Secret<'_>>, read: Read| match (name, sight) {
        (None, _) => {}
        (Some(_), Sight::Unknown | Sight::Found(Secret { values: None, .. })) => {
            reads.insert(read);
        }
        (Some(name), Sight::Absent) => missing = Some(name.to_owned()),
        (Some(_), Sight::Found(_)) => {}
    };
    if !instance.is_live_iso() {
        values(named.user_data, facts.user_data, Read::UserData);
        values(named.network_data, facts.network_data, Read::NetworkData);
        values(named.meta_data, facts.meta_data, Read::MetaData);
        values(agent, facts.agent_network, Read::AgentNetwork);
    }
    if let Some(name) = missing {
        return Err(End::Fail(Failure::until(
            ErrorType::Provisioning,
            format!("Secret {name}, which the host names for its first start, does not exist; create it"),
            Wait::OnSecret(name),
        )));
    }
    if !reads.is_empty() {
        return Err(End::Read(reads));
    }
    let parts = config_drive::Parts {
        user_data: named.user_data.and_then(|_| facts.user_data.found()?.values),
        network_data: named.network_data.and_then(|_| facts.network_data.found()?.values),
        meta_data: named.meta_data.and_then(|_| facts.meta_data.found()?.values),
        agent_network: agent.and_then(|_| facts.agent_network.found()?.values),
    };
    config_drive::build(host, &parts, instance.is_live_iso()).map_err(told)
}

fn failed(pass: &mut Pass<'_>, node: &Node, instance: &Instance) -> Result<End, End> {
    let said = said(pass, node)?;
    let image = pass.host().spec.image.as_ref();
    let what = if instance.is_written_on(node) {
        describe(image)
    } else {
        "of an image that was asked for before".to_owned()
    };
    let message = format!("Image provisioning failed {what}: {said}");
    count_deployments_alone(pass);
    // differs: `host-cleanup-at-once`. The Go manager backs off first.
    let fails = &mut pass.draft.status.provisioning_fail_count;
    *fails = fails.saturating_add(1);
    Ok(End::FailAndGo(
        Failure::attempt(ErrorType::Provisioning, message),
        Why::Failed,
    ))
}

/// Errors from before, of another image or of cleaning, are no attempts to remove what comes to be removed now: there
/// only what exceeds the failed deployments counts.
fn count_deployments_alone(pass: &mut Pass<'_>) {
    let status = &mut pass.draft.status;
    status.error_count = status.provisioning_fail_count.max(0);
}

fn describe(image: Option<&Image>) -> String {
    let Some(image) = image else { return String::new() };
    match &image.checksum {
        Some(checksum) => format!("(url: {}, checksum: {checksum})", image.url),
        None => format!("(url: {})", image.url),
    }
}

fn done(pass: &mut Pass<'_>, node: &Node, image: &Image, asked: &Instance) -> Result<End, End> {
    if let Occupant::Another(uuid) = asked.occupies(node)
        && pass.rules.own_instance
    {
        return Err(unexpected(
            pass,
            node,
            &format!("It serves instance {uuid}, which is not this host"),
        ));
    }
    let attempted = pass.host().status.last_attempted_image.clone();
    let before = attempted.filter(|before| instance(pass, before).is_ok_and(|before| before.is_written_on(node)));
    let deployed = if asked.is_written_on(node) || !pass.rules.match_image {
        image.clone()
    } else if let Some(before) = before {
        // differs: `host-image-as-deployed`. The host runs the former image, and the next pass sees that.
        before
    } else {
        return Err(unexpected(
            pass,
            node,
            "It runs an image that this host did not ask for. To have it replaced, remove spec.image and set it again",
        ));
    };
    pass.draft.status.provisioning.image = deployed;
    pass.draft.status.provisioning_fail_count = 0;
    // The machine was just started.
    annotate_without(pass, REBOOT_ANNOTATION);
    pass.tell(reason::PROVISIONING_COMPLETE, "Image provisioning completed");
    Ok(End::Go(Why::Provisioned))
}
