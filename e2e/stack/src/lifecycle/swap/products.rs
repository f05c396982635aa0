//! The products of a switch, and where each family of managers has them. Pure.

use super::release::GoRelease;
use crate::lifecycle::audit::{MANAGERS, Manager};

/// Files of the products.
pub(super) const HOSTS: &str = "hosts.yaml";
pub(super) const IPAM: &str = "ipam.yaml";
pub(super) const INFRASTRUCTURE: &str = "infrastructure.yaml";

/// Which managers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Family {
    Go,
    Ours,
}

impl Family {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Go => "the Go managers",
            Self::Ours => "this program",
        }
    }

    pub(super) fn other(self) -> Self {
        match self {
            Self::Go => Self::Ours,
            Self::Ours => Self::Go,
        }
    }
}

/// A product: its Deployment, lease and file, and a namespace for each family.
pub(super) struct Product {
    pub(super) deployment: &'static str,
    pub(super) lease: &'static str,
    pub(super) file: &'static str,
    /// The name of the flag of `clusterctl generate provider`.
    pub(super) provider: Option<&'static str>,
    namespace: &'static str,
    of_go: String,
    user: &'static str,
    user_of_go: String,
}

impl Product {
    fn new(
        manager: &Manager,
        of_go: &str,
        (deployment, file): (&'static str, &'static str),
        provider: Option<&'static str>,
    ) -> Self {
        let user = manager.account.user;
        Self {
            deployment,
            lease: manager.lease,
            file,
            provider,
            namespace: manager.namespace,
            of_go: of_go.to_owned(),
            user,
            user_of_go: user.replace(manager.namespace, of_go),
        }
    }

    #[cfg(test)]
    pub(super) fn for_test(user: &'static str, lease: &'static str) -> Self {
        Self {
            deployment: "d",
            lease,
            file: HOSTS,
            provider: None,
            namespace: "n",
            of_go: "n".to_owned(),
            user,
            user_of_go: user.to_owned(),
        }
    }

    pub(super) fn namespace(&self, of: Family) -> &str {
        match of {
            Family::Go => &self.of_go,
            Family::Ours => self.namespace,
        }
    }

    /// Whether its managers elect a leader. The Go managers of machines and of addresses are released without it.
    pub(super) fn elects(&self, of: Family) -> bool {
        of == Family::Ours || self.file == HOSTS
    }

    /// Whether a manager of either family sends its requests as this user.
    pub(super) fn has(&self, user: &str) -> bool {
        self.user == user || self.user_of_go == user
    }

    #[cfg(test)]
    pub(super) fn user(&self) -> &'static str {
        self.user
    }
}

/// Hosts first: the others read what it writes.
pub(super) fn products(release: &GoRelease) -> [Product; 3] {
    let [machines, addresses, hosts] = &MANAGERS;
    let of_hosts = ("baremetal-operator-controller-manager", HOSTS);
    let of_addresses = ("ipam-controller-manager", IPAM);
    let of_machines = ("capm3-controller-manager", INFRASTRUCTURE);
    [
        Product::new(hosts, hosts.namespace, of_hosts, None),
        Product::new(addresses, &release.addresses, of_addresses, Some("--ipam")),
        Product::new(machines, machines.namespace, of_machines, Some("--infrastructure")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manager_of_addresses_may_have_another_namespace_and_user() {
        let mut release = GoRelease::for_test();
        release.addresses = "capm3-system".to_owned();
        let [hosts, addresses, machines] = products(&release);
        assert_eq!(addresses.namespace(Family::Go), machines.namespace(Family::Go));
        assert_eq!(addresses.namespace(Family::Ours), "metal3-ipam-system");
        for namespace in ["capm3-system", "metal3-ipam-system"] {
            assert!(addresses.has(&format!("system:serviceaccount:{namespace}:ipam-manager")));
        }
        assert!(!addresses.has(hosts.user()) && !addresses.has(machines.user()));
        assert_eq!(hosts.namespace(Family::Go), hosts.namespace(Family::Ours));
    }
}
