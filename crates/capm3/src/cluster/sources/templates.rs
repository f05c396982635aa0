//! Templates of endpoints: each is one ConfigMap with its own watch on demand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use metal3_api::infrastructure::v1beta2::EndpointRender;
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Change, Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::watch::{Failing, OnDemand, Scope, Watch, WatchSource};
use metal3_runtime::work::Class;
use tokio_util::sync::CancellationToken;

use super::WakeFn;
use super::discover::{DiscoveryError, watch_error};
use super::foreign::EndpointSources;
use crate::endpoint::source::Template;

/// The source of one ConfigMap, by name.
struct OneConfigMap {
    client: kube::Client,
    clock: Arc<dyn Clock>,
}

impl WatchSource for OneConfigMap {
    type Name = Key;
    type Waiter = Key;
    type Object = ConfigMap;
    type Interest = ();
    type Target = Key;
    type Error = DiscoveryError;

    /// No event reports when a right is granted.
    const RETRY: Duration = Duration::from_mins(1);

    async fn resolve(&self, name: &Key) -> Result<Key, DiscoveryError> {
        Ok(name.clone())
    }

    fn watch(&self, name: &Key, cache: SharedCache<ConfigMap>) -> Watch<ConfigMap> {
        let scope = Scope::namespace(&name.namespace).fields(format!("metadata.name={}", name.name));
        Watch::whole::<EndpointSources>(self.client.clone(), cache, &(), scope, Arc::clone(&self.clock))
    }

    fn error(&self, _: &Key, failing: Failing) -> DiscoveryError {
        match failing.class {
            Some(Class::Forbidden) => DiscoveryError::Forbidden(failing.verb, "configmaps".to_owned()),
            _ => watch_error(),
        }
    }

    fn concerns(_: &Change<'_, ConfigMap>) -> impl Fn(&()) -> bool {
        |()| true
    }
}

pub(super) struct Templates(OnDemand<OneConfigMap>);

impl Templates {
    pub(super) fn new(client: kube::Client, clock: Arc<dyn Clock>) -> Self {
        Self(OnDemand::new(OneConfigMap { client, clock }))
    }

    pub(super) async fn run(&self, stop: CancellationToken) {
        self.0.run(stop).await;
    }

    pub(super) fn set_wake(&self, wake: WakeFn) {
        self.0.set_wake(wake);
    }

    /// The template; `None` when not requested or until the first list. Replaces the earlier request of `requester`.
    pub(super) fn read(&self, requester: &Key, asked: Option<&EndpointRender>) -> Option<Template> {
        let names: BTreeMap<Key, ()> = asked
            .map(|asked| (requester.sibling(&asked.config_map_name), ()))
            .into_iter()
            .collect();
        self.0.set_interest(requester, &names);
        let asked = asked?;
        let name = requester.sibling(&asked.config_map_name);
        let watched = self.0.get(&name)?;
        Some(match (watched.error, watched.cache.find(&name)) {
            (Some(DiscoveryError::Forbidden(verb, resource)), _) => Template::Forbidden { verb, resource },
            (Some(DiscoveryError::Other(why)), _) | (None, Observed::Unknown(UnknownReason::Unreadable(why))) => {
                Template::Unknown(why)
            }
            (Some(DiscoveryError::NotServed), _) | (None, Observed::Absent) => Template::Absent,
            (None, Observed::Present(map)) => match map.data.as_ref().and_then(|data| data.get(&asked.key)) {
                Some(text) => Template::Text(text.clone()),
                None => Template::WithoutKey,
            },
            (
                None,
                Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotPermitted | UnknownReason::NotRead),
            ) => return None,
        })
    }
}
