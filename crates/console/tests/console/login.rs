//! A login that ends: all watches end with it, pages say so, and it goes on with the next login of the same user only.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::header::AUTHORIZATION;
use http::{Request, Response, StatusCode};
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::core::GroupVersionKind;
use metal3_console::Console;
use metal3_console::login::{Kubeconfig, Source as _};
use metal3_domain::clock::{Clock, SystemClock};
use metal3_runtime::client::{Chosen, ClientFactory, Settings};
use metal3_runtime::metrics::Metrics;
use metal3_sim_cluster::Cluster;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tower::{BoxError, ServiceExt as _, service_fn};

use crate::world::{Browser, PATIENCE, cluster, console, create_host, create_namespace, options};

/// The question who logs in.
const REVIEW: &str = "/selfsubjectreviews";

/// What the door of the API server knows, and what passed it.
#[derive(Default)]
struct Door {
    /// Users by their tokens.
    users: BTreeMap<String, String>,
    /// A part of paths whose own server accepts no login.
    refused: Option<&'static str>,
    /// User, and path without its query; without a user for what was refused.
    passed: Vec<(Option<String>, String)>,
}

/// An API server with logins by tokens, a kubeconfig, and its console.
struct World {
    cluster: Cluster,
    door: Arc<Mutex<Door>>,
    address: SocketAddr,
    folder: PathBuf,
    _tasks: JoinSet<()>,
}

impl World {
    async fn start(name: &str) -> Self {
        let (cluster, door) = (cluster(), Arc::new(Mutex::new(Door::default())));
        let (own, state) = (cluster.clone(), Arc::clone(&door));
        let router = Router::new().fallback(move |request: Request<Body>| {
            let (own, state) = (own.clone(), Arc::clone(&state));
            async move { pass(&own, &state, request).await }
        });
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { drop(axum::serve(listener, router).await) });
        let folder = std::env::temp_dir().join(format!("metal3-console-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        create_host(&cluster, "default", "first").await;
        let world = Self {
            cluster,
            door,
            address,
            folder,
            _tasks: tasks,
        };
        world.accept("ann-1", "ann");
        world.write(&json!({ "token": "ann-1" }));
        world
    }

    /// Has a token accepted, as one of a user.
    fn accept(&self, token: &str, user: &str) {
        self.door.lock().users.insert(token.to_owned(), user.to_owned());
    }

    fn end(&self, token: &str) {
        self.door.lock().users.remove(token);
    }

    /// Writes the kubeconfig with this login.
    fn write(&self, login: &Value) {
        let config = json!({ "apiVersion": "v1", "kind": "Config", "current-context": "here",
            "clusters": [{ "name": "here", "cluster": { "server": format!("http://{}", self.address) } }],
            "contexts": [{ "name": "here", "context": { "cluster": "here", "user": "me", "namespace": "default" } }],
            "users": [{ "name": "me", "user": login }] });
        std::fs::write(self.kubeconfig(), config.to_string()).unwrap();
    }

    fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    async fn console(&self) -> Console {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
        let requests = ClientFactory::new(
            Settings::new("test", "1"),
            Arc::clone(&clock),
            Metrics::new().requests(),
        );
        let chosen = Chosen {
            kubeconfig: Some(self.kubeconfig().display().to_string()),
            context: None,
        };
        let logins = Arc::new(Kubeconfig::new(&chosen, requests));
        let client = logins.connect().await.unwrap();
        let options = options(false);
        Console::open_with((logins, client), clock, &options, |_| {})
            .await
            .unwrap()
    }

    /// A console that has listed all, and a browser.
    async fn opened(&self) -> (Console, Browser) {
        let console = self.console().await;
        tokio::time::timeout(PATIENCE, console.listed()).await.unwrap();
        let browser = Browser::log_in(&console).await;
        browser.until("/api/fleet", |fleet| hosts(fleet) == ["first"]).await;
        (console, browser)
    }

    /// Requests of a user, or refused ones, for paths with this part.
    fn passed(&self, user: Option<&str>, part: &str) -> usize {
        let door = self.door.lock();
        let is_one = |(by, path): &&(Option<String>, String)| by.as_deref() == user && path.contains(part);
        door.passed.iter().filter(is_one).count()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.folder));
    }
}

