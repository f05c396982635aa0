//! Metrics that a scrape computes.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use metal3_sim_bmc::fault::Fault;
use serde_json::json;

use crate::env::{Setup, TestEnv};

/// The value of a series.
fn value(env: &TestEnv, series: &str) -> Option<f64> {
    let text = env.metrics.lock().render();
    let mut lines = text.lines().filter_map(|line| line.rsplit_once(' '));
    lines.find(|(found, _)| *found == series)?.1.parse().ok()
}

#[tokio::test(start_paused = true)]
async fn gauges_show_errors_budget_and_requests_without_a_request_of_their_own() {
    let env = TestEnv::new(Setup::default());
    env.host(1, json!({})).await;
    env.until_state(1, "available").await;
    env.set_faults(2, &[Fault::WrongPassword]);
    env.host(2, json!({})).await;
    let is_in_error = |host: Option<&BareMetalHost>| host.is_some_and(|host| host.status.error_type.is_some());
    env.until(2, "error", is_in_error).await;
    tokio::time::sleep(Duration::from_mins(11)).await;
    let sent = env.ironic.audit();
    let of = |series: &str| value(&env, series);
    assert_eq!(of("metal3_hosts{state=\"available\"}"), Some(1.0));
    assert_eq!(of("metal3_hosts{state=\"registering\"}"), Some(1.0));
    assert_eq!(of("metal3_hosts_above_objective{state=\"registering\"}"), Some(1.0));
    assert_eq!(
        of("metal3_hosts_by_error{error_type=\"registration error\"}"),
        Some(1.0)
    );
    assert_eq!(of("metal3_hosts_by_error{error_type=\"inspection error\"}"), Some(0.0));
    assert_eq!(
        of("metal3_deprovision_budget_left"),
        of("metal3_deprovision_budget_limit")
    );
    assert!(of("metal3_ironic_requests_total{method=\"GET\",result=\"success\"}") > Some(10.0));
    assert!(of("metal3_ironic_request_seconds_count{method=\"GET\"}") > Some(10.0));
    assert!(of("metal3_ironic_feed_lag_seconds") < Some(15.0));
    assert!(
        env.metrics
            .lock()
            .render()
            .contains("metal3_ironic_info{microversion=\"1.")
    );
    assert_eq!(sent, env.ironic.audit(), "a scrape sends no request");

    env.ironic.restart(Duration::from_hours(1));
    tokio::time::sleep(Duration::from_mins(10)).await;
    assert!(value(&env, "metal3_ironic_feed_lag_seconds") > Some(500.0));
    assert!(
        value(
            &env,
            "metal3_ironic_requests_total{method=\"GET\",result=\"unreachable\"}"
        ) > Some(3.0)
    );
}
