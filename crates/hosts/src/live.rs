//! Live reads that controllers other than that of hosts need before they change something in Ironic or in a BMC: whether a Go
//! manager runs, and which node belongs to a host. Each may fail, and a failure is an unknown.

use std::sync::Arc;

use futures::future::BoxFuture;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::derived::ironic_node;
use metal3_domain::ids::NodeUuid;
use metal3_domain::names::{HostKey, Namespace, ObjectName};
use metal3_ironic::calls::{NodeRef, node};
use metal3_ironic::model::node::Node;
use metal3_ironic::{Client, Error};
use metal3_runtime::cache::Key;
use metal3_runtime::guard::GuardStatus;
use metal3_runtime::plan::{Observed, UnknownReason};

use crate::ironics::{Choice, Ironics, Wish, choose};
use crate::node::name;
use crate::plan::object::recorded_node_id;

/// Reads whether a Go manager of hosts runs now.
pub type GoManagerCheck = Arc<dyn Fn() -> BoxFuture<'static, GuardStatus> + Send + Sync>;

/// The result of a live read. Unread and failed are two different results, and neither is an absence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reading<T, F = String> {
    NotRead,
    /// Why nothing is known. A text is part of a status, so it stays the same while the failure does.
    Failed(F),
    Known(T),
}

impl<T> Reading<T> {
    /// A failed request to Ironic. The text stays the same while the error does: it is without the ID of the request.
    pub(crate) fn failed(error: &Error) -> Self {
        tracing::debug!(%error, "a live read failed");
        Self::Failed(match error {
            Error::TooOld { .. } => error.to_string(),
            _ => format!("Ironic: {}", error.category()),
        })
    }
}

/// The host of this key; `None` for names that no host can have.
pub(crate) fn host_key(key: &Key) -> Option<HostKey> {
    let namespace = Namespace::parse(key.namespace.clone()).ok()?;
    Some(HostKey::new(namespace, ObjectName::parse(key.name.clone()).ok()?))
}

/// Whether a Go manager serves the kinds of hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GoManager {
    Absent,
    /// It runs: a sentence about its Deployment.
    Running(String),
}

impl Reading<GoManager> {
    pub(crate) fn of(status: GuardStatus) -> Self {
        match status {
            GuardStatus::Clear => Self::Known(GoManager::Absent),
            GuardStatus::Present { foreign, replicas, .. } => {
                let message = format!("{foreign} serves it (replicas: {replicas})");
                Self::Known(GoManager::Running(message))
            }
            GuardStatus::Unknown { foreign, .. } => Self::Failed(format!("{foreign} cannot be read")),
            GuardStatus::Forced => Self::Failed("it was not checked".to_owned()),
        }
    }
}

/// A node of a host, with the Ironic that has it.
pub(crate) struct OwnNode {
    pub(crate) node: Node,
    pub(crate) ironic: Client,
}

/// The node of a host.
pub(crate) enum Search {
    Own(Box<OwnNode>),
    /// The host records another's node, and none has its name.
    Foreign,
    Absent,
}

/// Searches the nodes of hosts.
pub(crate) struct NodeSearch {
    pub(crate) ironics: Ironics,
    /// Whether a node is a host's also by the host's name without the namespace.
    pub(crate) plain_node_names: bool,
}

impl NodeSearch {
    /// Searches in the Ironic of the host; in all of them when nothing says which one that is.
    pub(crate) async fn find(&self, key: &HostKey, host: Option<&BareMetalHost>) -> Result<Search, Error> {
        let not_read = Observed::Unknown(UnknownReason::NotRead);
        let wish = host.map(Wish::of);
        let choice = wish.map(|wish| choose(self.ironics.names(), &wish, &not_read));
        let asked: Vec<&Client> = match &choice {
            None | Some(Choice::Search) => self.ironics.iter().map(|(_, client)| client).collect(),
            Some(choice) => match choice.asked().and_then(|name| self.ironics.client(name)) {
                Some(client) => vec![client],
                None => return Err(not_configured()),
            },
        };
        let mut is_foreign = false;
        for ironic in asked {
            match self.find_in(ironic, key, host).await? {
                Search::Own(node) => return Ok(Search::Own(node)),
                Search::Foreign => is_foreign = true,
                Search::Absent => {}
            }
        }
        Ok(if is_foreign { Search::Foreign } else { Search::Absent })
    }

    /// Searches by the UUID that the host records, then by name. A node is the host's only by its name: the status may be
    /// written by a user.
    async fn find_in(&self, ironic: &Client, key: &HostKey, host: Option<&BareMetalHost>) -> Result<Search, Error> {
        let own = |node: Node| {
            Search::Own(Box::new(OwnNode {
                node,
                ironic: ironic.clone(),
            }))
        };
        let recorded = host.and_then(|host| NodeUuid::parse(recorded_node_id(host)).ok());
        let recorded = match recorded {
            Some(uuid) => get(ironic, NodeRef::Uuid(uuid)).await?,
            None => None,
        };
        let is_own =
            |node: &Node| host.is_some_and(|host| name::is_of_host(host, node.name.as_deref(), self.plain_node_names));
        let is_foreign = match recorded {
            Some(node) if is_own(&node) => return Ok(own(node)),
            Some(_) => true,
            None => false,
        };
        // Without a host, a node with the plain name may be of any namespace.
        let plain = host.filter(|_| self.plain_node_names).and_then(name::plain);
        for name in std::iter::once(ironic_node(key)).chain(plain) {
            let node = get(ironic, NodeRef::Name(name.clone())).await?;
            if let Some(node) = node.filter(|node| name::is_named(node.name.as_deref(), &name)) {
                return Ok(own(node));
            }
        }
        Ok(if is_foreign { Search::Foreign } else { Search::Absent })
    }

    /// The node of a host, for an object whose status shows why it is not known.
    pub(crate) async fn read(
        &self,
        key: Option<&HostKey>,
        host: Option<&BareMetalHost>,
    ) -> Reading<Option<Box<OwnNode>>> {
        let Some(key) = key else {
            return Reading::Failed("it names no valid host".to_owned());
        };
        match self.find(key, host).await {
            Ok(Search::Absent) => Reading::Known(None),
            Ok(Search::Foreign) => Reading::Failed("its host records a node of another name".to_owned()),
            Ok(Search::Own(node)) => Reading::Known(Some(node)),
            Err(error) => Reading::failed(&error),
        }
    }
}

fn not_configured() -> Error {
    Error::NotReady {
        operation: "read a node",
        reason: "the Ironic of the host is not configured".to_owned(),
    }
}

async fn get(ironic: &Client, node: NodeRef) -> Result<Option<Node>, Error> {
    match ironic.send(&node::get(&node)).await {
        Ok(response) => Ok(Some(response.value)),
        Err(Error::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    }
}
