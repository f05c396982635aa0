//! Sends the requests of a plan to Ironic, and records the responses.

use std::sync::Arc;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::ids::NodeUuid;
use metal3_domain::uri::public_text;
use metal3_ironic::calls::{NodeRef, hardware, node, port, provision, state};
use metal3_ironic::model::node::Node;
use metal3_ironic::request::Call;
use metal3_ironic::text::ControlCharacter;
use metal3_ironic::{Error, Response, SendPermit};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::Mode;

use super::act::{Executor, Outcome};
use super::discs::is_about_disc;
use super::ironic_session::{IronicSession, chosen};
use super::observations::{LIVE_FOR, Observations};
use super::refusals::{Cause, is_unanswered, is_unavailable, with_ports_before};
use crate::action::{Count, Disc, Impact, Order, Request};
use crate::facts::{
    CleaningOrder, CleaningProgress, DiscOrder, FoundNode, NodeFreshness, NodeMark, RefusalClass, Refused,
    RequestedReboot,
};

const NOT_PERMITTED: Category = Category::WRITE_BLOCKED;

/// What is kept of an order while it is sent.
struct Sent {
    verb: &'static str,
    impact: Impact,
    audit: String,
    is_of_record: bool,
    is_port: bool,
    /// The power state that it leads to.
    power: Option<bool>,
    /// The node that it reboots.
    rebooted: Option<NodeUuid>,
    /// What it changes in the BIOS.
    bios: Option<CleaningOrder>,
    runs_steps: bool,
    /// What it does with the disc of the host.
    disc: Option<DiscOrder>,
}

impl Sent {
    fn of(order: &Order) -> Self {
        let request = &order.request;
        Self {
            verb: request.verb(),
            impact: request.impact(),
            audit: order.audit.as_ref().map(ToString::to_string).unwrap_or_default(),
            is_of_record: request.is_of_record(),
            is_port: matches!(request, Request::CreatePort { .. }),
            power: request.power_state(),
            rebooted: request.rebooted_node(),
            bios: request.cleaning_order(),
            runs_steps: request.runs_steps(),
            disc: request.disc_order(),
        }
    }
}

