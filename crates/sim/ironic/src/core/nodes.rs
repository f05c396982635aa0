//! Node requests: list, create, read, patch, delete.

use http::StatusCode;
use metal3_ironic::model::state::ProvisionState as S;
use metal3_ironic::version::Microversion;
use serde_json::{Map, Value, json};

use super::{Answer, Context, Core, Failure, HOST, Now, patch, present};
use crate::bmc::Bmc;
use crate::node::{Node, fields, interfaces};
use crate::refusal::Refusal;
use crate::request::ApiRequest;

impl Core {
    pub(super) fn create_node(&mut self, context: Context<'_>) -> Result<Answer, Failure> {
        let body = context.request.json()?;
        let body = body
            .as_object()
            .ok_or_else(|| Refusal::invalid("Schema error for node: it is not of type 'object'"))?;
        let record = fields::of_new(body, context.microversion)?;
        let serial = self.add(body.get("uuid").and_then(Value::as_str), record, context.now)?;
        let uuid = self.node_mut(serial)?.uuid.clone();
        let shown = self.whole(&uuid, context.microversion)?;
        let location = format!("{}/v1/nodes/{uuid}", self.base);
        Ok(Answer {
            status: StatusCode::CREATED,
            ..Answer::ok(Value::Object(shown)).with_location(location)
        })
    }

    /// Adds a node. Its name and UUID must be unused.
    pub(crate) fn add(&mut self, uuid: Option<&str>, record: Map<String, Value>, now: Now) -> Result<u64, Refusal> {
        let name = record.get("name").and_then(Value::as_str).map(str::to_owned);
        if let Some(name) = name.as_ref().filter(|name| self.names.contains_key(*name)) {
            return Err(Refusal::conflict(format!("A node with name {name} already exists.")));
        }
        let instance = record.get("instance_uuid").and_then(Value::as_str);
        if let Some(instance) = instance.filter(|instance| self.has_instance(instance)) {
            return Err(Refusal::conflict(format!(
                "Instance {instance} is already associated with a node."
            )));
        }
        let uuid = match uuid {
            None => self.new_uuid(),
            Some(uuid) if !fields::is_uuid(uuid) => {
                return Err(Refusal::invalid(format!("Expected UUID for uuid: {uuid}")));
            }
            Some(uuid) if self.uuids.contains_key(uuid) => {
                return Err(Refusal::conflict(format!("A node with UUID {uuid} already exists.")));
            }
            Some(uuid) => uuid.to_owned(),
        };
        self.created = self.created.saturating_add(1);
        let serial = self.created;
        let node = Node::new(serial, uuid.clone(), record, now.wall);
        self.uuids.insert(uuid, serial);
        if let Some(name) = name {
            self.names.insert(name, serial);
        }
        self.changes.insert((None, serial));
        self.nodes.insert(serial, node);
        self.resolve_bmc(serial);
        Ok(serial)
    }

    fn whole(&self, ident: &str, microversion: Microversion) -> Result<Map<String, Value>, Refusal> {
        Ok(present::whole(self.node(ident)?, microversion, &self.base, HOST))
    }

    pub(super) fn read_node(&self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let mut shown = self.whole(ident, context.microversion)?;
        if let Some(wanted) = wanted(context.request)? {
            shown.retain(|field, _| field == "links" || wanted.contains(&field.as_str()));
        }
        Ok(Answer::ok(Value::Object(shown)))
    }

    pub(super) fn list_nodes(&self, context: Context<'_>) -> Result<Answer, Failure> {
        let request = context.request;
        let known = ["detail", "fields", "limit", "marker", "sort_key", "sort_dir"];
        request.check_query("nodes", &known)?;
        let limit = request.page_size()?;
        let page = self.page(request, limit)?;
        let wanted = wanted(request)?;
        let detail = request.is_detailed();
        let shown: Vec<Value> = page
            .iter()
            .map(|node| {
                let mut shown = present::whole(node, context.microversion, &self.base, HOST);
                match &wanted {
                    Some(wanted) => shown.retain(|field, _| field == "links" || wanted.contains(&field.as_str())),
                    None if detail => {}
                    None => shown.retain(|field, _| present::SHORT.contains(&field.as_str())),
                }
                Value::Object(shown)
            })
            .collect();
        let mut body = json!({"nodes": shown});
        if let (true, Some(last), Value::Object(body)) = (page.len() == limit, page.last(), &mut body) {
            let kept = request
                .query
                .iter()
                .filter(|(key, _)| key != "marker" && key != "limit");
            let kept: String = kept.map(|(key, value)| format!("{key}={value}&")).collect();
            let next = format!("{}/v1/nodes?{kept}limit={limit}&marker={}", self.base, last.uuid);
            body.insert("next".into(), next.into());
        }
        Ok(Answer::ok(body))
    }

