//! Observes: caches, and the live reads that a decision asks for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube_core::PartialObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData, HostClaim, HostDeployPolicy};
use metal3_domain::clock::Clock;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{MetadataOf, Writer};

use super::bond::{self, Trace, named};
use super::copies::{self, Copy, Named, Pair, Pairs, Source, Use};
use super::deletions::Deletions;
use super::facts::{Facts, Fresh, Read};
use super::policy::{MOST_POLICIES, PolicyBook, Rules};
use super::refusals::Refusals;
use super::watches::{Caches, HostBook};
use crate::live::Reading;
use crate::needs::Claims;
use crate::switches::SecretsOfSwitches;

/// Reads what decisions need.
pub(super) struct Observer {
    pub(super) caches: Caches,
    pub(super) book: HostBook,
    pub(super) policies: PolicyBook,
    pub(super) refusals: Refusals,
    pub(super) deletions: Deletions,
    pub(super) hosts: SharedCache<BareMetalHost>,
    pub(super) hardware: SharedCache<HardwareData>,
    pub(super) secret_names: SharedCache<PartialObjectMeta<Secret>>,
    pub(super) switches: Option<SecretsOfSwitches>,
    /// The only namespace that is watched; `None`: all are.
    pub(super) only: Option<String>,
}

impl Observer {
    /// What the caches have.
    pub(super) fn observe(&self, key: &Key, claim: Arc<HostClaim>, clock: &dyn Clock) -> Facts {
        let now = clock.now();
        let traced = Trace::of(&claim, key).and_then(|trace| trace.host());
        let own: Vec<Key> = traced.into_iter().chain(named(&claim)).collect();
        let mut keys = self.book.of_claim(key);
        keys.extend(own.clone());
        // A claim with a host does not choose another one. One that a user made name the claim is none.
        let is_bound = |host: &Key| {
            let found = self.hosts.find(host).into_present();
            found.is_some_and(|found| {
                bond::is_recorded_for(&found, &claim, key)
                    || (own.contains(host) && bond::consumer(&found).as_ref() == Some(key))
            })
        };
        let has_host = keys.iter().any(is_bound);
        let is_beyond = !has_host && self.caches.claims.indexes().read(|indexes| indexes.is_beyond(key));
        let chooses = !is_beyond && !has_host && named(&claim).is_none();
        if chooses {
            keys.extend(self.book.free());
        }
        keys.sort();
        keys.dedup();
        let is_hidden = |host: &&Key| matches!(self.hosts.find(host), Observed::Unknown(UnknownReason::Unreadable(_)));
        let (policies, knows_policies) = self.policies(&keys);
        let mut facts = Facts {
            policies,
            knows_policies,
            watches_namespaces: self.only.is_none() && !matches!(self.namespace(&key.namespace), Observed::Unknown(_)),
            namespace: self.namespace(&key.namespace),
            deleted_for: self.deletions.passed(key, &claim, clock.monotonic()),
            key: key.clone(),
            claim,
            hosts: BTreeMap::new(),
            hidden: own.iter().filter(is_hidden).cloned().collect(),
            refused: self.refusals.of(key, now),
            is_hardware_refused: false,
            is_beyond,
            abandoned: if chooses { self.abandoned(&key.namespace) } else { 0 },
            hardware: BTreeMap::new(),
            copies: BTreeMap::new(),
            fresh: Fresh::default(),
            now,
        };
        for host in keys {
            if !chooses {
                self.find_hardware(&host, &mut facts);
            }
            if let Observed::Present(found) = self.hosts.find(&host) {
                facts.hosts.insert(host, found);
            }
        }
        facts
    }

    /// The hosts that name claims of this namespace which do not exist. Of those that name one that does, one is its own.
    fn abandoned(&self, namespace: &str) -> usize {
        let of_claims = self.book.of_claims_in(namespace);
        let is_absent = |claim: &Key| matches!(self.caches.claims.find(claim), Observed::Absent);
        let of_claim = |(claim, hosts): &(Key, usize)| match is_absent(claim) {
            true => *hosts,
            false => hosts.saturating_sub(1),
        };
        of_claims.iter().map(of_claim).sum()
    }

