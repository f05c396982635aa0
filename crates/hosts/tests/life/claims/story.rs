//! Generated sequences: two tenants create, edit, move and delete claims, whose annotations they change, while policies, hosts, Secrets and
//! cleaning modes change, writes fail and the program is restarted. Judged at every step:
//!
//! - a host passes from one claim to another, and is free again, only with a clean disk;
//! - a host is given nothing of a tenant that no policy permits;
//! - what one claim asks for runs on one host at a time;
//! - no object of a tenant contains a field of a BMC;
//! - at the end each claim can be deleted, but one that was moved and whose annotation does not name its host any more: whose that is
//!   then, an administrator has to say.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
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
const RANGE: &str = "METAL3_CLAIM_STORIES";
const TENANTS: [&str; 2] = ["blue", "red"];
const NAMES: [&str; 2] = ["a", "b"];
const HOSTS: u32 = 2;
const TRACE: &str = "hostclaim.metal3.io/host";
const PAUSED: &str = "cluster.x-k8s.io/paused";
const DELETE_FOR_MOVE: &str = "clusterctl.cluster.x-k8s.io/delete-for-move";
const REUSE: &str = "infrastructure.cluster.x-k8s.io/node-reuse";
/// An identifier that no program wrote.
const ID: &str = "0123456789abcdef0123456789abcdef01234567";
const FAULTS: [Fault; 4] = [Fault::CrashBefore, Fault::CrashAfter, Fault::ReplyLost, Fault::Conflict];
/// More than the controller needs to see a policy.
const SETTLED: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy)]
enum Step {
    Create(usize, usize),
    Edit(usize, usize, u64),
    Annotate(usize, usize, u64),
    /// As clusterctl moves it: created again from its text, without status.
    Move(usize, usize),
    Delete(usize, usize),
    /// Takes the Secret away, or brings it back.
    Secret(usize),
    /// Lets this tenant in, or both.
    Open(usize),
    Close,
    Cleaning(u32, bool),
    /// A user writes a claim into a host.
    Forge(u32, usize, usize),
    /// The administrators take a host back.
    Reclaim(u32),
    WriteFault(u64, usize),
    Crash,
    Wait(u64),
}

