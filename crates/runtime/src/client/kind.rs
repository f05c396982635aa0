//! The kinds of a discovered group.

use kube::api::ApiResource;
use kube::discovery::ApiGroup;

/// A kind in the preferred version of its group or else in the newest one that has it: providers with a group in common
/// serve different kinds of it in different versions.
#[must_use]
pub fn served_kind(group: &ApiGroup, kind: &str) -> Option<ApiResource> {
    let preferred = group.recommended_kind(kind).map(|(resource, _)| resource);
    preferred.or_else(|| {
        let all = group.versions().flat_map(|version| group.versioned_resources(version));
        all.map(|(resource, _)| resource).find(|resource| resource.kind == kind)
    })
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response};
    use kube::client::Body;
    use kube::{Client, discovery};
    use serde_json::{Value, json};
    use tower::service_fn;

    use super::*;

    const GROUP: &str = "controlplane.cluster.x-k8s.io";

    /// A group of two providers: one has two versions, the other an older one alone.
    fn answer(path: &str) -> Value {
        let version = |version: &str| json!({ "groupVersion": format!("{GROUP}/{version}"), "version": version });
        let resources = |version: &str, kinds: &[&str]| {
            let resource = |kind: &&str| {
                json!({ "name": format!("{}s", kind.to_lowercase()), "singularName": "", "namespaced": true,
                    "kind": kind, "verbs": ["get", "list"] })
            };
            json!({ "kind": "APIResourceList", "groupVersion": format!("{GROUP}/{version}"),
                "resources": kinds.iter().map(resource).collect::<Vec<_>>() })
        };
        match path.rsplit('/').next().unwrap_or_default() {
            "v1beta2" => resources("v1beta2", &["KubeadmControlPlane"]),
            "v1alpha2" => resources("v1alpha2", &["KamajiControlPlane"]),
            "v1alpha1" => resources("v1alpha1", &["KamajiControlPlane", "KubeadmControlPlane"]),
            _ => json!({ "kind": "APIGroupList", "groups": [{ "name": GROUP,
                "versions": [version("v1beta2"), version("v1alpha2"), version("v1alpha1")],
                "preferredVersion": version("v1beta2") }] }),
        }
    }

    #[tokio::test]
    async fn kind_is_found_in_whatever_version_has_it() {
        let service = service_fn(async |request: Request<Body>| {
            let body = answer(request.uri().path()).to_string();
            Ok::<_, Infallible>(Response::new(Body::from(body.into_bytes())))
        });
        let group = discovery::group(&Client::new(service, "default"), GROUP).await.unwrap();
        let version = |kind: &str| served_kind(&group, kind).map(|found| found.version);
        assert_eq!(version("KubeadmControlPlane").as_deref(), Some("v1beta2"));
        assert_eq!(version("KamajiControlPlane").as_deref(), Some("v1alpha2"));
        assert_eq!(version("OtherControlPlane"), None);
    }
}
