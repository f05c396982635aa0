//! `providers`, write by write: what the stand-ins for Kamaji and BYOH write is what the real ones wrote, in that order.
//!
//! A story is played from its first object on, with our controllers in it, and each write of the provider is held against
//! the timeline of the recording. A write is what it changed of the members that the stand-ins have; when it came is not
//! compared, but for the order, and for how long a provider slept.

mod played;
mod recorded;
mod stories;

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::site::play;
use crate::documents;
use stories::{STORIES, Story};

/// What a write did: `Kind member` or `Kind member=value`, of those members that the stand-ins have.
type Write = BTreeSet<String>;

/// Plays every story whose recording is in the folder; says whether each went as it was recorded.
pub(super) fn run(folder: &Path) -> Result<bool> {
    let (mut writes, mut states, mut wrong) = (0_usize, 0_usize, 0_usize);
    for story in STORIES {
        let file = folder.join(story.folder).join("timeline.txt");
        let text = documents::text(&file)?;
        let recorded = recorded::read(&text, story).with_context(|| file.display().to_string())?;
        ensure!(!recorded.writes.is_empty(), "{}: no write was found", file.display());
        let played = play(played::play_story(story))??;
        writes += recorded.writes.len();
        states += recorded.states;
        for what in differences(&recorded.writes, &played) {
            println!("{}/{}: {what}", story.folder, story.name);
            wrong += 1;
        }
    }
    println!("providers: {writes} writes up to {states} states in order, {wrong} otherwise");
    Ok(wrong == 0)
}

/// Where two sequences part. What follows is not compared: it would differ for that alone.
fn differences(recorded: &[Write], played: &[Write]) -> Option<String> {
    let at = (0..recorded.len().max(played.len())).find(|at| recorded.get(*at) != played.get(*at))?;
    Some(format!(
        "write {at} was {:?}, and is {:?}",
        recorded.get(at).unwrap_or(&Write::new()),
        played.get(at).unwrap_or(&Write::new())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(all: &[&str]) -> Vec<Write> {
        all.iter().map(|one| Write::from([(*one).to_owned()])).collect()
    }

    #[test]
    fn first_write_that_differs_is_named_also_when_one_is_missing_or_too_many() {
        let recorded = writes(&["a", "b"]);
        assert_eq!(differences(&recorded, &writes(&["a", "b"])), None);
        for (played, part) in [
            (writes(&["a"]), "write 1 was {\"b\"}, and is {}"),
            (writes(&["b", "a"]), "write 0 was {\"a\"}, and is {\"b\"}"),
            (writes(&["a", "b", "c"]), "write 2 was {}, and is {\"c\"}"),
        ] {
            assert_eq!(differences(&recorded, &played).as_deref(), Some(part));
        }
    }

    #[test]
    fn lines_of_a_timeline_become_writes_up_to_the_state_that_ends_the_story() {
        let text = "    1.000s  #### began\n\
            \x20   2.100s  by kamaji-provider: tenantcontrolplanes/kam-d gen 1 created\n\
            \x20   2.150s  by kamaji-provider: tenantcontrolplanes/kam-d gen 2: spec.networkProfile.dnsServiceIPs: [] -> -\n\
            \x20   2.200s  by kamaji-provider: kamajicontrolplanes/kam-d gen 1: status.conditions[Ready]: - -> False Pending (not -> yet); status.ready: - -> false; status.version: - -> \n\
            \x20   2.200s  ==== 00-waits.yaml\n\
            \x20   2.300s  by kamaji-provider: secrets/kam-d-kubeconfig created; type x\n\
            \x20   2.300s  by core: kamajicontrolplanes/kam-d gen 1: status.ready: false -> true\n\
            \x20   2.400s  ==== 05-initialized.yaml\n\
            \x20   2.500s  by kamaji-provider: kamajicontrolplanes/kam-d gen 1: status.ready: false -> true\n";
        let story = Story {
            until: "05-initialized",
            name: "kam-d",
            ..STORIES[0]
        };
        let found = recorded::read(text, &story).unwrap();
        let expected = [
            Write::from(["TenantControlPlane made".to_owned()]),
            Write::from([
                "KamajiControlPlane status.conditions[Ready]=False Pending".to_owned(),
                "KamajiControlPlane status.ready=false".to_owned(),
            ]),
            Write::from(["Secret made".to_owned()]),
        ];
        assert_eq!((found.writes.as_slice(), found.states), (expected.as_slice(), 2));
        assert!(
            recorded::read(
                text,
                &Story {
                    until: "09-never",
                    ..story
                }
            )
            .is_err()
        );
    }
}
