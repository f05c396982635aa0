//! Ironic's API answers, and none of its conductors can do what is ordered: none is alive, none has a free worker, or too many
//! actions run.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType};
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};
use crate::phases::Phase;

const INSPECT: &str = "PUT nodes/_/states/provision inspect";

#[tokio::test(start_paused = true)]
async fn order_that_ironic_always_answers_with_503_is_reported() {
    let env = TestEnv::new(Setup::default());
    env.interceptor.log().rejected = Some((INSPECT, 503));
    Phase::Enrol.begin(&env, 1).await;
    let reports =
        |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_type == Some(ErrorType::Inspection));
    env.until(1, "error about the rejected order", reports).await;
}

#[tokio::test(start_paused = true)]
async fn power_off_that_ironic_always_answers_with_503_does_not_keep_a_deletion() {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    env.interceptor.log().rejected = Some(("PUT nodes/_/states/power", 503));
    env.delete(1).await;
    env.until(1, "end", |host| host.is_none()).await;
    assert!(env.node(1).await.is_none());
}

/// As with many hosts that are ordered at once.
#[tokio::test(start_paused = true)]
async fn host_that_waited_for_a_busy_ironic_does_not_wait_for_hours_more() {
    let env = TestEnv::new(Setup::default());
    env.interceptor.log().rejected = Some((INSPECT, 503));
    Phase::Enrol.begin(&env, 1).await;
    sleep(Duration::from_hours(12)).await;
    env.interceptor.log().rejected = None;
    // Longer than the longest delay of the queue (1000 s) and than that of a failure that is not counted (8 min).
    sleep(Duration::from_mins(20)).await;
    let done = env.interceptor.log().done.get(INSPECT).copied().unwrap_or_default();
    assert_eq!(done, 1, "{:?}", env.get(1).await.unwrap().status.error_count);
}
