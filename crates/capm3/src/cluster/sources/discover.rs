//! Discovery of a kind: whether it is served and may be listed.

use kube::core::Request;
use kube_core::params::ListParams;
use kube_core::{ApiResource, Resource as _};
use metal3_runtime::work::{Class, classify};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::foreign::ForeignObject;

pub(super) type GroupKind = (String, String);

/// The reason why a kind cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum DiscoveryError {
    /// The kind is not served.
    NotServed,
    /// This verb on this resource or path is forbidden.
    Forbidden(&'static str, String),
    /// Another reason.
    Other(String),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Group {
    preferred_version: GroupVersion,
    #[serde(default)]
    versions: Vec<GroupVersion>,
}

#[derive(Deserialize)]
struct GroupVersion {
    version: String,
}

#[derive(Deserialize)]
struct Served {
    resources: Vec<ServedResource>,
}

#[derive(Deserialize)]
struct ServedResource {
    name: String,
    kind: String,
}

/// The resource of a kind, if it is served and may be listed.
pub(super) async fn find(
    client: &kube::Client,
    namespace: Option<&str>,
    (group, kind): &GroupKind,
) -> Result<ApiResource, DiscoveryError> {
    let resource = discover(client, group, kind).await?;
    let list = Request::new(ForeignObject::url_path(&resource, namespace)).list(&ListParams::default().limit(1));
    let list = list.map_err(|_| other_error("it cannot be requested"))?;
    match client.request_text(list).await {
        Ok(_) => Ok(resource),
        Err(error) => Err(match classify(&error) {
            Class::Forbidden => DiscoveryError::Forbidden("list", path(&resource)),
            Class::NotFound => DiscoveryError::NotServed,
            _ => other_error("it cannot be listed"),
        }),
    }
}

async fn discover(client: &kube::Client, group: &str, kind: &str) -> Result<ApiResource, DiscoveryError> {
    if group.is_empty() {
        let plural = plural(client, "/api/v1", kind).await?;
        return plural.map_or(Err(DiscoveryError::NotServed), |plural| {
            Ok(resource("", "v1", kind, &plural))
        });
    }
    if !is_group(group) {
        return Err(other_error("its group is not a DNS name"));
    }
    let found: Group = get(client, &format!("/apis/{group}")).await?;
    let others = found.versions.into_iter().map(|one| one.version);
    for version in std::iter::once(found.preferred_version.version).chain(others) {
        if let Some(plural) = plural(client, &format!("/apis/{group}/{version}"), kind).await? {
            return Ok(resource(group, &version, kind, &plural));
        }
    }
    Err(DiscoveryError::NotServed)
}

/// Whether a text that a user wrote is the name of a group, and no path or query. Reserved characters would make this
/// program read another path with its own rights.
fn is_group(group: &str) -> bool {
    let is_label = |label: &str| {
        let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        !label.is_empty() && label.bytes().all(is_inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    group.len() <= 253 && group.split('.').all(is_label)
}

/// The plural of a kind, if it is served.
async fn plural(client: &kube::Client, path: &str, kind: &str) -> Result<Option<String>, DiscoveryError> {
    let served: Served = get(client, path).await?;
    let mut whole = served.resources.into_iter().filter(|one| !one.name.contains('/'));
    Ok(whole.find(|one| one.kind == kind).map(|one| one.name))
}

async fn get<T: DeserializeOwned>(client: &kube::Client, path: &str) -> Result<T, DiscoveryError> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|_| other_error("its group is not valid in a path"))?;
    match client.request_text(request).await {
        Ok(text) => serde_json::from_str(&text).map_err(|_| other_error("the discovery document is invalid")),
        Err(error) => Err(match classify(&error) {
            Class::NotFound => DiscoveryError::NotServed,
            Class::Forbidden => DiscoveryError::Forbidden("get", path.to_owned()),
            _ => other_error("discovery fails"),
        }),
    }
}

fn resource(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() {
        version.to_owned()
    } else {
        format!("{group}/{version}")
    };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}

/// A failed watch. The text is fixed because it becomes part of a condition; the log contains the message of the API
/// server.
pub(super) fn watch_error() -> DiscoveryError {
    other_error("the API server does not serve its watch, which is retried; see the log of this manager")
}

fn other_error(why: &str) -> DiscoveryError {
    DiscoveryError::Other(why.to_owned())
}

/// A resource as in RBAC rules.
pub(super) fn path(resource: &ApiResource) -> String {
    if resource.group.is_empty() {
        resource.plural.clone()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_of_a_user_is_no_path() {
        for group in ["apps", "controlplane.cluster.x-k8s.io"] {
            assert!(is_group(group), "{group}");
        }
        let paths = [
            "a/../..",
            "../api/v1/secrets",
            "a?watch=true",
            "a#b",
            "a%2f",
            "A.example",
            "-a",
            "a..b",
            ".",
        ];
        for group in paths {
            assert!(!is_group(group), "{group}");
        }
    }
}
