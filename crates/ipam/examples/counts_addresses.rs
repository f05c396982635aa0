//! Prints the ledger of IP address management: the API requests of the controller, with their goals.
//!
//! The real controller with its watches runs on the simulated API server under paused time, so each count is exact and
//! the same on every machine. Half of the claims are of each kind. Events are not counted. Fractions are rounded up, so
//! that one request too many is visible.

use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use kube::Api;
use kube::api::PostParams;
use metal3_api::ipam::v1alpha1::IPPool;
use metal3_ipam::claim::ClaimKind;
use metal3_ipam::plan::BATCH;
use metal3_ledger::{Figure, Ledger};
use metal3_runtime::watch::PAGE_SIZE;
use metal3_sim_cluster::{Cluster, Options};
use serde_json::json;
use tokio::task::JoinSet;

#[path = "../src/tests/program.rs"]
mod program;

/// User name of the controller.
const USER: &str = "ipam";
const POOL: &str = "pool";
const KINDS: u64 = 6;
/// Kinds of address objects: both are listed before the first allocation of a process.
const ADDRESS_KINDS: u64 = 2;

/// The counts per claim are the same for both sizes.
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

/// Requests of the controller since the last reset.
struct Requests {
    writes: u64,
    pool_writes: u64,
    gets: u64,
    lists: u64,
    watches: u64,
}

impl Requests {
    const fn claim_writes(&self) -> u64 {
        self.writes.saturating_sub(self.pool_writes)
    }
}

fn numbered(number: u64) -> (ClaimKind, String) {
    let kind = if number.is_multiple_of(2) {
        ClaimKind::Metal3
    } else {
        ClaimKind::ClusterApi
    };
    (kind, format!("c{number}"))
}

struct Setup {
    options: Options,
    cluster: Cluster,
    user: kube::Client,
}

impl Setup {
    /// A server with one large pool.
    async fn new() -> Result<Self> {
        let options = Options::seeded(1);
        let cluster = Cluster::start(&options);
        cluster
            .install(&program::kinds())
            .map_err(|refusal| anyhow::anyhow!("installing the kinds: {refusal:?}"))?;
        let user = cluster.client("user");
        let spec = json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.255.254" }] });
        let pool: IPPool = serde_json::from_value(json!({ "metadata": { "name": POOL }, "spec": spec }))?;
        let pools: Api<IPPool> = Api::default_namespaced(user.clone());
        pools.create(&PostParams::default(), &pool).await.context("the pool")?;
        Ok(Self { options, cluster, user })
    }

    /// Starts the controller, counts its requests until it is idle, and leaves it running.
    async fn start(&self, identity: &str) -> Result<(Requests, JoinSet<()>)> {
        self.cluster.reset_audit();
        let tasks = program::start(&self.cluster.client(USER), &self.options.clock, identity, 4);
        Ok((self.wait_until_idle().await?, tasks))
    }

    /// Creates claims of alternating kinds.
    async fn claim(&self, numbers: std::ops::Range<u64>) -> Result<()> {
        let api = (&self.user, self.user.default_namespace());
        for number in numbers {
            let (kind, name) = numbered(number);
            let document = program::claim_document(kind, POOL, json!({ "name": name }));
            program::create_claim(api, kind, document).await?;
        }
        Ok(())
    }

    async fn delete(&self, numbers: std::ops::Range<u64>) -> Result<()> {
        let api = (&self.user, self.user.default_namespace());
        for number in numbers {
            let (kind, name) = numbered(number);
            program::delete_claim(api, kind, &name).await?;
        }
        Ok(())
    }

    /// Waits until nothing is written for a while, and returns the requests.
    async fn wait_until_idle(&self) -> Result<Requests> {
        let mut before = None;
        for _ in 0..100 {
            tokio::time::sleep(Duration::from_secs(30)).await;
            let requests = self.requests();
            if before == Some(requests.writes) {
                return Ok(requests);
            }
            before = Some(requests.writes);
        }
        bail!("not idle: {:?}", self.cluster.audit())
    }

    fn requests(&self) -> Requests {
        let audit = self.cluster.audit();
        let count = |verbs: &[&str], of_pools: bool| -> u64 {
            let ours = audit.counts().filter(|((user, verb, resource), _)| {
                user == USER && verbs.contains(verb) && (!of_pools || resource.starts_with("ippools"))
            });
            ours.map(|(_, number)| number).sum()
        };
        let writes = ["create", "patch", "update", "delete", "deletecollection"];
        Requests {
            writes: count(&writes, false),
            pool_writes: count(&writes, true),
            gets: count(&["get"], false),
            lists: count(&["list"], false),
            watches: count(&["watch"], false),
        }
    }

    /// Number of allocated addresses.
    async fn granted(&self) -> Result<u64> {
        let pools: Api<IPPool> = Api::default_namespaced(self.user.clone());
        let allocated = pools.get(POOL).await?.status.allocated;
        Ok(allocated.unwrap_or_default().parse()?)
    }
}

fn add_row(ledger: &mut Ledger, phase: &str, name: &str, (measured, goal): (u64, u64), least: &str) {
    ledger.add(Figure {
        phase: phase.to_owned(),
        what: name.to_owned(),
        measured,
        goal,
        least: least.to_owned(),
    });
}

