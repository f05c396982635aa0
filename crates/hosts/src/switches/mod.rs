//! The controller of BareMetalSwitch, for `IRONIC_NETWORKING_ENABLED`: it writes the switches of a namespace, with their
//! logins, to the two Secrets that Ironic's networking service reads. Experimental, as in the Go manager.
//!
//! | Step | Where |
//! |---|---|
//! | map changes of switches, Secrets and hosts to their namespace | `watches` |
//! | observe: caches, the content of Secrets by name | here |
//! | plan | `plan`, `content`, `file` |
//!
//! Nothing is polled: switches that do not change cost no request, unless the API server refused one. A HostNetworkAttachment is
//! not read: no Go manager reads one.
//!
//! Invariants: a switch is left out only for what is known of it, and one that is not known, or whose login a host names, stays as
//! it is written; a Secret of keys that cannot be changed stops no switch without a key; no switch can make the file unreadable
//! for the others; the content of a Secret with another use is never sent; no login is in a log, a status or an error; of the two
//! Secrets only the own values change, with the version that was read.

mod content;
mod file;
mod plan;
#[cfg(test)]
mod tests;
mod watches;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube_core::PartialObjectMeta;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{BareMetalHost, BareMetalSwitch};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Identity, Key, SharedCache};
use metal3_runtime::metrics::Metrics;
use metal3_runtime::object_reader::{Erased, ObjectReader};
use metal3_runtime::patch::{Changes, MergePatch};
use metal3_runtime::plan::Observed;
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::{Category, Controller, Fault, Next, Reconciler};
use metal3_runtime::write::{MetadataOf, WriteError, WriteErrorKind, Writer};
use serde_json::{Value, json};

use crate::live::Reading;
use crate::names::switch_reason::{STATE_UNKNOWN, STATUS_REFUSED};
use crate::needs::Switches;
use crate::reconciler::caches::Caches as HostCaches;
use crate::secret_use::{Use, use_of};
use crate::settings::BmcSecrets;
use plan::{Facts, Login, Output, Plan, Switch, Which, Write, plan};
pub use watches::{Caches, SecretsOfSwitches, SwitchIndexes};

/// The key of the file in its Secret.
const CONFIG_KEY: &str = "switch-configs.conf";
/// Switches of a namespace whose logins are read: each is a request at each change of one of them.
const MOST_SWITCHES: usize = 1000;
/// How soon a refused request is tried again: rights and policies of the API server are not watched.
const RECHECK: Duration = Duration::from_mins(5);
const NOT_PERMITTED: &str = "the API server forbids it; let this program get Secrets of the namespace";
/// The types of a Secret that may be a login of a switch.
const TYPES: [&str; 3] = ["Opaque", "kubernetes.io/basic-auth", "kubernetes.io/ssh-auth"];

/// What is written, and where Ironic finds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outputs {
    /// The Secret with the file of the switches, in the namespace of each switch (`IRONIC_SWITCH_CONFIGS_SECRET`).
    pub configs: String,
    /// The one with their private keys (`IRONIC_SWITCH_CREDENTIALS_SECRET`).
    pub keys: String,
    /// The folder in which Ironic finds the keys (`IRONIC_SWITCH_CREDENTIALS_PATH`).
    pub folder: String,
}

/// The dependencies of the controller.
pub struct Parts {
    /// Reads the API server.
    pub client: kube::Client,
    /// The switches, not listed yet.
    pub caches: Caches,
    /// The caches of the controller of hosts: hosts and Secrets.
    pub of_hosts: HostCaches,
    /// What is written.
    pub outputs: Outputs,
    /// The Secrets that a switch may name.
    pub bmc_secrets: BmcSecrets,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// The metrics registry.
    pub metrics: Metrics,
}

/// The reconciler of the switches of a namespace.
pub struct SwitchReconciler {
    caches: Caches,
    hosts: SharedCache<BareMetalHost>,
    secrets: ObjectReader<Switches, Secret>,
    secret_names: SharedCache<PartialObjectMeta<Secret>>,
    outputs: Outputs,
    bmc_secrets: BmcSecrets,
    clock: Arc<dyn Clock>,
}

