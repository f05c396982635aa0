//! The kinds that the simulated API server serves.

use metal3_api::catalog;
use metal3_api::cluster::names::IPAM_GROUP;
use metal3_api::crd::Definition;
use metal3_sim_capi::kinds::{self, Kind};
use metal3_sim_cluster::cluster_api;

/// All installed kinds: this project's, Cluster API's, and the claims of its IPAM contract.
#[must_use]
pub fn definitions() -> Vec<Definition> {
    let claims = cluster_api().into_iter().filter(|kind| kind.group == IPAM_GROUP);
    catalog::definitions()
        .into_iter()
        .chain(kinds::definitions())
        .chain(claims)
        .collect()
}

/// All installed kinds in their storage version, and Secrets.
#[must_use]
pub fn all_kinds() -> Vec<Kind> {
    let stored = |kind: Definition| {
        let version = kind.versions.iter().find(|version| version.storage)?.name;
        Some(Kind {
            group: kind.group,
            version,
            kind: kind.kind,
            plural: kind.plural,
        })
    };
    let secret = Kind {
        group: "",
        version: "v1",
        kind: "Secret",
        plural: "secrets",
    };
    definitions().into_iter().filter_map(stored).chain([secret]).collect()
}

/// Group and version of a kind; of two kinds with one name, this project's.
#[must_use]
pub fn version_of(kind: &str) -> Option<String> {
    let all = all_kinds();
    all.iter().find(|known| known.kind == kind).map(Kind::api_version)
}

/// The collection URL of a kind.
///
/// # Errors
/// When the kind is not installed.
pub fn collection(api_version: &str, kind: &str, namespace: &str) -> Result<String, String> {
    if api_version == "v1" {
        let plural = match kind {
            "Secret" => "secrets",
            "ConfigMap" => "configmaps",
            _ => return Err(format!("kind {kind}: not installed in {api_version}")),
        };
        return Ok(format!("/api/v1/namespaces/{namespace}/{plural}"));
    }
    let (group, version) = api_version.split_once('/').unwrap_or_default();
    let all = catalog::definitions()
        .into_iter()
        .chain(kinds::definitions())
        .chain(cluster_api());
    let found = all.into_iter().find(|known| known.group == group && known.kind == kind);
    let plural = found
        .ok_or_else(|| format!("kind {kind}: not installed in {api_version}"))?
        .plural;
    Ok(format!("/apis/{group}/{version}/namespaces/{namespace}/{plural}"))
}
