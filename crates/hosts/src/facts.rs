//! What a decision about a host sees.
//!
//! *Unknown* is never *absent*: what nobody has looked at yet, what could not be read and what is not there are three
//! things. A plan that needs something unknown asks for it ([`Read`]); with the answer it is made again in the same
//! pass. Reads are counted, so only what a decision turns on is asked for.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData};
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::{Node, Validation};
use metal3_ironic::model::port::Port;
use metal3_ironic::slots::Turn;

use crate::settings::Settings;

/// Everything that may decide what happens to a host.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The host.
    pub host: &'a BareMetalHost,
    /// How sure it is that the host still is so.
    pub host_seen: HostSeen,
    /// What the view of the host before this one said, if this process had one. A view is kept until a newer one
    /// comes, so an object that was paused and now is not shows here, however often it is planned for, as long as it
    /// does not change again.
    pub before: LastView,
    /// The Secret that `spec.bmc.credentialsName` names.
    pub credentials: Sight<Secret<'a>>,
    /// For how long that Secret is known to hold, in its present version, the login that it held at the version which the
    /// status records; nothing where that is not known.
    pub same_login: Option<Duration>,
    /// The Secret that `spec.userData` names.
    pub user_data: Sight<Secret<'a>>,
    /// The Secret that `spec.networkData` names.
    pub network_data: Sight<Secret<'a>>,
    /// The Secret that `spec.metaData` names.
    pub meta_data: Sight<Secret<'a>>,
    /// The Secret that `spec.preprovisioningNetworkDataName` names.
    pub agent_network: Sight<Secret<'a>>,
    /// The HardwareData of the host's name.
    pub hardware_data: Sight<&'a HardwareData>,
    /// The node.
    pub node: NodeSight<'a>,
    /// All ports of that node.
    pub ports: Sight<&'a [Port]>,
    /// What the last inspection of that node found. Absent: it never was inspected.
    pub inventory: Sight<&'a Inspection>,
    /// Ironic's verdict on the node as it is now. It must have been given after the last change of the node.
    pub validation: Sight<&'a Validation>,
    /// The last error in the node's history. Absent: the history has none.
    pub last_history_error: Sight<&'a str>,
    /// The request to Ironic that was refused last on behalf of the host, if none was accepted since and the host's
    /// `metadata.generation` is still the same.
    pub refused: Option<&'a Refused>,
    /// Since when Ironic is not reached, if that is so for longer than [`OUTAGE_LASTS`].
    pub outage: Option<&'a Outage>,
    /// Whether the host may load the provisioning network. Nothing: it was not asked for.
    pub turn: Option<Turn>,
    /// How many provisioned hosts of the namespace may still be torn down now.
    pub budget: Budget,
    /// How the program was started.
    pub settings: &'a Settings,
    /// A number that differs from host to host and is the same on every pass of one: it spreads the attempts of many
    /// hosts that failed together.
    pub jitter: u64,
    /// The time.
    pub now: Time,
}

/// How sure it is that an object of the API still is as we see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostSeen {
    /// From a cache.
    Cached,
    /// Answered by the server in this pass: to a read, or to a write of ours that carried the version it relied on.
    Live,
}

/// What an earlier view of a host said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LastView {
    /// It was paused.
    pub paused: bool,
    /// It was being deleted as a part of a move: something else owns the machine.
    pub moving: bool,
}

/// Something that may not have been looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight<T> {
    /// Nobody has looked, or no answer came.
    Unknown,
    /// It was looked for and is not there.
    Absent,
    /// It is there.
    Found(T),
}

impl<T> Sight<T> {
    /// The thing, if it was found.
    pub fn found(self) -> Option<T> {
        match self {
            Self::Found(thing) => Some(thing),
            Self::Unknown | Self::Absent => None,
        }
    }
}

