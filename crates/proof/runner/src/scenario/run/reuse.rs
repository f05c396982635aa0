//! Rolls of a control plane and of workers with node reuse: with random faults, each host comes back to its set, and no
//! disk is erased.

use std::collections::BTreeMap;

use metal3_api::cluster::names::{CONTROL_PLANE_LABEL, DEPLOYMENT_NAME_LABEL};
use metal3_api::infrastructure::names::NODE_REUSE_LABEL;
use metal3_files::workspace;

use super::*;

/// The number of rolls, each with another seed of the faults.
const ROLLS: &str = "METAL3_REUSE_ROLLS";
/// The rolls that always run.
const ALWAYS: u64 = 2;

/// Two sets of machines on five hosts.
const BEFORE: &str = r#"
about: a cluster whose sets keep their hosts
hosts: 5
steps:
  - apply:
      file: objects/cluster.yaml
      with:
        CLUSTER_NAME: edge
        CONTROL_PLANE_MACHINE_COUNT: "3"
        CONTROL_PLANE_SURGE: "0"
        WORKER_SURGE: "0"
        WORKER_UNAVAILABLE: "1"
  - change:
      object: Metal3MachineTemplate/edge-controlplane
      patch: { spec: { nodeReuse: true, template: { spec: { automatedCleaningMode: MODE } } } }
  - change:
      object: Metal3MachineTemplate/edge-workers
      patch: { spec: { nodeReuse: true, template: { spec: { automatedCleaningMode: MODE } } } }
  - wait: { kind: Machine, count: 5, condition: { Ready: "True" } }
  - wait: { kind: BareMetalHost, count: 5, where: { /status/provisioning/state: provisioned } }
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
  - holds: { wish: { kind: BareMetalHost, count: 5, where: { /status/provisioning/state: provisioned } }, during: 1h }
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
  - wait: { kind: Machine, count: 5, where: { /spec/version: v1.35.1 }, condition: { Ready: "True" } }
  - wait: { kind: Machine, count: 5 }
  - wait: { kind: BareMetalHost, count: 5, where: { /status/provisioning/state: provisioned } }
"#;

/// What a host was used for, and what was done to its disk.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Use {
    /// The set of the machine that has it.
    set: String,
    erased: u32,
    written: u32,
}

impl Runner<'_> {
    async fn perform_all(&mut self, text: &str, mode: &str) -> Result<()> {
        let scenario = Scenario::read(&text.replace("MODE", mode))?;
        for (number, step) in scenario.steps.iter().enumerate() {
            let result = self.perform(step).await;
            result.with_context(|| self.report(number, step))?;
            self.recorder.ensure_no_violation()?;
        }
        Ok(())
    }

    /// The use of each host.
    async fn uses(&self) -> Result<BTreeMap<String, Use>> {
        let machines = self.list("Metal3Machine").await?;
        let hosts = self.list("BareMetalHost").await?;
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
        for number in 1..=self.hosts {
            let name = metal3_sandbox::world::host_name(number);
            let host = hosts.iter().find(|one| text(one, "/metadata/name") == name);
            let host = host.context("a host is missing")?;
            anyhow::ensure!(
                host["metadata"]["labels"][NODE_REUSE_LABEL].is_null(),
                "{name} is kept for no machine"
            );
            let counts = self.world.machine(number, |machine| machine.counts);
            let counts = counts.context("a machine is missing")?;
            let set = set_of(text(host, "/spec/consumerRef/name"));
            let (erased, written) = (counts.erased, counts.written);
            uses.insert(name, Use { set, erased, written });
        }
        Ok(uses)
    }
}

/// Runs a cluster with faults of the seed, whose templates have this cleaning mode.
fn run_with(seed: u64, mode: &str, test: impl AsyncFnOnce(&mut Runner<'_>) -> Result<()>) -> Result<()> {
    let folder = workspace::root()?.join("e2e/scenarios");
    let files = Files {
        own: &folder,
        published: None,
    };
    paused().block_on(async {
        let options = RunOptions {
            seed,
            with_faults: true,
        };
        let mut runner = Runner::start(&Scenario::read(BEFORE)?, files, options).await?;
        runner.perform_all(BEFORE, mode).await?;
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

fn paused() -> tokio::runtime::Runtime {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_all().start_paused(true).build().unwrap()
}

#[test]
fn rolled_sets_get_their_hosts_back_with_disks_that_are_never_erased() {
    let rolls = std::env::var_os(ROLLS).and_then(|number| number.to_str()?.parse().ok());
    for seed in 1..=rolls.unwrap_or(ALWAYS) {
        let rolled = run_with(seed, "disabled", async |runner| {
            let before = runner.uses().await?;
            runner.perform_all(ROLL, "").await?;
            runner.perform_all(ROLLED, "").await?;
            check(&before, &runner.uses().await?, 0)
        });
        rolled.unwrap_or_else(|error| panic!("seed {seed}: {error:#}"));
    }
}

#[test]
fn roll_that_would_erase_disks_waits_until_the_user_accepts_it() {
    let rolled = run_with(1, "metadata", async |runner| {
        let before = runner.uses().await?;
        runner.perform_all(ROLL, "").await?;
        runner.perform_all(WAITS, "").await?;
        let waiting = runner.uses().await?;
        for (name, before) in &before {
            anyhow::ensure!(
                waiting.get(name) == Some(before),
                "{name}: {:?} after {before:?}",
                waiting.get(name)
            );
        }
        runner.perform_all(ACCEPT, "").await?;
        runner.perform_all(ROLLED, "").await?;
        check(&before, &runner.uses().await?, 1)
    });
    rolled.unwrap_or_else(|error| panic!("{error:#}"));
}
