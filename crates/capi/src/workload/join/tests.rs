//! Looks at workload clusters whose answers the test decides about.

use std::sync::Arc;

use http::{Request as HttpRequest, Response};
use k8s_openapi::ByteString;
use kube::Api;
use kube::api::PostParams;
use kube::client::Body;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::write::Mode;
use metal3_sim_cluster::{Cluster, Options};
use parking_lot::Mutex;
use serde_json::{Value, json};

use kube::config::Kubeconfig;

use super::*;
use crate::workload::{ConnectFn, is_busy};

role! {
    /// Permissions of a controller that reads kubeconfig Secrets.
    struct SecretReader {
        Secret: Get;
    }
}

const SERVER: &str = "https://192.0.2.1:6443";
const ENDPOINT: &str = "https://edge.example.org:443";
const SECRET_TEXT: &str = "hunter2";

/// The answer to one request; `None` for silence.
type Answer = Option<(u16, String)>;

/// A request: the address, whether it has credentials, and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    server: String,
    has_credentials: bool,
    path: String,
}

/// Whether a path is that of an object.
fn is_of(path: &str, requisite: Requisite) -> bool {
    path.ends_with(&format!("/{}", requisite.object().1))
}

/// A complete answer to a request.
fn complete(asked: &Asked) -> Answer {
    let name = asked.path.rsplit('/').next().unwrap();
    let data = json!({ "kubeconfig": "x", "ClusterConfiguration": "x", "kubelet": SECRET_TEXT });
    Some((200, json!({ "metadata": { "name": name }, "data": data }).to_string()))
}

fn failed(code: u16) -> Answer {
    let status = json!({ "kind": "Status", "status": "Failure", "code": code, "message": SECRET_TEXT });
    Some((code, status.to_string()))
}

struct Lab {
    joins: Joins<SecretReader>,
    asked: Arc<Mutex<Vec<Asked>>>,
    management: Cluster,
}

impl Lab {
    fn new(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Self {
        let (answer, asked) = (Arc::new(answer), Arc::<Mutex<Vec<Asked>>>::default());
        let record = Arc::clone(&asked);
        let open: ConnectFn = Box::new(move |config| {
            let server = config.clusters[0].cluster.as_ref().unwrap().server.clone().unwrap();
            let user = config.auth_infos[0].auth_info.as_ref().unwrap();
            let has_credentials = user.token.is_some() || user.client_certificate_data.is_some();
            let (answer, record) = (Arc::clone(&answer), Arc::clone(&record));
            let service = tower::service_fn(move |request: HttpRequest<Body>| {
                assert_eq!(request.method(), http::Method::GET, "nothing is written");
                let asked = Asked {
                    server: server.clone(),
                    has_credentials,
                    path: request.uri().path().to_owned(),
                };
                let number = record.lock().len();
                let answer = answer(number, &asked);
                record.lock().push(asked);
                async move {
                    match answer {
                        Some((code, text)) => {
                            let response = Response::builder().status(code);
                            Ok::<_, std::convert::Infallible>(response.body(Body::from(text.into_bytes())).unwrap())
                        }
                        None => std::future::pending().await,
                    }
                }
            });
            let client = kube::Client::new(service, "default");
            Box::pin(async move { Ok(client) })
        });
        let management = Cluster::start(&Options::seeded(1));
        let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
        let reader = Writer::new(management.client("capm3"), Mode::Perform);
        Self {
            joins: Joins::new(Arc::new(Remote::new(reader, open, clock))),
            asked,
            management,
        }
    }

    async fn with_kubeconfig(self, text: &str) -> Self {
        let mut secret = Secret {
            data: Some([("value".to_owned(), ByteString(text.as_bytes().to_vec()))].into()),
            ..Secret::default()
        };
        secret.metadata.name = Some("edge-kubeconfig".to_owned());
        let secrets: Api<Secret> = Api::default_namespaced(self.management.client("user"));
        secrets.create(&PostParams::default(), &secret).await.unwrap();
        self
    }

    async fn look(&self, is_kubeadm: bool) -> JoinReport {
        let waiter = key("site");
        let _reconciled = self.joins.reconciled(&waiter);
        self.joins.look(&question(is_kubeadm), &waiter).await.unwrap()
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().clone()
    }
}

fn key(name: &str) -> Key {
    Key {
        namespace: "default".to_owned(),
        name: name.to_owned(),
    }
}

fn question(is_kubeadm: bool) -> JoinQuestion {
    JoinQuestion {
        cluster: key("edge"),
        endpoint: Some(("edge.example.org".to_owned(), 443)),
        is_kubeadm,
    }
}

fn kubeconfig(user: &str) -> String {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "contexts": [{ "name": "c", "context": { "cluster": "k", "user": "u" } }],
        "clusters": [{ "name": "k", "cluster": { "server": SERVER, "tls-server-name": "other", "certificate-authority-data": "QQ==" } }],
        "users": [{ "name": "u", "user": { user: SECRET_TEXT } }],
    });
    config.to_string()
}

