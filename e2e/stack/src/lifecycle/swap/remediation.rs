//! A worker that a MachineHealthCheck of Cluster API has remediated at each switch: its Node stops answering until the machine has booted
//! again.

use super::stage::Stage;
use crate::lifecycle::cluster::LONG;
use crate::lifecycle::remediation::health_check;
use crate::lifecycle::workers::running_worker;
use crate::lifecycle::{install, remediation};
use crate::products::load::list;
use crate::products::machines::NAMESPACE;
use crate::wait::until;

const REMEDIATIONS: &str = "metal3remediations";
/// Seconds. Longer than a boot, so that the machine is not replaced.
const TIMEOUT: u32 = 1200;

impl Stage<'_> {
    /// Lets a worker's Node stop answering, and waits until its machine is remediated. Returns the number of the machine.
    pub(super) fn begin_remediation(&self) -> anyhow::Result<u64> {
        let (env, stack) = (self.0, self.0.stack);
        let worker = running_worker(stack)?;
        let mut objects = health_check(TIMEOUT);
        self.in_its_version(&mut objects)?;
        for object in objects {
            stack.run("kubectl", &["apply", "--filename", "-"], Some(&object.to_string()))?;
        }
        env.simulator().hang(&worker.node, false)?;
        until(LONG, "a remediation to run", || {
            let all = list(stack, NAMESPACE, REMEDIATIONS)?;
            let is_running = all.iter().any(|one| one["status"]["phase"] == "Running");
            Ok(is_running.then_some(()))
        })?;
        install::machine(&worker.host)
    }

    /// Waits until the machine is healthy again, and lets no later change be remediated.
    pub(super) fn end_remediation(&self) -> anyhow::Result<()> {
        until(LONG, "the end of the remediation", || {
            Ok(list(self.0.stack, NAMESPACE, REMEDIATIONS)?.is_empty().then_some(()))
        })?;
        remediation::end(self.0.stack)
    }
}
