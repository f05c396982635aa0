//! The name of a host's node.
//!
//! Ironic has no namespaces, so a node is named `namespace~name`. Kubernetes names contain no `~`, so the name
//! identifies one host.

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_domain::derived::ironic_node;
use metal3_domain::names::{HostKey, Namespace, ObjectName};

use super::invalid_host::InvalidHost;

const LONGEST: usize = 255;
/// Separates namespace and name.
const SEPARATOR: char = '~';

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

/// The name without the namespace, which the first releases of the Go manager gave to nodes. It does not identify one
/// host.
#[must_use]
pub fn plain(host: &BareMetalHost) -> Option<String> {
    host.metadata.name.clone().filter(|name| !name.contains(SEPARATOR))
}

/// Whether a node that Ironic found by a name has this name. Ironic finds a node by its UUID in the same place, and a UUID
/// is a valid name of a host.
#[must_use]
pub fn is_named(node: Option<&str>, name: &str) -> bool {
    node == Some(name)
}

/// Whether a node with this name is the host's. `accepts_plain`: also by the name without the namespace.
#[must_use]
pub fn is_of_host(host: &BareMetalHost, name: Option<&str>, accepts_plain: bool) -> bool {
    let Some(name) = name else { return false };
    of(host).is_ok_and(|own| own == name) || (accepts_plain && plain(host).is_some_and(|own| own == name))
}

/// Whether a node with this name is of a host in the same namespace.
#[must_use]
pub fn is_of_namespace(host: &BareMetalHost, name: &str) -> bool {
    let namespace = host.metadata.namespace.as_deref();
    name.split_once(SEPARATOR).map(|(of, _)| of) == namespace && namespace.is_some()
}
