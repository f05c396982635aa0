//! The logs of this project's programs, with the viewer's own rights.
//!
//! Each user who may create a Pod chooses its labels, so that a label alone does not make a program: it runs in a namespace that has
//! one of the leases. Of each namespace a few Pods are read, so that no namespace displaces the logs of another one.

use std::collections::{BTreeMap, BTreeSet};

use futures::{AsyncRead, AsyncReadExt as _};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, ListParams, LogParams};
use kube::{Api, Client};
use metal3_explain::bundle::{Log, Logs};
use metal3_explain::{NotRead, ObjectId, Read, Unread};
use metal3_runtime::lease::{CAPM3_LEASE, HOSTS_LEASE, IPAM_LEASE};
use serde::Deserialize;

use crate::reader::{Reader, unread};

/// The label of their Pods.
const PROGRAMS: &str = "app.kubernetes.io/part-of=metal3-rs";
/// The last lines of each container, and of them at most so many bytes.
const LINES: i64 = 5_000;
const BYTES: usize = 2 << 20;
/// More Pods than an installation has in a namespace.
const PODS: usize = 20;

/// The members of a [`Pod`] that matter here: the code that decodes all of them is a large part of a program.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Program {
    metadata: Metadata,
    spec: Containers,
    status: Statuses,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Containers {
    containers: Vec<Container>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Statuses {
    #[serde(rename = "containerStatuses")]
    containers: Vec<Container>,
}

/// A container, or its status.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Container {
    name: String,
    #[serde(rename = "restartCount")]
    restarts: u32,
}

/// Reads them in all namespaces, as the programs are rarely in that of the hosts; who may not list Pods there reads those of the
/// namespace.
pub(super) async fn read(client: &Client, namespace: Option<&str>) -> Logs {
    let mut logs = Logs::default();
    let everywhere = of_pods(client, None, &mut logs).await;
    if let (false, Some(namespace)) = (everywhere, namespace) {
        of_pods(client, Some(namespace), &mut logs).await;
    }
    logs
}

/// Whether the Pods could be listed.
async fn of_pods(client: &Client, namespace: Option<&str>, logs: &mut Logs) -> bool {
    let reader = Reader::new(client, namespace);
    let resource = ApiResource::erase::<Pod>(&());
    let listed = reader.list(&resource, ListParams::default().labels(PROGRAMS)).await;
    let pods = match listed {
        Ok(listed) => listed.objects,
        Err(why) => {
            logs.1.push(without_pods(why));
            return false;
        }
    };
    let pods = decoded(pods, &mut logs.1);
    let leased = match pods.is_empty() {
        true => Ok(BTreeSet::new()),
        false => leased(&reader).await,
    };
    if let Err(why) = &leased {
        logs.1.push(NotRead {
            what: Read::Object(ObjectId::foreign("coordination.k8s.io", "Lease", CAPM3_LEASE)),
            why: why.clone(),
        });
    }
    let (pods, left_out) = chosen(pods, &leased.unwrap_or_default());
    logs.1.extend(left_out.map(|why| without_pods(Unread::LeftOut(why))));
    for pod in pods {
        of_pod(client, &pod, logs).await;
    }
    true
}

/// One that cannot be decoded is named.
fn decoded(pods: Vec<serde_json::Value>, not_read: &mut Vec<NotRead>) -> Vec<Program> {
    let mut programs = Vec::with_capacity(pods.len());
    for pod in pods {
        let name = pod.pointer("/metadata/name").and_then(serde_json::Value::as_str);
        let what = Read::Object(ObjectId::foreign("", "Pod", name.unwrap_or_default()));
        match serde_json::from_value(pod) {
            Ok(program) => programs.push(program),
            Err(error) => not_read.push(NotRead {
                what,
                why: Unread::undecodable(&error),
            }),
        }
    }
    programs
}

fn without_pods(why: Unread) -> NotRead {
    let kind = ObjectId::foreign("", "Pod", "");
    let labels = PROGRAMS.to_owned();
    NotRead {
        what: Read::List { kind, labels },
        why,
    }
}

