//! Generated sequences: two tenants create, edit and delete claims while policies, hosts and cleaning modes change, writes fail and the
//! program is restarted. Judged at every step:
//!
//! - a host passes from one claim to another only with a clean disk;
//! - a host is given nothing of a tenant that no policy permits;
//! - no object of a tenant contains a field of a BMC.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use metal3_api::metal3::v1alpha1::{AutomatedCleaningMode, BareMetalHost, HostClaim, HostDeployPolicy};
use metal3_sim_faults::{Fault, Plan, Random, Rule};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::tenant::{Tenant, image};
use crate::env::{CONTROLLER_USER, PASSWORD};
use crate::seeds::{failures, range};

/// Sequences of every test run.
const SEQUENCES: u64 = 6;
/// The number of sequences, if others than these are wanted: `FIRST-LAST`.
const RANGE: &str = "METAL3_HOSTS_CLAIMS";
const TENANTS: [&str; 2] = ["blue", "red"];
const NAMES: [&str; 2] = ["a", "b"];
const HOSTS: u32 = 2;
const FAULTS: [Fault; 4] = [Fault::CrashBefore, Fault::CrashAfter, Fault::ReplyLost, Fault::Conflict];
/// More than the controller needs to see a policy.
const SETTLED: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
enum Step {
    Create(usize, usize),
    Edit(usize, usize, u64),
    Delete(usize, usize),
    /// Lets this tenant in, or both.
    Open(usize),
    Close,
    Cleaning(u32, bool),
    /// A user writes a claim into a host.
    Forge(u32, usize, usize),
    WriteFault(u64, usize),
    Crash,
    Wait(u64),
}

fn generate(random: &mut Random) -> Vec<Step> {
    let mut pick = |most: u64| usize::try_from(random.below(most)).unwrap();
    let mut steps = vec![Step::Open(2)];
    for _ in 0..14 {
        let (tenant, name, host) = (pick(2), pick(2), 1 + u32::try_from(pick(2)).unwrap());
        steps.push(match pick(16) {
            0..=4 => Step::Create(tenant, name),
            5 | 6 => Step::Edit(tenant, name, u64::try_from(pick(4)).unwrap()),
            7..=9 => Step::Delete(tenant, name),
            10 => Step::Open(pick(3)),
            11 => Step::Close,
            12 => Step::Cleaning(host, pick(3) > 0),
            13 => Step::Forge(host, tenant, name),
            14 => Step::WriteFault(1 + u64::try_from(pick(4)).unwrap(), pick(4)),
            _ => Step::Crash,
        });
        steps.push(Step::Wait(u64::try_from(pick(900)).unwrap()));
    }
    steps.extend([Step::Open(2), Step::Wait(7_200)]);
    steps
}

/// What is known of the world, to judge the next view by.
#[derive(Default)]
struct Judge {
    /// The tenants that a policy permits; all of them while that changes.
    open: Vec<&'static str>,
    consumers: BTreeMap<u32, String>,
    /// The hosts that their owner did not want to be cleaned before they were bound.
    kept: BTreeSet<u32>,
}

struct Story {
    tenant: Tenant,
    judge: Judge,
}

impl Story {
    async fn new() -> Self {
        let tenant = Tenant::without_host();
        for name in TENANTS {
            tenant.namespace(name, json!({})).await;
            tenant
                .secret(name, "user", "Opaque", json!({ "userData": format!("data of {name}") }))
                .await;
        }
        for number in 1..=HOSTS {
            tenant.env.host(number, json!({})).await;
            tenant.env.until_state(number, "available").await;
        }
        let judge = Judge::default();
        Self { tenant, judge }
    }

    fn claims(&self, tenant: usize) -> Api<HostClaim> {
        self.tenant.claims(TENANTS[tenant])
    }

