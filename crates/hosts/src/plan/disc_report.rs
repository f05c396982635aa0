//! What the status and the Events of a DataImage say about its disc.

use metal3_api::metal3::v1alpha1::{AttachedImage, DataImage, DataImageError, DataImageStatus};
use metal3_domain::uri::public_text;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::{Observed, PlannedEvent};
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;

use crate::action::Action;
use crate::facts::{DISC_ATTEMPTS, DiscAttempts, DiscOrder, DriveView};
use crate::names::disc_reason::{EJECTED, FAILED, INSERTED};
use crate::node::drive::Drive;
use crate::plan::disc::{Purpose, RETRY, recorded};
use crate::plan::planner::{Decision, PlanResult, Planner, document};
use crate::plan::wait;

/// Reports that the drive is as it is asked for.
pub(super) fn report_done(
    planner: &mut Planner<'_>,
    object: &DataImage,
    (wanted, purpose): (Option<&str>, Purpose),
    attempts: &DiscAttempts,
) {
    let status = DataImageStatus {
        attached_image: wanted.map(|url| AttachedImage { url: url.to_owned() }),
        error: None,
        last_reconciled: Some(planner.facts.now),
    };
    let event = match (wanted, attempts.ordered.filter(|_| !attempts.is_announced)) {
        (Some(url), Some(DiscOrder::Insert)) => {
            let message = format!("the virtual drive of the host holds the image {url}");
            Some(PlannedEvent::normal(INSERTED, public_text(&message)))
        }
        (None, Some(DiscOrder::Eject)) => {
            let message = "the image was ejected from the virtual drive of the host";
            Some(PlannedEvent::normal(EJECTED, message.to_owned()))
        }
        _ => None,
    };
    match purpose {
        Purpose::Start => report(planner, object, status, event),
        // Without its node nothing can show that the drive is empty, so that is recorded first, and once.
        Purpose::Removal if recorded(object).is_none() && object.status.error.is_none() => {}
        Purpose::Removal => {
            let record = patch(object, status).map(|patch| Action::RecordDisc { patch, event });
            planner.actions.extend(record);
        }
    }
}

// differs: `data-image-start`. The Go manager tries without end, and the host stays off.
/// Reports a failure. The next attempt follows after a delay, until there were enough.
pub(super) fn failed(
    planner: &mut Planner<'_>,
    object: &DataImage,
    why: &str,
    (is_final, purpose): (bool, Purpose),
) -> Decision {
    let is_last = is_final || is_last_attempt(planner);
    report_failure(planner, object, why, (is_last, purpose));
    Decision::Wait(match is_last {
        true => Next::Requeue,
        false => wait::for_time(RETRY, "an attempt with the disc of the host failed"),
    })
}

/// Reports why nothing is attempted, and goes on after that: a process that dies between the order and its report would leave none
/// until the next start. The same reason is reported once.
pub(super) fn give_up(planner: &mut Planner<'_>, object: &DataImage, why: &str, purpose: Purpose) -> PlanResult<()> {
    let message = text(why, true, purpose);
    if reported(object) == Some(message.as_str()) {
        return Ok(());
    }
    report_failure(planner, object, why, (true, purpose));
    Err(Decision::Wait(Next::Requeue))
}

/// Reports a drive that cannot be read. After enough failures nothing waits for it, and each later attempt to start the machine
/// reads it again: the same BMC fails both, and is back for both.
pub(super) fn unread(planner: &mut Planner<'_>, object: &DataImage, why: &str, purpose: Purpose) -> PlanResult<()> {
    if !is_last_attempt(planner) {
        return Err(failed(planner, object, why, (false, purpose)));
    }
    let message = text(why, true, purpose);
    if reported(object) != Some(message.as_str()) {
        add_error(planner, object, message);
    }
    Ok(())
}

/// Whether one failure more ends the attempts.
const fn is_last_attempt(planner: &Planner<'_>) -> bool {
    planner.facts.disc.attempts.failures.saturating_add(1) >= DISC_ATTEMPTS
}

fn report_failure(planner: &mut Planner<'_>, object: &DataImage, why: &str, (is_last, purpose): (bool, Purpose)) {
    let message = text(why, is_last, purpose);
    planner.add(Action::DiscFailed {
        message: message.clone(),
        is_last,
    });
    add_error(planner, object, message);
}

pub(super) fn add_error(planner: &mut Planner<'_>, object: &DataImage, message: String) {
    let count = object.status.error.as_ref().map_or(0, |error| error.count);
    let mut status = object.status.clone();
    status.error = Some(DataImageError {
        count: count.saturating_add(1),
        message: message.clone(),
    });
    status.last_reconciled = Some(planner.facts.now);
    if is_insertion_over(planner) {
        status.attached_image = None;
    }
    report(planner, object, status, Some(PlannedEvent::warning(FAILED, message)));
}

/// Whether the drive is empty, and an insertion that was recorded has ended or was not begun.
fn is_insertion_over(planner: &Planner<'_>) -> bool {
    let disc = &planner.facts.disc;
    let is_rejected = disc.attempts.refused.as_ref().is_some_and(|refused| refused.is_final);
    let is_ended = disc.attempts.ordered == Some(DiscOrder::Insert);
    matches!(disc.drive, Observed::Present(DriveView::Known(Drive::Empty))) && (is_rejected || is_ended)
}

/// Repeats a report that was not written.
pub(super) fn report_again(planner: &mut Planner<'_>, object: &DataImage, attempts: &DiscAttempts) {
    if let Some(message) = attempts
        .message
        .clone()
        .filter(|message| reported(object) != Some(message))
    {
        add_error(planner, object, message);
    }
}

pub(super) fn reported(object: &DataImage) -> Option<&str> {
    object.status.error.as_ref().map(|error| error.message.as_str())
}

fn text(why: &str, is_last: bool, purpose: Purpose) -> String {
    public_text(&match is_last {
        true => format!("{why}; {}", purpose.without()),
        false => why.to_owned(),
    })
}

fn report(planner: &mut Planner<'_>, object: &DataImage, status: DataImageStatus, event: Option<PlannedEvent>) {
    planner
        .actions
        .extend(patch(object, status).map(|patch| Action::ReportDisc { patch, event }));
}

/// A patch of the status, if it changes something.
pub(super) fn patch(object: &DataImage, status: DataImageStatus) -> Option<MergePatch> {
    let version = ResourceVersion::parse(object.metadata.resource_version.as_deref()?).ok()?;
    let mut changed = object.clone();
    changed.status = status;
    let patch = Changes::between(&document(object), &document(&changed)).status?;
    Some(patch.with_precondition(&version))
}
