//! Exact request counts for ten thousand objects.

use std::collections::BTreeMap;
use std::time::Duration;

use metal3_runtime::watch::{PAGE_SIZE, WATCH_DURATION};
use metal3_sim_cluster::Cluster;
use tokio::time::{Instant, sleep};

use crate::sweep::{program, server_with_claims};

const OBJECTS: u64 = 10_000;
const DAY: Duration = Duration::from_hours(24);

/// Requests of the program by verb and resource.
fn counts(cluster: &Cluster) -> BTreeMap<String, u64> {
    let audit = cluster.audit();
    let of = audit.counts().filter(|((user, _, _), _)| user == "program");
    of.map(|((_, verb, resource), count)| (format!("{verb} {resource}"), count))
        .collect()
}

fn table(rows: &[(&str, u64)]) -> BTreeMap<String, u64> {
    rows.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect()
}

#[tokio::test(start_paused = true)]
#[expect(clippy::print_stdout, reason = "the figures are part of the test output")]
async fn ten_thousand_objects_cause_exactly_the_requests_of_the_table() {
    let (cluster, options) = server_with_claims(OBJECTS).await;
    let running = program(&cluster, &options);
    sleep(Duration::from_mins(1)).await;
    assert_eq!(running.claims.read(|cache| cache.objects().count()), 10_000);
    assert_eq!(running.children.read(|cache| cache.objects().count()), 10_000);
    let pages = OBJECTS.div_ceil(PAGE_SIZE.into());
    let first = [
        ("create configmaps", OBJECTS),
        ("list configmaps", 1),
        ("list ipclaims", pages),
        ("patch ipclaims", OBJECTS),
        ("patch ipclaims/status", OBJECTS),
        ("watch configmaps", 1),
        ("watch ipclaims", 1),
    ];
    assert_eq!(counts(&cluster), table(&first));
    drop(running);

    cluster.reset_audit();
    let running = program(&cluster, &options);
    sleep(Duration::from_mins(1)).await;
    let start_up = [
        ("list configmaps", pages),
        ("list ipclaims", pages),
        ("watch configmaps", 1),
        ("watch ipclaims", 1),
    ];
    assert_eq!(counts(&cluster), table(&start_up));

    cluster.reset_audit();
    let began = Instant::now();
    sleep(DAY).await;
    let renewals = DAY.as_secs() / WATCH_DURATION.as_secs();
    let steady = [("watch configmaps", renewals), ("watch ipclaims", renewals)];
    assert_eq!(counts(&cluster), table(&steady));
    assert!(began.elapsed() >= DAY);
    let figures = running.queue.stats();
    assert_eq!((figures.adds, figures.retries, figures.delayed), (OBJECTS, 0, 0));
    println!("{OBJECTS} objects: first run {first:?}; start {start_up:?}; a day {steady:?}");
}
