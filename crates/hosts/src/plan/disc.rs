//! The disc of a host: its DataImage is inserted into the virtual drive or ejected from it directly before the machine starts, and
//! ejected before the node of a deleted host is deleted.
//!
//! | The drive | The host has a DataImage | It has none, or one that is deleted |
//! |---|---|---|
//! | empty | insert | done |
//! | holds what the status records | done if that is asked for; else eject, then insert | eject |
//! | holds another disc, or what the status does not record | eject, then insert | eject what a client attached |
//!
//! The status records the image before it is inserted, and counts only together with the drive, which is read before each
//! start: a node that was adopted or made again, and another manager, may have changed it. differs (`data-image-drive`): the Go
//! manager takes the record for what is in the drive while that holds anything. The start waits for a limited number of
//! failures, and only for those that are about the disc. Nothing is ever powered off for a disc.

use std::time::Duration;

use metal3_api::metal3::names::DATA_IMAGE_FINALIZER;
use metal3_api::metal3::v1alpha1::{AttachedImage, DataImage, ProvisioningState as State};
use metal3_ironic::model::node::Node;
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Next;

use crate::action::{Action, Disc, Request};
use crate::facts::{DiscAttempts, DiscOrder, DriveView, HostFreshness, LOCK_THRESHOLD, NodeFreshness, Read};
use crate::names::reason::DATA_IMAGE_UNKNOWN;
use crate::node::drive::{Drive, runs_from_disc};
use crate::plan::conditions::POWER_FAULT;
use crate::plan::disc_report::{add_error, failed, give_up, patch, report_again, report_done, reported, unread};
use crate::plan::error::{Failure, kind_in};
use crate::plan::ownership::is_owned_node;
use crate::plan::planner::{Decision, PlanResult, Planner, document};
use crate::plan::power::require_end_of_switching;
use crate::plan::wait;

/// Between two attempts. A BMC that has not ended an earlier request needs seconds. The Go manager's number.
pub(crate) const RETRY: Duration = Duration::from_secs(30);

/// Between two reads of a drive that a BMC may show as it was.
const LATE_RECHECK: Duration = Duration::from_secs(5);

/// What happens next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The machine starts.
    Start,
    /// The node of a deleted host is deleted.
    Removal,
}

impl Purpose {
    pub(super) const fn without(self) -> &'static str {
        match self {
            Self::Start => "the host starts all the same, and it is tried again at the next start",
            Self::Removal => "the host is deleted all the same; eject the image at the BMC",
        }
    }

    const fn cure(self) -> &'static str {
        match self {
            Self::Start => "look at the roles and at the object, then restart the host",
            Self::Removal => "if one was inserted, eject it at the BMC; look at the roles and at the object",
        }
    }
}

/// What to do about the drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The drive is as it is asked for.
    Done,
    Insert,
    Eject,
    /// The last order has ended without its effect.
    Failed(DiscOrder),
    /// An order that another process sent may still come.
    Wait(Duration),
}

/// The decision. `wanted`: the URL of the image that is asked for; `recorded`: the one in the status.
pub(crate) fn step(wanted: Option<&str>, recorded: Option<&str>, drive: Drive, attempts: &DiscAttempts) -> Step {
    use DiscOrder::{Eject, Insert};
    let ordered = attempts.ordered;
    let eject = if ordered == Some(Eject) {
        Step::Failed(Eject)
    } else {
        Step::Eject
    };
    let earlier = attempts
        .earlier_left
        .filter(|_| ordered.is_none() && recorded.is_some());
    let is_recorded = recorded == wanted;
    // An order for another image would replace it.
    if let (Drive::Empty, false, Some(left)) = (drive, is_recorded, earlier) {
        return Step::Wait(left);
    }
    match (wanted, drive) {
        (Some(_), Drive::Empty) if ordered == Some(Insert) => Step::Failed(Insert),
        (Some(_), Drive::Empty) => Step::Insert,
        (Some(_), Drive::Attached | Drive::Unnamed) if is_recorded && ordered != Some(Eject) => Step::Done,
        // The BMC names discs in its own way, or says nothing.
        (Some(_), Drive::Other | Drive::Silent) if is_recorded && ordered == Some(Insert) => Step::Done,
        (Some(_), Drive::Silent) if is_recorded || recorded.is_none() || ordered == Some(Eject) => Step::Insert,
        (Some(_), _) => eject,
        (None, Drive::Empty) => Step::Done,
        (None, Drive::Attached | Drive::Unnamed) => eject,
        // Another client or a person inserted it, as far as the status shows.
        (None, Drive::Other) if recorded.is_none() => Step::Done,
        (None, Drive::Other) => eject,
        (None, Drive::Silent) if recorded.is_none() || ordered == Some(Eject) => Step::Done,
        (None, Drive::Silent) => Step::Eject,
    }
}

