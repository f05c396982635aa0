//! Machines for claims that need more than fake hardware: simulated ones, or those of a running labhosts.
//!
//! Claims read power and disks and set faults directly, not through Ironic.

use std::sync::atomic::Ordering;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use metal3_domain::ids::NodeUuid;
use metal3_domain::mac::MacAddress;
use metal3_ironic::calls;
use metal3_ironic::calls::node::NewNode;
use metal3_ironic::calls::provision::Transition;
use metal3_ironic::model::node::Node;
use metal3_ironic::model::state::{PowerState, ProvisionState};
use metal3_sim_bmc::endpoint::Place;
use metal3_sim_bmc::fault::Fault;
use serde_json::{Map, Value, json};

use crate::lab::{Connection, Lab, is_test_node, object};
use crate::pool::Pool;
use metal3_sim_ironic::{BmcAccount, Ironic};

/// Work on a machine boots a ramdisk several times.
const TIMEOUT: Duration = Duration::from_secs(300);
/// A dozen claims poll concurrently; a ramdisk takes at least half a second.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

enum Backend<'a> {
    Simulated(&'a Ironic),
    Labhosts(&'a Pool, &'a Place),
}

/// A machine of one claim.
pub(crate) struct Machine<'a> {
    lab: &'a Lab,
    backend: Backend<'a>,
    address: String,
    system: String,
    macs: Vec<String>,
}

/// The actual state of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ActualState {
    pub(crate) is_on: bool,
    /// Whether a disk holds an image.
    pub(crate) is_written: bool,
}

impl Lab {
    /// A machine for one claim.
    pub(crate) fn machine(&self) -> anyhow::Result<Machine<'_>> {
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        match (&self.connection, &self.machines) {
            (Connection::InProcess(ironic), _) => Machine::simulated(self, ironic, number),
            (Connection::Sockets(_), Some(pool)) => Machine::of_pool(self, pool, number),
            (Connection::Sockets(_), None) => bail!("this Ironic has no machines"),
        }
    }
}

impl<'a> Machine<'a> {
    /// A simulated machine.
    fn simulated(lab: &'a Lab, ironic: &'a Ironic, number: u32) -> anyhow::Result<Self> {
        let (address, system) = (
            format!("https://bmc-{number}.example"),
            "/redfish/v1/Systems/1".to_owned(),
        );
        let macs = ironic.machine_at(&format!("{address}{system}"), |machine| machine.macs());
        Ok(Self {
            macs: macs.context("no profile to make a machine of")?,
            backend: Backend::Simulated(ironic),
            lab,
            address,
            system,
        })
    }

    /// A machine of labhosts.
    fn of_pool(lab: &'a Lab, pool: &'a Pool, number: u32) -> anyhow::Result<Self> {
        let entry = pool.endpoint.machines.get(usize::try_from(number)?);
        let entry = entry.context("labhosts has no machine left; start it with more")?;
        Ok(Self {
            address: entry.redfish_address.clone(),
            system: entry.redfish_system_id.clone(),
            macs: entry.macs.clone(),
            backend: Backend::Labhosts(pool, entry),
            lab,
        })
    }

    /// The sorted MAC addresses.
    pub(crate) fn macs(&self) -> Vec<String> {
        let mut macs = self.macs.clone();
        macs.sort();
        macs
    }

    fn bmc(&self) -> String {
        format!("{}{}", self.address, self.system)
    }

    /// Replaces the faults.
    pub(crate) async fn set_faults(&self, faults: &[Fault]) -> anyhow::Result<()> {
        match self.backend {
            Backend::Simulated(ironic) => {
                let faults = faults.iter().copied().collect();
                ironic.machine_at(&self.bmc(), |machine| machine.faults = faults);
            }
            Backend::Labhosts(pool, entry) => {
                pool.ask("PUT", pool.control(entry, "/faults"), &json!(faults)).await?;
            }
        }
        Ok(())
    }

    /// The user name and the password that its BMC accepts, and no other one from now on.
    pub(crate) fn require_login(&self) -> (String, String) {
        match self.backend {
            Backend::Simulated(ironic) => {
                let (username, password) = ("admin".to_owned(), "right".to_owned());
                let account = BmcAccount { username, password };
                let login = (account.username.clone(), account.password.clone());
                ironic.machine_at(&self.bmc(), |machine| machine.account = Some(account));
                login
            }
            Backend::Labhosts(pool, _) => (pool.endpoint.username.clone(), pool.endpoint.password.clone()),
        }
    }

    /// Powers the machine on without Ironic.
    pub(crate) async fn power_on(&self) -> anyhow::Result<()> {
        match self.backend {
            Backend::Simulated(ironic) => {
                ironic.machine_at(&self.bmc(), |machine| machine.power = PowerState::On);
            }
            Backend::Labhosts(pool, _) => {
                let url = format!("{}/Actions/ComputerSystem.Reset", self.bmc());
                pool.ask("POST", url, &json!({ "ResetType": "On" })).await?;
            }
        }
        Ok(())
    }

