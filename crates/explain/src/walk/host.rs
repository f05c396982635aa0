//! BareMetalHost: down to the answer of Ironic and of the BMC, which its error contains.

use metal3_api::cluster::names::DELETE_FOR_MOVE_ANNOTATION;
use metal3_api::infrastructure::names::HOST_PAUSED_BY_CAPM3;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::meta::{Condition, ConditionStatus, Time};
use metal3_api::metal3::names::{PAUSED_ANNOTATION, held, host_condition as conditions};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, ErrorType, HostFirmwareComponents, HostFirmwareSettings, OperationalStatus,
    ProvisioningState as State,
};

use super::conditions::{find, first_bad, link, reason_link, since};
use super::{End, Next, Walk, in_namespace, is_deleting};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::steps::Step;
use crate::table::{Actor, Area, reason_of_error};

/// Its reason for a port that the running machine does not need: an error of the host is worse.
const HARMLESS: &str = "BootPortRefused";
/// The reason of hardware that failed.
const CRITICAL: &str = "CriticalError";

impl Walk<'_> {
    pub(crate) fn host(&mut self, at: &ObjectId) -> Result<Next, End> {
        let host: BareMetalHost = self.required(at)?;
        if let Some(next) = self.untouched(at, &host)? {
            return Ok(next);
        }
        let status = &host.status;
        let held = first_bad(&status.conditions, &[(held::TYPE, ConditionStatus::True)]);
        if let Some(held) = held.filter(|held| held.reason != HARMLESS) {
            let link = link(at, Area::Hosts, held);
            self.push(link);
            return Ok(None);
        }
        let ready = find(&status.conditions, conditions::READY).and_then(since);
        if status.operational_status == OperationalStatus::Detached {
            self.push(reason_link(at, Area::Hosts, "Detached", "", None).at_most(ready));
            return Ok(None);
        }
        let is_failed = status.operational_status == OperationalStatus::Error;
        let is_stated = is_failed || !status.error_message.is_empty();
        if let Some(error) = status.error_type.filter(|_| is_stated) {
            return self.failed_host(at, &host, error);
        }
        if let Some(bad) = power_failure(&status.conditions) {
            let link = link(at, Area::Hosts, bad);
            self.push(link);
            return Ok(None);
        }
        if is_failed {
            self.push(unnamed_error(at, &host, ready));
            return Ok(None);
        }
        if status.operational_status == OperationalStatus::Servicing {
            self.push(reason_link(at, Area::Hosts, "Servicing", "", None).at_most(ready));
            return Ok(None);
        }
        if let Some(held) = held {
            let link = link(at, Area::Hosts, held);
            self.push(link);
            return Ok(None);
        }
        if let Some(ill) = hardware_failure(&host) {
            let link = link(at, Area::Hosts, ill);
            self.push(link);
            return Ok(None);
        }
        self.push_progress(at, &host);
        Ok(None)
    }

    /// Whether controllers leave the host alone, by its pause or during a move: a link then reports it, and what it waits for.
    fn untouched(&mut self, at: &ObjectId, host: &BareMetalHost) -> Result<Option<Next>, End> {
        let annotation = |key: &str| host.metadata.annotations.as_ref().and_then(|all| all.get(key));
        let namespace = in_namespace(host.metadata.namespace.as_deref().unwrap_or_default());
        let removal = |key: &str| format!("kubectl annotate bmh {}{namespace} {key}-", at.name);
        if annotation(DELETE_FOR_MOVE_ANNOTATION).is_some() {
            let title = "is part of a move to another management cluster, and is not touched";
            // clusterctl sets it when the copy exists: without it, two clusters manage one machine.
            let cure = format!(
                "Let clusterctl complete the move, or repeat the move. Only if no other cluster has the host, remove the \
                 annotation: {}",
                removal(DELETE_FOR_MOVE_ANNOTATION)
            );
            self.push(Link::plain(at, title, Actor::User, cure));
            return Ok(Some(None));
        }
        let Some(paused) = annotation(PAUSED_ANNOTATION) else {
            return Ok(None);
        };
        let message = format!("the annotation {PAUSED_ANNOTATION} is set");
        let link = reason_link(at, Area::Hosts, "Paused", &message, None);
        if paused != HOST_PAUSED_BY_CAPM3 {
            // A move pauses too, and without the pause two clusters manage one machine.
            let cure = format!(
                "Remove it when it is not needed, and no clusterctl move is under way: {}",
                removal(PAUSED_ANNOTATION)
            );
            self.push(Link { cure, ..link });
            return Ok(Some(None));
        }
        // The controller of machines removes it with the pause of the machine, which a move leaves when it was interrupted.
        let consumer = host
            .spec
            .consumer_ref
            .as_ref()
            .and_then(|consumer| consumer.name.clone());
        let found = match &consumer {
            Some(name) => self.find::<Metal3Machine>(name),
            None => Ok(None),
        };
        let (cure, next) = match (found, consumer) {
            (Ok(None), Some(name)) => {
                // A move that was interrupted while it deleted: the machine is in the other cluster.
                let cure = format!(
                    "Let the clusterctl move complete, or repeat it: Metal3Machine/{name} is not here, and may be in another \
                     cluster. Only if no other cluster has the host, remove the annotation: {}",
                    removal(PAUSED_ANNOTATION)
                );
                (cure, Ok(Some(None)))
            }
            (Ok(Some(_)), Some(name)) => (String::new(), Ok(Some(Some(ObjectId::of::<Metal3Machine>(&name))))),
            (Ok(_), None) => (
                "Resume the machine or the Cluster that is paused. Let a clusterctl move complete, or repeat it."
                    .to_owned(),
                Ok(Some(None)),
            ),
            (Err(end), _) => (String::new(), Err(end)),
        };
        self.push(Link { cure, ..link });
        next
    }

    /// The message of an error is the answer of Ironic or the BMC. A missing Secret is the cause of its own.
    fn failed_host(&mut self, at: &ObjectId, host: &BareMetalHost, error: ErrorType) -> Result<Next, End> {
        let reason = reason_of_error(error);
        let link = reason_link(at, Area::Hosts, reason, &host.status.error_message, None).at_most(failed_since(host));
        // What the message names is the user's, so neither the BMC nor a retry helps.
        if let Some(cure) = cure_by_user(&host.status.error_message) {
            self.push(Link {
                who_acts: Actor::User,
                cure: cure.to_owned(),
                ..link
            });
            return Ok(None);
        }
        if let Some(next) = unusable(&host.status.error_message, &at.name) {
            let is_left = match next.is::<HostFirmwareComponents>() {
                true => self.find::<HostFirmwareComponents>(&at.name).map(|one| one.is_some()),
                false => self.find::<HostFirmwareSettings>(&at.name).map(|one| one.is_some()),
            };
            let cure = "Correct the object that the message names; then it is retried.".to_owned();
            self.push(Link {
                who_acts: Actor::User,
                cure,
                ..link
            });
            return is_left.map(|is_left| is_left.then_some(next));
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
            self.push(reason_link(at, Area::Hosts, "WaitingForSlot", "", None).at_most(time));
            return;
        }
        let is_released = matches!(
            status.provisioning.state,
            State::Deprovisioning | State::PoweringOffBeforeDelete
        );
        if is_deleting(&host.metadata) && !is_released {
            self.push_deleting(at, &host.metadata);
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
            State::Available | State::Ready => return self.push_undeployed(at, host),
            State::Provisioned | State::ExternallyProvisioned => return self.push_power(at, host),
            State::Other(state) => {
                let title = format!("is in the state {state}, which this version does not know");
                let cure = "Use the version of this command that belongs to the controller of the hosts, and see the conditions.";
                self.push(Link::plain(at, title, Actor::User, cure));
                return;
            }
        };
        let message = progressing.map(|one| one.message.clone()).unwrap_or_default();
        // The condition keeps its time from one step to the next.
        let begun = Step::of_reason(reason).and_then(|step| step.begun(host));
        let link = reason_link(at, Area::Hosts, reason, &message, begun);
        self.push(match begun {
            Some(_) => link,
            None => link.at_most(time),
        });
    }

    /// A host that may have an image, and has an image to deploy.
    fn push_undeployed(&mut self, at: &ObjectId, host: &BareMetalHost) {
        let image = host.spec.image.as_ref().filter(|image| !image.url.is_empty());
        if image.is_none() {
            return;
        }
        self.push(if host.spec.online {
            let cure = "Wait. If it lasts, see whether Ironic responds, and the log of the controller of the hosts.";
            let title = "is available, and its deployment has not begun";
            Link::plain(at, title, Actor::System, cure)
        } else {
            let cure = "Set spec.online of the host to true: nothing is deployed before.";
            Link::plain(at, "has an image, and spec.online is false", Actor::User, cure)
        });
    }

    /// A machine in use whose power is not as wanted.
    fn push_power(&mut self, at: &ObjectId, host: &BareMetalHost) {
        let (title, cure) = match (host.status.powered_on, host.spec.online) {
            (true, true) | (false, false) => return,
            (false, true) => (
                "is off, and is to be on",
                "Wait. If it lasts, see whether an annotation reboot.metal3.io keeps it off, and whether Ironic and the BMC \
                 respond.",
            ),
            (true, false) => (
                "is on, and is to be off",
                "Wait. If it lasts, see whether Ironic and the BMC respond.",
            ),
        };
        self.push(Link::plain(at, title, Actor::System, cure));
    }
}

