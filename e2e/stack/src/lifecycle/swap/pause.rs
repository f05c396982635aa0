//! A Cluster that is paused while this program runs, and resumed when the Go managers do. The machines' controller pauses the hosts of a
//! paused Cluster, and saves their statuses in annotations, which the webhook of the other side must accept.

use metal3_api::infrastructure::names::{HOST_PAUSED_ANNOTATION, HOST_PAUSED_BY_CAPM3};
use serde_json::{Value, json};

use super::stage::{LIMIT, OF_CLUSTER, Stage, host};
use crate::products::load::{list, name};
use crate::products::machines::NAMESPACE;
use crate::products::machines::template::CLUSTER;
use crate::wait::until;

impl Stage<'_> {
    /// Pauses the Cluster, and waits until each host of its machines is paused.
    pub(super) fn pause_cluster(&self) -> anyhow::Result<()> {
        self.set_paused(true)?;
        until(LIMIT, "the hosts of the Cluster to be paused", || {
            let hosts = self.of_cluster()?;
            let mut taken = hosts.iter().filter(|one| has_machine(one)).peekable();
            Ok((taken.peek().is_some() && taken.all(is_paused)).then_some(()))
        })
    }

    /// Resumes it, and waits until no host of it is paused.
    pub(super) fn resume_cluster(&self) -> anyhow::Result<()> {
        self.set_paused(false)?;
        until(LIMIT, "the hosts of the Cluster to be resumed", || {
            Ok((!self.of_cluster()?.iter().any(is_paused)).then_some(()))
        })
    }

    fn of_cluster(&self) -> anyhow::Result<Vec<Value>> {
        let names = OF_CLUSTER.map(host);
        let mut hosts = list(self.0.stack, NAMESPACE, "baremetalhosts")?;
        hosts.retain(|one| names.contains(&name(one)));
        Ok(hosts)
    }

    fn set_paused(&self, paused: bool) -> anyhow::Result<()> {
        let patch = format!("--patch={}", json!({"spec": {"paused": paused}}));
        let args = [
            "--namespace",
            NAMESPACE,
            "patch",
            "cluster",
            CLUSTER,
            "--type=merge",
            &patch,
        ];
        self.0.stack.kubectl(&args).map(drop)
    }
}

fn has_machine(host: &Value) -> bool {
    host["spec"]["consumerRef"]["kind"] == "Metal3Machine"
}

/// Whether the controller of a machine paused the host.
pub(super) fn is_paused(host: &Value) -> bool {
    host["metadata"]["annotations"][HOST_PAUSED_ANNOTATION] == HOST_PAUSED_BY_CAPM3
}
