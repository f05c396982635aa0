//! Reports about a node, and operations that need its BMC.

use std::time::Duration;

use http::StatusCode;
use serde_json::{Value, json};

use super::{Answer, Context, Core, Failure, NO_BMC, work};
use crate::bios;
use crate::firmware;
use crate::machine::{BmcError, Machine, Subscription};
use crate::node::{Node, interfaces, present};
use crate::refusal::Refusal;
use crate::request::ApiRequest;

/// Vendor methods of Redfish, each with its HTTP method.
const VENDOR_METHODS: [(&str, &str); 4] = [
    ("create_subscription", "POST"),
    ("delete_subscription", "DELETE"),
    ("get_all_subscriptions", "GET"),
    ("get_subscription", "GET"),
];
/// The prefix of custom traits.
const CUSTOM: &str = "CUSTOM_";

impl Core {
    pub(super) fn validate(&self, ident: &str) -> Result<Answer, Failure> {
        let node = self.node(ident)?;
        let kinds = interfaces::KINDS.iter().filter(|kind| **kind != "vendor");
        let results: serde_json::Map<String, Value> =
            kinds.map(|kind| ((*kind).to_owned(), validation(node, kind))).collect();
        Ok(Answer::ok(Value::Object(results)))
    }

    pub(super) fn inventory(&self, ident: &str) -> Result<Answer, Failure> {
        let node = self.node(ident)?;
        let missing = || Refusal::not_found("Node inventory record for node", &node.serial.to_string());
        Ok(Answer::ok(node.inventory.clone().ok_or_else(missing)?))
    }

    pub(super) fn history(&self, ident: &str, request: &ApiRequest) -> Result<Answer, Failure> {
        let (node, detail) = (self.node(ident)?, request.is_detailed());
        let entry = |entry: &crate::node::Entry| {
            json!({
                "uuid": entry.uuid,
                "created_at": present::stamp(entry.at),
                "severity": entry.severity,
                "event": if detail { entry.event.clone() } else { shortened(&entry.event) },
            })
        };
        Ok(Answer::ok(
            json!({"history": node.history.iter().map(entry).collect::<Vec<_>>()}),
        ))
    }

    pub(super) fn bios(&self, ident: &str, request: &ApiRequest) -> Result<Answer, Failure> {
        let node = self.node(ident)?;
        let detail = request.is_detailed();
        let setting = |(name, value): (&String, &Value)| {
            if !detail {
                return json!({"name": name, "value": value});
            }
            bios::detailed(name, value, node.is_fake())
        };
        Ok(Answer::ok(
            json!({"bios": node.bios.iter().map(setting).collect::<Vec<_>>()}),
        ))
    }

    /// Ironic reads the versions when it verifies the credentials; before that the list is empty.
    pub(super) fn firmware(&self, ident: &str) -> Result<Answer, Failure> {
        let node = self.node(ident)?;
        let components = node.firmware.iter();
        let shown = components.map(|(name, component)| firmware::shown(name, component, present::stamp));
        Ok(Answer::ok(json!({ "firmware": shown.collect::<Vec<_>>() })))
    }