/// What to do about an error that only a user corrects, by the beginning of its message.
fn cure_by_user(message: &str) -> Option<&'static str> {
    const SECRET: &str = "Create, correct or label the Secret, as the message says; then the host continues.";
    const BEGINNINGS: [(&str, &str); 7] = [
        ("spec.", "Correct or remove the field that the message names."),
        ("Secret ", SECRET),
        ("the Secret that ", SECRET),
        ("Validation error with BMC credentials: ", SECRET),
        (
            "failed to read ",
            "Create the Secret that the message names, or remove the field; then the host continues.",
        ),
        (
            "BMC driver ",
            "Correct the field that the message names: the driver of the BMC does not support it.",
        ),
        (
            "the node is in maintenance",
            "See in Ironic why the node is in maintenance, and end that there.",
        ),
    ];
    let found = BEGINNINGS.into_iter().find(|(start, _)| message.starts_with(start));
    found.map(|(_, cure)| cure)
}

/// The object with the firmware or the settings that a message calls unusable.
fn unusable(message: &str, host: &str) -> Next {
    if message.starts_with("its HostFirmwareComponents cannot be applied") {
        return Some(ObjectId::of::<HostFirmwareComponents>(host));
    }
    let is_of_settings = message.starts_with("its HostFirmwareSettings cannot be applied");
    is_of_settings.then(|| ObjectId::of::<HostFirmwareSettings>(host))
}

