use std::convert::Infallible;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams, WatchParams};
use kube::core::{Status, WatchEvent};
use metal3_domain::clock::SystemClock;
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::service_fn;

use super::*;
use crate::clock::TimerClock;
use crate::guard::tests::Guarding;
use crate::guard::{self, DeploymentGuard, ForeignDeployment, GuardStatus};
use crate::lease::tests::Leading;
use crate::lease::{LeaderElector, LeaseTarget, LeaseTimings};
use crate::metrics::Metrics;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

const EMPTY_LIST: &str = r#"{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#;
const EVENT: &str = r#"{"type":"ADDED","object":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}}"#;

fn whole(code: u16, text: &'static str) -> Answer {
    let body = Full::from(text).boxed_unsync();
    Response::builder().status(code).body(body).unwrap()
}

/// The first piece at once, the rest after a pause.
fn in_pieces(first: &'static str, pause: Duration, rest: &'static str) -> Answer {
    let later = stream::once(async move {
        sleep(pause).await;
        rest
    });
    let pieces = stream::iter([first]).chain(later);
    let frames = pieces.map(|piece| Ok(Frame::data(Bytes::from_static(piece.as_bytes()))));
    Response::new(StreamBody::new(frames).boxed_unsync())
}

fn factory(change: impl FnOnce(&mut Settings)) -> ClientFactory {
    let mut settings = Settings::new("manager", "v1");
    change(&mut settings);
    let clock = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    ClientFactory::new(settings, clock, Metrics::new().requests())
}

