//! The host runs an image: its power is kept, and its node is taken over anew where Ironic lost it.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType};
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Why;
use super::register::registered;
use super::{operable, order, unexpected};
use crate::action::{Request, Wait};
use crate::brakes::{may_tear_down, transition};
use crate::error::Failure;
use crate::names::reason;
use crate::node::Instance;
use crate::plan::{End, Pass};
use crate::{power, status};

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    if is_cancelled(pass.host()) {
        may_tear_down(pass)?;
        if !pass.rules.record_first {
            at_once(pass)?;
        }
        return Ok(End::Go(Why::Cancelled));
    }
    steady(pass)
}

/// What a program does that asks first and records then. Only without the rule that forbids it.
fn at_once(pass: &mut Pass<'_>) -> Result<(), End> {
    let node = registered(pass)?;
    if node.provision_state == S::Active {
        transition(pass, node, Transition::Delete, "spec.image")?;
    }
    Ok(())
}

/// Whether what runs is no longer what is asked for. Only the URL of an image tells: a new checksum changes nothing on
/// a machine that runs.
pub(crate) fn is_cancelled(host: &BareMetalHost) -> bool {
    let method = |deploy: &Option<metal3_api::metal3::v1alpha1::CustomDeploy>| {
        deploy
            .as_ref()
            .map(|deploy| deploy.method.clone())
            .filter(|method| !method.is_empty())
    };
    let (asked, runs) = (
        method(&host.spec.custom_deploy),
        method(&host.status.provisioning.custom_deploy),
    );
    let url = host.spec.image.as_ref().map_or("", |image| &image.url);
    let deployed = host.status.provisioning.image.url.as_str();
    match (asked, runs) {
        (Some(asked), Some(runs)) if asked != runs => true,
        (Some(_), _) => !deployed.is_empty() && url != deployed,
        (None, Some(_)) => true,
        (None, None) => url.is_empty() || (!deployed.is_empty() && url != deployed),
    }
}

/// Keeps a machine that runs something as it is.
pub(super) fn steady(pass: &mut Pass<'_>) -> Result<End, End> {
    let node = registered(pass)?;
    match &node.provision_state {
        S::Active => {
            operable(pass, node)?;
            status::clear_of(&mut pass.draft.status, ErrorType::ProvisionedRegistration);
            power::settle(pass, node)
        }
        S::Manageable if pass.rules.adopt_the_provisioned => adopt(pass, node),
        S::Manageable => {
            // Only without the rule: what a program does that takes a node without a system for one to be cleaned.
            transition(pass, node, Transition::Provide, "nothing runs on the node")?;
            Ok(End::Wait(Wait::OnNode("Ironic cleans the machine")))
        }
        S::Adopting => Ok(End::Wait(Wait::OnNode("Ironic takes the machine over"))),
        S::AdoptFailed => {
            let error = node.last_error.as_deref().unwrap_or("no details");
            let message = format!("Host adoption failed: {error}");
            pass.attempt_on_failed(Failure::attempt(ErrorType::ProvisionedRegistration, message))?;
            adopt(pass, node)
        }
        _ => Err(unexpected(
            pass,
            node,
            "If the machine still runs what it should, bring the node to manageable in Ironic: it is then taken over as it \
             is. To deploy it anew, remove spec.image and set it again",
        )),
    }
}

/// Has Ironic take the machine over as it runs. It is told the image first, since it does not take over a machine that
/// boots an ISO without knowing which.
fn adopt(pass: &mut Pass<'_>, node: &Node) -> Result<End, End> {
    let host = pass.host();
    let runs = &host.status.provisioning.image;
    let image = if runs.url.is_empty() {
        host.spec.image.as_ref()
    } else {
        Some(runs)
    };
    let settings = &pass.facts.settings.node;
    let instance = image.and_then(|image| Instance::of(host, image, settings).ok());
    let changes = instance.map(|instance| instance.changes(node).patch);
    if let Some(patch) = changes.filter(|patch| !patch.is_empty()) {
        pass.ask(Request::PatchNode(node.uuid.clone(), patch));
    }
    pass.tell(reason::REGISTERED, "Ironic is to take over the machine as it runs");
    Ok(order(pass, node, Transition::Adopt))
}
