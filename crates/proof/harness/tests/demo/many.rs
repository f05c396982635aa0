//! Crashes at random writes of a thousand objects. Crashes at each of their three thousand writes would cause six
//! thousand starts; the small test environment covers every write. Here a seed selects the same number of writes of
//! each kind.

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};
use metal3_api::ipam::v1alpha1::IPClaim;
use metal3_sim_cluster::Cluster;
use metal3_sim_faults::{Fault, Plan, Random, Rule};
use tokio::time::{Instant, sleep};

use crate::plan::{FINALIZER, is_of};
use crate::sweep::{program, server_with_claims};

const OBJECTS: u64 = 1000;
const SEED: u64 = 7;
/// Number of crashes before, and after, writes of each kind.
const CRASHES: usize = 5;
const WRITES: [(&str, &str); 3] = [
    ("patch", "ipclaims"),
    ("create", "configmaps"),
    ("patch", "ipclaims/status"),
];

/// A crash at each write that the seed selects.
fn crashes() -> (Plan, u64) {
    let mut random = Random::seeded(SEED);
    let (mut plan, mut cases) = (Plan::seeded(SEED), 0);
    for (verb, resource) in WRITES {
        let mut drawn = BTreeSet::new();
        while drawn.len() < 2 * CRASHES {
            drawn.insert(1 + random.below(OBJECTS));
        }
        for (nth, fault) in drawn
            .into_iter()
            .zip([Fault::CrashBefore, Fault::CrashAfter].into_iter().cycle())
        {
            plan = plan.with(Rule::at(nth, fault).verb(verb).resource(resource));
            cases += 1;
        }
    }
    (plan, cases)
}

struct Held {
    claims: Vec<IPClaim>,
    children: Vec<ConfigMap>,
}

async fn held(cluster: &Cluster) -> Held {
    let (claims, children): (Api<IPClaim>, Api<ConfigMap>) = (
        Api::namespaced(cluster.client("checker"), "default"),
        Api::namespaced(cluster.client("checker"), "default"),
    );
    Held {
        claims: claims.list(&ListParams::default()).await.unwrap().items,
        children: children.list(&ListParams::default()).await.unwrap().items,
    }
}

impl Held {
    /// Checks that children have a claim with a finalizer, and claims refer to their own children.
    fn check(&self, when: &str) {
        assert!(self.children.len() <= self.claims.len(), "{when}");
        for (child, claim) in self.pairs() {
            let name = claim.name_any();
            assert!(
                is_of(child, &claim.uid().unwrap()),
                "{when}: {name} has the child of another claim"
            );
            assert!(
                claim.finalizers().contains(&FINALIZER.to_owned()),
                "{when}: {name} can be deleted before its child"
            );
            let named = claim.status.address.as_ref().and_then(|address| address.uid.clone());
            assert!(
                named.is_none() || named == child.uid(),
                "{when}: {name} names another child"
            );
        }
    }

    /// Each child with the claim of its name.
    fn pairs(&self) -> impl Iterator<Item = (&ConfigMap, &IPClaim)> {
        self.children.iter().map(|child| {
            let claim = self
                .claims
                .binary_search_by_key(&child.name_any(), kube::ResourceExt::name_any);
            (child, self.claims.get(claim.unwrap()).unwrap())
        })
    }

    fn ready(&self) -> usize {
        let ready = |claim: &&IPClaim| {
            claim
                .status
                .conditions
                .iter()
                .any(|condition| condition.type_ == "Ready")
        };
        self.claims.iter().filter(ready).count()
    }
}

#[tokio::test(start_paused = true)]
#[expect(clippy::print_stdout, reason = "the figures are part of the test output")]
async fn a_thousand_objects_survive_crashes_at_random_writes() {
    let (cluster, options) = server_with_claims(OBJECTS).await;
    let (plan, cases) = crashes();
    cluster.inject(plan);
    let (mut crashed, began) = (cluster.crashes(), Instant::now());
    let (mut running, mut starts) = (program(&cluster, &options), 1_u64);
    loop {
        tokio::select! {
            biased;
            changed = crashed.changed() => {
                changed.unwrap();
                drop(running);
                held(&cluster).await.check(&format!("seed {SEED}, after crash {starts}"));
                running = program(&cluster, &options);
                starts += 1;
            }
            () = sleep(Duration::from_mins(10)) => break,
        }
    }
    let end = held(&cluster).await;
    end.check("at the end");
    assert_eq!((end.children.len(), end.ready()), (1000, 1000));
    assert_eq!(*crashed.borrow(), cases, "seed {SEED}: a chosen write never occurred");
    let made: Vec<u64> = WRITES
        .iter()
        .map(|(verb, resource)| cluster.audit().of("program", verb, resource))
        .collect();
    // An interrupted write is retried once by each worker; no other write is repeated.
    for count in &made {
        assert!((OBJECTS..=OBJECTS + 4 * cases).contains(count), "seed {SEED}: {made:?}");
    }
    println!(
        "{OBJECTS} objects, seed {SEED}: {cases} crashes, {starts} starts, writes {made:?}, {:?}",
        began.elapsed()
    );
    drop(running);
}
