//! The logs of this project's programs, with the viewer's own rights.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, ListParams, LogParams};
use kube::{Api, Client, ResourceExt as _};
use metal3_explain::bundle::{Log, Logs};
use metal3_explain::{NotRead, ObjectId, Read, Unread};

use crate::reader::unread;

/// The label of their Pods.
const PROGRAMS: &str = "app.kubernetes.io/part-of=metal3-rs";
/// The last lines of each container, and of them at most so many bytes.
const LINES: i64 = 5_000;
const BYTES: usize = 2 << 20;
/// More Pods than an installation has.
const PODS: u32 = 50;

/// Reads them in all namespaces, as the programs are rarely in that of the hosts; who may not list Pods there reads those of the
/// namespace.
pub(super) async fn read(client: &Client, namespace: Option<&str>) -> Logs {
    let mut logs = Logs::default();
    let everywhere = of_pods(client, Api::all(client.clone()), &mut logs).await;
    if let (false, Some(namespace)) = (everywhere, namespace) {
        of_pods(client, Api::namespaced(client.clone(), namespace), &mut logs).await;
    }
    logs
}

/// Whether the Pods could be listed.
async fn of_pods(client: &Client, pods: Api<Pod>, logs: &mut Logs) -> bool {
    let resource = ApiResource::erase::<Pod>(&());
    let found = pods.list(&ListParams::default().labels(PROGRAMS).limit(PODS)).await;
    let why = match &found {
        Ok(found) if found.metadata.continue_.as_ref().is_some_and(|more| !more.is_empty()) => Some(Unread::Failed(
            format!("there are more than {PODS}, and only these are here"),
        )),
        Ok(_) => None,
        Err(error) => Some(unread(error, "list", &resource)),
    };
    logs.1.extend(why.map(|why| NotRead {
        what: Read::List {
            kind: ObjectId::foreign("", &resource.kind, ""),
            labels: PROGRAMS.to_owned(),
        },
        why,
    }));
    let Ok(found) = found else { return false };
    for pod in found.items {
        of_pod(client, &pod, logs).await;
    }
    true
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
            let suffix = if previous { "-before-restart" } else { "" };
            let wanted = LogParams {
                container: Some(container.name.clone()),
                previous,
                tail_lines: Some(LINES),
                ..LogParams::default()
            };
            match api.logs(&name, &wanted).await {
                Ok(text) => logs.push(Log {
                    namespace: namespace.clone(),
                    pod: name.clone(),
                    container: format!("{}{suffix}", container.name),
                    text: newest(text),
                }),
                Err(error) => not_read.push(NotRead {
                    what: Read::Object(ObjectId::foreign("", "Pod", &name)),
                    why: without_log(&error),
                }),
            }
        }
    }
}

fn without_log(error: &kube::Error) -> Unread {
    let mut resource = ApiResource::erase::<Pod>(&());
    resource.plural.push_str("/log");
    match unread(error, "get", &resource) {
        Unread::NotInstalled => Unread::Failed("it, or its log, is gone".to_owned()),
        why => why,
    }
}

/// The newest lines that fit.
fn newest(text: String) -> String {
    let from = text.len().saturating_sub(BYTES);
    let Some((_, kept)) = text.as_bytes().split_at_checked(from).filter(|_| from > 0) else {
        return text;
    };
    // The rest of a line may be the rest of a secret, whose name is what masks it.
    let kept = String::from_utf8_lossy(kept);
    let whole = kept.split_once('\n').map_or("", |(_, whole)| whole);
    format!("(older lines are left out)\n{whole}")
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};
    use kube::client::Body;
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
                // A limit of bytes would cut off the newest lines.
                assert!(
                    query.contains("tailLines=5000") && !query.contains("limitBytes"),
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
        let (logs, not_read) = read(&Client::new(service, "default"), None).await;
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

    #[test]
    fn newest_lines_of_a_long_log_are_kept() {
        let long = format!("password=canary{}\nnewest\n", "canary".repeat(BYTES / 6));
        assert_eq!(newest(long), "(older lines are left out)\nnewest\n");
        assert_eq!(newest("short".to_owned()), "short");
    }

    /// Who has rights in one namespace gets the logs of that one, and what is missing is named.
    #[tokio::test]
    async fn pods_of_the_namespace_are_read_where_all_may_not_be_listed() {
        let service = tower::service_fn(async |request: Request<Body>| {
            let (code, text) = match request.uri().path() {
                "/api/v1/namespaces/capm3-system/pods" => {
                    let pod = json!({ "metadata": { "name": "a", "namespace": "capm3-system" }, "spec": { "containers": [{ "name": "manager" }] } });
                    let list = json!({ "metadata": { "continue": "more" }, "items": [pod] });
                    (200, list.to_string())
                }
                "/api/v1/pods" => (403, json!({ "kind": "Status", "status": "Failure", "reason": "Forbidden", "message": "no", "code": 403 }).to_string()),
                _ => server(&request),
            };
            let response = Response::builder().status(code).body(Body::from(text.into_bytes()));
            Ok::<_, std::convert::Infallible>(response.unwrap())
        });
        let (logs, not_read) = read(&Client::new(service, "default"), Some("capm3-system")).await;
        assert_eq!(logs.len(), 1);
        let why: Vec<String> = not_read.iter().map(|one| one.why.to_string()).collect();
        assert!(
            why[0].contains("may not list pods") && why[1].contains("more than 50"),
            "{why:?}"
        );
    }
}
