//! A claim of either kind, reduced to what a decision sees.
//!
//! An IPClaim and an IPAddressClaim of one name are two claims: the kind is part of the identity everywhere.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{self, names as cluster_names};
use metal3_api::ipam::names;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::meta::Condition;
use metal3_runtime::version::ResourceVersion;

/// Which API a claim and its address belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimKind {
    /// IPClaim and IPAddress of `ipam.metal3.io`.
    Metal3,
    /// IPAddressClaim and IPAddress of `ipam.cluster.x-k8s.io`.
    ClusterApi,
}

impl ClaimKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Metal3, Self::ClusterApi];

    /// Kind of the claim, as manifests name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metal3 => "IPClaim",
            Self::ClusterApi => "IPAddressClaim",
        }
    }

    /// Group and version of both objects.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Metal3 => "ipam.metal3.io/v1alpha1",
            Self::ClusterApi => "ipam.cluster.x-k8s.io/v1beta2",
        }
    }

    /// What keeps the claim until its address is released.
    #[must_use]
    pub const fn claim_finalizer(self) -> &'static str {
        match self {
            Self::Metal3 => names::CLAIM_FINALIZER,
            Self::ClusterApi => names::CAPI_CLAIM_FINALIZER,
        }
    }

    /// What keeps the address while its claim lives.
    #[must_use]
    pub const fn address_finalizer(self) -> &'static str {
        match self {
            Self::Metal3 => names::ADDRESS_FINALIZER,
            Self::ClusterApi => names::CAPI_ADDRESS_FINALIZER,
        }
    }

    /// The kind of that name.
    #[must_use]
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether an owner reference points at a claim of this kind, in whatever version.
    #[must_use]
    pub fn owns(self, api_version: &str, kind: &str) -> bool {
        let group = |text: &str| text.split_once('/').map(|(group, _)| group.to_owned());
        kind == self.name() && group(api_version) == group(self.api_version())
    }
}

/// A claim, or the address object that answers it, within the namespace of the pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Named {
    /// Which API.
    pub kind: ClaimKind,
    /// Name of the object.
    pub name: String,
}

impl Named {
    /// The object of that kind and name.
    #[must_use]
    pub fn new(kind: ClaimKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.name)
    }
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Kind and name.
    pub id: Named,
    /// Which claim of that name.
    pub uid: String,
    /// How new.
    pub version: ResourceVersion,
    /// Of the spec.
    pub generation: Option<i64>,
    /// When it was made, in seconds: the older is served first.
    pub created: i64,
    /// Whether its deletion was asked for.
    pub deleting: bool,
    /// Who keeps it.
    pub finalizers: Vec<String>,
    /// Copied to the address.
    pub labels: BTreeMap<String, String>,
    /// The address asked for, as written. Empty text is none.
    pub wish: Option<String>,
    /// The address object its status names.
    pub names: Option<String>,
    /// The failure its status shows in words.
    pub error: Option<String>,
    /// All conditions of its status.
    pub conditions: Vec<Condition>,
    /// The Cluster it says it belongs to.
    pub cluster: Option<String>,
    /// Whether it is paused by itself.
    pub paused: bool,
    /// Whether the kind of pool it names is the one we serve.
    pub pool_is_ours: bool,
}

impl Claim {
    /// Reads an IPClaim; the name of its pool comes first. Nothing for an object no server can have sent.
    #[must_use]
    pub fn of_metal3(object: &IPClaim) -> Option<(String, Self)> {
        let claim = Self {
            names: object
                .status
                .address
                .as_ref()
                .and_then(|address| filled(address.name.as_deref())),
            error: object.status.error_message.clone(),
            conditions: object.status.conditions.clone(),
            ..Self::of_meta(ClaimKind::Metal3, &object.metadata)?
        };
        Some((object.spec.pool.name.clone().unwrap_or_default(), claim))
    }

    /// Reads an IPAddressClaim; the name of its pool comes first. Nothing for claims on pools of another group.
    #[must_use]
    pub fn of_cluster_api(object: &cluster::IPAddressClaim) -> Option<(String, Self)> {
        let pool = &object.spec.pool_ref;
        if pool.api_group != names::GROUP {
            return None;
        }
        let meta = &object.metadata;
        let label = meta
            .labels
            .as_ref()
            .and_then(|labels| labels.get(cluster_names::CLUSTER_NAME_LABEL));
        let annotations = meta.annotations.as_ref();
        let claim = Self {
            names: object
                .status
                .address_ref
                .as_ref()
                .and_then(|address| filled(Some(&address.name))),
            conditions: object.status.conditions.clone(),
            cluster: filled(object.spec.cluster_name.as_deref().or(label.map(String::as_str))),
            paused: annotations.is_some_and(|all| all.contains_key(cluster_names::PAUSED_ANNOTATION)),
            pool_is_ours: pool.kind == "IPPool",
            ..Self::of_meta(ClaimKind::ClusterApi, meta)?
        };
        Some((pool.name.clone(), claim))
    }

    fn of_meta(kind: ClaimKind, meta: &ObjectMeta) -> Option<Self> {
        let wish = meta
            .annotations
            .as_ref()
            .and_then(|all| all.get(names::REQUESTED_ADDRESS_ANNOTATION));
        Some(Self {
            id: Named::new(kind, meta.name.as_deref()?),
            uid: meta.uid.clone()?,
            version: ResourceVersion::parse(meta.resource_version.as_deref()?).ok()?,
            generation: meta.generation,
            created: meta.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
            deleting: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            labels: meta.labels.clone().unwrap_or_default(),
            wish: filled(wish.map(String::as_str)),
            names: None,
            error: None,
            conditions: Vec::new(),
            cluster: None,
            paused: false,
            pool_is_ours: true,
        })
    }

    /// Whether our finalizer is on it.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.finalizers
            .iter()
            .any(|name| name == self.id.kind.claim_finalizer())
    }

    /// Whether somebody else still keeps it: then its address is in use, whatever its deletion says.
    #[must_use]
    pub fn is_in_use(&self) -> bool {
        self.finalizers
            .iter()
            .any(|name| name != self.id.kind.claim_finalizer())
    }

    /// Whether its deletion only waits for us.
    #[must_use]
    pub fn is_leaving(&self) -> bool {
        self.deleting && !self.is_in_use()
    }
}

fn filled(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
}
