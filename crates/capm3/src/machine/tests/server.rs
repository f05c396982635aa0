//! A small API server for machines, hosts, claims and data: versions, preconditions, finalizers. It knows nothing of
//! what they mean, except for the rules that no write may break.

use std::collections::{BTreeMap, BTreeSet};

use metal3_api::infrastructure::names::{HOST_ANNOTATION, MACHINE_FINALIZER};
use metal3_runtime::patch;
use serde_json::{Value, json};

use crate::machine::action::Action;

pub(super) const NAMESPACE: &str = "metal";
pub(super) const CLUSTER: &str = "edge";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Sort {
    Machine,
    Host,
    Claim,
    Data,
}

pub(super) const SORTS: [Sort; 4] = [Sort::Machine, Sort::Host, Sort::Claim, Sort::Data];

pub(super) type Objects = BTreeMap<(Sort, String), Value>;

/// Why a write was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refused {
    Absent,
    Conflict,
    Exists,
}

/// The server, and what was found wrong.
#[derive(Debug, Clone, Default)]
pub(super) struct Server {
    pub(super) objects: Objects,
    /// Machines have no data template.
    pub(super) is_bare: bool,
    /// Machines that were taken away by force. What they left runs on, and the next of the name has no part in it before we
    /// work for it.
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

pub(super) fn consumer(host: &Value) -> &str {
    text(host, "/spec/consumerRef/name")
}

/// Whether our finalizer keeps an object.
fn is_ours(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|one| one == MACHINE_FINALIZER))
}

fn has_image(host: &Value) -> bool {
    !host["spec"]["image"].is_null()
}

impl Server {
    pub(super) fn get(&self, sort: Sort, name: &str) -> Option<&Value> {
        self.objects.get(&(sort, name.to_owned()))
    }

    pub(super) fn all(&self, sort: Sort) -> impl Iterator<Item = (&str, &Value)> {
        let of_sort = self.objects.iter().filter(move |((one, _), _)| *one == sort);
        of_sort.map(|((_, name), document)| (name.as_str(), document))
    }

