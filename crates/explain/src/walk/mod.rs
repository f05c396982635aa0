//! From one object to the next: why it is not done, and which object it waits for.

mod address;
mod claimable;
pub(crate) mod cluster;
pub(crate) mod conditions;
mod data;
mod foreign;
mod host;
mod machine;
mod remediation;
mod stated;
mod subscription;

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use metal3_api::cluster::{Cluster, IPAddressClaim, Machine, MachineDeployment};
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3DataTemplate, Metal3Machine, Metal3MachineTemplate,
    Metal3Remediation,
};
use metal3_api::ipam::v1alpha1::{IPAddress, IPClaim, IPPool};
use metal3_api::kind::Kind;
use metal3_api::metal3::v1alpha1::{
    BMCEventSubscription, BareMetalHost, BareMetalSwitch, DataImage, HardwareData, HostClaim, HostFirmwareComponents,
    HostFirmwareSettings, PreprovisioningImage,
};
use metal3_domain::uri::public_text;
use serde_json::Value;

use crate::chain::{Explanation, Link, State};
use crate::events;
use crate::listed::Listed;
use crate::object::{ObjectId, SECRET};
use crate::read::{NotRead, Read, Unread};
use crate::snapshot::{Snapshot, decode};
use crate::steps::{Step, median};
use crate::table::{Actor, Area};
use crate::values::text;
use crate::work;

pub(crate) use machine::ORDER as MACHINE_ORDER;

/// Explains an object, or returns what is to be read first.
///
/// # Errors
/// The reads whose results the snapshot lacks.
pub fn explain(object: &ObjectId, snapshot: &Snapshot) -> Result<Explanation, BTreeSet<Read>> {
    explained(object, Walk::new(snapshot))
}

/// The same for a part of what another object waits for.
fn explain_part(object: &ObjectId, snapshot: &Snapshot) -> Result<Explanation, BTreeSet<Read>> {
    let walk = Walk {
        is_part: true,
        ..Walk::new(snapshot)
    };
    explained(object, walk)
}

fn explained(object: &ObjectId, mut walk: Walk<'_>) -> Result<Explanation, BTreeSet<Read>> {
    let mut visited = BTreeSet::new();
    let mut next = Some(object.clone());
    let mut end = End::Done;
    while let Some(at) = next.take() {
        if !visited.insert(at.clone()) {
            walk.circle();
            break;
        }
        let links = walk.chain.len();
        match walk.step(&at) {
            Ok(following) => {
                next = following;
                if walk.chain.len() == links {
                    walk.unseen(&at);
                }
            }
            Err(stop) => {
                end = stop;
                break;
            }
        }
    }
    let missing = walk.snapshot.missing(walk.wanted);
    if !missing.is_empty() {
        return Err(missing);
    }
    let state = match (&end, walk.chain.last()) {
        (End::Unread, _) => State::Unknown,
        (End::Absent, _) if walk.chain.len() < 2 => State::Absent,
        (_, None) => State::Ready,
        (_, Some(last)) => match last.who_acts {
            Actor::Nothing => State::Ready,
            Actor::System if walk.has_unread_part => State::Unknown,
            Actor::System => State::Waiting,
            Actor::User | Actor::Hardware => State::Blocked,
        },
    };
    Ok(Explanation {
        object: object.clone(),
        state,
        chain: walk.chain,
        events: Vec::new(),
        not_read: walk.not_read,
    })
}

/// The explanation with the Events of the last object and how long its step usually takes, or what is to be read first. The chain
/// is complete without them, so its state stays when they cannot be read.
///
/// # Errors
/// These reads.
pub fn with_background(mut explanation: Explanation, snapshot: &Snapshot) -> Result<Explanation, BTreeSet<Read>> {
    let Some(last) = explanation
        .chain
        .last_mut()
        .filter(|_| explanation.state != State::Absent)
    else {
        return Ok(explanation);
    };
    let mut walk = Walk::new(snapshot);
    if let Ok(found) = walk.answer(Read::Events(last.object.clone())) {
        // The walk has read the object, so this is no read more.
        let object = snapshot.get(&Read::Object(last.object.clone())).and_then(Result::ok);
        let object = object.and_then(|found| found.first().cloned());
        let uid = object.as_deref().map(|object| text(object, "/metadata/uid"));
        explanation.events = events::lines(&found, uid.filter(|uid| !uid.is_empty()));
    }
    let step = last.reason.as_deref().and_then(Step::of_reason);
    if let Some(step) = step.filter(|_| last.object.is::<BareMetalHost>()) {
        let hosts = walk.each(&Read::list::<BareMetalHost>(None));
        last.usual_seconds = hosts.and_then(|hosts| median(&step.completed(hosts.iter())));
    }
    let missing = snapshot.missing(walk.wanted);
    if !missing.is_empty() {
        return Err(missing);
    }
    let new = walk
        .not_read
        .into_iter()
        .filter(|one| !explanation.not_read.contains(one));
    let new: Vec<NotRead> = new.collect();
    explanation.not_read.extend(new);
    Ok(explanation)
}