/// Reports that the disc of the host stays as it is, because its machine is rebooted without being off.
pub(crate) fn before_reboot_in_place(planner: &mut Planner<'_>) {
    let Some(object) = subject(planner, Purpose::Start) else {
        return;
    };
    if wanted(object, Purpose::Start) == recorded(object) {
        return;
    }
    let why = "an image is inserted or ejected only while the machine is off, which spec.disablePowerOff forbids; remove that field \
               and then switch the host off and on, or delete the DataImage"
        .to_owned();
    if reported(object) != Some(why.as_str()) {
        add_error(planner, object, why);
    }
}

/// The machine runs: what was attempted before it started is over.
pub(crate) fn end_attempts(planner: &mut Planner<'_>) {
    if planner.facts.disc.attempts.is_begun() {
        planner.add(Action::EndDiscAttempts);
    }
}

/// Inserts or ejects the disc of a running host before its machine is switched on. `Ok`: nothing of it delays the start.
pub(crate) fn before_start(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    match planner.state() {
        State::Provisioned | State::ExternallyProvisioned => prepare(planner, node, Purpose::Start),
        _ => Ok(()),
    }
}

/// Ejects the disc of a deleted host: nothing could eject it without the node.
pub(crate) fn before_removal(planner: &mut Planner<'_>, node: &Node) -> PlanResult<()> {
    // What Ironic does with such a node ends first, or is ended by the deletion. A detached machine is left as it is.
    let is_left = node.provision_state.is_transitional() || planner.host().detach_request().is_some();
    if is_left || !planner.is_deleting() || !is_owned_node(planner, node) {
        return Ok(());
    }
    prepare(planner, node, Purpose::Removal)
}

/// The DataImage, if it may concern the drive.
fn subject<'a>(planner: &mut Planner<'a>, purpose: Purpose) -> Option<&'a DataImage> {
    let object = match planner.facts.disc.object.clone() {
        Observed::Present(object) => object,
        Observed::Absent => return None,
        // Only a person ends it, so nothing waits for that.
        Observed::Unknown(why) => {
            let message = format!(
                "whether the host has a DataImage is not known ({why}), so its virtual drive is left as it is; {}",
                purpose.cure()
            );
            planner.record_warning(DATA_IMAGE_UNKNOWN, message);
            return None;
        }
    };
    let may_be_left = is_protected(object) || recorded(object).is_some();
    let is_asked_for = purpose == Purpose::Start && !is_deleted(object);
    (may_be_left || is_asked_for).then_some(object)
}

const fn is_deleted(object: &DataImage) -> bool {
    object.metadata.deletion_timestamp.is_some()
}

/// Whether the object cannot vanish while the drive holds the disc.
fn is_protected(object: &DataImage) -> bool {
    let mut finalizers = object.metadata.finalizers.iter().flatten();
    finalizers.any(|name| name == DATA_IMAGE_FINALIZER)
}

/// The patch that protects it.
fn protection(object: &DataImage) -> Option<MergePatch> {
    let version = ResourceVersion::parse(object.metadata.resource_version.as_deref()?).ok()?;
    let mut changed = object.clone();
    let finalizers = changed.metadata.finalizers.get_or_insert_default();
    finalizers.push(DATA_IMAGE_FINALIZER.to_owned());
    let patch = Changes::between(&document(object), &document(&changed)).main?;
    Some(patch.with_precondition(&version))
}

/// The URL in the status. The Go manager leaves an empty one.
pub(super) fn recorded(object: &DataImage) -> Option<&str> {
    let attached = object.status.attached_image.as_ref()?;
    Some(attached.url.as_str()).filter(|url| !url.is_empty())
}

