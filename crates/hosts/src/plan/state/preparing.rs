//! `preparing`: makes the RAID volumes, changes the BIOS settings, updates the firmware, selects the root device and creates the
//! ports.

use super::cleaning;
use super::firmware;
use super::graph::Trigger;
use super::host_ports::ensure_ports;
use super::register::{ensure_registered, invalid};
use super::shared::require_idle;
use super::volumes::{self, root_device_hints};
use crate::names::reason;
use crate::node::profile;
use crate::plan::planner::{Decision, PlanResult, Planner};

pub(super) fn run(planner: &mut Planner<'_>) -> PlanResult {
    let node = ensure_registered(planner)?;
    volumes::observe_cleaning(planner, node)?;
    firmware::settle(planner, node)?;
    volumes::require_known(planner, node)?;
    require_idle(planner, node)?;
    ensure_ports(planner, node)?;
    cleaning::clean(planner, node)?;
    let hints = root_device_hints(planner)?;
    planner.draft.status.provisioning.root_device_hints = hints;
    if planner.host().status.hardware_profile.is_none() {
        let chosen = profile::choose(planner.host()).map_err(invalid)?;
        planner.draft.status.hardware_profile = Some(chosen.name().to_owned());
        planner.record_event(reason::PROFILE_SET, format!("Hardware profile set: {}", chosen.name()));
    }
    Ok(Decision::ChangeState(Trigger::Prepared))
}
