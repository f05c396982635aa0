//! What happens to clusters and machines, and how it ends.

use super::blows::{Story, survives};
use super::site::Step::{Cluster, Data, DataGoes, Delete, DeleteCluster, Host, Machine, Pause, State};

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
    })
    .await;
}
