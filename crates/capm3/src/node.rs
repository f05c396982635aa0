//! Which Node of the workload cluster is a machine's.
//!
//! A Node is known by its provider ID; where it has none yet, by the label with the UID of its host; where nothing is
//! known of how it was bootstrapped, by its host name. All three are looked at in one pass over the Nodes. Nodes of
//! others never stand in the way: they are no mistake of this machine (differs: `node-strangers`).
//!
//! A Node's provider ID is written once, from nothing, because the API server takes no other. Who writes it, and who
//! watches the Nodes, is not decided here.

use metal3_api::infrastructure::names::HOST_ANNOTATION;
use metal3_api::infrastructure::v1beta2::Metal3Machine;
use metal3_domain::ids::Uid;
use metal3_domain::names::{HostKey, MachineKey, NameError, Namespace, ObjectName};
use metal3_domain::provider_id::{MachineProviderId, NodeRelation};
use thiserror::Error;

/// What is known of a Node. Absent labels and an absent provider ID are empty text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodeFacts<'a> {
    /// Its name.
    pub name: &'a str,
    /// `spec.providerID`.
    pub provider_id: &'a str,
    /// Label with the UID of its host.
    pub host_uid: &'a str,
    /// Label with its host name.
    pub hostname: &'a str,
}

/// The machine whose Node is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The provider ID that the machine is given.
    pub id: &'a MachineProviderId,
    /// The provider ID that the machine states already; empty for none.
    pub stated: &'a str,
    /// UID of its host.
    pub host_uid: Option<&'a Uid>,
    /// Host names of its host.
    pub hostnames: &'a [&'a str],
    /// How far a Node may be trusted that has no provider ID.
    pub trust: Trust,
}

/// By what a Node may be known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trust {
    /// Its provider ID alone: somebody else's cloud provider writes it.
    ProviderId,
    /// The label as well: the bootstrap provider's kubelet arguments write it.
    Label,
    /// The host name as well: nobody knows how the kubelet was started.
    Hostname,
}

/// What the Nodes say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// This Node is the machine's.
    Node {
        /// Its name.
        name: String,
        /// The provider ID it has, which is the machine's too.
        provider_id: String,
    },
    /// This Node is the machine's and is to be given the machine's provider ID.
    Adopt {
        /// Its name.
        name: String,
    },
    /// None yet.
    None,
}

/// Why no Node can be told to be the machine's.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum NodeError {
    /// Several Nodes claim to be it.
    #[error("the Nodes {} have the same {by}; delete those that are out of date", names.join(", "))]
    Several {
        /// What they share.
        by: &'static str,
        /// Their names.
        names: Vec<String>,
    },
    /// The Node says that it is another machine's.
    #[error(
        "Node {name} has the {by} of this machine and the provider ID {found:?}; delete the Node, or correct its kubelet's --provider-id"
    )]
    Elsewhere {
        /// The Node.
        name: String,
        /// By what it was found.
        by: &'static str,
        /// Its provider ID.
        found: String,
    },
    /// The machine has no host.
    #[error("the machine has no annotation metal3.io/BareMetalHost; it is set once a host is taken")]
    NoHost,
    /// The host annotation names no host of the machine's own namespace.
    #[error("the annotation metal3.io/BareMetalHost says {found:?}; it has to be {namespace}/<host>")]
    Host {
        /// What it says.
        found: String,
        /// Namespace of the machine.
        namespace: String,
    },
    /// The machine's own name is none.
    #[error("the machine's name cannot be used: {0}")]
    Name(#[from] NameError),
}

/// The provider ID of a machine, which follows from its host.
///
/// # Errors
/// When the machine has no host, or one of another namespace.
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

/// The Node of a machine.
///
/// # Errors
/// When several Nodes claim to be it, or the one that is says it is another's.
pub fn find(wanted: &Wanted<'_>, nodes: &[NodeFacts<'_>]) -> Result<Found, NodeError> {
    let id = wanted.id.to_string();
    let has_id = |node: &NodeFacts<'_>| {
        let stated = !wanted.stated.is_empty() && node.provider_id == wanted.stated;
        stated || node.provider_id == id
    };
    if let Some(node) = only(nodes, "provider ID", has_id)? {
        return Ok(found(node));
    }
    let host_uid = wanted
        .host_uid
        .filter(|_| wanted.trust >= Trust::Label)
        .map(Uid::as_str);
    let has_label = |node: &NodeFacts<'_>| host_uid == Some(node.host_uid);
    if let Some(node) = only(nodes, "label metal3.io/uuid", has_label)? {
        return judge(wanted, node, "label metal3.io/uuid");
    }
    let has_name = |node: &NodeFacts<'_>| {
        wanted.trust >= Trust::Hostname && !node.hostname.is_empty() && wanted.hostnames.contains(&node.hostname)
    };
    match only(nodes, "host name", has_name)? {
        Some(node) => judge(wanted, node, "host name"),
        None => Ok(Found::None),
    }
}

/// Whether a Node that was found by something else than its provider ID has one that fits.
fn judge(wanted: &Wanted<'_>, node: &NodeFacts<'_>, by: &'static str) -> Result<Found, NodeError> {
    match wanted.id.compare(node.provider_id, wanted.host_uid) {
        NodeRelation::Unset => Ok(Found::Adopt {
            name: node.name.to_owned(),
        }),
        // The older form names the host by a UID; once on a Node it cannot be changed, so the machine takes it over.
        NodeRelation::Own | NodeRelation::OwnByHostUid => Ok(found(node)),
        NodeRelation::SameHost | NodeRelation::OtherHost | NodeRelation::Foreign => Err(NodeError::Elsewhere {
            name: node.name.to_owned(),
            by,
            found: node.provider_id.to_owned(),
        }),
    }
}

