//! Candidates on a simulated API server, under paused time.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{Patch, PatchParams, PostParams};
use metal3_domain::clock::{Clock, Monotonic};
use metal3_sim_cluster::{Cluster, Options};
use metal3_sim_faults::{Fault, Plan, Rule};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::super::{CAPM3_LEASE, Ended, HOSTS_LEASE, LeaderElector, Leadership, LeaseTarget, LeaseTimings};
use crate::clock::TimerClock;
use crate::metrics::Metrics;

const SECOND: Duration = Duration::from_secs(1);

/// A clock whose wall time can jump.
#[derive(Debug)]
struct AdjustableClock {
    timer: TimerClock,
    seconds_off: AtomicI64,
}

impl AdjustableClock {
    fn start() -> Arc<Self> {
        Arc::new(Self {
            timer: TimerClock::start(DateTime::UNIX_EPOCH),
            seconds_off: AtomicI64::new(0),
        })
    }

    fn jump(&self, seconds: i64) {
        self.seconds_off.fetch_add(seconds, Ordering::Relaxed);
    }
}

impl Clock for AdjustableClock {
    fn now(&self) -> DateTime<Utc> {
        self.timer.now() + TimeDelta::seconds(self.seconds_off.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Monotonic {
        self.timer.monotonic()
    }
}

struct TestEnv {
    cluster: Cluster,
    clock: Arc<AdjustableClock>,
    metrics: Metrics,
    tasks: JoinSet<(String, Ended)>,
}

impl TestEnv {
    fn start() -> Self {
        Self {
            cluster: Cluster::start(&Options::seeded(1)),
            clock: AdjustableClock::start(),
            metrics: Metrics::new(),
            tasks: JoinSet::new(),
        }
    }

    fn elector(&self, lease: &str, identity: &str) -> (LeaderElector, Leadership) {
        let place = LeaseTarget {
            namespace: "default".into(),
            name: lease.into(),
            identity: identity.into(),
        };
        let clock: Arc<dyn Clock> = self.clock.clone();
        let metrics = self.metrics.lease(lease);
        LeaderElector::new::<super::Leading>(
            self.cluster.client(identity),
            place,
            LeaseTimings::default(),
            clock,
            metrics,
        )
    }

    /// Starts an elector.
    fn campaign(&mut self, lease: &str, identity: &str) -> (Leadership, CancellationToken) {
        let (elector, leadership) = self.elector(lease, identity);
        let stop = CancellationToken::new();
        let (token, identity) = (stop.clone(), identity.to_owned());
        self.tasks.spawn(async move { (identity, elector.run(token).await) });
        (leadership, stop)
    }

    async fn record(&self, lease: &str) -> LeaseSpec {
        let api: Api<Lease> = Api::namespaced(self.cluster.client("reader"), "default");
        api.get(lease).await.unwrap().spec.unwrap()
    }

    async fn ended(&mut self) -> (String, Ended) {
        self.tasks.join_next().await.unwrap().unwrap()
    }
}

fn everything(fault: Fault) -> Plan {
    Plan::none().with(Rule::random(1000, fault))
}

#[tokio::test(start_paused = true)]
async fn one_of_two_candidates_leads_and_keeps_leading() {
    let mut env = TestEnv::start();
    let (a, _a) = env.campaign(CAPM3_LEASE, "a");
    a.acquired().await;
    let (b, _b) = env.campaign(CAPM3_LEASE, "b");
    for _ in 0..600 {
        sleep(SECOND).await;
        assert!(a.check().is_ok() && b.check().is_err());
    }
    assert_eq!(env.record(CAPM3_LEASE).await.lease_transitions, Some(0));
    assert!(
        env.metrics
            .render()
            .contains(&format!("leader_election_master_status{{name=\"{CAPM3_LEASE}\"}} "))
    );
    // A renewal every six seconds, and the leader reads only at the start. The other watches, and reads before each watch.
    let audit = env.cluster.audit();
    let of = |user, verb| audit.of(user, verb, "leases");
    assert!((99..=101).contains(&of("a", "update")), "{audit:?}");
    assert_eq!(
        (of("a", "get"), of("b", "get"), of("b", "watch")),
        (1, 3, 3),
        "{audit:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_clean_exit_hands_over_at_once() {
    let mut env = TestEnv::start();
    let (a, stop) = env.campaign(CAPM3_LEASE, "a");
    a.acquired().await;
    let (b, _b) = env.campaign(CAPM3_LEASE, "b");
    sleep(Duration::from_secs(30)).await;
    let before = Instant::now();
    stop.cancel();
    assert_eq!(env.ended().await, ("a".to_owned(), Ended::Released));
    assert!(a.check().is_err());
    b.acquired().await;
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
    assert_eq!(env.record(CAPM3_LEASE).await.lease_transitions, Some(1));
}

#[tokio::test(start_paused = true)]
async fn a_successor_waits_until_the_lease_of_a_crashed_leader_expires() {
    let mut env = TestEnv::start();
    let (elector, a) = env.elector(CAPM3_LEASE, "a");
    drop(timeout(Duration::from_secs(20), elector.run(CancellationToken::new())).await);
    let before = Instant::now();
    let (b, _b) = env.campaign(CAPM3_LEASE, "b");
    b.acquired().await;
    assert!(a.check().is_err());
    let waited = before.elapsed().as_secs();
    assert!((15..=17).contains(&waited), "{waited}");
    assert_eq!(env.record(CAPM3_LEASE).await.holder_identity.as_deref(), Some("b"));
}

#[tokio::test(start_paused = true)]
async fn candidates_that_may_not_watch_read_instead() {
    let mut env = TestEnv::start();
    let refused = Rule::random(1000, Fault::refused(403)).verb("watch");
    env.cluster.inject(Plan::none().with(refused));
    let (a, stop) = env.campaign(CAPM3_LEASE, "a");
    a.acquired().await;
    let (b, _b) = env.campaign(CAPM3_LEASE, "b");
    sleep(Duration::from_secs(30)).await;
    let reads = env.cluster.audit().of("b", "get", "leases");
    assert!((14..=16).contains(&reads), "{reads}");
    let before = Instant::now();
    stop.cancel();
    b.acquired().await;
    assert!(before.elapsed() <= Duration::from_secs(2), "{:?}", before.elapsed());
}

/// Writes while the process leads, and counts the rejected writes.
async fn write_while_leading(cluster: &Cluster, user: &str, leadership: &Leadership, refused: &AtomicI64) {
    let api: Api<ConfigMap> = Api::namespaced(cluster.client(user), "default");
    for number in 0_u64.. {
        sleep(Duration::from_millis(100)).await;
        if leadership.check().is_err() {
            refused.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let mut object = ConfigMap::default();
        object.metadata.name = Some(format!("{user}-{number}"));
        api.create(&PostParams::default(), &object).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_suspended_leader_sends_no_write_after_its_deadline() {
    // Pause of the old leader: from just beyond its deadline to long after the takeover.
    for pause in [10, 12, 60, 3600] {
        let mut env = TestEnv::start();
        let (elector, old) = env.elector(CAPM3_LEASE, "old");
        let refused = AtomicI64::new(0);
        let cluster = env.cluster.clone();
        let mut leader = pin!(elector.run(CancellationToken::new()));
        let mut writer = pin!(write_while_leading(&cluster, "old", &old, &refused));
        let both = async { tokio::join!(&mut leader, &mut writer).0 };
        // Ends between two writes, so that none is in flight.
        assert!(timeout(Duration::from_millis(20_050), both).await.is_err());
        let written = env.cluster.audit().of("old", "create", "configmaps");
        assert!(written > 100, "{written}");
        assert_eq!(refused.load(Ordering::Relaxed), 0);

        let (new, _new) = env.campaign(CAPM3_LEASE, "new");
        // The old leader is not polled: its process is paused.
        sleep(Duration::from_secs(pause)).await;
        assert_eq!(new.check().is_ok(), pause > 15);

        let both = async {
            tokio::select! {
                biased;
                () = &mut writer => panic!("the writer does not stop"),
                // The writer is polled before the elector.
                ended = async { sleep(Duration::from_secs(5)).await; (&mut leader).await } => ended,
            }
        };
        assert_eq!(both.await, Ended::Lost);
        assert!(refused.load(Ordering::Relaxed) > 40);
        assert_eq!(
            env.cluster.audit().of("old", "create", "configmaps"),
            written,
            "after {pause} s"
        );
    }
}

/// A client whose writes arrive a minute late.
fn slow_client(cluster: &Cluster, user: &str) -> kube::Client {
    let service = cluster.service(user);
    let network = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let service = service.clone();
        async move {
            if request.method() != http::Method::GET {
                sleep(Duration::from_mins(1)).await;
            }
            service.oneshot(request).await
        }
    });
    kube::Client::new(network, "default")
}

#[tokio::test(start_paused = true)]
async fn late_write_of_an_old_leader_fails_its_precondition_or_equals_that_of_the_new_leader() {
    let mut env = TestEnv::start();
    let direct: Api<ConfigMap> = Api::namespaced(env.cluster.client("new"), "default");
    let slow: Api<ConfigMap> = Api::namespaced(slow_client(&env.cluster, "old"), "default");
    let mut host = ConfigMap::default();
    host.metadata.name = Some("host".into());
    let host = direct.create(&PostParams::default(), &host).await.unwrap();
    let claim = |leader: &str| {
        let version = host.metadata.resource_version.as_deref();
        Patch::Merge(serde_json::json!({"metadata": {"resourceVersion": version}, "data": {"consumer": leader}}))
    };
    let mut child = ConfigMap::default();
    child.metadata.name = Some("child-of-host".into());

    let (elector, old) = env.elector(CAPM3_LEASE, "old");
    drop(timeout(SECOND, elector.run(CancellationToken::new())).await);
    assert!(old.check().is_ok());
    let (patch, made) = (PatchParams::default(), PostParams::default());
    let (old_claim, new_claim) = (claim("old"), claim("new"));
    let late = async { tokio::join!(slow.patch("host", &patch, &old_claim), slow.create(&made, &child)) };
    let (new, _new) = env.campaign(CAPM3_LEASE, "new");
    let successor = async {
        new.acquired().await;
        direct.patch("host", &patch, &new_claim).await.unwrap();
        direct.create(&made, &child).await.unwrap();
    };
    let ((patched, created), ()) = tokio::join!(late, successor);
    for (answer, reason) in [(patched, "Conflict"), (created, "AlreadyExists")] {
        match answer.unwrap_err() {
            kube::Error::Api(status) => assert_eq!(status.reason, reason),
            other => panic!("{other}"),
        }
    }
    assert_eq!(direct.get("host").await.unwrap().data.unwrap()["consumer"], "new");
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_arrives_after_the_takeover_changes_nothing() {
    let mut env = TestEnv::start();
    let place = LeaseTarget {
        namespace: "default".into(),
        name: CAPM3_LEASE.into(),
        identity: "old".into(),
    };
    // The candidate leads first over a fast network, then over the slow one.
    let (fast, _old) = env.elector(CAPM3_LEASE, "old");
    drop(timeout(SECOND, fast.run(CancellationToken::new())).await);
    let (metrics, clock) = (env.metrics.lease("slow"), env.clock.clone());
    let client = slow_client(&env.cluster, "old");
    let (slow, old) = LeaderElector::new::<super::Leading>(client, place, LeaseTimings::default(), clock, metrics);
    env.tasks
        .spawn(async move { ("old".to_owned(), slow.run(CancellationToken::new()).await) });
    let (new, _new) = env.campaign(CAPM3_LEASE, "new");
    new.acquired().await;
    for _ in 0..300 {
        sleep(SECOND).await;
        assert!(new.check().is_ok() && old.check().is_err());
    }
    assert_eq!(env.record(CAPM3_LEASE).await.holder_identity.as_deref(), Some("new"));
}

#[tokio::test(start_paused = true)]
async fn a_leader_without_a_server_stops_at_its_deadline() {
    let down = Fault::refused(503);
    for fault in [down, Fault::Delay(Duration::from_hours(1))] {
        let mut env = TestEnv::start();
        let (a, _stop) = env.campaign(CAPM3_LEASE, "a");
        a.acquired().await;
        sleep(Duration::from_millis(20_500)).await;
        env.cluster.inject(everything(fault));
        let before = Instant::now();
        assert_eq!(env.ended().await.1, Ended::Lost);
        assert!(a.check().is_err());
        let lasted = before.elapsed().as_secs();
        assert!(
            (7..8).contains(&lasted),
            "{lasted} s after {fault:?}; the last renewal was two and a half seconds old"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answers_slowly_costs_nothing() {
    let mut env = TestEnv::start();
    let (a, _stop) = env.campaign(CAPM3_LEASE, "a");
    a.acquired().await;
    env.cluster
        .inject(everything(Fault::Delay(Duration::from_millis(2_500))));
    for _ in 0..120 {
        sleep(SECOND).await;
        assert!(a.check().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_costs_nothing() {
    let mut env = TestEnv::start();
    let (a, _stop) = env.campaign(CAPM3_LEASE, "a");
    a.acquired().await;
    for _ in 0..20 {
        env.cluster.inject(everything(Fault::ReplyLost));
        sleep(Duration::from_millis(3_500)).await;
        env.cluster.inject(Plan::none());
        sleep(Duration::from_millis(6_500)).await;
        assert!(a.check().is_ok());
    }
    assert_eq!(env.record(CAPM3_LEASE).await.lease_transitions, Some(0));
    assert!(
        env.metrics
            .render()
            .contains(&format!("leader_election_slowpath_total{{name=\"{CAPM3_LEASE}\"}}"))
    );
}

#[tokio::test(start_paused = true)]
async fn jumps_of_the_wall_clock_change_nothing() {
    let mut env = TestEnv::start();
    let (a, _a) = env.campaign(CAPM3_LEASE, "a");
    a.acquired().await;
    let (b, _b) = env.campaign(CAPM3_LEASE, "b");
    for jump in [86_400, -400_000, 3, -3, 31_536_000] {
        env.clock.jump(jump);
        for _ in 0..60 {
            sleep(SECOND).await;
            assert!(a.check().is_ok() && b.check().is_err(), "after {jump}");
        }
    }
    assert_eq!(env.record(CAPM3_LEASE).await.lease_transitions, Some(0));
}

#[tokio::test(start_paused = true)]
async fn candidates_that_start_together_do_not_both_lead() {
    for round in 0..5 {
        let mut env = TestEnv::start();
        let (a, _a) = env.campaign(CAPM3_LEASE, "a");
        let (b, _b) = env.campaign(CAPM3_LEASE, "b");
        for _ in 0..100 {
            sleep(Duration::from_millis(100 + round)).await;
            assert!(!(a.check().is_ok() && b.check().is_ok()));
        }
        assert!(a.check().is_ok() || b.check().is_ok());
    }
}

#[tokio::test(start_paused = true)]
async fn leases_are_independent() {
    let mut env = TestEnv::start();
    let (capm3, stop) = env.campaign(CAPM3_LEASE, "a");
    let (hosts, _hosts) = env.campaign(HOSTS_LEASE, "a");
    tokio::join!(capm3.acquired(), hosts.acquired());
    stop.cancel();
    env.ended().await;
    sleep(SECOND).await;
    assert!(capm3.check().is_err() && hosts.check().is_ok());
    let refusal = capm3.check().unwrap_err().to_string();
    assert!(refusal.contains(CAPM3_LEASE), "{refusal}");
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_go_manager_is_respected_for_its_duration() {
    let mut env = TestEnv::start();
    let api: Api<Lease> = Api::namespaced(env.cluster.client("go"), "default");
    let lease: Lease = serde_json::from_value(serde_json::json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": HOSTS_LEASE},
        "spec": {
            "holderIdentity": "baremetal-operator-controller-manager-5d9c_0b8f",
            "leaseDurationSeconds": 60,
            "acquireTime": "2026-01-01T00:00:00.000000Z",
            "renewTime": "2026-01-01T00:00:00.000000Z",
            "leaseTransitions": 3,
        },
    }))
    .unwrap();
    api.create(&PostParams::default(), &lease).await.unwrap();
    let before = Instant::now();
    let (new, _stop) = env.campaign(HOSTS_LEASE, "new");
    new.acquired().await;
    let waited = before.elapsed().as_secs();
    assert!((60..=62).contains(&waited), "{waited}");
    assert_eq!(env.record(HOSTS_LEASE).await.lease_transitions, Some(4));
}

#[tokio::test(start_paused = true)]
async fn without_election_leadership_holds_from_the_start() {
    let leadership = Leadership::without_election(AdjustableClock::start());
    leadership.acquired().await;
    sleep(Duration::from_hours(24)).await;
    assert!(leadership.check().is_ok());
}
