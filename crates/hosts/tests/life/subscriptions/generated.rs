//! Generated sequences: subscriptions are created and deleted while their host is paused, detached, deleted, registered again
//! or gets another node, and while requests fail. Judged at rest.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use metal3_api::metal3::v1alpha1::BMCEventSubscription;
use metal3_sim_faults::{Fault, Plan, Random, Rule};
use metal3_sim_ironic::Subscription;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{HOUR, document, env, in_bmc};
use crate::env::{CONTROLLER_USER, TestEnv};
use crate::interceptor::IronicFault;
use crate::seeds::{failures, range};
use crate::unserved::pause;

/// Sequences of every test run.
const SEQUENCES: u64 = 40;
/// The number of sequences, if others than these are wanted: `FIRST-LAST`.
const RANGE: &str = "METAL3_HOSTS_SUBSCRIPTIONS";
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Two objects have equal subscriptions.
const DESTINATIONS: [&str; 3] = ["https://one.example/", "https://one.example/", "https://two.example/"];
const FOREIGN: &str = "https://elsewhere.example/";
const API_FAULTS: [Fault; 4] = [Fault::CrashBefore, Fault::CrashAfter, Fault::ReplyLost, Fault::Conflict];

#[derive(Debug, Clone, Copy)]
enum Step {
    Create(usize),
    Delete(usize),
    /// Another program creates an equal one.
    CreateElsewhere(usize),
    Pause,
    Unpause,
    Detach,
    Attach,
    DeleteHost,
    MakeHost,
    LoseDatabase,
    /// The BMC is reset, and Ironic loses its database.
    Replace,
    IronicFault(usize, IronicFault),
    WriteFault(u64, usize, bool),
    Crash,
    Wait(u64),
}

fn generate(random: &mut Random) -> Vec<Step> {
    let count = 4 + random.below(9);
    let mut pick = |most: usize| usize::try_from(random.below(u64::try_from(most).unwrap())).unwrap();
    // An equal one that another program creates while a response is lost cannot be distinguished from that of the object.
    let mut steps = match pick(3) {
        0 => vec![Step::CreateElsewhere(pick(3)), Step::Create(0)],
        _ => vec![Step::Create(0)],
    };
    for _ in 0..count {
        steps.push(match pick(22) {
            0..=3 => Step::Create(pick(3)),
            4..=7 => Step::Delete(pick(3)),
            8 => Step::Pause,
            9 => Step::Unpause,
            10 => Step::Detach,
            11 => Step::Attach,
            12 => Step::DeleteHost,
            13 => Step::MakeHost,
            14 => Step::LoseDatabase,
            15 => Step::Replace,
            16..=18 => Step::IronicFault(1 + pick(9), IronicFault::ALL[pick(IronicFault::ALL.len())]),
            19 => Step::WriteFault(
                u64::try_from(1 + pick(3)).unwrap(),
                pick(API_FAULTS.len()),
                pick(2) == 0,
            ),
            20 => Step::Crash,
            _ => Step::Wait(u64::try_from(pick(3_000)).unwrap()),
        });
        steps.push(Step::Wait(u64::try_from(pick(90)).unwrap()));
    }
    steps
}