/// The image that the drive is to hold.
pub(crate) fn wanted(object: &DataImage, purpose: Purpose) -> Option<&str> {
    let is_wanted = purpose == Purpose::Start && !is_deleted(object) && !object.spec.url.is_empty();
    is_wanted.then_some(object.spec.url.as_str())
}

fn prepare(planner: &mut Planner<'_>, node: &Node, purpose: Purpose) -> PlanResult<()> {
    let Some(object) = subject(planner, purpose) else {
        return Ok(());
    };
    let attempts = planner.facts.disc.attempts.clone();
    if attempts.is_over {
        report_again(planner, object, &attempts);
        return Ok(());
    }
    if let Some(left) = attempts.delay_left {
        return Err(Decision::Wait(wait::for_time(
            left,
            "an attempt with the disc of the host failed",
        )));
    }
    if runs_from_disc(node) && wanted(object, purpose).is_some() {
        let why = "the system of the host runs from a disc itself, which this image would replace; delete the DataImage, or \
                   deploy the host to its disk";
        return give_up(planner, object, why, purpose);
    }
    require_end_of_switching(planner, node)?;
    let drive = require_drive(planner)?;
    if let Some(refused) = &attempts.refused {
        return Err(failed(planner, object, &refused.message, (refused.is_final, purpose)));
    }
    match drive {
        DriveView::Known(drive) => {
            require_live_neighbours(planner)?;
            carry_out(planner, object, (node, *drive), purpose)
        }
        DriveView::Unsupported(_) if wanted(object, purpose).is_none() && recorded(object).is_none() => Ok(()),
        DriveView::Unsupported(why) => {
            let why = format!(
                "Ironic has no virtual drive of this host: {why}; use a Redfish BMC with virtual media and Ironic with API 1.93 \
                 or later, or delete the DataImage"
            );
            give_up(planner, object, &why, purpose)
        }
        DriveView::Failed(why) => {
            let why = format!("the virtual drive cannot be read: {why}; look at the BMC of the host");
            unread(planner, object, &why, purpose)
        }
    }
}

/// Requires a view of the drive that this reconcile has read.
fn require_drive<'a>(planner: &Planner<'a>) -> PlanResult<&'a DriveView> {
    match planner.facts.disc.drive {
        Observed::Present(drive) => Ok(drive),
        Observed::Absent | Observed::Unknown(_) => {
            Err(Decision::Read([Read::Node, Read::DataImage, Read::Drive].into()))
        }
    }
}

/// Requires live views of the object and the node. The BMC may have taken longer for the drive than a view is live: then the two
/// are read again, and a node that did not change meanwhile keeps what was read of its drive.
fn require_live_neighbours(planner: &Planner<'_>) -> PlanResult<()> {
    let is_node_live = matches!(planner.facts.own_node(), Some((_, freshness)) if freshness >= NodeFreshness::Live);
    match is_node_live && planner.facts.disc.freshness >= HostFreshness::Live {
        true => Ok(()),
        false => Err(Decision::Read([Read::Node, Read::DataImage].into())),
    }
}

/// Waits for the end of an order, and reports a lock that does not go with it: nothing else says why the host waits.
fn unended_order(planner: &Planner<'_>, node: &Node, purpose: Purpose) -> Decision {
    let next = wait::on_node("Ironic works with the disc of the host");
    let (Some(conductor), Some(Duration::ZERO)) = (&node.reservation, planner.remaining_reservation(node)) else {
        return Decision::Wait(next);
    };
    let message = format!(
        "Ironic has not ended the order about the disc of the host: the conductor {conductor} holds the node for more than {} \
         minutes; a lock that stays goes with a restart of that conductor",
        LOCK_THRESHOLD.as_secs() / 60
    );
    let kind = kind_in(planner.state());
    match purpose {
        Purpose::Removal => planner.fail_with_backoff(Failure::retryable(kind, message).uncounted()),
        _ => Decision::Fail(Failure::until(kind, message, next)),
    }
}