    /// Reads the actual state.
    pub(crate) async fn read_state(&self) -> anyhow::Result<ActualState> {
        match self.backend {
            Backend::Simulated(ironic) => {
                let state = ironic.machine_at(&self.bmc(), |machine| ActualState {
                    is_on: machine.power == PowerState::On,
                    is_written: machine.disk.is_some(),
                });
                state.context("the machine does not exist")
            }
            Backend::Labhosts(pool, entry) => {
                let state = pool.ask("GET", pool.control(entry, ""), &Value::Null).await?;
                let state: Value = serde_json::from_slice(&state)?;
                let disks = state.get("disks").and_then(Value::as_array).context("no disks")?;
                Ok(ActualState {
                    is_on: state.get("power") == Some(&json!("On")),
                    is_written: disks
                        .iter()
                        .any(|disk| disk.get("written").is_some_and(|written| !written.is_null())),
                })
            }
        }
    }

    /// Waits for the power state.
    pub(crate) async fn until_on(&self, is_on: bool) -> anyhow::Result<()> {
        let begun = self.lab.clock.monotonic();
        while self.read_state().await?.is_on != is_on {
            let waited = self.lab.clock.monotonic().since(begun);
            ensure!(
                waited < TIMEOUT,
                "the machine stays {}",
                if is_on { "off" } else { "on" }
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Ok(())
    }

    fn new_node(&self, more: Map<String, Value>) -> NewNode {
        let mut info = object([
            ("redfish_address", json!(self.address)),
            ("redfish_system_id", json!(self.system)),
        ]);
        if let Backend::Labhosts(pool, _) = self.backend {
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

    /// Creates a manageable node for it, with one port.
    pub(crate) async fn node(&self, more: Map<String, Value>) -> anyhow::Result<NodeUuid> {
        let uuid = self.node_without_port(more).await?;
        self.add_port(&uuid).await?;
        Ok(uuid)
    }

    /// Creates a manageable node for it that has no port.
    pub(crate) async fn node_without_port(&self, more: Map<String, Value>) -> anyhow::Result<NodeUuid> {
        self.remove_leftover_node(&self.boot_address()?).await?;
        let uuid = self.lab.create(self.new_node(more)).await?;
        self.go(&uuid, Transition::Manage, &ProvisionState::Manageable).await?;
        Ok(uuid)
    }

    /// Creates the port of the first network card.
    pub(crate) async fn add_port(&self, uuid: &NodeUuid) -> anyhow::Result<()> {
        let port = calls::port::create(uuid, &self.boot_address()?, true);
        self.lab.client.send(&port).await?;
        Ok(())
    }

    fn boot_address(&self) -> anyhow::Result<MacAddress> {
        let first = self.macs.first().context("a machine without network")?;
        Ok(MacAddress::parse(first)?)
    }

    /// Removes the node of an aborted run for this machine.
    async fn remove_leftover_node(&self, address: &MacAddress) -> anyhow::Result<()> {
        let ports = self.lab.client.send(&calls::port::with_address(address)).await?;
        for port in ports.value.items {
            let left = self.lab.read(&port.node_uuid).await?;
            ensure!(
                is_test_node(&left),
                "the address of this machine belongs to node {:?}",
                left.name
            );
            self.lab.remove(&port.node_uuid).await?;
        }
        Ok(())
    }

    /// Requests a transition and waits for its result.
    pub(crate) async fn go(&self, uuid: &NodeUuid, by: Transition, to: &ProvisionState) -> anyhow::Result<Node> {
        self.lab.ask(uuid, by).await?;
        let expected = to.to_string();
        self.until(uuid, &expected, |node| {
            node.provision_state == *to && node.reservation.is_none()
        })
        .await
    }

    /// The same, and returns the wait states on the way.
    pub(crate) async fn go_watched(
        &self,
        uuid: &NodeUuid,
        by: Transition,
        to: &ProvisionState,
    ) -> anyhow::Result<Vec<ProvisionState>> {
        use ProvisionState as S;
        let waits = std::cell::RefCell::new(Vec::new());
        self.lab.ask(uuid, by).await?;
        let expected = to.to_string();
        self.until(uuid, &expected, |node| {
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

    /// Waits until the node matches.
    pub(crate) async fn until(
        &self,
        uuid: &NodeUuid,
        expected: &str,
        matches: impl Fn(&Node) -> bool,
    ) -> anyhow::Result<Node> {
        let begun = self.lab.clock.monotonic();
        loop {
            let node = self.lab.read(uuid).await?;
            if matches(&node) {
                return Ok(node);
            }
            let waited = self.lab.clock.monotonic().since(begun);
            ensure!(
                waited < TIMEOUT,
                "the node is {} and not {expected}: {:?}",
                node.provision_state,
                node.last_error
            );
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}
