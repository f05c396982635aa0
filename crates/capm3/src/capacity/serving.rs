//! Which Metal3Cluster serves the machines of a node group: by the rules of the machines themselves.

use std::sync::Arc;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::{Metal3Cluster, Metal3Machine};
use metal3_runtime::cache::Key;

use super::index::NodeGroup;
use super::report::Serving;
use crate::machine::resolve::{Resolved, may_be_unreadable, others, resolve};

/// The Metal3Clusters of a namespace.
pub(super) struct NearClusters {
    pub(super) all: Vec<Arc<Metal3Cluster>>,
    /// One that cannot be decoded, if any.
    pub(super) unreadable: Option<Key>,
}

impl NearClusters {
    /// The one that serves a machine of the node group.
    pub(super) fn serving(&self, machine: &Metal3Machine, group: &NodeGroup, cluster: &Cluster) -> Serving {
        let objects: Vec<&Metal3Cluster> = self.all.iter().map(AsRef::as_ref).collect();
        let domain = group.failure_domain.as_deref();
        let resolved = resolve(machine, None, domain, cluster, &objects);
        let unreadable = self.unreadable.as_ref();
        if let Some(one) = unreadable.filter(|_| may_be_unreadable(resolved, machine, None, cluster)) {
            let why = format!(
                "Metal3Cluster {} cannot be read and may be theirs; correct it",
                one.name
            );
            return Serving::Unknown(why);
        }
        match resolved {
            Resolved::One(_) if unreadable.is_some() => {
                let name = unreadable.map_or("", |one| one.name.as_str());
                Serving::Unknown(format!(
                    "Metal3Cluster {name} cannot be read, and its hosts are not known; correct it"
                ))
            }
            Resolved::One(found) => self.served_by(found, cluster),
            // It may only be late.
            Resolved::None => Serving::Unknown("their Metal3Cluster does not exist; create it".to_owned()),
            Resolved::Ambiguous(first, second) => Serving::Refused(format!(
                "the Metal3Clusters {first} and {second} both joined Cluster {}; name one in metal3ClusterRef of the template, \
                 or in failureDomain of the MachineDeployment a zone that only one of them has",
                group.cluster
            )),
            Resolved::NotOfCluster(found) => Serving::Refused(format!(
                "Metal3Cluster {} does not belong to Cluster {}; name one that does",
                found.metadata.name.as_deref().unwrap_or_default(),
                group.cluster
            )),
        }
    }

    fn served_by(&self, found: &Metal3Cluster, cluster: &Cluster) -> Serving {
        let shared = |one: &Metal3Cluster| self.all.iter().find(|shared| std::ptr::eq(&***shared, one)).cloned();
        let Some(own) = shared(found) else {
            return Serving::Unknown("their Metal3Cluster is not known".to_owned());
        };
        let others = others(found, cluster, self.all.iter().map(AsRef::as_ref));
        Serving::One {
            others: others.filter_map(shared).collect(),
            own,
        }
    }
}
