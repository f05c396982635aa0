//! Requests of an idle cache.

use std::time::Duration;

use crate::setup::{shown, simulated, stored};

#[tokio::test(start_paused = true)]
async fn start_costs_one_list_and_one_watch_and_a_quiet_day_only_renewals() {
    let env = simulated();
    env.create("a").await;
    let (cache, health) = env.synced().await;
    assert_eq!(shown(&cache), stored(&env).await);
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(env.request_counts(), (1, 1));
    tokio::time::sleep(Duration::from_hours(24)).await;
    assert_eq!(env.request_counts(), (1, 49), "a watch lasts half an hour");
    let figures = health.stats();
    assert_eq!((figures.failures, figures.events), (0, 0));
    assert!(figures.bookmarks > 24 * 50 && health.is_alive());
    env.stop().await;
}
