//! How a kind is asked for: what the server serves, and whether we may list it.

use kube::core::Request;
use kube_core::params::ListParams;
use kube_core::{ApiResource, Resource as _};
use metal3_runtime::work::{Class, classify};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::foreign::Foreign;

/// Group and kind.
pub(super) type GroupKind = (String, String);

/// Why a kind cannot be watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Trouble {
    /// There is no such kind.
    NotServed,
    /// We may not do this to that resource, or path.
    Forbidden(&'static str, String),
    /// Something else, for people.
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

/// How a kind is asked for, if it is served and we may list it.
pub(super) async fn find(
    client: &kube::Client,
    namespace: Option<&str>,
    (group, kind): &GroupKind,
) -> Result<ApiResource, Trouble> {
    let resource = discover(client, group, kind).await?;
    let list = Request::new(Foreign::url_path(&resource, namespace)).list(&ListParams::default().limit(1));
    let list = list.map_err(|_| other("it cannot be asked for"))?;
    match client.request_text(list).await {
        Ok(_) => Ok(resource),
        Err(error) => Err(match classify(&error) {
            Class::Forbidden => Trouble::Forbidden("list", path(&resource)),
            Class::NotFound => Trouble::NotServed,
            _ => other("it cannot be listed"),
        }),
    }
}

async fn discover(client: &kube::Client, group: &str, kind: &str) -> Result<ApiResource, Trouble> {
    if group.is_empty() {
        let plural = plural(client, "/api/v1", kind).await?;
        return plural.map_or(Err(Trouble::NotServed), |plural| Ok(resource("", "v1", kind, &plural)));
    }
    let found: Group = get(client, &format!("/apis/{group}")).await?;
    let others = found.versions.into_iter().map(|one| one.version);
    for version in std::iter::once(found.preferred_version.version).chain(others) {
        if let Some(plural) = plural(client, &format!("/apis/{group}/{version}"), kind).await? {
            return Ok(resource(group, &version, kind, &plural));
        }
    }
    Err(Trouble::NotServed)
}

/// The name in URLs of a kind, where it is served.
async fn plural(client: &kube::Client, path: &str, kind: &str) -> Result<Option<String>, Trouble> {
    let served: Served = get(client, path).await?;
    let mut whole = served.resources.into_iter().filter(|one| !one.name.contains('/'));
    Ok(whole.find(|one| one.kind == kind).map(|one| one.name))
}

async fn get<T: DeserializeOwned>(client: &kube::Client, path: &str) -> Result<T, Trouble> {
    let request = http::Request::get(path).body(Vec::new());
    let request = request.map_err(|_| other("its group is no part of a path"))?;
    match client.request_text(request).await {
        Ok(text) => serde_json::from_str(&text).map_err(|_| other("what the server says of itself makes no sense")),
        Err(error) => Err(match classify(&error) {
            Class::NotFound => Trouble::NotServed,
            Class::Forbidden => Trouble::Forbidden("get", path.to_owned()),
            _ => other("the server does not say what it serves"),
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

/// A watch that fails for another reason than a right. In fixed words, as they become those of a condition; the log has
/// the server's.
pub(super) fn unwatched() -> Trouble {
    other("the API server does not serve its watch, which is tried again by itself; the log of this manager says why")
}

fn other(why: &str) -> Trouble {
    Trouble::Other(why.to_owned())
}

/// A resource as people name it.
pub(super) fn path(resource: &ApiResource) -> String {
    if resource.group.is_empty() {
        resource.plural.clone()
    } else {
        format!("{}.{}", resource.plural, resource.group)
    }
}
