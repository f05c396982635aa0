//! Kinds whose waits their own status and conditions state in full, and those that no controller of this project serves.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::names::DEPLOYMENT_NAME_LABEL;
use metal3_api::cluster::{Machine, MachineDeployment};
use metal3_api::infrastructure::v1beta2::{HostSelector, Metal3MachineTemplate};
use metal3_api::meta::{Condition, ConditionStatus};
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, DataImage, HostFirmwareComponents, HostFirmwareSettings, ProvisioningState,
};
use serde_json::Value;

use super::cluster::is_running;
use super::conditions::{Bad, find, first_bad, link, reason_link};
use super::foreign::conditions;
use super::{End, Next, Walk, is_deleting};
use crate::chain::Link;
use crate::object::ObjectId;
use crate::read::Read;
use crate::table::{Actor, Area, Severity};
use crate::values::{name, text};

/// The conditions of these kinds that state a problem.
const ORDER: [Bad; 7] = [
    ("Error", ConditionStatus::True),
    ("Valid", ConditionStatus::False),
    ("Valid", ConditionStatus::Unknown),
    ("Associated", ConditionStatus::False),
    ("Synchronized", ConditionStatus::False),
    ("Provisioned", ConditionStatus::False),
    ("Ready", ConditionStatus::False),
];

/// The condition of a claim that has no host, or whose host is released.
const ASSOCIATED: Bad = ("Associated", ConditionStatus::False);
/// The condition of settings or updates that the machine cannot have.
const INVALID: Bad = ("Valid", ConditionStatus::False);
/// The condition of an order to update the firmware, and its reason once the updates were made.
const UPDATING: &str = "Updating";
const UPDATE_MADE: &str = "UpdateMade";

