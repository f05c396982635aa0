//! The BMC: one Redfish service for one machine, as a function from a request to an answer.
//!
//! It knows what Ironic's `redfish` hardware type reads and uses. What it does not offer (changes of BIOS settings,
//! firmware, RAID, secure boot, events) answers 501 with the reason, never a pretended success.

mod chassis;
mod media;
mod session;
mod storage;
mod system;

use std::time::Duration;

use serde_json::{Value, json};

pub use session::{Credentials, Sessions, secret};

use crate::{
    fault::Fault,
    machine::{At, Machine},
};

/// The verbs that any resource has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// Read. `HEAD` counts as one.
    Get,
    /// Create or act.
    Post,
    /// Change.
    Patch,
    /// Remove.
    Delete,
    /// Anything else: nothing here answers it.
    Other,
}

/// A request as the service sees it.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// What to do.
    pub verb: Verb,
    /// To what, without query.
    pub path: &'a str,
    /// `Authorization`, if sent.
    pub authorization: Option<&'a str>,
    /// `X-Auth-Token`, if sent.
    pub token: Option<&'a str>,
    /// The JSON body; null without one.
    pub body: &'a Value,
}

/// What the service says.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// JSON, if any.
    pub body: Option<Value>,
    /// `Location` and `X-Auth-Token`, for a new session.
    pub session: Option<(String, String)>,
}

/// What the connection does.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// Drops the connection without a word.
    HangUp,
    /// Answers after a delay.
    Answer(Duration, Answer),
}

impl Answer {
    fn ok(body: Value) -> Self {
        Self {
            status: 200,
            body: Some(body),
            session: None,
        }
    }

    const fn done() -> Self {
        Self {
            status: 204,
            body: None,
            session: None,
        }
    }

    /// A refusal in the standard's form.
    pub(crate) fn error(status: u16, message: &str) -> Self {
        let body = json!({ "error": { "code": "Base.1.0.GeneralError", "message": message } });
        Self {
            status,
            body: Some(body),
            session: None,
        }
    }

    fn not_found(path: &str) -> Self {
        Self::error(404, &format!("no resource {path}"))
    }

    fn not_offered(what: &str) -> Self {
        Self::error(501, &format!("this BMC does not offer {what}"))
    }
}

/// The BMC's fixed surroundings.
#[derive(Debug)]
pub struct Bmc<'a> {
    /// The login it takes.
    pub credentials: &'a Credentials,
    /// Its open sessions.
    pub sessions: &'a mut Sessions,
    /// The machine it manages.
    pub machine: &'a mut Machine,
    /// From a power request to the change.
    pub power_delay: Duration,
}

impl Bmc<'_> {
    /// Answers one request, obeying the machine's faults.
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
        if answer.status == 404 && request.verb != Verb::Get && self.is_there(request, rest, now) {
            return Answer::error(405, &format!("{} does not take this verb", request.path));
        }
        answer
    }

    fn is_there(&mut self, request: &Request<'_>, path: &[&str], now: At) -> bool {
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
            (Verb::Get, ["Managers" | "Chassis" | "UpdateService", ..]) => {
                chassis::answer(self.machine, path).unwrap_or_else(|| Answer::not_found(request.path))
            }
            (Verb::Patch, ["Managers", manager]) if *manager == id => Answer::not_offered("changes of the BMC itself"),
            (Verb::Post | Verb::Patch, ["UpdateService", ..]) => Answer::not_offered("firmware updates"),
            (_, ["EventService", ..]) => Answer::not_offered("events"),
            (_, ["TaskService", ..]) => Answer::not_offered("tasks"),
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
            (Verb::Get, ["Processors", rest @ ..]) => {
                system::processors(machine, rest).unwrap_or_else(|| Answer::not_found(request.path))
            }
            (Verb::Get, ["EthernetInterfaces", rest @ ..]) => {
                system::interfaces(machine, rest).unwrap_or_else(|| Answer::not_found(request.path))
            }
            (Verb::Get, ["Bios"]) => Answer::ok(system::bios(machine)),
            (Verb::Patch | Verb::Post, ["Bios", ..]) => Answer::not_offered("changes of BIOS settings"),
            (Verb::Get, ["SecureBoot"]) => Answer::ok(system::secure_boot(machine)),
            (Verb::Patch | Verb::Post, ["SecureBoot", ..]) => Answer::not_offered("changes of secure boot"),
            (Verb::Get, ["Storage" | "SimpleStorage", ..]) => {
                storage::answer(machine, path).unwrap_or_else(|| Answer::not_found(request.path))
            }
            (Verb::Post | Verb::Patch | Verb::Delete, ["Storage", ..]) => Answer::not_offered("RAID volumes"),
            (_, ["VirtualMedia", rest @ ..]) => {
                media::answer(machine, request, rest).unwrap_or_else(|| Answer::not_found(request.path))
            }
            _ => Answer::not_found(request.path),
        }
    }
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