/// A server that answers each request with the result of `answer`.
fn served<F>(factory: &ClientFactory, answer: impl Fn(Request<Body>) -> F + Clone + Send + 'static) -> Api<ConfigMap>
where
    F: Future<Output = Answer> + Send + 'static,
{
    let service = service_fn(move |request| {
        let answer = answer(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    Api::namespaced(factory.over(service, "sim"), "default")
}

fn refusal(error: kube::Error) -> Status {
    match error {
        kube::Error::Api(status) => *status,
        other => panic!("not an API status: {other}"),
    }
}

fn is_no_answer(error: &kube::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.is::<ResponseTimeout>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[tokio::test(start_paused = true)]
async fn a_rejected_request_is_sent_once() {
    for code in [429, 500, 503, 504] {
        let sent = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&sent);
        let api = served(&factory(|_| {}), move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
            async move { whole(code, "not now") }
        });
        assert_eq!(refusal(api.get("a").await.unwrap_err()).code, code);
        assert_eq!(sent.load(Ordering::Relaxed), 1, "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_response_ends_after_thirty_seconds() {
    let api = served(&factory(|_| {}), |_| pending());
    let before = Instant::now();
    let error = api.get("a").await.unwrap_err();
    assert!(is_no_answer(&error), "{error}");
    assert_eq!(before.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_response_that_stops_in_the_middle_ends_after_thirty_seconds() {
    let (first, rest) = EMPTY_LIST.split_at(20);
    let api = served(&factory(|_| {}), move |_| async {
        in_pieces(first, Duration::from_hours(1), rest)
    });
    let before = Instant::now();
    let error = api.list(&ListParams::default()).await.unwrap_err();
    assert!(is_no_answer(&error), "{error}");
    assert_eq!(before.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn a_slow_answer_within_the_time_arrives_whole() {
    let (first, rest) = EMPTY_LIST.split_at(20);
    let api = served(&factory(|_| {}), move |_| async {
        in_pieces(first, Duration::from_secs(29), rest)
    });
    assert_eq!(api.list(&ListParams::default()).await.unwrap().items.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_response_of_a_tenant_beyond_the_limit_is_not_read() {
    let list = |limit| async move {
        let api = served(&factory(|settings| settings.longest_response = limit), |_| async {
            whole(200, EMPTY_LIST)
        });
        api.list(&ListParams::default()).await
    };
    assert!(list(Some(EMPTY_LIST.len())).await.is_ok());
    assert!(list(Some(EMPTY_LIST.len() - 1)).await.is_err());
    assert!(
        Settings::new("manager", "v1")
            .for_tenants(Allowed::default())
            .longest_response
            .is_some()
    );
    // An error response has a limit too.
    let api = served(&factory(|settings| settings.longest_response = Some(10)), |_| async {
        whole(500, EMPTY_LIST)
    });
    assert!(!matches!(
        api.list(&ListParams::default()).await,
        Err(kube::Error::Api(_)) | Ok(_)
    ));
}

#[tokio::test(start_paused = true)]
async fn error_of_a_tenant_is_its_code_and_its_delay_and_its_body_is_not_read() {
    let factory = factory(|settings| *settings = settings.clone().for_tenants(Allowed::default()));
    for watch in [false, true] {
        let api = served(&factory, |_| async {
            let endless = stream::repeat_with(|| -> Result<Frame<Bytes>, Infallible> { panic!("the body is read") });
            let body = StreamBody::new(endless).boxed_unsync();
            let answer = Response::builder().status(429).header("retry-after", "7");
            answer.body(body).unwrap()
        });
        let error = if watch {
            api.watch(&WatchParams::default(), "1").await.map(drop).unwrap_err()
        } else {
            api.list(&ListParams::default()).await.map(drop).unwrap_err()
        };
        let status = refusal(error);
        assert_eq!((status.code, status.message.as_str()), (429, ""));
        assert_eq!(status.details.unwrap().retry_after_seconds, 7);
    }
}

#[tokio::test]
async fn connections_go_to_allowed_addresses_only() {
    drop(rustls::crypto::ring::default_provider().install_default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepted = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&accepted);
    // A connection that is accepted is closed: only whether there is one counts.
    let accepting = async move {
        while listener.accept().await.is_ok() {
            count.fetch_add(1, Ordering::Relaxed);
        }
    };
    // Returns the error, and whether a connection was opened.
    let connect = |host: &'static str, entries: &'static [&'static str], proxy: Option<&'static str>| {
        let accepted = Arc::clone(&accepted);
        async move {
            let mut config = Config::new(format!("http://{host}:{port}").parse().unwrap());
            config.proxy_url = proxy.map(|proxy| proxy.parse().unwrap());
            let factory = factory(|settings| settings.destinations = Allowed::parse(entries.iter().copied()).unwrap());
            accepted.store(0, Ordering::Relaxed);
            let allowed = match factory.connect_allowed(config) {
                Ok(client) => {
                    let error = client.apiserver_version().await.unwrap_err();
                    !is_not_allowed(&error)
                }
                Err(ConnectError::NotAllowed) => false,
                Err(error) => panic!("{error}"),
            };
            (allowed, accepted.load(Ordering::Relaxed) > 0)
        }
    };
    let checks = async {
        for entries in [&["127.0.0.0/8", "::1"][..], &["localhost"]] {
            assert_eq!(connect("localhost", entries, None).await, (true, true));
        }
        assert_eq!(connect("127.0.0.1", &["127.0.0.1"], None).await, (true, true));
        // The name, the address, another form of the address, and an IPv4 address written as IPv6.
        for host in ["localhost", "127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]"] {
            assert_eq!(
                connect(host, &["192.0.2.0/24", "api.example.org"], None).await,
                (false, false),
                "{host}"
            );
        }
        // A proxy would connect to any address.
        assert_eq!(
            connect("127.0.0.1", &["127.0.0.1"], Some("http://127.0.0.1:9")).await,
            (false, false)
        );
    };
    tokio::select! {
        () = checks => {}
        () = accepting => panic!("the listener ended"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_watch_may_be_silent_for_an_hour() {
    let api = served(&factory(|_| {}), |_| async {
        in_pieces("", Duration::from_hours(1), EVENT)
    });
    let mut events = api.watch(&WatchParams::default(), "0").await.unwrap().boxed();
    assert!(matches!(events.try_next().await, Ok(Some(WatchEvent::Added(_)))));
}

#[tokio::test(start_paused = true)]
async fn requests_beyond_the_limit_wait_and_watches_take_no_slot() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let factory = factory(|settings| settings.in_flight = 2);
    let api = served(&factory, move |request| {
        let (now, most) = (Arc::clone(&now), Arc::clone(&most));
        async move {
            if request.uri().query().is_some_and(|query| query.contains("watch=true")) {
                return in_pieces("", Duration::from_hours(1), EVENT);
            }
            most.fetch_max(now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            sleep(Duration::from_secs(10)).await;
            now.fetch_sub(1, Ordering::Relaxed);
            whole(200, EMPTY_LIST)
        }
    });
    let watching = WatchParams::default();
    let watches = [(); 3].map(|()| api.watch(&watching, "0"));
    let watches = futures::future::try_join_all(watches).await.unwrap();
    let before = Instant::now();
    let params = ListParams::default();
    let lists = (0..5).map(|_| api.list(&params));
    futures::future::try_join_all(lists).await.unwrap();
    assert_eq!(seen.load(Ordering::Relaxed), 2);
    assert_eq!(
        before.elapsed().as_secs(),
        30,
        "five lists, two at once, ten seconds each"
    );
    drop(watches);
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_free_again_when_its_caller_is_dropped() {
    let factory = factory(|settings| settings.in_flight = 1);
    let api = served(&factory, |request| async move {
        if request.uri().path().ends_with("/hung") {
            return pending().await;
        }
        whole(200, EMPTY_LIST)
    });
    assert!(timeout(Duration::from_secs(1), api.get("hung")).await.is_err());
    let list = timeout(Duration::from_secs(1), api.list(&ListParams::default())).await;
    assert!(list.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn the_retry_delay_of_a_server_reaches_the_caller() {
    let status = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"busy","reason":"TooManyRequests","code":429}"#;
    let own = r#"{"kind":"Status","apiVersion":"v1","message":"m","reason":"R","code":429,"details":{"retryAfterSeconds":3}}"#;
    // Code, body, header; message and wait in the error.
    let rows = [
        (
            429,
            "Too many requests, please try again later.\n",
            "1",
            "Too many requests, please try again later.",
            1,
        ),
        (503, "", "60", "", 60),
        (429, status, "7", "busy", 7),
        (429, own, "7", "m", 3),
        (503, "[]", "9", "[]", 9),
    ];
    for (code, body, header, message, wait) in rows {
        let api = served(&factory(|_| {}), move |_| async move {
            let mut answer = whole(code, body);
            answer
                .headers_mut()
                .insert("retry-after", HeaderValue::from_static(header));
            answer
        });
        let seen = refusal(api.get("a").await.unwrap_err());
        assert_eq!((seen.code, seen.message.as_str()), (code, message));
        assert_eq!(seen.details.unwrap().retry_after_seconds, wait, "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_spreads_requests_after_the_burst() {
    let factory = factory(|settings| settings.rate_limit = RateLimit::new(10.0, 5));
    let api = served(&factory, |_| async { whole(200, EMPTY_LIST) });
    let before = Instant::now();
    let params = ListParams::default();
    let lists = (0..25).map(|_| api.list(&params));
    futures::future::try_join_all(lists).await.unwrap();
    assert_eq!(
        before.elapsed().as_secs(),
        2,
        "five at once, twenty at a tenth of a second"
    );
}

#[tokio::test(start_paused = true)]
async fn requests_have_a_user_agent_and_are_counted() {
    let agents = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&agents);
    let metrics = Metrics::new();
    let mut settings = Settings::new("capm3\n", "v1.2.3");
    settings.timeout = Duration::from_secs(3);
    let factory = ClientFactory::new(settings, Arc::new(SystemClock::start()), metrics.requests());
    let api = served(&factory, move |request| {
        seen.lock().push(request.headers()[http::header::USER_AGENT].clone());
        async move {
            if request.uri().path().ends_with("/hung") {
                return pending().await;
            }
            whole(404, "")
        }
    });
    drop(api.get("a").await);
    drop(api.get("hung").await);
    for agent in agents.lock().iter() {
        assert!(agent.to_str().unwrap().starts_with("capm3/v1.2.3 ("), "{agent:?}");
    }
    let text = metrics.render();
    for code in ["404", "<error>"] {
        let line = format!("rest_client_requests_total{{code=\"{code}\",method=\"GET\",host=\"sim\"}} 1\n");
        assert!(text.contains(&line), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_write_that_waited_for_a_slot_beyond_the_deadline_is_not_sent() {
    let cluster = Cluster::start(&Options::seeded(1));
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let leadership = leader_in(&cluster, "default", &clock).await;
    let factory = factory(|settings| settings.in_flight = 1).writing_for(leadership, Guard::forced());
    let api: Api<ConfigMap> = Api::namespaced(factory.over(cluster.service("a"), "sim"), "default");
    let object = |name: &str| {
        let mut object = ConfigMap::default();
        object.metadata.name = Some(name.to_owned());
        object
    };
    let params = PostParams::default();
    api.create(&params, &object("early")).await.unwrap();
    // The one slot is taken for twenty seconds; the deadline lies ten after the lease was taken.
    let slow = Fault::Delay(Duration::from_secs(20));
    cluster.inject(Plan::none().with(Rule::at(1, slow).verb("list")));
    let (everything, late) = (ListParams::default(), object("late"));
    let behind = async {
        sleep(Duration::from_secs(1)).await;
        api.create(&params, &late).await
    };
    let (listed, created) = tokio::join!(api.list(&everything), behind);
    assert!(listed.is_ok());
    let error = created.unwrap_err();
    let kube::Error::Service(cause) = &error else {
        panic!("not rejected by the client: {error}");
    };
    assert!(
        matches!(cause.downcast_ref(), Some(WriteBlocked::NotLeading(_))),
        "{error}"
    );
    assert_eq!(cluster.audit().of("a", "create", "configmaps"), 1);
    assert!(api.get("early").await.is_ok(), "reads need no leadership");
}

#[tokio::test(start_paused = true)]
async fn writes_of_a_group_of_another_implementation_are_not_sent() {
    let cluster = Cluster::start(&Options::seeded(1));
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let foreign = ForeignDeployment::at("capm3", guard::CAPM3);
    let (_sentry, guard) = DeploymentGuard::new::<Guarding>(cluster.client("a"), foreign, Arc::clone(&clock));
    let factory = factory(|_| {}).writing_for(Leadership::without_election(clock), guard);
    let api: Api<ConfigMap> = Api::namespaced(factory.over(cluster.service("a"), "sim"), "default");
    let error = api.delete("a", &DeleteParams::default()).await.unwrap_err();
    let kube::Error::Service(cause) = &error else {
        panic!("not rejected by the client: {error}");
    };
    assert!(matches!(cause.downcast_ref(), Some(WriteBlocked::Idle(_))), "{error}");
    assert_eq!(cluster.audit().of("a", "delete", "configmaps"), 0);
}

/// A leader of the Lease `l` in this namespace, and what keeps it so for ten seconds.
async fn leader_in(cluster: &Cluster, namespace: &str, clock: &Arc<dyn Clock>) -> Leadership {
    let place = LeaseTarget {
        namespace: namespace.into(),
        name: "l".into(),
        identity: "a".into(),
    };
    let lease = Metrics::new().lease("l");
    let (elector, leadership) = LeaderElector::new::<Leading>(
        cluster.client("a"),
        place,
        LeaseTimings::default(),
        Arc::clone(clock),
        lease,
    );
    // Leads, and is not polled again.
    drop(timeout(Duration::from_secs(1), elector.run(CancellationToken::new())).await);
    leadership
}

#[tokio::test(start_paused = true)]
async fn leader_records_what_it_ordered_while_the_other_manager_waits_for_its_lease() {
    let cluster = Cluster::start(&Options::seeded(1));
    let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH));
    let present = |namespace: &str| {
        Guard::fixed(GuardStatus::Present {
            foreign: ForeignDeployment::at("hosts", (namespace, "m")),
            uid: None,
            replicas: 1,
        })
    };
    let unknown = Guard::fixed(GuardStatus::Unknown {
        foreign: ForeignDeployment::at("hosts", ("default", "m")),
        why: "403".to_owned(),
    });
    let elected = leader_in(&cluster, "default", &clock).await;
    let always = Leadership::without_election(Arc::clone(&clock));
    for (leadership, guard, is_sent) in [
        (&elected, present("default"), true),
        (&elected, present("elsewhere"), false),
        (&elected, unknown, false),
        (&always, present("default"), false),
    ] {
        assert!(
            check_write_allowed(leadership, &guard).is_err(),
            "an order is never sent"
        );
        let factory = factory(|_| {}).writing_for(leadership.clone(), guard.clone());
        let api: Api<ConfigMap> = Api::namespaced(factory.over(cluster.service("a"), "sim"), "default");
        let deleted = api.delete("absent", &DeleteParams::default()).await.unwrap_err();
        let was_sent = matches!(&deleted, kube::Error::Api(status) if status.code == 404);
        assert_eq!(was_sent, is_sent, "{guard:?}: {deleted}");
    }
    sleep(Duration::from_secs(11)).await;
    let late = factory(|_| {}).writing_for(elected, present("default"));
    let api: Api<ConfigMap> = Api::namespaced(late.over(cluster.service("a"), "sim"), "default");
    let error = api.delete("absent", &DeleteParams::default()).await.unwrap_err();
    assert!(matches!(error, kube::Error::Service(_)), "the lease has ended: {error}");
}

#[tokio::test]
async fn over_a_socket_a_refused_request_is_sent_once_as_well() {
    let cluster = Cluster::start(&Options::seeded(1));
    let serving = cluster.serve(0, "manager").await.unwrap();
    let refused = Fault::Refused {
        code: 503,
        retry_after: Some(2),
    };
    cluster.inject(Plan::none().with(Rule::at(1, refused)));
    let metrics = Metrics::new();
    let factory = ClientFactory::new(
        Settings::new("m", "v1"),
        Arc::new(SystemClock::start()),
        metrics.requests(),
    );
    let client = factory.connect(Config::new(serving.url().parse().unwrap())).unwrap();
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let status = refusal(api.get("a").await.unwrap_err());
    assert_eq!(status.details.unwrap().retry_after_seconds, 2);
    assert_eq!(cluster.audit().of("manager", "get", "configmaps"), 1);
    assert!(api.list(&ListParams::default()).await.unwrap().items.is_empty());
    assert!(
        metrics.render().contains("host=\"127.0.0.1:"),
        "the host is the server's"
    );
    drop(api);
    serving.stop().await;
}

#[tokio::test]
async fn a_kubeconfig_that_is_missing_is_named() {
    let fault = load_config(Some(std::path::Path::new("/nonexistent/kubeconfig")))
        .await
        .unwrap_err();
    assert!(fault.to_string().contains("/nonexistent/kubeconfig"), "{fault}");
}

#[tokio::test]
async fn context_that_is_named_chooses_the_api_server() {
    let file = std::env::temp_dir().join(format!("metal3-contexts-{}", std::process::id()));
    let text = "{ current-context: a, contexts: [{ name: a, context: { cluster: a, user: u } }, { name: b, context: { cluster: b, \
                user: u, namespace: lab } }], users: [{ name: u, user: {} }], clusters: [{ name: a, cluster: { server: \
                'http://a.example' } }, { name: b, cluster: { server: 'http://b.example' } }] }";
    std::fs::write(&file, text).unwrap();
    let load = async |context: Option<&str>| {
        let chosen = Chosen {
            kubeconfig: file.to_str().map(str::to_owned),
            context: context.map(str::to_owned),
        };
        let config = load_viewer_config(&chosen).await.map_err(|fault| fault.to_string())?;
        Ok::<_, String>((config.cluster_url.host().unwrap().to_owned(), config.default_namespace))
    };
    let of = |host: &str, namespace: &str| Ok((host.to_owned(), namespace.to_owned()));
    assert_eq!(load(None).await, of("a.example", "default"));
    assert_eq!(load(Some("")).await, of("a.example", "default"));
    assert_eq!(load(Some("b")).await, of("b.example", "lab"));
    let fault = load(Some("c")).await.unwrap_err();
    assert!(fault.contains("metal3-contexts"), "{fault}");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_lease_client_times_out_after_half_of_the_renew_deadline_and_has_no_rate_limit() {
    let mut settings = Settings::new("m", "v1");
    settings.rate_limit = RateLimit::new(20.0, 30);
    let settings = settings.for_leases(Duration::from_secs(10));
    assert_eq!((settings.timeout, settings.rate_limit), (Duration::from_secs(5), None));
}

#[tokio::test]
async fn metrics_of_tenants_have_one_host_and_registered_codes() {
    let (metrics, clock) = (
        Metrics::new(),
        Arc::new(TimerClock::start(chrono::DateTime::UNIX_EPOCH)),
    );
    let settings = Settings::new("manager", "v1").for_tenants(Allowed::default());
    let factory = ClientFactory::new(settings, clock, metrics.requests());
    for number in 0..100 {
        let url = format!("http://{}{number}:hunter2@127.0.0.1:1", "a".repeat(1000));
        let client = factory.connect(Config::new(url.parse().unwrap())).unwrap();
        client.apiserver_version().await.unwrap_err();
    }
    for code in 200..999 {
        let code = http::StatusCode::from_u16(code).unwrap();
        metrics.requests().answered(code, "GET", "workload-clusters");
    }
    let text = metrics.render();
    assert!(!text.contains("hunter2") && !text.contains("aaaa"), "{text}");
    let series = text
        .lines()
        .filter(|line| line.starts_with("rest_client_requests_total{"));
    assert_eq!(series.clone().filter(|line| line.contains("<error>")).count(), 1);
    assert!(series.count() < 80, "{text}");
}
