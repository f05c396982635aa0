//! Performs a plan in the order of its fields. A failed action ends the plan.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, FirmwareSchema, HardwareData, HostFirmwareComponents, HostFirmwareSettings, HostUpdatePolicy,
};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::Key;
use metal3_runtime::client::WriteBlocked;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::object_reader::Erased;
use metal3_runtime::patch::MergePatch;
use metal3_runtime::plan::Observed;
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{MetadataOf, Mode, NoCache, WriteError, WriteErrorKind, Writer, Written};

use super::agent_images::AgentImages;
use super::budget::DeprovisionBudget;
use super::caches::Caches;
use super::cleaning_orders::CleaningOrders;
use super::discs::Discs;
use super::erasing::Erasing;
use super::firmware_records::FirmwareRecords;
use super::index::HostIndex;
use super::ironic_session::IronicSession;
use super::metrics::HostMetrics;
use super::observations::{Observations, ObservedSecret};
use super::refusals::Refusals;
use super::sessions::Sessions;
use super::unanswered::Unanswered;
use crate::action::{Action, Plan};
use crate::facts::Read;
use crate::needs::Hosts;
use crate::node::firmware::Order;

/// Whether a request to Ironic may be sent now: checked immediately before sending, as for writes to the API.
pub type Permit = Arc<dyn Fn() -> Result<(), WriteBlocked> + Send + Sync>;

pub(super) struct Executor<'a> {
    pub(super) key: &'a Key,
    pub(super) caches: &'a Caches,
    pub(super) ironics: &'a Sessions,
    /// The one that serves the host, if that is known.
    pub(super) ironic: Option<&'a IronicSession>,
    pub(super) index: &'a HostIndex,
    pub(super) refusals: &'a Refusals,
    pub(super) unanswered: &'a Unanswered,
    pub(super) erasing: &'a Erasing,
    pub(super) cleaning_orders: &'a CleaningOrders,
    pub(super) firmware_records: &'a FirmwareRecords,
    pub(super) discs: &'a Discs,
    pub(super) agent_images: &'a AgentImages,
    pub(super) budget: &'a DeprovisionBudget,
    pub(super) clock: &'a dyn Clock,
    pub(super) events: &'a EventRecorder,
    pub(super) metrics: &'a HostMetrics,
    pub(super) permit: &'a Permit,
    pub(super) writer: &'a Writer<Hosts>,
    /// When the plan was made.
    pub(super) planned: Monotonic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All actions were done.
    Done,
    /// The same, and the host got its HostFirmwareSettings or HostFirmwareComponents, which are reported about by the next plan.
    Owned,
    /// The API server does not let this process record an order, so it was not sent.
    NotRecorded,
    /// The API server refused the PreprovisioningImage. The remaining actions were skipped.
    ImageRefused,
    /// Dry run: the actions were only logged.
    DryRun,
    /// Another host took the last unit of the budget since the plan was made. Nothing was done.
    NoBudget,
    /// A request could not be sent soon after its plan. It must be compared again; the remaining actions were skipped.
    Late,
    /// Ironic or the BMC rejected a request about the disc of the host, or the API server its record. The host is planned again.
    Declined,
    /// Ironic rejected a request. It is recorded; the remaining actions were skipped.
    Refused,
}

