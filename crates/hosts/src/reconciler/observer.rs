//! Performs the reads that a plan requests.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::clock::{Clock, Monotonic};
use metal3_domain::uri::public_text;
use metal3_ironic::Error;
use metal3_ironic::calls::{NodeRef, hardware, node, port, state};
use metal3_ironic::model::node::Node;
use metal3_runtime::cache::Key;
use metal3_runtime::object_reader::ObjectReader;
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::version::ResourceVersion;
use metal3_runtime::work::Fault;
use metal3_runtime::write::{Mode, Writer};

use super::caches::Caches;
use super::ironic_session::{IronicSession, chosen};
use super::observations::{Observations, ObservedSecret, TriedLogin};
use super::sessions::Sessions;
use crate::facts::{FoundNode, LoginAnswer, NodeFreshness, Read, Refused};
use crate::needs::Hosts;
use crate::node::name;

/// Severity of a failure in the history of a node.
const FAILURE: &str = "ERROR";

pub(super) enum ReadOutcome {
    Done,
    /// The host does not exist any more.
    HostAbsent,
    /// Ironic did not respond as expected.
    Refused(Error),
}

pub(super) struct Observer {
    pub(super) caches: Caches,
    pub(super) secrets: ObjectReader<Hosts, Secret>,
    pub(super) ironics: Sessions,
    /// Whether a node is a host's also by the host's name without the namespace.
    pub(super) plain_node_names: bool,
    /// Whether an image of the agent is built for each host.
    pub(super) builds_agent_images: bool,
    pub(super) clock: Arc<dyn Clock>,
}

impl Observer {
    /// Observes caches and feed without a request.
    pub(super) fn observe_cached(&self, host: Arc<BareMetalHost>, refused: Option<Refused>) -> Observations {
        let key = Key::of(&*host);
        let secrets = Read::SECRETS.into_iter().filter_map(|which| {
            let name = which.secret_name(&host)?;
            let found = self.caches.secrets.find(&in_namespace(&key, name));
            let observed = found.map(|meta| ObservedSecret::Metadata(Arc::new(meta.metadata.clone())));
            Some((which, observed))
        });
        let hardware = self.caches.hardware.find(&key);
        let located = self.ironics.in_lists(&host, self.plain_node_names);
        let ironic = self.ironics.of(&host, &located).cloned();
        let known = ironic
            .as_ref()
            .and_then(|ironic| ironic.observed_node(&key, &host.status.provisioning.id));
        // Another node is searched first: the status may be written by a user.
        let known = known.filter(|(node, _)| self.is_own(&host, node));
        Observations {
            ironic,
            located,
            secrets: secrets.collect(),
            host,
            host_returned: None,
            hardware,
            agent_image: self.cached_agent_image(&key),
            node_observed: self.clock.monotonic(),
            node: known.map_or(Observed::Unknown(UnknownReason::NotRead), |(node, freshness)| {
                Observed::Present(FoundNode::Own(node, freshness))
            }),
            login: None,
            ports: Observed::Unknown(UnknownReason::NotRead),
            inventory: Observed::Unknown(UnknownReason::NotRead),
            validation: Observed::Unknown(UnknownReason::NotRead),
            history: Observed::Unknown(UnknownReason::NotRead),
            firmware_settings: self.caches.firmware_settings.find(&key),
            settings_returned: None,
            bios: Observed::Unknown(UnknownReason::NotRead),
            firmware_components: self.cached_components(&key),
            components_returned: None,
            update_policy: self.caches.update_policies.find(&key),
            policy_returned: None,
            unreadable: None,
            versions: Observed::Unknown(UnknownReason::NotRead),
            data_image: self.caches.data_images.find(&key),
            data_image_returned: None,
            drive: Observed::Unknown(UnknownReason::NotRead),
            slot: None,
            refused,
            send_permit: None,
        }
    }

    /// Replaces the view of a node that became old during a slow step of this reconcile by that of the feed, which is never older.
    pub(super) fn renew_node(&self, key: &Key, observed: &mut Observations, now: Monotonic) {
        let Some(aged) = observed.aged_node(now) else { return };
        let ironic = observed.ironic.as_ref();
        let newest = ironic.and_then(|ironic| ironic.observed_node(key, aged.uuid.as_str()));
        if let Some((node, freshness)) = newest.filter(|(node, _)| self.is_own(&observed.host, node)) {
            observed.set_node(Observed::Present(FoundNode::Own(node, freshness)), now);
        }
    }

