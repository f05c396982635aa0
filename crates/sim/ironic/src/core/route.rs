//! Which request is answered by what. Paths that Ironic has and that are not here answer 501; paths that it does not
//! have answer as it does.

use http::{Method, StatusCode};
use metal3_ironic::version::LIST_VIRTUAL_MEDIA;
use serde_json::{Value, json};

use super::{Answer, Context, Core, HOST, Stop};
use crate::asked::Asked;
use crate::node::{interfaces, present};
use crate::refusal::Refusal;

/// What Ironic has beside what is simulated.
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

/// What a node has beside what is simulated.
const NOT_SIMULATED_OF_NODE: [&str; 6] = ["allocation", "children", "console", "indicators", "nmi", "volume"];

impl Core {
    /// Answers a request.
    pub(crate) fn answer(&mut self, asked: &Asked, context: Context) -> Result<Answer, Stop> {
        let path = asked.segments();
        match (&asked.method, path.as_slice()) {
            (&Method::GET, []) => Ok(Answer::ok(self.root())),
            (&Method::GET, ["drivers"]) => Ok(Answer::ok(drivers())),
            (&Method::GET, ["conductors"]) => Ok(Answer::ok(conductors())),
            (_, ["nodes", rest @ ..]) => self.of_nodes(asked, context, rest),
            (method, ["ports", rest @ ..]) => match (method, rest) {
                (&Method::GET, []) => self.list_ports(asked),
                (&Method::POST, []) => self.create_port(asked, context),
                (&Method::DELETE, [port]) => self.delete_port(port, context),
                (&Method::GET | &Method::PATCH, [_]) => Err(not_simulated(asked)),
                _ => Err(unknown(&path)),
            },
            (_, [first, ..]) if NOT_SIMULATED.contains(first) => Err(not_simulated(asked)),
            (_, ["drivers" | "conductors", _, ..]) => Err(not_simulated(asked)),
            _ => Err(Refusal::no_such_path(StatusCode::NOT_FOUND).into()),
        }
    }

    fn of_nodes(&mut self, asked: &Asked, context: Context, rest: &[&str]) -> Result<Answer, Stop> {
        match (&asked.method, rest) {
            (&Method::GET, []) => self.list_nodes(asked, context),
            (&Method::POST, []) => self.create_node(asked, context),
            (&Method::GET, ["detail"]) => Err(not_simulated(asked)),
            (_, []) => Err(Refusal::no_such_path(StatusCode::METHOD_NOT_ALLOWED).into()),
            (&Method::GET, [node]) => self.read_node(node, asked, context),
            (&Method::PATCH, [node]) => self.patch_node(node, asked, context),
            (&Method::DELETE, [node]) => self.delete_node(node, context),
            (_, [_]) => Err(Refusal::no_such_path(StatusCode::METHOD_NOT_ALLOWED).into()),
            (_, [node, what @ ..]) => {
                // Traits are looked at before the node is looked for.
                if what != ["traits"] {
                    self.node(node)?;
                }
                self.of_node(asked, context, node, what)
            }
        }
    }

    fn of_node(&mut self, asked: &Asked, context: Context, node: &str, what: &[&str]) -> Result<Answer, Stop> {
        let (get, post, put, delete) = (&Method::GET, &Method::POST, &Method::PUT, &Method::DELETE);
        let method = &asked.method;
        match what {
            ["states"] if method == get => Ok(Answer::ok(present::states(self.node(node)?))),
            ["states", "provision"] if method == put => self.provision(node, asked, context),
            ["states", "power"] if method == put => self.change_power(node, asked, context),
            ["states", "raid"] if method == put => self.set_target_raid(node, asked, context),
            ["states", field @ ("boot_mode" | "secure_boot")] if method == put => {
                self.change_boot(node, field, asked, context)
            }
            ["maintenance"] if method == put => self.set_maintenance(node, asked, context),
            ["maintenance"] if method == delete => self.clear_maintenance(node, context),
            ["management", "boot_device"] if method == get => self.boot_device(node, context),
            ["management", "boot_device"] if method == put => self.set_boot_device(node, asked, context),
            ["validate"] if method == get => self.validate(node),
            ["inventory"] if method == get => self.inventory(node),
            ["history"] if method == get => self.history(node, asked),
            ["bios"] if method == get => self.bios(node, asked),
            ["firmware"] if method == get => self.firmware(node),
            ["traits"] if method == get => Ok(Answer::ok(json!({"traits": self.node(node)?.traits}))),
            ["traits"] if method == put => self.set_traits(node, asked, context),
            ["portgroups"] if method == get => Ok(Answer::ok(json!({"portgroups": []}))),
            ["vifs"] if method == get => Ok(Answer::ok(self.vifs(node)?)),
            ["vifs"] if method == post => self.attach_vif(node, asked, context),
            ["vifs", vif] if method == delete => self.detach_vif(node, vif, context),
            ["vmedia"] if method == get && context.speaks < LIST_VIRTUAL_MEDIA => Err(Refusal::newer_resource().into()),
            ["vmedia"] if method == get => self.media(node),
            ["vmedia"] if method == post => self.attach_media(node, asked, context),
            ["vmedia"] if method == delete => self.detach_media(node, context),
            ["vendor_passthru"] if method == post || method == delete => self.passthru(node, asked, context),
            [first, ..] if NOT_SIMULATED_OF_NODE.contains(first) => Err(not_simulated(asked)),
            [first, ..] if KNOWN.contains(first) => Err(not_simulated(asked)),
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

/// What a node has; a method or a depth that is not above is not simulated.
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

fn unknown(path: &[&str]) -> Stop {
    Refusal::no_such_path(if path.len() > 2 {
        StatusCode::NOT_FOUND
    } else {
        StatusCode::METHOD_NOT_ALLOWED
    })
    .into()
}

fn not_simulated(asked: &Asked) -> Stop {
    Refusal::not_simulated(&format!("{} {}", asked.method, asked.resource())).into()
}

fn drivers() -> Value {
    let driver = |name: &&str| json!({"name": name, "hosts": [HOST], "type": "dynamic"});
    json!({"drivers": interfaces::DRIVERS.iter().map(driver).collect::<Vec<_>>()})
}

fn conductors() -> Value {
    json!({"conductors": [{"hostname": HOST, "conductor_group": "", "alive": true}]})
}
