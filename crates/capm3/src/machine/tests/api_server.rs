//! A minimal API server for machines, hosts, claims and data: versions, preconditions, finalizers, and checks of each
//! write against the safety rules.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::infrastructure::names::{HOST_ANNOTATION, MACHINE_FINALIZER, NODE_REUSE_LABEL};
use metal3_runtime::patch;
use serde_json::{Value, json};

use crate::machine::action::Action;

pub(super) const NAMESPACE: &str = "metal";
pub(super) const CLUSTER: &str = "edge";
/// The label of hosts that are kept for the set of the machines.
pub(super) const OWNER: &str = "md-workers";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ObjectKind {
    Machine,
    Host,
    Claim,
    Data,
}

pub(super) const OBJECT_KINDS: [ObjectKind; 4] = [
    ObjectKind::Machine,
    ObjectKind::Host,
    ObjectKind::Claim,
    ObjectKind::Data,
];

pub(super) type Objects = BTreeMap<(ObjectKind, String), Value>;

/// Why a write was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rejected {
    Absent,
    Conflict,
    Exists,
}

pub(super) const ZONES: [&str; 2] = ["a", "b"];

/// The zones of the Metal3Cluster.
#[derive(Debug, Clone)]
pub(super) struct Zoning {
    pub(super) zones: Vec<&'static str>,
    /// Whether a machine keeps to its failure domain.
    pub(super) is_required: bool,
}

/// The failure domain of a machine.
pub(super) fn domain_of(machine: &str) -> &'static str {
    ZONES[usize::from(machine.ends_with('1'))]
}

/// The server, with the violations found.
#[derive(Debug, Clone, Default)]
pub(super) struct Server {
    pub(super) objects: Objects,
    /// Machines have no data template.
    pub(super) is_bare: bool,
    /// All hosts are kept for the set of the machines.
    pub(super) reuses: bool,
    /// The zones that give the machines their data, if they do.
    pub(super) zoning: Option<Zoning>,
    /// Machines removed by force. Their hosts keep running, and the next machine of the name does not affect them.
    pub(super) forced: BTreeSet<String>,
    version: u64,
    pub(super) wrong: Vec<String>,
    pub(super) writes: Vec<String>,
}

pub(super) fn text<'a>(document: &'a Value, path: &str) -> &'a str {
    document.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

pub(super) fn is_deleting(document: &Value) -> bool {
    !document["metadata"]["deletionTimestamp"].is_null()
}

/// The machine that has a host. The consumer of a kept host is the Cluster.
pub(super) fn consumer(host: &Value) -> &str {
    match text(host, "/spec/consumerRef/kind") {
        "Cluster" => "",
        _ => text(host, "/spec/consumerRef/name"),
    }
}

/// Whether a host is kept for the set of the machines.
fn is_kept(host: &Value) -> bool {
    let is_of_cluster = text(host, "/spec/consumerRef/kind") == "Cluster";
    is_of_cluster && host["metadata"]["labels"][NODE_REUSE_LABEL] == json!(OWNER)
}

/// Whether the controller's finalizer is set.
fn has_finalizer(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|one| one == MACHINE_FINALIZER))
}

fn has_image(host: &Value) -> bool {
    !host["spec"]["image"].is_null()
}

impl Server {
    pub(super) fn get(&self, sort: ObjectKind, name: &str) -> Option<&Value> {
        self.objects.get(&(sort, name.to_owned()))
    }

    pub(super) fn all(&self, sort: ObjectKind) -> impl Iterator<Item = (&str, &Value)> {
        let of_sort = self.objects.iter().filter(move |((one, _), _)| *one == sort);
        of_sort.map(|((_, name), document)| (name.as_str(), document))
    }

    pub(super) fn create(&mut self, sort: ObjectKind, name: &str, mut document: Value) -> Result<(), Rejected> {
        if self.get(sort, name).is_some() {
            return Err(Rejected::Exists);
        }
        self.version += 1;
        let meta = json!({
            "name": name, "namespace": NAMESPACE, "uid": format!("{name}-{}", self.version), "generation": 1,
            "resourceVersion": self.version.to_string(),
        });
        patch::apply(&json!({ "metadata": meta }), &mut document);
        self.objects.insert((sort, name.to_owned()), document);
        Ok(())
    }

