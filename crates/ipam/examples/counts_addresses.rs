//! Prints the ledger of IP address management: what the controller asks of an API server, beside the goals.
//!
//! The real controller with its watches runs on the simulated API server under paused time, so each figure is exact and
//! the same on every machine. Half of the claims are of either kind. Events are not counted: nobody decides by them.
//! Fractions round up: one request too many shows.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use metal3_api::cluster::IPAddressClaim;
use metal3_api::ipam::v1alpha1::{IPClaim, IPPool};
use metal3_ipam::controller::caches::Caches;
use metal3_ipam::controller::{Parts, controller};
use metal3_ipam::plan::BATCH;
use metal3_ledger::{Figure, Ledger};
use metal3_runtime::events::EventRecorder;
use metal3_runtime::metrics::Metrics;
use metal3_runtime::watch::{PAGE, WatchConfig};
use metal3_runtime::write::{Mode, Writer};
use metal3_sim_cluster::{Cluster, Options};
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

#[path = "../src/tests/kinds.rs"]
mod kinds;

/// As whom the controller asks.
const US: &str = "ipam";
const POOL: &str = "pool";
/// Kinds that are watched.
const KINDS: u64 = 6;
/// Kinds that hold addresses: both are listed before a process grants for the first time.
const ADDRESS_KINDS: u64 = 2;

/// The same figures for both: the price of a claim does not depend on how many there are.
const FEW: u64 = 10;
const MANY: u64 = 1000;

// The goals.
const CLAIM_WRITES: u64 = 3;
const RELEASE_WRITES: u64 = 3;
const POOL_WRITES_A_BATCH: u64 = 2;
const POOL_WRITES_A_RELEASE: u64 = 1;
const POOL_WRITES_AT_FIRST: u64 = 2;
const LISTS_AT_TAKE_OVER: u64 = 2;
const WATCHES_AN_HOUR: u64 = 2;

/// What the controller asked for since the last reset.
struct Asked {
    writes: u64,
    pool_writes: u64,
    gets: u64,
    lists: u64,
    watches: u64,
}

impl Asked {
    /// Writes to claims and address objects.
    const fn claim_writes(&self) -> u64 {
        self.writes.saturating_sub(self.pool_writes)
    }
}

struct Rig {
    options: Options,
    cluster: Cluster,
    user: kube::Client,
}

impl Rig {
    /// A server with one pool, large enough.
    async fn new() -> Result<Self> {
        let options = Options::seeded(1);
        let cluster = Cluster::start(&options);
        cluster
            .install(&kinds::kinds())
            .map_err(|refusal| anyhow::anyhow!("installing the kinds: {refusal:?}"))?;
        let user = cluster.client("user");
        let spec = json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.255.254" }] });
        let pool: IPPool = serde_json::from_value(json!({ "metadata": { "name": POOL }, "spec": spec }))?;
        let pools: Api<IPPool> = Api::default_namespaced(user.clone());
        pools.create(&PostParams::default(), &pool).await.context("the pool")?;
        Ok(Self { options, cluster, user })
    }

    /// Starts the controller, counts what it asks for until it rests, and leaves it running.
    async fn start(&self, identity: &str) -> Result<(Asked, JoinSet<()>)> {
        let (caches, stop) = (Caches::default(), CancellationToken::new());
        let (client, clock) = (self.cluster.client(US), &self.options.clock);
        let writer = Writer::new(client.clone(), Mode::Perform);
        let (events, _) = EventRecorder::bounded(1);
        let parts = Parts {
            caches: caches.clone(),
            clock: Arc::clone(clock),
            events,
            metrics: Metrics::new(),
            identity: identity.to_owned(),
            watch_filter: None,
            workers: 4,
        };
        let controller = controller(parts, writer);
        let watches = caches.watches(&WatchConfig::everywhere(&client, clock, &stop));
        self.cluster.reset_audit();
        let mut tasks = JoinSet::new();
        for task in watches.into_tasks() {
            tasks.spawn(task);
        }
        tasks.spawn(async move {
            controller.run(stop).await;
        });
        Ok((self.rest().await?, tasks))
    }

