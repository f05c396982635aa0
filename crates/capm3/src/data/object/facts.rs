//! The inputs of the plan for one Metal3Data.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{Cluster, IPAddressClaim, Machine};
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::names::ObjectName;
use metal3_runtime::cache::Key;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::work::Next;

use crate::data::claims::{ClaimState, Naming};
use crate::data::subject::Subject;

/// The inputs of the plan.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// Key of the Metal3Data.
    pub key: &'a Key,
    /// The Metal3Data; `None` when it does not exist.
    pub data: Option<&'a Metal3Data>,
    /// The Cluster that its label names.
    pub cluster: Observed<Arc<Cluster>>,
    /// Read while the Metal3Data is live.
    pub rendering: Rendering,
    /// The claim that it names, read while it is in deletion.
    pub claim: Observed<Arc<Metal3DataClaim>>,
    /// The claims on pools that a Metal3Data of this name owns, read unless it is live.
    pub owned: Vec<PoolClaim>,
    /// The wait for an object that cannot be read. The objects after it are not read either.
    pub unreadable: Option<Next>,
    /// What the API server returned in this reconcile.
    pub responses: &'a Responses,
}

/// The inputs of a rendering. `None`: the object does not exist.
#[derive(Debug, Clone, Default)]
pub struct Rendering {
    /// The template that the Metal3Data names.
    pub template: Option<Arc<Metal3DataTemplate>>,
    /// The claim that it names.
    pub claim: Option<Arc<Metal3DataClaim>>,
    /// The Metal3Machine that owns the claim.
    pub metal3_machine: Option<Arc<Metal3Machine>>,
    /// The Machine that owns the Metal3Machine.
    pub machine: Option<Arc<Machine>>,
    /// The host of the Metal3Machine.
    pub host: Option<Arc<BareMetalHost>>,
    /// Secrets of the namespace by name, those that [`secrets::name`](crate::data::secrets::name) returns.
    pub secrets: BTreeMap<String, ObjectMeta>,
    /// Claims by name, those that [`wanted`](super::plan::wanted) returns.
    pub claims: KnownClaims,
    /// Those of them that are in deletion.
    pub deleting: Vec<PoolClaim>,
    /// The prefix of the names of new claims.
    pub naming: Naming,
}

/// The state of claims, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KnownClaims {
    /// Claims on IPPools of `ipam.metal3.io`.
    pub metal3: BTreeMap<ObjectName, ClaimState>,
    /// Claims on other pools.
    pub general: BTreeMap<ObjectName, ClaimState>,
}

/// A claim on a pool.
#[derive(Debug, Clone)]
pub enum PoolClaim {
    /// On an IPPool of `ipam.metal3.io`.
    Metal3(Arc<IPClaim>),
    /// On a pool of another provider.
    General(Arc<IPAddressClaim>),
}

/// What the API server returned in one reconcile.
#[derive(Debug, Clone)]
pub struct Responses {
    /// The claim that the Metal3Data names, read live.
    pub claim: Observed<ObjectMeta>,
    /// The Metal3Data, read live.
    pub data: Observed<ObjectMeta>,
    /// The host that was read live.
    pub host: Option<Key>,
    /// The rejection of a new object.
    pub rejection: Option<Rejection>,
}

/// The API server's rejection of a new object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    /// Why, and what a user does about it.
    pub message: String,
    /// Whether the kind is not served. No event reports that it is installed.
    pub is_unserved: bool,
}

impl Default for Responses {
    /// Nothing was requested.
    fn default() -> Self {
        Self {
            claim: Observed::Unknown(UnknownReason::NotRead),
            data: Observed::Unknown(UnknownReason::NotRead),
            host: None,
            rejection: None,
        }
    }
}

impl Rendering {
    /// The machine whose data are rendered, if all of its objects exist.
    #[must_use]
    pub fn subject<'a>(&'a self, data: &'a Metal3Data) -> Option<Subject<'a>> {
        Some(Subject {
            namespace: data.metadata.namespace.as_deref().unwrap_or_default(),
            index: data.spec.index.unwrap_or_default(),
            machine: self.machine.as_deref()?,
            metal3_machine: self.metal3_machine.as_deref()?,
            host: self.host.as_deref()?,
        })
    }
}

impl PoolClaim {
    /// Its metadata.
    #[must_use]
    pub fn metadata(&self) -> &ObjectMeta {
        match self {
            Self::Metal3(claim) => &claim.metadata,
            Self::General(claim) => &claim.metadata,
        }
    }
}
