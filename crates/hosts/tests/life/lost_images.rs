//! Images that a user changes while Ironic has lost its database: what ran before is never taken for what is asked for now.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_ironic::model::state::ProvisionState;
use metal3_sim_ironic::Machine;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};
use crate::phases::{SOURCE, image};

const LIVE: &str = "http://images.example/live.iso";
const NEXT: &str = "http://images.example/next.raw";
const NEXT_LIVE: &str = "http://images.example/next.iso";

/// When Ironic loses its database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// The image runs, and the host says so.
    Provisioned,
    /// Ironic has deployed it, and the host does not say so yet.
    Deployed,
    /// Ironic is removing it.
    Removing,
}

const LOSSES: [Lost; 3] = [Lost::Provisioned, Lost::Deployed, Lost::Removing];

fn document(url: &str) -> Value {
    if url.ends_with(".iso") {
        return json!({ "url": url, "checksum": null, "checksumType": null, "format": "live-iso" });
    }
    let mut image = image();
    image["url"] = json!(url);
    image
}

/// The URL of what the machine boots.
fn boots(machine: &Machine) -> Option<String> {
    let live = machine.live.as_ref().map(|live| live.source.clone());
    live.or_else(|| machine.disk.as_ref().map(|disk| disk.source.clone()))
}

async fn run(former: &str, next: Option<&str>, lost: Lost, cleaning: &str) -> (TestEnv, Option<String>) {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({ "automatedCleaningMode": cleaning })).await;
    env.until_state(1, "available").await;
    env.edit(1, json!({ "spec": { "image": document(former) } })).await;
    match lost {
        Lost::Provisioned | Lost::Removing => {
            env.until_state(1, "provisioned").await;
            sleep(Duration::from_mins(3)).await;
        }
        Lost::Deployed => {
            while env.node(1).await.unwrap().provision_state != ProvisionState::Active {
                sleep(Duration::from_millis(50)).await;
            }
        }
    }
    assert_eq!(env.machine(1, |machine| boots(machine)).as_deref(), Some(former));
    let ask = env.edit(1, json!({ "spec": { "image": next.map(document) } }));
    if lost == Lost::Removing {
        ask.await;
        while env.node(1).await.unwrap().provision_state != ProvisionState::Deleting {
            sleep(Duration::from_millis(50)).await;
        }
        env.ironic.lose_database();
    } else {
        env.ironic.lose_database();
        ask.await;
    }
    let asked = next.unwrap_or_default();
    let is_there = |host: Option<&BareMetalHost>| {
        host.is_some_and(|host| {
            let (status, state) = (&host.status, host.status.provisioning.state.to_string());
            let wanted = if next.is_some() { "provisioned" } else { "available" };
            state == wanted
                && status.provisioning.image.url == asked
                && status.error_message.is_empty()
                && status.powered_on
        })
    };
    env.until(
        1,
        &format!("{next:?} instead of {former}, {lost:?}, {cleaning}"),
        is_there,
    )
    .await;
    sleep(Duration::from_hours(2)).await;
    assert!(is_there(env.get(1).await.as_ref()));
    let boots = env.machine(1, |machine| boots(machine));
    (env, boots)
}

#[tokio::test(start_paused = true)]
async fn image_that_is_changed_while_ironic_loses_its_database_is_deployed() {
    for former in [SOURCE, LIVE] {
        for next in [NEXT, NEXT_LIVE] {
            for lost in LOSSES {
                for cleaning in ["metadata", "disabled"] {
                    let (_, boots) = run(former, Some(next), lost, cleaning).await;
                    assert_eq!(boots.as_deref(), Some(next), "{former} {lost:?} {cleaning}");
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn image_that_is_removed_while_ironic_loses_its_database_is_not_booted() {
    for former in [SOURCE, LIVE] {
        for lost in LOSSES {
            for cleaning in ["metadata", "disabled"] {
                let (_, boots) = run(former, None, lost, cleaning).await;
                // Without cleaning the disk keeps what was written to it.
                let kept = (cleaning == "disabled" && former == SOURCE).then_some(SOURCE);
                assert_eq!(boots.as_deref(), kept, "{former} {lost:?} {cleaning}");
            }
        }
    }
}
