//! Node reuse: machines whose hosts come back to their sets.

use super::faults::{Others, Scenario};
use super::steps::Step::{
    Cleaning, Cluster, ControlPlane, Data, DataGoes, Delete, Deployment, Host, Kept, MachineTemplate, Master, Reuse,
    Spare, State, Worker,
};
use crate::tests::sweep;

#[tokio::test(start_paused = true)]
async fn host_comes_back_to_its_deployment_with_every_fault_in_every_write() {
    let report = sweep(Scenario {
        name: "the worker of a MachineDeployment is replaced, and a spare host is more to its liking",
        stages: &[
            &[
                Cluster,
                MachineTemplate,
                Cleaning("disabled"),
                Reuse,
                Deployment,
                Host("h0"),
                Worker("m0"),
            ],
            &[Data("m0")],
            &[State("h0", "provisioned")],
            &[Spare("h1"), Delete("m0")],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
            &[Worker("m1")],
            &[Data("m1")],
            &[State("h0", "provisioned")],
        ],
        end: &[
            "h0 runs for m1, disks kept",
            "h1 idle for no machine",
            "m1 metal3://default/h0/m1",
            "claim m1",
            "cluster edge",
        ],
        others: Others::None,
    })
    .await;
    assert!(report.effects.len() > 20, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn host_of_a_control_plane_is_kept_with_every_fault_in_every_write() {
    sweep(Scenario {
        name: "the machine of a control plane is deleted",
        stages: &[
            &[
                Cluster,
                MachineTemplate,
                Cleaning("disabled"),
                Reuse,
                ControlPlane,
                Host("h0"),
                Master("m0"),
            ],
            &[Data("m0")],
            &[State("h0", "provisioned"), Delete("m0")],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
        ],
        end: &["h0 idle for edge and cp-plane, disks kept", "cluster edge"],
        others: Others::None,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn disks_are_not_cleaned_before_the_user_decides_with_every_fault() {
    sweep(Scenario {
        name: "a machine waits, and its template then forbids the cleaning",
        stages: &[
            &[Cluster, MachineTemplate, Reuse, Deployment, Host("h0"), Worker("m0")],
            &[Data("m0")],
            &[State("h0", "provisioned"), Delete("m0")],
            &[Cleaning("disabled")],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
        ],
        end: &["h0 idle for edge and md-workers, disks kept", "cluster edge"],
        others: Others::None,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn roll_of_a_go_manager_is_continued_with_every_fault() {
    sweep(Scenario {
        name: "a Go manager kept a host, and was replaced",
        stages: &[
            &[
                Cluster,
                MachineTemplate,
                Cleaning("disabled"),
                Reuse,
                Deployment,
                Kept("h0"),
                Spare("h1"),
                Worker("m0"),
            ],
            &[Data("m0")],
            &[State("h0", "provisioned")],
        ],
        end: &[
            "h0 runs for m0, disks kept",
            "h1 idle for no machine",
            "m0 metal3://default/h0/m0",
            "claim m0",
            "cluster edge",
        ],
        others: Others::None,
    })
    .await;
}