/// The namespaces with a lease of this project.
async fn leased(reader: &Reader) -> Result<BTreeSet<String>, Unread> {
    let mut namespaces = BTreeSet::new();
    let resource = ApiResource::erase::<Lease>(&());
    for name in [CAPM3_LEASE, IPAM_LEASE, HOSTS_LEASE] {
        let wanted = ListParams::default().fields(&format!("metadata.name={name}"));
        let found = reader.list(&resource, wanted).await?.objects;
        let of = |lease: &serde_json::Value| Some(lease.pointer("/metadata/namespace")?.as_str()?.to_owned());
        namespaces.extend(found.iter().filter_map(of));
    }
    Ok(namespaces)
}

/// The Pods whose logs are read, and why others are left out. Without any lease the label has to do.
fn chosen(pods: Vec<Program>, leased: &BTreeSet<String>) -> (Vec<Program>, Option<String>) {
    let mut left_out = Vec::new();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut kept = Vec::new();
    for pod in pods {
        let Metadata { namespace, name } = &pod.metadata;
        let count = counts.entry(namespace.clone()).or_default();
        *count = count.saturating_add(1);
        if *count <= PODS && (leased.is_empty() || leased.contains(namespace)) {
            kept.push(pod);
        } else {
            left_out.push(format!("{namespace}/{name}"));
        }
    }
    let why = left_out.first().map(|first| {
        format!(
            "{} Pods are left out, such as {first}: they are in a namespace without a lease of this project, or more than {PODS} in one",
            left_out.len()
        )
    });
    (kept, why)
}

/// The log of each container, and that before its last restart.
async fn of_pod(client: &Client, pod: &Program, (logs, not_read): &mut Logs) {
    let Metadata { namespace, name } = &pod.metadata;
    let api: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for container in &pod.spec.containers {
        let mut all = pod.status.containers.iter();
        let is_restarted = all.any(|state| state.name == container.name && state.restarts > 0);
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
            let text = match api.log_stream(name, &wanted).await {
                Ok(stream) => newest(stream).await.map_err(|error| Unread::Failed(error.to_string())),
                Err(error) => Err(without_log(&error)),
            };
            match text {
                Ok(text) => logs.push(Log {
                    namespace: namespace.clone(),
                    pod: name.clone(),
                    container: format!("{}{suffix}", container.name),
                    text,
                }),
                Err(why) => not_read.push(NotRead {
                    what: Read::Object(ObjectId::foreign("", "Pod", name)),
                    why,
                }),
            }
        }
    }
}

fn without_log(error: &kube::Error) -> Unread {
    let mut resource = ApiResource::erase::<Pod>(&());
    resource.plural.push_str("/log");
    match unread(error, "get", &resource) {
        Unread::NotInstalled => Unread::LeftOut("it, or its log, is gone".to_owned()),
        why => why,
    }
}