/// Creates the controller. It subscribes to the caches at once. A key is the Secret with the file of a namespace.
pub fn controller(parts: Parts, writer: Writer<Switches>) -> Controller<SwitchReconciler> {
    let caches = parts.caches.clone();
    let [of_secret, of_host] = [caches.switches.indexes(), caches.switches.indexes()];
    let [configs, configs_of_host] = [parts.outputs.configs.clone(), parts.outputs.configs.clone()];
    let outputs = parts.outputs.clone();
    let reconciler = SwitchReconciler {
        secrets: ObjectReader::new(parts.client, &parts.of_hosts.secrets),
        secret_names: parts.of_hosts.secrets.clone(),
        hosts: parts.of_hosts.hosts.clone(),
        caches: parts.caches,
        outputs: parts.outputs,
        bmc_secrets: parts.bmc_secrets,
        clock: Arc::clone(&parts.clock),
    };
    Controller::new("baremetalswitch", parts.clock, writer, reconciler)
        .watches(&caches.switches, move |change| {
            let key = change.key().filter(|_| !watches::is_same(change));
            key.map(|key| key.sibling(&configs))
        })
        .watches(&parts.of_hosts.secrets, move |change| {
            let secret = change.key()?;
            let is_output = secret.name == outputs.configs || secret.name == outputs.keys;
            let is_used = is_output || of_secret.read(|indexes| indexes.names(&secret));
            is_used.then(|| secret.sibling(&outputs.configs))
        })
        .watches(&parts.of_hosts.hosts, move |change| {
            let host = change.key()?;
            let is_used = of_host.read(|indexes| {
                // Without a switch in the namespace, the names are not even collected.
                indexes.in_namespace(&host.namespace)
                    && watches::secrets_of_change(change)
                        .is_none_or(|names| names.iter().any(|name| indexes.names(&host.sibling(name))))
            });
            is_used.then(|| host.sibling(&configs_of_host))
        })
        .metrics(&parts.metrics)
}

impl Reconciler for SwitchReconciler {
    type Key = Key;
    type Role = Switches;

    async fn reconcile(&self, key: &Key, writer: &Writer<Switches>) -> Result<Next, Fault> {
        let Some(mut facts) = self.observe(key).await? else {
            let why = "BareMetalSwitches cannot be listed, so that nothing is removed; install the kind, and let this program \
                       list and watch baremetalswitches";
            return Ok(Next::waiting_with_recheck(STATE_UNKNOWN, why, RECHECK));
        };
        let mut planned = plan(&facts);
        while let Some(which) = self.write(key, &mut facts, &planned, writer).await? {
            if !facts.refused.insert(which) {
                return Err(Fault::bug(format!("{key}: a write after it was refused")));
            }
            planned = plan(&facts);
        }
        if let Some(refused) = self.report(key, &planned, writer).await? {
            let why = format!(
                "the API server refuses the status of BareMetalSwitch {refused}; let this program patch \
                 baremetalswitches/status, and see the webhooks and policies of the cluster"
            );
            return Ok(Next::waiting_with_recheck(STATUS_REFUSED, why, RECHECK));
        }
        let next = planned.wait.map_or(Next::Done, |wait| {
            let next = Next::waiting(wait.reason, wait.message);
            if wait.is_shown { next.quiet() } else { next }
        });
        Ok(if planned.is_unwatched {
            next.at_latest(RECHECK)
        } else {
            next
        })
    }
}

