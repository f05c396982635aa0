//! A cluster of two providers, and one with an address of a pool, are moved to another management cluster and back. The
//! programs on both sides are restarted at each phase.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::clusterctl::{Place, copy, delete_moved, restore_status, save};
use super::super::steps::Step;
use super::fixture::MANAGER;
use super::pool::{CORE, cluster_with, pooled, template, vips};
use super::providers::{BROUGHT, HOSTED, ProviderFixture, seconds};
use crate::data::reconciler::tests::lab::{CLUSTER_API, HOSTS, INFRASTRUCTURE, IPAM};

/// Moved resources, owners first.
const MOVED: [Place; 15] = [
    (CLUSTER_API, "clusters"),
    (HOSTS, "baremetalhosts"),
    (CORE, "configmaps"),
    (BROUGHT, "byoclusters"),
    (HOSTED, "hostedcontrolplanes"),
    (INFRASTRUCTURE, "metal3clusters"),
    (IPAM, "ippools"),
    (INFRASTRUCTURE, "metal3datatemplates"),
    (CLUSTER_API, "machines"),
    (INFRASTRUCTURE, "metal3machines"),
    (INFRASTRUCTURE, "metal3dataclaims"),
    (INFRASTRUCTURE, "metal3datas"),
    (IPAM, "ipclaims"),
    (IPAM, "ipaddresses"),
    (CORE, "secrets"),
];

/// Phase of a move at which the programs are restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Paused,
    HalfCopied,
    Copied,
    HalfDeleted,
    Deleted,
    Resumed,
}

const PHASES: [Phase; 6] = [
    Phase::Paused,
    Phase::HalfCopied,
    Phase::Copied,
    Phase::HalfDeleted,
    Phase::Deleted,
    Phase::Resumed,
];

/// A management cluster with all programs.
struct Side {
    fixture: ProviderFixture,
    program: JoinSet<()>,
    _addresses: JoinSet<()>,
}

impl Side {
    fn start() -> Self {
        let fixture = ProviderFixture::start();
        Self {
            program: fixture.program(false),
            _addresses: fixture.addresses(),
            fixture,
        }
    }

    async fn set_paused(&self, is_paused: bool) {
        let pause = json!({ "spec": { "paused": is_paused } });
        self.fixture.user.change(CLUSTER_API, "clusters/edge", pause).await;
        seconds(5).await;
    }

    /// Asserts that no moved object is left.
    async fn assert_empty(&self, why: &str) {
        let leftover = save(&self.fixture.user, &MOVED).await;
        assert!(leftover.is_empty(), "{why}: {leftover:#?}");
    }

    fn writes(&self, verb: &str) -> u64 {
        let audit = self.fixture.server.audit();
        let ours = audit
            .counts()
            .filter(|((user, done, _), _)| user == MANAGER && *done == verb);
        ours.map(|(_, count)| count).sum()
    }
}

/// Stops both programs if this is the phase, and starts them again a minute later.
async fn restart_at(sides: [&mut Side; 2], now: Phase, at: Option<Phase>) {
    if at == Some(now) {
        let [one, other] = sides;
        (one.program, other.program) = (JoinSet::new(), JoinSet::new());
        seconds(60).await;
        (one.program, other.program) = (one.fixture.program(false), other.fixture.program(false));
    }
    seconds(3).await;
}

/// Does what `clusterctl move` does, with a restart of the programs at one phase.
async fn move_over(from: &mut Side, to: &mut Side, at: Option<Phase>) {
    from.set_paused(true).await;
    restart_at([from, to], Phase::Paused, at).await;
    let saved = save(&from.fixture.user, &MOVED).await;
    let mut uids = BTreeMap::new();
    let (first, rest) = saved.split_at(saved.len() / 2);
    copy(&to.fixture.user, first, &mut uids).await;
    restart_at([from, to], Phase::HalfCopied, at).await;
    copy(&to.fixture.user, rest, &mut uids).await;
    restart_at([from, to], Phase::Copied, at).await;
    let (owners, owned) = MOVED.split_at(MOVED.len() / 2);
    delete_moved(&from.fixture.user, owned).await;
    restart_at([from, to], Phase::HalfDeleted, at).await;
    delete_moved(&from.fixture.user, owners).await;
    restart_at([from, to], Phase::Deleted, at).await;
    to.set_paused(false).await;
    restore_status(&to.fixture.user).await;
    restart_at([from, to], Phase::Resumed, at).await;
    seconds(30).await;
    from.assert_empty(&format!("{at:?}: on the old side")).await;
}

