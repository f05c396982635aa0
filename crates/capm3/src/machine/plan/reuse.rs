//! Node reuse: whether the host of a deleted machine is kept for the next machine of its set, and with which disks.

use metal3_api::infrastructure::CleaningMode;
use metal3_api::infrastructure::names::REUSE_AFTER_CLEANING_ANNOTATION;
use metal3_api::metal3::v1alpha1::{AutomatedCleaningMode, BareMetalHost};
use metal3_runtime::plan::{Observed, UnknownReason};

use super::host_changes::{self, Kept};
use super::{Decision, Planner};
use crate::machine::action::Reads;
use crate::machine::conditions::{Deletion, Stage};
use crate::machine::facts;
use crate::machine::reuse::Set;

/// The longest value of a label.
const LABEL_VALUE: usize = 63;

impl<'a> Planner<'a> {
    /// The set that keeps the host of the deleted machine, if one does. `Err` when it must be read first, or is not known.
    ///
    /// A Cluster that is deleted, or does not exist, keeps no hosts; neither does a set that is.
    // differs (`host-kept-for-set`): the Go manager keeps hosts for a set that is being deleted, and they stay reserved.
    fn keeping_set(&self) -> Result<Option<&'a Set>, Decision> {
        let cluster = self.facts.cluster.present();
        let is_served = cluster.is_some_and(|cluster| cluster.metadata.deletion_timestamp.is_none());
        // The cache of templates may be older than the template that this reconcile read.
        let own_template = self.facts.template.present();
        let own_asks = own_template.is_some_and(|template| template.spec.node_reuse == Some(true));
        if !is_served || !(self.facts.asks_for_reuse || own_asks) {
            return Ok(None);
        }
        match &self.facts.set {
            // differs (`reuse-long-name`): the Go manager removes the image first, and then fails for ever.
            Observed::Present(set) if set.reuses_hosts() && set.owner.len() > LABEL_VALUE => Err(undecided(format!(
                "spec.nodeReuse of Metal3MachineTemplate {} cannot be respected: the label of a kept host holds no name of a \
                 set with more than 60 characters; set it to false",
                set.template.metadata.name.as_deref().unwrap_or_default()
            ))),
            Observed::Present(set) => Ok(Some(set).filter(|set| set.reuses_hosts())),
            Observed::Absent => Ok(None),
            Observed::Unknown(UnknownReason::NotRead) => Err(Decision::Read(Reads::Set)),
            Observed::Unknown(why) => Err(undecided(format!(
                "a Metal3MachineTemplate of the namespace sets nodeReuse, and whether the machine's set does is not known: {why}"
            ))),
        }
    }

    /// The set that the host is kept for when it is released.
    pub(super) fn kept_for(&self) -> Result<Option<Kept>, Decision> {
        let set = self.keeping_set()?;
        Ok(set.map(|set| Kept {
            owner: set.owner.clone(),
            cluster: self.cluster_name().to_owned(),
            namespace: self.namespace().to_owned(),
        }))
    }

    /// Why the image of the host must not be removed: its disks would be cleaned, and the next machine of the set is to find
    /// them. The wait ends when the user changes one of the fields in the message, when the set needs no other machine, and
    /// when the set or the Cluster is deleted.
    // differs (`reuse-without-cleaning`): the Go manager cleans the disks.
    pub(super) fn undecided_cleaning(&self, host: &BareMetalHost) -> Option<Decision> {
        if !facts::is_provisioned(host) && host_changes::is_idle(host) {
            return None;
        }
        let set = match self.keeping_set() {
            Ok(set) => set?,
            Err(decision) => return Some(decision),
        };
        let is_kept = match self.cleaning_mode() {
            Some(mode) => mode == CleaningMode::Disabled,
            None => host.spec.automated_cleaning_mode == Some(AutomatedCleaningMode::Disabled),
        };
        // Who chose disks for the host knows what a cleaning leaves.
        let is_kept = is_kept || host.chooses_what_is_kept();
        if is_kept || set.accepts_cleaning() || !set.replaces {
            return None;
        }
        let name = host.metadata.name.as_deref().unwrap_or_default();
        let template = set.template.metadata.name.as_deref().unwrap_or_default();
        let field = match (facts::template_of(self.before), &self.facts.template) {
            (Some(own), Observed::Present(_)) => {
                format!("spec.template.spec.automatedCleaningMode of Metal3MachineTemplate {own}")
            }
            _ => "spec.automatedCleaningMode of this Metal3Machine".to_owned(),
        };
        Some(undecided(format!(
            "BareMetalHost {name} is not deprovisioned: spec.nodeReuse of Metal3MachineTemplate {template} keeps it for the \
             next machine, and automated cleaning would erase its disks; set {field} to disabled to keep them, or annotate \
             Metal3MachineTemplate {template} with {REUSE_AFTER_CLEANING_ANNOTATION} to have them cleaned"
        )))
    }
}

fn undecided(message: String) -> Decision {
    Decision::UpdateStatus(Stage::Deleting(Deletion::ReuseUndecided(message)))
}
