//! The watches, one a kind.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
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

use super::discover::{GroupKind, Trouble, find, path, unwatched};
use super::foreign::{EndpointSources, Foreign};
use super::templates::Templates;
use super::{Sources, WakeFn};
use crate::endpoint::reading::{Heard, Reading, Readings, Wanted};

/// How often a kind is tried that is not served, or that we may not read.
const RETRY: Duration = Duration::from_mins(1);

/// How kinds are asked for through one client, in one namespace or in all.
struct Kinds {
    client: kube::Client,
    namespace: Option<String>,
    clock: Arc<dyn Clock>,
}

impl WatchSource for Kinds {
    type Name = GroupKind;
    type Object = Foreign;
    /// The objects that somebody waits for.
    type Interest = BTreeSet<Key>;
    type Target = ApiResource;
    type Error = Trouble;

    const RETRY: Duration = RETRY;

    async fn resolve(&self, kind: &GroupKind) -> Result<ApiResource, Trouble> {
        find(&self.client, self.namespace.as_deref(), kind).await
    }

    fn watch(&self, resource: &ApiResource, cache: SharedCache<Foreign>) -> Watch<Foreign> {
        let scope = self.namespace.clone().map_or_else(Scope::everywhere, Scope::namespace);
        let clock = Arc::clone(&self.clock);
        Watch::whole::<EndpointSources>(self.client.clone(), cache, resource, scope, clock)
    }

    fn error(&self, resource: &ApiResource, failing: Failing) -> Trouble {
        match failing.class {
            Some(Class::Forbidden) => Trouble::Forbidden(failing.verb, path(resource)),
            _ => unwatched(),
        }
    }

    fn concerns(change: &Change<'_, Foreign>) -> impl Fn(&BTreeSet<Key>) -> bool {
        let object = change.key();
        move |objects| object.as_ref().is_none_or(|object| objects.contains(object))
    }
}

/// Watches that begin with the first question for a kind and end with the last.
pub struct Watched {
    kinds: OnDemand<Kinds>,
    templates: Templates,
}

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched").field("kinds", &self.kinds).finish()
    }
}

impl Watched {
    /// Watches through `client`, in one namespace or in all. Nothing is watched before it [runs](Self::run).
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

    /// Keeps the watches that are wanted, until `stop`. Dropping the future ends them all.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::join!(self.kinds.run(stop.clone()), self.templates.run(stop));
    }

    /// What an object says, by `hear`; nothing while the first answer is on its way. What was seen before counts no more
    /// once it cannot be seen any more.
    fn read(&self, kind: &GroupKind, object: &Key, hear: impl FnOnce(&Foreign) -> Heard) -> Option<Reading> {
        let seen = self.kinds.get(kind)?;
        let (heard, sleeper) = match (seen.error, seen.cache.find(object)) {
            (Some(Trouble::NotServed), _) | (None, Observed::Absent) => (Heard::Absent, None),
            (Some(Trouble::Forbidden(verb, resource)), _) => (Heard::Forbidden { verb, resource }, None),
            (Some(Trouble::Other(why)), _) | (None, Observed::Unknown(UnknownReason::Unreadable(why))) => {
                (Heard::Unknown(why), None)
            }
            (None, Observed::Present(foreign)) => (hear(&foreign), foreign.sleeper.clone()),
            (None, Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead)) => return None,
        };
        Some(Reading {
            from: format!("{} {}", kind.1, object.name),
            heard,
            sleeper,
        })
    }
}

fn kind_of(reference: &ContractReference) -> GroupKind {
    (reference.api_group.clone(), reference.kind.clone())
}

fn services() -> GroupKind {
    (String::new(), "Service".to_owned())
}

impl Sources for Watched {
    fn set_wake(&self, wake: WakeFn) {
        let wake = Arc::new(wake);
        let same = Arc::clone(&wake);
        self.kinds.set_wake(Box::new(move |key| wake(key)));
        self.templates.set_wake(Box::new(move |key| same(key)));
    }

    fn look(&self, waiter: &Key, wanted: &Wanted) -> Option<Readings> {
        let mut objects: BTreeMap<GroupKind, BTreeSet<Key>> = BTreeMap::new();
        let references = wanted.infrastructure.iter().chain(&wanted.control_plane);
        let named = references.map(|reference| (kind_of(reference), reference.name.as_str()));
        let service = wanted.service.iter().map(|service| (services(), service.name.as_str()));
        for (kind, name) in named.chain(service) {
            objects.entry(kind).or_default().insert(waiter.sibling(name));
        }
        self.kinds.set_interest(waiter, &objects);
        let template = self.templates.look(waiter, wanted.template.as_ref());
        let mut is_pending = wanted.template.is_some() && template.is_none();
        let mut read = |kind: GroupKind, name: &str, hear: &dyn Fn(&Foreign) -> Heard| {
            let reading = self.read(&kind, &waiter.sibling(name), hear);
            is_pending |= reading.is_none();
            reading
        };
        let mut contract = |reference: &ContractReference| read(kind_of(reference), &reference.name, &Foreign::stated);
        let (infrastructure, control_plane) = (
            wanted.infrastructure.as_ref().and_then(&mut contract),
            wanted.control_plane.as_ref().and_then(&mut contract),
        );
        let service = wanted.service.as_ref().and_then(|service| {
            read(services(), &service.name, &|foreign| {
                foreign.balanced(service, wanted.port)
            })
        });
        let readings = Readings {
            infrastructure,
            control_plane,
            service,
            pool: None,
            template,
        };
        (!is_pending).then_some(readings)
    }
}