/// The state that a move preserves: names, specs, data and owners.
async fn comparable_state(side: &Side) -> Vec<String> {
    let saved = save(&side.fixture.user, &MOVED).await;
    let uids: BTreeMap<String, String> = saved
        .iter()
        .map(|(_, plural, object)| {
            (
                text(object, "/metadata/uid"),
                format!("{plural} {}", text(object, "/metadata/name")),
            )
        })
        .collect();
    let line = |(_, plural, object): &(&str, &str, Value)| {
        let owners = object["metadata"]["ownerReferences"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let owners: Vec<Option<&String>> = owners.iter().map(|owner| uids.get(&text(owner, "/uid"))).collect();
        let marker = text(
            object,
            "/metadata/annotations/infrastructure.cluster.x-k8s.io~1derived-endpoint",
        );
        let mut spec = object["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("paused");
        }
        let name = text(object, "/metadata/name");
        format!("{plural} {name} {spec} {} {marker} {owners:?}", object["data"])
    };
    saved.iter().map(line).collect()
}

fn text(object: &Value, place: &str) -> String {
    object
        .pointer(place)
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned()
}

/// Type, status and reason of the conditions of the Metal3Cluster, and its role and endpoint.
async fn conditions_of(side: &Side, name: &str) -> String {
    let path = format!("metal3clusters/{name}");
    let object = side.fixture.user.get(INFRASTRUCTURE, &path).await;
    let all = object["status"]["conditions"].as_array().unwrap().iter();
    let line = |one: &Value| ["/type", "/status", "/reason"].map(|place| text(one, place)).join(" ");
    let mut all: Vec<String> = all.map(line).collect();
    all.sort();
    format!(
        "{} {} {all:?}",
        object["status"]["role"], object["status"]["controlPlaneEndpoint"]
    )
}

/// Moves there and back, with a restart at each phase of each way, and once without.
async fn there_and_back(make: impl AsyncFn(&Side)) {
    let restarts = PHASES
        .into_iter()
        .flat_map(|phase| [(Some(phase), None), (None, Some(phase))]);
    let mut cases = 0;
    for (there, back) in std::iter::once((None, None)).chain(restarts) {
        let (mut home, mut away) = (Side::start(), Side::start());
        make(&home).await;
        seconds(30).await;
        let (before, condition) = (comparable_state(&home).await, conditions_of(&home, "edge").await);
        home.fixture.server.reset_audit();
        move_over(&mut home, &mut away, there).await;
        assert_eq!(comparable_state(&away).await, before, "{there:?}: there");
        assert_eq!(conditions_of(&away, "edge").await, condition, "{there:?}: there");
        move_over(&mut away, &mut home, back).await;
        assert_eq!(comparable_state(&home).await, before, "{back:?}: back");
        assert_eq!(conditions_of(&home, "edge").await, condition, "{back:?}: back");
        for side in [&home, &away] {
            let touched = (side.writes("create"), side.writes("delete"));
            assert_eq!(
                touched,
                (0, 0),
                "{there:?} {back:?}: a move creates and deletes nothing"
            );
        }
        cases += 1;
    }
    println!("{cases} moves there and back");
    assert_eq!(cases, 2 * PHASES.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn cluster_of_two_providers_moves_there_and_back_with_restarts_at_every_phase() {
    there_and_back(async |home: &Side| {
        home.fixture.make_two_providers().await;
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn worker_of_a_secondary_keeps_its_host_and_data_there_and_back_with_restarts_at_every_phase() {
    there_and_back(async |home: &Side| {
        home.fixture.make_two_providers().await;
        let user = &home.fixture.user;
        for step in [Step::Template, Step::Host("h0"), Step::Machine("m0")] {
            step.take(&user.0).await;
        }
        let of_cluster = json!({ "spec": { "clusterName": "edge" } });
        user.change(IPAM, "ippools/pool", of_cluster).await;
        seconds(60).await;
        Step::State("h0", "provisioned").take(&user.0).await;
        seconds(30).await;
        let machine = user.get(INFRASTRUCTURE, "metal3machines/m0").await;
        assert_eq!(machine["spec"]["providerID"], "metal3://default/h0/m0");
        assert_eq!(user.list(IPAM, "ipaddresses").await.len(), 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn cluster_with_an_address_of_a_pool_keeps_it_there_and_back_with_restarts_at_every_phase() {
    there_and_back(async |home: &Side| {
        let user = &home.fixture.user;
        vips(user, 2).await;
        let of_cluster = json!({ "spec": { "clusterName": "edge" } });
        user.change(IPAM, "ippools/vips", of_cluster).await;
        template(user, "at ${HOST}:${PORT}").await;
        cluster_with(user, pooled()).await;
    })
    .await;
}
