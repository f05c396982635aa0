//! Phase and retries, kept in an annotation: a move or a restore drops the status. A remediation that lost it would begin
//! again, and power off a host that has just come back.
//!
//! differs (`remediation-moved`): the Go manager begins again.

use metal3_api::cluster::Machine;
use metal3_api::infrastructure::names::{REMEDIATION_FINALIZER, REMEDIATION_PROGRESS_ANNOTATION};
use metal3_api::infrastructure::v1beta2::{Metal3Remediation, Metal3RemediationStatus, RemediationPhase};
use metal3_runtime::patch::{MergePatch, with_finalizer};
use serde::{Deserialize, Serialize};

use super::{Decision, Planner, Reads, Wait};
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
    /// None for a phase that no controller writes, and without one.
    fn known(phase: Option<RemediationPhase>, retry_count: Option<i32>) -> Option<Self> {
        let is_known = |phase: &RemediationPhase| !matches!(phase, RemediationPhase::Other(_));
        Some(Self {
            phase: phase.filter(is_known)?,
            // The schema of the status has no count below 1.
            retry_count: retry_count.filter(|count| *count > 0),
        })
    }

    fn of(status: &Metal3RemediationStatus) -> Option<Self> {
        Self::known(status.phase.clone(), status.retry_count)
    }

    /// What the annotation contains, or its text when that is not understood.
    fn recorded(remediation: &Metal3Remediation) -> Option<Result<Self, &str>> {
        let annotations = remediation.metadata.annotations.as_ref();
        let text = annotations.and_then(|all| all.get(REMEDIATION_PROGRESS_ANNOTATION))?;
        let read = serde_json::from_str(text).ok();
        let read = read.and_then(|read: Self| Self::known(Some(read.phase), read.retry_count));
        Some(read.ok_or(text))
    }
}

impl Planner<'_> {
    /// Makes the status and the annotation equal before anything else is done. Returns how the plan ends if they differ.
    pub(super) fn settle_progress(&mut self, machine: &Machine) -> Option<Decision> {
        let recorded = Progress::recorded(self.before);
        if self.status.phase.is_some() {
            let progress = Progress::of(&self.status)?;
            // A remediation that another program or an older version continued.
            if recorded.and_then(Result::ok).as_ref() == Some(&progress) {
                return None;
            }
            let patch = recording(self.before, &progress, false)?;
            self.actions.push(Action::PatchRemediation(patch));
            return Some(Decision::Continue);
        }
        match recorded? {
            Ok(progress) => Some(self.restore_status(progress, machine)),
            // A new beginning would power off a host that may have come back.
            Err(text) => Some(self.after_end(Wait::unknown_progress(text))),
        }
    }

    fn restore_status(&mut self, progress: Progress, machine: &Machine) -> Decision {
        if progress.phase == RemediationPhase::DeletingMachine {
            // The Machine's condition is in its status, which a move drops as well.
            if let Some(wait) = self.paused(self.facts.host.present().map(|host| &**host)) {
                return Decision::Wait(wait);
            }
            if !self.facts.is_confirmed {
                return Decision::Read(Reads::Everything);
            }
            self.give_up(machine);
        }
        self.status.phase = Some(progress.phase);
        self.status.retry_count = progress.retry_count;
        self.status.last_remediated = Some(self.facts.now);
        Decision::Continue
    }

    /// Writes a change of phase or retries into the annotation, before all else. The first one is written with the finalizer.
    pub(super) fn record_progress(&mut self) {
        let progress = Progress::of(&self.status);
        let recorded = Progress::recorded(self.before).and_then(Result::ok);
        if progress == Progress::of(&self.before.status) || progress == recorded {
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