fn carry_out(
    planner: &mut Planner<'_>,
    object: &DataImage,
    (node, drive): (&Node, Drive),
    purpose: Purpose,
) -> PlanResult<()> {
    let (wanted, attempts) = (wanted(object, purpose), planner.facts.disc.attempts.clone());
    let step = step(wanted, recorded(object), drive, &attempts);
    if step == Step::Insert
        && let Some(why) = unsent(wanted.unwrap_or_default())
    {
        return give_up(planner, object, &why, purpose);
    }
    // Nothing has failed before Ironic ends the order, however long it takes for that.
    if matches!(step, Step::Failed(_)) && node.reservation.is_some() {
        return Err(unended_order(planner, node, purpose));
    }
    // Ironic records each failure.
    if let (Step::Failed(_), None, Some(left)) = (step, &node.last_error, attempts.settling_left) {
        let why = "the BMC may show its drive as it was for a moment";
        return Err(Decision::Wait(wait::for_time(left.min(LATE_RECHECK), why)));
    }
    match step {
        Step::Done => {
            report_done(planner, object, (wanted, purpose), &attempts);
            Ok(())
        }
        Step::Wait(left) => Err(Decision::Wait(wait::on_lost_response(left))),
        // A live image leaves the drive with its node.
        Step::Eject if runs_from_disc(node) => {
            let why = "the system of the host runs from a disc itself, which would be ejected too; deprovision the host first";
            give_up(planner, object, why, purpose)
        }
        // A start waits for the end of the fault anyway.
        Step::Eject if purpose == Purpose::Removal && has_power_fault(node) => {
            let why = "Ironic changes no drive while it cannot reach the BMC (power failure); see that it can";
            Err(failed(planner, object, why, (false, purpose)))
        }
        Step::Eject => {
            planner.request(Request::EjectDiscs(node.uuid.clone()));
            Err(Decision::Wait(wait::on_node("Ironic ejects the disc of the host")))
        }
        Step::Insert => Err(insert(planner, object, node, wanted.unwrap_or_default())),
        Step::Failed(order) => {
            let (did, rest) = match order {
                DiscOrder::Insert => ("inserted", "the virtual drive is empty afterwards"),
                DiscOrder::Eject => ("ejected", "the virtual drive still holds a disc afterwards"),
            };
            let error = node.last_error.as_deref().unwrap_or(rest);
            let why = format!("the image was not {did}: {error}; see that the BMC can load it, and has a free drive");
            Err(failed(planner, object, &why, (false, purpose)))
        }
    }
}

/// Protects the object, then records the image, then inserts it.
fn insert(planner: &mut Planner<'_>, object: &DataImage, node: &Node, url: &str) -> Decision {
    if !is_protected(object) {
        planner.actions.extend(protection(object).map(Action::ProtectDisc));
        return Decision::Wait(Next::Requeue);
    }
    let url = url.to_owned();
    let mut status = object.status.clone();
    status.attached_image = Some(AttachedImage { url: url.clone() });
    status.last_reconciled = Some(planner.facts.now);
    // It is not sent before the object shows it, so an object that is deleted meanwhile is not let go.
    let record = patch(object, status).map(|patch| Action::RecordDisc { patch, event: None });
    planner.actions.extend(record);
    planner.request(Request::InsertDisc(node.uuid.clone(), Disc { url }));
    Decision::Wait(wait::on_node("Ironic inserts the disc of the host"))
}

/// The schemes of images that Ironic loads and publishes itself, as it does unless the order says otherwise. Its API accepts more.
const SCHEMES: [&str; 2] = ["http", "https"];

/// Why a URL is not sent: it cannot be, or Ironic never inserts it whatever the node. Admission accepts more schemes, and need not
/// run.
fn unsent(url: &str) -> Option<String> {
    if url.chars().any(char::is_control) {
        return Some("spec.url has a control character (a line break, a tab or the like); remove it".to_owned());
    }
    let scheme = url
        .split_once(':')
        .map_or("", |(scheme, _)| scheme)
        .to_ascii_lowercase();
    let is_accepted = SCHEMES.contains(&scheme.as_str());
    (!is_accepted).then(|| {
        format!(
            "Ironic inserts no image with the scheme {scheme:?} of spec.url; use {}",
            SCHEMES.join(" or ")
        )
    })
}

/// Whether Ironic rejects changes of the drive because the power of the machine could not be read.
fn has_power_fault(node: &Node) -> bool {
    node.maintenance && node.fault.as_deref() == Some(POWER_FAULT)
}
