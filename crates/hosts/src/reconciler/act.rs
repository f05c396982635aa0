//! Performs a plan in the order of its fields. A failed action ends the plan.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::Key;
use metal3_runtime::client::WriteBlocked;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::object_reader::Erased;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{MetadataOf, Mode, WriteError, Writer, Written};

use super::caches::Caches;
use super::index::{DeprovisionBudget, HostIndex};
use super::ironic_session::IronicSession;
use super::metrics::HostMetrics;
use super::observations::{Observations, ObservedSecret};
use super::refusals::{Cause, Refusals, is_unanswered, is_unavailable, with_ports_before};
use crate::action::{Action, Count, Impact, Order, Plan, Request};
use crate::facts::{FoundNode, NodeFreshness, NodeMark, Read, RefusalClass, Refused, RequestedReboot};
use crate::needs::Hosts;

/// Whether a request to Ironic may be sent now: checked immediately before sending, as for writes to the API.
pub type Permit = Arc<dyn Fn() -> Result<(), WriteBlocked> + Send + Sync>;

pub(super) struct Executor<'a> {
    pub(super) key: &'a Key,
    pub(super) caches: &'a Caches,
    pub(super) ironic: &'a IronicSession,
    pub(super) index: &'a HostIndex,
    pub(super) refusals: &'a Refusals,
    pub(super) budget: &'a DeprovisionBudget,
    pub(super) clock: &'a dyn Clock,
    pub(super) events: &'a EventRecorder,
    pub(super) metrics: &'a HostMetrics,
    pub(super) permit: &'a Permit,
    pub(super) writer: &'a Writer<Hosts>,
}

    /// When the plan was made.
    pub(super) planned: Monotonic,
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All actions were done.
    Done,
    /// Dry run: the actions were only logged.
    DryRun,
    /// Another host took the last unit of the budget since the plan was made. Nothing was done.
    NoBudget,
    /// Ironic rejected a request. It is recorded; the remaining actions were skipped.
    Refused,
    /// A request could not be sent soon after its plan. It must be compared again; the remaining actions were skipped.
    Late,
}