fn found(node: &NodeFacts<'_>) -> Found {
    Found::Node {
        name: node.name.to_owned(),
        provider_id: node.provider_id.to_owned(),
    }
}

/// The one Node that fits, if any.
fn only<'n, 'a>(
    nodes: &'n [NodeFacts<'a>],
    by: &'static str,
    fits: impl Fn(&NodeFacts<'a>) -> bool,
) -> Result<Option<&'n NodeFacts<'a>>, NodeError> {
    let mut fitting = nodes.iter().filter(|node| fits(node));
    match (fitting.next(), fitting.next()) {
        (first, None) => Ok(first),
        (Some(_), Some(_)) => {
            let names = nodes
                .iter()
                .filter(|node| fits(node))
                .map(|node| node.name.to_owned())
                .collect();
            Err(NodeError::Several { by, names })
        }
        (None, Some(_)) => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "metal3://metal/rack1/worker";
    const UID: &str = "c0ffee00-1111-4222-8333-444455556666";

    /// Name, provider ID, label, host name.
    type Row<'a> = (&'a str, &'a str, &'a str, &'a str);

    fn look(rows: &[Row<'_>], trust: Trust, stated: &str) -> Result<Found, NodeError> {
        let id = MachineProviderId::new(
            Namespace::parse("metal").unwrap(),
            ObjectName::parse("rack1").unwrap(),
            ObjectName::parse("worker").unwrap(),
        );
        let uid = Uid::parse(UID).unwrap();
        let nodes: Vec<_> = rows
            .iter()
            .map(|(name, provider_id, host_uid, hostname)| NodeFacts {
                name,
                provider_id,
                host_uid,
                hostname,
            })
            .collect();
        let wanted = Wanted {
            id: &id,
            stated,
            host_uid: Some(&uid),
            hostnames: &["h1", "h1.example.com"],
            trust,
        };
        find(&wanted, &nodes)
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
    fn a_node_is_known_by_provider_id_then_label_then_host_name() {
        let (label, hostname, all) = (("l", "", UID, ""), ("h", "", "", "h1"), Trust::Hostname);
        for (rows, expected) in [
            (vec![("p", ID, "", ""), label, hostname], node("p", ID)),
            (vec![label, hostname], adopt("l")),
            (vec![hostname], adopt("h")),
            (vec![("l", ID, UID, ""), hostname], node("l", ID)),
            (vec![("n", "", "other", "h2"), ("m", "", "", "")], Found::None),
            (vec![], Found::None),
        ] {
            assert_eq!(look(&rows, all, ""), Ok(expected), "{rows:?}");
        }
    }

    #[test]
    fn what_is_not_trusted_is_not_looked_at() {
        let rows = [("l", "", UID, ""), ("h", "", "", "h1")];
        assert_eq!(look(&rows, Trust::ProviderId, ""), Ok(Found::None));
        assert_eq!(look(&rows[1..], Trust::Label, ""), Ok(Found::None));
        assert_eq!(look(&rows, Trust::Label, ""), Ok(adopt("l")));
    }

    #[test]
    fn nodes_of_others_never_stand_in_the_way() {
        let own = ("p", ID, "", "");
        let others = [
            ("a", "aws:///x", "", ""),
            ("b", "aws:///x", "", ""),
            ("c", "metal3://metal/rack1/older", "", ""),
        ];
        let mut rows = others.to_vec();
        assert_eq!(look(&rows, Trust::Hostname, ""), Ok(Found::None));
        rows.push(own);
        assert_eq!(look(&rows, Trust::ProviderId, ""), Ok(node("p", ID)));
    }

    #[test]
    fn a_node_with_the_older_form_is_taken_over_as_it_is() {
        let older = format!("metal3://{UID}");
        assert_eq!(look(&[("l", &older, UID, "")], Trust::Label, ""), Ok(node("l", &older)));
        assert_eq!(
            look(&[("p", &older, "", "")], Trust::ProviderId, &older),
            Ok(node("p", &older))
        );
        assert_eq!(
            look(&[("p", &older, "", "")], Trust::Hostname, ""),
            Ok(Found::None),
            "nothing else ties it to the host"
        );
    }

    #[test]
    fn several_nodes_or_another_machines_node_are_an_error_with_names() {
        let several = |by, names: [&str; 2]| {
            let names = names.map(ToOwned::to_owned).to_vec();
            Err(NodeError::Several { by, names })
        };
        let ids = [("a", ID, "", ""), ("b", ID, "", "")];
        assert_eq!(look(&ids, Trust::ProviderId, ""), several("provider ID", ["a", "b"]));
        let labels = [("a", "", UID, ""), ("b", "", UID, "")];
        assert_eq!(
            look(&labels, Trust::Label, ""),
            several("label metal3.io/uuid", ["a", "b"])
        );
        let names = [("a", "", "", "h1"), ("b", "", "", "h1.example.com")];
        assert_eq!(look(&names, Trust::Hostname, ""), several("host name", ["a", "b"]));
        for found in [
            "metal3://metal/rack1/older",
            "metal3://metal/rack2/worker",
            "aws:///x",
            "metal3://other-uid",
        ] {
            let elsewhere = look(&[("l", found, UID, "")], Trust::Label, "").unwrap_err();
            assert!(elsewhere.to_string().contains(found), "{elsewhere}");
        }
    }

    #[test]
    fn the_provider_id_follows_from_a_host_of_the_own_namespace_alone() {
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