    /// Applies a merge patch with its precondition; returns the object unless the patch deletes it.
    pub(super) fn patch(&mut self, sort: ObjectKind, name: &str, mut change: Value) -> Result<Option<Value>, Rejected> {
        let before = self.get(sort, name).ok_or(Rejected::Absent)?.clone();
        if let Some(wanted) = change["metadata"]
            .as_object_mut()
            .and_then(|meta| meta.remove("resourceVersion"))
            && wanted != before["metadata"]["resourceVersion"]
        {
            return Err(Rejected::Conflict);
        }
        if change["metadata"].is_null() {
            change.as_object_mut().unwrap().remove("metadata");
        }
        let mut after = before.clone();
        patch::apply(&change, &mut after);
        if after != before {
            self.version += 1;
            after["metadata"]["resourceVersion"] = json!(self.version.to_string());
        }
        if sort == ObjectKind::Machine && has_finalizer(&after) {
            self.forced.remove(name);
        }
        let is_gone = is_deleting(&after) && after["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if is_gone {
            self.objects.remove(&(sort, name.to_owned()));
        } else {
            self.objects.insert((sort, name.to_owned()), after.clone());
        }
        self.check_write(sort, name, &before, &after, is_gone);
        Ok((!is_gone).then_some(after))
    }

    pub(super) fn delete(&mut self, sort: ObjectKind, name: &str, at: Option<(&str, &str)>) -> Result<(), Rejected> {
        let document = self.get(sort, name).ok_or(Rejected::Absent)?;
        let is = (
            text(document, "/metadata/uid"),
            text(document, "/metadata/resourceVersion"),
        );
        if at.is_some_and(|wanted| wanted != is) {
            return Err(Rejected::Conflict);
        }
        self.patch(
            sort,
            name,
            json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
        )
        .map(drop)
    }

    /// Executes a write of a machine's plan. Writes to the machine use `version`.
    pub(super) fn perform(
        &mut self,
        machine: &str,
        version: &str,
        action: &Action,
    ) -> Result<Option<(ObjectKind, Value)>, Rejected> {
        self.writes.push(format!("{machine}: {action:?}"));
        let placed = |sort| move |document: Option<Value>| document.map(|document| (sort, document));
        match action {
            Action::PatchMachine(patch) => {
                let mut change = patch.clone().into_document();
                patch::apply(&json!({ "metadata": { "resourceVersion": version } }), &mut change);
                self.patch(ObjectKind::Machine, machine, change)
                    .map(placed(ObjectKind::Machine))
            }
            Action::PatchHost { host, patch, .. } => self
                .patch(ObjectKind::Host, host, patch.clone().into_document())
                .map(placed(ObjectKind::Host)),
            Action::CreateClaim(claim) => {
                self.create(ObjectKind::Claim, machine, serde_json::to_value(claim).unwrap())?;
                Ok(self
                    .get(ObjectKind::Claim, machine)
                    .cloned()
                    .map(|document| (ObjectKind::Claim, document)))
            }
            Action::PatchClaim { claim, patch } => self
                .patch(ObjectKind::Claim, claim, patch.clone().into_document())
                .map(placed(ObjectKind::Claim)),
            Action::DeleteClaim { claim, uid, version } => self
                .delete(ObjectKind::Claim, claim, Some((uid, version.as_str())))
                .map(|()| None),
            Action::LabelSecret { .. } | Action::AdoptNode { .. } | Action::CopyLabels { .. } => Ok(None),
        }
    }

    /// Checks what no write may do.
    fn check_write(&mut self, sort: ObjectKind, name: &str, before: &Value, after: &Value, is_gone: bool) {
        let mut wrong = Vec::new();
        match sort {
            ObjectKind::Host => self.check_host(name, before, after, &mut wrong),
            ObjectKind::Machine if is_gone && !self.forced.contains(name) => {
                let runs = |(_, host): &(&str, &Value)| consumer(host) == name && has_image(host);
                if let Some((host, _)) = self.all(ObjectKind::Host).find(runs) {
                    wrong.push(format!("{name} went and left {host} running"));
                }
            }
            ObjectKind::Claim if has_finalizer(before) && (is_gone || !has_finalizer(after)) => {
                let runs = |(_, host): &(&str, &Value)| consumer(host) == name && has_image(host);
                if self.all(ObjectKind::Host).any(|host| runs(&host)) {
                    wrong.push(format!("the data of {name} were released while its host ran"));
                }
            }
            ObjectKind::Machine | ObjectKind::Claim | ObjectKind::Data => {}
        }
        self.wrong.extend(wrong);
    }

