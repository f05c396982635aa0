//! RBAC permissions of the processes, collected from the declarations of their parts.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::authentication::v1::TokenReview;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Event;
use metal3_capm3::cluster::sources::EndpointSources;
use metal3_capm3::needs::{Data, HostOwners, Machines, Remediations};
use metal3_hosts::needs::{
    AgentImages, Claims, DataImages, Hosts, IronicResource, OwnedByHosts, Subscriptions, Switches, UnservedKinds,
};
use metal3_ipam::needs::Ipam;
use metal3_runtime::access::{Permission, Role};
use metal3_runtime::{guard, role};
use metal3_webhooks::certificates::{CertificateScope, SelfManaged};

role! {
    /// Leader election, in the namespace of the process.
    pub struct LeaderElection {
        Lease: Get, Watch, Create, Update;
    }
}

role! {
    /// Watching the Deployment of the Go manager, by its name.
    pub struct GoManagerCheck {
        Deployment: List, Watch;
    }
}

role! {
    /// Authentication and authorization of requests for metrics.
    pub struct MetricsAccess {
        TokenReview: Create;
        SubjectAccessReview: Create;
    }
}

role! {
    /// Reviews of the rights of users whose requests are admitted.
    pub struct Admission {
        SubjectAccessReview: Create;
    }
}

role! {
    /// Events about an idle controller group.
    pub struct StatusEvents {
        Event: Create, Patch;
    }
}

/// Scope of a permission.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All namespaces.
    Cluster,
    /// All namespaces, limited to objects of these names.
    Named(Vec<String>),
    /// The namespace of the process.
    Namespace,
    /// The namespace of the process, limited to objects of these names.
    NamespaceNamed(Vec<String>),
}

/// Permissions of IP address management, by scope.
#[must_use]
pub fn ipam() -> Vec<(Scope, BTreeSet<Permission>)> {
    product(Ipam::permissions(), guard::IPAM)
}

/// Permissions of clusters, machines and their data.
#[must_use]
pub fn capm3() -> Vec<(Scope, BTreeSet<Permission>)> {
    product(
        Machines::permissions()
            .into_iter()
            .chain(Data::permissions())
            .chain(Remediations::permissions())
            .chain(EndpointSources::permissions())
            .chain(HostOwners::permissions())
            .collect(),
        guard::CAPM3,
    )
}

/// Permissions of hosts.
#[must_use]
pub fn hosts() -> Vec<(Scope, BTreeSet<Permission>)> {
    let needs = Hosts::permissions()
        .into_iter()
        .chain(OwnedByHosts::permissions())
        .chain(AgentImages::permissions())
        .chain(Subscriptions::permissions())
        .chain(DataImages::permissions())
        .chain(IronicResource::permissions())
        .chain(Switches::permissions())
        .chain(UnservedKinds::permissions())
        .chain(Admission::permissions());
    product(needs.collect(), guard::HOSTS)
}

/// Additional permissions of hosts with `--hostclaims`. No account has them by the installation: they include the creation of Secrets
/// in all namespaces.
#[must_use]
pub fn claims() -> Vec<(Scope, BTreeSet<Permission>)> {
    vec![(Scope::Cluster, Claims::permissions())]
}

/// Permissions of a product that replaces the Deployment of a Go manager.
fn product(needs: BTreeSet<Permission>, replaces: (&str, &str)) -> Vec<(Scope, BTreeSet<Permission>)> {
    let cluster_needs = needs
        .into_iter()
        .chain(MetricsAccess::permissions())
        .chain(StatusEvents::permissions());
    vec![
        (Scope::Cluster, cluster_needs.collect()),
        (Scope::Named(vec![replaces.1.to_owned()]), GoManagerCheck::permissions()),
        (Scope::Namespace, LeaderElection::permissions()),
    ]
}

/// Additional permissions of `--webhook-certificates=self-managed`: its Secret, and the objects with its CA bundle,
/// each by name.
#[must_use]
pub fn self_managed(certificates: &CertificateScope) -> Vec<(Scope, BTreeSet<Permission>)> {
    let mut permissions: BTreeMap<Scope, BTreeSet<Permission>> = BTreeMap::new();
    for need in SelfManaged::permissions() {
        let scope = match (need.resource.as_str(), need.verb) {
            // The name of an object cannot restrict its creation.
            ("secrets", "create") => Scope::Namespace,
            ("secrets", _) => Scope::NamespaceNamed(vec![certificates.secret().to_owned()]),
            (resource, _) => Scope::Named(certificates.named(resource)),
        };
        permissions.entry(scope).or_default().insert(need);
    }
    // A role without names applies to all objects.
    let unnamed = Scope::Named(Vec::new());
    permissions.into_iter().filter(|(scope, _)| *scope != unnamed).collect()
}

