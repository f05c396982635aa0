//! A machine behind a node, for claims that fake hardware cannot prove: a simulated one, or one of a running labhosts.
//!
//! Claims see it as its owner does, from outside Ironic: its power, its disk, and what is wrong with it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use metal3_ironic::calls;
use metal3_ironic::calls::node::NewNode;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::{PowerState, ProvisionState};
use metal3_sim_bmc::endpoint::{Endpoint, Place};
use metal3_sim_bmc::fault::Fault;
use serde_json::{Map, Value, json};

use crate::lab::{Lab, is_ours, object};
use metal3_sim_ironic::Ironic;

/// Work with a machine boots a ramdisk, several times.
const PATIENCE: Duration = Duration::from_secs(300);
/// A dozen claims look at once; a ramdisk is waited for at least half a second.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// The machines of a running labhosts.
#[derive(Debug)]
pub struct Pool {
    endpoint: Endpoint,
    http: reqwest::Client,
}

impl Pool {
    /// By the file that it wrote.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn open(file: &Path) -> anyhow::Result<Self> {
        let endpoint: Endpoint = serde_json::from_str(&std::fs::read_to_string(file)?)?;
        let pem = std::fs::read(&endpoint.ca)?;
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only(reqwest::Certificate::from_pem_bundle(&pem)?)
            .build()?;
        Ok(Self { endpoint, http })
    }

    async fn ask(&self, method: &str, url: String, body: &Value) -> anyhow::Result<Vec<u8>> {
        let Endpoint { username, password, .. } = &self.endpoint;
        let request = self.http.request(method.parse()?, url);
        let request = request.basic_auth(username, Some(password));
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.send().await?.error_for_status()?;
        Ok(answer.bytes().await?.into())
    }

    fn control(&self, place: &Place, rest: &str) -> String {
        format!("{}/lab/machines/{}{rest}", self.endpoint.control_url, place.number)
    }
}

enum Behind<'a> {
    Within(&'a Ironic),
    Pool(&'a Pool, &'a Place),
}

/// One machine, that no other claim has.
pub(crate) struct Machine<'a> {
    lab: &'a Lab,
    behind: Behind<'a>,
    address: String,
    system: String,
    macs: Vec<String>,
}

/// What is seen of it from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) is_on: bool,
    /// Whether a disk holds an image.
    pub(crate) is_written: bool,
}

impl<'a> Machine<'a> {
    /// A simulated one.
    pub(super) fn within(lab: &'a Lab, ironic: &'a Ironic, number: u32) -> anyhow::Result<Self> {
        let (address, system) = (
            format!("https://bmc-{number}.example"),
            "/redfish/v1/Systems/1".to_owned(),
        );
        let macs = ironic.machine_at(&format!("{address}{system}"), |machine| machine.macs());
        Ok(Self {
            macs: macs.context("no profile to make a machine of")?,
            behind: Behind::Within(ironic),
            lab,
            address,
            system,
        })
    }

    /// One of labhosts.
    pub(super) fn of_pool(lab: &'a Lab, pool: &'a Pool, number: u32) -> anyhow::Result<Self> {
        let place = pool.endpoint.machines.get(usize::try_from(number)?);
        let place = place.context("labhosts has no machine left; start it with more")?;
        Ok(Self {
            address: place.redfish_address.clone(),
            system: place.redfish_system_id.clone(),
            macs: place.macs.clone(),
            behind: Behind::Pool(pool, place),
            lab,
        })
    }

    /// The addresses of its network cards, in order.
    pub(crate) fn macs(&self) -> Vec<String> {
        let mut macs = self.macs.clone();
        macs.sort();
        macs
    }

    fn bmc(&self) -> String {
        format!("{}{}", self.address, self.system)
    }

    /// From now on all that is wrong with it.
    pub(crate) async fn suffer(&self, faults: &[Fault]) -> anyhow::Result<()> {
        match self.behind {
            Behind::Within(ironic) => {
                let faults = faults.iter().copied().collect();
                ironic.machine_at(&self.bmc(), |machine| machine.faults = faults);
            }
            Behind::Pool(pool, place) => {
                pool.ask("PUT", pool.control(place, "/faults"), &json!(faults)).await?;
            }
        }
        Ok(())
    }

    /// Somebody switches it on, past Ironic.
    pub(crate) async fn press(&self) -> anyhow::Result<()> {
        match self.behind {
            Behind::Within(ironic) => {
                ironic.machine_at(&self.bmc(), |machine| machine.power = PowerState::On);
            }
            Behind::Pool(pool, _) => {
                let url = format!("{}/Actions/ComputerSystem.Reset", self.bmc());
                pool.ask("POST", url, &json!({ "ResetType": "On" })).await?;
            }
        }
        Ok(())
    }

