//! The labels of the host on the machine's Node.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::pause;
use metal3_runtime::plan::{Observed, UnknownReason};

use super::{Decision, Planner, Prerequisites};
use crate::label_sync::WantedLabels;
use crate::machine::action::{Action, Reads};
use crate::machine::conditions::{Labels, Node};

/// The time between two reads of a Node whose labels another writer changes.
const INTERVAL: Duration = Duration::from_secs(30);

/// Not read yet, rather than unreadable.
fn is_unread<T>(observed: &Observed<T>) -> bool {
    observed.unknown() == Some(&UnknownReason::NotRead)
}

/// Why nothing is copied yet, whatever the Node has.
fn why_later(node: &Node, host: &BareMetalHost, prerequisites: Prerequisites<'_>) -> Option<&'static str> {
    if pause::is_reconcile_skipped(&prerequisites.metal3_cluster.metadata) {
        Some("the Metal3Cluster is paused; labels are copied after that")
    } else if *node != Node::Known {
        Some("waiting for the Node")
    } else if host.is_paused() {
        Some("the BareMetalHost is paused; its labels are copied after that")
    } else {
        None
    }
}

impl<'a> Planner<'a> {
    /// Copies the labels that the Metal3Cluster selects. The Node is watched while it selects any, and read when it or the
    /// host changed.
    ///
    /// differs (`label-sync-watched`): the Go manager writes every Node once a minute.
    pub(super) fn labels(
        &mut self,
        node: &Node,
        host: &'a BareMetalHost,
        prerequisites: Prerequisites<'a>,
    ) -> Result<Labels, Decision> {
        let wanted = match WantedLabels::select(prerequisites.metal3_cluster, host) {
            Ok(Some(wanted)) => wanted,
            Ok(None) => return Ok(Labels::NotAsked),
            Err(error) => return Ok(Labels::Failed(error.to_string().into())),
        };
        if let Some(why) = why_later(node, host, prerequisites) {
            return Ok(Labels::Waiting(why.into()));
        }
        let node_ref = prerequisites.owner.status.node_ref.as_ref();
        let Some(name) = node_ref.map(|node| node.name.as_str()).filter(|name| !name.is_empty()) else {
            return Ok(Labels::Waiting("waiting for the Machine to name its Node".into()));
        };
        let facts = &self.facts.labels;
        if is_unread(&facts.node) {
            return Err(Decision::Read(Reads::Node(name.to_owned())));
        }
        let node = match facts.node.as_deref() {
            Observed::Present(node) => node,
            Observed::Absent => return Ok(Labels::Waiting(format!("Node {name} does not exist").into())),
            // A cluster that is away, or waits for its turn, has the labels that it had.
            Observed::Unknown(_) if facts.copied.as_ref().is_some_and(|copied| wanted.were_copied(copied)) => {
                return Ok(Labels::Unchanged);
            }
            Observed::Unknown(why) => return Ok(Labels::Waiting(why.to_string().into())),
        };
        // A Node of the same name may belong to another machine.
        if Some(node.provider_id.as_str()) != self.machine.spec.provider_id.as_deref() {
            return Ok(Labels::Waiting(
                format!(
                    "Node {name} has another provider ID than the machine; waiting for the Machine to name its Node"
                )
                .into(),
            ));
        }
        if let Some(copied) = &facts.copied {
            if *copied == wanted.copied_to(name, node.labels) {
                return Ok(Labels::Copied);
            }
            let left = INTERVAL.saturating_sub(facts.since_copy);
            // Only the Node changed: perhaps another controller undoes each change at once.
            if copied.node == name && wanted.were_copied(copied) && !left.is_zero() {
                return Ok(Labels::Later(left));
            }
        }
        if is_unread(&facts.live) {
            return Err(Decision::Read(Reads::NodeLabels(name.to_owned())));
        }
        let live = match facts.live.as_ref() {
            _ if facts.is_busy => return Ok(Labels::Busy),
            Observed::Present(live) => live,
            Observed::Absent => return Ok(Labels::Waiting(format!("Node {name} does not exist").into())),
            Observed::Unknown(why) => return Ok(Labels::Waiting(why.to_string().into())),
        };
        let (patch, found) = wanted.change(live);
        let copied = wanted.copied_to(name, found);
        self.actions.push(Action::CopyLabels { patch, copied });
        Ok(Labels::Copied)
    }
}
