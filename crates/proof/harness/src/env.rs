//! The interface between a test and the crash sweep.

use std::pin::Pin;
use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_sim_cluster::Cluster;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::state::State;

/// A product and its environment under test.
pub trait TestEnv: Send + Sync + 'static {
    /// Name in the report.
    fn name(&self) -> &'static str;

    /// Installs kinds and webhooks into an empty server. Called once: every run gets a copy of that server.
    fn install(&self, cluster: &Cluster);

    /// Other programs on the server of a run, without injected faults. They end with the run.
    fn background(&self, _cluster: &Cluster, _clock: &Arc<dyn Clock>) -> JoinSet<()> {
        JoinSet::new()
    }

    /// Number of stages of user actions. The program settles after each.
    fn stages(&self) -> usize {
        1
    }

    /// User actions of one stage, counted from 0. The program runs from the end of stage 0 on.
    fn stage(&self, stage: usize, client: kube::Client) -> impl Future<Output = ()> + Send;

    /// Runs the program: its watches and its controllers. Dropping the future must stop all of its tasks, as a
    /// `JoinSet` does.
    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// The kinds that the checks read, by [`State::path`].
    fn kinds(&self) -> Vec<String>;

    /// Violated invariants; checked after every write.
    fn violations(&self, state: &State) -> Vec<String>;

    /// Goals of the users that the final state does not meet.
    fn unfinished(&self, state: &State) -> Vec<String>;

    /// The part of the final state that must be equal in every case of the crash property.
    fn comparable_state(&self, end: &State) -> Value {
        end.lasting()
    }
}

/// One running program.
#[derive(Clone)]
pub struct Instance {
    /// Its client, through which faults are injected.
    pub client: kube::Client,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// Seed of its random numbers.
    pub seed: u64,
}
