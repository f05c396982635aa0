//! What a test says about its product.

use std::pin::Pin;
use std::sync::Arc;

use metal3_domain::clock::Clock;
use metal3_sim_cluster::Cluster;
use serde_json::Value;
use tokio::task::JoinSet;

use crate::state::State;

/// A product and its surroundings, on trial.
pub trait World: Send + Sync + 'static {
    /// Name in the report.
    fn name(&self) -> &'static str;

    /// Installs kinds and webhooks into an empty server. It is done once: every run begins with a copy of that server.
    fn install(&self, cluster: &Cluster);

    /// Who else works on the server of a run, out of reach of every fault: other products, for one. It ends with the run.
    fn neighbours(&self, _cluster: &Cluster, _clock: &Arc<dyn Clock>) -> JoinSet<()> {
        JoinSet::new()
    }

    /// How many times users act. The program settles in between.
    fn acts(&self) -> usize {
        1
    }

    /// What users do in one act, counted from 0. The program is running from the end of act 0 on.
    fn act(&self, act: usize, client: kube::Client) -> impl Future<Output = ()> + Send;

    /// Runs the program: its watches and its controllers. Dropping the future kills it, so all of its tasks must be
    /// part of it, as those of a `JoinSet` inside are.
    fn run(&self, instance: Instance) -> Pin<Box<dyn Future<Output = ()> + Send>>;

    /// The kinds that invariants and ends look at, by [`State::path`].
    fn kinds(&self) -> Vec<String>;

    /// What must hold after every write, and does not.
    fn violations(&self, state: &State) -> Vec<String>;

    /// What the end lacks of what users asked for.
    fn unfinished(&self, state: &State) -> Vec<String>;

    /// What of an end must be the same in every case of the crash property.
    fn essence(&self, end: &State) -> Value {
        end.lasting()
    }
}

/// One running program.
#[derive(Clone)]
pub struct Instance {
    /// Its client, on which the trial listens and strikes.
    pub client: kube::Client,
    /// Its clock.
    pub clock: Arc<dyn Clock>,
    /// For what it draws at random.
    pub seed: u64,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance")
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}
