//! The live reads of a decision. Each may fail, and a failure is an unknown.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::derived::ironic_node;
use metal3_domain::ids::NodeUuid;
use metal3_domain::names::{HostKey, Namespace, ObjectName};
use metal3_ironic::calls::{NodeRef, hardware, node};
use metal3_ironic::model::hardware::VirtualMedia;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::ProvisionState;
use metal3_ironic::{Client, Error};
use metal3_runtime::cache::Key;
use metal3_runtime::guard::GuardStatus;
use metal3_runtime::write::{NoCache, Writer};

use super::facts::{DriveUse, Facts, GoManager, HostView, Listed, Media, NodeView, Read, Reading, Subject};
use super::kinds::Finalized;
use super::{GoManagerCheck, READ_FAILED};
use crate::needs::UnservedKinds;
use crate::node::name;
use crate::plan::object::{is_moving, recorded_node_id};

/// The deploy interface of nodes that run from a disc.
const LIVE_IMAGE: &str = "ramdisk";
/// Ironic's message for a driver that has no such operation.
const UNSUPPORTED_PHRASE: &str = "does not support";

pub(super) struct Observer {
    pub(super) ironic: Client,
    pub(super) go_manager: GoManagerCheck,
    pub(super) plain_node_names: bool,
}

/// What was read of one object, in addition to its facts.
#[derive(Default)]
pub(super) struct Found {
    host: Option<BareMetalHost>,
    pub(super) node: Option<Node>,
}

impl Observer {
    /// Performs one read.
    pub(super) async fn read<K: Finalized>(
        &self,
        read: Read,
        object: &K,
        (facts, found): (&mut Facts, &mut Found),
        writer: &Writer<UnservedKinds>,
    ) {
        match read {
            Read::GoManager => facts.go_manager = go_manager((self.go_manager)().await),
            Read::Host => facts.host = host(object, found, writer).await,
            Read::Node => facts.node = self.node(object, found).await,
            Read::Media => facts.media = self.media(found).await,
            Read::Subscriptions => facts.listed = self.subscriptions(&facts.subject, found).await,
        }
    }

    async fn node<K: Finalized>(&self, object: &K, found: &mut Found) -> Reading<NodeView> {
        let Some(host) = host_key(object) else {
            return Reading::Failed("it names no valid host".to_owned());
        };
        match self.search(&host, found.host.as_ref()).await {
            Ok(Search::Absent) => Reading::Known(NodeView::Absent),
            Ok(Search::Foreign) => Reading::Failed("its host records a node of another name".to_owned()),
            Ok(Search::Own(node)) => {
                let view = NodeView::Present {
                    is_locked: node.reservation.is_some(),
                    names_image: object.is_named_by(&node),
                    drive: drive_use(&node),
                };
                found.node = Some(*node);
                Reading::Known(view)
            }
            Err(error) => failed(&error),
        }
    }

    /// Searches by the UUID that the host records, then by name. A node is the host's only by its name: the status may be
    /// written by a user.
    async fn search(&self, key: &HostKey, host: Option<&BareMetalHost>) -> Result<Search, Error> {
        let recorded = host.and_then(|host| NodeUuid::parse(recorded_node_id(host)).ok());
        let recorded = match recorded {
            Some(uuid) => self.get(NodeRef::Uuid(uuid)).await?,
            None => None,
        };
        let is_own =
            |node: &Node| host.is_some_and(|host| name::is_of_host(host, node.name.as_deref(), self.plain_node_names));
        let is_foreign = match recorded {
            Some(node) if is_own(&node) => return Ok(Search::Own(Box::new(node))),
            Some(_) => true,
            None => false,
        };
        // Without a host, a node with the plain name may be of any namespace.
        let plain = host.filter(|_| self.plain_node_names).and_then(name::plain);
        for name in std::iter::once(ironic_node(key)).chain(plain) {
            let node = self.get(NodeRef::Name(name.clone())).await?;
            if let Some(node) = node.filter(|node| name::is_named(node.name.as_deref(), &name)) {
                return Ok(Search::Own(Box::new(node)));
            }
        }
        Ok(if is_foreign { Search::Foreign } else { Search::Absent })
    }