    /// Makes claims, every other one of Cluster API.
    async fn claim(&self, numbers: std::ops::Range<u64>) -> Result<()> {
        let own: Api<IPClaim> = Api::default_namespaced(self.user.clone());
        let theirs: Api<IPAddressClaim> = Api::default_namespaced(self.user.clone());
        for number in numbers {
            let meta = json!({ "name": format!("c{number}") });
            if number.is_multiple_of(2) {
                let claim = json!({ "metadata": meta, "spec": { "pool": { "name": POOL } } });
                own.create(&PostParams::default(), &serde_json::from_value(claim)?)
                    .await?;
            } else {
                let pool = json!({ "name": POOL, "kind": "IPPool", "apiGroup": "ipam.metal3.io" });
                let claim = json!({ "metadata": meta, "spec": { "poolRef": pool } });
                theirs
                    .create(&PostParams::default(), &serde_json::from_value(claim)?)
                    .await?;
            }
        }
        Ok(())
    }

    /// Deletes claims.
    async fn free(&self, numbers: std::ops::Range<u64>) -> Result<()> {
        let own: Api<IPClaim> = Api::default_namespaced(self.user.clone());
        let theirs: Api<IPAddressClaim> = Api::default_namespaced(self.user.clone());
        let params = DeleteParams::default();
        for number in numbers {
            let name = format!("c{number}");
            if number.is_multiple_of(2) {
                own.delete(&name, &params).await.map(drop)?;
            } else {
                theirs.delete(&name, &params).await.map(drop)?;
            }
        }
        Ok(())
    }

    /// Waits until nothing was written for a while; what was asked for by then.
    async fn rest(&self) -> Result<Asked> {
        let mut before = None;
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let asked = self.asked();
            if before == Some(asked.writes) {
                return Ok(asked);
            }
            before = Some(asked.writes);
        }
        bail!("never at rest: {:?}", self.cluster.audit())
    }

    fn asked(&self) -> Asked {
        let audit = self.cluster.audit();
        let count = |verbs: &[&str], of_pools: bool| -> u64 {
            let ours = audit.counts().filter(|((user, verb, resource), _)| {
                user == US && verbs.contains(verb) && (!of_pools || resource.starts_with("ippools"))
            });
            ours.map(|(_, number)| number).sum()
        };
        let writes = ["create", "patch", "update", "delete", "deletecollection"];
        Asked {
            writes: count(&writes, false),
            pool_writes: count(&writes, true),
            gets: count(&["get"], false),
            lists: count(&["list"], false),
            watches: count(&["watch"], false),
        }
    }

    /// How many addresses are granted.
    async fn granted(&self) -> Result<u64> {
        let pools: Api<IPPool> = Api::default_namespaced(self.user.clone());
        let allocated = pools.get(POOL).await?.status.allocated;
        Ok(allocated.unwrap_or_default().parse()?)
    }
}

/// Writes one row down.
fn enter(ledger: &mut Ledger, phase: &str, what: &str, (measured, goal): (u64, u64), least: &str) {
    ledger.enter(Figure {
        phase: phase.to_owned(),
        what: what.to_owned(),
        measured,
        goal,
        least: least.to_owned(),
    });
}

/// A pool without claims meets the controller for the first time.
async fn first_start(ledger: &mut Ledger) -> Result<()> {
    let rig = Rig::new().await?;
    let (asked, _program) = rig.start("first").await?;
    let phase = "first start";
    let lists = (asked.lists, KINDS + ADDRESS_KINDS);
    enter(
        ledger,
        phase,
        "lists",
        lists,
        "6: a kind each; 2 more before the first write",
    );
    enter(ledger, phase, "watches", (asked.watches, KINDS), "6: a kind each");
    let writes = (asked.writes, POOL_WRITES_AT_FIRST);
    enter(ledger, phase, "writes per pool", writes, "2: finalizer, status");
    Ok(())
}