/// The newest lines that fit. Lines may be of any length, so that no more is kept in memory.
async fn newest(stream: impl AsyncRead) -> std::io::Result<String> {
    let mut stream = std::pin::pin!(stream);
    let (mut kept, mut part, mut is_whole) = (Vec::new(), vec![0; 1 << 16], true);
    loop {
        let read = stream.read(&mut part).await?;
        kept.extend_from_slice(part.get(..read).unwrap_or_default());
        let is_read = read == 0;
        if kept.len() > 2 * BYTES || (is_read && kept.len() > BYTES) {
            kept.drain(..kept.len().saturating_sub(BYTES));
            is_whole = false;
        }
        if is_read {
            break;
        }
    }
    let kept = String::from_utf8_lossy(&kept);
    if is_whole {
        return Ok(kept.into_owned());
    }
    // The rest of a line may be the rest of a secret, whose name is what masks it.
    let lines = kept.split_once('\n').map_or("", |(_, lines)| lines);
    Ok(format!("(older lines are left out)\n{lines}"))
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
            "/apis/coordination.k8s.io/v1/leases" => (200, json!({ "metadata": {}, "items": [] }).to_string()),
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

    #[tokio::test]
    async fn newest_lines_of_a_long_log_are_kept() {
        for bytes in [BYTES, 3 * BYTES] {
            let long = format!("password=canary{}\nnewest\n", "canary".repeat(bytes / 6));
            let kept = newest(long.as_bytes()).await.unwrap();
            assert_eq!(kept, "(older lines are left out)\nnewest\n");
        }
        assert_eq!(newest("short".as_bytes()).await.unwrap(), "short");
    }

    fn pod(namespace: &str, name: &str) -> serde_json::Value {
        json!({ "metadata": { "name": name, "namespace": namespace }, "spec": { "containers": [{ "name": "manager" }] } })
    }

    /// Who may create Pods in a namespace chooses their labels.
    #[tokio::test]
    async fn pods_of_other_namespaces_with_the_label_displace_no_log() {
        let service = tower::service_fn(async |request: Request<Body>| {
            let query = request.uri().query().unwrap_or_default();
            let (code, answer) = match request.uri().path() {
                "/api/v1/pods" if query.contains("continue=more") => (
                    200,
                    json!({ "metadata": {}, "items": [pod("capm3-system", "manager")] }),
                ),
                "/api/v1/pods" => {
                    let foreign = (0..50).map(|number| pod("aaa", &format!("foreign-{number}")));
                    (
                        200,
                        json!({ "metadata": { "continue": "more" }, "items": foreign.collect::<Vec<_>>() }),
                    )
                }
                "/apis/coordination.k8s.io/v1/leases" => {
                    let is_capm3 = query.contains(CAPM3_LEASE);
                    let lease = json!({ "metadata": { "namespace": "capm3-system", "name": CAPM3_LEASE } });
                    (
                        200,
                        json!({ "metadata": {}, "items": if is_capm3 { vec![lease] } else { Vec::new() } }),
                    )
                }
                path => (
                    if path.ends_with("/pods/manager/log") { 200 } else { 404 },
                    json!("log"),
                ),
            };
            let response = Response::builder()
                .status(code)
                .body(Body::from(answer.to_string().into_bytes()));
            Ok::<_, std::convert::Infallible>(response.unwrap())
        });
        let (logs, not_read) = read(&Client::new(service, "default"), None).await;
        let pods: Vec<&str> = logs.iter().map(|log| log.pod.as_str()).collect();
        assert_eq!(pods, ["manager"]);
        let why: Vec<String> = not_read.iter().map(|one| one.why.to_string()).collect();
        assert!(
            why.len() == 1 && why[0].contains("50 Pods are left out, such as aaa/"),
            "{why:?}"
        );
    }

    #[test]
    fn some_pods_of_each_namespace_are_chosen_where_no_lease_tells_which() {
        let pods = (0..PODS + 5).map(|number| pod("a", &number.to_string()));
        let pods = pods
            .chain([pod("b", "b")])
            .map(|pod| serde_json::from_value(pod).unwrap());
        let (kept, left_out) = chosen(pods.collect(), &BTreeSet::new());
        assert_eq!(
            (kept.len(), kept.last().unwrap().metadata.name.as_str()),
            (PODS + 1, "b")
        );
        assert!(left_out.unwrap().starts_with("5 Pods"));
    }

    #[test]
    fn pod_that_cannot_be_decoded_is_named() {
        let mut not_read = Vec::new();
        let broken = json!({ "metadata": { "name": "b" }, "spec": { "containers": 7 } });
        let programs = decoded(vec![pod("a", "a"), broken], &mut not_read);
        assert_eq!((programs.len(), not_read.len()), (1, 1));
        assert_eq!(not_read[0].what.to_string(), "Pod/b");
    }

    /// Who has rights in one namespace gets the logs of that one, and what is missing is named.
    #[tokio::test]
    async fn pods_of_the_namespace_are_read_where_all_may_not_be_listed() {
        let service = tower::service_fn(async |request: Request<Body>| {
            let (code, text) = match request.uri().path() {
                "/api/v1/namespaces/capm3-system/pods" => {
                    let pod = json!({ "metadata": { "name": "a", "namespace": "capm3-system" }, "spec": { "containers": [{ "name": "manager" }] } });
                    let list = json!({ "metadata": {}, "items": [pod] });
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
            why[0].contains("may not list pods") && why[1].contains("may not list leases"),
            "{why:?}"
        );
    }
}
