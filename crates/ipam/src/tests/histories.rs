//! The controller on the simulated API server.

use std::time::Duration;

use serde_json::json;

use super::lab::Lab;
use crate::claim::ClaimKind::{ClusterApi, Metal3};

#[tokio::test(start_paused = true)]
async fn controller_grants_refuses_and_releases_on_an_api_server() {
    let lab = Lab::new(1).await;
    let _replica = lab.replica("one");
    lab.pool(json!({ "namePrefix": "p", "pools": [{ "start": "10.0.0.1", "end": "10.0.0.2" }] }))
        .await;
    for (kind, name) in [(Metal3, "a"), (ClusterApi, "a"), (Metal3, "b")] {
        lab.claim(kind, name).await;
        lab.rest().await;
    }
    let granted = |address: &str| Some(address.to_owned());
    assert_eq!(
        lab.grants().await,
        [
            ("IPClaim a".into(), granted("10.0.0.1")),
            ("IPClaim b".into(), None),
            ("IPAddressClaim a".into(), granted("10.0.0.2"))
        ]
    );
    lab.delete(Metal3, "a").await;
    lab.rest().await;
    assert_eq!(
        lab.grants().await,
        [
            ("IPClaim b".into(), granted("10.0.0.1")),
            ("IPAddressClaim a".into(), granted("10.0.0.2"))
        ]
    );
    let before = lab.writes();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(lab.writes(), before, "an idle hour costs no write");
}