async fn pass(cluster: &Cluster, door: &Mutex<Door>, request: Request<Body>) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let token = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let token = token
        .and_then(|token| token.strip_prefix("Bearer "))
        .unwrap_or_default()
        .to_owned();
    let user = {
        let mut door = door.lock();
        let user = door.users.get(&token).cloned();
        let user = user.filter(|_| !door.refused.is_some_and(|part| path.contains(part)));
        door.passed.push((user.clone(), path));
        user
    };
    let Some(user) = user else {
        let status = json!({ "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "Unauthorized", "reason": "Unauthorized", "code": 401 });
        let mut refused = Response::new(Body::from(status.to_string()));
        *refused.status_mut() = StatusCode::UNAUTHORIZED;
        return refused;
    };
    cluster.service(&user).oneshot(request).await.unwrap().map(Body::new)
}

/// The names of the hosts of a fleet.
fn hosts(fleet: &Value) -> Vec<&str> {
    let rows = fleet["rows"].as_array().into_iter().flatten();
    rows.filter_map(|row| row["name"].as_str()).collect()
}

fn is_ended(fleet: &Value) -> bool {
    fleet["scope"].get("login").is_some()
}

/// What a page asks when it shows a host: it finds the end of the login before the next question of the console does.
async fn doubt(browser: &Browser) -> Value {
    browser.get("/api/rights?namespace=default&name=first").await.json()
}

async fn act(browser: &Browser) -> Value {
    let host = browser.get("/api/host?namespace=default&name=first").await.json();
    let actions = host.pointer("/actions").and_then(Value::as_array).unwrap();
    let is_pause = |one: &&Value| one.pointer("/action").is_some_and(|action| action == "pause");
    let consequence = actions.iter().find(is_pause).unwrap().pointer("/consequence");
    let wanted = json!({ "namespace": "default", "name": "first", "uid": host.pointer("/uid"), "action": "pause", "consequence": consequence });
    browser.act(&wanted).await.json()
}

async fn create_cluster(world: &World, name: &str) {
    let kind = GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Cluster");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(world.cluster.client("admin"), "default", &resource);
    let object = json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": name, "namespace": "default" },
        "spec": { "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Cluster", "name": name } } });
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap())
        .await
        .unwrap();
}

/// The whole way: the end is said at once and with its time, all watches end with it, nothing can be done, and
/// the next login of the same user goes on where it was.
#[tokio::test(flavor = "multi_thread")]
async fn end_of_the_login_is_said_and_ends_all_watches_until_the_next_login() {
    let world = World::start("ends").await;
    let (_console, browser) = world.opened().await;
    let mut stream = browser.open_stream().await;
    let hello = browser.stream_until(&mut stream, "\"login\":").await;
    assert!(hello.contains("\"login\":null"), "{hello}");
    world.end("ann-1");
    let rights = doubt(&browser).await;
    assert!(
        rights["may"] == false && rights["why"].as_str().unwrap().contains("does not accept the login"),
        "{rights}"
    );
    let event =
        browser.stream_until(&mut stream, "event: login").await + &browser.stream_until(&mut stream, "isHidden").await;
    assert!(event.contains("kubectl auth whoami"), "{event}");
    let fleet = browser.until("/api/fleet", is_ended).await;
    let since = fleet["scope"]["login"]["since"].as_str().unwrap().to_owned();
    assert!(since.ends_with('Z') && hosts(&fleet) == ["first"], "{fleet}");
    let done = act(&browser).await;
    assert!(
        done["done"] == false && done["text"].as_str().unwrap().starts_with("Nothing was changed"),
        "{done}"
    );
    // Neither kind is followed, whichever of them noticed the end.
    create_host(&world.cluster, "default", "second").await;
    create_cluster(&world, "late").await;
    let fleet = browser.get("/api/fleet").await.json();
    assert!(
        hosts(&fleet) == ["first"] && fleet["scope"]["login"]["since"] == *since,
        "{fleet}"
    );
    assert_eq!(browser.get("/api/clusters").await.json(), json!({ "clusters": [] }));

    world.accept("ann-2", "ann");
    world.write(&json!({ "token": "ann-2" }));
    browser.stream_until(&mut stream, "event: login\ndata: null").await;
    let all = |fleet: &Value| hosts(fleet) == ["first", "second"] && !is_ended(fleet) && fleet["scope"]["pending"] == 0;
    browser.until("/api/fleet", all).await;
    let clusters = |found: &Value| found["clusters"].as_array().is_some_and(|all| all.len() == 1);
    browser.until("/api/clusters", clusters).await;
    assert_eq!(doubt(&browser).await["may"], true);
    assert_eq!(act(&browser).await["done"], true);
}

