//! The controller, with one key per host.
//!
//! | Step | Where |
//! |---|---|
//! | map changes to hosts | [`caches`], `index`, `ironic_session` |
//! | observe: caches, change feed, live reads | `observations`, `observer`, `reads` |
//! | plan | [`crate::plan`] |
//! | act | `act`, `send` |
//!
//! A reconcile observes, plans and acts in rounds until the plan needs neither reads nor replanning.

mod act;
mod agent_images;
mod agent_networks;
mod boot_ports;
mod budget;
pub mod caches;
mod cleaning_orders;
mod credential_versions;
mod disc_steps;
mod discs;
mod erasing;
mod firmware_reads;
mod firmware_records;
mod gauges;
mod index;
mod ironic_gauges;
mod ironic_session;
mod lists;
mod login_seats;
mod login_tries;
mod machines;
mod metrics;
mod observations;
mod observer;
mod reads;
mod refusals;
mod reservations;
mod search;
mod send;
mod served_by;
mod sessions;
mod unanswered;
mod wiring;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use metal3_api::meta::Time;
use metal3_domain::clock::{Clock, Monotonic};
use metal3_runtime::cache::Key;
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Fault, Next, Reconciler};
use metal3_runtime::write::Writer;

use crate::action::{Count, Plan};
use crate::facts::{AgentImage, Facts, Read};
use crate::ironics::{self, Ironics, Place};
use crate::names::wait_reason::OBJECT_UNREADABLE;
use crate::needs::Hosts;
use crate::plan::{plan, wait};
use crate::settings::Settings;

pub use act::Permit;
pub use budget::DeprovisionBudget;
pub use wiring::{Running, controller};

use act::Outcome;
use agent_images::AgentImages;
use agent_networks::AgentNetworks;
use boot_ports::BootPorts;
use caches::Caches;
use cleaning_orders::CleaningOrders;
use credential_versions::CredentialVersions;
use discs::Discs;
use erasing::Erasing;
#[cfg(test)]
pub(crate) use erasing::shows_removal;
use firmware_records::FirmwareRecords;
use index::{HostIndex, jitter};
use ironic_session::IronicSession;
use login_tries::LoginTries;
use machines::Machines;
use metrics::HostMetrics;
use observations::Observations;
use observer::Observer;
use reads::{Reads, is_recorded, request_refused};
use refusals::Refusals;
use reservations::Reservations;
use unanswered::Unanswered;

/// Rounds per reconcile: more than the longest sequence of steps without a wait.
const ROUNDS: usize = 16;
const REFUSED: Category = Category::new("ironic_refused");
const IRONIC: Category = Category::new("ironic");

/// The dependencies of the controller.
pub struct Parts {
    /// Reads Secrets.
    pub client: kube::Client,
    /// The caches, not filled yet.
    pub caches: Caches,
    /// The Ironics.
    pub ironics: Ironics,
    /// Whether a request to Ironic may be sent now.
    pub permit: Permit,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The event recorder.
    pub events: EventRecorder,
    /// The metrics registry.
    pub metrics: Metrics,
    /// The flags.
    pub settings: Settings,
    /// How many provisioned hosts may be deprovisioned per period.
    pub deprovision_budget: DeprovisionBudget,
    /// The number of busy-host slots of each Ironic.
    pub slots: usize,
    /// The number of workers for each Ironic.
    pub workers: usize,
}

/// The reconciler of hosts.
pub struct HostReconciler {
    observer: Observer,
    index: HostIndex,
    refusals: Refusals,
    reservations: Reservations,
    unanswered: Unanswered,
    machines: Machines,
    erasing: Erasing,
    cleaning_orders: CleaningOrders,
    firmware_records: FirmwareRecords,
    discs: Discs,
    /// The first reconcile, which only the leader does.
    led: OnceLock<Monotonic>,
    credential_versions: CredentialVersions,
    login_tries: LoginTries,
    agent_networks: AgentNetworks,
    agent_images: AgentImages,
    boot_ports: BootPorts,
    permit: Permit,
    clock: Arc<dyn Clock>,
    events: EventRecorder,
    metrics: HostMetrics,
    settings: Settings,
    deprovision_budget: DeprovisionBudget,
}

