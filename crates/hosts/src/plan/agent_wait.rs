//! What an order that boots the agent waits for.

use metal3_api::metal3::names::AGENT_IMAGE_BUILDER_ANNOTATION;
use metal3_api::metal3::v1alpha1::ErrorType;
use metal3_runtime::plan::Observed;
use metal3_runtime::reason::Reason;
use metal3_runtime::work::Next;

use super::agent_image::{OWN_BUILDER, is_own};
use super::agent_state::AgentWait;
use crate::action::Count;
use crate::names::{HELD, reason};
use crate::plan::error::Failure;
use crate::plan::planner::{Decision, PlanResult, Planner, Withheld};
use crate::plan::wait;

/// Requires the agent that is built for the host, before an order that boots it.
// differs: `agent-image-wait`. The Go manager deploys with an image of an earlier state of the host.
pub(in crate::plan) fn require_ready(planner: &mut Planner<'_>) -> PlanResult<()> {
    let Some(waits) = planner.agent_wait.take() else {
        return Ok(());
    };
    let name = planner.host().metadata.name.clone().unwrap_or_default();
    let more = hand_over(planner);
    let (reason, message, next) = match waits {
        AgentWait::Failed(message) => {
            let message = format!(
                "the builder of PreprovisioningImage {name} reports: {message}; correct what it names, in the host or in the \
                 configuration of the builder{more}"
            );
            let next = wait::on_agent_image(&message);
            return Err(Decision::Fail(Failure::until(ErrorType::Registration, message, next)));
        }
        AgentWait::Pending(why) => {
            let message = format!(
                "PreprovisioningImage {name} is not ready: {why}. If that lasts, look at its conditions; if no builder of \
                 images runs, start one, or set DEPLOY_ISO_URL, or DEPLOY_KERNEL_URL and DEPLOY_RAMDISK_URL, and delete the \
                 PreprovisioningImage{more}"
            );
            let next = wait::on_agent_image(&message);
            (reason::AGENT_IMAGE_PENDING, message, next)
        }
        AgentWait::Refused(why) => {
            let message = format!(
                "PreprovisioningImage {name} cannot be created or changed: {why}. Allow it (rights, quotas and webhooks of the \
                 namespace, and the definition of the kind); it is tried again every few minutes"
            );
            let next = wait::for_agent_image(&message);
            (reason::AGENT_IMAGE_REFUSED, message, next)
        }
    };
    Err(hold(planner, reason, message, next))
}

/// How the builder of the image is changed by hand. Its status does not tell whether the Go manager wrote it, or a builder
/// that still runs, so this is never done unasked.
fn hand_over(planner: &Planner<'_>) -> String {
    let Observed::Present(image) = planner.facts.agent_image.object else {
        return String::new();
    };
    let architecture = image.spec.architecture.as_deref().unwrap_or_default();
    let is_served = planner.facts.settings.node.ramdisks.serves(architecture);
    if is_own(image) || !is_served || image.metadata.deletion_timestamp.is_some() {
        return String::new();
    }
    let at = |text: &Option<String>| text.clone().unwrap_or_default();
    format!(
        ". If its builder does not run any more, hand it over to the configured images: kubectl annotate \
         preprovisioningimage --namespace {} {} {AGENT_IMAGE_BUILDER_ANNOTATION}={OWN_BUILDER}",
        at(&image.metadata.namespace),
        at(&image.metadata.name)
    )
}

fn hold(planner: &mut Planner<'_>, reason: Reason, message: String, next: Next) -> Decision {
    let mut recorded = planner.host().status.conditions.iter();
    if !recorded.any(|condition| condition.type_ == HELD && condition.reason == reason.as_str()) {
        planner.count(Count::One("metal3_waiting_for_preprov_image_total"));
    }
    planner.withheld = Some(Withheld { reason, message });
    Decision::Wait(next)
}
