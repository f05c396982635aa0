//! Rules about hosts.

mod back;

use std::collections::BTreeSet;

use metal3_api::infrastructure::names::HOST_PAUSED_BY_CAPM3;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::kind::Kind as _;
use metal3_api::meta::ConditionStatus;
use metal3_api::metal3::names::{PAUSED_ANNOTATION, PAUSED_BY_CLAIM};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, ErrorType, HostFirmwareComponents, HostFirmwareSettings, OperationalStatus, ProvisioningState,
};

use crate::facts::{Direction, Facts};
use crate::finding::{Decision, Finding};
use crate::managers::Series;

/// What one host meets.
type Rule = fn(&Host<'_>) -> Option<Finding>;

const RULES: &[Rule] = &[
    servicing,
    update_is_pending,
    setting_is_invalid,
    setting_is_pending,
    in_flight,
    moving,
    failed,
    login,
    network_data,
    owned_by_a_machine,
    never_off,
];

/// On the way back: what either manager continues, and what a Go manager would do that this program does not.
const BACK: &[Rule] = &[back::unprepared, back::servicing, back::unserviced, in_flight, failed];

struct Host<'a> {
    name: &'a str,
    object: &'a BareMetalHost,
    facts: &'a Facts,
    firmware: &'a Firmware,
}

/// Hosts, as `NAMESPACE/NAME`, with firmware that the Go manager has not changed yet.
struct Firmware {
    settings: BTreeSet<String>,
    /// Those whose machine cannot have a setting.
    invalid: BTreeSet<String>,
    updates: BTreeSet<String>,
}

impl Firmware {
    fn pending(facts: &Facts) -> Self {
        let rest = |name: String| name.split_once(' ').map(|(_, rest)| rest.to_owned());
        let settings = facts.objects.of::<HostFirmwareSettings>();
        let settings = settings.filter(|(_, one)| {
            let reported = &one.status.settings;
            let mut wanted = one.spec.settings.iter();
            wanted.any(|(name, value)| reported.get(name) != Some(&value.to_string()))
        });
        let invalid = facts.objects.of::<HostFirmwareSettings>();
        let invalid = invalid.filter(|(_, one)| {
            let mut conditions = one.status.conditions.iter();
            conditions.any(|condition| condition.type_ == "Valid" && condition.status == ConditionStatus::False)
        });
        let updates = facts.objects.of::<HostFirmwareComponents>();
        let updates = updates.filter(|(_, one)| {
            let begun = &one.status.updates;
            one.spec.updates.iter().any(|update| !begun.contains(update))
        });
        Self {
            settings: settings.filter_map(|(name, _)| rest(name)).collect(),
            invalid: invalid.filter_map(|(name, _)| rest(name)).collect(),
            updates: updates.filter_map(|(name, _)| rest(name)).collect(),
        }
    }
}

impl Host<'_> {
    fn finding(&self, decision: Decision, what: impl Into<String>, cure: impl Into<String>) -> Finding {
        Finding::new(decision, self.name, what, cure)
    }

    fn state(&self) -> &ProvisioningState {
        &self.object.status.provisioning.state
    }

    fn is_back(&self) -> bool {
        matches!(self.facts.direction, Direction::Back(_))
    }

    /// Its error, in the words of the status.
    fn error(&self) -> Option<String> {
        let kind = serde_json::to_value(self.object.status.error_type?).ok()?;
        kind.as_str().filter(|kind| !kind.is_empty()).map(str::to_owned)
    }

    /// Whether its machine runs a system.
    fn runs(&self) -> bool {
        matches!(
            self.state(),
            ProvisioningState::Provisioned | ProvisioningState::ExternallyProvisioned
        )
    }
}

pub(crate) fn findings(facts: &Facts) -> Vec<Finding> {
    each(facts, |host| RULES.iter().filter_map(|rule| rule(host)).collect())
}

/// The same on the way back. A Go manager looks for a pause before anything else, and then whether the host is detached; `clusterctl
/// move` takes a pause off.
pub(crate) fn of_way_back(facts: &Facts) -> Vec<Finding> {
    each(facts, |host| {
        let alone = Alone::of(host);
        let found = back::DIFFERENCES.iter().chain(BACK).filter_map(|rule| rule(host));
        let found = found.map(|finding| match alone {
            // A Go manager that detaches a host deletes the node of its ID, whichever host that serves.
            Some(Alone::Detached) if back::is_about_the_node(host, &finding) => finding,
            Some(alone) => alone.until_then(&finding),
            None => finding,
        });
        found.chain(back::moved(host)).collect()
    })
}

/// Whether neither manager changes the host or its machine until a person removes the pause. Managers remove a pause of their own when
/// the Cluster or the HostClaim goes on that they set it for.
pub(crate) fn stays_paused(host: &BareMetalHost) -> bool {
    let of_managers = [HOST_PAUSED_BY_CAPM3, PAUSED_BY_CLAIM];
    host.annotation(PAUSED_ANNOTATION)
        .is_some_and(|by| !of_managers.contains(&by))
}

