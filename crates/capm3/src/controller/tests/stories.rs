//! What happens to clusters and machines, and how it ends.

use super::blows::Story;
use super::site::Step::{Cluster, Data, DataGoes, Delete, DeleteCluster, Host, Machine, Pause, State, Template};
use crate::tests::{survives, survives_sampled};

/// All controllers and address management take part in each of its cases: every so-manieth is enough for every day.
const DEAR: usize = 61;

#[tokio::test(start_paused = true)]
async fn provisioning_survives_every_blow_to_every_write() {
    let report = survives(Story {
        name: "a machine is provisioned",
        acts: &[
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
        has_data: false,
    })
    .await;
    assert!(report.effects.len() <= 14, "{:#?}", report.effects);
}

#[tokio::test(start_paused = true)]
async fn deletion_survives_every_blow_to_every_write() {
    survives(Story {
        name: "a machine and its cluster go",
        acts: &[
            &[Cluster, Host("h0"), Machine("m0")],
            &[Data("m0")],
            &[State("h0", "provisioned")],
            &[Delete("m0"), DeleteCluster],
            &[State("h0", "deprovisioning")],
            &[State("h0", "available"), DataGoes("m0")],
        ],
        end: &["h0 rests for nobody"],
        has_data: false,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pause_survives_every_blow_to_every_write() {
    survives(Story {
        name: "a cluster is paused and goes on",
        acts: &[
            &[Cluster, Host("h0"), Machine("m0")],
            &[Pause(true), Data("m0")],
            &[Pause(false)],
        ],
        end: &["h0 runs for m0", "m0 waits", "claim m0", "cluster edge"],
        has_data: false,
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_roll_with_data_and_addresses_survives_every_blow_to_every_write() {
    let report = survives_sampled(
        Story {
            name: "a machine with data and an address is provisioned, and another takes its place",
            acts: &[
                &[Cluster, Template, Host("h0"), Machine("m0")],
                &[State("h0", "provisioned")],
                &[Host("h1"), Machine("m1")],
                &[State("h1", "provisioned")],
                &[Delete("m0")],
                &[State("h0", "deprovisioning")],
                &[State("h0", "available")],
            ],
            end: &[
                "h0 rests for nobody",
                "h1 runs for m1",
                "m1 metal3://default/h1/m1",
                "claim m1",
                "cluster edge",
            ],
            has_data: true,
        },
        DEAR,
    )
    .await;
    assert!(report.effects.len() > 40, "{:#?}", report.effects);
}
