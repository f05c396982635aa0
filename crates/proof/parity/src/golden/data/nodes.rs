//! `naming/provider_id`: the provider ID of a machine, and its Node.

use metal3_api::cluster::{Bootstrap, Machine};
use metal3_api::infrastructure::AddressType;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_capi::workload::Node;
use metal3_capm3::node::{self, Found, NodeQuery, Trust};
use metal3_domain::ids::Uid;
use metal3_domain::provider_id::MachineProviderId;
use serde_json::{Map, Value, json};

use super::objects::CaseObjects;
use super::rules;
use crate::golden::case::Case;
use crate::golden::group::Group;
use crate::values::{list, text};

pub(super) const GROUP: Group = Group {
    name: "naming/provider_id",
    answer,
    expectation,
    rules: rules::PROVIDER_ID,
};

fn answer(case: &Case) -> Value {
    let stored = CaseObjects::of(case);
    let Some(mut machine) = stored.all::<Metal3Machine>().pop() else {
        return json!("no Metal3Machine");
    };
    let operation = text(&case.input, "/operation");
    let mut shown = Map::new();
    let mut nodes: Map<String, Value> = list(&case.input, "/workloadClusterNodes")
        .map(|node| {
            (
                text(node, "/metadata/name").to_owned(),
                text(node, "/spec/providerID").into(),
            )
        })
        .collect();
    let mut provisioned = false;
    match (node::provider_id(&machine), operation) {
        (Err(_), "exists") => drop(shown.insert("done".into(), false.into())),
        (Err(_), _) => {
            shown.insert("error".into(), true.into());
        }
        (Ok(id), "default") => machine.spec.provider_id = Some(id.to_string()),
        (Ok(id), _) => {
            let found = look(case, &stored, &machine, &id);
            let failed = found.is_err();
            let known = match found {
                Ok(Found::Node { name, provider_id }) => Some((name, provider_id)),
                Ok(Found::Adopt { name }) => Some((name, id.to_string())),
                Ok(Found::None) | Err(_) => None,
            };
            match operation {
                "exists" => {
                    let is_known = known.is_some() && machine.spec.provider_id.is_some();
                    shown.insert("done".into(), is_known.into());
                }
                "nodeLabel" => drop(shown.insert("done".into(), known.is_some().into())),
                _ => {}
            }
            match known.filter(|_| operation != "exists") {
                Some((name, provider_id)) => {
                    nodes.insert(name, provider_id.clone().into());
                    if stated(&machine).is_empty() {
                        machine.spec.provider_id = Some(provider_id);
                        provisioned = true;
                    }
                }
                None if operation == "exists" => {}
                None => {
                    let how = how_without_node(failed, operation, bootstrap(&stored).config_ref.is_some());
                    shown.extend(how.map(|how| (how.to_owned(), true.into())));
                }
            }
        }
    }
    shown.insert(
        "machineProviderID".into(),
        machine.spec.provider_id.unwrap_or_default().into(),
    );
    shown.insert("nodeProviderIDs".into(), nodes.into());
    shown.insert("provisioned".into(), provisioned.into());
    shown.into()
}

/// How an operation without a Node ends. An error by label is final; by another property it is looked at again with the
/// next change of a Node, which the recordings call transient. Without a bootstrap provider no label is expected.
fn how_without_node(failed: bool, operation: &str, has_bootstrap_provider: bool) -> Option<&'static str> {
    match (failed, operation) {
        (true, "nodeLabel") => Some("error"),
        (false, "nodeLabel") if !has_bootstrap_provider => None,
        _ => Some("waits"),
    }
}

fn bootstrap(stored: &CaseObjects) -> Bootstrap {
    stored.all::<Machine>().pop().unwrap_or_default().spec.bootstrap
}

/// The provider ID of a machine; empty for none.
fn stated(machine: &Metal3Machine) -> &str {
    machine.spec.provider_id.as_deref().unwrap_or_default()
}

fn look(
    case: &Case,
    stored: &CaseObjects,
    machine: &Metal3Machine,
    id: &MachineProviderId,
) -> Result<Found, node::NodeError> {
    let host = stored.all::<BareMetalHost>().pop().unwrap_or_default();
    let host_uid = host.metadata.uid.and_then(|uid| Uid::parse(uid).ok());
    let trust = match text(&case.input, "/operation") {
        "nodeLabel" => Trust::Label,
        "hostname" => Trust::Hostname,
        _ => Trust::ProviderId,
    };
    let addresses = machine.status.addresses.iter();
    let hostnames = addresses.filter(|address| address.type_ == AddressType::Hostname);
    let hostnames: Vec<&str> = hostnames.map(|address| address.address.as_str()).collect();
    let nodes: Vec<Node> = list(&case.input, "/workloadClusterNodes")
        .map(|node| Node {
            name: text(node, "/metadata/name").to_owned(),
            provider_id: text(node, "/spec/providerID").to_owned(),
            host_uid: text(node, "/metadata/labels/metal3.io~1uuid").to_owned(),
            hostname: text(node, "/metadata/labels/kubernetes.io~1hostname").to_owned(),
            ..Node::default()
        })
        .collect();
    let wanted = NodeQuery {
        id,
        stated: stated(machine),
        host_uid: host_uid.as_ref(),
        hostnames: &hostnames,
        trust,
    };
    node::find(&wanted, &nodes)
}

