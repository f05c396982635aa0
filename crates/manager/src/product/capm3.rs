//! Clusters, machines and their data, wired.

use std::sync::Arc;

use metal3_api::cluster::names::{GROUP as CLUSTER_API, IPAM_GROUP};
use metal3_api::infrastructure::v1beta2::Metal3Remediation;
use metal3_api::{infrastructure, metal3};
use metal3_capi::workload::join::{JoinChecks, Joins};
use metal3_capi::workload::{Remote, Repairs};
use metal3_capm3::capacity::reconciler as capacity;
use metal3_capm3::cluster::reconciler as clusters;
use metal3_capm3::cluster::sources::{ControlPlaneTouch, WatchedSources};
use metal3_capm3::controller::caches::Caches;
use metal3_capm3::data::claims::Naming;
use metal3_capm3::data::reconciler::{self as data, caches as data_caches};
use metal3_capm3::machine::reconciler as machines;
use metal3_capm3::needs::{Machines, Remediations};
use metal3_capm3::remediation::reconciler as remediation;
use metal3_flags::Owner;
use metal3_runtime::cache::SharedCache;
use metal3_runtime::events::{EventRecorder, Publisher};
use metal3_runtime::guard;
use metal3_runtime::lease::CAPM3_LEASE;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::write::Writer;
use metal3_webhooks::destinations::Destinations;
use metal3_webhooks::related_objects::RelatedObjects;
use metal3_webhooks::table::INFRASTRUCTURE;
use tokio_util::sync::CancellationToken;

use super::{CORE, EVENTS, Product, Running, Task, WriteAccess};
use crate::drain_events::run_then_drain;
use crate::error::RunError;
use crate::served::Kind;
use crate::session::Session;

const INSTALLED_BY: &str = "infrastructure-components.yaml";
const HOSTS: &str = "hosts-components.yaml";

const fn own_kind(plural: &'static str) -> Kind {
    Kind::new(infrastructure::names::GROUP, "v1beta2", plural, INSTALLED_BY)
}

/// Clusters, machines and their data.
pub(super) const PRODUCT: Product = Product {
    owner: Owner::Capm3,
    suite: INFRASTRUCTURE,
    kinds: &[
        own_kind("metal3clusters"),
        own_kind("metal3machines"),
        own_kind("metal3datatemplates"),
        own_kind("metal3dataclaims"),
        own_kind("metal3datas"),
        own_kind("metal3remediations"),
        Kind::new(metal3::names::GROUP, "v1alpha1", "baremetalhosts", HOSTS),
        Kind::new(IPAM_GROUP, "v1beta2", "ipaddressclaims", CORE),
        Kind::new(IPAM_GROUP, "v1beta2", "ipaddresses", CORE),
        Kind::new(CLUSTER_API, "v1beta2", "clusters", CORE),
        Kind::new(CLUSTER_API, "v1beta2", "machines", CORE),
    ],
    lease: CAPM3_LEASE,
    replaces: &[guard::CAPM3],
    begin,
};

fn begin(session: &Session, write_access: WriteAccess) -> Result<Running, RunError> {
    let caches = Caches::default();
    let data = data_caches::Caches::of(&caches);
    let watch_config = session.watch_config();
    let remediations = SharedCache::default();
    let watches = caches
        .watches(&watch_config)
        .chain(data.own_watches(&watch_config))
        .chain(remediation::own_watches(&remediations, &watch_config));
    let all = AllCaches {
        machines: caches,
        data,
        remediations,
    };
    Ok(Running {
        related_objects: Arc::new(ReviewedBy(session.destinations())),
        ..Running::new(watches, controllers(session, all, write_access))
    })
}

/// The allowed destinations, for the webhooks of machines.
struct ReviewedBy(Destinations);

impl RelatedObjects for ReviewedBy {
    fn destinations(&self) -> Option<&Destinations> {
        Some(&self.0)
    }
}

/// The caches of all controllers.
struct AllCaches {
    machines: Caches,
    data: data_caches::Caches,
    remediations: SharedCache<Metal3Remediation>,
}