fn generate(random: &mut Random) -> Vec<Step> {
    let mut pick = |most: u64| usize::try_from(random.below(most)).unwrap();
    let mut steps = vec![Step::Open(2)];
    for _ in 0..14 {
        let (tenant, name, host) = (pick(2), pick(2), 1 + u32::try_from(pick(2)).unwrap());
        steps.push(match pick(24) {
            0..=5 => Step::Create(tenant, name),
            6 | 7 => Step::Edit(tenant, name, u64::try_from(pick(4)).unwrap()),
            8..=11 => Step::Annotate(tenant, name, u64::try_from(pick(6)).unwrap()),
            12..=14 => Step::Delete(tenant, name),
            15 => Step::Open(pick(3)),
            16 => Step::Close,
            17 => Step::Cleaning(host, pick(3) > 0),
            18 => Step::Forge(host, tenant, name),
            19 => Step::Reclaim(host),
            20 => Step::Move(tenant, name),
            21 => Step::Secret(tenant),
            22 => Step::WriteFault(1 + u64::try_from(pick(4)).unwrap(), pick(4)),
            _ => Step::Crash,
        });
        // Some steps follow each other within one reconcile.
        let pause = if pick(3) == 0 { pick(3) } else { pick(900) };
        steps.push(Step::Wait(u64::try_from(pause).unwrap()));
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
    images: BTreeMap<u32, String>,
    /// The hosts that their administrators took back, until they are clean.
    reclaimed: BTreeSet<u32>,
    /// The hosts that their owner did not want to be cleaned before they were bound.
    kept: BTreeSet<u32>,
}

struct Story {
    tenant: Tenant,
    judge: Judge,
    /// The claims that were moved, and those whose trace was changed.
    moved: BTreeSet<(usize, usize)>,
    changed: BTreeSet<(usize, usize)>,
    /// The namespaces without their Secret.
    bare: BTreeSet<usize>,
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
        Self {
            tenant,
            judge: Judge::default(),
            moved: BTreeSet::new(),
            changed: BTreeSet::new(),
            bare: BTreeSet::new(),
        }
    }

    fn claims(&self, tenant: usize) -> Api<HostClaim> {
        self.tenant.claims(TENANTS[tenant])
    }

    async fn perform(&mut self, step: Step) -> Result<(), String> {
        let env = &self.tenant.env;
        match step {
            Step::Create(tenant, name) => self.create(tenant, name).await,
            Step::Edit(tenant, name, what) => self.edit((tenant, name), what).await,
            Step::Annotate(tenant, name, what) => self.annotate((tenant, name), what).await,
            Step::Move(tenant, name) => self.move_claim(tenant, name).await?,
            Step::Secret(tenant) => self.toggle_secret(tenant).await,
            Step::Reclaim(host) => {
                if env.get(host).await.is_some_and(|host| host.spec.consumer_ref.is_some()) {
                    self.judge.reclaimed.insert(host);
                    let none =
                        json!({ "spec": { "consumerRef": null, "image": null, "userData": null, "online": false } });
                    env.edit(host, none).await;
                }
            }
            Step::Delete(tenant, name) => drop(self.claims(tenant).delete(NAMES[name], &DeleteParams::default()).await),
            Step::Open(who) => {
                self.open(TENANTS.get(who).map_or(TENANTS.to_vec(), |one| vec![*one]))
                    .await?;
            }
            Step::Close => self.open(Vec::new()).await?,
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

    async fn create(&mut self, tenant: usize, name: usize) {
        let spec = json!({ "poweredOn": true, "image": image_of(TENANTS[tenant]), "userData": { "name": "user" } });
        // The second name of a tenant keeps its host for the next one.
        let labels = if name == 1 {
            json!({ REUSE: "workers" })
        } else {
            json!({})
        };
        let claim = json!({ "metadata": { "name": NAMES[name], "labels": labels }, "spec": spec });
        let claim = serde_json::from_value(claim).unwrap();
        if self.claims(tenant).create(&PostParams::default(), &claim).await.is_ok() {
            self.moved.remove(&(tenant, name));
            self.changed.remove(&(tenant, name));
        }
    }

    async fn edit(&self, (tenant, name): (usize, usize), what: u64) {
        self.patch(
            (tenant, name),
            match what {
                0 => json!({ "spec": { "poweredOn": false } }),
                1 => json!({ "spec": { "image": null } }),
                2 => json!({ "metadata": { "annotations": { "reboot.metal3.io": "" } } }),
                _ => json!({ "spec": { "image": image_of(TENANTS[tenant]), "poweredOn": true } }),
            },
        )
        .await;
    }

    async fn toggle_secret(&mut self, tenant: usize) {
        let namespace = TENANTS[tenant];
        if self.bare.remove(&tenant) {
            let data = json!({ "userData": format!("data of {namespace}") });
            self.tenant.secret(namespace, "user", "Opaque", data).await;
        } else {
            let secrets = self.tenant.secrets(namespace);
            secrets.delete("user", &DeleteParams::default()).await.unwrap();
            self.bare.insert(tenant);
        }
    }

    /// Replaces the policy. What is under way with the former one ends.
    async fn open(&mut self, names: Vec<&'static str>) -> Result<(), String> {
        let policies = self.tenant.env.api::<HostDeployPolicy>();
        drop(policies.delete("open", &DeleteParams::default()).await);
        if !names.is_empty() {
            self.tenant.open(json!({ "names": names })).await;
        }
        self.judge.open = TENANTS.to_vec();
        sleep(SETTLED).await;
        self.look().await?;
        self.judge.open = names;
        Ok(())
    }

    async fn patch(&self, (tenant, name): (usize, usize), change: Value) {
        let claims = self.claims(tenant);
        drop(
            claims
                .patch(NAMES[name], &PatchParams::default(), &Patch::Merge(change))
                .await,
        );
    }

    /// What a tenant may write into the annotations of a claim.
    async fn annotate(&mut self, (tenant, name): (usize, usize), what: u64) {
        let Ok(claim) = self.claims(tenant).get(NAMES[name]).await else {
            return;
        };
        let of = format!("{}/{}", TENANTS[tenant], NAMES[name]);
        let elsewhere = json!({ "claim": of, "host": format!("default/host-{}", 1 + what % 2), "id": ID, "uid": claim.metadata.uid });
        if matches!(what, 0 | 1 | 2 | 4) {
            self.changed.insert((tenant, name));
        }
        let annotations = match what {
            0 => json!({ TRACE: null }),
            1 | 2 => json!({ TRACE: elsewhere.to_string() }),
            3 => json!({ PAUSED: "" }),
            4 => json!({ TRACE: null, PAUSED: null, "reboot.metal3.io": "" }),
            _ => json!({ PAUSED: null }),
        };
        self.patch((tenant, name), json!({ "metadata": { "annotations": annotations } }))
            .await;
    }

    async fn move_claim(&mut self, tenant: usize, name: usize) -> Result<(), String> {
        let annotations = |paused: Value| json!({ "metadata": { "annotations": { PAUSED: paused } } });
        self.patch((tenant, name), annotations(json!(""))).await;
        sleep(Duration::from_secs(20)).await;
        self.look().await?;
        let claims = self.claims(tenant);
        let Ok(found) = claims.get(NAMES[name]).await else {
            return Ok(());
        };
        if found.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let mut copy = HostClaim::clone(&found);
        copy.status = HostClaim::default().status;
        copy.metadata = ObjectMeta {
            name: found.metadata.name.clone(),
            labels: found.metadata.labels.clone(),
            annotations: found.metadata.annotations.clone(),
            finalizers: found.metadata.finalizers.clone(),
            ..ObjectMeta::default()
        };
        let leaves = json!({ "metadata": { "annotations": { DELETE_FOR_MOVE: "" }, "finalizers": null } });
        self.patch((tenant, name), leaves).await;
        drop(claims.delete(NAMES[name], &DeleteParams::default()).await);
        self.patch((tenant, name), json!({ "metadata": { "finalizers": null } }))
            .await;
        if claims.create(&PostParams::default(), &copy).await.is_ok() {
            self.moved.insert((tenant, name));
        }
        sleep(Duration::from_secs(20)).await;
        self.look().await?;
        self.patch((tenant, name), annotations(Value::Null)).await;
        Ok(())
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
        let mut running = BTreeMap::new();
        for number in 1..=HOSTS {
            let Some(host) = self.tenant.env.get(number).await else {
                continue;
            };
            self.judge_host(number, &host)?;
            let bond = host.annotation("hostclaim.metal3.io/bond").unwrap_or_default();
            let bond: Value = serde_json::from_str(bond).unwrap_or_default();
            if let (Some(id), true) = (bond.pointer("/id"), host.spec.image.is_some())
                && let Some(other) = running.insert(id.to_string(), number)
            {
                return Err(format!("host {number} and host {other} run what one claim asks for"));
            }
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
        let is_reclaimed = self.judge.reclaimed.contains(&number);
        if before != now && disk.is_some() && !self.judge.kept.contains(&number) && !(is_reclaimed && now.is_empty()) {
            return Err(format!("host {number} passes from {before:?} to {now:?} with {disk:?}"));
        }
        if disk.is_none() {
            self.judge.reclaimed.remove(&number);
        }
        match is_disabled {
            true if before != now && !now.is_empty() => drop(self.judge.kept.insert(number)),
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
        let former = self.judge.images.insert(number, url.clone()).unwrap_or_default();
        let owner = TENANTS.into_iter().find(|tenant| url.contains(tenant));
        match owner {
            Some(owner) if !now.starts_with(&format!("{owner}/")) => {
                Err(format!("host {number} of {now:?} is given what {owner} asks for"))
            }
            Some(owner) if former != url && !self.judge.open.contains(&owner) => {
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
        judged.map_err(|why| format!("seed {seed}, step {at} of {steps:?}: {why}"))?;
    }
    for tenant in 0..TENANTS.len() {
        for (number, name) in NAMES.into_iter().enumerate() {
            let unpaused = json!({ "metadata": { "annotations": { PAUSED: null } } });
            story.patch((tenant, number), unpaused).await;
            drop(story.claims(tenant).delete(name, &DeleteParams::default()).await);
        }
    }
    story
        .perform(Step::Wait(7_200))
        .await
        .map_err(|why| format!("seed {seed}, at the end of {steps:?}: {why}"))?;
    for tenant in 0..TENANTS.len() {
        let left = story
            .claims(tenant)
            .list(&kube::api::ListParams::default())
            .await
            .unwrap();
        for claim in left {
            let number = NAMES
                .iter()
                .position(|name| claim.metadata.name.as_deref() == Some(*name));
            let claim_key = (tenant, number.unwrap());
            if !(story.moved.contains(&claim_key) && story.changed.contains(&claim_key)) {
                let why = &claim.status.conditions;
                return Err(format!("seed {seed}: {claim_key:?} stays: {why:?} after {steps:?}"));
            }
        }
    }
    Ok(())
}

#[test]
fn generated_stories_of_two_tenants_pass_hosts_on_clean_and_only_where_a_policy_permits() {
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
