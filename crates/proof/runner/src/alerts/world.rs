//! Plays a case in the simulated world under paused time.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use http::Method;
use metal3_domain::clock::Clock;
use metal3_files::workspace;
use metal3_runtime::clock::TimerClock;
use metal3_runtime::metrics::Metrics;
use metal3_sandbox::world::{Fault, Faults, NAMESPACE, Setup, World, collection, host_name};
use metal3_sim_faults::Plan;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::cases::{Case, Step};
use super::scrape::Recording;
use super::{complaints, leaks, scraped};
use crate::world::{PRODUCTS, apply_file, simulated_time};

const MINUTE: Duration = Duration::from_mins(1);
const HOUR: u32 = 60;
/// Between two looks at the world without faults, while its hosts and machines change.
const LOOK: Duration = Duration::from_secs(5);
const LOOKS_OF_A_MINUTE: u32 = 12;
/// Minutes between two scrapes of many days: the longest distance that rates of ten minutes allow.
const LONG: u32 = 5;
const DAY: u32 = 1440;
/// The days whose changes are looked at: a worker more, and a worker less.
const LOOKED_AT: u32 = 2;
const CLUSTER: &str = "e2e/scenarios/objects/cluster.yaml";
const CLUSTERS: &str = "cluster.x-k8s.io/v1beta2";
const HOSTS: &str = "metal3.io/v1alpha1";
/// The image of that cluster.
const IMAGE: &str = "http://images.example/node.raw";

/// Plays a case, of which the days last this long.
pub(super) fn play(case: &Case, days: u32) -> Result<Recording> {
    let runtime = simulated_time()?;
    runtime.block_on(async {
        let is_long = case.steps.iter().any(|step| matches!(step, Step::Days));
        let mut player = Player::start(case, if is_long { LONG } else { 1 })?;
        for step in case.steps {
            player.perform(step, days).await?;
        }
        let found = complaints(&player.world.metrics().render());
        ensure!(found.is_empty(), "{}", found.join("\n"));
        Ok(player.recording)
    })
}

struct Player {
    world: World,
    hosts: u32,
    recording: Recording,
    wanted: BTreeSet<String>,
    registry: Option<fn(&Metrics)>,
    /// Series of another process.
    also_scraped: &'static str,
}

impl Player {
    fn start(case: &Case, minutes: u32) -> Result<Self> {
        let start = chrono::DateTime::from_timestamp(1_767_225_600, 0).unwrap_or_default();
        let clock: Arc<dyn Clock> = Arc::new(TimerClock::start(start));
        let mut setup = Setup::real_time(1, clock);
        if let Some(limit) = case.budget {
            setup.deprovision_budget = limit;
        }
        if let Some(minutes) = case.boot {
            setup.pace.boot = Duration::from_mins(minutes);
        }
        Ok(Self {
            world: World::start(&setup)?,
            hosts: 0,
            recording: Recording::every(minutes),
            wanted: scraped(),
            registry: None,
            also_scraped: "",
        })
    }

    async fn perform(&mut self, step: &Step, days: u32) -> Result<()> {
        match step {
            Step::Hosts(count, fault) => self.add_hosts(*count, *fault).await,
            Step::Cluster(workers, last) => self.cluster(workers, last).await,
            Step::DeleteCluster => {
                self.send(Method::DELETE, (CLUSTERS, "Cluster", "edge"), &json!({}))
                    .await
            }
            Step::DeleteWorker => self.delete_worker().await,
            Step::Image(host) => {
                let image = json!({ "url": IMAGE, "checksum": format!("{IMAGE}.sha256sum") });
                let host = (HOSTS, "BareMetalHost", &*host_name(*host));
                self.send(Method::PATCH, host, &json!({ "spec": { "image": image } }))
                    .await
            }
            Step::DeleteHost(host) => {
                let host = (HOSTS, "BareMetalHost", &*host_name(*host));
                self.send(Method::DELETE, host, &json!({})).await
            }
            Step::Fault(fault) => {
                (1..=self.hosts).for_each(|host| self.inject(host, *fault));
                Ok(())
            }
            Step::Minutes(minutes) => self.minutes(*minutes).await,
            Step::Unscraped(minutes) => {
                for _ in 0..*minutes {
                    sleep(MINUTE).await;
                    self.recording.add("", &self.wanted);
                }
                Ok(())
            }
            Step::IronicDown(minutes) => {
                self.world.ironic.restart(Duration::from_mins(*minutes));
                Ok(())
            }
            Step::Ironic(plan) => {
                self.world.ironic.inject(plan());
                Ok(())
            }
            Step::Server(plan) => {
                let plan: Plan = plan();
                self.world.cluster.inject_for(&PRODUCTS, plan);
                Ok(())
            }
            Step::Registry(set) => {
                self.registry = Some(*set);
                Ok(())
            }
            Step::AlsoScraped(series) => {
                self.also_scraped = *series;
                Ok(())
            }
            Step::Hour => self.hour().await,
            Step::Days => self.days(days).await,
        }
    }

