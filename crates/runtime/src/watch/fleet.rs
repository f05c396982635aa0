//! All watches of one product.

use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;

use kube::Client;
use kube_core::Resource;
use kube_core::metadata::PartialObjectMeta;
use metal3_domain::clock::Clock;
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use super::pulse::Pulse;
use super::scope::Scope;
use super::task::Watch;
use crate::access::{May, Role, verb};
use crate::hub::{Indexes, SharedHub};

/// From where watches look, at what, and until when.
#[derive(Clone)]
pub struct Lookout {
    /// The way to the API server.
    pub client: Client,
    /// Which objects.
    pub scope: Scope,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Ends them.
    pub stop: CancellationToken,
}

impl Lookout {
    /// At all objects.
    #[must_use]
    pub fn everywhere(client: &Client, clock: &Arc<dyn Clock>, stop: &CancellationToken) -> Self {
        Self {
            client: client.clone(),
            scope: Scope::everywhere(),
            clock: Arc::clone(clock),
            stop: stop.clone(),
        }
    }
}

impl fmt::Debug for Lookout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lookout")
            .field("scope", &self.scope)
            .finish_non_exhaustive()
    }
}

/// The watches of one role, one a kind: each a task to run beside the controllers, with its signs of life.
pub struct Fleet<R> {
    lookout: Lookout,
    tasks: Vec<Pin<Box<dyn Future<Output = ()> + Send>>>,
    pulses: Vec<Pulse>,
    role: PhantomData<fn() -> R>,
}

impl<R> fmt::Debug for Fleet<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fleet")
            .field("lookout", &self.lookout)
            .field("pulses", &self.pulses)
            .finish_non_exhaustive()
    }
}

impl<R: Role> Fleet<R> {
    /// No watch yet.
    #[must_use]
    pub fn new(lookout: &Lookout) -> Self {
        Self {
            lookout: lookout.clone(),
            tasks: Vec::new(),
            pulses: Vec::new(),
            role: PhantomData,
        }
    }

    /// Keeps `hub` up to date with whole objects.
    #[must_use]
    pub fn whole<K, I>(mut self, hub: &SharedHub<K, I>) -> Self
    where
        R: May<verb::List, K> + May<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<K> + Send + 'static,
    {
        let Lookout {
            client,
            scope,
            clock,
            stop,
        } = self.lookout.clone();
        let watch = Watch::whole::<R>(client, hub.clone(), &(), scope, clock);
        self.pulses.push(watch.pulse());
        self.tasks.push(Box::pin(watch.run(stop)));
        self
    }

    /// Keeps `hub` up to date with metadata only.
    #[must_use]
    pub fn metadata<K, I>(mut self, hub: &SharedHub<PartialObjectMeta<K>, I>) -> Self
    where
        R: May<verb::List, K> + May<verb::Watch, K>,
        K: Resource<DynamicType = ()> + DeserializeOwned + Send + Sync + 'static,
        I: Indexes<PartialObjectMeta<K>> + Send + 'static,
    {
        let Lookout {
            client,
            scope,
            clock,
            stop,
        } = self.lookout.clone();
        let watch = Watch::metadata::<R>(client, hub.clone(), &(), scope, clock);
        self.pulses.push(watch.pulse());
        self.tasks.push(Box::pin(watch.run(stop)));
        self
    }

    /// The signs of life, in the order in which the watches were added.
    #[must_use]
    pub fn pulses(&self) -> Vec<Pulse> {
        self.pulses.clone()
    }

    /// The tasks, in the same order: to be run beside the controllers.
    #[must_use]
    pub fn into_tasks(self) -> Vec<Pin<Box<dyn Future<Output = ()> + Send>>> {
        self.tasks
    }
}
