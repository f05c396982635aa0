//! The input of a decision about a host.
//!
//! *Unknown* is never *absent*: a thing that was not read, that could not be read or that does not exist are three
//! cases. A plan that depends on an unknown value requests it ([`Read`]) and planning is repeated in the same
//! reconcile. Reads are counted, so a plan requests only what it depends on.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::ByteString;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::meta::Time;
use metal3_api::metal3::v1alpha1::{
    BareMetalHost, HardwareData, HostFirmwareComponents, HostFirmwareSettings, HostUpdatePolicy,
};
use metal3_domain::ids::NodeUuid;
use metal3_ironic::model::hardware::{BiosSetting, FirmwareComponent};
use metal3_ironic::model::inventory::Inspection;
use metal3_ironic::model::node::{Node, Validation};
use metal3_ironic::model::port::Port;
use metal3_ironic::slots::SlotState;
use metal3_runtime::plan::Observed;

use crate::ironics::{Elsewhere, Located, Names};
use crate::settings::Settings;

mod agent_image;
mod budget;
mod disc;
mod login;
mod outage;
mod read;
mod requested;

pub use agent_image::AgentImage;
pub use budget::Budget;
pub use disc::{DISC_ATTEMPTS, DiscAttempts, DiscFacts, DiscOrder, DiscRefusal, DriveView};
pub use login::LoginAnswer;
pub use outage::{Outage, OutageKind};
pub use read::Read;
pub use requested::{CleaningOrder, CleaningProgress, NodeMark, RefusedReports, RequestedReboot};