/// Kinds of Cluster API whose objects controllers make with a Machine.
const MADE: [&str; 2] = ["KubeadmConfig", "MachineSet"];

/// How a walk ends other than at a cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// At the last link.
    Done,
    /// At an object that is still to be read.
    Wanted,
    /// At an object that could not be read.
    Unread,
    /// At an object that does not exist.
    Absent,
}

/// The next object, or `None` at the last link.
pub(crate) type Next = Option<ObjectId>;

impl<K> Listed<K> {
    /// The object that was sought among these. One that cannot be decoded may be the object that was not found.
    pub(crate) fn sought(&self, found: Next) -> Result<Next, End> {
        match found {
            None if !self.unreadable().is_empty() => Err(End::Unread),
            found => Ok(found),
        }
    }
}

pub(crate) struct Walk<'a> {
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) wanted: BTreeSet<Read>,
    pub(crate) not_read: Vec<NotRead>,
    /// What they are about.
    noted: BTreeSet<Read>,
    chain: Vec<Link>,
    /// Whether it explains a part of what another walk explains: it then looks at no parts itself.
    is_part: bool,
    /// Whether a part could not be read: that part may need help.
    has_unread_part: bool,
}

impl<'a> Walk<'a> {
    pub(crate) const fn new(snapshot: &'a Snapshot) -> Self {
        Self {
            snapshot,
            wanted: BTreeSet::new(),
            not_read: Vec::new(),
            noted: BTreeSet::new(),
            chain: Vec::new(),
            is_part: false,
            has_unread_part: false,
        }
    }
}