/// First start with a pool without claims.
async fn first_start(ledger: &mut Ledger) -> Result<()> {
    let setup = Setup::new().await?;
    let (requests, _program) = setup.start("first").await?;
    let phase = "first start";
    let lists = (requests.lists, KINDS + ADDRESS_KINDS);
    add_row(
        ledger,
        phase,
        "lists",
        lists,
        "6: a kind each; 2 more before the first write",
    );
    add_row(ledger, phase, "watches", (requests.watches, KINDS), "6: a kind each");
    let writes = (requests.writes, POOL_WRITES_AT_FIRST);
    add_row(ledger, phase, "writes per pool", writes, "2: finalizer, status");
    Ok(())
}

/// Claims created while no controller ran are served at the next start. Returns the running program.
async fn grant(ledger: &mut Ledger, setup: &Setup, claims: u64) -> Result<JoinSet<()>> {
    let (_, mut first) = setup.start("first").await?;
    first.shutdown().await;
    setup.claim(0..claims).await?;
    let (requests, second) = setup.start("second").await?;
    let granted = setup.granted().await?;
    ensure!(granted == claims, "{granted} of {claims} claims were granted");
    let batches = claims.div_ceil(u64::try_from(BATCH)?);
    let phase = format!("grant {claims}");
    let writes = (requests.claim_writes().div_ceil(claims), CLAIM_WRITES);
    let least = "3: finalizer, address, status";
    add_row(ledger, &phase, "API writes per claim", writes, least);
    let writes = (requests.pool_writes.div_ceil(batches), POOL_WRITES_A_BATCH);
    add_row(ledger, &phase, "pool writes per batch of 500", writes, "1: the promise");
    add_row(ledger, &phase, "live gets", (requests.gets, 0), "0");
    let lists = requests.lists.saturating_sub(KINDS);
    let lists = (lists, LISTS_AT_TAKE_OVER * ADDRESS_KINDS);
    add_row(ledger, &phase, "live lists", lists, "2: a kind of addresses each");
    Ok(second)
}

/// Claims are deleted one after the other, while the program runs.
async fn release(ledger: &mut Ledger, setup: &Setup, claims: u64) -> Result<()> {
    let before = setup.granted().await?;
    setup.cluster.reset_audit();
    setup.delete(0..claims).await?;
    let requests = setup.wait_until_idle().await?;
    let left = setup.granted().await?;
    ensure!(
        left.saturating_add(claims) == before,
        "{left} of {before} claims are left"
    );
    let phase = format!("release {claims}");
    let writes = (requests.claim_writes().div_ceil(claims), RELEASE_WRITES);
    let least = "3: delete, finalizers of address and claim";
    add_row(ledger, &phase, "API writes per claim", writes, least);
    let writes = (requests.pool_writes.div_ceil(claims), POOL_WRITES_A_RELEASE);
    add_row(
        ledger,
        &phase,
        "pool writes per claim",
        writes,
        "0: as many at once as there are",
    );
    let reads = (requests.gets.saturating_add(requests.lists), 0);
    add_row(ledger, &phase, "live reads", reads, "0");
    Ok(())
}

/// An idle hour, a restart, and two more claims, one after the other.
async fn steady(ledger: &mut Ledger, setup: &Setup, claims: u64, mut program: JoinSet<()>) -> Result<JoinSet<()>> {
    setup.cluster.reset_audit();
    tokio::time::sleep(Duration::from_hours(1)).await;
    let (requests, phase) = (setup.requests(), "idle hour");
    add_row(ledger, phase, "writes", (requests.writes, 0), "0");
    add_row(
        ledger,
        phase,
        "gets and lists",
        (requests.gets.saturating_add(requests.lists), 0),
        "0",
    );
    let watches = (requests.watches.div_ceil(KINDS), WATCHES_AN_HOUR);
    add_row(ledger, phase, "watches per kind", watches, "2: each lasts half an hour");

    program.shutdown().await;
    let (requests, program) = setup.start("third").await?;
    let phase = format!("start on {claims}");
    add_row(ledger, &phase, "writes", (requests.writes, 0), "0");
    // Half of the objects are of each kind.
    let pages = claims.div_ceil(2).div_ceil(PAGE_SIZE.into()).max(1);
    let pages = KINDS.saturating_add(2 * ADDRESS_KINDS * pages.saturating_sub(1));
    add_row(
        ledger,
        &phase,
        "pages of lists",
        (requests.lists, pages),
        "one for each kind and 500 objects",
    );

    setup.claim(claims..claims.saturating_add(1)).await?;
    setup.wait_until_idle().await?;
    setup.cluster.reset_audit();
    setup.claim(claims.saturating_add(1)..claims.saturating_add(2)).await?;
    let (requests, phase) = (setup.wait_until_idle().await?, "one claim more");
    let writes = (requests.writes, CLAIM_WRITES + POOL_WRITES_A_BATCH);
    add_row(ledger, phase, "writes", writes, "4: the claim's three, the promise");
    add_row(
        ledger,
        phase,
        "gets and lists",
        (requests.gets.saturating_add(requests.lists), 0),
        "0",
    );
    Ok(program)
}

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<ExitCode> {
    let mut ledger = Ledger::default();
    first_start(&mut ledger).await?;
    for claims in [FEW, MANY] {
        let setup = Setup::new().await?;
        let mut program = grant(&mut ledger, &setup, claims).await?;
        if claims == MANY {
            program = steady(&mut ledger, &setup, claims, program).await?;
        }
        release(&mut ledger, &setup, claims).await?;
        drop(program);
    }
    println!("{ledger}");
    Ok(if ledger.within_goals() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