    /// Whether objects of a namespace are watched. A live read puts an object into its cache, whose subscribers would act on one that
    /// another program serves, and no watch would show its changes.
    pub(super) fn is_watched(&self, namespace: &str) -> bool {
        self.only.as_deref().is_none_or(|only| only == namespace)
    }

    fn find_hardware(&self, host: &Key, facts: &mut Facts) {
        if let Observed::Present(hardware) = self.hardware.find(host) {
            facts.hardware.insert(host.clone(), hardware);
        }
    }

    /// Those of the namespaces of these hosts that count, and whether all are known.
    fn policies(&self, hosts: &[Key]) -> (BTreeMap<Key, Arc<Rules>>, bool) {
        let namespaces: BTreeSet<&str> = hosts.iter().map(|host| host.namespace.as_str()).collect();
        self.caches.policies.read(|cache| {
            let mut found = BTreeMap::new();
            for namespace in namespaces {
                let mut policies: Vec<_> = cache
                    .in_namespace(namespace)
                    .map(|one| (Key::of(&**one), one))
                    .collect();
                policies.sort_by(|one, other| one.0.cmp(&other.0));
                if policies.len() > MOST_POLICIES {
                    tracing::warn!(
                        namespace,
                        most = MOST_POLICIES,
                        "further HostDeployPolicies of the namespace do not count; remove some"
                    );
                }
                for (key, policy) in policies.into_iter().take(MOST_POLICIES) {
                    let rules = self.policies.rules(&key, policy);
                    found.insert(key, rules);
                }
            }
            let is_known = !cache.is_served() || (cache.is_permitted() && cache.synced());
            (found, is_known)
        })
    }

    fn namespace(&self, name: &str) -> Observed<BTreeMap<String, String>> {
        let found = self.caches.namespaces.find(&namespace_key(name));
        found.map(|namespace| namespace.metadata.labels.clone().unwrap_or_default())
    }

    /// Performs a read. Returns false if the claim is another one now.
    pub(super) async fn read(&self, read: Read, facts: &mut Facts, writer: &Writer<Claims>) -> Result<bool, Fault> {
        match read {
            Read::Claim => return self.claim(facts, writer).await,
            Read::Namespace => {
                let target = MetadataOf(&self.caches.namespaces);
                let key = namespace_key(&facts.key.namespace);
                facts.namespace = match permitted(writer.read::<Namespace>(&target, &key).await)? {
                    Some(Some(found)) => Observed::Present(found.metadata.labels.unwrap_or_default()),
                    Some(None) => Observed::Absent,
                    // Policies that ask for labels do not accept then.
                    None => Observed::Unknown(UnknownReason::NotPermitted),
                };
                facts.fresh.namespace = true;
            }
            Read::Policy(key) => {
                match permitted(writer.read::<HostDeployPolicy>(&self.caches.policies, &key).await)? {
                    Some(Some(policy)) => {
                        let rules = self.policies.rules(&key, &Arc::new(policy));
                        facts.policies.insert(key.clone(), rules);
                    }
                    Some(None) => drop(facts.policies.remove(&key)),
                    None => {
                        facts.policies.remove(&key);
                        facts.knows_policies = false;
                    }
                }
                facts.fresh.policies.insert(key);
            }
            Read::Host(key) if !self.is_watched(&key.namespace) => {
                facts.hidden.insert(key.clone());
                facts.fresh.hosts.insert(key);
            }
            Read::Host(key) => {
                match permitted(writer.read::<BareMetalHost>(&self.hosts, &key).await)? {
                    Some(Some(host)) => drop(facts.hosts.insert(key.clone(), Arc::new(host))),
                    Some(None) => drop(facts.hosts.remove(&key)),
                    None => {
                        facts.hosts.remove(&key);
                        facts.hidden.insert(key.clone());
                    }
                }
                self.find_hardware(&key, facts);
                facts.fresh.hosts.insert(key);
            }
            Read::Copies(host) => {
                let copies = self.copies(facts, &host);
                facts.copies.insert(host, copies);
            }
        }
        Ok(true)
    }

