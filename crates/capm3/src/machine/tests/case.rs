//! A machine with its related objects as input of the plan, and a summary of the plan's writes.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use metal3_api::cluster::{Cluster, Machine};
use metal3_api::infrastructure::v1beta2::{
    Metal3Cluster, Metal3Data, Metal3DataClaim, Metal3Machine, Metal3MachineTemplate,
};
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_runtime::patch::{MergePatch, apply};
use metal3_runtime::plan::{Observed, UnknownReason};
use serde_json::{Value, json};

use super::api_server::NAMESPACE;
use super::simulation::{
    at, cluster, cluster_key, host_document, machine_document, metal3_cluster, observed, owner, read,
};
use crate::cluster::zones::templates_of;
use crate::machine::action::{Action, Plan};
use crate::machine::facts::{Facts, Hosts, LabelFacts, Settings, is_machine, named};
use crate::machine::plan::{plan, plan_under};
use crate::machine::reuse::ObservedSet;
use crate::machine::rules::Rules;
use crate::node::tests::nodes;

/// The inputs of a plan, to be changed by a test.
pub(super) struct Case {
    pub(super) machine: Metal3Machine,
    pub(super) confirmed: bool,
    pub(super) owner: Option<Machine>,
    pub(super) cluster: Option<Cluster>,
    pub(super) metal3_clusters: Vec<Metal3Cluster>,
    pub(super) clusters_are_live: bool,
    pub(super) unreadable_cluster: Option<&'static str>,
    /// A data template that a zone names.
    pub(super) bad_template: Option<(&'static str, Observed<()>)>,
    pub(super) template: Observed<Arc<Metal3MachineTemplate>>,
    pub(super) template_is_live: bool,
    pub(super) asks_for_reuse: bool,
    pub(super) set: ObservedSet,
    pub(super) hosts: Vec<BareMetalHost>,
    pub(super) unreadable: Option<&'static str>,
    pub(super) is_live: bool,
    pub(super) claim: Option<Metal3DataClaim>,
    pub(super) data: Option<Metal3Data>,
    /// `None` when they are not read.
    pub(super) nodes: Option<Vec<(&'static str, &'static str, &'static str, &'static str)>>,
    pub(super) labels: LabelFacts,
    pub(super) settings: Settings,
    pub(super) rules: Rules,
    pub(super) owner_refused: Option<String>,
}

pub(super) fn document(mut base: Value, name: &str, patch: Value) -> Value {
    let meta = json!({ "name": name, "namespace": NAMESPACE, "uid": format!("uid-{name}"), "resourceVersion": "5", "generation": 1 });
    apply(&json!({ "metadata": meta }), &mut base);
    apply(&patch, &mut base);
    base
}

pub(super) const FINALIZER: &str = "metal3machine.infrastructure.cluster.x-k8s.io";
pub(super) const UID: &str = "c0ffee00-1111-4222-8333-444455556666";

/// The patch of a host without image and data.
pub(super) fn blank() -> Value {
    let spec = json!({ "online": false, "image": null, "userData": null, "metaData": null });
    json!({ "spec": spec, "status": { "provisioning": { "state": "available" } } })
}

pub(super) const fn unread_labels() -> LabelFacts {
    LabelFacts {
        node: Observed::Unknown(UnknownReason::NotRead),
        live: Observed::Unknown(UnknownReason::NotRead),
        is_busy: false,
        copied: None,
        since_copy: Duration::ZERO,
    }
}

impl Case {
    /// A machine whose prerequisites are met.
    pub(super) fn new() -> Self {
        Self {
            machine: read(&document(machine_document(), "m0", json!({}))),
            confirmed: false,
            owner: Some(owner("m0")),
            cluster: Some(cluster(false)),
            metal3_clusters: vec![metal3_cluster()],
            clusters_are_live: true,
            unreadable_cluster: None,
            bad_template: None,
            template: Observed::Absent,
            template_is_live: false,
            asks_for_reuse: false,
            set: Observed::Unknown(UnknownReason::NotRead),
            hosts: vec![read(&document(host_document(), "h0", json!({})))],
            unreadable: None,
            is_live: false,
            claim: None,
            data: None,
            nodes: Some(Vec::new()),
            labels: unread_labels(),
            settings: Settings::default(),
            rules: Rules::ALL,
            owner_refused: None,
        }
    }

    /// A machine with a provisioned host.
    pub(super) fn running() -> Self {
        let image = json!({ "url": "http://192.0.2.9/os.raw" });
        let data = json!({ "name": "data-m0-metadata", "namespace": NAMESPACE });
        Self::new()
            .machine(json!({
                "metadata": { "finalizers": [FINALIZER], "annotations": { "metal3.io/BareMetalHost": "metal/h0" } },
                "status": { "renderedData": { "name": "data-m0" }, "userData": { "name": "m0-boot", "namespace": NAMESPACE } },
            }))
            .host(json!({
                "metadata": { "uid": UID, "labels": { "cluster.x-k8s.io/cluster-name": "edge" }, "annotations": { "clusterctl.cluster.x-k8s.io/block-move": "" } },
                "spec": {
                    "online": true, "image": image, "userData": { "name": "m0-boot", "namespace": NAMESPACE }, "metaData": data,
                    "consumerRef": { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "Metal3Machine", "name": "m0", "namespace": NAMESPACE },
                },
                "status": { "provisioning": { "state": "provisioned" } },
            }))
    }

    pub(super) fn machine(mut self, patch: Value) -> Self {
        let mut document = serde_json::to_value(&self.machine).unwrap();
        apply(&patch, &mut document);
        self.machine = read(&document);
        self
    }

