//! What machines take over from their template after their creation: the cleaning mode.

use metal3_api::infrastructure::CleaningMode;
use metal3_runtime::plan::Observed;

use super::Planner;
use crate::machine::facts;

impl Planner<'_> {
    /// Writes the template's cleaning mode to the machine, if it differs. Whether it did.
    pub(super) fn copy_template(&mut self) -> bool {
        let mode = self.cleaning_mode();
        self.patch_machine(|machine| machine.spec.automated_cleaning_mode = mode);
        !self.actions.is_empty()
    }

    /// The template, if it must be read live before an image is removed. With cleaning disabled nothing else can forbid it.
    pub(super) fn unconfirmed_template(&self) -> Option<&str> {
        let is_unconfirmed = self.rules.confirm_cleaning() && !self.facts.template_is_live;
        let is_cleaned = self.cleaning_mode() != Some(CleaningMode::Disabled);
        facts::template_of(self.before).filter(|_| is_unconfirmed && is_cleaned)
    }

    /// Why the image must not be removed: the template may forbid that the disks are cleaned, and cannot be read.
    pub(super) fn unreadable_template(&self) -> Option<String> {
        let (template, why) = facts::template_of(self.before).zip(self.facts.template.unknown())?;
        let is_cleaned = self.cleaning_mode() != Some(CleaningMode::Disabled);
        is_cleaned.then(|| format!("Metal3MachineTemplate {template} cannot be read: {why}"))
    }

    /// The template's mode, or the machine's when the template has none. An unreadable template changes nothing.
    // differs (`template-cleaning-mode`): the Go manager writes it with each reconcile, to paused machines too.
    pub(super) fn cleaning_mode(&self) -> Option<CleaningMode> {
        let template = match self.facts.template.as_deref() {
            Observed::Present(template) => template.spec.template.spec.automated_cleaning_mode,
            Observed::Absent | Observed::Unknown(_) => None,
        };
        template.or(self.before.spec.automated_cleaning_mode)
    }
}
