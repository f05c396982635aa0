//! The Deployments of Go managers, as the flag names them.

use super::flag::Owner;

/// The Deployment of a Go manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignDeployment {
    /// The controllers it runs.
    pub controllers: Owner,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Parses `ipam=namespace/name`.
pub(super) fn parse(item: &str) -> Option<ForeignDeployment> {
    let (group, rest) = item.split_once('=')?;
    let (namespace, name) = rest.split_once('/')?;
    let controllers = Owner::ALL.into_iter().find(|owner| owner.name() == group)?;
    let is_whole = !namespace.is_empty() && !name.is_empty() && !name.contains('/');
    is_whole.then(|| ForeignDeployment {
        controllers,
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    })
}