/// Why a Go manager leaves a host and its machine as they are.
#[derive(Clone, Copy)]
enum Alone {
    Paused,
    Detached,
}

/// The first series whose manager of hosts detaches any host by force, and looks for that before a deletion.
const DETACHES_BY_FORCE: Series = Series::new(1, 13);

impl Alone {
    fn of(host: &Host<'_>) -> Option<Self> {
        let object = host.object;
        let status = &object.status;
        // A Go manager detaches a host at rest, and a newer one any other by force, unless it is being removed.
        let is_at_rest = matches!(
            status.provisioning.state,
            ProvisioningState::Provisioned
                | ProvisioningState::ExternallyProvisioned
                | ProvisioningState::Available
                | ProvisioningState::Ready
        );
        let is_newer = matches!(host.facts.direction, Direction::Back(to) if to >= DETACHES_BY_FORCE);
        let is_of_deletion = status.provisioning.state == ProvisioningState::Deleting;
        // An older one deprovisions a deleted host that it has not detached yet.
        let is_too_late = object.metadata.deletion_timestamp.is_some()
            && !is_newer
            && status.operational_status != OperationalStatus::Detached;
        let request = object.detach_request().filter(|_| !is_of_deletion && !is_too_late);
        if stays_paused(object) {
            Some(Self::Paused)
        } else if request.is_some_and(|request| is_at_rest || is_newer && request.force) {
            Some(Self::Detached)
        } else {
            None
        }
    }

    /// The finding, as it will be when the host is not left alone any more.
    fn until_then(self, finding: &Finding) -> Finding {
        let (is, annotation) = match self {
            Self::Paused => ("paused", "the pause"),
            Self::Detached => ("detached", "the annotation baremetalhost.metal3.io/detached"),
        };
        let cure = match finding.cure.as_str() {
            "" => String::new(),
            cure => format!("before {annotation} is removed: {cure}"),
        };
        let without = match self {
            Self::Paused => "the pause",
            Self::Detached => "it",
        };
        let what = format!(
            "is {is}, and left as it is until {annotation} is removed. Without {without}: {}",
            finding.what
        );
        Finding {
            row: finding.row,
            ..Finding::new(Decision::Go, &finding.object, what, cure)
        }
    }
}

