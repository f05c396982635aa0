//! Input of the plan of a Metal3Cluster.

use std::sync::Arc;

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::meta::Time;
use metal3_runtime::plan::Observed;

use super::{JoinFacts, ZoneTemplate};
use crate::endpoint::held_claims::HeldClaims;
use crate::endpoint::rendered::{Digester, RenderedSecret};
use crate::endpoint::source::{SourceState, SourceValues, WantedSources};

/// All input of the plan of a Metal3Cluster.
pub struct Facts {
    /// The object. After a write of this reconcile, as the API server returned it.
    pub object: Arc<Metal3Cluster>,
    /// The Cluster that [`cluster_link`](super::cluster_link) names. Absent when it names none, or a deleted one.
    pub cluster: Observed<Arc<Cluster>>,
    /// A Metal3Machine that belongs to the object, if any. Only read when [`counts_descendants`](super::counts_descendants).
    pub descendant: Option<String>,
    /// Whether that is from a live list of this reconcile.
    pub machines_are_live: bool,
    /// A Cluster that [references an object of the same name](super::is_namesake). Only read when the object names no Cluster.
    pub namesake: Option<Arc<Cluster>>,
    /// Whether such a Cluster adopts the object.
    pub adopts_namesakes: bool,
    /// The endpoint sources that the object asks for.
    pub wanted: WantedSources,
    /// Their values.
    pub source_values: SourceValues,
    /// The address claims with this controller's finalizer.
    pub held_claims: HeldClaims,
    /// The existing Secret with the rendered endpoint, if one is requested.
    pub secret: Option<RenderedSecret>,
    /// Computes the digest of its content.
    pub digester: Digester,
    /// The data templates of the object's deployment zones.
    pub zone_templates: Vec<ZoneTemplate>,
    /// What workers find in the workload cluster.
    pub join: JoinFacts,
    /// Whether idle control planes are touched.
    pub touches_control_planes: bool,
    /// What the API server answered in this reconcile.
    pub results: Results,
    /// Timestamp for writes.
    pub now: Time,
}

/// Results of writes that decide on the rest of a reconcile. None of these writes is repeated in it.
#[derive(Default)]
pub struct Results {
    /// Whether the API server rejected the address claim.
    pub is_claim_refused: bool,
    /// The result of the write of the endpoint.
    pub endpoint: Option<EndpointWrite>,
    /// Why the API server rejected the Secret with the endpoint.
    pub secret: Option<String>,
}

/// The result of a write of the endpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum EndpointWrite {
    /// The object has the endpoint.
    Applied,
    /// Another field manager owns the field.
    Contested,
}

/// The result of one write that changes the facts.
pub enum WriteResult {
    /// The API server rejected the address claim: the state to use instead.
    ClaimRefused(SourceState),
    /// The endpoint is written, or not.
    Endpoint(EndpointWrite),
    /// The API server rejected the Secret, and the reason.
    SecretRefused(String),
}

impl Facts {
    /// The Cluster, if it is known to exist.
    #[must_use]
    pub fn cluster(&self) -> Option<&Cluster> {
        self.cluster.present().map(AsRef::as_ref)
    }

    /// Adds the result of a write.
    pub fn add(&mut self, result: WriteResult) {
        match result {
            WriteResult::ClaimRefused(state) => {
                self.results.is_claim_refused = true;
                if let Some(pool) = &mut self.source_values.pool {
                    pool.state = state;
                }
            }
            WriteResult::Endpoint(write) => self.results.endpoint = Some(write),
            WriteResult::SecretRefused(why) => self.results.secret = Some(why),
        }
    }
}

impl Results {
    /// Whether no write has such a result yet.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        !self.has_refusal() && self.endpoint.is_none()
    }

    /// Whether the API server rejected a write that is retried.
    #[must_use]
    pub const fn has_refusal(&self) -> bool {
        self.is_claim_refused || self.secret.is_some()
    }
}