    async fn claim(&self, facts: &mut Facts, writer: &Writer<Claims>) -> Result<bool, Fault> {
        let found = writer.read::<HostClaim>(&self.caches.claims, &facts.key).await?;
        let uid = &facts.claim.metadata.uid;
        let Some(claim) = found.filter(|found| found.metadata.uid == *uid) else {
            return Ok(false);
        };
        facts.claim = Arc::new(claim);
        facts.fresh.claim = true;
        Ok(true)
    }

    fn copies(&self, facts: &Facts, host: &Key) -> Pairs {
        let object = facts.hosts.get(host);
        let pairs = Use::ALL.into_iter().map(|which| {
            let copy = match self.secret_names.find(&host.sibling(&which.name(host))) {
                Observed::Absent => Copy::Absent,
                Observed::Unknown(_) => Copy::Unknown,
                Observed::Present(meta) if object.is_some_and(|host| copies::is_of(&meta.metadata, host)) => {
                    Copy::Own(copies::of_what(&meta.metadata))
                }
                Observed::Present(_) => Copy::Foreign,
            };
            let source = self.source(which, facts);
            (which, Pair { source, copy })
        });
        pairs.collect()
    }

    /// Decided from metadata, before the content is read: a user who may create a claim could otherwise have the login of a BMC written
    /// to his machine.
    fn source(&self, which: Use, facts: &Facts) -> Source {
        let name = match which.named(&facts.claim.spec, &facts.key.namespace) {
            None => return Source::None,
            Some(Named::Elsewhere) => return Source::Elsewhere,
            Some(Named::Invalid) => return Source::Invalid,
            Some(Named::Own(name)) => name,
        };
        let key = facts.key.sibling(&name);
        let meta = match self.secret_names.find(&key) {
            Observed::Present(meta) => meta,
            Observed::Absent => return Source::Absent,
            Observed::Unknown(_) => return Source::Unknown,
        };
        let of_switch = self.switches.as_ref().map(|switches| switches.have(&key));
        match of_switch {
            None | Some(Reading::Known(false)) => {}
            Some(Reading::Known(true)) => return Source::OtherUse,
            Some(Reading::Failed(_) | Reading::NotRead) => return Source::Unknown,
        }
        if !copies::is_source(&meta.metadata) || self.may_be_login(&key) {
            return Source::OtherUse;
        }
        let version = copies::version(&meta.metadata);
        version.map_or(Source::Unknown, |version| Source::Secret { name, version })
    }

    /// Whether a host has its login there, or may have.
    fn may_be_login(&self, secret: &Key) -> bool {
        self.hosts.read(|cache| {
            let mut unreadable = cache.unreadable();
            let mut hosts = cache.in_namespace(&secret.namespace);
            let names = |host: &Arc<BareMetalHost>| {
                let bmc = host.spec.bmc.as_ref();
                bmc.is_some_and(|bmc| bmc.credentials_name == secret.name)
            };
            hosts.any(names) || unreadable.any(|host| host.namespace == secret.namespace)
        })
    }
}

/// What was read; `None`: this program may not read it.
fn permitted<T>(read: Result<T, Fault>) -> Result<Option<T>, Fault> {
    match read {
        Ok(found) => Ok(Some(found)),
        Err(fault) if fault.category() == Category::FORBIDDEN.as_str() => Ok(None),
        Err(fault) => Err(fault),
    }
}

fn namespace_key(name: &str) -> Key {
    Key {
        namespace: String::new(),
        name: name.to_owned(),
    }
}