async fn lab(answer: impl Fn(usize, &Asked) -> Answer + Send + Sync + 'static) -> Lab {
    Lab::new(answer).with_kubeconfig(&kubeconfig("token")).await
}

fn unknown(found: &Observed<()>) -> Option<&UnknownReason> {
    match found {
        Observed::Unknown(why) => Some(why),
        Observed::Present(()) | Observed::Absent => None,
    }
}

#[tokio::test(start_paused = true)]
async fn each_requisite_is_asked_about_once_with_credentials_and_the_endpoint_without() {
    let lab = lab(|_, asked| complete(asked)).await;
    let report = lab.look(true).await;
    assert_eq!(
        (&report.server, report.endpoint),
        (&Server::Answers, Some(Endpoint::SendsInfo))
    );
    assert_eq!(report.requisites.len(), Requisite::OF_KUBEADM.len());
    assert!(
        report.requisites.values().all(|one| *one == Observed::Present(())),
        "{report:?}"
    );
    let asked = lab.asked();
    let (last, first) = asked.split_last().unwrap();
    assert_eq!(first.len(), Requisite::OF_KUBEADM.len());
    assert!(first.iter().all(|one| one.server == SERVER && one.has_credentials));
    for requisite in Requisite::OF_KUBEADM {
        assert_eq!(
            first.iter().filter(|one| is_of(&one.path, requisite)).count(),
            1,
            "{requisite:?}"
        );
    }
    assert_eq!(
        *last,
        Asked {
            server: ENDPOINT.to_owned(),
            has_credentials: false,
            path: "/api/v1/namespaces/kube-public/configmaps/cluster-info".to_owned(),
        }
    );
}

