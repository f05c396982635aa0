//! Finds the Node of a machine in its workload cluster.
//!
//! A Node matches by its provider ID; without one, by the label with the UID of its host; when the bootstrap method is
//! unknown, by its host name. Nodes of other machines are not an error (differs: `node-strangers`).
//!
//! The API server accepts only one write of a Node's provider ID, so it is set once. This module neither writes nor
//! watches Nodes.

use std::borrow::Borrow;

use metal3_api::infrastructure::conditions::machine::DELETE_NODE;
use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_capi::workload::Node;
use metal3_domain::ids::Uid;
use metal3_domain::names::{HostKey, MachineKey, NameError, Namespace, ObjectName};
use metal3_domain::provider_id::{MachineProviderId, NodeRelation, ProviderId};
use thiserror::Error;

/// Nodes that an error names. A workload cluster decides how many there are.
const NAMED: usize = 3;

/// The machine whose Node is searched.
#[derive(Debug, Clone, Copy)]
pub struct NodeQuery<'a> {
    /// The provider ID to assign to the machine.
    pub id: &'a MachineProviderId,
    /// The provider ID in the machine's spec; empty for none.
    pub stated: &'a str,
    /// UID of its host.
    pub host_uid: Option<&'a Uid>,
    /// Host names of its host.
    pub hostnames: &'a [&'a str],
    /// Which properties identify a Node without a provider ID.
    pub trust: Trust,
}

/// The properties that may identify a Node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Its provider ID alone: an external cloud provider writes it.
    ProviderId,
    /// The label too: the kubelet arguments of the bootstrap provider write it.
    Label,
    /// The host name too: how the kubelet starts is unknown.
    Hostname,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The Node of the machine.
    Node {
        /// Its name.
        name: String,
        /// Its provider ID, which the machine gets too.
        provider_id: String,
    },
    /// The Node of the machine, which has no provider ID yet.
    Adopt {
        /// Its name.
        name: String,
    },
    /// No Node matches yet.
    None,
}

/// Why no Node can be matched to the machine.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodeError {
    /// Several Nodes match.
    #[error("the Nodes {}{} have the same {by}; {}s that are out of date", names.join(", "), if *more { " and others" } else { "" }, DELETE_NODE)]
    Several {
        /// The property that they share.
        by: &'static str,
        /// The names of the first ones.
        names: Vec<String>,
        /// Whether there are others. Their number would change the condition with each of them.
        more: bool,
    },
    /// The Node has the provider ID of another machine.
    #[error(
        "Node {name} has the {by} of this machine and {}; {}, or correct its kubelet's --provider-id",
        named(found.as_deref()),
        DELETE_NODE
    )]
    OtherMachine {
        /// The Node.
        name: String,
        /// The property by which it matches.
        by: &'static str,
        /// Its provider ID, if it is one of this provider's. Any other text is not repeated: it is a tenant's.
        found: Option<String>,
    },
    /// The machine has no host.
    #[error("the machine has no annotation metal3.io/BareMetalHost; the controller sets it when it claims a host")]
    NoHost,
    /// The host annotation names no host in the machine's namespace.
    #[error("the annotation metal3.io/BareMetalHost is {found:?}; it must be {namespace}/<host>")]
    Host {
        /// Its value.
        found: String,
        /// Namespace of the machine.
        namespace: String,
    },
    /// The machine's own name is invalid.
    #[error("the machine's name cannot be used: {0}")]
    Name(#[from] NameError),
}

fn named(found: Option<&str>) -> String {
    found.map_or_else(
        || "the provider ID of another provider".to_owned(),
        |id| format!("the provider ID {id}"),
    )
}

/// The provider ID of a machine, derived from its host.
///
/// # Errors
/// When the machine has no host, or a host of another namespace.
pub fn provider_id(machine: &Metal3Machine) -> Result<MachineProviderId, NodeError> {
    let namespace = machine.metadata.namespace.clone().unwrap_or_default();
    let name = machine.metadata.name.clone().unwrap_or_default();
    let machine_key = MachineKey::new(Namespace::parse(namespace.as_str())?, ObjectName::parse(name)?);
    let annotations = machine.metadata.annotations.as_ref();
    let text = annotations.and_then(|annotations| annotations.get(HOST_ANNOTATION));
    let text = text.filter(|text| !text.is_empty()).ok_or(NodeError::NoHost)?;
    let host = HostKey::parse(text).ok();
    host.and_then(|host| MachineProviderId::of(&machine_key, &host))
        .ok_or_else(|| NodeError::Host {
            found: text.clone(),
            namespace,
        })
}

