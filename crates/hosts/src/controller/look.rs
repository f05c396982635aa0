//! Looks at what a plan asks for.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::mac::MacAddress;
use metal3_ironic::Error;
use metal3_ironic::calls::{NodeRef, node, port};
use metal3_ironic::model::node::Node;
use metal3_runtime::cache::{Found, Key};
use metal3_runtime::live::Live;
use metal3_runtime::work::{Category, Fault};
use metal3_runtime::write::Writer;

use super::caches::Caches;
use super::evidence::{Evidence, NodeView, Seen};
use super::metal::Metal;
use crate::facts::{HostSeen, NodeSeen, Read, Refused, Sight};
use crate::needs::Hosts;
use crate::node::name;
use crate::object::recorded_node;

/// A read of Ironic failed.
const IRONIC: Category = Category::new("ironic");
/// What stands between namespace and name in the name of a node, and in no name of an older record.
const MARK: char = '~';
/// How an entry of a node's history says that something failed.
const FAILURE: &str = "ERROR";

/// The eyes of one process.
#[derive(Debug)]
pub(super) struct Look {
    pub(super) caches: Caches,
    pub(super) secrets: Live<Hosts, Secret>,
    pub(super) metal: Metal,
}

/// Which Secret a read is about.
pub(super) fn secret_of(host: &BareMetalHost, which: Read) -> Option<&str> {
    let spec = &host.spec;
    let name = match which {
        Read::Credentials => spec.bmc.as_ref().map(|bmc| bmc.credentials_name.as_str()),
        Read::UserData => spec.user_data.as_ref()?.name.as_deref(),
        Read::NetworkData => spec.network_data.as_ref()?.name.as_deref(),
        Read::MetaData => spec.meta_data.as_ref()?.name.as_deref(),
        Read::AgentNetwork => spec.preprovisioning_network_data_name.as_deref(),
        _ => None,
    };
    name.filter(|name| !name.is_empty())
}

/// The reads that are about Secrets.
pub(super) const SECRETS: [Read; 5] = [
    Read::Credentials,
    Read::UserData,
    Read::NetworkData,
    Read::MetaData,
    Read::AgentNetwork,
];

impl Look {
    /// What the caches and the feed show, without any request.
    pub(super) fn glance(&self, host: Arc<BareMetalHost>, refused: Option<Refused>) -> Evidence {
        let key = Key::of(&*host);
        let secrets = SECRETS.into_iter().filter_map(|which| {
            let name = secret_of(&host, which)?;
            let seen = match self.caches.secrets.find(&near(&key, name)) {
                Found::Live(meta) => Sight::Found(Seen {
                    metadata: Arc::new(meta.metadata.clone()),
                    values: None,
                }),
                Found::Absent => Sight::Absent,
                Found::Unreadable { .. } | Found::Unknown => Sight::Unknown,
            };
            Some((which, seen))
        });
        let hardware = match self.caches.hardware.find(&key) {
            Found::Live(data) => Sight::Found(data),
            Found::Absent => Sight::Absent,
            Found::Unreadable { .. } | Found::Unknown => Sight::Unknown,
        };
        let known = self.metal.sight_of(&key, &host.status.provisioning.id);
        Evidence {
            secrets: secrets.collect(),
            host,
            host_seen: HostSeen::Cached,
            hardware,
            node: known.map_or(NodeView::Unknown, |(node, seen)| NodeView::Found(node, seen)),
            ports: Sight::Unknown,
            inventory: Sight::Unknown,
            validation: Sight::Unknown,
            history: Sight::Unknown,
            turn: None,
            refused,
        }
    }

    /// Looks at one thing. False: the host is gone.
    pub(super) async fn answer(&self, read: Read, seen: &mut Evidence, writer: &Writer<Hosts>) -> Result<bool, Fault> {
        let key = Key::of(&*seen.host);
        match read {
            Read::Host => match writer.read(&self.caches.hosts, &key).await? {
                Some(host) if host.metadata.uid == seen.host.metadata.uid => seen.saw_host(host),
                Some(_) | None => return Ok(false),
            },
            Read::Node => {
                let found = self
                    .search(&seen.host)
                    .await
                    .map_err(|error| fault("look for the node", error))?;
                seen.saw_node(found);
            }
            Read::Credentials | Read::UserData | Read::NetworkData | Read::MetaData | Read::AgentNetwork => {
                self.secret(read, seen, &key).await?;
            }
            Read::HardwareData => {
                let found = writer.read(&self.caches.hardware, &key).await?;
                seen.hardware = found.map_or(Sight::Absent, |data| Sight::Found(Arc::new(data)));
            }
            Read::Turn => seen.turn = Some(self.metal.turn(&key)),
            Read::Ports | Read::Inventory | Read::Validation | Read::History => {
                let looked = self.inspect(read, seen).await;
                looked.map_err(|error| fault("look at the node", error))?;
            }
        }
        Ok(true)
    }

