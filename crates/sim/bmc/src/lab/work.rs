//! The work of an agent's commands on its machine.

use std::sync::Arc;

use tokio::time::sleep;

use super::{Host, Lab, RunningAgent};
use crate::{
    agent::{Failure, INSTALLED, Work, WorkKind},
    disk::Written,
    fault::Fault,
    image::{Fetched, ImageWriter},
    inventory::root_disk,
    machine::Reset,
};

impl Lab {
    /// Runs the work of a command in the background and reports its end to the agent.
    pub fn work(self: &Arc<Self>, host: &Arc<Host>, running_agent: &Arc<RunningAgent>, work: Work) {
        let (lab, host, running_agent) = (Arc::clone(self), Arc::clone(host), Arc::clone(running_agent));
        let powered_off = host.lock().boot.clone();
        self.tasks.spawn(async move {
            let outcome = tokio::select! {
                () = powered_off.cancelled() => return,
                outcome = lab.execute(&host, &running_agent, &work.kind) => outcome,
            };
            if let Err(failure) = &outcome {
                lab.log(host.number, &format!("{}: {}", failure.message, failure.details));
            }
            running_agent
                .lock()
                .finished(&work.id, outcome.map(|()| work.result), lab.now());
            running_agent.changed.notify_one();
        });
    }

    async fn execute(&self, host: &Host, running_agent: &RunningAgent, kind: &WorkKind) -> Result<(), Failure> {
        match kind {
            WorkKind::PowerOff => self.reset(host, Reset::ForceOff),
            WorkKind::Reboot => self.reset(host, Reset::Restart),
            WorkKind::Pass => sleep(self.timing.step).await,
            WorkKind::Erase(purpose, hints) => {
                sleep(self.timing.step).await;
                let erased = host.lock().machine.erase(*purpose, hints);
                erased.map_err(|problem| Failure::new("CleaningError", "Clean step failed", problem))?;
            }
            WorkKind::Fail(failure) => {
                sleep(self.timing.step).await;
                return Err(failure.clone());
            }
            WorkKind::WriteImage(order) => {
                sleep(self.timing.step).await;
                let (disk, capacity) = root_disk_of(host)?;
                let corrupt = host.lock().machine.faults.has(Fault::ChecksumMismatch);
                let name = format!("{}-image", host.number);
                let writer = ImageWriter {
                    client: &self.client,
                    store: &self.store,
                    name: &name,
                    corrupt,
                    accepts_md5: running_agent.lock().accepts_md5(),
                    trusted_checksums: &self.trusted_checksums,
                };
                let Fetched { image, config_drive } = writer.execute(order, capacity).await?;
                let written = Written {
                    content: image,
                    url: order.url.clone(),
                    node: order.node.clone(),
                };
                host.lock().machine.write(&disk, written, config_drive);
            }
            WorkKind::Install => {
                sleep(self.timing.step).await;
                let (disk, _) = root_disk_of(host)?;
                let name = format!("{}-installed", host.number);
                let content = self.store.put(&name, INSTALLED).await;
                let written = Written {
                    content: content
                        .map_err(|error| Failure::new("DeploymentError", "Error performing deploy step", error))?,
                    url: String::new(),
                    node: String::new(),
                };
                host.lock().machine.write(&disk, written, None);
            }
        }
        Ok(())
    }
}

/// Name and capacity of the disk that an agent installs onto.
fn root_disk_of(host: &Host) -> Result<(String, u64), Failure> {
    let machine = &host.lock().machine;
    let root = root_disk(&machine.profile).filter(|_| !machine.faults.has(Fault::DiskTooSmall));
    let (_, name, capacity) = root.ok_or_else(no_root_disk)?;
    Ok((name, capacity))
}

fn no_root_disk() -> Failure {
    let details = "no root device hints were given and every disk is smaller than 4 GiB";
    Failure::new(
        "DeviceNotFound",
        "Error finding the disk to deploy the image onto",
        details,
    )
}
