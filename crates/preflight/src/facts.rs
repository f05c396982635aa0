//! What the report is computed from.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use serde::Serialize;

use crate::dry_run::DryRun;
use crate::finding::{Finding, NotRead};
use crate::managers::Series;
use crate::objects::Objects;
use crate::rights::Account;
use crate::settings::Given;

/// The direction of the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Direction {
    /// From the Go managers to this program.
    ToThisProgram,
    /// From this program to the Go managers of this series of cluster-api-provider-metal3.
    Back(Series),
}

/// A CustomResourceDefinition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Crd {
    /// `PLURAL.GROUP`.
    pub name: String,
    /// The versions in which objects may be stored.
    pub stored: Vec<String>,
    /// Whether a webhook converts between versions.
    pub has_webhook: bool,
    /// The field managers of the versions and the conversion whose values conflict with `kubectl apply --server-side`.
    pub writers: Vec<String>,
}

/// The metadata of a Secret that a host names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Secret {
    /// Whether host controllers have used it: its label or finalizer says so.
    pub is_marked: bool,
}

/// A provider in the inventory of clusterctl.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provider {
    /// The namespace that it is installed in.
    pub namespace: String,
    /// Such as `infrastructure-metal3`.
    pub name: String,
    /// The version that upgrades are planned from.
    pub version: String,
}

impl Facts {
    /// Whether all objects of these were listed.
    pub(crate) fn are_listed(&self, plural: &str) -> bool {
        !self.not_read.iter().any(|one| one.what.contains(plural))
    }
}

/// What was read.
#[derive(Debug)]
pub struct Facts {
    /// The direction of the switch.
    pub direction: Direction,
    /// All Deployments that may be a manager's.
    pub deployments: Vec<Deployment>,
    /// The definitions of the kinds.
    pub crds: Vec<Crd>,
    /// The definitions without which controllers of this program wait, by the name of the controllers.
    pub required: BTreeMap<&'static str, Vec<String>>,
    /// The objects.
    pub objects: Objects,
    /// Secrets by namespace and name; `None` for one that does not exist.
    pub secrets: BTreeMap<(String, String), Option<Secret>>,
    /// Findings about the environment of the host controllers, which its reader knows.
    pub environment: Vec<Finding>,
    /// The environments of the managers.
    pub given: Vec<Given>,
    /// The accounts of the managers whose roles were read.
    pub accounts: Vec<Account>,
    /// The inventory of clusterctl; `None` if it could not be read.
    pub providers: Option<Vec<Provider>>,
    /// What the controllers do first; `None` when no dry run was made.
    pub dry_run: Option<DryRun>,
    /// What could not be read.
    pub not_read: Vec<NotRead>,
}
