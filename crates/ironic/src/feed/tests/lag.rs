//! How long ago the last poll was.

use std::time::Duration;

use super::fixture::Fixture;

/// More nodes change between two rounds than a round reads.
#[test]
fn complete_list_that_replaces_a_round_counts_as_a_poll() {
    let mut fixture = Fixture::with_nodes(3_000);
    fixture.run(Duration::from_secs(30));
    fixture.run_with(Duration::from_secs(600), |fixture| {
        (0..2_500).for_each(|number| fixture.change(number, 0));
    });
    let lag = fixture.now().since(fixture.tracker.polled().unwrap());
    assert!(lag < Duration::from_secs(60), "{lag:?}");
}