    /// The node that was found, or a later version of it that the feed has: a response may be late.
    fn newest(&self, key: &Key, of: &Observations, found: Observed<FoundNode>) -> Observed<FoundNode> {
        let Observed::Present(FoundNode::Own(node, _)) = &found else {
            return found;
        };
        let ironic = of.ironic.as_ref();
        let of_feed = ironic.and_then(|ironic| ironic.observed_node(key, node.uuid.as_str()));
        match of_feed.filter(|(newest, _)| newest.updated_at > node.updated_at && self.is_own(&of.host, newest)) {
            Some((newest, freshness)) => Observed::Present(FoundNode::Own(newest, freshness)),
            None => found,
        }
    }

    /// Removes the content of Secrets of a deployment that changed during a slow step of this reconcile.
    pub(super) fn forget_changed_data(&self, key: &Key, observed: &mut Observations) {
        let version = |metadata: &ObjectMeta| ResourceVersion::parse(metadata.resource_version.as_deref()?).ok();
        for which in [Read::UserData, Read::NetworkData, Read::MetaData, Read::PullSecret] {
            let Some(Observed::Present(secret)) = observed.secrets.get_mut(&which) else {
                continue;
            };
            let ObservedSecret::Whole(whole) = &*secret else {
                continue;
            };
            let name = whole.metadata.name.as_deref().unwrap_or_default();
            let cached = self.caches.secrets.find(&key.sibling(name)).into_present();
            if let Some(cached) = cached.filter(|cached| version(&cached.metadata) > version(&whole.metadata)) {
                *secret = ObservedSecret::Metadata(Arc::new(cached.metadata.clone()));
            }
        }
    }

    /// Whether the cache received a later version of the host. Reads from Ironic can be slow, and an edit during them may
    /// forbid what was planned.
    pub(super) fn is_outdated(&self, key: &Key, observed: &Observations) -> bool {
        let version = |host: &BareMetalHost| ResourceVersion::parse(host.metadata.resource_version.as_deref()?).ok();
        let cached = self.caches.hosts.find(key).into_present();
        cached.is_some_and(|cached| version(&cached) > version(&observed.host))
    }

    /// Performs one read.
    pub(super) async fn read_live(
        &self,
        read: Read,
        observed: &mut Observations,
        writer: &Writer<Hosts>,
    ) -> Result<ReadOutcome, Fault> {
        let key = Key::of(&*observed.host);
        match read {
            Read::Host => match writer.read(&self.caches.hosts, &key).await? {
                Some(host) if host.metadata.uid == observed.host.metadata.uid => {
                    observed.set_host(host, self.clock.monotonic());
                }
                Some(_) | None => return Ok(ReadOutcome::HostAbsent),
            },
            Read::Ironic => self.locate(observed).await,
            Read::Node => match self.search(observed).await {
                Ok(found) => {
                    let newest = self.newest(&key, observed, found);
                    observed.set_node(newest, self.clock.monotonic());
                }
                Err(error) => return Ok(ReadOutcome::Refused(error)),
            },
            Read::Credentials
            | Read::UserData
            | Read::NetworkData
            | Read::MetaData
            | Read::AgentNetwork
            | Read::PullSecret => {
                self.secret(read, observed, &key).await?;
            }
            Read::Login => observed.login = self.try_login(observed, writer.mode()).await,
            Read::HardwareData => self.live_hardware(&key, observed, writer).await?,
            Read::FirmwareComponents => self.live_components(&key, observed, writer).await?,
            Read::ReportedVersions => {
                if let Err(error) = self.read_node_details(Read::Versions, observed).await {
                    let why = public_text(&error.to_string());
                    tracing::warn!(host = %key, why, "the firmware of the node cannot be read for its report");
                    observed.versions = Observed::Unknown(UnknownReason::Unreadable(why));
                }
            }
            Read::FirmwareSettings => self.live_settings(&key, observed, writer).await?,
            Read::UpdatePolicy => self.live_policy(&key, observed, writer).await?,
            Read::ReportedBios => {
                if let Err(error) = self.read_node_details(Read::Bios, observed).await {
                    let why = public_text(&error.to_string());
                    tracing::warn!(host = %key, why, "the BIOS settings of the node cannot be read for their report");
                    observed.bios = Observed::Unknown(UnknownReason::Unreadable(why));
                }
            }
            Read::DataImage => self.live_data_image(&key, observed, writer).await?,
            Read::Drive => {
                if let Err(error) = self.drive(observed).await {
                    return Ok(ReadOutcome::Refused(error));
                }
            }
            Read::Slot => observed.slot = observed.ironic.as_ref().map(|ironic| ironic.request_slot(&key)),
            Read::Ports | Read::Inventory | Read::Validation | Read::Bios | Read::Versions | Read::History => {
                if let Err(error) = self.read_node_details(read, observed).await {
                    return Ok(ReadOutcome::Refused(error));
                }
            }
        }
        Ok(ReadOutcome::Done)
    }

