//! Who looks on: every write of a run goes into the journal and past the invariants.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use metal3_ironic::model::state::PowerState;
use metal3_sandbox::world::World;
use metal3_scenario::Observed;
use metal3_sim_capi::view::Object;
use metal3_sim_cluster::WriteEvent;
use tokio::time::Instant;

use super::invariants::{Invariants, Metal};
use super::journal::Journal;

/// Of what was broken, so many are shown.
const SHOWN: usize = 10;

/// What was seen so far.
#[derive(Debug, Clone, Default)]
pub(super) struct Seen(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    journal: Journal,
    invariants: Invariants,
    observed: Observed,
    broken: Vec<String>,
}

impl Seen {
    /// Looks on from here.
    pub(super) fn of(world: &World) -> Self {
        let (seen, ironic, start) = (Self::default(), world.ironic.clone(), Instant::now());
        let notes = seen.clone();
        world.cluster.observe_writes(move |written: &WriteEvent<'_>| {
            let object = Object(written.object.clone());
            let bmc = object.text("/spec/bmc/address");
            let metal = (!bmc.is_empty()).then(|| {
                ironic.machine_at(bmc, |machine| Metal {
                    is_on: machine.power == PowerState::On,
                    has_image: machine.disk.is_some() || machine.media.is_some(),
                    written: machine.tally.written,
                })
            });
            notes.note(start.elapsed().as_secs_f64(), &object, written.deleted, metal.flatten());
        });
        seen
    }

    fn note(&self, seconds: f64, object: &Object, gone: bool, metal: Option<Metal>) {
        self.with(|notes| {
            notes.journal.note(seconds, object, gone);
            notes.observed.note(&object.0);
            let broken = notes.invariants.saw(object, gone, metal);
            notes
                .broken
                .extend(broken.into_iter().map(|why| format!("at {seconds:.3} s {why}")));
        });
    }

    /// An error where something was broken so far.
    pub(super) fn nothing_broken(&self) -> Result<()> {
        let (first, all) = self.with(|notes| {
            let first: Vec<String> = notes.broken.iter().take(SHOWN).cloned().collect();
            (first.join("\n"), notes.broken.len())
        });
        anyhow::ensure!(all == 0, "what must hold always does not, {all} times:\n{first}");
        Ok(())
    }

    /// The last so many lines of the journal.
    pub(super) fn last(&self, count: usize) -> String {
        self.with(|notes| notes.journal.last(count))
    }

    /// What was written, how many writes were held against the invariants, and what objects said.
    pub(super) fn so_far(&self) -> (Journal, usize, Observed) {
        self.with(|notes| {
            let checks = notes.invariants.checks();
            (notes.journal.clone(), checks, notes.observed.clone())
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Notes) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