impl Executor<'_> {
    /// Performs a plan, and stores the responses in `observed`.
    ///
    /// # Errors
    /// When a write to the API failed or is not permitted.
    pub(super) async fn perform(&self, plan: Plan, observed: &mut Observations) -> Result<Outcome, Fault> {
        let (records, writes): (Vec<_>, Vec<_>) = plan.actions.into_iter().partition(Action::is_record);
        let (reports, writes): (Vec<_>, Vec<_>) = writes.into_iter().partition(Action::is_report);
        let removal = writes.iter().rposition(Action::removes_record);
        for (at, action) in writes.into_iter().enumerate() {
            let prepares_removal = removal.is_some_and(|removal| at < removal);
            match self.act(action, prepares_removal, observed).await? {
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
        if self.writer.mode() == Mode::ObserveOnly && !self.writer.assumes_writes() {
            self.report(reports, observed).await?;
            return Ok(Outcome::DryRun);
        }
        for event in plan.events.into_iter().filter(|_| self.writer.mode() == Mode::Perform) {
            self.events
                .record(&*observed.host, event.importance, event.reason, event.message);
        }
        for record in records {
            self.act(record, false, observed).await?;
        }
        self.report(reports, observed).await
    }

    /// After all that the host needs: a report that is not permitted delays nothing of it, and the schema not the status.
    async fn report(&self, reports: Vec<Action>, observed: &mut Observations) -> Result<Outcome, Fault> {
        let mut outcome = Ok(Outcome::Done);
        for report in reports {
            let is_of_owner = matches!(
                report,
                Action::PatchFirmwareSettings(_) | Action::PatchFirmwareComponents(_)
            );
            let is_of_components = matches!(report, Action::ReportFirmwareComponents { .. });
            let is_of_disc = matches!(report, Action::ReportDisc { .. });
            let is_of_policy = matches!(report, Action::PatchUpdatePolicy(_));
            match self.act(report, false, observed).await {
                Err(Fault::Transient {
                    category: Category::FORBIDDEN,
                    ..
                }) if is_of_disc => {
                    tracing::warn!(host = %self.key, "a report about its DataImage is not permitted; look at the roles")
                }
                Err(Fault::Transient {
                    category: Category::FORBIDDEN,
                    ..
                }) if is_of_policy => {
                    if let Observed::Present(policy) = &observed.update_policy {
                        self.firmware_records.refuse_report(self.key, &**policy);
                    }
                    tracing::warn!(host = %self.key, "it may not be made an owner of its HostUpdatePolicy; look at the roles");
                }
                Err(Fault::Transient {
                    category: Category::FORBIDDEN,
                    ..
                }) => {
                    if is_of_components {
                        self.firmware_records.record(self.key, true, self.clock.monotonic());
                        if let Observed::Present(components) = &observed.firmware_components {
                            self.firmware_records.refuse_report(self.key, &**components);
                        }
                    } else if let Observed::Present(settings) = &observed.firmware_settings {
                        self.firmware_records.refuse_report(self.key, &**settings);
                    }
                    tracing::warn!(host = %self.key, "a report about its BIOS settings or firmware is not permitted; look at the roles");
                }
                Ok(_) if is_of_owner => outcome = outcome.map(|_| Outcome::Owned),
                Ok(_) => {}
                Err(fault) => outcome = Err(fault),
            }
        }
        outcome
    }

    /// Writes what the rest of the plan relies on.
    async fn record_updates(&self, patch: MergePatch, observed: &mut Observations) -> Result<Outcome, Fault> {
        let (cache, now) = (&self.caches.firmware_components, self.clock.monotonic());
        let written = self
            .writer
            .patch_status::<HostFirmwareComponents>(cache, self.key, patch);
        match written.await.map_err(Fault::from) {
            Err(Fault::Transient { category, .. }) if category == Category::FORBIDDEN => {
                self.firmware_records.record(self.key, true, now);
                tracing::warn!(host = %self.key, "an order to update its firmware cannot be recorded; look at the roles");
                return Ok(Outcome::NotRecorded);
            }
            written => {
                if let Some(object) = written?.object() {
                    observed.set_firmware_components(Some(object), now);
                }
            }
        }
        // What was ordered before says nothing about what is recorded now.
        let record = observed.firmware_components.present().map(|object| Order::of(object));
        if !matches!(record, Some(Order::Begun { .. })) {
            self.cleaning_orders.forget_updates(self.key);
        }
        self.firmware_records.record(self.key, false, now);
        Ok(Outcome::Done)
    }

    async fn report_components(&self, action: Action, observed: &mut Observations) -> Result<(), WriteError> {
        let (cache, now) = (&self.caches.firmware_components, self.clock.monotonic());
        let (written, event) = match action {
            Action::PatchFirmwareComponents(patch) => {
                let written = self.writer.patch::<HostFirmwareComponents>(cache, self.key, patch);
                (written.await?, None)
            }
            Action::ReportFirmwareComponents { patch, event } => {
                let written = self
                    .writer
                    .patch_status::<HostFirmwareComponents>(cache, self.key, patch);
                let written = written.await?;
                self.firmware_records.record(self.key, false, now);
                (written, event)
            }
            _ => return Ok(()),
        };
        if let Some(object) = written.object() {
            observed.set_firmware_components(Some(object), now);
        }
        if let (Some(event), Observed::Present(object)) = (event, &observed.firmware_components)
            && self.writer.mode() != Mode::ObserveOnly
        {
            self.events
                .record(&**object, event.importance, event.reason, event.message);
        }
        Ok(())
    }

    /// The next step relies on the new version.
    fn store_settings(&self, written: Option<HostFirmwareSettings>, observed: &mut Observations) {
        if written.is_some() {
            observed.set_firmware_settings(written, self.clock.monotonic());
        }
    }

    async fn act(&self, action: Action, prepares_removal: bool, observed: &mut Observations) -> Result<Outcome, Fault> {
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
            action @ (Action::CreateFirmwareSchema(_)
            | Action::PatchFirmwareSettings(_)
            | Action::ReportFirmwareSettings { .. }) => self.report_settings(action, observed).await?,
            Action::PatchUpdatePolicy(patch) => self.own_policy(patch, observed).await?,
            Action::RecordUpdates(patch) => return self.record_updates(patch, observed).await,
            action @ (Action::PatchFirmwareComponents(_) | Action::ReportFirmwareComponents { .. }) => {
                self.report_components(action, observed).await?;
            }
            Action::CreateAgentImage(image) => return self.create_agent_image(&image, observed).await,
            Action::PatchAgentImage(patch) => return self.patch_agent_image(patch, observed).await,
            Action::Ironic(order) => return self.send_order(order, prepares_removal, observed).await,
            action @ (Action::ProtectDisc(_) | Action::RecordDisc { .. }) => {
                return self.record_disc(action, observed).await;
            }
            Action::ReportDisc { patch, event } => self.report_disc(patch, event, observed).await?,
            Action::DiscFailed { message, is_last } => {
                self.discs.failed(self.key, (message, is_last), self.clock.monotonic());
            }
            Action::EndDiscAttempts => self.discs.remove(self.key),
            Action::Count(count) => self.metrics.count(self.key, &count),
            Action::EndPowerRequest => self.index.end_power_request(self.key),
            Action::EndRefusal => {
                self.refusals.forget_last(self.key);
                observed.refused = None;
            }
            Action::ReleaseSlot => self.ironics.release_slot(self.key),
        }
        Ok(Outcome::Done)
    }

    async fn own_policy(&self, patch: MergePatch, observed: &mut Observations) -> Result<(), WriteError> {
        let cache = &self.caches.update_policies;
        let written = self.writer.patch::<HostUpdatePolicy>(cache, self.key, patch).await?;
        if let Some(policy) = written.object() {
            observed.set_update_policy(Some(policy), self.clock.monotonic());
        }
        Ok(())
    }

    /// Performs an action on the HostFirmwareSettings or their schema.
    async fn report_settings(&self, action: Action, observed: &mut Observations) -> Result<(), WriteError> {
        let cache = &self.caches.firmware_settings;
        match action {
            Action::CreateFirmwareSchema(schema) => {
                match self.writer.create::<FirmwareSchema>(&NoCache, &schema).await {
                    Err(error) if error.kind == WriteErrorKind::AlreadyExists => {}
                    other => drop(other?),
                }
            }
            Action::PatchFirmwareSettings(patch) => {
                let written = self.writer.patch::<HostFirmwareSettings>(cache, self.key, patch);
                self.store_settings(written.await?.object(), observed);
            }
            Action::ReportFirmwareSettings { patch, event } => {
                let written = self.writer.patch_status::<HostFirmwareSettings>(cache, self.key, patch);
                self.store_settings(written.await?.object(), observed);
                if let (Some(event), Observed::Present(settings)) = (event, &observed.firmware_settings)
                    && self.writer.mode() != Mode::ObserveOnly
                {
                    self.events
                        .record(&**settings, event.importance, event.reason, event.message);
                }
            }
            _ => {}
        }
        Ok(())
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
