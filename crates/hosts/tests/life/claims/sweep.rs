//! Crash sweep: each fault at each write of the controller for a claim, from its creation to its deletion.

use metal3_sim_faults::{Fault, Plan, Rule};
use serde_json::json;
use tokio::time::sleep;

use super::MINUTES;
use super::tenant::{NAMESPACE, Tenant, image};
use crate::env::CONTROLLER_USER;

/// The writes of this controller. Those of hosts are also those of the controller of hosts.
const WRITES: [(&str, &str); 5] = [
    ("patch", "hostclaims"),
    ("patch", "hostclaims/status"),
    ("create", "secrets"),
    ("patch", "secrets"),
    ("patch", "baremetalhosts"),
];
const FAULTS: [Fault; 4] = [Fault::CrashBefore, Fault::CrashAfter, Fault::ReplyLost, Fault::Conflict];

#[derive(Debug, Clone, Copy)]
struct Case {
    write: (&'static str, &'static str),
    at: u64,
    fault: Fault,
}

fn inject(tenant: &Tenant, case: Option<Case>) {
    tenant.env.cluster.reset_audit();
    if let Some(Case {
        write: (verb, resource),
        at,
        fault,
    }) = case
    {
        let rule = Rule::at(at, fault).verb(verb).resource(resource);
        tenant
            .env
            .cluster
            .inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
    }
}

fn counts(tenant: &Tenant) -> [u64; 5] {
    WRITES.map(|(verb, resource)| tenant.env.cluster.audit().of(CONTROLLER_USER, verb, resource))
}

/// Returns the number of writes of each kind.
async fn run(case: Option<Case>) -> [u64; 5] {
    let tenant = Tenant::new().await;
    let env = &tenant.env;
    inject(&tenant, case);
    tenant.open(json!({ "names": [NAMESPACE] })).await;
    tenant
        .secret(NAMESPACE, "user", "Opaque", json!({ "userData": "canary" }))
        .await;
    tenant
        .claim(
            "c",
            json!({ "poweredOn": true, "image": image(), "userData": { "name": "user" } }),
        )
        .await;
    tenant.until_ready("c").await;
    sleep(MINUTES).await;
    let written = env.machine(1, |machine| machine.counts.written);
    assert_eq!(written, 1, "{case:?}: it is deployed once");
    let erased = env.machine(1, |machine| machine.counts.erased);
    tenant.delete("c").await;
    tenant.until_gone("c").await;
    let host = env.get(1).await.unwrap();
    assert!(
        host.spec.consumer_ref.is_none() && host.spec.image.is_none(),
        "{case:?}"
    );
    let machine = env.machine(1, |machine| (machine.disk.is_none(), machine.counts.erased > erased));
    assert_eq!(machine, (true, true), "{case:?}: it is cleaned first");
    let copy = tenant.secrets("default").get("host-1.claim-user-data").await.unwrap();
    assert!(copy.data.unwrap_or_default().is_empty(), "{case:?}");
    assert_eq!(
        env.cluster.injected() > 0,
        case.is_some(),
        "{case:?} at a write that was not made"
    );
    counts(&tenant)
}

/// The administrators remove the consumer of a host of which the policy does not permit the release, and then its image.
async fn end(case: Option<Case>) -> [u64; 5] {
    let tenant = Tenant::new().await;
    let env = &tenant.env;
    tenant.open(json!({ "names": [NAMESPACE] })).await;
    let data = json!({ "userData": "canary" });
    tenant.secret(NAMESPACE, "user", "Opaque", data).await;
    let spec = json!({ "poweredOn": true, "image": image(), "userData": { "name": "user" } });
    tenant.claim("c", spec).await;
    tenant.until_ready("c").await;
    tenant.close().await;
    sleep(MINUTES).await;
    let erased = env.machine(1, |machine| machine.counts.erased);
    inject(&tenant, case);
    tenant.delete("c").await;
    sleep(MINUTES).await;
    assert!(
        tenant.find("c").await.is_some(),
        "{case:?}: it is not released without a policy"
    );
    env.edit(1, json!({ "spec": { "consumerRef": null } })).await;
    tenant.until_gone("c").await;
    env.edit(1, json!({ "spec": { "image": null, "userData": null } }))
        .await;
    env.until_state(1, "available").await;
    sleep(MINUTES).await;
    let host = env.get(1).await.unwrap();
    assert!(host.annotation("hostclaim.metal3.io/bond").is_none(), "{case:?}");
    let machine = env.machine(1, |machine| (machine.disk.is_none(), machine.counts.erased > erased));
    assert_eq!(machine, (true, true), "{case:?}: it is cleaned once more");
    let copy = tenant.secrets("default").get("host-1.claim-user-data").await.unwrap();
    assert!(copy.data.unwrap_or_default().is_empty(), "{case:?}");
    assert_eq!(
        env.cluster.injected() > 0,
        case.is_some(),
        "{case:?} at a write that was not made"
    );
    counts(&tenant)
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_write_at_the_end_of_a_bond_leaves_nothing() {
    let counts = end(None).await;
    for (write, count) in WRITES.into_iter().zip(counts) {
        for at in 1..=count {
            for fault in [Fault::CrashBefore, Fault::CrashAfter] {
                end(Some(Case { write, at, fault })).await;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn fault_of_any_write_ends_in_the_same_states() {
    let counts = run(None).await;
    assert_eq!(
        counts[..3],
        [2, 6, 1],
        "finalizer and its removal, six statuses, one copy"
    );
    for (write, count) in WRITES.into_iter().zip(counts) {
        for at in 1..=count {
            for fault in FAULTS {
                run(Some(Case { write, at, fault })).await;
            }
        }
    }
}