impl Executor<'_> {
    /// Sends a request, unless that would be long after its plan. `prepares_removal`: only the deletion of the node that follows
    /// needs it.
    pub(super) async fn send_order(
        &self,
        order: Order,
        prepares_removal: bool,
        observed: &mut Observations,
    ) -> Result<Outcome, Fault> {
        let (verb, impact) = (order.request.verb(), order.request.impact());
        if self.writer.mode() == Mode::ObserveOnly {
            tracing::info!(host = %self.key, verb, ?impact, "dry run: request to Ironic not sent");
            let interrupts = matches!(impact, Impact::Interrupts | Impact::Erases);
            self.writer.leave_out_order::<BareMetalHost>(self.key, verb, interrupts);
            return Ok(Outcome::DryRun);
        }
        let send_permit = match observed.send_permit.take() {
            Some(send_permit) => send_permit,
            None => match self.ironic {
                Some(ironic) => ironic.send_permit().await,
                None => return Err(Fault::bug(format!("{verb}: no Ironic is chosen for the host"))),
            },
        };
        let waited = self.clock.monotonic().since(self.planned);
        // Others may be late: they are planned again by what follows, and a plan that is never finished would be repeated for
        // ever.
        // differs: `host-order-in-time`. The Go manager sends it however late.
        if waited > LIVE_FOR && (prepares_removal || order.request.is_compared_again()) {
            tracing::debug!(host = %self.key, verb, ?waited, "others delayed a request to Ironic; it is compared again");
            observed.compare_again(send_permit);
            return Ok(Outcome::Late);
        }
        (self.permit)()
            .map_err(|error| Fault::transient(format!("request to Ironic: {verb}"), NOT_PERMITTED, error))?;
        Ok(self.send_now(order, &send_permit, observed).await)
    }

    async fn send_now(&self, order: Order, send_permit: &SendPermit, observed: &mut Observations) -> Outcome {
        let node = observed.any_node().cloned();
        let sent = Sent::of(&order);
        if matches!(order.request, Request::PatchNode(..)) {
            // It may send another login.
            observed.login = None;
        }
        match self.send(order.request, send_permit, observed).await {
            Ok(request_id) => {
                self.accepted(sent, request_id.as_deref(), node.as_deref(), observed);
                Outcome::Done
            }
            Err(error) if sent.disc.is_some() && is_about_disc(&error) => {
                self.disc_rejected(sent.verb, &error, observed);
                Outcome::Declined
            }
            Err(error) => {
                self.rejected(sent, &error, node.as_deref(), observed);
                Outcome::Refused
            }
        }
    }

    fn accepted(&self, sent: Sent, request_id: Option<&str>, before: Option<&Node>, observed: &Observations) {
        let Sent { verb, audit, .. } = sent;
        if sent.is_of_record {
            self.refusals.remove_one(self.key, verb);
            if let (Some(before), Some(after)) = (before, observed.any_node()) {
                self.index.renew_reboot_mark(self.key, before, after);
            }
        } else {
            self.refusals.remove(self.key);
        }
        if let Some(order) = sent.disc {
            self.discs.ordered(self.key, order);
        }
        if let Some(on) = sent.power {
            self.index.request_power(self.key, on);
        }
        if let Some(rebooted) = sent.rebooted {
            self.index.request_reboot(self.key, rebooted, RequestedReboot::Accepted);
        }
        if sent.impact == Impact::Erases {
            self.erasing.begin(self.key, self.index);
        }
        if sent.power == Some(false) {
            // What a service did not change is tried again when the machine is started.
            self.cleaning_orders.forget_service(self.key, &observed.host);
        }
        if sent.runs_steps {
            self.cleaning_orders
                .begin(self.key, self.index, sent.bios, CleaningProgress::Begun);
        }
        if sent.impact != Impact::None {
            let id = request_id.unwrap_or("none");
            tracing::info!(target: "audit", host = %self.key, verb, request_id = id, "{audit}");
        }
    }

    fn rejected(&self, sent: Sent, error: &Error, before: Option<&Node>, observed: &mut Observations) {
        let Sent { verb, audit, .. } = sent;
        if sent.impact != Impact::None && error.may_have_happened() {
            tracing::info!(target: "audit", host = %self.key, verb, "perhaps done, the response is lost: {audit}");
        }
        if sent.impact == Impact::Erases && error.may_have_happened() {
            self.erasing.begin(self.key, self.index);
        }
        if sent.runs_steps && error.may_have_happened() {
            self.cleaning_orders
                .begin(self.key, self.index, sent.bios, CleaningProgress::Unconfirmed);
        }
        if is_unanswered(error) {
            let why = public_text(&error.to_string());
            tracing::warn!(host = %self.key, verb, why, "the response of Ironic is lost; the next change waits for a minute");
            self.unanswered.record(self.key, self.clock.monotonic());
        }
        if let Some(rebooted) = sent.rebooted {
            self.reboot_rejected(rebooted, before, error);
        }
        let class = if sent.is_port {
            classify_port_error(error)
        } else {
            classify(error)
        };
        self.record_refusal(verb, class, error, before, observed);
        // An outdated observation of the node may be the cause.
        observed.forget_node();
        observed.ports = Observed::Unknown(UnknownReason::NotRead);
    }

    /// Ironic rejected the order to reboot, or its response is lost. A lock may be that of an order without a response.
    fn reboot_rejected(&self, rebooted: NodeUuid, before: Option<&Node>, error: &Error) {
        match (before, error) {
            (Some(before), error) if is_unanswered(error) => {
                let reboot = RequestedReboot::Unanswered(NodeMark::of(before));
                self.index.request_reboot(self.key, rebooted, reboot);
            }
            (_, Error::Locked(_)) => {}
            _ => self.index.end_reboot(self.key),
        }
    }

    /// Records a rejected request or read about this node. Returns the class that follows from those before.
    pub(super) fn record_refusal(
        &self,
        request: &'static str,
        class: RefusalClass,
        error: &Error,
        node: Option<&Node>,
        observed: &mut Observations,
    ) -> RefusalClass {
        if is_unavailable(error) {
            let count = Count::One("metal3_provisioner_not_ready_total");
            self.metrics.count(self.key, &count);
        }
        let is_lock = matches!(error, Error::Locked(_));
        // Reported only once it has lasted.
        let advice = if is_lock {
            "; a lock that stays goes with a restart of the conductor that holds it"
        } else {
            ""
        };
        let refused = Refused {
            request,
            class,
            message: public_text(&format!("{error}{advice}")),
            is_fresh: false,
            is_over: false,
            is_lock,
        };
        let refused = with_ports_before(&observed.host, observed.refused.as_ref(), refused);
        tracing::debug!(host = %self.key, request, "Ironic rejected a request: {}", refused.message);
        let generation = observed.host.metadata.generation;
        let cause = Cause::of(error, node, self.ironic.is_some_and(IronicSession::is_answering));
        let refused = self
            .refusals
            .record(self.key, generation, refused, cause, self.clock.monotonic());
        let class = refused.class;
        observed.refused = Some(Refused {
            is_fresh: true,
            ..refused
        });
        class
    }

    async fn send(
        &self,
        request: Request,
        send_permit: &SendPermit,
        observed: &mut Observations,
    ) -> Result<Option<String>, Error> {
        let ironic = chosen(self.ironic)?;
        let (uuid, call) = match request {
            Request::CreateNode(new) => {
                let id = self
                    .send_and_store(node::create(*new).map_err(control_character)?, send_permit, observed)
                    .await?;
                if let Observed::Present(FoundNode::Own(_, freshness)) = &mut observed.node {
                    *freshness = NodeFreshness::Created;
                }
                // A new node has none.
                observed.ports = Observed::Present(Vec::new());
                return Ok(id);
            }
            Request::PatchNode(uuid, patch) => {
                let call = node::patch(&NodeRef::Uuid(uuid), patch).map_err(control_character)?;
                return self.send_and_store(call, send_permit, observed).await;
            }
            Request::CreatePort {
                node,
                address,
                pxe_enabled,
            } => {
                let created = ironic
                    .read(Some(send_permit), &port::create(&node, &address, pxe_enabled))
                    .await?;
                if let Observed::Present(ports) = &mut observed.ports {
                    ports.push(created);
                }
                return Ok(None);
            }
            Request::SetRaid(uuid, disks) => (uuid.clone(), state::set_target_raid(&NodeRef::Uuid(uuid), &disks)),
            Request::Provision(uuid, transition) => {
                let call = provision::request(&NodeRef::Uuid(uuid.clone()), transition).map_err(control_character)?;
                (uuid, call)
            }
            Request::Power(uuid, power) => (uuid.clone(), state::set_power(&NodeRef::Uuid(uuid), power)),
            Request::InsertDisc(uuid, disc) => (uuid.clone(), insert(uuid, &disc)?),
            Request::EjectDiscs(uuid) => (uuid.clone(), hardware::detach_virtual_cd(&NodeRef::Uuid(uuid))),
            Request::SetMaintenance(uuid, reason) => {
                (uuid.clone(), node::set_maintenance(&NodeRef::Uuid(uuid), reason))
            }
            Request::ClearMaintenance(uuid) => (uuid.clone(), node::clear_maintenance(&NodeRef::Uuid(uuid))),
            Request::DeleteNode(uuid) => {
                let call = node::delete(&NodeRef::Uuid(uuid.clone()));
                let request_id = match ironic.send_change(send_permit, &uuid, &call).await {
                    Err(Error::NotFound(_)) => None,
                    response => response?.request_id,
                };
                ironic.forget_node(&uuid);
                // The response confirms it: no search is needed.
                observed.set_node(Observed::Absent, self.clock.monotonic());
                return Ok(request_id);
            }
        };
        let response = ironic.send_change(send_permit, &uuid, &call).await?;
        observed.mark_node_stale();
        Ok(response.request_id)
    }

    async fn send_and_store(
        &self,
        call: metal3_ironic::request::Call<metal3_ironic::model::node::Node>,
        send_permit: &SendPermit,
        observed: &mut Observations,
    ) -> Result<Option<String>, Error> {
        let Response { value, request_id, .. } = chosen(self.ironic)?.send_for_node(Some(send_permit), &call).await?;
        let found = FoundNode::Own(Arc::new(value), NodeFreshness::Live);
        observed.set_node(Observed::Present(found), self.clock.monotonic());
        Ok(request_id)
    }
}

