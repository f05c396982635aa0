//! Performs the reads of a plan, and records those that Ironic rejected.

use std::time::Duration;

use metal3_domain::clock::Monotonic;
use metal3_domain::uri::public_text;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::Fault;
use metal3_runtime::write::Writer;

use super::act::Executor;
use super::ironic_session::IronicSession;
use super::observations::Observations;
use super::observer::ReadOutcome;
use super::send::classify;
use super::{HostReconciler, IRONIC, REFUSED};
use crate::action::{Count, Plan};
use crate::facts::{Read, RefusalClass};
use crate::needs::Hosts;
use crate::plan::state::is_failure;

pub(super) enum Reads {
    Done,
    HostAbsent,
    /// Ironic gave the same response too often.
    Refused,
}

impl HostReconciler {
    /// Performs the reads of a plan.
    ///
    /// # Errors
    /// When a read failed that a retry may resolve.
    pub(super) async fn read_all(
        &self,
        key: &Key,
        plan: &Plan,
        observed: &mut Observations,
        writer: &Writer<Hosts>,
    ) -> Result<Reads, Fault> {
        for read in &plan.reads {
            let outcome = self.observer.read_live(*read, observed, writer).await;
            if outcome.is_err() && *read == Read::Credentials {
                self.metrics
                    .count(key, &Count::One("metal3_credentials_unhandled_error_total"));
            }
            let error = match outcome? {
                ReadOutcome::HostAbsent => return Ok(Reads::HostAbsent),
                ReadOutcome::Done => {
                    if *read == Read::Login
                        && let Observed::Present(answer) = observed.login_answer()
                    {
                        let now = self.clock.monotonic();
                        self.login_tries.record(key, observed.tried_login(), answer, now);
                    }
                    if let Some(name) = read.ironic_name() {
                        self.refusals.remove_one(key, name);
                    }
                    continue;
                }
                ReadOutcome::Refused(error) => error,
            };
            let (request, node) = (read.ironic_name().unwrap_or("read"), observed.any_node().cloned());
            let session = observed.ironic.clone();
            let executor = self.executor((key, session.as_ref()), writer, self.clock.monotonic());
            // A retry of a read may succeed, unless Ironic does not serve this program at all.
            let class = match classify(&error) {
                RefusalClass::Access => RefusalClass::Access,
                _ => RefusalClass::Transient,
            };
            let class = executor.record_refusal(request, class, &error, node.as_deref(), observed);
            // In an outage the plan reports it, and waits for its end.
            if class == RefusalClass::Transient && session.as_ref().is_none_or(|session| session.outage().is_none()) {
                return Err(Fault::transient(request, IRONIC, public_text(&error.to_string())));
            }
            return Ok(Reads::Refused);
        }
        // A BMC may take a minute for its drive.
        if plan.reads.contains(&Read::Node) && !plan.reads.contains(&Read::Drive) {
            // The reads of a round are one view. Were each as old as its own response, two slow servers would age the views of
            // each other for ever.
            observed.node_observed = self.clock.monotonic();
        }
        Ok(Reads::Done)
    }
}

impl HostReconciler {
    pub(super) fn executor<'a>(
        &'a self,
        (key, ironic): (&'a Key, Option<&'a IronicSession>),
        writer: &'a Writer<Hosts>,
        planned: Monotonic,
    ) -> Executor<'a> {
        Executor {
            key,
            caches: &self.observer.caches,
            ironics: &self.observer.ironics,
            ironic,
            index: &self.index,
            refusals: &self.refusals,
            unanswered: &self.unanswered,
            erasing: &self.erasing,
            cleaning_orders: &self.cleaning_orders,
            firmware_records: &self.firmware_records,
            agent_images: &self.agent_images,
            discs: &self.discs,
            budget: &self.deprovision_budget,
            clock: &*self.clock,
            events: &self.events,
            metrics: &self.metrics,
            permit: &self.permit,
            writer,
            planned,
        }
    }
}

impl HostReconciler {
    pub(super) fn login_unchanged_for(&self, key: &Key, observed: &Observations) -> Option<Duration> {
        let recorded = observed.host.status.tried_credentials.credentials_version.as_deref();
        let secret = observed.secret(Read::Credentials).into_present()?;
        let now = self.clock.monotonic();
        self.credential_versions
            .unchanged_for(key, recorded.unwrap_or_default(), secret, now)
    }
}

/// Whether planning with the rejection ends with a record of it.
pub(super) fn is_recorded(observed: &Observations) -> bool {
    let refused = observed.refused.as_ref();
    refused.is_some_and(|refused| is_failure(refused) && refused.is_fresh)
}

pub(super) fn request_refused(observed: &Observations) -> Fault {
    let refused = observed.refused.as_ref();
    let (request, message) = refused.map_or(("a request", ""), |refused| (refused.request, refused.message.as_str()));
    Fault::transient(format!("request to Ironic: {request}"), REFUSED, message.to_owned())
}
