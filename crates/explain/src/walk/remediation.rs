//! Metal3Remediation.

use metal3_api::cluster::Machine;
use metal3_api::infrastructure::conditions::remediation as conditions;
use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::{Metal3Machine, Metal3Remediation};
use metal3_api::meta::ConditionStatus;
use metal3_api::metal3::v1alpha1::BareMetalHost;

use super::conditions::{Bad, first_bad, link, reason_link};
use super::{End, Next, Walk, is_deleting, owner};
use crate::object::ObjectId;
use crate::table::Area;

const ORDER: [Bad; 2] = [
    (conditions::PAUSED, ConditionStatus::True),
    (conditions::REMEDIATED, ConditionStatus::False),
];

impl Walk<'_> {
    pub(crate) fn remediation(&mut self, at: &ObjectId) -> Result<Next, End> {
        let remediation: Metal3Remediation = self.required(at)?;
        let Some(bad) = first_bad(&remediation.status.conditions, &ORDER) else {
            if is_deleting(&remediation.metadata) {
                self.push_deleting(at, &remediation.metadata);
            } else if remediation.status.conditions.is_empty() {
                let message = "no controller wrote a condition";
                self.push(reason_link(at, Area::Shared, "NotYetReported", message, None));
            }
            return Ok(None);
        };
        let link = link(at, Area::Remediation, bad);
        self.push(link);
        let is_power = [
            conditions::REASON_WAITING_FOR_POWER_OFF,
            conditions::REASON_WAITING_FOR_POWER_ON,
        ];
        if !is_power.iter().any(|reason| reason.as_str() == bad.reason) {
            return Ok(None);
        }
        self.powered_host(owner::<Machine>(&remediation.metadata))
    }

    /// The host of the Machine that is powered off or on.
    fn powered_host(&mut self, machine: Option<&str>) -> Result<Next, End> {
        let Some(machine) = machine else { return Ok(None) };
        let Some(machine) = self.find::<Machine>(machine)? else {
            return Ok(None);
        };
        let machine: Option<Metal3Machine> = self.find(&machine.spec.infrastructure_ref.name)?;
        let annotations = machine.and_then(|machine| machine.metadata.annotations);
        let host = annotations.and_then(|all| all.get(HOST_ANNOTATION).cloned());
        Ok(host.map(|key| ObjectId::of::<BareMetalHost>(key.rsplit('/').next().unwrap_or(&key))))
    }
}
