//! Errors that leave a machine as it is, which a Go manager does not know.

use metal3_api::metal3::names::host_error;

use super::super::Host;
use super::withheld;
use crate::finding::{Decision, Finding};

/// The errors are recognized by their texts, which this program wrote.
pub(in crate::hosts) fn kept(host: &Host<'_>) -> Option<Finding> {
    let message = host.object.status.error_message.as_str();
    if host.error().is_none() || withheld(host).is_some() {
        return None;
    }
    of_node(host, message).or_else(|| of_limits(host, message))
}

/// Whether a finding is about a node or a machine that is of something else.
pub(in crate::hosts) fn is_about_the_node(host: &Host<'_>, finding: &Finding) -> bool {
    let message = host.object.status.error_message.as_str();
    of_node(host, message).is_some_and(|one| one == *finding)
}

/// The node, or the machine, is of something else.
fn of_node(host: &Host<'_>, message: &str) -> Option<Finding> {
    if message.starts_with(host_error::SERVES_ANOTHER) {
        let what = "has a node that serves another instance; a Go manager does not look, and switches, cleans or deploys that machine";
        return Some(refuse(host, what).row("host-node-of-another"));
    }
    if message.starts_with(host_error::MACHINE_OF_ANOTHER) {
        let what = "has the machine of another host; a Go manager registers it a second time, and reboots, cleans and deploys what runs on it";
        return Some(refuse(host, what).row("host-machine-once"));
    }
    if message.contains(host_error::NODE_OF_ANOTHER_NAME) {
        let what = "names a node that has not its name; a Go manager takes the node by its ID, renames it, and switches, cleans or deletes \
                    that machine as its own";
        return Some(refuse(host, what).row("host-node-by-name"));
    }
    if message.starts_with(host_error::IN_MAINTENANCE) {
        let what = "has a node that an operator has put into maintenance; a Go manager ends that, and then switches or cleans the machine";
        return Some(refuse(host, what).row("host-maintenance-reported"));
    }
    None
}

/// What this program does not register or deploy. A machine that runs a system is served by either.
fn of_limits(host: &Host<'_>, message: &str) -> Option<Finding> {
    if host.runs() {
        return None;
    }
    let limits = [host_error::NOT_IN_BMC_NETWORKS, host_error::NOT_IN_IMAGE_HOSTS];
    if limits.iter().any(|limit| message.contains(limit)) {
        let what =
            "is refused by a limit of this program that a Go manager does not have: it registers or deploys it at once";
        return Some(refuse(host, what).row("destinations-allowed"));
    }
    let what = "names a Secret without the label, so it is not registered; a Go manager uses any Secret, sends its content to the BMC, and \
                inspects the machine, which boots another system on it";
    let is_unlabelled = message.contains(host_error::SECRET_UNLABELLED);
    is_unlabelled.then(|| refuse(host, what).row("host-secret-labelled"))
}

fn refuse(host: &Host<'_>, what: &str) -> Finding {
    let cure = "correct what its error names, or pause it before the switch: kubectl annotate bmh HOST \
                baremetalhost.metal3.io/paused=user";
    host.finding(Decision::No, what, cure)
}
