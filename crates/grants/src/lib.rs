//! What the processes of a product are granted: what its parts declared, and nothing else.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use metal3_capm3::controller::data::needs::Data;
use metal3_capm3::controller::sources::EndpointSources;
use metal3_capm3::needs::Machines;
use metal3_hosts::needs::Hosts;
use metal3_ipam::needs::Ipam;
use metal3_runtime::access::{Permission, Role};
use metal3_runtime::{guard, role};
use metal3_webhooks::certificates::{SelfManaged, Site};

role! {
    /// Contending for a lease, in the own namespace.
    pub struct Leading {
        Lease: Get, Create, Update;
    }
}

role! {
    /// Looking for the Go manager's Deployment, by its name.
    pub struct Guarding {
        Deployment: List, Watch;
    }
}

role! {
    /// Asking who wants to see the metrics, and whether they may.
    pub struct Gating {
        TokenReview: Create;
        SubjectAccessReview: Create;
    }
}

role! {
    /// Telling by Events that a group is idle.
    pub struct Announcing {
        Event: Create, Patch;
    }
}

/// Where a grant counts.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reach {
    /// In every namespace.
    Cluster,
    /// In every namespace, for the objects of these names.
    Named(Vec<String>),
    /// In the namespace of the process.
    Own,
    /// In the namespace of the process, for the objects of these names.
    OwnNamed(Vec<String>),
}

/// The grants of IP address management, each set with its reach.
#[must_use]
pub fn ipam() -> Vec<(Reach, BTreeSet<Permission>)> {
    product(Ipam::permissions(), guard::IPAM)
}

/// The grants of clusters, machines and their data.
#[must_use]
pub fn capm3() -> Vec<(Reach, BTreeSet<Permission>)> {
    product(
        Machines::permissions()
            .into_iter()
            .chain(Data::permissions())
            .chain(EndpointSources::permissions())
            .collect(),
        guard::CAPM3,
    )
}

/// The grants of hosts.
#[must_use]
pub fn hosts() -> Vec<(Reach, BTreeSet<Permission>)> {
    product(Hosts::permissions(), guard::HOSTS)
}

/// The grants of a process that runs all of them.
#[must_use]
pub fn everything() -> Vec<(Reach, BTreeSet<Permission>)> {
    let mut grants: BTreeMap<Reach, BTreeSet<Permission>> = BTreeMap::new();
    for (reach, needs) in [ipam(), capm3(), hosts()].into_iter().flatten() {
        grants.entry(reach).or_default().extend(needs);
    }
    grants.into_iter().collect()
}

/// The grants of a product that stands in for a Go manager's Deployment.
fn product(own: BTreeSet<Permission>, replaces: (&str, &str)) -> Vec<(Reach, BTreeSet<Permission>)> {
    let everywhere = own
        .into_iter()
        .chain(Gating::permissions())
        .chain(Announcing::permissions());
    vec![
        (Reach::Cluster, everywhere.collect()),
        (Reach::Named(vec![replaces.1.to_owned()]), Guarding::permissions()),
        (Reach::Own, Leading::permissions()),
    ]
}

/// What `--webhook-certificates=self-managed` needs besides: its Secret, and the objects that tell the API server whom to
/// trust, each by its name.
#[must_use]
pub fn self_managed(site: &Site) -> Vec<(Reach, BTreeSet<Permission>)> {
    let mut grants: BTreeMap<Reach, BTreeSet<Permission>> = BTreeMap::new();
    for need in SelfManaged::permissions() {
        let reach = match (need.resource.as_str(), need.verb) {
            // An object that is not there yet has no name that a role could know.
            ("secrets", "create") => Reach::Own,
            ("secrets", _) => Reach::OwnNamed(vec![site.secret().to_owned()]),
            (resource, _) => Reach::Named(site.named(resource)),
        };
        grants.entry(reach).or_default().insert(need);
    }
    // A role without names would be a role for all objects.
    let nobody = Reach::Named(Vec::new());
    grants.into_iter().filter(|(reach, _)| *reach != nobody).collect()
}
