//! Executes the plan of a remediation: one write after another, the status last.

use std::sync::Arc;

use metal3_api::infrastructure::v1beta2::Metal3Remediation;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::{NodeChange, NodeChanged, NodeState};
use metal3_runtime::cache::{Identity, Key};
use metal3_runtime::work::{Fault, Next};
use metal3_runtime::write::{Mode, Writer};

use super::Remediations;
use crate::needs::Remediations as Role;
use crate::remediation::action::{Action, HostChange, Plan};
use crate::remediation::facts::{Facts, Node};
use crate::remediation::plan::step;

/// How far a plan was performed.
pub(super) enum Acted {
    /// As far as possible.
    Next(Next),
    /// To a change of the Node that did not succeed: another plan is needed, from these facts.
    Again(Box<Facts>),
}

/// How one action ended.
enum Written {
    Done,
    /// The object differs from the one that the plan is based on.
    Stale,
    /// The Node is not changed. One that cannot be changed is as one that cannot be read.
    NodeIs(Node),
}

impl Remediations {
    pub(super) async fn act(
        &self,
        key: &Key,
        facts: &Facts,
        plan: Plan,
        writer: &Writer<Role>,
    ) -> Result<Acted, Fault> {
        if facts.node == Node::NotRead {
            self.workloads.remove_waiter(key);
        }
        if !matches!(facts.node, Node::Busy { .. }) {
            self.attempts.sent(key);
        }
        let mut latest = Metal3Remediation::clone(&facts.remediation);
        // Without effective writes another reconcile gives the same plan.
        let is_repeated = writer.mode() == Mode::ObserveOnly && !plan.actions.is_empty();
        for action in plan.actions {
            match self.write(key, facts, action, &mut latest, writer).await? {
                Written::Done => {}
                Written::Stale => return Ok(Acted::Next(Next::Requeue)),
                Written::NodeIs(node) => {
                    let facts = Facts {
                        remediation: Arc::new(latest),
                        node,
                        ..facts.clone()
                    };
                    return Ok(Acted::Again(Box::new(facts)));
                }
            }
        }
        if let Some(status) = plan.status {
            let mut after = latest.clone();
            after.status = status;
            writer.status(&self.remediations, &latest, &after).await?;
        }
        for event in plan.events {
            self.events
                .record(&latest, event.importance, event.reason, event.message);
        }
        Ok(Acted::Next(match plan.next {
            _ if is_repeated => Next::Done,
            Next::Requeue if writer.mode() == Mode::ObserveOnly => Next::Done,
            next => next,
        }))
    }

    async fn write(
        &self,
        key: &Key,
        facts: &Facts,
        action: Action,
        latest: &mut Metal3Remediation,
        writer: &Writer<Role>,
    ) -> Result<Written, Fault> {
        match action {
            Action::PatchRemediation(patch) => {
                let Ok(at) = Identity::of(latest) else {
                    return Ok(Written::Stale);
                };
                let patch = patch.with_precondition(&at.version);
                let written = writer.patch(&self.remediations, key, patch).await?;
                if let Some(now) = written.object() {
                    *latest = now;
                }
            }
            Action::PatchHost { host, change, patch } => {
                let host = key.sibling(&host);
                writer.patch::<BareMetalHost>(&self.caches.hosts, &host, patch).await?;
                if writer.mode() == Mode::Perform {
                    audit(key, &host, change);
                }
            }
            Action::ChangeNode(change) => {
                let (Some(cluster), Node::Read(NodeState::Present(node))) = (facts.cluster.present(), &facts.node)
                else {
                    return Err(Fault::bug("a change of a Node that was not read"));
                };
                let cluster = Key::of(&**cluster);
                return Ok(match self.workloads.change(&cluster, node, &change, key).await? {
                    NodeChanged::Done => {
                        if writer.mode() == Mode::Perform {
                            audit_node(key, &node.name, &change, "");
                            self.attempts.changed(key, step(&change), &*self.clock);
                        }
                        Written::Done
                    }
                    NodeChanged::Stale => Written::NodeIs(Node::NotRead),
                    NodeChanged::Rejected => {
                        tracing::warn!(remediation = %key, node = node.name, "the workload cluster rejects the change of the Node");
                        Written::NodeIs(Node::Read(NodeState::Forbidden))
                    }
                    NodeChanged::NotSent(why) => Written::NodeIs(Node::Read(NodeState::Unknown(why))),
                    NodeChanged::Failed(why) => {
                        audit_node(key, &node.name, &change, "perhaps ");
                        Written::NodeIs(Node::Read(NodeState::Unknown(why)))
                    }
                });
            }
            Action::PatchMachineStatus(patch) => {
                let machine = facts.machine.present().map(|machine| Key::of(&**machine));
                let Some(machine) = machine else {
                    return Err(Fault::bug("a patch of a Machine that does not exist"));
                };
                writer.patch_status(&self.caches.machines, &machine, patch).await?;
                if writer.mode() == Mode::Perform {
                    tracing::info!(target: "metal3::audit", remediation = %key, %machine, "giving the Machine up: its owner replaces it");
                }
            }
        }
        Ok(Written::Done)
    }
}

/// Writes the audit log of a change of a Node.
fn audit_node(remediation: &Key, node: &str, change: &NodeChange, perhaps: &str) {
    let what = match change {
        NodeChange::Taints(_) => "changing the taints of the Node",
        NodeChange::Add { .. } => "adding what the Node lacks",
        NodeChange::Delete => "deleting the Node",
    };
    tracing::info!(target: "metal3::audit", %remediation, node, "{perhaps}{what}, for a Metal3Remediation");
}

/// Writes the audit log of a change of a host's power.
pub(super) fn audit(remediation: &Key, host: &Key, change: HostChange) {
    let what = match change {
        HostChange::PowerOff => "powering off the host",
        HostChange::PowerOn => "powering on the host",
        HostChange::Orphan => "powering on the host, whose Metal3Remediation does not exist",
        HostChange::Exclude => "excluding the host, because its machine did not come back",
    };
    tracing::info!(target: "metal3::audit", %remediation, %host, "{what}, for a Metal3Remediation");
}