    fn page(&self, request: &ApiRequest, limit: usize) -> Result<Vec<&Node>, Refusal> {
        let marker = request.query("marker").map(|marker| self.node(marker)).transpose()?;
        let read = |serial: &u64| self.nodes.get(serial);
        match (
            request.query("sort_key").unwrap_or("id"),
            request.query("sort_dir").unwrap_or("asc"),
        ) {
            ("id", "asc") => {
                let first = marker.map_or(0, |node| node.serial.saturating_add(1));
                Ok(self.nodes.range(first..).map(|(_, node)| node).take(limit).collect())
            }
            ("updated_at", "desc") => match marker {
                None => Ok(self
                    .changes
                    .iter()
                    .rev()
                    .filter_map(|(_, serial)| read(serial))
                    .take(limit)
                    .collect()),
                // The database compares with the marker's time, and a comparison with null matches no row.
                Some(marker) if marker.times.updated.is_none() => Ok(Vec::new()),
                Some(marker) => {
                    let behind = self.changes.range(..(marker.times.updated, marker.serial)).rev();
                    let known = behind.filter(|(updated, _)| updated.is_some());
                    Ok(known.filter_map(|(_, serial)| read(serial)).take(limit).collect())
                }
            },
            (_, direction) if direction != "asc" && direction != "desc" => Err(Refusal::invalid(format!(
                "Invalid sort direction: {direction}. Acceptable values are 'asc' or 'desc'"
            ))),
            (key, direction) => Err(Refusal::not_simulated(&format!("sorting nodes by {key} {direction}"))),
        }
    }

    pub(super) fn patch_node(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        let operations = patch::read(&context.request.json()?)?;
        for operation in &operations {
            fields::known(&operation.field, context.microversion)?;
        }
        let node = self.node(ident)?;
        if !context.is_retry {
            may_change(node, ident, &operations)?;
        }
        // A patch may change the name in the path.
        let uuid = node.uuid.clone();
        let mut changed = node.fields.clone();
        let driver = node.driver().to_owned();
        for operation in &operations {
            let unset = || fields::unset(&operation.field);
            let field = changed.entry(operation.field.clone()).or_insert(Value::Null);
            operation.apply(field, unset)?;
        }
        for operation in &operations {
            let value = changed.get(&operation.field).unwrap_or(&Value::Null);
            fields::fits(&operation.field, value)?;
        }
        let node = self.node(&uuid)?;
        interfaces_may_change(node, &changed)?;
        let chosen = changed
            .get("driver")
            .and_then(Value::as_str)
            .unwrap_or(&driver)
            .to_owned();
        interfaces::complete(&chosen, &mut changed)?;
        self.locked(&uuid, context.now, |core, serial| {
            core.store(serial, changed, context.now)
        })?;
        Ok(Answer::ok(Value::Object(self.whole(&uuid, context.microversion)?)))
    }

    /// Whether a node is associated with this instance.
    fn has_instance(&self, instance: &str) -> bool {
        self.nodes
            .values()
            .any(|node| node.text("instance_uuid") == Some(instance))
    }

    fn store(&mut self, serial: u64, changed: Map<String, Value>, now: Now) -> Result<(), Failure> {
        let text = |map: &Map<String, Value>, key: &str| map.get(key).and_then(Value::as_str).map(str::to_owned);
        let name = text(&changed, "name");
        let node = self.node_mut(serial)?;
        let (old, uuid) = (text(&node.fields, "name"), node.uuid.clone());
        if let (Some(present), Some(wanted)) = (node.text("instance_uuid"), text(&changed, "instance_uuid"))
            && present != wanted
        {
            return Err(Refusal::conflict(format!("Node {uuid} is associated with instance {present}.")).into());
        }
        let wanted = text(&changed, "instance_uuid").filter(|_| node.text("instance_uuid").is_none());
        let loses_machine = node.bmc.is_some()
            && text(&changed, "driver").as_deref() != Some(interfaces::FAKE)
            && Bmc::of(changed.get("driver_info").unwrap_or(&Value::Null)).is_none();
        if loses_machine {
            return Err(Refusal::not_simulated("a machine without an address").into());
        }
        let becomes_protected = changed.get("protected") == Some(&Value::Bool(true)) && !node.is_protected();
        let state = &node.provision.state;
        if becomes_protected && !matches!(state, S::Active | S::Rescue) {
            let message = format!(
                "Node {uuid} can only be made protected in provision states 'active' or 'rescue', the current state is \
                 '{state}'"
            );
            return Err(Refusal::conflict(message).into());
        }
        let was_in_maintenance = node.in_maintenance();
        if let Some(instance) = wanted.filter(|instance| self.has_instance(instance)) {
            let message = format!("Instance {instance} is already associated with a node, not with {uuid}.");
            return Err(Refusal::conflict(message).into());
        }
        if name != old {
            if let Some(taken) = name.as_ref().filter(|name| self.names.contains_key(*name)) {
                return Err(Refusal::conflict(format!("A node with name {taken} already exists.")).into());
            }
            if let Some(old) = old {
                self.names.remove(&old);
            }
            if let Some(name) = name {
                self.names.insert(name, serial);
            }
        }
        let node = self.node_mut(serial)?;
        node.fields = changed;
        if was_in_maintenance && !node.in_maintenance() {
            node.set_maintenance(false, None);
        }
        self.resolve_bmc(serial);
        self.touch(serial, now);
        Ok(())
    }