/// Finds the Node of a machine.
///
/// # Errors
/// When several Nodes match, or the match has the provider ID of another machine.
pub fn find<N: Borrow<Node>>(query: &NodeQuery<'_>, nodes: &[N]) -> Result<Found, NodeError> {
    let id = query.id.to_string();
    let has_id = |node: &Node| {
        let stated = !query.stated.is_empty() && node.provider_id == query.stated;
        stated || node.provider_id == id
    };
    if let Some(node) = find_one(nodes, "provider ID", has_id)? {
        return Ok(found(node));
    }
    let host_uid = query.host_uid.filter(|_| query.trust >= Trust::Label).map(Uid::as_str);
    let has_label = |node: &Node| host_uid == Some(node.host_uid.as_str());
    if let Some(node) = find_one(nodes, "label metal3.io/uuid", has_label)? {
        return check_provider_id(query, node, "label metal3.io/uuid");
    }
    let has_name = |node: &Node| {
        let hostname = node.hostname.as_str();
        query.trust >= Trust::Hostname && !hostname.is_empty() && query.hostnames.contains(&hostname)
    };
    match find_one(nodes, "host name", has_name)? {
        Some(node) => check_provider_id(query, node, "host name"),
        None => Ok(Found::None),
    }
}

/// Checks the provider ID of a Node that matches by another property.
fn check_provider_id(query: &NodeQuery<'_>, node: &Node, by: &'static str) -> Result<Found, NodeError> {
    match query.id.compare(&node.provider_id, query.host_uid) {
        NodeRelation::Unset => Ok(Found::Adopt {
            name: node.name.clone(),
        }),
        // The older form contains the host's UID. A Node's provider ID is immutable, so the machine adopts it.
        NodeRelation::Own | NodeRelation::OwnByHostUid => Ok(found(node)),
        NodeRelation::SameHost | NodeRelation::OtherHost | NodeRelation::Foreign => Err(NodeError::OtherMachine {
            name: node.name.clone(),
            by,
            found: ProviderId::parse(&node.provider_id).ok().map(|id| id.to_string()),
        }),
    }
}

fn found(node: &Node) -> Found {
    Found::Node {
        name: node.name.clone(),
        provider_id: node.provider_id.clone(),
    }
}