fn controllers(session: &Session, all: AllCaches, write_access: WriteAccess) -> Task {
    let AllCaches {
        machines: caches,
        data,
        remediations,
    } = all;
    let (events, inbox) = EventRecorder::bounded(EVENTS);
    let (options, clock) = (&session.options, Arc::clone(&session.clock));
    let writer: Writer<Machines> = Writer::new(write_access.client.clone(), session.mode());
    let of_remediations: Writer<Remediations> = Writer::new(write_access.client.clone(), session.mode());
    let control_plane_writer = options
        .wakes_control_planes
        .then(|| Writer::new(write_access.client.clone(), session.mode()));
    let of_data = Writer::new(write_access.client, session.mode());
    let publisher = Publisher::new(inbox, of_data.clone(), Arc::clone(&clock), "capm3-controller");
    let workloads = Arc::new(Remote::new(writer.clone(), write_access.workloads, Arc::clone(&clock)));
    let sources = Arc::new(WatchedSources::new(
        session.client.clone(),
        options.namespace.clone(),
        clock,
    ));
    // Subscribes before any cache is filled.
    let cluster = cluster_parts(session, &caches, &data, (&sources, &events), control_plane_writer);
    let looks = options.looks_before_joins;
    let join_checks = looks.then(|| -> Arc<dyn JoinChecks> { Arc::new(Joins::new(Arc::clone(&workloads))) });
    let clusters = clusters::controller(clusters::Parts { join_checks, ..cluster }, writer.clone());
    let remediation = remediation_parts(session, remediations, &caches, (&workloads, &events));
    let remediations = remediation::controller(remediation, of_remediations);
    let machine_templates = capacity::controller(capacity_parts(session, &caches), writer.clone());
    let machines = machines::controller(machine_parts(session, caches, &data, (&workloads, &events)), writer);
    let (templates, objects) = data::controllers(data_parts(session, data, events), &of_data);
    Box::new(move |stop| {
        Box::pin(async move {
            let reached = CancellationToken::new();
            let all = async {
                tokio::join!(
                    clusters.run(stop.clone()),
                    machines.run(stop.clone()),
                    templates.run(stop.clone()),
                    objects.run(stop.clone()),
                    remediations.run(stop.clone()),
                    machine_templates.run(stop.clone()),
                );
                // Running reconciles may still write into workload clusters.
                reached.cancel();
            };
            let work = async { tokio::join!(all, workloads.run(reached.clone()), sources.run(reached.clone())) };
            run_then_drain(work, publisher.run()).await;
        })
    })
}

fn cluster_parts(
    session: &Session,
    caches: &Caches,
    data: &data_caches::Caches,
    (sources, events): (&Arc<WatchedSources>, &EventRecorder),
    touch_writer: Option<Writer<ControlPlaneTouch>>,
) -> clusters::Parts {
    let options = &session.options;
    clusters::Parts {
        caches: caches.clone(),
        sources: Arc::<WatchedSources>::clone(sources),
        pools: data.clone(),
        secrets: ObjectReader::new(session.client.clone(), &data.secrets),
        clock: Arc::clone(&session.clock),
        events: events.clone(),
        metrics: session.metrics.clone(),
        watch_filter: options.watch_filter.clone(),
        adopts_namesakes: options.adopts_namesakes,
        touch_writer,
        join_checks: None,
        workers: options.at_once.clusters,
    }
}

fn machine_parts(
    session: &Session,
    caches: Caches,
    data: &data_caches::Caches,
    (workloads, events): (&Arc<Remote<Machines>>, &EventRecorder),
) -> machines::Parts {
    machines::Parts {
        caches,
        data_templates: data.templates.clone(),
        workloads: Arc::<Remote<Machines>>::clone(workloads),
        clock: Arc::clone(&session.clock),
        events: events.clone(),
        metrics: session.metrics.clone(),
        settings: session.machines,
        watch_filter: session.options.watch_filter.clone(),
        workers: session.options.at_once.machines,
    }
}

fn remediation_parts(
    session: &Session,
    remediations: SharedCache<Metal3Remediation>,
    caches: &Caches,
    (workloads, events): (&Arc<Remote<Machines>>, &EventRecorder),
) -> remediation::Parts {
    remediation::Parts {
        remediations,
        caches: caches.clone(),
        workloads: Arc::new(Repairs::new(Arc::clone(workloads))),
        clock: Arc::clone(&session.clock),
        events: events.clone(),
        metrics: session.metrics.clone(),
        watch_filter: session.options.watch_filter.clone(),
        workers: session.options.at_once.remediations,
    }
}

fn capacity_parts(session: &Session, caches: &Caches) -> capacity::Parts {
    capacity::Parts {
        caches: caches.clone(),
        clock: Arc::clone(&session.clock),
        metrics: session.metrics.clone(),
        watch_filter: session.options.watch_filter.clone(),
        workers: session.options.at_once.machine_templates,
    }
}

fn data_parts(session: &Session, caches: data_caches::Caches, events: EventRecorder) -> data::Parts {
    let options = &session.options;
    data::Parts {
        caches,
        clock: Arc::clone(&session.clock),
        events,
        metrics: session.metrics.clone(),
        naming: match options.names_claims_by_host {
            true => Naming::Host,
            false => Naming::Data,
        },
        watch_filter: options.watch_filter.clone(),
        template_workers: options.at_once.templates,
        data_workers: options.at_once.data,
    }
}
