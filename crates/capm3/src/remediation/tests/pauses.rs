//! Pauses, on the simulated API server.

use serde_json::Value;

use super::lab::Step;
use super::refused::Site;
use crate::data::reconciler::tests::lab::INFRASTRUCTURE;

async fn phase(site: &Site) -> Value {
    let remediation = site.user.get(INFRASTRUCTURE, "metal3remediations/w-0").await;
    remediation["status"]["phase"].clone()
}

#[tokio::test(start_paused = true)]
async fn machine_has_half_of_the_time_to_come_back_after_a_pause() {
    let site = Site::new("v1.31.0").await;
    site.take(&[Step::Power], 30).await;
    assert_eq!(phase(&site).await, "Waiting");
    site.take(&[Step::Pause(true)], 700).await;
    site.take(&[Step::Pause(false), Step::Power], 250).await;
    assert_eq!(phase(&site).await, "Waiting");
    site.take(&[], 60).await;
    assert_eq!(phase(&site).await, "Running", "the retry");
}
