//! Port requests, and storing the result of an inspection.

use http::StatusCode;
use serde_json::{Value, json};

use super::perform::Outcome;
use super::{Answer, Context, Core, Failure, Now};
use crate::node::present;
use crate::refusal::Refusal;
use crate::request::ApiRequest;
use metal3_domain::mac::MacAddress;
use metal3_sim_bmc::fault::Fault;

/// A port.
#[derive(Debug, Clone)]
pub(crate) struct Port {
    pub(crate) uuid: String,
    /// The UUID of its node.
    pub(crate) node: String,
    pub(crate) address: String,
    pub(crate) pxe_enabled: bool,
    created: Value,
}

impl Port {
    fn shown(&self, base: &str) -> serde_json::Map<String, Value> {
        let uuid = &self.uuid;
        let shown = json!({
            "uuid": uuid, "node_uuid": self.node, "address": self.address, "pxe_enabled": self.pxe_enabled,
            "created_at": self.created, "updated_at": null, "extra": {}, "internal_info": {}, "is_smartnic": false,
            "local_link_connection": {}, "physical_network": null, "name": null, "description": null,
            "portgroup_uuid": null, "links": present::links(base, &format!("ports/{uuid}")),
        });
        match shown {
            Value::Object(shown) => shown,
            _ => serde_json::Map::new(),
        }
    }
}

impl Core {
    pub(super) fn list_ports(&self, request: &ApiRequest) -> Result<Answer, Failure> {
        let known = ["fields", "node_uuid", "node", "address", "marker", "limit"];
        request.check_query("ports", &known)?;
        let node = request.query("node_uuid").or_else(|| request.query("node"));
        let node = node.map(|ident| self.node(ident)).transpose()?;
        let address = request.query("address").map(str::to_lowercase);
        let limit = request.page_size()?;
        let first = match request.query("marker") {
            None => 0,
            Some(marker) => {
                let found = self.ports.iter().find(|(_, port)| port.uuid == marker);
                found
                    .map(|(serial, _)| serial.saturating_add(1))
                    .ok_or_else(|| Refusal::not_found("Port", marker))?
            }
        };
        let wanted: Vec<&str> = request.query("fields").unwrap_or("uuid,address").split(',').collect();
        let page: Vec<&Port> = self
            .ports
            .range(first..)
            .map(|(_, port)| port)
            .filter(|port| node.is_none_or(|node| node.uuid == port.node))
            .filter(|port| address.as_ref().is_none_or(|address| *address == port.address))
            .take(limit)
            .collect();
        let shown: Vec<Value> = page
            .iter()
            .map(|port| {
                let mut shown = port.shown(&self.base);
                shown.retain(|field, _| field == "links" || wanted.contains(&field.as_str()));
                Value::Object(shown)
            })
            .collect();
        let mut body = json!({"ports": shown});
        if let (true, Some(last), Value::Object(body)) = (page.len() == limit, page.last(), &mut body) {
            let next = format!("{}/v1/ports?limit={limit}&marker={}", self.base, last.uuid);
            body.insert("next".into(), next.into());
        }
        Ok(Answer::ok(body))
    }

    pub(super) fn create_port(&mut self, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let text = |key: &str| body.get(key).and_then(Value::as_str);
        let ident = text("node_uuid")
            .ok_or_else(|| Refusal::invalid("Schema error for port: 'node_uuid' is a required property"))?
            .to_owned();
        let address = text("address").unwrap_or_default();
        let address = MacAddress::parse(address)
            .map_err(|_| Refusal::invalid(format!("Expected valid MAC address for address: {address}")))?
            .to_string();
        let pxe_enabled = body.get("pxe_enabled").and_then(Value::as_bool).unwrap_or(true);
        // A missing node makes the request invalid (400). The node's lock is not needed.
        let missing = |_| Refusal::invalid(format!("Node {ident} could not be found."));
        let node = self.node(&ident).map_err(missing)?.uuid.clone();
        let port = self.add_port(node, address, pxe_enabled, context.now)?;
        let location = format!("{}/v1/ports/{}", self.base, port.uuid);
        Ok(Answer {
            status: StatusCode::CREATED,
            ..Answer::ok(Value::Object(port.shown(&self.base))).with_location(location)
        })
    }

    pub(super) fn add_port(
        &mut self,
        node: String,
        address: String,
        pxe_enabled: bool,
        now: Now,
    ) -> Result<Port, Refusal> {
        if self.ports.values().any(|port| port.address == address) {
            return Err(Refusal::conflict(format!(
                "A port with MAC address {address} already exists."
            )));
        }
        Ok(self.insert_port(node, address, pxe_enabled, now))
    }

    /// Adds a port whose address is unused.
    pub(super) fn insert_port(&mut self, node: String, address: String, pxe_enabled: bool, now: Now) -> Port {
        let port = Port {
            uuid: self.new_uuid(),
            node,
            address,
            pxe_enabled,
            created: present::stamp(now.wall),
        };
        let serial = self.next_order();
        self.ports.insert(serial, port.clone());
        port
    }

    pub(super) fn delete_port(&mut self, uuid: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let found = self.ports.iter().find(|(_, port)| port.uuid == uuid);
        let (serial, node) = found
            .map(|(serial, port)| (*serial, port.node.clone()))
            .ok_or_else(|| Refusal::not_found("Port", uuid))?;
        self.locked(&node, context.now, |core, _| {
            core.ports.remove(&serial);
            Ok(())
        })?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// Stores the inventory and creates missing ports.
    pub(super) fn store_inventory(&mut self, serial: u64, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let Some(machine) = machine else {
            return Some(Outcome::Done);
        };
        if machine.faults.has(Fault::InspectionError) {
            let message = format!(
                "Async execution of continue_inspection failed with error: Failed to inspect hardware. Reason: failed to run \
                 inspection hooks: Failed to inspect hardware. Reason: The following failures happened while running preprocess \
                 hooks for node {}:\nError in preprocess hook ramdisk-error: Failed to inspect hardware. Reason: Ramdisk reported \
                 error: the collector of the default inventory failed",
                node.uuid
            );
            return Some(Outcome::Fails(std::time::Duration::ZERO, message));
        }
        let inventory = machine.inventory();
        self.keep_inventory(serial, inventory, now)
    }

    /// The same with what the BMC reports. Ironic tries again for some time while it does not respond.
    pub(super) fn store_inventory_of_bmc(&mut self, serial: u64, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let Some(machine) = machine else {
            return Some(Outcome::Done);
        };
        if let Err(error) = machine.reach() {
            let message = format!("Failed to inspect node {}: {}", node.uuid, error.message);
            return Some(Outcome::Fails(error.after, message));
        }
        let inventory = machine.inventory_of_bmc();
        self.keep_inventory(serial, inventory, now)
    }

    fn keep_inventory(&mut self, serial: u64, inventory: Value, now: Now) -> Option<Outcome> {
        let (node, machine) = self.node_and_machine(serial)?;
        let machine = machine?;
        let (macs, uuid) = (machine.macs(), node.uuid.clone());
        node.inventory = Some(inventory);
        node.record_firmware(machine, now.wall);
        for mac in macs {
            // An existing port does not change.
            drop(self.add_port(uuid.clone(), mac, false, now));
        }
        Some(Outcome::Done)
    }
}