/// Everything that a decision may depend on.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The names of the configured Ironics.
    pub ironics: &'a Names,
    /// Which of them has the node of the host, if nothing records it.
    pub located: &'a Located,
    /// What the lists of the other Ironics show of its node.
    pub elsewhere: Elsewhere,
    /// The host.
    pub host: &'a BareMetalHost,
    /// How fresh the observation of the host is.
    pub host_freshness: HostFreshness,
    /// The version of the host before the cached one, if this process received one. It is kept until the next version
    /// arrives, so a host that was paused in the last version shows so in every reconcile until the host changes again.
    pub previous: PreviousView,
    /// How long this process has observed the deletion of the host. `None`: it is not deleted.
    pub deleted_for: Option<Duration>,
    /// The Secret that `spec.bmc.credentialsName` names.
    pub credentials: Observed<Secret<'a>>,
    /// How long the Secret in its present version is known to hold the same credentials as in the version recorded in
    /// the status. `None`: not known.
    pub login_unchanged_for: Option<Duration>,
    /// What the BMC answered to the login that the status records as tried, after the last request of this reconcile.
    pub login_answer: Observed<&'a LoginAnswer>,
    /// How long that login is not tried again, because the BMC did not answer.
    pub login_pause: Option<Duration>,
    /// The Secret that `spec.userData` names.
    pub user_data: Observed<Secret<'a>>,
    /// The Secret that `spec.networkData` names.
    pub network_data: Observed<Secret<'a>>,
    /// The Secret that `spec.metaData` names.
    pub meta_data: Observed<Secret<'a>>,
    /// The Secret that `spec.preprovisioningNetworkDataName` names.
    pub agent_network: Observed<Secret<'a>>,
    /// The Secret with the login to the registry of the image.
    pub pull_secret: Observed<Secret<'a>>,
    /// The node shows the network data that this Secret holds in its present version, as far as this process has read it.
    pub agent_network_on_node: bool,
    /// The image of the agent that is built for the host.
    pub agent_image: AgentImage<'a>,
    /// The HardwareData with the host's name.
    pub hardware_data: Observed<&'a HardwareData>,
    /// The node. Absent: searched in this reconcile by `status.provisioning.ID`, `namespace~name`, boot MAC address and,
    /// with `--adopt-plain-node-names`, plain name without a result, or Ironic confirmed its deletion in this
    /// reconcile. Unknown: not read, the read failed, or the change feed does not contain it.
    pub node: &'a Observed<FoundNode>,
    /// How long Ironic may still begin with a change that this process sent and whose response is lost. `None`: it has ended
    /// all of them.
    pub unanswered: Option<Duration>,
    /// How long Ironic may still begin with a creation of the node, or a removal of the image, that this or an earlier process
    /// sent. `None`: it has ended it.
    pub creation_left: Option<Duration>,
    /// How long this process observes the node with its present reservation and without a change. `None`: it has none.
    pub reserved_for: Option<Duration>,
    /// Another host that has the machine at the address of this one.
    pub machine_of: Option<&'a metal3_runtime::cache::Key>,
    /// This process has seen the port of the boot MAC address on this node.
    pub boot_port_exists: bool,
    /// All ports of the node.
    pub ports: Observed<&'a [Port]>,
    /// The result of the last inspection. Absent: the node was never inspected.
    pub inventory: Observed<&'a Inspection>,
    /// Ironic's validation of the node, requested after the last change of the node.
    pub validation: Observed<&'a Validation>,
    /// The last error in the node's history. Absent: there is none.
    pub last_history_error: Observed<&'a str>,
    /// The HostFirmwareSettings with the host's name.
    pub firmware_settings: Observed<&'a HostFirmwareSettings>,
    /// How fresh that observation is.
    pub firmware_settings_freshness: HostFreshness,
    /// The BIOS settings that Ironic reports, read since the last change of the node in this reconcile. Unreadable: why the read
    /// failed.
    pub bios: Observed<&'a [BiosSetting]>,
    /// The disc of the host.
    pub disc: DiscFacts<'a>,
    /// The last cleaning or service that this process ordered for the BIOS or the firmware of this node since the host entered its present state.
    pub cleaning_order: Option<CleaningOrder>,
    /// The HostFirmwareComponents with the host's name. Unreadable: what this process lacks to read them.
    pub firmware_components: Observed<&'a HostFirmwareComponents>,
    /// How fresh that observation is.
    pub firmware_components_freshness: HostFreshness,
    /// The HostUpdatePolicy with the host's name.
    pub update_policy: Observed<&'a HostUpdatePolicy>,
    /// How fresh that observation is.
    pub update_policy_freshness: HostFreshness,
    /// Why the HostFirmwareSettings or the HostFirmwareComponents, which a cache contains, could not be read in this reconcile.
    pub unreadable: Option<&'a str>,
    /// The firmware that Ironic reports, read since the last change of the node in this reconcile. Unreadable: why the read failed.
    pub versions: Observed<&'a [FirmwareComponent]>,
    /// Which reports the API server refused this process.
    pub refused_reports: RefusedReports,
    /// The API server refused this process a change of their status some minutes ago.
    pub is_firmware_status_refused: bool,
    /// How long this process observes updates of the firmware that have not ended, in a node that is not cleaned. `None`: it has
    /// none.
    pub updates_left_for: Option<Duration>,
    /// The host entered its present state before this process led, or this process did not see it enter: another one may have
    /// begun with its operation.
    pub began_elsewhere: bool,
    /// Ironic accepted a request of this process that erases, or it may have, since the host entered its present state; or a
    /// node of a host in `deprovisioning` shows that it did. Absent: this process saw the host enter that state, and Ironic
    /// accepted none. Unknown: another process may have sent one.
    pub erasing: Observed<()>,
    /// The last request that Ironic rejected for this host, while no later one was accepted and `metadata.generation`
    /// is unchanged.
    pub refused: Option<&'a Refused>,
    /// The power state that this process requested last, on or off, until the node shows it. Only then an error of the
    /// node may be the result of that request.
    pub requested_power: Option<bool>,
    /// The reboot of the running machine that this process requested and whose end it has not recorded.
    pub requested_reboot: Option<RequestedReboot>,
    /// Whether this Ironic aborts a deployment that waits for its agent.
    pub aborts_deployments: bool,
    /// The outage of Ironic, if it lasts longer than [`OUTAGE_THRESHOLD`].
    pub outage: Option<&'a Outage>,
    /// The busy-host slot. `None`: not requested.
    pub slot: Option<SlotState>,
    /// The deprovision budget of the namespace.
    pub budget: Budget,
    /// The flags.
    pub settings: &'a Settings,
    /// A stable number per host. It spreads the retries of hosts that failed together.
    pub jitter: u64,
    /// The current time.
    pub now: Time,
}

/// How fresh an observation of an API object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HostFreshness {
    /// From a cache.
    Cached,
    /// From a response of the API server in this reconcile, some seconds ago at most: to a read, or to a write with a
    /// precondition.
    Live,
}

/// The previous version of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PreviousView {
    /// The host was paused.
    pub paused: bool,
    /// The host was being deleted as part of a move to another cluster.
    pub moving: bool,
}

