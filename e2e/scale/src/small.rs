//! What a small run asserts: counts and their growth, never times.

use std::collections::BTreeSet;

use anyhow::ensure;
use metal3_sim_ironic::meter::FEED;

use crate::outcome::{Api, Counts, Outcome, Phase, Size};
use crate::table::{GROWING, LIFE, growth};

/// The largest exponent of growth of a count.
const MOST: f64 = 1.1;
/// Figures of [`GROWING`] that are counts.
const COUNTS: [&str; 3] = ["API writes", "API reads", "Ironic requests"];

/// The requests for each host in a phase, as `make counts` prints them for the simulated servers.
const EXPECTED: [(&str, &[(&str, u64)]); 4] = [
    (
        "enrol",
        &[
            ("create hardwaredata", 1),
            ("patch baremetalhosts", 2),
            ("patch baremetalhosts/status", 6),
            ("patch secrets", 1),
            ("get secrets", 1),
            ("GET nodes/_", 1),
            ("GET nodes/_/inventory", 1),
            ("GET ports", 3),
            ("POST nodes", 1),
            ("POST ports", 1),
            ("PUT nodes/_/states/power power on", 1),
            ("PUT nodes/_/states/provision inspect", 1),
            ("PUT nodes/_/states/provision manage", 1),
        ],
    ),
    (
        "provision",
        &[
            ("patch baremetalhosts/status", 2),
            ("get baremetalhosts", 1),
            ("GET nodes/_", 2),
            ("GET nodes/_/validate", 1),
            ("PATCH nodes/_", 1),
            ("PUT nodes/_/states/provision active", 1),
            ("PUT nodes/_/states/provision provide", 1),
        ],
    ),
    (
        "deprovision",
        &[
            ("patch baremetalhosts/status", 3),
            ("GET nodes/_", 1),
            ("PUT nodes/_/states/power power on", 1),
            ("PUT nodes/_/states/provision deleted", 1),
        ],
    ),
    (
        "delete",
        &[
            ("patch baremetalhosts", 1),
            ("patch baremetalhosts/status", 2),
            ("patch hardwaredata", 1),
            ("patch secrets", 1),
            ("DELETE nodes/_", 1),
            ("GET nodes/_", 2),
            ("PUT nodes/_/states/power power off", 1),
        ],
    ),
];

/// Fails with each violation.
pub(crate) fn check(outcome: &Outcome) -> anyhow::Result<()> {
    let mut wrong: Vec<String> = outcome.sizes.iter().flat_map(violations).collect();
    for (what, of) in GROWING.into_iter().filter(|(what, _)| COUNTS.contains(what)) {
        for phase in LIFE {
            let grows = growth(&outcome.sizes, phase, of);
            let more = grows.into_iter().filter(|exponent| *exponent > MOST);
            wrong.extend(more.map(|exponent| format!("{phase}: {what} grow with the exponent {exponent:.2}")));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} sizes, all counts as committed", outcome.sizes.len());
    Ok(())
}

fn violations(size: &Size) -> Vec<String> {
    let mut wrong = Vec::new();
    match size.phase("idle") {
        Some(idle) if Api::total(&idle.api.writes) == 0 => {}
        idle => wrong.push(format!("idle: {:?}", idle.map(|phase| &phase.api.writes))),
    }
    let live = EXPECTED.iter().map(|(name, _)| *name).chain(["idle"]);
    for phase in live.filter_map(|name| size.phase(name)) {
        let lists = phase.api.lists();
        wrong.extend(lists.map(|(what, number)| format!("{}: {what}: {number}, expected 0", phase.name)));
    }
    let forbidden = size.phases.iter().flat_map(|phase| &phase.api.forbidden);
    wrong.extend(forbidden.map(|target| format!("forbidden: {target}")));
    for (name, expected) in EXPECTED {
        match size.phase(name) {
            Some(phase) => wrong.extend(differences(phase, expected, size.hosts.into())),
            None => wrong.push(format!("no phase {name}")),
        }
    }
    wrong
        .iter()
        .map(|wrong| format!("{} hosts: {wrong}", size.hosts))
        .collect()
}

/// A line for each count that is not the expected one.
fn differences(phase: &Phase, expected: &[(&str, u64)], hosts: u64) -> Vec<String> {
    let Phase { api, ironic, .. } = phase;
    let of_hosts = ironic.requests.iter().filter(|(what, _)| *what != FEED);
    let counts = api.writes.iter().chain(&api.reads).chain(of_hosts);
    let counts: Counts = counts.map(|(what, number)| (what.clone(), *number)).collect();
    let names = counts.keys().map(String::as_str);
    let names: BTreeSet<&str> = names.chain(expected.iter().map(|(what, _)| *what)).collect();
    let different = names.into_iter().filter_map(|what| {
        let each = expected.iter().find(|(expected, _)| *expected == what);
        let expected = each.map_or(0, |(_, each)| each.saturating_mul(hosts));
        let number = counts.get(what).copied().unwrap_or(0);
        (number != expected).then(|| format!("{}: {what}: {number}, expected {expected}", phase.name))
    });
    different.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(hosts: u32) -> Size {
        let phase = |(name, expected): (&str, &[(&str, u64)])| {
            let mut phase = Phase {
                name: name.to_owned(),
                ..Phase::default()
            };
            for (what, each) in expected {
                let into = match what.split_once(' ') {
                    Some(("get", _)) => &mut phase.api.reads,
                    Some((verb, _)) if verb.chars().all(char::is_uppercase) => &mut phase.ironic.requests,
                    _ => &mut phase.api.writes,
                };
                into.insert((*what).to_owned(), each * u64::from(hosts));
            }
            phase.ironic.requests.insert(FEED.to_owned(), 3);
            phase
        };
        let mut phases: Vec<Phase> = EXPECTED.into_iter().map(phase).collect();
        phases.push(Phase {
            name: "idle".to_owned(),
            ..Phase::default()
        });
        Size { hosts, phases }
    }

    fn outcome() -> Outcome {
        Outcome {
            sizes: vec![size(25), size(50)],
            ..Outcome::default()
        }
    }

    #[test]
    fn expected_counts_pass() {
        check(&outcome()).unwrap();
    }

    #[test]
    fn each_violation_is_named() {
        let mut wrong = outcome();
        let phases = &mut wrong.sizes[1].phases;
        phases[0].api.reads.insert("get secrets".to_owned(), 51);
        phases[1].ironic.requests.insert("GET nodes/_".to_owned(), 200);
        phases[1].api.shared.insert("list secrets".to_owned(), 50);
        phases[1].api.shared.insert("update leases".to_owned(), 2);
        phases[4].api.writes.insert("patch baremetalhosts/status".to_owned(), 1);
        phases[4].api.shared.insert("list baremetalhosts".to_owned(), 1);
        let text = check(&wrong).unwrap_err().to_string();
        for part in [
            "50 hosts: enrol: get secrets: 51, expected 50",
            "50 hosts: provision: GET nodes/_: 200, expected 100",
            "50 hosts: provision: list secrets: 50, expected 0",
            "50 hosts: idle: list baremetalhosts: 1, expected 0",
            "50 hosts: idle: Some({\"patch baremetalhosts/status\": 1})",
            "provision: Ironic requests grow with the exponent 1.42",
        ] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(text.lines().count(), 6, "{text}");
    }
}
