//! Hosts, wired.

use std::sync::Arc;

use metal3_api::metal3::names::GROUP;
use metal3_hosts::controller::caches::Caches;
use metal3_hosts::controller::{Parts, controller};
use metal3_hosts::needs::Hosts;
use metal3_runtime::events::{EventRecorder, Publisher};
use metal3_runtime::guard;
use metal3_runtime::lease::HOSTS_LEASE;
use metal3_runtime::watch::Scope;
use metal3_runtime::write::Writer;
use metal3_webhooks::neighbours::Nobody;
use metal3_webhooks::table::HOSTS;

use super::{Mandate, Product, Running, Task, until_stopped};
use crate::last_words::told;
use crate::metal::Metal;
use crate::run::RunFault;
use crate::served::Kind;
use crate::session::Session;
use metal3_flags::Owner;

/// Events that may lie unwritten. One more than that in a burst tells nobody anything new.
const EVENTS: usize = 1000;

const fn ours(plural: &'static str) -> Kind {
    Kind {
        group: GROUP,
        version: "v1alpha1",
        plural,
        installed_by: "hosts-components.yaml",
    }
}

/// Hosts.
pub(super) const PRODUCT: Product = Product {
    owner: Owner::Hosts,
    suite: HOSTS,
    kinds: &[ours("baremetalhosts"), ours("hardwaredata")],
    lease: HOSTS_LEASE,
    replaces: guard::HOSTS,
    begin,
};

fn begin(session: &Session, mandate: Mandate) -> Result<Running, RunFault> {
    let metal = session.metal.clone().ok_or(RunFault::NoIronic)?;
    let caches = Caches::default();
    let mut lookout = session.lookout();
    if let (None, Some(namespace)) = (&session.options.namespace, &metal.namespace) {
        lookout.scope = Scope::namespace(namespace);
    }
    let watches = caches.watches(&lookout);
    Ok(Running {
        pulses: watches.pulses(),
        watches: watches.into_tasks().into_iter().map(until_stopped).collect(),
        synced: Arc::new({
            let caches = caches.clone();
            move || all_synced(&caches)
        }),
        // No rule about a host looks at another object.
        neighbours: Arc::new(Nobody),
        controllers: controllers(session, caches, mandate, metal),
    })
}

fn controllers(session: &Session, caches: Caches, mandate: Mandate, metal: Metal) -> Task {
    let (events, inbox) = EventRecorder::bounded(EVENTS);
    let writer: Writer<Hosts> = Writer::new(mandate.client.clone(), session.mode());
    let clock = Arc::clone(&session.clock);
    let publisher = Publisher::new(inbox, writer.clone(), Arc::clone(&clock), "metal3-baremetal-controller");
    let parts = Parts {
        client: mandate.client,
        caches,
        ironic: metal.ironic,
        permit: mandate.permit,
        clock,
        events,
        metrics: session.metrics.clone(),
        settings: metal.settings,
        brake: metal.brake,
        slots: metal.slots,
        workers: metal.workers,
    };
    // It follows the caches from now on, before any of them is filled.
    let controller = controller(parts, writer);
    Box::new(move |stop| Box::pin(told(controller.run(stop), publisher.run())))
}

fn all_synced(caches: &Caches) -> bool {
    caches.hosts.read(|cache| cache.synced())
        && caches.hardware.read(|cache| cache.synced())
        && caches.secrets.read(|cache| cache.synced())
}
