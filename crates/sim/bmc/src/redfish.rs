//! The BMC: one Redfish service for one machine, as a function from a request to a response.
//!
//! It supports the resources and actions of Ironic's `redfish` hardware type. Unsupported features (RAID,
//! secure boot) answer 501 with the reason, never a false success.

mod bios;
mod chassis;
mod events;
mod media;
mod session;
mod storage;
mod system;
mod update;

use std::time::Duration;

use serde_json::{Value, json};

pub use session::{Credentials, Sessions, secret};

use crate::{
    fault::Fault,
    machine::{At, Machine},
};

/// HTTP methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read, also for `HEAD`.
    Get,
    /// Create or run an action.
    Post,
    /// Change.
    Patch,
    /// Remove.
    Delete,
    /// Any other method, unsupported.
    Other,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The method.
    pub verb: Verb,
    /// The path without query.
    pub path: &'a str,
    /// The header `Authorization`.
    pub authorization: Option<&'a str>,
    /// The header `X-Auth-Token`.
    pub token: Option<&'a str>,
    /// The JSON body; null without one.
    pub body: &'a Value,
}

/// A response.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// JSON, if any.
    pub body: Option<Value>,
    /// `Location`, of a new resource.
    pub location: Option<String>,
    /// `X-Auth-Token`, of a new session.
    pub token: Option<String>,
}

/// The reaction to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Drop the connection.
    HangUp,
    /// Respond after a delay.
    Answer(Duration, Answer),
}

impl Answer {
    fn ok(body: Value) -> Self {
        Self {
            status: 200,
            body: Some(body),
            location: None,
            token: None,
        }
    }

    const fn done() -> Self {
        Self {
            status: 204,
            body: None,
            location: None,
            token: None,
        }
    }

    /// An error in the standard's form.
    pub(crate) fn error(status: u16, message: &str) -> Self {
        let body = json!({ "error": { "code": "Base.1.0.GeneralError", "message": message } });
        Self {
            status,
            body: Some(body),
            location: None,
            token: None,
        }
    }

    fn not_found(path: &str) -> Self {
        Self::error(404, &format!("no resource {path}"))
    }

    fn unsupported(what: &str) -> Self {
        Self::error(501, &format!("this BMC does not offer {what}"))
    }
}

/// The environment of a request.
#[derive(Debug)]
pub struct Bmc<'a> {
    /// The valid login.
    pub credentials: &'a Credentials,
    /// Its open sessions.
    pub sessions: &'a mut Sessions,
    /// The machine it manages.
    pub machine: &'a mut Machine,
    /// The delay of power changes.
    pub power_delay: Duration,
}