    pub(super) fn delete_node(&mut self, ident: &str, context: Context<'_>) -> Result<Answer, Failure> {
        self.locked(ident, context.now, |core, serial| {
            let node = core.node_mut(serial)?;
            let (uuid, state) = (node.uuid.clone(), node.provision.state.clone());
            if !node.in_maintenance()
                && let Some(instance) = node.text("instance_uuid")
            {
                let message = format!("Node {uuid} is associated with instance {instance}.");
                return Err(Refusal::conflict(message).into());
            }
            if node.is_protected() {
                return Err(Refusal::protected(&uuid).into());
            }
            let is_deletable = matches!(state, S::Enroll | S::Manageable | S::AdoptFailed | S::Available);
            if !node.in_maintenance() && !is_deletable {
                let message = format!("Can not delete node \"{uuid}\" while it is in provision state \"{state}\".");
                return Err(Refusal::conflict(message).into());
            }
            let (updated, name) = (node.times.updated, node.name().map(str::to_owned));
            core.changes.remove(&(updated, serial));
            core.uuids.remove(&uuid);
            if let Some(name) = name {
                core.names.remove(&name);
            }
            core.nodes.remove(&serial);
            core.ports.retain(|_, port| port.node != uuid);
            Ok(())
        })?;
        Ok(Answer::empty(StatusCode::NO_CONTENT))
    }
}

fn wanted(request: &ApiRequest) -> Result<Option<Vec<&str>>, Refusal> {
    let Some(fields) = request.query("fields") else {
        return Ok(None);
    };
    let wanted: Vec<&str> = fields.split(',').collect();
    // Ironic has these fields and rejects them in `fields`.
    if let Some(field) = ["updated_at", "created_at"]
        .into_iter()
        .find(|field| wanted.contains(field))
    {
        return Err(Refusal::invalid(format!("Field {field} is not a valid field.")));
    }
    Ok(Some(wanted))
}

/// Whether the node's state permits a patch.
fn may_change(node: &Node, ident: &str, operations: &[patch::Operation]) -> Result<(), Refusal> {
    // In maintenance the instance can be removed in any state.
    if let ([operation], true) = (operations, node.in_maintenance())
        && operation.removes("instance_uuid")
    {
        return Ok(());
    }
    let open = matches!(
        node.provision.state,
        S::DeployFailed
            | S::Inspecting
            | S::InspectFailed
            | S::InspectWait
            | S::CleanFailed
            | S::Error
            | S::Verifying
            | S::AdoptFailed
            | S::RescueFailed
            | S::UnrescueFailed
            | S::ServiceHold
            | S::ServiceFailed
    );
    if node.provision.target.is_some() && !open {
        let message = format!("Node {ident} can not be updated while a state transition is in progress.");
        return Err(Refusal::conflict(message));
    }
    if node.provision.state == S::Inspecting {
        let message = format!(
            "Cannot update node \"{}\" while it is in state \"inspecting\".",
            node.uuid
        );
        return Err(Refusal::conflict(message));
    }
    Ok(())
}

/// Whether the node's state permits a change of interfaces.
fn interfaces_may_change(node: &Node, changed: &Map<String, Value>) -> Result<(), Refusal> {
    let open = matches!(
        node.provision.state,
        S::Enroll | S::Inspecting | S::InspectWait | S::Manageable | S::Available
    );
    if open || node.in_maintenance() {
        return Ok(());
    }
    let differs = |(name, value): &(&String, &Value)| interfaces::is_one(name) && node.field(name) != *value;
    match changed.iter().find(differs) {
        None => Ok(()),
        Some((name, _)) => Err(Refusal::conflict(format!(
            "Node {} can not have {name} updated unless it is in one of allowed (enroll, inspecting, inspect wait, \
             manageable, available) states or in maintenance mode. Current state is '{}'.",
            node.uuid, node.provision.state
        ))),
    }
}