fn each(facts: &Facts, found: impl Fn(&Host<'_>) -> Vec<Finding>) -> Vec<Finding> {
    let (mut findings, firmware) = (Vec::new(), Firmware::pending(facts));
    for (name, object) in facts.objects.of::<BareMetalHost>() {
        findings.extend(found(&Host {
            name: &name,
            object: &object,
            facts,
            firmware: &firmware,
        }));
    }
    findings
}

fn servicing(host: &Host<'_>) -> Option<Finding> {
    let is_serviced = host.object.status.operational_status == OperationalStatus::Servicing;
    let what = "is serviced; a service that has begun runs to its end, and a further one begins at a requested reboot only, if a HostUpdatePolicy \
                allows it";
    let cure = "wait until its operationalStatus is OK";
    is_serviced.then(|| {
        let finding = host.finding(Decision::Wait, what, cure).row("host-service-ended");
        // Nothing reads the end of a service of a paused host.
        match stays_paused(host.object) {
            true => Alone::Paused.until_then(&finding),
            false => finding,
        }
    })
}

/// The Go manager makes such a host available without its settings.
fn setting_is_invalid(host: &Host<'_>) -> Option<Finding> {
    let (_, name) = host.name.split_once(' ')?;
    let what = "has a firmware setting that its machine cannot have; when this program prepares the host, that is an error until it is \
                corrected";
    let is_invalid = host.firmware.invalid.contains(name) && !host.runs();
    let cure = "see the condition Valid of its HostFirmwareSettings, and correct spec.settings";
    is_invalid.then(|| host.finding(Decision::Go, what, cure).row("firmware-settings-spelling"))
}

/// A setting that the Go manager has not applied yet.
fn setting_is_pending(host: &Host<'_>) -> Option<Finding> {
    let (_, name) = host.name.split_once(' ')?;
    let what = "has a firmware setting that is not applied yet; this program applies it when it prepares the host, at once if that \
                is available, and to a machine in use at its next requested reboot only, if its HostUpdatePolicy allows that";
    let is_pending = host.firmware.settings.contains(name) && !host.firmware.invalid.contains(name);
    is_pending.then(|| host.finding(Decision::Go, what, "").row("firmware-settings-on-demand"))
}

/// An update that the Go manager has not installed yet.
fn update_is_pending(host: &Host<'_>) -> Option<Finding> {
    let (_, name) = host.name.split_once(' ')?;
    let what = "has a firmware update that is not installed yet; this program makes it when it prepares the host, at once if that is \
                available, and for a machine in use at its next requested reboot only, if its HostUpdatePolicy allows that";
    let is_pending = host.firmware.updates.contains(name);
    is_pending.then(|| {
        host.finding(Decision::Go, what, "")
            .row("firmware-components-on-demand")
    })
}

fn in_flight(host: &Host<'_>) -> Option<Finding> {
    if host.is_back() && back::has_difference(host) {
        return None;
    }
    let state = match host.state() {
        // A host that is moved has its state in an annotation.
        ProvisioningState::None if !host.object.is_unmanaged() && host.object.saved_status().is_none() => "new",
        ProvisioningState::Registering => "registering",
        ProvisioningState::Inspecting => "inspecting",
        ProvisioningState::Preparing => "preparing",
        ProvisioningState::Provisioning => "provisioning",
        ProvisioningState::Deprovisioning => "deprovisioning",
        ProvisioningState::PoweringOffBeforeDelete => "powering off before delete",
        ProvisioningState::Deleting => "deleting",
        _ => return None,
    };
    let what = format!("is {state}; either manager continues it, and repeats no order that Ironic has");
    Some(host.finding(Decision::Go, what, ""))
}

/// Cluster API's provider copies the status into an annotation when the Cluster is paused, for `clusterctl move`, and leaves it there.
/// Only the target of a move has no status of its own.
fn moving(host: &Host<'_>) -> Option<Finding> {
    host.object.saved_status()?;
    let is_deleted = host.object.metadata.deletion_timestamp.is_some();
    let finding = if host.object.takes_saved_status() || is_deleted {
        let what = "is being moved by clusterctl: its status is in an annotation";
        host.finding(Decision::Wait, what, "wait until the move has ended")
    } else {
        let what = "has its status in an annotation, because its Cluster was paused; neither manager restores it into a host that has one";
        host.finding(Decision::Go, what, "run no clusterctl move during the switch")
    };
    Some(finding.row("host-restore-guarded"))
}

fn failed(host: &Host<'_>) -> Option<Finding> {
    let kind = host.error()?;
    if host.is_back() && (back::has_difference(host) || back::unserviced(host).is_some()) {
        return None;
    }
    if host.object.status.error_type == Some(ErrorType::Servicing) {
        let what = "has a servicing error; this program ends the service that failed, starts the system, and repeats the service at the next \
                    requested reboot, if its HostUpdatePolicy allows that";
        return Some(host.finding(Decision::Go, what, "").row("host-service-ended"));
    }
    let article = if kind.starts_with(['i', 'e']) { "an" } else { "a" };
    let what = format!("has {article} {kind}; it is retried by either manager");
    Some(host.finding(
        Decision::Go,
        what,
        "mend it first if its message is not one that you expect",
    ))
}

fn login(host: &Host<'_>) -> Option<Finding> {
    let name = host.object.spec.bmc.as_ref().map(|bmc| bmc.credentials_name.as_str());
    labelled(host, "login", name.unwrap_or_default())
}

fn network_data(host: &Host<'_>) -> Option<Finding> {
    let name = host.object.spec.preprovisioning_network_data_name.as_deref();
    labelled(host, "network data of its agent", name.unwrap_or_default())
}

/// A Secret that host controllers have not used is not used without its label.
fn labelled(host: &Host<'_>, what: &str, name: &str) -> Option<Finding> {
    let namespace = host.object.metadata.namespace.clone().unwrap_or_default();
    let secret = host.facts.secrets.get(&(namespace.clone(), name.to_owned()))?;
    match secret {
        Some(secret) if !secret.is_marked => {
            let what = format!("the Secret {name} with its {what} has no label, so it is not used");
            let cure = format!("kubectl label secret --namespace {namespace} {name} environment.metal3.io=baremetal");
            Some(host.finding(Decision::No, what, cure).row("host-secret-labelled"))
        }
        Some(_) => None,
        None => {
            let what = format!("the Secret {name} with its {what} does not exist");
            Some(host.finding(Decision::Go, what, "create it"))
        }
    }
}

fn owned_by_a_machine(host: &Host<'_>) -> Option<Finding> {
    let owners = host.object.metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.kind == Metal3Machine::KIND);
    let owner = &owners.next()?.name;
    let what = format!(
        "has the owner Metal3Machine {owner}, which is removed by one write when nothing else is to be written"
    );
    let cure = "nothing, unless the role of this program was narrowed so that it may not delete BareMetalHosts, and the API server \
                runs OwnerReferencesPermissionEnforcement: then the Event HostOwnerKept of the machine has the command";
    Some(host.finding(Decision::Go, what, cure).row("host-machine-owner"))
}

fn never_off(host: &Host<'_>) -> Option<Finding> {
    let spec = &host.object.spec;
    let is_asked = spec.disable_power_off == Some(true) && !spec.online;
    let what =
        "has disablePowerOff and online: false; this program reports that as an error, and does not power it off";
    is_asked.then(|| host.finding(Decision::Go, what, "").row("host-never-off"))
}