/// A kubeconfig that was written for another user is not used, and what the first one read is not shown.
#[tokio::test(flavor = "multi_thread")]
async fn login_of_another_user_is_not_used_and_hides_what_was_read() {
    let world = World::start("other").await;
    let (_console, browser) = world.opened().await;
    world.end("ann-1");
    world.accept("bob-1", "bob");
    world.write(&json!({ "token": "bob-1" }));
    doubt(&browser).await;
    browser.until_status("/api/fleet", 409).await;
    for path in [
        "/api/fleet",
        "/api/waits",
        "/api/clusters",
        "/api/pools",
        "/api/host?namespace=default&name=first",
    ] {
        let answer = browser.get(path).await;
        assert!(
            answer.status == 409 && !answer.body.contains("first"),
            "{path}: {answer:?}"
        );
    }
    let mut stream = browser.open_stream().await;
    let hello = browser.stream_until(&mut stream, "\"isHidden\":true").await;
    assert!(
        hello.contains("logs in as bob now") && hello.contains("started as ann"),
        "{hello}"
    );
    assert!(doubt(&browser).await["may"] == false);
    let others = world.passed(Some("bob"), "") - world.passed(Some("bob"), REVIEW);
    assert_eq!(others, 0, "requests with the login of another user");

    world.accept("ann-2", "ann");
    world.write(&json!({ "token": "ann-2" }));
    browser.stream_until(&mut stream, "event: login\ndata: null").await;
    browser.until("/api/fleet", |fleet| hosts(fleet) == ["first"]).await;
}

/// A program of the kubeconfig gives the token of another user, without a change of a file that the console reads.
#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn token_of_another_user_from_a_program_is_not_used() {
    let world = World::start("program").await;
    let file = world.folder.join("credential");
    // It is about to expire, so that the program runs for each request.
    let give = |token: &str| {
        let status = json!({ "token": token, "expirationTimestamp": "2020-01-01T00:00:00Z" });
        let credential =
            json!({ "apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status });
        std::fs::write(&file, credential.to_string()).unwrap();
    };
    give("ann-1");
    world.write(&json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "cat", "args": [file.display().to_string()],
        "interactiveMode": "Never" } }));
    let (_console, browser) = world.opened().await;
    world.accept("ann-2", "ann");
    give("ann-2");
    assert_eq!(doubt(&browser).await["may"], true, "another token of the same user");
    world.accept("bob-1", "bob");
    give("bob-1");
    let other = browser.get("/api/rights?namespace=default&name=other").await.json();
    assert_eq!(other["may"], true, "rights of the namespace are known");
    create_namespace(&world.cluster, "far").await;
    let far = browser.get("/api/rights?namespace=far&name=host").await.json();
    assert!(
        far["may"] == false && far["why"].as_str().unwrap().contains("logs in as bob now"),
        "{far}"
    );
    assert_eq!(browser.get("/api/fleet").await.status, 409);
    let others = world.passed(Some("bob"), "") - world.passed(Some("bob"), REVIEW);
    assert_eq!(others, 0, "requests with the login of another user");
    give("ann-2");
    browser.until_status("/api/fleet", 200).await;
}

/// The server of one API refuses the login that the API server accepts: that kind is named, and all others go on.
#[tokio::test(flavor = "multi_thread")]
async fn refusal_by_the_server_of_one_api_is_not_the_end() {
    let world = World::start("aggregated").await;
    world.door.lock().refused = Some("/ippools");
    let console = world.console().await;
    let browser = Browser::log_in(&console).await;
    let is_named = |fleet: &Value| {
        fleet["scope"]["notices"]
            .to_string()
            .contains("look at the APIService of its group")
    };
    let fleet = browser
        .until("/api/fleet", |fleet| is_named(fleet) && hosts(fleet) == ["first"])
        .await;
    let notices = fleet["scope"]["notices"].as_array().unwrap();
    assert!(
        notices.len() == 1 && notices[0].as_str().unwrap().contains("IPPool") && !is_ended(&fleet),
        "{fleet}"
    );
    create_host(&world.cluster, "default", "second").await;
    browser
        .until("/api/fleet", |fleet| {
            hosts(fleet) == ["first", "second"] && !is_ended(fleet)
        })
        .await;
    world.door.lock().refused = None;
    browser.until("/api/fleet", |fleet| !is_named(fleet)).await;
}