impl Bmc<'_> {
    /// Processes a request according to the machine's faults.
    pub fn reply(&mut self, request: &Request<'_>, now: At) -> Reply {
        if self.machine.faults.has(Fault::DeadBmc) {
            return Reply::HangUp;
        }
        let delay = self.machine.faults.bmc_delay();
        let answer = match self.machine.faults.bmc_status() {
            Some(status) => Answer::error(status, "the BMC is out of order"),
            None => self.answer(request, now),
        };
        Reply::Answer(delay, answer)
    }

    fn answer(&mut self, request: &Request<'_>, now: At) -> Answer {
        let path: Vec<&str> = request.path.split('/').filter(|part| !part.is_empty()).collect();
        if let (Verb::Get, ["redfish"]) = (request.verb, path.as_slice()) {
            return Answer::ok(json!({ "v1": "/redfish/v1/" }));
        }
        let ["redfish", "v1", rest @ ..] = path.as_slice() else {
            return Answer::not_found(request.path);
        };
        match (request.verb, rest) {
            (Verb::Get, []) => return Answer::ok(system::root(&self.machine.number.uuid())),
            (Verb::Post, ["SessionService", "Sessions"]) => {
                let refused = self.machine.faults.has(Fault::WrongPassword);
                return self.sessions.open(self.credentials, request.body, refused);
            }
            _ => {}
        }
        if self.machine.faults.has(Fault::WrongPassword) || !self.sessions.admit(self.credentials, request) {
            return Answer::error(401, "login required");
        }
        let answer = self.resource(request, rest, now);
        if answer.status == 404 && request.verb != Verb::Get && self.exists(request, rest, now) {
            return Answer::error(405, &format!("{} does not support this method", request.path));
        }
        answer
    }

    fn exists(&mut self, request: &Request<'_>, path: &[&str], now: At) -> bool {
        let read = Request {
            verb: Verb::Get,
            ..request.clone()
        };
        self.resource(&read, path, now).status == 200
    }

    fn resource(&mut self, request: &Request<'_>, path: &[&str], now: At) -> Answer {
        let id = self.machine.number.uuid();
        match (request.verb, path) {
            (Verb::Get, ["SessionService"]) => Answer::ok(session::service()),
            (Verb::Get, ["SessionService", "Sessions"]) => Answer::ok(self.sessions.list()),
            (Verb::Delete, ["SessionService", "Sessions", session]) => self.sessions.close(session),
            (Verb::Get, ["Systems"]) => Answer::ok(collection("ComputerSystem", "/redfish/v1/Systems", [id])),
            (_, ["Systems", system, rest @ ..]) if *system == id => self.system(request, rest, now),
            (Verb::Get, ["Managers" | "Chassis", ..]) => found(chassis::answer(self.machine, path), request),
            (Verb::Patch, ["Managers", manager]) if *manager == id => Answer::unsupported("changes of the BMC itself"),
            (_, ["UpdateService", rest @ ..]) => update::answer(self.machine, request, rest),
            (Verb::Get, ["Registries", rest @ ..]) => found(bios::registries(self.machine, rest), request),
            (_, ["EventService", rest @ ..]) => events::answer(self.machine, request, rest),
            (Verb::Get, ["TaskService", rest @ ..]) => found(update::tasks(self.machine, rest), request),
            _ => Answer::not_found(request.path),
        }
    }

    fn system(&mut self, request: &Request<'_>, path: &[&str], now: At) -> Answer {
        let machine = &mut *self.machine;
        match (request.verb, path) {
            (Verb::Get, []) => Answer::ok(system::system(machine)),
            (Verb::Patch, []) => system::patch(machine, request.body),
            (Verb::Post, ["Actions", "ComputerSystem.Reset"]) => {
                system::reset(machine, request.body, now, self.power_delay)
            }
            (Verb::Get, ["Processors", rest @ ..]) => found(system::processors(machine, rest), request),
            (Verb::Get, ["EthernetInterfaces", rest @ ..]) => found(system::interfaces(machine, rest), request),
            (_, ["Bios", rest @ ..]) => bios::answer(machine, request, rest),
            (Verb::Get, ["SecureBoot"]) => Answer::ok(system::secure_boot(machine)),
            (Verb::Patch | Verb::Post, ["SecureBoot", ..]) => Answer::unsupported("changes of secure boot"),
            (Verb::Get, ["Storage" | "SimpleStorage", ..]) => found(storage::answer(machine, path), request),
            (Verb::Post | Verb::Patch | Verb::Delete, ["Storage", ..]) => Answer::unsupported("RAID volumes"),
            (_, ["VirtualMedia", rest @ ..]) => {
                media::answer(machine, request, rest).unwrap_or_else(|| Answer::not_found(request.path))
            }
            _ => Answer::not_found(request.path),
        }
    }
}

/// The resource of a read, if it exists.
fn found(resource: Option<Value>, request: &Request<'_>) -> Answer {
    resource.map_or_else(|| Answer::not_found(request.path), Answer::ok)
}

/// A Redfish collection of members below `path`.
fn collection(kind: &str, path: &str, members: impl IntoIterator<Item = String>) -> Value {
    let members: Vec<Value> = members
        .into_iter()
        .map(|member| json!({ "@odata.id": format!("{path}/{member}") }))
        .collect();
    json!({
        "@odata.id": path,
        "@odata.type": format!("#{kind}Collection.{kind}Collection"),
        "Name": format!("{kind} Collection"),
        "Members@odata.count": members.len(),
        "Members": members,
    })
}

#[cfg(test)]
mod tests;
