//! Claims on hosts, as their tenants and the administrators of the hosts see them: from HostClaims alone, which tenants may read.

use metal3_api::meta::Time;
use metal3_api::metal3::names::claim_condition::READY;
use metal3_api::metal3::v1alpha1::HostClaim;
use metal3_domain::uri::{public_text, redacted_url};
use serde::Serialize;

use crate::order;
use crate::read::Read;
use crate::values::name;
use crate::walk::Walk;
use crate::walk::conditions::{find, since};

/// A claim on a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClaimRow {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// Namespace and name of its host; absent without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Whether its host shall be on.
    pub online: bool,
    /// Whether its host was on at the last observation.
    pub powered_on: bool,
    /// The image that it asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Whether it is deleted, and waits until its host is clean.
    pub deleted: bool,
    /// The reason of its condition `Ready`; absent before a controller wrote it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The message of that condition.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Since when the condition has its status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<Time>,
}

pub(super) fn rows(walk: &mut Walk<'_>) -> Vec<ClaimRow> {
    let claims = walk
        .each::<HostClaim>(&Read::list::<HostClaim>(None))
        .unwrap_or_default();
    let mut rows: Vec<ClaimRow> = claims.iter().map(row).collect();
    order::sort_by(&mut rows, |a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    rows
}

fn row(claim: &HostClaim) -> ClaimRow {
    let HostClaim { metadata, spec, status } = claim;
    let ready = find(&status.conditions, READY);
    ClaimRow {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: name(metadata).to_owned(),
        host: status
            .bare_metal_host
            .as_ref()
            .map(|host| format!("{}/{}", host.namespace, host.name)),
        online: spec.powered_on,
        powered_on: status.powered_on == Some(true),
        image: spec.image.as_ref().map(|image| redacted_url(&image.url)),
        deleted: metadata.deletion_timestamp.is_some(),
        reason: ready.map(|ready| ready.reason.clone()),
        message: ready.map(|ready| public_text(&ready.message)).unwrap_or_default(),
        since: ready.and_then(since),
    }
}
