//! Rolls of a control plane and of workers with node reuse: with random faults, each host comes back to its set, and no
//! disk is erased.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use metal3_api::cluster::names::{CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL};
use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_files::workspace;
use parking_lot::Mutex;
use serde_json::Value;

use super::*;

/// The seeds of the rolls, if others than those of every test run are wanted: `FIRST-LAST`, both of them too.
const ROLLS: &str = "METAL3_REUSE_ROLLS";
/// The number of machines of a roll, if another one is wanted.
const MACHINES: &str = "METAL3_REUSE_MACHINES";
/// The machines of every test run. Three of them are a control plane.
const FEW: u32 = 5;
/// No further rolls are started after this many failures.
const FAILURES: usize = 8;

/// Two sets of machines, each on a host. `N_MODE` and the like are filled in.
const BEFORE: &str = r#"
about: a cluster whose sets keep their hosts
hosts: N_ALL
steps:
  - apply:
      file: objects/cluster.yaml
      with:
        CLUSTER_NAME: edge
        CONTROL_PLANE_MACHINE_COUNT: "3"
        CONTROL_PLANE_SURGE: "0"
        WORKER_MACHINE_COUNT: "N_WORKERS"
        WORKER_SURGE: "0"
        WORKER_UNAVAILABLE: "N_AWAY"
  - change:
      object: Metal3MachineTemplate/edge-controlplane
      patch: { spec: { nodeReuse: true, template: { spec: { automatedCleaningMode: N_MODE } } } }
  - change:
      object: Metal3MachineTemplate/edge-workers
      patch: { spec: { nodeReuse: true, template: { spec: { automatedCleaningMode: N_MODE } } } }
  - wait: { kind: Machine, count: N_ALL, condition: { Ready: "True" } }
  - wait: { kind: BareMetalHost, count: N_ALL, where: { /status/provisioning/state: provisioned } }
"#;

/// Both sets are rolled at once, and two more hosts are free.
const ROLL: &str = r#"
about: the sets are rolled
hosts: 0
steps:
  - hosts: 2
  - wait: { kind: BareMetalHost, count: 2, where: { /status/provisioning/state: available } }
  - change: { object: MachineDeployment/edge, patch: { spec: { template: { spec: { version: v1.35.1 } } } } }
  - change: { object: KubeadmControlPlane/edge, patch: { spec: { version: v1.35.1 } } }
"#;

/// A machine of each set waits, and goes on waiting.
const WAITS: &str = r#"
about: the user has to decide
hosts: 0
steps:
  - wait: { kind: Metal3Machine, count: 2, condition: { AssociateMetal3MachineMetaData: "False" } }
  - holds: { wish: { kind: BareMetalHost, count: N_ALL, where: { /status/provisioning/state: provisioned } }, during: 1h }
  - check: { kind: Metal3Machine, count: 2, condition: { AssociateMetal3MachineMetaData: "False" } }
"#;

/// The user accepts that the disks are erased.
const ACCEPT: &str = r#"
about: the user decides
hosts: 0
steps:
  - change:
      object: Metal3MachineTemplate/edge-controlplane
      patch: { metadata: { annotations: { infrastructure.cluster.x-k8s.io/node-reuse-after-cleaning: "" } } }
  - change:
      object: Metal3MachineTemplate/edge-workers
      patch: { metadata: { annotations: { infrastructure.cluster.x-k8s.io/node-reuse-after-cleaning: "" } } }
"#;

/// The end of the roll.
const ROLLED: &str = r#"
about: the sets are rolled
hosts: 0
steps:
  - wait: { kind: Machine, count: N_ALL, where: { /spec/version: v1.35.1 }, condition: { Ready: "True" } }
  - wait: { kind: Machine, count: N_ALL }
  - wait: { kind: BareMetalHost, count: N_ALL, where: { /status/provisioning/state: provisioned } }
"#;

/// What a host was used for, and what was done to its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    /// The set of the machine that has it.
    set: String,
    erased: u32,
    written: u32,
}

/// How many machines there are, and whether their disks are cleaned.
#[derive(Debug, Clone, Copy)]
struct Size {
    machines: u32,
    mode: &'static str,
}

impl Size {
    fn fill(self, text: &str) -> String {
        let workers = self.machines - 3;
        let text = text.replace("N_ALL", &self.machines.to_string());
        let text = text.replace("N_WORKERS", &workers.to_string());
        let text = text.replace("N_AWAY", &(workers / 5).max(1).to_string());
        text.replace("N_MODE", self.mode)
    }
}

impl Runner<'_> {
    /// How many disks of the first hosts were erased.
    fn erasures(&self, hosts: u32) -> u32 {
        let each = (1..=hosts).filter_map(|host| self.performer.world.machine(host, |machine| machine.counts.erased));
        each.sum()
    }

    async fn perform_all(&mut self, text: &str, size: Size) -> Result<()> {
        let scenario = Scenario::read(&size.fill(text))?;
        for (number, step) in scenario.steps.iter().enumerate() {
            let result = self.perform(step).await;
            result.with_context(|| self.report(number, step))?;
            self.recorder.ensure_no_violation()?;
        }
        Ok(())
    }

    /// The use of each host.
    async fn uses(&self) -> Result<BTreeMap<String, Use>> {
        let machines = self.performer.list("Metal3Machine").await?;
        let hosts = self.performer.list("BareMetalHost").await?;
        let text = |value: &Value, at: &str| value.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
        let set_of = |consumer: String| {
            let machine = machines.iter().find(|one| text(one, "/metadata/name") == consumer);
            let labels = machine.map(|one| one["metadata"]["labels"].clone()).unwrap_or_default();
            if labels[CONTROL_PLANE_LABEL].is_string() {
                "control plane".to_owned()
            } else {
                labels[DEPLOYMENT_NAME_LABEL].as_str().unwrap_or_default().to_owned()
            }
        };
        let mut uses = BTreeMap::new();
        for number in 1..=self.performer.hosts {
            let name = metal3_sandbox::world::host_name(number);
            let host = hosts.iter().find(|one| text(one, "/metadata/name") == name);
            let host = host.context("a host is missing")?;
            anyhow::ensure!(
                host["metadata"]["labels"][NODE_REUSE_LABEL].is_null(),
                "{name} is kept for no machine"
            );
            let counts = self.performer.world.machine(number, |machine| machine.counts);
            let counts = counts.context("a machine is missing")?;
            let set = set_of(text(host, "/spec/consumerRef/name"));
            let (erased, written) = (counts.erased, counts.written);
            uses.insert(name, Use { set, erased, written });
        }
        Ok(uses)
    }
}

