//! Scenarios of clusters and machines with their final states.

use super::faults::{Others, Scenario};
use super::steps::Step::{
    Cleaning, Cloned, Cluster, Data, DataGoes, Delete, DeleteCluster, Host, Machine, MachineTemplate, Pause, State,
    Template,
};
use crate::tests::{sweep, sweep_sampled};

/// The sample for scenarios with all controllers and IPAM.
const LONG_SAMPLE: usize = 61;

#[tokio::test(start_paused = true)]
async fn provisioning_survives_every_fault_in_every_write() {
    let report = sweep(Scenario {
        name: "a machine is provisioned",
        stages: &[
            &[Cluster, Host("h0"), Machine("m0")],
            &[Data("m0")],
            &[State("h0", "provisioned")],
        ],
        end: &[
            "h0 runs for m0",
            "m0 metal3://default/h0/m0",
            "claim m0",
            "cluster edge",
        ],
        others: Others::None,
    })
    .await;
    assert!(report.effects.len() <= 14, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn deletion_survives_every_fault_in_every_write() {
    sweep(Scenario {
        name: "a machine and its cluster go",
        stages: &[
            &[Cluster, Host("h0"), Machine("m0")],
            &[Data("m0")],
            &[State("h0", "provisioned")],
            &[Delete("m0"), DeleteCluster],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
        ],
        end: &["h0 idle for no machine"],
        others: Others::None,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pause_survives_every_fault_in_every_write() {
    sweep(Scenario {
        name: "a cluster is paused and resumed",
        stages: &[
            &[Cluster, Host("h0"), Machine("m0")],
            &[Pause(true), Data("m0")],
            &[Pause(false)],
        ],
        end: &["h0 runs for m0", "m0 waits", "claim m0", "cluster edge"],
        others: Others::None,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn rollout_with_data_and_addresses_survives_every_fault_in_every_write() {
    let report = sweep_sampled(
        Scenario {
            name: "a machine with data and an address is provisioned, and another takes its place",
            stages: &[
                &[Cluster, Template, Host("h0"), Machine("m0")],
                &[State("h0", "provisioned")],
                &[Host("h1"), Machine("m1")],
                &[State("h1", "provisioned")],
                &[Delete("m0")],
                &[State("h0", "deprovisioning")],
                &[State("h0", "available")],
            ],
            end: &[
                "h0 idle for no machine",
                "h1 runs for m1",
                "m1 metal3://default/h1/m1",
                "claim m1",
                "cluster edge",
            ],
            others: Others::Data,
        },
        LONG_SAMPLE,
    )
    .await;
    assert!(report.effects.len() > 40, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn cleaning_mode_of_a_template_survives_every_fault_in_every_write() {
    sweep(Scenario {
        name: "a template forbids the cleaning of its machine's host",
        stages: &[
            &[Cluster, MachineTemplate, Host("h0"), Cloned("m0")],
            &[Data("m0")],
            &[State("h0", "provisioned")],
            &[Cleaning("disabled")],
        ],
        end: &[
            "h0 runs for m0, disks kept",
            "m0 metal3://default/h0/m0",
            "claim m0",
            "cluster edge",
        ],
        others: Others::None,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn template_that_forbids_the_cleaning_just_before_the_deletion_is_obeyed_with_every_fault() {
    sweep(Scenario {
        name: "a template forbids the cleaning, and its machine is deleted",
        stages: &[
            &[Cluster, MachineTemplate, Host("h0"), Cloned("m0")],
            &[Data("m0")],
            &[State("h0", "provisioned")],
            &[Cleaning("disabled"), Delete("m0")],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
        ],
        end: &["h0 idle for no machine, disks kept", "cluster edge"],
        others: Others::None,
    })
    .await;
}