    async fn get(&self, node: NodeRef) -> Result<Option<Node>, Error> {
        match self.ironic.send(&node::get(&node)).await {
            Ok(response) => Ok(Some(response.value)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn media(&self, found: &Found) -> Reading<Media> {
        let Some(node) = &found.node else {
            return Reading::NotRead;
        };
        match self
            .ironic
            .send(&hardware::virtual_media(&NodeRef::from(&node.uuid)))
            .await
        {
            Ok(media) => Reading::Known(drives(&media.value)),
            Err(Error::Invalid(refusal)) if refusal.message.contains(UNSUPPORTED_PHRASE) => {
                Reading::Known(Media::Unsupported)
            }
            Err(error) => failed(&error),
        }
    }

    async fn subscriptions(&self, subject: &Subject, found: &Found) -> Reading<Listed> {
        let (Some(node), Subject::Subscription { id: Some(id) }) = (&found.node, subject) else {
            return Reading::NotRead;
        };
        match self
            .ironic
            .send(&hardware::subscriptions(&NodeRef::from(&node.uuid)))
            .await
        {
            Ok(listed) => Reading::Known(match listed.value.contain(id) {
                Some(true) => Listed::Yes,
                Some(false) => Listed::No,
                None => Listed::Incomplete,
            }),
            Err(error) => failed(&error),
        }
    }
}

/// One drive that holds an image decides, then one that does not say.
fn drives(media: &[VirtualMedia]) -> Media {
    let holds = |is: Option<bool>| media.iter().any(|medium| medium.holds_image() == is);
    match (holds(Some(true)), holds(None)) {
        (true, _) => Media::Inserted,
        (false, true) => Media::Silent,
        (false, false) => Media::Empty,
    }
}

/// For what Ironic may have inserted a disc itself.
fn drive_use(node: &Node) -> DriveUse {
    let has_agent = matches!(
        node.provision_state,
        ProvisionState::CleanHold | ProvisionState::DeployHold | ProvisionState::ServiceHold | ProvisionState::Rescue
    );
    let is_live = node.deploy_interface.as_deref() == Some(LIVE_IMAGE);
    match node.provision_state.is_transitional() || has_agent {
        true => DriveUse::Agent,
        false if is_live && node.provision_state == ProvisionState::Active => DriveUse::LiveImage,
        false => DriveUse::None,
    }
}

enum Search {
    Own(Box<Node>),
    /// The host records another's node, and none has its name.
    Foreign,
    Absent,
}

fn go_manager(status: GuardStatus) -> Reading<GoManager> {
    match status {
        GuardStatus::Clear => Reading::Known(GoManager::Absent),
        GuardStatus::Present { foreign, replicas, .. } => {
            let message = format!("{foreign} serves it (replicas: {replicas})");
            Reading::Known(GoManager::Running(message))
        }
        GuardStatus::Unknown { foreign, .. } => Reading::Failed(format!("{foreign} cannot be read")),
        GuardStatus::Forced => Reading::Failed("it was not checked".to_owned()),
    }
}

async fn host<K: Finalized>(object: &K, found: &mut Found, writer: &Writer<UnservedKinds>) -> Reading<HostView> {
    let Some(name) = object.host() else {
        return Reading::Failed("it names no host".to_owned());
    };
    let key = Key {
        namespace: object.meta().namespace.clone().unwrap_or_default(),
        name: name.to_owned(),
    };
    match writer.read::<BareMetalHost>(&NoCache, &key).await {
        Ok(host) => {
            let view = match &host {
                None => HostView::Absent,
                Some(host) if is_moving(host) => HostView::Moving,
                Some(host) if host.is_paused() => HostView::Paused,
                Some(_) => HostView::Present,
            };
            found.host = host;
            Reading::Known(view)
        }
        Err(fault) => {
            tracing::debug!(host = %key, "{READ_FAILED}: {}", fault.report());
            Reading::Failed(fault.category().to_owned())
        }
    }
}

fn host_key<K: Finalized>(object: &K) -> Option<HostKey> {
    let namespace = Namespace::parse(object.meta().namespace.clone()?).ok()?;
    Some(HostKey::new(
        namespace,
        ObjectName::parse(object.host()?.to_owned()).ok()?,
    ))
}

/// A text that stays the same while the error does: without the ID of the request.
fn failed<T>(error: &Error) -> Reading<T> {
    tracing::debug!(%error, "{READ_FAILED}");
    Reading::Failed(match error {
        Error::TooOld { .. } => error.to_string(),
        _ => format!("Ironic: {}", error.category()),
    })
}
