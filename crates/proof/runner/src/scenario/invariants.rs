//! What must hold after every write, whatever goes wrong. Pure: objects and machines go in, violations come out.
//!
//! A rule looks at one write and at everything as it is with that write done. It never waits: what comes true sooner or
//! later is a script's business.

use std::collections::BTreeMap;

use metal3_api::metal3::names::REBOOT_ANNOTATION;
use metal3_sandbox::world::BMC_PASSWORD;
use metal3_sim_capi::view::Object;
use serde_json::Value;

type Place = (String, String);

/// A machine, as far as its owner would notice what is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Metal {
    pub(super) is_on: bool,
    /// Whether its disk, or its virtual drive, holds an image.
    pub(super) has_image: bool,
    /// Images that were written to its disk so far.
    pub(super) written: u32,
}

/// All objects by kind and name, and who had which machine.
#[derive(Debug, Default)]
pub(super) struct Invariants {
    objects: BTreeMap<Place, Object>,
    tenants: BTreeMap<String, Tenant>,
    checks: usize,
}

/// Who has a host.
#[derive(Debug)]
struct Tenant {
    consumer: String,
    /// How often the disk had been written before.
    written_before: u32,
    /// The machine was seen on since it was last told to be: it is to stay so until it is told otherwise.
    was_on: bool,
}

/// One write.
struct Change<'a> {
    all: &'a BTreeMap<Place, Object>,
    old: Option<&'a Object>,
    new: &'a Object,
    gone: bool,
}

/// What a rule objects to in a write.
type Objection = fn(&Change<'_>) -> Option<String>;

const RULES: &[(&str, Objection)] = &[
    ("a host has one master", one_master),
    ("a machine has one host", one_host),
    ("what is in use stays", in_use_stays),
    ("a host is given back before its machine goes", given_back),
    ("an address is given once", address_once),
    ("an index is given once", index_once),
    ("the ID of a machine is for life", id_for_life),
    ("who is not ready says why", says_why),
    ("who is provisioned has a host that is", provisioned_runs),
    ("secrets stay in Secrets", no_secret),
];

impl Invariants {
    /// Takes a write in; says what it breaks. `metal` is the machine behind the object, where it is a host.
    pub(super) fn saw(&mut self, new: &Object, gone: bool, metal: Option<Metal>) -> Vec<String> {
        let place = (new.kind().to_owned(), new.name().to_owned());
        let old = if gone {
            self.objects.remove(&place)
        } else {
            self.objects.insert(place, new.clone())
        };
        let change = Change {
            all: &self.objects,
            old: old.as_ref(),
            new,
            gone,
        };
        let told = RULES.iter().filter_map(|(name, rule)| {
            let why = rule(&change)?;
            Some(format!("{name}: {} {}: {why}", new.kind(), new.name()))
        });
        let mut broken: Vec<String> = told.collect();
        if let Some(metal) = metal {
            broken.extend(self.worn(new, gone, metal));
        }
        self.checks = self.checks.saturating_add(1);
        broken
    }

    /// How many writes were looked at.
    pub(super) fn checks(&self) -> usize {
        self.checks
    }

    /// What happens to a machine behind the back of whoever has it: it is looked at itself, whatever its host says.
    fn worn(&mut self, host: &Object, gone: bool, metal: Metal) -> Option<String> {
        let consumer = consumer(host);
        if gone || consumer.is_empty() {
            self.tenants.remove(host.name());
            return None;
        }
        let arrival = || Tenant {
            consumer: consumer.to_owned(),
            written_before: metal.written,
            was_on: false,
        };
        let tenant = self.tenants.entry(host.name().to_owned()).or_insert_with(arrival);
        if tenant.consumer != consumer {
            *tenant = arrival();
        }
        let times = metal.written.saturating_sub(tenant.written_before);
        let runs = is_provisioned(host) && !host.is_deleting();
        let stays_on = runs && host.flag("/spec/online") && !is_rebooted(host);
        tenant.was_on = stays_on && (tenant.was_on || metal.is_on);
        let why = if times > 1 {
            format!("a disk is written once for each who has the host: {times} times for {consumer}")
        } else if runs && !metal.has_image {
            "what runs has its disk: it holds no image".to_owned()
        } else if tenant.was_on && !metal.is_on {
            "what runs is on: the machine is off".to_owned()
        } else {
            return None;
        };
        Some(format!("{why}: {}", host.name()))
    }
}

fn consumer(host: &Object) -> &str {
    host.text("/spec/consumerRef/name")
}

fn is_provisioned(host: &Object) -> bool {
    host.text("/status/provisioning/state") == "provisioned"
}

/// Somebody asks for a reboot, by the annotation alone or with a name of his own behind it.
fn is_rebooted(host: &Object) -> bool {
    let annotations = host.part("/metadata/annotations");
    let mut names = annotations.as_object().into_iter().flat_map(|all| all.keys());
    names.any(|name| name.starts_with(REBOOT_ANNOTATION))
}

impl Change<'_> {
    /// The object is of this kind.
    fn is_of(&self, kind: &str) -> bool {
        self.new.kind() == kind
    }

    fn of_kind<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Object> + 'a {
        let all = self.all.iter().filter(move |((of, _), _)| of == kind);
        all.map(|(_, object)| object)
    }

    /// Other objects of the same kind that say the same there.
    fn twins<'a>(&'a self, at: &'a str) -> impl Iterator<Item = &'a Object> + 'a {
        let is_twin = move |other: &&Object| other.name() != self.new.name() && self.new.at(at) == other.at(at);
        self.of_kind(self.new.kind()).filter(is_twin)
    }
}

