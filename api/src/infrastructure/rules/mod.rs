//! Admission rules of the kinds of `infrastructure.cluster.x-k8s.io`.
//!
//! The rules apply to the stored version; requests in the older one are converted first.

mod cluster;
mod cluster_template;
mod data;
mod data_claim;
mod data_template;
mod images;
mod in_place;
mod machine;
mod references;
mod remediation;
mod selectors;
mod zones;

use super::v1beta2::{
    Metal3Cluster, Metal3ClusterTemplate, Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine,
    Metal3MachineTemplate, Metal3Remediation, Metal3RemediationTemplate,
};
use crate::rules::Reviewer;

/// The kinds and their rules.
#[must_use]
pub fn reviewers() -> Vec<Reviewer> {
    vec![
        Reviewer::of::<Metal3Cluster>(),
        Reviewer::of::<Metal3ClusterTemplate>(),
        Reviewer::of::<Metal3Data>(),
        Reviewer::of::<Metal3DataClaim>(),
        Reviewer::of::<Metal3DataTemplate>(),
        Reviewer::of::<Metal3Machine>(),
        Reviewer::of::<Metal3MachineTemplate>(),
        Reviewer::of::<Metal3Remediation>(),
        Reviewer::of::<Metal3RemediationTemplate>(),
    ]
}
