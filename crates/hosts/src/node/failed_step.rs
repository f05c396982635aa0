//! Which step of a cleaning failed, by Ironic's error.

/// The interfaces that have steps.
const INTERFACES: [&str; 8] = [
    "bios",
    "boot",
    "deploy",
    "firmware",
    "management",
    "power",
    "raid",
    "vendor",
];

/// How Ironic's error begins when it rejects one step, and then runs none.
const NOT_BEGUN: &str = "Cannot clean node ";

/// How Ironic's errors about updates of the firmware begin.
pub(crate) const FIRMWARE_FAILED: [&str; 2] = ["Firmware update failed for node ", "Firmware update on node "];

/// The step that Ironic's error names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedStep {
    /// One of the RAID interface.
    Raid,
    /// One for the firmware, or that of another interface while Ironic polled an update that an earlier cleaning left.
    Firmware,
    /// One of another interface.
    Other,
    /// None: so an agent that does not start, or an operator who ends the cleaning. Also one that Ironic rejected before the first
    /// step ran.
    Unnamed,
}

impl FailedStep {
    /// The step that this error names: as `raid.create_configuration`, or as the dictionary of the step.
    #[must_use]
    pub fn of(error: &str) -> Self {
        let is_of_update = FIRMWARE_FAILED.iter().any(|form| error.contains(form));
        let mut named = INTERFACES.into_iter().filter(|interface| is_named(error, interface));
        match (is_named(error, "raid"), named.next()) {
            (true, _) => Self::Raid,
            (false, _) if is_of_update => Self::Firmware,
            (false, Some(_)) if !error.contains(NOT_BEGUN) => Self::Other,
            (false, _) => Self::Unnamed,
        }
    }
}

fn is_named(error: &str, interface: &str) -> bool {
    let forms = [
        format!("step {interface}."),
        format!("step: {interface}."),
        format!("'interface': '{interface}'"),
        // Redfish names the step of the BIOS without its interface in front.
        format!("{} apply_configuration", interface.to_uppercase()),
    ];
    forms.iter().any(|form| error.contains(form))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_is_recognised_in_each_form_that_ironic_uses() {
        for (error, expected) in [
            (
                "Clean step raid.create_configuration failed on node N. no disk",
                FailedStep::Raid,
            ),
            (
                "Agent returned error for clean step {'step': 'delete_configuration', 'priority': 0, 'interface': 'raid'} on node N",
                FailedStep::Raid,
            ),
            (
                "node does not support this clean step: raid.create_configuration",
                FailedStep::Raid,
            ),
            (
                "Clean step deploy.erase_devices_metadata failed on node N. raid: the disk does not answer",
                FailedStep::Other,
            ),
            (
                "Failed step {'interface': 'bios', 'step': 'apply_configuration', 'priority': 0}: no",
                FailedStep::Other,
            ),
            (
                "Redfish BIOS apply_configuration step failed. Attributes {'Turbo': 'On'} are not updated.",
                FailedStep::Other,
            ),
            (
                "Firmware update failed for node N, firmware http://f/raid.bin. Error: no",
                FailedStep::Firmware,
            ),
            (
                "the cleaning with updates of the firmware (bios) failed: Timeout reached while cleaning the node.",
                FailedStep::Unnamed,
            ),
            (
                "Cannot clean node N: node does not support this clean step: {'interface': 'bios', 'step': 'apply_configuration'}",
                FailedStep::Unnamed,
            ),
            (
                "Timeout reached while cleaning the node. Failed on step {}.",
                FailedStep::Unnamed,
            ),
            (
                "Failed to prepare node N for cleaning: https://raid.example does not answer",
                FailedStep::Unnamed,
            ),
            ("", FailedStep::Unnamed),
        ] {
            assert_eq!(FailedStep::of(error), expected, "{error}");
        }
    }
}