/// The only Node that matches, if any.
fn find_one<'n, N: Borrow<Node>>(
    nodes: &'n [N],
    by: &'static str,
    fits: impl Fn(&Node) -> bool,
) -> Result<Option<&'n Node>, NodeError> {
    let fitting: Vec<&Node> = nodes.iter().map(Borrow::borrow).filter(|node| fits(node)).collect();
    match fitting.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only)),
        several => {
            let names = several.iter().take(NAMED).map(|node| node.name.clone()).collect();
            let more = several.len() > NAMED;
            Err(NodeError::Several { by, names, more })
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "metal3://metal/rack1/worker";
    const UID: &str = "c0ffee00-1111-4222-8333-444455556666";

    /// Name, provider ID, label, host name.
    type Row<'a> = (&'a str, &'a str, &'a str, &'a str);

    pub(crate) fn nodes(rows: &[Row<'_>]) -> Vec<Node> {
        let node = |(name, provider_id, host_uid, hostname): &Row<'_>| Node {
            name: (*name).to_owned(),
            provider_id: (*provider_id).to_owned(),
            host_uid: (*host_uid).to_owned(),
            hostname: (*hostname).to_owned(),
            ..Node::default()
        };
        rows.iter().map(node).collect()
    }

    fn find_with(rows: &[Row<'_>], trust: Trust, stated: &str) -> Result<Found, NodeError> {
        let id = MachineProviderId::new(
            Namespace::parse("metal").unwrap(),
            ObjectName::parse("rack1").unwrap(),
            ObjectName::parse("worker").unwrap(),
        );
        let uid = Uid::parse(UID).unwrap();
        let query = NodeQuery {
            id: &id,
            stated,
            host_uid: Some(&uid),
            hostnames: &["h1", "h1.example.com"],
            trust,
        };
        find(&query, &nodes(rows))
    }

    fn node(name: &str, provider_id: &str) -> Found {
        Found::Node {
            name: name.into(),
            provider_id: provider_id.into(),
        }
    }

    fn adopt(name: &str) -> Found {
        Found::Adopt { name: name.into() }
    }

    #[test]
    fn node_is_found_by_provider_id_then_label_then_host_name() {
        let (label, hostname, all) = (("l", "", UID, ""), ("h", "", "", "h1"), Trust::Hostname);
        for (rows, expected) in [
            (vec![("p", ID, "", ""), label, hostname], node("p", ID)),
            (vec![label, hostname], adopt("l")),
            (vec![hostname], adopt("h")),
            (vec![("l", ID, UID, ""), hostname], node("l", ID)),
            (vec![("n", "", "other", "h2"), ("m", "", "", "")], Found::None),
            (vec![], Found::None),
        ] {
            assert_eq!(find_with(&rows, all, ""), Ok(expected), "{rows:?}");
        }
    }

    #[test]
    fn untrusted_properties_are_ignored() {
        let rows = [("l", "", UID, ""), ("h", "", "", "h1")];
        assert_eq!(find_with(&rows, Trust::ProviderId, ""), Ok(Found::None));
        assert_eq!(find_with(&rows[1..], Trust::Label, ""), Ok(Found::None));
        assert_eq!(find_with(&rows, Trust::Label, ""), Ok(adopt("l")));
    }

    #[test]
    fn nodes_of_other_machines_are_no_error() {
        let own = ("p", ID, "", "");
        let others = [
            ("a", "aws:///x", "", ""),
            ("b", "aws:///x", "", ""),
            ("c", "metal3://metal/rack1/older", "", ""),
        ];
        let mut rows = others.to_vec();
        assert_eq!(find_with(&rows, Trust::Hostname, ""), Ok(Found::None));
        rows.push(own);
        assert_eq!(find_with(&rows, Trust::ProviderId, ""), Ok(node("p", ID)));
    }

    #[test]
    fn node_with_the_older_provider_id_is_adopted_unchanged() {
        let older = format!("metal3://{UID}");
        assert_eq!(
            find_with(&[("l", &older, UID, "")], Trust::Label, ""),
            Ok(node("l", &older))
        );
        assert_eq!(
            find_with(&[("p", &older, "", "")], Trust::ProviderId, &older),
            Ok(node("p", &older))
        );
        assert_eq!(
            find_with(&[("p", &older, "", "")], Trust::Hostname, ""),
            Ok(Found::None),
            "no other property links it to the host"
        );
    }

    #[test]
    fn several_nodes_or_another_machines_node_are_an_error_with_names() {
        let several = |by, names: [&str; 2]| {
            let names = names.map(ToOwned::to_owned).to_vec();
            Err(NodeError::Several { by, names, more: false })
        };
        let ids = [("a", ID, "", ""), ("b", ID, "", "")];
        assert_eq!(
            find_with(&ids, Trust::ProviderId, ""),
            several("provider ID", ["a", "b"])
        );
        let labels = [("a", "", UID, ""), ("b", "", UID, "")];
        assert_eq!(
            find_with(&labels, Trust::Label, ""),
            several("label metal3.io/uuid", ["a", "b"])
        );
        let names = [("a", "", "", "h1"), ("b", "", "", "h1.example.com")];
        assert_eq!(find_with(&names, Trust::Hostname, ""), several("host name", ["a", "b"]));
        for (found, shown) in [
            ("metal3://metal/rack1/older", "metal3://metal/rack1/older"),
            ("metal3://metal/rack2/worker", "metal3://metal/rack2/worker"),
            ("aws:///x", "the provider ID of another provider"),
            ("a text of a tenant", "the provider ID of another provider"),
        ] {
            let other = find_with(&[("l", found, UID, "")], Trust::Label, "").unwrap_err();
            assert!(other.to_string().contains(shown), "{other}");
            assert!(shown == found || !other.to_string().contains(found), "{other}");
        }
    }

    #[test]
    fn error_about_many_nodes_has_a_few_names() {
        let rows = vec![("node", ID, "", ""); 10_000];
        let error = find_with(&rows, Trust::ProviderId, "").unwrap_err();
        let expected =
            "the Nodes node, node, node and others have the same provider ID; delete the Nodes that are out of date";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn provider_id_requires_a_host_of_the_same_namespace() {
        let machine = |annotations| -> Metal3Machine {
            let metadata = json!({ "name": "worker", "namespace": "metal", "annotations": annotations });
            serde_json::from_value(json!({ "metadata": metadata })).unwrap()
        };
        let of = |annotations| provider_id(&machine(annotations));
        assert_eq!(
            of(json!({ "metal3.io/BareMetalHost": "metal/rack1" }))
                .unwrap()
                .to_string(),
            ID
        );
        assert_eq!(of(json!({})), Err(NodeError::NoHost));
        assert_eq!(of(json!({ "metal3.io/BareMetalHost": "" })), Err(NodeError::NoHost));
        for text in ["other/rack1", "rack1", "metal/rack1/x", "metal/"] {
            let found = of(json!({ "metal3.io/BareMetalHost": text }));
            assert!(matches!(found, Err(NodeError::Host { .. })), "{text}");
        }
    }
}
