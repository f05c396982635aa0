//! Whether Ironic cleans a machine by itself, and what it must know before.

use metal3_api::metal3::v1alpha1::{AutomatedCleaningMode, BareMetalHost, ProvisioningState as State};
use metal3_ironic::model::node::Node;

use super::changes::{Changes, Comparison, Passwords};
use super::deployment::Deployment;
use super::kept;
use crate::claims::bond::promises_cleaning;

/// The changes that the node needs before an order may erase or interrupt: whether it is cleaned, which disks are kept, and
/// whether it may be powered off. Unlike the whole record they depend on no Secret and are never invalid.
#[must_use]
pub fn restrictions(host: &BareMetalHost, found: &Node) -> Changes {
    let mut changes = Comparison::with(found, Passwords::AsSent);
    changes.restrictions(is_cleaned(host), host.spec.disable_power_off == Some(true));
    kept::compare(&kept::hints(host), found, &mut changes);
    changes.done()
}

/// Whether the node does not skip yet what the host keeps, and takes no change of it now.
pub(crate) fn is_kept_disk_postponed(host: &BareMetalHost, found: &Node) -> bool {
    if kept::asked(host).is_empty() {
        return false;
    }
    let postponed = restrictions(host, found).postponed;
    postponed.iter().any(|name| name.ends_with(kept::SKIPPED))
}

/// Whether Ironic cleans the machine of this host by itself.
pub(crate) fn is_cleaned(host: &BareMetalHost) -> bool {
    let is_asked = host.spec.automated_cleaning_mode != Some(AutomatedCleaningMode::Disabled) && !is_past(host);
    // What its owner decided before a HostClaim had it holds until the host is released.
    is_asked || promises_cleaning(host)
}

/// Whether the only cleaning of the host is over: what it deployed first runs, or was removed. A host whose record is lost is a new
/// one, as for everything else.
fn is_past(host: &BareMetalHost) -> bool {
    let status = &host.status;
    let is_used = matches!(
        status.provisioning.state,
        State::Provisioned | State::ExternallyProvisioned | State::Deprovisioning
    );
    let was_used = !Deployment::recorded(host).is_none() || status.operation_history.deprovision.start.is_some();
    host.is_cleaned_first() && (is_used || was_used)
}
