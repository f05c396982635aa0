//! Dispatches requests to handlers. Paths of Ironic that are not simulated get 501; other paths get Ironic's error.

use http::{Method, StatusCode};
use metal3_ironic::version::LIST_VIRTUAL_MEDIA;
use serde_json::{Value, json};

use super::{Answer, Context, Core, Failure, HOST};
use crate::node::{interfaces, present};
use crate::refusal::Refusal;
use crate::request::ApiRequest;

/// Resources that are not simulated.
const NOT_SIMULATED: [&str; 14] = [
    "allocations",
    "chassis",
    "continue_inspection",
    "deploy_templates",
    "events",
    "heartbeat",
    "inspection_rules",
    "lookup",
    "portgroups",
    "runbooks",
    "shards",
    "volume",
    "connectors",
    "targets",
];

/// Subresources of nodes that are not simulated.
const NOT_SIMULATED_OF_NODE: [&str; 6] = ["allocation", "children", "console", "indicators", "nmi", "volume"];

impl Core {
    /// Answers a request.
    pub(crate) fn answer(&mut self, context: Context<'_>) -> Result<Answer, Failure> {
        let request = context.request;
        let path = request.segments();
        match (&request.method, path.as_slice()) {
            (&Method::GET, []) => Ok(Answer::ok(self.root())),
            (&Method::GET, ["drivers"]) => Ok(Answer::ok(drivers())),
            (&Method::GET, ["conductors"]) => Ok(Answer::ok(conductors())),
            (_, ["nodes", rest @ ..]) => self.of_nodes(context, rest),
            (method, ["ports", rest @ ..]) => match (method, rest) {
                (&Method::GET, []) => self.list_ports(request),
                (&Method::POST, []) => self.create_port(context),
                (&Method::DELETE, [port]) => self.delete_port(port, context),
                (&Method::GET | &Method::PATCH, [_]) => Err(not_simulated(request)),
                _ => Err(unknown(&path)),
            },
            (_, [first, ..]) if NOT_SIMULATED.contains(first) => Err(not_simulated(request)),
            (_, ["drivers" | "conductors", _, ..]) => Err(not_simulated(request)),
            _ => Err(Refusal::no_such_path(StatusCode::NOT_FOUND).into()),
        }
    }

    fn of_nodes(&mut self, context: Context<'_>, rest: &[&str]) -> Result<Answer, Failure> {
        let request = context.request;
        match (&request.method, rest) {
            (&Method::GET, []) => self.list_nodes(context),
            (&Method::POST, []) => self.create_node(context),
            (&Method::GET, ["detail"]) => Err(not_simulated(request)),
            (_, []) => Err(Refusal::no_such_path(StatusCode::METHOD_NOT_ALLOWED).into()),
            (&Method::GET, [node]) => self.read_node(node, context),
            (&Method::PATCH, [node]) => self.patch_node(node, context),
            (&Method::DELETE, [node]) => self.delete_node(node, context),
            (_, [_]) => Err(Refusal::no_such_path(StatusCode::METHOD_NOT_ALLOWED).into()),
            (_, [node, what @ ..]) => {
                // Ironic validates traits before it finds the node.
                if what != ["traits"] {
                    self.node(node)?;
                }
                self.of_node(context, node, what)
            }
        }
    }

    fn of_node(&mut self, context: Context<'_>, node: &str, what: &[&str]) -> Result<Answer, Failure> {
        let (get, post, put, delete) = (&Method::GET, &Method::POST, &Method::PUT, &Method::DELETE);
        let request = context.request;
        let method = &request.method;
        match what {
            ["states"] if method == get => Ok(Answer::ok(present::states(self.node(node)?))),
            ["states", "provision"] if method == put => self.provision(node, context),
            ["states", "power"] if method == put => self.change_power(node, context),
            ["states", "raid"] if method == put => self.set_target_raid(node, context),
            ["states", "boot_mode"] if method == put => self.change_boot(node, "boot_mode", context),
            ["states", "secure_boot"] if method == put => self.change_boot(node, "secure_boot", context),
            ["maintenance"] if method == put => self.set_maintenance(node, context),
            ["maintenance"] if method == delete => self.clear_maintenance(node, context),
            ["management", "boot_device"] if method == get => self.boot_device(node, context),
            ["management", "boot_device"] if method == put => self.set_boot_device(node, context),
            ["validate"] if method == get => self.validate(node),
            ["inventory"] if method == get => self.inventory(node),
            ["history"] if method == get => self.history(node, request),
            ["bios"] if method == get => self.bios(node, request),
            ["firmware"] if method == get => self.firmware(node),
            ["traits"] if method == get => Ok(Answer::ok(json!({"traits": self.node(node)?.traits}))),
            ["traits"] if method == put => self.set_traits(node, context),
            ["portgroups"] if method == get => Ok(Answer::ok(json!({"portgroups": []}))),
            ["vifs"] if method == get => Ok(Answer::ok(self.vifs(node)?)),
            ["vifs"] if method == post => self.attach_vif(node, context),
            ["vifs", _] if method == delete => self.detach_vif(node, context),
            ["vmedia"] if method == get && context.microversion < LIST_VIRTUAL_MEDIA => {
                Err(Refusal::newer_resource().into())
            }
            ["vmedia"] if method == get => self.media(node),
            ["vmedia"] if method == post => self.attach_media(node, context),
            ["vmedia"] if method == delete => self.detach_media(node, context),
            ["vendor_passthru"] if method == get || method == post || method == delete => self.passthru(node, context),
            [first, ..] if NOT_SIMULATED_OF_NODE.contains(first) => Err(not_simulated(request)),
            [first, ..] if KNOWN.contains(first) => Err(not_simulated(request)),
            _ => Err(Refusal::no_such_path(StatusCode::NOT_FOUND).into()),
        }
    }

    fn root(&self) -> Value {
        json!({
            "id": "v1",
            "links": [{"href": format!("{}/v1/", self.base), "rel": "self"}],
            "version": {
                "id": "v1", "status": "CURRENT",
                "min_version": self.versions.minimum.to_string(), "version": self.versions.maximum.to_string(),
            },
        })
    }
}

/// Subresources of nodes; other methods and deeper paths are not simulated.
const KNOWN: [&str; 14] = [
    "states",
    "maintenance",
    "management",
    "validate",
    "inventory",
    "history",
    "bios",
    "firmware",
    "traits",
    "ports",
    "portgroups",
    "vifs",
    "vmedia",
    "vendor_passthru",
];

fn unknown(path: &[&str]) -> Failure {
    Refusal::no_such_path(if path.len() > 2 {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::METHOD_NOT_ALLOWED
    })
    .into()
}

fn not_simulated(request: &ApiRequest) -> Failure {
    Refusal::not_simulated(&format!("{} {}", request.method, request.resource())).into()
}

fn drivers() -> Value {
    let driver = |name: &&str| json!({"name": name, "hosts": [HOST], "type": "dynamic"});
    json!({"drivers": interfaces::DRIVERS.iter().map(driver).collect::<Vec<_>>()})
}

fn conductors() -> Value {
    json!({"conductors": [{"hostname": HOST, "conductor_group": "", "alive": true}]})
}
