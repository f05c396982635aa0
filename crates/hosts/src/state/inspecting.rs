//! The hardware is looked at.

use metal3_api::metal3::names::{INSPECT_ANNOTATION, INSPECTION_DISABLED, REBOOT_ANNOTATION};
use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState as S;

use super::graph::Why;
use super::register::registered;
use super::{operable, order, said, turn, unexpected};
use crate::action::Wait;
use crate::error::Failure;
use crate::facts::{Read, Sight};
use crate::names::reason;
use crate::node::inventory;
use crate::object::{annotate_without, record_hardware};
use crate::plan::{End, Pass};
use crate::status;

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    if pass.host().inspection_disabled() {
        pass.tell(reason::INSPECTION_SKIPPED, "inspection is disabled");
        return Ok(End::Go(Why::NotInspected));
    }
    let node = registered(pass)?;
    match &node.provision_state {
        // The wish stays until the inspection that it asks for has begun: an abort that nobody remembers would look like
        // a failure.
        S::InspectWait if is_forced(pass) => Ok(order(pass, node, Transition::Abort)),
        S::Inspecting if is_forced(pass) => Ok(End::Wait(Wait::OnNode(
            "Ironic is at work, and then it is asked to abort",
        ))),
        S::InspectFailed if is_forced(pass) => start(pass, node),
        S::Inspecting | S::InspectWait => {
            drop_wishes(pass);
            Ok(End::Wait(Wait::OnNode("Ironic looks at the hardware")))
        }
        S::Available => Ok(order(pass, node, Transition::Manage)),
        S::InspectFailed => {
            let error = match pass.told(ErrorType::Inspection) {
                Some(told) => told.to_owned(),
                None => said(pass, node)?,
            };
            pass.attempt(&Failure::attempt(ErrorType::Inspection, error))?;
            start(pass, node)
        }
        S::Manageable => {
            operable(pass, node)?;
            match pass.facts.inventory {
                _ if is_asked(pass) => start(pass, node),
                Sight::Unknown => Err(End::read(Read::Inventory)),
                Sight::Absent => start(pass, node),
                Sight::Found(found) => done(pass, found),
            }
        }
        S::Verifying | S::Cleaning | S::CleanWait | S::Adopting => Ok(End::Wait(Wait::OnNode("Ironic is at work"))),
        S::CleanFailed | S::AdoptFailed => {
            let error = node.last_error.as_deref().unwrap_or("no details");
            pass.attempt_on_failed(Failure::attempt(ErrorType::Inspection, error))?;
            Ok(super::recover(pass, node))
        }
        _ => Err(unexpected(
            pass,
            node,
            "If nothing needs what runs there, undeploy the node in Ironic; else set spec.externallyProvisioned",
        )),
    }
}

/// Whether another inspection is asked for, whatever is known already.
pub(super) fn is_asked(pass: &Pass<'_>) -> bool {
    let asks = |value: &str| value != INSPECTION_DISABLED;
    pass.host().annotation(INSPECT_ANNOTATION).is_some_and(asks)
}

/// Whether the agent that is waited for is to be booted anew. An annotation of a client's own, which it takes away itself,
/// asks for no such thing: it would be so for ever.
pub(super) fn is_forced(pass: &Pass<'_>) -> bool {
    // differs: `host-forced-reboot-once`. The Go manager aborts as long as any of them is there.
    let mut requests = pass.host().reboot_requests();
    requests.any(|(name, request)| name == REBOOT_ANNOTATION && request.is_ok_and(|request| request.force))
}

/// What was asked for is under way.
fn drop_wishes(pass: &mut Pass<'_>) {
    annotate_without(pass, INSPECT_ANNOTATION);
    annotate_without(pass, REBOOT_ANNOTATION);
}

fn start(pass: &mut Pass<'_>, node: &Node) -> Result<End, End> {
    turn(pass)?;
    drop_wishes(pass);
    status::clear_of(&mut pass.draft.status, ErrorType::Inspection);
    pass.tell(reason::INSPECTION_STARTED, "Hardware inspection started");
    Ok(order(pass, node, Transition::Inspect))
}

fn done(pass: &mut Pass<'_>, found: &Inspection) -> Result<End, End> {
    let details = inventory::details(found);
    record_hardware(pass, &details)?;
    pass.draft.status.hardware = Some(details);
    pass.tell(reason::INSPECTION_COMPLETE, "Hardware inspection completed");
    Ok(End::Go(Why::Inspected))
}
