//! Standing aside: Ironic forgets the node, the machine goes on, the object stays.

use metal3_api::metal3::v1alpha1::{OperationalStatus, ProvisioningState as State};

use crate::action::Wait;
use crate::deletion::forget_node;
use crate::facts::{NodeSeen, NodeSight, Read};
use crate::plan::{End, Pass};

/// Ends the decision for a host that is detached, or is to be.
pub(crate) fn stand_aside(pass: &mut Pass<'_>) -> Result<(), End> {
    let is_detached = pass.host().status.operational_status == OperationalStatus::Detached;
    let Some(request) = pass.host().detach_request() else {
        if is_detached {
            let has_error = pass.host().status.error_type.is_some();
            pass.draft.status.operational_status = if has_error {
                OperationalStatus::Error
            } else {
                OperationalStatus::Ok
            };
            return Err(End::Wait(Wait::Again));
        }
        return Ok(());
    };
    let is_at_rest = matches!(
        pass.state(),
        State::Provisioned | State::ExternallyProvisioned | State::Available | State::Ready
    );
    if *pass.state() == State::Deleting {
        return Ok(());
    }
    if is_detached {
        return Err(End::Wait(Wait::OnUser("the host is detached")));
    }
    if !is_at_rest && !request.force {
        // It is detached once it is at rest; until then it goes on.
        return Ok(());
    }
    match pass.facts.node {
        NodeSight::Unknown | NodeSight::Found(_, NodeSeen::Stale) => return Err(End::read(Read::Node)),
        NodeSight::Found(node, _) => forget_node(pass, node, request.force)?,
        NodeSight::Absent | NodeSight::Foreign { .. } => {}
    }
    pass.draft.status.operational_status = OperationalStatus::Detached;
    Err(End::Wait(Wait::OnUser("the host is detached")))
}
