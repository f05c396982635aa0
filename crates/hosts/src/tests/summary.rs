//! What a plan does, in a line of words: the rows of the decision tables compare it.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType, OperationalStatus};
use metal3_runtime::patch::MergePatch;
use metal3_runtime::work::{Next, WaitingOn};

use super::fixture::{Fixture, without_version};
use crate::action::{Action, Order, Plan};
use crate::names::wait_reason;
use crate::settings::FEED_RECHECK;
impl Fixture {
    pub(crate) fn summary(&self) -> String {
        let plan = self.plan();
        self.line(&plan)
    }

    #[expect(clippy::too_many_lines, reason = "a line for each action")]
    pub(crate) fn line(&self, plan: &Plan) -> String {
        let (previous, after) = (self.after(&Plan::default()), self.after(plan));
        let mut parts: Vec<String> = plan.reads.iter().map(|read| format!("reads {read:?}")).collect();
        // Without conditions, which follow from the rest.
        let plain = |host: &BareMetalHost| {
            let mut status = host.status.clone();
            (status.conditions, status.last_updated) = (Vec::new(), None);
            status
        };
        let is_changed = plain(&previous) != plain(&after);
        parts.extend(plan.actions.iter().filter_map(|action| match action {
            Action::Ironic(Order { request, .. }) => Some(format!("requests {}", request.verb())),
            Action::PatchHost(_) => Some("changes the host".to_owned()),
            Action::CreateHardwareData(_) => Some("creates hardware data".to_owned()),
            Action::PatchHardwareData(_) => Some("changes hardware data".to_owned()),
            Action::PatchSecret { name, .. } => Some(format!("changes Secret {name}")),
            Action::CreateFirmwareSchema(_) => Some("creates a schema".to_owned()),
            Action::PatchFirmwareSettings(_) => Some("owns the settings".to_owned()),
            Action::PatchUpdatePolicy(_) => Some("owns the policy".to_owned()),
            Action::ReportFirmwareSettings { .. } => Some("reports the settings".to_owned()),
            Action::CreateAgentImage(_) => Some("creates the image of the agent".to_owned()),
            Action::PatchAgentImage(_) => Some("changes the image of the agent".to_owned()),
            Action::RecordUpdates(patch) => Some(format!("records {}", recorded(patch))),
            Action::PatchFirmwareComponents(_) => Some("owns the components".to_owned()),
            Action::ReportFirmwareComponents { .. } => Some("reports the firmware".to_owned()),
            Action::ProtectDisc(_) => Some("protects the image".to_owned()),
            Action::RecordDisc { .. } => Some("records the image".to_owned()),
            Action::ReportDisc { .. } => Some("reports the image".to_owned()),
            Action::DiscFailed { is_last: true, .. } => Some("gives up".to_owned()),
            Action::DiscFailed { .. } => Some("counts a failure".to_owned()),
            Action::ReserveBudget
            | Action::Count(_)
            | Action::EndPowerRequest
            | Action::EndRefusal
            | Action::ReleaseSlot
            | Action::EndDiscAttempts => None,
        }));
        if plan.status.is_some() && is_changed {
            parts.push("writes the status".to_owned());
        }
        let (from, to) = (&previous.status.provisioning.state, &after.status.provisioning.state);
        if from != to {
            parts.push(format!("to {to}"));
        }
        if after.status.error_type != previous.status.error_type
            || after.status.error_message != previous.status.error_message
        {
            parts.push(match after.status.error_type {
                Some(kind) => format!("{}: {}", kind_text(kind), after.status.error_message),
                None => "error cleared".to_owned(),
            });
        }
        if after.status.operational_status == OperationalStatus::Delayed {
            parts.push("delayed".to_owned());
        }
        let withheld = after
            .status
            .conditions
            .iter()
            .find(|condition| condition.type_ == "Held");
        parts.extend(withheld.map(|withheld| format!("withheld: {}", withheld.reason)));
        parts.push(next_text(&plan.next));
        parts.join(", ")
    }
}

fn next_text(next: &Next) -> String {
    let text = match next {
        Next::Done => "settled",
        Next::Requeue => "replan",
        Next::RequeueAfter(_) => panic!("{next:?} has no reason"),
        Next::Waiting(WaitingOn {
            recheck: None | Some(FEED_RECHECK),
            reason,
            message,
            ..
        }) => match *reason {
            wait_reason::WAITING_FOR_IRONIC => "waits for the node",
            wait_reason::WAITING_FOR_SLOT => "waits for a slot",
            wait_reason::WAITING_FOR_AGENT_IMAGE => "waits for the image of the agent",
            wait_reason::WAITING_FOR_USER => "waits for the user",
            wait_reason::WAITING_FOR_SECRET => {
                return format!("waits for {}", message.trim_end_matches(" must be created or changed"));
            }
            _ => panic!("{next:?} waits for a time without one"),
        },
        Next::Waiting(_) => "waits for a time",
    };
    text.to_owned()
}

/// The record of an order, by its reason.
fn recorded(patch: &MergePatch) -> String {
    let document = without_version(patch);
    let conditions = document["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let record = conditions.iter().find(|condition| condition["type"] == "Updating");
    record
        .map_or("no update", |record| record["reason"].as_str().unwrap())
        .to_owned()
}

fn kind_text(kind: ErrorType) -> String {
    serde_json::to_value(kind).unwrap().as_str().unwrap().to_owned()
}