impl Walk<'_> {
    /// What the object states itself.
    pub(crate) fn stated(&mut self, at: &ObjectId, area: Area) -> Result<Next, End> {
        let Some(object) = self.answer(Read::Object(at.clone()))?.into_iter().next() else {
            return Err(self.absent(at));
        };
        self.push_stated(at, area, &object);
        Ok(None)
    }

    /// A DataImage: its error says more than its deletion does.
    pub(crate) fn data_image(&mut self, at: &ObjectId) -> Result<Next, End> {
        let image: DataImage = self.required(at)?;
        let error = image.status.error.map(|error| error.message);
        match error.filter(|error| !error.is_empty()) {
            Some(message) => self.push(Link {
                message,
                ..Link::plain(at, "has an error", Actor::User, "Do what the message says.")
            }),
            None if is_deleting(&image.metadata) => self.push_deleting(at, &image.metadata),
            None => {}
        }
        Ok(None)
    }

    /// A kind that only a Go manager serves. Without a status nothing serves the object.
    pub(crate) fn unserved(&mut self, at: &ObjectId) -> Result<Next, End> {
        let Some(object) = self.answer(Read::Object(at.clone()))?.into_iter().next() else {
            return Err(self.absent(at));
        };
        let has_status = object
            .pointer("/status")
            .and_then(Value::as_object)
            .is_some_and(|all| !all.is_empty());
        if !self.push_stated(at, Area::Unserved, &object) && !has_status {
            let message = "its status is empty, and no controller of this program serves the kind";
            self.push(reason_link(at, Area::Unserved, "KindUnserved", message, None));
        }
        Ok(None)
    }

    /// A switch, which is served with a setting: with the first status.
    pub(crate) fn switch(&mut self, at: &ObjectId) -> Result<Next, End> {
        let Some(object) = self.answer(Read::Object(at.clone()))?.into_iter().next() else {
            return Err(self.absent(at));
        };
        let has_conditions = !conditions(&object).is_empty();
        if !self.push_stated(at, Area::Switches, &object) && !has_conditions {
            let message = "its status is empty, and no controller serves the kind without IRONIC_NETWORKING_ENABLED";
            self.push(reason_link(at, Area::Unserved, "KindUnserved", message, None));
        }
        Ok(None)
    }

    pub(crate) fn claim(&mut self, at: &ObjectId) -> Result<Next, End> {
        let Some(object) = self.answer(Read::Object(at.clone()))?.into_iter().next() else {
            return Err(self.absent(at));
        };
        let stated = conditions(&object);
        // What the release of its host waits for says more than the finalizer.
        let is_released = object.pointer("/metadata/deletionTimestamp").is_some();
        if let Some(bad) = first_bad(&stated, &[ASSOCIATED]).filter(|_| is_released) {
            let link = link(at, Area::Claims, bad);
            self.push(link);
        } else if !self.push_stated(at, Area::Claims, &object) && stated.is_empty() {
            let message = "its status is empty, and no controller serves the kind without --hostclaims";
            self.push(reason_link(at, Area::Unserved, "KindUnserved", message, None));
        }
        Ok(None)
    }

    pub(crate) fn agent_image(&mut self, at: &ObjectId) -> Result<Next, End> {
        let Some(object) = self.answer(Read::Object(at.clone()))?.into_iter().next() else {
            return Err(self.absent(at));
        };
        let has_conditions = !conditions(&object).is_empty();
        if !self.push_stated(at, Area::AgentImages, &object) && !has_conditions {
            let message = "no builder of images wrote a status";
            self.push(reason_link(at, Area::Shared, "NotYetReported", message, None));
        }
        Ok(None)
    }

    /// Whether the object states a wait, which a link then reports.
    fn push_stated(&mut self, at: &ObjectId, area: Area, object: &Value) -> bool {
        let meta = object.get("metadata").cloned().unwrap_or_default();
        let meta: ObjectMeta = serde_json::from_value(meta).unwrap_or_default();
        if self.is_paused(at, &meta, None) {
            return true;
        }
        if is_deleting(&meta) {
            self.push_deleting(at, &meta);
            return true;
        }
        let conditions = conditions(object);
        if let Some(bad) = first_bad(&conditions, &ORDER) {
            let link = link(at, area, bad);
            self.push(link);
            return true;
        }
        let errors = ["/status/error/message", "/status/error", "/status/errorMessage"];
        let Some(message) = errors
            .map(|place| text(object, place))
            .into_iter()
            .find(|text| !text.is_empty())
        else {
            return false;
        };
        self.push(Link {
            message: message.to_owned(),
            ..Link::plain(at, "has an error", Actor::User, "Do what the message says.")
        });
        true
    }

    pub(crate) fn firmware_settings(&mut self, at: &ObjectId) -> Result<Next, End> {
        let settings: HostFirmwareSettings = self.required(at)?;
        let title = "has settings that the machine does not have";
        self.of_firmware(
            at,
            &settings.metadata,
            &settings.status.conditions,
            (Area::Settings, title),
        )
    }

    pub(crate) fn firmware_components(&mut self, at: &ObjectId) -> Result<Next, End> {
        let components: HostFirmwareComponents = self.required(at)?;
        let (meta, all) = (&components.metadata, &components.status.conditions);
        let order = find(all, UPDATING).filter(|one| one.reason != UPDATE_MADE);
        match order {
            Some(order) if !is_deleting(meta) && first_bad(all, &[INVALID]).is_none() => {
                let link = link(at, Area::Components, order);
                self.push(link);
                // It has the error of an order that failed.
                let host = self.find::<BareMetalHost>(&at.name)?;
                Ok(host.map(|_| ObjectId::of::<BareMetalHost>(&at.name)))
            }
            _ => self.of_firmware(at, meta, all, (Area::Components, "has updates that are not made")),
        }
    }

    /// What the machine does not have yet: its host is changed while it is prepared.
    fn of_firmware(
        &mut self,
        at: &ObjectId,
        meta: &ObjectMeta,
        all: &[Condition],
        (area, title): (Area, &str),
    ) -> Result<Next, End> {
        if is_deleting(meta) {
            self.push_deleting(at, meta);
            return Ok(None);
        }
        if let Some(bad) = first_bad(all, &[INVALID]) {
            let link = link(at, area, bad);
            self.push(link);
            return Ok(None);
        }
        let changed = find(all, "ChangeDetected").filter(|one| one.status == ConditionStatus::True);
        let host = self.find::<BareMetalHost>(&at.name)?;
        let (Some(changed), Some(host)) = (changed, host) else {
            return Ok(None);
        };
        let is_in_use = matches!(
            host.status.provisioning.state,
            ProvisioningState::Provisioned | ProvisioningState::ExternallyProvisioned
        );
        if is_in_use {
            let cure = "Nothing has to be done now. They are applied after the host is deprovisioned, which erases its disk unless \
                        cleaning is disabled: a machine in use is never changed.";
            self.push(Link {
                message: changed.message.clone(),
                severity: Severity::Info,
                ..Link::plain(at, title, Actor::User, cure)
            });
            return Ok(None);
        }
        let cure = "They are applied when the host is prepared the next time; a machine in use is never changed.";
        self.push(Link {
            message: changed.message.clone(),
            ..Link::plain(at, title, Actor::System, cure)
        });
        Ok(Some(ObjectId::of::<BareMetalHost>(&at.name)))
    }

    /// A template has no conditions: a selector that cannot be read is what its controller waits for.
    pub(crate) fn machine_template(&mut self, at: &ObjectId) -> Result<Next, End> {
        let template: Metal3MachineTemplate = self.required(at)?;
        let selector = template
            .spec
            .template
            .spec
            .host_selector
            .as_ref()
            .map(HostSelector::labels);
        if let Some(Err(why)) = selector {
            self.push(reason_link(
                at,
                Area::Templates,
                "InvalidHostSelector",
                &why.to_string(),
                None,
            ));
        } else if is_deleting(&template.metadata) {
            self.push_deleting(at, &template.metadata);
        }
        Ok(None)
    }

    /// Cluster API reports about the whole; the first of its machines that waits is the cause.
    pub(crate) fn machine_deployment(&mut self, at: &ObjectId) -> Result<Next, End> {
        let deployment: MachineDeployment = self.required(at)?;
        let cluster = &deployment.spec.cluster_name;
        let machines = self.list::<Machine>(Some(cluster))?;
        let waiting = self.snapshot.memo(cluster.clone(), || {
            let mut waiting = BTreeMap::new();
            for machine in machines.iter().filter(|machine| !is_running(machine)) {
                let labels = machine.metadata.labels.as_ref();
                if let Some(of) = labels.and_then(|labels| labels.get(DEPLOYMENT_NAME_LABEL)) {
                    waiting
                        .entry(of.clone())
                        .or_insert_with(|| name(&machine.metadata).to_owned());
                }
            }
            WaitingOf(waiting)
        });
        let Some(first) = waiting.0.get(&at.name) else {
            machines.sought(None)?;
            return self.foreign(at);
        };
        self.push(Link::plain(at, "has a machine that is not ready", Actor::System, ""));
        Ok(Some(ObjectId::of::<Machine>(first)))
    }
}

/// A machine that is not ready, by the name of its MachineDeployment.
struct WaitingOf(BTreeMap<String, String>);
