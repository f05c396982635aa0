//! The kinds of Cluster API that the provider reads: `cluster.x-k8s.io`, `controlplane.cluster.x-k8s.io` and
//! `ipam.cluster.x-k8s.io`, all `v1beta2`.
//!
//! Only the members in use are declared; the rest is dropped on decode. No CRD is written for these
//! kinds, and an object of them is never sent back whole: writes are patches. The exceptions are IPAddressClaim and
//! IPAddress, which the provider also creates; those two are complete.

mod control_plane;
mod core;
mod ip_address;
mod machine;
mod machine_owner;
pub mod names;
mod reference;

pub use control_plane::{
    ControlPlaneMachineSpec, ControlPlaneMachineTemplate, KubeadmControlPlane, KubeadmControlPlaneSpec,
    KubeadmControlPlaneStatus,
};
pub use core::{Cluster, ClusterEndpoint, ClusterInitialization, ClusterSpec, ClusterStatus};
pub use ip_address::{AddressName, IPAddress, IPAddressClaim, IPAddressClaimSpec, IPAddressClaimStatus, IPAddressSpec};
pub use machine::{Bootstrap, Machine, MachineInitialization, MachineSpec, MachineStatus, NodeName};
pub use machine_owner::{
    MachineDeployment, MachineDeploymentSpec, MachineDeploymentStatus, MachineSet, MachineSetSpec, MachineSetStatus,
    MachineTemplate, RollingUpdate, Rollout, RolloutStrategy,
};
pub use reference::{ContractReference, DeprecatedStatus, LegacyStatus};

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn undeclared_members_are_ignored_and_absent_ones_have_defaults() {
        let machine: Machine = serde_json::from_value(json!({
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
            "metadata": { "name": "node-0" },
            "spec": {
                "clusterName": "edge",
                "bootstrap": { "dataSecretName": "node-0-boot" },
                "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "Metal3Machine", "name": "node-0" },
                "deletion": { "order": "Random" },
            },
            "status": { "nodeRef": { "name": "node-0" }, "phase": "Running" },
        }))
        .unwrap();
        assert_eq!(machine.spec.cluster_name, "edge");
        assert_eq!(machine.spec.bootstrap.data_secret_name.as_deref(), Some("node-0-boot"));
        assert_eq!(machine.spec.infrastructure_ref.kind, "Metal3Machine");
        assert_eq!(machine.status.node_ref, Some(NodeName { name: "node-0".into() }));
        assert_eq!(machine.status.initialization, None);
    }

    #[test]
    fn a_claim_is_written_with_everything_its_schema_requires() {
        let claim = IPAddressClaim {
            spec: IPAddressClaimSpec {
                cluster_name: Some("edge".into()),
                pool_ref: ContractReference {
                    api_group: "ipam.metal3.io".into(),
                    kind: "IPPool".into(),
                    name: "external".into(),
                },
            },
            ..IPAddressClaim::default()
        };
        let written = serde_json::to_value(&claim).unwrap();
        assert_eq!(
            written["spec"],
            json!({
                "clusterName": "edge",
                "poolRef": { "apiGroup": "ipam.metal3.io", "kind": "IPPool", "name": "external" },
            })
        );
    }

    #[test]
    fn the_machine_template_of_a_control_plane_is_found() {
        let control_plane: KubeadmControlPlane = serde_json::from_value(json!({
            "apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
            "metadata": { "name": "edge" },
            "spec": { "machineTemplate": { "spec": { "infrastructureRef": { "kind": "Metal3MachineTemplate", "name": "edge-cp" } } } },
        }))
        .unwrap();
        assert_eq!(
            control_plane.spec.machine_template.spec.infrastructure_ref.name,
            "edge-cp"
        );
    }
}
