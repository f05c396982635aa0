//! BareMetalHost: down to the answer of Ironic and of the BMC, which its error contains.

use metal3_api::cluster::names::DELETE_FOR_MOVE_ANNOTATION;
use metal3_api::meta::{Condition, ConditionStatus};
use metal3_api::metal3::names::{PAUSED_ANNOTATION, host_condition as conditions};
use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, OperationalStatus, ProvisioningState as State};

use super::conditions::{find, first_bad, link, reason_link, since};
use super::{End, Next, Walk};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::table::{Actor, Area, reason_of_error};

/// The condition of a change that is withheld on purpose.
const HELD: &str = "Held";
/// Its reason for a port that the running machine does not need: an error of the host is worse.
const HARMLESS: &str = "BootPortRefused";

impl Walk<'_> {
    pub(crate) fn host(&mut self, at: &ObjectId) -> Result<Next, End> {
        let host: BareMetalHost = self.required(at)?;
        let annotations = host.metadata.annotations.as_ref();
        if annotations.is_some_and(|all| all.contains_key(PAUSED_ANNOTATION)) {
            let message = format!("the annotation {PAUSED_ANNOTATION} is set");
            let cure = format!(
                "Remove it when it is not needed: kubectl annotate bmh {} {PAUSED_ANNOTATION}-.",
                at.name
            );
            self.push(Link {
                cure,
                ..reason_link(at, Area::Hosts, "Paused", &message, None)
            });
            return Ok(None);
        }
        if annotations.is_some_and(|all| all.contains_key(DELETE_FOR_MOVE_ANNOTATION)) {
            let title = "is part of a move to another management cluster, and is not touched";
            let cure = format!(
                "Let clusterctl complete the move. If none runs, remove the annotation: kubectl annotate bmh {} \
                 {DELETE_FOR_MOVE_ANNOTATION}-.",
                at.name
            );
            self.push(Link::plain(at, title, Actor::User, cure));
            return Ok(None);
        }
        let status = &host.status;
        let held = first_bad(&status.conditions, &[(HELD, ConditionStatus::True)]);
        if let Some(held) = held.filter(|held| held.reason != HARMLESS) {
            let link = link(at, Area::Hosts, held);
            self.push(link);
            return Ok(None);
        }
        let ready = find(&status.conditions, conditions::READY).and_then(since);
        if status.operational_status == OperationalStatus::Detached {
            self.push(reason_link(at, Area::Hosts, "Detached", "", ready));
            return Ok(None);
        }
        if let Some(error) = status.error_type.filter(|_| !status.error_message.is_empty()) {
            return self.failed_host(at, &host, error);
        }
        if let Some(bad) = power_failure(&status.conditions) {
            let link = link(at, Area::Hosts, bad);
            self.push(link);
            return Ok(None);
        }
        if status.operational_status == OperationalStatus::Servicing {
            self.push(reason_link(at, Area::Hosts, "Servicing", "", ready));
            return Ok(None);
        }
        if let Some(held) = held {
            let link = link(at, Area::Hosts, held);
            self.push(link);
            return Ok(None);
        }
        self.push_progress(at, &host);
        Ok(None)
    }

    /// The message of an error is the answer of Ironic or the BMC. A missing Secret is the cause of its own.
    fn failed_host(&mut self, at: &ObjectId, host: &BareMetalHost, error: ErrorType) -> Result<Next, End> {
        let ready = find(&host.status.conditions, conditions::READY).and_then(since);
        let reason = reason_of_error(error);
        let link = reason_link(at, Area::Hosts, reason, &host.status.error_message, ready);
        // The message names a field of the host, so neither the BMC nor a retry helps.
        if host.status.error_message.starts_with("spec.") {
            let cure = "Correct or remove the field that the message names.".to_owned();
            self.push(Link {
                who_acts: Actor::User,
                cure,
                ..link
            });
            return Ok(None);
        }
        self.push(link);
        let is_registration = matches!(error, ErrorType::Registration | ErrorType::ProvisionedRegistration);
        let secret = host.spec.bmc.as_ref().map(|bmc| bmc.credentials_name.as_str());
        let Some(secret) = secret.filter(|name| is_registration && !name.is_empty()) else {
            return Ok(None);
        };
        let secret = ObjectId::secret(secret);
        // Without the right to read Secrets the error of the host is the last link.
        match self.secret(&secret) {
            Ok(_) | Err(End::Unread) => Ok(None),
            Err(end) => Err(end),
        }
    }

    /// What happens to a host without an error.
    fn push_progress(&mut self, at: &ObjectId, host: &BareMetalHost) {
        let status = &host.status;
        let progressing = find(&status.conditions, conditions::PROGRESSING);
        let time = progressing.and_then(since);
        if status.operational_status == OperationalStatus::Delayed {
            self.push(reason_link(at, Area::Hosts, "WaitingForSlot", "", time));
            return;
        }
        let reason = match &status.provisioning.state {
            State::None if status.conditions.is_empty() => {
                let message = "no controller wrote a condition";
                self.push(reason_link(at, Area::Shared, "NotYetReported", message, None));
                return;
            }
            State::None | State::Unmanaged => "NotManaged",
            State::Registering => "Registering",
            State::MatchProfile | State::Inspecting => "Inspecting",
            State::Preparing => "Preparing",
            State::Provisioning => "Provisioning",
            State::Deprovisioning => "Deprovisioning",
            State::PoweringOffBeforeDelete => "PoweringOffBeforeDelete",
            State::Deleting => "Deleting",
            State::Available | State::Ready if host.spec.image.is_some() => {
                let title = "is available, and its deployment has not begun";
                self.push(Link::plain(
                    at,
                    title,
                    Actor::System,
                    "Wait. If it lasts, check spec.online.",
                ));
                return;
            }
            State::Available | State::Ready | State::Provisioned | State::ExternallyProvisioned | State::Other(_) => {
                return;
            }
        };
        let message = progressing.map(|one| one.message.clone()).unwrap_or_default();
        self.push(reason_link(at, Area::Hosts, reason, &message, time));
    }
}

/// Whether no machine can have the host now: it has an error, or is on its way to be available.
pub(crate) fn is_unavailable(host: &BareMetalHost) -> bool {
    let is_available = matches!(host.status.provisioning.state, State::Available | State::Ready);
    host.status.error_type.is_some() || !is_available
}

/// The BMC of a registered host that does not respond.
fn power_failure(all: &[Condition]) -> Option<&Condition> {
    let manageable = first_bad(all, &[(conditions::MANAGEABLE, ConditionStatus::False)]);
    manageable.filter(|condition| condition.reason == "PowerFailure")
}