/// Claims that came while nobody looked are granted at the next start. Gives the program, still running.
async fn grant(ledger: &mut Ledger, rig: &Rig, claims: u64) -> Result<JoinSet<()>> {
    let (_, mut first) = rig.start("first").await?;
    first.shutdown().await;
    rig.claim(0..claims).await?;
    let (asked, second) = rig.start("second").await?;
    let granted = rig.granted().await?;
    ensure!(granted == claims, "{granted} of {claims} claims were granted");
    let batches = claims.div_ceil(u64::try_from(BATCH)?);
    let phase = format!("grant {claims}");
    let writes = (asked.claim_writes().div_ceil(claims), CLAIM_WRITES);
    let least = "3: finalizer, address, status";
    enter(ledger, &phase, "API writes per claim", writes, least);
    let writes = (asked.pool_writes.div_ceil(batches), POOL_WRITES_A_BATCH);
    enter(ledger, &phase, "pool writes per batch of 500", writes, "1: the promise");
    enter(ledger, &phase, "live gets", (asked.gets, 0), "0");
    let lists = asked.lists.saturating_sub(KINDS);
    let lists = (lists, LISTS_AT_TAKE_OVER * ADDRESS_KINDS);
    enter(ledger, &phase, "live lists", lists, "2: a kind of addresses each");
    Ok(second)
}

/// The claims are freed one after the other, under a running program.
async fn release(ledger: &mut Ledger, rig: &Rig, claims: u64) -> Result<()> {
    let before = rig.granted().await?;
    rig.cluster.reset_audit();
    rig.free(0..claims).await?;
    let asked = rig.rest().await?;
    let left = rig.granted().await?;
    ensure!(
        left.saturating_add(claims) == before,
        "{left} of {before} claims are left"
    );
    let phase = format!("release {claims}");
    let writes = (asked.claim_writes().div_ceil(claims), RELEASE_WRITES);
    let least = "3: delete, finalizers of address and claim";
    enter(ledger, &phase, "API writes per claim", writes, least);
    let writes = (asked.pool_writes.div_ceil(claims), POOL_WRITES_A_RELEASE);
    enter(
        ledger,
        &phase,
        "pool writes per claim",
        writes,
        "0: as many at once as there are",
    );
    let reads = (asked.gets.saturating_add(asked.lists), 0);
    enter(ledger, &phase, "live reads", reads, "0");
    Ok(())
}

/// An hour in which nobody asks for anything, a new start, and two more claims, one after the other.
async fn steady(ledger: &mut Ledger, rig: &Rig, claims: u64, mut program: JoinSet<()>) -> Result<JoinSet<()>> {
    rig.cluster.reset_audit();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let (asked, phase) = (rig.asked(), "idle hour");
    enter(ledger, phase, "writes", (asked.writes, 0), "0");
    enter(
        ledger,
        phase,
        "gets and lists",
        (asked.gets.saturating_add(asked.lists), 0),
        "0",
    );
    let watches = (asked.watches.div_ceil(KINDS), WATCHES_AN_HOUR);
    enter(ledger, phase, "watches per kind", watches, "2: each lasts half an hour");

    program.shutdown().await;
    let (asked, program) = rig.start("third").await?;
    let phase = format!("start on {claims}");
    enter(ledger, &phase, "writes", (asked.writes, 0), "0");
    // Half of the objects are of either kind.
    let pages = claims.div_ceil(2).div_ceil(PAGE.into()).max(1);
    let pages = KINDS.saturating_add(2 * ADDRESS_KINDS * pages.saturating_sub(1));
    enter(
        ledger,
        &phase,
        "pages of lists",
        (asked.lists, pages),
        "one for each kind and 500 objects",
    );

    rig.claim(claims..claims.saturating_add(1)).await?;
    rig.rest().await?;
    rig.cluster.reset_audit();
    rig.claim(claims.saturating_add(1)..claims.saturating_add(2)).await?;
    let (asked, phase) = (rig.rest().await?, "one claim more");
    let writes = (asked.writes, CLAIM_WRITES + POOL_WRITES_A_BATCH);
    enter(ledger, phase, "writes", writes, "4: the claim's three, the promise");
    enter(
        ledger,
        phase,
        "gets and lists",
        (asked.gets.saturating_add(asked.lists), 0),
        "0",
    );
    Ok(program)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<ExitCode> {
    let mut ledger = Ledger::default();
    first_start(&mut ledger).await?;
    for claims in [FEW, MANY] {
        let rig = Rig::new().await?;
        let mut program = grant(&mut ledger, &rig, claims).await?;
        if claims == MANY {
            program = steady(&mut ledger, &rig, claims, program).await?;
        }
        release(&mut ledger, &rig, claims).await?;
        drop(program);
    }
    println!("{ledger}");
    Ok(if ledger.within_goals() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
