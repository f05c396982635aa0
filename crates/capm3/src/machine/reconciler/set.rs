//! Reads the set of a machine live.

use std::sync::Arc;

use metal3_api::cluster::{Machine, MachineDeployment, MachineSet};
use metal3_api::infrastructure::v1beta2::Metal3MachineTemplate;
use metal3_api::kind::Kind;
use metal3_capi::owner::{cluster_of, first, node_reuse_owner};
use metal3_runtime::access::{Permits, verb};
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::{NoCache, Writable, WriteTarget, Writer};

use super::Machines;
use crate::machine::facts::{Facts, Hosts};
use crate::machine::reuse::{
    ControlPlane, ObservedSet, Replicas, Set, SetOwner, has_namesake, is_name, of_deployment, set_owner, stays,
    template_of_set,
};
use crate::needs::Machines as Role;

impl Machines {
    /// The set for which the host of a deleted machine is kept. `Absent` when there is none, when it is being deleted, and
    /// when its template does not exist.
    pub(super) async fn read_set(&self, key: &Key, facts: &Facts, writer: &Writer<Role>) -> Result<ObservedSet, Fault> {
        match self.find_set(key, facts, writer).await {
            Ok(set) => Ok(set),
            Err(Unread::Wait(why)) => Ok(unknown(&why)),
            Err(Unread::Failed(fault)) => Err(fault),
        }
    }

    /// The template of a machine, read live. A fault that only an administrator corrects is part of the result.
    pub(super) async fn read_template(
        &self,
        template: &Key,
        writer: &Writer<Role>,
    ) -> Result<Observed<Arc<Metal3MachineTemplate>>, Fault> {
        match find(&self.caches.machine_templates, template, writer).await {
            Ok(found) => Ok(Observed::from(found.map(Arc::new))),
            Err(Unread::Wait(why)) => Ok(Observed::Unknown(UnknownReason::Unreadable(why))),
            Err(Unread::Failed(fault)) => Err(fault),
        }
    }

    async fn find_set(&self, key: &Key, facts: &Facts, writer: &Writer<Role>) -> Result<ObservedSet, Unread> {
        let machine = match &facts.owner {
            Observed::Present(machine) => machine,
            Observed::Absent => return Ok(Observed::Absent),
            Observed::Unknown(why) => return Ok(unknown(&format!("the Machine cannot be read: {why}; correct it"))),
        };
        match set_owner(machine) {
            Ok(None) => Ok(Observed::Absent),
            Ok(Some(SetOwner::MachineSet(name, uid))) => {
                self.deployment(&key.sibling(&name), &uid, machine, writer).await
            }
            Ok(Some(SetOwner::ControlPlane(kind, name, uid))) => {
                let name = key.sibling(&name);
                let plane = match writer.find_of_kind::<ControlPlane>(&kind, &name).await {
                    Ok(found) => found.filter(|plane| stays(&plane.metadata, &uid)),
                    Err(fault) => return Err(unread(fault, &format!("{} {name}", kind.kind), &kind.plural)),
                };
                let Some(plane) = plane else {
                    return Ok(Observed::Absent);
                };
                let Some(template) = &plane.template else {
                    return Ok(Observed::Absent);
                };
                let replicas = plane.replicas(self.remaining(machine));
                self.set(machine, &key.sibling(template), replicas, writer).await
            }
            Err(why) => Ok(unknown(&why)),
        }
    }

    async fn deployment(
        &self,
        set: &Key,
        uid: &str,
        machine: &Machine,
        writer: &Writer<Role>,
    ) -> Result<ObservedSet, Unread> {
        let Some(set) = find::<MachineSet>(&NoCache, set, writer).await? else {
            return Ok(Observed::Absent);
        };
        if !uid.is_empty() && set.metadata.uid.as_deref() != Some(uid) {
            return Ok(Observed::Absent);
        }
        // differs (`host-kept-for-set`): without a MachineDeployment the Go manager fails for ever.
        let owner = first::<MachineDeployment>(&set.metadata).filter(|owner| is_name(&owner.name));
        let Some(owner) = owner else {
            return Ok(Observed::Absent);
        };
        let key = Key::of(&set);
        let deployment = find::<MachineDeployment>(&NoCache, &key.sibling(&owner.name), writer).await?;
        let Some(deployment) = deployment.filter(|deployment| stays(&deployment.metadata, &owner.uid)) else {
            return Ok(Observed::Absent);
        };
        let replicas = of_deployment(&deployment, &set, self.remaining(machine), self.now());
        let Some(template) = template_of_set(&set) else {
            return Ok(Observed::Absent);
        };
        let template = key.sibling(template);
        self.set(machine, &template, replicas, writer).await
    }

    async fn set(
        &self,
        machine: &Machine,
        template: &Key,
        replicas: Replicas,
        writer: &Writer<Role>,
    ) -> Result<ObservedSet, Unread> {
        let template = find(&self.caches.machine_templates, template, writer).await?;
        let set = node_reuse_owner(machine).zip(template).map(|(owner, template)| Set {
            owner,
            template: Arc::new(template),
            replaces: replicas.replaces(),
        });
        Ok(Observed::from(set))
    }

    /// Whether another Cluster of the namespace has a set of the same name.
    pub(super) fn has_namesake(&self, machine: &Machine, hosts: &Hosts) -> bool {
        let hosts = hosts.all.iter().map(AsRef::as_ref);
        self.caches.machines.read(|cache| {
            let machines = cache.objects().map(|(_, machine)| machine.as_ref());
            has_namesake(machine, hosts, machines)
        })
    }

    /// How many Machines the set of a Machine has besides it, without those that are being deleted.
    fn remaining(&self, machine: &Machine) -> usize {
        let (own, owner) = (Key::of(machine), node_reuse_owner(machine));
        let is_sibling = |key: &Key, other: &Machine| {
            key.namespace == own.namespace
                && key.name != own.name
                && other.metadata.deletion_timestamp.is_none()
                && cluster_of(&other.metadata) == cluster_of(&machine.metadata)
                && node_reuse_owner(other) == owner
        };
        self.caches.machines.read(|cache| {
            let siblings = cache.objects().filter(|(key, other)| is_sibling(key, other));
            siblings.count()
        })
    }
}

fn unknown(why: &str) -> ObservedSet {
    Observed::Unknown(UnknownReason::Unreadable(why.to_owned()))
}

/// Why an object is not known.
enum Unread {
    /// It can be read only after a user or an administrator corrects what the message names.
    Wait(String),
    /// The read is retried.
    Failed(Fault),
}

async fn find<K: Writable + Kind>(
    cache: &impl WriteTarget<K>,
    key: &Key,
    writer: &Writer<Role>,
) -> Result<Option<K>, Unread>
where
    Role: Permits<verb::Get, K>,
{
    let found = writer.read::<K>(cache, key).await;
    found.map_err(|fault| unread(fault, &format!("{} {key}", K::KIND), K::PLURAL))
}

fn unread(fault: Fault, what: &str, resource: &str) -> Unread {
    let category = fault.category();
    if category == Category::FORBIDDEN.as_str() {
        return Unread::Wait(format!(
            "this program may not read {what}; grant get, list and watch on {resource} to it"
        ));
    }
    if category == Category::NOT_FOUND.as_str() {
        return Unread::Wait(format!("the kind of {what} is not served; install it"));
    }
    if category == Category::UNREADABLE.as_str() {
        return Unread::Wait(format!("{}; correct {what}", fault.report()));
    }
    Unread::Failed(fault)
}