    pub(super) fn set_traits(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let names = body.get("traits").and_then(Value::as_array);
        let names = names.ok_or_else(|| Refusal::invalid("Schema error for body: 'traits' is a required property"))?;
        let mut traits = Vec::new();
        for name in names {
            match name.as_str().filter(|name| is_trait(name)) {
                Some(name) => traits.push(name.to_owned()),
                None => return Err(Refusal::invalid(format!("Schema error for body: {name} is no trait")).into()),
            }
        }
        self.locked(ident, context.now, |core, serial| {
            core.node_mut(serial)?.traits = traits;
            Ok(())
        })?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// Without Neutron, Ironic accepts attachments and does not store them.
    pub(super) fn vifs(&self, ident: &str) -> Result<Value, Refusal> {
        self.node(ident)?;
        Ok(json!({"vifs": []}))
    }

    pub(super) fn attach_vif(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        if body.get("id").and_then(Value::as_str).is_none() {
            return Err(Refusal::invalid("Schema error for vif: 'id' is a required property").into());
        }
        self.locked(ident, context.now, |_, _| Ok(()))?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    pub(super) fn detach_vif(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        self.locked(ident, context.now, |_, _| Ok(()))?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }

    /// The machine of a node and the delay of a synchronous BMC query.
    fn reachable_machine(&mut self, serial: u64) -> Result<(Duration, &mut Machine), Failure> {
        let (node, machine) = self
            .node_and_machine(serial)
            .ok_or_else(|| Refusal::not_found("Node", &serial.to_string()))?;
        let is_ipmi = node.driver() == "ipmi";
        let machine = machine.ok_or_else(|| Refusal::invalid(NO_BMC))?;
        let delay = machine
            .reach()
            .map_err(|error| Failure::Bmc(error.after, Refusal::failed(query_error(&error, is_ipmi))))?;
        Ok((work::query_time(delay), machine))
    }

    pub(super) fn boot_device(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let (delay, (device, persistent)) = self.locked(ident, context.now, |core, serial| {
            let node = core.node_mut(serial)?;
            if node.is_fake() {
                return Ok((Duration::ZERO, ("pxe".to_owned(), false)));
            }
            let (delay, machine) = core.reachable_machine(serial)?;
            Ok((delay, machine.boot_device.clone()))
        })?;
        let body = json!({"boot_device": device, "persistent": persistent});
        Ok(Answer::ok(body).delayed(delay))
    }

    pub(super) fn set_boot_device(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let device = body
            .get("boot_device")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned();
        let persistent = body.get("persistent").and_then(Value::as_bool).unwrap_or(false);
        let delay = self.locked(ident, context.now, |core, serial| {
            let node = core.node_mut(serial)?;
            let fake = node.is_fake();
            let known: &[&str] = if fake {
                &["pxe"]
            } else {
                &["pxe", "disk", "cdrom", "bios", "uefihttp"]
            };
            if !known.contains(&device.as_str()) {
                return Err(Refusal::invalid(format!("Invalid boot device {device} specified.")).into());
            }
            if fake {
                return Ok(Duration::ZERO);
            }
            let (delay, machine) = core.reachable_machine(serial)?;
            machine.boot_device = (device, persistent);
            Ok(delay)
        })?;
        Ok(Answer::empty(StatusCode::NO_CONTENT).delayed(delay))
    }

    /// Vendor methods of Redfish. Each needs the lock, reads included, and is done before the response.
    pub(super) fn passthru(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let name = context.request.query("method").unwrap_or_default().to_owned();
        let (http, body) = (&context.request.method, context.request.json()?);
        let node = self.node(ident)?;
        let is_redfish = node
            .text("vendor_interface")
            .is_some_and(|name| name.contains("redfish"));
        let method = VENDOR_METHODS.iter().find(|method| method.0 == name);
        let Some((_, verb)) = method.filter(|_| is_redfish) else {
            return Err(Refusal::invalid(format!("No handler for method {name}")).into());
        };
        if http.as_str() != *verb {
            let problem = format!("The method {name} does not support HTTP {http}");
            return Err(Refusal::invalid(problem).into());
        }
        let new = self.new_uuid();
        self.locked(ident, context.now, |core, serial| {
            let (delay, machine) = core.reachable_machine(serial)?;
            let answer = vendor_method(machine, &name, &body, new)?;
            Ok(Answer::ok(answer).delayed(delay))
        })
    }
}

/// The text of a failed query. `ipmitool` knows no reason; Redfish has the status and the address.
fn query_error(error: &BmcError, is_ipmi: bool) -> &str {
    match (is_ipmi, error.is_login) {
        (true, _) => "IPMI call failed: chassis bootparam get 5.",
        (false, true) => {
            "Redfish exception occurred. Error: HTTP GET https://bmc.example/redfish/v1/Systems/1 returned code 401. \
             Base.1.0.GeneralError: login required Extended information: None"
        }
        (false, false) => &error.message,
    }
}

/// A vendor method at the BMC. Only the collection is returned as the BMC has it.
fn vendor_method(machine: &mut Machine, name: &str, body: &Value, new: String) -> Result<Value, Failure> {
    let text = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = text("id");
    let found = machine.subscriptions.iter().find(|known| known.id == id);
    let missing = || {
        let problem = format!("Redfish exception occurred. Error: subscription {id} not found");
        Failure::from(Refusal::failed(&problem))
    };
    Ok(match name {
        "create_subscription" => {
            let subscription = Subscription {
                id: new,
                destination: text("Destination"),
                context: text("Context"),
                headers: body.get("HttpHeaders").cloned().unwrap_or_default(),
            };
            let answer = described(&subscription);
            machine.subscriptions.push(subscription);
            answer
        }
        "delete_subscription" if id.is_empty() => return Err(Refusal::invalid("id can't be None").into()),
        "delete_subscription" => {
            found.ok_or_else(missing)?;
            machine.subscriptions.retain(|known| known.id != id);
            Value::Null
        }
        "get_subscription" => described(found.ok_or_else(missing)?),
        _ => collection(&machine.subscriptions),
    })
}

/// A subscription as Ironic returns it.
fn described(subscription: &Subscription) -> Value {
    json!({
        "Id": subscription.id, "Context": subscription.context, "Destination": subscription.destination,
        "EventTypes": ["Alert"], "Protocol": "Redfish",
    })
}

/// The collection as the BMC returns it.
fn collection(subscriptions: &[Subscription]) -> Value {
    let path = "/redfish/v1/EventService/Subscriptions";
    let members: Vec<Value> = subscriptions
        .iter()
        .map(|one| json!({"@odata.id": format!("{path}/{}", one.id)}))
        .collect();
    json!({
        "@odata.id": path, "Name": "Event Subscriptions Collection",
        "Members@odata.count": members.len(), "Members": members,
    })
}

fn is_trait(name: &str) -> bool {
    let rest = name.strip_prefix(CUSTOM).unwrap_or_default();
    !rest.is_empty()
        && rest
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

fn validation(node: &Node, kind: &str) -> Value {
    let interface = node.text(&format!("{kind}_interface")).unwrap_or_default();
    if interfaces::is_empty(interface) {
        let reason = format!(
            "Driver {} does not support {kind} (disabled or not implemented).",
            node.driver()
        );
        return json!({"result": false, "reason": reason});
    }
    let missing = match (kind, interface) {
        ("boot", interface) if node.is_fake() && interface != "fake" => Some("instance_info.image_source"),
        ("deploy", "direct") => node.missing_image(),
        ("boot", _) if !node.is_fake() && node.is_live() => node.missing_image(),
        _ => None,
    };
    match missing {
        None => json!({"result": true}),
        Some(field) => {
            let reason = format!("Some parameters were missing. Missing are: {field}");
            json!({"result": false, "reason": reason})
        }
    }
}

/// The event text of a history list, at most 255 characters.
fn shortened(event: &str) -> String {
    if event.chars().count() <= 255 {
        return event.to_owned();
    }
    event.chars().take(251).chain("...".chars()).collect()
}