/// Runs a cluster of this size with faults of the seed.
fn run_with(seed: u64, size: Size, test: impl AsyncFnOnce(&mut Runner<'_>) -> Result<()>) -> Result<()> {
    let folder = workspace::root()?.join("e2e/scenarios");
    let files = Files {
        own: &folder,
        published: None,
    };
    simulated_time().unwrap().block_on(async {
        let options = RunOptions {
            seed,
            with_faults: true,
            ..RunOptions::default()
        };
        let mut runner = Runner::start(&Scenario::read(&size.fill(BEFORE))?, files, options).await?;
        // The scripts explain the same waits.
        runner.explains = false;
        runner.perform_all(BEFORE, size).await?;
        test(&mut runner).await?;
        let run = runner.finish()?;
        anyhow::ensure!(!run.injected.is_none(), "no fault was injected");
        Ok(())
    })
}

/// Checks that the hosts of the cluster have the sets that they had, and a new image each.
fn check(before: &BTreeMap<String, Use>, after: &BTreeMap<String, Use>, erasures: u32) -> Result<()> {
    for (name, found) in after {
        let expected = before.get(name).map(|before| Use {
            set: before.set.clone(),
            erased: before.erased.saturating_add(erasures),
            written: before.written.saturating_add(1),
        });
        // The others were free.
        anyhow::ensure!(
            expected.as_ref().is_none_or(|expected| expected == found),
            "{name}: {found:?}, not {expected:?}"
        );
        anyhow::ensure!(
            expected.is_some() || found.set.is_empty(),
            "{name}, which was free, has a machine: {found:?}"
        );
    }
    Ok(())
}

/// Rolls both sets with faults of the seed. Returns how many disks were erased too.
fn roll(seed: u64, machines: u32) -> (u32, Result<()>) {
    let size = Size {
        machines,
        mode: "disabled",
    };
    let mut erased = 0;
    let result = run_with(seed, size, async |runner| {
        let (before, erasures) = (runner.uses().await?, runner.erasures(machines));
        let rolled = async {
            runner.perform_all(ROLL, size).await?;
            runner.perform_all(ROLLED, size).await?;
            check(&before, &runner.uses().await?, 0)
        };
        let rolled = rolled.await;
        erased = runner.erasures(machines) - erasures;
        rolled
    });
    (erased, result)
}

/// The seeds, and the number of machines.
fn wanted() -> (RangeInclusive<u64>, u32) {
    let text = |name| std::env::var_os(name).map(|text| text.into_string().unwrap());
    let seeds = text(ROLLS).map_or(1..=2, |range| {
        let (first, last) = range.split_once('-').unwrap();
        first.parse().unwrap()..=last.parse().unwrap()
    });
    (seeds, text(MACHINES).map_or(FEW, |number| number.parse().unwrap()))
}

#[test]
#[expect(clippy::print_stdout, reason = "the figures are for the test log")]
fn rolled_sets_get_their_hosts_back_with_disks_that_are_never_erased() {
    let (seeds, machines) = wanted();
    let next = AtomicU64::new(*seeds.start());
    let (run, erased) = (AtomicU64::new(0), AtomicU32::new(0));
    let failed = Mutex::new(Vec::<String>::new());
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) || failed.lock().len() >= FAILURES {
                        return;
                    }
                    let (disks, result) = roll(seed, machines);
                    run.fetch_add(1, Ordering::Relaxed);
                    erased.fetch_add(disks, Ordering::Relaxed);
                    match result {
                        Err(error) => failed.lock().push(format!("seed {seed}: {error:#}")),
                        Ok(()) if disks > 0 => failed.lock().push(format!("seed {seed}: {disks} disks erased")),
                        Ok(()) => {}
                    }
                }
            });
        }
    });
    let (run, erased, failed) = (run.into_inner(), erased.into_inner(), failed.into_inner());
    println!(
        "{run} rolls of {machines} machines, {erased} disks erased, {} failed ({ROLLS}=FIRST-LAST and {MACHINES}=NUMBER for others)",
        failed.len()
    );
    assert!(run > 0, "no roll in {seeds:?}");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn roll_that_would_erase_disks_waits_until_the_user_accepts_it() {
    let size = Size {
        machines: FEW,
        mode: "metadata",
    };
    let rolled = run_with(1, size, async |runner| {
        let before = runner.uses().await?;
        runner.perform_all(ROLL, size).await?;
        runner.perform_all(WAITS, size).await?;
        let waiting = runner.uses().await?;
        for (name, before) in &before {
            anyhow::ensure!(
                waiting.get(name) == Some(before),
                "{name}: {:?} after {before:?}",
                waiting.get(name)
            );
        }
        runner.perform_all(ACCEPT, size).await?;
        runner.perform_all(ROLLED, size).await?;
        check(&before, &runner.uses().await?, 1)
    });
    rolled.unwrap_or_else(|error| panic!("{error:#}"));
}