    fn check_host(&self, name: &str, before: &Value, after: &Value, wrong: &mut Vec<String>) {
        let (old, new) = (consumer(before), consumer(after));
        if !old.is_empty() && !new.is_empty() && old != new {
            wrong.push(format!("{name} went from {old} to {new}"));
        }
        if !has_image(before) && has_image(after) && !new.is_empty() {
            let runs = |(other, host): &(&str, &Value)| *other != name && consumer(host) == new && has_image(host);
            let others = self.all(ObjectKind::Host).filter(runs);
            wrong.extend(others.map(|(other, _)| format!("{new} was put on {name} and runs on {other}")));
        }
        if self.reuses && !old.is_empty() && new.is_empty() && !is_kept(after) && !self.forced.contains(old) {
            wrong.push(format!("{name} was released by {old} and is not kept"));
        }
        if !old.is_empty()
            && new.is_empty()
            && (has_image(after) || text(before, "/status/provisioning/state") != "available")
        {
            wrong.push(format!("{name} lost its consumer while it ran something"));
        }
        if !has_image(before) && has_image(after) {
            let expected = self
                .get(ObjectKind::Machine, new)
                .map(|machine| text(machine, "/spec/image/url"));
            if expected.is_some_and(|expected| expected != text(after, "/spec/image/url")) {
                wrong.push(format!("{name} was provisioned with the spec of an earlier {new}"));
            }
        }
        let lacks_data = !self.is_bare && after["spec"]["metaData"].is_null();
        if has_image(after) && (lacks_data || after["spec"]["userData"].is_null()) {
            wrong.push(format!("{name} has an image without its data"));
        }
        if has_image(before) && has_image(after) && before["spec"] != after["spec"] {
            wrong.push(format!("{name} was changed while it ran"));
        }
        if has_image(before) && !has_image(after) {
            let machine = self.get(ObjectKind::Machine, old);
            if machine.is_some_and(|machine| !is_deleting(machine)) {
                wrong.push(format!(
                    "{name} was deprovisioned under {old}, which is not in deletion"
                ));
            }
            if machine.is_some_and(|machine| {
                text(
                    machine,
                    "/metadata/annotations/clusterctl.cluster.x-k8s.io~1delete-for-move",
                ) == "yes"
            }) {
                wrong.push(format!("{name} was deprovisioned under {old}, which was moved away"));
            }
            if machine.is_none() {
                wrong.push(format!("{name} was deprovisioned for a deleted machine"));
            }
        }
        self.check_provisioning(name, before, after, wrong);
    }

    /// Checks the claim and the provisioning of a host.
    fn check_provisioning(&self, name: &str, before: &Value, after: &Value, wrong: &mut Vec<String>) {
        let (old, new) = (consumer(before), consumer(after));
        let zone = text(
            before,
            "/metadata/labels/infrastructure.cluster.x-k8s.io~1failure-domain",
        );
        let is_elsewhere = |zoning: &Zoning| zoning.is_required && zone != domain_of(new);
        if old.is_empty() && !new.is_empty() && self.zoning.as_ref().is_some_and(is_elsewhere) {
            wrong.push(format!("{new} in {} took {name} in {zone}", domain_of(new)));
        }
        let is_written = !has_image(before) && has_image(after);
        if is_written && !new.is_empty() && self.zoning.as_ref().is_some_and(is_elsewhere) {
            wrong.push(format!("{name} in {zone} was written for {new} in {}", domain_of(new)));
        }
        // An image that booted with an earlier machine's data does not run this machine.
        if !self.is_bare && !has_image(before) && has_image(after) && !new.is_empty() {
            let claim = self
                .get(ObjectKind::Claim, new)
                .map(|claim| text(claim, "/metadata/uid").to_owned());
            let data = text(after, "/spec/metaData/name");
            let owner = self.get(ObjectKind::Data, data.trim_end_matches("-metadata"));
            let owner = owner.map(|data| text(data, "/metadata/ownerReferences/0/uid").to_owned());
            let machine = self
                .get(ObjectKind::Machine, new)
                .map(|machine| text(machine, "/metadata/uid").to_owned());
            let of = self
                .get(ObjectKind::Claim, new)
                .map(|claim| text(claim, "/metadata/ownerReferences/0/uid").to_owned());
            let has_own = self
                .get(ObjectKind::Machine, new)
                .is_some_and(|machine| !machine["spec"]["metaData"].is_null());
            if machine.is_some() && !has_own && (of != machine || owner != claim) {
                wrong.push(format!("{name} got data that are not those of {new}"));
            }
        }
    }
}

/// The host that a machine records.
pub(super) fn associated(machine: &Value) -> &str {
    let annotations = &machine["metadata"]["annotations"];
    annotations[HOST_ANNOTATION]
        .as_str()
        .unwrap_or_default()
        .rsplit('/')
        .next()
        .unwrap_or_default()
}