impl Reconciler for HostReconciler {
    type Key = Key;
    type Role = Hosts;

    async fn reconcile(&self, key: &Key, writer: &Writer<Hosts>) -> Result<Next, Fault> {
        let result = self.reconcile_host(key, writer).await;
        if result.is_err() {
            self.metrics.count(key, &Count::One("metal3_reconcile_error_total"));
        }
        result
    }
}

impl HostReconciler {
    async fn reconcile_host(&self, key: &Key, writer: &Writer<Hosts>) -> Result<Next, Fault> {
        let host = match self.observer.caches.hosts.find(key) {
            Observed::Present(host) => host,
            Observed::Absent => {
                self.remove(key);
                return Ok(Next::Done);
            }
            Observed::Unknown(UnknownReason::Unreadable(why)) => {
                self.observer.ironics.leave_seats(key, None);
                return Ok(Next::waiting(OBJECT_UNREADABLE, why));
            }
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead) => {
                return Err(Fault::bug("a reconcile before the first list of hosts"));
            }
        };
        self.metrics.count(key, &Count::One("metal3_reconcile_total"));
        self.led();
        let refused = self.refusals.last(&host, self.clock.monotonic());
        let mut observed = self.observer.observe_cached(host, refused);
        let _seat = match self.observer.ironics.take_place(&observed) {
            Place::Taken(seat) => seat,
            Place::None(why) => return Ok(wait::on_node(why)),
        };
        self.repeat_rounds(key, &mut observed, writer).await
    }

    /// Plans and acts until nothing is left to do.
    async fn repeat_rounds(
        &self,
        key: &Key,
        observed: &mut Observations,
        writer: &Writer<Hosts>,
    ) -> Result<Next, Fault> {
        let mut recorded = ironics::recorded(&observed.host);
        let mut refusals: u32 = 0;
        for _ in 0..ROUNDS {
            if ironics::recorded(&observed.host) != recorded {
                // What was observed of the node is of the former one.
                return Ok(Next::Requeue);
            }
            let planned = self.clock.monotonic();
            self.observer.renew_node(key, observed, planned);
            self.observer.forget_changed_data(key, observed);
            let plan = self.plan(key, observed);
            if !plan.reads.is_empty() {
                match self.read_all(key, &plan, observed, writer).await? {
                    Reads::Done => {}
                    Reads::HostAbsent => return Ok(Next::Requeue),
                    // Plan once more with the rejection, as after a request.
                    Reads::Refused if refusals == 0 => refusals = 1,
                    Reads::Refused => return Err(request_refused(observed)),
                }
                continue;
            }
            if self.observer.is_outdated(key, observed) {
                return Ok(Next::Requeue);
            }
            let next = plan.next.clone();
            let session = observed.ironic.clone();
            match self
                .executor((key, session.as_ref()), writer, planned)
                .perform(plan, observed)
                .await?
            {
                Outcome::Done if next == Next::Requeue => {}
                Outcome::Done => return Ok(next),
                Outcome::DryRun => match self.observer.as_recorded(observed) {
                    Some(with_record) => {
                        recorded = ironics::recorded(&with_record.host);
                        *observed = with_record;
                    }
                    None => return Ok(Next::Done),
                },
                Outcome::Owned
                | Outcome::Declined
                | Outcome::NoBudget
                | Outcome::Late
                | Outcome::NotRecorded
                | Outcome::ImageRefused => {}
                // Plan once more with the rejection. A second one is a loop unless it is recorded, and a third one always.
                Outcome::Refused if refusals == 0 || (refusals == 1 && is_recorded(observed)) => refusals += 1,
                Outcome::Refused => return Err(request_refused(observed)),
            }
        }
        Ok(Next::Requeue)
    }
}

impl HostReconciler {
    /// Since when this process leads.
    fn led(&self) -> Monotonic {
        *self.led.get_or_init(|| {
            self.index.lead();
            self.clock.monotonic()
        })
    }

    /// How long Ironic may still begin with what it was sent for the host, as far as a creation or a removal is concerned.
    fn creation_left(&self, key: &Key, now: Monotonic) -> Option<Duration> {
        match self.index.registered_elsewhere(key) {
            true => self.unanswered.creation_left(key, self.led(), now),
            false => self.unanswered.left(key, now),
        }
    }