/// The login had ended before the console was started.
#[tokio::test(flavor = "multi_thread")]
async fn console_that_starts_without_a_login_says_so_and_begins_with_the_next_one() {
    let world = World::start("late").await;
    world.end("ann-1");
    let console = world.console().await;
    let browser = Browser::log_in(&console).await;
    let fleet = browser.until("/api/fleet", is_ended).await;
    assert!(hosts(&fleet).is_empty() && fleet["scope"]["pending"] != 0, "{fleet}");
    world.accept("bob-1", "bob");
    world.write(&json!({ "token": "bob-1" }));
    browser
        .until("/api/fleet", |fleet| hosts(fleet) == ["first"] && !is_ended(fleet))
        .await;
}

/// Nothing is answered, not even that something is wrong: the page says so, as old as the last answer, and all is read again later.
#[tokio::test(flavor = "multi_thread")]
async fn silence_of_the_api_server_is_said_and_all_is_read_again_after_it() {
    let cluster = cluster();
    create_host(&cluster, "default", "first").await;
    let (service, is_away) = (cluster.service("viewer"), Arc::new(AtomicBool::new(false)));
    let away = Arc::clone(&is_away);
    let network = service_fn(move |request: Request<kube::client::Body>| {
        let (service, away) = (service.clone(), Arc::clone(&away));
        async move {
            if away.load(Ordering::SeqCst) {
                return Err::<_, BoxError>(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
            }
            Ok(service.oneshot(request).await?.map(Body::new))
        }
    });
    let console = console(kube::Client::new(network, "default")).await;
    let browser = Browser::log_in(&console).await;
    browser.until("/api/fleet", |fleet| hosts(fleet) == ["first"]).await;
    is_away.store(true, Ordering::SeqCst);
    doubt(&browser).await;
    let fleet = browser.until("/api/fleet", is_ended).await;
    let login = &fleet["scope"]["login"];
    assert!(
        login["what"] == "The API server does not answer" && hosts(&fleet) == ["first"],
        "{fleet}"
    );
    let done = act(&browser).await;
    assert!(
        done["text"]
            .as_str()
            .unwrap()
            .contains("The API server does not answer"),
        "{done}"
    );
    create_host(&cluster, "default", "second").await;
    assert_eq!(hosts(&browser.get("/api/fleet").await.json()), ["first"]);
    is_away.store(false, Ordering::SeqCst);
    let all = |fleet: &Value| hosts(fleet) == ["first", "second"] && !is_ended(fleet) && fleet["scope"]["pending"] == 0;
    browser.until("/api/fleet", all).await;
}

/// The timers of the system for the connections to a port, and hundredths of seconds until they expire.
#[cfg(target_os = "linux")]
fn timers(port: u16) -> Vec<(String, u64)> {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let to = format!(":{port:04X}");
    let open = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let open = open.filter(|line| line.get(2).is_some_and(|peer| peer.ends_with(&to)) && line.get(3) == Some(&"01"));
    let timers = open.map(|line| {
        let (kind, left) = line.get(5).unwrap().split_once(':').unwrap();
        (kind.to_owned(), u64::from_str_radix(left, 16).unwrap())
    });
    timers.collect()
}

/// A peer that is gone without a word is noticed while a watch waits for it.
#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn connections_to_the_api_server_are_tried_while_they_are_silent() {
    const ALIVE: &str = "02";
    let world = World::start("alive").await;
    let (_console, _browser) = world.opened().await;
    let tried = async {
        loop {
            let timers = timers(world.address.port());
            // A timer of what was sent a moment ago comes first.
            let is_tried = |(kind, left): &(String, u64)| kind == ALIVE && *left <= 30 * 100;
            if timers.len() > 5 && timers.iter().all(is_tried) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let tried = tokio::time::timeout(PATIENCE, tried).await;
    assert!(tried.is_ok(), "{:?}", timers(world.address.port()));
}
