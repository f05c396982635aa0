//! Generated stories: any sequence of edits, annotations, deletions, restarts, faults and events of Ironic, in any
//! order and several in one edit. They are judged by invariants of the specification, not by the plan.
//!
//! [`grammar`] generates the steps from a table that covers the whole schema, [`additions`] adds some to it, [`judge`] checks each request to
//! Ironic, [`settings`] the BIOS settings, [`updates`] the firmware, [`discs`] the virtual drive, [`disks`] the disks that are kept, [`agents`] the agents of their own, [`goal`] the state in which a story ends, and [`run`] runs a story and shortens one that
//! fails, and [`steps`] performs its steps.

mod additions;
mod agents;
mod discs;
mod disks;
mod goal;
mod grammar;
mod history;
mod judge;
mod run;
mod services;
mod settings;
mod steps;
mod updates;

use crate::seeds::{failures, range};
use crate::stories::grammar::Story;
use crate::stories::run::{run_story, shorten};

/// Stories of every test run. `make test-long` has the others up to 2,000.
const STORIES: u64 = 200;
/// The number of stories, if others than these are wanted: `FIRST-LAST`.
const RANGE: &str = "METAL3_HOSTS_STORIES";

#[test]
#[expect(clippy::print_stdout, reason = "the figures are for the test log")]
fn generated_stories_keep_every_invariant_and_reach_their_goal() {
    let (first, end) = range(RANGE, STORIES);
    let run = |seed| {
        let story = Story::generate(seed);
        run_story(&story).map_err(|failure| (story, failure))
    };
    let mut failed = failures((first, end), FAILURES, run);
    failed.sort_by_key(|(story, _)| story.seed);
    println!(
        "{} stories run, {} failed ({RANGE}=FIRST-LAST for others)",
        end - first,
        failed.len()
    );
    for (story, failure) in &failed {
        println!("{}\n", shorten(story, failure));
    }
    assert!(
        failed.is_empty(),
        "the stories above violate an invariant or miss their goal"
    );
}

/// No further stories are started after this many failures.
const FAILURES: usize = 8;