    fn plan(&self, key: &Key, observed: &Observations) -> Plan {
        let (now, monotonic) = (self.clock.now(), self.clock.monotonic());
        let outage = observed.ironic.as_ref().and_then(IronicSession::outage);
        let image_refused = self.agent_images.refused(key, monotonic);
        plan(&Facts {
            outage: outage.as_ref(),
            ironics: self.observer.ironics.names(),
            located: &observed.located,
            elsewhere: self.observer.elsewhere(observed),
            host: &observed.host,
            host_freshness: observed.host_freshness(monotonic),
            previous: self.index.previous(key),
            deleted_for: self.index.deleted(key).map(|at| monotonic.since(at)),
            credentials: observed.secret(Read::Credentials),
            login_unchanged_for: self.login_unchanged_for(key, observed),
            login_answer: observed.login_answer(),
            login_pause: self.login_tries.pause_left(key, observed.tried_login(), monotonic),
            user_data: observed.secret(Read::UserData),
            network_data: observed.secret(Read::NetworkData),
            meta_data: observed.secret(Read::MetaData),
            agent_network: observed.secret(Read::AgentNetwork),
            pull_secret: observed.secret(Read::PullSecret),
            agent_network_on_node: self.is_agent_network_on_node(key, observed),
            agent_image: AgentImage::new(observed.agent_image.as_deref(), image_refused.as_deref()),
            hardware_data: observed.hardware.as_deref(),
            node: &observed.node,
            unanswered: self.unanswered.left(key, monotonic),
            creation_left: self.creation_left(key, monotonic),
            reserved_for: self.reservations.held_for(key, observed.newest_node(), monotonic),
            machine_of: self.machines.other(&observed.host).as_ref(),
            boot_port_exists: self.boot_ports.exists(key, observed),
            ports: observed.ports.as_deref(),
            inventory: observed.inventory.as_deref(),
            validation: observed.validation.as_ref(),
            last_history_error: observed.history.as_deref(),
            firmware_settings: observed.firmware_settings.as_deref(),
            firmware_settings_freshness: observed.settings_freshness(monotonic),
            bios: observed.bios.as_deref(),
            disc: self.disc_facts(key, observed, monotonic),
            cleaning_order: self.cleaning_orders.observe(key, &self.index, observed),
            firmware_components: observed.firmware_components.as_deref(),
            firmware_components_freshness: observed.components_freshness(monotonic),
            update_policy: observed.update_policy.as_deref(),
            update_policy_freshness: observed.policy_freshness(monotonic),
            unreadable: observed.unreadable.as_deref(),
            versions: observed.versions.as_deref(),
            refused_reports: self.firmware_records.refused_reports(key, observed),
            is_firmware_status_refused: self.firmware_records.is_refused(key, monotonic),
            updates_left_for: self.firmware_records.left_for(key, observed.newest_node(), monotonic),
            began_elsewhere: self.index.began_elsewhere(key),
            erasing: self.erasing.observe(key, &self.index, observed),
            refused: observed.refused.as_ref(),
            requested_power: self.index.requested_power(key, observed.newest_node()),
            requested_reboot: self.index.requested_reboot(key, observed.newest_node()),
            aborts_deployments: observed.ironic.as_ref().is_some_and(IronicSession::aborts_deployments),
            slot: observed.slot,
            budget: self.index.budget(key, &self.deprovision_budget, now),
            settings: &self.settings,
            jitter: jitter(key),
            now: Time::new(now),
        })
    }

    fn remove(&self, key: &Key) {
        self.observer.ironics.release_slot(key);
        self.observer.ironics.leave_seats(key, None);
        self.credential_versions.remove(key);
        self.login_tries.remove(key);
        self.agent_networks.remove(key);
        self.agent_images.remove(key);
        self.refusals.remove(key);
        self.reservations.remove(key);
        self.unanswered.remove(key);
        self.discs.remove(key);
        self.erasing.remove(key);
        self.cleaning_orders.remove(key);
        self.firmware_records.remove(key);
        self.boot_ports.remove(key);
        self.metrics.remove(key);
    }
}