/// A transient error is a wait, any other one is an error.
fn expectation(case: &Case) -> Value {
    let mut expect = super::expectation(case);
    if let Value::Object(members) = &mut expect
        && members.remove("transient") == Some(Value::Bool(true))
    {
        members.remove("error");
        members.insert("waits".into(), true.into());
    }
    expect
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLDER: &str = "metal3://c0ffee00-1111-4222-8333-444455556666";

    /// The answer for a machine with a provider ID and one Node that has only the older form.
    fn answered(operation: &str, stated: &str) -> Value {
        let annotations = json!({ "metal3.io/BareMetalHost": "metal/rack1" });
        let machine = json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2",
            "kind": "Metal3Machine",
            "metadata": { "name": "worker", "namespace": "metal", "annotations": annotations },
            "spec": { "image": { "url": "http://i/a" }, "providerID": stated },
        });
        let node = json!({ "metadata": { "name": "n1" }, "spec": { "providerID": OLDER } });
        answer(&Case {
            group: "naming".into(),
            file: "provider_id".into(),
            name: "older form".into(),
            input: json!({ "objects": [machine], "operation": operation, "workloadClusterNodes": [node] }),
            expect: Value::Null,
        })
    }

    #[test]
    fn a_node_is_known_by_the_id_that_its_machine_states() {
        assert_eq!(answered("exists", OLDER)["done"], true);
        assert_eq!(answered("exists", "metal3://metal/rack1/worker")["done"], false);
    }

    /// The answer for a machine with or without bootstrap provider and these labelled Nodes.
    fn labelled(ids: &[&str], has_bootstrap_provider: bool) -> Value {
        let uid = "c0ffee00-1111-4222-8333-444455556666";
        let config = has_bootstrap_provider.then(|| json!({ "apiGroup": "b", "kind": "K", "name": "k" }));
        let objects = json!([
            {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2", "kind": "Metal3Machine",
                "metadata": { "name": "worker", "namespace": "metal", "annotations": { "metal3.io/BareMetalHost": "metal/rack1" } },
                "spec": { "image": { "url": "http://i/a" } },
            },
            {
                "apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
                "metadata": { "name": "rack1", "namespace": "metal", "uid": uid }, "spec": { "online": true },
            },
            {
                "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "metadata": { "name": "m", "namespace": "metal" },
                "spec": { "clusterName": "c", "bootstrap": { "configRef": config }, "infrastructureRef": { "apiGroup": "g", "kind": "K", "name": "worker" } },
            },
        ]);
        let node = |(number, id): (usize, &&str)| json!({ "metadata": { "name": format!("n{number}"), "labels": { "metal3.io/uuid": uid } }, "spec": { "providerID": id } });
        let nodes: Vec<Value> = ids.iter().enumerate().map(node).collect();
        answer(&Case {
            group: "naming".into(),
            file: "provider_id".into(),
            name: "labelled".into(),
            input: json!({ "objects": objects, "operation": "nodeLabel", "workloadClusterNodes": nodes }),
            expect: Value::Null,
        })
    }

    #[test]
    fn an_error_is_no_wait_and_no_node_is_one_only_with_a_bootstrap_provider() {
        for (ids, error, waits, done) in [
            (vec!["", ""], true, false, false),
            (vec!["aws:///x"], true, false, false),
            (vec![], false, true, false),
            (vec![""], false, false, true),
        ] {
            let shown = labelled(&ids, true);
            let is = |member: &str| shown.get(member) == Some(&Value::Bool(true));
            assert_eq!((is("error"), is("waits"), is("done")), (error, waits, done), "{ids:?}");
        }
        assert_eq!(labelled(&[], false).get("waits"), None);
    }

    #[test]
    fn a_node_keeps_the_id_it_has() {
        let shown = answered("cloudProvider", OLDER);
        assert_eq!(shown["nodeProviderIDs"], json!({ "n1": OLDER }));
        assert_eq!(shown["machineProviderID"], OLDER);
        assert_eq!(shown.get("waits"), None);
    }
}
