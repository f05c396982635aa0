//! Which Ironic serves the host: its record, and what a host reports that no Ironic serves, or not the one that it asks for.

use metal3_api::metal3::names::{DETACHED_ANNOTATION, HOST_FINALIZER, IRONIC_LABEL, REGISTERED_IN_ANNOTATION};
use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Next;

use crate::facts::Read;
use crate::ironics::{Bar, Choice, Elsewhere, Wish, choose, recorded};
use crate::names::reason;
use crate::plan::error::Failure;
use crate::plan::firmware_record::is_firmware_still_unknown;
use crate::plan::object::has_finalizer;
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
use crate::plan::safety::is_still_withheld;
use crate::plan::wait;

/// Requires an Ironic that serves the host, and records it before the first request.
pub(crate) fn require(planner: &mut Planner<'_>) -> PlanResult<()> {
    let host = planner.host();
    // A released host waits for other controllers.
    if planner.is_deleting() && !has_finalizer(host) {
        return Ok(());
    }
    match choose(planner.facts.ironics, &Wish::of(host), planner.facts.located) {
        Choice::Use {
            ironic,
            is_new,
            refused,
        } => {
            if let Some(wanted) = refused {
                report(planner, change_refused(wanted, &ironic));
            }
            // The record is that of another one, or its name is: what it has, or has not, says nothing about this host.
            if !is_new && planner.facts.elsewhere == Elsewhere::Node {
                return Err(misplaced(planner, &ironic));
            }
            if is_new {
                // A search without a result says nothing while one of them may still create a node.
                if matches!(planner.facts.located, Observed::Absent) {
                    planner.require_no_creation()?;
                }
                let annotations = planner.draft.metadata.annotations.get_or_insert_default();
                annotations.insert(REGISTERED_IN_ANNOTATION.to_owned(), ironic.to_string());
            }
            // Otherwise it is written together with what else the object lacks, which comes before each request.
            match is_new && planner.is_deleting() {
                true => Err(Decision::Wait(Next::Requeue)),
                false => Ok(()),
            }
        }
        Choice::Search => Err(Decision::read(Read::Ironic)),
        Choice::Wait(bar) => {
            let (withheld, wait) = withheld(planner, &bar);
            report(planner, withheld);
            Err(Decision::Wait(wait))
        }
    }
}

/// Requires that no other Ironic has the node of a host, or a node of its machine: its own has none. `is_new`: one is to be created,
/// which another Ironic that cannot be seen now may have.
pub(crate) fn require_nowhere_else(planner: &mut Planner<'_>, is_new: bool) -> PlanResult<()> {
    let recorded = recorded(planner.host()).unwrap_or_default();
    if is_new && !planner.facts.ironics.is_one() {
        // One Ironic refuses a second node of the name. What was sent to another one may not be listed yet.
        planner.require_no_creation()?;
    }
    match planner.facts.elsewhere {
        Elsewhere::Node => Err(misplaced(planner, &recorded)),
        Elsewhere::Same => {
            let message = format!(
                "Ironic {recorded:?} is configured under a second name, too, so that the one with the node of this host may be missing. \
                 Correct the URLs of the Ironics; no node is created or given up before"
            );
            let reason = reason::IRONIC_AMBIGUOUS;
            report(planner, Withheld { reason, message });
            Err(Decision::Wait(wait::on_configuration("two names lead to one Ironic")))
        }
        Elsewhere::Machine if is_new => {
            let message = "another Ironic has a node for the machine at spec.bmc.address, and may operate it; correct the address, or ask \
                           the administrator of Ironic to delete that node";
            let failure = Failure::retryable(ErrorType::Registration, message);
            Err(planner.fail_with_backoff(failure))
        }
        Elsewhere::Unknown if is_new && may_have_node(planner) => {
            let message = format!(
                "Ironic {recorded:?} has no node of this host, and another one that may have it does not respond. Restore that one, or \
                 remove it from the configuration if it is lost permanently; then the host continues without help"
            );
            let reason = reason::NODE_NOT_LOCATED;
            report(planner, Withheld { reason, message });
            Err(Decision::Wait(wait::on_unreachable_ironic()))
        }
        Elsewhere::Machine | Elsewhere::Unknown | Elsewhere::Nothing => Ok(()),
    }
}

