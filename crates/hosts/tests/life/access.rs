//! What a host does once the access to Ironic is repaired.

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use crate::env::{CONTROLLER_USER, Setup, TestEnv};

/// Each refused read was a failure of the host: after a day of them it waited for hours.
#[tokio::test(start_paused = true)]
async fn host_is_registered_with_the_first_retry_after_the_login_of_ironic_is_repaired() {
    let env = TestEnv::new(Setup::default());
    env.interceptor.log().rejected = Some(("GET nodes/_", 401));
    env.host(1, json!({})).await;
    sleep(Duration::from_hours(1)).await;
    let writes = || {
        env.cluster
            .audit()
            .of(CONTROLLER_USER, "patch", "baremetalhosts/status")
    };
    let before = writes();
    sleep(Duration::from_hours(24)).await;
    // A retry every four to eight minutes.
    assert!((180..=360).contains(&(writes() - before)), "{}", writes() - before);
    let status = env.get(1).await.unwrap().status;
    assert!(status.error_message.contains("read node"), "{}", status.error_message);
    assert_eq!(status.error_count, 0, "the cause is not the host");
    env.interceptor.log().rejected = None;
    let before = writes();
    env.until_state(1, "available").await;
    assert_eq!(writes() - before, 5, "the first retry succeeds");
}
