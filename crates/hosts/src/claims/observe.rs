//! Observes: caches, and the live reads that a decision asks for.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube_core::PartialObjectMeta;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData, HostClaim, HostDeployPolicy};
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{MetadataOf, Writer};

use super::bond::Record;
use super::copies::{self, Copy, Named, Pair, Pairs, Source, Use};
use super::facts::{Facts, Fresh, Read};
use super::plan::named;
use super::watches::{Caches, HostBook};
use crate::live::Reading;
use crate::needs::Claims;
use crate::switches::SecretsOfSwitches;

/// Reads what decisions need.
pub(super) struct Observer {
    pub(super) caches: Caches,
    pub(super) book: HostBook,
    pub(super) hosts: SharedCache<BareMetalHost>,
    pub(super) hardware: SharedCache<HardwareData>,
    pub(super) secret_names: SharedCache<PartialObjectMeta<Secret>>,
    pub(super) switches: Option<SecretsOfSwitches>,
}

impl Observer {
    /// What the caches have.
    pub(super) fn observe(&self, key: &Key, claim: Arc<HostClaim>, now: DateTime<Utc>) -> Facts {
        let named = named(&claim);
        let mut keys = self.book.of_claim(key);
        keys.extend(named.clone());
        // A claim with a host does not choose another. One that a user made name the claim is none.
        let is_bound = |host: &Key| {
            self.hosts
                .find(host)
                .into_present()
                .is_some_and(|host| Record::of_bond(&host, key).is_some())
        };
        let chooses = named.is_none() && !keys.iter().any(is_bound);
        if chooses {
            keys.extend(self.book.free());
        }
        let mut facts = Facts {
            policies: self.policies(&keys, chooses),
            namespace: self.namespace(&key.namespace),
            key: key.clone(),
            claim,
            hosts: BTreeMap::new(),
            is_host_unreadable: named.is_some_and(|host| matches!(self.hosts.find(&host), Observed::Unknown(_))),
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

    fn find_hardware(&self, host: &Key, facts: &mut Facts) {
        if let Observed::Present(hardware) = self.hardware.find(host) {
            facts.hardware.insert(host.clone(), hardware);
        }
    }

    /// Those of the namespaces of these hosts, or all of them.
    fn policies(&self, hosts: &[Key], all: bool) -> BTreeMap<Key, Arc<HostDeployPolicy>> {
        self.caches.policies.read(|cache| {
            let objects = cache.objects();
            let is_needed = |key: &Key| all || hosts.iter().any(|host| host.namespace == key.namespace);
            let needed = objects.filter(|(key, _)| is_needed(key));
            needed.map(|(key, one)| (key.clone(), Arc::clone(one))).collect()
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
                facts.namespace = match writer.read::<Namespace>(&target, &key).await {
                    Ok(Some(found)) => Observed::Present(found.metadata.labels.unwrap_or_default()),
                    Ok(None) => Observed::Absent,
                    // Policies that ask for labels do not accept then.
                    Err(fault) if fault.category() == Category::FORBIDDEN.as_str() => {
                        Observed::Unknown(UnknownReason::NotPermitted)
                    }
                    Err(fault) => return Err(fault),
                };
                facts.fresh.namespace = true;
            }
            Read::Policy(key) => {
                let found = writer.read::<HostDeployPolicy>(&self.caches.policies, &key).await?;
                match found {
                    Some(policy) => facts.policies.insert(key.clone(), Arc::new(policy)),
                    None => facts.policies.remove(&key),
                };
                facts.fresh.policies.insert(key);
            }
            Read::Host(key) => {
                let found = writer.read::<BareMetalHost>(&self.hosts, &key).await?;
                match found {
                    Some(host) => facts.hosts.insert(key.clone(), Arc::new(host)),
                    None => facts.hosts.remove(&key),
                };
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
        if copies::of_what(&meta.metadata).is_some() || self.may_be_login(&key) {
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

fn namespace_key(name: &str) -> Key {
    Key {
        namespace: String::new(),
        name: name.to_owned(),
    }
}
