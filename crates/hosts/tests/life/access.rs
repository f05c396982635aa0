//! What a host does once the access to Ironic is repaired.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, ProvisioningState as State};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::env::{Setup, TestEnv};

/// Only reads of nodes are refused, so that the change feed reports no outage. Each refused read was a failure of the host: after a
/// day of them it waited for hours.
#[tokio::test(start_paused = true)]
async fn host_is_registered_with_the_first_retry_after_the_login_of_ironic_is_repaired() {
    let env = TestEnv::new(Setup::default());
    env.interceptor.log().rejected = Some(("GET nodes/_", 401));
    env.host(1, json!({})).await;
    sleep(Duration::from_hours(1)).await;
    let before = env.status_writes();
    sleep(Duration::from_hours(24)).await;
    // A retry every four to eight minutes.
    let retries = env.status_writes() - before;
    assert!((180..=360).contains(&retries), "{retries}");
    let status = env.get(1).await.unwrap().status;
    assert!(status.error_message.contains("read node"), "{}", status.error_message);
    assert_eq!(status.error_count, 0, "the cause is not the host");
    env.interceptor.log().rejected = None;
    let before = env.status_writes();
    env.until_state(1, "available").await;
    assert_eq!(env.status_writes() - before, 5, "the first retry succeeds");
}

fn held(host: &BareMetalHost) -> Option<&str> {
    let mut conditions = host.status.conditions.iter();
    let held = conditions.find(|condition| condition.type_ == "Held")?;
    Some(held.reason.as_str())
}

/// Whether the host's own read or the list of the change feed gets the response first.
#[tokio::test(start_paused = true)]
async fn refused_login_is_no_failure_of_a_host() {
    for before in ["", "registering", "inspecting"] {
        let env = TestEnv::new(Setup::default());
        if !before.is_empty() {
            env.host(1, json!({})).await;
            env.until_state(1, before).await;
        }
        env.interceptor.log().refuses_login = true;
        if before.is_empty() {
            env.host(1, json!({})).await;
        }
        let is_reported = |host: Option<&BareMetalHost>| {
            let Some(host) = host else { return false };
            assert_eq!(host.status.error_message, "", "{before:?}");
            held(host) == Some("IronicLoginRefused")
        };
        let began = Instant::now();
        env.until(1, "report of the refused login", is_reported).await;
        assert!(
            began.elapsed() < Duration::from_secs(300),
            "{before:?}: {:?}",
            began.elapsed()
        );
        let hour = env.status_writes();
        sleep(Duration::from_hours(1)).await;
        assert_eq!(env.status_writes(), hour, "{before:?}");
        env.interceptor.log().refuses_login = false;
        env.until(1, "host that goes on", |host| {
            host.is_some_and(|host| held(host).is_none() && host.status.provisioning.state == State::Available)
        })
        .await;
    }
}
