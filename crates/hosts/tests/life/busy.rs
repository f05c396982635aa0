//! Ironic's API answers, and none of its conductors can do what is ordered: none is alive, none has a free worker, or too many
//! actions run.

use metal3_api::metal3::v1alpha1::{BareMetalHost, ErrorType};

use crate::env::{Setup, TestEnv};
use crate::phases::Phase;

#[tokio::test(start_paused = true)]
async fn order_that_ironic_always_answers_with_503_is_reported() {
    let env = TestEnv::new(Setup::default());
    env.interceptor.log().rejected = Some(("PUT nodes/_/states/provision inspect", 503));
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