impl SwitchReconciler {
    /// `None`: the kind is not installed or not permitted, so that an empty namespace proves nothing.
    async fn observe(&self, key: &Key) -> Result<Option<Facts<'_>>, Fault> {
        let namespace = &key.namespace;
        // In one read: the first list may come between two.
        let (objects, unreadable, are_listed) = self.caches.switches.read(|cache| {
            let objects: Vec<Arc<BareMetalSwitch>> = cache.in_namespace(namespace).cloned().collect();
            let unreadable = cache.unreadable().filter(|one| one.namespace == *namespace);
            let unreadable: Vec<String> = unreadable.map(|one| one.name.clone()).collect();
            (objects, unreadable, watches::are_listed(cache))
        });
        if objects.is_empty() && unreadable.is_empty() && !are_listed {
            return Ok(None);
        }
        let mut switches = Vec::new();
        for object in objects {
            let login = match switches.len() < MOST_SWITCHES {
                true => self.login(key, &object).await?,
                false => Login::NotRead,
            };
            switches.push(Switch { object, login });
        }
        Ok(Some(Facts {
            outputs: &self.outputs,
            switches,
            unreadable,
            configs: self.output(&key.sibling(&self.outputs.configs)).await?,
            keys: self.output(&key.sibling(&self.outputs.keys)).await?,
            refused: BTreeSet::new(),
            now: Time::new(self.clock.now()),
        }))
    }

    /// A user who may create a switch could otherwise send the content of any Secret of the namespace to an address of his
    /// choice. differs (`switch-credentials-secret`): the Go manager reads any Secret of the namespace, and labels it.
    async fn login(&self, key: &Key, switch: &BareMetalSwitch) -> Result<Login, Fault> {
        let Some(named) = &switch.spec.credentials else {
            return Ok(Login::NotNamed);
        };
        let is_other = |namespace: &&str| !namespace.is_empty() && *namespace != key.namespace;
        if named.namespace.as_deref().filter(is_other).is_some() {
            return Ok(Login::OtherNamespace);
        }
        let Some(name) = named.name.as_deref().filter(|name| !name.is_empty()) else {
            return Ok(Login::NotNamed);
        };
        let key = key.sibling(name);
        let meta = match self.secret_names.find(&key) {
            Observed::Present(meta) => meta,
            Observed::Absent => return Ok(Login::Absent),
            Observed::Unknown(why) => return Ok(Login::Unknown(why.to_string())),
        };
        match use_of(&key, &meta, self.bmc_secrets, (&self.hosts, None)) {
            Reading::Known(Use::Free) => {}
            Reading::Known(Use::Unlabelled) => return Ok(Login::Unlabelled),
            Reading::Known(Use::Host | Use::Switch) => return Ok(Login::OfHost),
            Reading::Failed(why) => return Ok(Login::Unclear(why)),
            Reading::NotRead => return Ok(Login::Unclear("its use is not known".to_owned())),
        }
        Ok(match self.content(&key).await? {
            Output::Known(secret) if !secret.type_.as_deref().is_none_or(|one| TYPES.contains(&one)) => Login::OtherUse,
            Output::Known(secret) => Login::Known(secret),
            Output::Absent => Login::Absent,
            Output::Unknown(why) => Login::Unknown(why),
        })
    }

    async fn output(&self, key: &Key) -> Result<Output, Fault> {
        self.content(key).await
    }

    /// The content of a Secret. What is not permitted is an unknown; other failures are tried again.
    async fn content(&self, key: &Key) -> Result<Output, Fault> {
        match self.secrets.get(key).await {
            Ok(Observed::Present(secret)) => Ok(Output::Known(secret)),
            Ok(Observed::Absent) => Ok(Output::Absent),
            Ok(Observed::Unknown(why)) => Ok(Output::Unknown(why.to_string())),
            Err(fault) if fault.category() == Category::FORBIDDEN.as_str() => {
                Ok(Output::Unknown(NOT_PERMITTED.to_owned()))
            }
            Err(fault) => Err(fault),
        }
    }

    /// Performs the writes in their order, and puts the result of each into the facts. Returns the Secret of which the API
    /// server refused one.
    async fn write(
        &self,
        key: &Key,
        facts: &mut Facts<'_>,
        planned: &Plan,
        writer: &Writer<Switches>,
    ) -> Result<Option<Which>, Fault> {
        let target = MetadataOf(&self.secret_names);
        for write in &planned.writes {
            let output = match write.which {
                Which::Configs => &mut facts.configs,
                Which::Keys => &mut facts.keys,
            };
            let Output::Known(secret) = &*output else {
                return Err(Fault::bug(format!("{key}: a write to a Secret that was not read")));
            };
            let at = Identity::of(&***secret).map_err(|error| bug(key, &error))?;
            let patch = secret_patch(key, write, &at.version)?;
            let written = match writer.patch::<Secret>(&target, &at.key, patch).await {
                Err(error) if is_refused(&error) => return Ok(Some(write.which)),
                written => written?.object(),
            };
            if let Some(secret) = written {
                *output = Output::Known(Arc::new(Erased::new(secret)));
            }
        }
        Ok(None)
    }

    /// Writes the conditions. Returns a switch of which the API server refused it; that stops no other one.
    async fn report(&self, key: &Key, planned: &Plan, writer: &Writer<Switches>) -> Result<Option<String>, Fault> {
        let (mut refused, mut failed) = (None, Ok(()));
        for (stored, reported) in &planned.reports {
            let at = Identity::of(&**stored).map_err(|error| bug(key, &error))?;
            let Some(patch) = status_patch(key, stored, reported)? else {
                continue;
            };
            let patch = patch.with_precondition(&at.version);
            let switches = &self.caches.switches;
            match writer.patch_status::<BareMetalSwitch>(switches, &at.key, patch).await {
                Ok(_) => {}
                Err(error) if is_refused(&error) => refused = refused.or(Some(at.key.name)),
                Err(error) => failed = failed.and(Err(error)),
            }
        }
        failed?;
        Ok(refused)
    }
}

const fn is_refused(error: &WriteError) -> bool {
    matches!(error.kind, WriteErrorKind::Invalid | WriteErrorKind::Forbidden)
}

fn bug(key: &Key, error: &dyn std::error::Error) -> Fault {
    Fault::bug(format!("{key}: {error}"))
}

fn status_patch(key: &Key, from: &BareMetalSwitch, to: &BareMetalSwitch) -> Result<Option<MergePatch>, Fault> {
    let document = |one: &BareMetalSwitch| serde_json::to_value(one).map_err(|error| bug(key, &error));
    Ok(Changes::between(&document(from)?, &document(to)?).status)
}

fn secret_patch(key: &Key, write: &Write, version: &ResourceVersion) -> Result<MergePatch, Fault> {
    let values = |pick: fn(&Option<ByteString>) -> Option<Value>| -> Value {
        let values = write
            .values
            .iter()
            .filter_map(|(name, value)| Some((name.clone(), pick(value)?)));
        json!({ "data": values.collect::<serde_json::Map<_, _>>() })
    };
    // The difference of any former value to none removes it.
    let former = values(|value| value.is_none().then(|| json!("")));
    let wanted = values(|value| serde_json::to_value(value.as_ref()?).ok());
    let changes = Changes::between(&former, &wanted);
    let patch = changes
        .main
        .ok_or_else(|| Fault::bug(format!("{key}: a write that changes nothing")))?;
    Ok(patch.with_precondition(version))
}
