//! The name of a host's node.
//!
//! Ironic has no namespaces, so a node is named `namespace~name`. Kubernetes names contain no `~`, so the name
//! identifies one host.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::derived::ironic_node;
use metal3_domain::names::{HostKey, Namespace, ObjectName};

use super::invalid_host::InvalidHost;

const LONGEST: usize = 255;

/// The name of the host's node.
///
/// # Errors
/// When a part is missing or invalid, or the name is too long for Ironic.
pub fn of(host: &BareMetalHost) -> Result<String, InvalidHost> {
    let text = |part: &Option<String>| part.clone().unwrap_or_default();
    let namespace = Namespace::parse(text(&host.metadata.namespace)).map_err(|problem| InvalidHost::Name {
        part: "namespace",
        problem,
    })?;
    let name =
        ObjectName::parse(text(&host.metadata.name)).map_err(|problem| InvalidHost::Name { part: "name", problem })?;
    let node = ironic_node(&HostKey::new(namespace, name));
    match node.len() {
        length if length > LONGEST => Err(InvalidHost::NameLength { length }),
        _ => Ok(node),
    }
}
