//! The logs of this project's programs, with the viewer's own rights.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, ListParams, LogParams};
use kube::{Api, Client, ResourceExt as _};
use metal3_explain::bundle::{Log, Logs};
use metal3_explain::{NotRead, ObjectId, Read};

use crate::reader::unread;

/// The label of their Pods.
const PROGRAMS: &str = "app.kubernetes.io/part-of=metal3-rs";
/// The last lines of each container, and at most so many bytes.
const LINES: i64 = 5_000;
const BYTES: i64 = 2 << 20;
/// More Pods than an installation has.
const PODS: u32 = 50;

/// Reads them in all namespaces: the programs are rarely in that of the hosts.
pub(super) async fn read(client: &Client) -> Logs {
    let resource = ApiResource::erase::<Pod>(&());
    let mut logs = Logs::default();
    let pods: Api<Pod> = Api::all(client.clone());
    match pods.list(&ListParams::default().labels(PROGRAMS).limit(PODS)).await {
        Ok(found) => {
            for pod in found.items {
                of_pod(client, &pod, &mut logs).await;
            }
        }
        Err(error) => {
            let what = Read::List {
                kind: ObjectId::foreign("", &resource.kind, ""),
                labels: PROGRAMS.to_owned(),
            };
            let why = unread(&error, "list", &resource);
            logs.1.push(NotRead { what, why });
        }
    }
    logs
}

/// The log of each container, and that before its last restart.
async fn of_pod(client: &Client, pod: &Pod, (logs, not_read): &mut Logs) {
    let (namespace, name) = (pod.namespace().unwrap_or_default(), pod.name_any());
    let api: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    let states = pod
        .status
        .as_ref()
        .and_then(|status| status.container_statuses.as_ref());
    for container in pod.spec.iter().flat_map(|spec| &spec.containers) {
        let mut all = states.into_iter().flatten();
        let is_restarted = all.any(|state| state.name == container.name && state.restart_count > 0);
        for previous in [true, false] {
            if previous && !is_restarted {
                continue;
            }
            let wanted = LogParams {
                container: Some(container.name.clone()),
                limit_bytes: Some(BYTES),
                previous,
                tail_lines: Some(LINES),
                ..LogParams::default()
            };
            match api.logs(&name, &wanted).await {
                Ok(text) => logs.push(Log {
                    namespace: namespace.clone(),
                    pod: name.clone(),
                    container: format!("{}{}", container.name, if previous { "-before-restart" } else { "" }),
                    text,
                }),
                Err(error) => {
                    let mut resource = ApiResource::erase::<Pod>(&());
                    resource.plural.push_str("/log");
                    not_read.push(NotRead {
                        what: Read::Object(ObjectId::foreign("", &resource.kind, &name)),
                        why: unread(&error, "get", &resource),
                    });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
    use metal3_explain::Unread;
    use serde_json::json;

    use super::*;

    /// A server with a restarted Pod, whose present log may be read, and one whose logs are forbidden.
    fn server(request: &Request<Body>) -> (u16, String) {
        let query = request.uri().query().unwrap_or_default();
        let pod = |name: &str, restarts: u32| {
            json!({ "metadata": { "name": name, "namespace": "capm3-system" }, "spec": { "containers": [{ "name": "manager" }] },
                "status": { "containerStatuses": [{ "name": "manager", "restartCount": restarts, "ready": true, "image": "", "imageID": "" }] } })
        };
        let refused = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403 });
        match request.uri().path() {
            "/api/v1/pods" => {
                assert!(query.contains("part-of"), "{query}");
                let list = json!({ "metadata": {}, "items": [pod("a", 1), pod("b", 0)] });
                (200, list.to_string())
            }
            "/api/v1/namespaces/capm3-system/pods/a/log" => {
                assert!(
                    query.contains("tailLines=5000") && query.contains("limitBytes=2097152"),
                    "{query}"
                );
                (
                    200,
                    if query.contains("previous=true") { "old" } else { "new" }.to_owned(),
                )
            }
            _ => (403, refused.to_string()),
        }
    }

    #[tokio::test]
    async fn logs_are_read_and_what_may_not_be_read_is_named() {
        let service = tower::service_fn(async |request: Request<Body>| {
            let (code, text) = server(&request);
            let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
            Ok::<_, std::convert::Infallible>(response.unwrap())
        });
        let (logs, not_read) = read(&Client::new(service, "default")).await;
        let shown: Vec<(&str, &str)> = logs
            .iter()
            .map(|log| (log.container.as_str(), log.text.as_str()))
            .collect();
        assert_eq!(shown, [("manager-before-restart", "old"), ("manager", "new")]);
        let [only] = &not_read[..] else {
            unreachable!("{not_read:?}")
        };
        assert_eq!(only.what.to_string(), "Pod/b");
        let (verb, resource) = ("get".to_owned(), "pods/log".to_owned());
        assert_eq!(only.why, Unread::Forbidden { verb, resource });
    }
}
