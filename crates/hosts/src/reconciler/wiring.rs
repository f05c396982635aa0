//! The controller and its task.

use std::sync::{Arc, OnceLock};

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::queue::{Queue, Waker};
use metal3_runtime::work::Controller;
use metal3_runtime::write::Writer;
use tokio_util::sync::CancellationToken;

use super::agent_images::AgentImages;
use super::agent_networks::AgentNetworks;
use super::boot_ports::BootPorts;
use super::cleaning_orders::CleaningOrders;
use super::credential_versions::CredentialVersions;
use super::discs::Discs;
use super::erasing::Erasing;
use super::firmware_records::FirmwareRecords;
use super::gauges::Gauges;
use super::index::HostIndex;
use super::ironic_session::SessionParts;
use super::login_tries::LoginTries;
use super::machines::Machines;
use super::metrics::HostMetrics;
use super::observer::Observer;
use super::refusals::Refusals;
use super::reservations::Reservations;
use super::served_by::ServedBy;
use super::sessions::Sessions;
use super::unanswered::Unanswered;
use super::{HostReconciler, Parts};
use crate::needs::Hosts;

/// The controller, and the task of its Ironic sessions.
#[must_use = "it does nothing until it runs"]
pub struct Running {
    controller: Controller<HostReconciler>,
    ironics: Sessions,
    hosts: SharedCache<BareMetalHost>,
}

impl Running {
    /// Runs until `stop`.
    pub async fn run(self, stop: CancellationToken) {
        let following = stop.child_token();
        let follow = self.ironics.run(self.hosts, following.clone());
        let work = async {
            self.controller.run(stop).await;
            // Reconciles in progress may still read from Ironic.
            following.cancel();
        };
        futures::future::join(work, follow).await;
    }
}

fn keys(key: Option<Key>) -> Vec<Key> {
    key.into_iter().collect()
}

fn observer(parts: &Parts, ironics: &Sessions) -> Observer {
    Observer {
        secrets: ObjectReader::new(parts.client.clone(), &parts.caches.secrets),
        caches: parts.caches.clone(),
        ironics: ironics.clone(),
        plain_node_names: parts.settings.plain_node_names,
        builds_agent_images: parts.settings.builds_agent_images,
        clock: Arc::clone(&parts.clock),
    }
}

fn sessions(parts: &Parts, (index, refusals): (&HostIndex, &Refusals), waker: Waker<Key>) -> Sessions {
    let of_all = SessionParts {
        clock: Arc::clone(&parts.clock),
        index: index.clone(),
        served_by: ServedBy::following(&parts.caches.hosts, parts.ironics.names()),
        refusals: refusals.clone(),
        waker,
        slots: parts.slots,
    };
    Sessions::new(&parts.ironics, &of_all, parts.workers)
}

/// Creates the controller of hosts. It subscribes to the caches at once.
pub fn controller(parts: Parts, writer: Writer<Hosts>) -> Running {
    let index = HostIndex::following(&parts.caches.hosts, Arc::clone(&parts.clock));
    let queue = Queue::new(Arc::clone(&parts.clock));
    let refusals = Refusals::default();
    let ironics = sessions(&parts, (&index, &refusals), queue.waker());
    let workers = parts.workers.saturating_mul(ironics.names().iter().count());
    let of_gauges = (ironics.clone(), index.clone(), parts.deprovision_budget);
    Gauges::register(&parts.metrics, &parts.caches.hosts, of_gauges, Arc::clone(&parts.clock));
    let observer = observer(&parts, &ironics);
    let builds_agent_images = observer.builds_agent_images;
    let machines = Machines::following(&parts.caches.hosts);
    let (of_secret, of_machine) = (index.clone(), machines.clone());
    let reconciler = HostReconciler {
        observer,
        index,
        refusals,
        reservations: Reservations::default(),
        unanswered: Unanswered::default(),
        machines,
        erasing: Erasing::default(),
        cleaning_orders: CleaningOrders::default(),
        firmware_records: FirmwareRecords::default(),
        discs: Discs::default(),
        led: OnceLock::new(),
        credential_versions: CredentialVersions::default(),
        login_tries: LoginTries::default(),
        agent_networks: AgentNetworks::default(),
        agent_images: AgentImages::default(),
        boot_ports: BootPorts::default(),
        permit: parts.permit,
        clock: parts.clock,
        events: parts.events,
        metrics: HostMetrics::register(&parts.metrics),
        settings: parts.settings,
        deprovision_budget: parts.deprovision_budget,
    };
    let controller = Controller::with_queue("baremetalhost", queue, writer, reconciler)
        .watches(&parts.caches.hosts, move |change| keys(change.key()))
        .watches(&parts.caches.hosts, move |change| of_machine.waiting(change))
        .watches(&parts.caches.hardware, move |change| keys(change.key()))
        .watches(&parts.caches.firmware_settings, move |change| keys(change.key()))
        .watches(&parts.caches.firmware_components, move |change| keys(change.key()))
        .watches(&parts.caches.update_policies, move |change| keys(change.key()))
        .watches(&parts.caches.data_images, move |change| keys(change.key()))
        .watches(&parts.caches.secrets, move |change| of_secret.hosts_of(change.key()))
        .wait_for(ironics.clone().listed())
        .workers(workers)
        .metrics(&parts.metrics);
    let controller = match builds_agent_images {
        true => controller.watches(&parts.caches.agent_images, move |change| keys(change.key())),
        false => controller,
    };
    Running {
        controller,
        ironics,
        hosts: parts.caches.hosts,
    }
}