/// A Secret. The watch delivers its metadata; values are read on demand. `Debug` shows no value.
#[derive(Clone, Copy, PartialEq)]
pub struct Secret<'a> {
    /// The metadata. With values present, its resource version is the version of the values.
    pub metadata: &'a ObjectMeta,
    /// The values, if they were read.
    pub values: Option<&'a BTreeMap<String, ByteString>>,
}

impl Secret<'_> {
    /// The version, as the status of a host records it.
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

impl<'a> Facts<'a> {
    /// The node of the host and how fresh its observation is, if it was found.
    #[must_use]
    pub fn own_node(&self) -> Option<(&'a Node, NodeFreshness)> {
        match self.node {
            Observed::Present(FoundNode::Own(node, freshness)) => Some((node, *freshness)),
            Observed::Present(FoundNode::Foreign(_)) | Observed::Absent | Observed::Unknown(_) => None,
        }
    }
}

/// The node that was found for a host.
#[derive(Debug, Clone, PartialEq)]
pub enum FoundNode {
    /// The node of the host: by its name, not by what the status records.
    Own(Arc<Node>, NodeFreshness),
    /// The search found a node that is not the host's.
    Foreign(ForeignNode),
}

/// A node of another host or user. It is never changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForeignNode {
    /// It has the boot MAC address of the host.
    Address {
        /// Its name, if it has one. It may be of another namespace.
        name: Option<String>,
    },
    /// The status of the host records it, which also a user can write.
    Recorded {
        /// Its UUID.
        uuid: NodeUuid,
    },
}

/// How fresh an observation of a node is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeFreshness {
    /// Older than a request of this process. It may be displayed; a plan may only wait.
    Stale,
    /// From the change feed, newer than every request of this process.
    Current,
    /// From the change feed, and newer than the host's present state: it contains the effects of what another process
    /// did before it wrote that state. A host leaves its state only on such an observation or a fresher one.
    InState,
    /// From a response of Ironic in this reconcile: to a read, or to a change of the node.
    Live,
    /// From the response to its creation in this reconcile: it has the credentials that were sent.
    Created,
}

/// A request or a read that Ironic rejected or did not answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The name of the request or read: [`crate::action::Request::verb`] or `Read::ironic_name`.
    pub request: &'static str,
    /// What resolves it.
    pub class: RefusalClass,
    /// The reason, without secrets.
    pub message: String,
    /// Rejected in this reconcile, so it is not recorded in the status yet.
    pub is_fresh: bool,
    /// Ironic failed or refused the access then, and serves requests again since.
    pub is_over: bool,
    /// Ironic worked with the node.
    pub is_lock: bool,
}

/// What resolves a rejection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalClass {
    /// A retry: Ironic is busy, the node is locked, or no response arrived. Planning is repeated with a new observation
    /// of the node.
    Transient,
    /// A change of the host or its Secrets: Ironic does not accept this request.
    Invalid,
    /// A change of the node, the host or Ironic: the same response came [`EQUAL_REFUSALS`] times in a row, for at
    /// least [`REFUSAL_THRESHOLD`], while the node did not change.
    Persistent,
    /// A repair of Ironic: as [`Self::Persistent`], and the responses are errors of Ironic itself (5xx), or the node stays
    /// locked for [`LOCK_THRESHOLD`].
    ServerError,
    /// A free worker or conductor of Ironic: it answered that it is too busy, for [`LOCK_THRESHOLD`].
    Busy,
    /// A change of the access to Ironic: permission, credentials, certificate, version. This request may be valid. Where the change
    /// feed is refused too it is an outage instead.
    Access,
}

/// This many equal responses in a row to a request for an unchanged node are a failure of the host, unless they came
/// within [`REFUSAL_THRESHOLD`].
pub const EQUAL_REFUSALS: u32 = 3;
/// A shorter failure may be a restart of Ironic.
pub const REFUSAL_THRESHOLD: Duration = Duration::from_secs(60);
/// A lock of a node, or a lack of workers, that lasts shorter may be an operation of Ironic.
pub const LOCK_THRESHOLD: Duration = Duration::from_secs(900);
/// A rejected port that is left out is requested again after this time: nothing reports that another node lost it.
pub const PORT_RETRY: Duration = Duration::from_hours(1);
/// A shorter outage is not reported.
pub const OUTAGE_THRESHOLD: Duration = Duration::from_secs(120);
/// Requeue delay of a host that waits for Ironic. The change feed wakes it earlier.
pub const OUTAGE_RECHECK: Duration = Duration::from_secs(60);
