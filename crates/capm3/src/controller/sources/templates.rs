//! Templates for an endpoint: each is one ConfigMap, watched alone while somebody asks.

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
use super::discover::{Trouble, unwatched};
use super::foreign::EndpointSources;
use crate::endpoint::render::Template;

/// One ConfigMap, by its name.
struct OneConfigMap {
    client: kube::Client,
    clock: Arc<dyn Clock>,
}

impl WatchSource for OneConfigMap {
    type Name = Key;
    type Object = ConfigMap;
    type Interest = ();
    type Target = Key;
    type Error = Trouble;

    /// Nothing tells when a right is granted.
    const RETRY: Duration = Duration::from_mins(1);

    async fn resolve(&self, name: &Key) -> Result<Key, Trouble> {
        Ok(name.clone())
    }

    fn watch(&self, way: &Key, cache: SharedCache<ConfigMap>) -> Watch<ConfigMap> {
        let scope = Scope::namespace(&way.namespace).fields(format!("metadata.name={}", way.name));
        Watch::whole::<EndpointSources>(self.client.clone(), cache, &(), scope, Arc::clone(&self.clock))
    }

    fn error(&self, _: &Key, failing: Failing) -> Trouble {
        match failing.class {
            Some(Class::Forbidden) => Trouble::Forbidden(failing.verb, "configmaps".to_owned()),
            _ => unwatched(),
        }
    }

    fn concerns(_: &Change<'_, ConfigMap>) -> impl Fn(&()) -> bool {
        |()| true
    }
}

/// The ConfigMaps that somebody waits for.
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

    /// What is known of a template; nothing where none is asked for, or while the first answer is on its way. From now on
    /// `waiter` waits for this one, and for no other.
    pub(super) fn look(&self, waiter: &Key, asked: Option<&EndpointRender>) -> Option<Template> {
        let names: BTreeMap<Key, ()> = asked
            .map(|asked| (waiter.sibling(&asked.config_map_name), ()))
            .into_iter()
            .collect();
        self.0.set_interest(waiter, &names);
        let asked = asked?;
        let name = waiter.sibling(&asked.config_map_name);
        let seen = self.0.get(&name)?;
        Some(match (seen.error, seen.cache.find(&name)) {
            (Some(Trouble::Forbidden(verb, resource)), _) => Template::Forbidden { verb, resource },
            (Some(Trouble::Other(why)), _) | (None, Observed::Unknown(UnknownReason::Unreadable(why))) => {
                Template::Unknown(why)
            }
            (Some(Trouble::NotServed), _) | (None, Observed::Absent) => Template::Absent,
            (None, Observed::Present(map)) => match map.data.as_ref().and_then(|data| data.get(&asked.key)) {
                Some(text) => Template::Text(text.clone()),
                None => Template::WithoutKey,
            },
            (None, Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead)) => return None,
        })
    }
}