struct Sequence {
    env: TestEnv,
    /// The equal subscriptions of another program, by destination.
    elsewhere: BTreeMap<&'static str, usize>,
    /// Subscriptions that may stay in the BMC, by destination: those of objects that are deleted while their host is.
    left: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Sequence {
    async fn perform(&mut self, step: Step) {
        let env = &self.env;
        let api = env.api::<BMCEventSubscription>();
        match step {
            Step::Create(at) => {
                let object = serde_json::from_value(document(NAMES[at], DESTINATIONS[at])).unwrap();
                drop(api.create(&PostParams::default(), &object).await);
            }
            Step::Delete(at) => drop(api.delete(NAMES[at], &DeleteParams::default()).await),
            Step::CreateElsewhere(at) => {
                let destination = DESTINATIONS[at];
                let count = self.elsewhere.entry(destination).or_default();
                *count += 1;
                let id = format!("elsewhere-{at}-{count}");
                let (destination, context) = (destination.to_owned(), "rack 4".to_owned());
                let headers = Value::Null;
                let one = Subscription {
                    id,
                    destination,
                    context,
                    headers,
                };
                env.machine(1, |machine| machine.subscriptions.push(one));
            }
            Step::MakeHost if env.get(1).await.is_none() => self.make_host().await,
            Step::Pause | Step::Unpause | Step::Detach | Step::Attach | Step::DeleteHost
                if env.get(1).await.is_some() =>
            {
                self.change_host(step).await;
            }
            Step::Pause | Step::Unpause | Step::Detach | Step::Attach | Step::DeleteHost | Step::MakeHost => {}
            Step::LoseDatabase => env.ironic.lose_database(),
            Step::Replace => {
                env.ironic.lose_database();
                env.machine(1, |machine| machine.subscriptions.clear());
                self.elsewhere.clear();
            }
            Step::IronicFault(at, fault) => {
                let mut log = env.interceptor.log();
                log.fault = Some((log.asked.len() + at, fault));
            }
            Step::WriteFault(at, fault, is_status) => {
                let resource = if is_status {
                    "bmceventsubscriptions/status"
                } else {
                    "bmceventsubscriptions"
                };
                let rule = Rule::at(at, API_FAULTS[fault]).verb("patch").resource(resource);
                env.cluster.inject_for(&[CONTROLLER_USER], Plan::none().with(rule));
            }
            Step::Crash => env.interceptor.kill(),
            Step::Wait(seconds) => sleep(Duration::from_secs(seconds)).await,
        }
        self.note_left().await;
    }

    async fn change_host(&self, step: Step) {
        let env = &self.env;
        let (name, value) = match step {
            Step::Pause => return pause(env).await,
            Step::Unpause => ("paused", Value::Null),
            Step::Detach => ("detached", json!("")),
            Step::Attach => ("detached", Value::Null),
            _ => return env.delete(1).await,
        };
        let name = format!("baremetalhost.metal3.io/{name}");
        env.edit(1, json!({ "metadata": { "annotations": { name: value } } }))
            .await;
    }

    async fn make_host(&self) {
        let document = self.env.document(1, &json!({}));
        self.env
            .make::<metal3_api::metal3::v1alpha1::BareMetalHost>(document)
            .await;
    }

    /// While a host is deleted, its node goes, and with it the way to the BMC.
    async fn note_left(&mut self) {
        let host = self.env.get(1).await;
        if host.is_some_and(|host| host.metadata.deletion_timestamp.is_none()) {
            return;
        }
        let objects = self
            .env
            .api::<BMCEventSubscription>()
            .list(&Default::default())
            .await
            .unwrap();
        let deleted = objects
            .items
            .iter()
            .filter(|object| object.metadata.deletion_timestamp.is_some());
        for object in deleted {
            let at = NAMES
                .iter()
                .position(|name| object.metadata.name.as_deref() == Some(*name));
            let uid = object.metadata.uid.clone().unwrap_or_default();
            self.left.entry(DESTINATIONS[at.unwrap()]).or_default().insert(uid);
        }
    }

    /// Everything that holds the subscriptions up ends.
    async fn heal(&mut self) {
        self.env.interceptor.log().fault = None;
        self.env.cluster.inject_for(&[CONTROLLER_USER], Plan::none());
        for _ in 0..2 {
            let is_deleted = match self.env.get(1).await {
                Some(host) => {
                    let annotations =
                        json!({ "baremetalhost.metal3.io/paused": null, "baremetalhost.metal3.io/detached": null });
                    self.env
                        .edit(1, json!({ "metadata": { "annotations": annotations } }))
                        .await;
                    host.metadata.deletion_timestamp.is_some()
                }
                None => true,
            };
            if is_deleted {
                self.env.until(1, "deletion", |host| host.is_none()).await;
                self.note_left().await;
                self.make_host().await;
            }
        }
        self.env.until_state(1, "available").await;
        sleep(3 * HOUR).await;
    }

    async fn judge(&self) -> Result<(), String> {
        let objects = self
            .env
            .api::<BMCEventSubscription>()
            .list(&Default::default())
            .await
            .unwrap()
            .items;
        let in_bmc = in_bmc(&self.env);
        let of_bmc = |destination: &str| in_bmc.iter().filter(|one| one.destination == destination).count();
        let mut ids = Vec::new();
        for object in &objects {
            let (name, status) = (object.metadata.name.as_deref().unwrap_or_default(), &object.status);
            if object.metadata.deletion_timestamp.is_some() {
                return Err(format!("{name} is not deleted: {:?}", status.error));
            }
            let Some(id) = &status.subscription_id else {
                return Err(format!("{name} has none: {:?}", status.error));
            };
            if !in_bmc.iter().any(|one| one.id == *id) || ids.contains(id) || status.error.is_some() {
                return Err(format!("{name} has {id} with {:?}, the BMC {in_bmc:?}", status.error));
            }
            ids.push(id.clone());
        }
        for destination in ["https://one.example/", "https://two.example/"] {
            let wanted = objects
                .iter()
                .filter(|one| one.spec.destination.as_deref() == Some(destination))
                .count();
            let least = wanted + self.elsewhere.get(destination).copied().unwrap_or_default();
            let most = least + self.left.get(destination).map_or(0, BTreeSet::len);
            let found = of_bmc(destination);
            if found < least || found > most {
                return Err(format!("{found} of {least} to {most} for {destination}: {in_bmc:?}"));
            }
        }
        (of_bmc(FOREIGN) == 0)
            .then_some(())
            .ok_or_else(|| "one of another namespace".to_owned())
    }
}

async fn run(seed: u64) -> Result<(), String> {
    let steps = generate(&mut Random::seeded(seed));
    let env = env().await;
    env.host(1, json!({})).await;
    let client = env.cluster.client("tenant");
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = serde_json::from_value(json!({ "metadata": { "name": "tenant" } })).unwrap();
    namespaces.create(&PostParams::default(), &namespace).await.unwrap();
    let foreign = serde_json::from_value(document("a", FOREIGN)).unwrap();
    let of_tenant: Api<BMCEventSubscription> = Api::namespaced(client, "tenant");
    of_tenant.create(&PostParams::default(), &foreign).await.unwrap();
    let mut sequence = Sequence {
        env,
        elsewhere: BTreeMap::new(),
        left: BTreeMap::new(),
    };
    if seed.is_multiple_of(2) {
        sequence.env.until_state(1, "available").await;
    }
    for step in &steps {
        sequence.perform(*step).await;
    }
    sequence.heal().await;
    sequence
        .judge()
        .await
        .map_err(|why| format!("{seed}: {why}\n{steps:?}"))
}

fn run_alone(seed: u64) -> Result<(), String> {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    let result = std::panic::catch_unwind(|| runtime.block_on(run(seed)));
    result.unwrap_or_else(|_| {
        Err(format!(
            "{seed}: a panic, printed above: {:?}",
            generate(&mut Random::seeded(seed))
        ))
    })
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are for the test log")]
fn generated_sequences_leave_one_subscription_of_an_object_and_none_of_a_deleted_one() {
    let (first, end) = range(RANGE, SEQUENCES);
    let failed = failures((first, end), usize::MAX, run_alone);
    println!(
        "{} sequences run, {} failed ({RANGE}=FIRST-LAST for others)",
        end - first,
        failed.len()
    );
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