    async fn perform(&mut self, step: Step) -> Result<(), String> {
        let env = &self.tenant.env;
        match step {
            Step::Create(tenant, name) => {
                let spec =
                    json!({ "poweredOn": true, "image": image_of(TENANTS[tenant]), "userData": { "name": "user" } });
                let claim = json!({ "metadata": { "name": NAMES[name] }, "spec": spec });
                let claim = serde_json::from_value(claim).unwrap();
                drop(self.claims(tenant).create(&PostParams::default(), &claim).await);
            }
            Step::Edit(tenant, name, what) => {
                let change = match what {
                    0 => json!({ "spec": { "poweredOn": false } }),
                    1 => json!({ "spec": { "image": null } }),
                    2 => json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } }),
                    _ => json!({ "spec": { "image": image_of(TENANTS[tenant]), "poweredOn": true } }),
                };
                let claims = self.claims(tenant);
                drop(
                    claims
                        .patch(NAMES[name], &PatchParams::default(), &Patch::Merge(change))
                        .await,
                );
            }
            Step::Delete(tenant, name) => drop(self.claims(tenant).delete(NAMES[name], &DeleteParams::default()).await),
            Step::Open(who) => {
                self.open(TENANTS.get(who).map_or(TENANTS.to_vec(), |one| vec![*one]))
                    .await
            }
            Step::Close => self.open(Vec::new()).await,
            Step::Cleaning(host, is_disabled) => {
                // Before a claim has the host, its owner may decide.
                let is_used = env.get(host).await.is_some_and(|host| host.spec.consumer_ref.is_some());
                if is_used {
                    let mode = if is_disabled { "disabled" } else { "metadata" };
                    env.edit(host, json!({ "spec": { "automatedCleaningMode": mode } }))
                        .await;
                }
            }
            Step::Forge(host, tenant, name) => self.forge(host, tenant, name).await,
            Step::WriteFault(at, fault) => {
                let rule = Rule::at(at, FAULTS[fault]).verb("patch");
                env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
            }
            Step::Crash => env.interceptor.kill(),
            Step::Wait(seconds) => {
                for _ in 0..seconds / 15 {
                    sleep(Duration::from_secs(15)).await;
                    self.look().await?;
                }
                self.clean_again().await;
            }
        }
        self.look().await
    }

    /// Replaces the policy. What is under way with the former one ends.
    async fn open(&mut self, names: Vec<&'static str>) {
        let policies = self.tenant.env.api::<HostDeployPolicy>();
        drop(policies.delete("open", &DeleteParams::default()).await);
        if !names.is_empty() {
            self.tenant.open(json!({ "names": names })).await;
        }
        self.judge.open = TENANTS.to_vec();
        sleep(SETTLED).await;
        self.judge.open = names;
    }

    /// Writes a claim into a free host, as a user who may write hosts.
    async fn forge(&self, host: u32, tenant: usize, name: usize) {
        let env = &self.tenant.env;
        if env.get(host).await.is_some_and(|host| host.spec.consumer_ref.is_none()) {
            let consumer = json!({ "kind": "HostClaim", "apiVersion": "metal3.io/v1alpha1", "name": NAMES[name],
                "namespace": TENANTS[tenant] });
            env.edit(host, json!({ "spec": { "consumerRef": consumer } })).await;
        }
    }

    /// The owner wants free hosts to be cleaned after their next use.
    async fn clean_again(&self) {
        for number in 1..=HOSTS {
            let host = self.tenant.env.get(number).await;
            if host.is_some_and(|host| host.spec.consumer_ref.is_none()) {
                let mode = json!({ "spec": { "automatedCleaningMode": "metadata" } });
                self.tenant.env.edit(number, mode).await;
            }
        }
    }

    /// Looks at everything.
    async fn look(&mut self) -> Result<(), String> {
        for number in 1..=HOSTS {
            let Some(host) = self.tenant.env.get(number).await else {
                continue;
            };
            self.judge_host(number, &host)?;
        }
        for tenant in 0..TENANTS.len() {
            for claim in self
                .claims(tenant)
                .list(&kube::api::ListParams::default())
                .await
                .unwrap()
            {
                judge_claim(&claim)?;
            }
        }
        Ok(())
    }

    fn judge_host(&mut self, number: u32, host: &BareMetalHost) -> Result<(), String> {
        let consumer = host.spec.consumer_ref.as_ref();
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let now = consumer.map_or_else(String::new, |one| {
            format!("{}/{}", text(&one.namespace), text(&one.name))
        });
        let before = self.judge.consumers.insert(number, now.clone()).unwrap_or_default();
        let disk = self.tenant.env.machine(number, |machine| machine.disk.clone());
        let is_disabled = host.spec.automated_cleaning_mode == Some(AutomatedCleaningMode::Disabled);
        if before != now && disk.is_some() && !self.judge.kept.contains(&number) {
            return Err(format!("host {number} passes from {before:?} to {now:?} with {disk:?}"));
        }
        match is_disabled {
            true if before.is_empty() && !now.is_empty() => drop(self.judge.kept.insert(number)),
            false => drop(self.judge.kept.remove(&number)),
            true => {}
        }
        // Whose image it is asked to run.
        let url = host
            .spec
            .image
            .as_ref()
            .map(|image| image.url.clone())
            .unwrap_or_default();
        let owner = TENANTS.into_iter().find(|tenant| url.contains(tenant));
        match owner {
            Some(owner) if !now.starts_with(&format!("{owner}/")) => {
                Err(format!("host {number} of {now:?} is given what {owner} asks for"))
            }
            Some(owner) if !before.is_empty() && before != now && !self.judge.open.contains(&owner) => {
                Err(format!("host {number} is given to {owner}, which no policy permits"))
            }
            _ => Ok(()),
        }
    }
}

fn image_of(tenant: &str) -> Value {
    let mut image = image();
    image["url"] = format!("http://images.example/{tenant}.qcow2").into();
    image
}

fn judge_claim(claim: &HostClaim) -> Result<(), String> {
    let text = serde_json::to_string(claim).unwrap();
    let canaries = ["10.0.0", "redfish", "bmc-1", "bmc-2", PASSWORD];
    let found = canaries.into_iter().find(|canary| text.contains(canary));
    found.map_or(Ok(()), |canary| Err(format!("{canary} in {text}")))
}

async fn run(seed: u64) -> Result<(), String> {
    let steps = generate(&mut Random::seeded(seed));
    let mut story = Story::new().await;
    for (at, step) in steps.iter().enumerate() {
        let judged = story.perform(*step).await;
        judged.map_err(|why| format!("seed {seed}, step {at} of {steps:#?}: {why}"))?;
    }
    for tenant in 0..TENANTS.len() {
        for name in NAMES {
            drop(story.claims(tenant).delete(name, &DeleteParams::default()).await);
        }
    }
    story
        .perform(Step::Wait(7_200))
        .await
        .map_err(|why| format!("seed {seed}, at the end: {why}"))?;
    for tenant in 0..TENANTS.len() {
        let left = story
            .claims(tenant)
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        let names: Vec<_> = left
            .items
            .iter()
            .map(|one| format!("{:?}", one.status.conditions))
            .collect();
        if !names.is_empty() {
            return Err(format!("seed {seed}: claims stay: {names:?} after {steps:#?}"));
        }
    }
    Ok(())
}

#[test]
fn hosts_of_two_tenants_pass_on_clean_and_only_where_a_policy_permits() {
    let failed = failures(range(RANGE, SEQUENCES), 1, |seed| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(run(seed))
    });
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