/// What resolves the error. Ironic's message is kept as it is; it contains no secret of the request.
///
/// What Ironic refuses every request for is not about this host: the change feed gets it too, and the outage that it reports
/// says who has to act.
pub(super) const fn classify(error: &Error) -> RefusalClass {
    match error {
        error if error.is_of_every_request() => RefusalClass::Transient,
        Error::Invalid(_) | Error::Protected(_) => RefusalClass::Invalid,
        Error::Unauthorised(_) | Error::NoCommonVersion(_) | Error::TooOld { .. } | Error::Untrusted { .. } => {
            RefusalClass::Access
        }
        Error::NotFound(_)
        | Error::Locked(_)
        | Error::WrongState(_)
        | Error::Exists(_)
        | Error::Busy(_)
        | Error::Unreachable { .. }
        | Error::NotReady { .. }
        | Error::Timeout { .. }
        | Error::Unexpected { .. } => RefusalClass::Transient,
    }
}

/// What resolves a rejected port. An existing port belongs to another node, which the user must correct, or was created
/// by a request whose response was lost, which shows when ports are read again.
const fn classify_port_error(error: &Error) -> RefusalClass {
    match error {
        Error::Exists(_) => RefusalClass::Invalid,
        other => classify(other),
    }
}

fn insert(uuid: NodeUuid, disc: &Disc) -> Result<Call<()>, Error> {
    hardware::attach_virtual_cd(&NodeRef::Uuid(uuid), &disc.url).map_err(control_character)
}

/// The request would contain a control character and was not sent.
fn control_character(error: ControlCharacter) -> Error {
    Error::Unexpected {
        operation: "prepare a request",
        status: None,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use metal3_ironic::error::Refusal;

    use super::*;

    #[test]
    fn rejected_login_is_not_an_invalid_request() {
        let refusal = |status| Refusal {
            operation: "switch the power",
            status,
            message: "no".to_owned(),
            request_id: None,
        };
        assert_eq!(classify(&Error::Unauthorised(refusal(403))), RefusalClass::Access);
        assert_eq!(classify(&Error::Unauthorised(refusal(401))), RefusalClass::Transient);
        assert_eq!(classify(&Error::Invalid(refusal(400))), RefusalClass::Invalid);
    }
}
