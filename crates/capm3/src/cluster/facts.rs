//! Input of the plan of a Metal3Cluster.

use metal3_api::cluster::Cluster;
use metal3_api::infrastructure::v1beta2::Metal3Cluster;
use metal3_api::meta::Time;
use metal3_runtime::plan::Observed;

use crate::endpoint::held_claims::HeldClaims;
use crate::endpoint::render::ExistingSecret;
use crate::endpoint::source::SourceValues;

/// All input of the plan of a Metal3Cluster.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The object.
    pub object: &'a Metal3Cluster,
    /// The Cluster that [`cluster_link`](super::cluster_link) names. Absent when it names none, or a deleted one.
    pub cluster: Observed<&'a Cluster>,
    /// A Metal3Machine that belongs to the object, if any. Only read when [`counts_descendants`](super::counts_descendants).
    pub descendant: Option<&'a str>,
    /// A Cluster that [references an object of the same name](super::is_namesake). Only read when the object names no Cluster.
    pub namesake: Option<&'a Cluster>,
    /// Whether such a Cluster adopts the object.
    pub adopts_namesakes: bool,
    /// The values of the endpoint sources.
    pub source_values: &'a SourceValues,
    /// The address claims with this controller's finalizer.
    pub held_claims: &'a HeldClaims,
    /// The existing Secret with the rendered endpoint, if one is requested.
    pub secret: Option<ExistingSecret<'a>>,
    /// Writes that the API server rejected in this reconcile.
    pub refused: Refused<'a>,
    /// Timestamp for writes.
    pub now: Time,
}

/// Writes that the API server rejected. They are not retried in the same reconcile.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refused<'a> {
    /// The endpoint: another field manager owns the field.
    pub endpoint: bool,
    /// The Secret with the endpoint, and the reason.
    pub secret: Option<&'a str>,
}
