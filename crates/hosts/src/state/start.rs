//! Hosts that are new, and hosts without a BMC.

use metal3_api::metal3::v1alpha1::{OperationalStatus, ProvisioningState as State};

use super::graph::Why;
use crate::action::{Count, Wait};
use crate::names::reason;
use crate::plan::{End, Pass};

pub(super) fn run(pass: &mut Pass<'_>) -> Result<End, End> {
    if !pass.host().is_unmanaged() {
        pass.draft.status.operational_status = OperationalStatus::Ok;
        pass.count(Count::One("metal3_host_registration_required_total"));
        return Ok(End::Go(Why::Managed));
    }
    if *pass.state() == State::Unmanaged {
        return Ok(End::Wait(Wait::OnUser("no BMC is given")));
    }
    pass.draft.status.operational_status = OperationalStatus::Discovered;
    pass.tell(
        reason::DISCOVERED,
        "the host has no BMC; set spec.bmc to have it managed",
    );
    pass.count(Count::One("metal3_host_unmanaged_total"));
    Ok(End::Go(Why::Unmanaged))
}