fn one_master(change: &Change<'_>) -> Option<String> {
    let (old, new) = (consumer(change.old?), consumer(change.new));
    let is_taken = !old.is_empty() && !new.is_empty() && old != new;
    (change.is_of("BareMetalHost") && is_taken).then(|| format!("it was {old}'s and is {new}'s"))
}

fn one_host(change: &Change<'_>) -> Option<String> {
    if !change.is_of("BareMetalHost") || change.gone || consumer(change.new).is_empty() {
        return None;
    }
    let twin = change.twins("/spec/consumerRef/name").next()?;
    Some(format!("{} has {}, too", consumer(change.new), twin.name()))
}

fn in_use_stays(change: &Change<'_>) -> Option<String> {
    let old = change
        .old
        .filter(|old| change.is_of("BareMetalHost") && is_provisioned(old))?;
    let machine = ("Metal3Machine".to_owned(), consumer(old).to_owned());
    change.all.get(&machine).filter(|machine| !machine.is_deleting())?;
    let lost = [
        (change.gone, "gone"),
        (!is_provisioned(change.new), "not provisioned"),
        (change.new.at("/spec/image").is_none(), "without image"),
        (consumer(change.new).is_empty(), "nobody's"),
    ];
    let (_, what) = lost.iter().find(|(is_lost, _)| *is_lost)?;
    Some(format!("{} has it and lives, and it is {what}", consumer(old)))
}

fn given_back(change: &Change<'_>) -> Option<String> {
    if !change.gone || !change.is_of("Metal3Machine") {
        return None;
    }
    let host = change
        .of_kind("BareMetalHost")
        .find(|host| consumer(host) == change.new.name())?;
    Some(format!("it is gone, and {} is its", host.name()))
}

fn address_once(change: &Change<'_>) -> Option<String> {
    granted_once(change, "IPClaim", "/status/address/name")
}

fn index_once(change: &Change<'_>) -> Option<String> {
    granted_once(change, "Metal3DataClaim", "/status/renderedData/name")
}

/// What a claim was given is given to no other claim that lives. Its name follows from the address, or from the index, so
/// there never are two objects: two claims that name one would be the harm.
fn granted_once(change: &Change<'_>, kind: &str, at: &str) -> Option<String> {
    if change.gone || !change.is_of(kind) || change.new.is_deleting() || change.new.text(at).is_empty() {
        return None;
    }
    let twin = change.twins(at).find(|twin| !twin.is_deleting())?;
    Some(format!("{} is {}'s, too", change.new.text(at), twin.name()))
}

fn id_for_life(change: &Change<'_>) -> Option<String> {
    let at = "/spec/providerID";
    let (old, new) = (change.old?.text(at), change.new.text(at));
    let is_other = !old.is_empty() && old != new;
    (["Machine", "Metal3Machine"].contains(&change.new.kind()) && is_other).then(|| format!("{old} became {new:?}"))
}

/// Kinds whose conditions are ours to say.
fn is_ours(object: &Object) -> bool {
    let kind = object.kind();
    kind.starts_with("Metal3") || ["BareMetalHost", "IPPool", "IPClaim", "IPAddress"].contains(&kind)
}

/// Where false is as it should be.
const FALSE_IS_WELL: [&str; 4] = ["Paused", "Exhausted", "Overlapping", "ControlPlaneEndpointDrifted"];

fn says_why(change: &Change<'_>) -> Option<String> {
    if change.gone || !is_ours(change.new) {
        return None;
    }
    let conditions = change.new.part("/status/conditions");
    let text = |condition: &Value, member: &str| {
        let found = condition.get(member).and_then(Value::as_str);
        found.unwrap_or_default().to_owned()
    };
    // A host tells it in its error message, as the Go manager does.
    let tells = !change.is_of("BareMetalHost");
    let is_silent = |condition: &&Value| {
        let waits = tells && !FALSE_IS_WELL.contains(&text(condition, "type").as_str());
        let waits = waits && text(condition, "status") != "True";
        text(condition, "reason").is_empty() || (waits && text(condition, "message").is_empty())
    };
    let silent = conditions.as_array()?.iter().find(is_silent)?;
    Some(format!("{silent} says no reason, or not what it waits for"))
}

fn provisioned_runs(change: &Change<'_>) -> Option<String> {
    let is_meant = change.is_of("Metal3Machine") && !change.gone && !change.new.is_deleting();
    if !is_meant || !change.new.flag("/status/initialization/provisioned") {
        return None;
    }
    let host = change
        .of_kind("BareMetalHost")
        .find(|host| consumer(host) == change.new.name());
    match host {
        None => Some("it has no host".to_owned()),
        Some(host) => (!is_provisioned(host)).then(|| format!("{} is not provisioned", host.name())),
    }
}

fn no_secret(change: &Change<'_>) -> Option<String> {
    let tells = !change.is_of("Secret") && change.new.0.to_string().contains(BMC_PASSWORD);
    tells.then(|| "it says the password of a BMC".to_owned())
}

#[cfg(test)]
mod tests;
