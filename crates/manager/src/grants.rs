//! What the processes of a product are granted: what its parts declared, and nothing else.

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use metal3_ipam::needs::Ipam;
use metal3_runtime::access::{Need, Role};
use metal3_runtime::{guard, needs};

needs! {
    /// Contending for a lease, in the own namespace.
    pub struct Leading {
        Lease: Get, Create, Update;
    }
}

needs! {
    /// Looking for the Go manager's Deployment, by its name.
    pub struct Guarding {
        Deployment: List, Watch;
    }
}

needs! {
    /// Asking who wants to see the metrics, and whether they may.
    pub struct Gating {
        TokenReview: Create;
        SubjectAccessReview: Create;
    }
}

/// Where a grant counts.
needs! {
    /// Telling by Events that a group is idle.
    pub struct Announcing {
        Event: Create, Patch;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// In every namespace.
    Cluster,
    /// In every namespace, for the object of this name.
    Named(&'static str),
    /// In the namespace of the process.
    Own,
}

/// The grants of IP address management, each set with its reach.
#[must_use]
pub fn ipam() -> Vec<(Reach, BTreeSet<Need>)> {
    let everywhere = Ipam::needs()
        .into_iter()
        .chain(Gating::needs())
        .chain(Announcing::needs());
    vec![
        (Reach::Cluster, everywhere.collect()),
        (Reach::Named(guard::IPAM.1), Guarding::needs()),
        (Reach::Own, Leading::needs()),
    ]
}
