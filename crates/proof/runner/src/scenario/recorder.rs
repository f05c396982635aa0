//! Records every write of a run in the journal and checks the invariants.

use std::sync::Arc;

use anyhow::Result;
use metal3_ironic::model::state::PowerState;
use metal3_sandbox::world::World;
use metal3_scenario::ObservedStates;
use metal3_sim_capi::view::Object;
use metal3_sim_cluster::WriteEvent;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::Instant;

use super::explained::Explained;
use super::invariants::{Invariants, MachineState};
use super::journal::Journal;

/// Number of violations shown.
const SHOWN: usize = 10;

/// Records so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorder(Arc<Mutex<Records>>);

#[derive(Debug, Default)]
struct Records {
    journal: Journal,
    invariants: Invariants,
    observed: ObservedStates,
    explained: Explained,
    violations: Vec<String>,
}

impl Recorder {
    /// Records all writes from now on.
    pub(super) fn of(world: &World) -> Self {
        let (recorder, ironic, start) = (Self::default(), world.ironic.clone(), Instant::now());
        let records = recorder.clone();
        world.cluster.observe_writes(move |written: &WriteEvent<'_>| {
            let object = Object(written.object.clone());
            let bmc = object.text("/spec/bmc/address");
            let state = (!bmc.is_empty()).then(|| {
                ironic.machine_at(bmc, |machine| MachineState {
                    is_on: machine.power == PowerState::On,
                    has_image: machine.disk.is_some() || machine.live.is_some(),
                    written: machine.counts.written,
                })
            });
            records.record(start.elapsed().as_secs_f64(), &object, written.deleted, state.flatten());
        });
        recorder
    }

    fn record(&self, seconds: f64, object: &Object, deleted: bool, state: Option<MachineState>) {
        self.with(|records| {
            records.journal.record(seconds, object, deleted);
            records.observed.record(&object.0);
            let violations = records.invariants.check_write(object, deleted, state);
            records
                .violations
                .extend(violations.into_iter().map(|why| format!("at {seconds:.3} s {why}")));
        });
    }

    /// Explains what waits in a namespace now.
    pub(super) fn explain(&self, namespace: &str) {
        self.with(|records| {
            let objects = records.invariants.objects_in(namespace);
            records.explained.check(&objects);
        });
    }

    /// The objects of a namespace now.
    pub(super) fn objects_in(&self, namespace: &str) -> Vec<Value> {
        self.with(|records| records.invariants.objects_in(namespace))
    }

    /// The explanations.
    pub(super) fn explained(&self) -> Explained {
        self.with(|records| records.explained.clone())
    }

    /// Returns an error if there were violations.
    pub(super) fn ensure_no_violation(&self) -> Result<()> {
        let (first, all) = self.with(|records| {
            let first: Vec<String> = records.violations.iter().take(SHOWN).cloned().collect();
            (first.join("\n"), records.violations.len())
        });
        anyhow::ensure!(all == 0, "{all} violations of invariants:\n{first}");
        Ok(())
    }

    /// The last `count` lines of the journal.
    pub(super) fn last(&self, count: usize) -> String {
        self.with(|records| records.journal.last(count))
    }

    /// The journal, the number of checked writes, and the reported states.
    pub(super) fn results(&self) -> (Journal, usize, ObservedStates) {
        self.with(|records| {
            let checks = records.invariants.checks();
            (records.journal.clone(), checks, records.observed.clone())
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Records) -> T) -> T {
        work(&mut self.0.lock())
    }
}
