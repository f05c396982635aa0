//! The clusters of a namespace take turns.

use super::*;

/// A tenant may create any number of Clusters.
#[tokio::test(start_paused = true)]
async fn clusters_of_a_namespace_are_watched_a_few_at_a_time_and_each_has_its_turn() {
    const CLUSTERS: usize = 50;
    let (management, workload) = (Cluster::start(&Options::seeded(1)), Cluster::start(&Options::seeded(2)));
    let user = management.client("user");
    let cluster = |number: usize| key(&format!("edge-{number}"));
    for number in 0..CLUSTERS {
        create_kubeconfig_of(&user, &cluster(number)).await;
    }
    let other = Key {
        namespace: "kube-system".to_owned(),
        name: "other".to_owned(),
    };
    create_kubeconfig_of(&user, &other).await;
    create_node(&workload.client("user"), "n0").await;
    let remote = remote(&management, move || workload.client("capm3"));
    let enqueued = Arc::new(Mutex::new(BTreeSet::new()));
    let woken = Arc::clone(&enqueued);
    remote.set_wake(
        Box::new(move |key| {
            woken.lock().insert(key.clone());
        }),
        10,
    );
    let reconcile = |number: usize| describe(&remote.nodes(&cluster(number), &cluster(number)));
    let is_known = |number: &usize| reconcile(*number) == ["n0="];
    let waiting = async {
        (0..CLUSTERS).for_each(|number| drop(reconcile(number)));
        drop(remote.nodes(&other, &other));
        tokio::time::sleep(Duration::from_secs(20)).await;
        assert_eq!((0..CLUSTERS).filter(is_known).count(), 20);
        assert_eq!(
            describe(&remote.nodes(&other, &other)),
            ["n0="],
            "its namespace has places"
        );
        let reported = reconcile(CLUSTERS - 1);
        assert!(
            reported[0].contains("waiting for a turn") && reported[0].contains("; see the conditions"),
            "{reported:?}"
        );
        // Whose Node came leaves, and the next one is enqueued.
        enqueued.lock().clear();
        remote.remove_waiter(&cluster(0));
        assert_eq!(*enqueued.lock(), BTreeSet::from([cluster(20)]));
        // No other leaves, and all of them have a turn.
        let mut known = BTreeSet::new();
        for _ in 0..30 {
            let keys = std::mem::take(&mut *enqueued.lock());
            for number in (1..CLUSTERS).filter(|number| keys.contains(&cluster(*number))) {
                drop(reconcile(number));
            }
            tokio::time::sleep(Duration::from_secs(20)).await;
            known.extend((1..CLUSTERS).filter(is_known));
        }
        assert_eq!(known.len(), CLUSTERS - 1, "{known:?}");
        assert!((1..CLUSTERS).filter(is_known).count() <= 20);
    };
    tokio::select! { () = remote.run(CancellationToken::new()) => {}, () = waiting => {} }
}
