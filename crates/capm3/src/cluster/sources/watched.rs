//! The watches, one per kind.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use kube_core::ApiResource;
use metal3_api::cluster::ContractReference;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::watch::{Failing, OnDemand, Scope, Watch, WatchSource};
use metal3_runtime::work::Class;
use tokio_util::sync::CancellationToken;

use super::discover::{DiscoveryError, GroupKind, find, path, watch_error};
use super::foreign::{EndpointSources, ForeignObject};
use super::templates::Templates;
use super::{Sources, WakeFn};
use crate::endpoint::source::{SourceState, SourceValue, SourceValues, WantedSources};

/// Retry interval of a kind that is not served or may not be read.
const RETRY: Duration = Duration::from_mins(1);

/// The source of kinds, in one namespace or in all.
struct Kinds {
    client: kube::Client,
    namespace: Option<String>,
    clock: Arc<dyn Clock>,
}

impl WatchSource for Kinds {
    type Name = GroupKind;
    type Waiter = Key;
    type Object = ForeignObject;
    /// The requested objects.
    type Interest = BTreeSet<Key>;
    type Target = ApiResource;
    type Error = DiscoveryError;

    const RETRY: Duration = RETRY;

    async fn resolve(&self, kind: &GroupKind) -> Result<ApiResource, DiscoveryError> {
        find(&self.client, self.namespace.as_deref(), kind).await
    }

    fn watch(&self, resource: &ApiResource, cache: SharedCache<ForeignObject>) -> Watch<ForeignObject> {
        let scope = self.namespace.clone().map_or_else(Scope::everywhere, Scope::namespace);
        let clock = Arc::clone(&self.clock);
        Watch::whole::<EndpointSources>(self.client.clone(), cache, resource, scope, clock)
    }

    fn error(&self, resource: &ApiResource, failing: Failing) -> DiscoveryError {
        match failing.class {
            Some(Class::Forbidden) => DiscoveryError::Forbidden(failing.verb, path(resource)),
            _ => watch_error(),
        }
    }

    fn concerns(change: &Change<'_, ForeignObject>) -> impl Fn(&BTreeSet<Key>) -> bool {
        let object = change.key();
        move |objects| object.as_ref().is_none_or(|object| objects.contains(object))
    }
}

/// Watches that start with the first request of a kind and stop after the last.
pub struct WatchedSources {
    kinds: OnDemand<Kinds>,
    templates: Templates,
}

impl WatchedSources {
    /// Creates the watches, in one namespace or in all. They start with [`run`](Self::run).
    #[must_use]
    pub fn new(client: kube::Client, namespace: Option<String>, clock: Arc<dyn Clock>) -> Self {
        Self {
            templates: Templates::new(client.clone(), Arc::clone(&clock)),
            kinds: OnDemand::new(Kinds {
                client,
                namespace,
                clock,
            }),
        }
    }

    /// Runs the requested watches until `stop`. Dropping the future stops them.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::join!(self.kinds.run(stop.clone()), self.templates.run(stop));
    }

    /// The value of an object, by `extract`; `None` until the first list. Cached objects do not count while the watch
    /// fails.
    fn read_object(
        &self,
        kind: &GroupKind,
        object: &Key,
        extract: impl FnOnce(&ForeignObject) -> SourceState,
    ) -> Option<SourceValue> {
        let watched = self.kinds.get(kind)?;
        let (state, idle) = match (watched.error, watched.cache.find(object)) {
            (Some(DiscoveryError::NotServed), _) | (None, Observed::Absent) => (SourceState::Absent, None),
            (Some(DiscoveryError::Forbidden(verb, resource)), _) => (SourceState::Forbidden { verb, resource }, None),
            (Some(DiscoveryError::Other(why)), _) | (None, Observed::Unknown(UnknownReason::Unreadable(why))) => {
                (SourceState::Unknown(why), None)
            }
            (None, Observed::Present(object)) => (extract(&object), object.idle.clone()),
            (
                None,
                Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead),
            ) => return None,
        };
        Some(SourceValue {
            from: format!("{} {}", kind.1, object.name),
            state,
            idle,
        })
    }
}

fn kind_of(reference: &ContractReference) -> GroupKind {
    (reference.api_group.clone(), reference.kind.clone())
}

fn services() -> GroupKind {
    (String::new(), "Service".to_owned())
}

impl Sources for WatchedSources {
    fn set_wake(&self, wake: WakeFn) {
        let wake = Arc::new(wake);
        let shared = Arc::clone(&wake);
        self.kinds.set_wake(Box::new(move |key| wake(key)));
        self.templates.set_wake(Box::new(move |key| shared(key)));
    }

    fn read(&self, requester: &Key, wanted: &WantedSources) -> Option<SourceValues> {
        let mut objects: BTreeMap<GroupKind, BTreeSet<Key>> = BTreeMap::new();
        let references = wanted.infrastructure.iter().chain(&wanted.control_plane);
        let named = references.map(|reference| (kind_of(reference), reference.name.as_str()));
        let service = wanted.service.iter().map(|service| (services(), service.name.as_str()));
        for (kind, name) in named.chain(service) {
            objects.entry(kind).or_default().insert(requester.sibling(name));
        }
        self.kinds.set_interest(requester, &objects);
        let template = self.templates.read(requester, wanted.template.as_ref());
        let mut is_pending = wanted.template.is_some() && template.is_none();
        let mut read = |kind: GroupKind, name: &str, extract: &dyn Fn(&ForeignObject) -> SourceState| {
            let value = self.read_object(&kind, &requester.sibling(name), extract);
            is_pending |= value.is_none();
            value
        };
        let mut contract = |reference: &ContractReference| {
            read(kind_of(reference), &reference.name, &ForeignObject::contract_endpoint)
        };
        let (infrastructure, control_plane) = (
            wanted.infrastructure.as_ref().and_then(&mut contract),
            wanted.control_plane.as_ref().and_then(&mut contract),
        );
        let service = wanted.service.as_ref().and_then(|service| {
            read(services(), &service.name, &|object| {
                object.load_balancer_endpoint(service, wanted.port)
            })
        });
        let source_values = SourceValues {
            infrastructure,
            control_plane,
            service,
            pool: None,
            template,
        };
        (!is_pending).then_some(source_values)
    }
}
