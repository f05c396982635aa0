//! The watches that fill the hubs.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use kube_core::Resource;
use metal3_domain::clock::Clock;
use metal3_runtime::access::{May, verb};
use metal3_runtime::hub::{Indexes, SharedHub};
use metal3_runtime::watch::{Pulse, Scope, Watch};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::hubs::Hubs;
use crate::needs::Machines;

/// One watch a kind: each a task to run, with its signs of life.
pub struct Watches {
    /// To be run beside the controllers, until they stop.
    pub tasks: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// In the order of the tasks.
    pub pulses: Vec<Pulse>,
}

impl fmt::Debug for Watches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watches")
            .field("pulses", &self.pulses)
            .finish_non_exhaustive()
    }
}

impl Watches {
    /// The watches of all kinds that clusters and machines are decided on.
    #[must_use]
    pub fn of(
        hubs: &Hubs,
        client: &kube::Client,
        scope: &Scope,
        clock: &Arc<dyn Clock>,
        stop: &CancellationToken,
    ) -> Self {
        let mut watches = Self {
            tasks: Vec::new(),
            pulses: Vec::new(),
        };
        let start = Start {
            client,
            scope,
            clock,
            stop,
        };
        start.watch(&hubs.clusters, &mut watches);
        start.watch(&hubs.machines, &mut watches);
        start.watch(&hubs.metal3_clusters, &mut watches);
        start.watch(&hubs.metal3_machines, &mut watches);
        start.watch(&hubs.claims, &mut watches);
        start.watch(&hubs.data, &mut watches);
        start.watch(&hubs.hosts, &mut watches);
        watches
    }
}

struct Start<'a> {
    client: &'a kube::Client,
    scope: &'a Scope,
    clock: &'a Arc<dyn Clock>,
    stop: &'a CancellationToken,
}

impl Start<'_> {
    fn watch<K, I>(&self, hub: &SharedHub<K, I>, watches: &mut Watches)
    where
        Machines: May<verb::List, K> + May<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<K> + Send + 'static,
    {
        let (client, hub) = (self.client.clone(), hub.clone());
        let watch = Watch::whole::<Machines>(client, hub, &(), self.scope.clone(), Arc::clone(self.clock));
        watches.pulses.push(watch.pulse());
        watches.tasks.push(Box::pin(watch.run(self.stop.clone())));
    }
}
