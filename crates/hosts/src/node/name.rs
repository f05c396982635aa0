//! What the node of a host is called.
//!
//! Ironic knows no namespaces, so a node is called `namespace~name`; `~` stands in no name of Kubernetes, so the name
//! leads back to one host.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::derived::ironic_node;
use metal3_domain::names::{HostKey, Namespace, ObjectName};

use super::Refusal;

/// The longest name that Ironic takes.
const LONGEST: usize = 255;

/// The name of the host's node.
///
/// # Errors
/// When a part is missing or no name, or both together are too long for Ironic.
pub fn of(host: &BareMetalHost) -> Result<String, Refusal> {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let namespace = Namespace::parse(text(&host.metadata.namespace)).map_err(|problem| Refusal::Name {
        part: "namespace",
        problem,
    })?;
    let name =
        ObjectName::parse(text(&host.metadata.name)).map_err(|problem| Refusal::Name { part: "name", problem })?;
    let node = ironic_node(&HostKey::new(namespace, name));
    match node.len() {
        length if length > LONGEST => Err(Refusal::NameLength { length }),
        _ => Ok(node),
    }
}
