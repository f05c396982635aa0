//! A Node whose host was moved to another cluster and has another UID there.

use metal3_capi::workload::LiveNode;

use super::case::{Case, check, live, present, tainted};

/// The Node with the UID that its host had before the move.
fn moved(node: LiveNode) -> LiveNode {
    LiveNode {
        labels: [("metal3.io/uuid".to_owned(), "uid-before-the-move".to_owned())].into(),
        ..node
    }
}

#[test]
fn node_of_a_host_that_was_moved_is_fenced_and_restored() {
    check(vec![
        (
            "fenced",
            Case::off().node(present(moved(live("v1.31.0")))),
            "1 taints, Remediated=False WaitingForDrain, waits 1 s",
        ),
        (
            "restored",
            Case::waiting().node(present(moved(tainted()))),
            "0 taints, in 1 s",
        ),
        (
            "restored by the deletion",
            Case::running().deleted().node(present(moved(tainted()))),
            "0 taints, in 1 s",
        ),
    ]);
}