    pub(super) fn create(&mut self, sort: Sort, name: &str, mut document: Value) -> Result<(), Refused> {
        if self.get(sort, name).is_some() {
            return Err(Refused::Exists);
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

    /// A change with whatever precondition it carries; the new form unless the object is gone with it.
    pub(super) fn patch(&mut self, sort: Sort, name: &str, mut change: Value) -> Result<Option<Value>, Refused> {
        let before = self.get(sort, name).ok_or(Refused::Absent)?.clone();
        if let Some(wanted) = change["metadata"]
            .as_object_mut()
            .and_then(|meta| meta.remove("resourceVersion"))
            && wanted != before["metadata"]["resourceVersion"]
        {
            return Err(Refused::Conflict);
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
        if sort == Sort::Machine && is_ours(&after) {
            self.forced.remove(name);
        }
        let is_gone = is_deleting(&after) && after["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty);
        if is_gone {
            self.objects.remove(&(sort, name.to_owned()));
        } else {
            self.objects.insert((sort, name.to_owned()), after.clone());
        }
        self.judge(sort, name, &before, &after, is_gone);
        Ok((!is_gone).then_some(after))
    }

    pub(super) fn delete(&mut self, sort: Sort, name: &str, at: Option<(&str, &str)>) -> Result<(), Refused> {
        let document = self.get(sort, name).ok_or(Refused::Absent)?;
        let is = (
            text(document, "/metadata/uid"),
            text(document, "/metadata/resourceVersion"),
        );
        if at.is_some_and(|wanted| wanted != is) {
            return Err(Refused::Conflict);
        }
        self.patch(
            sort,
            name,
            json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }),
        )
        .map(drop)
    }

    /// Performs a write of a machine's plan. The machine's own are made at `version`.
    pub(super) fn perform(
        &mut self,
        machine: &str,
        version: &str,
        action: &Action,
    ) -> Result<Option<(Sort, Value)>, Refused> {
        self.writes.push(format!("{machine}: {action:?}"));
        let placed = |sort| move |document: Option<Value>| document.map(|document| (sort, document));
        match action {
            Action::PatchMachine(patch) => {
                let mut change = patch.clone().into_document();
                patch::apply(&json!({ "metadata": { "resourceVersion": version } }), &mut change);
                self.patch(Sort::Machine, machine, change).map(placed(Sort::Machine))
            }
            Action::PatchHost { host, patch, .. } => self
                .patch(Sort::Host, host, patch.clone().into_document())
                .map(placed(Sort::Host)),
            Action::CreateClaim(claim) => {
                self.create(Sort::Claim, machine, serde_json::to_value(claim).unwrap())?;
                Ok(self
                    .get(Sort::Claim, machine)
                    .cloned()
                    .map(|document| (Sort::Claim, document)))
            }
            Action::PatchClaim { claim, patch } => self
                .patch(Sort::Claim, claim, patch.clone().into_document())
                .map(placed(Sort::Claim)),
            Action::DeleteClaim { claim, uid, version } => self
                .delete(Sort::Claim, claim, Some((uid, version.as_str())))
                .map(|()| None),
            Action::LabelSecret { .. } | Action::AdoptNode { .. } => Ok(None),
        }
    }

    /// What no write may do.
    fn judge(&mut self, sort: Sort, name: &str, before: &Value, after: &Value, is_gone: bool) {
        let mut wrong = Vec::new();
        match sort {
            Sort::Host => self.judge_host(name, before, after, &mut wrong),
            Sort::Machine if is_gone && !self.forced.contains(name) => {
                let runs = |(_, host): &(&str, &Value)| consumer(host) == name && has_image(host);
                if let Some((host, _)) = self.all(Sort::Host).find(runs) {
                    wrong.push(format!("{name} went and left {host} running"));
                }
            }
            Sort::Claim if is_ours(before) && (is_gone || !is_ours(after)) => {
                let runs = |(_, host): &(&str, &Value)| consumer(host) == name && has_image(host);
                if self.all(Sort::Host).any(|host| runs(&host)) {
                    wrong.push(format!("the data of {name} were given back while its host ran"));
                }
            }
            Sort::Machine | Sort::Claim | Sort::Data => {}
        }
        self.wrong.extend(wrong);
    }

    fn judge_host(&self, name: &str, before: &Value, after: &Value, wrong: &mut Vec<String>) {
        let (old, new) = (consumer(before), consumer(after));
        if !old.is_empty() && !new.is_empty() && old != new {
            wrong.push(format!("{name} went from {old} to {new}"));
        }
        if !has_image(before) && has_image(after) && !new.is_empty() {
            let runs = |(other, host): &(&str, &Value)| *other != name && consumer(host) == new && has_image(host);
            let others = self.all(Sort::Host).filter(runs);
            wrong.extend(others.map(|(other, _)| format!("{new} was put on {name} and runs on {other}")));
        }
        if !old.is_empty()
            && new.is_empty()
            && (has_image(after) || text(before, "/status/provisioning/state") != "available")
        {
            wrong.push(format!("{name} lost its consumer while it ran something"));
        }
        if !has_image(before) && has_image(after) {
            let wants = self
                .get(Sort::Machine, new)
                .map(|machine| text(machine, "/spec/image/url"));
            if wants.is_some_and(|wants| wants != text(after, "/spec/image/url")) {
                wrong.push(format!("{name} was told to run what an earlier {new} wanted"));
            }
        }
        let lacks_data = !self.is_bare && after["spec"]["metaData"].is_null();
        if has_image(after) && (lacks_data || after["spec"]["userData"].is_null()) {
            wrong.push(format!("{name} has an image without its data"));
        }
        if has_image(before) && has_image(after) && before["spec"] != after["spec"] {
            wrong.push(format!("{name} was told something else while it ran"));
        }
        if has_image(before) && !has_image(after) {
            let machine = self.get(Sort::Machine, old);
            if machine.is_some_and(|machine| !is_deleting(machine)) {
                wrong.push(format!("{name} was deprovisioned under {old}, which lives"));
            }
            if machine.is_some_and(|machine| {
                text(
                    machine,
                    "/metadata/annotations/clusterctl.cluster.x-k8s.io~1delete-for-move",
                ) == "yes"
            }) {
                wrong.push(format!("{name} was deprovisioned under {old}, which lives elsewhere"));
            }
            if machine.is_none() {
                wrong.push(format!("{name} was deprovisioned for a machine that is gone"));
            }
        }
        self.judge_start(name, before, after, wrong);
    }

    /// What a host is told to run.
    fn judge_start(&self, name: &str, before: &Value, after: &Value, wrong: &mut Vec<String>) {
        let new = consumer(after);
        // What booted with an earlier machine's data is not this machine.
        if !self.is_bare && !has_image(before) && has_image(after) && !new.is_empty() {
            let claim = self
                .get(Sort::Claim, new)
                .map(|claim| text(claim, "/metadata/uid").to_owned());
            let data = text(after, "/spec/metaData/name");
            let owner = self.get(Sort::Data, data.trim_end_matches("-metadata"));
            let owner = owner.map(|data| text(data, "/metadata/ownerReferences/0/uid").to_owned());
            let machine = self
                .get(Sort::Machine, new)
                .map(|machine| text(machine, "/metadata/uid").to_owned());
            let of = self
                .get(Sort::Claim, new)
                .map(|claim| text(claim, "/metadata/ownerReferences/0/uid").to_owned());
            let has_own = self
                .get(Sort::Machine, new)
                .is_some_and(|machine| !machine["spec"]["metaData"].is_null());
            if machine.is_some() && !has_own && (of != machine || owner != claim) {
                wrong.push(format!("{name} got data that are not those of {new}"));
            }
        }
    }
}

/// The host that a machine says it has.
pub(super) fn associated(machine: &Value) -> &str {
    let annotations = &machine["metadata"]["annotations"];
    annotations[HOST_ANNOTATION]
        .as_str()
        .unwrap_or_default()
        .rsplit('/')
        .next()
        .unwrap_or_default()
}