    async fn live_hardware(&self, key: &Key, observed: &mut Observations, writer: &Writer<Hosts>) -> Result<(), Fault> {
        let found = writer.read(&self.caches.hardware, key).await?;
        observed.hardware = Observed::from(found.map(Arc::new));
        Ok(())
    }

    async fn read_node_details(&self, read: Read, observed: &mut Observations) -> Result<(), Error> {
        let Observed::Present(FoundNode::Own(node, _)) = &observed.node else {
            return Ok(());
        };
        if read == Read::Inventory && node.inspection_finished_at.is_none() {
            // Ironic records when an inspection ended, so no request is needed without one.
            observed.inventory = Observed::Absent;
            return Ok(());
        }
        let (node, send_permit) = (NodeRef::Uuid(node.uuid.clone()), observed.send_permit.as_ref());
        let ironic = chosen(observed.ironic.as_ref())?;
        match read {
            Read::Ports => {
                let (mut ports, mut next_page) = (Vec::new(), None);
                loop {
                    let call = port::of_node(&node, next_page.as_ref());
                    let page = ironic.read(send_permit, &call).await?;
                    ports.extend(page.items);
                    next_page = page.next;
                    if next_page.is_none() {
                        break;
                    }
                }
                observed.ports = Observed::Present(ports);
            }
            Read::Inventory => {
                observed.inventory = match ironic.read(send_permit, &node::inventory(&node)).await {
                    Ok(inventory) => Observed::Present(Box::new(inventory)),
                    Err(Error::NotFound(_)) => Observed::Absent,
                    Err(error) => return Err(error),
                };
            }
            Read::Validation => {
                let validation = ironic.read(send_permit, &node::validate(&node)).await?;
                observed.validation = Observed::Present(validation);
            }
            Read::Bios => {
                let settings = ironic.read(send_permit, &hardware::bios(&node)).await?;
                observed.bios = Observed::Present(settings.items);
            }
            Read::Versions => {
                let versions = ironic.read(send_permit, &hardware::firmware(&node)).await?;
                observed.versions = Observed::Present(versions.items);
            }
            _ => {
                let history = ironic.read(send_permit, &node::history(&node)).await?;
                let mut last = history
                    .items
                    .into_iter()
                    .rev()
                    .filter(|entry| entry.severity.as_deref() == Some(FAILURE));
                let last = last.find_map(|entry| entry.event);
                observed.history = Observed::from(last);
            }
        }
        Ok(())
    }

    /// Has Ironic log in to the BMC of the node.
    async fn try_login(&self, observed: &Observations, mode: Mode) -> Option<TriedLogin> {
        let Observed::Present(FoundNode::Own(node, _)) = &observed.node else {
            return None;
        };
        let answer = match mode {
            // Ironic locks the node for it, and has a login that this process did not send.
            Mode::ObserveOnly => LoginAnswer::Unknown,
            Mode::Perform => {
                let ironic = chosen(observed.ironic.as_ref()).ok()?;
                self.read_boot_device(ironic, node, observed).await
            }
        };
        Some(TriedLogin {
            version: observed.tried_login().to_owned(),
            answer,
        })
    }

    async fn read_boot_device(&self, ironic: &IronicSession, node: &Node, observed: &Observations) -> LoginAnswer {
        let Some(seat) = ironic.login_seats().take(self.clock.monotonic()) else {
            return LoginAnswer::Unknown;
        };
        let call = state::boot_device(&NodeRef::Uuid(node.uuid.clone()));
        let answer = ironic.read(observed.send_permit.as_ref(), &call).await;
        if !matches!(answer, Err(Error::Timeout { .. })) {
            ironic.login_seats().leave(&seat);
        }
        if let Err(error) = &answer {
            let why = public_text(&error.to_string());
            tracing::debug!(node = %node.uuid, why, "the login of the BMC was tried without success");
        }
        LoginAnswer::of(&answer)
    }

    async fn secret(&self, which: Read, observed: &mut Observations, host: &Key) -> Result<(), Fault> {
        let Some(name) = which.secret_name(&observed.host) else {
            return Ok(());
        };
        let found = self.secrets.get(&in_namespace(host, name)).await?;
        observed.secrets.insert(which, found.map(ObservedSecret::Whole));
        Ok(())
    }

    pub(super) fn is_own(&self, host: &BareMetalHost, node: &Node) -> bool {
        name::is_of_host(host, node.name.as_deref(), self.plain_node_names)
    }
}

pub(super) fn found(node: Node) -> Observed<FoundNode> {
    Observed::Present(FoundNode::Own(Arc::new(node), NodeFreshness::Live))
}

fn in_namespace(host: &Key, name: &str) -> Key {
    Key {
        namespace: host.namespace.clone(),
        name: name.to_owned(),
    }
}
