use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use metal3_api::ipam::v1alpha1::IPPool;

use super::{GroupResource, Permission, Role};

/// A foreign kind without a Rust type.
#[derive(Debug)]
struct Foreign;

impl GroupResource for Foreign {
    fn group() -> String {
        "infrastructure.example.com".to_owned()
    }

    fn resource() -> String {
        "foreigns".to_owned()
    }
}

crate::role! {
    /// A role with every form of permission.
    struct Everything {
        IPPool: List, Watch, Patch, PatchStatus, UpdateFinalizers;
        Lease: Get, Create, Update;
        Secret: Delete;
        Foreign: Get;
    }
}

crate::role! {
    struct Nothing {}
}

#[test]
fn the_table_names_groups_resources_subresources_and_verbs() {
    let needs = Everything::permissions();
    let lines: Vec<String> = needs
        .iter()
        .map(|need| format!("{} {} {}", need.group, need.path(), need.verb))
        .collect();
    assert_eq!(
        lines,
        [
            " secrets delete",
            "coordination.k8s.io leases create",
            "coordination.k8s.io leases get",
            "coordination.k8s.io leases update",
            "infrastructure.example.com foreigns get",
            "ipam.metal3.io ippools list",
            "ipam.metal3.io ippools patch",
            "ipam.metal3.io ippools watch",
            "ipam.metal3.io ippools/finalizers update",
            "ipam.metal3.io ippools/status patch",
        ]
    );
}

#[test]
fn permissions_of_several_roles_join_as_sets() {
    let mut needs = Everything::permissions();
    needs.extend(Nothing::permissions());
    needs.extend(Everything::permissions());
    assert_eq!(needs.len(), 10);
    assert_eq!((Everything::NAME, Nothing::NAME), ("Everything", "Nothing"));
    assert!(needs.contains(&Permission::of::<super::verb::Delete, Secret>()));
}
