//! What a machine without a host says of a control plane that lacks what workers need.

use metal3_api::meta::ConditionStatus;
use metal3_runtime::plan::Observed;

use super::Planner;
use crate::cluster::join::join_condition;

impl Planner<'_> {
    /// A message, with a note about the control plane when workers are known to find something missing.
    pub(super) fn with_join_note(&self, message: String) -> String {
        match self.join_note() {
            Some(note) => format!("{message}; {note}"),
            None => message,
        }
    }

    /// Where to read what is missing. A machine is not held back by it.
    pub(super) fn join_note(&self) -> Option<String> {
        let Observed::Present(cluster) = self.facts.cluster.as_deref() else {
            return None;
        };
        let found = self.resolved(cluster).one()?;
        let condition = join_condition(found).filter(|one| one.status == ConditionStatus::False)?;
        let name = found.metadata.name.as_deref().unwrap_or_default();
        Some(format!(
            "the control plane lacks what workers need: see the condition {} of Metal3Cluster {name}",
            condition.type_
        ))
    }
}
