//! Phase and retries, kept in an annotation: a move or a restore drops the status. A remediation that lost it would begin
//! again, and power off a host that has just come back.
//!
//! differs (`remediation-moved`): the Go manager begins again.

use metal3_api::infrastructure::names::{REMEDIATION_FINALIZER, REMEDIATION_PROGRESS_ANNOTATION};
use metal3_api::infrastructure::v1beta2::{Metal3Remediation, Metal3RemediationStatus, RemediationPhase};
use metal3_runtime::patch::{MergePatch, with_finalizer};
use serde::{Deserialize, Serialize};

use super::Planner;
use crate::diff::{changes, version};
use crate::remediation::action::Action;

/// What the annotation contains. A time is none of it: the pause of a move uses up no time of an attempt.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    phase: RemediationPhase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retry_count: Option<i32>,
}

impl Progress {
    fn of(status: &Metal3RemediationStatus) -> Option<Self> {
        Some(Self {
            phase: status.phase.clone()?,
            retry_count: status.retry_count,
        })
    }

    fn recorded(remediation: &Metal3Remediation) -> Option<Self> {
        let annotations = remediation.metadata.annotations.as_ref();
        let text = annotations.and_then(|all| all.get(REMEDIATION_PROGRESS_ANNOTATION))?;
        // An unreadable text is not likely to become readable.
        let progress: Self = serde_json::from_str(text).ok()?;
        (!matches!(progress.phase, RemediationPhase::Other(_))).then_some(progress)
    }
}

impl Planner<'_> {
    /// Restores a status without a phase from the annotation. Returns whether it is restored.
    pub(super) fn restore_progress(&mut self) -> bool {
        let Some(progress) = Progress::recorded(self.before).filter(|_| self.status.phase.is_none()) else {
            return false;
        };
        self.status.phase = Some(progress.phase);
        self.status.retry_count = progress.retry_count;
        self.status.last_remediated = Some(self.facts.now);
        true
    }

    /// Writes a change of phase or retries into the annotation, before all else. The first one is written with the finalizer.
    pub(super) fn record_progress(&mut self) {
        let progress = Progress::of(&self.status);
        if progress == Progress::of(&self.before.status) || progress == Progress::recorded(self.before) {
            return;
        }
        let is_of_remediation = |action: &Action| matches!(action, Action::PatchRemediation(_));
        // Only the first step of the first attempt writes the remediation with another change: the finalizer.
        let begins = self.before.status.phase.is_none() && self.actions.iter().any(is_of_remediation);
        let patch = progress.and_then(|progress| recording(self.before, &progress, begins));
        if begins {
            self.actions.retain(|action| !is_of_remediation(action));
        }
        if let Some(patch) = patch {
            self.actions.insert(0, Action::PatchRemediation(patch));
        }
    }
}

fn recording(remediation: &Metal3Remediation, progress: &Progress, begins: bool) -> Option<MergePatch> {
    let mut after = remediation.clone();
    if begins {
        after = with_finalizer(after, REMEDIATION_FINALIZER);
    }
    let annotations = after.metadata.annotations.get_or_insert_default();
    let text = serde_json::to_string(progress).ok()?;
    annotations.insert(REMEDIATION_PROGRESS_ANNOTATION.to_owned(), text);
    let at = version(&remediation.metadata)?;
    Some(changes(remediation, &after).main?.with_precondition(&at))
}