    fn inject(&self, host: u32, fault: Fault) {
        self.world
            .machine(host, |machine| machine.faults = Faults::from_iter([fault]));
    }

    async fn add_hosts(&mut self, count: u32, fault: Option<Fault>) -> Result<()> {
        for _ in 0..count {
            self.hosts = self.hosts.saturating_add(1);
            if let Some(fault) = fault {
                self.inject(self.hosts, fault);
            }
            self.world.add_host(self.hosts, &json!({})).await?;
        }
        Ok(())
    }

    async fn cluster(&self, workers: &str, last: &str) -> Result<()> {
        let file = workspace::root()?.join(CLUSTER);
        let with = [
            ("CLUSTER_NAME", "edge"),
            ("WORKER_MACHINE_COUNT", workers),
            ("POOL_START", "192.0.2.100"),
            ("POOL_END", last),
        ];
        let with = with.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        apply_file(&self.world, &file, &with).await
    }

    /// Sends a request about an object.
    async fn send(&self, method: Method, (version, kind, name): (&str, &str, &str), body: &Value) -> Result<()> {
        let place = collection(version, kind, NAMESPACE).map_err(anyhow::Error::msg)?;
        let media = match method {
            Method::PATCH => "application/merge-patch+json",
            _ => "application/json",
        };
        let sent = self.world.send(method, &format!("{place}/{name}"), media, body).await;
        Ok(sent.map(drop)?)
    }

    async fn delete_worker(&self) -> Result<()> {
        let place = collection(CLUSTERS, "Machine", NAMESPACE).map_err(anyhow::Error::msg)?;
        let machines = self
            .world
            .send(Method::GET, &place, "application/json", &Value::Null)
            .await?;
        let items = machines.pointer("/items").and_then(Value::as_array);
        let is_worker = |machine: &&Value| {
            let labels = machine.pointer("/metadata/labels");
            labels.is_some_and(|labels| labels.get("cluster.x-k8s.io/control-plane").is_none())
        };
        let worker = items.into_iter().flatten().find(is_worker);
        let name = worker.and_then(|worker| worker.pointer("/metadata/name")?.as_str());
        let name = name.context("there is no worker")?;
        self.send(Method::DELETE, (CLUSTERS, "Machine", name), &json!({})).await
    }

    async fn minutes(&mut self, minutes: u32) -> Result<()> {
        for _ in 0..minutes.div_ceil(self.recording.minutes()) {
            sleep(MINUTE.saturating_mul(self.recording.minutes())).await;
            self.scrape()?;
        }
        Ok(())
    }

    fn scrape(&mut self) -> Result<()> {
        let metrics = self.world.metrics();
        if let Some(set) = self.registry {
            set(&metrics);
        }
        let text = metrics.render();
        let leaks = leaks(&text);
        ensure!(leaks.is_empty(), "a metric contains {}", leaks.join(", "));
        self.recording
            .add(&format!("{text}{}", self.also_scraped), &self.wanted);
        Ok(())
    }

    async fn days(&mut self, days: u32) -> Result<()> {
        for day in 0..days {
            let workers = if day % 2 == 0 { 2 } else { 1 };
            let replicas = json!({ "spec": { "replicas": workers } });
            self.send(Method::PATCH, (CLUSTERS, "MachineDeployment", "edge"), &replicas)
                .await?;
            if day < LOOKED_AT {
                self.hour().await?;
                self.minutes(DAY.saturating_sub(HOUR)).await?;
            } else {
                self.minutes(DAY).await?;
            }
        }
        Ok(())
    }

    /// Looks often, because a state may last for seconds, and scrapes at the usual distance.
    async fn hour(&mut self) -> Result<()> {
        let of_a_scrape = LOOKS_OF_A_MINUTE.saturating_mul(self.recording.minutes());
        for number in 1..=LOOKS_OF_A_MINUTE.saturating_mul(HOUR) {
            sleep(LOOK).await;
            let text = self.world.metrics().render();
            self.recording.look(&text);
            if number.is_multiple_of(of_a_scrape) {
                self.scrape()?;
            }
        }
        Ok(())
    }
}
