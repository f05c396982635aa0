//! What the HostUpdatePolicy of a host lets a reboot of its running machine change.

use metal3_api::metal3::v1alpha1::{HostUpdatePolicySpec, ProvisioningState as State, UpdateMoment};
use metal3_ironic::model::node::Node;

use crate::node::{bios, firmware};
use crate::plan::planner::Planner;

/// What a reboot may change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Settings of the BIOS.
    pub(crate) settings: bool,
    /// Updates of the firmware.
    pub(crate) updates: bool,
}

impl Allowed {
    fn of(policy: &HostUpdatePolicySpec) -> Self {
        let at_reboots = |moment| moment == Some(UpdateMoment::OnReboot);
        Self {
            settings: at_reboots(policy.firmware_settings),
            updates: at_reboots(policy.firmware_updates),
        }
    }
}

/// What the known policy allows. One that is not known, or that is being deleted, allows nothing.
pub(crate) fn known(planner: &Planner<'_>) -> Allowed {
    let policy = planner.facts.update_policy.present();
    let policy = policy.filter(|policy| policy.metadata.deletion_timestamp.is_none());
    policy.map_or_else(Allowed::default, |policy| Allowed::of(&policy.spec))
}

/// Whether a host in this state may be serviced at a reboot: a machine that must not be powered off never is off.
pub(crate) fn is_serviceable(planner: &Planner<'_>, state: &State) -> bool {
    let is_running = matches!(state, State::Provisioned | State::ExternallyProvisioned);
    is_running && planner.host().spec.disable_power_off != Some(true)
}

/// Whether the next reboot changes settings of the BIOS, for a host in this state.
pub(crate) fn changes_settings(planner: &Planner<'_>, state: &State) -> bool {
    is_serviceable(planner, state) && known(planner).settings
}

/// The same of updates of the firmware.
pub(crate) fn makes_updates(planner: &Planner<'_>, state: &State) -> bool {
    is_serviceable(planner, state) && known(planner).updates
}

/// Whether something is left for a service, as far as the reports say.
pub(crate) fn is_left(planner: &Planner<'_>, node: &Node) -> bool {
    let facts = planner.facts;
    let has_settings = facts.firmware_settings.present().is_some_and(|&settings| {
        !settings.spec.settings.is_empty() && (!bios::is_current(settings, node) || bios::is_change_reported(settings))
    });
    let has_updates = || {
        let object = facts.firmware_components.present();
        object.is_some_and(|object| !firmware::due(object).is_empty())
    };
    changes_settings(planner, planner.state()) && has_settings
        || makes_updates(planner, planner.state()) && has_updates()
}