#[tokio::test(start_paused = true)]
async fn cluster_with_another_bootstrap_provider_is_asked_for_its_answer_only() {
    let lab = lab(|_, asked| match asked.has_credentials {
        true => complete(asked),
        false => failed(401),
    })
    .await;
    let report = lab.look(false).await;
    assert_eq!(
        (report.server, report.endpoint),
        (Server::Answers, Some(Endpoint::Refuses))
    );
    assert_eq!(
        report.requisites,
        BTreeMap::from([(Requisite::Namespace, Observed::Present(()))])
    );
    assert_eq!(lab.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn requisite_that_the_server_states_not_to_exist_is_absent() {
    for requisite in Requisite::OF_KUBEADM {
        let lab = lab(
            move |_, asked| match is_of(&asked.path, requisite) && asked.has_credentials {
                true => failed(404),
                false => complete(asked),
            },
        )
        .await;
        for (found, state) in lab.look(true).await.requisites {
            let expected = if found == requisite {
                Observed::Absent
            } else {
                Observed::Present(())
            };
            assert_eq!(state, expected, "{found:?} without {requisite:?}");
        }
    }
    let emptied = lab(|_, asked| {
        let name = asked.path.rsplit('/').next().unwrap();
        Some((200, json!({ "metadata": { "name": name }, "data": {} }).to_string()))
    })
    .await;
    let report = emptied.look(true).await;
    let absent = report
        .requisites
        .iter()
        .filter(|(_, state)| **state == Observed::Absent);
    let absent: Vec<Requisite> = absent.map(|(one, _)| *one).collect();
    let of_maps = [
        Requisite::ClusterInfo,
        Requisite::KubeadmConfig,
        Requisite::KubeletConfig,
    ];
    assert_eq!(absent, of_maps, "a ConfigMap without its key serves no one");
    assert_eq!(report.endpoint, Some(Endpoint::HasNoInfo));
}

/// What may go wrong with one request, except a statement that the object does not exist.
fn faults() -> Vec<(&'static str, Answer)> {
    let text = |text: &str| Some((200, text.to_owned()));
    let large = json!({ "metadata": { "name": "n".repeat(1 << 20) } }).to_string();
    vec![
        ("forbidden", failed(403)),
        ("no credentials", failed(401)),
        ("throttled", failed(429)),
        ("failed", failed(500)),
        ("unavailable", failed(503)),
        ("not an API server's", Some((404, "404 page not found".to_owned()))),
        ("no API server", text("<html>welcome</html>")),
        ("nothing", text("{}")),
        (
            "another object",
            text(r#"{"metadata":{"name":"other"},"data":{"kubeconfig":"x"}}"#),
        ),
        (
            "other types",
            text(r#"{"metadata":{"name":"cluster-info"},"data":{"kubeconfig":[1]}}"#),
        ),
        ("a large name", text(&large)),
        ("silence", None),
    ]
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_request_makes_its_requisite_unknown_and_never_absent_in_a_short_time() {
    let all = Requisite::OF_KUBEADM.len();
    let mut cases = 0;
    for at in 0..=all {
        for (fault, answer) in faults() {
            let sent = answer.clone();
            let lab = lab(move |number, asked| match number == at {
                true => sent.clone(),
                false => complete(asked),
            })
            .await;
            let begin = Instant::now();
            let report = lab.look(true).await;
            assert!(
                begin.elapsed() <= LOOK_TIMEOUT,
                "{fault} at {at}: {:?}",
                begin.elapsed()
            );
            let shown = format!("{report:?}");
            assert!(
                !shown.contains(SECRET_TEXT) && shown.len() < 2_000,
                "{fault} at {at}: {shown}"
            );
            let states: Vec<&Observed<()>> = report.requisites.values().collect();
            assert!(!states.contains(&&Observed::Absent), "{fault} at {at}: {shown}");
            let is_silent = answer.is_none();
            if at == 0 && is_silent {
                assert_eq!(report, JoinReport::of(Server::Silent));
                assert_eq!(lab.asked().len(), 1, "the rest is not asked");
            } else if at == all {
                let expected = match fault {
                    "forbidden" | "no credentials" => Endpoint::Refuses,
                    "silence" => Endpoint::Silent,
                    _ => Endpoint::Fails,
                };
                assert_eq!(report.endpoint, Some(expected), "{fault}");
                assert!(states.iter().all(|one| **one == Observed::Present(())));
            } else if fault != "other types" || at < 3 {
                let position = |requisite: Requisite| Requisite::OF_KUBEADM.iter().position(|one| *one == requisite);
                for (requisite, state) in &report.requisites {
                    let position = position(*requisite).unwrap();
                    let is_unknown = position == at || is_silent && position > at;
                    assert_eq!(
                        unknown(state).is_some(),
                        is_unknown,
                        "{fault} at {at}: {requisite:?} {state:?}"
                    );
                }
                let why = unknown(&report.requisites[&Requisite::OF_KUBEADM[at]]).unwrap();
                let is_refused = *why == UnknownReason::NotPermitted;
                assert_eq!(
                    is_refused,
                    matches!(fault, "forbidden" | "no credentials"),
                    "{fault} at {at}"
                );
            }
            cases += 1;
        }
    }
    assert_eq!(cases, (all + 1) * faults().len());
}

#[tokio::test(start_paused = true)]
async fn kubeconfig_that_is_missing_or_cannot_be_used_is_reported_without_its_content() {
    let missing = Lab::new(|_, asked| complete(asked));
    let why = |report: JoinReport| match report.server {
        Server::NoAccess(why) => why,
        other => panic!("{other:?}"),
    };
    let shown = why(missing.look(true).await);
    assert!(shown.contains("Secret edge-kubeconfig does not exist; "), "{shown}");
    for user in ["tokenFile", "client-certificate"] {
        let lab = Lab::new(|_, asked| complete(asked))
            .with_kubeconfig(&kubeconfig(user))
            .await;
        let shown = why(lab.look(true).await);
        assert!(
            shown.contains("it names files; ") && !shown.contains(SECRET_TEXT),
            "{shown}"
        );
        assert_eq!(lab.asked(), [], "nothing is asked with it");
    }
}

#[tokio::test(start_paused = true)]
async fn workers_that_silent_servers_hold_are_limited() {
    let lab = lab(|_, _| None).await;
    lab.joins.set_wake(Box::new(|_| ()), 10);
    let waiters = ["a", "b", "c"].map(key);
    let [first, second, third] = &waiters;
    let question = question(true);
    let look = |waiter| lab.joins.look(&question, waiter);
    let (first, second, third) = tokio::join!(look(first), look(second), look(third));
    assert_eq!(first.unwrap(), JoinReport::of(Server::Silent));
    assert_eq!(second.unwrap(), JoinReport::of(Server::Silent));
    assert!(is_busy(&third.unwrap_err()), "a namespace holds two workers at most");
}

#[test]
fn kubeconfig_without_credentials_has_the_address_and_the_authority_alone() {
    let config: Kubeconfig = Kubeconfig::from_yaml(&kubeconfig("token")).unwrap();
    for (host, server) in [
        ("edge.example.org", "https://edge.example.org:443"),
        ("192.0.2.9", "https://192.0.2.9:443"),
        ("2001:db8::1", "https://[2001:db8::1]:443"),
    ] {
        let anonymous = anonymous::kubeconfig(&config, host, 443).unwrap();
        let cluster = anonymous.clusters[0].cluster.clone().unwrap();
        assert_eq!(cluster.server.as_deref(), Some(server));
        assert_eq!(cluster.certificate_authority_data.as_deref(), Some("QQ=="));
        assert_eq!(cluster.tls_server_name, None);
        let shown: Value = serde_json::to_value(&anonymous).unwrap();
        assert!(!shown.to_string().contains(SECRET_TEXT), "{shown}");
        assert_eq!(anonymous.auth_infos.len(), 1);
    }
    for broken in ["current-context: x", "contexts: []", "clusters: []"] {
        let text = format!("{{apiVersion: v1, kind: Config, {broken}}}");
        let config = Kubeconfig::from_yaml(&text).unwrap_or_default();
        assert!(anonymous::kubeconfig(&config, "h", 443).is_none(), "{broken}");
    }
}