/// Whether the resource of a permission belongs to no namespace, so that a role of a namespace cannot grant it.
#[must_use]
pub fn is_cluster_scoped(need: &Permission) -> bool {
    if need.group.is_empty() && need.resource == "namespaces" {
        return true;
    }
    const GROUPS: [&str; 4] = [
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "authentication.k8s.io",
        "authorization.k8s.io",
    ];
    GROUPS.contains(&need.group.as_str())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Namespace, Secret};
    use metal3_api::cluster::{self, IPAddressClaim};
    use metal3_api::infrastructure::v1beta2::Metal3Cluster;
    use metal3_api::ipam::v1alpha1::{IPClaim, IPPool};
    use metal3_api::metal3::v1alpha1::{BareMetalHost, HardwareData, HostFirmwareComponents, HostFirmwareSettings};
    use metal3_runtime::access::verb;

    use super::*;

    /// An API server with the admission plugin `OwnerReferencesPermissionEnforcement` lets only those change the owners of
    /// an object who may delete it, and only those block the deletion of an owner who may update its finalizers.
    #[test]
    fn owner_references_can_be_written_where_their_permissions_are_enforced() {
        let all = |scopes: Vec<(Scope, BTreeSet<Permission>)>| -> BTreeSet<Permission> {
            scopes.into_iter().flat_map(|(_, permissions)| permissions).collect()
        };
        let (ipam, capm3, hosts) = (all(ipam()), all(capm3()), all(hosts()));
        // Owners that are changed after the creation.
        let deleted = [
            (&ipam, Permission::of::<verb::Delete, IPPool>()),
            (&ipam, Permission::of::<verb::Delete, cluster::IPAddress>()),
            (&capm3, Permission::of::<verb::Delete, Metal3Cluster>()),
            (&capm3, Permission::of::<verb::Delete, BareMetalHost>()),
            (&hosts, Permission::of::<verb::Delete, HardwareData>()),
            (&hosts, Permission::of::<verb::Delete, HostFirmwareComponents>()),
            (&hosts, Permission::of::<verb::Delete, HostFirmwareSettings>()),
        ];
        // Owners whose deletion is blocked.
        let blocked = [
            (&ipam, Permission::of::<verb::UpdateFinalizers, IPPool>()),
            (&ipam, Permission::of::<verb::UpdateFinalizers, IPClaim>()),
            (&ipam, Permission::of::<verb::UpdateFinalizers, IPAddressClaim>()),
            (&capm3, Permission::of::<verb::UpdateFinalizers, Metal3Cluster>()),
            (&hosts, Permission::of::<verb::UpdateFinalizers, BareMetalHost>()),
        ];
        for (granted, needed) in deleted.into_iter().chain(blocked) {
            assert!(granted.contains(&needed), "{needed:?}");
        }
    }

    #[test]
    fn host_controllers_can_delete_neither_secrets_nor_hosts() {
        let granted = Hosts::permissions();
        assert!(
            granted.iter().all(|permission| permission.verb != "delete"),
            "{granted:?}"
        );
        let whole: BTreeSet<String> = hosts()
            .into_iter()
            .flat_map(|(_, permissions)| permissions)
            .filter(|permission| permission.verb == "delete")
            .map(|permission| permission.path())
            .collect();
        assert_eq!(
            whole,
            [
                "dataimages",
                "hardwaredata",
                "hostfirmwarecomponents",
                "hostfirmwaresettings",
                "hostupdatepolicies"
            ]
            .map(str::to_owned)
            .into()
        );
    }

    #[test]
    fn hosts_create_no_secret_and_read_no_namespace_without_claims() {
        let of = |scopes: Vec<(Scope, BTreeSet<Permission>)>| -> BTreeSet<Permission> {
            scopes.into_iter().flat_map(|(_, permissions)| permissions).collect()
        };
        let create = Permission::of::<verb::Create, Secret>();
        let read = Permission::of::<verb::List, Namespace>();
        assert!(!of(hosts()).contains(&create) && !of(hosts()).contains(&read));
        assert!(of(claims()).contains(&create) && of(claims()).contains(&read));
    }

    #[test]
    fn controllers_of_machines_cannot_delete_hosts() {
        let can_delete_hosts = Permission::of::<verb::Delete, BareMetalHost>();
        for role in [
            Machines::permissions(),
            Data::permissions(),
            Remediations::permissions(),
        ] {
            assert!(!role.contains(&can_delete_hosts), "{role:?}");
        }
    }
}
