//! The reads of a decision. Each may fail, and a failure is an unknown.

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_api::metal3::v1alpha1::{BareMetalHost, DataImage, OperationalStatus, ProvisioningState};
use metal3_ironic::Error;
use metal3_ironic::calls::{NodeRef, hardware};
use metal3_ironic::model::node::Node;
use metal3_runtime::cache::{Key, SharedCache};
use metal3_runtime::plan::{Observed, UnknownReason};
use metal3_runtime::write::{NoCache, Writer};

use super::facts::{Bar, DriveState, DriveUse, Facts, HostView, NodeView, Read, Start};
use crate::live::{GoManagerCheck, NodeSearch, OwnNode, Reading, host_key};
use crate::needs::DataImages;
use crate::node::drive::{Drive, may_run_agent, runs_from_disc};
use crate::plan::object::is_moving;

pub(super) struct Observer {
    pub(super) nodes: NodeSearch,
    pub(super) go_manager: GoManagerCheck,
    pub(super) hosts: SharedCache<BareMetalHost>,
}

/// What was read of one object, in addition to its facts. It lives as long as a reconcile.
#[derive(Default)]
pub(super) struct Found {
    pub(super) host: Option<BareMetalHost>,
    node: Option<OwnNode>,
}

impl Observer {
    pub(super) fn cached_host(&self, key: &Key, object: &DataImage) -> Reading<HostView> {
        match self.hosts.find(key) {
            Observed::Present(host) => Reading::Known(host_view(&host, object)),
            Observed::Absent => Reading::Known(HostView::Absent),
            Observed::Unknown(UnknownReason::NotListed | UnknownReason::NotRead) => Reading::NotRead,
            Observed::Unknown(why) => Reading::Failed(why.to_string()),
        }
    }

    /// Performs one read other than that of the object.
    pub(super) async fn read(
        &self,
        read: Read,
        (key, object): (&Key, &DataImage),
        (facts, found): (&mut Facts, &mut Found),
        writer: &Writer<DataImages>,
    ) {
        match read {
            Read::Object => {}
            Read::GoManager => facts.go_manager = Reading::of((self.go_manager)().await),
            Read::Host => facts.host = live_host((key, object), found, writer).await,
            Read::Node => facts.node = self.node(key, found).await,
            Read::Drive => facts.drive = self.drive(found).await,
        }
    }

    async fn node(&self, key: &Key, found: &mut Found) -> Reading<NodeView> {
        match self.nodes.read(host_key(key).as_ref(), found.host.as_ref()).await {
            Reading::Known(Some(node)) => {
                let view = NodeView::Present {
                    is_locked: node.node.reservation.is_some(),
                    drive: drive_use(&node.node),
                };
                found.node = Some(*node);
                Reading::Known(view)
            }
            Reading::Known(None) => Reading::Known(NodeView::Absent),
            Reading::Failed(why) => Reading::Failed(why),
            Reading::NotRead => Reading::NotRead,
        }
    }

    async fn drive(&self, found: &Found) -> Reading<DriveState> {
        let Some(OwnNode { node, ironic }) = &found.node else {
            return Reading::NotRead;
        };
        let call = hardware::virtual_media(&NodeRef::from(&node.uuid));
        match ironic.send(&call).await {
            Ok(media) => Reading::Known(DriveState::Known(Drive::of(&media.value, node))),
            // Another Ironic or another driver reads it, and nothing else.
            Err(Error::Invalid(_) | Error::TooOld { .. }) => Reading::Known(DriveState::Unsupported),
            Err(error) => Reading::failed(&error),
        }
    }
}

/// For what Ironic may have inserted a disc itself.
fn drive_use(node: &Node) -> DriveUse {
    match may_run_agent(node) {
        true => DriveUse::Agent,
        false if runs_from_disc(node) => DriveUse::LiveImage,
        false => DriveUse::None,
    }
}

/// The host as a decision sees it.
pub(super) fn host_view(host: &BareMetalHost, object: &DataImage) -> HostView {
    let status = &host.status;
    let bars = [
        (host.is_paused(), Bar::Paused),
        (is_moving(host), Bar::Moving),
        (host.detach_request().is_some(), Bar::Detached),
        (host.metadata.deletion_timestamp.is_some(), Bar::Deleted),
        (status.operational_status == OperationalStatus::Detached, Bar::Attaching),
    ];
    let bar = bars.into_iter().find(|(applies, _)| *applies);
    let is_running = matches!(
        status.provisioning.state,
        ProvisioningState::Provisioned | ProvisioningState::ExternallyProvisioned
    );
    let mut owners = object.metadata.owner_references.iter().flatten();
    HostView::Present {
        bar: bar.map(|(_, bar)| bar),
        is_owner: owners.any(|owner| Some(&owner.uid) == host.metadata.uid.as_ref()),
        start: match (is_running, status.powered_on, host.spec.online) {
            (false, ..) => Start::Never,
            (true, true, _) if host.spec.disable_power_off == Some(true) => Start::NeverOff,
            (true, true, _) => Start::AfterRestart,
            (true, false, false) => Start::WhenOnline,
            (true, false, true) if is_held_off(host) => Start::HeldOff,
            (true, false, true) => Start::Soon,
        },
    }
}

/// Whether a reboot annotation with a suffix keeps it off.
fn is_held_off(host: &BareMetalHost) -> bool {
    host.reboot_requests().any(|(name, _)| name != REBOOT_ANNOTATION)
}

async fn live_host(
    (key, object): (&Key, &DataImage),
    found: &mut Found,
    writer: &Writer<DataImages>,
) -> Reading<HostView> {
    match writer.read::<BareMetalHost>(&NoCache, key).await {
        Ok(host) => {
            let view = host.as_ref().map_or(HostView::Absent, |host| host_view(host, object));
            found.host = host;
            Reading::Known(view)
        }
        Err(fault) => {
            tracing::debug!(host = %key, "a live read failed: {}", fault.report());
            Reading::Failed(fault.category().to_owned())
        }
    }
}