impl Walk<'_> {
    fn step(&mut self, at: &ObjectId) -> Result<Next, End> {
        match at {
            at if at.is::<Cluster>() => self.cluster(at),
            at if at.is::<Machine>() => self.machine(at),
            at if at.is::<Metal3Cluster>() => self.metal3_cluster(at),
            at if at.is::<Metal3Machine>() => self.metal3_machine(at),
            at if at.is::<Metal3DataClaim>() => self.data_claim(at),
            at if at.is::<Metal3Data>() => self.data(at),
            at if at.is::<Metal3DataTemplate>() => self.data_template(at),
            at if at.is::<IPClaim>() => self.ip_claim(at),
            at if at.is::<IPAddressClaim>() => self.ip_address_claim(at),
            at if at.is::<IPPool>() => self.pool(at),
            at if at.is::<BareMetalHost>() => self.host(at),
            at if at.is::<BMCEventSubscription>() => self.subscription(at),
            at if at.is::<DataImage>() => self.data_image(at),
            at if at.is::<Metal3Remediation>() => self.remediation(at),
            at if at.is::<Metal3MachineTemplate>() => self.machine_template(at),
            at if at.is::<HostFirmwareSettings>() => self.firmware_settings(at),
            at if at.is::<HostFirmwareComponents>() => self.firmware_components(at),
            at if at.is::<IPAddress>() => self.stated(at, Area::Addresses),
            at if at.is::<HardwareData>() => self.stated(at, Area::Hosts),
            at if at.is::<PreprovisioningImage>() => self.agent_image(at),
            at if at.is::<BareMetalSwitch>() => self.switch(at),
            at if at.is::<HostClaim>() => self.claim(at),
            at if at.is_unserved() => self.unserved(at),
            at if at.is::<MachineDeployment>() => self.machine_deployment(at),
            at if at.kind == SECRET.kind && at.group == SECRET.group => self.secret(at),
            at => self.foreign(at),
        }
    }

    /// The answer to a read; `End::Wanted` until it is read.
    pub(crate) fn answer(&mut self, read: Read) -> Result<Vec<Arc<Value>>, End> {
        let answer = self.snapshot.get(&read);
        self.wanted.insert(read.clone());
        match answer {
            None => Err(End::Wanted),
            Some(Ok(found)) => Ok(found),
            Some(Err(why)) => Err(self.unread(read, why)),
        }
    }

    pub(crate) fn unread(&mut self, what: Read, why: Unread) -> End {
        self.note(NotRead { what, why });
        End::Unread
    }

    /// Names what could not be read, once.
    pub(crate) fn note(&mut self, entry: NotRead) {
        if self.noted.insert(entry.what.clone()) {
            self.not_read.push(entry);
        }
    }

    /// An object that the chain needs: a link reports it when it does not exist.
    fn required<K: Kind>(&mut self, at: &ObjectId) -> Result<K, End> {
        match self.find::<K>(&at.name)? {
            Some(object) => Ok(object),
            None => Err(self.absent(at)),
        }
    }

    /// An object; `None` when it does not exist.
    pub(crate) fn find<K: Kind>(&mut self, name: &str) -> Result<Option<K>, End> {
        let read = Read::Object(ObjectId::of::<K>(name));
        let Some(found) = self.answer(read.clone())?.into_iter().next() else {
            return Ok(None);
        };
        work::visit();
        match decode(&found) {
            Ok(object) => Ok(Some(object)),
            Err(why) => Err(self.unread(read, why)),
        }
    }

    /// The objects of a read that can be decoded. `None` if none could be read, or none was read yet.
    pub(crate) fn each<K: Kind>(&mut self, read: &Read) -> Option<Arc<Listed<K>>> {
        self.listed(read).ok()
    }

    /// The objects of a kind, of a Cluster or of the namespace.
    fn list<K: Kind>(&mut self, cluster: Option<&str>) -> Result<Arc<Listed<K>>, End> {
        self.listed(&Read::list::<K>(cluster))
    }

    /// The objects of a read. One that cannot be decoded is reported by its name and left out. A kind that is not installed
    /// has no objects.
    pub(crate) fn listed<K: Kind>(&mut self, read: &Read) -> Result<Arc<Listed<K>>, End> {
        self.wanted.insert(read.clone());
        match self.snapshot.decoded::<K>(read) {
            None => Err(End::Wanted),
            Some(Err(Unread::NotInstalled)) => Ok(Arc::default()),
            Some(Err(why)) => Err(self.unread(read.clone(), why)),
            Some(Ok(listed)) => {
                for one in listed.unreadable() {
                    self.note(one.clone());
                }
                Ok(listed)
            }
        }
    }

    /// A link about an object that does not exist.
    fn absent(&mut self, at: &ObjectId) -> End {
        let cure = if at.is::<Metal3Data>() {
            // Made by hand it takes an index and addresses that no claim holds.
            "Wait: a controller makes it. If it was deleted by hand, replace the Machine, whose disk is erased then."
                .to_owned()
        } else if at.is::<Metal3DataClaim>() {
            // Made by hand it has no owner, and takes an index.
            "A controller makes it. If it was deleted by hand, delete the Machine, so that its owner makes another one."
                .to_owned()
        } else if at.is::<IPClaim>() || at.is::<IPAddressClaim>() || at.is::<IPAddress>() {
            "Wait: a controller makes it. If it lasts, see the log of this program.".to_owned()
        } else if at.is::<Metal3Machine>() || at.is::<Machine>() || MADE.contains(&at.kind.as_str()) {
            // Made by hand it has no owner, and nothing of its template.
            "A controller makes it. If it was deleted by hand, delete the Machine, so that its owner makes another one."
                .to_owned()
        } else {
            format!("Create {at}, or correct the reference to it.")
        };
        self.chain.push(Link::plain(at, "does not exist", Actor::User, cure));
        End::Absent
    }

    /// A Secret, of which only the existence matters.
    fn secret(&mut self, at: &ObjectId) -> Result<Next, End> {
        if self.answer(Read::Object(at.clone()))?.is_empty() {
            return Err(self.absent(at));
        }
        Ok(None)
    }

    /// Adds to the last link how much was looked at.
    fn restrict(&mut self, message: &str) {
        if let Some(last) = self.chain.last_mut() {
            message.clone_into(&mut last.message);
        }
    }

    /// The last link waits for one before it: each reports what it saw last, which changes soon.
    fn circle(&mut self) {
        if let Some(last) = self.chain.last_mut() {
            last.who_acts = Actor::System;
            last.cure = "Wait. If it lasts, see the log of this program: the objects wait for each other.".to_owned();
        }
    }

    /// The last link waits for an object that is done: its controller has not seen that yet.
    fn unseen(&mut self, done: &ObjectId) {
        if let Some(last) = self.chain.last_mut().filter(|last| last.cure.is_empty()) {
            last.who_acts = Actor::System;
            last.cure = format!(
                "Wait: {done} waits for nothing. If it lasts, see the log of the controller of {}.",
                last.object.kind
            );
        }
    }

    /// Messages are texts of Ironic, of BMCs and of other controllers, which repeat URLs.
    fn push(&mut self, link: Link) {
        let message = public_text(&link.message);
        self.chain.push(Link { message, ..link });
    }
}

/// Whether the object is being deleted.
pub(crate) fn is_deleting(meta: &ObjectMeta) -> bool {
    meta.deletion_timestamp.is_some()
}

/// The option of a command that names the namespace, after a space.
pub(crate) fn in_namespace(namespace: &str) -> String {
    match namespace {
        "" => String::new(),
        namespace => format!(" -n {namespace}"),
    }
}

/// The name of the first owner of a kind.
pub(crate) fn owner<K: Kind>(meta: &ObjectMeta) -> Option<&str> {
    let owners = meta.owner_references.as_deref().unwrap_or_default();
    let group = |api_version: &str| {
        api_version
            .split_once('/')
            .map_or(String::new(), |(group, _)| group.to_owned())
    };
    let found = owners
        .iter()
        .find(|owner| owner.kind == K::KIND && group(&owner.api_version) == K::GROUP);
    found.map(|owner| owner.name.as_str())
}

#[cfg(test)]
mod tests;
