//! The flow: a claim gets a numbered child, the child claims from a pool, that claim gets a numbered address, and the
//! results are written to the statuses.
//!
//! Six writes per claim: child, status of the claim; claim from the pool; address, status of that claim; status of the
//! child. Each stage reconciles an object once when it appears, and once more when its dependency is ready.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::ObjectMeta;
use metal3_api::infrastructure::v1beta2::{Metal3Data, Metal3DataClaim};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim};
use metal3_api::kind::Kind;
use serde_json::{Value, json};

pub(crate) const NAMESPACE: &str = "default";
const CLAIM: &str = "claim";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Claims.
    Claim,
    /// Children.
    Child,
    /// Claims from the pool.
    Pool,
}

impl Stage {
    /// The number of reconciles of a key that changes outside the stage explain.
    pub(crate) const fn reconciles(self) -> u32 {
        match self {
            // Creation; child ready.
            Self::Claim => 2,
            // Creation; address assigned.
            Self::Child => 2,
            // Creation.
            Self::Pool => 1,
        }
    }
}

/// A kind of the flow.
pub(crate) trait FlowObject: Kind {
    /// Whether its status is complete.
    fn done(&self) -> bool;
    /// The complete status.
    fn outcome(made: &str) -> Value;
    /// The n-th object of the kind, for a claim.
    fn numbered(number: u32, claim: &str) -> Self;
}

/// Reads and writes of a stage. The experiment compares its two implementations.
pub(crate) trait Backend: Send + Sync {
    type Error: Send;

    fn named<K: FlowKind>(&self, name: &str) -> Option<Arc<K>>;
    /// The child of a claim, found by an index.
    fn made_for<K: FlowKind>(&self, claim: &str) -> Option<Arc<K>>;
    /// A number that this process has not allocated and no cached object has.
    fn number<K: FlowKind>(&self) -> u32;
    fn create<K: FlowKind>(&self, object: K) -> impl Future<Output = Result<K, Self::Error>> + Send;
    /// Writes the status of an object, with its resource version as precondition.
    fn report<K: FlowKind>(&self, object: &K, status: Value) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

/// A kind with a cache in both implementations.
pub(crate) trait FlowKind: FlowObject + crate::own_controller::Cached + crate::kube_controller::Stored {}

impl<K: FlowObject + crate::own_controller::Cached + crate::kube_controller::Stored> FlowKind for K {}

/// Reconciles a key of a stage.
pub(crate) async fn reconcile<P: Backend>(backend: &P, stage: Stage, key: &str) -> Result<(), P::Error> {
    match stage {
        Stage::Claim => allocate::<P, Metal3DataClaim, Metal3Data>(backend, key).await,
        Stage::Child => complete_child(backend, key).await,
        Stage::Pool => allocate::<P, IPClaim, IPAddress>(backend, key).await,
    }
}

async fn allocate<P: Backend, C: FlowKind, T: FlowKind>(backend: &P, name: &str) -> Result<(), P::Error> {
    let Some(claim) = backend.named::<C>(name).filter(|claim| !claim.done()) else {
        return Ok(());
    };
    let made = match backend.made_for::<T>(name) {
        Some(made) => made,
        None => Arc::new(backend.create(T::numbered(backend.number::<T>(), name)).await?),
    };
    let made = made.meta().name.clone().unwrap_or_default();
    backend.report(&*claim, C::outcome(&made)).await
}

async fn complete_child<P: Backend>(backend: &P, name: &str) -> Result<(), P::Error> {
    let Some(child) = backend.named::<Metal3Data>(name).filter(|child| !child.done()) else {
        return Ok(());
    };
    let Some(claim) = backend.named::<IPClaim>(name) else {
        return backend.create(claim_from_pool(&child)).await.map(drop);
    };
    if claim.done() {
        backend.report(&*child, Metal3Data::outcome(name)).await?;
    }
    Ok(())
}

fn claim_from_pool(child: &Metal3Data) -> IPClaim {
    let mut claim = IPClaim {
        metadata: named(child.metadata.name.as_deref().unwrap_or_default(), None),
        ..IPClaim::default()
    };
    // The identity from the response to the create of the child.
    claim.metadata.owner_references = Some(vec![OwnerReference {
        api_version: Metal3Data::group_version(),
        kind: Metal3Data::KIND.to_owned(),
        name: child.metadata.name.clone().unwrap_or_default(),
        uid: child.metadata.uid.clone().unwrap_or_default(),
        ..OwnerReference::default()
    }]);
    claim.spec.pool.name = Some("pool".to_owned());
    claim
}

fn named(name: &str, claim: Option<&str>) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(NAMESPACE.to_owned()),
        labels: claim.map(|claim| [(CLAIM.to_owned(), claim.to_owned())].into()),
        ..ObjectMeta::default()
    }
}

/// The claim an object was made for.
pub(crate) fn claim_of<K: kube::Resource>(object: &K) -> Option<String> {
    object.meta().labels.as_ref()?.get(CLAIM).cloned()
}

impl FlowObject for Metal3DataClaim {
    fn done(&self) -> bool {
        self.status.rendered_data.is_some()
    }

    fn outcome(made: &str) -> Value {
        json!({"renderedData": {"name": made}})
    }

    fn numbered(number: u32, _: &str) -> Self {
        Self {
            metadata: named(&format!("machine-{number}"), None),
            ..Self::default()
        }
    }
}

impl FlowObject for Metal3Data {
    fn done(&self) -> bool {
        self.status.ready == Some(true)
    }

    fn outcome(_: &str) -> Value {
        json!({"ready": true})
    }

    fn numbered(number: u32, claim: &str) -> Self {
        let mut child = Self {
            metadata: named(&format!("data-{number}"), Some(claim)),
            ..Self::default()
        };
        child.spec.index = number.try_into().ok();
        child
    }
}

impl FlowObject for IPClaim {
    fn done(&self) -> bool {
        self.status.address.is_some()
    }

    fn outcome(made: &str) -> Value {
        json!({"address": {"name": made}})
    }

    fn numbered(_: u32, _: &str) -> Self {
        Self::default()
    }
}

impl FlowObject for IPAddress {
    fn done(&self) -> bool {
        true
    }

    fn outcome(_: &str) -> Value {
        Value::Null
    }

    fn numbered(number: u32, claim: &str) -> Self {
        let address = format!("10.0.{}.{}", number / 256, number % 256);
        let meta = named(&format!("pool-{number}"), Some(claim));
        serde_json::from_value(json!({
            "metadata": meta,
            "spec": {"address": address, "claim": {"name": claim}, "pool": {"name": "pool"}},
        }))
        .unwrap()
    }
}