    pub(super) fn host(mut self, patch: Value) -> Self {
        let mut document = serde_json::to_value(&self.hosts[0]).unwrap();
        apply(&patch, &mut document);
        self.hosts[0] = read(&document);
        self
    }

    pub(super) fn metal3_cluster(mut self, patch: Value) -> Self {
        let mut document = serde_json::to_value(&self.metal3_clusters[0]).unwrap();
        apply(&patch, &mut document);
        self.metal3_clusters[0] = read(&document);
        self
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }

    pub(super) fn deleting(self) -> Self {
        self.machine(json!({ "metadata": { "deletionTimestamp": "2026-01-01T00:00:00Z" } }))
    }

    /// All that zones name exist, but those that a test made missing or unreadable.
    fn zone_templates(&self) -> BTreeMap<String, Observed<()>> {
        let takes = self.machine.spec.takes_zone_data();
        let named = self.metal3_clusters.iter().filter(|_| takes).flat_map(templates_of);
        let state = |name: &str| match self.bad_template {
            Some((bad, ref state)) if bad == name => state.clone(),
            _ => Observed::Present(()),
        };
        named.map(|name| (name.to_owned(), state(name))).collect()
    }

    pub(super) fn facts(&self) -> Facts {
        let all: Vec<_> = self.hosts.iter().cloned().map(Arc::new).collect();
        let is_claimed = |host: &&Arc<BareMetalHost>| {
            let consumer = host.spec.consumer_ref.as_ref();
            consumer.is_some_and(|one| is_machine(one, NAMESPACE, "m0")) && self.unreadable.is_none()
        };
        let called = named(&self.machine);
        let found = all.iter().find(|host| host.metadata.name.as_deref() == called);
        Facts {
            machine: Some(Arc::new(self.machine.clone())),
            confirmed: self.confirmed,
            owner: observed(self.owner.as_ref()),
            cluster: observed(self.cluster.as_ref()),
            cluster_key: cluster_key(),
            metal3_clusters: self.metal3_clusters.iter().cloned().map(Arc::new).collect(),
            metal3_clusters_are_live: self.clusters_are_live,
            zone_templates: self.zone_templates(),
            unreadable_cluster: self.unreadable_cluster.map(ToOwned::to_owned),
            template: self.template.clone(),
            template_is_live: self.template_is_live,
            asks_for_reuse: self.asks_for_reuse,
            has_namesake: false,
            owner_refused: self.owner_refused.clone(),
            set: self.set.clone(),
            hosts: Hosts {
                named: match self.unreadable {
                    Some(why) if called.is_some() => Observed::Unknown(UnknownReason::Unreadable(why.to_owned())),
                    _ => Observed::from(found.cloned()),
                },
                named_is_live: self.is_live,
                claimed: all.iter().filter(is_claimed).cloned().collect(),
                all,
                unreadable: self.unreadable.map(|_| "h9".to_owned()),
            },
            claim: observed(self.claim.as_ref()),
            data: observed(self.data.as_ref()),
            nodes: match &self.nodes {
                Some(rows) => Observed::Present(nodes(rows).into_iter().map(Arc::new).collect()),
                None => Observed::Unknown(UnknownReason::NotRead),
            },
            labels: self.labels.clone(),
            settings: self.settings,
            now: at(0),
        }
    }

    pub(super) fn decide(&self) -> Plan {
        let facts = self.facts();
        let decided = plan_under(&facts, &self.rules);
        assert!(
            self.rules != Rules::ALL || decided == plan(&facts),
            "planning twice gives different plans"
        );
        decided
    }
}

/// Each write in a word or two.
pub(super) fn writes(plan: &Plan) -> Vec<String> {
    let word = |action: &Action| match action {
        Action::PatchMachine(patch) => format!("machine {}", members(&patch.clone().into_document())),
        Action::PatchHost { host, change, .. } => format!("{change:?} {host}"),
        Action::LabelSecret { cluster, .. } => format!("secret {cluster:?}"),
        Action::CreateClaim(_) => "create claim".to_owned(),
        Action::PatchClaim { .. } => "patch claim".to_owned(),
        Action::DeleteClaim { .. } => "delete claim".to_owned(),
        Action::AdoptNode { node, provider_id } => format!("{node} is {provider_id}"),
        Action::CopyLabels { patch, copied } => {
            format!(
                "labels of {}: {}",
                copied.node,
                patch.clone().map_or(json!({}), MergePatch::into_document)["metadata"]["labels"]
            )
        }
    };
    plan.actions.iter().map(word).collect()
}

pub(super) fn members(patch: &Value) -> String {
    let inner = patch
        .as_object()
        .unwrap()
        .values()
        .filter_map(Value::as_object)
        .flat_map(|object| object.keys().cloned());
    inner.collect::<Vec<_>>().join(",")
}

pub(super) fn host_patch(plan: &Plan) -> Value {
    let of_host = |action: &Action| match action {
        Action::PatchHost { patch, .. } => Some(patch.clone().into_document()),
        _ => None,
    };
    plan.actions.iter().find_map(of_host).unwrap()
}

/// Reason and message of a condition.
pub(super) fn condition_of(plan: &Plan, condition_type: &str) -> (String, String) {
    let conditions = &plan.status.as_ref().unwrap().status.conditions;
    let found = conditions
        .iter()
        .find(|condition| condition.type_ == condition_type)
        .unwrap();
    (found.reason.clone(), found.message.clone())
}
