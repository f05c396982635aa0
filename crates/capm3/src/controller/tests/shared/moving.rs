//! A cluster of two providers, and one with an address of a pool, move to another management cluster and back. Our
//! programs are killed at each phase of it, on both sides.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::super::clusterctl::{Place, copy, leave, save, tell_hosts};
use super::super::site::Step;
use super::living::{Living, Part, seconds};
use super::pool::{CORE, cluster_with, pooled, template, vips};
use crate::controller::data::tests::lab::{CLUSTER_API, HOSTS, INFRASTRUCTURE, IPAM};

/// The version that the provider of hosts which are brought along serves.
const BROUGHT: &str = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/default";
const CONTROL_PLANES: &str = "/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/default";

/// What moves, owners first.
const MOVED: [Place; 15] = [
    (CLUSTER_API, "clusters"),
    (HOSTS, "baremetalhosts"),
    (CORE, "configmaps"),
    (BROUGHT, "byoclusters"),
    (CONTROL_PLANES, "hostedcontrolplanes"),
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

/// Where a move is when the programs are killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Paused,
    HalfThere,
    There,
    HalfGone,
    Gone,
    GoneOn,
}

const PHASES: [Phase; 6] = [
    Phase::Paused,
    Phase::HalfThere,
    Phase::There,
    Phase::HalfGone,
    Phase::Gone,
    Phase::GoneOn,
];

/// A management cluster with everybody in it.
struct Side {
    world: Living,
    program: JoinSet<()>,
    _addresses: JoinSet<()>,
}

impl Side {
    fn start() -> Self {
        let world = Living::start();
        Self {
            program: world.program(false),
            _addresses: world.addresses(),
            world,
        }
    }

    async fn set_paused(&self, is_paused: bool) {
        let pause = json!({ "spec": { "paused": is_paused } });
        self.world.lab().change(CLUSTER_API, "clusters/edge", pause).await;
        seconds(5).await;
    }

    /// Nothing is there.
    async fn assert_empty(&self, why: &str) {
        let left = save(&self.world.lab(), &MOVED).await;
        assert!(left.is_empty(), "{why}: {left:#?}");
    }

    fn writes(&self, verb: &str) -> u64 {
        let audit = self.world.server.audit();
        let ours = audit
            .counts()
            .filter(|((user, done, _), _)| user == "manager" && *done == verb);
        ours.map(|(_, count)| count).sum()
    }
}

/// Kills both programs if this is the phase, and starts them again a minute later.
async fn strike(sides: [&mut Side; 2], now: Phase, at: Option<Phase>) {
    if at == Some(now) {
        let [one, other] = sides;
        (one.program, other.program) = (JoinSet::new(), JoinSet::new());
        seconds(60).await;
        (one.program, other.program) = (one.world.program(false), other.world.program(false));
    }
    seconds(3).await;
}

/// What `clusterctl move` does.
async fn move_over(from: &mut Side, to: &mut Side, at: Option<Phase>) {
    from.set_paused(true).await;
    strike([from, to], Phase::Paused, at).await;
    let saved = save(&from.world.lab(), &MOVED).await;
    let (mut uids, there) = (BTreeMap::new(), to.world.lab());
    let (first, rest) = saved.split_at(saved.len() / 2);
    copy(&there, first, &mut uids).await;
    strike([from, to], Phase::HalfThere, at).await;
    copy(&there, rest, &mut uids).await;
    strike([from, to], Phase::There, at).await;
    let (owners, owned) = MOVED.split_at(MOVED.len() / 2);
    leave(&from.world.lab(), owned).await;
    strike([from, to], Phase::HalfGone, at).await;
    leave(&from.world.lab(), owners).await;
    strike([from, to], Phase::Gone, at).await;
    to.set_paused(false).await;
    tell_hosts(&to.world.lab()).await;
    strike([from, to], Phase::GoneOn, at).await;
    seconds(30).await;
    from.assert_empty(&format!("{at:?}: on the side that was left")).await;
}

/// What must be the same before and after, of all that is there: names, what was wished, and who owns it.
async fn lasting(side: &Side) -> Vec<String> {
    let saved = save(&side.world.lab(), &MOVED).await;
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

/// Type, status and reason of what is said of the Metal3Cluster, and its role and endpoint.
async fn told(side: &Side, name: &str) -> String {
    let object = side
        .world
        .lab()
        .get(INFRASTRUCTURE, &format!("metal3clusters/{name}"))
        .await;
    let all = object["status"]["conditions"].as_array().unwrap().iter();
    let mut all: Vec<String> = all
        .map(|one| {
            format!(
                "{} {} {}",
                text(one, "/type"),
                text(one, "/status"),
                text(one, "/reason")
            )
        })
        .collect();
    all.sort();
    format!(
        "{} {} {all:?}",
        object["status"]["role"], object["status"]["controlPlaneEndpoint"]
    )
}

/// There and back, with the programs killed at each phase of each way, and once without.
async fn there_and_back(make: impl AsyncFn(&Side)) -> usize {
    let strikes = PHASES
        .into_iter()
        .flat_map(|phase| [(Some(phase), None), (None, Some(phase))]);
    let mut cases = 0;
    for (there, back) in std::iter::once((None, None)).chain(strikes) {
        let (mut home, mut away) = (Side::start(), Side::start());
        make(&home).await;
        seconds(30).await;
        let (before, said) = (lasting(&home).await, told(&home, "edge").await);
        home.world.server.reset_audit();
        move_over(&mut home, &mut away, there).await;
        assert_eq!(lasting(&away).await, before, "{there:?}: there");
        assert_eq!(told(&away, "edge").await, said, "{there:?}: there");
        move_over(&mut away, &mut home, back).await;
        assert_eq!(lasting(&home).await, before, "{back:?}: back");
        assert_eq!(told(&home, "edge").await, said, "{back:?}: back");
        for side in [&home, &away] {
            let touched = (side.writes("create"), side.writes("delete"));
            assert_eq!(
                touched,
                (0, 0),
                "{there:?} {back:?}: nothing is made or deleted by a move"
            );
        }
        cases += 1;
    }
    cases
}

#[tokio::test(start_paused = true)]
async fn cluster_of_two_providers_moves_there_and_back_whenever_the_programs_are_killed() {
    let cases = there_and_back(async |home: &Side| {
        for part in [Part::ForeignCluster, Part::Byo, Part::Hosted, Part::Secondary] {
            home.world.make(part).await;
        }
    })
    .await;
    println!("{cases} moves there and back");
    assert_eq!(cases, 2 * PHASES.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn worker_of_a_secondary_keeps_its_host_and_data_there_and_back_whenever_the_programs_are_killed() {
    let cases = there_and_back(async |home: &Side| {
        for part in [Part::ForeignCluster, Part::Byo, Part::Hosted, Part::Secondary] {
            home.world.make(part).await;
        }
        let user = home.world.lab();
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
    println!("{cases} moves there and back");
    assert_eq!(cases, 2 * PHASES.len() + 1);
}

#[tokio::test(start_paused = true)]
async fn cluster_with_an_address_of_a_pool_keeps_it_there_and_back_whenever_the_programs_are_killed() {
    let cases = there_and_back(async |home: &Side| {
        let user = home.world.lab();
        vips(&user, 2).await;
        let of_cluster = json!({ "spec": { "clusterName": "edge" } });
        user.change(IPAM, "ippools/vips", of_cluster).await;
        template(&user, "at ${HOST}:${PORT}").await;
        cluster_with(&user, pooled()).await;
    })
    .await;
    println!("{cases} moves there and back");
    assert_eq!(cases, 2 * PHASES.len() + 1);
}