/// Whether a node of the host was created before: by its status, or by another process which could not record that.
fn may_have_node(planner: &Planner<'_>) -> bool {
    !planner.host().status.provisioning.id.is_empty() || planner.facts.began_elsewhere
}

fn misplaced(planner: &mut Planner<'_>, recorded: &str) -> Decision {
    let message = format!(
        "another Ironic than {recorded:?}, which the host records, has the node of this host, as after their names or URLs were \
         exchanged. Put names and URLs right, or set the annotation {REGISTERED_IN_ANNOTATION} to the one with the node; nothing is sent \
         for this host before"
    );
    let reason = reason::IRONIC_MISPLACED;
    report(planner, Withheld { reason, message });
    Decision::Wait(wait::on_configuration("another Ironic has the node of the host"))
}

/// What a user has to do first stays visible.
fn report(planner: &mut Planner<'_>, withheld: Withheld) {
    if !is_still_withheld(planner) && !is_firmware_still_unknown(planner) {
        planner.withheld = Some(withheld);
    }
}

/// Whether the host asks for another Ironic than the one that has its node.
pub(crate) fn is_change_refused(withheld: &Withheld) -> bool {
    withheld.reason == reason::IRONIC_CHANGE_REFUSED
}

fn change_refused(wanted: &str, ironic: &str) -> Withheld {
    Withheld {
        reason: reason::IRONIC_CHANGE_REFUSED,
        message: format!(
            "the label {IRONIC_LABEL} asks for {wanted:?}, and the node of this host is in Ironic {ironic:?}, which continues to \
             serve it. Set the label to {ironic:?}; or, to register the machine in the other one, set the annotation \
             {DETACHED_ANNOTATION}, wait until the host is detached, and remove the annotation again"
        ),
    }
}

fn withheld(planner: &Planner<'_>, bar: &Bar<'_>) -> (Withheld, Next) {
    match bar {
        Bar::Unknown { wanted, .. } => {
            let message = format!(
                "the label {IRONIC_LABEL} is {wanted:?}, and no Ironic of that name is configured. Correct the label (who runs this \
                 program knows the names), or configure that Ironic; nothing is sent for this host before"
            );
            let reason = reason::IRONIC_UNKNOWN;
            let wait = wait::on_user("the Ironic that the host names is not configured");
            (Withheld { reason, message }, wait)
        }
        Bar::NotConfigured(recorded) => {
            let end = match planner.is_deleting() {
                true => format!(
                    "If it is lost permanently, switch the machine off by hand, since its addresses are given to others, and then \
                     remove the finalizer {HOST_FINALIZER} from the host"
                ),
                false => format!(
                    "If it is lost permanently, set the annotation {REGISTERED_IN_ANNOTATION} to the one that takes the machine over"
                ),
            };
            let message = format!(
                "the host is registered in Ironic {recorded:?}, which is not configured any more. Configure it again; \
                 nothing is sent for this host before. {end}"
            );
            let reason = reason::IRONIC_NOT_CONFIGURED;
            let wait = wait::on_user("the Ironic of the host is not configured");
            (Withheld { reason, message }, wait)
        }
        Bar::NotLocated(why) => {
            let message = format!(
                "nothing records which Ironic has the node of this host, and a search does not show it ({why}). Restore the one that does \
                 not respond, and the host continues without help; or set the annotation {REGISTERED_IN_ANNOTATION} to the one that has \
                 the node"
            );
            let reason = reason::NODE_NOT_LOCATED;
            (Withheld { reason, message }, wait::on_unreachable_ironic())
        }
    }
}