    async fn inspect(&self, read: Read, seen: &mut Evidence) -> Result<(), Error> {
        let NodeView::Found(shown, _) = &seen.node else {
            return Ok(());
        };
        if read == Read::Inventory && shown.inspection_finished_at.is_none() {
            // Ironic says when an inspection ended, so nobody needs to ask for what none found.
            seen.inventory = Sight::Absent;
            return Ok(());
        }
        let node = NodeRef::Uuid(shown.uuid.clone());
        match read {
            Read::Ports => {
                let (mut ports, mut behind) = (Vec::new(), None);
                loop {
                    let page = self.metal.read(&port::of_node(&node, behind.as_ref())).await?;
                    ports.extend(page.items);
                    behind = page.next;
                    if behind.is_none() {
                        break;
                    }
                }
                seen.ports = Sight::Found(ports);
            }
            Read::Inventory => {
                seen.inventory = match self.metal.read(&node::inventory(&node)).await {
                    Ok(inventory) => Sight::Found(Box::new(inventory)),
                    Err(Error::NotFound(_)) => Sight::Absent,
                    Err(error) => return Err(error),
                };
            }
            Read::Validation => seen.validation = Sight::Found(self.metal.read(&node::validate(&node)).await?),
            _ => {
                let history = self.metal.read(&node::history(&node)).await?;
                let mut last = history
                    .items
                    .into_iter()
                    .rev()
                    .filter(|entry| entry.severity.as_deref() == Some(FAILURE));
                let last = last.find_map(|entry| entry.event);
                seen.history = last.map_or(Sight::Absent, Sight::Found);
            }
        }
        Ok(())
    }

    async fn secret(&self, which: Read, seen: &mut Evidence, host: &Key) -> Result<(), Fault> {
        let Some(name) = secret_of(&seen.host, which) else {
            return Ok(());
        };
        let sight = match self.secrets.get(&near(host, name)).await? {
            Found::Live(secret) => Sight::Found(Seen {
                metadata: Arc::new(secret.metadata.clone()),
                values: Some(Arc::new(secret.data.clone().unwrap_or_default())),
            }),
            Found::Absent => Sight::Absent,
            Found::Unreadable { .. } | Found::Unknown => Sight::Unknown,
        };
        seen.secrets.insert(which, sight);
        Ok(())
    }

    /// By identity, by name, by the name of older records, by address. Only when each says no there is none.
    async fn search(&self, host: &BareMetalHost) -> Result<NodeView, Error> {
        if let Ok(uuid) = metal3_domain::ids::NodeUuid::parse(recorded_node(host))
            && let Some(node) = self.get(NodeRef::Uuid(uuid)).await?
        {
            return Ok(found(node));
        }
        let plain = host.metadata.name.clone().filter(|name| !name.contains(MARK));
        let names = name::of(host).ok().into_iter().chain(plain);
        for name in names {
            if let Some(node) = self.get(NodeRef::Name(name)).await? {
                return Ok(found(node));
            }
        }
        let address = host.spec.boot_mac_address.as_deref();
        let Some(address) = address.and_then(|text| MacAddress::parse(text).ok()) else {
            return Ok(NodeView::Absent);
        };
        let ports = self.metal.read(&port::with_address(&address)).await?;
        let Some(port) = ports.items.into_iter().next() else {
            return Ok(NodeView::Absent);
        };
        Ok(match self.get(NodeRef::Uuid(port.node_uuid)).await? {
            None => NodeView::Unknown,
            Some(node) => match node.name.clone() {
                Some(name) => NodeView::Foreign(name),
                None => found(node),
            },
        })
    }

    async fn get(&self, node: NodeRef) -> Result<Option<Node>, Error> {
        match self.metal.view(&node::get(&node)).await {
            Ok(answered) => Ok(Some(answered.value)),
            Err(Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn found(node: Node) -> NodeView {
    NodeView::Found(Arc::new(node), NodeSeen::Live)
}

fn near(host: &Key, name: &str) -> Key {
    Key {
        namespace: host.namespace.clone(),
        name: name.to_owned(),
    }
}

fn fault(op: &'static str, error: Error) -> Fault {
    Fault::transient(op, IRONIC, error)
}