/// A Secret. The watch shows its metadata; the values are read when they are needed. `Debug` shows no value.
#[derive(Clone, Copy, PartialEq)]
pub struct Secret<'a> {
    /// Its metadata. The resource version is that of the values, when both are there.
    pub metadata: &'a ObjectMeta,
    /// Its values, if they have been read.
    pub values: Option<&'a BTreeMap<String, ByteString>>,
}

impl Secret<'_> {
    /// Its version, as a host's status records it.
    #[must_use]
    pub fn version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }
}

impl fmt::Debug for Secret<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secret")
            .field("name", &self.metadata.name)
            .field("version", &self.version())
            .field("is_read", &self.values.is_some())
            .finish_non_exhaustive()
    }
}

/// What is seen of a host's node.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum NodeSight<'a> {
    /// Nobody has looked, or no answer came, or the change feed does not show it: which is not the same as absent.
    Unknown,
    /// In this pass it was looked for by `status.provisioning.ID`, by `namespace~name`, by the plain name and by the
    /// boot MAC address, and each time the answer was that there is none; or Ironic has just deleted it for us.
    Absent,
    /// The boot MAC address belongs to a node with another name. Found by the same search.
    Foreign {
        /// The name of that node.
        name: &'a str,
    },
    /// It is there.
    Found(&'a Node, NodeSeen),
}

/// How new a view of a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeSeen {
    /// A request of ours went out after it was made. It may be shown to people; nothing may be decided from it but to
    /// wait.
    Stale,
    /// From the change feed, which has come by since every request of ours.
    Current,
    /// From the change feed, which has come by since the host was seen in its present state, too: whatever another
    /// process did before it wrote that state shows. What ends a state is not decided from less.
    Abreast,
    /// Answered by Ironic in this pass: to a read, or to a change of the node.
    Live,
    /// Answered by Ironic in this pass to its creation by us: it has the login that was sent.
    Created,
}

/// A request that Ironic refused, or that it did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What was asked: [`crate::action::Request::verb`].
    pub request: &'static str,
    /// What may help.
    pub cure: Cure,
    /// In words, without secrets.
    pub message: String,
    /// In this very pass, so nobody was told of it.
    pub is_fresh: bool,
}

/// What may help after a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// The same again, later: Ironic is busy, or the node is locked, or no answer came. The plan is made again from a
    /// new view of the node.
    Wait,
    /// Somebody has to change the host or its Secrets: Ironic does not take this request.
    Change,
    /// Somebody has to see to our way to Ironic: the login, the certificate, the version. It says nothing of this
    /// request.
    Access,
}

/// Ironic does not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outage {
    /// Since when.
    pub since: Time,
    /// Why, without secrets.
    pub reason: String,
}

/// An outage shorter than this is no news.
pub const OUTAGE_LASTS: Duration = Duration::from_secs(120);
/// How often a host that waits for Ironic looks again. The change feed wakes it earlier.
pub const OUTAGE_LOOK: Duration = Duration::from_secs(60);

/// How many provisioned hosts may be torn down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// How many more, now.
    pub left: u32,
    /// How many in a period.
    pub limit: u32,
    /// The period, in words: `hour`.
    pub period: &'static str,
}

/// Something to be looked at before the decision is made. Each is read live, whatever a cache shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Read {
    /// The host.
    Host,
    /// The node: by `status.provisioning.ID` if there is one, else or when that is not found by `namespace~name`, by
    /// the plain name, by the boot MAC address. A failure of any of these leaves the node unknown.
    Node,
    /// The Secret with the BMC's credentials, with its values.
    Credentials,
    /// The Secret with user data.
    UserData,
    /// The Secret with network data.
    NetworkData,
    /// The Secret with meta data.
    MetaData,
    /// The Secret with the network data of the agent.
    AgentNetwork,
    /// The HardwareData.
    HardwareData,
    /// The ports of the node.
    Ports,
    /// What inspection found.
    Inventory,
    /// What Ironic says of a deployment of the node as it is.
    Validation,
    /// What Ironic remembers of the node's failures.
    History,
    /// No read: the host asks for its turn to load the provisioning network.
    Turn,
}
