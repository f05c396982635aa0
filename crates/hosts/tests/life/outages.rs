//! What hosts report while Ironic serves no request.

use std::time::Duration;

use metal3_api::metal3::v1alpha1::BareMetalHost;
use serde_json::json;
use tokio::time::sleep;

use crate::env::{Setup, TestEnv};
use crate::phases::Phase;

fn held(host: Option<&BareMetalHost>) -> Option<(String, String)> {
    let mut conditions = host?.status.conditions.iter();
    let held = conditions.find(|condition| condition.type_ == "Held")?;
    Some((held.reason.clone(), held.message.clone()))
}

/// A busy host said nothing of an outage: it waited for its node, which nothing could show.
#[tokio::test(start_paused = true)]
async fn busy_host_reports_an_outage_once_and_an_idle_one_never() {
    let env = TestEnv::new(Setup::default());
    Phase::Enrol.begin(&env, 1).await;
    Phase::Enrol.end(&env, 1).await;
    env.host(2, json!({})).await;
    env.until_state(2, "inspecting").await;
    sleep(Duration::from_secs(20)).await;
    let writes = || env.status_writes();
    let before = writes();
    env.ironic.restart(Duration::from_hours(3));
    sleep(Duration::from_mins(10)).await;
    let (reason, message) = held(env.get(2).await.as_ref()).unwrap();
    assert_eq!(reason, "IronicUnreachable");
    assert!(
        message.contains("Ironic is unreachable since") && message.contains("Restore it"),
        "{message}"
    );
    assert_eq!(writes() - before, 1);
    sleep(Duration::from_hours(2)).await;
    assert_eq!(writes() - before, 1, "nothing is written while it lasts");
    assert_eq!(held(env.get(1).await.as_ref()), None, "an idle host waits for nothing");
    Phase::Enrol.end(&env, 2).await;
    assert_eq!(held(env.get(2).await.as_ref()), None);
}

#[tokio::test(start_paused = true)]
async fn host_that_is_created_in_an_outage_reports_it_and_is_registered_after_it() {
    let env = TestEnv::new(Setup::default());
    env.ironic.restart(Duration::from_hours(2));
    sleep(Duration::from_mins(10)).await;
    Phase::Enrol.begin(&env, 1).await;
    let reports = |host: Option<&BareMetalHost>| held(host).is_some_and(|(reason, _)| reason == "IronicUnreachable");
    env.until(1, "report", reports).await;
    Phase::Enrol.end(&env, 1).await;
    assert_eq!(held(env.get(1).await.as_ref()), None);
}