/// When an error began at the earliest: after its host was last ready, and within the step that failed.
fn failed_since(host: &BareMetalHost) -> Option<Time> {
    let of = |kind: &str| find(&host.status.conditions, kind).and_then(since);
    let steps = Step::ALL.into_iter().filter_map(|step| step.begun(host));
    let conditions = [conditions::READY, conditions::PROGRESSING].into_iter().filter_map(of);
    steps.chain(conditions).max()
}

/// An error whose type the status does not name.
fn unnamed_error(at: &ObjectId, host: &BareMetalHost, since: Option<Time>) -> Link {
    let link = reason_link(at, Area::Hosts, "Error", &host.status.error_message, None).at_most(since);
    if !link.message.is_empty() {
        return link;
    }
    let cure =
        "The status does not say what failed: see the Events of the host, and the log of its controller.".to_owned();
    Link { cure, ..link }
}

/// Whether no machine can have the host now: it has an error, or is on its way to be available.
pub(crate) fn is_unavailable(host: &BareMetalHost) -> bool {
    let is_available = matches!(host.status.provisioning.state, State::Available | State::Ready);
    host.status.error_type.is_some() || !is_available
}

/// What the BMC reports of hardware that has nothing else to do.
fn hardware_failure(host: &BareMetalHost) -> Option<&Condition> {
    let is_at_rest = matches!(
        host.status.provisioning.state,
        State::Available | State::Ready | State::Provisioned | State::ExternallyProvisioned
    );
    let ill = first_bad(
        &host.status.conditions,
        &[(conditions::HEALTHY, ConditionStatus::False)],
    );
    ill.filter(|ill| is_at_rest && ill.reason == CRITICAL)
}

/// The BMC of a registered host that does not respond.
fn power_failure(all: &[Condition]) -> Option<&Condition> {
    let manageable = first_bad(all, &[(conditions::MANAGEABLE, ConditionStatus::False)]);
    manageable.filter(|condition| condition.reason == "PowerFailure")
}