    /// Looks at it.
    pub(crate) async fn see(&self) -> anyhow::Result<Seen> {
        match self.behind {
            Behind::Within(ironic) => {
                let seen = ironic.machine_at(&self.bmc(), |machine| Seen {
                    is_on: machine.power == PowerState::On,
                    is_written: machine.disk.is_some(),
                });
                seen.context("the machine is gone")
            }
            Behind::Pool(pool, place) => {
                let seen = pool.ask("GET", pool.control(place, ""), &Value::Null).await?;
                let seen: Value = serde_json::from_slice(&seen)?;
                let disks = seen.get("disks").and_then(Value::as_array).context("no disks")?;
                Ok(Seen {
                    is_on: seen.get("power") == Some(&json!("On")),
                    is_written: disks
                        .iter()
                        .any(|disk| disk.get("written").is_some_and(|written| !written.is_null())),
                })
            }
        }
    }

    /// Waits until it is seen so.
    pub(crate) async fn until_on(&self, is_on: bool) -> anyhow::Result<()> {
        let begun = self.lab.clock.monotonic();
        while self.see().await?.is_on != is_on {
            let waited = self.lab.clock.monotonic().since(begun);
            ensure!(
                waited < PATIENCE,
                "the machine stays {}",
                if is_on { "off" } else { "on" }
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    fn new_node(&self, more: Map<String, Value>) -> NewNode {
        let mut info = object([
            ("redfish_address", json!(self.address)),
            ("redfish_system_id", json!(self.system)),
        ]);
        if let Behind::Pool(pool, _) = self.behind {
            info.extend(object([
                ("redfish_username", json!(pool.endpoint.username)),
                ("redfish_password", json!(pool.endpoint.password)),
                ("redfish_verify_ca", json!(pool.endpoint.ca)),
            ]));
        }
        let mut fields = object([
            ("boot_interface", json!("redfish-virtual-media")),
            ("deploy_interface", json!("direct")),
            ("inspect_interface", json!("agent")),
        ]);
        fields.extend(more);
        NewNode {
            name: self.lab.name(),
            driver: "redfish".into(),
            driver_info: info,
            properties: object([("capabilities", json!("boot_mode:uefi"))]),
            more: fields,
            disable_power_off: None,
        }
    }

    /// A node of it under control, with one port.
    pub(crate) async fn node(&self, more: Map<String, Value>) -> anyhow::Result<NodeUuid> {
        let first = self.macs.first().context("a machine without network")?;
        let address = MacAddress::parse(first)?;
        self.forget_former(&address).await?;
        let uuid = self.lab.create(self.new_node(more)).await?;
        let port = calls::port::create(&uuid, &address, true);
        self.lab.client.send(&port).await?;
        self.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
        Ok(uuid)
    }

    /// Removes the node that a run which was cut short left of this machine.
    async fn forget_former(&self, address: &MacAddress) -> anyhow::Result<()> {
        let ports = self.lab.client.send(&calls::port::with_address(address)).await?;
        for port in ports.value.items {
            let left = self.lab.read(&port.node_uuid).await?;
            ensure!(
                is_ours(&left),
                "the address of this machine belongs to node {:?}",
                left.name
            );
            self.lab.remove(&port.node_uuid).await?;
        }
        Ok(())
    }

    /// Asks for a transition and waits for where it leads.
    pub(crate) async fn go(&self, uuid: &NodeUuid, by: Transition, to: &ProvisionState) -> anyhow::Result<Node> {
        self.lab.ask(uuid, by).await?;
        let words = to.to_string();
        self.until(uuid, &words, |node| {
            node.provision_state == *to && node.reservation.is_none()
        })
        .await
    }

    /// The same, with the states on the way in which a ramdisk is waited for.
    pub(crate) async fn go_watched(
        &self,
        uuid: &NodeUuid,
        by: Transition,
        to: &ProvisionState,
    ) -> anyhow::Result<Vec<ProvisionState>> {
        use ProvisionState as S;
        let waits = std::cell::RefCell::new(Vec::new());
        self.lab.ask(uuid, by).await?;
        let words = to.to_string();
        self.until(uuid, &words, |node| {
            let mut waits = waits.borrow_mut();
            let state = &node.provision_state;
            if matches!(state, S::InspectWait | S::CleanWait | S::WaitCallBack) && waits.last() != Some(state) {
                waits.push(state.clone());
            }
            state == to && node.reservation.is_none()
        })
        .await?;
        Ok(waits.into_inner())
    }

    /// Waits until its node is as wished.
    pub(crate) async fn until(
        &self,
        uuid: &NodeUuid,
        words: &str,
        wished: impl Fn(&Node) -> bool,
    ) -> anyhow::Result<Node> {
        let begun = self.lab.clock.monotonic();
        loop {
            let node = self.lab.read(uuid).await?;
            if wished(&node) {
                return Ok(node);
            }
            let waited = self.lab.clock.monotonic().since(begun);
            ensure!(
                waited < PATIENCE,
                "the node is {} and not {words}: {:?}",
                node.provision_state,
                node.last_error
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
