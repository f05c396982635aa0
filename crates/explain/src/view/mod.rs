//! Tables and trees about many objects, from a snapshot of them.
//!
//! A view asks for what it needs, as an explanation does. What may not be read leaves a gap that the report names: *unknown*
//! is never *absent*. Texts of users and BMCs get no login, and no query of a URL.

mod claims;
mod consumers;
mod host;
mod hosts;
mod pools;
mod text;
mod timeline;
mod top;
mod tree;
mod waits;

use std::collections::BTreeSet;

use metal3_api::meta::Time;
use serde::Serialize;

use crate::chain::State;
use crate::events::EventLine;
use crate::read::{NotRead, Read};
use crate::snapshot::Snapshot;
use crate::walk::Walk;

pub use claims::ClaimRow;
pub use consumers::ConsumerRow;
pub use host::HostRow;
pub use hosts::Filter;
pub use pools::{Holder, PoolRow, WaitingClaim};
pub use text::{host_line, render};
pub use timeline::Moment;
pub use top::{ErrorRow, StepRow, Top, WaitRow};
pub use tree::Node;
pub use waits::{Wait, in_order, waits};

/// A question about many objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum View {
    /// The hosts that a filter selects.
    Hosts(Filter),
    /// All pools of addresses, or one.
    Pools(Option<String>),
    /// Who uses which host, and machines without one.
    Consumers,
    /// Claims on hosts.
    Claims,
    /// A Cluster down to its hosts.
    Tree(String),
    /// What happened to a host, with the history of its node in Ironic if it is given.
    Timeline(String, Vec<EventLine>),
    /// What takes longest, and what fails.
    Top,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The result.
    pub state: State,
    /// The rows.
    #[serde(flatten)]
    pub content: Content,
    /// What could not be read, and may hide a row.
    pub not_read: Vec<NotRead>,
}

/// The rows of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Content {
    /// Hosts.
    Hosts(Vec<HostRow>),
    /// Pools, with the holders of their addresses.
    Pools(Vec<PoolRow>),
    /// Hosts and their consumers.
    Consumers(Vec<ConsumerRow>),
    /// Claims on hosts.
    Claims(Vec<ClaimRow>),
    /// A Cluster, if it exists.
    Tree(Option<Node>),
    /// Moments of a host, from the first.
    Timeline(Vec<Moment>),
    /// What takes longest, and what fails.
    Top(Top),
}

impl View {
    /// Reports what was asked, or returns what is to be read first.
    ///
    /// # Errors
    /// The reads whose results the snapshot lacks.
    pub fn report(&self, snapshot: &Snapshot, now: Time) -> Result<Report, BTreeSet<Read>> {
        let mut walk = Walk::new(snapshot);
        let (state, content) = match self {
            Self::Hosts(filter) => (State::Ready, Content::Hosts(hosts::rows(&mut walk, filter))),
            Self::Pools(name) => {
                let rows = pools::rows(&mut walk, name.as_deref());
                let is_absent = name.is_some() && rows.is_empty();
                (
                    if is_absent { State::Absent } else { State::Ready },
                    Content::Pools(rows),
                )
            }
            Self::Consumers => (State::Ready, Content::Consumers(consumers::rows(&mut walk))),
            Self::Claims => (State::Ready, Content::Claims(claims::rows(&mut walk))),
            Self::Tree(name) => {
                let (state, node) = tree::tree(&mut walk, name);
                (state, Content::Tree(node))
            }
            Self::Timeline(name, history) => {
                let (state, moments) = timeline::moments(&mut walk, name, history);
                (state, Content::Timeline(moments))
            }
            Self::Top => (State::Ready, Content::Top(top::top(&mut walk, now))),
        };
        let missing = snapshot.missing(walk.wanted);
        if !missing.is_empty() {
            return Err(missing);
        }
        let is_known = walk.not_read.is_empty() || !matches!(state, State::Ready | State::Absent);
        Ok(Report {
            state: if is_known { state } else { State::Unknown },
            content,
            not_read: walk.not_read,
        })
    }
}

#[cfg(test)]
mod tests;
