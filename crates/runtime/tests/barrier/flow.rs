//! The flow: a claim gets a numbered child, the child claims from a pool, that claim gets a numbered address, and what
//! came of it goes back up into the statuses.
//!
//! Six writes a claim: child, status of the claim; claim from the pool; address, status of that claim; status of the
//! child. Each stage looks once when its object appears, and once more when what it waits for is there.

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
    /// Passes over each key that something outside the stage explains.
    pub(crate) const fn passes(self) -> u32 {
        match self {
            // Appears; its child is ready.
            Self::Claim => 2,
            // Appears; its address is there.
            Self::Child => 2,
            // Appears.
            Self::Pool => 1,
        }
    }
}

/// A kind of the flow.
pub(crate) trait AnswerContent: Kind {
    /// Whether its status says that all is done.
    fn done(&self) -> bool;
    /// The status that says so.
    fn outcome(made: &str) -> Value;
    /// The n-th object of the kind, for a claim.
    fn numbered(number: u32, claim: &str) -> Self;
}

/// What a stage sees and does. Whose cache and whose client it is, is what this experiment compares.
pub(crate) trait Port: Send + Sync {
    type Refusal: Send;

    fn named<K: Seen>(&self, name: &str) -> Option<Arc<K>>;
    /// The child of a claim, found by an index.
    fn made_for<K: Seen>(&self, claim: &str) -> Option<Arc<K>>;
    /// A number that this process has not given out, and nobody is seen to have.
    fn number<K: Seen>(&self) -> u32;
    fn create<K: Seen>(&self, object: K) -> impl Future<Output = Result<K, Self::Refusal>> + Send;
    /// Writes the status of an object, if it still is as it was seen.
    fn report<K: Seen>(&self, object: &K, status: Value) -> impl Future<Output = Result<(), Self::Refusal>> + Send;
}

/// A part that both sides know where to find.
pub(crate) trait Seen: AnswerContent + crate::ours::Held + crate::theirs::Held {}

impl<K: AnswerContent + crate::ours::Held + crate::theirs::Held> Seen for K {}

/// One pass of a stage.
pub(crate) async fn pass<P: Port>(port: &P, stage: Stage, key: &str) -> Result<(), P::Refusal> {
    match stage {
        Stage::Claim => allot::<P, Metal3DataClaim, Metal3Data>(port, key).await,
        Stage::Child => furnish(port, key).await,
        Stage::Pool => allot::<P, IPClaim, IPAddress>(port, key).await,
    }
}

async fn allot<P: Port, C: Seen, T: Seen>(port: &P, name: &str) -> Result<(), P::Refusal> {
    let Some(claim) = port.named::<C>(name).filter(|claim| !claim.done()) else {
        return Ok(());
    };
    let made = match port.made_for::<T>(name) {
        Some(made) => made,
        None => Arc::new(port.create(T::numbered(port.number::<T>(), name)).await?),
    };
    let made = made.meta().name.clone().unwrap_or_default();
    port.report(&*claim, C::outcome(&made)).await
}

async fn furnish<P: Port>(port: &P, name: &str) -> Result<(), P::Refusal> {
    let Some(child) = port.named::<Metal3Data>(name).filter(|child| !child.done()) else {
        return Ok(());
    };
    let Some(claim) = port.named::<IPClaim>(name) else {
        return port.create(claim_from_pool(&child)).await.map(drop);
    };
    if claim.done() {
        port.report(&*child, Metal3Data::outcome(name)).await?;
    }
    Ok(())
}

fn claim_from_pool(child: &Metal3Data) -> IPClaim {
    let mut claim = IPClaim {
        metadata: named(child.metadata.name.as_deref().unwrap_or_default(), None),
        ..IPClaim::default()
    };
    // The identity that the create of the child returned.
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

impl AnswerContent for Metal3DataClaim {
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

impl AnswerContent for Metal3Data {
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

impl AnswerContent for IPClaim {
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

impl AnswerContent for IPAddress {
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