impl Executor<'_> {
    /// Performs a plan, and stores the responses in `observed`.
    ///
    /// # Errors
    /// When a write to the API failed or is not permitted.
    pub(super) async fn perform(&self, plan: Plan, observed: &mut Observations) -> Result<Outcome, Fault> {
        let (records, writes): (Vec<_>, Vec<_>) = plan.actions.into_iter().partition(Action::is_record);
        for action in writes {
            match self.act(action, observed).await? {
                Outcome::Done => {}
                other => return Ok(other),
            }
        }
        if let Some(patch) = plan.status {
            let written = self
                .writer
                .patch_status::<BareMetalHost>(&self.caches.hosts, self.key, patch);
            self.store_host(written.await?.object(), observed);
        }
        if self.writer.mode() == Mode::ObserveOnly {
            return Ok(Outcome::DryRun);
        }
        for event in plan.events {
            self.events
                .record(&*observed.host, event.importance, event.reason, event.message);
        }
        for record in records {
            self.act(record, observed).await?;
        }
        Ok(Outcome::Done)
    }

    async fn act(&self, action: Action, observed: &mut Observations) -> Result<Outcome, Fault> {
        match action {
            Action::ReserveBudget => {
                if !self.index.reserve(self.key, self.budget, self.clock.now()) {
                    return Ok(Outcome::NoBudget);
                }
            }
            Action::PatchHost(patch) => {
                let written = self
                    .writer
                    .patch::<BareMetalHost>(&self.caches.hosts, self.key, patch)
                    .await?;
                self.store_host(written.object(), observed);
            }
            Action::CreateHardwareData(data) => {
                let written = self.writer.create(&self.caches.hardware, &*data).await?;
                store_hardware(written.object(), observed);
            }
            Action::PatchHardwareData(patch) => {
                let written = self
                    .writer
                    .patch::<HardwareData>(&self.caches.hardware, self.key, patch)
                    .await?;
                store_hardware(written.object(), observed);
            }
            Action::PatchSecret { name, patch } => {
                if let Some(secret) = self.patch_secret(&name, patch).await? {
                    store_secret(&name, secret, observed);
                }
            }
            Action::Ironic(order) => return self.send_order(order, observed).await,
            Action::Count(count) => self.metrics.count(self.key, &count),
            Action::EndPowerRequest => self.index.end_power_request(self.key),
            Action::EndRefusal => {
                self.refusals.forget_last(self.key);
                observed.refused = None;
            }
            Action::ReleaseSlot => self.ironic.release_slot(self.key),
        }
        Ok(Outcome::Done)
    }

    fn store_host(&self, written: Option<BareMetalHost>, observed: &mut Observations) {
        if let Some(host) = written {
            observed.set_host(host, self.clock.monotonic());
        }
    }

    async fn patch_secret(&self, name: &str, patch: MergePatch) -> Result<Option<Secret>, WriteError> {
        let secret = Key {
            namespace: self.key.namespace.clone(),
            name: name.to_owned(),
        };
        let cache = MetadataOf::<Secret>(&self.caches.secrets);
        self.writer
            .patch::<Secret>(&cache, &secret, patch)
            .await
            .map(Written::object)
    }

    async fn send_order(&self, order: Order, observed: &mut Observations) -> Result<Outcome, Fault> {
        let (verb, impact) = (order.request.verb(), order.request.impact());
        if self.writer.mode() == Mode::ObserveOnly {
            tracing::info!(host = %self.key, verb, ?impact, "dry run: request to Ironic not sent");
            return Ok(Outcome::DryRun);
        }
        (self.permit)()
            .map_err(|error| Fault::transient(format!("request to Ironic: {verb}"), NOT_PERMITTED, error))?;
        let node = observed.any_node().cloned();
        let audit = order.audit.map(|audit| audit.to_string()).unwrap_or_default();
        let is_port = matches!(order.request, Request::CreatePort { .. });
        let is_of_record = order.request.is_of_record();
        let power = order.request.power_state();
        let rebooted = order.request.rebooted_node();
        match self.send(order.request, observed).await {
            Ok(request_id) => {
                if is_of_record {
                    self.refusals.remove_one(self.key, verb);
                    if let (Some(before), Some(after)) = (&node, observed.any_node()) {
                        self.index.renew_reboot_mark(self.key, before, after);
                    }
                } else {
                    self.refusals.remove(self.key);
                }
                if let Some(on) = power {
                    self.index.request_power(self.key, on);
                }
                if let Some(rebooted) = rebooted {
                    self.index.request_reboot(self.key, rebooted, RequestedReboot::Accepted);
                }
                if impact != Impact::None {
                    let id = request_id.as_deref().unwrap_or("none");
                    tracing::info!(target: "audit", host = %self.key, verb, request_id = id, "{audit}");
                }
                Ok(Outcome::Done)
            }
            Err(error) => {
                if impact != Impact::None && error.may_have_happened() {
                    tracing::info!(target: "audit", host = %self.key, verb, "perhaps done, the response is lost: {audit}");
                }
                if let Some(rebooted) = rebooted {
                    self.reboot_rejected(rebooted, node.as_deref(), &error);
                }
                let class = if is_port {
                    classify_port_error(&error)
                } else {
                    classify(&error)
                };
                self.record_refusal(verb, class, &error, node.as_deref(), observed);
                // An outdated observation of the node may be the cause.
                observed.set_node(Observed::Unknown(UnknownReason::NotRead));
                observed.ports = Observed::Unknown(UnknownReason::NotRead);
                Ok(Outcome::Refused)
            }
        }
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
            message: without_logins(&format!("{error}{advice}")),
            is_fresh: false,
            is_over: false,
            is_lock,
        };
        let refused = with_ports_before(&observed.host, observed.refused.as_ref(), refused);
        tracing::debug!(host = %self.key, request, "Ironic rejected a request: {}", refused.message);
        let generation = observed.host.metadata.generation;
        let cause = Cause::of(error, node, self.ironic.is_answering());
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

    async fn send(&self, request: Request, observed: &mut Observations) -> Result<Option<String>, Error> {
        let (uuid, call) = match request {
            Request::CreateNode(new) => {
                let id = self
                    .send_and_store(node::create(*new).map_err(control_character)?, observed)
                    .await?;
                if let Observed::Present(FoundNode::Own(_, freshness)) = &mut observed.node {
                    *freshness = NodeFreshness::Created;
                }
                // A new node has none.
                observed.ports = Observed::Present(Vec::new());
                return Ok(id);
            }
            Request::PatchNode(uuid, patch) => {
                return self
                    .send_and_store(
                        node::patch(&NodeRef::Uuid(uuid), patch).map_err(control_character)?,
                        observed,
                    )
                    .await;
            }
            Request::CreatePort {
                node,
                address,
                pxe_enabled,
            } => {
                let created = self.ironic.read(&port::create(&node, &address, pxe_enabled)).await?;
                if let Observed::Present(ports) = &mut observed.ports {
                    ports.push(created);
                }
                return Ok(None);
            }
            Request::Provision(uuid, transition) => {
                let call = provision::request(&NodeRef::Uuid(uuid.clone()), transition).map_err(control_character)?;
                (uuid, call)
            }
            Request::Power(uuid, power) => (uuid.clone(), state::set_power(&NodeRef::Uuid(uuid), power)),
            Request::SetMaintenance(uuid, reason) => {
                (uuid.clone(), node::set_maintenance(&NodeRef::Uuid(uuid), reason))
            }
            Request::ClearMaintenance(uuid) => (uuid.clone(), node::clear_maintenance(&NodeRef::Uuid(uuid))),
            Request::DeleteNode(uuid) => {
                let call = node::delete(&NodeRef::Uuid(uuid.clone()));
                let request_id = match self.ironic.send_change(&uuid, &call).await {
                    Err(Error::NotFound(_)) => None,
                    response => response?.request_id,
                };
                self.ironic.forget_node(&uuid);
                // The response confirms it: no search is needed.
                observed.set_node(Observed::Absent);
                return Ok(request_id);
            }
        };
        let response = self.ironic.send_change(&uuid, &call).await?;
        observed.mark_node_stale();
        Ok(response.request_id)
    }

    async fn send_and_store(
        &self,
        call: metal3_ironic::request::Call<metal3_ironic::model::node::Node>,
        observed: &mut Observations,
    ) -> Result<Option<String>, Error> {
        let Response { value, request_id, .. } = self.ironic.send_for_node(&call).await?;
        observed.set_node(Observed::Present(FoundNode::Own(Arc::new(value), NodeFreshness::Live)));
        Ok(request_id)
    }
}

fn store_hardware(written: Option<HardwareData>, observed: &mut Observations) {
    if let Some(data) = written {
        observed.hardware = Observed::Present(Arc::new(data));
    }
}

/// Stores the patched Secret for every reference of the host: the next step relies on its new version.
fn store_secret(name: &str, secret: Secret, observed: &mut Observations) {
    let host = Arc::clone(&observed.host);
    let stored = ObservedSecret::Whole(Arc::new(Erased::new(secret)));
    let is_named = |which: &Read| which.secret_name(&host) == Some(name);
    for which in Read::SECRETS.into_iter().filter(is_named) {
        observed.secrets.insert(which, Observed::Present(stored.clone()));
    }
}
