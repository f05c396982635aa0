//! A claim of either kind, reduced to the fields that the planner reads.
//!
//! An IPClaim and an IPAddressClaim of the same name are two claims: the kind is part of the ID.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{self, names as cluster_names};
use metal3_api::ipam::names;
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_api::meta::Condition;
use metal3_runtime::version::ResourceVersion;

/// Finalizers of the API server, for the garbage collector.
const OF_API_SERVER: [&str; 2] = ["foregroundDeletion", "orphan"];

/// The API group of a claim and its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ClaimKind {
    /// IPClaim and IPAddress of `ipam.metal3.io`.
    Metal3,
    /// IPAddressClaim and IPAddress of `ipam.cluster.x-k8s.io`.
    ClusterApi,
}

impl ClaimKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Metal3, Self::ClusterApi];

    /// Kind of the claim.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Metal3 => "IPClaim",
            Self::ClusterApi => "IPAddressClaim",
        }
    }

    /// API version of claim and address.
    #[must_use]
    pub const fn api_version(self) -> &'static str {
        match self {
            Self::Metal3 => "ipam.metal3.io/v1alpha1",
            Self::ClusterApi => "ipam.cluster.x-k8s.io/v1beta2",
        }
    }

    /// Finalizer of the claim until its address is released.
    #[must_use]
    pub const fn claim_finalizer(self) -> &'static str {
        match self {
            Self::Metal3 => names::CLAIM_FINALIZER,
            Self::ClusterApi => names::CAPI_CLAIM_FINALIZER,
        }
    }

    /// Finalizer of the address while its claim exists.
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

    /// Whether an owner reference names a claim of this kind, in any version.
    #[must_use]
    pub fn owns(self, api_version: &str, kind: &str) -> bool {
        let group = |text: &str| text.split_once('/').map(|(group, _)| group.to_owned());
        kind == self.name() && group(api_version) == group(self.api_version())
    }
}

/// ID of a claim, or of an address object, within the namespace of the pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectId {
    /// API group.
    pub kind: ClaimKind,
    /// Name of the object.
    pub name: String,
}

impl ObjectId {
    /// The ID of that kind and name.
    #[must_use]
    pub fn new(kind: ClaimKind, name: &str) -> Self {
        Self {
            kind,
            name: name.to_owned(),
        }
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.name)
    }
}

/// A claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// ID.
    pub id: ObjectId,
    /// UID.
    pub uid: String,
    /// Resource version.
    pub version: ResourceVersion,
    /// Generation.
    pub generation: Option<i64>,
    /// Creation time in seconds: older claims are served first.
    pub created: i64,
    /// Whether it has a deletion timestamp.
    pub deleting: bool,
    /// Finalizers.
    pub finalizers: Vec<String>,
    /// Labels, which are copied to the address object.
    pub labels: BTreeMap<String, String>,
    /// The requested address, as written; `None` for an empty text.
    pub requested: Option<String>,
    /// The address object in its status.
    pub address_name: Option<String>,
    /// The error message in its status.
    pub error: Option<String>,
    /// Conditions.
    pub conditions: Vec<Condition>,
    /// Its Cluster.
    pub cluster: Option<String>,
    /// Whether it has the paused annotation.
    pub paused: bool,
    /// Whether its pool reference names a kind that this controller serves.
    pub has_supported_pool_kind: bool,
}

impl Claim {
    /// Converts an IPClaim. Also returns the name of its pool. Returns `None` for an object without server-set
    /// metadata.
    #[must_use]
    pub fn of_metal3(object: &IPClaim) -> Option<(String, Self)> {
        let claim = Self {
            address_name: object
                .status
                .address
                .as_ref()
                .and_then(|address| filled(address.name.as_deref())),
            error: object.status.error_message.clone(),
            conditions: object.status.conditions.clone(),
            // differs: `ipam-claim-cluster`. The Go manager looks at the pool's Cluster only.
            cluster: cluster_label(&object.metadata),
            ..Self::of_meta(ClaimKind::Metal3, &object.metadata)?
        };
        Some((object.spec.pool.name.clone().unwrap_or_default(), claim))
    }

    /// Converts an IPAddressClaim. Also returns the name of its pool. Returns `None` for pools of another group.
    #[must_use]
    pub fn of_cluster_api(object: &cluster::IPAddressClaim) -> Option<(String, Self)> {
        let pool = &object.spec.pool_ref;
        if pool.api_group != names::GROUP {
            return None;
        }
        let meta = &object.metadata;
        let annotations = meta.annotations.as_ref();
        let claim = Self {
            address_name: object
                .status
                .address_ref
                .as_ref()
                .and_then(|address| filled(Some(&address.name))),
            conditions: object.status.conditions.clone(),
            cluster: match &object.spec.cluster_name {
                Some(name) => filled(Some(name)),
                None => cluster_label(meta),
            },
            paused: annotations.is_some_and(|all| all.contains_key(cluster_names::PAUSED_ANNOTATION)),
            has_supported_pool_kind: pool.kind == "IPPool",
            ..Self::of_meta(ClaimKind::ClusterApi, meta)?
        };
        Some((pool.name.clone(), claim))
    }

    fn of_meta(kind: ClaimKind, meta: &ObjectMeta) -> Option<Self> {
        let requested = meta
            .annotations
            .as_ref()
            .and_then(|all| all.get(names::REQUESTED_ADDRESS_ANNOTATION));
        Some(Self {
            id: ObjectId::new(kind, meta.name.as_deref()?),
            uid: meta.uid.clone()?,
            version: ResourceVersion::parse(meta.resource_version.as_deref()?).ok()?,
            generation: meta.generation,
            created: meta.creation_timestamp.as_ref().map_or(0, |time| time.0.as_second()),
            deleting: meta.deletion_timestamp.is_some(),
            finalizers: meta.finalizers.clone().unwrap_or_default(),
            labels: meta.labels.clone().unwrap_or_default(),
            requested: filled(requested.map(String::as_str)),
            address_name: None,
            error: None,
            conditions: Vec::new(),
            cluster: None,
            paused: false,
            has_supported_pool_kind: true,
        })
    }

    /// Whether it has this controller's finalizer.
    #[must_use]
    pub fn has_finalizer(&self) -> bool {
        self.finalizers
            .iter()
            .any(|name| name == self.id.kind.claim_finalizer())
    }

    /// Whether it has finalizers of others: then its address is in use, even if it is being deleted. Those of the API server
    /// say how it is deleted: in the foreground it waits for its address object, and that for this controller.
    #[must_use]
    pub fn has_other_finalizers(&self) -> bool {
        self.finalizers
            .iter()
            .any(|name| name != self.id.kind.claim_finalizer() && !OF_API_SERVER.contains(&name.as_str()))
    }

    /// Whether it is being deleted and has no other finalizers.
    #[must_use]
    pub fn is_releasable(&self) -> bool {
        self.deleting && !self.has_other_finalizers()
    }
}

/// The Cluster that the label names.
fn cluster_label(meta: &ObjectMeta) -> Option<String> {
    let label = meta.labels.as_ref()?.get(cluster_names::CLUSTER_NAME_LABEL);
    filled(label.map(String::as_str))
}

fn filled(text: Option<&str>) -> Option<String> {
    text.filter(|text| !text.is_empty()).map(ToOwned::to_owned)
}
